//! Generated graphs do not depend on the number of threads, match the digests recorded here, are the same from files as
//! in memory, and have the shape that was asked for.

mod common;
mod knowledge;
mod kronecker;
mod social;
