//! The query sets of LDBC and of the papers, as data, with their expected answers.
//!
//! ```text
//! sets/*.toml ──► QuerySet ──► Runner: parameters in, rows out as JSON ──► compared with
//!                                                                           ├ published answers (published)
//!                                                                           ├ SQL in DuckDB (sql)
//!                                                                           └ the reference: loops over maps
//! ```
//!
//! Expected answers have three sources:
//!
//! - LDBC's validation files contain the answers of its reads, and LSQB's files the counts of its patterns
//!   ([`published`]).
//! - The papers print templates without answers. A reference implementation answers them ([`mod@reference`]): plain
//!   loops over the CSV files, which share no code with the engine and import none of its crates. After updates, both
//!   graphs are compared.
//!
//! - LDBC's analytical reads are published without answers for this data. SQL answers them in DuckDB ([`sql`]), which the
//!   program calls that is named below. It also chooses their parameters.
//!
//! A query says nothing about how fast it must be. `cargo run --release -p mangrove-queries` prints the time of each
//! query on this machine and checks the same answers.
//!
//! Not here: the answers of LDBC's data set that were computed with other engines (`crates/db/tests/datasets`), and the
//! mixes of reads and writes that `bench` measures.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod compare;
mod graphs;
mod json;
pub mod papers;
pub mod published;
pub mod reference;
mod run;
mod set;
pub mod sql;
pub mod stream;

pub use compare::{Comparison, difference};
pub use graphs::{DataSet, create_indexes, load_files, loaded, shift_likes};
pub use json::{bound, from_json, to_json};
pub use run::Runner;
pub use set::{Derived, Form, JsonParameters, Query, QuerySet, Statement};
