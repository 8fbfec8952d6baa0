//! Real data with known answers: every data set beside the project is loaded with the mapping that ships for it and
//! queried in Gremlin.
//!
//! The answers come from other sources than this engine: the publishers' own figures (air routes, the TinkerPop
//! reference), answers of another engine that are part of the data set (LDBC), and plain counts of the files in the
//! test (SNAP) or by hand (tinysnb, OpenFlights). Traversals are data: `queries/*.txt`, in the format of [`cases`].
//!
//! A missing data set is skipped with a printed note.
//!
//! Not here: the queries of LDBC, of LSQB and of papers, which are data of `conformance/queries`.

mod air_routes;
mod cases;
mod ldbc;
mod openflights;
mod snap;
mod support;
mod tinkerpop;
mod tinysnb;
