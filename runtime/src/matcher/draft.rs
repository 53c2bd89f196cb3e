//! Drafts: tokens that were guessed and are to be checked at once.
//!
//! A smaller model guesses how the text goes on, as a list or as a tree of
//! tokens, and the model reads all of it in one pass. For that every node of
//! the tree needs the mask of what may follow it. Nothing here changes the
//! matcher.

use std::borrow::Cow;

use super::{Matcher, MatcherError, State};
use crate::{
    compiled::CompiledGrammar,
    mask::{MaskStats, TokenMask, token_mask},
    vocabulary::TokenId,
};

/// A token of a draft tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DraftNode {
    /// The index of the node that this one follows, which must be smaller
    /// than its own; none if it follows what the matcher has read.
    pub parent: Option<usize>,
    /// The token.
    pub token: TokenId,
}

/// What a row of a draft's masks holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DraftRow {
    /// The tokens that may follow the node.
    Mask {
        /// Whether any token is forbidden.
        forbids_any: bool,
    },
    /// Zeros: the node is an end token that may stand there, and nothing
    /// follows it.
    Ended,
    /// Zeros: the node may not stand there, or a node above it may not.
    Refused,
}

/// What [`Matcher::draft_masks`] found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DraftMasks {
    rows: Vec<DraftRow>,
    stats: MaskStats,
}

impl DraftMasks {
    /// Returns what the rows hold: first the root's, then those of the
    /// nodes, in order.
    pub fn rows(&self) -> &[DraftRow] {
        &self.rows
    }

    /// Returns whether a node may stand where it stands.
    pub fn is_accepted(&self, node: usize) -> bool {
        self.rows.get(node + 1).is_some_and(|&row| row != DraftRow::Refused)
    }

    /// Returns what all masks together took.
    pub fn stats(&self) -> MaskStats {
        self.stats
    }
}

impl Matcher {
    /// Returns how many of `tokens` could be accepted in turn, an end token
    /// included. Nothing is read: it is what [`Matcher::try_accept`] would
    /// return.
    ///
    /// # Errors
    ///
    /// Fails when a token up to there is not in the vocabulary, or a limit of
    /// the grammar is met.
    pub fn validate_draft(
        &self,
        tokens: &[TokenId],
    ) -> Result<usize, MatcherError> {
        let mut state = Cow::Borrowed(&self.state);
        for (n_read, &token) in tokens.iter().enumerate() {
            if state.terminated {
                return Ok(n_read);
            }
            match self.after(&state, token)? {
                Some(next) => state = Cow::Owned(next),
                None => return Ok(n_read),
            }
        }
        Ok(tokens.len())
    }

    /// Writes the masks of a draft tree to `words`: first the root's row,
    /// which is the mask of this matcher, then a row for each node, which is
    /// the mask after the tokens from the root to it.
    ///
    /// Rows have the layout of [`Matcher::mask_into`] and lie one behind the
    /// other, without gaps. Rows of nodes that are refused, and of all that
    /// is below them, are zero.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use maskwright::grammar::Grammar;
    /// use maskwright::mask::TokenTrie;
    /// use maskwright::matcher::{DraftNode, DraftRow, Matcher};
    /// use maskwright::vocabulary::{TokenId, Vocabulary};
    ///
    /// let vocabulary =
    ///     Vocabulary::from_tokens(["a", "b", "</s>"], [TokenId(2)])?;
    /// let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
    /// let grammar = Grammar::from_regex("ab+")?.compile(&trie)?;
    /// let matcher = Matcher::new(grammar)?;
    /// let node = |parent, token| DraftNode { parent, token: TokenId(token) };
    /// let tree = [node(None, 0), node(Some(0), 1), node(Some(0), 2)];
    /// let mut words = [0_u32; 4];
    /// let masks = matcher.draft_masks(&tree, &mut words)?;
    /// assert_eq!(words, [0b001, 0b010, 0b110, 0]);
    /// assert_eq!(masks.rows()[3], DraftRow::Refused);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails when an end token was accepted already, when a node stands
    /// before its parent or is not in the vocabulary, when `words` is not
    /// exactly as large as all rows, and when a limit of the grammar is met.
    /// What `words` holds is not specified then.
    pub fn draft_masks(
        &self,
        tree: &[DraftNode],
        words: &mut [u32],
    ) -> Result<DraftMasks, MatcherError> {
        self.check_unfinished()?;
        self.check_draft(tree, words.len())?;
        let start = self.clock();
        let mut writer = RowWriter::new(&self.grammar);
        let mut rows = Vec::with_capacity(tree.len() + 1);
        let mut states: Vec<Option<State>> = Vec::with_capacity(tree.len());
        let n_words = self.mask.n_words();
        let (root, words) = words.split_at_mut(n_words);
        rows.push(writer.write(Some(&self.state), root)?);
        for (index, node) in tree.iter().enumerate() {
            let before = match node.parent {
                Some(parent) => states[parent].as_ref(),
                None => Some(&self.state),
            };
            let state = match before {
                Some(before) if !before.terminated => {
                    self.after(before, node.token)?
                }
                _ => None,
            };
            let row = &mut words[index * n_words..(index + 1) * n_words];
            rows.push(writer.write(state.as_ref(), row)?);
            states.push(state);
        }
        let mut stats = writer.stats;
        stats.time = start.map(|start| start.elapsed());
        Ok(DraftMasks { rows, stats })
    }

    /// Does what [`Matcher::draft_masks`] does, with the same bits in signed
    /// words.
    ///
    /// # Errors
    ///
    /// As [`Matcher::draft_masks`].
    pub fn draft_masks_i32(
        &self,
        tree: &[DraftNode],
        words: &mut [i32],
    ) -> Result<DraftMasks, MatcherError> {
        self.draft_masks(tree, bytemuck::cast_slice_mut(words))
    }

    fn check_draft(
        &self,
        tree: &[DraftNode],
        given: usize,
    ) -> Result<(), MatcherError> {
        let n_nodes = tree.len();
        let n_words = self.mask.n_words();
        if (n_nodes + 1).checked_mul(n_words) != Some(given) {
            return Err(MatcherError::DraftRoom { n_nodes, n_words, given });
        }
        let vocabulary = self.grammar.vocabulary();
        for (node, &DraftNode { parent, token }) in tree.iter().enumerate() {
            if let Some(parent) = parent.filter(|&parent| parent >= node) {
                return Err(MatcherError::DraftOrder { node, parent });
            }
            if token.index() >= vocabulary.n_tokens() {
                let n_tokens = vocabulary.n_tokens();
                return Err(MatcherError::TokenOutOfRange { token, n_tokens });
            }
        }
        Ok(())
    }
}

/// Writes masks into words.
struct RowWriter<'a> {
    grammar: &'a CompiledGrammar,
    /// Where a mask is made that cannot be made in place.
    scratch: Option<TokenMask>,
    stats: MaskStats,
}

impl RowWriter<'_> {
    fn new(grammar: &CompiledGrammar) -> RowWriter<'_> {
        let stats = MaskStats::default();
        RowWriter { grammar, scratch: None, stats }
    }

    fn write(
        &mut self,
        state: Option<&State>,
        words: &mut [u32],
    ) -> Result<DraftRow, MatcherError> {
        let Some(state) = state.filter(|state| !state.terminated) else {
            words.fill(0);
            let is_refused = state.is_none();
            return Ok(if is_refused {
                DraftRow::Refused
            } else {
                DraftRow::Ended
            });
        };
        let n_logits = self.grammar.vocabulary().n_logits();
        let configuration = &state.configuration;
        if let Some(blocks) = token_mask::blocks_of(words, n_logits) {
            self.stats += self.grammar.fill(configuration, blocks)?;
            let forbids_any = token_mask::forbids_any(blocks, n_logits);
            return Ok(DraftRow::Mask { forbids_any });
        }
        let scratch =
            self.scratch.get_or_insert_with(|| TokenMask::none(n_logits));
        let blocks = scratch.blocks_mut();
        self.stats += self.grammar.fill(configuration, blocks)?;
        scratch.copy_into(words)?;
        let forbids_any = scratch.n_allowed() < n_logits;
        Ok(DraftRow::Mask { forbids_any })
    }
}
