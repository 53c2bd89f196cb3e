//! What came of all that was said about sampling.

use std::fmt;

use serde_json::Value;

use super::{
    error::PipelineError,
    options::{SamplingOptions, SamplingWarning, differs},
    order::Order,
    settings::Settings,
};

/// Who says how a setting is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SettingSource {
    /// The user.
    User,
    /// Whoever made the model.
    Model,
    /// The engine whose order the user chose.
    Order,
    /// The command, or whoever else embeds this.
    Command,
}

impl SettingSource {
    /// Returns the name of the source.
    pub fn name(self) -> &'static str {
        match self {
            SettingSource::User => "user",
            SettingSource::Model => "model",
            SettingSource::Order => "order",
            SettingSource::Command => "command",
        }
    }
}

/// All that is said about sampling, by whom.
///
/// The user comes before the model, the model before the order that the user
/// chose, that before the command.
#[derive(Clone, Debug, Default)]
pub struct SettingLayers {
    /// What the user says.
    pub user: Settings,
    /// The order, if the user chose one: its engine's defaults hold then.
    pub order: Option<Order>,
    /// What the model comes with.
    pub model: Settings,
    /// What holds where nobody says anything.
    pub command: Settings,
    /// Whether there is a grammar. JSON repeats quotes, keys and colons by
    /// design: penalties that the user did not ask for are off then.
    pub has_grammar: bool,
}

/// One setting as it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveSetting {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
    /// Who says so.
    pub source: SettingSource,
}

/// What came of all that was said.
#[derive(Clone, Debug)]
pub struct EffectiveSampling {
    /// The options.
    pub options: SamplingOptions,
    /// All that somebody said and that counts.
    pub settings: Vec<EffectiveSetting>,
    /// What has no effect, or another one than was said.
    pub warnings: Vec<SamplingWarning>,
}

/// The settings that weaken what was said before.
const PENALTIES: &[&str] = &[
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "no_repeat_ngram_size",
    "dry_multiplier",
];

impl SettingLayers {
    /// Puts the layers on top of one another.
    ///
    /// # Errors
    ///
    /// Fails when a value is out of range, and gives the range.
    pub fn resolve(&self) -> Result<EffectiveSampling, PipelineError> {
        let mut warnings = Vec::new();
        let order = self.order.clone().unwrap_or_default();
        let from_order =
            self.order.as_ref().map(Order::defaults).unwrap_or_default();
        let mut layers = [
            (SettingSource::User, self.user.clone()),
            (SettingSource::Model, self.model.clone()),
            (SettingSource::Order, from_order),
            (SettingSource::Command, self.command.clone()),
        ];
        self.settle_chance(&mut layers, &mut warnings);
        if self.has_grammar {
            drop_penalties(&mut layers, &mut warnings);
        }
        let mut settings: Vec<EffectiveSetting> = Vec::new();
        let mut all = Settings::default();
        for (source, layer) in layers {
            for (name, value) in layer.said() {
                if !settings.iter().any(|one| one.name == name) {
                    settings.push(EffectiveSetting { name, value, source });
                }
            }
            all = all.over(&layer);
        }
        check_mirostat(&all)?;
        let options = all.options(order);
        let by_user = self.user.said();
        let ignored = options.ignored();
        let is_users = |warning: &SamplingWarning| {
            by_user.iter().any(|(name, _)| *name == warning.option)
        };
        warnings.extend(ignored.into_iter().filter(is_users));
        warnings.extend(options.surprises());
        warnings.extend(self.without_effect(&options));
        options.check()?;
        Ok(EffectiveSampling { options, settings, warnings })
    }

    /// Turns `do_sample` into a temperature, unless somebody with more weight
    /// gave one.
    fn settle_chance(
        &self,
        layers: &mut [(SettingSource, Settings)],
        warnings: &mut Vec<SamplingWarning>,
    ) {
        let said = |layer: &(SettingSource, Settings)| layer.1.do_sample;
        let place = layers.iter().position(|layer| said(layer).is_some());
        if let Some(place) = place {
            let leaves_to_chance = said(&layers[place]) == Some(true);
            let temperatures =
                layers.iter().map(|(_, layer)| layer.temperature);
            let first = temperatures
                .enumerate()
                .find_map(|(at, given)| given.map(|given| (at, given)));
            let temperature = &mut layers[place].1.temperature;
            match (leaves_to_chance, first) {
                (false, Some((above, _))) if above < place => {}
                (false, _) => *temperature = Some(0.0),
                (true, Some((at, given))) if at <= place || given > 0.0 => {}
                (true, _) => *temperature = Some(1.0),
            }
        }
        for (_, layer) in layers.iter_mut() {
            layer.do_sample = None;
        }
        if self.user.do_sample == Some(false)
            && self.user.temperature.is_some_and(|t| differs(t, 0.0))
        {
            let message = "has no effect where nothing is left to chance";
            warnings.push(SamplingWarning::new("temperature", message));
        }
    }

    /// What the user says that asks for something else which is off.
    fn without_effect(
        &self,
        options: &SamplingOptions,
    ) -> Vec<SamplingWarning> {
        let user = &self.user;
        let needs = [
            (
                user.xtc_threshold.is_some(),
                "xtc_threshold",
                options.truncation.xtc_probability > 0.0,
                "xtc_probability",
            ),
            (
                user.dynamic_temperature_exponent.is_some(),
                "dynamic_temperature_exponent",
                options.dynamic_temperature.range > 0.0,
                "dynamic_temperature_range",
            ),
            (
                user.mirostat_tau.is_some(),
                "mirostat_tau",
                options.mirostat.is_some(),
                "mirostat",
            ),
            (
                user.mirostat_eta.is_some(),
                "mirostat_eta",
                options.mirostat.is_some(),
                "mirostat",
            ),
            (
                user.repetition_with_prompt.is_some(),
                "repetition_with_prompt",
                differs(options.repetition_penalty, 1.0),
                "repetition_penalty",
            ),
        ];
        let dry = [
            (user.dry_base.is_some(), "dry_base"),
            (user.dry_allowed_length.is_some(), "dry_allowed_length"),
            (user.dry_last_n.is_some(), "dry_last_n"),
            (user.dry_sequence_breakers.is_some(), "dry_sequence_breakers"),
        ];
        let has_dry = options.dry.multiplier > 0.0;
        let dry = dry
            .map(|(is_set, name)| (is_set, name, has_dry, "dry_multiplier"));
        needs
            .into_iter()
            .chain(dry)
            .filter(|&(is_set, _, is_on, _)| is_set && !is_on)
            .map(|(_, name, _, other)| {
                let message = format!("has no effect without `{other}`");
                SamplingWarning::new(name, message)
            })
            .collect()
    }
}

/// Drops the penalties that the user did not ask for, and says so.
fn drop_penalties(
    layers: &mut [(SettingSource, Settings)],
    warnings: &mut Vec<SamplingWarning>,
) {
    let Some(((_, user), others)) = layers.split_first_mut() else { return };
    let by_user = user.said();
    for (source, layer) in others {
        for &name in PENALTIES {
            let neutral = if name == "repetition_penalty" { 1.0 } else { 0.0 };
            let Some(value) = layer.take(name) else { continue };
            if value.as_f64() == Some(neutral)
                || by_user.iter().any(|(said, _)| *said == name)
            {
                continue;
            }
            let source = source.name();
            let message = format!(
                "{value} of the {source} is off under a grammar, which \
                 repeats itself by design; set it yourself to have it"
            );
            warnings.push(SamplingWarning::new(name, message));
        }
    }
}

fn check_mirostat(settings: &Settings) -> Result<(), PipelineError> {
    match settings.mirostat {
        None | Some(0..=2) => Ok(()),
        Some(given) => Err(PipelineError::OutOfRange {
            option: "mirostat",
            given: f64::from(given),
            range: "0 (off), 1 or 2",
        }),
    }
}

impl EffectiveSampling {
    /// Returns the settings as one JSON object: the order, and each setting
    /// with its value and who says so.
    pub fn to_json(&self) -> Value {
        let mut object = serde_json::Map::new();
        let order = self.options.order.to_string();
        object.insert("order".to_owned(), Value::String(order));
        for EffectiveSetting { name, value, source } in &self.settings {
            let source = source.name();
            let value =
                serde_json::json!({ "value": value, "source": source });
            object.insert((*name).to_owned(), value);
        }
        Value::Object(object)
    }
}

/// Writes the order and the settings on one line, with who says so unless it
/// is the user.
impl fmt::Display for EffectiveSampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {}", self.options.order)?;
        for EffectiveSetting { name, value, source } in &self.settings {
            write!(f, ", {name} {value}")?;
            if *source != SettingSource::User {
                write!(f, " ({})", source.name())?;
            }
        }
        Ok(())
    }
}
