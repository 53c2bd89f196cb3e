//! The formulas of one schema, behind a lock, as the machine asks for them.
//!
//! Formulas grow lazily, so every question takes the lock; the machine asks
//! each once and keeps the answer in its states.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use maskwright_grammar_core::{
    automaton::AutomatonError,
    interrupt,
    regular::{Language, LimitError, Limits, Regex},
};

use super::prelude::{UNBOUNDED, Window};
use crate::{
    error::{ErrorKind, SchemaError},
    format::{self, Bound},
    formula::{Form, FormulaId, Formulas},
    number::NumberFormula,
    parse::{ConstantId, JsonType, NameId},
    viability::{Budgets, Cardinality, Verdict, Viability},
};

/// A formula about a value of any type.
pub(crate) type Value = FormulaId;
/// A formula about a value of one type.
pub(crate) type Typed = FormulaId;

/// The formulas of one schema.
#[derive(Debug)]
pub(crate) struct Algebra {
    inner: Mutex<Inner>,
    /// How often something was taken to be possible that was not decided.
    n_assumed: AtomicU64,
}

/// What one lock guards: viability grows with the formulas it speaks of.
#[derive(Debug)]
pub(crate) struct Inner {
    formulas: Formulas,
    viability: Viability,
}

impl Deref for Inner {
    type Target = Formulas;

    fn deref(&self) -> &Formulas {
        &self.formulas
    }
}

impl DerefMut for Inner {
    fn deref_mut(&mut self) -> &mut Formulas {
        &mut self.formulas
    }
}

/// What is asked of a string, where that is simple.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StringShape {
    /// A length between bounds, in code points.
    Window {
        min: u32,
        max: u32,
    },
    Other,
}

/// An error of the schema that shows up only while it is expanded.
pub(crate) fn late(error: &SchemaError) -> AutomatonError {
    match error.kind() {
        ErrorKind::Interrupted(error) => AutomatonError::Interrupted(*error),
        _ => AutomatonError::Grammar { message: error.to_string() },
    }
}

/// A limit of regular languages that was met.
pub(crate) fn limit(error: LimitError) -> AutomatonError {
    AutomatonError::Grammar { message: error.to_string() }
}

/// How many states one automaton may have: names of hosts, whose labels and
/// whole are counted, have more than ten thousand.
const MAX_LANGUAGE_STATES: usize = 1 << 16;

/// The automaton of an expression.
pub(crate) fn language(regex: &Regex) -> Result<Language, AutomatonError> {
    let limits = Limits::default().with_max_states(MAX_LANGUAGE_STATES);
    Language::new(regex, limits).map_err(|error| AutomatonError::Grammar {
        message: error.to_string(),
    })
}

impl Algebra {
    /// Takes the formulas of a schema, and checks that some value satisfies
    /// it.
    pub(crate) fn new(
        mut formulas: Formulas,
        budgets: Budgets,
    ) -> Result<Algebra, SchemaError> {
        let mut viability =
            Viability::new(budgets.compile).with_formats(format::language);
        formulas.check_cycles()?;
        viability.check_root(&mut formulas)?;
        viability.set_budget(budgets.state);
        let inner = Mutex::new(Inner { formulas, viability });
        Ok(Algebra { inner, n_assumed: AtomicU64::new(0) })
    }

    /// Returns about how many bytes the formulas hold.
    pub(crate) fn memory_usage(&self) -> usize {
        self.lock().formulas.memory_usage()
    }

    /// How often something was taken to be possible that was not decided:
    /// what was derived meanwhile is exact if this stays the same.
    pub(crate) fn n_assumed(&self) -> u64 {
        self.n_assumed.load(Ordering::Relaxed)
    }

    /// Notes that something is taken to be possible without knowing.
    pub(crate) fn assume(&self) {
        self.n_assumed.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether what a verdict is about has to be taken to be possible.
    fn read(
        &self,
        verdict: Result<Verdict, SchemaError>,
    ) -> Result<bool, AutomatonError> {
        let verdict = verdict.map_err(|error| late(&error))?;
        if verdict == Verdict::Unknown {
            self.assume();
        }
        Ok(verdict.may_hold())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a formula says of the values of one type.
    pub(crate) fn typed(
        &self,
        value: Value,
        json_type: JsonType,
    ) -> Result<Typed, AutomatonError> {
        self.lock().typed(value, json_type).map_err(|error| late(&error))
    }

    /// The strings that satisfy a typed formula for certain, or that may.
    pub(crate) fn regex(&self, formula: Typed, bound: Bound) -> Regex {
        self.lock().string_regex(formula, bound, format::language)
    }

    /// The automaton of the strings that satisfy a typed formula, where all
    /// schemas share one.
    pub(crate) fn shared_language(&self, formula: Typed) -> Option<Language> {
        let formulas = self.lock();
        match *formulas.form(formula) {
            Form::Format(name, true) => {
                format::automaton(formulas.pool().format_name(name))
            }
            _ => None,
        }
    }

    /// Whether a typed formula of strings is not a regular language, so that
    /// a string has to be checked when it has ended.
    pub(crate) fn is_checked(&self, formula: Typed) -> bool {
        let formulas = self.lock();
        formulas.has_format(formula, &|name| !format::is_regular(name))
            || formulas.has_backreferences(formula)
    }

    /// Whether an array of which something was read may be finished so that a
    /// formula holds, which knows the items if they are `noted`.
    pub(crate) fn may_end_array(
        &self,
        formula: Typed,
        noted: bool,
    ) -> Result<bool, AutomatonError> {
        if noted || formula.is_true() || formula.is_false() {
            return self.may_hold(formula, JsonType::Array);
        }
        let inner = &mut *self.lock();
        self.read(inner.viability.array_rest(&mut inner.formulas, formula))
    }

    /// What an item must satisfy beside all else so that the array after it
    /// can end, if that depends on whether another equals it.
    pub(crate) fn repeat_goal(
        &self,
        rest: Typed,
    ) -> Result<Option<Value>, AutomatonError> {
        let inner = &mut *self.lock();
        if !inner.formulas.compares_items(rest) {
            return Ok(None);
        }
        let found = inner.viability.repeat_goal(&mut inner.formulas, rest);
        interrupt::confirm()?;
        found.map_err(|error| late(&error))
    }

    /// Whether an object in which the names `used` can not come any more may
    /// be finished so that a formula holds.
    pub(crate) fn may_end_object(
        &self,
        formula: Typed,
        used: &[NameId],
    ) -> Result<bool, AutomatonError> {
        if formula.is_true() || formula.is_false() {
            return Ok(formula.is_true());
        }
        let inner = &mut *self.lock();
        let formulas = &mut inner.formulas;
        self.read(inner.viability.object(formulas, formula, used))
    }

    /// Whether some value of one type may satisfy a typed formula.
    pub(crate) fn may_hold(
        &self,
        formula: Typed,
        json_type: JsonType,
    ) -> Result<bool, AutomatonError> {
        if formula.is_true() || formula.is_false() {
            return Ok(formula.is_true());
        }
        let inner = &mut *self.lock();
        let formulas = &mut inner.formulas;
        self.read(inner.viability.typed(formulas, formula, json_type))
    }

    /// Whether some value may satisfy a formula.
    pub(crate) fn satisfiable(
        &self,
        value: Value,
    ) -> Result<bool, AutomatonError> {
        if value.is_true() || value.is_false() {
            return Ok(value.is_true());
        }
        let inner = &mut *self.lock();
        self.read(inner.viability.value(&mut inner.formulas, value))
    }

    /// How many values satisfy a formula, up to `cap`.
    pub(crate) fn count(
        &self,
        value: Value,
        cap: u64,
    ) -> Result<Cardinality, AutomatonError> {
        let inner = &mut *self.lock();
        let count = inner.viability.count(&mut inner.formulas, value, cap);
        interrupt::confirm()?;
        count.map_err(|error| late(&error))
    }

    /// The values that satisfy a formula, if it lists them.
    pub(crate) fn listed_values(
        &self,
        value: Value,
    ) -> Result<Option<Vec<ConstantId>>, AutomatonError> {
        let inner = &mut *self.lock();
        let listed = inner.viability.listed(&mut inner.formulas, value);
        interrupt::confirm()?;
        listed.map_err(|error| late(&error))
    }

    /// What is asked of a string, if it is only its length.
    pub(crate) fn string_shape(&self, formula: Typed) -> StringShape {
        match self.split_length(formula) {
            (rest, Window { least, most }) if rest.is_true() => {
                StringShape::Window { min: least, max: most }
            }
            _ => StringShape::Other,
        }
    }

    /// What is asked of a string but for its length, and the length.
    pub(crate) fn split_length(&self, formula: Typed) -> (Typed, Window) {
        let mut formulas = self.lock();
        let Window { mut least, mut most } = Window::FREE;
        let mut rest = Vec::new();
        for part in formulas.conjuncts(formula) {
            match *formulas.form(part) {
                Form::CharsGe(count) => least = least.max(clamp(count)),
                Form::CharsLe(count) => most = most.min(clamp(count)),
                _ => rest.push(part),
            }
        }
        (formulas.and(rest), Window { least, most })
    }

    /// The strings that satisfy a typed formula, if it lists them.
    pub(crate) fn listed(&self, formula: Typed) -> Option<Vec<String>> {
        let formulas = self.lock();
        let site = formulas.string_site(formula);
        let only = site.only?;
        if !site.rest.is_empty() {
            return None;
        }
        let texts = only.iter().map(|&name| formulas.pool().name_text(name));
        let fits = |text: &&str| formulas.string_holds(formula, text);
        Some(texts.filter(fits).map(str::to_owned).collect())
    }

    /// What typed formulas ask of a number.
    pub(crate) fn number_formulas(
        &self,
        formulas: &[Typed],
    ) -> Vec<NumberFormula> {
        let known = self.lock();
        let formulas = formulas.iter();
        formulas.map(|&formula| known.number_formula(formula)).collect()
    }

    /// Whether a number is asked nothing (`false`), or only to be an integer
    /// by value (`true`).
    pub(crate) fn free_number(&self, formula: Typed) -> Option<bool> {
        match self.lock().form(formula) {
            Form::True => Some(false),
            Form::Integer(true) => Some(true),
            _ => None,
        }
    }
}

/// No text is longer than this many code points.
fn clamp(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(UNBOUNDED).min(UNBOUNDED - 1)
}
