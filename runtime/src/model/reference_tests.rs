//! The forward pass of each architecture against transformers'.

use std::path::Path;

use candle_core::quantized::GgmlDType;

use super::testing::reference::{
    Reference, formats, references, relative_error, rows,
};
use super::{Feed, LoadOptions, LoadedModel, Logits, Want, load_with};

/// What GGUF files have no keys for.
const NOT_IN_GGUF: &[&str] = &["qwen2-window", "gemma3-scale"];

fn load(reference: &Reference, path: &Path) -> LoadedModel {
    let loaded = load_with(path, &reference.options());
    let loaded = loaded.expect(&reference.name);
    assert_eq!(loaded.warnings, [""; 0], "{}", reference.name);
    loaded
}

#[test]
fn safetensors_of_each_architecture_give_the_logits_of_transformers() {
    for reference in references() {
        let directory = tempfile::tempdir().expect("a directory");
        reference.write_directory(directory.path());
        let loaded = load(&reference, directory.path());
        for chunk_len in [1, 5, reference.tokens.len()] {
            let rows = rows(&loaded, &reference.tokens, chunk_len);
            let difference = reference.difference(&rows);
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
        let difference = reference.difference(&rows);
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
        let options = LoadOptions {
            context_length,
            memory: Some(memory),
            ..LoadOptions::default()
        };
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

#[test]
fn every_number_format_gives_the_logits_of_its_numbers() {
    let reference = references().swap_remove(0).enlarged();
    let directory = tempfile::tempdir().expect("a directory");
    for dtype in formats() {
        let path = directory.path().join("model.gguf");
        reference.write_gguf(&path, dtype);
        let made = rows(&load(&reference, &path), &reference.tokens, 24);
        // The same numbers, stored in full.
        reference.write_wide_gguf(&path, dtype);
        let expected = rows(&load(&reference, &path), &reference.tokens, 24);
        // Inputs of products with quantised weights have eight bits.
        let limit = match dtype {
            GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16 => 1e-5,
            _ => 0.05,
        };
        let relative = relative_error(&made, &expected);
        assert!(relative < limit, "{dtype:?}: {relative}");
    }
}

fn bits(rows: &[Vec<f32>]) -> Vec<Vec<u32>> {
    let bits = |row: &Vec<f32>| row.iter().map(|x| x.to_bits()).collect();
    rows.iter().map(bits).collect()
}

/// Feeds several sequences in one batch, each in chunks of its own length,
/// and returns the rows of the first.
fn together(loaded: &LoadedModel, tokens: &[u32], n: usize) -> Vec<Vec<f32>> {
    let mut caches: Vec<_> =
        (0..n).map(|_| loaded.model.new_cache()).collect();
    let mut logits = Logits::new();
    let mut rows = Vec::new();
    // A beginning that all share.
    let (start, rest) = tokens.split_at(5);
    let feed = Feed { tokens: start, cache: &mut caches[0], want: Want::All };
    loaded.model.forward(&mut [feed], &mut logits).expect("computed");
    rows.extend(logits.rows(0).map(<[f32]>::to_vec));
    for index in 1..n {
        caches[index] = caches[0].fork();
        caches[index].truncate(5 - index % 3);
    }
    for chunk in rest.chunks(7) {
        let mut feeds: Vec<Feed<'_>> = caches
            .iter_mut()
            .enumerate()
            .map(|(index, cache)| Feed {
                tokens: &chunk[..chunk.len().min(1 + 6 * (index + 1) % 7)],
                cache,
                want: if index % 2 == 0 { Want::All } else { Want::Last },
            })
            .collect();
        feeds[0].tokens = chunk;
        loaded.model.forward(&mut feeds, &mut logits).expect("computed");
        rows.extend(logits.rows(0).map(<[f32]>::to_vec));
    }
    rows
}

#[test]
fn logits_have_the_same_bits_in_every_batch_and_on_any_number_of_threads() {
    let on = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
        pool.build().expect("threads")
    };
    let directory = tempfile::tempdir().expect("a directory");
    let mut models = Vec::new();
    for reference in references() {
        let path = directory.path().join(&reference.name);
        std::fs::create_dir(&path).expect("a folder");
        reference.write_directory(&path);
        models.push((load(&reference, &path), reference.tokens));
    }
    for dtype in formats() {
        let reference = references().swap_remove(0).enlarged();
        let path = directory.path().join("model.gguf");
        reference.write_gguf(&path, dtype);
        models.push((load(&reference, &path), reference.tokens));
    }
    for (loaded, tokens) in models {
        let alone = on(1).install(|| rows(&loaded, &tokens, tokens.len()));
        let alone = bits(&alone);
        for (n, n_threads) in [(1, 2), (2, 3), (4, 1), (8, 2), (16, 3)] {
            let rows = on(n_threads).install(|| together(&loaded, &tokens, n));
            let name = loaded.model.describe();
            assert!(bits(&rows) == alone, "{name}: {n} on {n_threads}");
        }
    }
}
