//! Stages put in order.

use super::{
    catalogue::{self, NAMES},
    choice::Choose,
    error::PipelineError,
    options::SamplingOptions,
    order::{Order, Rules},
    run::Pipeline,
    stage::{Stage, StageKind},
};

/// The place of a stage in an order, which may be vacant.
struct Slot {
    name: String,
    stage: Option<Box<dyn Stage>>,
}

/// Puts a pipeline together from options, an order and stages of the user's.
#[derive(Debug, Default)]
pub struct PipelineBuilder {
    order: Option<Order>,
    options: SamplingOptions,
    stages: Vec<Box<dyn Stage>>,
}

impl PipelineBuilder {
    /// Sets the order of the stages, whatever the options say.
    #[must_use]
    pub fn order(mut self, order: Order) -> PipelineBuilder {
        self.order = Some(order);
        self
    }

    /// Sets the options of the built-in stages, and their order.
    #[must_use]
    pub fn options(mut self, options: SamplingOptions) -> PipelineBuilder {
        self.options = options;
        self
    }

    /// Adds a stage.
    ///
    /// One with the name of a built-in stage takes its place, one that the
    /// user's own order names stands there; any other stands right after the
    /// mask, behind those added before it.
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
    /// name, when one would replace the mask, when the order names a stage
    /// that there is not, and when it is unlawful.
    pub fn build(mut self) -> Result<Pipeline, PipelineError> {
        if let Some(order) = self.order.take() {
            self.options.order = order;
        }
        let choose = self.options.choose()?;
        let mut slots = self.slots()?;
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
        let truncates = self.options.truncates_greedily();
        Pipeline::assemble(stages, choose, truncates)
    }

    /// Returns the places of the order, filled as the options say.
    fn slots(&self) -> Result<Vec<Slot>, PipelineError> {
        let options = &self.options;
        let rules = Rules::of(&options.order);
        // Ranges are checked even of stages that the order does not have.
        for name in NAMES {
            if let Some(made) = catalogue::make(name, options, rules) {
                made?;
            }
        }
        let names = options.order.stage_names();
        let mut slots = Vec::with_capacity(names.len());
        for name in names {
            let stage = match catalogue::make(name, options, rules) {
                Some(made) => made?,
                None if self.stages.iter().any(|it| it.name() == name) => None,
                None => {
                    let (name, known) = (name.to_owned(), NAMES.join(", "));
                    return Err(PipelineError::UnknownStage { name, known });
                }
            };
            slots.push(Slot { name: name.to_owned(), stage });
        }
        Ok(slots)
    }
}

impl Pipeline {
    /// Starts putting a pipeline together.
    pub fn builder() -> PipelineBuilder {
        PipelineBuilder::default()
    }

    /// Creates a pipeline that runs these stages in this order.
    ///
    /// A greedy pipeline leaves out temperature and truncations.
    ///
    /// # Errors
    ///
    /// Fails when there is not exactly one mask, when two stages have one
    /// name, and when a stage that forbids stands after a temperature or
    /// after one that truncates.
    pub fn from_stages(
        stages: Vec<Box<dyn Stage>>,
        choose: Choose,
    ) -> Result<Pipeline, PipelineError> {
        Pipeline::assemble(stages, choose, false)
    }

    /// Does that. A greedy pipeline may keep its truncations.
    fn assemble(
        mut stages: Vec<Box<dyn Stage>>,
        choose: Choose,
        truncates_greedily: bool,
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
        let first_for_sampling =
            stages.iter().position(|stage| stage.kind().is_for_sampling());
        if let Some(early) = first_for_sampling
            && let Some(late) =
                stages[early..].iter().find(|stage| stage.kind().forbids())
        {
            let does = match stages[early].kind() {
                StageKind::Temperature => "scales what is to be sampled",
                _ => "truncates",
            };
            return Err(PipelineError::MaskAfterTruncation {
                early: stages[early].name().to_owned(),
                does,
                late: late.name().to_owned(),
            });
        }
        if choose == Choose::Greedy {
            stages.retain(|stage| match stage.kind() {
                StageKind::Temperature => false,
                StageKind::Truncate => truncates_greedily,
                StageKind::Mask | StageKind::Forbid | StageKind::Score => true,
            });
        }
        let n_scoring = stages
            .iter()
            .position(|stage| stage.kind().is_for_sampling())
            .unwrap_or(stages.len());
        Ok(Pipeline::new(stages, n_scoring, choose))
    }
}
