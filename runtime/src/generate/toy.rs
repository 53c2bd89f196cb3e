//! A vocabulary of single bytes and a model that has learned nothing.

use std::sync::Arc;

use super::{
    chat::ChatTemplate,
    generator::{Encoder, Generator},
};
use crate::{
    model::{Feed, KvCache, KvLayout, Logits, Model, ModelError},
    vocabulary::{TokenId, Vocabulary},
};

/// The id of the end token; below it, each id is a byte.
const END: u32 = 256;
const WIDTH: usize = END as usize + 1;

/// Creates the generator of [`Generator::toy`].
pub(super) fn generator() -> Generator {
    let tokens = (0..=u8::MAX).map(|byte| vec![byte]);
    let tokens = tokens.chain([b"<end>".to_vec()]);
    let vocabulary = Vocabulary::from_tokens(tokens, [TokenId(END)])
        .expect("257 tokens, and the last of them is the end token");
    let chat = ChatTemplate::new(None, "", "")
        .expect("the template that is built in parses");
    Generator::from_parts(
        Arc::new(Toy),
        Arc::new(Bytes),
        Arc::new(vocabulary),
        chat,
    )
}

/// Splits text into bytes.
#[derive(Debug)]
struct Bytes;

impl Encoder for Bytes {
    fn encode(&self, text: &str, _: bool) -> Result<Vec<u32>, ModelError> {
        Ok(text.bytes().map(u32::from).collect())
    }
}

/// Its logits depend on the last token and the position alone. It likes to
/// close what is open, so that what it writes ends.
#[derive(Debug)]
struct Toy;

impl Toy {
    fn logit(token: u32, last: u32, position: usize) -> f32 {
        let closing = match u8::try_from(token) {
            Ok(b'"') => 5.0,
            Ok(b'}' | b']') => 4.0,
            Ok(b',') => 3.0,
            Ok(b':') => 2.0,
            Ok(_) => 0.0,
            Err(_) => 1.0,
        };
        let turn = u32::try_from(position % 7).unwrap_or(0);
        let mixed = token
            .wrapping_mul(2_654_435_761)
            .wrapping_add(last.wrapping_mul(40_503))
            .wrapping_add(turn);
        let [high, low, ..] = mixed.to_be_bytes();
        let noise = f32::from(u16::from_be_bytes([high, low])) / 65_536.0;
        noise + closing
    }
}

impl Model for Toy {
    fn vocab_size(&self) -> usize {
        WIDTH
    }

    fn context_length(&self) -> usize {
        1 << 16
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
        let values = logits.reset(WIDTH, &counts);
        for (feed, n_rows) in batch.iter_mut().zip(counts) {
            let start = feed.cache.len();
            let n = feed.tokens.len();
            feed.cache.reserve(n);
            feed.cache.commit(n);
            for index in n - n_rows..n {
                let (last, position) = (feed.tokens[index], start + index);
                values.extend(
                    (0..=END).map(|token| Toy::logit(token, last, position)),
                );
            }
        }
        Ok(())
    }
}
