//! `date`, `time`, `date-time` (RFC 3339) and `duration` (its appendix A).
//!
//! The calendar and the leap second are arithmetic on digits: a year is a
//! leap year by its last two digits, or by its first two where the last are
//! zeros; second 60 is 23:59:60 in UTC, so the local time and the offset
//! determine each other.

use maskwright_grammar_core::regular::Regex;

use super::pattern;

/// `full-date` of RFC 3339, in the Gregorian calendar.
pub(super) fn date() -> Regex {
    let divisible_by_4 = "[02468][048]|[13579][26]";
    let not_a_century = "0[48]|[2468][048]|[13579][26]";
    pattern(&format!(
        "[0-9]{{4}}-(?:\
           (?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|\
           (?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|\
           02-(?:0[1-9]|1[0-9]|2[0-8]))|\
         (?:[0-9]{{2}}(?:{not_a_century})|(?:{divisible_by_4})00)-02-29"
    ))
}

/// `full-time` of RFC 3339.
pub(super) fn time() -> Regex {
    let hour = "(?:[01][0-9]|2[0-3])";
    let usual = pattern(&format!(
        "{hour}:[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?\
         (?:[Zz]|[+-]{hour}:[0-5][0-9])"
    ));
    usual.or(&leap_second())
}

/// `date-time` of RFC 3339.
pub(super) fn date_time() -> Regex {
    Regex::concat(&[date(), pattern("[Tt]"), time()])
}

/// Times with second 60, which are 23:59:60 in UTC, for offsets of whole
/// quarters of an hour.
///
/// Other offsets would do as well, but no clock has one, and to remember
/// which of 1,440 times of day was read takes 13,000 states.
fn leap_second() -> Regex {
    // Local time is UTC plus the offset: one minute less than a positive
    // offset, and the complement of a negative one. Hours and minutes are
    // told apart by intersecting.
    let hours: Vec<u32> = (0..24).collect();
    let ahead_on_the_hour = every(&hours, |hour| {
        let before = (hour + 23) % 24;
        format!("{before:02}:59:60F\\+{hour:02}:00")
    });
    let ahead_hours = every(&hours, |hour| {
        format!("{hour:02}:[0-9]{{2}}:60F\\+{hour:02}:[0-9]{{2}}")
    });
    let ahead_minutes = every(&[14, 29, 44], |minute| {
        let after = minute + 1;
        format!("[0-9]{{2}}:{minute:02}:60F\\+[0-9]{{2}}:{after:02}")
    });
    let behind_hours = every(&hours, |hour| {
        let offset = 23 - hour;
        format!("{hour:02}:[0-9]{{2}}:60F-{offset:02}:[0-9]{{2}}")
    });
    let behind_minutes = every(&[14, 29, 44, 59], |minute| {
        let offset = 59 - minute;
        format!("[0-9]{{2}}:{minute:02}:60F-[0-9]{{2}}:{offset:02}")
    });
    Regex::alternate(&[
        pattern("23:59:60(?:\\.[0-9]+)?[Zz]"),
        ahead_on_the_hour,
        ahead_hours.and(&ahead_minutes),
        behind_hours.and(&behind_minutes),
    ])
}

/// One of the patterns for each of some numbers, with `F` for a fraction.
fn every(numbers: &[u32], one: impl Fn(u32) -> String) -> Regex {
    let all: Vec<String> = numbers.iter().map(|&n| one(n)).collect();
    pattern(&all.join("|").replace('F', "(?:\\.[0-9]+)?"))
}

/// `duration` of RFC 3339, appendix A: units follow each other without
/// gaps, and weeks stand alone.
pub(super) fn duration() -> Regex {
    let time = "T(?:\
        [0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
    let date = "(?:\
        [0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
    pattern(&format!("P(?:{date}(?:{time})?|{time}|[0-9]+W)"))
}
