//! From questions to sites: what a container, a string or a number is asked,
//! as a table where that is possible.

use maskwright_grammar_core::{
    automaton::AutomatonError,
    regular::{Answer, Regex},
};

use super::{
    Machine,
    algebra::{Algebra, Typed, language, late},
    arrays::{ArraySite, FlatArray},
    checked::Leasts,
    classes::{ClassTable, Classes, Explored},
    general::KeyTest,
    keys::{clear_bit, name_outcome, set_bit},
    names::Names,
    objects::{Flat, Member, ObjectSite, SiteKind},
    prelude::Window,
    strings::StringSpec,
    values::{Question, QuestionId},
};
use crate::{
    format::Bound,
    formula::{self, Formulas, KeySet, KeySetId},
    number::NumberSpec,
    parse::{Constant, ConstantId, JsonType, NameId},
};

/// How many conditions may tell keys without a declared name apart whose
/// classes were not explored: then every set of them may be one.
const MAX_TESTS: usize = 10;
/// Up to how many values of items are counted.
pub(crate) const MAX_COUNTED: u64 = 4_096;
/// Up to how many keys a finite set of undeclared keys becomes declared.
const MAX_WORDS: usize = 64;

impl Machine {
    /// What an object that is asked `question` is, as a site.
    pub(crate) fn object_site(
        &self,
        question: u32,
    ) -> Result<&ObjectSite, AutomatonError> {
        self.parts.object_sites.derived(question, |&question| {
            self.make_object_site(self.parts.questions.get(question.0))
        })
    }

    /// What an array that is asked `question` is, as a site.
    pub(crate) fn array_site(
        &self,
        question: u32,
    ) -> Result<&ArraySite, AutomatonError> {
        self.parts.array_sites.derived(question, |&question| {
            self.make_array_site(self.parts.questions.get(question.0))
        })
    }

    /// The languages of a string's typed formulas.
    pub(crate) fn string_spec(
        &self,
        spec: u32,
    ) -> Result<&StringSpec, AutomatonError> {
        self.parts.strings.derived(spec, |formulas| {
            let languages = |bound, formulas: &[Typed]| {
                let languages = formulas.iter().map(|&formula| {
                    match self.algebra.shared_language(formula) {
                        Some(shared) => Ok(shared),
                        None => language(&self.algebra.regex(formula, bound)),
                    }
                });
                languages.collect::<Result<Vec<_>, _>>()
            };
            let checked: Vec<usize> = (0..formulas.len())
                .filter(|&index| self.algebra.is_checked(formulas[index]))
                .collect();
            let certain: Vec<Typed> =
                checked.iter().map(|&index| formulas[index]).collect();
            let mut asked = formulas.to_vec();
            let mut window = Window::FREE;
            if !checked.contains(&0) {
                // The length is counted beside the automaton, not in it.
                (asked[0], window) = self.algebra.split_length(asked[0]);
            }
            let mut all = languages(Bound::Most, &asked)?;
            all.extend(languages(Bound::Least, &certain)?);
            let list = checked.into_iter().map(|index| (index, ())).collect();
            let leasts = Leasts { list };
            Ok(StringSpec { languages: all.into(), window, leasts })
        })
    }

    /// What a number's typed formulas ask.
    pub(crate) fn number_spec(
        &self,
        spec: u32,
    ) -> Result<&NumberSpec, AutomatonError> {
        self.parts.numbers.derived(spec, |formulas| {
            let mut formulas = self.algebra.number_formulas(formulas);
            let goals = formulas.split_off(1);
            let policy = self.policy.numbers.policy();
            Ok(NumberSpec::new(&formulas[0], &goals, policy))
        })
    }

    fn make_object_site(
        &self,
        question: &Question,
    ) -> Result<ObjectSite, AutomatonError> {
        let object = JsonType::Object;
        let table = self
            .algebra
            .lock()
            .object_site(question.need)
            .map_err(|error| late(&error))?;
        let goals = self.open_goals(question, object)?;
        let mut draft = Draft::default();
        {
            let mut formulas = self.algebra.lock();
            for name in &table.names {
                draft.add(name.name, name.required);
            }
            draft.collect(&formulas, table.formula);
            for (&typed, &goal) in goals.iter().zip(&question.goals) {
                for &name in &*formulas.property_order(goal) {
                    draft.add(name, false);
                }
                draft.collect(&formulas, typed);
            }
        }
        draft.tests.sort_unstable();
        draft.tests.dedup();
        let patterns = self.algebra.patterns(&draft.tests);
        let leasts = self.algebra.leasts(&draft.tests);
        let mut site = ObjectSite {
            names: Names::new(&[]).0,
            spelled: None,
            members: Box::default(),
            by_rank: Box::default(),
            tests: draft.tests.into(),
            table: ClassTable::one(),
            key_classes: None,
            patterns,
            leasts,
            classes: Classes::new(),
            kind: SiteKind::General(
                std::iter::once(table.formula).chain(goals.clone()).collect(),
            ),
        };
        self.find_classes(&mut site, &draft.names)?;
        let flat = table.is_flat() && goals.is_empty();
        if flat {
            let others = self.flat_others(&site, &table)?;
            let (least, most) = (table.min, table.max);
            site.kind = SiteKind::Flat(Flat { others, least, most });
        }
        self.declare_words(&mut site, &mut draft.names)?;
        self.finish_members(&mut site, &draft.names, flat, &table)?;
        Ok(site)
    }

    /// The goals of a question that its type does not decide, typed; all of
    /// them if any is open.
    fn open_goals(
        &self,
        question: &Question,
        json_type: JsonType,
    ) -> Result<Vec<Typed>, AutomatonError> {
        let goals = question
            .goals
            .iter()
            .map(|&goal| self.algebra.typed(goal, json_type))
            .collect::<Result<Vec<Typed>, _>>()?;
        let decided =
            goals.iter().all(|goal| goal.is_true() || goal.is_false());
        Ok(if decided { Vec::new() } else { goals })
    }

    /// Finds the classes of undeclared keys, and which have a key at all.
    fn find_classes(
        &self,
        site: &mut ObjectSite,
        names: &[(NameId, bool)],
    ) -> Result<(), AutomatonError> {
        if site.tests.is_empty() {
            set_bit(&mut site.classes, 0);
            return Ok(());
        }
        let texts = self.algebra.texts(names);
        let n_tests = site.tests.len();
        let many = n_tests > MAX_TESTS;
        let explored = if site.leasts.is_empty() {
            Explored::new(&site.patterns, &texts, many)?
        } else {
            None
        };
        if let Some(explored) = explored {
            if let Some(only) = explored.only_class() {
                // Nothing tells other keys apart: `.*` is in every key.
                let holding = explored.table.holding(only);
                site.table = ClassTable::single(holding);
                site.patterns = Box::default();
                set_bit(&mut site.classes, 0);
                return Ok(());
            }
            site.table = explored.table;
            site.classes = explored.open;
            site.key_classes = explored.key_classes;
            return Ok(());
        }
        if many {
            return Err(AutomatonError::Limit {
                name: "max_key_patterns",
                what: "the number of patterns for the keys of one object \
                       that can match in so many ways",
                limit: MAX_TESTS,
            });
        }
        site.table = ClassTable::all(n_tests);
        let declared = Regex::literals(texts);
        for class in 0..site.n_classes() {
            let keys = site.keys_of_class(class).and(&declared.not());
            let language = language(&keys)?;
            if language.is_dead(language.start()) != Answer::Yes {
                set_bit(&mut site.classes, class);
            }
        }
        Ok(())
    }

    fn flat_others(
        &self,
        site: &ObjectSite,
        table: &formula::ObjectSite,
    ) -> Result<Box<[Option<QuestionId>]>, AutomatonError> {
        (0..site.n_classes())
            .map(|class| {
                if !site.class_exists(class) {
                    return Ok(None);
                }
                let key = site.key(super::keys::KeyClass::Other(class));
                let goal = self.algebra.lock().open_goal(table, &key);
                self.question_if(goal)
            })
            .collect()
    }

    fn question_if(
        &self,
        need: Typed,
    ) -> Result<Option<QuestionId>, AutomatonError> {
        if !self.algebra.satisfiable(need)? {
            return Ok(None);
        }
        self.question(need, Box::default()).map(Some)
    }

    /// Declares the undeclared keys that may come if they are few: then the
    /// object knows when they are used up.
    fn declare_words(
        &self,
        site: &mut ObjectSite,
        names: &mut Vec<(NameId, bool)>,
    ) -> Result<(), AutomatonError> {
        if site.tests.is_empty() {
            return Ok(());
        }
        let SiteKind::Flat(flat) = &site.kind else {
            return self.declare_classes(site, names);
        };
        if !flat.is_open() {
            site.forget_patterns();
            return Ok(());
        }
        if site.key_classes.is_some() || site.patterns.is_empty() {
            // Every class has more keys than can be declared.
            return Ok(());
        }
        let declared = Regex::literals(self.algebra.texts(names));
        let is_open = |class: u32| {
            flat.others.get(class as usize).is_some_and(Option::is_some)
        };
        let keys = site.keys_of(is_open).and(&declared.not());
        let language = language(&keys)?;
        let Some(words) = language.enumerate(MAX_WORDS) else {
            return Ok(());
        };
        let mut formulas = self.algebra.lock();
        for word in words {
            names.push((formulas.pool_mut().name(&word), false));
        }
        drop(formulas);
        site.forget_patterns();
        Ok(())
    }

    /// Declares the keys of each class that has few.
    fn declare_classes(
        &self,
        site: &mut ObjectSite,
        names: &mut Vec<(NameId, bool)>,
    ) -> Result<(), AutomatonError> {
        // Every class has many, or some keys may be of several.
        if site.key_classes.is_some()
            || site.patterns.is_empty()
            || !site.leasts.is_empty()
        {
            return Ok(());
        }
        let declared = Regex::literals(self.algebra.texts(names));
        for class in 0..site.n_classes() {
            if !site.class_exists(class) {
                continue;
            }
            let keys = site.keys_of_class(class).and(&declared.not());
            let language = language(&keys)?;
            if let Some(words) = language.enumerate(MAX_WORDS) {
                let mut formulas = self.algebra.lock();
                names.extend(
                    words
                        .iter()
                        .map(|word| (formulas.pool_mut().name(word), false)),
                );
                clear_bit(&mut site.classes, class);
            }
        }
        Ok(())
    }

    fn finish_members(
        &self,
        site: &mut ObjectSite,
        names: &[(NameId, bool)],
        flat: bool,
        table: &formula::ObjectSite,
    ) -> Result<(), AutomatonError> {
        let texts = self.algebra.texts(names);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (sorted, positions) = Names::new(&texts);
        let mut members = Vec::with_capacity(names.len());
        for (rank, (&(name, required), position)) in
            (0..).zip(names.iter().zip(&positions))
        {
            let question = if flat {
                let listed = table.names.get(rank as usize);
                let goal = match listed {
                    Some(listed) => listed.goal,
                    None => self.algebra.open_goal_of(table, name),
                };
                self.question_if(goal)?
            } else {
                None
            };
            let member = Member { name, rank, required, question };
            members.push((*position, member));
        }
        members.sort_unstable_by_key(|&(position, _)| position);
        site.spelled = sorted.spelled(self.policy.escapes, name_outcome);
        site.names = sorted;
        site.members = members.into_iter().map(|(_, member)| member).collect();
        site.by_rank = positions.into();
        Ok(())
    }

    fn make_array_site(
        &self,
        question: &Question,
    ) -> Result<ArraySite, AutomatonError> {
        let table = self
            .algebra
            .lock()
            .array_site(question.need)
            .map_err(|error| late(&error))?;
        let goals = self.open_goals(question, JsonType::Array)?;
        let flat = table.is_flat()
            && goals.is_empty()
            && !(table.unique && self.needs_values(&table)?);
        if flat {
            let prefix = table
                .prefix
                .iter()
                .map(|&goal| self.question_if(goal))
                .collect::<Result<_, _>>()?;
            let (most, lasting) = self.most_items(&table)?;
            return Ok(ArraySite::Flat(FlatArray {
                prefix,
                tail: self.question_if(table.tail)?,
                least: table.min,
                most,
                unique: table.unique,
                lasting,
            }));
        }
        let formulas: Box<[Typed]> =
            std::iter::once(table.formula).chain(goals).collect();
        let compares = self.algebra.any_compares(&formulas);
        Ok(ArraySite::General { formulas, compares })
    }

    /// Whether what may come in an array of different items depends on the
    /// values of those before: where one is of few values, and not all are
    /// asked the same, or some are containers.
    fn needs_values(
        &self,
        table: &formula::ArraySite,
    ) -> Result<bool, AutomatonError> {
        for &goal in table.prefix.iter().chain([&table.tail]) {
            let Some(values) = self.algebra.listed_values(goal)? else {
                continue;
            };
            let formulas = self.algebra.lock();
            let is_container = |&value: &ConstantId| {
                let value = formulas.pool().constant_value(value);
                matches!(value, Constant::Array(_) | Constant::Object(_))
            };
            if !values.is_empty()
                && (!table.prefix.is_empty()
                    || values.iter().any(is_container))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many items an array may have: where all must differ and are asked
    /// the same, no more than there are values. And whether that makes sure
    /// that each item which may come has a value left.
    fn most_items(
        &self,
        table: &formula::ArraySite,
    ) -> Result<(Option<u64>, bool), AutomatonError> {
        if !table.unique {
            return Ok((table.max, true));
        }
        let tail = self.algebra.count(table.tail, MAX_COUNTED)?;
        let many = tail.at_least >= MAX_COUNTED;
        if table.prefix.is_empty() {
            let most = tail.exact.then_some(tail.at_least);
            let most = most.into_iter().chain(table.max).min();
            return Ok((most, tail.exact || many));
        }
        // Every item needs a value for itself and one for each before it.
        let mut lasting = many || tail.exact && tail.at_least == 0;
        for (before, &goal) in (0..).zip(&table.prefix) {
            let count = self.algebra.count(goal, before + 1)?;
            lasting &= count.at_least > before;
        }
        Ok((table.max, lasting))
    }
}

impl ObjectSite {
    /// Makes a flat site whose undeclared keys may not come closed.
    fn forget_patterns(&mut self) {
        self.tests = Box::default();
        self.patterns = Box::default();
        self.leasts = Leasts { list: Box::default() };
        self.table = ClassTable::one();
        self.key_classes = None;
        if let SiteKind::Flat(flat) = &mut self.kind {
            flat.others = Box::new([None]);
        }
    }
}

/// The names and the tests of an object site, while it is made.
#[derive(Default)]
struct Draft {
    names: Vec<(NameId, bool)>,
    tests: Vec<KeyTest>,
}

impl Draft {
    fn add(&mut self, name: NameId, required: bool) {
        if !self.names.iter().any(|&(known, _)| known == name) {
            self.names.push((name, required));
        }
    }

    /// Adds what a formula tells keys apart by.
    fn collect(&mut self, formulas: &Formulas, formula: Typed) {
        let mentions = formulas.mentioned(formula);
        for name in mentions.names {
            self.add(name, false);
        }
        for set in mentions.sets {
            self.tests.extend(test_of(formulas, set));
        }
    }
}

fn test_of(formulas: &Formulas, set: KeySetId) -> Option<KeyTest> {
    match *formulas.key_set(set) {
        KeySet::Pattern(pattern) => Some(KeyTest::Pattern(pattern)),
        KeySet::Satisfying(formula) => Some(KeyTest::Satisfies(formula)),
        KeySet::Any | KeySet::Names(_) | KeySet::NoneOf(_) => None,
    }
}

impl Algebra {
    /// The languages of tests on keys.
    fn patterns(&self, tests: &[KeyTest]) -> Box<[Regex]> {
        tests
            .iter()
            .map(|&test| match test {
                KeyTest::Pattern(pattern) => {
                    let formulas = self.lock();
                    let pattern = formulas.pool().pattern_value(pattern);
                    pattern.regex().clone()
                }
                KeyTest::Satisfies(formula) => {
                    self.regex(formula, Bound::Most)
                }
            })
            .collect()
    }

    /// The tests that are no languages, with the keys that meet each for
    /// certain.
    fn leasts(&self, tests: &[KeyTest]) -> Leasts<Regex> {
        let checked = tests.iter().enumerate().filter_map(|(index, test)| {
            let formula = test.formula()?;
            let is_checked = self.is_checked(formula);
            is_checked.then(|| (index, self.regex(formula, Bound::Least)))
        });
        Leasts { list: checked.collect() }
    }

    fn texts(&self, names: &[(NameId, bool)]) -> Vec<String> {
        let formulas = self.lock();
        let text = |&(name, _): &(NameId, bool)| {
            formulas.pool().name_text(name).to_owned()
        };
        names.iter().map(text).collect()
    }

    /// What a member must satisfy whose name the table does not list.
    fn open_goal_of(
        &self,
        table: &formula::ObjectSite,
        name: NameId,
    ) -> Typed {
        let mut formulas = self.lock();
        let goals: Vec<Typed> = table
            .open
            .iter()
            .filter(|&&(set, _)| formulas.name_in(set, name))
            .map(|&(_, goal)| goal)
            .collect();
        formulas.and(goals)
    }
}
