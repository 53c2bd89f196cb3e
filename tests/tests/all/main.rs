//! One binary for all tests over the corpus, so that it links once.

mod boundaries;
mod budget;
mod completions;
mod convert;
mod corpus;
mod evidence;
mod finishing;
mod grammars;
mod hostile;
mod kept;
mod masks;
mod model;
mod sampling;
mod search;
mod serving;
mod shared_cases;
