//! Maskwright with whitespace anywhere, declared property order and every
//! escape, as the peer; integers are digits only, as the peer's are.
//!
//! The vocabulary, its trie and what the load makes in advance live as long
//! as the engine. A cold sequence has everything else built anew: it starts
//! from a snapshot of what the load had made, which no other sequence has
//! added to. Sequences that share are matchers of one `CompiledGrammar`, over
//! one such snapshot.

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use maskwright::compiled::CompiledGrammar;
use maskwright::grammar::Grammar;
use maskwright::mask::{MaskStats, TokenTrie};
use maskwright::matcher::Matcher;
use maskwright::vocabulary::{TokenId, Vocabulary};
use maskwright_json_schema::{
    Escapes, Numbers, Options, Order, TextPolicy, Whitespace,
};

use super::{Engine, Prototype, Sequence, Source};
use crate::{measure::Pass, tokenizer::Shape};

/// The engine with its vocabulary.
#[derive(Debug)]
pub struct Maskwright {
    shared: Arc<Shared>,
    /// What the next sequence starts from.
    next: Mutex<Arc<TokenTrie>>,
}

#[derive(Debug)]
struct Shared {
    tokens: Arc<TokenTrie>,
    options: Options,
    kind: Source,
}

/// Reads the vocabulary.
///
/// # Errors
///
/// What the library said of the tokenizer's file.
pub fn vocabulary(path: &Path, shape: Shape) -> Result<Vocabulary, String> {
    let mut vocabulary = Vocabulary::from_path(path)
        .and_then(|vocabulary| {
            vocabulary.with_end_tokens([TokenId(shape.end_token)])
        })
        .map_err(|error| error.to_string())?;
    vocabulary
        .set_n_logits(shape.width as usize)
        .map_err(|error| error.to_string())?;
    Ok(vocabulary)
}

/// The options under which schemas are compared.
pub fn schema_options() -> Options {
    let text = TextPolicy {
        order: Order::Schema,
        whitespace: Whitespace::Any { max: u32::MAX },
        escapes: Escapes::Any,
        numbers: Numbers::Plain,
    };
    Options { text, ..Options::default() }
}

impl Maskwright {
    /// Loads the vocabulary.
    ///
    /// # Errors
    ///
    /// What the library said of the tokenizer's file.
    pub fn load(path: &Path, shape: Shape) -> Result<Maskwright, String> {
        let vocabulary = vocabulary(path, shape)?;
        let tokens = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
        let options = schema_options();
        tokens.warm_up(&options);
        let next = Mutex::new(Arc::new(tokens.snapshot()));
        let shared =
            Arc::new(Shared { tokens, options, kind: Source::Schema });
        Ok(Maskwright { shared, next })
    }

    /// What has been made of the vocabulary.
    pub fn tokens(&self) -> &Arc<TokenTrie> {
        &self.shared.tokens
    }

    /// Compiles a source over `tokens`, which others may share.
    ///
    /// # Errors
    ///
    /// The library's message where it refuses the source.
    pub fn compile(
        &self,
        source: &str,
        tokens: &Arc<TokenTrie>,
    ) -> Result<Arc<CompiledGrammar>, String> {
        compile(&self.shared, source, Arc::clone(tokens))
    }

    /// The same engine for texts of this kind.
    pub fn reading(self, kind: Source) -> Maskwright {
        let Shared { tokens, options, .. } = &*self.shared;
        let shared = Shared {
            tokens: Arc::clone(tokens),
            options: options.clone(),
            kind,
        };
        Maskwright { shared: Arc::new(shared), next: self.next }
    }
}

impl Engine for Maskwright {
    fn name(&self) -> &'static str {
        "Maskwright"
    }

    fn main_pass(&self) -> Pass {
        Pass::Schema
    }

    fn prepare(&self) {
        let fresh = Arc::new(self.shared.tokens.snapshot());
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
    }

    fn open(&self, schema: &str) -> Result<Box<dyn Sequence>, String> {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = Arc::clone(&next);
        drop(next);
        open(&self.shared, schema, tokens)
    }
}

fn compile(
    shared: &Shared,
    schema: &str,
    tokens: Arc<TokenTrie>,
) -> Result<Arc<CompiledGrammar>, String> {
    let grammar = match shared.kind {
        Source::Grammar => Grammar::from_gbnf(schema),
        Source::Regex => Grammar::from_regex(schema),
        Source::Schema => Grammar::from_schema(schema, &shared.options),
    };
    let grammar = grammar.map_err(|error| error.to_string())?;
    let automaton = Arc::clone(grammar.automaton());
    let compiled = CompiledGrammar::new(automaton, tokens)
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(compiled))
}

fn open(
    shared: &Arc<Shared>,
    schema: &str,
    tokens: Arc<TokenTrie>,
) -> Result<Box<dyn Sequence>, String> {
    let grammar = compile(shared, schema, tokens)?;
    let matcher = Matcher::new(grammar).map_err(|error| error.to_string())?;
    let source =
        Origin { shared: Arc::clone(shared), schema: Arc::from(schema) };
    Ok(Box::new(Running { matcher, source }))
}

/// What a cold sequence is made from.
#[derive(Clone)]
struct Origin {
    shared: Arc<Shared>,
    schema: Arc<str>,
}

impl Origin {
    fn tokens(&self) -> Arc<TokenTrie> {
        Arc::new(self.shared.tokens.snapshot())
    }
}

impl Prototype for Origin {
    fn start(&self) -> Result<Box<dyn Sequence>, String> {
        open(&self.shared, &self.schema, self.tokens())
    }

    fn share(&self) -> Result<Box<dyn Prototype>, String> {
        let grammar = compile(&self.shared, &self.schema, self.tokens())?;
        Ok(Box::new(Sharing { grammar, source: self.clone() }))
    }
}

/// A grammar whose sequences share its caches.
struct Sharing {
    grammar: Arc<CompiledGrammar>,
    source: Origin,
}

impl Prototype for Sharing {
    fn start(&self) -> Result<Box<dyn Sequence>, String> {
        let matcher = Matcher::new(Arc::clone(&self.grammar))
            .map_err(|error| error.to_string())?;
        let source = self.source.clone();
        Ok(Box::new(Running { matcher, source }))
    }

    fn share(&self) -> Result<Box<dyn Prototype>, String> {
        self.source.share()
    }
}

struct Running {
    matcher: Matcher,
    source: Origin,
}

impl Sequence for Running {
    fn prototype(&self) -> Box<dyn Prototype> {
        Box::new(self.source.clone())
    }

    fn mask_into(&mut self, words: &mut [u32]) -> Result<(), String> {
        self.matcher
            .mask_into(words)
            .map(|_| ())
            .map_err(|error| error.to_string())
    }

    fn mask_by_reference(&mut self) -> Result<(), String> {
        let mask = self.matcher.mask().map_err(|error| error.to_string())?;
        black_box(mask);
        Ok(())
    }

    fn accept(&mut self, token: u32) -> Result<(), String> {
        self.matcher.accept(TokenId(token)).map_err(|error| error.to_string())
    }

    fn is_accepting(&mut self) -> bool {
        self.matcher.is_accepting().unwrap_or(false)
    }

    fn describe(&self) -> String {
        self.matcher.describe()
    }

    fn stats(&self) -> MaskStats {
        self.matcher.mask_stats()
    }
}
