//! From a schema node to a formula of one JSON type.

use std::sync::Arc;

use maskwright_grammar_core::util::FxHashSet;

use super::arena::{Formulas, Parts};
use super::form::{
    Env, EnvId, Form, FormulaId, Goal, GoalId, KeySet, NO_END, constant_type,
};
use crate::error::{ErrorKind, SchemaError};
use crate::parse::DynamicScope;
use crate::parse::{
    Constant, ConstantId, JsonType, Keyword, NameId, NodeId, NodeKind,
    NumberRule, PatternId, ResourceId, Schema, TypeSet,
};

/// Enumerations up to this size become one case a constant.
const MAX_CASES: usize = 32;

impl Formulas {
    /// The value formula "valid for this node, reached in this scope".
    pub(super) fn goal(&mut self, node: NodeId, env: EnvId) -> FormulaId {
        let schema = Arc::clone(&self.schema);
        let (mut node, mut env) = (node, env);
        loop {
            env = self.enter(env, schema.node(node).resource);
            match schema.node(node).kind {
                NodeKind::Any => return FormulaId::TRUE,
                NodeKind::Never => return FormulaId::FALSE,
                // A node that only refers is what it refers to. Cycles of
                // such nodes were refused when the schema was read.
                NodeKind::Keywords { .. } => match schema.keywords(node)[..] {
                    [Keyword::Ref(target)] => node = target,
                    // Equal constants are equal formulas, wherever they
                    // stand, and the case distinctions rely on that.
                    [Keyword::Const(constant)] => {
                        return self.equals(constant);
                    }
                    [Keyword::Type(types), Keyword::Const(constant)]
                    | [Keyword::Const(constant), Keyword::Type(types)]
                        if self.are_of(&[constant], types) =>
                    {
                        return self.equals(constant);
                    }
                    [Keyword::Enum(ref constants)]
                        if constants.len() <= MAX_CASES =>
                    {
                        return self.equals_one(constants);
                    }
                    [Keyword::Type(types), Keyword::Enum(ref constants)]
                    | [Keyword::Enum(ref constants), Keyword::Type(types)]
                        if constants.len() <= MAX_CASES
                            && self.are_of(constants, types) =>
                    {
                        return self.equals_one(constants);
                    }
                    _ => break,
                },
            }
        }
        let (goal, _) = self.goals.insert_full(Goal { node, env });
        self.make(Form::Goal(GoalId::new(goal)))
    }

    /// Whether constants are no numbers and have one of the types.
    fn are_of(&self, constants: &[ConstantId], types: TypeSet) -> bool {
        constants.iter().all(|&constant| {
            let value = self.pool.constant_value(constant);
            let json_type = constant_type(value);
            json_type != JsonType::Number && types.contains(json_type)
        })
    }

    /// The value formula "equal to one of these constants".
    fn equals_one(&mut self, constants: &[ConstantId]) -> FormulaId {
        let parts: Parts =
            constants.iter().map(|&constant| self.equals(constant)).collect();
        self.or(parts)
    }

    /// The constants of a disjunction of equalities, if it is one.
    pub(super) fn enumeration(
        &self,
        parts: &[FormulaId],
    ) -> Option<Vec<ConstantId>> {
        let constants = parts.iter().map(|&part| match *self.form(part) {
            Form::Const(constant) => Some(constant),
            _ => None,
        });
        constants.collect()
    }

    /// The value formula "equal to this constant".
    pub fn equals(&mut self, constant: ConstantId) -> FormulaId {
        self.make(Form::Const(constant))
    }

    /// Enters a resource.
    fn enter(&mut self, env: EnvId, resource: ResourceId) -> EnvId {
        if !self.schema.is_dynamic {
            return env;
        }
        let scopes = &self.schema.scopes;
        let matters =
            scopes.get(resource.index()).is_some_and(DynamicScope::matters);
        let old: &Env = &self.envs[env.index()];
        if !matters || old.contains(&resource) {
            return env;
        }
        let new: Env = old.iter().copied().chain([resource]).collect();
        EnvId::new(self.envs.insert_full(new).0)
    }

    /// The formula that a value formula becomes once the type is known.
    ///
    /// `null`, `true` and `false` give a constant.
    ///
    /// # Errors
    ///
    /// Fails where a schema applies itself to the same value through a
    /// dynamic reference, and where a limit is met.
    pub fn typed(
        &mut self,
        formula: FormulaId,
        json_type: JsonType,
    ) -> Result<FormulaId, SchemaError> {
        if formula.is_true() || formula.is_false() {
            return Ok(formula);
        }
        if let Some(&known) = self.typed.get(&(formula, json_type)) {
            return Ok(known);
        }
        let typed = match self.form(formula).clone() {
            Form::And(parts) => {
                let parts = self.typed_parts(&parts, json_type)?;
                self.and(parts)
            }
            Form::Or(parts) => {
                if let Some(constants) = self.enumeration(&parts) {
                    self.one_of_constants(&constants, json_type)
                } else {
                    let parts = self.typed_parts(&parts, json_type)?;
                    self.or(parts)
                }
            }
            Form::Goal(goal) => self.expand_all(goal, json_type)?,
            Form::NotGoal(_) | Form::NotConst(_) => {
                let positive = self.negate(formula);
                let typed = self.typed(positive, json_type)?;
                self.negate(typed)
            }
            Form::Const(constant) => self.constant(constant, json_type),
            // Atoms and leaves are not value formulas.
            _ => FormulaId::FALSE,
        };
        self.check_limits()?;
        self.check_depth(typed, formula)?;
        self.typed.insert((formula, json_type), typed);
        Ok(typed)
    }

    fn typed_parts(
        &mut self,
        parts: &[FormulaId],
        json_type: JsonType,
    ) -> Result<Parts, SchemaError> {
        parts.iter().map(|&part| self.typed(part, json_type)).collect()
    }

    fn check_depth(
        &self,
        typed: FormulaId,
        formula: FormulaId,
    ) -> Result<(), SchemaError> {
        let limit = self.limits.max_formula_depth;
        let depth = self.depth(typed) as usize;
        if depth <= limit {
            return Ok(());
        }
        let place = match self.form(formula) {
            Form::Goal(goal) => {
                self.schema.location(self.goal_value(*goal).node)
            }
            _ => crate::location::Location::root(),
        };
        let (limit, value) = (limit as u64, depth as u64);
        Err(SchemaError::limit("nesting of a formula", limit, value, place))
    }

    /// Expands a goal after everything that it applies in place.
    fn expand_all(
        &mut self,
        goal: GoalId,
        json_type: JsonType,
    ) -> Result<FormulaId, SchemaError> {
        let schema = Arc::clone(&self.schema);
        let top = self.make(Form::Goal(goal));
        let mut stack = vec![top];
        let mut open: FxHashSet<FormulaId> = FxHashSet::default();
        while let Some(&formula) = stack.last() {
            let known = self.typed.contains_key(&(formula, json_type));
            let Form::Goal(goal) = *self.form(formula) else {
                stack.pop();
                continue;
            };
            if known {
                stack.pop();
                continue;
            }
            let goal = self.goal_value(goal);
            let before = stack.len();
            if !excludes(&schema, goal.node, json_type) {
                self.in_place(&schema, goal, json_type, &mut stack);
            }
            if stack.len() == before {
                let typed = self.expand(&schema, goal, json_type)?;
                self.check_depth(typed, formula)?;
                self.typed.insert((formula, json_type), typed);
                stack.pop();
                continue;
            }
            // What is open and met again would apply itself.
            open.insert(formula);
            let cycle = stack[before..].iter().any(|part| open.contains(part));
            if cycle {
                let place = schema.location(goal.node);
                return Err(SchemaError::new(ErrorKind::InPlaceCycle, place));
            }
        }
        let typed = self.typed.get(&(top, json_type));
        Ok(typed.copied().unwrap_or(FormulaId::FALSE))
    }

    /// Pushes the goals that a goal applies in place and that are not
    /// expanded yet.
    fn in_place(
        &mut self,
        schema: &Schema,
        goal: Goal,
        json_type: JsonType,
        out: &mut Vec<FormulaId>,
    ) {
        let mut push = |this: &mut Formulas, node: NodeId| {
            let formula = this.goal(node, goal.env);
            let is_goal = matches!(this.form(formula), Form::Goal(_));
            if is_goal && !this.typed.contains_key(&(formula, json_type)) {
                out.push(formula);
            }
        };
        for keyword in schema.keywords(goal.node) {
            match keyword {
                Keyword::DynamicRef { .. } | Keyword::RecursiveRef { .. } => {
                    let node = self.dynamic_target(keyword, goal.env);
                    push(self, node);
                }
                Keyword::DependentSchemas(_)
                    if json_type != JsonType::Object => {}
                keyword => {
                    crate::parse::builder::in_place(keyword, |node| {
                        push(self, node);
                    });
                }
            }
        }
    }

    /// What a dynamic reference means in a scope.
    pub(super) fn dynamic_target(
        &self,
        keyword: &Keyword,
        env: EnvId,
    ) -> NodeId {
        let scopes = self.envs[env.index()]
            .iter()
            .filter_map(|resource| self.schema.scopes.get(resource.index()));
        match *keyword {
            Keyword::DynamicRef { target, anchor: Some(anchor) } => scopes
                .flat_map(|scope| &scope.anchors)
                .find(|(name, _)| *name == anchor)
                .map_or(target, |&(_, node)| node),
            Keyword::RecursiveRef { target, dynamic: true } => {
                let mut scopes = scopes;
                scopes.find_map(|scope| scope.recursive).unwrap_or(target)
            }
            Keyword::DynamicRef { target, .. }
            | Keyword::RecursiveRef { target, .. }
            | Keyword::Ref(target) => target,
            _ => self.schema.root(),
        }
    }

    /// The value formulas of what a goal applies to the same value.
    pub(crate) fn applied_in_place(&mut self, goal: Goal) -> Vec<FormulaId> {
        let schema = Arc::clone(&self.schema);
        let mut applied = Vec::new();
        for keyword in schema.keywords(goal.node) {
            if let Keyword::DynamicRef { .. } | Keyword::RecursiveRef { .. } =
                keyword
            {
                let node = self.dynamic_target(keyword, goal.env);
                applied.push(self.goal(node, goal.env));
                continue;
            }
            crate::parse::builder::in_place(keyword, |node| {
                applied.push(self.goal(node, goal.env));
            });
        }
        applied
    }

    /// The typed formula of a node applied in place; it is expanded already.
    pub(super) fn applied(
        &mut self,
        node: NodeId,
        env: EnvId,
        json_type: JsonType,
    ) -> FormulaId {
        let formula = self.goal(node, env);
        if formula.is_true() || formula.is_false() {
            return formula;
        }
        match self.form(formula).clone() {
            Form::Const(constant) => {
                return self.constant(constant, json_type);
            }
            Form::Or(parts) => {
                let constants = self.enumeration(&parts).unwrap_or_default();
                return self.one_of_constants(&constants, json_type);
            }
            _ => {}
        }
        let known = self.typed.get(&(formula, json_type));
        known.copied().unwrap_or(FormulaId::FALSE)
    }

    /// Expands one goal.
    fn expand(
        &mut self,
        schema: &Schema,
        goal: Goal,
        json_type: JsonType,
    ) -> Result<FormulaId, SchemaError> {
        if excludes(schema, goal.node, json_type) {
            return Ok(FormulaId::FALSE);
        }
        let mut out = Parts::new();
        for keyword in schema.keywords(goal.node) {
            if let (Keyword::PropertyNames(node), JsonType::Object) =
                (keyword, json_type)
            {
                out.push(self.property_names(*node, goal.env)?);
            }
            let part = self.keyword(keyword, goal, json_type);
            match json_type {
                JsonType::Object => self.object(keyword, goal.env, &mut out),
                JsonType::Array => self.array(keyword, goal.env, &mut out),
                JsonType::Number => self.number(keyword, &mut out),
                JsonType::String => self.string(keyword, &mut out),
                JsonType::Null | JsonType::False | JsonType::True => {}
            }
            out.push(part);
            if part.is_false() {
                return Ok(part);
            }
            let unevaluated = match (keyword, json_type) {
                (Keyword::UnevaluatedProperties(node), JsonType::Object)
                | (Keyword::UnevaluatedItems(node), JsonType::Array) => *node,
                _ => continue,
            };
            let part = self.unevaluated(goal, unevaluated, json_type)?;
            out.push(part);
        }
        Ok(self.and(out))
    }

    /// The part of a keyword that is about values of every type.
    fn keyword(
        &mut self,
        keyword: &Keyword,
        goal: Goal,
        json_type: JsonType,
    ) -> FormulaId {
        let env = goal.env;
        match keyword {
            Keyword::Ref(_)
            | Keyword::DynamicRef { .. }
            | Keyword::RecursiveRef { .. } => {
                let node = self.dynamic_target(keyword, env);
                self.applied(node, env, json_type)
            }
            Keyword::Enum(constants) => {
                self.one_of_constants(constants, json_type)
            }
            Keyword::Const(constant) => self.constant(*constant, json_type),
            Keyword::AllOf(nodes) => {
                let parts = self.branches(nodes, env, json_type);
                self.and(parts)
            }
            Keyword::AnyOf(nodes) => {
                let parts = self.branches(nodes, env, json_type);
                self.or(parts)
            }
            Keyword::OneOf(nodes) => {
                let parts = self.branches(nodes, env, json_type);
                self.exactly_one(&parts, json_type)
            }
            Keyword::Not(node) => {
                let formula = self.applied(*node, env, json_type);
                self.negate(formula)
            }
            Keyword::If { condition, then, otherwise } => {
                let condition = self.applied(*condition, env, json_type);
                let mut branch = |node: &Option<NodeId>| match node {
                    Some(node) => self.applied(*node, env, json_type),
                    None => FormulaId::TRUE,
                };
                let (then, otherwise) = (branch(then), branch(otherwise));
                self.if_then_else(condition, then, otherwise)
            }
            _ => FormulaId::TRUE,
        }
    }

    fn if_then_else(
        &mut self,
        condition: FormulaId,
        then: FormulaId,
        otherwise: FormulaId,
    ) -> FormulaId {
        let negation = self.negate(condition);
        let first = self.or([negation, then]);
        let second = self.or([condition, otherwise]);
        self.and([first, second])
    }

    fn branches(
        &mut self,
        nodes: &[NodeId],
        env: EnvId,
        json_type: JsonType,
    ) -> Parts {
        nodes.iter().map(|&node| self.applied(node, env, json_type)).collect()
    }

    /// Equality with one of several constants.
    fn one_of_constants(
        &mut self,
        constants: &[ConstantId],
        json_type: JsonType,
    ) -> FormulaId {
        match json_type {
            JsonType::String => {
                let names = constants.iter().filter_map(|&id| {
                    match self.pool.constant_value(id) {
                        Constant::String(name) => Some(*name),
                        _ => None,
                    }
                });
                let names = names.collect();
                self.string_in(names, true)
            }
            JsonType::Number => {
                let numbers = constants.iter().filter_map(|&id| {
                    match self.pool.constant_value(id) {
                        Constant::Number(number) => Some(*number),
                        _ => None,
                    }
                });
                let numbers = numbers.collect();
                self.number_in(numbers, true)
            }
            _ => {
                let parts: Parts = constants
                    .iter()
                    .map(|&constant| self.constant(constant, json_type))
                    .collect();
                self.or(parts)
            }
        }
    }

    /// Equality with a constant.
    fn constant(
        &mut self,
        constant: ConstantId,
        json_type: JsonType,
    ) -> FormulaId {
        let value = self.pool.constant_value(constant);
        if constant_type(value) != json_type {
            return FormulaId::FALSE;
        }
        match value.clone() {
            Constant::Null | Constant::False | Constant::True => {
                FormulaId::TRUE
            }
            Constant::Number(number) => self.number_in(vec![number], true),
            Constant::String(name) => self.string_in(vec![name], true),
            Constant::Array(items) => {
                let length = items.len() as u64;
                let mut parts = Parts::new();
                parts.push(self.len_ge(length));
                parts.push(self.make(Form::LenLe(length)));
                for (index, &item) in (0..).zip(&*items) {
                    let goal = self.equals(item);
                    parts.push(self.items_all(index, index + 1, goal));
                }
                self.and(parts)
            }
            Constant::Object(members) => {
                let mut parts = Parts::new();
                let mut names = Vec::with_capacity(members.len());
                for &(name, value) in &*members {
                    let goal = self.equals(value);
                    let set = self.one_name(name);
                    parts.push(self.make(Form::Ex(set, FormulaId::TRUE)));
                    parts.push(self.all(set, goal));
                    names.push(name);
                }
                let others = self.none_of(&names, &[]);
                parts.push(self.all(others, FormulaId::FALSE));
                self.and(parts)
            }
        }
    }

    /// The keys that are none of these names and match none of the patterns.
    fn none_of(
        &mut self,
        names: &[NameId],
        patterns: &[PatternId],
    ) -> super::form::KeySetId {
        let mut sets = Vec::with_capacity(patterns.len() + 1);
        if !names.is_empty() {
            let mut names = names.to_vec();
            names.sort_unstable();
            names.dedup();
            sets.push(self.make_key_set(KeySet::Names(names.into())));
        }
        for &pattern in patterns {
            sets.push(self.pattern_keys(pattern));
        }
        if sets.is_empty() {
            return self.make_key_set(KeySet::Any);
        }
        sets.sort_unstable();
        sets.dedup();
        self.make_key_set(KeySet::NoneOf(sets.into()))
    }

    /// Every key satisfies a schema, as a string.
    fn property_names(
        &mut self,
        node: NodeId,
        env: EnvId,
    ) -> Result<FormulaId, SchemaError> {
        let goal = self.goal(node, env);
        let typed = self.typed(goal, JsonType::String)?;
        let bad = match typed {
            FormulaId::TRUE => return Ok(FormulaId::TRUE),
            FormulaId::FALSE => KeySet::Any,
            typed => {
                let good = self.make_key_set(KeySet::Satisfying(typed));
                KeySet::NoneOf(Arc::new([good]))
            }
        };
        let bad = self.make_key_set(bad);
        Ok(self.all(bad, FormulaId::FALSE))
    }

    /// The member with this name exists.
    pub(super) fn has(&mut self, name: NameId) -> FormulaId {
        let set = self.one_name(name);
        self.make(Form::Ex(set, FormulaId::TRUE))
    }

    /// The member with this name does not exist.
    fn has_not(&mut self, name: NameId) -> FormulaId {
        let set = self.one_name(name);
        self.make(Form::All(set, FormulaId::FALSE))
    }

    /// The part of a keyword that is about objects.
    fn object(&mut self, keyword: &Keyword, env: EnvId, out: &mut Parts) {
        match keyword {
            Keyword::Properties(members) => {
                for &(name, node) in members {
                    let goal = self.goal(node, env);
                    let set = self.one_name(name);
                    out.push(self.all(set, goal));
                }
            }
            Keyword::PatternProperties(members) => {
                for &(pattern, node) in members {
                    let goal = self.goal(node, env);
                    let set = self.pattern_keys(pattern);
                    out.push(self.all(set, goal));
                }
            }
            Keyword::AdditionalProperties { node, names, patterns } => {
                let goal = self.goal(*node, env);
                let set = self.none_of(names, patterns);
                out.push(self.all(set, goal));
            }
            Keyword::Required(names) => {
                for &name in names {
                    out.push(self.has(name));
                }
            }
            Keyword::MinProperties(count) => out.push(self.count_ge(*count)),
            Keyword::MaxProperties(count) => {
                out.push(self.make(Form::CountLe(*count)));
            }
            Keyword::DependentRequired(members) => {
                for (name, needed) in members {
                    let needed: Parts =
                        needed.iter().map(|&name| self.has(name)).collect();
                    let needed = self.and(needed);
                    let absent = self.has_not(*name);
                    out.push(self.or([absent, needed]));
                }
            }
            Keyword::DependentSchemas(members) => {
                for &(name, node) in members {
                    let applied = self.applied(node, env, JsonType::Object);
                    let absent = self.has_not(name);
                    out.push(self.or([absent, applied]));
                }
            }
            _ => {}
        }
    }

    /// The part of a keyword that is about arrays.
    fn array(&mut self, keyword: &Keyword, env: EnvId, out: &mut Parts) {
        match keyword {
            Keyword::PrefixItems(nodes) => {
                for (index, &node) in (0..).zip(nodes) {
                    let goal = self.goal(node, env);
                    out.push(self.items_all(index, index + 1, goal));
                }
            }
            Keyword::Items { from, node } => {
                let goal = self.goal(*node, env);
                out.push(self.items_all(*from, NO_END, goal));
            }
            Keyword::Contains { node, min, max, .. } => {
                let goal = self.goal(*node, env);
                out.push(self.contains_ge(goal, *min));
                if let Some(max) = max {
                    out.push(self.contains_le(goal, *max));
                }
            }
            Keyword::MinItems(count) => out.push(self.len_ge(*count)),
            Keyword::MaxItems(count) => {
                out.push(self.make(Form::LenLe(*count)));
            }
            Keyword::UniqueItems => out.push(self.make(Form::Unique)),
            _ => {}
        }
    }

    /// At least `count` items satisfy a goal.
    pub(super) fn contains_ge(
        &mut self,
        goal: FormulaId,
        count: u64,
    ) -> FormulaId {
        match count {
            0 => FormulaId::TRUE,
            _ if goal.is_false() => FormulaId::FALSE,
            _ if goal.is_true() => self.len_ge(count),
            _ => self.make(Form::ContainsGe(goal, count)),
        }
    }

    /// At most `count` items satisfy a goal.
    pub(super) fn contains_le(
        &mut self,
        goal: FormulaId,
        count: u64,
    ) -> FormulaId {
        if goal.is_false() {
            return FormulaId::TRUE;
        }
        if goal.is_true() {
            return self.make(Form::LenLe(count));
        }
        self.make(Form::ContainsLe(goal, count))
    }

    /// The part of a keyword that is about strings.
    fn string(&mut self, keyword: &Keyword, out: &mut Parts) {
        match keyword {
            Keyword::MinLength(0) => {}
            Keyword::MinLength(count) => {
                out.push(self.make(Form::CharsGe(*count)));
            }
            Keyword::MaxLength(count) => {
                out.push(self.make(Form::CharsLe(*count)));
            }
            Keyword::Pattern(pattern) => {
                out.push(self.make(Form::Pattern(*pattern, true)));
            }
            Keyword::Format(format) => {
                out.push(self.make(Form::Format(*format, true)));
            }
            _ => {}
        }
    }

    /// The part of a keyword that is about numbers.
    fn number(&mut self, keyword: &Keyword, out: &mut Parts) {
        let form = match *keyword {
            Keyword::Type(TypeSet { numbers, .. }) => match numbers {
                NumberRule::Integer => Form::Integer(true),
                NumberRule::IntegerText => Form::IntegerText(true),
                NumberRule::None | NumberRule::All => return,
            },
            Keyword::MultipleOf(number) => Form::Multiple(number, true),
            Keyword::Minimum { limit, exclusive: false } => Form::Ge(limit),
            Keyword::Minimum { limit, exclusive: true } => Form::Gt(limit),
            Keyword::Maximum { limit, exclusive: false } => Form::Le(limit),
            Keyword::Maximum { limit, exclusive: true } => Form::Lt(limit),
            _ => return,
        };
        out.push(self.make(form));
    }
}

/// Whether `type` alone rules out a type.
fn excludes(schema: &Schema, node: NodeId, json_type: JsonType) -> bool {
    schema.keywords(node).iter().any(|keyword| match keyword {
        Keyword::Type(types) => !types.contains(json_type),
        _ => false,
    })
}
