//! Values, ids, indexes and schema rules as bytes, built on the primitives and scalars of [`mangrove_graph::codec`].
//!
//! A value is a tag byte and its content. Tags are part of the format: a tag that was given to a kind is never given to
//! another, and later additions get new tags. The version of the format is in the header of each file. Decoders read
//! bytes that passed a checksum, and still trust none of them.

mod index;
mod rule;
mod value;

pub use index::{put_index, read_index};
pub use mangrove_graph::codec::{Malformed, Reader, put_signed, put_text, put_varint};
pub use rule::{IMPOSSIBLE_RULE, SavedRules, put_rules, read_rules};
pub use value::{put_content, put_user_id, put_value, read_content, read_user_id, read_value};

#[cfg(test)]
pub(crate) mod tests;
