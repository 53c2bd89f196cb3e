//! Stages put in order, and run.

use super::{
    choice::{Choice, Choose},
    error::PipelineError,
    frequency_presence::FrequencyPresencePenalty,
    logit_bias::LogitBias,
    mask::GrammarMask,
    min_p::MinP,
    options::SamplingOptions,
    repetition::RepetitionPenalty,
    row::{Row, Scratch},
    stage::{Stage, StageKind, Step},
    temperature::Temperature,
    top_k::TopK,
    top_p::TopP,
};
use crate::vocabulary::TokenId;

/// An order of the built-in stages.
///
/// Orders are named after the engine whose order they are. With equal options
/// they keep different tokens.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Order {
    /// Hugging Face transformers: bias, penalties, then the mask where the
    /// processors of users stand, then temperature, top-k, top-p, min-p.
    #[default]
    HuggingFace,
}

/// The place of a stage in an order, which may be vacant.
struct Slot {
    name: &'static str,
    stage: Option<Box<dyn Stage>>,
}

impl Slot {
    fn new<S: Stage + 'static>(
        name: &'static str,
        is_on: bool,
        stage: Result<S, PipelineError>,
    ) -> Result<Slot, PipelineError> {
        // The range is checked even where the stage is left out.
        let stage = stage?;
        debug_assert_eq!(name, stage.name());
        let stage: Option<Box<dyn Stage>> =
            if is_on { Some(Box::new(stage)) } else { None };
        Ok(Slot { name, stage })
    }
}

impl Order {
    /// Returns the places of this order, filled as the options say.
    fn slots(
        self,
        options: &SamplingOptions,
    ) -> Result<Vec<Slot>, PipelineError> {
        let Order::HuggingFace = self;
        let temperature =
            if options.is_greedy() { 1.0 } else { options.temperature };
        Ok(vec![
            Slot::new(
                "logit_bias",
                !options.logit_bias.is_empty(),
                LogitBias::new(options.logit_bias.clone()),
            )?,
            Slot::new(
                "repetition_penalty",
                differs(options.repetition_penalty, 1.0),
                RepetitionPenalty::new(
                    options.repetition_penalty,
                    options.repetition_with_prompt,
                ),
            )?,
            Slot::new(
                "frequency_presence_penalty",
                differs(options.frequency_penalty, 0.0)
                    || differs(options.presence_penalty, 0.0),
                FrequencyPresencePenalty::new(
                    options.frequency_penalty,
                    options.presence_penalty,
                ),
            )?,
            Slot::new("mask", true, Ok(GrammarMask))?,
            Slot::new(
                "temperature",
                differs(temperature, 1.0),
                Temperature::new(temperature),
            )?,
            Slot::new(
                "top_k",
                options.top_k != 0,
                TopK::new(options.top_k.max(1)),
            )?,
            Slot::new("top_p", options.top_p < 1.0, TopP::new(options.top_p))?,
            Slot::new("min_p", options.min_p > 0.0, MinP::new(options.min_p))?,
        ])
    }
}

/// Returns true when an option differs from the value that turns it off.
#[expect(clippy::float_cmp, reason = "only the exact value turns it off")]
fn differs(value: f32, neutral: f32) -> bool {
    value != neutral
}

/// Puts a pipeline together from options, an order and stages of the user's.
#[derive(Debug, Default)]
pub struct PipelineBuilder {
    order: Order,
    options: SamplingOptions,
    stages: Vec<Box<dyn Stage>>,
}

impl PipelineBuilder {
    /// Sets the order of the built-in stages.
    #[must_use]
    pub fn order(mut self, order: Order) -> PipelineBuilder {
        self.order = order;
        self
    }

    /// Sets the options of the built-in stages.
    #[must_use]
    pub fn options(mut self, options: SamplingOptions) -> PipelineBuilder {
        self.options = options;
        self
    }

    /// Adds a stage.
    ///
    /// One with the name of a built-in stage takes its place; any other
    /// stands right after the mask, behind those added before it.
    #[must_use]
    pub fn stage(mut self, stage: impl Stage + 'static) -> PipelineBuilder {
        self.stages.push(Box::new(stage));
        self
    }

    /// Builds the pipeline.
    ///
    /// # Errors
    ///
    /// Fails when an option is out of range, when two added stages have one
    /// name, when one would replace the mask, and when the order would be
    /// unlawful.
    pub fn build(self) -> Result<Pipeline, PipelineError> {
        let choose = self.options.choose()?;
        let mut slots = self.order.slots(&self.options)?;
        let mut others = Vec::new();
        for stage in self.stages {
            let name = stage.name();
            match slots.iter_mut().find(|slot| slot.name == name) {
                Some(slot) if slot.name == "mask" => {
                    let name = name.to_owned();
                    return Err(PipelineError::DuplicateStage { name });
                }
                Some(slot) => slot.stage = Some(stage),
                None => others.push(stage),
            }
        }
        let mut stages = Vec::with_capacity(slots.len() + others.len());
        for Slot { name, stage } in slots {
            stages.extend(stage);
            if name == "mask" {
                stages.append(&mut others);
            }
        }
        Pipeline::from_stages(stages, choose)
    }
}

/// A decode step: stages in a lawful order, and a choice.
///
/// It is immutable and can be shared by any number of sequences and threads.
#[derive(Debug)]
pub struct Pipeline {
    stages: Vec<Box<dyn Stage>>,
    /// How many stages stand before the first that only sampling has.
    n_scoring: usize,
    choose: Choose,
}

impl Pipeline {
    /// Starts putting a pipeline together.
    pub fn builder() -> PipelineBuilder {
        PipelineBuilder::default()
    }

    /// Creates a pipeline that runs these stages in this order.
    ///
    /// A greedy pipeline leaves out temperature and truncations, which never
    /// change the strongest token.
    ///
    /// # Errors
    ///
    /// Fails when there is not exactly one mask, when two stages have one
    /// name, and when a stage that forbids stands after one that truncates.
    pub fn from_stages(
        mut stages: Vec<Box<dyn Stage>>,
        choose: Choose,
    ) -> Result<Pipeline, PipelineError> {
        let given = stages
            .iter()
            .filter(|stage| stage.kind() == StageKind::Mask)
            .count();
        if given != 1 {
            return Err(PipelineError::MaskCount { given });
        }
        for (index, stage) in stages.iter().enumerate() {
            let name = stage.name();
            if stages[..index].iter().any(|other| other.name() == name) {
                let name = name.to_owned();
                return Err(PipelineError::DuplicateStage { name });
            }
        }
        let first_truncation = stages
            .iter()
            .position(|stage| stage.kind() == StageKind::Truncate);
        if let Some(early) = first_truncation
            && let Some(late) =
                stages[early..].iter().find(|stage| stage.kind().forbids())
        {
            return Err(PipelineError::MaskAfterTruncation {
                early: stages[early].name().to_owned(),
                late: late.name().to_owned(),
            });
        }
        if choose == Choose::Greedy {
            stages.retain(|stage| !stage.kind().is_for_sampling());
        }
        let n_scoring = stages
            .iter()
            .position(|stage| stage.kind().is_for_sampling())
            .unwrap_or(stages.len());
        Ok(Pipeline { stages, n_scoring, choose })
    }

    /// Returns the names of the stages in the order in which they run.
    pub fn stage_names(&self) -> impl Iterator<Item = &str> {
        self.stages.iter().map(|stage| stage.name())
    }

    /// Returns true if and only if a stage drops tokens that the grammar
    /// allows: which ones depends on all that it allows.
    pub fn truncates(&self) -> bool {
        let mut stages = self.stages.iter();
        stages.any(|stage| stage.kind() == StageKind::Truncate)
    }

    /// Chooses the next token.
    ///
    /// The logits are used up: what they are afterwards is unspecified.
    ///
    /// # Errors
    ///
    /// Fails when a logit is NaN or positive infinity, when every token is
    /// forbidden, and when the mask or an option does not fit the row. No
    /// token is ever drawn from an empty set.
    pub fn choose(
        &self,
        logits: &mut [f32],
        step: &Step<'_>,
        scratch: &mut Scratch,
    ) -> Result<Choice, PipelineError> {
        let row = self.run(logits, step, scratch)?;
        self.choose
            .choose(&row, step.position, step.attempt)
            .ok_or_else(|| no_token_left(&row, step))
    }

    /// Returns the tokens that the stages leave, by ascending id, with the
    /// probabilities with which they would be drawn.
    ///
    /// # Errors
    ///
    /// Fails as [`choose`](Self::choose) does.
    pub fn probabilities(
        &self,
        logits: &mut [f32],
        step: &Step<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<(TokenId, f64)>, PipelineError> {
        let mut row = self.run(logits, step, scratch)?;
        let max = f64::from(row.max());
        let candidates = row.candidates();
        let weight = |logit: f32| (f64::from(logit) - max).exp();
        let total: f64 = candidates.iter().map(|one| weight(one.logit)).sum();
        let probability = |logit| weight(logit) / total;
        Ok(candidates
            .iter()
            .map(|one| (one.token, probability(one.logit)))
            .collect())
    }

    /// Runs the stages and checks what they are given and what they leave.
    pub(super) fn run<'r>(
        &self,
        logits: &'r mut [f32],
        step: &Step<'_>,
        scratch: &'r mut Scratch,
    ) -> Result<Row<'r>, PipelineError> {
        let mut row = Row::new(logits, scratch);
        check_finite(&row, "as the model gave it")?;
        let (scoring, sampling) = self.stages.split_at(self.n_scoring);
        for stage in scoring {
            stage.apply(&mut row, step)?;
        }
        // The mask alone makes nothing worse.
        if scoring.len() > 1 {
            check_finite(&row, "after the penalties")?;
        }
        if row.max() == f32::NEG_INFINITY {
            return Err(no_token_left(&row, step));
        }
        for stage in sampling {
            stage.apply(&mut row, step)?;
        }
        if !sampling.is_empty() {
            check_finite(&row, "after temperature and truncation")?;
        }
        Ok(row)
    }
}

fn check_finite(
    row: &Row<'_>,
    place: &'static str,
) -> Result<(), PipelineError> {
    match row.find_bad() {
        None => Ok(()),
        Some(bad) => Err(PipelineError::BadLogit {
            token: bad.token,
            value: bad.logit,
            place,
        }),
    }
}

fn no_token_left(row: &Row<'_>, step: &Step<'_>) -> PipelineError {
    let allowed = match step.mask {
        None => {
            "there is no grammar, every logit is minus infinity".to_owned()
        }
        Some(mask) => match mask.n_allowed() {
            0 => "the grammar allows no token".to_owned(),
            n => format!(
                "the grammar allows {n} tokens, whose logits are minus \
                 infinity"
            ),
        },
    };
    PipelineError::NoTokenLeft {
        position: step.position,
        allowed,
        n_logits: row.n_logits(),
    }
}
