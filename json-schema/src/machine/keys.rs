//! The keys of an object: declared names, patterns, and all others.
//!
//! Where a site's other keys are free, a state inside a key is the free key
//! of the prelude with exceptions: those bytes that a declared name has in
//! common with what was read. Once no name is left the frame *is* in the
//! prelude, and its masks are shared.

use std::sync::Arc;

use maskwright_grammar_core::{
    automaton::{
        Automaton, AutomatonError, Frame, Hint, Outcome, Row, RowBuilder,
        StateId, Step, Watch,
    },
    regular::{Language, Regex},
};
use smallvec::SmallVec;

use super::{
    Machine, StateKey,
    algebra::language,
    classes::{KeyClasses, holding},
    distinct::watch_language,
    guard,
    names::NameRange,
    objects::ObjectSite,
    prelude::{OTHER_KEY, Window},
    strings::{FREE, Tuple, TupleOf, accepting},
    text::{Edge, Speller, Spelling},
};

/// Which keys may come at one place of an object.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Viable {
    /// The declared names, by position.
    pub(crate) names: SmallVec<[u64; 2]>,
    /// Keys without a declared name: one bit a class of the site's patterns
    /// (a site without patterns has one class).
    pub(crate) others: SmallVec<[u64; 1]>,
}

impl Viable {
    pub(crate) fn is_empty(&self) -> bool {
        self.names.iter().chain(&self.others).all(|&word| word == 0)
    }

    pub(crate) fn has_others(&self) -> bool {
        self.others.iter().any(|&word| word != 0)
    }

    pub(crate) fn has_name(&self, position: u32) -> bool {
        bit(&self.names, position)
    }

    /// Whether any name of `lo..hi` may come.
    fn has_name_in(&self, lo: u32, hi: u32) -> bool {
        (lo..hi).any(|position| self.has_name(position))
    }
}

/// Returns a bit of a bitset.
pub(crate) fn bit(words: &[u64], index: u32) -> bool {
    words
        .get(index as usize / 64)
        .is_some_and(|word| word >> (index % 64) & 1 != 0)
}

/// Sets a bit of a bitset, which grows as far as needed.
pub(crate) fn set_bit<const N: usize>(
    words: &mut SmallVec<[u64; N]>,
    index: u32,
) {
    let word = index as usize / 64;
    if words.len() <= word {
        words.resize(word + 1, 0);
    }
    words[word] |= 1 << (index % 64);
}

/// Clears a bit of a bitset.
pub(crate) fn clear_bit(words: &mut [u64], index: u32) {
    if let Some(word) = words.get_mut(index as usize / 64) {
        *word &= !(1 << (index % 64));
    }
}

/// The outcome of a key that is the declared name at `position`.
pub(crate) fn name_outcome(position: u32) -> Outcome {
    Outcome(position + 1)
}

/// The outcome of a key without a declared name, of a class.
pub(crate) fn other_outcome(class: u32) -> Outcome {
    Outcome(Outcome::GUARDED_BIT | class)
}

/// A key, as far as an object tells keys apart.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum KeyClass {
    /// The declared name at a position.
    Name(u32),
    /// Any other key, by its class among those of the site.
    Other(u32),
}

impl KeyClass {
    /// The key that a frame which read it returned.
    pub(crate) fn of_outcome(outcome: Outcome) -> KeyClass {
        if outcome.is_guarded() {
            KeyClass::Other(outcome.0 & !Outcome::GUARDED_BIT)
        } else {
            KeyClass::Name(outcome.0.saturating_sub(1))
        }
    }
}

impl ObjectSite {
    /// The keys of `viable`, as a language.
    fn key_need(&self, viable: &Viable) -> Regex {
        let names = 0..self.names.len();
        let (allowed, refused): (Vec<u32>, Vec<u32>) =
            names.partition(|&name| viable.has_name(name));
        let literals = |names: &[u32]| {
            let texts: Vec<String> =
                names.iter().map(|&name| self.names.text(name)).collect();
            Regex::literals(&texts)
        };
        let is_open = |class| bit(&viable.others, class);
        if self.existing_classes().all(is_open) {
            return literals(&refused).not();
        }
        let declared = literals(&allowed).or(&literals(&refused));
        let others = self.keys_of(is_open).and(&declared.not());
        literals(&allowed).or(&others)
    }

    fn existing_classes(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.n_classes()).filter(|&class| self.class_exists(class))
    }

    /// The keys of open classes, as a language; beside them it may have
    /// declared names.
    pub(crate) fn keys_of(&self, is_open: impl Fn(u32) -> bool) -> Regex {
        let (open, closed): (Vec<u32>, Vec<u32>) =
            self.existing_classes().partition(|&class| is_open(class));
        let all = |classes: &[u32]| {
            let each = classes.iter().map(|&class| self.keys_of_class(class));
            Regex::alternate(&each.collect::<Vec<_>>())
        };
        // Each class is as long as all patterns: few of them are best. Of
        // those that may overlap, only the open ones count.
        if closed.len() < open.len() && self.leasts.is_empty() {
            all(&closed).not()
        } else {
            all(&open)
        }
    }

    /// The keys that may be of a class; beside them it may have declared
    /// names.
    pub(crate) fn keys_of_class(&self, class: u32) -> Regex {
        let holding = self.table.holding(class);
        let parts: Vec<Regex> = (0..)
            .zip(&self.patterns)
            .map(|(index, pattern)| {
                if bit(holding, index) {
                    pattern.clone()
                } else {
                    self.leasts.least(index as usize, pattern).not()
                }
            })
            .collect();
        Regex::intersect(&parts)
    }
}

impl Machine {
    /// The state after the opening quote of a key.
    pub(crate) fn key_start(
        &self,
        site: u32,
        viable: u32,
    ) -> Result<StateId, AutomatonError> {
        let object = self.object_site(site)?;
        if !object.patterns.is_empty() {
            return self.pattern_key_start(site, viable);
        }
        let all = Spelling::Between(object.names.all());
        self.name_state(site, viable, all)
    }

    /// The state inside a key of a site without patterns.
    fn name_state(
        &self,
        site: u32,
        viable: u32,
        spelling: Spelling<NameRange>,
    ) -> Result<StateId, AutomatonError> {
        match spelling.if_free(NameRange::is_none) {
            Some(free) => self.prelude.key_at(free),
            None => {
                self.table.intern(StateKey::Name { site, viable, spelling })
            }
        }
    }

    pub(crate) fn build_name(
        &self,
        site: u32,
        viable: u32,
        spelling: Spelling<NameRange>,
    ) -> Result<Row, AutomatonError> {
        let names = &self.object_site(site)?.names;
        let allowed = self.parts.viables.get(viable);
        let mut edges = Vec::new();
        if let Some(range) = spelling.from() {
            names.edges(range, &mut edges);
            if allowed.has_others() {
                if spelling == Spelling::Between(range)
                    && let Some(row) =
                        self.build_open_name((site, viable), range, &edges)?
                {
                    return Ok(row);
                }
                edges = with_gaps(&edges);
            } else {
                edges.retain(|edge| {
                    allowed.has_name_in(edge.to.lo, edge.to.hi)
                });
            }
        }
        let close = match spelling {
            Spelling::Between(range) => match names.whole(range) {
                Some(name) => {
                    allowed.has_name(name).then(|| name_outcome(name))
                }
                None => allowed.has_others().then_some(OTHER_KEY),
            },
            _ => None,
        };
        let mut row = RowBuilder::new();
        Speller {
            edges: &edges,
            escapes: self.policy.escapes,
            close,
            intern: &mut |next| self.name_state(site, viable, next),
        }
        .fill(spelling, &mut row)?;
        if !allowed.has_others() {
            if let Spelling::Between(range) = spelling
                && let Some(hint) =
                    self.words_hint(site, viable, range, None)?
            {
                row.hint(hint);
            }
            return Ok(row.build());
        }
        row.registers();
        let free = self.prelude.key_at(spelling.map(|_| ()))?;
        self.except(row, free)
    }

    /// The state after the opening quote of a key of a site with patterns.
    fn pattern_key_start(
        &self,
        site: u32,
        viable: u32,
    ) -> Result<StateId, AutomatonError> {
        let object = self.object_site(site)?;
        let languages = self.key_languages(site, viable)?;
        let of = match object.key_classes {
            Some(_) => TupleOf::Patterns { site },
            None => TupleOf::Key { site, viable },
        };
        let tuple = Tuple {
            of,
            names: object.names.all(),
            left: Window::FREE,
            states: languages
                .iter()
                .map(|language| Some(language.start()))
                .collect(),
        };
        let tuple = self.tuple(tuple, languages)?;
        self.pattern_state(site, viable, Spelling::Between(tuple))
    }

    fn pattern_state(
        &self,
        site: u32,
        viable: u32,
        spelling: Spelling<u32>,
    ) -> Result<StateId, AutomatonError> {
        match spelling.if_free(|tuple| tuple == FREE) {
            Some(free) => self.prelude.key_at(free),
            None => {
                self.table.intern(StateKey::Pattern { site, viable, spelling })
            }
        }
    }

    /// The languages of a key: its patterns; before them the keys that may
    /// come, where the patterns alone do not tell.
    fn key_languages(
        &self,
        site: u32,
        viable: u32,
    ) -> Result<&[Language], AutomatonError> {
        let object = self.object_site(site)?;
        if let Some(classes) = &object.key_classes {
            return Ok(&classes.languages);
        }
        let id = self.parts.keys.intern((site, viable))?;
        let languages = self.parts.keys.derived(id, |_| {
            let need = object.key_need(self.parts.viables.get(viable));
            let tests = object.patterns.iter().chain(object.leasts.regexes());
            std::iter::once(&need).chain(tests).map(language).collect()
        })?;
        Ok(languages)
    }

    pub(crate) fn build_pattern(
        &self,
        site: u32,
        viable: u32,
        spelling: Spelling<u32>,
    ) -> Result<Row, AutomatonError> {
        let object = self.object_site(site)?;
        let languages = self.key_languages(site, viable)?;
        let edges = match spelling.from() {
            Some(tuple) => self.tuple_edges(tuple, languages)?,
            None => &[],
        };
        let close = match spelling {
            Spelling::Between(tuple) => {
                self.key_close(site, viable, tuple, languages)?
            }
            _ => None,
        };
        let allowed = self.parts.viables.get(viable);
        let alive: Vec<Edge<u32>>;
        let edges = match &object.key_classes {
            Some(classes) => {
                let is_alive = |edge: &&Edge<u32>| {
                    self.may_become(edge.to, allowed, classes)
                };
                alive = edges.iter().filter(is_alive).copied().collect();
                &alive
            }
            None => edges,
        };
        let mut row = RowBuilder::new();
        Speller {
            edges,
            escapes: self.policy.escapes,
            close,
            intern: &mut |next| self.pattern_state(site, viable, next),
        }
        .fill(spelling, &mut row)?;
        row.registers();
        if let Spelling::Between(tuple) = spelling {
            let least = match &object.key_classes {
                Some(classes) => {
                    let Tuple { states, .. } = self.parts.tuples.get(tuple);
                    let never_dies =
                        classes.always_lead_to(states, &allowed.others);
                    never_dies.then_some(0)
                }
                None if object.leasts.is_empty() => {
                    self.never_dies(tuple, languages)
                }
                None => None,
            };
            if let Some(least) = least {
                let base = self.prelude.key_at(Spelling::Between(()))?;
                row.hint(Hint::Ends { base, least });
            }
        }
        Ok(row.build())
    }

    /// Whether a key that may come begins with what was read up to `tuple`.
    fn may_become(
        &self,
        tuple: u32,
        allowed: &Viable,
        classes: &KeyClasses,
    ) -> bool {
        if tuple == FREE {
            return bit(&allowed.others, 0);
        }
        let Tuple { names, states, .. } = self.parts.tuples.get(tuple);
        let mut left = classes.of(states).iter().zip(&allowed.others);
        left.any(|(left, open)| left & open != 0)
            || allowed.has_name_in(names.lo, names.hi)
    }

    fn key_close(
        &self,
        site: u32,
        viable: u32,
        tuple: u32,
        languages: &[Language],
    ) -> Result<Option<Outcome>, AutomatonError> {
        let allowed = self.parts.viables.get(viable);
        let object = self.object_site(site)?;
        let Tuple { names, states, .. } = self.parts.tuples.get(tuple);
        if let Some(name) = object.names.whole(*names) {
            return Ok(allowed.has_name(name).then(|| name_outcome(name)));
        }
        let class = match (&object.key_classes, &**states, languages) {
            (Some(classes), ..) => classes.class(states),
            (None, [_, states @ ..], [_, languages @ ..]) => {
                if !object.leasts.is_empty() {
                    let accepting = accepting(states, languages);
                    return self.key_outcome(site, viable, &accepting);
                }
                object.table.class(&holding(languages, states))
            }
            _ => None,
        };
        let class = class.filter(|&class| bit(&allowed.others, class));
        Ok(class.map(other_outcome))
    }

    /// Says whether the key that `frame` reads may yet become a used one, or
    /// can become nothing else.
    pub(crate) fn watch_pattern(
        &self,
        frame: &Frame,
        site: u32,
        viable: u32,
        spelling: Spelling<u32>,
    ) -> Watch {
        let watch = guard::watch_key(frame);
        let object = self.object_site(site);
        if object.is_ok_and(|object| !object.leasts.is_empty()) {
            return Watch::AtEnd;
        }
        if watch == Watch::Clear {
            return watch;
        }
        // Of a class without end, some key was never used.
        let patterns = spelling.from().is_some_and(|tuple| {
            let of = self.parts.tuples.get(tuple).of;
            matches!(of, TupleOf::Patterns { .. })
        });
        if patterns {
            return watch;
        }
        let Spelling::Between(tuple) = spelling else {
            return self.watch_within(frame);
        };
        let Ok([need, ..]) = self.key_languages(site, viable) else {
            return watch;
        };
        match self.parts.tuples.get(tuple).states[0] {
            Some(state) => watch_language(frame, need, state, Window::FREE),
            None => watch,
        }
    }

    /// Builds a row that is like `base` but for exceptions.
    pub(crate) fn except(
        &self,
        row: RowBuilder,
        base: StateId,
    ) -> Result<Row, AutomatonError> {
        let mut row = row.build();
        let bytes = row.differences(self.row(base)?).into();
        row.hint = Hint::Except { base, bytes };
        Ok(row)
    }

    /// The row between two code points of a key, where undeclared keys may
    /// come: that of the free key but for the names. `None` if a name goes
    /// on with a code point that is not one byte.
    fn build_open_name(
        &self,
        (site, viable): (u32, u32),
        range: NameRange,
        edges: &[Edge<NameRange>],
    ) -> Result<Option<Row>, AutomatonError> {
        let base = self.prelude.key_at(Spelling::Between(()))?;
        let mut changes: SmallVec<[(u8, Option<Step>); 8]> = SmallVec::new();
        let names = &self.object_site(site)?.names;
        if let Some(name) = names.whole(range) {
            let allowed = self.parts.viables.get(viable).has_name(name);
            let close = allowed.then(|| Step::Return(name_outcome(name)));
            changes.push((b'"', close));
        }
        let stay = |spelling| {
            self.name_state(site, viable, spelling)
                .map(|state| Some(Step::Stay(state)))
        };
        for edge in edges {
            let Some(byte) = u8::try_from(edge.lo).ok().filter(
                |byte| matches!(byte, 0x20..0x7F if !b"\"\\".contains(byte)),
            ) else {
                return Ok(None);
            };
            changes.push((byte, stay(Spelling::Between(edge.to))?));
        }
        if !edges.is_empty() {
            changes.push((b'\\', stay(Spelling::Escape(range))?));
        }
        changes.sort_unstable_by_key(|change| change.0);
        let mut row = self.row(base)?.with_steps(&changes).build();
        let hint = self.words_hint(site, viable, range, Some(base))?;
        row.hint = hint.unwrap_or_else(|| {
            let bytes = changes.iter().map(|change| change.0).collect();
            Hint::Except { base, bytes }
        });
        Ok(Some(row))
    }

    /// What a row between two code points of a key says of the names.
    fn words_hint(
        &self,
        site: u32,
        viable: u32,
        range: NameRange,
        base: Option<StateId>,
    ) -> Result<Option<Hint>, AutomatonError> {
        let ObjectSite { names, spelled, .. } = self.object_site(site)?;
        let Some(words) = spelled else { return Ok(None) };
        let allowed = self.parts.viables.derived(viable, |viable| {
            let mut bits = viable.names.to_vec();
            bits.resize(names.len().div_ceil(64) as usize, 0);
            Ok(bits.into())
        })?;
        Ok(Some(Hint::Words {
            words: Arc::clone(words),
            lo: range.lo,
            hi: range.hi,
            read: names.n_bytes(range),
            allowed: Arc::clone(allowed),
            base,
        }))
    }
}

/// Adds edges to no name for all other code points.
pub(crate) fn with_gaps(edges: &[Edge<NameRange>]) -> Vec<Edge<NameRange>> {
    let mut all = Vec::with_capacity(2 * edges.len() + 1);
    let mut next = 0;
    let to = NameRange::NONE;
    for edge in edges {
        if edge.lo > next {
            all.push(Edge { lo: next, hi: edge.lo - 1, to });
        }
        all.push(*edge);
        next = edge.hi + 1;
    }
    all.push(Edge { lo: next, hi: 0x10_FFFF, to });
    all.retain(|edge| edge.lo <= edge.hi);
    all
}
