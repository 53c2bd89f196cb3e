//! Objects: which members may come now, and whether the object may end.
//!
//! A *site* is what one object is asked. The frame of an object is an
//! interned [`Object`]: its site and how far it has come. In a *flat* site,
//! a conjunction of conditions on single members and their number, that is
//! all there is: registers and bitsets, no formula. Any other site carries
//! the residual formulas, which are derived by each member.

use std::sync::Arc;

use maskwright_grammar_core::{
    automaton::{AutomatonError, Words},
    regular::Regex,
};
use smallvec::SmallVec;

use super::{
    Machine,
    algebra::Typed,
    checked::Leasts,
    classes::{ClassTable, Classes, KeyClasses},
    general::KeyTest,
    keys::{KeyClass, Viable, bit, set_bit},
    names::Names,
    policy::Order,
    values::QuestionId,
};
use crate::parse::NameId;

/// What one object is asked.
#[derive(Debug)]
pub(crate) struct ObjectSite {
    /// The declared names, sorted.
    pub(crate) names: Names,
    /// The same as they are usually spelled, if no name must be escaped.
    pub(crate) spelled: Option<Arc<Words>>,
    /// What is known of each name, by its position in `names`.
    pub(crate) members: Box<[Member]>,
    /// The position of each name, by rank: the order of the schema.
    pub(crate) by_rank: Box<[u32]>,
    /// What tells keys without a declared name apart, sorted.
    pub(crate) tests: Box<[KeyTest]>,
    /// The languages of `tests`.
    pub(crate) patterns: Box<[Regex]>,
    /// Which of those are no languages, but bounds of what is checked when
    /// a key has ended.
    pub(crate) leasts: Leasts<Regex>,
    /// The classes that these make.
    pub(crate) table: ClassTable,
    /// The same letter by letter, where that is possible.
    pub(crate) key_classes: Option<KeyClasses>,
    /// The classes that have a key without a declared name, bit by bit.
    pub(crate) classes: Classes,
    pub(crate) kind: SiteKind,
}

/// How a site decides.
#[derive(Debug)]
pub(crate) enum SiteKind {
    /// By registers.
    Flat(Flat),
    /// By the residuals of formulas: the need first, then the goals.
    General(Box<[Typed]>),
}

/// A conjunction of conditions on single members and their number.
#[derive(Debug)]
pub(crate) struct Flat {
    /// What members without a declared name are asked, by the class of their
    /// key; `None` where there may be none.
    pub(crate) others: Box<[Option<QuestionId>]>,
    pub(crate) least: u64,
    pub(crate) most: Option<u64>,
}

/// A declared name of a site.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: NameId,
    pub(crate) rank: u32,
    pub(crate) required: bool,
    /// What its value is asked in a flat site; `None` where it may not come.
    pub(crate) question: Option<QuestionId>,
}

/// How far an object has come.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Object {
    pub(crate) site: u32,
    pub(crate) seen: Seen,
    /// Whether a member without a declared name has come.
    pub(crate) others: bool,
    /// The number of members, where the site counts them.
    pub(crate) count: u64,
    /// The residual formulas of a general site.
    pub(crate) rest: SmallVec<[Typed; 2]>,
}

/// Which declared names were used.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Seen {
    /// Those of lower rank may not come any more.
    Rank(u32),
    /// By position.
    Set(SmallVec<[u64; 2]>),
}

/// What follows from how far an object has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectInfo {
    /// Which keys may come now ([`Viable`] by number); none if no member may.
    pub(crate) viable: Option<u32>,
    /// The verdicts with which the object may end now.
    pub(crate) close: Option<u32>,
    /// Whether this was decided, and nothing assumed.
    pub(crate) exact: bool,
}

/// An object and the key whose value comes now.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Pending {
    pub(crate) object: u32,
    pub(crate) key: KeyClass,
}

/// What follows from a key.
#[derive(Debug)]
pub(crate) struct PendingInfo {
    /// What the value is asked.
    pub(crate) question: QuestionId,
    /// Whether it was decided, and nothing assumed.
    pub(crate) exact: bool,
    /// The object after the value, but for the verdicts.
    after: Object,
}

impl Seen {
    pub(crate) fn has(&self, member: &Member, position: u32) -> bool {
        match self {
            Seen::Rank(next) => member.rank < *next,
            Seen::Set(words) => bit(words, position),
        }
    }
}

impl Flat {
    fn counts(&self) -> bool {
        self.least > 0 || self.most.is_some()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.others.iter().any(Option::is_some)
    }
}

impl Machine {
    /// The object of a site before its first member.
    pub(crate) fn object_start(
        &self,
        site: u32,
    ) -> Result<u32, AutomatonError> {
        let rest = match &self.object_site(site)?.kind {
            SiteKind::Flat(_) => SmallVec::new(),
            SiteKind::General(formulas) => SmallVec::from_slice(formulas),
        };
        let seen = match self.policy.order {
            Order::Schema => Seen::Rank(0),
            Order::Any => Seen::Set(SmallVec::new()),
        };
        let object = Object { site, seen, others: false, count: 0, rest };
        self.parts.objects.intern(object)
    }

    /// What may come in an object, and whether it may end.
    pub(crate) fn object_info(
        &self,
        object: u32,
    ) -> Result<&ObjectInfo, AutomatonError> {
        self.parts.objects.derived(object, |object| {
            let n_assumed = self.algebra.n_assumed();
            let site = self.object_site(object.site)?;
            let (viable, close) = match &site.kind {
                SiteKind::Flat(flat) => (
                    site.flat_viable(flat, object),
                    site.flat_closes(flat, object).then_some(0),
                ),
                SiteKind::General(_) => self.general_info(site, object)?,
            };
            let viable = (!viable.is_empty())
                .then(|| self.parts.viables.intern(viable))
                .transpose()?;
            let exact = n_assumed == self.algebra.n_assumed();
            Ok(ObjectInfo { viable, close, exact })
        })
    }

    /// What follows from a key.
    pub(crate) fn pending_info(
        &self,
        pending: u32,
    ) -> Result<&PendingInfo, AutomatonError> {
        self.parts.pendings.derived(pending, |&Pending { object, key }| {
            let object = self.parts.objects.get(object);
            let n_assumed = self.algebra.n_assumed();
            let site = self.object_site(object.site)?;
            let mut after = site.after(object, key);
            let question = match &site.kind {
                SiteKind::Flat(flat) => site.flat_question(flat, key),
                SiteKind::General(_) => {
                    let (question, rest) =
                        self.general_member(site, object, key)?;
                    after.rest = rest;
                    question
                }
            };
            let Some(question) = question else {
                return Err(AutomatonError::Grammar {
                    message: "a key was read that may not come".to_owned(),
                });
            };
            let exact = n_assumed == self.algebra.n_assumed();
            Ok(PendingInfo { question, exact, after })
        })
    }

    /// The object after the value of `pending` has ended with `verdicts`;
    /// none if the object cannot end after that.
    pub(crate) fn object_after(
        &self,
        pending: u32,
        verdicts: u64,
    ) -> Result<Option<u32>, AutomatonError> {
        let info = self.pending_info(pending)?;
        let mut after = info.after.clone();
        let question = Some(info.question);
        let alive = self.settle(question, verdicts, &mut after.rest);
        alive.then(|| self.parts.objects.intern(after)).transpose()
    }
}

impl ObjectSite {
    /// Whether members without a declared name may come.
    pub(crate) fn is_open(&self) -> bool {
        match &self.kind {
            SiteKind::Flat(flat) => flat.is_open(),
            SiteKind::General(_) => self.classes.iter().any(|&w| w != 0),
        }
    }

    /// Whether a class of keys without a declared name has a key at all.
    pub(crate) fn class_exists(&self, class: u32) -> bool {
        bit(&self.classes, class)
    }

    /// How many of the required names have not come.
    fn n_missing(&self, object: &Object) -> u64 {
        let missing = |&(position, member): &(u32, &Member)| {
            member.required && !object.seen.has(member, position)
        };
        (0..).zip(&self.members).filter(missing).count() as u64
    }

    fn flat_closes(&self, flat: &Flat, object: &Object) -> bool {
        object.count >= flat.least && self.n_missing(object) == 0
    }

    fn flat_viable(&self, flat: &Flat, object: &Object) -> Viable {
        let mut viable = Viable::default();
        let missing = self.n_missing(object);
        let free = match flat.most {
            Some(most) => most.saturating_sub(object.count + missing) > 0,
            None => true,
        };
        let schema_order = matches!(object.seen, Seen::Rank(_));
        if free && !(schema_order && missing > 0) {
            for (class, question) in (0..).zip(&flat.others) {
                if question.is_some() {
                    set_bit(&mut viable.others, class);
                }
            }
        }
        if schema_order && object.others {
            return viable;
        }
        // In the order of the schema, no name may pass a required one, nor
        // so many names that too few are left.
        let mut left = self
            .by_rank
            .iter()
            .filter(|&&position| {
                let member = &self.members[position as usize];
                member.question.is_some() && !object.seen.has(member, position)
            })
            .count() as u64;
        for &position in &self.by_rank {
            let member = &self.members[position as usize];
            if object.seen.has(member, position) || member.question.is_none() {
                continue;
            }
            if schema_order
                && !flat.is_open()
                && object.count + left < flat.least
            {
                break;
            }
            if free || member.required {
                set_bit(&mut viable.names, position);
            }
            left -= 1;
            if schema_order && member.required {
                break;
            }
        }
        viable
    }

    fn flat_question(&self, flat: &Flat, key: KeyClass) -> Option<QuestionId> {
        match key {
            KeyClass::Name(position) => {
                self.members.get(position as usize)?.question
            }
            KeyClass::Other(class) => *flat.others.get(class as usize)?,
        }
    }

    /// The object after a member, but for its residual formulas.
    fn after(&self, object: &Object, key: KeyClass) -> Object {
        let mut after = object.clone();
        if let SiteKind::Flat(flat) = &self.kind
            && flat.counts()
        {
            after.count += 1;
        }
        match (key, &mut after.seen) {
            (KeyClass::Name(position), Seen::Rank(next)) => {
                *next = self.members[position as usize].rank + 1;
            }
            (KeyClass::Name(position), Seen::Set(words)) => {
                set_bit(words, position);
            }
            (KeyClass::Other(_), Seen::Rank(_)) => after.others = true,
            // In any order nothing depends on other keys but their number.
            (KeyClass::Other(_), Seen::Set(_)) => {}
        }
        after
    }
}
