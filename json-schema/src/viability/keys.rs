//! Which keys a member that is to come can have.
//!
//! The names that a formula mentions are tried one by one. All other keys
//! fall into classes by the patterns that they match, and keys of one class
//! are interchangeable, so one key of each class stands for them.

use maskwright_grammar_core::regular::{Language, Limits, Regex, Shortest};

use super::Viability;
use crate::formula::{FormulaId, Formulas, KeySet, KeySetId, Mentions};
use crate::parse::NameId;

/// Classes are told apart by this many sets at most.
const MAX_SETS: usize = 6;

/// The longest key that is made up.
const MAX_WORD: u64 = 1_000;

/// The keys to try, and whether these are all that matter.
#[derive(Debug)]
pub(super) struct Candidates {
    pub(super) names: Vec<NameId>,
    pub(super) complete: bool,
}

impl Viability {
    /// The keys that a formula tells apart, other than `used`.
    pub(super) fn candidates(
        &self,
        formulas: &mut Formulas,
        id: FormulaId,
        used: &[NameId],
    ) -> Candidates {
        let mut mentions = Mentions::default();
        formulas.mentions(id, &mut mentions);
        mentions.names.sort_unstable();
        mentions.names.dedup();
        mentions.sets.sort_unstable();
        mentions.sets.dedup();
        let mut names: Vec<NameId> = mentions
            .names
            .iter()
            .copied()
            .filter(|name| !used.contains(name))
            .collect();
        let mut taken = mentions.names;
        taken.extend_from_slice(used);
        let complete =
            self.fresh(formulas, &mentions.sets, &taken, &mut names);
        Candidates { names, complete }
    }

    /// Adds a key of each class that is not taken; false where some class
    /// could not be decided.
    fn fresh(
        &self,
        formulas: &mut Formulas,
        sets: &[KeySetId],
        taken: &[NameId],
        out: &mut Vec<NameId>,
    ) -> bool {
        if sets.is_empty() {
            out.push(plain_name(formulas, taken));
            return true;
        }
        if sets.len() > MAX_SETS {
            return false;
        }
        let texts: Vec<&str> = taken
            .iter()
            .map(|&name| formulas.pool().name_text(name))
            .collect();
        let free = Regex::literals(texts).not();
        let mut complete = true;
        let mut insides = Vec::with_capacity(sets.len());
        for &set in sets {
            let (regex, exact) = self.key_expression(formulas, set);
            complete &= exact;
            insides.push(regex);
        }
        for class in 0..1_u32 << sets.len() {
            let mut parts = vec![free.clone()];
            for (index, inside) in insides.iter().enumerate() {
                let inside = inside.clone();
                let is_in = class & (1 << index) != 0;
                parts.push(if is_in { inside } else { inside.not() });
            }
            match word(&Regex::intersect(&parts)) {
                Some(Some(text)) => {
                    out.push(formulas.pool_mut().name(&text));
                }
                Some(None) => {}
                None => complete = false,
            }
        }
        complete
    }

    /// The keys of a pattern or string set as an expression.
    pub(super) fn key_expression(
        &self,
        formulas: &mut Formulas,
        set: KeySetId,
    ) -> (Regex, bool) {
        match formulas.key_set(set).clone() {
            KeySet::Any => (Regex::any_string(), true),
            KeySet::Pattern(pattern) => {
                let pattern = formulas.pool().pattern_value(pattern);
                (pattern.regex().clone(), true)
            }
            KeySet::Satisfying(typed) => self.expression(formulas, typed),
            KeySet::Names(names) => {
                let texts =
                    names.iter().map(|&name| formulas.pool().name_text(name));
                (Regex::literals(texts), true)
            }
            KeySet::NoneOf(sets) => {
                let mut exact = true;
                let mut parts = Vec::with_capacity(sets.len());
                for &set in &*sets {
                    let (regex, is_exact) = self.key_expression(formulas, set);
                    exact &= is_exact;
                    parts.push(regex.not());
                }
                (Regex::intersect(&parts), exact)
            }
        }
    }
}

/// A key that is not taken, where every key will do.
fn plain_name(formulas: &mut Formulas, taken: &[NameId]) -> NameId {
    let mut text = String::from("a");
    loop {
        let name = formulas.pool_mut().name(&text);
        if !taken.contains(&name) {
            return name;
        }
        text.push('a');
    }
}

/// A shortest word: `Some(None)` where there is none, `None` where that is
/// not known.
#[allow(clippy::option_option, reason = "found, proved absent, undecided")]
fn word(regex: &Regex) -> Option<Option<String>> {
    let language = Language::new(regex, Limits::new()).ok()?;
    let mut state = language.start();
    let mut left = match language.shortest(state) {
        Shortest::Never => return Some(None),
        Shortest::Exactly(length) if length <= MAX_WORD => length,
        _ => return None,
    };
    let mut text = String::new();
    while left > 0 {
        left -= 1;
        let row = language.transitions(state).ok()?;
        let next = row.iter().find(|range| {
            language.shortest(range.next) == Shortest::Exactly(left)
        })?;
        text.push(char::from_u32(next.first)?);
        state = next.next;
    }
    Some(Some(text))
}
