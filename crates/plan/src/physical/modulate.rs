//! [`Modulate`]: the operator that fills computed columns with the values of `by()` (PLAN-4).

use mangrove_graph::Token;
use mangrove_gremlin::Column;

use super::{Degree, Pipeline, Scheduling};
use crate::logical::{Lookup, Name, Segment, Test};

/// Fills computed columns with the values that `by()`s have for objects of a row.
#[derive(Clone, Debug)]
pub struct Modulate {
    /// The objects.
    pub over: Over,
    /// The computations for the objects.
    pub by: Vec<Computation>,
    /// For each of `by`: true if it gives null for an object of which there is nothing to take.
    pub productive: Vec<bool>,
    /// The order of the work in the scope, and the most instances at a time, if `by` has pipelines.
    pub scheduling: Scheduling,
}

impl Modulate {
    /// Returns true if it opens a scope.
    pub fn has_scope(&self) -> bool {
        self.by.iter().any(|by| matches!(by, Computation::First(_) | Computation::Exists(_)))
    }
}

/// The objects of a row that a [`Modulate`] works on.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// The current object. There is a computed column for each `by`.
    Current,
    /// The values of some names; `None` is the current object. There is a computed column for each name, with `by` in
    /// rotation.
    Names(Vec<(Option<Name>, Lookup)>),
    /// The objects of the path, with `by` in rotation. Computed column 0 is the list of the values.
    PathObjects(Segment),
    /// The objects of the whole path, with `by` in rotation, for a tree. Computed column 0 is the list of the values
    /// that there are.
    TreeObjects,
    /// The members of the current collection, or the entries of a map. There is a computed column for each `by`: the
    /// list of the values.
    Elements,
    /// The values of the current map. Computed column 0 is the list of the values taken.
    MapValues,
}

/// The computation of the value of a computed column for an object.
#[derive(Clone, Debug)]
pub enum Computation {
    /// The object itself.
    Identity,
    /// The value under a key.
    Key(Name),
    /// The first value under a key; nothing for an object that cannot have one. It orders the work of a scope, so it
    /// never fails.
    Priority(Name),
    /// A token.
    Token(Token),
    /// Keys or values of a map.
    Column(Column),
    /// The degree of a vertex: `by(out().count())`, without a scope.
    Degree(Degree),
    /// True if a test holds, else false.
    Test(Test),
    /// The first result of a pipeline.
    First(Pipeline),
    /// True if a pipeline has a result, else false.
    Exists(Pipeline),
}
