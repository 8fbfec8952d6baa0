//! The fields of files: ids, types of columns, and texts of values.
//!
//! Pure functions from text to values and back. Nothing here reads a file or knows the sink.

mod column_type;
mod file_id;
mod inference;
pub(crate) mod temporal;
mod typed_json;

pub(crate) use column_type::{ColumnType, LIST_SEPARATOR, list_items};
pub(crate) use file_id::{FileId, plain_integer};
pub(crate) use inference::Inference;
pub(crate) use temporal::TimeFormat;
pub(crate) use typed_json::{damaged, read_plain_value, read_value, write_plain_value, write_string, write_value};
