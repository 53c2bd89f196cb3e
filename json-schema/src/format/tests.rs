//! Tables of texts that have a format and texts that have not.

use maskwright_grammar_core::regular::{Language, Limits};

use super::{
    Bound, KNOWN, PLAIN_HOSTNAME, holds, is_regular, language, name_in, since,
};
use crate::draft::Draft;

fn check(name: &str, accepted: &[&str], refused: &[&str]) {
    let [least, most] =
        [Bound::Least, Bound::Most].map(|bound| automaton(name, bound));
    for (texts, want) in [(accepted, true), (refused, false)] {
        for text in texts {
            assert_eq!(holds(name, text), Some(want), "{name}: {text:?}");
            let least = least.is_match(text).expect("under the limits");
            let most = most.is_match(text).expect("under the limits");
            assert!(least <= want && want <= most, "{name}: {text:?}");
        }
    }
}

fn automaton(name: &str, bound: Bound) -> Language {
    let regex = language(name, true, bound).expect("the format is known");
    Language::new(&regex, Limits::new()).expect("small")
}

#[test]
fn every_known_format_has_a_language() {
    for name in KNOWN {
        let has = holds(name, "\n").expect("it is in the table");
        assert_eq!(has, *name == "regex", "{name}");
        assert!(since(name).is_some(), "{name}");
    }
    assert!(holds("phone", "").is_none() && since("phone").is_none());
    assert!(is_regular("date") && !is_regular("regex"));
    assert_eq!(name_in("hostname", Draft::Draft6), PLAIN_HOSTNAME);
    assert_eq!(name_in("hostname", Draft::Draft7), "hostname");
}

#[test]
fn dates_are_those_of_the_calendar() {
    let language = automaton("date", Bound::Most);
    let divides = |y: u32, n| y.is_multiple_of(n);
    let is_leap = |y| divides(y, 4) && (!divides(y, 100) || divides(y, 400));
    for year in [0, 4, 96, 99, 100, 400, 1600, 1900, 2000, 2023, 2024, 9996] {
        for month in 0..=13 {
            let days = match month {
                4 | 6 | 9 | 11 => 30,
                2 if is_leap(year) => 29,
                2 => 28,
                1..=12 => 31,
                _ => 0,
            };
            for day in [0, 1, 9, 10, 19, 20, 28, 29, 30, 31, 32] {
                let text = format!("{year:04}-{month:02}-{day:02}");
                let got = language.is_match(&text).expect("in limits");
                assert_eq!(got, 1 <= day && day <= days, "{text}");
            }
        }
    }
    check("date", &[], &["2020-1-01", "20200101", "2020-01-01T00:00:00Z"]);
}

#[test]
fn leap_seconds_are_at_the_end_of_a_day_in_utc() {
    let language = automaton("time", Bound::Most);
    let day: i32 = 24 * 60;
    // Local times around the one that is right.
    for offset in (15 - day..day).step_by(15) {
        for wrong in [0, 1, -1, 60, -60, 600, -601] {
            let local = (day - 1 + offset + wrong).rem_euclid(day);
            let (sign, size) =
                (if offset < 0 { '-' } else { '+' }, offset.abs());
            let text = format!(
                "{:02}:{:02}:60{sign}{:02}:{:02}",
                local / 60,
                local % 60,
                size / 60,
                size % 60,
            );
            let got = language.is_match(&text).expect("in limits");
            assert_eq!(got, wrong == 0, "{text}");
        }
    }
}

#[test]
fn times() {
    check(
        "time",
        &["00:00:00Z", "23:59:60z", "08:30:06.283+05:30", "23:59:60.5-00:00"],
        &[
            "24:00:00Z",
            "08:30:06",
            "08:30:61Z",
            "8:30:06Z",
            "08:30:06+24:00",
            "08:30:06.Z",
            "23:58:60Z",
            "08:30Z",
            "08:30:06Z+00:00",
        ],
    );
    check(
        "date-time",
        &[
            "1963-06-19T08:30:06.283185Z",
            "2024-02-29t23:59:60+00:00",
            "1998-12-31T15:59:60.123-08:00",
        ],
        &[
            "2023-02-29T00:00:00Z",
            "1963-06-19 08:30:06Z",
            "1963-06-19",
            "1998-12-31T22:59:60Z",
        ],
    );
    check(
        "duration",
        &["P4DT12H30M5S", "P1Y2M3D", "PT36H", "P2W", "P1M", "PT1M", "P01D"],
        &[
            "", "P", "PT", "P1", "P1YT", "P2D1Y", "P1Y2D", "P1Y2W", "PT1H2S",
            "PT0.5S", "P2S", "-P1D", "1D",
        ],
    );
}

#[test]
fn mail() {
    let long = format!("{}@example.com", "a".repeat(64));
    let too_long = format!("{}@example.com", "a".repeat(65));
    check(
        "email",
        &[
            "joe.bloggs@example.com",
            "~te+st@h",
            "\"a @\\\" b\"@example.com",
            "a@[127.0.0.1]",
            "a@[ipv6:::1]",
            &long,
        ],
        &[
            "2962",
            ".a@b.c",
            "a.@b.c",
            "a..b@c",
            "a@",
            "@b",
            "a b@c",
            "a@b_c",
            "a@-b",
            "a@b.",
            "a@[127.0.0.300]",
            "a@[::1]",
            "\"a\"b@c",
            "\u{e9}@a",
            "a@[IPv6:1:2:3:4:5:6:7::]",
            &too_long,
        ],
    );
    check(
        "idn-email",
        &[
            "joe@example.com",
            "\u{3b4}@\u{c2e4}.\u{d14c}",
            "\"\u{3b4} x\"@example.com",
        ],
        &["2962", "user\u{ff20}example.com", "a@", "a@b..c"],
    );
}

#[test]
fn hosts() {
    let label = "a".repeat(63);
    let name = [&label[..], &label, &label, &label[..61]].join(".");
    let (long_label, long_name) = (format!("{label}a"), format!("{name}a"));
    let good =
        ["www.example.com", "h", "1host", "a--b.com", "A.B", &label, &name];
    let bad = [
        "",
        ".",
        ".a",
        "a.",
        "a..b",
        "-a",
        "a-",
        "a.-b",
        "a_b",
        "a b",
        "\u{e9}",
        &long_label,
        &long_name,
    ];
    check("hostname", &good, &bad);
    check("hostname", &[], &["xn--X", "ab--c", "a.ab--c.d"]);
    check(PLAIN_HOSTNAME, &good, &bad);
    check(PLAIN_HOSTNAME, &["xn--4gbwdl.xn--wgbh1c"], &[]);
    let short = &good[..5];
    check("idn-hostname", short, &["", ".", ".a", "a.", "a..b", "-a", "a-"]);
    check(
        "idn-hostname",
        &[
            "\u{c2e4}\u{b840}.\u{d14c}",
            "\u{df}\u{3c2}\u{f0b}\u{3007}",
            "l\u{b7}l",
            "\u{3b1}\u{375}\u{3b2}",
            "\u{5d0}\u{5f3}\u{5d1}",
            "\u{30fb}\u{3041}",
            "\u{628}\u{660}\u{628}",
            "\u{6f0}0",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "\u{628}\u{64a}\u{200c}\u{628}",
            "a\u{3002}b",
            "\u{ff}.\u{ff}",
            "\u{5d0}.\u{5d1}",
        ],
        &[
            "\u{302e}\u{c2e4}",
            "\u{c2e4}\u{302e}",
            "\u{300}a",
            "a\u{b7}l",
            "l\u{b7}",
            "\u{375}",
            "A\u{5f3}",
            "\u{30fb}",
            "a\u{30fb}b",
            "\u{628}\u{660}\u{6f0}",
            "\u{915}\u{200d}",
            "a\u{5d0}",
            "0a.\u{5d0}",
            "\u{5d0}0\u{660}",
            "\u{640}",
            "\u{c4}",
            "a b",
            "ab--\u{e9}",
        ],
    );
    let encoded =
        ["xn--ihqwcrb4cv8a8dqg056pqjye", "a.xn--9n2bp8q.XN--9t4b11yi5a"];
    for name in ["hostname", "idn-hostname"] {
        check(
            name,
            &encoded,
            &["xn--X", "xn--a", "xn--", "xn--07jt112bpxg.b"],
        );
    }
    // In normalization form C, and as long as Punycode allows.
    let (most, far) = ("\u{e9}".repeat(57), "\u{e9}\u{4e00}".repeat(28));
    let refused = ["e\u{301}", &format!("{most}\u{e9}"), &far];
    check("idn-hostname", &["\u{e9}", &most], &refused);
}

#[test]
fn addresses() {
    check(
        "ipv4",
        &["0.0.0.0", "255.255.255.255", "10.20.30.40", "249.250.99.100"],
        &[
            "",
            "1.2.3",
            "1.2.3.4.5",
            "256.1.1.1",
            "01.2.3.4",
            "1.2.3.4 ",
            "1..2.3",
            "0x1.2.3.4",
            "1.2.3.\u{966}",
        ],
    );
    check(
        "ipv6",
        &[
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1:2:3::5:6:7:8",
            "::ffff:192.168.0.1",
            "1:2:3:4:5:6:1.2.3.4",
            "::1.2.3.4",
            "1:2:3:4:5::1.2.3.4",
            "ABCD:0ef:1::",
        ],
        &[
            "",
            ":",
            ":::",
            "1",
            "1::2::3",
            "12345::",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1:2:3:4:5:6:7:8::",
            "1:2:3:4::5:6:7:8",
            "::1%eth0",
            "1:2:3:4:5:6:7:1.2.3.4",
            "::1.2.3",
            "g::",
            ":1::",
            "1:2:3:4:5:6::1.2.3.4",
            "::1.2.3.04",
        ],
    );
}

#[test]
fn resources() {
    let uris = [
        "http://foo.bar/?baz=qux#quux",
        "urn:a:b",
        "a:",
        "file:///x",
        "http://u:p@[2001:db8::7]:80/c?d?e/#/?",
        "http://[v1.a:b]",
        "mailto:a@b.c",
        "http://a:/%20",
        "x:/",
        "x://",
        "x:///",
        "http://999.1.1.1/",
        "a+b-c.1:?",
    ];
    check(
        "uri",
        &uris,
        &[
            "",
            "//a",
            "/a",
            "a",
            ":a",
            "1a:b",
            "a_b:c",
            "http://a b",
            "http://[::1",
            "http://[::1%25a]",
            "http://a:b/",
            "x:/[a]",
            "http://a/%6G",
            "http://a/%",
            "http://a/\\",
            "http://a/#b#c",
            "http://\u{e9}",
            "http://a@b@c",
            "x:<",
            "x:{",
            "x:^",
            "x:|",
        ],
    );
    check("uri-reference", &uris, &["\\a", "1:b", "%", "[a]", "a#b#c", ":"]);
    check(
        "uri-reference",
        &["", "a", "/", "//", "//a/b", "/a//b", "?q", "#f", "./a:b", "a/b:c"],
        &["\u{e9}", "//a:b", "a:b\n"],
    );
    check("iri", &uris, &["", "/a", "\u{e9}", "http://\u{e000}/"]);
    check(
        "iri",
        &["http://\u{e9}.\u{df}/\u{2202}?\u{e000}#\u{3c0}", "x:\u{10300}"],
        &["\u{e9}:a", "x:\u{7f}", "x:\u{fffe}", "x:#\u{e000}"],
    );
    check("iri-reference", &uris, &["\u{e9}:a", "\\"]);
    check("iri-reference", &["", "\u{e9}", "#\u{e9}", "//\u{e9}/"], &[]);
}

#[test]
fn templates() {
    check(
        "uri-template",
        &[
            "",
            "http://a/{b:1}/{c}",
            "{+a,b*}",
            "{#a.b}",
            "{?x_1,%41}",
            "a'b",
            "a%41",
            "\u{1f600}",
            "{v:9999}",
        ],
        &[
            "{",
            "}",
            "{}",
            "{a",
            "{a,,b}",
            "{v:0}",
            "{v:10000}",
            "{a..b}",
            "a b",
            "%4",
            "{a,}",
            "{a=b}",
            "{,+a}",
            "{{a}}",
            "<",
            "{a*:1}",
        ],
    );
}

#[test]
fn pointers_and_identifiers() {
    check(
        "json-pointer",
        &["", "/", "/a/~0b/~1", "//", "/\u{1f60e}", "/\n", "/\""],
        &["a", "#", "#/a", "/~", "/~2", "/a~"],
    );
    check(
        "relative-json-pointer",
        &["0", "1", "10#", "120/a/~0", "0//"],
        &["", "/a", "-1", "+1", "01", "0##", "1#/a", "0/~", "0a"],
    );
    let uuid = "2eb8aa08-AA98-11ea-b4aa-73b441d16380";
    check(
        "uuid",
        &[uuid, "00000000-0000-0000-0000-000000000000"],
        &[
            "",
            &uuid[1..],
            &uuid.replace('-', ""),
            &format!("{uuid}0"),
            &uuid.replace('e', "g"),
            "2eb8-aa08-aa98-11ea-b4aa73b44-1d16380",
        ],
    );
}

#[test]
fn patterns() {
    let good = [
        "",
        "abc",
        "^[a-zA-Z0-9_]{3,16}$",
        r"(?<n>a)\k<n>",
        "(?<=a+)b",
        r"((((((((((a))))))))))*?",
        r"\p{L}\P{Lu}\p{Script=Greek}",
        r"[\]\-a-z]|\u{1F600}\0\x41\u00e9\cA",
        "a{0,0}b{2,10}c{99,100}?",
        "[]|[^]",
        r"\1(a)",
        "\n",
        r"[--/][+--][---][a-][\--z][\d-][-\d-]",
        r"[!-~][\]-a][\.-\/][\0-\x1F][\t-\n][\x41-Z][A-\x5a]",
        r"[\uD83D\uDE00-\uD83D\uDE4F][\uD83D\uDE00-]?",
        "[\u{e0}-\u{ff}\u{430}-\u{44f}\u{4e00}-\u{9fa5}]",
        "a{0,00}b{007,12}c{123,124}d{1,99999999999999999999}",
        r"\0",
        r"[\0]\0a",
        r"\p{gc=Lu}\p{Cs}\p{Script_Extensions=Grek}",
    ];
    let bad = [
        "*",
        "\\",
        "^(abc]",
        "(",
        "a)",
        "[a",
        "(((((((((a)))))))",
        r"\a",
        "(?P<name>x)",
        "(?#comment)a",
        "(?i)abc",
        "a**",
        "^*",
        "(?=a)*",
        "a{2,1}",
        "{",
        "a{,2}",
        "]",
        "[z-a]",
        r"[\d-z]",
        r"\1",
        "(?<n>a)(?<n>b)",
        r"\p{Foo}",
        r"\00",
        r"\-",
        "[a--]",
        r"[\uD83D\uDE00--]",
        "[--+]",
        r"[a-\d]",
        r"[\\-\[]",
        r"[a-\t]",
        r"[\x62-a]",
        r"[\xe9-\xe0]",
        r"[\u{1F600}-\uD83D]",
        "[\u{44f}-\u{430}]",
        "[\u{e9}-a]",
        "a{124,123}",
        "a{13,12}",
        "a{012,3}",
        "a{4294967295}",
        r"[\01]",
        r"\p{Script=greek}",
        r"\p{lu}",
    ];
    check("regex", &good, &bad);
}
