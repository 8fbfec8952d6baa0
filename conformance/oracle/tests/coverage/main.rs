//! What the generator covers of the language: each word ([`words`]), each form of a step ([`forms`]), which steps come up
//! inside which ([`pairs`]), and forms in which the engine once was wrong ([`shapes`]).

mod forms;
mod pairs;
mod shapes;
mod words;

use std::sync::LazyLock;

use mangrove_gremlin::Bytecode;
use mangrove_oracle::generate::{Options, case};

const CASE_COUNT: u64 = 20_000;

/// Generated traversals, of which many write.
fn generated(count: u64) -> impl Iterator<Item = Bytecode> {
    let options = Options { write_share: 0.3, ..Options::default() };
    (0..count).map(move |seed| case(seed, &options).traversal)
}

/// Those that all tests look at.
static TRAVERSALS: LazyLock<Vec<Bytecode>> = LazyLock::new(|| generated(CASE_COUNT).collect());
