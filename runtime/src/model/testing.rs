//! Models for tests: a tiny random one on disk, and the default one if the
//! cache has it.

pub(crate) mod reference;
pub(crate) mod tiny;

use std::sync::{Arc, OnceLock};

use super::download::cached_default_model;
use super::{LoadedModel, load};
pub(crate) use tiny::TinyModel;

/// Loads the default model once, if the cache has it.
///
/// Where it is absent, the test that asks says so and passes, unless
/// `MASKWRIGHT_REQUIRE_MODEL` is set, as it is where the model has been
/// fetched beforehand.
pub(crate) fn default_model() -> Option<Arc<LoadedModel>> {
    static MODEL: OnceLock<Option<Arc<LoadedModel>>> = OnceLock::new();
    let model = MODEL.get_or_init(|| {
        let path = cached_default_model().expect("the cache is readable")?;
        Some(Arc::new(load(&path).expect("the model loads")))
    });
    if model.is_none() {
        let is_required = std::env::var_os("MASKWRIGHT_REQUIRE_MODEL");
        assert!(is_required.is_none(), "the default model is not cached");
        say("skipped: the default model is not in the cache");
    }
    model.clone()
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn say(text: &str) {
    eprintln!("{text}");
}
