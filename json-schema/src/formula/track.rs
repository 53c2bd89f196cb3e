//! Validates parsed values by derivation: the oracle of the algebra.
//!
//! One pass over the value in the order of its members, with no search: the
//! vector of residual formulas is all the state there is. The byte machine
//! does the same on text.

use std::fmt;

use serde_json::Value;

use super::arena::Formulas;
use super::form::FormulaId;
use crate::error::SchemaError;
use crate::number::Decimal;
use crate::parse::{ConstantId, JsonType};

/// The deepest value that is tracked.
const MAX_DEPTH: usize = 512;

/// Why a value could not be judged.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TrackError {
    /// A formula could not be made.
    Schema(SchemaError),
    /// The value nests deeper than 512 levels.
    TooDeep,
    /// A number has an exponent that is too large to compare.
    Number(String),
}

impl fmt::Display for TrackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrackError::Schema(_) => f.write_str("cannot expand the schema"),
            TrackError::TooDeep => {
                write!(f, "the value nests deeper than {MAX_DEPTH} levels")
            }
            TrackError::Number(text) => {
                write!(f, "the exponent of {text} is too large to compare")
            }
        }
    }
}

impl std::error::Error for TrackError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TrackError::Schema(error) => Some(error),
            TrackError::TooDeep | TrackError::Number(_) => None,
        }
    }
}

impl From<SchemaError> for TrackError {
    fn from(error: SchemaError) -> TrackError {
        TrackError::Schema(error)
    }
}

/// A run of the algebra over parsed values.
#[derive(Debug)]
pub struct Tracker<'f> {
    formulas: &'f mut Formulas,
    /// The most goals that one value was read for.
    widest: usize,
}

impl<'f> Tracker<'f> {
    /// Creates a tracker; it adds to the formulas as it meets values.
    pub fn new(formulas: &'f mut Formulas) -> Tracker<'f> {
        Tracker { formulas, widest: 0 }
    }

    /// The most goals that one value was read for.
    pub fn widest(&self) -> usize {
        self.widest
    }

    /// Whether a value is valid for the whole schema.
    ///
    /// # Errors
    ///
    /// Fails where a limit is met.
    pub fn validate(&mut self, value: &Value) -> Result<bool, TrackError> {
        let root = self.formulas.root();
        self.holds(root, value)
    }

    /// Whether a value satisfies a value formula.
    ///
    /// # Errors
    ///
    /// Fails where a limit is met.
    pub fn holds(
        &mut self,
        goal: FormulaId,
        value: &Value,
    ) -> Result<bool, TrackError> {
        Ok(self.verdicts(value, &[goal], 0)?[0])
    }

    /// The verdict on each of several value formulas. Recursion is on the
    /// nesting of the value, which is bounded.
    fn verdicts(
        &mut self,
        value: &Value,
        goals: &[FormulaId],
        depth: usize,
    ) -> Result<Vec<bool>, TrackError> {
        if depth > MAX_DEPTH {
            return Err(TrackError::TooDeep);
        }
        self.widest = self.widest.max(goals.len());
        let json_type = type_of(value);
        let mut vector = Vec::with_capacity(goals.len());
        for &goal in goals {
            vector.push(self.formulas.typed(goal, json_type)?);
        }
        let formulas = &mut *self.formulas;
        let mut repeated = false;
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                let text = number.as_str();
                let value: Decimal = text
                    .parse()
                    .map_err(|_| TrackError::Number(text.to_owned()))?;
                let holds = |id| formulas.number_holds(id, &value, text);
                return Ok(vector.into_iter().map(holds).collect());
            }
            Value::String(text) => {
                let holds = |id| formulas.string_holds(id, text);
                return Ok(vector.into_iter().map(holds).collect());
            }
            Value::Array(items) => {
                let mut seen: Vec<ConstantId> = Vec::new();
                for item in items {
                    for id in &mut vector {
                        *id = self.formulas.derive_item(*id);
                    }
                    self.child(&mut vector, item, depth)?;
                    let constant = self.formulas.pool_mut().value(item);
                    let constant = constant.ok_or_else(|| {
                        TrackError::Number("a number".to_owned())
                    })?;
                    repeated |= seen.contains(&constant);
                    seen.push(constant);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let name = self.formulas.pool_mut().name(key);
                    for id in &mut vector {
                        *id = self.formulas.derive_name(*id, name);
                    }
                    self.child(&mut vector, member, depth)?;
                }
            }
        }
        let formulas = &*self.formulas;
        let holds = |id| formulas.holds_at_end(id, repeated);
        Ok(vector.into_iter().map(holds).collect())
    }

    /// Reads a child for all leaves of the pending formulas at once, and
    /// puts the verdicts in.
    fn child(
        &mut self,
        pending: &mut [FormulaId],
        child: &Value,
        depth: usize,
    ) -> Result<(), TrackError> {
        let mut leaves = Vec::new();
        for id in &mut *pending {
            *id = self.formulas.factor(*id);
            self.formulas.push_leaves(*id, &mut leaves);
        }
        if leaves.is_empty() {
            return Ok(());
        }
        leaves.sort_unstable();
        leaves.dedup();
        // A goal and its negation share one run.
        let mut runs: Vec<FormulaId> = Vec::with_capacity(leaves.len());
        for &leaf in &leaves {
            let negation = self.formulas.known_negation(leaf);
            if !negation.is_some_and(|other| runs.contains(&other)) {
                runs.push(leaf);
            }
        }
        let verdicts = self.verdicts(child, &runs, depth + 1)?;
        let mut truths = Vec::with_capacity(leaves.len());
        for &leaf in &leaves {
            let at = runs.iter().position(|&run| run == leaf);
            let truth = at.map_or_else(
                || {
                    let negation = self.formulas.known_negation(leaf);
                    let at =
                        runs.iter().position(|&run| Some(run) == negation);
                    at.is_some_and(|at| !verdicts[at])
                },
                |at| verdicts[at],
            );
            truths.push((leaf, truth));
        }
        let truth = |goal: FormulaId| {
            truths
                .binary_search_by_key(&goal, |&(leaf, _)| leaf)
                .is_ok_and(|at| truths[at].1)
        };
        for id in pending {
            *id = self.formulas.substitute(*id, &truth);
        }
        Ok(())
    }
}

/// The JSON type of a value.
pub(crate) fn type_of(value: &Value) -> JsonType {
    match value {
        Value::Null => JsonType::Null,
        Value::Bool(false) => JsonType::False,
        Value::Bool(true) => JsonType::True,
        Value::Number(_) => JsonType::Number,
        Value::String(_) => JsonType::String,
        Value::Array(_) => JsonType::Array,
        Value::Object(_) => JsonType::Object,
    }
}
