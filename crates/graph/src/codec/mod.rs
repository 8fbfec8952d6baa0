//! Numbers, text and scalar values as bytes: the encoding that the log, the checkpoints and messages between nodes
//! share.
//!
//! Integers are varints: seven bits a byte, least significant first, with the top bit set on all bytes but the last.
//! Signed integers are zigzag-coded first. Text and bytes follow their length. A scalar is a tag byte, followed by its
//! content.
//!
//! - **GRAPH-9.** Tags are part of the format of files: a number that stands for a type is never used for another. Tags
//!   that are [free](scalar::is_free) here are the surrounding format's, for collections and elements.
//! - **GRAPH-10.** A reader trusts no byte. It compares every length with the bytes that are left, bounds the levels of
//!   nesting, and allocates in proportion to what it reads.
//!
//! An error says at which byte it was noticed and what was wrong. The reader of the file or the message adds which one
//! it was.

mod bytes;
pub mod scalar;

pub use bytes::{Malformed, Reader, TOO_DEEP, put_bytes, put_signed, put_text, put_varint};
pub use scalar::{put_scalar, read_scalar};

#[cfg(test)]
mod tests;
