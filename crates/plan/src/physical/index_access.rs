//! How indexes find the elements of a source: the union of searches.
//!
//! A search is for all values that some conditions take. Where several branches of an `or()`, or several labels, have an
//! index of their own, each has its own search. An element that two searches find is found once.

use mangrove_graph::IndexId;

use crate::logical::{Operand, Test};

/// The searches in indexes that together find the elements of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexAccess {
    /// The searches, at least one.
    pub searches: Vec<IndexSearch>,
    /// The numbers of the source's conditions that every element found meets, ascending. The source tests the others.
    pub answered: Vec<usize>,
}

/// A search in one index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSearch {
    /// The index.
    pub index: IndexId,
    /// Its label and keys, as `explain()` shows them.
    pub name: String,
    /// The values of its first keys.
    pub prefix: Vec<Operand>,
    /// The test of the next key: equality, a range, or the beginning of a text.
    pub test: Test,
}

impl std::fmt::Display for IndexAccess {
    /// `by index person.name`, `by the union of indexes person.name, person.email`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.searches[..] {
            [one] => write!(f, "by index {}", one.name),
            several => {
                // Searches for different values in one index read one index.
                let mut names: Vec<&str> = Vec::new();
                for search in several {
                    if !names.contains(&&*search.name) {
                        names.push(&search.name);
                    }
                }
                let union = if names.len() == 1 { "index" } else { "indexes" };
                write!(f, "by the union of {} look-ups in {union} {}", several.len(), names.join(", "))
            }
        }
    }
}
