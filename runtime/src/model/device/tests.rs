//! The body with tensors, against transformers, against the processor's body
//! and against itself. `MASKWRIGHT_TEST_DEVICE` names the device; candle's
//! tensors on the processor are the default, so that every machine runs all
//! of it but the kernels.

use super::super::load::load_on;
use super::super::testing::reference::{
    Reference, formats, references, relative_error, rows,
};
use super::super::{ComputeDevice, KvCache, LoadedModel, Want, load_with};
use super::strongest::MAX_STRONGEST;
use super::*;
use crate::pipeline::{History, SamplingOptions, Scratch, Step};

fn device() -> Device {
    match std::env::var("MASKWRIGHT_TEST_DEVICE") {
        Ok(name) => {
            let device: ComputeDevice = name.parse().expect("a device");
            device.open().expect("it opens").expect("not the processor")
        }
        Err(_) => Device::Cpu,
    }
}

fn load(reference: &Reference, path: &std::path::Path) -> LoadedModel {
    load_on(path, &reference.options(), Some(device())).expect(&reference.name)
}

fn forward(
    loaded: &LoadedModel,
    feeds: &mut [Feed<'_>],
) -> Vec<Vec<Vec<f32>>> {
    let mut logits = Logits::new();
    loaded.model.forward(feeds, &mut logits).expect("computed");
    (0..feeds.len())
        .map(|index| logits.rows(index).map(<[f32]>::to_vec).collect())
        .collect()
}

fn difference(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().zip(b).flat_map(|(a, b)| a.iter().zip(b));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn each_architecture_gives_the_logits_of_transformers() {
    for reference in references() {
        let directory = tempfile::tempdir().expect("a directory");
        reference.write_directory(directory.path());
        let loaded = load(&reference, directory.path());
        for chunk in [1, 5, reference.tokens.len()] {
            let rows = rows(&loaded, &reference.tokens, chunk);
            let difference = reference.difference(&rows);
            let name = &reference.name;
            assert!(difference < 1e-4, "{name}, {chunk}: {difference}");
        }
    }
}

#[test]
fn neighbouring_pairs_and_all_number_formats_agree_with_their_numbers() {
    let reference = references().swap_remove(0).enlarged();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("model.gguf");
    for dtype in formats() {
        reference.write_gguf(&path, dtype);
        let made = rows(&load(&reference, &path), &reference.tokens, 7);
        reference.write_wide_gguf(&path, dtype);
        let wide = load_with(&path, &reference.options()).expect("loads");
        let expected = rows(&wide, &reference.tokens, 7);
        let relative = relative_error(&made, &expected);
        // Products of 16 bits round; inputs of quantised ones have 8 bits.
        let limit = match dtype {
            GgmlDType::F32 => 1e-5,
            GgmlDType::F16 => 1e-2,
            _ => 0.05,
        };
        assert!(relative < limit, "{dtype:?}: {relative}");
    }
}

/// Sequences that share a beginning, are cut back, forked, and fed ragged
/// portions, come out as alone.
#[test]
fn a_ragged_batch_of_forks_gives_the_logits_of_each_alone() {
    for reference in references() {
        let directory = tempfile::tempdir().expect("a directory");
        reference.write_directory(directory.path());
        let loaded = load(&reference, directory.path());
        let tokens: Vec<u32> =
            reference.tokens.iter().copied().cycle().take(44).collect();
        // Room for seven more, also where the context is short.
        let start = (loaded.model.context_length() - 7).min(17);
        let mut first = loaded.model.new_cache();
        let feed = Feed {
            tokens: &tokens[..start],
            cache: &mut first,
            want: Want::Nothing,
        };
        let rows = forward(&loaded, &mut [feed]);
        assert_eq!(rows, [Vec::<Vec<f32>>::new()]);
        let mut caches: Vec<KvCache> = (0..5)
            .map(|index| {
                let mut fork = first.fork();
                fork.truncate(start - index);
                fork
            })
            .collect();
        let mut alone = Vec::new();
        for portion in [1, 3, 1, 2] {
            let mut feeds: Vec<Feed<'_>> = caches
                .iter_mut()
                .enumerate()
                .map(|(index, cache)| {
                    let n = if index % 2 == 0 { 1 } else { portion };
                    let start = cache.len();
                    let tokens = &tokens[start..start + n];
                    Feed { tokens, cache, want: Want::Last }
                })
                .collect();
            let together = forward(&loaded, &mut feeds);
            for (rows, cache) in together.iter().zip(&caches) {
                let mut own = loaded.model.new_cache();
                let feed = Feed {
                    tokens: &tokens[..cache.len()],
                    cache: &mut own,
                    want: Want::Last,
                };
                alone = forward(&loaded, &mut [feed]).swap_remove(0);
                let difference = difference(rows, &alone);
                let name = &reference.name;
                assert!(difference < 1e-4, "{name}: {difference}");
            }
        }
        assert_eq!(alone.len(), 1);
        // The origin has not seen any of it.
        let (ids, _) = first.blocks();
        assert_eq!((ids.count(), first.len()), (1, start));
    }
}

#[test]
fn blocks_are_used_again_and_the_pool_grows() {
    let reference = references().swap_remove(0);
    let directory = tempfile::tempdir().expect("a directory");
    reference.write_directory(directory.path());
    let loaded = load(&reference, directory.path());
    let expected = rows(&loaded, &reference.tokens, 5);
    let mut held: Vec<KvCache> = Vec::new();
    // More blocks at once than there is room for at first.
    for round in 0..3 {
        for _ in 0..40 {
            let mut cache = loaded.model.new_cache();
            let tokens = &reference.tokens[..];
            let feed = Feed { tokens, cache: &mut cache, want: Want::All };
            let rows = forward(&loaded, &mut [feed]).swap_remove(0);
            assert!(difference(&rows, &expected) < 1e-4, "{round}");
            held.push(cache);
        }
        let ids = held.iter().flat_map(|cache| cache.blocks().0);
        let ids: std::collections::BTreeSet<usize> = ids.collect();
        assert_eq!(ids.len(), held.len(), "each has its own");
        held.truncate(held.len() / 2);
    }
    // What was written first is still there.
    let cache = &mut held[0].fork();
    cache.truncate(reference.tokens.len() - 1);
    let tokens = &reference.tokens[cache.len()..];
    let feed = Feed { tokens, cache, want: Want::All };
    let again = forward(&loaded, &mut [feed]).swap_remove(0);
    assert!(difference(&again, &expected[expected.len() - 1..]) < 1e-4);
}

#[test]
fn what_does_not_belong_is_refused() {
    let reference = references().swap_remove(0);
    let directory = tempfile::tempdir().expect("a directory");
    reference.write_directory(directory.path());
    let (one, other) = (
        load(&reference, directory.path()),
        load(&reference, directory.path()),
    );
    let host = load_with(directory.path(), &reference.options());
    let host = host.expect("loads");
    let mut logits = Logits::new();
    for (model, cache) in [(&one, &other), (&one, &host), (&host, &one)] {
        let mut cache = cache.model.new_cache();
        let feed = Feed { tokens: &[1], cache: &mut cache, want: Want::Last };
        let error = model.model.forward(&mut [feed], &mut logits);
        assert!(matches!(error, Err(ModelError::ForeignCache)));
        assert!(cache.is_empty());
    }
}

/// Numbers without a pattern.
fn noise(seed: u32) -> impl FnMut() -> u32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    }
}

fn on_device(row: &[f32]) -> Tensor {
    Tensor::from_slice(row, row.len(), &device()).expect("a tensor")
}

#[test]
fn the_strongest_of_a_row_are_those_that_sorting_finds() {
    let mut next = noise(7);
    for (n_logits, k, n_values) in [
        (1, 1, 1),
        (31, 3, 1 << 24),
        (33, 40, 1 << 24),
        (1000, 1, 50),
        (5000, 50, 1 << 24),
        (40_000, MAX_STRONGEST, 1 << 24),
        (128_257, 64, 1 << 24),
    ] {
        for density in [1, 2, 40] {
            let row: Vec<f32> = (0..n_logits)
                .map(|_| match next() % 11 {
                    0 => f32::NEG_INFINITY,
                    1 => -0.0,
                    _ => {
                        f32::from(
                            u16::try_from(next() % n_values % 65_521)
                                .expect("16 bits"),
                        ) / 64.0
                            - 500.0
                    }
                })
                .collect();
            let n_words = row.len().div_ceil(32);
            let mut mask = vec![0u32; n_words];
            for index in 0..row.len() {
                if next().is_multiple_of(density) {
                    mask[index / 32] |= 1 << (index % 32);
                }
            }
            let mut allowed: Vec<(u32, f32)> = (0..)
                .zip(row.iter().copied())
                .filter(|&(token, x): &(u32, f32)| {
                    let word = mask[token as usize / 32];
                    x > f32::NEG_INFINITY && word >> (token % 32) & 1 == 1
                })
                .collect();
            allowed.sort_by(|a, b| b.1.total_cmp(&(a.1)).then(a.0.cmp(&b.0)));
            let least = allowed.get(k - 1).map_or(f32::MIN, |it| it.1);
            allowed.retain(|it| it.1 >= least);
            let found = strongest(&on_device(&row), &mask, k).expect("found");
            if allowed.len() > k + 64 {
                assert!(found.is_none(), "{} tie", allowed.len());
                continue;
            }
            let mut found = found.expect("few enough");
            found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            assert_eq!(found, allowed, "{n_logits} {k} {density}");
        }
    }
}

#[test]
fn rows_that_need_a_closer_look_are_left_to_the_processor() {
    let mask = [u32::MAX];
    let all = |row: &[f32], k| strongest(&on_device(row), &mask, k);
    assert!(all(&[1.0, 2.0], 1).expect("found").is_some());
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
        for place in 0..40 {
            let mut row = vec![1.0; 40];
            row[place] = bad;
            // Also where the mask forbids it: its bits end at 32.
            assert!(all(&row, 1).expect("found").is_none(), "{place}");
        }
    }
    assert!(all(&[1.0; 200], 1).expect("found").is_some());
    let words = [u32::MAX; 7];
    let ties = strongest(&on_device(&[1.0; 200]), &words, 1);
    assert!(ties.expect("found").is_none());
    for k in [0, MAX_STRONGEST + 1] {
        assert!(all(&[1.0, 2.0], k).expect("found").is_none());
    }
    // What is past the mask's end is forbidden; nothing left is no error.
    let none = strongest(&on_device(&[1.0, 2.0]), &[], 1);
    assert_eq!(none.expect("found"), Some(Vec::new()));
}

/// A pipeline chooses from the strongest tokens what it chooses from the row.
#[test]
fn the_pipeline_chooses_alike_from_the_strongest_and_from_the_row() {
    let mut next = noise(3);
    let n_logits = 3000;
    let mut n_far = 0;
    for (temperature, top_k, top_p) in [
        (0.0, 0, 1.0),
        (0.7, 40, 0.9),
        (1.0, 1, 1.0),
        (1.3, 8, 1.0),
        (1.0, 0, 0.9),
    ] {
        let base = SamplingOptions {
            temperature,
            top_k,
            top_p,
            ..SamplingOptions::default()
        };
        for seed in 0..20u64 {
            let sampling = SamplingOptions { seed, ..base.clone() };
            let pipeline = sampling.build().expect("lawful");
            let row: Vec<f32> = (0..n_logits)
                .map(|_| {
                    let unit = u16::try_from(next() >> 8).expect("16 bits");
                    f32::from(unit) / 8192.0
                })
                .collect();
            let mask: Vec<u32> =
                (0..row.len().div_ceil(32)).map(|_| next()).collect();
            let history = History::default();
            let step = Step::new(&history).with_mask(mask.as_slice());
            let mut scratch = Scratch::new();
            let whole = &mut row.clone();
            let expected = pipeline.choose(whole, &step, &mut scratch);
            let expected = expected.expect("some token");
            let mut logits = Logits::new();
            logits.may_stay(true);
            let shape = (1, row.len());
            let far = on_device(&row).reshape(shape).expect("one row");
            logits.put(far, &[1]).expect("put");
            assert!(logits.last(0).is_none(), "still there");
            let Some(reach) = pipeline.reach() else {
                assert_eq!((top_k, temperature), (0, 1.0));
                logits.fetch().expect("fetched");
                assert_eq!(logits.last(0), Some(&row[..]));
                continue;
            };
            let mut few = Vec::new();
            let n = logits.strongest(0, &mask, reach.n_asked(), &mut few);
            let Some(n) = n.expect("found") else { continue };
            if reach.is_enough(n, &few) {
                let choice = pipeline.choose(&mut few, &step, &mut scratch);
                assert_eq!(choice.expect("some token"), expected);
                n_far += 1;
            }
        }
    }
    assert!(n_far > 70, "{n_far}");
}
