//! The text before the next token, as far as its tokenization depends on it,
//! and what the tokenizer makes of it.

use super::generator::Encoder;
use crate::{
    model::ModelError,
    pipeline::History,
    vocabulary::{TokenId, Vocabulary},
};

/// From so many bytes back on, a word that begins with a space is taken as
/// the beginning.
const NEAR: usize = 48;

/// No more bytes than these.
const FAR: usize = 512;

/// The last tokens of a sequence and what they spell.
///
/// They begin where the tokenizer begins afresh: after a special token, or at
/// a word with a space before it, which the tokenizers of nearly all models
/// keep apart from the word before. Where that is not so, what is concluded is
/// another spelling of the same text, never another text.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    pub(super) bytes: Vec<u8>,
    /// The tokens, of the prompt and then of the output.
    tokens: Vec<TokenId>,
    /// How many of the tokens, and of the bytes, are the prompt's.
    n_prompt: usize,
    n_prompt_bytes: usize,
}

impl Context {
    pub(super) fn new(history: &History, vocabulary: &Vocabulary) -> Context {
        let (prompt, output) = (history.prompt(), history.output());
        let all = prompt.iter().chain(output).copied();
        let n_all = prompt.len() + output.len();
        let mut start = n_all;
        let mut n_bytes = 0;
        for token in all.clone().rev() {
            let Some(spelled) = vocabulary.token_bytes(token) else { break };
            if n_bytes + spelled.len() > FAR {
                break;
            }
            start -= 1;
            n_bytes += spelled.len();
            let is_word = matches!(spelled, [b' ', letter, ..] if letter.is_ascii_alphanumeric());
            if n_bytes >= NEAR && is_word {
                break;
            }
        }
        let tokens: Vec<TokenId> = all.skip(start).collect();
        let n_prompt = prompt.len().saturating_sub(start);
        let mut context = Context { n_prompt, ..Context::default() };
        for (index, &token) in tokens.iter().enumerate() {
            let spelled = vocabulary.token_bytes(token).unwrap_or_default();
            context.bytes.extend_from_slice(spelled);
            if index < n_prompt {
                context.n_prompt_bytes = context.bytes.len();
            }
        }
        context.tokens = tokens;
        // The text may begin within a character.
        context.drop_broken_beginning(vocabulary);
        context
    }

    fn drop_broken_beginning(&mut self, vocabulary: &Vocabulary) {
        while self.bytes.first().is_some_and(|byte| byte & 0xc0 == 0x80) {
            let token = self.tokens.remove(0);
            let n = vocabulary.token_bytes(token).map_or(1, <[u8]>::len);
            self.bytes.drain(..n.min(self.bytes.len()));
            if self.n_prompt > 0 {
                self.n_prompt -= 1;
                self.n_prompt_bytes -= n.min(self.n_prompt_bytes);
            }
        }
    }

    /// Appends a token of the output.
    pub(super) fn push(&mut self, token: TokenId, vocabulary: &Vocabulary) {
        self.tokens.push(token);
        let spelled = vocabulary.token_bytes(token).unwrap_or_default();
        self.bytes.extend_from_slice(spelled);
    }

    /// Returns true if the tokens of the output are those that the tokenizer
    /// makes of the text, the prompt's being given.
    ///
    /// The prompt may end where the tokenizer would not have ended a token;
    /// then the output is looked at alone. A character that is not complete
    /// yet says nothing.
    pub(super) fn is_canonical(
        &self,
        encoder: &dyn Encoder,
    ) -> Result<bool, ModelError> {
        let output = &self.tokens[self.n_prompt..];
        let ends_so = |bytes: &[u8], n_given: usize| {
            let text = match std::str::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => return Ok(error.error_len().is_none()),
            };
            // What was cut off before the first token may have changed it.
            let n_sure = output.len().min(n_given);
            let made = encoder.encode(text, false)?;
            let sure = &output[output.len() - n_sure..];
            let tail = made.len().checked_sub(n_sure).map(|at| &made[at..]);
            Ok(tail.is_some_and(|tail| {
                tail.iter().zip(sure).all(|(&made, token)| made == token.0)
            }))
        };
        if self.n_prompt > 0 {
            if ends_so(&self.bytes, self.tokens.len())? {
                return Ok(true);
            }
            let alone = &self.bytes[self.n_prompt_bytes..];
            return ends_so(alone, output.len());
        }
        let n_given = self.tokens.len().saturating_sub(1).max(1);
        ends_so(&self.bytes, n_given)
    }
}
