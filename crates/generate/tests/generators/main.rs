//! Generated graphs: the same whatever the number of threads, unchanged since the digests here were written,
//! the same from files as in memory, and shaped as asked for.

mod common;
mod knowledge;
mod kronecker;
mod social;
