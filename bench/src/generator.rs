//! The bundled generator: tokens per second alone, in batches, under grammars,
//! and beside llama.cpp where Python can import it.
//!
//! Times are wall clock: threads wait for one another. Everything that is
//! compared is measured in turns, and medians are printed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use maskwright::generate::{
    Boundaries, Engine, EngineOptions, Generation, Generator, Message, Prompt,
    Request, Role,
};
use maskwright::grammar::{Grammar, SchemaOptions};
use maskwright::model::download::{ModelSource, Silent, resolve};
use maskwright::model::{Feed, LoadedModel, Logits, Model, Want, load};
use maskwright::pipeline::SamplingOptions;
use serde_json::{Value, json};

use crate::options::Options;

/// How many tokens are written in each run.
const N_NEW: usize = 96;

/// How many times each thing is measured.
const N_ROUNDS: usize = 5;

/// The tokens of a document under a grammar, at most.
const MAX_TOKENS: usize = 160;

const QUESTION: &str = "Write a short letter to a friend about a trip to the \
                        sea, and say what you ate there.";

type Failure = Box<dyn std::error::Error>;

/// Prints the tables.
///
/// # Errors
///
/// Says what could not be found, read or computed.
pub fn run(options: &Options) -> Result<(), String> {
    measure(options).map_err(|error| error.to_string())
}

fn measure(options: &Options) -> Result<(), Failure> {
    let named = options.model.as_deref();
    let source = ModelSource::parse(named);
    let path = resolve(&source, &Silent)?;
    let loaded = load(&path)?;
    let prompt = prompt(&loaded)?;
    println!(
        "{}, prompt of {} tokens, {N_NEW} new ones, median of {N_ROUNDS}; \
         tokens per second\n",
        path.file_name().unwrap_or_default().display(),
        prompt.len()
    );
    let speed = speeds(options, &loaded, &path, &prompt)?;
    let batches = batches(&loaded, &prompt)?;
    let n_differing = differing(&loaded, &prompt)?;
    println!("\nlogits that a batch of 8 changes: {n_differing}");
    let cost = invariant_cost(&loaded, &prompt)?;
    println!("time of the invariant mode over the fast one: {cost:.2}");
    let grammar = under_grammars(options, loaded)?;
    if options.summary_json {
        let summary = json!({
            "decode_tps": speed.decode,
            "prompt_tps": speed.prompt,
            "llama_cpp_decode_tps": speed.peer_decode,
            "llama_cpp_prompt_tps": speed.peer_prompt,
            "constrained_over_free": grammar.constrained_over_free,
            "forced_gain": grammar.forced_gain,
            "invariant_differing_logits": n_differing,
            "invariant_cost_batch8": cost,
            "batch_tps": batches,
        });
        println!("{summary}");
    }
    Ok(())
}

fn prompt(loaded: &LoadedModel) -> Result<Vec<u32>, Failure> {
    let generator = Generator::new(loaded.clone())?;
    let message = Message { role: Role::User, content: QUESTION.to_owned() };
    Ok(generator.encode(&Prompt::Chat(vec![message]))?)
}

/// Runs `work` on so many threads.
fn on_threads<T: Send>(
    n_threads: usize,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, Failure> {
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(n_threads).build()?;
    Ok(pool.install(work)?)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[allow(clippy::cast_precision_loss, reason = "small numbers of tokens")]
fn rate(n_tokens: usize, time: Duration) -> f64 {
    n_tokens as f64 / time.as_secs_f64()
}

fn argmax(row: &[f32]) -> u32 {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, logit) in (0..).zip(row) {
        if *logit > best.1 {
            best = (token, *logit);
        }
    }
    best.0
}

/// Reads the prompt for `n` sequences at once and decodes each greedily.
fn decode(
    model: &Arc<dyn Model>,
    prompt: &[u32],
    n: usize,
) -> Result<(Duration, Duration, Vec<u32>), String> {
    let failed = |error: maskwright::model::ModelError| error.to_string();
    let mut logits = Logits::new();
    let mut caches: Vec<_> = (0..n).map(|_| model.new_cache()).collect();
    let started = Instant::now();
    let mut token = 0;
    for cache in &mut caches {
        let feed = Feed { tokens: prompt, cache, want: Want::Last };
        model.forward(&mut [feed], &mut logits).map_err(failed)?;
        token = argmax(logits.last(0).unwrap_or_default());
    }
    let prompt_time = started.elapsed() / u32::try_from(n).unwrap_or(1);
    let mut tokens = vec![token];
    let started = Instant::now();
    for _ in 0..N_NEW {
        let next = [token];
        let mut feeds: Vec<Feed<'_>> = caches
            .iter_mut()
            .map(|cache| Feed { tokens: &next, cache, want: Want::Last })
            .collect();
        model.forward(&mut feeds, &mut logits).map_err(failed)?;
        // All sequences are the same.
        token = argmax(logits.last(0).unwrap_or_default());
        tokens.push(token);
    }
    Ok((prompt_time, started.elapsed(), tokens))
}

/// What `speeds` found, by threads.
struct Speeds {
    decode: Value,
    prompt: Value,
    peer_decode: Value,
    peer_prompt: Value,
}

fn speeds(
    options: &Options,
    loaded: &LoadedModel,
    path: &Path,
    prompt: &[u32],
) -> Result<Speeds, Failure> {
    println!("threads  prompt  decode   llama.cpp: prompt  decode  ratios");
    let mut maps: [serde_json::Map<String, Value>; 4] = Default::default();
    let mut agree = None;
    for n_threads in [1, 2] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..N_ROUNDS {
            let model = &loaded.model;
            let (read, written, tokens) =
                on_threads(n_threads, || decode(model, prompt, 1))?;
            ours.push([rate(prompt.len(), read), rate(N_NEW, written)]);
            let peer = peer(options, path, n_threads, prompt)?;
            if let Some((peer, peer_tokens)) = peer {
                let pairs = tokens.iter().zip(&peer_tokens);
                agree = Some(pairs.take_while(|(a, b)| a == b).count());
                theirs.push(peer);
            }
        }
        let of = |runs: &[[f64; 2]], index: usize| {
            let values: Vec<f64> = runs.iter().map(|run| run[index]).collect();
            (!values.is_empty()).then(|| median(values))
        };
        let [read, written] = [0, 1].map(|index| of(&ours, index));
        let [peer_read, peer_written] = [0, 1].map(|index| of(&theirs, index));
        let shown = |value: Option<f64>| {
            value.map_or("-".to_owned(), |value| format!("{value:.1}"))
        };
        let ratio = |a: Option<f64>, b: Option<f64>| {
            let ratio = a.zip(b).map(|(a, b)| a / b);
            ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
        };
        println!(
            "{n_threads:>7}  {:>6}  {:>6}   {:>17}  {:>6}  {} {}",
            shown(read),
            shown(written),
            shown(peer_read),
            shown(peer_written),
            ratio(read, peer_read),
            ratio(written, peer_written),
        );
        let values = [written, read, peer_written, peer_read];
        for (map, value) in maps.iter_mut().zip(values) {
            map.extend(value.map(|it| (n_threads.to_string(), it.into())));
        }
    }
    if let Some(agree) = agree {
        println!("the greedy texts agree for {agree} of {} tokens", N_NEW + 1);
    }
    let [decode, prompt, peer_decode, peer_prompt] = maps.map(|map| {
        if map.is_empty() { Value::Null } else { Value::Object(map) }
    });
    Ok(Speeds { decode, prompt, peer_decode, peer_prompt })
}

/// What llama.cpp did: prompt and decode rates, and the tokens.
type Peer = ([f64; 2], Vec<u32>);

/// Times llama.cpp: prompt and decode rates and the tokens, or nothing where
/// Python cannot import it.
fn peer(
    options: &Options,
    model: &Path,
    n_threads: usize,
    prompt: &[u32],
) -> Result<Option<Peer>, Failure> {
    if model.is_dir() || !options.wants("llama.cpp") {
        return Ok(None);
    }
    let python = options
        .python
        .clone()
        .or_else(|| std::env::var_os("PYTHON").map(PathBuf::from))
        .unwrap_or_else(|| "python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR"));
    let child = Command::new(python)
        .arg(script.join("llama_cpp_speed.py"))
        .arg(model)
        .args([n_threads.to_string(), N_NEW.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return Ok(None) };
    if let Some(mut input) = child.stdin.take() {
        // One that has ended already is told by its status.
        let _ = writeln!(input, "{}", json!(prompt));
    }
    let output = child.wait_with_output()?;
    match output.status.code() {
        Some(0) => {}
        Some(3) => return Ok(None),
        _ => return Err("llama_cpp_speed.py failed; run it alone".into()),
    }
    let line: Value = serde_json::from_slice(&output.stdout)?;
    let seconds = |key: &str| {
        let seconds = line[key].as_f64().ok_or("no time in its output")?;
        Ok::<_, Failure>(Duration::from_secs_f64(seconds))
    };
    let tokens = serde_json::from_value(line["tokens"].clone())?;
    let rates = [
        rate(prompt.len(), seconds("prompt_s")?),
        rate(N_NEW, seconds("decode_s")?),
    ];
    Ok(Some((rates, tokens)))
}

/// Prints how decoding scales with the batch, in all tokens per second.
fn batches(loaded: &LoadedModel, prompt: &[u32]) -> Result<Value, Failure> {
    println!("\nsequences at once   1 thread  2 threads   (all tokens)");
    let mut summary = serde_json::Map::new();
    for n in [1, 2, 4, 8] {
        let mut row = Vec::new();
        for n_threads in [1, 2] {
            let mut rates = Vec::new();
            for _ in 0..N_ROUNDS {
                let (_, time, _) = on_threads(n_threads, || {
                    decode(&loaded.model, prompt, n)
                })?;
                rates.push(rate(n * N_NEW, time));
            }
            row.push(median(rates));
        }
        println!("{n:>17}   {:>8.1}  {:>9.1}", row[0], row[1]);
        if n > 1 {
            summary.insert(n.to_string(), row[0].into());
        }
    }
    Ok(Value::Object(summary))
}

/// Returns the time of a batch of 8 in the invariant mode over that in the
/// fast one, in turns. Both are the same code so far, so this is how much the
/// machine wavers.
fn invariant_cost(
    loaded: &LoadedModel,
    prompt: &[u32],
) -> Result<f64, Failure> {
    let mut ratios = Vec::new();
    for _ in 0..N_ROUNDS {
        let once = || on_threads(1, || decode(&loaded.model, prompt, 8));
        let [(_, invariant, _), (_, fast, _)] = [once()?, once()?];
        ratios.push(invariant.as_secs_f64() / fast.as_secs_f64());
    }
    Ok(median(ratios))
}

/// Returns how many logits of a sequence have other bits when seven others
/// are beside it, and when its prompt is read in chunks on another number of
/// threads.
fn differing(loaded: &LoadedModel, prompt: &[u32]) -> Result<usize, Failure> {
    let model = &loaded.model;
    let failed = |error: maskwright::model::ModelError| error.to_string();
    let alone = on_threads(1, || {
        let (mut cache, mut logits) = (model.new_cache(), Logits::new());
        let feed = Feed { tokens: prompt, cache: &mut cache, want: Want::All };
        model.forward(&mut [feed], &mut logits).map_err(failed)?;
        Ok(logits)
    })?;
    let mut n_differing = 0;
    let together = on_threads(2, || {
        let mut caches: Vec<_> = (0..8).map(|_| model.new_cache()).collect();
        let mut rows: Vec<Vec<f32>> = Vec::new();
        for chunk in prompt.chunks(7) {
            let mut logits = Logits::new();
            let mut feeds: Vec<Feed<'_>> = caches
                .iter_mut()
                .enumerate()
                // The others are shorter: a ragged batch.
                .map(|(index, cache)| Feed {
                    tokens: &chunk[..chunk.len().min(8 - index)],
                    cache,
                    want: Want::All,
                })
                .collect();
            model.forward(&mut feeds, &mut logits).map_err(failed)?;
            rows.extend(logits.rows(0).map(<[f32]>::to_vec));
        }
        Ok(rows)
    })?;
    for (a, b) in alone.rows(0).zip(&together) {
        let pairs = a.iter().zip(b);
        n_differing +=
            pairs.filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    }
    Ok(n_differing)
}

struct UnderGrammars {
    constrained_over_free: f64,
    forced_gain: f64,
}

/// Prints how fast documents are written with a grammar and without.
fn under_grammars(
    options: &Options,
    loaded: LoadedModel,
) -> Result<UnderGrammars, Failure> {
    let mut generator = Generator::new(loaded)?;
    println!("\nunder a grammar, one thread; tokens per second");
    println!(
        "schema                free  sampled  ratio   with forced tokens"
    );
    let (mut all, mut gains) = (Vec::new(), Vec::new());
    for (name, schema) in schemas(options)? {
        let grammar = Grammar::from_schema(&schema, &SchemaOptions::default());
        let Ok(grammar) = grammar else {
            println!("{name:<18}  (does not compile)");
            continue;
        };
        let request = Request {
            prompt: Prompt::Chat(vec![Message {
                role: Role::User,
                content: format!("Write JSON for this schema: {schema:.400}"),
            }]),
            grammar: Some(generator.compile(&grammar)?),
            max_tokens: MAX_TOKENS,
            sampling: SamplingOptions::greedy(),
            boundaries: Boundaries { forced: false, ..Boundaries::default() },
            ..Request::default()
        };
        let forced = Request {
            boundaries: Boundaries { forced: true, ..Boundaries::default() },
            ..request.clone()
        };
        let mut once = |request: &Request| {
            let mut silent = |_: &str| std::ops::ControlFlow::Continue(());
            on_threads(1, || {
                let made = generator.generate(request, &mut silent);
                made.map_err(|error| error.to_string())
            })
        };
        // What comes out is the same each time.
        let n_tokens = match once(&request) {
            Ok(made) => made.tokens.len(),
            Err(error) => {
                println!("{name:<18}  ({error})");
                continue;
            }
        };
        let mut free =
            Request { grammar: None, max_tokens: n_tokens, ..request.clone() };
        free.sampling.length.min_new_tokens = n_tokens;
        let decode_rate =
            |made: &Generation| rate(made.tokens.len(), made.decode_time);
        let mut rows: [Vec<f64>; 3] = Default::default();
        let mut ratios = Vec::new();
        for _ in 0..N_ROUNDS {
            let [a, b, c] = [
                decode_rate(&once(&free)?),
                decode_rate(&once(&request)?),
                decode_rate(&once(&forced)?),
            ];
            ratios.push(b / a);
            for (row, value) in rows.iter_mut().zip([a, b, c]) {
                row.push(value);
            }
        }
        let ratio = median(ratios.clone());
        let [a, b, c] = rows.map(median);
        println!("{name:<18}  {a:>6.1}  {b:>7.1}  {ratio:>5.2}   {c:>8.1}");
        all.append(&mut ratios);
        gains.push(c / b);
    }
    let found = UnderGrammars {
        constrained_over_free: median(all),
        forced_gain: median(gains),
    };
    println!(
        "medians: {:.3} of the speed without a grammar, {:.2} times that with \
         forced tokens",
        found.constrained_over_free, found.forced_gain
    );
    together(generator)?;
    Ok(found)
}

/// The schema of the README, and some of MaskBench's.
fn schemas(options: &Options) -> Result<Vec<(String, String)>, Failure> {
    let review = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples/review.schema.json");
    let mut all =
        vec![("review".to_owned(), std::fs::read_to_string(review)?)];
    match options.records(1_000) {
        Ok(records) => all.extend(records.iter().map(|record| {
            let name = record["name"].as_str().unwrap_or_default();
            (name.to_owned(), record["schema"].to_string())
        })),
        Err(error) => println!("only the schema of the README: {error}"),
    }
    Ok(all)
}

/// Prints how long it takes until a cancelled request has given its memory
/// back, among others that run.
fn together(generator: Generator) -> Result<(), Failure> {
    let mut engine = Engine::new(generator, EngineOptions::default());
    let mut ids = Vec::new();
    for index in 0..8 {
        ids.push(engine.submit(Request {
            prompt: Prompt::Text(format!("{index}: {QUESTION}")),
            max_tokens: 400,
            ..Request::default()
        })?);
    }
    for _ in 0..8 {
        engine.step()?;
    }
    let mut times = Vec::new();
    for id in ids {
        let before = engine.cache_use().held;
        let started = Instant::now();
        if engine.cancel(id).is_none() {
            // It has come to its end by itself.
            continue;
        }
        times.push(started.elapsed().as_secs_f64() * 1e6);
        if engine.cache_use().held >= before {
            return Err("a cancelled request kept its memory".into());
        }
        engine.step()?;
    }
    println!("\ncancel to release, among 8 requests: {:.0} µs", median(times));
    Ok(())
}
