//! What it is worth to have masks of a grammar in a file.
//!
//! ```sh
//! cargo run --release -p maskwright-tests --example saved -- [--schemas N]
//! ```
//!
//! For schemas of MaskBench with two valid instances and more: the last one is
//! read token by token, a mask before each, by a grammar that is compiled
//! anew; and by one that finds a file. What is in the file: the masks that
//! were noted while the other instances were read (`use`), those of the places
//! near the start (`near`), or those noted while the same instance was read
//! (`same`), which is as good as it gets. The vocabulary is that of Llama 3.1
//! (`bench/fetch-tokenizer.sh`), made warm. In a last table, how long the
//! file takes to be read.
#![allow(clippy::print_stdout, reason = "it is a program that reports")]
#![allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Parser;
use maskwright::{
    compiled::CompiledGrammar, compiler::GrammarSource,
    grammar::SchemaOptions, mask::TokenTrie, matcher::Matcher,
    saved::SaveOptions, vocabulary::TokenId,
};
use maskwright_tests::{
    maskbench::{Entry, entries},
    tokens::{Split, Splitter},
    vocabularies::llama,
};

/// Measures first masks with and without a file.
#[derive(Debug, Parser)]
struct Options {
    /// How many schemas are looked at.
    #[arg(long, default_value_t = 400)]
    schemas: usize,
    /// How often each way is tried; the best time counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many places near the start are gone to.
    #[arg(long, default_value_t = 1_000)]
    places: usize,
    /// Masks are saved that took so many microseconds.
    #[arg(long, default_value_t = 20)]
    min_us: u64,
}

/// After so many masks the time is taken.
const N_MASKS: [usize; 4] = [1, 10, 50, usize::MAX];

/// How a grammar comes to know masks.
const WAYS: [&str; 4] = ["anew", "use", "near", "same"];

/// The times of one way and one schema.
#[derive(Clone, Copy, Debug)]
struct Times {
    compile: Duration,
    load: Duration,
    /// After so many masks, compilation and file included.
    masks: [Duration; N_MASKS.len()],
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let Some(trie) = llama() else { return Ok(()) };
    trie.warm_up(&SchemaOptions::default());
    let splitter = Splitter::new(trie.vocabulary());
    let Some(entries) = entries(options.schemas) else {
        println!("MaskBench is not there; set MASKWRIGHT_SHARED");
        return Ok(());
    };
    let mut all: [Vec<Times>; WAYS.len()] = Default::default();
    let mut files: [Vec<(usize, usize)>; WAYS.len()] = Default::default();
    for entry in &entries {
        let Some(job) = Job::new(entry, &splitter) else { continue };
        let Some(saved) = job.files(&trie, &options)? else { continue };
        for (way, file) in saved.iter().enumerate() {
            let times = job.measure(&trie, file.as_ref(), &options)?;
            all[way].push(times);
            if let Some((bytes, n_texts)) = file {
                files[way].push((bytes.len(), *n_texts));
            }
        }
    }
    print(&all, &files);
    Ok(())
}

/// A file, and how many texts are in it.
type Saved = (Vec<u8>, usize);

struct Job {
    source: GrammarSource,
    others: Vec<Vec<TokenId>>,
    last: Vec<TokenId>,
}

impl Job {
    fn new(entry: &Entry, splitter: &Splitter) -> Option<Job> {
        let valid = entry.tests.iter().filter(|(_, is_valid)| *is_valid);
        let mut texts: Vec<Vec<TokenId>> = valid
            .map(|(value, _)| {
                splitter.split(&value.to_string(), Split::Longest)
            })
            .collect();
        let last = texts.pop().filter(|_| !texts.is_empty())?;
        let source = GrammarSource::schema(entry.schema.to_string());
        Some(Job { source, others: texts, last })
    }

    fn compile(
        &self,
        trie: &Arc<TokenTrie>,
    ) -> Result<Arc<CompiledGrammar>, Box<dyn Error>> {
        Ok(self.source.compile()?.compile(trie)?)
    }

    /// Returns the files of all ways; none if the schema or an instance is
    /// refused.
    fn files(
        &self,
        trie: &Arc<TokenTrie>,
        options: &Options,
    ) -> Result<Option<[Option<Saved>; WAYS.len()]>, Box<dyn Error>> {
        if self.source.compile().is_err() {
            return Ok(None);
        }
        let min_time = Duration::from_micros(options.min_us);
        let of = |texts: &[Vec<TokenId>], max_places: usize| {
            let compiled = self.compile(trie)?;
            compiled.remember_texts();
            for text in texts {
                if !read(&compiled, text, |_| {})? {
                    return Ok(None);
                }
            }
            let options =
                SaveOptions { max_places, min_time, ..SaveOptions::default() };
            let (bytes, report) = compiled.to_bytes(&options)?;
            Ok::<_, Box<dyn Error>>(Some((bytes, report.n_texts)))
        };
        let (Some(used), Some(near), Some(same)) = (
            of(&self.others, 0)?,
            of(&[], options.places)?,
            of(std::slice::from_ref(&self.last), 0)?,
        ) else {
            return Ok(None);
        };
        Ok(Some([None, Some(used), Some(near), Some(same)]))
    }

    fn measure(
        &self,
        trie: &Arc<TokenTrie>,
        file: Option<&Saved>,
        options: &Options,
    ) -> Result<Times, Box<dyn Error>> {
        let mut best: Option<Times> = None;
        for _ in 0..options.rounds {
            let trie = Arc::new(trie.snapshot());
            let start = Instant::now();
            let compiled = self.compile(&trie)?;
            let compile = start.elapsed();
            if let Some((bytes, _)) = file {
                compiled.load_bytes(bytes)?;
            }
            let load = start.elapsed().saturating_sub(compile);
            let mut masks = [Duration::ZERO; N_MASKS.len()];
            read(&compiled, &self.last, |n| {
                for (at, limit) in N_MASKS.iter().enumerate() {
                    if n <= *limit {
                        masks[at] = start.elapsed();
                    }
                }
            })?;
            let times = Times { compile, load, masks };
            let last = N_MASKS.len() - 1;
            if best.is_none_or(|best| best.masks[last] > masks[last]) {
                best = Some(times);
            }
        }
        Ok(best.ok_or("no rounds")?)
    }
}

/// Reads tokens with a mask before each. Returns false if one is refused.
fn read(
    compiled: &Arc<CompiledGrammar>,
    tokens: &[TokenId],
    mut on: impl FnMut(usize),
) -> Result<bool, Box<dyn Error>> {
    let mut matcher = Matcher::new(Arc::clone(compiled))?;
    for (at, &token) in tokens.iter().enumerate() {
        matcher.mask()?;
        on(at + 1);
        if matcher.try_accept(&[token])? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn print(all: &[Vec<Times>; WAYS.len()], files: &[Vec<(usize, usize)>]) {
    println!("{} schemas; microseconds, mean p50 p90 p99 max", all[0].len());
    for (way, times) in WAYS.iter().zip(all) {
        println!("{way}");
        let line = |name: &str, of: &dyn Fn(&Times) -> Duration| {
            println!("  {name:<16}{}", summary(times, of));
        };
        line("compile", &|times| times.compile);
        line("load", &|times| times.load);
        for (at, n) in N_MASKS.iter().enumerate() {
            let name = match *n {
                usize::MAX => "+ all masks".to_owned(),
                n => format!("+ {n} masks"),
            };
            line(&name, &|times| times.masks[at]);
        }
    }
    for (way, files) in WAYS.iter().zip(files) {
        let n = files.len().max(1);
        let bytes: usize = files.iter().map(|file| file.0).sum();
        let texts: usize = files.iter().map(|file| file.1).sum();
        let most = files.iter().map(|file| file.0).max().unwrap_or(0);
        println!(
            "{way}: {} bytes a file, {most} at most; {:.1} places",
            bytes / n,
            texts as f64 / n as f64
        );
    }
}

fn summary(times: &[Times], of: &dyn Fn(&Times) -> Duration) -> String {
    let mut all: Vec<f64> =
        times.iter().map(|times| of(times).as_secs_f64() * 1e6).collect();
    all.sort_by(f64::total_cmp);
    let n = all.len();
    if n == 0 {
        return String::new();
    }
    let at = |percent: usize| all[(n * percent / 100).min(n - 1)];
    let mean = all.iter().sum::<f64>() / n as f64;
    format!(
        "{mean:>10.0}{:>10.0}{:>10.0}{:>10.0}{:>10.0}",
        at(50),
        at(90),
        at(99),
        all[n - 1]
    )
}
