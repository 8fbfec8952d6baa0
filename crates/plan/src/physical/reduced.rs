//! The values that the reductions of a `union()` share.

use crate::logical::Name;

/// The values that several reductions reduce.
#[derive(Clone, Debug, PartialEq)]
pub enum Reduced {
    /// The objects: `union(sum(), count())`. A `union()` that no row enters has no result, not even a count.
    Objects,
    /// The values of a key, which enter the union: `values("k").union(sum(), count())`.
    Values(Name),
    /// The values of a key of the elements that enter the union: `union(values("k").sum(), values("k").count())`. If
    /// these have no values, there are no other results than counts of 0.
    ValuesOfEach(Name),
}

impl Reduced {
    /// The key of the values.
    pub fn key(&self) -> Option<&Name> {
        match self {
            Reduced::Objects => None,
            Reduced::Values(key) | Reduced::ValuesOfEach(key) => Some(key),
        }
    }
}
