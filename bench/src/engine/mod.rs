//! What an engine has to offer to be measured.
//!
//! An engine that lives in this process implements [`Engine`] and
//! [`Sequence`]; one that does not can be measured by its own runner and
//! joined as a column through `measure::Outcome`, which is all that the
//! tables read.

mod llguidance;
mod maskwright;

use ::maskwright::mask::MaskStats;

pub use self::{llguidance::LlGuidance, maskwright::Maskwright};

/// What the texts are that an engine is given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// JSON Schemas.
    Schema,
    /// Context-free grammars in the engine's own notation.
    Grammar,
    /// Regular expressions that match whole texts.
    Regex,
}

/// A grammar engine with its vocabulary loaded.
pub trait Engine {
    /// The name for the tables.
    fn name(&self) -> &'static str;

    /// Gets ready for the next [`Engine::open`], outside the clock.
    fn prepare(&self) {}

    /// From a source's text to a sequence ready for its first mask.
    ///
    /// # Errors
    ///
    /// The engine's own message where it refuses the schema.
    fn open(&self, schema: &str) -> Result<Box<dyn Sequence>, String>;
}

/// A grammar from which any number of outputs can start cold.
pub trait Prototype {
    /// A sequence that knows nothing of what another one has built. Called
    /// outside the clock.
    ///
    /// # Errors
    ///
    /// As for [`Engine::open`].
    fn start(&self) -> Result<Box<dyn Sequence>, String>;
}

/// The state of one output.
pub trait Sequence {
    /// The grammar of this sequence, which has not been asked for a mask yet.
    /// Called outside the clock.
    fn prototype(&self) -> Box<dyn Prototype>;

    /// Writes the allowed tokens as bits, token 0 lowest, into `words`.
    ///
    /// # Errors
    ///
    /// The engine's own message; the instance then counts as refused.
    fn mask_into(&mut self, words: &mut [u32]) -> Result<(), String>;

    /// Appends a token that the mask allowed.
    ///
    /// # Errors
    ///
    /// The engine's own message; the instance then counts as refused.
    fn accept(&mut self, token: u32) -> Result<(), String>;

    /// Whether the output may end here.
    fn is_accepting(&mut self) -> bool;

    /// The state in words, and why its mask cost what it did.
    fn describe(&self) -> String;

    /// What the last mask took, as far as the engine counts it.
    fn stats(&self) -> MaskStats {
        MaskStats::default()
    }
}
