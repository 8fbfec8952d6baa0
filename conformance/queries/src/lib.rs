//! The query sets of LDBC and of the papers, as data, and what their answers must be.
//!
//! ```text
//! sets/*.toml ──► QuerySet ──► Runner: parameters in, rows out as JSON ──► compared with
//!                                                                           ├ published answers (Published)
//!                                                                           └ the reference: loops over maps
//! ```
//!
//! Two kinds of judges, because one alone is weak. LDBC's validation files say what its reads answer, so those are
//! compared with them ([`published`]). The papers print templates without answers: those are answered a second time by
//! [`mod@reference`], plain loops over the CSV files, which shares no line with the engine and imports none of its crates.
//! Updates are checked by both graphs after them.
//!
//! A query says what it wants; it does not say how fast it must be. `cargo run --release -p mangrove-queries` prints
//! how long each takes on this machine and checks the same answers.
//!
//! Not here: the nine patterns of LSQB and answers computed for this project's data (`crates/db/tests/datasets`), and the
//! mixes of reads and writes that are measured (`bench`).

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
pub mod stream;

pub use compare::{Comparison, difference};
pub use graphs::{DataSet, loaded, shift_likes};
pub use json::{from_json, to_json};
pub use run::Runner;
pub use set::{Derived, JsonParameters, Query, QuerySet, Statement};
