//! Splits texts with the tokenizer of a GGUF file, for comparisons with other
//! engines: `bench/llama_cpp_tokenizers.py` runs it.
//!
//! ```text
//! tokenize MODEL.gguf < texts.jsonl > ids.jsonl
//! ```
//!
//! A line is a text as a JSON string. Its ids come back as a line, or an
//! object with the key `error`.

#![expect(clippy::print_stdout, reason = "the ids are what it is for")]

use std::error::Error;
use std::io::BufRead;

use maskwright::model::{Gguf, ModelTokenizer};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("no GGUF file is given")?;
    let gguf = Gguf::open(path.as_ref())?;
    let n_tokens = gguf
        .texts("tokenizer.ggml.tokens")?
        .ok_or("the file has no tokens")?
        .len();
    let tokenizer = ModelTokenizer::from_gguf(&gguf, n_tokens)?;
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line?)?;
        match tokenizer.encode(&text, true) {
            Ok(ids) => println!("{}", serde_json::to_string(&ids)?),
            Err(error) => {
                let error = serde_json::json!({"error": error.to_string()});
                println!("{error}");
            }
        }
    }
    Ok(())
}
