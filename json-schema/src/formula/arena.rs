//! The arena of formulas: hash-consing, negation, conjunction, disjunction.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use indexmap::IndexSet;
use maskwright_grammar_core::util::FxHashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use super::form::{
    Env, EnvId, Evaluator, Form, FormulaId, Goal, GoalId, KeySet, KeySetId,
    NumberSetId, StringSetId,
};
use super::site::{ArraySite, ObjectSite};
use crate::error::SchemaError;
use crate::location::Location;
use crate::parse::{
    JsonType, Limits, NameId, NumberId, PatternId, Pool, Schema,
};

type Set<T> = IndexSet<T, FxBuildHasher>;

/// The children of a formula while it is made.
pub(super) type Parts = SmallVec<[FormulaId; 8]>;

/// No negation is known yet.
const UNKNOWN: FormulaId = FormulaId(u32::MAX);

/// Every formula of one schema, and what is memoised about them.
#[derive(Clone, Debug)]
pub struct Formulas {
    pub(super) schema: Arc<Schema>,
    pub(super) pool: Pool,
    pub(super) limits: Limits,
    forms: Vec<Form>,
    /// The negation of each formula, or [`UNKNOWN`]; links go both ways.
    negations: Vec<FormulaId>,
    depths: Vec<u32>,
    table: HashTable<FormulaId>,
    pub(super) key_sets: Set<KeySet>,
    pub(super) string_sets: Set<Arc<[NameId]>>,
    pub(super) number_sets: Set<Arc<[NumberId]>>,
    pub(super) goals: Set<Goal>,
    pub(super) envs: Set<Env>,
    pub(super) typed: FxHashMap<(FormulaId, JsonType), FormulaId>,
    pub(super) members: FxHashMap<(FormulaId, NameId), FormulaId>,
    pub(super) items: FxHashMap<FormulaId, FormulaId>,
    pub(super) key_in: FxHashMap<(KeySetId, NameId), bool>,
    pub(super) orders: FxHashMap<FormulaId, Arc<[NameId]>>,
    pub(super) objects: FxHashMap<FormulaId, Arc<ObjectSite>>,
    pub(super) arrays: FxHashMap<FormulaId, Arc<ArraySite>>,
    root: FormulaId,
    /// The formulas and their children.
    size: usize,
    /// The size from which on a search is to give up.
    ceiling: usize,
}

/// How many children the formulas of one schema may have, as a multiple of
/// their number.
const MAX_CHILDREN: usize = 8;

impl Formulas {
    /// Creates the formulas of a schema; none is expanded yet.
    pub fn new(schema: Arc<Schema>, pool: Pool, limits: Limits) -> Formulas {
        let mut formulas = Formulas {
            schema,
            pool,
            limits,
            forms: Vec::new(),
            negations: Vec::new(),
            depths: Vec::new(),
            table: HashTable::new(),
            key_sets: Set::default(),
            string_sets: Set::default(),
            number_sets: Set::default(),
            goals: Set::default(),
            envs: Set::default(),
            typed: FxHashMap::default(),
            members: FxHashMap::default(),
            items: FxHashMap::default(),
            key_in: FxHashMap::default(),
            orders: FxHashMap::default(),
            objects: FxHashMap::default(),
            arrays: FxHashMap::default(),
            root: FormulaId::TRUE,
            size: 0,
            ceiling: usize::MAX,
        };
        let never = formulas.make(Form::False);
        let always = formulas.make(Form::True);
        formulas.link(never, always);
        let (env, _) = formulas.envs.insert_full(Env::default());
        let root = formulas.schema.root();
        formulas.root = formulas.goal(root, EnvId::new(env));
        formulas
    }

    /// The value formula of the whole schema.
    pub fn root(&self) -> FormulaId {
        self.root
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Names, numbers, constants and patterns by id.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Names, numbers, constants and patterns by id, to add to.
    pub fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// How many formulas there are.
    pub fn len(&self) -> usize {
        self.forms.len()
    }

    /// Returns about how many bytes the formulas hold.
    pub fn memory_usage(&self) -> usize {
        let per_formula = size_of::<Form>() + 4 * size_of::<FormulaId>();
        self.forms.len() * per_formula + self.size * size_of::<FormulaId>()
    }

    /// Always false: the constants are there from the start.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The shape of a formula.
    pub fn form(&self, id: FormulaId) -> &Form {
        &self.forms[id.index()]
    }

    /// The node and scope of a goal.
    pub fn goal_value(&self, id: GoalId) -> Goal {
        self.goals[id.index()]
    }

    /// The keys of a key set.
    pub fn key_set(&self, id: KeySetId) -> &KeySet {
        &self.key_sets[id.index()]
    }

    /// The strings of a set; sorted by id.
    pub fn string_set(&self, id: StringSetId) -> &Arc<[NameId]> {
        &self.string_sets[id.index()]
    }

    /// The numbers of a set; sorted by id.
    pub fn number_set(&self, id: NumberSetId) -> &Arc<[NumberId]> {
        &self.number_sets[id.index()]
    }

    /// How deep a formula nests.
    pub(super) fn depth(&self, id: FormulaId) -> u32 {
        self.depths[id.index()]
    }

    /// Reports a limit that the arena has met.
    ///
    /// # Errors
    ///
    /// Fails when there are too many formulas.
    pub fn check_limits(&self) -> Result<(), SchemaError> {
        let limit = self.limits.max_formulas;
        if self.forms.len() > limit {
            let (limit, value) = (limit as u64, self.forms.len() as u64);
            let which = "number of formulas";
            let place = Location::root();
            return Err(SchemaError::limit(which, limit, value, place));
        }
        let limit = limit.saturating_mul(MAX_CHILDREN);
        if self.size > limit {
            let (limit, value) = (limit as u64, self.size as u64);
            let which = "size of all formulas";
            let place = Location::root();
            return Err(SchemaError::limit(which, limit, value, place));
        }
        Ok(())
    }

    /// Lets a search add so much to the formulas, and no more than half of
    /// what they may come to: the other half is for what is read.
    pub(crate) fn allow_growth(&mut self, size: usize) {
        let half = self.limits.max_formulas.saturating_mul(MAX_CHILDREN) / 2;
        self.ceiling = self.size.saturating_add(size).min(half);
    }

    /// Whether a search has to give up, for all that it has made.
    pub(crate) fn is_full(&self) -> bool {
        self.size > self.ceiling
            || self.forms.len() > self.limits.max_formulas / 2
    }

    /// Returns the id of a key set.
    pub(super) fn make_key_set(&mut self, set: KeySet) -> KeySetId {
        KeySetId::new(self.key_sets.insert_full(set).0)
    }

    /// Returns the id of the set of keys that a pattern matches.
    pub(super) fn pattern_keys(&mut self, pattern: PatternId) -> KeySetId {
        if self.pool().pattern_value(pattern).is_regular() {
            return self.make_key_set(KeySet::Pattern(pattern));
        }
        // Which has to be checked, as formulas of strings can be.
        let formula = self.make(Form::Pattern(pattern, true));
        self.make_key_set(KeySet::Satisfying(formula))
    }

    /// Returns the id of the set with one name.
    pub(super) fn one_name(&mut self, name: NameId) -> KeySetId {
        self.make_key_set(KeySet::Names(Arc::new([name])))
    }

    /// Returns the id of a formula that is already simple.
    pub(super) fn make(&mut self, form: Form) -> FormulaId {
        let hash = FxBuildHasher.hash_one(&form);
        let forms = &self.forms;
        let found = self.table.find(hash, |id| forms[id.index()] == form);
        if let Some(&id) = found {
            return id;
        }
        let id = FormulaId::new(self.forms.len());
        let depth = self.depth_of(&form);
        self.size += 1 + form.n_children();
        self.forms.push(form);
        self.negations.push(UNKNOWN);
        self.depths.push(depth);
        let forms = &self.forms;
        self.table.insert_unique(hash, id, |id| {
            FxBuildHasher.hash_one(&forms[id.index()])
        });
        self.link_dual(id);
        id
    }

    fn depth_of(&self, form: &Form) -> u32 {
        let deepest = match form {
            Form::And(parts) | Form::Or(parts) => {
                parts.iter().map(|&part| self.depth(part)).max()
            }
            Form::Kid(goal)
            | Form::All(_, goal)
            | Form::Ex(_, goal)
            | Form::ItemsAll(_, _, goal)
            | Form::ItemsEx(_, _, goal)
            | Form::ContainsGe(goal, _)
            | Form::ContainsLe(goal, _) => Some(self.depth(*goal)),
            Form::Unevaluated(evaluators, goal)
            | Form::ExUnevaluated(evaluators, goal) => evaluators
                .iter()
                .map(|evaluator| self.depth(evaluator.condition))
                .chain([self.depth(*goal)])
                .max(),
            _ => None,
        };
        deepest.map_or(0, |depth| depth + 1)
    }

    /// Notes that two formulas are each other's negation.
    fn link(&mut self, one: FormulaId, other: FormulaId) {
        self.negations[one.index()] = other;
        self.negations[other.index()] = one;
    }

    /// Links a new atom with its dual, if that exists already, so that
    /// `x ∧ ¬x` is seen however the two came about.
    fn link_dual(&mut self, id: FormulaId) {
        let Some(dual) = self.dual(id) else {
            return;
        };
        let hash = FxBuildHasher.hash_one(&dual);
        let forms = &self.forms;
        let found = self.table.find(hash, |id| forms[id.index()] == dual);
        if let Some(&other) = found {
            self.link(id, other);
        }
    }

    /// The dual of an atom, where it can be told without making formulas.
    fn dual(&self, id: FormulaId) -> Option<Form> {
        let known = |goal: FormulaId| {
            let negation = self.negations[goal.index()];
            (negation != UNKNOWN).then_some(negation)
        };
        Some(match self.form(id) {
            Form::False
            | Form::True
            | Form::And(_)
            | Form::Or(_)
            | Form::Unevaluated(..)
            | Form::ExUnevaluated(..) => return None,
            Form::Kid(goal) => Form::Kid(known(*goal)?),
            Form::All(set, goal) => Form::Ex(*set, known(*goal)?),
            Form::Ex(set, goal) => Form::All(*set, known(*goal)?),
            Form::ItemsAll(from, to, goal) => {
                Form::ItemsEx(*from, *to, known(*goal)?)
            }
            Form::ItemsEx(from, to, goal) => {
                Form::ItemsAll(*from, *to, known(*goal)?)
            }
            form => simple_dual(form)?,
        })
    }

    /// The negation of a formula.
    pub fn negate(&mut self, id: FormulaId) -> FormulaId {
        let known = self.negations[id.index()];
        if known != UNKNOWN {
            return known;
        }
        let negation = match self.form(id).clone() {
            Form::And(parts) => {
                let parts: Parts =
                    parts.iter().map(|&part| self.negate(part)).collect();
                self.or(parts)
            }
            Form::Or(parts) => {
                let parts: Parts =
                    parts.iter().map(|&part| self.negate(part)).collect();
                self.and(parts)
            }
            Form::Kid(goal) => {
                let goal = self.negate(goal);
                self.make(Form::Kid(goal))
            }
            Form::All(set, goal) => {
                let goal = self.negate(goal);
                self.make(Form::Ex(set, goal))
            }
            Form::Ex(set, goal) => {
                let goal = self.negate(goal);
                self.make(Form::All(set, goal))
            }
            Form::ItemsAll(from, to, goal) => {
                let goal = self.negate(goal);
                self.make(Form::ItemsEx(from, to, goal))
            }
            Form::ItemsEx(from, to, goal) => {
                let goal = self.negate(goal);
                self.make(Form::ItemsAll(from, to, goal))
            }
            Form::Unevaluated(evaluators, goal) => {
                let evaluators = self.negate_conditions(&evaluators);
                let goal = self.negate(goal);
                self.make(Form::ExUnevaluated(evaluators, goal))
            }
            Form::ExUnevaluated(evaluators, goal) => {
                let evaluators = self.negate_conditions(&evaluators);
                let goal = self.negate(goal);
                self.make(Form::Unevaluated(evaluators, goal))
            }
            form => match simple_dual(&form) {
                Some(dual) => self.make(dual),
                // Constants are linked when the arena is made.
                None => FormulaId::FALSE,
            },
        };
        if !negation.is_true() && !negation.is_false() {
            self.link(id, negation);
        } else {
            // A constant has one negation, the other constant.
            self.negations[id.index()] = negation;
        }
        negation
    }

    fn negate_conditions(
        &mut self,
        evaluators: &[Evaluator],
    ) -> Arc<[Evaluator]> {
        let mut negated: Vec<Evaluator> = evaluators
            .iter()
            .map(|evaluator| {
                let condition = self.negate(evaluator.condition);
                Evaluator { condition, ..*evaluator }
            })
            .collect();
        negated.sort_unstable();
        negated.into()
    }

    /// The negation, if it has been made already.
    pub(super) fn known_negation(&self, id: FormulaId) -> Option<FormulaId> {
        let negation = self.negations[id.index()];
        (negation != UNKNOWN).then_some(negation)
    }

    /// The conjunction of formulas.
    pub fn and(
        &mut self,
        parts: impl IntoIterator<Item = FormulaId>,
    ) -> FormulaId {
        self.combine(true, parts)
    }

    /// The disjunction of formulas.
    pub fn or(
        &mut self,
        parts: impl IntoIterator<Item = FormulaId>,
    ) -> FormulaId {
        self.combine(false, parts)
    }

    /// The leaf of a pending formula: the child satisfies `goal`.
    pub(super) fn kid(&mut self, goal: FormulaId) -> FormulaId {
        if goal.is_true() || goal.is_false() {
            return goal;
        }
        self.make(Form::Kid(goal))
    }

    /// At least `count` members.
    pub(super) fn count_ge(&mut self, count: u64) -> FormulaId {
        if count == 0 {
            return FormulaId::TRUE;
        }
        self.make(Form::CountGe(count))
    }

    /// At least `count` items.
    pub(super) fn len_ge(&mut self, count: u64) -> FormulaId {
        if count == 0 {
            return FormulaId::TRUE;
        }
        self.make(Form::LenGe(count))
    }

    /// The array formula "at least `count` items".
    pub fn at_least_items(&mut self, count: u64) -> FormulaId {
        self.len_ge(count)
    }

    /// Every member of a key set satisfies a goal.
    pub(super) fn all(&mut self, set: KeySetId, goal: FormulaId) -> FormulaId {
        if goal.is_true() {
            return FormulaId::TRUE;
        }
        self.make(Form::All(set, goal))
    }

    /// Every item of a range satisfies a goal.
    pub(super) fn items_all(
        &mut self,
        from: u64,
        to: u64,
        goal: FormulaId,
    ) -> FormulaId {
        if goal.is_true() || from >= to {
            return FormulaId::TRUE;
        }
        self.make(Form::ItemsAll(from, to, goal))
    }

    /// The string is one of a set.
    pub(super) fn string_in(
        &mut self,
        mut names: Vec<NameId>,
        positive: bool,
    ) -> FormulaId {
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return FormulaId::constant(!positive);
        }
        let (index, _) = self.string_sets.insert_full(names.into());
        self.make(Form::StringIn(StringSetId::new(index), positive))
    }

    /// The number is one of a set.
    pub(super) fn number_in(
        &mut self,
        mut numbers: Vec<NumberId>,
        positive: bool,
    ) -> FormulaId {
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() {
            return FormulaId::constant(!positive);
        }
        let (index, _) = self.number_sets.insert_full(numbers.into());
        self.make(Form::NumberIn(NumberSetId::new(index), positive))
    }
}

/// The dual of an atom that has no formula in it.
fn simple_dual(form: &Form) -> Option<Form> {
    // `count - 1` cannot wrap: "at least 0" is never made.
    Some(match *form {
        Form::Goal(goal) => Form::NotGoal(goal),
        Form::NotGoal(goal) => Form::Goal(goal),
        Form::Const(constant) => Form::NotConst(constant),
        Form::NotConst(constant) => Form::Const(constant),
        Form::CountGe(count) => Form::CountLe(count.saturating_sub(1)),
        Form::CountLe(count) => Form::CountGe(count.saturating_add(1)),
        Form::LenGe(count) => Form::LenLe(count.saturating_sub(1)),
        Form::LenLe(count) => Form::LenGe(count.saturating_add(1)),
        Form::ContainsGe(goal, count) => {
            Form::ContainsLe(goal, count.saturating_sub(1))
        }
        Form::ContainsLe(goal, count) => {
            Form::ContainsGe(goal, count.saturating_add(1))
        }
        Form::Unique => Form::Repeated,
        Form::Repeated => Form::Unique,
        Form::Pattern(pattern, sign) => Form::Pattern(pattern, !sign),
        Form::Format(format, sign) => Form::Format(format, !sign),
        Form::CharsGe(count) => Form::CharsLe(count.saturating_sub(1)),
        Form::CharsLe(count) => Form::CharsGe(count.saturating_add(1)),
        Form::StringIn(set, sign) => Form::StringIn(set, !sign),
        Form::Ge(bound) => Form::Lt(bound),
        Form::Gt(bound) => Form::Le(bound),
        Form::Le(bound) => Form::Gt(bound),
        Form::Lt(bound) => Form::Ge(bound),
        Form::Multiple(number, sign) => Form::Multiple(number, !sign),
        Form::Integer(sign) => Form::Integer(!sign),
        Form::IntegerText(sign) => Form::IntegerText(!sign),
        Form::NumberIn(set, sign) => Form::NumberIn(set, !sign),
        _ => return None,
    })
}
