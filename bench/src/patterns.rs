//! Hard regular expressions: what they cost to compile, and what masks cost
//! along random texts.

use crate::clock::{Clock, Span};
use crate::engine::{Engine, LlGuidance, Maskwright, Source};
use crate::options::Options;
use crate::stats::{Distribution, micros, short};
use crate::tokenizer;

/// How many masks are asked for along a text.
const N_MASKS: usize = 1_000;

/// Expressions in Rust's syntax, and one that is a schema.
const PATTERNS: [&str; 7] = [
    r"^(?!foo).*",
    r"(?=.*\d)(?=.*[a-z]).{8,}",
    r"(?:\p{L}{500}){500}",
    r".*[01]{0,1}1[01]{24}",
    r"[a-z]{2,20}(?:-[0-9]{1,9}){1,90}(?: [^ ]{3,40}){5,9999}",
    r"(?:[^,\n]*,){400}[^,\n]*",
    r#"{"type": "string", "maxLength": 1000000000}"#,
];

/// Runs both engines over the expressions and prints a table.
///
/// # Errors
///
/// What could not be read or loaded.
pub fn run(options: &Options) -> Result<(), String> {
    let path = options.tokenizer_path()?;
    let (_, shape) = tokenizer::load(&path, options.end_token, options.width)?;
    let mut ours = Maskwright::load(&path, shape)?;
    let mut peer = LlGuidance::load(&path, shape)?;
    let clock = Clock::calibrated();
    let mut words = vec![0; shape.words()];
    println!(
        "| expression | engine | compile | masks | mask avg | p50 | p99 | max \
         |"
    );
    println!("|:--|:--|--:|--:|--:|--:|--:|--:|");
    for pattern in PATTERNS {
        let is_schema = pattern.starts_with('{');
        let source = if is_schema { Source::Schema } else { Source::Regex };
        ours = ours.reading(source);
        peer = peer.reading(source);
        // Both read the text that is drawn from the first one's masks.
        let mut text = Vec::new();
        for engine in [&ours as &dyn Engine, &peer] {
            let line = walk(
                engine,
                pattern,
                &clock,
                &mut words,
                shape.end_token,
                &mut text,
            );
            let line = line.unwrap_or_else(|error| {
                let error = error.lines().next().unwrap_or_default();
                format!("refused: {error} |")
            });
            let shown = pattern.replace('|', "\\|");
            println!("| `{shown}` | {} | {line}", engine.name());
        }
    }
    Ok(())
}

/// Reads `text`, or draws it if it is empty.
fn walk(
    engine: &dyn Engine,
    pattern: &str,
    clock: &Clock,
    words: &mut [u32],
    end_token: u32,
    text: &mut Vec<u32>,
) -> Result<String, String> {
    engine.prepare();
    let (sequence, compile) = clock.time(|| engine.open(pattern));
    let mut sequence = sequence?;
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut masks: Vec<Span> = Vec::new();
    let draws = text.is_empty();
    while masks.len() < N_MASKS {
        let (result, span) = clock.time(|| sequence.mask_into(words));
        result?;
        masks.push(span);
        if draws {
            // An end token would end the walk.
            words[end_token as usize / 32] &= !(1 << (end_token % 32));
            match random.draw(words) {
                Some(token) => text.push(token),
                None => break,
            }
        }
        let Some(&token) = text.get(masks.len() - 1) else { break };
        if words[token as usize / 32] >> (token % 32) & 1 == 0 {
            return Err(format!("refuses token {} of it", masks.len()));
        }
        if sequence.accept(token).is_err() {
            break;
        }
    }
    let times = Distribution::new(masks.iter().map(|span| span.cpu));
    let figures = times.figures();
    let at = |wanted: &str| {
        let found = figures.iter().find(|(name, _)| *name == wanted);
        short(found.map_or(0.0, |(_, figure)| *figure))
    };
    Ok(format!(
        "{} | {} | {} | {} | {} | {} |",
        short(micros(compile.cpu)),
        masks.len(),
        at("avg"),
        at("p50"),
        at("p99"),
        at("max"),
    ))
}

/// Xorshift: small, seeded, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    /// Draws one of the tokens whose bits are set; each is as likely.
    fn draw(&mut self, words: &[u32]) -> Option<u32> {
        let n: u64 =
            words.iter().map(|word| u64::from(word.count_ones())).sum();
        let mut left = self.next().checked_rem(n)?;
        for (base, &word) in (0_u32..).step_by(32).zip(words) {
            let ones = u64::from(word.count_ones());
            if left >= ones {
                left -= ones;
                continue;
            }
            let mut bits = (0..32).filter(|bit| word >> bit & 1 == 1);
            let bit = bits.nth(usize::try_from(left).ok()?)?;
            return Some(base + bit);
        }
        None
    }
}
