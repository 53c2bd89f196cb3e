//! The rotary embedding that a `config.json` describes.

use super::keys::Keys;
use super::{narrow, refuse};
use crate::model::error::ModelError;
use crate::model::rope::{Pairing, Rope, Scaling, longrope_magnitude};

/// The context lengths that scaling depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Positions {
    /// What the model was made for.
    pub(super) trained: usize,
    /// What it was made for before its context was stretched.
    pub(super) original: Option<usize>,
    /// What is asked for.
    pub(super) asked: Option<usize>,
}

impl Positions {
    /// Returns the length of the context whose scaling has one set of factors
    /// for short and one for long contexts.
    ///
    /// The factors are part of every key in the cache, so they cannot change
    /// while a sequence grows. Where nothing is asked for, the short ones are
    /// taken, with which the model was trained first.
    pub(super) fn of_longrope(self, original: usize) -> usize {
        self.asked.unwrap_or(original.min(self.trained))
    }
}

/// A rotary embedding, with the context to which its factors belong if they
/// do to one.
pub(super) type RopeFor = (Rope, Option<usize>);

/// Reads `rope_scaling`, or what newer files call `rope_parameters`.
pub(super) fn read(
    mut keys: Keys,
    base: f64,
    n_dims: usize,
    positions: Positions,
    unknown: &mut Vec<String>,
) -> Result<RopeFor, ModelError> {
    let base = keys.float("rope_theta")?.unwrap_or(base);
    let mut rope = Rope {
        base,
        n_dims,
        pairing: Pairing::Halves,
        scaling: Scaling::None,
        magnitude: 1.0,
    };
    let mut context = None;
    let older = keys.text("type")?;
    let name = keys.text("rope_type")?.or(older);
    match name.as_deref() {
        // The dynamic kind changes what lies past the trained context.
        None | Some("default") => {}
        Some("dynamic") => {
            let _ = keys.float("factor")?;
        }
        Some("linear") => {
            let factor = keys.need_float("factor")?;
            rope.scaling = Scaling::Linear { factor };
        }
        Some("llama3") => {
            rope.scaling = Scaling::Llama3 {
                factor: keys.need_float("factor")?,
                low: keys.need_float("low_freq_factor")?,
                high: keys.need_float("high_freq_factor")?,
                original_length: original(&mut keys, positions)?,
            };
        }
        // What Phi-3 called so at first has the factors of the other.
        Some("yarn") if keys.has("short_factor") => {
            context = Some(longrope(&mut keys, positions, &mut rope)?);
        }
        Some("yarn") => yarn(&mut keys, positions, &mut rope)?,
        Some("longrope" | "su") => {
            context = Some(longrope(&mut keys, positions, &mut rope)?);
        }
        Some(other) => {
            return refuse(
                "rope_scaling.rope_type",
                other,
                "supported: default, linear, dynamic, llama3, yarn, longrope",
            );
        }
    }
    unknown.extend(keys.unknown());
    Ok((rope, context))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "context lengths are far below 2^52"
)]
fn original(keys: &mut Keys, positions: Positions) -> Result<f64, ModelError> {
    let own = keys.float("original_max_position_embeddings")?;
    let outer = positions.original.map(|length| length as f64);
    Ok(outer.or(own).unwrap_or(positions.trained as f64))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "context lengths are far below 2^52"
)]
fn yarn(
    keys: &mut Keys,
    positions: Positions,
    rope: &mut Rope,
) -> Result<(), ModelError> {
    let original_length = original(keys, positions)?;
    let stretched = positions.trained as f64 / original_length;
    let factor = keys.float("factor")?.unwrap_or(stretched);
    let magnitude = |weight: f64| {
        if factor > 1.0 { 0.1 * weight * factor.ln() + 1.0 } else { 1.0 }
    };
    let scale = keys.float("mscale")?.unwrap_or(0.0);
    let all = keys.float("mscale_all_dim")?.unwrap_or(0.0);
    let given = keys.float("attention_factor")?;
    rope.magnitude = narrow(given.unwrap_or_else(|| {
        if scale == 0.0 || all == 0.0 {
            magnitude(1.0)
        } else {
            magnitude(scale) / magnitude(all)
        }
    }));
    let is_truncated = !keys.has("truncate") || keys.flag("truncate")?;
    rope.scaling = Scaling::Yarn {
        factor,
        fast: keys.float("beta_fast")?.unwrap_or(32.0),
        slow: keys.float("beta_slow")?.unwrap_or(1.0),
        original_length,
        is_truncated,
    };
    Ok(())
}

/// Reads the factors for the context that is asked for, and returns it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "context lengths are far below 2^52, and casts saturate"
)]
fn longrope(
    keys: &mut Keys,
    positions: Positions,
    rope: &mut Rope,
) -> Result<usize, ModelError> {
    let original = original(keys, positions)?;
    let context = positions.of_longrope(original as usize);
    let short = keys.need_floats("short_factor")?;
    let long = keys.need_floats("long_factor")?;
    let factors = if context as f64 > original { long } else { short };
    rope.scaling = Scaling::Factors(factors.into_iter().map(narrow).collect());
    let stretched = positions.trained as f64 / original;
    let factor = keys.float("factor")?.unwrap_or(stretched);
    let given = keys.float("attention_factor")?;
    rope.magnitude =
        narrow(given.unwrap_or_else(|| longrope_magnitude(factor, original)));
    Ok(context)
}
