//! Values: what each is asked, and where its first byte leads.

use maskwright_grammar_core::automaton::{
    AutomatonError, RowBuilder, StateId, Step,
};
use smallvec::{SmallVec, smallvec};

use super::{
    Machine, Place, StateKey,
    algebra::{StringShape, Typed, Value},
    prelude::Window,
};
use crate::parse::JsonType;

/// What a value is asked by the frame below.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Question {
    /// What it must satisfy.
    pub(crate) need: Value,
    /// Whether it satisfies these, the frame below wants to know.
    pub(crate) goals: Box<[Value]>,
}

/// A [`Question`] by number.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct QuestionId(pub(crate) u32);

/// Where the first bytes of a value lead.
#[derive(Debug)]
pub(crate) struct Answers {
    list: Box<[Answer]>,
    /// Whether they were decided, and nothing assumed.
    exact: bool,
}

/// One first byte of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) byte: u8,
    pub(crate) callee: StateId,
    /// The verdicts (by number), where the type decides all of them.
    pub(crate) known: Option<u32>,
}

/// A question about a value whose type is known.
struct TypedQuestion {
    need: Typed,
    /// The goals that the type does not decide.
    goals: SmallVec<[Typed; 2]>,
}

/// What a type makes of a question.
enum OfType {
    /// No value of this type will do.
    Never,
    /// The type decides all goals.
    Known(TypedQuestion, u32),
    /// Some goals are open.
    Open(TypedQuestion),
}

impl Machine {
    /// Adds the calls of the value that `question` asks; `wait` gives the
    /// state in which the caller waits, by the verdicts that are known.
    pub(crate) fn calls(
        &self,
        question: QuestionId,
        wait: &mut dyn FnMut(Option<u32>) -> Result<StateId, AutomatonError>,
        row: &mut RowBuilder,
    ) -> Result<(), AutomatonError> {
        for &Answer { byte, callee, known } in self.answers_of(question)? {
            let resume = wait(known)?;
            row.byte(byte, Step::Call { resume, callee });
        }
        Ok(())
    }

    /// Where the first bytes of the value that `question` asks lead.
    pub(crate) fn answers_of(
        &self,
        question: QuestionId,
    ) -> Result<&[Answer], AutomatonError> {
        Ok(&self.derived_answers(question)?.list)
    }

    /// Whether it was decided what values a question allows.
    pub(crate) fn is_answered(
        &self,
        question: QuestionId,
    ) -> Result<bool, AutomatonError> {
        Ok(self.derived_answers(question)?.exact)
    }

    fn derived_answers(
        &self,
        question: QuestionId,
    ) -> Result<&Answers, AutomatonError> {
        let questions = &self.parts.questions;
        questions.derived(question.0, |asked| self.answers(question, asked))
    }

    /// Asks a value that it satisfy `need`, and wants to know of `goals`.
    pub(crate) fn question(
        &self,
        need: Value,
        goals: Box<[Value]>,
    ) -> Result<QuestionId, AutomatonError> {
        self.parts.questions.intern(Question { need, goals }).map(QuestionId)
    }

    /// Puts the verdicts of `question` into residual formulas. Returns
    /// whether what is needed can still be satisfied.
    pub(crate) fn settle(
        &self,
        question: Option<QuestionId>,
        verdicts: u64,
        rest: &mut [Typed],
    ) -> bool {
        let Some(question) = question else { return true };
        let goals = &self.parts.questions.get(question.0).goals;
        if goals.is_empty() {
            return true;
        }
        self.algebra.substitute(rest, goals, verdicts);
        !rest[0].is_false()
    }

    fn answers(
        &self,
        id: QuestionId,
        question: &Question,
    ) -> Result<Answers, AutomatonError> {
        let mut answers = Vec::new();
        let n_assumed = self.algebra.n_assumed();
        for json_type in JsonType::ALL {
            let (typed, known) = match self.of_type(question, json_type)? {
                OfType::Never => continue,
                OfType::Known(typed, known) => (typed, Some(known)),
                OfType::Open(typed) => (typed, None),
            };
            let mut add =
                |byte, callee| answers.push(Answer { byte, callee, known });
            match json_type {
                JsonType::Null => add(b'n', self.prelude.literal("null")?),
                JsonType::False => add(b'f', self.prelude.literal("false")?),
                JsonType::True => add(b't', self.prelude.literal("true")?),
                JsonType::String => {
                    if let Some(callee) = self.string_callee(&typed)? {
                        add(b'"', callee);
                    }
                }
                JsonType::Number => {
                    for (byte, callee) in self.number_callees(&typed)? {
                        add(byte, callee);
                    }
                }
                JsonType::Array => add(b'[', self.array_callee(id, &typed)?),
                JsonType::Object => add(b'{', self.object_callee(id, &typed)?),
            }
        }
        let exact = n_assumed == self.algebra.n_assumed();
        Ok(Answers { list: answers.into(), exact })
    }

    fn of_type(
        &self,
        question: &Question,
        json_type: JsonType,
    ) -> Result<OfType, AutomatonError> {
        let need = self.algebra.typed(question.need, json_type)?;
        if !self.algebra.may_hold(need, json_type)? {
            return Ok(OfType::Never);
        }
        let mut verdicts = 0;
        let mut goals: SmallVec<[Typed; 2]> = smallvec![];
        let mut all: SmallVec<[Typed; 2]> = smallvec![];
        for (index, &goal) in question.goals.iter().enumerate() {
            let goal = self.algebra.typed(goal, json_type)?;
            if goal.is_true() {
                verdicts |= 1 << index;
            } else if !goal.is_false() {
                goals.push(goal);
            }
            all.push(goal);
        }
        if goals.is_empty() {
            let known = self.parts.outcomes.intern(verdicts)?;
            return Ok(OfType::Known(TypedQuestion { need, goals }, known));
        }
        // The verdicts are numbered as the question numbers its goals, so
        // the constant ones come along.
        Ok(OfType::Open(TypedQuestion { need, goals: all }))
    }

    fn string_callee(
        &self,
        typed: &TypedQuestion,
    ) -> Result<Option<StateId>, AutomatonError> {
        if typed.goals.is_empty()
            && let StringShape::Window { min, max } =
                self.algebra.string_shape(typed.need)
        {
            let bounds = Window { least: min, most: max };
            if min > max {
                return Ok(None);
            }
            let at = bounds.clamped();
            let spelling = super::text::Spelling::Between(());
            return if at.is_far() {
                self.table.intern(StateKey::Window { bounds, at, spelling })
            } else {
                self.prelude.string(at)
            }
            .map(Some);
        }
        if typed.goals.is_empty()
            && let Some(start) = self.list_start(typed.need)?
        {
            return Ok(Some(start));
        }
        let spec = self.parts.strings.intern(typed.formulas())?;
        let start = self.string_start(spec)?;
        if self.string_spec(spec)?.leasts.is_empty() {
            return Ok(Some(start));
        }
        self.checked_string(start).map(Some)
    }

    fn number_callees(
        &self,
        typed: &TypedQuestion,
    ) -> Result<Vec<(u8, StateId)>, AutomatonError> {
        if typed.goals.is_empty()
            && let Some(integer) = self.algebra.free_number(typed.need)
        {
            return Ok(self.prelude.number(integer)?.to_vec());
        }
        let spec = self.parts.numbers.intern(typed.formulas())?;
        let number = self.number_spec(spec)?;
        number
            .live_bytes(&number.start())
            .into_iter()
            .map(|(byte, state)| {
                let state =
                    self.table.intern(StateKey::Number { spec, state })?;
                Ok((byte, state))
            })
            .collect()
    }

    fn array_callee(
        &self,
        question: QuestionId,
        typed: &TypedQuestion,
    ) -> Result<StateId, AutomatonError> {
        if typed.goals.is_empty() && typed.need.is_true() {
            return self.prelude.array();
        }
        let site = self.parts.array_sites.intern(question)?;
        let array = self.array_start(site)?;
        self.gap(StateKey::Array { array, place: Place::Open })
    }

    fn object_callee(
        &self,
        question: QuestionId,
        typed: &TypedQuestion,
    ) -> Result<StateId, AutomatonError> {
        if typed.goals.is_empty() && typed.need.is_true() {
            return self.prelude.object();
        }
        let site = self.parts.object_sites.intern(question)?;
        let object = self.object_start(site)?;
        self.gap(StateKey::Object { object, place: Place::Open })
    }
}

impl TypedQuestion {
    /// The need, then the goals.
    fn formulas(&self) -> Box<[Typed]> {
        std::iter::once(self.need).chain(self.goals.iter().copied()).collect()
    }
}
