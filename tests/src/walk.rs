//! Random walks through a grammar, token by token.

use std::{fmt, sync::Arc};

use maskwright::{
    compiled::CompiledGrammar, mask::TokenMask, matcher::Matcher,
    vocabulary::TokenId,
};
use maskwright_grammar_core::automaton::{Completions, Machine, StackLimits};

use crate::{subject::read, vocabularies::Random};

/// Walks `n_steps` from the start, each time to a token of the mask drawn
/// evenly, and begins again at an end token. `visit` sees the matcher and its
/// mask before each step.
///
/// # Panics
///
/// If a mask is empty (a dead end), or allows a token that is not accepted.
pub fn walk(
    matcher: &mut Matcher,
    n_steps: usize,
    random: &mut Random,
    visit: &mut dyn FnMut(&Matcher, &TokenMask),
) {
    for _ in 0..n_steps {
        let mask = matcher.mask().expect("a mask").clone();
        visit(matcher, &mask);
        let tokens: Vec<TokenId> = mask.tokens().collect();
        assert!(!tokens.is_empty(), "a dead end: {}", matcher.describe());
        let token = tokens[random.below(tokens.len())];
        matcher.accept(token).expect("a token of the mask is accepted");
        if matcher.is_terminated() {
            matcher.reset().expect("the start");
        }
    }
}

/// A document that was drawn.
#[derive(Clone, Debug)]
pub struct Document {
    /// The whole of it.
    pub text: String,
    /// How many bytes of it were drawn; the others complete it.
    pub n_drawn: usize,
    /// How many tokens were drawn.
    pub n_tokens: usize,
}

/// Why a document could not be drawn to its end.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// What was drawn until then.
    pub drawn: String,
    /// What happened.
    pub why: String,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {:?}", self.why, self.drawn)
    }
}

/// How a token is drawn from a mask.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Draw {
    /// Evenly among all.
    Even,
    /// Mostly among those from this one on: tokens that say more than the
    /// single bytes before them.
    From(TokenId),
}

impl Draw {
    fn token(self, mask: &TokenMask, random: &mut Random) -> Option<TokenId> {
        if let Draw::From(first) = self
            && random.chance(90)
        {
            let tokens: Vec<TokenId> =
                mask.tokens().filter(|&token| token >= first).collect();
            if !tokens.is_empty() {
                return Some(*random.pick(&tokens));
            }
        }
        mask.tokens().nth(random.below(mask.n_allowed()))
    }
}

/// Draws up to `n_tokens` tokens from their masks, and then completes the
/// document as shortly as possible.
///
/// # Errors
///
/// Fails when a mask is empty, when no completion is found, when what a mask
/// allows is refused, and when a limit is met.
pub fn draw(
    grammar: &Arc<CompiledGrammar>,
    completions: &mut Completions,
    how: Draw,
    n_tokens: usize,
    random: &mut Random,
) -> Result<Document, Stuck> {
    let mut drawn = Vec::new();
    let taken = draw_tokens(grammar, how, n_tokens, random, &mut drawn);
    let stuck = |why: String| {
        let drawn = String::from_utf8_lossy(&drawn).into_owned();
        Stuck { drawn, why }
    };
    let (n_tokens, is_ended) = taken.map_err(stuck)?;
    let automaton = &**grammar.automaton();
    let machine = Machine::new(automaton);
    let limits = StackLimits::default();
    let (n_drawn, at) =
        read(automaton, &drawn).map_err(|error| stuck(error.to_string()))?;
    if n_drawn < drawn.len() {
        return Err(stuck(format!("byte {n_drawn} is refused")));
    }
    let ending = if is_ended {
        at.is_accepting(machine, limits).map(|accepts| accepts.then(Vec::new))
    } else {
        completions.shortest(machine, limits, &at)
    };
    let ending = match ending {
        Ok(Some(ending)) => ending,
        Ok(None) => {
            let place = at.describe(machine);
            return Err(stuck(format!("no completion of {place}")));
        }
        Err(error) => return Err(stuck(error.to_string())),
    };
    let text = String::from_utf8([&*drawn, &*ending].concat())
        .map_err(|error| stuck(error.to_string()))?;
    Ok(Document { text, n_drawn, n_tokens })
}

/// Returns how many tokens were drawn, and whether an end token was.
fn draw_tokens(
    grammar: &Arc<CompiledGrammar>,
    how: Draw,
    n_tokens: usize,
    random: &mut Random,
    drawn: &mut Vec<u8>,
) -> Result<(usize, bool), String> {
    let vocabulary = grammar.vocabulary();
    let mut matcher = Matcher::new(Arc::clone(grammar))
        .map_err(|error| error.to_string())?;
    for n_drawn in 0..n_tokens {
        let mask = matcher.mask().map_err(|error| error.to_string())?;
        let Some(token) = how.token(mask, random) else {
            return Err(format!("an empty mask in {}", matcher.describe()));
        };
        matcher.accept(token).map_err(|error| error.to_string())?;
        if matcher.is_terminated() {
            return Ok((n_drawn, true));
        }
        drawn.extend(vocabulary.token_bytes(token).unwrap_or_default());
    }
    Ok((n_tokens, false))
}
