//! Values of any type: a rule for each formula that some value must satisfy.

use maskwright_grammar_core::util::FxHashMap;

use super::{
    ConvertError,
    basics::{Basic, Basics},
    expr::{Expr, RuleId},
    left_out::{LeftOut, Omissions},
    rules::{RuleKind, Rules, clean},
};
use crate::{
    formula::{Form, FormulaId, Formulas},
    location::Location,
    machine::Whitespace,
    parse::{JsonType, Keyword},
    viability::{Verdict, Viability},
};

/// The greatest count in a grammar: llama.cpp unfolds repetitions, and
/// refuses larger ones.
pub(super) const MAX_COUNT: u32 = 2_000;
/// How many branches of a choice are compared with each other.
const MAX_BRANCHES: usize = 24;

/// A conversion in progress.
#[derive(Debug)]
pub(super) struct Converter {
    pub(super) formulas: Formulas,
    pub(super) viability: Viability,
    pub(super) rules: Rules,
    pub(super) basics: Basics,
    pub(super) left_out: Omissions,
    /// The rules of value formulas.
    values: FxHashMap<FormulaId, Expr>,
    /// Those that are not made yet.
    queue: Vec<(FormulaId, RuleId, String)>,
    /// The strings and numbers of typed formulas.
    pub(super) strings: FxHashMap<FormulaId, Expr>,
    pub(super) numbers: FxHashMap<FormulaId, Expr>,
}

impl Converter {
    pub(super) fn new(
        formulas: Formulas,
        viability: Viability,
        whitespace: Whitespace,
    ) -> Converter {
        Converter {
            formulas,
            viability,
            rules: Rules::default(),
            basics: Basics::new(whitespace),
            left_out: Omissions::default(),
            values: FxHashMap::default(),
            queue: Vec::new(),
            strings: FxHashMap::default(),
            numbers: FxHashMap::default(),
        }
    }

    /// Makes every rule that the schema leads to.
    pub(super) fn run(
        mut self,
    ) -> Result<(String, Vec<LeftOut>), ConvertError> {
        let root = self.rules.declare("root", RuleKind::Place)?;
        let value = self.formulas.root();
        if value.is_true() {
            let any = self.basic(Basic::Value)?;
            self.rules.define(root, any);
        } else {
            self.values.insert(value, Expr::rule(root));
            self.queue.push((value, root, "root".to_owned()));
        }
        while let Some((value, rule, hint)) = self.queue.pop() {
            let body = self.value_body(value, &hint)?;
            self.rules.define(rule, body);
        }
        if !self.rules.finish(root) {
            let kind = crate::ErrorKind::Unsatisfiable {
                explanation: "no document is finite".to_owned(),
            };
            let error = crate::SchemaError::new(kind, Location::root());
            return Err(error.into());
        }
        if let Some(object) = self.basics.made(Basic::Object)
            && self.rules.is_used(root, object)
        {
            self.note_free();
        }
        Ok((self.rules.text(root), self.left_out.into_list()))
    }

    pub(super) fn basic(
        &mut self,
        basic: Basic,
    ) -> Result<Expr, ConvertError> {
        self.basics.get(basic, &mut self.rules)
    }

    pub(super) fn note(
        &mut self,
        value: FormulaId,
        keywords: &[&str],
        reason: &str,
    ) {
        self.left_out.note(&mut self.formulas, value, keywords, reason);
    }

    /// Notes what no grammar holds of values that nothing is asked of.
    fn note_free(&mut self) {
        self.left_out.push(LeftOut {
            keyword: "additionalProperties".to_owned(),
            location: Location::root(),
            reason: "in objects of which the schema asks nothing, a key may \
                     come twice"
                .to_owned(),
        });
    }

    /// The rule of the values that satisfy a formula.
    pub(super) fn value(
        &mut self,
        value: FormulaId,
        hint: &str,
    ) -> Result<Expr, ConvertError> {
        if value.is_false() {
            return Ok(Expr::never());
        }
        if value.is_true() {
            return self.basic(Basic::Value);
        }
        if let Some(made) = self.values.get(&value) {
            return Ok(made.clone());
        }
        let hint = self.name_of(value).unwrap_or_else(|| hint.to_owned());
        let rule = self.rules.declare(&hint, RuleKind::Place)?;
        self.values.insert(value, Expr::rule(rule));
        self.queue.push((value, rule, hint));
        Ok(Expr::rule(rule))
    }

    /// What people would call a value: the place of its schema.
    fn name_of(&self, value: FormulaId) -> Option<String> {
        let Form::Goal(goal) = *self.formulas.form(value) else {
            return None;
        };
        let node = self.formulas.goal_value(goal).node;
        let place = self.formulas.schema().location(node);
        let mut tokens = place.pointer.as_str().split('/').skip(1);
        let mut names: Vec<String> = Vec::new();
        while let Some(token) = tokens.next() {
            match token {
                "$defs" | "definitions" => {
                    names.clear();
                    names.extend(tokens.next().map(clean));
                }
                "properties" | "patternProperties" | "dependentSchemas"
                | "dependencies" => names.extend(tokens.next().map(clean)),
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    let what = match token {
                        "allOf" => "part",
                        "prefixItems" => "item",
                        _ => "option",
                    };
                    let number = tokens.next().and_then(|it| it.parse().ok());
                    let number = number.map_or(1, |number: u32| number + 1);
                    names.push(format!("{what}-{number}"));
                }
                "items" | "additionalItems" | "unevaluatedItems" => {
                    names.push("item".to_owned());
                }
                "additionalProperties" | "unevaluatedProperties" => {
                    names.push("other".to_owned());
                }
                other => names.push(clean(other)),
            }
        }
        let kept = names.len().saturating_sub(2);
        (!names.is_empty()).then(|| clean(&names[kept..].join("-")))
    }

    fn value_body(
        &mut self,
        value: FormulaId,
        hint: &str,
    ) -> Result<Expr, ConvertError> {
        if let Some(branches) = self.branches(value)? {
            let mut ways = Vec::new();
            for (branch, number) in branches.into_iter().zip(1..) {
                ways.push(self.value(branch, &format!("{hint}-{number}"))?);
            }
            return Ok(Expr::choice(ways));
        }
        let mut typed = [FormulaId::FALSE; JsonType::ALL.len()];
        for json_type in JsonType::ALL {
            let formula = self.formulas.typed(value, json_type)?;
            typed[json_type.index()] = formula;
        }
        if typed.iter().all(|formula| formula.is_true()) {
            return self.basic(Basic::Value);
        }
        let of = |json_type: JsonType| typed[json_type.index()];
        let mut ways = vec![
            self.object(value, of(JsonType::Object), hint)?,
            self.array(value, of(JsonType::Array), hint)?,
        ];
        let string = of(JsonType::String);
        if !string.is_false() {
            ways.push(self.string(value, string, hint)?);
        }
        ways.push(self.number(value, of(JsonType::Number), hint)?);
        let (yes, no) = (of(JsonType::True), of(JsonType::False));
        match (yes.is_true(), no.is_true()) {
            (true, true) => ways.push(self.basic(Basic::Boolean)?),
            (true, false) => ways.push(Expr::literal("true")),
            (false, true) => ways.push(Expr::literal("false")),
            (false, false) => {}
        }
        if of(JsonType::Null).is_true() {
            ways.push(Expr::literal("null"));
        }
        Ok(Expr::choice(ways))
    }

    /// The branches of a formula that is a choice, each with a rule of its
    /// own, where that says the same.
    fn branches(
        &mut self,
        value: FormulaId,
    ) -> Result<Option<Vec<FormulaId>>, ConvertError> {
        let branches = match self.formulas.form(value).clone() {
            Form::Or(parts) => parts.to_vec(),
            Form::Goal(goal) => {
                let goal = self.formulas.goal_value(goal);
                let keywords = self.formulas.schema().keywords(goal.node);
                let is_exclusive = match keywords {
                    [Keyword::AnyOf(_)] => false,
                    [Keyword::OneOf(_)] => true,
                    _ => return Ok(None),
                };
                let branches = self.formulas.applied_in_place(goal);
                if is_exclusive && !self.are_disjoint(&branches)? {
                    return Ok(None);
                }
                branches
            }
            _ => return Ok(None),
        };
        for &branch in &branches {
            if !self.is_ordered_alike(value, branch)? {
                return Ok(None);
            }
        }
        Ok(Some(branches))
    }

    /// Whether no value satisfies two of some formulas.
    fn are_disjoint(
        &mut self,
        branches: &[FormulaId],
    ) -> Result<bool, ConvertError> {
        if branches.len() > MAX_BRANCHES {
            return Ok(false);
        }
        for (index, &one) in branches.iter().enumerate() {
            for &other in &branches[index + 1..] {
                let both = self.formulas.and([one, other]);
                let verdict =
                    self.viability.value(&mut self.formulas, both)?;
                if verdict != Verdict::No {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether the members of a branch come in the same order alone as they
    /// do under the whole: the names that only other branches declare must
    /// not be able to come.
    fn is_ordered_alike(
        &mut self,
        value: FormulaId,
        branch: FormulaId,
    ) -> Result<bool, ConvertError> {
        let object = self.formulas.typed(branch, JsonType::Object)?;
        if object.is_false() || object.is_true() {
            return Ok(true);
        }
        let whole = self.formulas.property_order(value);
        let own = self.formulas.property_order(branch);
        let mut shared = own.iter();
        for &name in &*whole {
            if own.contains(&name) {
                if shared.next() != Some(&name) {
                    return Ok(false);
                }
            } else if !self.formulas.derive_name(object, name).is_false() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
