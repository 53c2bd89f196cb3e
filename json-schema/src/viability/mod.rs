//! Can a formula still come true?
//!
//! Layer 1, the derivation of formulas, is exact and needs no search. This is
//! layer 2: whether some value satisfies a formula, which is what "this
//! prefix can be finished" comes down to. The answer is the least fixpoint
//! over the goals, so that only finite documents count.
//!
//! # Reading the answer
//!
//! [`Verdict::Yes`] and [`Verdict::No`] are proved. [`Verdict::Unknown`]
//! means that the budget or a cap was met; its safe reading is "yes": a mask
//! then allows what may turn out a dead end, but never forbids what can be
//! finished.
//!
//! # What is remembered
//!
//! A *no* that was found while a question above was open may only be due to
//! taking that one as *no* for the time being. It is not stored until the
//! question that it depends on has been decided. Nothing is stored on the
//! way out of a search that the budget or an interrupt ended.
//!
//! Recursion is on the search path, which [`MAX_PATH`] bounds.

mod arrays;
mod cardinality;
mod explain;
mod keys;
mod listed;
mod objects;
mod scalars;

pub use cardinality::Cardinality;
use maskwright_grammar_core::{interrupt, util::FxHashMap};

use crate::error::{ErrorKind, SchemaError};
use crate::format::Languages;
use crate::formula::{FormulaId, Formulas};
use crate::location::Location;
use crate::parse::{JsonType, NameId};

/// The steps that one question may take at compile time.
pub const COMPILE_BUDGET: u64 = 20_000;

/// The steps that one question may take while masks are made.
pub const STATE_BUDGET: u64 = 2_000;

/// How many steps one question may take before it is left open.
///
/// No number changes which texts are accepted or refused: what was not
/// decided is taken to be possible, and decided by the text. A lower one
/// makes masks sooner; it may allow a token after which no text can be
/// finished, and compile a schema that no value satisfies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budgets {
    /// Whether any value satisfies the schema, asked at compile time.
    pub compile: u64,
    /// What can still be finished, asked while masks are made.
    pub state: u64,
}

impl Default for Budgets {
    fn default() -> Budgets {
        Budgets { compile: COMPILE_BUDGET, state: STATE_BUDGET }
    }
}

/// How many formulas and parts of formulas one step may add, on average.
const GROWTH: usize = 256;

/// The longest path of open questions: at about a kilobyte each, within a
/// stack of 256 KiB. A container in a container takes two.
pub const MAX_PATH: usize = 128;

/// Whether a formula can come true.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// It can.
    Yes,
    /// It cannot.
    No,
    /// The budget or a cap was met. To be read as [`Verdict::Yes`].
    Unknown,
}

impl Verdict {
    /// Whether it has to be assumed that the formula can come true.
    pub fn may_hold(self) -> bool {
        self != Verdict::No
    }

    /// Both can come true, independently.
    fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::No, _) | (_, Verdict::No) => Verdict::No,
            (Verdict::Yes, Verdict::Yes) => Verdict::Yes,
            _ => Verdict::Unknown,
        }
    }

    /// One of them can come true.
    fn or(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Yes, _) | (_, Verdict::Yes) => Verdict::Yes,
            (Verdict::No, Verdict::No) => Verdict::No,
            _ => Verdict::Unknown,
        }
    }

    fn of(holds: bool) -> Verdict {
        if holds { Verdict::Yes } else { Verdict::No }
    }
}

/// A question that can depend on itself.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Question {
    Value(FormulaId),
    /// An object that goes on, or an array that does.
    Container(FormulaId),
}

/// What is known about formulas, and the budget of one question.
#[derive(Clone, Debug)]
pub struct Viability {
    /// Decided value formulas.
    values: FxHashMap<FormulaId, Verdict>,
    /// Decided typed formulas of fresh scalars and containers.
    typed: FxHashMap<(FormulaId, JsonType), Verdict>,
    /// Decided typed formulas of objects that cannot have some names.
    objects: FxHashMap<(FormulaId, Vec<NameId>), Verdict>,
    /// The open questions, with their position on the path.
    open: FxHashMap<Question, usize>,
    /// The lowest open question that the current answer depends on.
    lowest: usize,
    steps: u64,
    budget: u64,
    /// How deep the search is.
    path: usize,
    /// Whether the budget of this question was spent.
    aborted: bool,
    n_unknown: u64,
    formats: Languages,
}

/// Fails once the search has been interrupted: nothing that it says then is
/// an answer.
pub(crate) fn interrupted() -> Result<()> {
    interrupt::confirm().map_err(|error| {
        SchemaError::new(ErrorKind::Interrupted(error), Location::root())
    })
}

/// No open question.
const NONE: usize = usize::MAX;

type Result<T> = std::result::Result<T, SchemaError>;

impl Viability {
    /// Creates an empty memory whose questions may take `budget` steps.
    pub fn new(budget: u64) -> Viability {
        Viability {
            values: FxHashMap::default(),
            typed: FxHashMap::default(),
            objects: FxHashMap::default(),
            open: FxHashMap::default(),
            lowest: NONE,
            steps: 0,
            budget,
            path: 0,
            aborted: false,
            n_unknown: 0,
            formats: |_, _, _| None,
        }
    }

    /// Sets the expressions of formats. Strings of a format without one
    /// are undecided.
    #[must_use]
    pub fn with_formats(mut self, formats: Languages) -> Viability {
        self.formats = formats;
        self
    }

    /// Changes the budget of later questions.
    pub fn set_budget(&mut self, budget: u64) {
        self.budget = budget;
    }

    /// How many questions were not decided.
    pub fn n_unknown(&self) -> u64 {
        self.n_unknown
    }

    /// Whether some value satisfies a value formula.
    ///
    /// # Errors
    ///
    /// Fails where a formula cannot be expanded.
    pub fn value(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
    ) -> Result<Verdict> {
        if let Some(&known) = self.values.get(&value) {
            return Ok(known);
        }
        self.begin(formulas);
        let verdict = self.find_value(formulas, value);
        self.end(verdict)
    }

    /// Whether some value of one type satisfies a typed formula. A
    /// container's formula may be the residual of one that has begun: the
    /// answer is whether it can be finished.
    ///
    /// # Errors
    ///
    /// Fails where a formula cannot be expanded.
    pub fn typed(
        &mut self,
        formulas: &mut Formulas,
        typed: FormulaId,
        json_type: JsonType,
    ) -> Result<Verdict> {
        if let Some(&known) = self.typed.get(&(typed, json_type)) {
            return Ok(known);
        }
        self.begin(formulas);
        let verdict = self.find_typed(formulas, typed, json_type);
        self.end(verdict)
    }

    /// Whether an array that has items already can be finished so that a
    /// formula holds, which may ask whether items are equal and does not know
    /// those.
    ///
    /// # Errors
    ///
    /// Fails where a formula cannot be expanded.
    pub fn array_rest(
        &mut self,
        formulas: &mut Formulas,
        typed: FormulaId,
    ) -> Result<Verdict> {
        if !formulas.compares_items(typed) {
            return self.typed(formulas, typed, JsonType::Array);
        }
        self.begin(formulas);
        let verdict = self.find_array_rest(formulas, typed);
        self.end(verdict)
    }

    /// Whether an object that has members with the names `used` (or that
    /// cannot have them any more) can be finished so that a formula holds.
    ///
    /// # Errors
    ///
    /// Fails where a formula cannot be expanded.
    pub fn object(
        &mut self,
        formulas: &mut Formulas,
        typed: FormulaId,
        used: &[NameId],
    ) -> Result<Verdict> {
        let found = self.typed(formulas, typed, JsonType::Object)?;
        if found == Verdict::No
            || used.is_empty()
            || !formulas.needs_any_member(typed)
        {
            return Ok(found);
        }
        let mut used = used.to_vec();
        used.sort_unstable();
        if let Some(&known) = self.objects.get(&(typed, used.clone())) {
            return Ok(known);
        }
        self.begin(formulas);
        let verdict = self.find_object(formulas, typed, &used);
        let verdict = self.end(verdict)?;
        if !self.aborted {
            self.objects.insert((typed, used), verdict);
        }
        Ok(verdict)
    }

    /// Refuses a schema that no value satisfies, and says why.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Unsatisfiable`], or where a formula cannot be
    /// expanded.
    pub fn check_root(&mut self, formulas: &mut Formulas) -> Result<()> {
        let root = formulas.root();
        if self.value(formulas, root)?.may_hold() {
            return Ok(());
        }
        let (location, explanation) = self.explain(formulas, root)?;
        let kind = ErrorKind::Unsatisfiable { explanation };
        Err(SchemaError::new(kind, location))
    }

    fn begin(&mut self, formulas: &mut Formulas) {
        let steps = usize::try_from(self.budget).unwrap_or(usize::MAX);
        formulas.allow_growth(steps.saturating_mul(GROWTH));
        self.open.clear();
        self.lowest = NONE;
        self.steps = 0;
        self.path = 0;
        self.aborted = false;
    }

    fn end(&mut self, verdict: Result<Verdict>) -> Result<Verdict> {
        interrupted()?;
        if let Ok(Verdict::Unknown) = verdict {
            self.n_unknown += 1;
        }
        verdict
    }

    /// Takes a step; false where the budget is spent.
    fn step(&mut self, formulas: &Formulas) -> bool {
        self.steps += 1;
        if self.steps > self.budget
            || self.path > MAX_PATH
            || formulas.is_full()
            || interrupt::check().is_err()
        {
            self.aborted = true;
        }
        !self.aborted
    }

    /// Decides a question that may depend on itself, which counts as *no*.
    /// The flag says whether the verdict may be remembered.
    fn guarded(
        &mut self,
        formulas: &mut Formulas,
        question: Question,
        decide: impl FnOnce(&mut Viability, &mut Formulas) -> Result<Verdict>,
    ) -> Result<(Verdict, bool)> {
        if let Some(&at) = self.open.get(&question) {
            self.lowest = self.lowest.min(at);
            return Ok((Verdict::No, false));
        }
        if !self.step(formulas) {
            return Ok((Verdict::Unknown, false));
        }
        let at = self.open.len();
        self.open.insert(question, at);
        let outer = std::mem::replace(&mut self.lowest, NONE);
        self.path += 1;
        let verdict = decide(self, formulas)?;
        self.path -= 1;
        self.open.remove(&question);
        let depends = self.lowest < at && verdict != Verdict::Yes;
        let inner = if depends { self.lowest } else { NONE };
        self.lowest = outer.min(inner);
        let final_ = match verdict {
            Verdict::Yes => true,
            Verdict::No | Verdict::Unknown => !depends && !self.aborted,
        };
        Ok((verdict, final_))
    }

    /// [`Viability::value`] inside a search.
    fn find_value(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
    ) -> Result<Verdict> {
        if value.is_true() || value.is_false() {
            return Ok(Verdict::of(value.is_true()));
        }
        if let Some(&known) = self.values.get(&value) {
            return Ok(known);
        }
        let question = Question::Value(value);
        let (verdict, final_) =
            self.guarded(formulas, question, |this, formulas| {
                this.search_value(formulas, value)
            })?;
        if final_ {
            self.values.insert(value, verdict);
        }
        Ok(verdict)
    }

    fn search_value(
        &mut self,
        formulas: &mut Formulas,
        value: FormulaId,
    ) -> Result<Verdict> {
        let mut hard = Vec::new();
        for json_type in JsonType::ALL {
            let typed = formulas.typed(value, json_type)?;
            if typed.is_false() {
                continue;
            }
            let is_container =
                matches!(json_type, JsonType::Array | JsonType::Object);
            let empty_will_do =
                is_container && formulas.holds_at_end(typed, false);
            if typed.is_true() || empty_will_do {
                return Ok(Verdict::Yes);
            }
            hard.push((typed, json_type));
        }
        let mut verdict = Verdict::No;
        for (typed, json_type) in hard {
            let found = self.find_typed(formulas, typed, json_type)?;
            verdict = verdict.or(found);
            if verdict == Verdict::Yes {
                break;
            }
        }
        Ok(verdict)
    }

    /// [`Viability::typed`] inside a search.
    fn find_typed(
        &mut self,
        formulas: &mut Formulas,
        typed: FormulaId,
        json_type: JsonType,
    ) -> Result<Verdict> {
        if typed.is_true() || typed.is_false() {
            return Ok(Verdict::of(typed.is_true()));
        }
        if let Some(&known) = self.typed.get(&(typed, json_type)) {
            return Ok(known);
        }
        let verdict = match json_type {
            JsonType::Null | JsonType::False | JsonType::True => Verdict::No,
            JsonType::Number => Viability::number(formulas, typed),
            JsonType::String => self.string(formulas, typed),
            JsonType::Array => return self.find_array(formulas, typed),
            JsonType::Object => {
                return self.find_object(formulas, typed, &[]);
            }
        };
        if interrupt::confirm().is_ok() {
            self.typed.insert((typed, json_type), verdict);
        }
        Ok(verdict)
    }
}
