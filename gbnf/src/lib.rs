//! The GBNF grammar notation.
//!
//! GBNF is llama.cpp's notation for grammars. [`compile`] turns a text into a
//! machine; [`parse`] and [`lower`] are its two halves, for those who want
//! the tree or the grammar. What llama.cpp accepts means the same here, and
//! every context-free grammar works: ambiguous ones, nullable ones, and those
//! that are left-recursive, directly, indirectly or behind what may be empty.
//!
//! ```
//! let (machine, warnings) =
//!     maskwright_gbnf::compile("root ::= root \"a\" | \"b\"", "root")?;
//! assert!(warnings.is_empty());
//! let row = machine.row(machine.start()).expect("small");
//! assert!(row.is_live(b'b') && !row.is_live(b'a'));
//!
//! let error = maskwright_gbnf::compile("root ::= nmae\nname ::= \"x\"", "root")
//!     .unwrap_err();
//! assert_eq!((error.line(), error.column()), (1, 10));
//! assert!(error.to_string().contains("did you mean `name`?"));
//! # Ok::<(), maskwright_gbnf::GbnfError>(())
//! ```
//!
//! # Other grammars in a grammar
//!
//! GBNF has no `%`, so a part of a rule that begins with one is an extension
//! that no grammar of llama.cpp's can hit upon:
//!
//! | spelling | stands for |
//! |---|---|
//! | `%json {"type": "integer"}` | a JSON text that the schema allows (`{...}`, `true` or `false`) |
//! | `%regex /[0-9]+/` | a text that the expression matches as a whole, in Rust's syntax; `\/` is a slash |
//! | `%grammar name` | a text of a grammar that the caller supplies under that name |
//!
//! Such a part is like the name of a rule: it may be repeated, stand in
//! groups, and begin a rule that is left-recursive. Where its text may end
//! or go on, both is tried: `%json {"type": "integer"} "0"` takes `00` and
//! `120` and refuses `0`. Grammars in GBNF may refer to each other and to
//! themselves. What stands behind `%json` and `%grammar` is found by a
//! [`Resolver`]; the crate `maskwright` brings one.
//!
//! # Differences from llama.cpp
//!
//! | input | llama.cpp | here |
//! |---|---|---|
//! | a line that begins with `\|` | an error | continues the rule above |
//! | `_` in names | an error | allowed |
//! | `[]`, `[^]`, `[z-a]` | accepted | errors |
//! | `{9,1}` | undefined | an error |
//! | large repetitions | refused, or expanded | counted |
//! | a rule that is defined twice | the last one wins | an error |
//! | a rule that derives nothing | accepted | an error |
//! | `%json`, `%regex`, `%grammar` | errors | other grammars, as above |
//! | a rule that nothing uses | accepted | a warning |
//! | left recursion | refused, or endless | works |
//! | unknown escapes, surrogates, values past U+10FFFF | vary | errors |
//! | deep nesting | may overflow the stack | an error at a limit |
#![forbid(unsafe_code)]

mod ast;
mod error;
mod lower;
mod parse;
mod token;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use maskwright_grammar_core::{
    automaton::{
        Automaton, AutomatonError,
        cfg::{CfgLimits, CfgMachine},
    },
    grammar::rewrite,
    interrupt,
};

pub use self::{
    ast::{Ast, Node, NodeId, Reference, RuleNode},
    error::{GbnfError, GbnfErrorKind, Span, Warning, WarningKind},
    lower::{Referent, ReferentError, RegexOnly, Resolver, lower},
    parse::{MAX_DEPTH, parse},
};

/// Compiles a grammar into a machine whose texts are derived from the rule
/// `start_rule`, usually `root`.
///
/// # Errors
///
/// Fails when the text is not GBNF, when it names a rule that it does not
/// define or defines one twice, when there is no `start_rule`, when a rule
/// derives nothing, or when a limit is met.
pub fn compile(
    text: &str,
    start_rule: &str,
) -> Result<(Arc<dyn Automaton>, Vec<Warning>), GbnfError> {
    compile_with(text, start_rule, &CfgLimits::default(), &RegexOnly)
}

/// Compiles as [`compile`] does, to a machine that grows to `limits` at most,
/// with what `resolver` knows for `%json`, `%regex` and `%grammar`.
///
/// # Errors
///
/// Fails as [`compile`] does.
pub fn compile_with(
    text: &str,
    start_rule: &str,
    limits: &CfgLimits,
    resolver: &dyn Resolver,
) -> Result<(Arc<dyn Automaton>, Vec<Warning>), GbnfError> {
    let ast = parse(text)?;
    let at_limit = |error: AutomatonError| ast.error(Span::default(), error);
    let check = || interrupt::check().map_err(|error| at_limit(error.into()));
    check()?;
    let (grammar, warnings) = lower(&ast, start_rule, resolver)?;
    check()?;
    let grammar = rewrite::simplify(&grammar);
    check()?;
    let machine = CfgMachine::new(&grammar, limits).map_err(at_limit)?;
    Ok((Arc::new(machine), warnings))
}
