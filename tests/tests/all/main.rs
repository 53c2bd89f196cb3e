//! One binary for all tests over the corpus, so that it links once.

mod budget;
mod completions;
mod convert;
mod corpus;
mod evidence;
mod grammars;
mod kept;
mod masks;
mod model;
mod serving;
mod shared_cases;
