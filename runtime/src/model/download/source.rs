//! What a user can write to name a model.

use std::path::{Path, PathBuf};

/// Where a model comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ModelSource {
    /// The small model that is fetched when none is named.
    Default,
    /// A GGUF file, or a directory of safetensors.
    Path(PathBuf),
    /// A repository on the Hugging Face hub.
    Repository {
        /// `owner/name`.
        name: String,
        /// A GGUF file in it, where one was named.
        file: Option<String>,
    },
}

impl ModelSource {
    /// Reads what a user wrote; nothing means the default model.
    ///
    /// Whatever is there on disk is a path. What is not is a repository if
    /// it reads as `owner/name` or `owner/name/file.gguf`, and a missing path
    /// otherwise.
    pub fn parse(value: Option<&str>) -> ModelSource {
        let Some(value) = value else { return ModelSource::Default };
        if Path::new(value).exists() {
            return ModelSource::Path(value.into());
        }
        parse_repository(value)
            .unwrap_or_else(|| ModelSource::Path(value.into()))
    }
}

fn parse_repository(value: &str) -> Option<ModelSource> {
    let mut parts = value.splitn(3, '/');
    let (owner, name) = (parts.next()?, parts.next()?);
    let file = parts.next();
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let is_gguf = |file: &str| has_gguf_ending(file) && !file.contains("..");
    (is_name(owner)
        && is_name(name)
        && file.is_none_or(is_gguf)
        && !has_gguf_ending(name))
    .then(|| ModelSource::Repository {
        name: format!("{owner}/{name}"),
        file: file.map(str::to_owned),
    })
}

pub(super) fn has_gguf_ending(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("gguf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_path_or_a_repository() {
        let repository =
            |name: &str, file: Option<&str>| ModelSource::Repository {
                name: name.into(),
                file: file.map(str::to_owned),
            };
        let path = |value: &str| ModelSource::Path(value.into());
        for (value, expected) in [
            ("Qwen/Qwen2.5-0.5B", repository("Qwen/Qwen2.5-0.5B", None)),
            ("a/b/c.gguf", repository("a/b", Some("c.gguf"))),
            ("a/b/d/c.gguf", repository("a/b", Some("d/c.gguf"))),
            ("a/b/../c.gguf", path("a/b/../c.gguf")),
            ("./a/b", path("./a/b")),
            ("/a/b", path("/a/b")),
            ("../a", path("../a")),
            ("~/model", path("~/model")),
            ("model.gguf", path("model.gguf")),
            ("models/model.GGUF", path("models/model.GGUF")),
            ("a/b/c", path("a/b/c")),
            ("", path("")),
        ] {
            assert_eq!(ModelSource::parse(Some(value)), expected, "{value}");
        }
        assert_eq!(ModelSource::parse(None), ModelSource::Default);
        let here = std::env::temp_dir();
        let here = here.to_str().expect("a readable path");
        assert_eq!(ModelSource::parse(Some(here)), path(here));
    }
}
