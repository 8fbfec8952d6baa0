//! Numbers, text, values, ids, indexes and rules as bytes.
//!
//! Integers are varints (seven bits a byte, least significant first, the top bit set on all but the last), signed ones
//! zigzag-coded before; text and bytes have their length in front; a value is a tag byte and its content. The tags are
//! part of the format: a number that was given to a kind is never given to another, and what a later version adds gets
//! new ones. Which version wrote a file is in the file's header, not here.
//!
//! Reading is for bytes that passed a checksum, and trusts them with nothing all the same: every length is compared
//! with what is there, and nesting is bounded. An error says at which byte it was and what was wrong; whoever read
//! the file knows the rest.

mod bytes;
mod index;
mod rule;
mod value;

pub use bytes::{Malformed, Reader, put_bytes, put_signed, put_text, put_varint};
pub use index::{put_index, read_index};
pub use rule::{IMPOSSIBLE_RULE, SavedRules, put_rules, read_rules};
pub use value::{put_content, put_user_id, put_value, read_content, read_user_id, read_value};

#[cfg(test)]
mod tests;
