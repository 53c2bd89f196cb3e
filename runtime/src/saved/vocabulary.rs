//! Vocabularies in files: what is derived from a tokenizer, ready for use.
//!
//! To read a `tokenizer.json` and to build its trie takes a few hundred
//! milliseconds, the same each time. [`TokenTrie::from_path_cached`] keeps the
//! result in a file beside, and reads that the next time, unless it was
//! made of another tokenizer, by another version, or is damaged: then it is
//! made again.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::format::{Format, SavedError, Writer, checksum, write};
use crate::{
    mask::TokenTrie,
    vocabulary::{Vocabulary, VocabularyError},
};

/// The files that hold a vocabulary.
const FORMAT: Format = Format { magic: *b"maskvoc\n", version: 1 };

/// The files beside a `tokenizer.json` that say which tokens end a text.
const BESIDE: [&str; 4] = [
    "config.json",
    "generation_config.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
];

/// What [`TokenTrie::from_path_cached`] made of the file.
#[derive(Debug)]
pub enum CacheUse {
    /// It was read.
    Read,
    /// It was written: it was not there, or could not be used.
    Written(Option<SavedError>),
    /// It could not be written.
    Unwritten(io::Error),
}

impl TokenTrie {
    /// Reads a vocabulary as [`Vocabulary::from_path`] does, with `n_logits`
    /// as its width if that is given, and builds its trie; or reads both from
    /// the file `cache`, if that was made of the same.
    ///
    /// Otherwise the file is written, as a whole or not at all. That this
    /// fails is no error.
    ///
    /// # Errors
    ///
    /// Fails when the tokenizer cannot be read, or is wider than `n_logits`.
    pub fn from_path_cached(
        tokenizer: &Path,
        n_logits: Option<usize>,
        cache: &Path,
    ) -> Result<(TokenTrie, CacheUse), VocabularyError> {
        let source = source_of(tokenizer, n_logits)?;
        let refused = match fs::read(cache) {
            Ok(bytes) => match TokenTrie::from_bytes(&bytes, source) {
                Ok(trie) => return Ok((trie, CacheUse::Read)),
                Err(error) => Some(error),
            },
            Err(_) => None,
        };
        let mut vocabulary = Vocabulary::from_path(tokenizer)?;
        if let Some(width) = n_logits {
            vocabulary.set_n_logits(width)?;
        }
        let trie = TokenTrie::new(Arc::new(vocabulary));
        let outcome = match write(cache, &trie.to_bytes(source)) {
            Ok(()) => CacheUse::Written(refused),
            Err(error) => CacheUse::Unwritten(error),
        };
        Ok((trie, outcome))
    }

    /// Returns the trie and its vocabulary as bytes. `source` is a number of
    /// whatever they were made of.
    pub fn to_bytes(&self, source: u64) -> Vec<u8> {
        let mut body = Writer::default();
        self.vocabulary().save(&mut body);
        self.save(&mut body);
        FORMAT.seal(source, body)
    }

    /// Reads what [`TokenTrie::to_bytes`] has returned.
    ///
    /// # Errors
    ///
    /// Fails when the bytes are something else, of another version or
    /// another source, or damaged.
    pub fn from_bytes(
        bytes: &[u8],
        source: u64,
    ) -> Result<TokenTrie, SavedError> {
        let mut body = FORMAT.open(bytes, source)?;
        let trie = Vocabulary::restore(&mut body).and_then(|vocabulary| {
            TokenTrie::restore(Arc::new(vocabulary), &mut body)
        });
        trie.filter(|_| body.rest.is_empty()).ok_or(SavedError::Damaged)
    }
}

/// A number of the contents of a tokenizer's files and of the width.
fn source_of(
    tokenizer: &Path,
    n_logits: Option<usize>,
) -> Result<u64, VocabularyError> {
    let file = if tokenizer.is_dir() {
        tokenizer.join("tokenizer.json")
    } else {
        tokenizer.to_owned()
    };
    let read = |path: PathBuf| match fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(VocabularyError::Io { path, source }),
    };
    let mut all = Writer::default();
    let width = n_logits.map_or(u64::MAX, |width| width as u64);
    all.number(width);
    // The name decides whether the files beside it are read.
    all.list(file.file_name().unwrap_or_default().as_encoded_bytes());
    all.number(read(file.clone())?.map_or(0, |bytes| checksum(&bytes)));
    for name in BESIDE {
        let bytes = read(file.with_file_name(name))?;
        all.number(bytes.map_or(0, |bytes| checksum(&bytes)));
    }
    Ok(checksum(&all.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        grammar::{Grammar, SchemaOptions},
        matcher::Matcher,
        vocabulary::TokenId,
    };

    fn trie() -> TokenTrie {
        let long = "x".repeat(300);
        let mut tokens: Vec<String> =
            ["{\"", "\":", "ab", "abc", "é", "<x>"].map(str::to_owned).into();
        tokens.push(long);
        tokens.extend((0..2_000).map(|number| format!("t{number}\"")));
        tokens.extend((0..128_u8).map(|byte| char::from(byte).to_string()));
        tokens.push("</s>".to_owned());
        let end = TokenId::from_index(tokens.len() - 1);
        let mut vocabulary = Vocabulary::from_tokens(&tokens, [end])
            .and_then(|all| all.with_special_tokens([TokenId(5)]))
            .expect("a vocabulary");
        vocabulary.set_n_logits(tokens.len() + 40).expect("wider");
        TokenTrie::new(Arc::new(vocabulary))
    }

    #[test]
    fn what_was_saved_gives_the_same_masks() {
        let trie = trie();
        let restored = TokenTrie::from_bytes(&trie.to_bytes(7), 7);
        let restored = restored.expect("it was saved");
        let [one, other] = [&trie, &restored].map(TokenTrie::vocabulary);
        assert_eq!(one.fingerprint(), other.fingerprint());
        assert_eq!(other.id_of_special("<x>"), Some(TokenId(5)));
        assert_eq!(restored.to_bytes(7), trie.to_bytes(7));
        let schema = r#"{"properties": {"ab": {"pattern": "^[a-z]+$"}}}"#;
        let grammar = Grammar::from_schema(schema, &SchemaOptions::default());
        let grammar = grammar.expect("valid");
        let [mut one, mut other] = [trie, restored].map(|trie| {
            let compiled = grammar.compile(&Arc::new(trie)).expect("no atoms");
            Matcher::new(compiled).expect("a start")
        });
        for byte in br#"{"ab": "tab"#.chunks(1) {
            assert_eq!(one.mask(), other.mask());
            one.accept_bytes(byte).expect("valid");
            other.accept_bytes(byte).expect("valid");
        }
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let bytes = trie().to_bytes(7);
        let read = |bytes: &[u8]| TokenTrie::from_bytes(bytes, 7).err();
        for length in (0..bytes.len()).step_by(97) {
            assert!(read(&bytes[..length]).is_some(), "{length}");
        }
        for at in (0..bytes.len()).step_by(61) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x41;
            assert!(read(&changed).is_some(), "{at}");
        }
        let longer = [&bytes[..], b"x"].concat();
        assert_eq!(read(&longer), Some(SavedError::Damaged));
        assert_eq!(read(b"{}"), Some(SavedError::Unknown));
        let other = TokenTrie::from_bytes(&bytes, 8).err();
        assert_eq!(other, Some(SavedError::Source));
        let mut newer = bytes.clone();
        newer[FORMAT.magic.len()] += 1;
        assert!(matches!(
            read(&newer),
            Some(SavedError::Version { given: 2, .. })
        ));
    }

    /// Whatever a body holds that has the right checksum, it is read or
    /// refused, and does not panic.
    #[test]
    fn bodies_that_make_no_sense_are_no_panic() {
        let bytes = trie().to_bytes(7);
        let head = bytes.len() - {
            let at = FORMAT.magic.len()
                + 8
                + 8
                + env!("CARGO_PKG_VERSION").len()
                + 8;
            let length = bytes[at..at + 8].try_into().expect("eight bytes");
            usize::try_from(u64::from_le_bytes(length)).expect("small")
        };
        for at in (head..bytes.len()).step_by(43) {
            let mut changed = bytes.clone();
            changed[at] = changed[at].wrapping_add(0x81);
            let sum = checksum(&changed[head..]).to_le_bytes();
            changed[head - 8..head].copy_from_slice(&sum);
            let Ok(trie) = TokenTrie::from_bytes(&changed, 7) else {
                continue;
            };
            let grammar = Grammar::from_regex("[^\"]*\"").expect("a pattern");
            let compiled = grammar.compile(&Arc::new(trie)).expect("no atoms");
            let mut matcher = Matcher::new(compiled).expect("a start");
            assert!(matcher.mask().is_ok());
        }
    }

    #[test]
    fn the_file_is_made_again_where_it_cannot_be_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokenizer = folder.path().join("tokenizer.json");
        let cache = folder.path().join("vocabulary.bin");
        let json = |more: &str| {
            format!(
                r#"{{"model": {{"type": "BPE", "vocab":
                    {{"a": 0, "b": 1{more}}}, "merges": []}}}}"#
            )
        };
        fs::write(&tokenizer, json("")).expect("a file");
        let load = |n_logits| {
            let loaded =
                TokenTrie::from_path_cached(&tokenizer, n_logits, &cache);
            loaded.expect("a tokenizer")
        };
        assert!(matches!(load(None).1, CacheUse::Written(None)));
        assert!(matches!(load(None).1, CacheUse::Read));
        let (trie, made) = load(Some(9));
        assert!(matches!(made, CacheUse::Written(Some(SavedError::Source))));
        assert_eq!(trie.vocabulary().n_logits(), 9);
        fs::write(&tokenizer, json(r#", "c": 2"#)).expect("a file");
        let (trie, made) = load(Some(9));
        assert!(matches!(made, CacheUse::Written(Some(SavedError::Source))));
        assert_eq!(trie.vocabulary().n_tokens(), 3);
        fs::write(&cache, b"maskvoc\nx").expect("a file");
        let (_, made) = load(Some(9));
        assert!(matches!(made, CacheUse::Written(Some(SavedError::Damaged))));
        assert!(matches!(load(Some(9)).1, CacheUse::Read));
        assert_eq!(fs::read_dir(folder.path()).expect("it").count(), 2);
        let nowhere = folder.path().join("no/such/folder");
        let loaded = TokenTrie::from_path_cached(&tokenizer, None, &nowhere);
        assert!(matches!(loaded, Ok((_, CacheUse::Unwritten(_)))));
    }
}
