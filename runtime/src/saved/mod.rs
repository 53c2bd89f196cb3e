//! What is dear to make, in files: vocabularies, and the masks of grammars.
//!
//! To read a `tokenizer.json` and to build its trie takes a few hundred
//! milliseconds, the same each time:
//! [`TokenTrie::from_path_cached`](crate::mask::TokenTrie::from_path_cached)
//! keeps the result in a file beside. Grammars compile in less time than it
//! would take to read their machines from a file, but some of their masks are
//! dear: [`CompiledGrammar::save`](crate::compiled::CompiledGrammar::save)
//! keeps these.
//!
//! A file is used only if it was made of the same by the same version, and is
//! whole. The checksums tell accidents, not attacks: whatever a file holds,
//! reading it does not panic nor take more memory than is said, but what
//! somebody has forged gives masks that are wrong. Keep such files where your
//! programs are kept.

mod collect;
mod format;
mod grammar;
mod masks;
mod notes;
mod vocabulary;

pub use self::{
    format::SavedError,
    grammar::{GrammarFileError, Loaded, SaveOptions, SaveReport},
    vocabulary::CacheUse,
};
pub(crate) use self::{
    format::{Reader, Writer, checksum, write},
    grammar::Place,
    notes::{DEAR, MAX_TEXT, Notes, Origin},
};
