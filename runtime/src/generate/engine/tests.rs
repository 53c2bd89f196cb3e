use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use candle_core::quantized::GgmlDType;

use super::*;
use crate::{
    generate::{FinishReason, Prompt},
    grammar::{Grammar, SchemaOptions},
    interrupt::{CancelFlag, Interrupt},
    model::{
        BLOCK_LEN, Feed, KvCache, LoadedModel, Logits, Model, load,
        testing::TinyModel,
    },
    pipeline::SamplingOptions,
};

/// A model that counts what it reads, and fails if it is told to.
#[derive(Debug)]
struct Watched {
    inner: Arc<dyn Model>,
    n_read: AtomicUsize,
    is_broken: AtomicBool,
}

impl Model for Watched {
    fn vocab_size(&self) -> usize {
        self.inner.vocab_size()
    }

    fn context_length(&self) -> usize {
        self.inner.context_length()
    }

    fn new_cache(&self) -> KvCache {
        self.inner.new_cache()
    }

    fn forward(
        &self,
        batch: &mut [Feed<'_>],
        logits: &mut Logits,
    ) -> Result<(), ModelError> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(ModelError::EmptyFeed);
        }
        let n: usize = batch.iter().map(|feed| feed.tokens.len()).sum();
        self.n_read.fetch_add(n, Ordering::Relaxed);
        self.inner.forward(batch, logits)
    }
}

fn watched() -> (Generator, Arc<Watched>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tiny.gguf");
    TinyModel::new().write_gguf(&path, GgmlDType::Q8_0);
    let loaded = load(&path).expect("loads");
    let model = Arc::new(Watched {
        inner: Arc::clone(&loaded.model),
        n_read: AtomicUsize::new(0),
        is_broken: AtomicBool::new(false),
    });
    let watched = Arc::clone(&model);
    let generator = Generator::new(LoadedModel { model, ..loaded });
    (generator.expect("a generator"), watched)
}

fn text(prompt: &str, max_tokens: usize) -> Request {
    Request {
        prompt: Prompt::Text(prompt.to_owned()),
        max_tokens,
        ..Request::default()
    }
}

/// Requests that differ in all that they can.
fn requests(generator: &Generator) -> Vec<Request> {
    let schema = serde_json::json!({"type": "object", "properties": {
        "name": {"type": "string", "maxLength": 9},
        "age": {"type": "integer", "minimum": 0, "maximum": 150}},
        "required": ["name", "age"]});
    let schema =
        Grammar::from_schema_value(&schema, &SchemaOptions::default());
    let grammars = [
        Some(schema.expect("a grammar")),
        Some(Grammar::from_choices(&["yes", "no"]).expect("a grammar")),
        None,
    ];
    let mut all = Vec::new();
    for seed in 0..9u64 {
        let index = usize::try_from(seed).expect("small");
        let grammar = grammars[index % 3].as_ref();
        let sampling = match seed {
            0 | 5 => SamplingOptions::greedy(),
            _ => SamplingOptions {
                seed,
                temperature: 0.7,
                ..SamplingOptions::default()
            },
        };
        all.push(Request {
            grammar: grammar.map(|it| generator.compile(it).expect("binds")),
            sampling,
            search: Search::Sample {
                n: 1 + index % 2,
                best_of: 1 + index % 4,
            },
            logprobs: (seed == 4).then_some(2),
            ..text(&"Once upon a time. ".repeat(1 + index), 40 + 3 * index)
        });
    }
    all
}

type Outcome = Result<Vec<Generation>, GenerateError>;

/// Submits a request at every other step, and returns what came of each.
fn run(engine: &mut Engine, requests: &[Request]) -> Vec<Outcome> {
    let mut ids = Vec::new();
    let mut outcomes = Vec::new();
    let mut texts: std::collections::BTreeMap<_, String> =
        std::collections::BTreeMap::new();
    let mut n_steps = 0;
    while ids.len() < requests.len() || !engine.is_idle() {
        if n_steps % 2 == 0 && ids.len() < requests.len() {
            let request = requests[ids.len()].clone();
            ids.push(engine.submit(request).expect("in order"));
        }
        n_steps += 1;
        for event in engine.step().expect("computed") {
            match event {
                Event::Text { request, sequence, text } => {
                    texts
                        .entry((request, sequence))
                        .or_default()
                        .push_str(&text);
                }
                Event::Finished { request, result } => {
                    outcomes.push((request, result));
                }
            }
        }
        assert!(n_steps < 10_000);
    }
    outcomes.sort_by_key(|(id, _)| *id);
    assert_eq!(outcomes.iter().map(|one| one.0).collect::<Vec<_>>(), ids);
    for (id, result) in &outcomes {
        for (index, made) in result.iter().flatten().enumerate() {
            let streamed = texts.remove(&(*id, index)).unwrap_or_default();
            assert_eq!(streamed, made.text);
        }
    }
    outcomes.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn each_request_comes_out_as_it_would_alone() {
    let (mut generator, _) = watched();
    let requests = requests(&generator);
    let mut expected = Vec::new();
    for request in &requests {
        generator.forget();
        let all = generator
            .generate_all(request, &mut |_| ControlFlow::Continue(()));
        expected.push(all.expect("generated"));
    }
    for (max_sequences, max_step_tokens) in [(16, 256), (4, 20), (1, 1)] {
        let (generator, _) = watched();
        let options = EngineOptions {
            max_sequences,
            max_step_tokens,
            ..EngineOptions::default()
        };
        let mut engine = Engine::new(generator, options);
        let outcomes = run(&mut engine, &requests);
        for (made, expected) in outcomes.into_iter().zip(&expected) {
            let made = made.expect("generated");
            assert_eq!(made.len(), expected.len());
            for (made, expected) in made.iter().zip(expected) {
                assert_eq!(made.tokens, expected.tokens);
                assert_eq!(made.text, expected.text);
                assert_eq!(made.finish_reason, expected.finish_reason);
                assert_eq!(made.trace.score, expected.trace.score);
                let steps = format!("{:?}", made.trace.steps);
                assert_eq!(steps, format!("{:?}", expected.trace.steps));
            }
        }
    }
}

#[test]
fn a_prompt_is_read_once_for_all_that_begin_with_it() {
    let (generator, model) = watched();
    let mut engine = Engine::new(generator, EngineOptions::default());
    let start = "Tell me all that you know about it. ".repeat(8);
    for question in ["What?", "When?", "Where?", "Who?"] {
        let request = text(&format!("{start}{question}"), 4);
        engine.submit(request).expect("in order");
    }
    let mut n_held = 0;
    while !engine.is_idle() {
        engine.step().expect("computed");
        n_held = n_held.max(engine.cache_use().held);
    }
    let n_read = model.n_read.load(Ordering::Relaxed);
    let n_start = start.len();
    assert!((n_start..n_start + 64).contains(&n_read), "{n_read}");
    // A tiny model's block: 2 layers, keys and values, 2 heads of 8.
    let block = 2 * 2 * 2 * 8 * BLOCK_LEN * 4;
    let n_blocks = n_held / block;
    let n_alone = (n_start + 10).div_ceil(BLOCK_LEN);
    assert!(n_blocks < n_alone + 4 * 2, "{n_blocks}");

    // What has ended is remembered, too.
    engine.submit(text(&start, 4)).expect("in order");
    while !engine.is_idle() {
        engine.step().expect("computed");
    }
    let n_more = model.n_read.load(Ordering::Relaxed) - n_read;
    assert!(n_more < 8, "{n_more}");
}

#[test]
fn requests_wait_for_memory_and_stay_within_it() {
    let (generator, _) = watched();
    let block = 2 * 2 * 2 * 8 * BLOCK_LEN * 4;
    let limit = 8 * block;
    let options =
        EngineOptions { cache_bytes: Some(limit), ..EngineOptions::default() };
    let mut engine = Engine::new(generator, options);
    let mut ids = Vec::new();
    for index in 0..12 {
        let prompt = format!("{index} is a number, and ").repeat(2);
        // Two to three blocks each.
        ids.push(engine.submit(text(&prompt, 40)).expect("in order"));
    }
    let big = engine.submit(text("big", 400)).expect("in order");
    let (mut n_finished, mut max_running) = (0, 0);
    while !engine.is_idle() {
        for event in engine.step().expect("computed") {
            let Event::Finished { request, result } = event else { continue };
            n_finished += 1;
            match result {
                Ok(made) => assert!(!made[0].tokens.is_empty()),
                Err(error) => {
                    assert_eq!(request, big);
                    let text = error.to_string();
                    assert!(text.contains(&limit.to_string()), "{text}");
                }
            }
        }
        let CacheUse { held, committed, .. } = engine.cache_use();
        assert!(held <= limit && committed <= limit, "{held} {committed}");
        max_running = max_running.max(engine.n_running());
    }
    assert_eq!(n_finished, 13);
    assert!((2..=4).contains(&max_running), "{max_running}");
}

#[test]
fn a_cancelled_request_gives_its_memory_back_at_once() {
    let (generator, _) = watched();
    let mut engine = Engine::new(generator, EngineOptions::default());
    let first = engine.submit(text("one", 100)).expect("in order");
    let second = engine.submit(text("another", 100)).expect("in order");
    for _ in 0..5 {
        engine.step().expect("computed");
    }
    let both = engine.cache_use().held;
    let made = engine.cancel(first).expect("it runs");
    assert_eq!(made[0].finish_reason, FinishReason::Cancelled);
    assert!(!made[0].tokens.is_empty());
    assert!(engine.cache_use().held < both);
    assert!(engine.cancel(first).is_none());
    engine.cancel(second).expect("it runs");
    assert_eq!(engine.cache_use().held, 0);
    assert!(engine.is_idle());
    let waiting = engine.submit(text("late", 100)).expect("in order");
    assert!(engine.cancel(waiting).expect("it waits").is_empty());
}

#[test]
fn an_interrupt_ends_its_own_request_only() {
    let (generator, _) = watched();
    let mut engine = Engine::new(generator, EngineOptions::default());
    let flag = CancelFlag::new();
    let interrupt = Interrupt::on(&flag);
    let stopped =
        Request { interrupt: Some(interrupt), ..text("stop me", 200) };
    let stopped = engine.submit(stopped).expect("in order");
    let other = engine.submit(text("let me be", 20)).expect("in order");
    for _ in 0..5 {
        engine.step().expect("computed");
    }
    flag.cancel();
    let mut ends = Vec::new();
    while !engine.is_idle() {
        for event in engine.step().expect("computed") {
            if let Event::Finished { request, result } = event {
                let made = result.expect("no error");
                ends.push((request, made[0].finish_reason));
            }
        }
    }
    let expected =
        [(stopped, FinishReason::Cancelled), (other, FinishReason::Length)];
    assert_eq!(ends, expected);
}

#[test]
fn a_long_prompt_holds_nobody_up() {
    let (generator, _) = watched();
    let options =
        EngineOptions { max_step_tokens: 20, ..EngineOptions::default() };
    let mut engine = Engine::new(generator, options);
    let writer = engine.submit(text("go on", 60)).expect("in order");
    engine.step().expect("computed");
    engine.submit(text(&"a long text ".repeat(40), 4)).expect("in order");
    // 480 tokens in chunks of at most 20.
    let mut n_pieces = 0;
    for _ in 0..24 {
        let events = engine.step().expect("computed");
        let is_own = |event: &&Event| matches!(event, Event::Text { request, .. } if *request == writer);
        n_pieces += events.iter().filter(is_own).count();
        assert!(engine.n_running() == 2);
    }
    assert!(n_pieces > 12, "{n_pieces}");
}

#[test]
fn after_a_failed_pass_the_requests_go_on() {
    let (generator, model) = watched();
    let requests = requests(&generator);
    let mut engine = Engine::new(generator, EngineOptions::default());
    for request in &requests {
        engine.submit(request.clone()).expect("in order");
    }
    let mut made = Vec::new();
    let mut texts: std::collections::BTreeMap<_, String> =
        std::collections::BTreeMap::new();
    let mut n_steps = 0;
    while !engine.is_idle() {
        n_steps += 1;
        model.is_broken.store(n_steps % 3 == 0, Ordering::Relaxed);
        match engine.step() {
            Err(_) => assert_eq!(n_steps % 3, 0),
            Ok(events) => {
                for event in events {
                    match event {
                        Event::Text { request, sequence, text } => texts
                            .entry((request, sequence))
                            .or_default()
                            .push_str(&text),
                        Event::Finished { request, result } => {
                            made.push((request, result.expect("generated")));
                        }
                    }
                }
            }
        }
    }
    made.sort_by_key(|one| one.0);
    assert_eq!(made.len(), requests.len());
    let (generator, _) = watched();
    let mut engine = Engine::new(generator, EngineOptions::default());
    let expected = run(&mut engine, &requests);
    for ((id, made), expected) in made.iter().zip(expected) {
        let pairs = made.iter().zip(expected.expect("generated"));
        for (index, (made, expected)) in pairs.enumerate() {
            assert_eq!(made.tokens, expected.tokens);
            let streamed = texts.remove(&(*id, index)).unwrap_or_default();
            assert_eq!(streamed, expected.text);
        }
    }
}

#[test]
fn what_cannot_run_is_refused_and_the_others_go_on() {
    let (generator, _) = watched();
    let mut engine = Engine::new(generator, EngineOptions::default());
    let beams = Request {
        search: Search::Beams(crate::generate::Beams::default()),
        ..text("beams", 4)
    };
    let error = engine.submit(beams).expect_err("not here").to_string();
    assert!(error.contains("beams"), "{error}");
    let requests =
        [text("", 4), text("fine", 4), text(&"long ".repeat(200), 4)];
    let outcomes = run(&mut engine, &requests);
    assert!(outcomes[0].is_err());
    assert_eq!(outcomes[1].as_ref().expect("generated")[0].tokens.len(), 4);
    let error = outcomes[2].as_ref().expect_err("too long").to_string();
    assert!(error.contains("1000"), "{error}");
}
