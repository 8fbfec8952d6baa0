//! Real data with known answers: every data set beside the project is loaded with the mapping that ships for it and
//! queried in Gremlin.
//!
//! The answers come from other sources than this engine: the publishers' own figures (air routes, LSQB, the TinkerPop
//! reference), answers of another engine that are part of the data set (LDBC), and plain counts of the files in the
//! test (SNAP) or by hand (tinysnb, OpenFlights). Traversals are data: `queries/*.txt`, in the format of [`cases`].
//!
//! A missing data set is skipped with a printed note. Traversals that write a benchmark's pattern literally, and
//! therefore take long, run only if `MANGROVE_TEST_FULL` is set. The same question in a faster form always runs.

mod air_routes;
mod cases;
mod ldbc;
mod lsqb;
mod openflights;
mod snap;
mod support;
mod tinkerpop;
mod tinysnb;
