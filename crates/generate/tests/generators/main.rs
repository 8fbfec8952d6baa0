//! Generated graphs do not depend on the number of threads, have the digests written here, are the same from files as
//! in memory, and have the shape that the spec asks for.

mod common;
mod knowledge;
mod kronecker;
mod social;
