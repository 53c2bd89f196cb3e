//! Within its limit on tokens, an output is whole.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use maskwright::{
    budget::Planner,
    compiled::CompiledGrammar,
    generate::{
        ChatTemplate, Encoder, FinishReason, GenerateError, Generation,
        Generator, Prompt, Request,
    },
    grammar::{Grammar, SchemaOptions},
    matcher::Matcher,
    model::{Feed, KvCache, KvLayout, Logits, Model, ModelError, Want},
    pipeline::SamplingOptions,
    vocabulary::{TokenId, Vocabulary},
};
use maskwright_tests::{corpus::cases, vocabularies::pieces};

/// A model whose logits are given, plus noise that depends on the last token
/// and the position. It never wants to end.
#[derive(Debug)]
struct Rambler {
    logits: Vec<f32>,
    noise: f32,
}

impl Model for Rambler {
    fn vocab_size(&self) -> usize {
        self.logits.len()
    }

    fn context_length(&self) -> usize {
        1 << 16
    }

    fn new_cache(&self) -> KvCache {
        KvCache::new(KvLayout { n_layers: 1, n_kv_heads: 1, head_dim: 1 })
    }

    fn forward(
        &self,
        batch: &mut [Feed<'_>],
        logits: &mut Logits,
    ) -> Result<(), ModelError> {
        let counts: Vec<usize> = batch
            .iter()
            .map(|feed| usize::from(feed.want != Want::Nothing))
            .collect();
        let values = logits.reset(self.logits.len(), &counts);
        for feed in batch {
            feed.cache.reserve(feed.tokens.len());
            feed.cache.commit(feed.tokens.len());
            let last = *feed.tokens.last().expect("never empty");
            let at = u32::try_from(feed.cache.len()).expect("short");
            values.extend((0u32..).zip(&self.logits).map(|(token, logit)| {
                let mixed = (token ^ at.rotate_left(16))
                    .wrapping_mul(2_654_435_761)
                    ^ last.wrapping_mul(40_503);
                let [high, low, ..] = mixed.to_be_bytes();
                let noise = f32::from(u16::from_be_bytes([high, low]));
                logit + self.noise * noise / 65_536.0
            }));
        }
        Ok(())
    }
}

/// Splits text into single bytes, which every vocabulary here begins with.
#[derive(Debug)]
struct Bytes;

impl Encoder for Bytes {
    fn encode(&self, text: &str, _: bool) -> Result<Vec<u32>, ModelError> {
        Ok(text.bytes().map(u32::from).collect())
    }
}

fn generator(
    vocabulary: &Arc<Vocabulary>,
    logits: Vec<f32>,
    noise: f32,
) -> Generator {
    let chat = ChatTemplate::new(None, "", "").expect("the built-in one");
    let model = Arc::new(Rambler { logits, noise });
    let vocabulary = Arc::clone(vocabulary);
    Generator::from_parts(model, Arc::new(Bytes), vocabulary, chat)
}

fn generate(
    generator: &mut Generator,
    grammar: &Arc<CompiledGrammar>,
    max_tokens: usize,
    sampling: SamplingOptions,
) -> Result<Generation, GenerateError> {
    let request = Request {
        prompt: Prompt::Text("go".to_owned()),
        grammar: Some(Arc::clone(grammar)),
        max_tokens,
        sampling,
        finish_within_budget: true,
        ..Request::default()
    };
    generator.generate(&request, &mut |_| ControlFlow::Continue(()))
}

fn samplings(seed: u64) -> [SamplingOptions; 4] {
    let default = SamplingOptions { seed, ..SamplingOptions::default() };
    [
        SamplingOptions::greedy(),
        SamplingOptions { top_k: 5, ..default.clone() },
        SamplingOptions { top_p: 0.5, temperature: 1.5, ..default.clone() },
        default,
    ]
}

/// How many tokens the shortest plan has.
fn needed(grammar: &Arc<CompiledGrammar>) -> Option<usize> {
    let matcher = Matcher::new(Arc::clone(grammar)).expect("a start");
    let plan = Planner::new().plan(&matcher).expect("no limit");
    plan.map(|plan| plan.n_tokens())
}

#[test]
fn whatever_the_limit_the_output_is_whole_or_refused() {
    let (mut n_runs, mut n_steered, mut n_unplanned) = (0, 0, 0);
    for (seed, case) in (0..).zip(cases()) {
        if case.error.is_some() {
            continue;
        }
        let texts: Vec<&str> =
            case.accept.iter().map(String::as_str).collect();
        let trie = pieces(&texts, seed);
        let vocabulary = trie.vocabulary();
        let logits = vec![0.0; vocabulary.n_logits()];
        let mut generator = generator(vocabulary, logits, 4.0);
        for options in [SchemaOptions::default(), SchemaOptions::widest()] {
            let grammar = case.compile_with(&options).expect("a grammar");
            let compiled = generator.compile(&grammar).expect("no atoms");
            let Some(least) = needed(&compiled) else {
                n_unplanned += 1;
                continue;
            };
            for (extra, sampling) in
                [0, 1, 3, 12].into_iter().zip(samplings(seed))
            {
                let limit = least + extra;
                let name = format!("{}, {limit} tokens", case.name);
                let made =
                    generate(&mut generator, &compiled, limit, sampling)
                        .unwrap_or_else(|error| panic!("{name}: {error}"));
                let n_taken = made.tokens.len()
                    + usize::from(made.finish_reason == FinishReason::Stop);
                assert!(made.is_complete(), "{name}: {made:?}");
                assert!(n_taken <= limit, "{name}: {made:?}");
                let fits = grammar.accepts(&made.text).expect("no limit");
                assert!(fits, "{name}: {made:?}");
                n_runs += 1;
                n_steered += usize::from(made.n_steered > 0);
            }
            if least > 0 {
                let short = least - 1;
                let sampling = SamplingOptions::greedy();
                let error =
                    generate(&mut generator, &compiled, short, sampling)
                        .expect_err("one token short");
                let GenerateError::Budget { needed, limit } = error else {
                    panic!("{}: {error}", case.name);
                };
                assert_eq!((needed, limit), (least, short));
            }
        }
    }
    assert!(
        n_runs > 200 && n_steered > 100 && n_unplanned == 0,
        "{n_runs} runs, {n_steered} steered, {n_unplanned} without a plan"
    );
}

/// How often each text comes out of `a|b|cc|ddd` within two tokens, so that
/// `ddd` is not among what is allowed.
fn counts(sampling: &SamplingOptions, n_seeds: u64) -> BTreeMap<String, u32> {
    let tokens = (0..=u8::MAX).map(|byte| vec![byte]);
    let tokens = tokens.chain([b"<end>".to_vec()]);
    let vocabulary = Vocabulary::from_tokens(tokens, [TokenId(256)]);
    let vocabulary = Arc::new(vocabulary.expect("valid tokens"));
    let mut logits = vec![0.0; 257];
    for (byte, logit) in [(b'a', 0.0), (b'b', 0.5), (b'c', 1.0), (b'd', 3.0)] {
        logits[usize::from(byte)] = logit;
    }
    let mut generator = generator(&vocabulary, logits, 0.0);
    let grammar = Grammar::from_regex("a|b|cc|ddd").expect("a pattern");
    let grammar = generator.compile(&grammar).expect("no atoms");
    let mut counts = BTreeMap::new();
    for seed in 0..n_seeds {
        let sampling = SamplingOptions { seed, ..sampling.clone() };
        let made = generate(&mut generator, &grammar, 2, sampling);
        *counts.entry(made.expect("fits").text).or_default() += 1;
    }
    counts
}

/// The probabilities of the tokens that may still be finished, among
/// themselves, as if the mask had had no others.
#[test]
fn draws_that_are_refused_do_not_bend_the_law() {
    const N: u32 = 4000;
    let all = SamplingOptions::default();
    let two = SamplingOptions { top_k: 2, ..SamplingOptions::default() };
    for (sampling, kept) in [
        (all, &[("a", 0.0f64), ("b", 0.5), ("cc", 1.0)][..]),
        (two, &[("b", 0.5), ("cc", 1.0)]),
    ] {
        let counts = counts(&sampling, u64::from(N));
        let total: f64 = kept.iter().map(|one| one.1.exp()).sum();
        assert_eq!(counts.len(), kept.len(), "{counts:?}");
        for (text, logit) in kept {
            let p = logit.exp() / total;
            let expected = p * f64::from(N);
            let deviation = (f64::from(N) * p * (1.0 - p)).sqrt();
            let found = f64::from(counts[*text]);
            assert!(
                (found - expected).abs() < 5.0 * deviation,
                "{text}: {found} and not {expected}: {counts:?}"
            );
        }
    }
}

/// Without the option the output is cut off, and says so.
#[test]
fn outputs_may_be_cut_off_where_that_is_asked_for() {
    let mut generator = Generator::toy();
    let schema = serde_json::json!({"type": "string", "minLength": 9});
    let grammar =
        Grammar::from_schema_value(&schema, &SchemaOptions::default())
            .expect("a schema");
    let request = Request {
        prompt: Prompt::Text("go".to_owned()),
        grammar: Some(generator.compile(&grammar).expect("no atoms")),
        max_tokens: 4,
        sampling: SamplingOptions::greedy(),
        finish_within_budget: false,
        ..Request::default()
    };
    let made = generator
        .generate(&request, &mut |_| ControlFlow::Continue(()))
        .expect("the beginning of a text");
    assert_eq!(made.finish_reason, FinishReason::Length);
    assert_eq!((made.tokens.len(), made.n_steered), (4, 0));
}
