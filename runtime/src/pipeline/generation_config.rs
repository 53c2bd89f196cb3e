//! What a model's `generation_config.json` says about sampling.

use serde_json::Value;

use super::{options::SamplingWarning, settings::Settings};

/// What a model comes with: settings that hold where the user says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelDefaults {
    /// The settings.
    pub settings: Settings,
    /// What else it says about decoding, which is not applied.
    pub warnings: Vec<SamplingWarning>,
}

/// Keys that change what is decoded and are no settings here, with the number
/// that turns them off; null and false do in any case.
const NOT_APPLIED: &[(&str, f64)] = &[
    ("num_beams", 1.0),
    ("num_beam_groups", 1.0),
    ("num_return_sequences", 1.0),
    ("diversity_penalty", 0.0),
    ("length_penalty", 1.0),
    ("early_stopping", 0.0),
    ("encoder_repetition_penalty", 1.0),
    ("encoder_no_repeat_ngram_size", 0.0),
    ("guidance_scale", 1.0),
    ("top_h", f64::NAN),
    ("penalty_alpha", 0.0),
    ("watermarking_config", f64::NAN),
    ("force_words_ids", f64::NAN),
    ("constraints", f64::NAN),
    ("stop_strings", f64::NAN),
    ("max_new_tokens", f64::NAN),
    ("max_time", f64::NAN),
];

/// Keys without which nothing is said about chance.
const OF_CHANCE: &[&str] =
    &["temperature", "top_k", "top_p", "min_p", "typical_p"];

impl ModelDefaults {
    /// Reads a `generation_config.json`. The end tokens in it are the
    /// vocabulary's business.
    ///
    /// Where it names parameters of sampling and does not say `do_sample`,
    /// nothing is left to chance, as in Hugging Face transformers.
    ///
    /// # Errors
    ///
    /// Fails when the text is not a JSON object. A value that cannot be read
    /// is a warning.
    pub fn from_generation_config(
        text: &str,
    ) -> Result<ModelDefaults, serde_json::Error> {
        let object: serde_json::Map<String, Value> =
            serde_json::from_str(text)?;
        let mut reader = Reader { object, warnings: Vec::new() };
        let mut settings = Settings {
            temperature: reader.get("temperature"),
            do_sample: reader.get("do_sample"),
            top_k: reader.get("top_k"),
            top_p: reader.get("top_p"),
            min_p: reader.get("min_p"),
            typical_p: reader.get("typical_p"),
            epsilon_cutoff: reader.get("epsilon_cutoff"),
            eta_cutoff: reader.get("eta_cutoff"),
            repetition_penalty: reader.get("repetition_penalty"),
            no_repeat_ngram_size: reader.get("no_repeat_ngram_size"),
            sequence_bias: reader.get("sequence_bias"),
            bad_words_ids: reader.get("bad_words_ids"),
            suppress_tokens: reader.get("suppress_tokens"),
            begin_suppress_tokens: reader.get("begin_suppress_tokens"),
            min_new_tokens: reader.get("min_new_tokens"),
            min_length: reader.get("min_length"),
            exponential_decay_length_penalty: reader
                .get("exponential_decay_length_penalty"),
            forced_begin_token: reader.get("forced_bos_token_id"),
            ..Settings::default()
        };
        settings.min_length = settings.min_length.filter(|&n| n > 0);
        let speaks_of_chance =
            OF_CHANCE.iter().any(|&key| reader.object.contains_key(key));
        if speaks_of_chance && settings.do_sample.is_none() {
            settings.do_sample = Some(false);
        }
        for &(key, neutral) in NOT_APPLIED {
            let Some(value) = reader.object.get(key) else { continue };
            let is_off = value.is_null()
                || *value == Value::Bool(false)
                || value
                    .as_f64()
                    .is_some_and(|it| (it - neutral).abs() < 1e-9);
            if !is_off {
                let message = format!("{value} of the model is not applied");
                reader.warnings.push(SamplingWarning::new(key, message));
            }
        }
        Ok(ModelDefaults { settings, warnings: reader.warnings })
    }
}

struct Reader {
    object: serde_json::Map<String, Value>,
    warnings: Vec<SamplingWarning>,
}

impl Reader {
    /// Returns a value, nothing where it is absent, null or not of the type.
    fn get<T: serde::de::DeserializeOwned>(
        &mut self,
        key: &'static str,
    ) -> Option<T> {
        let value = self.object.get(key).filter(|value| !value.is_null())?;
        match serde_json::from_value(value.clone()) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = format!(
                    "{value} of the model cannot be read and is not applied: \
                     {error}"
                );
                self.warnings.push(SamplingWarning::new(key, message));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_of_qwen_is_read() {
        let text = r#"{
            "bos_token_id": 151643, "pad_token_id": 151643,
            "do_sample": true, "eos_token_id": [151645, 151643],
            "repetition_penalty": 1.1, "temperature": 0.7, "top_p": 0.8,
            "top_k": 20, "transformers_version": "4.37.0"
        }"#;
        let defaults =
            ModelDefaults::from_generation_config(text).expect("JSON");
        let expected = Settings {
            do_sample: Some(true),
            repetition_penalty: Some(1.1),
            temperature: Some(0.7),
            top_p: Some(0.8),
            top_k: Some(20),
            ..Settings::default()
        };
        assert_eq!(defaults.settings, expected);
        assert_eq!(defaults.warnings, []);
    }

    #[test]
    fn what_is_not_applied_is_said() {
        let text = r#"{"num_beams": 4, "length_penalty": 1, "top_p": "high",
            "eos_token_id": 2, "guidance_scale": null}"#;
        let defaults =
            ModelDefaults::from_generation_config(text).expect("JSON");
        let warned: Vec<&str> =
            defaults.warnings.iter().map(|one| one.option).collect();
        assert_eq!(warned, ["top_p", "num_beams"]);
        // A parameter of sampling without `do_sample` changes nothing.
        assert_eq!(defaults.settings.do_sample, Some(false));
        let silent = ModelDefaults::from_generation_config("{}");
        assert_eq!(silent.expect("JSON"), ModelDefaults::default());
        assert!(ModelDefaults::from_generation_config("[]").is_err());
    }
}
