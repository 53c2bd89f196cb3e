//! The tokenizer file: where it is found, and the two numbers that it does not
//! say itself, the end token and the width of the model's logits.

use std::path::{Path, PathBuf};
use std::process::Command;

use tokenizers::Tokenizer;

/// What the engines need beyond the file.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The token that ends an output.
    pub end_token: u32,
    /// The width of the logits, at least the number of tokens.
    pub width: u32,
}

impl Shape {
    /// Words of a mask of 32 bits a word.
    pub fn words(self) -> usize {
        self.width.div_ceil(32) as usize
    }
}

/// The names under which end tokens go, the likeliest first.
const END_TOKENS: [&str; 4] =
    ["<|eot_id|>", "<|im_end|>", "<|endoftext|>", "</s>"];

/// Reads the file; what the options leave open is guessed from its tokens.
///
/// # Errors
///
/// Says what is wrong with the file, or that no end token is known.
pub fn load(
    path: &Path,
    end_token: Option<u32>,
    width: Option<u32>,
) -> Result<(Tokenizer, Shape), String> {
    let tokenizer = Tokenizer::from_file(path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let end_token = end_token
        .or_else(|| {
            END_TOKENS.iter().find_map(|name| tokenizer.token_to_id(name))
        })
        .ok_or("no known end token in the vocabulary: pass --end-token ID")?;
    let n_tokens = u32::try_from(tokenizer.get_vocab_size(true))
        .map_err(|error| error.to_string())?;
    // Qwen pads its logits beyond its tokens.
    let padded = if n_tokens == 151_669 { 151_936 } else { n_tokens };
    let width = width.unwrap_or(padded).max(n_tokens);
    Ok((tokenizer, Shape { end_token, width }))
}

/// The Llama-3.1 tokenizer in the user's cache, fetched by
/// `fetch-tokenizer.sh` when it is not there yet.
///
/// # Errors
///
/// Names the script that failed.
pub fn default_file() -> Result<PathBuf, String> {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fetch-tokenizer.sh");
    let output = Command::new("sh")
        .arg(&script)
        .arg("llama3_1")
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("{}: {error}", script.display()))?;
    if !output.status.success() {
        return Err(format!(
            "{} failed: pass --tokenizer FILE (a tokenizer.json)",
            script.display()
        ));
    }
    let path = String::from_utf8_lossy(&output.stdout);
    Ok(PathBuf::from(path.trim()))
}
