//! Values, ids, indexes and rules as bytes, on the primitives and scalars of [`mangrove_graph::codec`].
//!
//! A value is a tag byte and its content. The tags are part of the format: a number that was given to a kind is never
//! given to another, and what a later version adds gets new ones. Which version wrote a file is in the file's header,
//! not here. Reading is for bytes that passed a checksum, and trusts them with nothing all the same.

mod index;
mod rule;
mod value;

pub use index::{put_index, read_index};
pub use mangrove_graph::codec::{Malformed, Reader, put_bytes, put_signed, put_text, put_varint};
pub use rule::{IMPOSSIBLE_RULE, SavedRules, put_rules, read_rules};
pub use value::{put_content, put_user_id, put_value, read_content, read_user_id, read_value};

#[cfg(test)]
mod tests;
