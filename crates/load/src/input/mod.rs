//! Files as bytes, and text cut into rows.
//!
//! The lowest layer of a load: it opens files, unpacks them, bounds the length of their elements, and cuts tables into
//! rows and rows into fields. It knows nothing of graphs, columns or types.

mod bytes;
mod records;

pub(crate) use bytes::{Bounded, ElementLength, Input, Spool, cannot_read, in_file, too_long, unpacked_name};
pub use bytes::{Compression, ELEMENT_BYTES_MAX_DEFAULT};
pub(crate) use records::{Chunk, RecordOutcome, RecordReader, TableDialect, detect_delimiter};
