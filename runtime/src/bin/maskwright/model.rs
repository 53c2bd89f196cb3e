//! `model`, and what the other subcommands say about the model.

use std::{
    io::{self, Write},
    num::NonZeroUsize,
    time::Instant,
};

use clap::Args;
use maskwright::{
    generate::{GenerateError, Generator},
    model::{
        self, ComputeDevice, LoadOptions, LoadedModel,
        download::{ModelSource, Progress, TerminalProgress, resolve},
    },
};

use crate::fail::{Code, Fail};

/// Which model writes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ModelSelection {
    /// A GGUF file, a directory with safetensors, config.json and
    /// tokenizer.json, or a Hugging Face repository; SmolLM2-135M-Instruct
    /// if none is named
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The number of tokens that a prompt and its output may have together;
    /// what the model was made for if nothing is said. Models with other
    /// factors for long contexts (Phi-3's LongRoPE) take those for the
    /// longer of their two only if it is asked for here
    #[arg(long, value_name = "TOKENS")]
    pub(crate) context: Option<usize>,
    /// How many threads compute; as many as there are cores if nothing is
    /// said. What comes out is the same on any number
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// What computes: `cpu`, `cuda`, `metal`, or `cuda:1` and so on. `auto`
    /// is the first GPU in builds with the feature `cuda` or `metal` where
    /// there is one, and the processor otherwise
    #[arg(long, value_name = "DEVICE", default_value_t)]
    pub(crate) device: ComputeDevice,
}

impl ModelSelection {
    /// Finds or fetches the model and loads it, saying so on standard error.
    pub(crate) fn load(&self) -> Result<LoadedModel, Fail> {
        if let Some(n) = self.threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n.get());
            pool.build_global().map_err(|error| {
                Fail::usage(format!("cannot start {n} threads: {error}"))
            })?;
        }
        let progress = TerminalProgress::stderr();
        let source = ModelSource::parse(self.model.as_deref());
        let path = resolve(&source, &progress).map_err(Fail::model)?;
        let started = Instant::now();
        progress.note(&format!("loading {}", path.display()));
        let options = LoadOptions {
            context_length: self.context,
            device: self.device,
            ..LoadOptions::default()
        };
        let loaded = model::load_with(&path, &options).map_err(Fail::model)?;
        for warning in &loaded.warnings {
            progress.note(&format!("warning: {warning}"));
        }
        progress.note(&format!(
            "loaded in {:.1} s: {}",
            started.elapsed().as_secs_f32(),
            loaded.model.describe()
        ));
        Ok(loaded)
    }

    pub(crate) fn generator(&self) -> Result<Generator, Fail> {
        Generator::new(self.load()?).map_err(Fail::model)
    }
}

impl From<GenerateError> for Fail {
    fn from(error: GenerateError) -> Fail {
        match error {
            GenerateError::Pipeline(error) => Fail::usage(error.to_string()),
            GenerateError::Bind(error) => Fail::usage(error.to_string()),
            error @ (GenerateError::OutOfRange { .. }
            | GenerateError::EmptyStop { .. }) => {
                Fail::usage(error.to_string())
            }
            GenerateError::Budget { .. } => {
                Fail::new(Code::Length, error.to_string())
            }
            error => Fail::model(error),
        }
    }
}

/// Finds or fetches the model, and says where it is
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    selection: ModelSelection,
}

pub(crate) fn run(args: &ModelArgs) -> Result<(), Fail> {
    let source = ModelSource::parse(args.selection.model.as_deref());
    let progress = TerminalProgress::stderr();
    let path = resolve(&source, &progress).map_err(Fail::model)?;
    writeln!(io::stdout(), "{}", path.display()).map_err(Fail::write)
}
