//! Models whose logits are given, for tests of what is made of them.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use maskwright::{
    generate::{ChatTemplate, Encoder, Generator},
    model::{Feed, KvCache, KvLayout, Logits, Model, ModelError},
    vocabulary::{TokenId, Vocabulary},
};

type Rule = dyn Fn(&[u32]) -> Vec<f32> + Send + Sync;

/// A model whose logits are a function of all tokens so far.
///
/// It reads the tokens from its cache, where it has written them, so that
/// whoever cuts back or forks a cache wrongly gets other logits.
pub struct Scripted {
    n_tokens: usize,
    context: usize,
    rule: Box<Rule>,
    passes: Mutex<Vec<Vec<usize>>>,
}

impl Scripted {
    /// Returns, for each pass since the last call, how many tokens each
    /// sequence had in it.
    pub fn take_passes(&self) -> Vec<Vec<usize>> {
        let mut passes =
            self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut passes)
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted")
            .field("n_tokens", &self.n_tokens)
            .finish_non_exhaustive()
    }
}

impl Model for Scripted {
    fn vocab_size(&self) -> usize {
        self.n_tokens
    }

    fn context_length(&self) -> usize {
        self.context
    }

    fn new_cache(&self) -> KvCache {
        KvCache::new(KvLayout { n_layers: 1, n_kv_heads: 1, head_dim: 1 })
    }

    fn forward(
        &self,
        batch: &mut [Feed<'_>],
        logits: &mut Logits,
    ) -> Result<(), ModelError> {
        let counts: Vec<usize> = batch.iter().map(Feed::n_rows).collect();
        self.passes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(batch.iter().map(|feed| feed.tokens.len()).collect());
        let values = logits.reset(self.n_tokens, &counts);
        for (feed, n_rows) in batch.iter_mut().zip(counts) {
            let start = feed.cache.len();
            feed.cache.reserve(feed.tokens.len());
            for (position, &token) in (start..).zip(feed.tokens) {
                let key = f32::from_bits(token);
                feed.cache.write(0, position, &[key], &[key]);
            }
            feed.cache.commit(feed.tokens.len());
            let n = feed.cache.len();
            let keys = feed.cache.head(0, 0, 0..n).flat_map(|(keys, _)| keys);
            let tokens: Vec<u32> = keys.map(|key| key.to_bits()).collect();
            for end in n - n_rows + 1..=n {
                values.extend((self.rule)(&tokens[..end]));
            }
        }
        Ok(())
    }
}

/// Splits text into the longest tokens, first to last.
#[derive(Clone, Debug)]
pub struct Longest {
    tokens: Vec<Vec<u8>>,
}

impl Longest {
    /// Creates the tokenizer of these tokens.
    pub fn new(tokens: &[&[u8]]) -> Longest {
        let tokens = tokens.iter().map(|token| token.to_vec()).collect();
        Longest { tokens }
    }
}

impl Encoder for Longest {
    fn encode(&self, text: &str, _: bool) -> Result<Vec<u32>, ModelError> {
        let (mut ids, mut rest) = (Vec::new(), text.as_bytes());
        while !rest.is_empty() {
            let found = (0..)
                .zip(&self.tokens)
                .filter(|(_, token)| rest.starts_with(token))
                .max_by_key(|(_, token)| token.len());
            let Some((id, token)) = found else { break };
            ids.push(id);
            rest = &rest[token.len()..];
        }
        Ok(ids)
    }
}

/// The logit of what a script names.
pub const SAID: f32 = 12.0;

/// How many tokens a sequence may have.
pub const CONTEXT: usize = 1 << 11;

/// The text of the end token.
pub const END: &[u8] = b"<end>";

/// Creates a generator over some tokens, the last of which is the end token,
/// on a model with this rule.
///
/// # Panics
///
/// If the tokens are no vocabulary.
pub fn generator(
    tokens: &[&[u8]],
    rule: impl Fn(&[u32]) -> Vec<f32> + Send + Sync + 'static,
) -> (Generator, Arc<Scripted>) {
    let end = TokenId::from_index(tokens.len() - 1);
    let vocabulary =
        Vocabulary::from_tokens(tokens, [end]).expect("a vocabulary");
    let n_text = tokens.len() - 1;
    let longest = Longest::new(&tokens[..n_text]);
    let model = Arc::new(Scripted {
        n_tokens: tokens.len(),
        context: CONTEXT,
        rule: Box::new(rule),
        passes: Mutex::new(Vec::new()),
    });
    let chat = ChatTemplate::new(None, "", "").expect("the built-in one");
    let generator = Generator::from_parts(
        model.clone(),
        Arc::new(longest),
        Arc::new(vocabulary),
        chat,
    );
    (generator, model)
}

/// Creates a generator whose model says these tokens in turn after a prompt
/// of one token, `?`, and then the last of them for ever.
///
/// # Panics
///
/// If there are none.
pub fn says(script: &[&[u8]]) -> (Generator, Arc<Scripted>) {
    let mut tokens: Vec<&[u8]> = vec![b"?"];
    for &token in script {
        if token != END && !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    tokens.push(END);
    let n_tokens = tokens.len();
    let ids: Vec<usize> = script
        .iter()
        .map(|said| tokens.iter().position(|token| token == said))
        .map(|id| id.expect("every token of the script is there"))
        .collect();
    generator(&tokens, move |read| {
        let at = (read.len() - 1).min(ids.len() - 1);
        let mut logits = vec![0.0; n_tokens];
        logits[ids[at]] = SAID;
        logits
    })
}
