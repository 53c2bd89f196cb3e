//! `pipeline`: what each stage does to a row of logits.
//!
//! # JSON lines
//!
//! The interface of `--jsonl` is stable. One line in, of which only `logits`
//! is required:
//!
//! ```json
//! {"id": 1, "logits": [3.0, null], "order": "hf", "mask": [0],
//!  "prompt": [], "history": [], "parameters": {"top_k": 20}}
//! ```
//!
//! `null` is minus infinity. One line out, in the order of the input, with
//! what `--json-output` prints, `id`, and `error`, which is `null` or says why
//! no token was chosen.

use std::{
    io::{self, BufRead, Read, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use maskwright::pipeline::{
    EffectiveSampling, History, ModelDefaults, Order, Pipeline, Scratch,
    SettingLayers, Settings, StageTrace, Step, Trace,
};
use maskwright::vocabulary::TokenId;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    args,
    fail::{Code, Fail},
    sampling::{Ids, SamplingArgs, ids, report, texts},
};

/// Shows what each stage of sampling does to a row of logits
///
/// The stages are those of `generate`, with the same flags. Without any, the
/// row is sampled as it is; a chosen order brings its engine's defaults.
#[derive(Args, Debug)]
pub(crate) struct PipelineArgs {
    /// A row of logits: a JSON array of numbers, where null is minus
    /// infinity, or raw little-endian f32; `-` is standard input
    #[arg(long, value_name = "FILE", required_unless_present = "jsonl")]
    logits: Option<PathBuf>,
    /// Reads the row as raw f32, whatever it looks like
    #[arg(long, requires = "logits")]
    raw: bool,
    /// Many rows: JSON lines with `logits` and what concerns that row; `-` is
    /// standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["logits", "mask"])]
    jsonl: Option<PathBuf>,
    /// The tokens that a grammar allows, such as `3,10-19`
    #[arg(long, value_name = "IDS", value_parser = ids)]
    mask: Option<Ids>,
    /// The tokens of the prompt
    #[arg(long, value_name = "IDS", value_parser = ids)]
    prompt_ids: Option<Ids>,
    /// The tokens of the output so far
    #[arg(long, value_name = "IDS", value_parser = ids)]
    history: Option<Ids>,
    /// How many tokens the output may have, for the last one that is forced
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// The defaults of a model: its generation_config.json
    #[arg(long, value_name = "FILE")]
    generation_config: Option<PathBuf>,
    /// How many of the likeliest tokens are shown after each stage; 0 shows
    /// all
    #[arg(long, value_name = "N", default_value_t = 8)]
    top: usize,
    /// Order of the stages, with its engine's defaults: `hf`, `vllm`,
    /// `llama.cpp`, or names of stages between commas, `mask` among them
    #[arg(id = "stage-order", long = "order", value_name = "ORDER")]
    #[arg(conflicts_with = "sampling-order")]
    order: Option<String>,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Prints JSON for machines
    #[arg(long)]
    json_output: bool,
}

/// One row, with what concerns it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default)]
    id: Value,
    logits: Vec<Option<f32>>,
    order: Option<String>,
    mask: Option<Vec<TokenId>>,
    #[serde(default)]
    prompt: Vec<TokenId>,
    #[serde(default)]
    history: Vec<TokenId>,
    #[serde(default)]
    parameters: Settings,
}

/// What came of one row.
struct Answer {
    effective: EffectiveSampling,
    pipeline: Pipeline,
    trace: Trace,
}

pub(crate) fn run(args: &PipelineArgs) -> Result<(), Fail> {
    let mut layers = args.sampling.layers();
    if let Some(order) = &args.order {
        let Ok(order) = order.parse::<Order>();
        layers.order = Some(order);
    }
    layers.user.max_new_tokens = args.max_tokens;
    let mut warnings = Vec::new();
    if let Some(file) = &args.generation_config {
        let defaults =
            ModelDefaults::from_generation_config(&args::read(file)?)
                .map_err(|error| {
                    let file = file.display();
                    Fail::new(Code::File, format!("{file}: {error}"))
                })?;
        layers.model = defaults.settings;
        warnings = defaults.warnings;
    }
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    if let Some(file) = &args.jsonl {
        return lines(file, &layers, args.top, &mut stdout);
    }
    let file = args.logits.as_deref().unwrap_or(Path::new("-"));
    let request = Request {
        logits: read_row(file, args.raw)?,
        mask: args.mask.as_ref().map(|mask| mask.0.clone()),
        prompt: list(args.prompt_ids.as_ref()),
        history: list(args.history.as_ref()),
        ..Request::default()
    };
    let mut answer = answer(&request, &layers)?;
    answer.effective.warnings.extend(warnings);
    let written = if args.json_output {
        writeln!(stdout, "{}", answer.to_json(args.top))
    } else {
        report(&answer.effective)?;
        answer.write_table(args.top, &mut stdout)
    };
    written.and_then(|()| stdout.flush()).map_err(Fail::write)?;
    match answer.trace.outcome {
        Ok(_) => Ok(()),
        Err(error) => Err(Fail::new(Code::Refused, error.to_string())),
    }
}

fn list(ids: Option<&Ids>) -> Vec<TokenId> {
    ids.map(|ids| ids.0.clone()).unwrap_or_default()
}

/// Reads a row in either format.
fn read_row(file: &Path, is_raw: bool) -> Result<Vec<Option<f32>>, Fail> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(file).map(|read| bytes = read)
    };
    read.map_err(|error| Fail::file(file, &error))?;
    let place = file.display();
    if !is_raw && bytes.trim_ascii_start().starts_with(b"[") {
        return serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!(
                "{place}: no JSON array of numbers: {error}; if it is raw \
                 f32, say --raw"
            );
            Fail::new(Code::File, message)
        });
    }
    let (values, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        let message = format!(
            "{place}: {} bytes are neither a JSON array, which begins with \
             `[`, nor whole f32, which take 4 bytes each",
            bytes.len()
        );
        return Err(Fail::new(Code::File, message));
    }
    Ok(values.iter().map(|&value| Some(f32::from_le_bytes(value))).collect())
}

/// Runs the pipeline over one row.
fn answer(request: &Request, layers: &SettingLayers) -> Result<Answer, Fail> {
    let usage = |error: maskwright::pipeline::PipelineError| {
        Fail::usage(error.to_string())
    };
    let mut layers = layers.clone();
    layers.user = request.parameters.clone().over(&layers.user);
    if let Some(order) = &request.order {
        let Ok(order) = order.parse::<Order>();
        layers.order = Some(order);
    }
    layers.has_grammar = request.mask.is_some();
    let effective = layers.resolve().map_err(usage)?;
    let pipeline = effective.options.build().map_err(usage)?;
    let minus_infinity = f32::NEG_INFINITY;
    let given = request.logits.iter();
    let mut logits: Vec<f32> =
        given.map(|logit| logit.unwrap_or(minus_infinity)).collect();
    let mask = request
        .mask
        .as_deref()
        .map(|tokens| bits(tokens, logits.len()))
        .transpose()?;
    let mut history = History::new(request.prompt.clone());
    request.history.iter().for_each(|&token| history.push(token));
    let mut step = Step::new(&history);
    step.mask = mask.as_deref().map(Into::into);
    let trace = pipeline.trace(&mut logits, &step, &mut Scratch::new());
    Ok(Answer { effective, pipeline, trace })
}

/// Returns the words of a mask.
fn bits(tokens: &[TokenId], n_logits: usize) -> Result<Vec<u64>, Fail> {
    let mut words = vec![0_u64; n_logits.div_ceil(64)];
    for token in tokens {
        let index = token.index();
        if index >= n_logits {
            return Err(Fail::usage(format!(
                "the mask names token {}; the row has {n_logits} logits",
                token.0
            )));
        }
        words[index / 64] |= 1 << (index % 64);
    }
    Ok(words)
}

/// Answers every line of a file, in order.
fn lines(
    file: &Path,
    layers: &SettingLayers,
    top: usize,
    output: &mut dyn Write,
) -> Result<(), Fail> {
    let mut input: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let open = std::fs::File::open(file);
        let open = open.map_err(|error| Fail::file(file, &error))?;
        Box::new(io::BufReader::new(open))
    };
    let mut line = Vec::new();
    for number in 1_usize.. {
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(Fail::read)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let mut object = match serde_json::from_slice::<Request>(&line) {
            Err(error) => {
                let message = format!("line {number}: {error}");
                json!({ "id": null, "error": message })
            }
            Ok(request) => match answer(&request, layers) {
                Ok(answer) => {
                    let mut object = answer.to_json(top);
                    object["id"] = request.id;
                    object
                }
                Err(fail) => {
                    json!({ "id": request.id, "error": fail.to_string() })
                }
            },
        };
        if object.get("error").is_none() {
            object["error"] = Value::Null;
        }
        writeln!(output, "{object}").map_err(Fail::write)?;
        output.flush().map_err(Fail::write)?;
    }
    Ok(())
}

impl Answer {
    /// The stages that gave way, where a token was chosen.
    fn yielded(&self) -> Vec<&str> {
        let choice = self.trace.outcome.as_ref();
        choice.map(|choice| self.pipeline.yielded(choice)).unwrap_or_default()
    }

    /// The probability of the chosen token among those that were left.
    fn chosen(&self) -> Option<(TokenId, f32, f64)> {
        let choice = self.trace.outcome.as_ref().ok()?;
        let last = self.trace.stages.last()?;
        let mut left = last.survivors.iter();
        let probability = left
            .find(|one| one.token == choice.token)
            .map_or(f64::NAN, |one| one.probability);
        Some((choice.token, choice.logit, probability))
    }

    fn to_json(&self, top: usize) -> Value {
        let stages: Vec<Value> =
            self.trace.stages.iter().map(|it| stage_json(it, top)).collect();
        let choice = self.chosen().map(|(token, logit, probability)| {
            json!({
                "token": token,
                "logit": logit,
                "probability": probability,
            })
        });
        let error = self.trace.outcome.as_ref().err();
        json!({
            "stages": stages,
            "choice": choice,
            "error": error.map(ToString::to_string),
            "yielded": self.yielded(),
            "sampling": self.effective.to_json(),
            "warnings": texts(&self.effective.warnings),
        })
    }

    fn write_table(
        &self,
        top: usize,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let names = self.trace.stages.iter().map(|it| it.stage.len());
        let width = names.max().unwrap_or(0).max("stage".len());
        writeln!(
            output,
            "{:width$}  {:>7}  token: probability, the likeliest first",
            "stage", "left",
        )?;
        for StageTrace { stage, survivors } in &self.trace.stages {
            write!(output, "{stage:width$}  {:>7} ", survivors.len())?;
            for one in survivors.iter().take(shown(top)) {
                write!(output, " {}: {:.4}", one.token.0, one.probability)?;
            }
            let more = survivors.len().saturating_sub(shown(top));
            if more > 0 {
                write!(output, " and {more} more")?;
            }
            writeln!(output)?;
        }
        for stage in self.yielded() {
            writeln!(output, "{stage} gave way: nothing else was left")?;
        }
        if let Some((token, _, probability)) = self.chosen() {
            let how = if self.effective.options.is_greedy() {
                "the strongest"
            } else {
                "drawn"
            };
            writeln!(output, "{how}: {}, p {probability:.4}", token.0)?;
        }
        Ok(())
    }
}

fn shown(top: usize) -> usize {
    if top == 0 { usize::MAX } else { top }
}

fn stage_json(stage: &StageTrace, top: usize) -> Value {
    let shown = stage.survivors.iter().take(shown(top));
    let tokens: Vec<Value> = shown
        .map(|one| {
            json!({
                "id": one.token,
                "logit": one.logit,
                "probability": one.probability,
            })
        })
        .collect();
    json!({
        "stage": stage.stage,
        "left": stage.survivors.len(),
        "tokens": tokens,
    })
}
