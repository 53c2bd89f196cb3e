//! Tokens, one after the other, from one configuration.

use maskwright_grammar_core::automaton::{AutomatonError, Configuration};

use crate::{compiled::CompiledGrammar, vocabulary::TokenId};

/// Steps tokens exactly, each from the same configuration. What a token and
/// the one before it begin with is stepped once, so tokens in the order of
/// their bytes cost little more than the trie that they make.
pub(crate) struct Steps<'a> {
    grammar: &'a CompiledGrammar,
    start: &'a Configuration,
    /// The bytes that were read last.
    read: Vec<u8>,
    /// The configuration after each of them. The last one may be dead.
    after: Vec<Configuration>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(
        grammar: &'a CompiledGrammar,
        start: &'a Configuration,
    ) -> Steps<'a> {
        Steps { grammar, start, read: Vec::new(), after: Vec::new() }
    }

    /// Returns true if and only if the text may go on with the bytes of
    /// `token`.
    pub(crate) fn reads(
        &mut self,
        token: TokenId,
    ) -> Result<bool, AutomatonError> {
        let grammar = self.grammar;
        let Some(bytes) = grammar.vocabulary().token_bytes(token) else {
            return Ok(false);
        };
        let pairs = self.read.iter().zip(bytes);
        let n_alike = pairs.take_while(|(read, byte)| read == byte).count();
        self.read.truncate(n_alike);
        self.after.truncate(n_alike);
        for &byte in &bytes[n_alike..] {
            let before = self.after.last().unwrap_or(self.start);
            if before.is_dead() {
                return Ok(false);
            }
            let after = grammar.after_byte(before, byte)?;
            self.read.push(byte);
            self.after.push(after);
        }
        Ok(!self.after.last().unwrap_or(self.start).is_dead())
    }
}
