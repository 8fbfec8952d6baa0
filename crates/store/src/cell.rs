//! Property values: how they are encoded, kept in columns with their older versions, and tested.
//!
//! | module | what it holds |
//! |---|---|
//! | `value` | a value as a tag and a word, and the region of values that do not fit in a word |
//! | `sparse` | a table of the cells of few slots of a page |
//! | `sparse_form` | the sparse form of columns and of adjacency descriptors, and when it gives way to the dense form |
//! | `column` | one column of a page: newest value in place, older ones on an undo chain |
//! | `undo` | the undo records |
//! | `predicate` | tests of cells without decoding them |
//!
//! It stands on `memory` and `version`, and knows nothing of pages.

pub(crate) mod column;
pub(crate) mod predicate;
pub(crate) mod sparse;
pub(crate) mod sparse_form;
pub(crate) mod undo;
mod value;

pub(crate) use self::value::*;
pub use self::value::{Content, MultiProperty, MultiValue};
