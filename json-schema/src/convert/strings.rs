//! Strings and keys: lists, lengths, and the automata of patterns and
//! formats.

use maskwright_grammar_core::{
    regular::{CharSet, Language, Limits, Regex},
    util::FxHashMap,
};

use super::{
    ConvertError, Trouble,
    basics::{Basic, character, json_string, quoted},
    dfa::Dfa,
    expr::Expr,
    values::{Converter, MAX_COUNT},
};
use crate::{
    format::{self, Bound},
    formula::{Form, FormulaId},
};

impl Converter {
    /// The strings of a typed formula.
    pub(super) fn string(
        &mut self,
        value: FormulaId,
        typed: FormulaId,
        hint: &str,
    ) -> Result<Expr, ConvertError> {
        if let Some(made) = self.strings.get(&typed) {
            return Ok(made.clone());
        }
        let hint = self.string_hint(typed, hint);
        let made = self.make_string(value, typed, &hint)?;
        let made = self.rules.shared(&hint, made)?;
        self.strings.insert(typed, made.clone());
        Ok(made)
    }

    /// A format has a name that says more than the place of a string.
    fn string_hint(&self, typed: FormulaId, hint: &str) -> String {
        match *self.formulas.form(typed) {
            Form::Format(format, true) => {
                super::rules::clean(self.formulas.pool().format_name(format))
            }
            _ => hint.to_owned(),
        }
    }

    fn make_string(
        &mut self,
        value: FormulaId,
        typed: FormulaId,
        hint: &str,
    ) -> Result<Expr, ConvertError> {
        if typed.is_true() {
            return self.basic(Basic::String);
        }
        if let Some(texts) = self.listed_strings(typed) {
            return Ok(Expr::words(texts.iter().map(|it| json_string(it))));
        }
        if let Some((min, max)) = self.length_of(typed) {
            let (min, max) =
                self.counts(value, min, max, ["minLength", "maxLength"]);
            let character = self.basic(Basic::Char)?;
            return Ok(quoted(Expr::repeat(character, min, max)));
        }
        if let Some(made) = self.string_automaton(typed, hint)? {
            self.note_checked(value, typed);
            return Ok(quoted(made));
        }
        // What is left out, and what it is called.
        let is_format: fn(&Form) -> bool =
            |form| matches!(form, Form::Format(..));
        let is_length: fn(&Form) -> bool =
            |form| matches!(form, Form::CharsGe(_) | Form::CharsLe(_));
        let is_pattern: fn(&Form) -> bool =
            |form| matches!(form, Form::Pattern(..));
        let lengths: &[&str] = &["minLength", "maxLength"];
        let steps = [
            (is_length, lengths),
            (is_format, &["format"]),
            (is_pattern, &["pattern"]),
        ];
        let mut rest = typed;
        for (is_such, keywords) in steps {
            let memo = &mut FxHashMap::default();
            let less = self.formulas.rewrite(rest, memo, &|form| {
                is_such(form).then_some(FormulaId::TRUE)
            });
            if less == rest {
                continue;
            }
            rest = less;
            let reason = "its automaton has more states than a grammar may \
                          have rules for; other strings are allowed too";
            self.note(value, keywords, reason);
            if rest.is_true() {
                break;
            }
            if let Some(made) = self.string_automaton(rest, hint)? {
                self.note_checked(value, rest);
                return Ok(quoted(made));
            }
        }
        self.basic(Basic::String)
    }

    /// Notes formats of which a grammar holds only what is around them.
    pub(super) fn note_checked(&mut self, value: FormulaId, typed: FormulaId) {
        let is_such = |name: &str| !format::is_regular(name);
        if self.formulas.has_format(typed, &is_such) {
            let reason = "the format is no regular language; every string \
                          that may have it is allowed";
            self.note(value, &["format"], reason);
        }
    }

    /// The strings of a formula that lists them.
    fn listed_strings(&self, typed: FormulaId) -> Option<Vec<String>> {
        let formulas = &self.formulas;
        let mut texts = Vec::new();
        let one = [typed];
        let ways = match formulas.form(typed) {
            Form::Or(ways) => &ways[..],
            _ => &one[..],
        };
        for &way in ways {
            let only = formulas.string_site(way).only?;
            for &name in &*only {
                let text = formulas.pool().name_text(name);
                if formulas.string_holds(way, text) {
                    texts.push((name, text.to_owned()));
                }
            }
        }
        // By number, which is the order of the document.
        texts.sort_unstable();
        texts.dedup();
        Some(texts.into_iter().map(|(_, text)| text).collect())
    }

    /// The bounds of the length, where nothing else is asked.
    fn length_of(&self, typed: FormulaId) -> Option<(u64, Option<u64>)> {
        let (mut min, mut max) = (0, None);
        for part in self.formulas.conjuncts(typed) {
            match *self.formulas.form(part) {
                Form::CharsGe(count) => min = count,
                Form::CharsLe(count) => max = Some(count),
                _ => return None,
            }
        }
        Some((min, max))
    }

    fn string_automaton(
        &mut self,
        typed: FormulaId,
        hint: &str,
    ) -> Result<Option<Expr>, ConvertError> {
        let language = format::language;
        let regex = self.formulas.string_regex(typed, Bound::Most, language);
        self.regex(&regex, hint)
    }

    /// The strings of an expression, without quotes, if its automaton is
    /// small enough.
    pub(super) fn regex(
        &mut self,
        regex: &Regex,
        hint: &str,
    ) -> Result<Option<Expr>, ConvertError> {
        let Ok(language) = Language::new(regex, Limits::new()) else {
            return Ok(None);
        };
        let dfa = match Dfa::of_language(&language) {
            Ok(dfa) => dfa,
            Err(Trouble::TooMany) => return Ok(None),
            Err(Trouble::Error(error)) => return Err(error),
        };
        let any = self.basic(Basic::Char)?;
        let escape = self.basic(Basic::Escape)?;
        let mut spell = |set: &CharSet, rules: &mut super::rules::Rules| {
            if set.is_any() {
                return Ok(any.clone());
            }
            rules.shared("char", character(set, &escape))
        };
        dfa.expr(hint, &mut self.rules, &mut spell).map(Some)
    }

    /// The bounds of a repetition, as far as grammars count.
    pub(super) fn counts(
        &mut self,
        value: FormulaId,
        min: u64,
        max: Option<u64>,
        keywords: [&str; 2],
    ) -> (u32, Option<u32>) {
        let [least, most] = keywords;
        let limit = u64::from(MAX_COUNT);
        if min > limit {
            let reason =
                format!("a grammar counts to {limit}; that many are enough");
            self.note(value, &[least], &reason);
        }
        if max.is_some_and(|max| max > limit) {
            let reason =
                format!("a grammar counts to {limit}; any number is allowed");
            self.note(value, &[most], &reason);
        }
        let max = max.filter(|&max| max <= limit);
        let count = |count: u64| u32::try_from(count).unwrap_or(MAX_COUNT);
        (count(min.min(limit)), max.map(count))
    }
}
