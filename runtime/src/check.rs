//! Does a grammar accept a text, and if not, where did the text leave it?
//!
//! [`Checker`] decides by bytes alone. [`TokenChecker`] decides through the
//! masks: the text is split into tokens, each token must be in the mask at
//! its place, and an end token in the mask at the end. The two agree; that
//! they do is what the tests of this project are about.

#[cfg(feature = "generator")]
use std::{path::Path, sync::Arc};

use maskwright_grammar_core::automaton::{AutomatonError, Recognizer};

use crate::{
    compiled::BindError, grammar::Grammar, matcher::MatcherError,
    vocabulary::VocabularyError,
};
#[cfg(feature = "generator")]
use crate::{
    mask::TokenTrie,
    matcher::Matcher,
    vocabulary::{TokenId, Vocabulary},
};

/// What became of a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Verdict {
    stopped_at: Option<usize>,
    incomplete: bool,
    allowed: Vec<u8>,
    expected: String,
}

impl Verdict {
    /// Returns true if and only if the text is in the grammar.
    pub fn is_accepted(&self) -> bool {
        self.stopped_at.is_none()
    }

    /// Returns the byte offset at which the text left the grammar; its
    /// length if it is only incomplete, none if it is accepted.
    pub fn stopped_at(&self) -> Option<usize> {
        self.stopped_at
    }

    /// Returns true if and only if the text was refused for ending too early.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Returns the bytes that were allowed where the text stopped, in order.
    pub fn allowed(&self) -> &[u8] {
        &self.allowed
    }

    /// Describes what was being read where the text stopped.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    pub(crate) fn accepted() -> Verdict {
        Verdict {
            stopped_at: None,
            incomplete: false,
            allowed: Vec::new(),
            expected: String::new(),
        }
    }
}

/// Decides by bytes.
#[derive(Clone, Debug)]
pub struct Checker<'a> {
    grammar: &'a Grammar,
}

impl<'a> Checker<'a> {
    /// Creates a checker of `grammar`.
    pub fn new(grammar: &'a Grammar) -> Checker<'a> {
        Checker { grammar }
    }

    /// Checks one text.
    ///
    /// # Errors
    ///
    /// Fails when a limit is met.
    pub fn check(&self, text: &[u8]) -> Result<Verdict, AutomatonError> {
        let automaton = self.grammar.automaton().clone();
        let mut recognizer = Recognizer::new(automaton)?;
        for (offset, &byte) in text.iter().enumerate() {
            if !recognizer.push_byte(byte)? {
                return Checker::stopped(&recognizer, offset, false);
            }
        }
        if recognizer.is_accepting()? {
            return Ok(Verdict::accepted());
        }
        Checker::stopped(&recognizer, text.len(), true)
    }

    fn stopped(
        recognizer: &Recognizer,
        offset: usize,
        incomplete: bool,
    ) -> Result<Verdict, AutomatonError> {
        let allowed = recognizer.allowed_bytes()?;
        let allowed = (0..=u8::MAX).filter(|&byte| allowed[usize::from(byte)]);
        Ok(Verdict {
            stopped_at: Some(offset),
            incomplete,
            allowed: allowed.collect(),
            expected: recognizer.describe(),
        })
    }
}

/// An error that occurs while a text is checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The grammar's machine met a limit.
    #[error(transparent)]
    Automaton(#[from] AutomatonError),
    /// The matcher failed.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
    /// The grammar and the vocabulary do not fit together.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The vocabulary cannot be read.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// The tokenizer cannot be read, or fails.
    #[error("the tokenizer cannot be used: {0}")]
    Tokenizer(String),
}

impl CheckError {
    /// Returns a stable name of the kind, for machines.
    pub fn kind(&self) -> &'static str {
        match self {
            CheckError::Automaton(_) => "resource_limit",
            CheckError::Matcher(_) => "matcher",
            CheckError::Bind(_) => "vocabulary_mismatch",
            CheckError::Vocabulary(_) | CheckError::Tokenizer(_) => {
                "tokenizer"
            }
        }
    }
}

/// Decides token by token, through the masks.
#[cfg(feature = "generator")]
#[derive(Debug)]
pub struct TokenChecker {
    tokenizer: tokenizers::Tokenizer,
    trie: Arc<TokenTrie>,
    /// The id of each byte string that is a token, to split what the
    /// tokenizer would not give back as it was.
    ids: hashbrown::HashMap<Box<[u8]>, TokenId>,
}

#[cfg(feature = "generator")]
impl TokenChecker {
    /// Reads a `tokenizer.json`, and with it the end tokens that the files
    /// beside it name.
    ///
    /// # Errors
    ///
    /// Fails when a file cannot be read.
    pub fn from_file(path: &Path) -> Result<TokenChecker, CheckError> {
        let vocabulary = Vocabulary::from_path(path)?;
        let file = if path.is_dir() {
            path.join("tokenizer.json")
        } else {
            path.to_owned()
        };
        let mut tokenizer = tokenizers::Tokenizer::from_file(file)
            .map_err(|error| CheckError::Tokenizer(error.to_string()))?;
        // What looks like a special token in a text is text.
        tokenizer.set_encode_special_tokens(true);
        let ids = vocabulary
            .text_tokens()
            .map(|(token, bytes)| (bytes.into(), token))
            .collect();
        let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
        Ok(TokenChecker { tokenizer, trie, ids })
    }

    /// Checks one text: each of its tokens must be in the mask, and an end
    /// token in the mask at the end.
    ///
    /// # Errors
    ///
    /// Fails when a limit is met, and when the vocabulary cannot spell the
    /// text.
    pub fn check(
        &self,
        grammar: &Grammar,
        text: &str,
    ) -> Result<Verdict, CheckError> {
        let mut matcher = Matcher::new(grammar.compile(&self.trie)?)?;
        let mut offset = 0;
        for (token, len) in self.split(text)? {
            if !matcher.mask()?.is_allowed(token) {
                return refused(grammar, text, offset);
            }
            matcher.accept(token)?;
            offset += len;
        }
        let ends = self.trie.vocabulary().end_tokens();
        let may_end = if ends.is_empty() {
            matcher.is_accepting()?
        } else {
            let mask = matcher.mask()?;
            ends.iter().all(|&token| mask.is_allowed(token))
        };
        if may_end {
            return Ok(Verdict::accepted());
        }
        refused(grammar, text, offset)
    }

    /// Splits a text into tokens, each with the length of its bytes.
    fn split(&self, text: &str) -> Result<Vec<(TokenId, usize)>, CheckError> {
        let encoding = self
            .tokenizer
            .encode_fast(text, false)
            .map_err(|error| CheckError::Tokenizer(error.to_string()))?;
        let vocabulary = self.trie.vocabulary();
        let mut tokens = Vec::with_capacity(encoding.get_ids().len());
        let mut rest = text.as_bytes();
        for &id in encoding.get_ids() {
            let token = TokenId(id);
            let bytes = vocabulary.token_bytes(token).unwrap_or_default();
            match rest.strip_prefix(bytes) {
                Some(after) if !bytes.is_empty() => rest = after,
                // The tokenizer changed the text (it normalises, or puts a
                // space before it): any other split will do.
                _ => return self.split_greedily(text),
            }
            tokens.push((token, bytes.len()));
        }
        if rest.is_empty() { Ok(tokens) } else { self.split_greedily(text) }
    }

    fn split_greedily(
        &self,
        text: &str,
    ) -> Result<Vec<(TokenId, usize)>, CheckError> {
        const LONGEST: usize = 256;
        let mut rest = text.as_bytes();
        let mut tokens = Vec::new();
        while !rest.is_empty() {
            let longest = rest.len().min(LONGEST);
            let found = (1..=longest)
                .rev()
                .find_map(|len| Some((*self.ids.get(&rest[..len])?, len)));
            let Some((token, len)) = found else {
                return Err(CheckError::Tokenizer(format!(
                    "no token begins with byte {}",
                    rest[0].escape_ascii()
                )));
            };
            tokens.push((token, len));
            rest = &rest[len..];
        }
        Ok(tokens)
    }
}

/// Describes the place where the masks refused the text.
#[cfg(feature = "generator")]
fn refused(
    grammar: &Grammar,
    text: &str,
    offset: usize,
) -> Result<Verdict, CheckError> {
    let read = text.as_bytes().get(..offset).unwrap_or_default();
    let mut recognizer = Recognizer::new(grammar.automaton().clone())?;
    recognizer.push_bytes(read)?;
    let incomplete = offset == text.len();
    Ok(Checker::stopped(&recognizer, offset, incomplete)?)
}
