//! Which states were decided, and in which something was assumed.
//!
//! A search that its budget ends is read as "yes": what follows then may turn
//! out a dead end, and the states that were made of it say so.

use maskwright_grammar_core::automaton::{AutomatonError, StateId};

use super::{Machine, StateKey, distinct::Recorded, indent::Indented};
use crate::Stats;

impl Machine {
    /// How many states there are, and how many of them are not exact.
    pub(crate) fn stats(&self) -> Stats {
        let n_states = self.table.len();
        let ids = (0..n_states).filter_map(|index| u32::try_from(index).ok());
        let n_inexact = ids
            .filter(|&id| !self.is_exact(StateId(id)).unwrap_or(false))
            .count();
        Stats { n_states, n_inexact }
    }

    /// Whether what a state allows was decided exactly.
    pub(crate) fn is_exact(
        &self,
        state: StateId,
    ) -> Result<bool, AutomatonError> {
        if state.is_shared() {
            return Ok(true);
        }
        Ok(match *self.table.key(state) {
            StateKey::Gap { core, .. } | StateKey::Space(core) => {
                return self.is_exact(core);
            }
            StateKey::Recorded(Recorded { inner, .. })
            | StateKey::Indented(Indented { inner, .. }) => {
                return self.is_exact(inner);
            }
            StateKey::Root(question) => self.is_answered(question)?,
            StateKey::Object { object, .. } | StateKey::WaitKey { object } => {
                self.object_info(object)?.exact
            }
            StateKey::Member { pending, .. }
            | StateKey::WaitValue { pending, .. } => {
                let info = self.pending_info(pending)?;
                info.exact && self.is_answered(info.question)?
            }
            StateKey::Array { array, .. }
            | StateKey::WaitItem { array, .. } => {
                let info = self.array_info(array)?;
                let question = info.question.filter(|_| info.exact);
                match question {
                    Some(question) => self.is_answered(question)?,
                    None => info.exact,
                }
            }
            StateKey::Number { spec, .. } => {
                self.number_spec(spec)?.cells().is_exact()
            }
            StateKey::String { .. } => self.is_sure(self.table.key(state))?,
            StateKey::Pattern { site, .. } => {
                self.object_site(site)?.leasts.is_empty()
            }
            // Nothing is read in it.
            StateKey::Ending(_)
            | StateKey::Name { .. }
            | StateKey::Listed { .. }
            | StateKey::Window { .. }
            | StateKey::RootEnd => true,
        })
    }
}
