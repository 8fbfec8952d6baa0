//! Real data, known answers: every data set beside the project is loaded with the mapping that ships for it and
//! asked in Gremlin.
//!
//! The expected answers come from elsewhere, so that no engine checks itself: figures of the publishers (air routes,
//! LSQB, the TinkerPop reference), answers that another engine computed and that ship with the data (LDBC), and plain
//! counting of the files in the test (SNAP) or by hand (tinysnb, OpenFlights). Traversals are data: `queries/*.txt`, in
//! the format that [`cases`] explains.
//!
//! A data set that is not there is skipped with a printed note. Traversals that spell out a benchmark's pattern and
//! take long run with `MANGROVE_TEST_FULL` set. The same question in a form that is counted faster always runs.

mod air_routes;
mod cases;
mod ldbc;
mod lsqb;
mod openflights;
mod snap;
mod support;
mod tinkerpop;
mod tinysnb;
