//! The map from ids in files to internal ids, for the length of one load.
//!
//! An id is unique within an *id space*: 933 may name a person and a forum. Integers are kept as 64-bit keys (16 bytes
//! an entry), other ids as short strings. The map is the largest part of a load's memory (LOAD-1).
//!
//! An id is first claimed, and resolved when the sink has returned its vertex (`batch`). A look-up of an id that is
//! only claimed gives no valid vertex. So callers look vertices up for edges only after all open batches of vertices
//! were handed to the sink (LOAD-3).

use foldhash::fast::RandomState;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use mangrove_graph::VertexId;
use smol_str::SmolStr;

use crate::values::{FileId, plain_integer};

/// The number of an id space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SpaceId(u32);

/// The ids of one id space.
#[derive(Default)]
struct IdSpace {
    ints: HashMap<i64, VertexId, RandomState>,
    texts: HashMap<SmolStr, VertexId, RandomState>,
}

/// The value of an id that is claimed while its vertex waits in a batch: no vertex has these bits.
const PENDING_BITS: u64 = u64::MAX;

/// The map (id space, id) → internal id.
#[derive(Default)]
pub(crate) struct IdMap {
    /// The id spaces by their names in lower case.
    names: HashMap<String, SpaceId, RandomState>,
    /// The id spaces by number.
    spaces: Vec<IdSpace>,
}

impl IdMap {
    /// The id space of a name, made if it is new. Upper and lower case are equal, because the headers of one data set
    /// often differ (`person.csv`, `Person.id`).
    pub(crate) fn space(&mut self, name: &str) -> SpaceId {
        let next = SpaceId(u32::try_from(self.spaces.len()).expect("a load has fewer than 2^32 id spaces"));
        match self.names.entry(name.to_ascii_lowercase()) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.spaces.push(IdSpace::default());
                *entry.insert(next)
            }
        }
    }

    /// Claims an id for a vertex that the sink does not have yet. Returns false if the id is taken.
    pub(crate) fn claim(&mut self, space: SpaceId, id: &FileId) -> bool {
        let space = &mut self.spaces[space.0 as usize];
        match id {
            FileId::Int(number) => match space.ints.entry(*number) {
                Entry::Occupied(_) => false,
                Entry::Vacant(entry) => {
                    entry.insert(VertexId::from_bits(PENDING_BITS));
                    true
                }
            },
            FileId::Text(text) => match space.texts.entry(text.clone()) {
                Entry::Occupied(_) => false,
                Entry::Vacant(entry) => {
                    entry.insert(VertexId::from_bits(PENDING_BITS));
                    true
                }
            },
        }
    }

    /// Withdraws a claim, because the sink refused the vertex.
    pub(crate) fn withdraw(&mut self, space: SpaceId, id: &FileId) {
        let space = &mut self.spaces[space.0 as usize];
        match id {
            FileId::Int(number) => space.ints.remove(number),
            FileId::Text(text) => space.texts.remove(text),
        };
    }

    /// Sets the vertex that a claimed id names.
    pub(crate) fn resolve(&mut self, space: SpaceId, id: FileId, vertex: VertexId) {
        let space = &mut self.spaces[space.0 as usize];
        match id {
            FileId::Int(number) => space.ints.insert(number, vertex),
            FileId::Text(text) => space.texts.insert(text, vertex),
        };
    }

    /// The vertex that a whole number names.
    pub(crate) fn get_int(&self, space: SpaceId, number: i64) -> Option<VertexId> {
        self.spaces[space.0 as usize].ints.get(&number).copied()
    }

    /// The vertex that the text of an id names.
    pub(crate) fn get(&self, space: SpaceId, id: &str) -> Option<VertexId> {
        let space = &self.spaces[space.0 as usize];
        match plain_integer(id.as_bytes()) {
            Some(number) => space.ints.get(&number).copied(),
            None => space.texts.get(id).copied(),
        }
    }

    /// The vertex that a parsed id names.
    pub(crate) fn get_id(&self, space: SpaceId, id: &FileId) -> Option<VertexId> {
        let space = &self.spaces[space.0 as usize];
        match id {
            FileId::Int(number) => space.ints.get(number).copied(),
            FileId::Text(text) => space.texts.get(text.as_str()).copied(),
        }
    }

    /// Bytes of the maps, without texts of more than 23 bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.spaces.iter().map(|space| space.ints.allocation_size() + space.texts.allocation_size());
        bytes.sum::<usize>() as u64
    }
}

/// Ids that must not occur twice.
#[derive(Default)]
pub(crate) struct IdSet(HashSet<FileId, RandomState>);

impl IdSet {
    /// Adds an id. Returns false if it is in the set already.
    pub(crate) fn claim(&mut self, id: &FileId) -> bool {
        self.0.insert(id.clone())
    }

    /// Bytes, without texts of more than 23 bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.allocation_size() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_names_one_vertex_a_space() {
        let mut map = IdMap::default();
        let (person, post) = (map.space("Person"), map.space("Post"));
        assert_eq!(map.space("person"), person);
        let id = FileId::parse("7");
        assert!(map.claim(person, &id));
        assert!(!map.claim(person, &id));
        assert!(map.claim(post, &id));
        map.resolve(person, id, VertexId::from_bits(3));
        assert_eq!(map.get(person, "7"), Some(VertexId::from_bits(3)));
        assert_eq!(map.get(person, "07"), None);
        assert!(map.claim(person, &FileId::parse("07")));
    }
}
