//! Grammars with texts that they accept and refuse, mistakes with their
//! places, and the round trip through the printer.

use std::{fmt::Write as _, sync::Arc, time::Instant};

use maskwright_grammar_core::automaton::{
    AtomToken, Automaton, Configuration, Machine, Recognizer, StackLimits,
    Symbol,
};

use super::*;

fn machine(text: &str) -> Arc<dyn Automaton> {
    match compile(text, "root") {
        Ok((machine, _)) => machine,
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn accepts(machine: &Arc<dyn Automaton>, text: &str) -> bool {
    let mut recognizer =
        Recognizer::new(Arc::clone(machine)).expect("within limits");
    for &byte in text.as_bytes() {
        if !recognizer.push_byte(byte).expect("within limits") {
            return false;
        }
    }
    recognizer.is_accepting().expect("within limits")
}

fn check(text: &str, accepted: &[&str], refused: &[&str]) {
    let machine = machine(text);
    for sample in accepted {
        assert!(accepts(&machine, sample), "refuses {sample:?}\n{text}");
    }
    for sample in refused {
        assert!(!accepts(&machine, sample), "accepts {sample:?}\n{text}");
    }
    // What is printed parses to the same tree.
    let ast = parse(text).expect("it compiled");
    let printed = ast.to_string();
    let again = parse(&printed).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again, ast, "{printed}");
    assert_eq!(again.to_string(), printed);
}

fn error(text: &str) -> GbnfError {
    match compile(text, "root") {
        Ok(_) => panic!("compiles: {text}"),
        Err(error) => error,
    }
}

#[track_caller]
fn fails(text: &str, line: usize, column: usize, message: &str) {
    let error = error(text);
    assert_eq!((error.line(), error.column()), (line, column), "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn lines_blanks_and_comments() {
    check(
        "root ::= a\n  | b\na ::= \"x\"\nb ::= \"y\"\n",
        &["x", "y"],
        &["xy"],
    );
    check(
        "# top\n\nroot ::=\n\n  \"x\" # end\n# more\n  | \"y\"",
        &["x", "y"],
        &[],
    );
    check(
        "root ::= \"x\" |\r\n \"y\"\r\n\r\nb::=\"z\"\r",
        &["x", "y"],
        &["z"],
    );
    check("root ::= (\"x\" # inside\n\t\"y\"\n){2}\n", &["xyxy"], &["xy"]);
    check("\u{FEFF}root ::= \"x\"", &["x"], &[]);
    check("root ::= \"a\nb\"", &["a\nb"], &["ab"]);
    check("root ::= a_b-1 \"\"\na_b-1 ::= \"x\" \"\" | ", &["x", ""], &["xx"]);
}

#[test]
fn terminals() {
    check(
        r#"root ::= "\x41\u00e9\U0001F600\t\r\n\\\"\[\]\-\^""#,
        &["A\u{e9}\u{1F600}\t\r\n\\\"[]-^"],
        &["A"],
    );
    check("root ::= [a-c-9^]", &["a", "c", "-", "9", "^"], &["d", "5", ""]);
    check("root ::= [-a] [a-] [^-]", &["--b", "aa\u{e9}"], &["b--", "---"]);
    check(r"root ::= [\]\[^\x30-\x32]+", &["][^012"], &["3", "\\"]);
    check("root ::= [^\"\\\\]*", &["", "ab\u{20AC}\n"], &["\"", "\\"]);
    check("root ::= .{2}", &["ab", "\n\u{10FFFF}"], &["a", "abc"]);
    check("root ::= [\u{3041}-\u{3096}]+", &["\u{3042}\u{3044}"], &["a"]);
    // Half a character is a prefix, but a wrong second half is not.
    let machine = machine("root ::= [\u{e9}\u{ea}]");
    let mut recognizer = Recognizer::new(machine).expect("small");
    assert!(recognizer.push_byte(0xC3).expect("small"));
    assert!(!recognizer.push_byte(0xA8).expect("small"));
    assert!(recognizer.push_byte(0xAA).expect("small"));
}

#[test]
fn operators() {
    check("root ::= \"a\"+? \"bc\"{2}", &["bcbc", "aabcbc"], &["bc", "abcc"]);
    check("root ::= [a-z]{2,}", &["ab", "abcd"], &["a"]);
    check("root ::= \"a\"{,2} \"b\"{ 1 , 2 }", &["b", "aabb"], &["aaab", "a"]);
    check("root ::= (\"a\"*)*", &["", "aaaa"], &["b", "ab"]);
    check("root ::= ()* \"x\"{0}", &[""], &["x"]);
    check("root ::= (\"a\" | ) (| \"b\")", &["", "ab", "a", "b"], &["ba"]);
}

#[test]
fn recursion_of_every_kind() {
    check("root ::= root \"a\" | \"b\"", &["b", "baaa"], &["a", "ab", ""]);
    check(
        "root ::= ws root \"y\" | \"z\"\nws ::= \" \"*",
        &["z", "zy", " zy", "  zyy", "      zy"],
        &["y", "zz", " z", "zy "],
    );
    check(
        "root ::= \"a\" root ws | \"b\" ws\nws ::= \" \"*",
        &["b", "ab", "aaab   ", "b  "],
        &[" b", "a", "ab a"],
    );
    check(
        "root ::= a\na ::= \"a\" b | a \"x\" | \"c\"\n\
         b ::= \"b\" a | b \"y\" | \"d\"",
        &["c", "ad", "abc", "abcxyx", "cx", "adyx"],
        &["abcxyxy", "cy", "adxy", "ac"],
    );
    check(
        "root ::= \"b\" root \"b\" | l | \"a\"\nl ::= root l | l root | \"b\"",
        &["a", "b", "ab", "ba", "bab", "aab"],
        &["aa", "aaa"],
    );
    check(
        "root ::= l \"a\" | \"b\" \"a\"\nl ::= root root | \"b\"",
        &["ba", "babaa", "babaabaa"],
        &["b", "baba", "bb", "baa"],
    );
    check(
        "root ::= s \".\"\ns ::= s s | t\nt ::= \"a\" | \"(\" s \")\"",
        &["a.", "aa.", "a(aa)a."],
        &[".", "().", "a"],
    );
    check("root ::= e e\ne ::= \"\"", &[""], &["a"]);
    check(
        "root ::= e root \"a\" | \"b\" e\ne ::= \"\" | e e",
        &["b", "ba", "baaa"],
        &["", "a", "ab"],
    );
    check(
        "root ::= a* b?\na ::= b a b | \"a\"\nb ::= \"b\"?",
        &["", "a", "ba", "bab", "b", "abab", "bbaa", "abba"],
        &["bb", "c"],
    );
    check("root ::= \"b\"\nx ::= root*", &["b"], &["bb", ""]);
    check("root ::= root | \"x\" | (\"\" | root \"\")", &["x", ""], &["xx"]);
}

#[test]
fn ambiguity() {
    check(
        "root ::= (l | \"b\" | \"a\") l?\nl ::= (\"a\" root root)+",
        &["a", "b", "aab", "aabb", "aabab"],
        &["bb", "aa", "bab"],
    );
    check(
        "root ::= y \".\" | z \".\"\n\
         y ::= (\"f\" | \"d\" | \"e\"+) y \"x\" | (\"f\" | \"e\"+) z \"w\" | \"q\"\n\
         z ::= (\"f\" | \"d\" | \"e\"+) y \"x\" | (\"f\" | \"e\"+) z \"w\" | \"q\"",
        &["q.", "fqx.", "fqw.", "dqx.", "eeqxw.", "eeqx.", "fdqxw."],
        &["dqw.", "fqxx.", "q", "ffq."],
    );
    check(
        "root ::= r0\nr0 ::= a0 | b0\na0 ::= r1 \"x\"\nb0 ::= r1 \"y\"\n\
         r1 ::= a1 | b1\na1 ::= r2 \"x\"\nb1 ::= r2 \"y\"\nr2 ::= \"z\"",
        &["zxx", "zxy", "zyx", "zyy"],
        &["z", "zx", "zxxx"],
    );
    check(
        "root ::= feat\nfeat ::= ref (\"\\n\" \"\\t\"+ grp)?\n\
         grp ::= (\"or \" | \"opt \") (\"\\n\" \"\\t\"+ feat)+\n\
         ref ::= [a-z] [a-z0-9]*",
        &["car\n\tor \n\t\teng"],
        &["car\n\tand "],
    );
    check(
        "root ::= w+ (\" \" w+)*\nw ::= [a-z]",
        &["ab cd", "a"],
        &["ab ", " a"],
    );
}

#[test]
fn json() {
    check(
        r#"
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
"#,
        &[
            "{}",
            "{\"a\": [1, -2.5e+3, \"\\u00e9\\n\", {}], \"b\": null}",
            "{\n    \"a\":\n\t{\n\"\": true}}",
        ],
        &["", "[]", "{\"a\"}", "{\"a\":01}", "{\"a\":1,}", "{\"a\":\"\n\"}"],
    );
}

#[test]
fn arithmetic() {
    check(
        "root ::= (expr \"=\" ws term \"\\n\")+\n\
         expr ::= term ([-+*/] term)*\n\
         term ::= ident | num | \"(\" ws expr \")\" ws\n\
         ident ::= [a-z] [a-z0-9_]* ws\n\
         num ::= [0-9]+ ws\n\
         ws ::= [ \\t\\n]*",
        &["1+2=x\n", "(a_1 +(2*3)) -4 = 5\n1=1\n"],
        &["1+=2\n", "(1=1\n", "1=1"],
    );
}

#[test]
fn counters() {
    let long = |n: usize| "z".repeat(n);
    let text = "root ::= \"z\"{0,2001}";
    check(text, &["", &long(7), &long(2001)], &[&long(2002), "a"]);
    check(
        "root ::= [a-z\u{e9}]{300,900} \"!\"",
        &[&(long(300) + "!"), &("\u{e9}".repeat(900) + "!")],
        &[&(long(299) + "!"), &(long(901) + "!"), &long(500)],
    );
    check(
        "root ::= (\"z\" | \"zz\"){100,}",
        &[&long(100), &long(199)],
        &[&long(99)],
    );
    check(
        "root ::= ((\"a\" \"b\"?){2,3} \",\"){100,1000000000}",
        &[&"aab,".repeat(100), &"abaab,".repeat(700)],
        &[&"aab,".repeat(99), &"a,".repeat(200)],
    );
    check(
        "root ::= ((\"z\"{30}){30}){2}",
        &[&long(1800)],
        &[&long(1799), &long(1801)],
    );
    check(
        "root ::= r{70} \".\"\nr ::= \"(\" r? \")\" | r \"x\"",
        &[&("(())x".repeat(70) + "."), &("()".repeat(70) + ".")],
        &[&("()".repeat(69) + "."), &("()".repeat(71) + ".")],
    );
    let start = Instant::now();
    let machine =
        machine("root ::= (((\"a\"{900}){900}){900}) [b]{4000000000}");
    assert!(machine.row(machine.start()).is_ok());
    assert!(start.elapsed().as_millis() < 1000, "not counted");
}

#[test]
fn tokens() {
    let machine =
        machine("root ::= <[12]> \"a\" !<think> (<think> | \"b\"){100}");
    let limits = StackLimits::default();
    let run = Machine::new(&*machine);
    let read = |from: &Configuration, symbol| {
        from.step(run, limits, symbol).expect("within limits")
    };
    let mut at = Configuration::start(run, limits).expect("small");
    assert!(read(&at, Symbol::Byte(b'<')).is_dead());
    let atoms = machine.atoms().to_vec();
    let token = |id: u32, text: &str| {
        let atoms = atoms.clone();
        let text = text.to_owned();
        move |_, atom: maskwright_grammar_core::automaton::AtomId| {
            let atom = &atoms[atom.0 as usize];
            let is_same = match &atom.token {
                AtomToken::Id(wanted) => *wanted == id,
                AtomToken::Text(wanted) => *wanted == text,
            };
            is_same != atom.negated
        }
    };
    let (twelve, think, other) =
        (token(12, "x"), token(1, "<think>"), token(2, "y"));
    assert!(read(&at, Symbol::Token(&think)).is_dead());
    at = read(&at, Symbol::Token(&twelve));
    at = read(&at, Symbol::Byte(b'a'));
    assert!(read(&at, Symbol::Token(&think)).is_dead());
    at = read(&at, Symbol::Token(&other));
    for i in 0..100 {
        assert!(!at.is_accepting(run, limits).expect("small"), "{i}");
        at = if i % 3 == 0 {
            read(&at, Symbol::Byte(b'b'))
        } else {
            read(&at, Symbol::Token(&think))
        };
    }
    assert!(at.is_accepting(run, limits).expect("small"));
    assert!(read(&at, Symbol::Token(&think)).is_dead());
    assert!(matches!(atoms[0].token, AtomToken::Id(12)));
    let text = "root ::= <[12]> !<[3]> <a b> !<think>\n";
    assert_eq!(parse(text).expect("good").to_string(), text);
}

#[test]
fn errors_have_places() {
    fails("root ::= foo\nfob ::= \"x\"", 1, 10, "did you mean `fob`?");
    fails(
        "root ::= \"a\"\n root ::= \"b\"",
        2,
        2,
        "first at line 1, column 1",
    );
    fails("root ::= \"\u{e9}\" *\n  \"x\"", 2, 3, "expected a rule");
    fails("root ::= \"\u{e9}\" [z-a]", 1, 15, "write `a-z`");
    fails("root ::= []", 1, 10, "empty");
    fails("root ::= [^]", 1, 10, "empty");
    fails("root ::= [a", 1, 10, "never ends");
    fails("root ::= \"a", 1, 10, "never ends");
    fails("root ::= (\n\"a\"", 1, 10, "never ends");
    fails("root ::= \"a\")", 1, 13, "without its `(`");
    fails("root ::= * \"a\"", 1, 10, "nothing to repeat");
    fails("root ::= \"\"*", 1, 12, "cannot be repeated");
    fails("root ::= \"a\"{9,1}", 1, 13, "write {1,9}");
    fails("root ::= \"a\"{5,0}", 1, 13, "at least 5 and at most 0");
    fails("root ::= \"a\"{}", 1, 13, "expected `{m}`");
    fails("root ::= \"a\"{99999999999}", 1, 14, "larger than the limit");
    fails("root ::= \"\\UFFFFFFFF\"", 1, 11, "past the last code point");
    fails("root ::= \"\\uD800\"", 1, 11, "surrogate");
    fails("root ::= \"a\\d\"", 1, 12, "write `[0-9]`");
    fails("root ::= \"\\x4\"", 1, 11, "needs 2 hexadecimal digits");
    fails("root ::= <[4294967296]>", 1, 12, "larger than the limit");
    fails("root ::= !\"a\"", 1, 10, "before a token only");
    fails("root ::= <a", 1, 10, "on one line");
    fails("root ::= 'a'", 1, 10, "double quotes");
    fails("root = \"a\"", 1, 6, "defined with `::=`");
    fails("root ::=\na ::= \"x\"", 2, 3, "a line of its own");
    fails("root ::= (\"x\"\na ::= \"x\"", 2, 3, "line 1, column 10");
    fails("root ::= a\na ::= \"x\" a", 2, 1, "derives nothing");
    fails("root ::= [^\\x00-\\U0010FFFF]", 1, 10, "excludes every");
    fails("a ::= \"x\"\nb ::= \"y\"", 1, 1, "has `a`, `b`");
    fails("", 1, 1, "no rules");
    let error = error("root ::= \"x\" nme\nname ::= \"n\"\n");
    let shown = "line 1, column 14: undefined rule `nme`; did you mean \
                 `name`?\n  |\n1 | root ::= \"x\" nme\n  |              ^^^";
    assert_eq!(error.to_string(), shown);
}

#[test]
fn unused_rules_are_warned_of() {
    let text = "root ::= a\na ::= \"x\"\n b ::= c\nc ::= b | \"y\"";
    let (_, warnings) = compile(text, "root").expect("good");
    let shown: Vec<String> =
        warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "line 3, column 2: rule `b` is never used",
            "line 4, column 1: rule `c` is never used"
        ]
    );
    let (machine, warnings) = compile(text, "c").expect("good");
    assert_eq!(warnings.len(), 2);
    assert!(accepts(&machine, "y"));
}

#[test]
fn hostile_texts() {
    let deep =
        format!("root ::= {}\"a\"{}", "(".repeat(60_000), ")".repeat(60_000));
    let kind = error(&deep).kind().clone();
    assert_eq!(kind, GbnfErrorKind::NestingTooDeep { limit: MAX_DEPTH });
    let stacked = format!("root ::= \"a\"{}", "?".repeat(60_000));
    let kind = error(&stacked).kind().clone();
    assert_eq!(kind, GbnfErrorKind::NestingTooDeep { limit: MAX_DEPTH });
    let deep =
        format!("root ::= {}\"a\"{}", "(".repeat(900), "|)*".repeat(900));
    check(&deep, &["", "aaa"], &["b"]);

    for last in ["\"x\"", "r199999 \"x\" | \"y\""] {
        let mut chain = "root ::= r0\n".to_owned();
        for i in 0..199_999 {
            writeln!(chain, "r{i} ::= r{}", i + 1).expect("a string");
        }
        chain += "r199999 ::= ";
        chain += last;
        let machine = machine(&chain);
        assert!(accepts(&machine, &last[last.len() - 2..last.len() - 1]));
    }
    let mut doubled = "root ::= r0\n".to_owned();
    for i in 0..40 {
        let next = i + 1;
        writeln!(doubled, "r{i} ::= r{next} | r{next}").expect("a string");
    }
    check(&(doubled + "r40 ::= \"x\""), &["x"], &["xx"]);

    let mut words = "root ::= \"word\"".to_owned();
    for i in 0..100_000 {
        write!(words, " | \"word{i}\"").expect("a string");
    }
    let machine = machine(&words);
    assert!(accepts(&machine, "word99999"));
    assert!(!accepts(&machine, "word100000"));
}

#[test]
fn long_ambiguous_texts() {
    let machine = machine("root ::= root root | \"a\"");
    assert!(accepts(&machine, &"a".repeat(2000)));
    let machine = machine_of_nested_stars();
    assert!(accepts(&machine, &"a".repeat(2000)));
}

fn machine_of_nested_stars() -> Arc<dyn Automaton> {
    machine("root ::= ((\"a\"*)*)*")
}
