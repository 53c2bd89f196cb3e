//! Chat templates: messages to the prompt that a model was trained on.

use minijinja::value::Kwargs;
use minijinja::{Environment, ErrorKind, context};
use serde::{Deserialize, Serialize};

/// ChatML, for models that bring no template of their own.
const CHATML: &str = "\
{% for message in messages %}\
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\
{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

const NAME: &str = "chat";

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
    /// The template does not accept the messages.
    #[error("the model's chat template refuses the messages")]
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
        environment.add_function("raise_exception", raise_exception);
        environment.add_filter("tojson", to_json);
        environment
            .add_template_owned(NAME, source.unwrap_or(CHATML).to_owned())
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
        self.environment
            .get_template(NAME)
            .and_then(|template| {
                template.render(context! {
                    messages,
                    add_generation_prompt => true,
                    bos_token => self.begin_text,
                    eos_token => self.end_text,
                })
            })
            .map_err(ChatError::Render)
    }
}

/// What templates call to refuse messages.
fn raise_exception(message: String) -> Result<String, minijinja::Error> {
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
}

/// JSON as the models' own library writes it: separators with spaces, and
/// nothing escaped for HTML.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that the template engine calls"
)]
fn to_json(
    value: minijinja::Value,
    options: Kwargs,
) -> Result<String, minijinja::Error> {
    let indent: Option<usize> = options.get("indent")?;
    options.assert_all_used()?;
    let value = serde_json::to_value(&value).map_err(|error| {
        minijinja::Error::new(ErrorKind::BadSerialization, error.to_string())
    })?;
    let mut out = Vec::new();
    let result = if let Some(width) = indent {
        let indent = " ".repeat(width.min(16));
        let format =
            serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
        value.serialize(&mut serde_json::Serializer::with_formatter(
            &mut out, format,
        ))
    } else {
        value.serialize(&mut serde_json::Serializer::with_formatter(
            &mut out, Spaced,
        ))
    };
    result.map_err(|error| {
        minijinja::Error::new(ErrorKind::BadSerialization, error.to_string())
    })?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// One line, with a space after each comma and colon.
struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, messages: &[Message]) -> String {
        ChatTemplate::new(Some(source), "<s>", "</s>")
            .expect("valid")
            .render(messages)
            .expect("renders")
    }

    #[test]
    fn chatml_is_the_fallback() {
        let template = ChatTemplate::new(None, "", "").expect("valid");
        let text = template.render(&[
            Message::new(Role::System, "be brief"),
            Message::new(Role::User, "hi"),
            Message::new(Role::Assistant, "hello"),
        ]);
        assert_eq!(
            text.expect("renders"),
            "<|im_start|>system\nbe brief<|im_end|>\n\
             <|im_start|>user\nhi<|im_end|>\n\
             <|im_start|>assistant\nhello<|im_end|>\n\
             <|im_start|>assistant\n"
        );
    }

    #[test]
    fn templates_use_python_methods_and_whitespace_control() {
        let source = "{{ bos_token }}\n\
            {% for message in messages %}\n    \
            {%- if message['role'] == 'user' %}\n\
            [INST] {{ message['content'].strip() }} [/INST]\n    \
            {%- endif %}\n\
            {% endfor %}";
        let messages = [Message::new(Role::User, "  hi \n")];
        assert_eq!(render(source, &messages), "<s>\n[INST] hi [/INST]");
    }

    #[test]
    fn json_is_written_as_python_writes_it() {
        let source = "{{ {'a': [1, '<é>'], 'b': none} | tojson }}";
        assert_eq!(render(source, &[]), r#"{"a": [1, "<é>"], "b": null}"#);
    }

    #[test]
    fn a_refusal_is_an_error_with_the_template_s_words() {
        let source = "{{ raise_exception('no system role') }}";
        let template = ChatTemplate::new(Some(source), "", "").expect("valid");
        let error = template.render(&[]).expect_err("refuses");
        let ChatError::Render(error) = error else { panic!("{error}") };
        assert!(error.to_string().contains("no system role"));
        assert!(matches!(
            ChatTemplate::new(Some("{% if %}"), "", ""),
            Err(ChatError::Template(_))
        ));
    }
}
