//! A bounded cache of compiled grammars.
//!
//! Requests bring the same few schemas again and again. A [`Compiler`] keeps
//! what they were compiled to, with the walks that their masks have needed so
//! far, up to a number of bytes; what was not used for the longest time goes
//! first. If several threads ask for one grammar that is not there, one of
//! them compiles it and the others wait for it.
//!
//! A grammar that leaves the cache lives on as long as any matcher uses it.
//!
//! Grammars are found by what they were compiled from, not by a hash of that,
//! and by the [`TokenTrie`] that they were bound to: make one for each
//! vocabulary.
//!
//! What a source may cost is bounded by the limits and budgets in its options,
//! which count steps. [`Compiler::compile_within`] bounds its time, and can be
//! cancelled.
//!
//! [`Compiler::with_directory`] keeps the masks that are dear to make in files
//! as well, so that they are there after a restart.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use maskwright::compiler::{Compiler, GrammarSource};
//! use maskwright::mask::TokenTrie;
//! use maskwright::vocabulary::{TokenId, Vocabulary};
//!
//! let vocabulary = Vocabulary::from_tokens(["1", "</s>"], [TokenId(1)])?;
//! let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
//! let compiler = Compiler::new(64 << 20);
//! let source = GrammarSource::schema(r#"{"type": "integer"}"#);
//! let one = compiler.compile(&trie, &source)?;
//! let other = compiler.compile(&trie, &source)?;
//! assert!(Arc::ptr_eq(&one.compiled, &other.compiled));
//! assert!(compiler.memory_usage() > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod directory;
mod flight;
mod source;

use std::{
    collections::BTreeMap,
    fmt,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use hashbrown::HashTable;
use maskwright_grammar_core::{
    automaton::AutomatonError,
    interrupt::{self, Interrupt, Interrupted},
};

pub use self::source::GrammarSource;
use self::{directory::Directory, flight::Flight};
use crate::{
    compiled::{BindError, CompiledGrammar},
    grammar::{Grammar, GrammarError},
    mask::{TokenTrie, lock},
    saved::{GrammarFileError, SaveOptions},
};

/// A grammar that was compiled, by itself and bound to a vocabulary.
#[derive(Clone, Debug)]
pub struct Compilation {
    /// The grammar, with its warnings.
    pub grammar: Grammar,
    /// The grammar bound to the vocabulary: what matchers are made from.
    pub compiled: Arc<CompiledGrammar>,
}

/// A bounded cache of compiled grammars, for any number of threads.
///
/// See the [module documentation](self).
pub struct Compiler {
    max_bytes: usize,
    /// Seeded, since sources come from strangers.
    hasher: RandomState,
    /// Held for look-ups only, never while anything is compiled or dropped.
    cache: Mutex<Cache>,
    directory: Option<Directory>,
}

/// What a [`Compiler`] has done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CompilerStats {
    /// How many grammars are kept.
    pub n_kept: usize,
    /// How often a grammar was there.
    pub n_hits: u64,
    /// How often a thread waited for another one that compiled the same.
    pub n_waits: u64,
    /// How many grammars were compiled, those that failed included.
    pub n_compiled: u64,
    /// How many grammars had to go for others.
    pub n_evicted: u64,
    /// How many grammars found their masks in a file.
    pub n_loaded: u64,
    /// How many files there were that could not be used: of another version,
    /// damaged, or not readable.
    pub n_refused_files: u64,
}

/// What [`Compiler::save`] has done.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct DirectoryReport {
    /// How many files were written.
    pub n_written: usize,
    /// How many files were removed since there were too many.
    pub n_removed: usize,
    /// How many bytes all files have now.
    pub n_bytes: u64,
    /// What went wrong. Nothing depends on it: masks are made when they are
    /// needed.
    pub warnings: Vec<GrammarFileError>,
}

#[derive(Default)]
struct Cache {
    entries: HashTable<Entry>,
    /// The hash of each entry that may go, by when it was used last.
    order: BTreeMap<u64, u64>,
    /// Counts uses.
    clock: u64,
    /// The bytes of all entries, as they were measured last.
    bytes: usize,
    stats: CompilerStats,
}

struct Entry {
    hash: u64,
    tokens: Arc<TokenTrie>,
    source: Arc<GrammarSource>,
    state: State,
}

enum State {
    /// A thread is compiling it.
    Open(Arc<Flight>),
    Ready(Ready),
}

struct Ready {
    compilation: Compilation,
    /// When it was used last: its key in the order.
    used: u64,
    bytes: usize,
}

/// What a look-up found.
enum Found {
    Ready(Compilation),
    Open(Arc<Flight>),
    /// Nothing: the caller is to compile it.
    New(Arc<Flight>, Arc<GrammarSource>),
}

impl Compiler {
    /// Creates a cache that keeps about `max_bytes` at most.
    ///
    /// A grammar that is larger than that by itself is compiled and not kept.
    pub fn new(max_bytes: usize) -> Compiler {
        Compiler {
            max_bytes,
            hasher: RandomState::new(),
            cache: Mutex::default(),
            directory: None,
        }
    }

    /// Has the compiler look for the masks of each grammar that it compiles
    /// in a directory, where [`Compiler::save`] puts them. All files in it
    /// have `max_bytes` together at most.
    ///
    /// Any number of processes may use one directory. What somebody has
    /// forged in it gives wrong masks; see [`saved`](crate::saved).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use maskwright::mask::TokenTrie;
    /// # use maskwright::vocabulary::{TokenId, Vocabulary};
    /// use maskwright::compiler::{Compiler, GrammarSource};
    /// use maskwright::saved::SaveOptions;
    ///
    /// # let vocabulary = Vocabulary::from_tokens(["1", "</s>"], [TokenId(1)])?;
    /// # let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let compiler = Compiler::new(64 << 20).with_directory(folder, 1 << 30);
    /// let source = GrammarSource::schema(r#"{"type": "integer"}"#);
    /// compiler.compile(&trie, &source)?;
    /// // Once a minute, and before the process ends, where nobody waits:
    /// for warning in compiler.save(&SaveOptions::default()).warnings {
    ///     eprintln!("{warning}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_directory(
        mut self,
        path: impl Into<PathBuf>,
        max_bytes: u64,
    ) -> Compiler {
        self.directory = Some(Directory::new(path.into(), max_bytes));
        self
    }

    /// Returns the grammar of `source` bound to `tokens`, which is compiled
    /// if it is not there.
    ///
    /// Errors are not kept: to ask again is to try again.
    ///
    /// # Errors
    ///
    /// Fails when the source is at fault or names a token that the vocabulary
    /// lacks. All who waited for it get the error.
    pub fn compile(
        &self,
        tokens: &Arc<TokenTrie>,
        source: &GrammarSource,
    ) -> Result<Compilation, CompileError> {
        let hash = self.hash(tokens, source);
        loop {
            let (found, gone) = {
                let mut cache = lock(&self.cache);
                let found = cache.find(hash, tokens, source);
                (found, cache.shrink(self.max_bytes))
            };
            drop(gone);
            match found {
                Found::Ready(compilation) => return Ok(compilation),
                Found::Open(flight) => {
                    // None is a thread that has not finished it: try it
                    // ourselves.
                    if let Some(result) = flight.wait()? {
                        return result;
                    }
                }
                Found::New(flight, source) => {
                    return self.lead(hash, &flight, tokens, &source);
                }
            }
        }
    }

    /// Does what [`Compiler::compile`] does, unless `interrupt` comes before
    /// it is done. Others who ask for the same are not affected: one of those
    /// who wait for it starts again.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use maskwright::mask::TokenTrie;
    /// # use maskwright::vocabulary::{TokenId, Vocabulary};
    /// use std::time::Duration;
    /// use maskwright::compiler::{Compiler, GrammarSource};
    /// use maskwright::interrupt::{CancelFlag, Interrupt};
    ///
    /// # let vocabulary = Vocabulary::from_tokens(["1", "</s>"], [TokenId(1)])?;
    /// # let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
    /// // Kept with the request: set when its client goes away.
    /// let gone = CancelFlag::new();
    /// let interrupt = Interrupt::after(Duration::from_secs(10)).or_on(&gone);
    /// let compiler = Compiler::new(64 << 20);
    /// let source = GrammarSource::schema(r#"{"type": "integer"}"#);
    /// compiler.compile_within(&trie, &source, &interrupt)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Compiler::compile`], and with [`CompileError::Interrupted`].
    pub fn compile_within(
        &self,
        tokens: &Arc<TokenTrie>,
        source: &GrammarSource,
        interrupt: &Interrupt,
    ) -> Result<Compilation, CompileError> {
        interrupt.run(|| self.compile(tokens, source))?
    }

    /// Compiles a grammar for all who wait for it.
    fn lead(
        &self,
        hash: u64,
        flight: &Arc<Flight>,
        tokens: &Arc<TokenTrie>,
        source: &Arc<GrammarSource>,
    ) -> Result<Compilation, CompileError> {
        // Takes the entry away again, whatever happens from here on.
        let landing = Landing { compiler: self, hash, flight };
        let result = compile(tokens, source).and_then(|compilation| {
            self.load(&compilation.compiled)?;
            Ok(compilation)
        });
        if let Ok(compilation) = &result {
            let bytes = measure(compilation).unwrap_or(0) + source.memory();
            let gone = {
                let mut cache = lock(&self.cache);
                cache.land(hash, flight, compilation, bytes);
                cache.shrink(self.max_bytes)
            };
            drop(gone);
        }
        // Those who wait may have more time.
        if !matches!(result, Err(CompileError::Interrupted(_))) {
            flight.finish(result.clone());
        }
        drop(landing);
        result
    }

    /// Looks for the masks of a new grammar.
    fn load(&self, compiled: &CompiledGrammar) -> Result<(), Interrupted> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let loaded = directory.load(compiled);
        interrupt::confirm()?;
        let (n_loaded, n_refused) = match loaded {
            Ok(Some(_)) => (1, 0),
            Ok(None) => (0, 0),
            // A grammar of which there can be no file.
            Err(
                GrammarFileError::NoSource
                | GrammarFileError::Reference { .. },
            ) => return Ok(()),
            Err(GrammarFileError::Automaton(AutomatonError::Interrupted(
                interrupted,
            ))) => return Err(interrupted),
            Err(_) => (0, 1),
        };
        compiled.remember_texts();
        let stats = &mut lock(&self.cache).stats;
        stats.n_loaded += n_loaded;
        stats.n_refused_files += n_refused;
        Ok(())
    }

    /// Writes the masks of the grammars that are kept to the directory, if
    /// there is one: those that took long since they were written last. Then
    /// removes the files that were not used for the longest time, until the
    /// rest has as many bytes as it may.
    ///
    /// Nothing else writes there. Masks are made again for it: call it once a
    /// minute, say, and before the process ends, on a thread that nobody
    /// waits for. Grammars that had to leave the cache before are lost.
    pub fn save(&self, options: &SaveOptions) -> DirectoryReport {
        let mut report = DirectoryReport::default();
        let Some(directory) = &self.directory else { return report };
        let all = lock(&self.cache).compilations();
        for Compilation { compiled, .. } in all {
            if !compiled.has_new_texts() {
                continue;
            }
            match directory.save(&compiled, options) {
                Ok(true) => report.n_written += 1,
                Ok(false) => break,
                Err(error) => report.warnings.push(error),
            }
        }
        match directory.trim() {
            Ok((n_removed, n_bytes)) => {
                report.n_removed = n_removed;
                report.n_bytes = n_bytes;
            }
            Err(error) => report.warnings.push(error),
        }
        report
    }

    /// Returns about how many bytes the grammars that are kept hold, as they
    /// were measured when each was asked for last. What they share is not
    /// counted: vocabularies, and the machine that all schemas have in
    /// common.
    pub fn memory_usage(&self) -> usize {
        lock(&self.cache).bytes
    }

    /// Measures all grammars again, since walks grow with use, and lets go of
    /// as many as are over the bound.
    ///
    /// [`Compiler::compile`] measures only the grammar that it returns.
    pub fn trim(&self) {
        let gone = {
            let mut cache = lock(&self.cache);
            cache.measure_all();
            cache.shrink(self.max_bytes)
        };
        drop(gone);
    }

    /// Lets go of all grammars.
    pub fn clear(&self) {
        let gone = lock(&self.cache).shrink(0);
        drop(gone);
    }

    /// Returns what was done so far.
    pub fn stats(&self) -> CompilerStats {
        let cache = lock(&self.cache);
        CompilerStats { n_kept: cache.order.len(), ..cache.stats }
    }

    fn hash(&self, tokens: &TokenTrie, source: &GrammarSource) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        tokens.vocabulary().fingerprint().hash(&mut hasher);
        source.hash(&mut hasher);
        hasher.finish()
    }
}

fn compile(
    tokens: &Arc<TokenTrie>,
    source: &Arc<GrammarSource>,
) -> Result<Compilation, CompileError> {
    let grammar = source.compile_shared();
    // What was found out in a hurry is neither a grammar nor an error.
    interrupt::confirm()?;
    let grammar = grammar?;
    let compiled = grammar.compile(tokens)?;
    Ok(Compilation { grammar, compiled })
}

/// Returns about how many bytes a grammar holds now, unless a mask is being
/// made with it.
fn measure(compilation: &Compilation) -> Option<usize> {
    compilation.compiled.try_memory_usage()
}

impl Cache {
    fn find(
        &mut self,
        hash: u64,
        tokens: &Arc<TokenTrie>,
        source: &GrammarSource,
    ) -> Found {
        self.clock += 1;
        let is_it = |entry: &Entry| {
            Arc::ptr_eq(&entry.tokens, tokens) && *entry.source == *source
        };
        match self.entries.find_mut(hash, is_it) {
            Some(Entry { state: State::Ready(ready), source, .. }) => {
                self.stats.n_hits += 1;
                self.order.remove(&ready.used);
                ready.used = self.clock;
                self.order.insert(ready.used, hash);
                if let Some(bytes) = measure(&ready.compilation) {
                    self.bytes -= ready.bytes;
                    ready.bytes = bytes + source.memory();
                    self.bytes += ready.bytes;
                }
                Found::Ready(ready.compilation.clone())
            }
            Some(Entry { state: State::Open(flight), .. }) => {
                self.stats.n_waits += 1;
                Found::Open(Arc::clone(flight))
            }
            None => {
                self.stats.n_compiled += 1;
                let flight = Arc::<Flight>::default();
                let source = Arc::new(source.clone());
                let entry = Entry {
                    hash,
                    tokens: Arc::clone(tokens),
                    source: Arc::clone(&source),
                    state: State::Open(Arc::clone(&flight)),
                };
                self.entries.insert_unique(hash, entry, |entry| entry.hash);
                Found::New(flight, source)
            }
        }
    }

    /// Keeps what a flight has brought.
    fn land(
        &mut self,
        hash: u64,
        flight: &Arc<Flight>,
        compilation: &Compilation,
        bytes: usize,
    ) {
        let is_it = |entry: &Entry| entry.is_of(flight);
        if let Some(entry) = self.entries.find_mut(hash, is_it) {
            self.clock += 1;
            let used = self.clock;
            let compilation = compilation.clone();
            entry.state = State::Ready(Ready { compilation, used, bytes });
            self.order.insert(used, hash);
            self.bytes += bytes;
        }
    }

    /// Takes out entries until at most so many bytes are left. They are
    /// returned, since dropping them may take long.
    fn shrink(&mut self, max_bytes: usize) -> Vec<Entry> {
        let mut gone = Vec::new();
        while self.bytes > max_bytes
            && let Some((used, hash)) = self.order.pop_first()
        {
            let is_it = |entry: &Entry| {
                matches!(&entry.state, State::Ready(ready)
                    if ready.used == used)
            };
            if let Ok(entry) = self.entries.find_entry(hash, is_it) {
                let entry = entry.remove().0;
                if let State::Ready(ready) = &entry.state {
                    self.bytes -= ready.bytes;
                }
                self.stats.n_evicted += 1;
                gone.push(entry);
            }
        }
        gone
    }

    /// Returns the grammars that are ready.
    fn compilations(&self) -> Vec<Compilation> {
        let ready = |entry: &Entry| match &entry.state {
            State::Ready(ready) => Some(ready.compilation.clone()),
            State::Open(_) => None,
        };
        self.entries.iter().filter_map(ready).collect()
    }

    fn measure_all(&mut self) {
        for entry in &mut self.entries {
            let State::Ready(ready) = &mut entry.state else { continue };
            if let Some(bytes) = measure(&ready.compilation) {
                self.bytes -= ready.bytes;
                ready.bytes = bytes + entry.source.memory();
                self.bytes += ready.bytes;
            }
        }
    }
}

impl Entry {
    fn is_of(&self, flight: &Arc<Flight>) -> bool {
        matches!(&self.state, State::Open(other)
            if Arc::ptr_eq(other, flight))
    }
}

/// Takes an entry that is still open out of the cache when the thread that
/// compiles it is done, and wakes those who wait: it has failed, or panicked.
struct Landing<'a> {
    compiler: &'a Compiler,
    hash: u64,
    flight: &'a Arc<Flight>,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let gone = {
            let mut cache = lock(&self.compiler.cache);
            let is_it = |entry: &Entry| entry.is_of(self.flight);
            let entry = cache.entries.find_entry(self.hash, is_it);
            entry.ok().map(|entry| entry.remove().0)
        };
        drop(gone);
        self.flight.give_up();
    }
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler")
            .field("max_bytes", &self.max_bytes)
            .field("memory_usage", &self.memory_usage())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// An error that occurs when a source cannot be compiled.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The grammar is at fault.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// The grammar and the vocabulary do not belong together.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The time for it ran out, or it was cancelled.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}
