//! What an engine has to offer to be measured.
//!
//! An engine that lives in this process implements [`Engine`] and
//! [`Sequence`]; one that does not can be measured by its own runner and
//! joined as a column through `measure::Outcome`, which is all that the
//! tables read.

mod llguidance;
mod maskwright;

use std::path::Path;
use std::time::Instant;

use ::maskwright::mask::MaskStats;

use crate::measure::Pass;
use crate::options::Options;
use crate::tokenizer::Shape;

pub use self::{
    llguidance::{LlGuidance, environment},
    maskwright::{Maskwright, schema_options, vocabulary},
};

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

/// The engines by the names of `--engine`: first the peer, then ours.
pub const NAMES: [&str; 2] = ["llguidance", "maskwright"];

/// An engine with its name.
pub type Named = (&'static str, Box<dyn Engine>);

/// Loads the engines that the command line wants.
///
/// # Errors
///
/// What an engine said of the tokenizer's file.
pub fn load_wanted(
    options: &Options,
    path: &Path,
    shape: Shape,
) -> Result<Vec<Named>, String> {
    let wanted = NAMES.into_iter().filter(|name| options.wants(name));
    wanted.map(|name| Ok((name, load(name, path, shape)?))).collect()
}

/// Loads the engine of a name.
///
/// # Errors
///
/// What the engine said of the tokenizer's file.
pub fn load(
    name: &str,
    path: &Path,
    shape: Shape,
) -> Result<Box<dyn Engine>, String> {
    let start = Instant::now();
    let engine: Box<dyn Engine> = match name {
        "maskwright" => Box::new(Maskwright::load(path, shape)?),
        "llguidance" => Box::new(LlGuidance::load(path, shape)?),
        _ => return Err(format!("no engine is named {name}")),
    };
    let time = start.elapsed().as_millis();
    eprintln!("{}: vocabulary loaded in {time} ms", engine.name());
    Ok(engine)
}

/// A grammar engine with its vocabulary loaded.
pub trait Engine {
    /// The name for the tables.
    fn name(&self) -> &'static str;

    /// The pass that the main columns quote: what a second request of a user
    /// of this engine finds.
    fn main_pass(&self) -> Pass;

    /// Gets ready for the next [`Engine::open`], outside the clock.
    fn prepare(&self) {}

    /// From a source's text to a sequence ready for its first mask.
    ///
    /// # Errors
    ///
    /// The engine's own message where it refuses the schema.
    fn open(&self, schema: &str) -> Result<Box<dyn Sequence>, String>;
}

/// A grammar from which any number of outputs can start.
pub trait Prototype {
    /// A new sequence: one that knows nothing of what another one has built,
    /// or, from a prototype that [`Prototype::share`] made, one that knows
    /// what the others of that prototype have built. Called outside the
    /// clock.
    ///
    /// # Errors
    ///
    /// As for [`Engine::open`].
    fn start(&self) -> Result<Box<dyn Sequence>, String>;

    /// A prototype whose sequences share what they build, as far as the
    /// engine lets its users do so. Nothing is built yet. Called outside the
    /// clock.
    ///
    /// # Errors
    ///
    /// As for [`Engine::open`].
    fn share(&self) -> Result<Box<dyn Prototype>, String>;
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

    /// Makes the mask where the engine itself keeps it, without a copy.
    ///
    /// # Errors
    ///
    /// As for [`Sequence::mask_into`].
    fn mask_by_reference(&mut self) -> Result<(), String>;

    /// Drops the mask that was made last, where the engine keeps it to return
    /// it again: the next one is made.
    fn forget_mask(&mut self) {}

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
