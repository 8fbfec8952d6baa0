//! Batches of traversers, and the rows and states that operators keep.
//!
//! | module | holds |
//! |---|---|
//! | `batch`, `column` | a batch of rows by columns, and the column of objects |
//! | `numbers` | numbers of one type, as objects of rows |
//! | `binding` | the objects under step labels, as columns |
//! | [`path`] | paths: lists that share their beginnings |
//! | `message`, [`codec`] | a batch as a message of the dataflow, and its binary form |
//! | [`gather`] | rows of several batches in one |
//! | [`held`] | rows and states that an operator keeps by group |
//! | [`rank`] | the order of rows by a value, for scopes that work in that order |
//! | [`needs`] | the reads of a batch, for a view that may be late |
//! | [`elements`], [`kinds`], [`current`], [`named`] | a column of one kind of object, and by kind of object; properties as they are now; the meaning of a name for a row |

pub(crate) mod codec;
pub(crate) mod current;
pub(crate) mod elements;
pub(crate) mod gather;
pub(crate) mod held;
pub(crate) mod kinds;
pub(crate) mod named;
pub(crate) mod needs;
pub(crate) mod path;
pub(crate) mod rank;

mod batch;
mod binding;
mod column;
mod message;
mod numbers;

pub use batch::Rows;
pub(crate) use batch::{ComputedColumn, Loops, Remember, Tags};
pub(crate) use binding::BindingColumn;
pub use column::ObjectColumn;
pub use numbers::NumberColumn;
pub(crate) use numbers::NumberSlice;
