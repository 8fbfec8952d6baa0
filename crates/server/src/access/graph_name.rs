//! The names that graphs and traversal sources may have.
//!
//! A graph's name is also the name of a traversal source and of a directory, so it must be safe as both.

use mangrove_graph::{Error, Result};

/// The name that stands for every graph in a list of rights.
pub const ALL_GRAPHS: &str = "*";

/// The largest length of a name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Returns an error if a name is not a letter followed by letters, digits and underscores (ASCII).
pub fn check_name(name: &str) -> Result<()> {
    let starts_well = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    let goes_on_well = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if starts_well && goes_on_well && name.len() <= NAME_BYTES_MAX && name != ALL_GRAPHS {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "`{name}` cannot name a graph: use a letter and then letters, digits and `_`, at most {NAME_BYTES_MAX} in all"
    )))
}
