//! Objects: a place for each name, in order, and what is still asked there.

use maskwright_grammar_core::{
    regular::{Answer, Language, Limits, Regex},
    util::FxHashMap,
};

use super::{
    ConvertError, Trouble,
    basics::{Basic, json_string, quoted},
    expr::Expr,
    graph::{END, Places, START},
    rules::clean,
    values::Converter,
};
use crate::{
    format::{self, Bound},
    formula::{Form, FormulaId, Formulas, Key, KeySet, KeySetId, Term},
    parse::{NameId, PatternId},
};

/// The most kinds of keys that are told apart.
const MAX_CLASSES: usize = 48;

/// What is left out, step by step, where a grammar would be too large.
const STEPS: [(Keep, &[&str], &str); 4] = [
    (
        Keep::Flat,
        &[
            "anyOf",
            "oneOf",
            "not",
            "if",
            "dependentRequired",
            "dependentSchemas",
            "unevaluatedProperties",
        ],
        "what it asks of members together would need too many rules",
    ),
    (
        Keep::Uncounted,
        &["minProperties", "maxProperties"],
        "counting members would need too many rules",
    ),
    (
        Keep::Names,
        &["patternProperties", "propertyNames"],
        "its kinds of keys would need too many rules",
    ),
    (
        Keep::Nothing,
        &["properties", "required", "additionalProperties"],
        "its members would need too many rules; any object is allowed",
    ),
];

/// How much of an object formula is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Keep {
    /// Conditions on one member at a time, and counts.
    Flat,
    /// Conditions on one member at a time.
    Uncounted,
    /// Conditions on members with names.
    Names,
    Nothing,
}

/// Keys that no condition tells apart.
#[derive(Clone, Debug)]
struct KeyClass {
    /// The sets that hold them.
    inside: Vec<KeySetId>,
    regex: Regex,
}

/// A key of a class, as formulas ask about it.
struct AnyOf<'a>(&'a KeyClass);

impl Key for AnyOf<'_> {
    fn name(&self) -> Option<NameId> {
        None
    }

    fn matches(&self, formulas: &Formulas, pattern: PatternId) -> bool {
        let is_it = |set: &KeySetId| {
            *formulas.key_set(*set) == KeySet::Pattern(pattern)
        };
        self.0.inside.iter().any(is_it)
    }

    fn satisfies(&self, formulas: &Formulas, formula: FormulaId) -> bool {
        let is_it = |set: &KeySetId| {
            *formulas.key_set(*set) == KeySet::Satisfying(formula)
        };
        self.0.inside.iter().any(is_it)
    }
}

/// A place in an object: what is asked of the members to come, how many of
/// the names were passed, and whether no member has come.
type Place = (FormulaId, usize, bool);

/// An object that is being converted.
struct Walk<'a> {
    converter: &'a mut Converter,
    names: &'a [NameId],
    hint: &'a str,
    classes: Vec<KeyClass>,
    /// The expressions of sets of classes.
    keys: FxHashMap<Vec<usize>, Expr>,
    places: Places<Place>,
    /// Whether a key of a class may come behind another one.
    is_open: bool,
}

impl Converter {
    /// The objects of a typed formula.
    pub(super) fn object(
        &mut self,
        value: FormulaId,
        typed: FormulaId,
        hint: &str,
    ) -> Result<Expr, ConvertError> {
        if typed.is_false() {
            return Ok(Expr::never());
        }
        let order = self.formulas.property_order(value);
        let mut rest = typed;
        let mut steps = STEPS.iter();
        loop {
            if rest.is_true() {
                return self.basic(Basic::Object);
            }
            match self.object_graph(value, rest, &order, hint) {
                Ok(made) => return Ok(made),
                Err(Trouble::Error(error)) => return Err(error),
                Err(Trouble::TooMany) => {}
            }
            let Some((keep, keywords, reason)) = steps.next() else {
                return self.basic(Basic::Object);
            };
            let less = self.kept(rest, *keep);
            if less != rest {
                self.note(value, keywords, reason);
            }
            rest = less;
        }
    }

    /// Less of an object formula.
    fn kept(&mut self, typed: FormulaId, keep: Keep) -> FormulaId {
        if let Form::Or(ways) = self.formulas.form(typed).clone() {
            let ways: Vec<FormulaId> =
                ways.iter().map(|&way| self.kept(way, keep)).collect();
            return self.formulas.or(ways);
        }
        let parts = self.formulas.conjuncts(typed).into_iter();
        let kept: Vec<FormulaId> =
            parts.filter(|&part| self.is_kept(part, keep)).collect();
        self.formulas.and(kept)
    }

    fn is_kept(&self, part: FormulaId, keep: Keep) -> bool {
        let is_named = |set: KeySetId| match self.formulas.key_set(set) {
            KeySet::Names(_) | KeySet::Any => true,
            KeySet::Pattern(_) | KeySet::Satisfying(_) => false,
            KeySet::NoneOf(sets) => sets.iter().all(|&set| {
                matches!(self.formulas.key_set(set), KeySet::Names(_))
            }),
        };
        match *self.formulas.form(part) {
            _ if keep == Keep::Nothing => false,
            Form::CountGe(_) | Form::CountLe(_) => keep == Keep::Flat,
            Form::All(set, _) | Form::Ex(set, _) => {
                keep != Keep::Names || is_named(set)
            }
            _ => false,
        }
    }

    fn object_graph(
        &mut self,
        value: FormulaId,
        typed: FormulaId,
        order: &[NameId],
        hint: &str,
    ) -> Result<Expr, Trouble> {
        let site = self.formulas.make_object_site(typed, order);
        let names: Vec<NameId> = site.names.iter().map(|it| it.name).collect();
        let classes = self.key_classes(value, typed, &names)?;
        let starts = match self.formulas.form(typed).clone() {
            Form::Or(ways) => ways.to_vec(),
            _ => vec![typed],
        };
        let mut walk = Walk {
            converter: self,
            names: &names,
            hint,
            classes,
            keys: FxHashMap::default(),
            places: Places::new(),
            is_open: false,
        };
        for start in starts {
            walk.lead(START, (start, 0, true), Expr::empty())?;
        }
        walk.run()?;
        let Walk { places, is_open, .. } = walk;
        let members = places.graph.expr(hint, &mut self.rules)?;
        if is_open && !members.is_never() {
            self.left_out.note_open(&mut self.formulas, value);
        }
        let gap = self.basics.gap(&mut self.rules)?;
        let (open, close) = (Expr::literal("{"), Expr::literal("}"));
        Ok(Expr::seq([open, gap, members, close]))
    }

    /// Splits the keys without a name by the sets that conditions mention.
    fn key_classes(
        &mut self,
        value: FormulaId,
        typed: FormulaId,
        names: &[NameId],
    ) -> Result<Vec<KeyClass>, Trouble> {
        let mut sets = self.formulas.mentioned(typed).sets;
        sets.sort_unstable();
        sets.dedup();
        let texts = names.iter().map(|&it| self.formulas.pool().name_text(it));
        let regex = Regex::literals(texts).not();
        let mut classes = vec![KeyClass { inside: Vec::new(), regex }];
        for set in sets {
            let (with, without) = self.key_sides(value, set);
            let mut split = Vec::new();
            for class in classes {
                let mut inside = class.inside.clone();
                inside.push(set);
                let sides = [(inside, &with), (class.inside, &without)];
                for (inside, side) in sides {
                    let regex = class.regex.and(side);
                    if !is_dead(&regex) {
                        split.push(KeyClass { inside, regex });
                    }
                }
            }
            classes = split;
            if classes.len() > MAX_CLASSES {
                return Err(Trouble::TooMany);
            }
        }
        Ok(classes)
    }

    /// The keys in a set, and those that are not, or may not be.
    fn key_sides(
        &mut self,
        value: FormulaId,
        set: KeySetId,
    ) -> (Regex, Regex) {
        match *self.formulas.key_set(set) {
            KeySet::Pattern(pattern) => {
                let pattern = self.formulas.pool().pattern_value(pattern);
                let regex = pattern.regex().clone();
                let others = regex.not();
                (regex, others)
            }
            KeySet::Satisfying(formula) => {
                self.note_checked(value, formula);
                let negation = self.formulas.negate(formula);
                let regex = |formula| {
                    let known = format::language;
                    self.formulas.string_regex(formula, Bound::Most, known)
                };
                (regex(formula), regex(negation))
            }
            KeySet::Any | KeySet::Names(_) | KeySet::NoneOf(_) => {
                (Regex::any_string(), Regex::empty())
            }
        }
    }
}

/// Whether a language is known to be empty.
fn is_dead(regex: &Regex) -> bool {
    Language::new(regex, Limits::new()).is_ok_and(|language| {
        language.is_dead(language.start()) == Answer::Yes
    })
}

impl Walk<'_> {
    /// Adds a way to a place, unless nothing fits there.
    fn lead(
        &mut self,
        from: usize,
        place: Place,
        label: Expr,
    ) -> Result<(), Trouble> {
        if place.0.is_false() {
            return Ok(());
        }
        self.places.lead(from, place, label)
    }

    fn run(&mut self) -> Result<(), Trouble> {
        while let Some(((formula, passed, is_first), at)) = self.places.next()
        {
            let Some(&name) = self.names.get(passed) else {
                self.end(formula, is_first, at)?;
                continue;
            };
            let formulas = &mut self.converter.formulas;
            let pending = formulas.derive_name(formula, name);
            let absent = formulas.without_names(formula, &[name]);
            let text = formulas.pool().name_text(name).to_owned();
            let hint = format!("{}-{}", self.hint, clean(&text));
            for term in self.terms(pending)? {
                let key = json_string(&text);
                let label = self.member(is_first, key, &term, &hint)?;
                let rest = term.rest;
                let rest =
                    self.converter.formulas.without_names(rest, &[name]);
                self.lead(at, (rest, passed + 1, false), label)?;
            }
            self.lead(at, (absent, passed + 1, is_first), Expr::empty())?;
        }
        Ok(())
    }

    fn terms(&mut self, pending: FormulaId) -> Result<Vec<Term>, Trouble> {
        let formulas = &mut self.converter.formulas;
        let pending = formulas.factor(pending);
        let terms = formulas.terms(pending).ok_or(Trouble::TooMany)?;
        formulas.check_limits()?;
        Ok(terms)
    }

    /// The expression of one member.
    fn member(
        &mut self,
        is_first: bool,
        key: Expr,
        term: &Term,
        hint: &str,
    ) -> Result<Expr, ConvertError> {
        let converter = &mut *self.converter;
        let goal = converter.formulas.and(term.goals.iter().copied());
        let value = converter.value(goal, hint.trim_start_matches("root-"))?;
        let colon = converter.basics.colon(&mut converter.rules)?;
        let comma = if is_first {
            Expr::empty()
        } else {
            converter.basics.comma(&mut converter.rules)?
        };
        Ok(Expr::seq([comma, key, colon, value]))
    }

    /// Adds what may come behind all names: other members, or the end.
    fn end(
        &mut self,
        formula: FormulaId,
        is_first: bool,
        at: usize,
    ) -> Result<(), Trouble> {
        if self.converter.formulas.holds_at_end(formula, false) {
            let converter = &mut *self.converter;
            let gap = if is_first {
                Expr::empty()
            } else {
                converter.basics.gap(&mut converter.rules)?
            };
            self.places.graph.link(at, END, gap);
        }
        let mut groups: Vec<(FormulaId, Vec<usize>)> = Vec::new();
        for (number, class) in self.classes.iter().enumerate() {
            let formulas = &mut self.converter.formulas;
            let pending = formulas.derive_member(formula, &AnyOf(class));
            if pending.is_false() {
                continue;
            }
            match groups.iter_mut().find(|group| group.0 == pending) {
                Some((_, group)) => group.push(number),
                None => groups.push((pending, vec![number])),
            }
        }
        let hint = format!("{}-other", self.hint);
        let hint = hint.trim_start_matches("root-");
        for (pending, group) in groups {
            for term in self.terms(pending)? {
                let key = self.key(&group)?;
                let label = self.member(is_first, key, &term, hint)?;
                self.is_open |= !is_first;
                let place = (term.rest, self.names.len(), false);
                self.lead(at, place, label)?;
            }
        }
        Ok(())
    }

    /// The keys of some classes, quoted.
    fn key(&mut self, group: &[usize]) -> Result<Expr, Trouble> {
        if let Some(made) = self.keys.get(group) {
            return Ok(made.clone());
        }
        let parts: Vec<Regex> = group
            .iter()
            .map(|&number| self.classes[number].regex.clone())
            .collect();
        let is_free = self.names.is_empty()
            && group.len() == 1
            && self.classes.len() == 1;
        let made = if is_free {
            self.converter.basic(Basic::String)?
        } else {
            let regex = Regex::alternate(&parts);
            let hint = format!("{}-key", self.hint);
            let hint = hint.trim_start_matches("root-");
            let keys = self.converter.regex(&regex, hint)?;
            let keys = quoted(keys.ok_or(Trouble::TooMany)?);
            self.converter.rules.shared(hint, keys)?
        };
        self.keys.insert(group.to_vec(), made.clone());
        Ok(made)
    }
}
