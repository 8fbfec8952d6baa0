//! Values of vertices from files of their own: one row a value, as LDBC's generator writes the languages and e-mail
//! addresses of persons.
//!
//! Such files are read before the vertices. Their values wait here until the row of their vertex is read, so that the
//! sink gets a vertex with all its values. Memory grows with these files: they are for short lists.

use super::id_map::SpaceId;
use crate::sink::Cardinality;
use crate::values::FileId;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use mangrove_graph::Value;
use smol_str::SmolStr;

/// Values of one row that wait for their vertex.
pub(crate) struct OwnedValue {
    pub(crate) key: SmolStr,
    pub(crate) cardinality: Cardinality,
    /// At least one.
    pub(crate) values: Vec<Value>,
    pub(crate) file: usize,
    pub(crate) line: u64,
    /// The text of the row, if rejected rows are written.
    pub(crate) text: Box<[u8]>,
}

/// Values by the id of the vertex that they belong to.
#[derive(Default)]
pub(crate) struct OwnedValues(HashMap<(SpaceId, FileId), Vec<OwnedValue>, RandomState>);

impl OwnedValues {
    pub(crate) fn add(&mut self, space: SpaceId, owner: FileId, value: OwnedValue) {
        self.0.entry((space, owner)).or_default().push(value);
    }

    /// Takes the values of a vertex.
    pub(crate) fn take(&mut self, space: SpaceId, owner: &FileId) -> Vec<OwnedValue> {
        match self.0.is_empty() {
            true => Vec::new(),
            false => self.0.remove(&(space, owner.clone())).unwrap_or_default(),
        }
    }

    /// Takes the values whose vertices were not met, in the order of the files.
    pub(crate) fn take_rest(&mut self) -> Vec<(FileId, OwnedValue)> {
        let rest = std::mem::take(&mut self.0).into_iter();
        let mut rest: Vec<_> =
            rest.flat_map(|((_, owner), values)| values.into_iter().map(move |value| (owner.clone(), value))).collect();
        rest.sort_by_key(|(_, value)| (value.file, value.line));
        rest
    }

    /// Bytes, without texts of more than 23 bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let values = self.0.len() * std::mem::size_of::<OwnedValue>();
        (self.0.allocation_size() + values) as u64
    }
}
