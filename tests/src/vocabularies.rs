//! Vocabularies small enough for brute force, and the real one.

use std::{path::PathBuf, sync::Arc};

use maskwright::{
    mask::TokenTrie,
    model::{self, LoadedModel, download::cached_default_model},
    vocabulary::{TokenId, Vocabulary},
};

/// A generator of numbers that is the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts at a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// Returns a number below `end`, or 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        // A linear congruential generator (Knuth, MMIX); its high bits are
        // good enough to pick cases with.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end.max(1)
    }

    /// Returns one of `items`.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Returns true in `percent` of a hundred calls.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Every single byte, pieces of `texts`, pieces of JSON that end one thing
/// and begin another, and one end token.
///
/// # Panics
///
/// Never: the tokens are valid.
pub fn pieces(texts: &[&str], seed: u64) -> Arc<TokenTrie> {
    let mut random = Random::new(seed);
    let mut tokens: Vec<Vec<u8>> =
        (0..=u8::MAX).map(|byte| vec![byte]).collect();
    for text in texts {
        let bytes = text.as_bytes();
        for _ in 0..12 {
            let start = random.below(bytes.len());
            let end = start + 1 + random.below(9);
            tokens.push(bytes[start..end.min(bytes.len())].to_vec());
        }
    }
    let joints = [
        "\",\"",
        "\":\"",
        "\":",
        "\": ",
        "\"}",
        "\"]",
        "},",
        "}]",
        "{\"",
        "[\"",
        "[{",
        "\n  ",
        ", ",
        "\\u00",
        "\\\"",
        "\\",
        "00",
        "12",
        "true",
        "null}",
        "a\":1,\"a",
        "\",\"a\":\"",
        "  ",
        " \t\n",
        "é",
        "\u{1F600}",
        "a\":0,\"b\":",
        "],[",
        "\"a\"",
        "1,1",
    ];
    tokens.extend(joints.iter().map(|joint| joint.as_bytes().to_vec()));
    tokens.retain(|token| !token.is_empty());
    with_end(tokens)
}

/// A vocabulary of few tokens and an end token after them.
///
/// # Panics
///
/// If a token is empty.
pub fn with_end(mut tokens: Vec<Vec<u8>>) -> Arc<TokenTrie> {
    let end = TokenId(u32::try_from(tokens.len()).expect("few tokens"));
    tokens.push(b"<end>".to_vec());
    let vocabulary =
        Vocabulary::from_tokens(tokens, [end]).expect("valid tokens");
    Arc::new(TokenTrie::new(Arc::new(vocabulary)))
}

/// The vocabulary of Llama 3.1, if the comparison with other engines has
/// fetched it (`bench/fetch-tokenizer.sh`) or `MASKWRIGHT_TOKENIZER` names
/// its `tokenizer.json`.
///
/// # Panics
///
/// If the file is there and cannot be read.
pub fn llama() -> Option<Arc<TokenTrie>> {
    let path = std::env::var_os("MASKWRIGHT_TOKENIZER").map_or_else(
        || {
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let cache = cache.or(home.map(|home| home.join(".cache")))?;
            Some(cache.join("maskwright/bench/llama3_1.json"))
        },
        |path| Some(PathBuf::from(path)),
    )?;
    if !path.exists() {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!(
                "not there: {}; bench/fetch-tokenizer.sh",
                path.display()
            );
        }
        return None;
    }
    let vocabulary = Vocabulary::from_path(&path).expect("a tokenizer");
    Some(Arc::new(TokenTrie::new(Arc::new(vocabulary))))
}

/// The default model, if it was fetched.
///
/// # Panics
///
/// If `MASKWRIGHT_REQUIRE_MODEL` is set and the model is not there, or if the
/// model is there and does not load.
pub fn real_model(test: &str) -> Option<LoadedModel> {
    let path = cached_default_model().expect("a readable cache");
    if let Some(path) = path {
        return Some(model::load(&path).expect("the model loads"));
    }
    assert!(
        std::env::var_os("MASKWRIGHT_REQUIRE_MODEL").is_none(),
        "the model is required and not there; run `maskwright model`"
    );
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    {
        eprintln!("skipped: {test} needs the model; run `maskwright model`");
    }
    None
}
