//! Grammars in files: the masks that are dear to make.
//!
//! A grammar compiles in a fraction of a millisecond as a rule, to a machine
//! whose states are made when they are met and numbered in that order. To
//! read such a machine from a file would take longer than to make it again.
//! Dear are some of its masks: those that need the states of a pattern, or the
//! tokens of a state sought in all of the vocabulary. A file has these, each
//! with a text that leads to it; whoever reads the file compiles the grammar,
//! reads the texts, and finds in front of each the frames that the mask belongs
//! to, whatever their states are called this time.
//!
//! # Which masks
//!
//! Those after texts that were noted: a grammar that
//! [remembers texts](CompiledGrammar::remember_texts) notes those after which
//! a mask took long. And those of the places that are nearest to the start, as
//! far as the options say. What is cheaper to make than to read is left out.
//!
//! # Format
//!
//! The head of all files of ours; all that the grammar was compiled from, to
//! the letter, since a checksum alone would let one grammar have another's
//! masks; the masks (`masks.rs`); the texts in order, each after the number
//! of bytes that it has in common with the one before, so that no byte is
//! read twice.
//!
//! # The road not taken
//!
//! Walks (what a state makes of the tokens below a place of a trie) would
//! serve more masks than whole masks do: a state's walk is the same whatever
//! lies below. But a walk names states that no text leads to, tries that were
//! merged, and other walks: all of these would need names that are the same
//! in each process.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use maskwright_grammar_core::{
    automaton::{AutomatonError, Configuration, Symbol},
    interrupt::{self, Interrupt},
};

use super::{
    collect::{Collector, SavedText},
    format::{Format, Reader, SavedError, Writer, checksum, write},
    masks::read_masks,
    notes::{DEAR, MAX_NOTED, MAX_SAVED_TEXTS, MAX_TEXT},
};
use crate::{
    compiled::CompiledGrammar, mask::KeptMask, precompute::PrecomputeEnd,
};

/// The files that hold masks of a grammar.
const FORMAT: Format = Format { magic: *b"maskgra\n", version: 1 };

/// Files that are longer are not read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Which masks are saved.
#[derive(Clone, Debug)]
pub struct SaveOptions {
    /// How many places are gone to from the start, nearest first, beside
    /// those after texts that were noted. Few of them are ever seen again,
    /// and all of them have to be loaded: for grammars whose first requests
    /// are worth more than that.
    pub max_places: usize,
    /// Masks that took less time to make are left out, and those that would
    /// not save as much time as it takes to load them. Zero saves all.
    pub min_time: Duration,
    /// About how long the file may be.
    pub max_bytes: usize,
    /// Until when masks are made for it.
    pub interrupt: Interrupt,
}

impl Default for SaveOptions {
    /// What was noted and no other places, masks of 20 microseconds and more,
    /// 4 MiB, however long it takes.
    fn default() -> SaveOptions {
        SaveOptions {
            max_places: 0,
            min_time: DEAR,
            max_bytes: 4 << 20,
            interrupt: Interrupt::never(),
        }
    }
}

/// What was saved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SaveReport {
    /// How many places were gone to, those after noted texts included.
    pub n_places: usize,
    /// How many of them have their masks in the file.
    pub n_texts: usize,
    /// How many masks that are, without those that are the same.
    pub n_masks: usize,
    /// How long the file is.
    pub n_bytes: usize,
    /// Why no more places were gone to.
    pub end: PrecomputeEnd,
}

/// What a file has brought.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Loaded {
    /// How many places have their masks now that had none.
    pub n_places: usize,
}

impl CompiledGrammar {
    /// Makes the bytes of a file with the masks of this grammar that are dear
    /// to make, for [`CompiledGrammar::load_bytes`].
    ///
    /// Matchers may go on meanwhile. Masks are made again for the file, on
    /// this thread: it takes about as long as they took.
    ///
    /// A grammar that names tokens has no masks that could be saved, nor has
    /// one whose vocabulary has tokens that are too long for its trie: the
    /// file has none then.
    ///
    /// # Errors
    ///
    /// Fails when it is not known what the grammar was compiled from, or that
    /// cannot be written to a file, or a limit of the grammar is met.
    pub fn to_bytes(
        &self,
        options: &SaveOptions,
    ) -> Result<(Vec<u8>, SaveReport), GrammarFileError> {
        let origin = self.origin_bytes()?;
        let mut collector = Collector::new(self, options);
        let end = if self.keeps_masks() {
            match options.interrupt.run(|| collector.collect()) {
                Ok(Err(AutomatonError::Interrupted(_))) | Err(_) => {
                    PrecomputeEnd::Interrupted
                }
                Ok(result) => result?,
            }
        } else {
            PrecomputeEnd::Complete
        };
        let n_places = collector.n_places();
        let (texts, masks) = collector.finish();
        let (n_texts, n_masks) = (texts.len(), masks.len());
        let mut body = Writer::default();
        body.list(&origin);
        masks.finish(&mut body);
        write_texts(&texts, &mut body);
        let bytes = FORMAT.seal(checksum(&origin), body);
        let n_bytes = bytes.len();
        let report = SaveReport { n_places, n_texts, n_masks, n_bytes, end };
        Ok((bytes, report))
    }

    /// Writes the file that [`CompiledGrammar::to_bytes`] makes, as a whole
    /// or not at all.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use maskwright::compiler::GrammarSource;
    /// use maskwright::mask::TokenTrie;
    /// use maskwright::saved::SaveOptions;
    /// use maskwright::vocabulary::{TokenId, Vocabulary};
    ///
    /// let tokens = ["ab", "a", "b", "</s>"];
    /// let vocabulary = Vocabulary::from_tokens(tokens, [TokenId(3)])?;
    /// let trie = Arc::new(TokenTrie::new(Arc::new(vocabulary)));
    /// let folder = tempfile::tempdir()?;
    /// let file = folder.path().join("letters.masks");
    /// let source = GrammarSource::regex("(ab?){1,9}");
    /// let compiled = source.compile()?.compile(&trie)?;
    /// let options = SaveOptions { max_places: 200, ..SaveOptions::default() };
    /// compiled.save(&file, &options)?;
    ///
    /// // Another process, later:
    /// let compiled = source.compile()?.compile(&trie)?;
    /// if let Err(error) = compiled.load(&file) {
    ///     eprintln!("masks are made as they are needed: {error}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`CompiledGrammar::to_bytes`], and when the file cannot be written.
    pub fn save(
        &self,
        path: &Path,
        options: &SaveOptions,
    ) -> Result<SaveReport, GrammarFileError> {
        let (bytes, report) = self.to_bytes(options)?;
        write(path, &bytes)
            .map_err(|source| GrammarFileError::io(path, source))?;
        Ok(report)
    }

    /// Keeps the masks that [`CompiledGrammar::to_bytes`] has put together,
    /// of this grammar, perhaps in another process.
    ///
    /// # Errors
    ///
    /// Fails when the bytes are something else, of another grammar,
    /// vocabulary, options or version, or damaged; as for what the grammar
    /// was compiled from, see there; and when a limit of the grammar is met.
    /// The grammar is as good as before then.
    pub fn load_bytes(
        &self,
        bytes: &[u8],
    ) -> Result<Loaded, GrammarFileError> {
        let origin = self.origin_bytes()?;
        let mut body = FORMAT.open(bytes, checksum(&origin))?;
        if body.list().ok_or(SavedError::Damaged)? != origin {
            return Err(SavedError::Source.into());
        }
        let width = self.vocabulary().n_logits();
        let masks = read_masks(&mut body, width).ok_or(SavedError::Damaged)?;
        let places = self.read_places(&mut body, &masks)?;
        if !body.rest.is_empty() {
            return Err(SavedError::Damaged.into());
        }
        interrupt::confirm().map_err(AutomatonError::Interrupted)?;
        Ok(Loaded { n_places: self.put_places(&places, &masks) })
    }

    /// Reads a file as [`CompiledGrammar::load_bytes`] does.
    ///
    /// # Errors
    ///
    /// As [`CompiledGrammar::load_bytes`], and when the file cannot be read.
    pub fn load(&self, path: &Path) -> Result<Loaded, GrammarFileError> {
        let bytes = read_file(path)
            .map_err(|source| GrammarFileError::io(path, source))?;
        self.load_bytes(&bytes)
    }

    /// Goes to the places of a file.
    fn read_places(
        &self,
        body: &mut Reader<'_>,
        masks: &[KeptMask],
    ) -> Result<Vec<Place>, GrammarFileError> {
        let mut places = Vec::new();
        if !self.keeps_masks() {
            body.rest = &[];
            return Ok(places);
        }
        let (machine, limits) = (self.machine(), self.limits());
        let (mut text, mut n_bytes) = (Vec::new(), 0);
        // What is reached by each beginning of the text.
        let mut way = vec![self.start()?];
        let n_texts = body.small_length().ok_or(SavedError::Damaged)?;
        if n_texts > MAX_SAVED_TEXTS {
            return Err(SavedError::Damaged.into());
        }
        for _ in 0..n_texts {
            let entry = read_text(body).ok_or(SavedError::Damaged)?;
            if entry.n_common > text.len()
                || entry.n_common + entry.rest.len() > MAX_TEXT
                || entry.mask >= masks.len()
            {
                return Err(SavedError::Damaged.into());
            }
            text.truncate(entry.n_common);
            way.truncate(entry.n_common + 1);
            for &byte in entry.rest {
                let here = way.last().ok_or(SavedError::Damaged)?;
                let next = here.step(machine, limits, Symbol::Byte(byte))?;
                if next.is_dead() {
                    return Err(SavedError::Damaged.into());
                }
                text.push(byte);
                way.push(next);
            }
            let here = way.last().ok_or(SavedError::Damaged)?;
            places.push(Place {
                is_accepting: here.is_accepting(machine, limits)?,
                configuration: here.clone(),
                depth: entry.depth,
                mask: entry.mask,
                // As far as texts are noted at all.
                text: (n_bytes < MAX_NOTED).then(|| text.clone().into()),
            });
            n_bytes += text.len();
        }
        Ok(places)
    }
}

/// A place of a file.
pub(crate) struct Place {
    pub(crate) configuration: Configuration,
    pub(crate) is_accepting: bool,
    pub(crate) depth: u32,
    /// Its number.
    pub(crate) mask: usize,
    /// The text that leads there; none where there are too many.
    pub(crate) text: Option<Box<[u8]>>,
}

/// Reads a file unless it is too long to be one of ours.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let length = fs::metadata(path)?.len();
    if length > MAX_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "{length} bytes are more than a file of masks has, which is \
                 {MAX_FILE_BYTES} at most"
            ),
        ));
    }
    fs::read(path)
}

fn write_texts(texts: &[SavedText], out: &mut Writer) {
    out.small(texts.len() as u64);
    let mut before: &[u8] = &[];
    for SavedText { text, depth, mask } in texts {
        let pairs = before.iter().zip(text);
        let n_common = pairs.take_while(|(a, b)| a == b).count();
        out.small(n_common as u64);
        out.short_list(&text[n_common..]);
        out.small(u64::from(*depth));
        out.small(*mask as u64);
        before = text;
    }
}

/// A text as a file has it.
struct ReadText<'a> {
    /// What it has in common with the text before.
    n_common: usize,
    rest: &'a [u8],
    depth: u32,
    mask: usize,
}

fn read_text<'a>(from: &mut Reader<'a>) -> Option<ReadText<'a>> {
    Some(ReadText {
        n_common: from.small_length()?,
        rest: from.short_list()?,
        depth: u32::try_from(from.small()?).ok()?,
        mask: from.small_length()?,
    })
}

/// Why the masks of a grammar cannot be saved, or a file not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarFileError {
    /// It is not known what the grammar was compiled from.
    #[error(
        "the grammar was not compiled from a source that can be written to a \
         file, so its masks cannot be either; compile a `GrammarSource`"
    )]
    NoSource,
    /// The grammar refers to one that is an object of this process.
    #[error(
        "the grammar refers to {name:?}, which was compiled already and \
         cannot be written to a file; give its text in GBNF"
    )]
    Reference {
        /// What it is called.
        name: String,
    },
    /// The file is of something else, or damaged.
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The grammar's machine met a limit, or was interrupted.
    #[error(transparent)]
    Automaton(#[from] AutomatonError),
}

impl GrammarFileError {
    pub(crate) fn io(path: &Path, source: io::Error) -> GrammarFileError {
        GrammarFileError::Io { path: path.to_owned(), source }
    }
}
