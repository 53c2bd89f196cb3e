//! Text to token ids, as the model's own tokenizer would.
//!
//! What a token spells is the [`Vocabulary`]'s affair; this is the other
//! direction, which needs merges and pre-tokenizers. A `tokenizer.json` is
//! read by the `tokenizers` crate. A GGUF file carries the same facts in other
//! words, and the tokenizer is rebuilt from them: generic conversions lose
//! the pre-tokenizer ([`rules`]), which changes ids. Pieces with scores are
//! encoded by code of our own ([`sentence_piece`]).

mod gguf;
mod pre_tokenizer;
mod rules;
mod sentence_piece;
mod special;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs};

use serde::Deserialize;
use tokenizers::Tokenizer;

use super::error::ModelError;
use super::gguf::Gguf;
use crate::vocabulary::Vocabulary;
use sentence_piece::SentencePiece;

/// The sources of chat templates by their names.
type Templates = BTreeMap<String, String>;

/// The name of the template that is taken where none is asked for.
const DEFAULT_TEMPLATE: &str = "default";

/// A model's tokenizer, with its vocabulary and its chat templates.
#[derive(Clone)]
pub struct ModelTokenizer {
    encoder: Encoder,
    vocabulary: Arc<Vocabulary>,
    /// The token that begins a sequence, where the encoder's own
    /// post-processor does not know it.
    prefix: Option<u32>,
    /// The token that ends one, likewise.
    suffix: Option<u32>,
    begin_text: String,
    end_text: String,
    templates: Templates,
}

/// What splits a text.
#[derive(Clone)]
enum Encoder {
    /// The `tokenizers` crate.
    Library(Box<Tokenizer>),
    SentencePiece(Arc<SentencePiece>),
}

impl ModelTokenizer {
    /// Rebuilds the tokenizer of a GGUF file, with `n_logits` as the width of
    /// its vocabulary.
    ///
    /// # Errors
    ///
    /// Fails when the metadata is incomplete, or names a tokenizer or a
    /// pre-tokenizer that is not known here. Guessing one would give wrong
    /// ids silently.
    pub fn from_gguf(
        gguf: &Gguf,
        n_logits: usize,
    ) -> Result<ModelTokenizer, ModelError> {
        gguf::build(gguf, n_logits)
    }

    /// Reads `tokenizer.json` and `tokenizer_config.json` from a model's
    /// directory, with `n_logits` as the width of its vocabulary.
    ///
    /// # Errors
    ///
    /// Fails when a file is malformed, and when `tokenizer.json` is absent.
    pub fn from_directory(
        directory: &Path,
        n_logits: usize,
    ) -> Result<ModelTokenizer, ModelError> {
        let path = directory.join("tokenizer.json");
        let bytes =
            fs::read(&path).map_err(|error| ModelError::read(&path, error))?;
        let tokenizer = Tokenizer::from_bytes(&bytes)
            .map_err(|error| ModelError::malformed(&path, error))?;
        let vocabulary = Vocabulary::from_path(&path)?;
        let config = read_config(directory)?;
        Ok(ModelTokenizer {
            encoder: Encoder::Library(Box::new(tokenizer)),
            vocabulary: with_width(vocabulary, n_logits)?,
            prefix: None,
            suffix: None,
            begin_text: text_of(config.bos_token),
            end_text: text_of(config.eos_token),
            templates: read_templates(directory, config.chat_template)?,
        })
    }

    /// Splits a text into tokens. Special tokens written in the text become
    /// those tokens.
    ///
    /// With `add_special`, the tokens that the model expects around a plain
    /// text are added. The text of a chat template has them already.
    ///
    /// # Errors
    ///
    /// Fails when the tokenizer does.
    pub fn encode(
        &self,
        text: &str,
        add_special: bool,
    ) -> Result<Vec<u32>, ModelError> {
        let ids = match &self.encoder {
            Encoder::Library(tokenizer) => tokenizer
                .encode_fast(text, add_special)
                .map_err(|error| ModelError::Tokenizer(error.to_string()))?
                .get_ids()
                .to_vec(),
            Encoder::SentencePiece(encoder) => encoder.encode(text)?,
        };
        let added = |id: Option<u32>| id.filter(|_| add_special);
        let prefix = added(self.prefix).into_iter();
        Ok(prefix.chain(ids).chain(added(self.suffix)).collect())
    }

    /// Returns what each token spells, and which tokens end the output.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the source of the model's chat template, if it has one.
    pub fn chat_template(&self) -> Option<&str> {
        self.templates.get(DEFAULT_TEMPLATE).map(String::as_str)
    }

    /// Returns the source of a chat template that goes by a name, such as
    /// `tool_use` for conversations with tools.
    pub fn chat_template_named(&self, name: &str) -> Option<&str> {
        self.templates.get(name).map(String::as_str)
    }

    /// Returns how the token that begins a sequence is written, or nothing.
    pub fn begin_text(&self) -> &str {
        &self.begin_text
    }

    /// Returns how the token that ends a sequence is written, or nothing.
    pub fn end_text(&self) -> &str {
        &self.end_text
    }
}

impl fmt::Debug for ModelTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelTokenizer")
            .field("n_tokens", &self.vocabulary.n_tokens())
            .field("prefix", &self.prefix)
            .field("suffix", &self.suffix)
            .field("begin_text", &self.begin_text)
            .field("end_text", &self.end_text)
            .field("templates", &self.templates.keys())
            .finish_non_exhaustive()
    }
}

fn with_width(
    mut vocabulary: Vocabulary,
    n_logits: usize,
) -> Result<Arc<Vocabulary>, ModelError> {
    vocabulary.set_n_logits(n_logits)?;
    Ok(Arc::new(vocabulary))
}

/// The keys of `tokenizer_config.json` that matter here.
#[derive(Default, Deserialize)]
struct Config {
    bos_token: Option<Token>,
    eos_token: Option<Token>,
    chat_template: Option<Template>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Token {
    Text(String),
    Object { content: String },
}

/// One template, or several with names.
#[derive(Deserialize)]
#[serde(untagged)]
enum Template {
    One(String),
    Named(Vec<NamedTemplate>),
}

#[derive(Deserialize)]
struct NamedTemplate {
    name: String,
    template: String,
}

fn text_of(token: Option<Token>) -> String {
    match token {
        Some(Token::Text(text) | Token::Object { content: text }) => text,
        None => String::new(),
    }
}

fn read_config(directory: &Path) -> Result<Config, ModelError> {
    let path = directory.join("tokenizer_config.json");
    match read_if_there(&path)? {
        None => Ok(Config::default()),
        Some(text) => serde_json::from_str(&text)
            .map_err(|error| ModelError::malformed(&path, error)),
    }
}

/// Newer models keep the template in a file of its own, which then wins, and
/// further ones in a directory.
fn read_templates(
    directory: &Path,
    in_config: Option<Template>,
) -> Result<Templates, ModelError> {
    let mut templates: Templates = match in_config {
        None => Templates::new(),
        Some(Template::One(text)) => {
            [(DEFAULT_TEMPLATE.to_owned(), text)].into()
        }
        Some(Template::Named(all)) => {
            all.into_iter().map(|it| (it.name, it.template)).collect()
        }
    };
    if let Some(text) = read_if_there(&directory.join("chat_template.jinja"))?
    {
        templates.insert(DEFAULT_TEMPLATE.to_owned(), text);
    }
    let more = directory.join("additional_chat_templates");
    let read = |error| ModelError::read(&more, error);
    if more.is_dir() {
        for entry in more.read_dir().map_err(read)? {
            let path = entry.map_err(read)?.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let is_template = path.extension().is_some_and(|it| it == "jinja");
            if let (Some(name), true) = (name, is_template) {
                let text = fs::read_to_string(&path).map_err(read)?;
                templates.insert(name.to_owned(), text);
            }
        }
    }
    Ok(templates)
}

fn read_if_there(path: &Path) -> Result<Option<String>, ModelError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ModelError::read(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_come_from_every_place_and_the_file_wins() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let named = |name: &str, template: &str| NamedTemplate {
            name: name.into(),
            template: template.into(),
        };
        let read = |in_config| {
            let templates = read_templates(directory.path(), in_config);
            templates.expect("readable")
        };
        assert!(read(None).is_empty());
        let one = read(Some(Template::One("a".into())));
        assert_eq!(one, [("default".into(), "a".into())].into());
        let more = directory.path().join("additional_chat_templates");
        fs::create_dir(&more).expect("a directory");
        for (path, text) in [
            (directory.path().join("chat_template.jinja"), "file"),
            (more.join("rag.jinja"), "rag"),
            (more.join("notes.txt"), "no template"),
        ] {
            fs::write(path, text).expect("a file");
        }
        let all = vec![named("default", "config"), named("tool_use", "tools")];
        let expected =
            [("default", "file"), ("rag", "rag"), ("tool_use", "tools")];
        assert_eq!(
            read(Some(Template::Named(all))),
            expected.map(|(name, text)| (name.into(), text.into())).into(),
        );
    }
}
