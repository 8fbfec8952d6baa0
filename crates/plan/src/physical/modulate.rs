//! Computed columns: what `by()` takes of which objects of a row.

use mangrove_graph::Token;
use mangrove_gremlin::Column;

use super::Pipeline;
use crate::logical::{Lookup, Name, Segment, Test};

/// Works out computed columns.
#[derive(Clone, Debug)]
pub struct Modulate {
    /// Of which objects of a row.
    pub over: Over,
    /// What of each.
    pub by: Vec<Computation>,
    /// For each of `by`: an object of which there is nothing gives null.
    pub productive: Vec<bool>,
}

/// Which objects of a row a [`Modulate`] works on.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// The current object: a computed column each `by`.
    Current,
    /// The values of these names (`None`: the current object): a computed column each, `by` in rotation.
    Names(Vec<(Option<Name>, Lookup)>),
    /// The objects of the path, `by` in rotation: computed column 0 is their list.
    PathObjects(Segment),
    /// The objects of the whole path, as a tree takes them: computed column 0 is the list of those that there is something of.
    TreeObjects,
    /// The elements of the current collection (of a map: its entries): a computed column each `by`, with their list.
    Elements,
    /// The values of the current map: computed column 0 is their list.
    MapValues,
}

/// What of an object goes into a computed column.
#[derive(Clone, Debug)]
pub enum Computation {
    /// The object itself.
    Identity,
    /// The value of a key.
    Key(Name),
    /// A token.
    Token(Token),
    /// Keys or values of a map.
    Column(Column),
    /// Whether a test holds.
    Test(Test),
    /// The first result of a pipeline.
    First(Pipeline),
    /// Whether a pipeline has a result.
    Exists(Pipeline),
}
