//! From ids in files to internal ids, for the length of one load.
//!
//! A file's id is unique within an *id space*: 933 may name a person and a forum. Integers are kept as
//! 64-bit keys (16 bytes an entry), other ids as short strings; both maps of a space grow as needed, and
//! everything is dropped when the load ends.

use foldhash::fast::RandomState;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use mangrove_graph::{UserId, VertexId};
use smol_str::SmolStr;

/// An id space, interned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SpaceId(u32);

/// An id as a file has it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum FileId {
    /// A whole number in its plain decimal form.
    Int(i64),
    /// Anything else.
    Text(SmolStr),
}

impl FileId {
    /// Reads an id: the plain decimal form of a 64-bit integer is that integer; anything else (`007`, `+1`,
    /// `a`) is text, so that two ids that differ on paper never become one.
    pub(crate) fn parse(text: &str) -> Self {
        match plain_integer(text.as_bytes()) {
            Some(number) => FileId::Int(number),
            None => FileId::Text(text.into()),
        }
    }

    /// The id a user knows the element by.
    pub(crate) fn to_user_id(&self) -> UserId {
        match self {
            FileId::Int(number) => UserId::int(*number),
            FileId::Text(text) => UserId::String(text.clone()),
        }
    }
}

impl From<&UserId> for FileId {
    fn from(id: &UserId) -> Self {
        match id {
            UserId::Int(id) => FileId::Int(id.number),
            UserId::String(text) => FileId::Text(text.clone()),
            // A UUID and its text name the same thing in a file.
            UserId::Uuid(uuid) => FileId::Text(uuid.to_string().into()),
        }
    }
}

impl std::fmt::Display for FileId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileId::Int(number) => write!(f, "{number}"),
            FileId::Text(text) => write!(f, "'{text}'"),
        }
    }
}

/// The integer whose plain decimal form this is: no plus sign, no leading zeros, within 64 bits.
pub(crate) fn plain_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let plain = match digits {
        [] => false,
        [b'0'] => !negative,
        [first, ..] => *first != b'0',
    };
    if !plain || digits.len() > 19 {
        return None;
    }
    // Downwards, because the range of negative numbers is the larger one.
    let mut number: i64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))?;
    }
    if negative { Some(number) } else { number.checked_neg() }
}

#[derive(Default)]
struct Space {
    ints: HashMap<i64, VertexId, RandomState>,
    texts: HashMap<SmolStr, VertexId, RandomState>,
}

/// The value of an id that is claimed while its vertex waits in a batch.
const PENDING_BITS: u64 = u64::MAX;

/// (id space, id) → internal id.
#[derive(Default)]
pub(crate) struct IdMap {
    names: HashMap<String, SpaceId, RandomState>,
    spaces: Vec<Space>,
}

impl IdMap {
    /// The space of this name, made where it is new. Upper and lower case are one: the headers of one data
    /// set often disagree (`person.csv`, `Person.id`).
    pub(crate) fn space(&mut self, name: &str) -> SpaceId {
        let next = SpaceId(u32::try_from(self.spaces.len()).expect("a load has fewer than 2^32 id spaces"));
        match self.names.entry(name.to_ascii_lowercase()) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.spaces.push(Space::default());
                *entry.insert(next)
            }
        }
    }

    /// Claims an id for a vertex still to be made; false where it is taken.
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

    /// Takes a claim back: its vertex was not made.
    pub(crate) fn withdraw(&mut self, space: SpaceId, id: &FileId) {
        let space = &mut self.spaces[space.0 as usize];
        match id {
            FileId::Int(number) => space.ints.remove(number),
            FileId::Text(text) => space.texts.remove(text),
        };
    }

    /// Says which vertex a claimed id names.
    pub(crate) fn settle(&mut self, space: SpaceId, id: FileId, vertex: VertexId) {
        let space = &mut self.spaces[space.0 as usize];
        match id {
            FileId::Int(number) => space.ints.insert(number, vertex),
            FileId::Text(text) => space.texts.insert(text, vertex),
        };
    }

    /// The vertex a whole number names.
    pub(crate) fn get_int(&self, space: SpaceId, number: i64) -> Option<VertexId> {
        self.spaces[space.0 as usize].ints.get(&number).copied()
    }

    /// The vertex an id names.
    pub(crate) fn get(&self, space: SpaceId, id: &str) -> Option<VertexId> {
        let space = &self.spaces[space.0 as usize];
        match plain_integer(id.as_bytes()) {
            Some(number) => space.ints.get(&number).copied(),
            None => space.texts.get(id).copied(),
        }
    }

    /// The vertex an id names.
    pub(crate) fn get_id(&self, space: SpaceId, id: &FileId) -> Option<VertexId> {
        let space = &self.spaces[space.0 as usize];
        match id {
            FileId::Int(number) => space.ints.get(number).copied(),
            FileId::Text(text) => space.texts.get(text.as_str()).copied(),
        }
    }
}

impl IdMap {
    /// Memory of the maps, without the texts longer than 23 bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.spaces.iter().map(|space| space.ints.allocation_size() + space.texts.allocation_size());
        bytes.sum::<usize>() as u64
    }
}

/// Ids that must not occur twice.
#[derive(Default)]
pub(crate) struct IdSet(HashSet<FileId, RandomState>);

impl IdSet {
    /// Adds an id; false where it is there already.
    pub(crate) fn claim(&mut self, id: &FileId) -> bool {
        self.0.insert(id.clone())
    }

    /// Memory, without the texts longer than 23 bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.allocation_size() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_plain_decimal_form_is_a_number() {
        for (text, number) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("99999999999999999999", None),
            ("007", None),
            ("-0", None),
            ("+1", None),
            ("", None),
            ("-", None),
            ("1a", None),
        ] {
            assert_eq!(plain_integer(text.as_bytes()), number, "{text}");
        }
    }

    #[test]
    fn one_number_names_one_vertex_a_space() {
        let mut map = IdMap::default();
        let (person, post) = (map.space("Person"), map.space("Post"));
        assert_eq!(map.space("person"), person);
        let id = FileId::parse("7");
        assert!(map.claim(person, &id));
        assert!(!map.claim(person, &id));
        assert!(map.claim(post, &id));
        map.settle(person, id, VertexId::from_bits(3));
        assert_eq!(map.get(person, "7"), Some(VertexId::from_bits(3)));
        assert_eq!(map.get(person, "07"), None);
        assert!(map.claim(person, &FileId::parse("07")));
    }
}
