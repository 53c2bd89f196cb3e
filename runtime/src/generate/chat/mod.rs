//! Chat templates: messages to the prompt that a model was trained on.

mod functions;
mod python;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::io;

use minijinja::{Environment, ErrorKind, Value};
use serde::{Deserialize, Serialize};

use functions::Refusal;

/// ChatML, for models that bring no template of their own.
const CHATML: &str = "\
{% for message in messages %}\
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\
{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

const NAME: &str = "chat";

/// How many instructions a template may take. A message takes a few hundred.
const MAX_STEPS: u64 = 5_000_000;

/// How deep calls of macros may be nested. Templates that walk over schemas of
/// tools call themselves.
const MAX_DEPTH: usize = 200;

/// How long a prompt may be.
const MAX_BYTES: usize = 1 << 26;

/// Who says a message.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions for the whole conversation.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A message of a conversation.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
}

impl Message {
    /// Creates a message.
    pub fn new(role: Role, content: impl Into<String>) -> Message {
        Message { role, content: content.into() }
    }
}

/// A template that cannot be used, or not with these messages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The template is not valid Jinja.
    #[error("the model's chat template cannot be read")]
    Template(#[source] minijinja::Error),
    /// The template does not accept the messages, and says why.
    #[error("the model's chat template refuses the messages: {0}")]
    Refused(String),
    /// The template does more than a template may.
    #[error(
        "the model's chat template does not come to an end within {limit} \
         {unit}"
    )]
    Limit {
        /// The bound.
        limit: u64,
        /// What it counts.
        unit: &'static str,
    },
    /// The template fails on the messages.
    #[error("the model's chat template cannot be rendered")]
    Render(#[source] minijinja::Error),
}

/// A chat template, ready to render.
///
/// ```
/// use maskwright::generate::{ChatTemplate, Message, Role};
///
/// let template = ChatTemplate::new(None, "", "")?;
/// let messages = [Message::new(Role::User, "hi")];
/// assert_eq!(
///     template.render(&messages)?,
///     "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
/// );
/// # Ok::<(), maskwright::generate::ChatError>(())
/// ```
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    begin_text: String,
    end_text: String,
}

impl ChatTemplate {
    /// Reads a template, or takes ChatML where the model has none. The texts
    /// of the tokens that begin and end a sequence are what templates know as
    /// `bos_token` and `eos_token`.
    ///
    /// # Errors
    ///
    /// Fails when the source is not a valid template.
    pub fn new(
        source: Option<&str>,
        begin_text: &str,
        end_text: &str,
    ) -> Result<ChatTemplate, ChatError> {
        let mut environment = Environment::new();
        // What the models' own library sets, and templates rely on.
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_keep_trailing_newline(true);
        environment.set_unknown_method_callback(
            minijinja_contrib::pycompat::unknown_method_callback,
        );
        environment.set_fuel(Some(MAX_STEPS));
        environment.set_recursion_limit(MAX_DEPTH);
        environment.set_formatter(python::format);
        functions::add_to(&mut environment);
        let source = without_markers(source.unwrap_or(CHATML));
        environment
            .add_template_owned(NAME, source)
            .map_err(ChatError::Template)?;
        Ok(ChatTemplate {
            environment,
            begin_text: begin_text.to_owned(),
            end_text: end_text.to_owned(),
        })
    }

    /// Renders a conversation, and the beginning of the model's answer.
    ///
    /// # Errors
    ///
    /// Fails when the template refuses the messages, as some do for a system
    /// message or for two messages of one role in a row.
    pub fn render(&self, messages: &[Message]) -> Result<String, ChatError> {
        self.render_with(messages, &serde_json::Map::new())
    }

    /// Does that with more variables, such as `tools` and `enable_thinking`;
    /// `add_generation_prompt` is true unless it is among them.
    ///
    /// ```
    /// use maskwright::generate::ChatTemplate;
    ///
    /// let source = "{% if tools %}{{ tools | length }}{% endif %}";
    /// let template = ChatTemplate::new(Some(source), "", "")?;
    /// let tools = serde_json::json!({"tools": [{"name": "clock"}]});
    /// let tools = tools.as_object().expect("an object");
    /// assert_eq!(template.render_with(&[], tools)?, "1");
    /// # Ok::<(), maskwright::generate::ChatError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails when the template refuses the messages, and when it takes more
    /// steps or writes more than a template may.
    pub fn render_with(
        &self,
        messages: &[Message],
        variables: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<String, ChatError> {
        let known = [
            ("messages", Value::from_serialize(messages)),
            ("add_generation_prompt", Value::from(true)),
            ("bos_token", Value::from(self.begin_text.as_str())),
            ("eos_token", Value::from(self.end_text.as_str())),
            // Templates ask whether these are none.
            ("tools", Value::from(())),
            ("documents", Value::from(())),
        ];
        let more = variables
            .iter()
            .map(|(name, value)| (name.as_str(), python::value(value)));
        let context: Value = known.into_iter().chain(more).collect();
        let mut out = Bounded(Vec::new());
        self.environment
            .get_template(NAME)
            .and_then(|template| {
                template.render_captured_to(context, &mut out).map(drop)
            })
            .map_err(|error| failure(error, &out))?;
        Ok(String::from_utf8_lossy(&out.0).into_owned())
    }
}

/// Tells what a failure is about.
fn failure(error: minijinja::Error, out: &Bounded) -> ChatError {
    if out.0.len() > MAX_BYTES {
        return ChatError::Limit { limit: MAX_BYTES as u64, unit: "bytes" };
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return ChatError::Limit { limit: MAX_STEPS, unit: "steps" };
    }
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(Refusal(message)) = inner.downcast_ref() {
            return ChatError::Refused(message.clone());
        }
        cause = inner.source();
    }
    ChatError::Render(error)
}

/// What is written, up to a limit; beyond it, one byte more.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n_left = (MAX_BYTES + 1).saturating_sub(self.0.len());
        let n = bytes.len().min(n_left);
        self.0.extend(bytes.iter().take(n));
        if self.0.len() > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Replaces the tags that mark what the model says by tags without effect.
/// They are the library's own, and only matter in training.
fn without_markers(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, after)) = rest.split_once("{%") {
        out.push_str(before);
        out.push_str("{%");
        let sign = usize::from(after.starts_with(['-', '+']));
        let (sign, tag) = after.split_at(sign);
        let word = tag.trim_start();
        let end = word
            .find(|character: char| !character.is_ascii_alphanumeric())
            .unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        out.push_str(sign);
        let (instead, after) = match word {
            "generation" => (" if true", after),
            "endgeneration" => (" endif", after),
            _ => ("", tag),
        };
        out.push_str(instead);
        rest = after;
    }
    out.push_str(rest);
    out
}
