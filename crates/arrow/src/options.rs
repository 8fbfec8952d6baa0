//! How results become Arrow.

/// How results become Arrow.
#[derive(Clone, Copy, Debug)]
pub struct ArrowOptions {
    /// The most rows of a record batch. At least 1.
    pub batch_rows: usize,
    /// What becomes of a column with values of types that no Arrow type holds together.
    pub mixed: Mixed,
    /// The columns that results have.
    pub layout: Layout,
}

impl Default for ArrowOptions {
    fn default() -> Self {
        ArrowOptions { batch_rows: 64 * 1024, mixed: Mixed::Refuse, layout: Layout::Columns }
    }
}

/// What becomes of a column with values of types that no Arrow type holds together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mixed {
    /// It is an error, which names the column, the types and the row.
    #[default]
    Refuse,
    /// Its values become text: JSON, with text on the outermost level as it is.
    Text,
}

/// The columns that results have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// A column for each key of a map, and for each property of an element; one column, `value`, for other results.
    #[default]
    Columns,
    /// One column, `value`, for all results: maps and elements become structs in it.
    OneColumn,
}
