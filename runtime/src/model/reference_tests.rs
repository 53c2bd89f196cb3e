//! The forward pass of each architecture against transformers'.

use std::path::Path;

use candle_core::quantized::GgmlDType;

use super::testing::reference::{Reference, references};
use super::{Feed, LoadOptions, LoadedModel, Logits, Want, load_with};

/// What GGUF files have no keys for.
const NOT_IN_GGUF: &[&str] = &["qwen2-window", "gemma3-scale"];

fn load(reference: &Reference, path: &Path) -> LoadedModel {
    let is_long = reference.name.ends_with("-long");
    let options = LoadOptions { context_length: is_long.then_some(64) };
    let loaded = load_with(path, &options).expect(&reference.name);
    assert_eq!(loaded.warnings, [""; 0], "{}", reference.name);
    loaded
}

/// Feeds the tokens in chunks, and returns all rows of logits.
fn rows(
    loaded: &LoadedModel,
    tokens: &[u32],
    chunk_len: usize,
) -> Vec<Vec<f32>> {
    let mut cache = loaded.model.new_cache();
    let mut logits = Logits::new();
    let mut rows = Vec::new();
    for tokens in tokens.chunks(chunk_len) {
        let feed = Feed { tokens, cache: &mut cache, want: Want::All };
        loaded.model.forward(&mut [feed], &mut logits).expect("computed");
        rows.extend(logits.rows(0).map(<[f32]>::to_vec));
    }
    rows
}

/// Returns how far the logits are from those of transformers.
fn difference(reference: &Reference, rows: &[Vec<f32>]) -> f32 {
    assert_eq!(rows.len(), reference.heads.len());
    let heads = rows.iter().zip(&reference.heads);
    let last = rows.iter().rev().zip([&reference.last]);
    heads
        .chain(last)
        .flat_map(|(row, expected)| row.iter().zip(expected))
        .map(|(got, expected)| (got - expected).abs())
        .fold(0.0, f32::max)
}

#[test]
fn safetensors_of_each_architecture_give_the_logits_of_transformers() {
    for reference in references() {
        let directory = tempfile::tempdir().expect("a directory");
        reference.write_directory(directory.path());
        let loaded = load(&reference, directory.path());
        for chunk_len in [1, 5, reference.tokens.len()] {
            let rows = rows(&loaded, &reference.tokens, chunk_len);
            let difference = difference(&reference, &rows);
            let name = &reference.name;
            assert!(difference < 1e-4, "{name}, {chunk_len}: {difference}");
        }
    }
}

#[test]
fn gguf_files_of_each_architecture_do_so_too() {
    for reference in references() {
        if NOT_IN_GGUF.contains(&reference.name.as_str()) {
            continue;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("model.gguf");
        reference.write_gguf(&path, GgmlDType::F32);
        let loaded = load(&reference, &path);
        let rows = rows(&loaded, &reference.tokens, 7);
        let difference = difference(&reference, &rows);
        assert!(difference < 1e-4, "{}: {difference}", reference.name);
    }
}
