//! Containers whose conditions are more than a table: formulas are derived.
//!
//! The frame keeps the residual of what it needs, then one residual a goal of
//! the frame below. A member or an item derives them all; what they leave to
//! say about the child becomes the child's question.

use std::sync::Arc;

use maskwright_grammar_core::automaton::AutomatonError;
use smallvec::SmallVec;

use super::{
    Machine,
    algebra::{Algebra, Typed, Value},
    canonical,
    distinct::Ends,
    keys::{KeyClass, Viable, bit, set_bit},
    needs::Container,
    objects::{Member, Object, ObjectSite, Seen},
    values::QuestionId,
};
use crate::{
    formula::{Form, FormulaId, Formulas, Key, MAX_LISTED},
    parse::{ConstantId, NameId, PatternId},
};

/// How many goals one value can be asked about.
const MAX_GOALS: usize = 64;

/// Residual formulas: the need, then the goals.
pub(crate) type Residuals = SmallVec<[Typed; 2]>;

/// A key of a class of an object site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassKey<'a> {
    /// The declared name.
    pub(crate) name: Option<NameId>,
    /// What tells other keys apart, sorted.
    pub(crate) tests: &'a [KeyTest],
    /// Which tests hold, bit by bit.
    pub(crate) holding: &'a [u64],
}

/// A condition on keys that are not declared.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum KeyTest {
    /// The key matches a pattern.
    Pattern(PatternId),
    /// The key satisfies a typed formula of strings.
    Satisfies(Typed),
}

impl KeyTest {
    /// The typed formula of strings that it asks for, if it does.
    pub(crate) fn formula(self) -> Option<Typed> {
        match self {
            KeyTest::Satisfies(formula) => Some(formula),
            KeyTest::Pattern(_) => None,
        }
    }
}

impl ClassKey<'_> {
    fn holds(&self, test: KeyTest) -> bool {
        let index = self.tests.binary_search(&test).ok();
        let index = index.and_then(|index| u32::try_from(index).ok());
        index.is_some_and(|index| bit(self.holding, index))
    }
}

impl Key for ClassKey<'_> {
    fn name(&self) -> Option<NameId> {
        self.name
    }

    fn matches(&self, _: &Formulas, pattern: PatternId) -> bool {
        self.holds(KeyTest::Pattern(pattern))
    }

    fn satisfies(&self, _: &Formulas, formula: FormulaId) -> bool {
        self.holds(KeyTest::Satisfies(formula))
    }
}

/// A member or an item, derived.
struct Derived {
    /// What the child must satisfy.
    need: Value,
    /// What the frame wants to know of the child beyond that.
    goals: Vec<Value>,
    /// The residuals with leaves about those goals.
    rest: Residuals,
}

/// The next item of an array.
pub(crate) struct GeneralItem {
    /// What it is asked; none if there may be none.
    pub(crate) question: Option<QuestionId>,
    /// Which items the array can go on with, if they have to be compared.
    pub(crate) ends: Option<Ends>,
    /// Whether it can be decided better if the formulas know the items.
    pub(crate) depends: bool,
    /// The verdicts with which the array may end before it.
    pub(crate) close: Option<u32>,
    /// What is left of the array after it.
    pub(crate) rest: Residuals,
}

impl Machine {
    /// What may come in an object, and whether it may end.
    pub(crate) fn general_info(
        &self,
        site: &ObjectSite,
        object: &Object,
    ) -> Result<(Viable, Option<u32>), AutomatonError> {
        let close = self.verdicts_at_end(&object.rest)?;
        let mut viable = Viable::default();
        let mut passed = object.rest[0];
        let mut used = site.used(object);
        let schema_order = matches!(object.seen, Seen::Rank(_));
        for &position in &site.by_rank {
            let member = &site.members[position as usize];
            let gone = schema_order && object.others;
            if object.seen.has(member, position) || gone {
                continue;
            }
            let key = site.key(KeyClass::Name(position));
            if self.algebra.may_have(passed, &key, &mut used)? {
                set_bit(&mut viable.names, position);
            }
            if schema_order {
                used.push(member.name);
                passed = self.algebra.without(passed, &[member.name]);
                if passed.is_false() {
                    return Ok((viable, close));
                }
            }
        }
        for class in 0..site.n_classes() {
            let key = site.key(KeyClass::Other(class));
            if site.class_exists(class)
                && self.algebra.may_have(passed, &key, &mut used)?
            {
                set_bit(&mut viable.others, class);
            }
        }
        Ok((viable, close))
    }

    /// The verdicts of residuals at the end of a container, if it may end.
    fn verdicts_at_end(
        &self,
        rest: &[Typed],
    ) -> Result<Option<u32>, AutomatonError> {
        let Some((&need, goals)) = rest.split_first() else {
            return Ok(Some(0));
        };
        let verdicts = {
            let formulas = self.algebra.lock();
            if !formulas.holds_at_end(need, false) {
                return Ok(None);
            }
            (0..).zip(goals).fold(0, |bits, (index, &goal)| {
                bits | u64::from(formulas.holds_at_end(goal, false)) << index
            })
        };
        self.parts.outcomes.intern(verdicts).map(Some)
    }

    /// What the value of a key is asked, and what is left of the object.
    pub(crate) fn general_member(
        &self,
        site: &ObjectSite,
        object: &Object,
        class: KeyClass,
    ) -> Result<(Option<QuestionId>, Residuals), AutomatonError> {
        let passed = site.passed(object, class);
        let key = site.key(class);
        let pending: Residuals = object
            .rest
            .iter()
            .map(|&formula| {
                let formula = self.algebra.without(formula, &passed);
                self.algebra.derive_member(formula, &key)
            })
            .collect();
        let mut used = site.used(object);
        used.extend(passed.into_iter().chain(key.name()));
        let need =
            self.algebra.need_of(pending[0], Container::Object(&used))?;
        self.ask(self.algebra.split(pending, need)?)
    }

    /// What the next item is asked, whether the array may end before it, and
    /// what is left of the array after it. Where items are compared,
    /// `compares` says whether there is one to equal; of those, the formulas
    /// know the values if they are `noted`.
    pub(crate) fn general_item(
        &self,
        rest: &[Typed],
        compares: Option<bool>,
        noted: bool,
    ) -> Result<GeneralItem, AutomatonError> {
        let close = self.verdicts_at_end(rest)?;
        let known = noted || compares == Some(false);
        let array = Container::Array { known };
        let pending: Residuals = rest
            .iter()
            .map(|&formula| self.algebra.derive_item(formula))
            .collect();
        let compares =
            compares.filter(|_| self.algebra.any_compares(&pending));
        let need = self.algebra.need_of(pending[0], array)?;
        let mut depends = false;
        let (need, ends) = match compares {
            None => (need, None),
            Some(false) => (need, Some(Ends::First)),
            Some(true) if noted => (need, Some(Ends::Any)),
            Some(true) => {
                let mut again = pending.clone();
                self.algebra.repeat(&mut again);
                let other = self.algebra.need_of(again[0], array)?;
                let new = self.algebra.satisfiable(need)?;
                if !self.algebra.satisfiable(other)? {
                    (need, Some(Ends::New))
                } else if new {
                    let either = self.algebra.lock().or([need, other]);
                    depends = need != other;
                    (either, Some(Ends::Any))
                } else {
                    depends = true;
                    (other, Some(Ends::Repeated))
                }
            }
        };
        let need = match ends {
            Some(_) => {
                let left =
                    self.algebra.values_left(need, pending[0], known)?;
                depends |= left.is_some();
                left.unwrap_or(need)
            }
            None => need,
        };
        let derived = self.algebra.split(pending, need)?;
        let (question, rest) = self.ask(derived)?;
        Ok(GeneralItem { question, ends, depends, close, rest })
    }

    fn ask(
        &self,
        derived: Option<Derived>,
    ) -> Result<(Option<QuestionId>, Residuals), AutomatonError> {
        let Some(Derived { need, goals, rest }) = derived else {
            return Ok((None, Residuals::new()));
        };
        if goals.len() > MAX_GOALS {
            return Err(AutomatonError::Limit {
                name: "max_goals",
                what: "the number of things to find out about one value",
                limit: MAX_GOALS,
            });
        }
        let question = self.question(need, goals.into())?;
        Ok((Some(question), rest))
    }
}

impl ObjectSite {
    /// A key as formulas ask about it.
    pub(crate) fn key(&self, class: KeyClass) -> ClassKey<'_> {
        let tests = &self.tests;
        match class {
            KeyClass::Name(position) => ClassKey {
                name: Some(self.members[position as usize].name),
                tests,
                holding: &[],
            },
            KeyClass::Other(class) => {
                let holding = self.table.holding(class);
                ClassKey { name: None, tests, holding }
            }
        }
    }

    /// The number of classes of keys without a declared name.
    pub(crate) fn n_classes(&self) -> u32 {
        self.table.len()
    }

    /// The declared names that can not come any more.
    fn used(&self, object: &Object) -> Vec<NameId> {
        let gone = |&(position, member): &(u32, &Member)| {
            object.others && matches!(object.seen, Seen::Rank(_))
                || object.seen.has(member, position)
        };
        let members = (0..).zip(&self.members).filter(gone);
        members.map(|(_, member)| member.name).collect()
    }

    /// The names that can no longer come once a key of `class` has come.
    fn passed(&self, object: &Object, class: KeyClass) -> Vec<NameId> {
        let Seen::Rank(next) = object.seen else {
            return Vec::new();
        };
        let end = match class {
            KeyClass::Name(position) => self.members[position as usize].rank,
            KeyClass::Other(_) => u32::MAX,
        };
        self.by_rank
            .iter()
            .map(|&position| &self.members[position as usize])
            .filter(|member| next <= member.rank && member.rank < end)
            .map(|member| member.name)
            .collect()
    }
}

impl Algebra {
    fn derive_member(&self, formula: Typed, key: &ClassKey<'_>) -> Typed {
        self.lock().derive_member(formula, key)
    }

    fn derive_item(&self, formula: Typed) -> Typed {
        self.lock().derive_item(formula)
    }

    /// Whether an object in which the names `used` can not come any more may
    /// go on with a member of a key, and still end.
    fn may_have(
        &self,
        need: Typed,
        key: &ClassKey<'_>,
        used: &mut Vec<NameId>,
    ) -> Result<bool, AutomatonError> {
        let pending = self.derive_member(need, key);
        let n_used = used.len();
        used.extend(key.name());
        let child = self.need_of(pending, Container::Object(used));
        used.truncate(n_used);
        self.satisfiable(child?)
    }

    /// Tells formulas of an array which items it has.
    pub(crate) fn note(&self, rest: &mut [Typed], items: &[ConstantId]) {
        let mut formulas = self.lock();
        for formula in rest {
            for &item in items {
                *formula = formulas.with_known_item(*formula, item);
            }
        }
    }

    /// The constants of canonical forms; none if they are too many, or if
    /// one is too large.
    pub(crate) fn constants(
        &self,
        forms: &[Arc<[u8]>],
    ) -> Option<Vec<ConstantId>> {
        if forms.len() > MAX_LISTED {
            return None;
        }
        let mut formulas = self.lock();
        let constant = |form: &Arc<[u8]>| {
            let value = canonical::parsed(form)?;
            formulas.pool_mut().value(&value)
        };
        forms.iter().map(constant).collect()
    }

    /// Splits pending formulas (the need first) into what the child is asked,
    /// which is `need`, and what is left; none if no child will do.
    fn split(
        &self,
        pending: Residuals,
        need: Value,
    ) -> Result<Option<Derived>, AutomatonError> {
        if !self.satisfiable(need)? {
            return Ok(None);
        }
        let mut formulas = self.lock();
        // What the child must satisfy in any case needs no verdict.
        let certain: Vec<Value> = formulas
            .conjuncts(pending[0])
            .iter()
            .filter_map(|&part| match *formulas.form(part) {
                Form::Kid(goal) => Some(goal),
                _ => None,
            })
            .collect();
        let mut rest = Residuals::new();
        let mut goals = Vec::new();
        for formula in pending {
            let formula = formulas.with_certain(formula, &certain);
            formulas.push_leaves(formula, &mut goals);
            rest.push(formula);
        }
        goals.sort_unstable();
        goals.dedup();
        Ok(Some(Derived { need, goals, rest }))
    }

    /// Puts verdicts into residuals, goal by goal.
    pub(crate) fn substitute(
        &self,
        rest: &mut [Typed],
        goals: &[Value],
        verdicts: u64,
    ) {
        let truth = |goal: Value| {
            let index = goals.binary_search(&goal);
            index.is_ok_and(|index| verdicts >> index & 1 != 0)
        };
        let mut formulas = self.lock();
        for formula in rest {
            *formula = formulas.substitute(*formula, &truth);
        }
    }

    /// Notes that two items are equal.
    pub(crate) fn repeat(&self, rest: &mut [Typed]) {
        let mut formulas = self.lock();
        for formula in rest {
            *formula = formulas.with_repetition(*formula);
        }
    }

    /// Whether any formula asks whether items are equal.
    pub(crate) fn any_compares(&self, rest: &[Typed]) -> bool {
        let formulas = self.lock();
        rest.iter().any(|&formula| formulas.compares_items(formula))
    }

    /// The formula where members with these names do not come any more.
    fn without(&self, formula: Typed, names: &[NameId]) -> Typed {
        if names.is_empty() {
            return formula;
        }
        self.lock().without_names(formula, names)
    }
}
