//! Flatness: whether a mask or a token costs more the deeper the nesting, or
//! the longer the output.
//!
//! One output is read from its first token to its end. At each power of ten a
//! stretch of tokens is measured: in a first reading every mask of it, made
//! several times in a row, in a second one the acceptance of the whole
//! stretch between two looks at the clock. The stretches of one output are
//! the same tokens.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokenizers::Tokenizer;

use crate::clock::Clock;
use crate::engine::{self, Engine, Sequence};
use crate::measure::is_allowed;
use crate::options::Options;
use crate::stats::{grouped, micros, short};
use crate::tokenizer;

/// The deepest nesting, and about the length of the longest output.
const FARTHEST: usize = 100_000;

/// How many tokens of nesting are measured at a depth.
const STRETCH: usize = 8;

/// How often a mask is made.
const REPEATS: u32 = 50;

/// How long an engine may take for a reading.
const PATIENCE: Duration = Duration::from_secs(10);

const ARRAYS: &str = r##"{"$ref": "#/$defs/node", "$defs": {"node":
    {"type": "array", "items": {"$ref": "#/$defs/node"}}}}"##;

const OBJECTS: &str = r##"{"$ref": "#/$defs/node", "$defs": {"node":
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}},
        "additionalProperties": false}}}"##;

const RECORDS: &str = r#"{"type": "array", "items": {"type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"},
        "tags": {"type": "array", "items": {"enum": ["new", "old"]}},
        "open": {"type": "boolean"}},
    "required": ["id", "name", "tags", "open"],
    "additionalProperties": false}}"#;

const ANY: &str = "{}";

const RECORD: &str =
    r#"{"id": 1207, "name": "Ada", "tags": ["new", "old"], "open": true}, "#;

/// An output and where it is measured.
struct Text {
    name: &'static str,
    schema: &'static str,
    tokens: Vec<u32>,
    /// The stretches: what the table calls the place, its first token and how
    /// many there are.
    stretches: Vec<(usize, usize, usize)>,
    /// How many of these come before the nesting is closed again.
    n_opening: usize,
}

/// What a token of a stretch takes, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    mask: u64,
    accept: u64,
}

/// Runs the command.
///
/// # Errors
///
/// What could not be read or loaded.
pub fn run(options: &Options) -> Result<(), String> {
    let path = options.tokenizer_path()?;
    let (tokenizer, shape) =
        tokenizer::load(&path, options.end_token, options.width)?;
    let engines = engine::load_wanted(options, &path, shape)?;
    let engines: Vec<_> =
        engines.into_iter().map(|(_, engine)| engine).collect();
    let clock = Clock::calibrated();
    let mut words = vec![0; shape.words()];
    println!(
        "Each engine's time for one mask and for one accepted token, in µs of \
         processor time, at a depth of nesting or after so many tokens of \
         output. Ratio: the last figure to the first one.\n"
    );
    let mut all: Vec<Row> = Vec::new();
    for text in texts(&tokenizer)? {
        // The engines' rows of a table stand beside each other.
        let mut found: Vec<Vec<Row>> = Vec::new();
        for engine in &engines {
            found.push(rows(&**engine, &text, &clock, &mut words));
        }
        let n_tables = found.first().map_or(0, Vec::len);
        let mut columns: Vec<_> =
            found.into_iter().map(Vec::into_iter).collect();
        for _ in 0..n_tables {
            let table: Vec<Row> =
                columns.iter_mut().filter_map(Iterator::next).collect();
            print(&table);
            all.extend(table);
        }
    }
    if options.summary_json {
        println!("\n{}", summary(&all));
    }
    Ok(())
}

fn texts(tokenizer: &Tokenizer) -> Result<Vec<Text>, String> {
    let encode = |text: &str| {
        let encoding = tokenizer.encode_fast(text, false);
        let encoding = encoding.map_err(|error| error.to_string())?;
        Ok::<_, String>(encoding.get_ids().to_vec())
    };
    let (array, object) = (encode("[")?, encode("{\"a\": ")?);
    let (array_end, object_end) = (encode("]")?, encode("}")?);
    let nested = |name, schema, open: &[u32], close: &[u32], last: &[u32]| {
        Text::nested(name, schema, open, close, last)
    };
    let empty = encode("{}")?;
    Ok(vec![
        nested("arrays, recursive schema", ARRAYS, &array, &array_end, &[]),
        nested("arrays, any value", ANY, &array, &array_end, &[]),
        nested(
            "objects, recursive schema",
            OBJECTS,
            &object,
            &object_end,
            &empty,
        ),
        nested("objects, any value", ANY, &object, &object_end, &empty),
        Text::records("records, schema", RECORDS, &array, &encode(RECORD)?),
        Text::records("records, any value", ANY, &array, &encode(RECORD)?),
    ])
}

/// Powers of ten up to the farthest.
fn decades() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |at| Some(at * 10))
        .take_while(|&at| at <= FARTHEST)
}

impl Text {
    /// `open` again and again, `last`, and as often `close`.
    fn nested(
        name: &'static str,
        schema: &'static str,
        open: &[u32],
        close: &[u32],
        last: &[u32],
    ) -> Text {
        // The deepest stretch begins there.
        let depth = FARTHEST + STRETCH;
        let mut tokens = open.repeat(depth);
        tokens.extend_from_slice(last);
        let closing = tokens.len();
        tokens.extend(close.repeat(depth));
        let count = STRETCH.div_ceil(open.len()) * open.len();
        let down = decades().map(|at| (at, at * open.len(), count));
        let mut stretches: Vec<_> = down.collect();
        let n_opening = stretches.len();
        // The first decade has too few brackets to close.
        let mut up: Vec<usize> = decades().skip(1).collect();
        up.reverse();
        stretches
            .extend(up.into_iter().map(|at| {
                (at, closing + (depth - at) * close.len(), STRETCH)
            }));
        Text { name, schema, tokens, stretches, n_opening }
    }

    /// An array of the same record.
    fn records(
        name: &'static str,
        schema: &'static str,
        open: &[u32],
        record: &[u32],
    ) -> Text {
        let starts = decades()
            .skip(1)
            .map(|at| open.len() + at.div_ceil(record.len()) * record.len());
        let stretches: Vec<(usize, usize, usize)> =
            starts.map(|start| (start, start, record.len())).collect();
        let end = stretches.last().map_or(0, |last| last.1 + last.2);
        let n_records = end.div_ceil(record.len());
        let mut tokens = open.to_vec();
        tokens.extend(record.repeat(n_records));
        let n_opening = stretches.len();
        Text { name, schema, tokens, stretches, n_opening }
    }
}

/// What one engine takes along one output, in one direction.
struct Row {
    case: String,
    engine: &'static str,
    points: Vec<(usize, Cost)>,
    /// Why the output was not read to its end.
    stopped: Option<String>,
}

/// Measures an engine along an output: a row for the nesting that opens, and
/// one for that which closes.
fn rows(
    engine: &dyn Engine,
    text: &Text,
    clock: &Clock,
    words: &mut [u32],
) -> Vec<Row> {
    let mut costs = vec![Cost::default(); text.stretches.len()];
    let measured = measure(engine, text, clock, words, &mut costs);
    let (n_points, stopped) = match measured {
        Ok(()) => (costs.len(), None),
        Err((n_points, why)) => (n_points, Some(why)),
    };
    let at = text.stretches.iter().map(|&(at, ..)| at);
    let mut points: Vec<(usize, Cost)> = at.zip(costs).collect();
    points.truncate(n_points);
    let closing = points.split_off(text.n_opening.min(n_points));
    let row = |what: &str, points: Vec<(usize, Cost)>| Row {
        case: format!("{}{what}", text.name),
        engine: engine.name(),
        points,
        stopped: stopped.clone(),
    };
    if text.n_opening == text.stretches.len() {
        return vec![row("", points)];
    }
    vec![row(", opening", points), row(", closing", closing)]
}

/// Fills in the costs of the stretches; on failure says how many there are.
fn measure(
    engine: &dyn Engine,
    text: &Text,
    clock: &Clock,
    words: &mut [u32],
    costs: &mut [Cost],
) -> Result<(), (usize, String)> {
    engine.prepare();
    let none = |error| (0, error);
    let sequence = engine.open(text.schema).map_err(none)?;
    let shared = sequence.prototype().share().map_err(none)?;
    // Both are freed at the end: what the allocator has to do after a
    // sequence of so many steps would be paid by the next one.
    let mut masked = shared.start().map_err(none)?;
    let mut accepted = shared.start().map_err(none)?;
    let (n_masks, first) = read(
        text,
        &mut *masked,
        |sequence, range, cost| {
            let mut nanos = 0;
            let tokens = &text.tokens[range];
            for &token in tokens {
                nanos += mask(sequence, clock, words)?;
                if !is_allowed(words, token) {
                    return Err("a token of it is not allowed".to_owned());
                }
                sequence.accept(token)?;
            }
            cost.mask = nanos / tokens.len() as u64;
            Ok(())
        },
        costs,
    );
    let (n_accepts, second) = read(
        text,
        &mut *accepted,
        |sequence, range, cost| {
            let tokens = &text.tokens[range];
            let (result, span) = clock.time(|| {
                tokens.iter().try_for_each(|&token| sequence.accept(token))
            });
            cost.accept = span.cpu / tokens.len() as u64;
            result
        },
        costs,
    );
    let n_points = n_masks.min(n_accepts);
    first.and(second).map_err(|why| (n_points, why))
}

/// Reads the output once, with `work` reading its stretches, and says how
/// many of them were read.
fn read(
    text: &Text,
    sequence: &mut dyn Sequence,
    mut work: impl FnMut(
        &mut dyn Sequence,
        std::ops::Range<usize>,
        &mut Cost,
    ) -> Result<(), String>,
    costs: &mut [Cost],
) -> (usize, Result<(), String>) {
    let started = Instant::now();
    let mut at = 0;
    for (index, (&(_, start, count), cost)) in
        text.stretches.iter().zip(costs).enumerate()
    {
        while at < start {
            if let Err(error) = sequence.accept(text.tokens[at]) {
                let error = error.lines().next().unwrap_or_default();
                return (index, Err(format!("token {at}: {error}")));
            }
            at += 1;
            if started.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                let why = format!("token {at} not reached in {seconds} s");
                return (index, Err(why));
            }
        }
        // Stretches do not overlap: a later one begins where this ends.
        let end = (start + count).max(at);
        let next = text.stretches.get(index + 1).map_or(end, |next| next.1);
        let end = end.min(next.max(at + 1));
        if let Err(error) = work(sequence, at..end, cost) {
            let error = error.lines().next().unwrap_or_default();
            return (index, Err(format!("tokens {at} to {end}: {error}")));
        }
        at = end;
    }
    (text.stretches.len(), Ok(()))
}

/// What a mask takes at a state that is known, made several times.
fn mask(
    sequence: &mut dyn Sequence,
    clock: &Clock,
    words: &mut [u32],
) -> Result<u64, String> {
    sequence.mask_into(words)?;
    let (result, span) = clock.time(|| {
        (0..REPEATS).try_for_each(|_| {
            sequence.forget_mask();
            sequence.mask_into(words)
        })
    });
    result.map(|()| span.cpu / u64::from(REPEATS))
}

/// How a time is read from a cost.
type Reading = fn(&Cost) -> u64;

/// What a row of the tables is about: its name and how it is read from a cost.
const FIGURES: [(&str, Reading); 2] =
    [("mask", |cost| cost.mask), ("accept", |cost| cost.accept)];

/// Prints the rows of one output.
fn print(table: &[Row]) {
    let longest = table.iter().max_by_key(|row| row.points.len());
    let Some(longest) = longest else { return };
    let places: Vec<usize> =
        longest.points.iter().map(|(at, _)| *at).collect();
    let head: Vec<String> =
        places.iter().map(|at| grouped(&at.to_string())).collect();
    println!("\n| {} | {} | ratio |", longest.case, head.join(" | "));
    println!("|:--|{}", "--:|".repeat(places.len() + 1));
    for row in table {
        for (name, read) in FIGURES {
            let cells: Vec<String> = places
                .iter()
                .map(|at| row.at(*at, read).map_or("-".to_owned(), short))
                .collect();
            let ratio = row.ratio(read).map_or("-".to_owned(), short);
            let (engine, cells) = (row.engine, cells.join(" | "));
            println!("| {name}, {engine} | {cells} | {ratio} |");
        }
    }
    for row in table {
        if let Some(why) = &row.stopped {
            println!("\n{}: not read to the end, {why}", row.engine);
        }
    }
}

impl Row {
    /// The microseconds at a place that was measured.
    fn at(&self, place: usize, read: Reading) -> Option<f64> {
        let found = self.points.iter().find(|(at, _)| *at == place);
        found.map(|(_, cost)| micros(read(cost)))
    }

    /// The farthest place to the nearest one.
    fn ratio(&self, read: Reading) -> Option<f64> {
        let places = || self.points.iter().map(|(at, _)| *at);
        let near = self.at(places().min()?, read)?;
        let far = self.at(places().max()?, read)?;
        (near > 0.0 && self.stopped.is_none()).then(|| far / near)
    }

    fn value(&self) -> Value {
        let rounded = |ratio: Option<f64>| {
            ratio.map(|ratio| (ratio * 1000.0).round() / 1000.0)
        };
        let point = |(at, cost): &(usize, Cost)| {
            json!({
                "at": at,
                "mask_us": micros(cost.mask),
                "accept_us": micros(cost.accept),
            })
        };
        let points: Vec<Value> = self.points.iter().map(point).collect();
        json!({
            "case": self.case,
            "engine": self.engine,
            "points": points,
            "mask_ratio": rounded(self.ratio(FIGURES[0].1)),
            "accept_ratio": rounded(self.ratio(FIGURES[1].1)),
            "stopped": self.stopped,
        })
    }
}

/// The rows, and the worst ratios and times of ours.
fn summary(rows: &[Row]) -> Value {
    let ours = rows.iter().filter(|row| row.engine == "Maskwright");
    let (mut ratio, mut time) = ([0.0_f64; 2], [0_u64; 2]);
    let mut is_complete = true;
    for row in ours {
        is_complete &= row.stopped.is_none();
        for (index, (_, read)) in FIGURES.into_iter().enumerate() {
            ratio[index] = row.ratio(read).unwrap_or(0.0).max(ratio[index]);
            let costs = row.points.iter().map(|(_, cost)| read(cost));
            time[index] = costs.max().unwrap_or(0).max(time[index]);
        }
    }
    let rounded = |ratio: f64| (ratio * 1000.0).round() / 1000.0;
    let rows: Vec<Value> = rows.iter().map(Row::value).collect();
    json!({
        "max_mask_ratio": rounded(ratio[0]),
        "max_accept_ratio": rounded(ratio[1]),
        "max_mask_us": micros(time[0]),
        "max_accept_us": micros(time[1]),
        "all_read": is_complete,
        "rows": rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_lie_within_the_text_and_in_order() {
        let nested = Text::nested("", ANY, &[1, 2], &[3], &[4]);
        let records = Text::records("", ANY, &[1], &[2, 3, 4]);
        for text in [nested, records] {
            let mut at = 0;
            for (_, start, count) in text.stretches {
                assert!(start >= at, "{start} after {at}");
                assert!(start + count <= text.tokens.len());
                at = start;
            }
        }
    }
}
