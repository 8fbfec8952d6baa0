//! Makes the files that `tests/formats` keeps of a format, before its first release:
//!
//! ```sh
//! cargo run --package mangrove --example keep_format crates/db/tests/formats/N
//! ```

#[path = "../tests/formats/graph.rs"]
mod graph;

use mangrove::{Database, Error, Result};

fn main() -> Result<()> {
    let directory = std::env::args().nth(1).ok_or_else(|| Error::invalid("usage: keep_format DIRECTORY"))?;
    graph::write(&Database::open(&directory, &graph::options())?)
}
