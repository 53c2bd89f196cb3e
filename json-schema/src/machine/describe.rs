//! What people read about a state: what is being read in it.

use maskwright_grammar_core::automaton::{Automaton, StateId};

use super::{Machine, Place, StateKey, keys::KeyClass, objects::Pending};

impl Machine {
    /// Describes a state for people.
    pub(crate) fn describe_state(&self, state: StateId) -> String {
        if state.is_shared() {
            return self.prelude.describe(state);
        }
        match self.table.key(state) {
            StateKey::Root(_) => "at the start of the value".to_owned(),
            StateKey::RootEnd => "the text".to_owned(),
            StateKey::Object { place: Place::Open, .. } => {
                "after the opening brace of an object".to_owned()
            }
            StateKey::Object { place: Place::After, .. } => {
                "after a member".to_owned()
            }
            StateKey::Object { place: Place::Before, .. } => {
                "before a key".to_owned()
            }
            StateKey::Member { pending, place } => {
                let key = self.describe_key(*pending);
                match place {
                    Place::Before => format!("before the value of {key}"),
                    Place::Open | Place::After => format!("after {key}"),
                }
            }
            StateKey::Array { place: Place::Open, .. } => {
                "after the opening bracket of an array".to_owned()
            }
            StateKey::Array { place: Place::After, .. } => {
                "after an item".to_owned()
            }
            StateKey::Array { place: Place::Before, .. } => {
                "before an item".to_owned()
            }
            StateKey::WaitKey { .. } => "a key".to_owned(),
            StateKey::WaitValue { pending, .. } => {
                format!("the value of {}", self.describe_key(*pending))
            }
            StateKey::WaitItem { .. } => "an item".to_owned(),
            StateKey::Name { .. } | StateKey::Pattern { .. } => {
                "inside a key".to_owned()
            }
            StateKey::Listed { .. }
            | StateKey::String { .. }
            | StateKey::Window { .. } => "inside a string".to_owned(),
            StateKey::Number { .. } => "inside a number".to_owned(),
            StateKey::Gap { core, .. } | StateKey::Space(core) => {
                self.describe(*core)
            }
            StateKey::Recorded(state) => self.describe(state.inner),
            StateKey::Indented(state) => self.describe(state.inner),
            StateKey::Ending(_) => "before the end".to_owned(),
        }
    }

    fn describe_key(&self, pending: u32) -> String {
        let &Pending { object, key } = self.parts.pendings.get(pending);
        let site = self.object_site(self.parts.objects.get(object).site);
        match (key, site) {
            (KeyClass::Name(name), Ok(site)) => {
                format!("{:?}", site.names.text(name))
            }
            _ => "another key".to_owned(),
        }
    }
}
