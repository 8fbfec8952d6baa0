//! The generator's coverage of the language: each word ([`words`]), each form of a step ([`forms`]), which steps occur
//! in the scope of which ([`pairs`]), and forms that the engine once answered wrongly ([`shapes`]).

mod forms;
mod pairs;
mod shapes;
mod words;

use std::sync::LazyLock;

use mangrove_gremlin::Bytecode;
use mangrove_oracle::generate::{Options, case};

const CASE_COUNT: u64 = 20_000;

/// The number of generated traversals; many of them write.
fn generated(count: u64) -> impl Iterator<Item = Bytecode> {
    let options = Options { write_share: 0.3, ..Options::default() };
    (0..count).map(move |seed| case(seed, &options).traversal)
}

/// The traversals that all tests examine.
static TRAVERSALS: LazyLock<Vec<Bytecode>> = LazyLock::new(|| generated(CASE_COUNT).collect());
