//! The forward pass of each architecture against transformers'.

use std::path::Path;

use candle_core::quantized::GgmlDType;

use super::testing::reference::{Reference, references};
use super::{Feed, LoadOptions, LoadedModel, Logits, Want, load_with};

/// What GGUF files have no keys for.
const NOT_IN_GGUF: &[&str] = &["qwen2-window", "gemma3-scale"];

fn load(reference: &Reference, path: &Path) -> LoadedModel {
    let is_long = reference.name.ends_with("-long");
    let options = LoadOptions {
        context_length: is_long.then_some(64),
        ..LoadOptions::default()
    };
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

#[test]
fn a_model_that_does_not_fit_is_refused_with_the_numbers() {
    let reference = &references()[0];
    let directory = tempfile::tempdir().expect("a directory");
    reference.write_directory(directory.path());
    let weights = directory.path().join("model.safetensors");
    let weights = weights.metadata().expect("a file").len();
    // Keys and values of 2 layers, 2 heads of 8, in 4 bytes.
    let cache = 64 * 2 * 2 * 2 * 8 * 4;
    for (context_length, memory, fits) in [
        (None, weights, true),
        (None, weights - 1, false),
        (Some(64), weights + cache, true),
        (Some(64), weights + cache - 1, false),
    ] {
        let options = LoadOptions { context_length, memory: Some(memory) };
        match load_with(directory.path(), &options) {
            Ok(_) => assert!(fits),
            Err(error) => {
                let text = error.to_string();
                assert!(!fits, "{text}");
                assert!(text.contains(&weights.to_string()), "{text}");
                assert!(text.contains(&memory.to_string()), "{text}");
            }
        }
    }
}

#[test]
fn tensors_that_nobody_reads_are_refused_by_name() {
    let mut reference = references().swap_remove(0);
    reference.config["model_type"] = "mistral".into();
    let directory = tempfile::tempdir().expect("a directory");
    let mut biased = references().swap_remove(1);
    assert_eq!(biased.name, "llama-biases");
    biased.config = reference.config.clone();
    biased.write_directory(directory.path());
    let error = load_with(directory.path(), &LoadOptions::default());
    let error = error.expect_err("biases that mistral has not").to_string();
    assert!(error.contains(".bias") && error.contains("more"), "{error}");
}
