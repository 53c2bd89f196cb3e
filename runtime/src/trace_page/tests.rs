use std::{ops::ControlFlow, sync::Arc};

use super::{
    TracePage,
    escape::{Percent, Text, Token},
};
use crate::{
    generate::{
        Generation, Generator, Origin, Prompt, Request, Search, TokenTrace,
    },
    grammar::Grammar,
    vocabulary::{TokenId, Vocabulary},
};

fn made(
    generator: &mut Generator,
    grammar: &Grammar,
    n: usize,
) -> Vec<Generation> {
    let request = Request {
        prompt: Prompt::Text("so".to_owned()),
        grammar: Some(generator.compile(grammar).expect("it fits")),
        search: Search::Sample { n, best_of: n },
        logprobs: Some(3),
        ..Request::default()
    };
    generator
        .generate_all(&request, &mut |_| ControlFlow::Continue(()))
        .expect("text")
}

fn page(
    prompt: &str,
    vocabulary: &Vocabulary,
    sequences: &[Generation],
) -> String {
    let prompt = Prompt::Text(prompt.to_owned());
    let title = "A <run>";
    TracePage { title, prompt: &prompt, vocabulary, sequences }.to_string()
}

/// Returns the names of all tags, and checks that they are closed in order.
fn tags(html: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let end = rest[start..].find('>').expect("a tag ends") + start;
        let inner = &rest[start + 1..end];
        let name = inner.split([' ', '\n']).next().expect("a name");
        rest = &rest[end + 1..];
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        names.push(name.to_owned());
        match name {
            "!doctype" | "meta" | "br" | "input" => {}
            "style" | "script" => {
                let close = format!("</{name}>");
                let at = rest.find(&close).expect("it is closed");
                rest = &rest[at + close.len()..];
            }
            name => open.push(name.to_owned()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    names
}

#[test]
fn what_a_model_writes_cannot_become_html() {
    let mut generator = Generator::toy();
    let evil = "</script><img src=x onerror='alert(\"1\")'>&amp;";
    let grammar = Grammar::from_choices(&[evil]).expect("a choice");
    let sequences = made(&mut generator, &grammar, 1);
    assert_eq!(sequences[0].text, evil);
    let html = page(evil, generator.vocabulary(), &sequences);
    let names = tags(&html);
    assert!(!names.iter().any(|name| name == "img"), "{names:?}");
    let is_script = |name: &&String| *name == "script";
    assert_eq!(names.iter().filter(is_script).count(), 1);
    assert!(html.contains("<h1>A &lt;run&gt;</h1>"));
    let escaped = "&lt;/script&gt;&lt;img src=x onerror=&#39;alert(&quot;1\
                   &quot;)&#39;&gt;&amp;amp;";
    assert!(html.contains(&format!("<pre>{escaped}</pre>")));
}

/// As single tokens, not only byte by byte: in each place where a token or
/// the grammar's state is shown.
#[test]
fn tokens_and_places_are_escaped_wherever_they_are() {
    let tokens: [&[u8]; 4] =
        [b"</script>", b"\"><script>", b"\x1b[31m\xe2\x80\xae", b"\xff\xe1"];
    let vocabulary =
        Vocabulary::from_tokens(tokens, [TokenId(0)]).expect("tokens");
    let list: Vec<_> = (0..4).map(|id| (TokenId(id), -1.0)).collect();
    let steps = (0..4).map(|id| TokenTrace {
        token: TokenId(id),
        origin: Origin::Chosen,
        before: Some(-1.0),
        after: Some(-0.5),
        removed_mass: Some(0.9),
        n_allowed: Some(2),
        likeliest: list.clone(),
        allowed: list.clone(),
        forbidden: list.clone(),
        place: Some("in \"</summary>\"".to_owned()),
    });
    let mut generator = Generator::toy();
    let any = Grammar::from_choices(&["a"]).expect("a choice");
    let mut sequences = made(&mut generator, &any, 1);
    sequences[0].trace.steps = steps.collect();
    let html = page("", &vocabulary, &sequences);
    let names = tags(&html);
    let is_script = |name: &&String| *name == "script";
    assert_eq!(names.iter().filter(is_script).count(), 1);
    assert!(html.contains("in &quot;&lt;/summary&gt;&quot;"));
    assert!(html.contains(r"\u{1b}[31m\u{202e}"));
    assert!(html.contains(r"<i>\xFF</i><i>\xE1</i>"));
    let is_shown = |c: char| c == '\n' || !c.is_control();
    assert!(html.chars().all(is_shown));
    assert!(!html.contains('\u{202e}'));
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let mut generator = Generator::toy();
    let grammar = Grammar::from_choices(&["yes", "no"]).expect("choices");
    let sequences = made(&mut generator, &grammar, 1);
    let html = page("so", generator.vocabulary(), &sequences);
    for word in ["http:", "https:", "//", "url(", "@import", " src="] {
        // Comments of the script begin so, too.
        let html = html.replace("// A link", "");
        assert!(!html.contains(word), "{word}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn each_token_has_an_item_and_what_is_forced_stands_together() {
    let mut generator = Generator::toy();
    let grammar =
        Grammar::from_regex("[ab]then[ab]and[ab]").expect("a pattern");
    let sequences = made(&mut generator, &grammar, 2);
    let html = page("so", generator.vocabulary(), &sequences);
    tags(&html);
    for (index, one) in sequences.iter().enumerate() {
        let n_steps =
            one.trace.steps.len() + usize::from(one.trace.end.is_some());
        for number in 1..=n_steps {
            let id = format!(" id=\"s{index}t{number}\"");
            assert_eq!(html.matches(&id).count(), 1, "{id}");
            assert!(html.contains(&format!("href=\"#s{index}t{number}\"")));
        }
    }
    assert!(html.contains("forced, 4 tokens: <code><bdi>then</bdi>"));
    assert!(html.contains("forced, 3 tokens: <code><bdi>and</bdi>"));
    let step = &sequences[0].trace.steps[0];
    let before = step.before.expect("the model was asked").exp() * 100.0;
    let shown = format!("<b>before</b> {before:.1}&nbsp;%");
    assert!(html.contains(&shown), "{shown}");
    let place = step.place.clone().expect("a grammar");
    assert!(html.contains(&Text(&place).to_string()));
}

#[test]
fn a_run_without_tokens_is_a_page_too() {
    let mut generator = Generator::toy();
    let grammar = Grammar::from_choices(&[""]).expect("a choice");
    let sequences = made(&mut generator, &grammar, 1);
    tags(&page("", generator.vocabulary(), &sequences));
    tags(&page("", &Arc::clone(generator.vocabulary()), &[]));
}

#[test]
fn every_byte_of_a_token_can_be_seen() {
    let shown = |bytes: &[u8]| Token(bytes).to_string();
    assert_eq!(shown(b" a\n\t"), "<i>␣</i>a<i>↵</i><i>⇥</i>");
    assert_eq!(shown(b"\xe1\xbb"), "<i>\\xE1</i><i>\\xBB</i>");
    assert_eq!(shown(b"\0\r"), "\\u{0}\\u{d}");
    assert_eq!(shown("ở".as_bytes()), "ở");
    assert_eq!(shown(b""), "<i>nothing</i>");
    assert_eq!(Text("a\nb\u{7f}").to_string(), "a\nb\\u{7f}");
}

#[test]
fn percentages_never_claim_too_much() {
    let shown = |share: f64| Percent::of(share).to_string();
    assert_eq!(shown(0.0), "0&nbsp;%");
    assert_eq!(shown(1e-6), "&lt;&nbsp;0.1&nbsp;%");
    assert_eq!(shown(0.1234), "12.3&nbsp;%");
    assert_eq!(shown(0.99999), "&gt;&nbsp;99.9&nbsp;%");
    assert_eq!(shown(1.0), "100&nbsp;%");
    assert_eq!(Percent::of_log(f64::NEG_INFINITY).to_string(), "0&nbsp;%");
    assert_eq!(Percent::of(f64::NAN).to_string(), "0&nbsp;%");
}
