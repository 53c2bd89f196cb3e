//! What several tests do.

use maskwright_grammar_core::automaton::Recognizer;
use maskwright_json_schema::Compiled;

/// Whether a text is accepted by bytes.
pub(crate) fn accepts(compiled: &Compiled, text: &str) -> bool {
    let automaton = compiled.automaton.clone();
    let mut recognizer = Recognizer::new(automaton).expect("it starts");
    recognizer.push_bytes(text.as_bytes()).expect("under the limits")
        && recognizer.is_accepting().expect("under the limits")
}
