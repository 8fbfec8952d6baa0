//! Numbers, text and scalar values as bytes: what the log, the checkpoints and the messages between nodes share.
//!
//! Integers are varints (seven bits a byte, least significant first, the top bit set on all but the last), signed ones
//! zigzag-coded before; text and bytes have their length in front; a scalar is a tag byte and its content. The tags
//! are part of the format of files: a number that was given to a type is never given to another. Which tags stand for
//! collections and elements is for the format around to say; [`scalar::is_free`] tells which numbers it may take.
//!
//! Reading trusts the bytes with nothing: every length is compared with what is there, nesting is bounded, and memory
//! taken is in proportion to what is read. An error says at which byte it was and what was wrong; whoever read the
//! file or the message knows the rest.

mod bytes;
pub mod scalar;

pub use bytes::{Malformed, Reader, TOO_DEEP, put_bytes, put_signed, put_text, put_varint};
pub use scalar::{put_scalar, read_scalar};

#[cfg(test)]
mod tests;
