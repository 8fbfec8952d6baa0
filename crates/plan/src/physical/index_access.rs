//! How indexes find the elements of a source: by the union of searches.
//!
//! A search is for the elements that meet some conditions: in one index, or in several, whose elements are intersected.
//! Where several branches of an `or()`, or several labels, have an index of their own, each has its own search. An
//! element that two searches find is found once.

use mangrove_graph::IndexId;

use crate::logical::{Operand, Test};

/// The searches in indexes that together find the elements of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexAccess {
    /// The searches, at least one.
    pub searches: Vec<IndexSearch>,
    /// The numbers of the source's conditions that every element found meets, ascending. The source tests the others.
    pub answered: Vec<usize>,
    /// Indexes that could have been read instead, for `explain()`, with the elements that each is expected to find.
    pub instead_of: Vec<(String, f64)>,
}

/// A search for the elements that all of its parts find.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSearch {
    /// The parts, at least one. The first is expected to find the fewest elements.
    pub parts: Vec<IndexPart>,
}

/// A search in one index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexPart {
    /// The index.
    pub index: IndexId,
    /// Its label and keys, as `explain()` shows them.
    pub name: String,
    /// The values of its first keys.
    pub prefix: Vec<Operand>,
    /// The test of the next key: equality, a range, or the beginning of a text.
    pub test: Test,
    /// The elements that it is expected to find, if the sizes of indexes are known.
    pub expected: Option<f64>,
}

impl std::fmt::Display for IndexAccess {
    /// `by index person.name`, `by the intersection of indexes name (~3), city (~40)`,
    /// `by the union of 2 look-ups in indexes name, email`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.searches[..] {
            [IndexSearch { parts }] => match &parts[..] {
                [one] if self.instead_of.is_empty() => write!(f, "by index {}", one.name)?,
                [one] => write!(f, "by index {}", shown(&one.name, one.expected))?,
                several => write!(f, "by the intersection of indexes {}", names(several, ", "))?,
            },
            searches => {
                // Searches for different values in one index read one index.
                let mut of_searches: Vec<String> = Vec::new();
                for IndexSearch { parts } in searches {
                    let shown = match &parts[..] {
                        [one] => one.name.clone(),
                        several => format!("({})", names(several, " and ")),
                    };
                    if !of_searches.contains(&shown) {
                        of_searches.push(shown);
                    }
                }
                let is_one = of_searches.len() == 1 && searches.iter().all(|search| search.parts.len() == 1);
                let word = if is_one { "index" } else { "indexes" };
                write!(f, "by the union of {} look-ups in {word} {}", searches.len(), of_searches.join(", "))?;
            }
        }
        if !self.instead_of.is_empty() {
            let others = self.instead_of.iter().map(|(name, expected)| shown(name, Some(*expected)));
            write!(f, ", not {}", others.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

fn names(parts: &[IndexPart], between: &str) -> String {
    parts.iter().map(|part| shown(&part.name, part.expected)).collect::<Vec<_>>().join(between)
}

/// `name (~3)`
fn shown(name: &str, expected: Option<f64>) -> String {
    expected.map_or_else(|| name.to_owned(), |elements| format!("{name} (~{elements:.0})"))
}
