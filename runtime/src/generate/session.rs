//! One sequence on one model.

use std::sync::Arc;

use crate::model::{Feed, KvCache, Logits, Model, ModelError, Want};

/// The tokens of a prompt that go through the model at once.
///
/// More would not be faster, and the intermediate results of a pass grow with
/// it: a few megabytes at this size.
pub(super) const CHUNK: usize = 256;

/// One sequence on one model: its tokens, what the model remembers of them,
/// and the logits after the last.
///
/// Feeding a sequence that begins as the current one computes only what is
/// new. A fork shares what it has in common with its origin.
#[derive(Debug)]
pub struct Session {
    model: Arc<dyn Model>,
    /// Invariant: as many positions as `tokens`.
    cache: KvCache,
    tokens: Vec<u32>,
    /// The logits after the last token, unless something changed since.
    logits: Logits,
    /// Whether `logits` belong to the last of `tokens`.
    is_current: bool,
}

impl Session {
    /// Creates an empty sequence.
    pub fn new(model: Arc<dyn Model>) -> Session {
        let cache = model.new_cache();
        Session {
            model,
            cache,
            tokens: Vec::new(),
            logits: Logits::new(),
            is_current: false,
        }
    }

    /// Returns the model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// Returns the tokens of the sequence.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Returns how many tokens still fit.
    pub fn remaining(&self) -> usize {
        self.model.context_length().saturating_sub(self.tokens.len())
    }

    /// Returns the logits after the last token, if the last call computed
    /// them.
    pub fn logits(&self) -> Option<&[f32]> {
        if self.is_current { self.logits.last(0) } else { None }
    }

    /// Makes `tokens` the sequence, and returns the logits after the last of
    /// them. The part that the sequence begins with already is not computed
    /// again.
    ///
    /// # Errors
    ///
    /// Fails when `tokens` is empty or does not fit, when a token is unknown,
    /// and when the computation fails. The sequence is then the part that was
    /// computed.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<&[f32], ModelError> {
        self.check_fit(tokens.len())?;
        let n_common = self.common_prefix(tokens);
        if n_common == tokens.len() && n_common == self.tokens.len() {
            // Nothing is new; the logits may be there still.
            self.fetch()?;
            if !self.is_current {
                self.truncate(n_common.saturating_sub(1));
            }
        } else {
            // The last token goes through the model in any case: the cache
            // holds what it is to later ones, not its logits.
            self.truncate(n_common.min(tokens.len().saturating_sub(1)));
        }
        let rest = &tokens[self.tokens.len()..];
        if rest.is_empty() && !tokens.is_empty() {
            return self.logits().ok_or(ModelError::EmptyFeed);
        }
        self.append(rest)
    }

    /// Appends tokens, and returns the logits after the last of them.
    ///
    /// # Errors
    ///
    /// As [`Session::feed`].
    pub fn append(&mut self, tokens: &[u32]) -> Result<&[f32], ModelError> {
        if tokens.is_empty() {
            return Err(ModelError::EmptyFeed);
        }
        self.check_fit(self.tokens.len() + tokens.len())?;
        self.leave_on_device(false);
        let n_chunks = tokens.len().div_ceil(CHUNK);
        for (index, chunk) in tokens.chunks(CHUNK).enumerate() {
            let is_last = index + 1 == n_chunks;
            let want = if is_last { Want::Last } else { Want::Nothing };
            self.step(chunk, want)?;
        }
        self.logits().ok_or(ModelError::EmptyFeed)
    }

    /// Appends tokens, and returns the logits after each of them: what a
    /// whole label costs, and what a draft is checked by.
    ///
    /// # Errors
    ///
    /// As [`Session::feed`].
    pub fn append_all(
        &mut self,
        tokens: &[u32],
    ) -> Result<&Logits, ModelError> {
        self.check_fit(self.tokens.len() + tokens.len())?;
        self.leave_on_device(false);
        self.step(tokens, Want::All)?;
        Ok(&self.logits)
    }

    /// Forgets every token from `len` on. A `len` past the end changes
    /// nothing.
    pub fn truncate(&mut self, len: usize) {
        if len < self.tokens.len() {
            self.tokens.truncate(len);
            self.cache.truncate(len);
            self.is_current = false;
        }
    }

    /// Returns a sequence with the same tokens, which goes its own way from
    /// here.
    #[must_use]
    pub fn fork(&self) -> Session {
        Session {
            model: Arc::clone(&self.model),
            cache: self.cache.fork(),
            tokens: self.tokens.clone(),
            logits: self.logits.clone(),
            is_current: self.is_current,
        }
    }

    /// Does what [`Session::fork`] does, without the logits.
    pub(super) fn branch(&self) -> Session {
        Session {
            model: Arc::clone(&self.model),
            cache: self.cache.fork(),
            tokens: self.tokens.clone(),
            logits: Logits::new(),
            is_current: false,
        }
    }

    /// Returns the logits that the last call computed, the last ones those
    /// after the last token; none if something changed since.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[f32]> {
        let rows = self.is_current.then(|| self.logits.rows(0));
        rows.into_iter().flatten()
    }

    /// Returns the bytes of what the model remembers of the sequence. What
    /// forks share is counted by each of them.
    pub fn memory_usage(&self) -> usize {
        self.cache.memory_usage()
    }

    /// Appends tokens to each of several sequences on one model, in one pass.
    ///
    /// # Errors
    ///
    /// As [`Session::feed`]. All sequences are as long as before then.
    pub(super) fn append_each(
        batch: &mut [(&mut Session, &[u32], Want)],
    ) -> Result<(), ModelError> {
        if let [(session, tokens, want)] = batch {
            session.check_fit(session.tokens.len() + tokens.len())?;
            return session.step(tokens, *want);
        }
        let lens: Vec<usize> =
            batch.iter().map(|(session, ..)| session.cache.len()).collect();
        let Some((first, ..)) = batch.first() else { return Ok(()) };
        let model = Arc::clone(&first.model);
        let mut logits = Logits::new();
        logits.may_stay(true);
        let mut feeds = Vec::with_capacity(batch.len());
        for (session, tokens, want) in &mut *batch {
            session.check_fit(session.tokens.len() + tokens.len())?;
            session.is_current = false;
            let cache = &mut session.cache;
            feeds.push(Feed { tokens, cache, want: *want });
        }
        model.forward(&mut feeds, &mut logits)?;
        let mut sessions = batch.iter_mut().enumerate();
        let copied = sessions.try_for_each(|(index, (session, ..))| {
            logits.copy_to(index, &mut session.logits)
        });
        if let Err(error) = copied {
            for ((session, ..), len) in batch.iter_mut().zip(lens) {
                session.cache.truncate(len);
            }
            return Err(error);
        }
        for (session, tokens, want) in batch {
            session.tokens.extend_from_slice(tokens);
            session.is_current = *want != Want::Nothing;
        }
        Ok(())
    }

    /// Says whether the logits of the next pass may stay on the device that
    /// computed them, for [`Session::strongest`].
    pub(super) fn leave_on_device(&mut self, may_stay: bool) {
        self.logits.may_stay(may_stay);
    }

    /// Whether the logits are still on the device that computed them.
    pub(super) fn is_on_device(&self) -> bool {
        self.logits.is_on_device()
    }

    /// Copies the logits from the device, if they are still there.
    pub(super) fn fetch(&mut self) -> Result<(), ModelError> {
        self.logits.fetch()
    }

    /// Fills `row` with the logits after the last token, and minus infinity
    /// for all that is not among the `k` strongest that the mask allows.
    /// Returns how many there are; none where the logits are not on a device
    /// or the whole row is wanted.
    pub(super) fn strongest(
        &self,
        mask: &[u32],
        k: usize,
        row: &mut Vec<f32>,
    ) -> Result<Option<usize>, ModelError> {
        if !self.is_current {
            return Ok(None);
        }
        self.logits.strongest(0, mask, k, row)
    }

    pub(super) fn cache(&self) -> &KvCache {
        &self.cache
    }

    /// Returns how many tokens `tokens` and the sequence have in common at
    /// the beginning.
    pub fn common_prefix(&self, tokens: &[u32]) -> usize {
        self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count()
    }

    fn check_fit(&self, asked: usize) -> Result<(), ModelError> {
        let limit = self.model.context_length();
        if asked > limit {
            return Err(ModelError::ContextFull { limit, asked });
        }
        Ok(())
    }

    fn step(&mut self, tokens: &[u32], want: Want) -> Result<(), ModelError> {
        self.is_current = false;
        let feed = Feed { tokens, cache: &mut self.cache, want };
        self.model.forward(&mut [feed], &mut self.logits)?;
        self.tokens.extend_from_slice(tokens);
        self.is_current = want != Want::Nothing;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::GgmlDType;

    use super::*;
    use crate::model::load;
    use crate::model::testing::{TinyModel, default_model};

    fn models() -> Vec<Arc<dyn Model>> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tiny.gguf");
        TinyModel::new().write_gguf(&path, GgmlDType::Q8_0);
        let mut models = vec![load(&path).expect("loads").model];
        if let Some(loaded) = default_model() {
            models.push(Arc::clone(&loaded.model));
        }
        models
    }

    fn fresh(model: &Arc<dyn Model>, tokens: &[u32]) -> Vec<f32> {
        let mut session = Session::new(Arc::clone(model));
        session.feed(tokens).expect("computed").to_vec()
    }

    #[test]
    fn feeding_gives_the_logits_of_a_fresh_sequence() {
        for model in models() {
            let mut session = Session::new(Arc::clone(&model));
            for tokens in [
                &[1u32, 2, 3, 4, 5][..],
                &[1, 2, 3, 4, 5],
                &[1, 2, 3, 4, 5, 6, 7],
                &[1, 2, 3],
                &[1, 2, 9, 9],
                &[8],
                &[1, 2, 9, 9],
            ] {
                let logits = session.feed(tokens).expect("computed").to_vec();
                assert_eq!(logits, fresh(&model, tokens), "{tokens:?}");
                assert_eq!(session.tokens(), tokens);
                assert_eq!(session.logits(), Some(logits.as_slice()));
            }
        }
    }

    #[test]
    fn a_long_prompt_goes_through_in_chunks() {
        let model = models().swap_remove(0);
        let tokens: Vec<u32> = (0..CHUNK * 2 + 5)
            .map(|i| u32::try_from(i * 31 % 249).expect("small"))
            .collect();
        let mut session = Session::new(Arc::clone(&model));
        let whole = session.feed(&tokens).expect("computed").to_vec();
        let mut session = Session::new(model);
        session.append(&tokens[..100]).expect("computed");
        let parts = session.append(&tokens[100..]).expect("computed");
        assert_eq!(parts, whole);
    }

    #[test]
    fn forks_go_their_own_ways() {
        for model in models() {
            let mut session = Session::new(Arc::clone(&model));
            session.feed(&[5, 6, 7]).expect("computed");
            let mut fork = session.fork();
            assert_eq!(fork.logits(), session.logits());
            fork.append(&[8, 9]).expect("computed");
            session.append(&[10]).expect("computed");
            assert_eq!(
                fork.logits(),
                Some(fresh(&model, &[5, 6, 7, 8, 9]).as_slice())
            );
            assert_eq!(
                session.logits(),
                Some(fresh(&model, &[5, 6, 7, 10]).as_slice())
            );
        }
    }

    #[test]
    fn all_logits_are_those_after_each_token() {
        for model in models() {
            let mut session = Session::new(Arc::clone(&model));
            session.feed(&[3, 1]).expect("computed");
            let logits = session.append_all(&[4, 1, 5]).expect("computed");
            let rows: Vec<Vec<f32>> =
                logits.rows(0).map(<[f32]>::to_vec).collect();
            assert_eq!(rows.len(), 3);
            for (index, row) in rows.iter().enumerate() {
                let tokens = &[3, 1, 4, 1, 5][..index + 3];
                assert_eq!(*row, fresh(&model, tokens));
            }
        }
    }

    #[test]
    fn truncating_makes_the_logits_stale() {
        for model in models() {
            let mut session = Session::new(Arc::clone(&model));
            session.feed(&[3, 1, 4]).expect("computed");
            session.truncate(5);
            assert!(session.logits().is_some());
            session.truncate(2);
            assert!(session.logits().is_none());
            assert_eq!(session.tokens(), [3, 1]);
            let logits = session.feed(&[3, 1]).expect("computed").to_vec();
            assert_eq!(logits, fresh(&model, &[3, 1]));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_before_anything_is_computed() {
        let model = models().swap_remove(0);
        let limit = model.context_length();
        let mut session = Session::new(model);
        session.feed(&[1, 2]).expect("computed");
        assert!(session.feed(&vec![1; limit + 1]).is_err());
        assert!(session.append(&vec![1; limit - 1]).is_err());
        assert!(session.append(&[]).is_err());
        assert_eq!(session.tokens(), [1, 2]);
        assert!(session.feed(&[]).is_err());
        assert_eq!(session.remaining(), limit);
        session.feed(&vec![1; limit]).expect("it just fits");
        assert_eq!(session.remaining(), 0);
    }
}
