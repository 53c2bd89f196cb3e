//! A row of logits on its way through the stages.

use super::{mask::MaskBits, select::Weighted, softmax};
use crate::vocabulary::TokenId;

/// A mask that allows at most one token in this many turns the row into a
/// list.
///
/// PERF: a list entry costs about what four floats of a plain row cost in
/// the loops of later stages.
const SPARSE: usize = 4;

/// A token that is still in play, with its logit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The token.
    pub token: TokenId,
    /// Its logit, finite.
    pub logit: f32,
}

/// Memory that steps use again and again. One for each thread that runs
/// steps; it holds nothing from one step to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    candidates: Vec<Candidate>,
    values: Vec<f32>,
    weighted: Vec<Weighted>,
    held: Vec<(usize, TokenId)>,
}

impl Scratch {
    /// Creates memory that grows with use.
    pub fn new() -> Scratch {
        Scratch::default()
    }
}

/// A row of logits on its way through the stages.
///
/// It begins as a plain array with minus infinity for what is forbidden, and
/// becomes a list of candidates as soon as few tokens are left. Stages need
/// not care which it is.
#[derive(Debug)]
pub struct Row<'a> {
    /// What the row is while `is_list` is false.
    logits: &'a mut [f32],
    /// What the row is once `is_list` is true: finite logits only, by
    /// ascending token.
    candidates: &'a mut Vec<Candidate>,
    values: &'a mut Vec<f32>,
    weighted: &'a mut Vec<Weighted>,
    is_list: bool,
    /// What is forbidden unless nothing else is left, with the stage that
    /// said so; by ascending stage.
    held: &'a mut Vec<(usize, TokenId)>,
    /// The place of the stage that is running.
    stage: usize,
    /// The stages that yielded, a bit for each.
    yielded: u64,
}

impl<'a> Row<'a> {
    /// Creates a row over the logits of all tokens.
    pub fn new(logits: &'a mut [f32], scratch: &'a mut Scratch) -> Row<'a> {
        scratch.candidates.clear();
        scratch.held.clear();
        Row {
            logits,
            candidates: &mut scratch.candidates,
            values: &mut scratch.values,
            weighted: &mut scratch.weighted,
            is_list: false,
            held: &mut scratch.held,
            stage: 0,
            yielded: 0,
        }
    }

    /// Says which stage runs next.
    pub(super) fn enter(&mut self, stage: usize) {
        self.stage = stage;
    }

    /// Returns the stages that yielded, a bit for each.
    pub(super) fn yielded(&self) -> u64 {
        self.yielded
    }

    /// Returns how many tokens the row began with.
    pub fn n_logits(&self) -> usize {
        self.logits.len()
    }

    /// Returns the logit of a token; minus infinity when it is forbidden or
    /// not in the row.
    pub fn logit(&self, token: TokenId) -> f32 {
        let logit = if self.is_list {
            self.place(token).map(|index| self.candidates[index].logit)
        } else {
            self.logits.get(token.index()).copied()
        };
        logit.unwrap_or(f32::NEG_INFINITY)
    }

    /// Changes the logit of a token, unless it is forbidden or not in the
    /// row. Making it minus infinity forbids the token.
    pub fn edit(&mut self, token: TokenId, change: impl FnOnce(f32) -> f32) {
        if self.is_list {
            let Some(index) = self.place(token) else { return };
            let logit = change(self.candidates[index].logit);
            if logit == f32::NEG_INFINITY {
                self.candidates.remove(index);
            } else {
                self.candidates[index].logit = logit;
            }
        } else if let Some(logit) = self.logits.get_mut(token.index())
            && *logit != f32::NEG_INFINITY
        {
            *logit = change(*logit);
        }
    }

    /// Changes the logit of every token that is not forbidden, by a rule that
    /// leaves minus infinity as it is.
    pub fn edit_all(&mut self, change: impl Fn(f32) -> f32) {
        if self.is_list {
            for candidate in &mut *self.candidates {
                candidate.logit = change(candidate.logit);
            }
            self.candidates.retain(|one| one.logit != f32::NEG_INFINITY);
        } else {
            for logit in &mut *self.logits {
                *logit = change(*logit);
            }
        }
    }

    /// Forbids a token.
    pub fn forbid(&mut self, token: TokenId) {
        self.edit(token, |_| f32::NEG_INFINITY);
    }

    /// Forbids a token unless nothing else is left.
    ///
    /// It keeps its logit until all stages that may forbid have run. If a
    /// stage has put off every token that is left by then, what it put off is
    /// allowed again, and the choice says so
    /// ([`Choice::has_yielded`](super::Choice::has_yielded)).
    pub fn forbid_softly(&mut self, token: TokenId) {
        if self.logit(token) > f32::NEG_INFINITY {
            self.held.push((self.stage, token));
        }
    }

    /// Notes that the running stage did not do what it was to do, because
    /// the grammar forbids it.
    pub fn note_yield(&mut self) {
        // There are far fewer stages than bits.
        self.yielded |= 1_u64.checked_shl(self.bit()).unwrap_or(0);
    }

    fn bit(&self) -> u32 {
        u32::try_from(self.stage).unwrap_or(u32::MAX)
    }

    /// Makes these tokens the only ones, with equal chances, whatever was
    /// forbidden before.
    pub fn force(&mut self, tokens: &[TokenId]) {
        self.held.clear();
        self.candidates.clear();
        let n_logits = self.n_logits();
        let known = tokens.iter().filter(|token| token.index() < n_logits);
        self.candidates
            .extend(known.map(|&token| Candidate { token, logit: 0.0 }));
        self.candidates.sort_unstable_by_key(|one| one.token);
        self.candidates.dedup_by_key(|one| one.token);
        self.is_list = true;
    }

    /// Forbids what was put off, stage by stage, except by stages that would
    /// leave nothing.
    pub(super) fn settle(&mut self) {
        let mut held = std::mem::take(self.held);
        held.sort_unstable();
        for group in held.chunk_by(|a, b| a.0 == b.0) {
            self.stage = group[0].0;
            let is_held = |token: TokenId| {
                group.binary_search_by_key(&token, |one| one.1).is_ok()
            };
            let mut is_other_left = false;
            self.visit(|one| {
                is_other_left =
                    one.logit > f32::NEG_INFINITY && !is_held(one.token);
                !is_other_left
            });
            if is_other_left {
                for &(_, token) in group {
                    self.forbid(token);
                }
            } else if group.iter().any(|one| self.logit(one.1).is_finite()) {
                self.note_yield();
            }
        }
        held.clear();
        *self.held = held;
    }

    /// Returns the tokens that are not forbidden, by ascending token, and
    /// leaves the row as it is.
    pub fn survivors(&self) -> Vec<Candidate> {
        let mut held: Vec<TokenId> =
            self.held.iter().map(|&(_, token)| token).collect();
        held.sort_unstable();
        let mut survivors = Vec::new();
        self.visit(|one| {
            if one.logit > f32::NEG_INFINITY
                && held.binary_search(&one.token).is_err()
            {
                survivors.push(one);
            }
            true
        });
        survivors
    }

    /// Forbids every token that is not in the mask.
    pub fn apply_mask(&mut self, mask: MaskBits<'_>) {
        if self.is_list {
            self.candidates.retain(|one| mask.is_allowed(one.token));
        } else if mask.n_allowed().saturating_mul(SPARSE) > self.n_logits() {
            mask.mask_logits(self.logits);
        } else {
            let logits = &*self.logits;
            let candidates = &mut *self.candidates;
            mask.for_each_allowed(|token| {
                if let Some(&logit) = logits.get(token.index())
                    && logit != f32::NEG_INFINITY
                {
                    candidates.push(Candidate { token, logit });
                }
            });
            self.is_list = true;
        }
    }

    /// Returns the tokens that are not forbidden, by ascending token.
    pub fn candidates(&mut self) -> &[Candidate] {
        self.make_list(f32::MIN);
        self.candidates
    }

    /// Drops every token whose logit is below `least`.
    ///
    /// A truncation that asks for at most the greatest logit keeps at least
    /// one token.
    pub fn keep_at_least(&mut self, least: f32) {
        if self.is_list {
            self.candidates.retain(|one| one.logit >= least);
        } else {
            self.make_list(least);
        }
    }

    /// Drops every token whose logit is below `least`, which need not be a
    /// float of the row's width; the greatest is kept in any case.
    pub(super) fn keep_at_least_near(&mut self, least: f64) {
        let max = self.max();
        if least > f64::from(f32::MIN) {
            self.keep_at_least(at_least(least).min(max));
        }
    }

    /// Of the tokens whose logit is `tied`, drops all but the first `n_kept`.
    #[expect(clippy::float_cmp, reason = "a tie is exact")]
    pub fn keep_ties(&mut self, tied: f32, n_kept: usize) {
        self.make_list(f32::MIN);
        let mut n_left = n_kept;
        self.candidates.retain(|one| {
            let is_tied = one.logit == tied;
            let is_kept = !is_tied || n_left > 0;
            if is_tied {
                n_left = n_left.saturating_sub(1);
            }
            is_kept
        });
    }

    /// Keeps the tokens for which `is_kept` says so, asked by ascending token.
    ///
    /// A truncation must keep at least one.
    pub fn retain(&mut self, mut is_kept: impl FnMut(Candidate) -> bool) {
        if self.is_list {
            self.candidates.retain(|&one| is_kept(one));
            return;
        }
        let candidates = &mut *self.candidates;
        for (index, &logit) in self.logits.iter().enumerate() {
            let one = Candidate { token: TokenId::from_index(index), logit };
            if logit > f32::NEG_INFINITY && is_kept(one) {
                candidates.push(one);
            }
        }
        self.is_list = true;
    }

    /// Returns how many tokens are not forbidden.
    pub fn n_left(&self) -> usize {
        if self.is_list {
            return self.candidates.len();
        }
        let left = self.logits.iter().filter(|z| **z > f32::NEG_INFINITY);
        left.count()
    }

    /// Returns the greatest logit, or minus infinity when every token is
    /// forbidden.
    pub fn max(&self) -> f32 {
        if self.is_list {
            let logits = self.candidates.iter().map(|one| one.logit);
            logits.fold(f32::NEG_INFINITY, f32::max)
        } else {
            softmax::max(self.logits)
        }
    }

    /// Returns the strongest token, the one with the lowest id among equals.
    pub fn greatest(&self) -> Option<Candidate> {
        if self.is_list {
            let all = self.candidates.iter().copied();
            let stronger = |a: Candidate, b: Candidate| {
                if b.logit > a.logit { b } else { a }
            };
            return all.reduce(stronger);
        }
        let index = softmax::first_greatest(self.logits)?;
        let logit = self.logits[index];
        Some(Candidate { token: TokenId::from_index(index), logit })
    }

    /// Returns true if and only if some token is not forbidden.
    pub(super) fn is_any_left(&self) -> bool {
        if self.is_list {
            return !self.candidates.is_empty();
        }
        self.logits.iter().any(|&logit| logit > f32::NEG_INFINITY)
    }

    /// Returns the sum of e to the power of each logit less the greatest one.
    pub fn mass(&self) -> f64 {
        let max = self.max();
        if max == f32::NEG_INFINITY {
            0.0
        } else if self.is_list {
            let logits = self.candidates.iter().map(|one| one.logit);
            logits.map(|logit| f64::from(softmax::exp(logit - max))).sum()
        } else {
            softmax::mass(self.logits, max)
        }
    }

    /// Returns the token at which the mass, summed up by ascending id as
    /// [`mass`](Self::mass) measures it, exceeds `target`; the last token
    /// with any mass if rounding has put the target beyond all.
    pub(super) fn at_mass(&self, target: f64) -> Option<Candidate> {
        /// The grain in which a plain row is passed over, in vector code.
        const BLOCK: usize = 512;
        let max = self.max();
        let mut mass = 0.0;
        let mut start = 0;
        if !self.is_list {
            for block in self.logits.chunks(BLOCK) {
                let with_block = mass + softmax::mass(block, max);
                if with_block > target {
                    break;
                }
                mass = with_block;
                start += block.len();
            }
        }
        let weight = |one: Candidate| softmax::exp(one.logit - max);
        let mut found = None;
        self.visit_from(start, |one| {
            mass += f64::from(weight(one));
            if mass > target {
                found = Some(one);
            }
            found.is_none()
        });
        if found.is_none() {
            self.visit(|one| {
                if weight(one) > 0.0 {
                    found = Some(one);
                }
                true
            });
        }
        found
    }

    /// Returns the first token that is not a number or is positive infinity.
    pub(super) fn find_bad(&self) -> Option<Candidate> {
        if !self.is_list && softmax::all_good(self.logits) {
            return None;
        }
        let mut bad = None;
        self.visit(|one| {
            if one.logit.is_nan() || one.logit == f32::INFINITY {
                bad = Some(one);
            }
            bad.is_none()
        });
        bad
    }

    /// Visits every token by ascending id, forbidden ones too while the row
    /// is plain, until `visit` returns false.
    pub(super) fn visit(&self, visit: impl FnMut(Candidate) -> bool) {
        self.visit_from(0, visit);
    }

    /// Does what `visit` does, from the `start`th entry on.
    fn visit_from(
        &self,
        start: usize,
        mut visit: impl FnMut(Candidate) -> bool,
    ) {
        if self.is_list {
            let mut candidates = self.candidates.iter().skip(start);
            candidates.all(|&one| visit(one));
        } else {
            let mut logits = self.logits.iter().enumerate().skip(start);
            logits.all(|(index, &logit)| {
                visit(Candidate { token: TokenId::from_index(index), logit })
            });
        }
    }

    /// Returns the mass as [`mass`](Self::mass) does, and the entropy of the
    /// softmax in nats.
    pub fn mass_and_entropy(&mut self) -> (f64, f64) {
        let max = self.max();
        if max == f32::NEG_INFINITY {
            return (0.0, 0.0);
        }
        let (values, _) = self.values();
        let (mass, moment) = softmax::moments(values, max);
        // -sum p ln p, where ln p is the logit less max and ln mass.
        (mass, (mass.ln() - moment / mass).max(0.0))
    }

    /// Returns, for each token left in no order, a key and the weight of the
    /// token in the [mass](Self::mass).
    pub(super) fn weighted(
        &mut self,
        key: impl Fn(f32) -> f64,
    ) -> &mut [Weighted] {
        let max = self.max();
        let mut weighted = std::mem::take(self.weighted);
        weighted.clear();
        self.visit(|one| {
            if one.logit > f32::NEG_INFINITY {
                let weight = softmax::exp(one.logit - max);
                weighted.push(Weighted { key: key(one.logit), weight });
            }
            true
        });
        *self.weighted = weighted;
        self.weighted
    }

    /// Returns the logits in no order, and a buffer to work in.
    pub(super) fn values(&mut self) -> (&[f32], &mut Vec<f32>) {
        if self.is_list {
            // The plain row has been left behind: its front is free memory.
            let n_candidates = self.candidates.len();
            let values = &mut self.logits[..n_candidates];
            for (value, one) in values.iter_mut().zip(&*self.candidates) {
                *value = one.logit;
            }
            (&*values, &mut *self.values)
        } else {
            (&*self.logits, &mut *self.values)
        }
    }

    /// Turns a plain row into a list of the tokens with at least this logit.
    fn make_list(&mut self, least: f32) {
        if self.is_list {
            return;
        }
        let tokens = (0..).map(TokenId);
        let logits = self.logits.iter().copied();
        let all = tokens
            .zip(logits)
            .map(|(token, logit)| Candidate { token, logit });
        self.candidates.extend(all.filter(|one| one.logit >= least));
        self.is_list = true;
    }

    /// Returns where a token stands in the list.
    fn place(&self, token: TokenId) -> Option<usize> {
        self.candidates.binary_search_by_key(&token, |one| one.token).ok()
    }
}

/// Returns the least `f32` that is not below `bound`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding is what is being corrected for"
)]
fn at_least(bound: f64) -> f32 {
    let rounded = bound as f32;
    if f64::from(rounded) < bound { rounded.next_up() } else { rounded }
}
