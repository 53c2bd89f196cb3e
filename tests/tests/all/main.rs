//! One binary for all tests over the corpus, so that it links once.

mod budget;
mod completions;
mod corpus;
mod evidence;
mod masks;
mod model;
mod shared_cases;
