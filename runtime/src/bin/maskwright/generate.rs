//! `generate`: text under a grammar, or free.

use std::{
    io::{self, IsTerminal, Write},
    ops::ControlFlow,
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use maskwright::{
    generate::{
        Beams, Boundaries, EarlyStopping, FinishReason, Flush, Generation,
        Generator, LengthPenalty, Message, Piece, Prompt, Request, Role,
        Search, Stop,
    },
    grammar::{Grammar, SchemaOptions},
    interrupt::{CancelFlag, Interrupt},
    vocabulary::Vocabulary,
};

use crate::{
    args::{GrammarArgs, read},
    fail::{Code, Fail},
    generated,
    model::ModelSelection,
    sampling::{SamplingArgs, WordArgs, texts},
    trace,
};

/// Generates text under a grammar, or freely
#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    grammar: GrammarArgs,
    /// What the model is asked
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    prompt: Option<String>,
    /// A file with what the model is asked; `-` is standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// What the model is told before
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Continues the prompt as it is, without the model's chat template
    #[arg(long, conflicts_with = "system")]
    raw: bool,
    /// The greatest number of tokens in the output
    #[arg(long, default_value_t = 256)]
    max_tokens: usize,
    /// Lets the output be cut off at that number; without this, it is
    /// finished in time wherever there is a grammar
    #[arg(long)]
    allow_cut_off: bool,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    words: WordArgs,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    boundaries: BoundaryArgs,
    #[command(flatten)]
    model: ModelSelection,
    /// Records each token with its log-probability before and after the mask,
    /// and this many alternatives of each kind; they are part of
    /// `--json-output`
    #[arg(long, value_name = "N")]
    logprobs: Option<usize>,
    /// Writes a page (HTML) that shows the run token by token: how likely
    /// each was before and after the mask, what was forbidden or forced, and
    /// what the grammar was reading
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Prints JSON for machines, at the end: a line for each sequence. With
    /// `--stream`, a line for each piece of text before those
    #[arg(long)]
    json_output: bool,
}

/// How many sequences are written, and which are printed.
#[derive(Args, Clone, Debug)]
struct SearchArgs {
    /// How many sequences are printed: independent samples, or the best of
    /// the beams
    #[arg(long, default_value_t = 1)]
    n: usize,
    /// Writes this many samples and prints the ones with the greatest mean
    /// log-probability
    #[arg(long, value_name = "N", conflicts_with = "beams")]
    best_of: Option<usize>,
    /// Searches with this many beams, or with `n` if that is more
    #[arg(long, value_name = "WIDTH")]
    beams: Option<usize>,
    /// Draws the beams that go on
    #[arg(long, requires = "beams")]
    sampled_beams: bool,
    /// What the score of a beam is divided by: its length to this power (1 if
    /// not given), or `gnmt:` and a power for the formula of Wu et al.
    #[arg(long, value_name = "ALPHA", requires = "beams")]
    length_penalty: Option<String>,
    /// When a search with beams ends: `true`, `false` (the default) or
    /// `never`
    #[arg(long, value_name = "WHEN", requires = "beams")]
    early_stopping: Option<String>,
}

/// What ends the output, and when it goes out.
#[derive(Args, Clone, Debug)]
struct EndArgs {
    /// A text that ends the output, and is not part of it; can be given
    /// several times
    #[arg(long = "stop", value_name = "TEXT")]
    stops: Vec<String>,
    /// Makes the text that ended the output part of it
    #[arg(long, requires = "stops")]
    include_stop: bool,
    /// With `--json-output`, prints text as it comes, too. Without, that is
    /// done wherever one sequence is written and not ranked first
    #[arg(long)]
    stream: bool,
    /// Text goes out when this many bytes have gathered, and not token by
    /// token
    #[arg(long, value_name = "N")]
    flush_bytes: Option<usize>,
    /// Text goes out when so many milliseconds have passed, and not token by
    /// token
    #[arg(long, value_name = "MS")]
    flush_ms: Option<u64>,
}

/// How text and tokens meet.
#[derive(Args, Clone, Copy, Debug)]
struct BoundaryArgs {
    /// Takes back the end of a raw prompt as far as the tokenizer could have
    /// joined it with what follows, and has the model spell it again
    #[arg(long, requires = "raw")]
    heal: bool,
    /// Takes only tokens that the tokenizer itself would have made
    #[arg(long)]
    canonical: bool,
    /// Has the model choose each token, even where the grammar leaves no
    /// choice
    #[arg(long)]
    no_forced: bool,
}

pub(crate) fn run(args: &GenerateArgs) -> Result<(), Fail> {
    let (options, sampling_args) =
        args.grammar.options.split_order(&args.sampling)?;
    let grammar_args = GrammarArgs { options, ..args.grammar.clone() };
    let grammar = grammar_args.compile(SchemaOptions::default())?;
    // What is out of range is found before a model is loaded.
    sampling_args.check()?;
    let mut request = request(args)?;
    let loaded = args.model.load()?;
    let sampling = sampling_args.effective(
        &args.words,
        &loaded,
        loaded.defaults.settings.clone(),
        grammar.is_some(),
    )?;
    request.sampling = sampling.options.clone();
    warn(args, &request)?;
    let mut generator = Generator::new(loaded).map_err(Fail::model)?;
    let warnings = grammar.as_ref().map_or(&[][..], Grammar::warnings);
    request.grammar = grammar
        .as_ref()
        .map(|grammar| generator.compile(grammar))
        .transpose()
        .map_err(|error| Fail::usage(error.to_string()))?;
    request.interrupt = Some(on_ctrl_c()?);
    let vocabulary = generator.vocabulary().clone();
    let mut out = Out::new(args);
    let mut made =
        generator.generate_all(&request, &mut |piece| out.receive(piece))?;
    if let Some(error) = out.failed {
        return Err(Fail::write(error));
    }
    if made.len() < args.search.n {
        writeln!(
            io::stderr(),
            "warning: {} sequences were asked for and {} found; the grammar \
             has no more, or bans and truncations leave no more",
            args.search.n,
            made.len()
        )
        .map_err(Fail::write)?;
    }
    let page = args.trace.as_ref().map(|_| {
        let title = trace::title(&args.grammar.source);
        trace::page(&title, &request.prompt, &vocabulary, &made)
    });
    trace::keep(&mut made, args.logprobs);
    let is_constrained = request.grammar.is_some();
    if args.json_output {
        let fingerprint =
            generator.fingerprint(&request).map_err(Fail::model)?;
        let fingerprint = generated::fingerprint(&fingerprint);
        let mut stdout = io::stdout().lock();
        for (index, one) in made.iter().enumerate() {
            let mut line = generated::line(index, one, &vocabulary, warnings);
            line["sampling"] = sampling.to_json();
            line["fingerprint"] = fingerprint.clone();
            line["sampling_warnings"] = texts(&sampling.warnings).into();
            writeln!(stdout, "{line}").map_err(Fail::write)?;
        }
    } else {
        print(&made, out.is_streamed, is_constrained).map_err(Fail::write)?;
    }
    if let Some((file, page)) = args.trace.as_ref().zip(page) {
        std::fs::write(file, page).map_err(|it| Fail::file(file, &it))?;
    }
    verdict(&made, is_constrained, &vocabulary)
}

fn request(args: &GenerateArgs) -> Result<Request, Fail> {
    let time = args.end.flush_ms.map(Duration::from_millis);
    Ok(Request {
        prompt: prompt(args)?,
        max_tokens: args.max_tokens,
        finish_within_budget: !args.allow_cut_off,
        search: search(&args.search)?,
        stop: Stop {
            strings: args.end.stops.clone(),
            include: args.end.include_stop,
        },
        flush: Flush { bytes: args.end.flush_bytes, time },
        boundaries: Boundaries {
            heal: args.boundaries.heal,
            canonical: args.boundaries.canonical,
            forced: !args.boundaries.no_forced,
        },
        logprobs: match args.trace {
            None => args.logprobs,
            Some(_) => Some(trace::LISTED.max(args.logprobs.unwrap_or(0))),
        },
        ..Request::default()
    })
}

fn search(args: &SearchArgs) -> Result<Search, Fail> {
    let n = args.n;
    let Some(width) = args.beams else {
        let best_of = args.best_of.unwrap_or(n);
        return Ok(Search::Sample { n, best_of });
    };
    let length_penalty = match args.length_penalty.as_deref() {
        None => LengthPenalty::default(),
        Some(text) => length_penalty(text)?,
    };
    let early_stopping = match args.early_stopping.as_deref() {
        None | Some("false") => EarlyStopping::No,
        Some("true") => EarlyStopping::Yes,
        Some("never") => EarlyStopping::Never,
        Some(given) => {
            return Err(Fail::usage(format!(
                "`early-stopping` is one of true, false, never, and \
                 {given:?} was given"
            )));
        }
    };
    let sampled = args.sampled_beams;
    let beams = Beams { width, n, length_penalty, early_stopping, sampled };
    Ok(Search::Beams(beams))
}

fn length_penalty(text: &str) -> Result<LengthPenalty, Fail> {
    let (alpha, is_gnmt) = match text.strip_prefix("gnmt:") {
        Some(alpha) => (alpha, true),
        None => (text, false),
    };
    let alpha: f64 = alpha.parse().map_err(|_| {
        Fail::usage(format!(
            "`length-penalty` is a number, or `gnmt:` and a number, and \
             {text:?} was given"
        ))
    })?;
    Ok(if is_gnmt {
        LengthPenalty::Gnmt(alpha)
    } else {
        LengthPenalty::Power(alpha)
    })
}

/// Says what has no effect.
fn warn(args: &GenerateArgs, request: &Request) -> Result<(), Fail> {
    let mut warnings = request.ignored();
    let is_flushed =
        args.end.flush_bytes.is_some() || args.end.flush_ms.is_some();
    let is_ranked = matches!(request.search, Search::Beams(_))
        || args.search.best_of.is_some_and(|best_of| best_of > args.search.n);
    if is_ranked && (is_flushed || args.end.stream) {
        warnings.push(
            "sequences that are ranked go out at the end, so `stream` and \
             the options of flushing have no effect"
                .to_owned(),
        );
    } else if args.end.stream && !args.json_output && args.search.n > 1 {
        warnings.push(
            "several sequences are printed one after the other; `stream` \
             needs `json-output` to tell them apart"
                .to_owned(),
        );
    }
    if args.logprobs.is_some() && !args.json_output {
        warnings.push(
            "records of tokens are part of `json-output`, and are not \
             printed without it"
                .to_owned(),
        );
    }
    let mut stderr = io::stderr().lock();
    for warning in warnings {
        writeln!(stderr, "warning: {warning}").map_err(Fail::write)?;
    }
    Ok(())
}

/// Returns what Ctrl-C breaks off. A second one ends the command at once.
#[cfg(unix)]
pub(crate) fn on_ctrl_c() -> Result<Interrupt, Fail> {
    use std::sync::{Arc, atomic::AtomicBool};

    use signal_hook::{consts::SIGINT, flag, iterator::Signals};

    let is_pressed = Arc::new(AtomicBool::new(false));
    let code = i32::from(Code::Cancelled as u8);
    // In this order, so that the first one does not end the command.
    flag::register_conditional_shutdown(SIGINT, code, is_pressed.clone())
        .and_then(|_| flag::register(SIGINT, is_pressed))
        .map_err(Fail::internal)?;
    let mut signals = Signals::new([SIGINT]).map_err(Fail::internal)?;
    let flag = CancelFlag::new();
    let interrupt = Interrupt::on(&flag);
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            flag.cancel();
        }
    });
    Ok(interrupt)
}

/// Elsewhere Ctrl-C ends the command.
#[cfg(not(unix))]
pub(crate) fn on_ctrl_c() -> Result<Interrupt, Fail> {
    Ok(Interrupt::on(&CancelFlag::new()))
}

/// Where pieces of text go.
struct Out {
    is_json: bool,
    /// Whether pieces are written at all.
    is_streamed: bool,
    failed: Option<io::Error>,
}

impl Out {
    fn new(args: &GenerateArgs) -> Out {
        let is_streamed = if args.json_output {
            args.end.stream
        } else {
            args.search.n == 1
        };
        Out { is_json: args.json_output, is_streamed, failed: None }
    }

    fn receive(&mut self, piece: Piece<'_>) -> ControlFlow<()> {
        if !self.is_streamed {
            return ControlFlow::Continue(());
        }
        let mut stdout = io::stdout().lock();
        let written = if self.is_json {
            let Piece { sequence, text } = piece;
            let line =
                serde_json::json!({ "sequence": sequence, "piece": text });
            writeln!(stdout, "{line}")
        } else {
            stdout.write_all(piece.text.as_bytes())
        };
        match written.and_then(|()| stdout.flush()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Prints the texts for people; the only one is there already.
fn print(
    made: &[Generation],
    is_streamed: bool,
    is_constrained: bool,
) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if is_streamed {
        if stdout.is_terminal() || !is_constrained {
            writeln!(stdout)?;
        }
        return Ok(());
    }
    for (index, one) in made.iter().enumerate() {
        let (place, n) = (index + 1, made.len());
        let reason = one.finish_reason.name();
        match one.trace.score {
            Some(score) => {
                writeln!(stdout, "== {place} of {n}: {reason}, {score:.4}")?;
            }
            None => writeln!(stdout, "== {place} of {n}: {reason}")?,
        }
        writeln!(stdout, "{}", one.text)?;
    }
    Ok(())
}

/// What the exit code says of the sequences.
fn verdict(
    made: &[Generation],
    is_constrained: bool,
    vocabulary: &Vocabulary,
) -> Result<(), Fail> {
    let is_cancelled =
        |one: &Generation| one.finish_reason == FinishReason::Cancelled;
    if made.iter().any(is_cancelled) {
        return Err(Fail::new(
            Code::Cancelled,
            "cancelled; what was written until then was printed",
        ));
    }
    let is_cut = |one: &&Generation| one.finish_reason == FinishReason::Length;
    let Some(cut) = made.iter().find(is_cut).filter(|_| is_constrained) else {
        return Ok(());
    };
    let last = cut.tokens.last().map(|&token| vocabulary.text(token));
    Err(Fail::new(
        Code::Length,
        format!(
            "the output was cut off after {} tokens (the last is {:?}): it is \
             the beginning of a text that fits, not one that fits; raise \
             --max-tokens, or bound the lengths in the grammar",
            cut.tokens.len(),
            last.unwrap_or_default(),
        ),
    ))
}

fn prompt(args: &GenerateArgs) -> Result<Prompt, Fail> {
    let text = match (&args.prompt, &args.prompt_file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) if args.raw => {
            return Err(Fail::usage("--raw needs a prompt".to_owned()));
        }
        (None, None) => String::new(),
    };
    if args.raw {
        return Ok(Prompt::Text(text));
    }
    let system =
        args.system.iter().map(|text| Message::new(Role::System, text));
    let messages = system.chain([Message::new(Role::User, text)]);
    Ok(Prompt::Chat(messages.collect()))
}
