//! The maps of `mergeV()` and `mergeE()`, which describe the elements to find, to create and to change.
//!
//! A map is written out in the traversal, or is one value: a parameter, or the result of a nested traversal. Its keys
//! are `T.id`, `T.label`, names of properties and, for edges, `Direction.OUT` and `Direction.IN`. The value of a
//! direction is a vertex, its id, or a direction again: `Merge.outV` and `Merge.inV` are kept as `Direction.OUT` and
//! `Direction.IN`, and stand for the vertex that the option of this name gives. This cannot be confused, since no
//! vertex is a direction.

use mangrove_graph::{ElementKind, Value};
use mangrove_gremlin::Cardinality;

use super::Argument;
use super::operand::Operand;

/// A map of an upsert.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeMap<T> {
    /// Where the map comes from.
    pub from: MergeFrom<T>,
    /// The cardinality of properties that do not name one.
    pub cardinality: Option<Cardinality>,
}

/// Where a map comes from. `T` stands for a value that is worked out for each row.
#[derive(Clone, Debug, PartialEq)]
pub enum MergeFrom<T> {
    /// Its entries are written out.
    Entries(Vec<MergeEntry>),
    /// The whole map is one value.
    Whole(T),
}

/// An entry of a map that is written out.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeEntry {
    /// A token, a direction, or a string.
    pub key: Value,
    /// The value.
    pub value: Operand,
    /// The cardinality with which the property is written.
    pub cardinality: Option<Cardinality>,
}

/// `mergeV()` or `mergeE()` with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct Upsert<T = Argument> {
    /// The kind of elements looked for.
    pub kind: ElementKind,
    /// The map that elements must match; `None`: the traverser's object is the map.
    pub search: Option<MergeMap<T>>,
    /// `option(Merge.onCreate, …)`: further entries for the element that is created if none is found.
    pub on_create: Option<MergeMap<T>>,
    /// `option(Merge.onMatch, …)`: the properties that are written to the elements found.
    pub on_match: Option<MergeMap<T>>,
    /// `option(Merge.outV, …)`
    pub source: Option<MergeMap<T>>,
    /// `option(Merge.inV, …)`
    pub target: Option<MergeMap<T>>,
    /// Entries that are looked for and created, whatever the maps say.
    pub always: Vec<MergeEntry>,
}

impl Upsert {
    /// The maps.
    pub fn maps(&self) -> impl Iterator<Item = &MergeMap<Argument>> {
        [&self.search, &self.on_create, &self.on_match, &self.source, &self.target].into_iter().flatten()
    }

    /// The maps, which may be changed.
    pub fn maps_mut(&mut self) -> impl Iterator<Item = &mut MergeMap<Argument>> {
        [&mut self.search, &mut self.on_create, &mut self.on_match, &mut self.source, &mut self.target]
            .into_iter()
            .flatten()
    }
}
