//! What `mergeV()` and `mergeE()` are given: maps of what to look for, what to make, and what to write.
//!
//! A map is written out in the traversal, or is one value: a parameter, or what a nested traversal gives. Its keys are
//! `T.id`, `T.label`, `Direction.OUT` and `Direction.IN` (of edges), and names of properties. The value of a direction
//! is a vertex, its id, or a direction again: `Merge.outV` and `Merge.inV` stand as `Direction.OUT` and `Direction.IN`
//! and mean "what the option of this name says". No vertex is a direction, so this can be nothing else.

use mangrove_graph::{ElementKind, Value};
use mangrove_gremlin::Cardinality;

use super::Argument;
use super::operand::Operand;

/// One of the maps.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeMap<T> {
    /// Where it comes from.
    pub from: MergeFrom<T>,
    /// How properties are written that say nothing themselves.
    pub cardinality: Option<Cardinality>,
}

/// Where a map comes from; `T` is what a value worked out for each row is.
#[derive(Clone, Debug, PartialEq)]
pub enum MergeFrom<T> {
    /// Its entries are known.
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
    /// How the property is written.
    pub cardinality: Option<Cardinality>,
}

/// `mergeV()` or `mergeE()` with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct Upsert<T = Argument> {
    /// What is looked for: vertices, or edges.
    pub kind: ElementKind,
    /// What is looked for; `None`: the traverser's object is the map.
    pub search: Option<MergeMap<T>>,
    /// What is made besides, where nothing is found.
    pub on_create: Option<MergeMap<T>>,
    /// What is written to what is found.
    pub on_match: Option<MergeMap<T>>,
    /// `option(Merge.outV, …)`
    pub source: Option<MergeMap<T>>,
    /// `option(Merge.inV, …)`
    pub target: Option<MergeMap<T>>,
    /// Entries that hold of what is looked for and of what is made, whatever the maps say.
    pub always: Vec<MergeEntry>,
}

impl Upsert {
    /// Its maps.
    pub fn maps(&self) -> impl Iterator<Item = &MergeMap<Argument>> {
        [&self.search, &self.on_create, &self.on_match, &self.source, &self.target].into_iter().flatten()
    }

    /// Its maps, to be changed.
    pub fn maps_mut(&mut self) -> impl Iterator<Item = &mut MergeMap<Argument>> {
        [&mut self.search, &mut self.on_create, &mut self.on_match, &mut self.source, &mut self.target]
            .into_iter()
            .flatten()
    }
}
