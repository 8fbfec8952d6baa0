//! Real data, known answers: every data set beside the project is loaded with the mapping that ships for it and
//! asked in Gremlin.
//!
//! Where the answers come from, so that no engine checks itself: the publishers' own figures (air routes, LSQB, the
//! TinkerPop reference), answers that another engine computed and that lie with the data (LDBC), and plain counting
//! of the files in the test (SNAP) or by hand (tinysnb, OpenFlights). Traversals are data: `queries/*.txt`, in
//! the format that [`cases`] explains.
//!
//! A data set that is not there is skipped with a printed word. Traversals that write a benchmark's pattern down
//! word for word, and take long for it, run with `MANGROVE_TEST_FULL` set; the same question in a form that
//! is counted faster always runs.

mod air_routes;
mod cases;
mod ldbc;
mod lsqb;
mod openflights;
mod snap;
mod support;
mod tinkerpop;
mod tinysnb;
