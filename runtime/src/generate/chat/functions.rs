//! What chat templates may call, as the models' own library offers it.

use std::fmt;
use std::time::SystemTime;

use minijinja::value::Kwargs;
use minijinja::{Environment, ErrorKind, Value};
use serde::Serialize;

/// How far a block may be indented.
const MAX_INDENT: usize = 64;

/// How many numbers a range may have.
const MAX_RANGE: usize = 10_000;

/// Adds all of them.
pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_function("range", range);
    environment.add_filter("tojson", to_json);
    environment.add_filter("indent", indent);
}

/// The words with which a template refuses messages.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

fn invalid(what: impl Into<String>) -> minijinja::Error {
    minijinja::Error::new(ErrorKind::InvalidOperation, what.into())
}

/// What templates call to refuse messages.
fn raise_exception(message: String) -> Result<String, minijinja::Error> {
    Err(invalid(message.clone()).with_source(Refusal(message)))
}

/// The engine's own range, with a bound that keeps loops in loops short.
fn range(
    lower: i64,
    upper: Option<i64>,
    step: Option<i64>,
) -> Result<Vec<i64>, minijinja::Error> {
    let (lower, upper) = upper.map_or((0, lower), |upper| (lower, upper));
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(invalid("range with steps of zero"));
    }
    let goes_on = |n: i64| if step > 0 { n < upper } else { n > upper };
    let mut numbers = Vec::new();
    let mut next = Some(lower);
    while let Some(number) = next.filter(|number| goes_on(*number)) {
        if numbers.len() == MAX_RANGE {
            return Err(invalid(format!(
                "range of more than {MAX_RANGE} numbers"
            )));
        }
        numbers.push(number);
        next = number.checked_add(step);
    }
    Ok(numbers)
}

/// Indents all lines but the first, and those without text.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that the template engine calls"
)]
fn indent(
    text: &str,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<String, minijinja::Error> {
    let width = match width {
        Some(width) => width,
        None => options.get::<Option<usize>>("width")?.unwrap_or(4),
    };
    let first = match first {
        Some(first) => first,
        None => options.get::<Option<bool>>("first")?.unwrap_or(false),
    };
    let blank = match blank {
        Some(blank) => blank,
        None => options.get::<Option<bool>>("blank")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    if width > MAX_INDENT {
        return Err(invalid(format!(
            "indent of {width} spaces, more than {MAX_INDENT}"
        )));
    }
    let space = " ".repeat(width);
    let lines: Vec<String> = text
        .split('\n')
        .enumerate()
        .map(|(index, line)| {
            let is_indented =
                if index == 0 { first } else { blank || !line.is_empty() };
            let space = if is_indented { space.as_str() } else { "" };
            format!("{space}{line}")
        })
        .collect();
    Ok(lines.join("\n"))
}

/// JSON as Python writes it: separators with spaces, and nothing escaped for
/// HTML.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that the template engine calls"
)]
fn to_json(value: Value, options: Kwargs) -> Result<String, minijinja::Error> {
    let width: Option<usize> = options.get("indent")?;
    let escapes: Option<bool> = options.get("ensure_ascii")?;
    let sorts: Option<bool> = options.get("sort_keys")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    options.assert_all_used()?;
    if width.is_some_and(|width| width > MAX_INDENT) {
        return Err(invalid(format!(
            "tojson with an indent of more than {MAX_INDENT}"
        )));
    }
    let comma = if width.is_some() { "," } else { ", " };
    let separators =
        separators.unwrap_or_else(|| vec![comma.to_owned(), ": ".to_owned()]);
    let [item, key] = separators.try_into().map_err(|_| {
        invalid("tojson wants two separators, of items and of keys")
    })?;
    let mut value = serde_json::to_value(&value).map_err(unserializable)?;
    if sorts == Some(true) {
        value.sort_all_objects();
    }
    let format = Format {
        indent: width.map(|width| " ".repeat(width)),
        item,
        key,
        escapes: escapes == Some(true),
        depth: 0,
        has_value: false,
    };
    let mut out = Vec::new();
    value
        .serialize(&mut serde_json::Serializer::with_formatter(
            &mut out, format,
        ))
        .map_err(unserializable)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers hand over what they were given"
)]
fn unserializable(error: serde_json::Error) -> minijinja::Error {
    minijinja::Error::new(ErrorKind::BadSerialization, error.to_string())
}

/// How JSON is laid out.
struct Format {
    /// What stands before a line, once for each level; on one line without.
    indent: Option<String>,
    item: String,
    key: String,
    escapes: bool,
    depth: usize,
    has_value: bool,
}

impl Format {
    fn new_line<W: ?Sized + std::io::Write>(
        &self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        if let Some(indent) = &self.indent {
            writer.write_all(b"\n")?;
            for _ in 0..self.depth {
                writer.write_all(indent.as_bytes())?;
            }
        }
        Ok(())
    }

    fn begin<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        bracket: &[u8],
    ) -> std::io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        writer.write_all(bracket)
    }

    fn end<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        bracket: &[u8],
    ) -> std::io::Result<()> {
        self.depth -= 1;
        if self.has_value {
            self.new_line(writer)?;
        }
        self.has_value = true;
        writer.write_all(bracket)
    }

    fn next<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if !first {
            writer.write_all(self.item.as_bytes())?;
        }
        self.has_value = true;
        self.new_line(writer)
    }
}

impl serde_json::ser::Formatter for Format {
    fn begin_array<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.next(writer, first)
    }

    fn begin_object<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.next(writer, first)
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        writer.write_all(self.key.as_bytes())
    }

    fn write_string_fragment<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> std::io::Result<()> {
        if !self.escapes {
            return writer.write_all(fragment.as_bytes());
        }
        for unit in fragment.encode_utf16() {
            match u8::try_from(unit).ok().filter(u8::is_ascii) {
                Some(byte) => writer.write_all(&[byte])?,
                None => write!(writer, "\\u{unit:04x}")?,
            }
        }
        Ok(())
    }
}

/// The time, in Coordinated Universal Time: where the machine stands is no
/// affair of a prompt.
fn strftime_now(format: &str) -> Result<String, minijinja::Error> {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_err(|error| invalid(error.to_string()))?;
    strftime(format, now.as_secs())
}

/// Writes a time, given in seconds since 1970.
pub(super) fn strftime(
    format: &str,
    seconds: u64,
) -> Result<String, minijinja::Error> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    const DAYS: [&str; 7] = [
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
        "Monday",
        "Tuesday",
        "Wednesday",
    ];
    let name = |names: &[&'static str], index: u64| -> &'static str {
        usize::try_from(index)
            .ok()
            .and_then(|index| names.get(index).copied())
            .unwrap_or_default()
    };
    let short = |name: &'static str| name.get(..3).unwrap_or(name);
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    let (year, month, day_of_month, day_of_year) = date(day);
    let month_name = name(&MONTHS, month - 1);
    let day_name = name(&DAYS, day % 7);
    let hour_of_12 = (hour + 11) % 12 + 1;
    let half = if hour < 12 { "AM" } else { "PM" };
    let mut out = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let part = match characters.next() {
            Some('Y') => format!("{year}"),
            Some('y') => format!("{:02}", year % 100),
            Some('m') => format!("{month:02}"),
            Some('B') => month_name.to_owned(),
            Some('b' | 'h') => short(month_name).to_owned(),
            Some('d') => format!("{day_of_month:02}"),
            Some('e') => format!("{day_of_month:2}"),
            Some('j') => format!("{day_of_year:03}"),
            Some('A') => day_name.to_owned(),
            Some('a') => short(day_name).to_owned(),
            Some('H') => format!("{hour:02}"),
            Some('I') => format!("{hour_of_12:02}"),
            Some('p') => half.to_owned(),
            Some('M') => format!("{minute:02}"),
            Some('S') => format!("{:02}", second % 60),
            Some('F') => format!("{year}-{month:02}-{day_of_month:02}"),
            Some('T') => format!("{hour:02}:{minute:02}:{:02}", second % 60),
            Some('Z') => "UTC".to_owned(),
            Some('z') => "+0000".to_owned(),
            Some('%') => "%".to_owned(),
            other => {
                let other = other.map(String::from).unwrap_or_default();
                return Err(invalid(format!(
                    "strftime_now does not know %{other}"
                )));
            }
        };
        out.push_str(&part);
    }
    Ok(out)
}

/// Returns year, month, day of the month and day of the year, all but the
/// year from one, of a day since 1970.
fn date(mut day: u64) -> (u64, u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4)
            && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // A cycle of the calendar; then there are few years to count.
    let mut year = 1970 + 400 * (day / 146_097);
    day %= 146_097;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let day_of_year = day + 1;
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for n_days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < n_days {
            break;
        }
        day -= n_days;
        month += 1;
    }
    (year, month, day + 1, day_of_year)
}
