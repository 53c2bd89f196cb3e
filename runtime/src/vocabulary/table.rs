//! The table from token ids to bytes.

use std::{borrow::Cow, collections::BTreeMap, fmt, hash::Hasher, ops::Bound};

use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use super::error::VocabularyError;
use crate::saved::{Reader, Writer};

/// More tokens than any vocabulary has; a higher id means a damaged file.
pub(super) const MAX_TOKENS: u32 = 1 << 23;

/// The spellings of all tokens lie in one buffer with 32-bit offsets.
const MAX_BYTES: usize = 1 << 31;

/// The identifier of a token: its place in a row of logits.
#[derive(
    Clone,
    Copy,
    Debug,
    Deserialize,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
)]
#[serde(transparent)]
pub struct TokenId(pub u32);

impl TokenId {
    /// Returns the place of this token in a row of logits.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the token at a place in a row of logits.
    ///
    /// No row is wider than 32 bits can count; a place beyond that is clamped
    /// to the last id, which no vocabulary has.
    pub fn from_index(index: usize) -> TokenId {
        TokenId(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a token is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TokenKind {
    /// The token spells text.
    Text,
    /// A control token, such as `<|im_start|>`: it has a printed form, which
    /// it does not spell.
    Special,
    /// The id has no token: a hole in the table, or one marked as unused.
    Unused,
}

/// What each token of a model spells, in bytes.
///
/// See the [module documentation](super) for what counts as text.
#[derive(Clone)]
pub struct Vocabulary {
    /// The bytes of all tokens, in id order. A special token has its printed
    /// form here.
    bytes: Vec<u8>,
    /// Where the bytes of each token end; they begin where the ones before
    /// end.
    ends: Vec<u32>,
    /// One kind a token. Invariant: as long as `ends`.
    kinds: Vec<TokenKind>,
    /// Ascending, without repetition, all below `n_logits`.
    end_tokens: Vec<TokenId>,
    /// The width of a row of logits.
    n_logits: usize,
    /// The tokens that the tokenizer keeps whole, by their printed form.
    named: BTreeMap<Box<str>, TokenId>,
    /// Derived from everything above.
    fingerprint: u64,
}

impl Vocabulary {
    /// Creates a vocabulary from the bytes of its tokens, in id order.
    ///
    /// Two tokens may have the same bytes. A token without bytes is never
    /// allowed as text. The end tokens may be any tokens, or none.
    ///
    /// # Errors
    ///
    /// Fails when an end token is not among the tokens, or when there are too
    /// many tokens.
    pub fn from_tokens(
        tokens: impl IntoIterator<Item: AsRef<[u8]>>,
        end_tokens: impl IntoIterator<Item = TokenId>,
    ) -> Result<Vocabulary, VocabularyError> {
        let tokens = tokens.into_iter();
        let mut builder = Builder::with_capacity(tokens.size_hint().0);
        for token in tokens {
            builder.push(TokenKind::Text, |bytes| {
                bytes.extend_from_slice(token.as_ref());
            })?;
        }
        builder.finish().with_end_tokens(end_tokens)
    }

    /// Replaces the set of end tokens.
    ///
    /// A token that spells text and is made an end token stops spelling it:
    /// inside a string it would end the output instead.
    ///
    /// # Errors
    ///
    /// Fails when the vocabulary, or a row of logits, lacks one of them.
    pub fn with_end_tokens(
        mut self,
        end_tokens: impl IntoIterator<Item = TokenId>,
    ) -> Result<Vocabulary, VocabularyError> {
        let mut tokens: Vec<TokenId> = end_tokens.into_iter().collect();
        tokens.sort_unstable();
        tokens.dedup();
        for &token in &tokens {
            self.check_known("end", token)?;
        }
        self.end_tokens = tokens;
        self.fingerprint = self.compute_fingerprint();
        Ok(self)
    }

    /// Marks more tokens as special, so that they never match as text.
    ///
    /// Some tokenizers ship control tokens, such as `<think>`, that are not
    /// flagged as special. As long as they are not marked here, a grammar
    /// that allows the text `<think>` allows them as well.
    ///
    /// # Errors
    ///
    /// Fails when the vocabulary lacks one of them.
    pub fn with_special_tokens(
        mut self,
        tokens: impl IntoIterator<Item = TokenId>,
    ) -> Result<Vocabulary, VocabularyError> {
        for token in tokens {
            self.check_known("special", token)?;
            self.kinds[token.index()] = TokenKind::Special;
            let name = self.text(token).into_owned();
            self.named.entry(name.into_boxed_str()).or_insert(token);
        }
        self.fingerprint = self.compute_fingerprint();
        Ok(self)
    }

    /// Sets the width of a row of logits.
    ///
    /// Models pad their rows (Qwen has 151,936 logits for 151,669 tokens) or,
    /// rarely, leave out special tokens at the end of the table. Ids beyond
    /// the tokens, and tokens beyond the width, are never allowed.
    ///
    /// # Errors
    ///
    /// Fails when a token that spells text or ends the output has no place
    /// in the row. The vocabulary is then unchanged.
    pub fn set_n_logits(
        &mut self,
        width: usize,
    ) -> Result<(), VocabularyError> {
        if width > MAX_TOKENS as usize {
            return Err(VocabularyError::TooManyTokens {
                id: width as u64,
                limit: MAX_TOKENS,
            });
        }
        let cut_off = (width..self.n_tokens())
            .map(TokenId::from_index)
            .find(|&token| self.is_end(token) || self.is_text(token));
        if let Some(token) = cut_off {
            return Err(VocabularyError::NarrowLogits {
                width,
                id: token.0,
                text: self.text(token).into_owned(),
            });
        }
        self.n_logits = width;
        self.fingerprint = self.compute_fingerprint();
        Ok(())
    }

    /// Returns the width of a row of logits, and with it of every mask.
    pub fn n_logits(&self) -> usize {
        self.n_logits
    }

    /// Returns how many tokens the tokenizer has, holes included.
    pub fn n_tokens(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes that a token spells, or `None` when it never matches
    /// as text.
    ///
    /// This is the whole question of what a token may stand for in a grammar:
    /// special, unused, empty and end tokens and ids without a token give
    /// `None`.
    pub fn token_bytes(&self, token: TokenId) -> Option<&[u8]> {
        self.is_text(token).then(|| self.raw_bytes(token))
    }

    /// Returns every token that spells text with its bytes, in id order.
    pub fn text_tokens(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        (0..self.n_tokens()).map(TokenId::from_index).filter_map(|token| {
            self.token_bytes(token).map(|bytes| (token, bytes))
        })
    }

    /// Returns the bytes behind an id: what a text token spells, or the
    /// printed form of a special token; empty where there is no token.
    ///
    /// For people to read; grammars ask [`token_bytes`](Self::token_bytes).
    pub fn raw_bytes(&self, token: TokenId) -> &[u8] {
        let index = token.index();
        let Some(&end) = self.ends.get(index) else { return &[] };
        let start = match index.checked_sub(1) {
            Some(before) => self.ends[before],
            None => 0,
        };
        &self.bytes[start as usize..end as usize]
    }

    /// Returns a readable form of a token, with a replacement character in
    /// place of broken UTF-8.
    pub fn text(&self, token: TokenId) -> Cow<'_, str> {
        String::from_utf8_lossy(self.raw_bytes(token))
    }

    /// Returns what a token is for; `Unused` for an id without a token.
    pub fn kind(&self, token: TokenId) -> TokenKind {
        self.kinds.get(token.index()).copied().unwrap_or(TokenKind::Unused)
    }

    /// Returns true if and only if the token is a control token.
    pub fn is_special(&self, token: TokenId) -> bool {
        self.kind(token) == TokenKind::Special
    }

    /// Returns true if and only if the token ends the output.
    pub fn is_end(&self, token: TokenId) -> bool {
        self.end_tokens.binary_search(&token).is_ok()
    }

    /// Returns the end tokens, ascending.
    pub fn end_tokens(&self) -> &[TokenId] {
        &self.end_tokens
    }

    /// Returns the token that the tokenizer keeps whole under this printed
    /// form: a special one, or one added beside the model.
    pub fn id_of_special(&self, text: &str) -> Option<TokenId> {
        self.named.get(text).copied()
    }

    /// Returns whether the printed form of some token that the tokenizer
    /// keeps whole begins with `text` and is longer.
    pub(crate) fn has_longer_name(&self, text: &str) -> bool {
        let beyond = (Bound::Excluded(text), Bound::Unbounded);
        let next = self.named.range::<str, _>(beyond).next();
        next.is_some_and(|(name, _)| name.starts_with(text))
    }

    /// Returns the bytes that are tokens of their own.
    ///
    /// Any text over these bytes can be spelled, so as an answer to 'can this
    /// byte be written here?' the set errs on the side of no: a byte that
    /// occurs only inside longer tokens is left out, though some texts with
    /// it can be spelled. [`occurring_bytes`](Self::occurring_bytes) errs on
    /// the other side. For vocabularies with a token for each byte that they
    /// know, as byte-level ones are, the two are equal.
    pub fn spellable_bytes(&self) -> [bool; 256] {
        let mut set = [false; 256];
        for (_, bytes) in self.text_tokens() {
            if let &[byte] = bytes {
                set[usize::from(byte)] = true;
            }
        }
        set
    }

    /// Returns the bytes that occur in some text token.
    ///
    /// A byte outside this set can never be written. A byte inside it may be
    /// writable only among certain neighbours.
    pub fn occurring_bytes(&self) -> [bool; 256] {
        let mut set = [false; 256];
        for (_, bytes) in self.text_tokens() {
            for &byte in bytes {
                set[usize::from(byte)] = true;
            }
        }
        set
    }

    /// Returns a hash of everything that masks depend on.
    ///
    /// Equal vocabularies have equal fingerprints within one build of this
    /// crate. It is an index for caches, not a proof of equality.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Writes everything that a vocabulary holds.
    pub(crate) fn save(&self, out: &mut Writer) {
        out.list(&self.bytes);
        out.words(self.ends.iter().copied());
        let kinds: Vec<u8> =
            self.kinds.iter().map(|&kind| kind as u8).collect();
        out.list(&kinds);
        out.words(self.end_tokens.iter().map(|token| token.0));
        out.number(self.n_logits as u64);
        out.number(self.named.len() as u64);
        for (name, token) in &self.named {
            out.list(name.as_bytes());
            out.number(u64::from(token.0));
        }
    }

    /// Reads what [`Vocabulary::save`] wrote; none where that makes no sense.
    pub(crate) fn restore(from: &mut Reader<'_>) -> Option<Vocabulary> {
        let bytes = from.list()?.to_vec();
        let ends = from.words()?;
        let n_tokens = u32::try_from(ends.len()).ok()?;
        let kinds = from.list()?.iter().map(|&kind| match kind {
            0 => Some(TokenKind::Text),
            1 => Some(TokenKind::Special),
            2 => Some(TokenKind::Unused),
            _ => None,
        });
        let kinds: Vec<TokenKind> = kinds.collect::<Option<_>>()?;
        let end_tokens = from.words()?;
        let n_logits = from.length()?;
        let is_sane = ends.is_sorted()
            && ends.last().is_none_or(|&end| end as usize <= bytes.len())
            && kinds.len() == ends.len()
            && end_tokens.is_sorted_by(|a, b| a < b)
            && end_tokens.last().is_none_or(|&token| token < n_tokens)
            && n_tokens <= MAX_TOKENS
            && n_logits <= MAX_TOKENS as usize;
        if !is_sane {
            return None;
        }
        let mut named = BTreeMap::new();
        for _ in 0..from.length()? {
            let name = std::str::from_utf8(from.list()?).ok()?;
            let token = u32::try_from(from.number()?).ok()?;
            if token >= n_tokens {
                return None;
            }
            named.insert(Box::from(name), TokenId(token));
        }
        let end_tokens = end_tokens.into_iter().map(TokenId).collect();
        let mut vocabulary = Vocabulary {
            bytes,
            ends,
            kinds,
            end_tokens,
            n_logits,
            named,
            fingerprint: 0,
        };
        vocabulary.fingerprint = vocabulary.compute_fingerprint();
        Some(vocabulary)
    }

    fn is_text(&self, token: TokenId) -> bool {
        token.index() < self.n_logits
            && self.kind(token) == TokenKind::Text
            && !self.is_end(token)
            && !self.raw_bytes(token).is_empty()
    }

    fn check_known(
        &self,
        role: &'static str,
        token: TokenId,
    ) -> Result<(), VocabularyError> {
        let n_tokens = self.n_tokens();
        if token.index() < n_tokens.min(self.n_logits) {
            return Ok(());
        }
        Err(VocabularyError::UnknownToken {
            role,
            id: u64::from(token.0),
            n_tokens,
        })
    }

    fn compute_fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_usize(self.n_logits);
        hasher.write_usize(self.n_tokens());
        hasher.write(&self.bytes);
        for (&end, &kind) in self.ends.iter().zip(&self.kinds) {
            hasher.write_u64(u64::from(end) << 2 | kind as u64);
        }
        for &token in &self.end_tokens {
            hasher.write_u32(token.0);
        }
        hasher.finish()
    }
}

/// Prints the sizes, not the tokens.
impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("n_tokens", &self.n_tokens())
            .field("n_logits", &self.n_logits)
            .field("n_bytes", &self.bytes.len())
            .field("end_tokens", &self.end_tokens)
            .finish_non_exhaustive()
    }
}

/// Collects tokens in id order.
#[derive(Debug)]
pub(super) struct Builder {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    kinds: Vec<TokenKind>,
    named: BTreeMap<Box<str>, TokenId>,
}

impl Builder {
    pub(super) fn with_capacity(n_tokens: usize) -> Builder {
        Builder {
            bytes: Vec::with_capacity(n_tokens.saturating_mul(8)),
            ends: Vec::with_capacity(n_tokens),
            kinds: Vec::with_capacity(n_tokens),
            named: BTreeMap::new(),
        }
    }

    /// Appends one token, whose bytes `write` appends to the buffer.
    ///
    /// # Errors
    ///
    /// Fails when the vocabulary is full.
    pub(super) fn push(
        &mut self,
        kind: TokenKind,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), VocabularyError> {
        if self.ends.len() >= MAX_TOKENS as usize {
            return Err(VocabularyError::TooManyTokens {
                id: self.ends.len() as u64,
                limit: MAX_TOKENS,
            });
        }
        write(&mut self.bytes);
        let end = u32::try_from(self.bytes.len())
            .ok()
            .filter(|&end| end as usize <= MAX_BYTES)
            .ok_or(VocabularyError::TooManyBytes {
                given: self.bytes.len(),
                limit: MAX_BYTES,
            })?;
        self.ends.push(end);
        self.kinds.push(kind);
        Ok(())
    }

    /// Makes the token pushed last findable by its printed form. The first
    /// of several tokens with one name keeps it.
    pub(super) fn name_last(&mut self, name: &str) {
        let token = TokenId::from_index(self.ends.len().saturating_sub(1));
        self.named.entry(name.into()).or_insert(token);
    }

    /// Returns the vocabulary, as wide as its tokens and without end tokens.
    pub(super) fn finish(self) -> Vocabulary {
        let mut vocabulary = Vocabulary {
            n_logits: self.ends.len(),
            bytes: self.bytes,
            ends: self.ends,
            kinds: self.kinds,
            end_tokens: Vec::new(),
            named: self.named,
            fingerprint: 0,
        };
        vocabulary.fingerprint = vocabulary.compute_fingerprint();
        vocabulary
    }
}
