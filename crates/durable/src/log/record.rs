//! The records of the log: commits, names, indexes, schema rules.
//!
//! A record is its length (a varint, counting the bytes after it), a kind, and its content:
//!
//! | kind | record | content |
//! |---|---|---|
//! | 1 | commit | timestamp (8 bytes), then redo entries to the end |
//! | 2 | names | first label, count, names; first key, count, names; first label set, count, each a count and labels |
//! | 3 | index created | the index (`codec::put_index`) |
//! | 4 | index dropped | id |
//! | 5 | rules | all schema rules from now on (`codec::put_rules`) |
//! | 6 | moment | microseconds since 1970 (8 bytes) when the records after it were written; never falls within a log |
//! | 7 | before | timestamp (8 bytes), then properties as redo entries: the values that the commit replaces or deletes |
//! | 8 | identities | timestamp (8 bytes), then insertions as redo entries: elements that the commit names and did not insert |
//!
//! Kinds 7 and 8 are for the change feed alone ([`crate::feed`]); recovery skips them. They come directly before the
//! commit with their timestamp, and are there only if the graph's option asks for them ([`super::FeedContent`]).
//!
//! A redo entry is a byte and its content. An element id is written as the varint of its 64 bits, *rotated* so that the
//! tablet is last: the ids of small graphs are then short.
//!
//! | byte | entry | content |
//! |---|---|---|
//! | 1, 2 | vertex inserted; with a chosen id | id, label set; user id |
//! | 3, 4 | edge inserted; with a chosen id | id, label set, source, target; user id |
//! | 5, 6 | vertex, edge deleted | id |
//! | 7, 8 | property of a vertex, of an edge | id, key, content |
//!
//! - **LOG-11.** Names are in the log before the records that use them. A batch begins with the names that its records
//!   need and no earlier batch has.

use mangrove_graph::{Catalog, EdgeId, ElementId, IndexId, IndexInfo, KeyId, LabelId, LabelSetId, TabletId, VertexId};
use mangrove_store::Redo;
use smol_str::SmolStr;

use crate::codec::{
    Malformed, Reader, SavedRules, put_content, put_index, put_rules, put_text, put_user_id, put_varint, read_content,
    read_index, read_rules, read_user_id,
};

pub(super) const COMMIT: u8 = 1;
const NAMES: u8 = 2;
const INDEX_CREATED: u8 = 3;
const INDEX_DROPPED: u8 = 4;
const RULES: u8 = 5;
const MOMENT: u8 = 6;
pub(super) const BEFORE: u8 = 7;
pub(super) const IDENTITIES: u8 = 8;

const VERTEX: u8 = 1;
const VERTEX_WITH_ID: u8 = 2;
const EDGE: u8 = 3;
const EDGE_WITH_ID: u8 = 4;
const DELETE_VERTEX: u8 = 5;
const DELETE_EDGE: u8 = 6;
const VERTEX_PROPERTY: u8 = 7;
const EDGE_PROPERTY: u8 = 8;

/// Bits of an id that hold the tablet.
const TABLET_BITS: u32 = 16;
/// The most bytes that length, kind and timestamp of a commit take.
pub(crate) const COMMIT_OVERHEAD: usize = 10 + 1 + 8;
/// Bytes of a moment, framed.
pub(crate) const MOMENT_BYTES: usize = 1 + 1 + 8;

/// Numbers of names by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NameCounts {
    /// Labels.
    pub labels: u32,
    /// Keys.
    pub keys: u32,
    /// Label sets.
    pub label_sets: u32,
}

impl NameCounts {
    /// The counts of a catalog. The labels of every counted set are counted.
    pub fn of(catalog: &Catalog) -> Self {
        // Sets first: a label that is added in between is one too many, which does no harm.
        let label_sets = catalog.label_set_count() as u32;
        NameCounts { labels: catalog.label_count() as u32, keys: catalog.key_count() as u32, label_sets }
    }

    /// The larger count of each kind.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        NameCounts {
            labels: self.labels.max(other.labels),
            keys: self.keys.max(other.keys),
            label_sets: self.label_sets.max(other.label_sets),
        }
    }
}

/// Names that were added to a catalog, with the number of the first of each kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// The counts before these names.
    pub first: NameCounts,
    /// Labels.
    pub labels: Vec<SmolStr>,
    /// Keys.
    pub keys: Vec<SmolStr>,
    /// Label sets, each as its labels.
    pub label_sets: Vec<Vec<LabelId>>,
}

impl Names {
    /// The names of a catalog between two counts.
    pub fn between(catalog: &Catalog, first: NameCounts, end: NameCounts) -> Self {
        Names {
            first,
            labels: (first.labels..end.labels).map(|id| catalog.label_name(LabelId(id))).collect(),
            keys: (first.keys..end.keys).map(|id| catalog.key_name(KeyId(id))).collect(),
            label_sets: (first.label_sets..end.label_sets).map(|id| catalog.labels_of(LabelSetId(id))).collect(),
        }
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.keys.is_empty() && self.label_sets.is_empty()
    }

    /// The counts with these names.
    pub fn end(&self) -> NameCounts {
        NameCounts {
            labels: self.first.labels + self.labels.len() as u32,
            keys: self.first.keys + self.keys.len() as u32,
            label_sets: self.first.label_sets + self.label_sets.len() as u32,
        }
    }

    /// Adds the names to a catalog, which may have some of them. Returns false if the catalog has other names under
    /// their numbers, or lacks names before them.
    #[must_use]
    pub fn put_into(&self, catalog: &Catalog) -> bool {
        let numbered = |first: u32, i: usize| first + i as u32;
        let mut labels = self.labels.iter().enumerate();
        let mut keys = self.keys.iter().enumerate();
        let mut sets = self.label_sets.iter().enumerate();
        labels.all(|(i, name)| catalog.intern_label(name).0 == numbered(self.first.labels, i))
            && keys.all(|(i, name)| catalog.intern_key(name).0 == numbered(self.first.keys, i))
            && sets.all(|(i, set)| self.put_set(set, numbered(self.first.label_sets, i), catalog))
    }

    fn put_set(&self, labels: &[LabelId], number: u32, catalog: &Catalog) -> bool {
        let are_known = labels.iter().all(|label| (label.0 as usize) < catalog.label_count());
        are_known && catalog.intern_label_set(labels).0 == number
    }

    fn put(&self, out: &mut Vec<u8>) {
        for (first, names) in [(self.first.labels, &self.labels), (self.first.keys, &self.keys)] {
            put_varint(u64::from(first), out);
            put_varint(names.len() as u64, out);
            names.iter().for_each(|name| put_text(name, out));
        }
        put_varint(u64::from(self.first.label_sets), out);
        put_varint(self.label_sets.len() as u64, out);
        for labels in &self.label_sets {
            put_varint(labels.len() as u64, out);
            labels.iter().for_each(|label| put_varint(u64::from(label.0), out));
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        fn texts(reader: &mut Reader<'_>) -> Result<(u32, Vec<SmolStr>), Malformed> {
            let first = reader.varint_u32()?;
            let count = reader.count()?;
            let names = (0..count).map(|_| reader.text().map(SmolStr::from)).collect::<Result<Vec<_>, _>>()?;
            match first.checked_add(names.len() as u32) {
                Some(_) => Ok((first, names)),
                None => Err(reader.malformed("more names than there are numbers")),
            }
        }
        let (first_label, labels) = texts(reader)?;
        let (first_key, keys) = texts(reader)?;
        let first_set = reader.varint_u32()?;
        let count = reader.count()?;
        let mut label_sets = Vec::new();
        for _ in 0..count {
            let labels = reader.count()?;
            label_sets.push((0..labels).map(|_| reader.varint_u32().map(LabelId)).collect::<Result<_, _>>()?);
        }
        if first_set.checked_add(label_sets.len() as u32).is_none() {
            return Err(reader.malformed("more names than there are numbers"));
        }
        let first = NameCounts { labels: first_label, keys: first_key, label_sets: first_set };
        Ok(Names { first, labels, keys, label_sets })
    }
}

/// A record of the log.
#[derive(Clone, PartialEq, Debug)]
pub enum Record<'a> {
    /// A committed transaction.
    Commit(CommitRecord<'a>),
    /// Names that were added to the catalog.
    Names(Names),
    /// An index that exists from now on.
    IndexCreated(IndexInfo),
    /// An index that no longer exists.
    IndexDropped(IndexId),
    /// All rules of the schema.
    Rules(SavedRules),
    /// The time when the records after it were written, in microseconds since 1970.
    Moment(u64),
    /// The values that the next commit replaces or deletes, as properties.
    Before(CommitRecord<'a>),
    /// The elements that the next commit names and did not insert, as insertions.
    Identities(CommitRecord<'a>),
}

/// A commit, or what the log says besides it for the change feed: its timestamp and redo entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitRecord<'a> {
    /// The commit timestamp.
    pub timestamp: u64,
    body: &'a [u8],
}

impl CommitRecord<'_> {
    /// Calls `each` with the redo entries in the order in which they must be applied. Stops at the first error, of
    /// `each` or of the bytes.
    pub fn each_redo<E: From<Malformed>>(&self, mut each: impl FnMut(Redo) -> Result<(), E>) -> Result<(), E> {
        let mut reader = Reader::new(self.body);
        while !reader.is_at_end() {
            each(read_redo(&mut reader)?)?;
        }
        Ok(())
    }

    /// Bytes of the redo entries.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Returns true if there are no redo entries.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }
}

/// The tablet that an entry changes.
pub(crate) fn tablet_of(redo: &Redo) -> TabletId {
    let (Redo::Insert { element, .. } | Redo::Delete(element) | Redo::Property { element, .. }) = redo;
    match element {
        ElementId::Vertex(id) => id.tablet(),
        ElementId::Edge(id) => id.tablet(),
    }
}

/// Appends length, kind and timestamp of a commit record; its body follows.
#[cfg(test)]
pub(crate) fn put_commit_head(timestamp: u64, body_len: usize, out: &mut Vec<u8>) {
    put_head(COMMIT, timestamp, body_len, out);
}

/// Appends length, kind and timestamp of a record of redo entries, which follow.
pub(super) fn put_head(kind: u8, timestamp: u64, body_len: usize, out: &mut Vec<u8>) {
    put_varint(1 + 8 + body_len as u64, out);
    out.push(kind);
    out.extend_from_slice(&timestamp.to_le_bytes());
}

fn put_framed(kind: u8, out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let mut content = vec![kind];
    put(&mut content);
    put_varint(content.len() as u64, out);
    out.extend_from_slice(&content);
}

/// Appends names, framed.
pub(crate) fn put_names(names: &Names, out: &mut Vec<u8>) {
    put_framed(NAMES, out, |content| names.put(content));
}

/// Appends the creation of an index, framed.
pub(crate) fn put_index_created(info: &IndexInfo, out: &mut Vec<u8>) {
    put_framed(INDEX_CREATED, out, |content| put_index(info, content));
}

/// Appends the drop of an index, framed.
pub(crate) fn put_index_dropped(id: IndexId, out: &mut Vec<u8>) {
    put_framed(INDEX_DROPPED, out, |content| put_varint(u64::from(id.0), content));
}

/// Appends the schema rules, framed.
pub(crate) fn put_rules_record(rules: &SavedRules, out: &mut Vec<u8>) {
    put_framed(RULES, out, |content| put_rules(rules, content));
}

/// Appends a moment, framed: [`MOMENT_BYTES`].
pub(crate) fn put_moment(unix_us: u64, out: &mut Vec<u8>) {
    put_framed(MOMENT, out, |content| content.extend_from_slice(&unix_us.to_le_bytes()));
}

fn put_entries(kind: u8, entries: &CommitRecord<'_>, out: &mut Vec<u8>) {
    put_head(kind, entries.timestamp, entries.body.len(), out);
    out.extend_from_slice(entries.body);
}

/// Appends a record as it was read, framed.
pub(crate) fn put_record(record: &Record<'_>, out: &mut Vec<u8>) {
    match record {
        Record::Commit(entries) => put_entries(COMMIT, entries, out),
        Record::Before(entries) => put_entries(BEFORE, entries, out),
        Record::Identities(entries) => put_entries(IDENTITIES, entries, out),
        Record::Names(names) => put_names(names, out),
        Record::IndexCreated(info) => put_index_created(info, out),
        Record::IndexDropped(id) => put_index_dropped(*id, out),
        Record::Rules(rules) => put_rules_record(rules, out),
        Record::Moment(unix_us) => put_moment(*unix_us, out),
    }
}

/// Reads a record without its length.
pub(crate) fn read_record(bytes: &[u8]) -> Result<Record<'_>, Malformed> {
    let mut reader = Reader::new(bytes);
    let kind = reader.byte()?;
    let record = match kind {
        COMMIT | BEFORE | IDENTITIES => {
            let timestamp = reader.u64()?;
            let entries = CommitRecord { timestamp, body: reader.take(reader.left())? };
            match kind {
                COMMIT => Record::Commit(entries),
                BEFORE => Record::Before(entries),
                _ => Record::Identities(entries),
            }
        }
        NAMES => Record::Names(Names::read(&mut reader)?),
        INDEX_CREATED => Record::IndexCreated(read_index(&mut reader)?),
        INDEX_DROPPED => Record::IndexDropped(IndexId(reader.varint_u32()?)),
        RULES => Record::Rules(read_rules(&mut reader)?),
        MOMENT => Record::Moment(reader.u64()?),
        _ => return Err(Malformed { at: 0, what: "a record of an unknown kind" }),
    };
    reader.expect_end()?;
    Ok(record)
}

fn put_id(bits: u64, out: &mut Vec<u8>) {
    put_varint(bits.rotate_left(TABLET_BITS), out);
}

fn read_id(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    Ok(reader.varint()?.rotate_right(TABLET_BITS))
}

pub(super) fn put_redo(redo: &Redo, out: &mut Vec<u8>) {
    let mut tagged = |element: &ElementId, of_vertex: u8, of_edge: u8| {
        let (tag, bits) = match element {
            ElementId::Vertex(id) => (of_vertex, id.to_bits()),
            ElementId::Edge(id) => (of_edge, id.to_bits()),
        };
        out.push(tag);
        put_id(bits, out);
    };
    match redo {
        Redo::Insert { element, labels, ends, user_id } => {
            match user_id {
                None => tagged(element, VERTEX, EDGE),
                Some(_) => tagged(element, VERTEX_WITH_ID, EDGE_WITH_ID),
            }
            put_varint(u64::from(labels.0), out);
            ends.iter().flat_map(|(source, target)| [source, target]).for_each(|end| put_id(end.to_bits(), out));
            user_id.iter().for_each(|id| put_user_id(id, out));
        }
        Redo::Delete(element) => tagged(element, DELETE_VERTEX, DELETE_EDGE),
        Redo::Property { element, key, content } => {
            tagged(element, VERTEX_PROPERTY, EDGE_PROPERTY);
            put_varint(u64::from(key.0), out);
            put_content(content, out);
        }
    }
}

fn read_redo(reader: &mut Reader<'_>) -> Result<Redo, Malformed> {
    let at = reader.malformed("a redo entry of an unknown kind");
    let tag = reader.byte()?;
    let bits = read_id(reader)?;
    let element = match tag {
        VERTEX | VERTEX_WITH_ID | DELETE_VERTEX | VERTEX_PROPERTY => ElementId::Vertex(VertexId::from_bits(bits)),
        EDGE | EDGE_WITH_ID | DELETE_EDGE | EDGE_PROPERTY => ElementId::Edge(EdgeId::from_bits(bits)),
        _ => return Err(at),
    };
    Ok(match tag {
        DELETE_VERTEX | DELETE_EDGE => Redo::Delete(element),
        VERTEX_PROPERTY | EDGE_PROPERTY => {
            Redo::Property { element, key: KeyId(reader.varint_u32()?), content: read_content(reader)? }
        }
        _ => {
            let labels = LabelSetId(reader.varint_u32()?);
            let ends = match element {
                ElementId::Vertex(_) => None,
                ElementId::Edge(_) => Some((read_end(reader)?, read_end(reader)?)),
            };
            let user_id = match tag {
                VERTEX_WITH_ID | EDGE_WITH_ID => Some(read_user_id(reader)?),
                _ => None,
            };
            Redo::Insert { element, labels, ends, user_id }
        }
    })
}

fn read_end(reader: &mut Reader<'_>) -> Result<VertexId, Malformed> {
    Ok(VertexId::from_bits(read_id(reader)?))
}

#[cfg(test)]
mod tests {
    use mangrove_graph::{ElementKind, UserId, Value};
    use mangrove_store::Content;

    use super::*;

    #[test]
    fn redo_comes_back_and_short() {
        let vertex = |slot| VertexId::new(TabletId(3), slot);
        let (v, e) = (ElementId::Vertex(vertex(5)), ElementId::Edge(EdgeId::new(TabletId(3), 1 << 40)));
        let labels = LabelSetId(2);
        let insert = |element, ends, user_id| Redo::Insert { element, labels, ends, user_id };
        let redo = [
            insert(v, None, None),
            insert(v, None, Some(UserId::from("x"))),
            insert(e, Some((vertex(5), vertex(6))), None),
            insert(e, Some((vertex(5), vertex(6))), Some(UserId::int(-4))),
            Redo::Delete(v),
            Redo::Delete(e),
            Redo::Property { element: v, key: KeyId(9), content: Content::One(Value::from("text")) },
            Redo::Property { element: e, key: KeyId(9), content: Content::Absent },
        ];
        let mut body = Vec::new();
        redo.iter().for_each(|redo| put_redo(redo, &mut body));
        let mut bytes = Vec::new();
        put_commit_head(77, body.len(), &mut bytes);
        bytes.extend_from_slice(&body);
        let mut reader = Reader::new(&bytes);
        let framed = reader.bytes().unwrap();
        let Record::Commit(commit) = read_record(framed).unwrap() else { panic!("a commit was written") };
        let mut read = Vec::new();
        commit
            .each_redo::<Malformed>(|redo| {
                read.push(redo);
                Ok(())
            })
            .unwrap();
        assert_eq!((commit.timestamp, read.as_slice()), (77, &redo[..]));
        let mut short = Vec::new();
        put_redo(&redo[0], &mut short);
        assert_eq!(short.len(), 5, "a small graph's ids take three bytes");
    }

    #[test]
    fn names_and_indexes_come_back() {
        let catalog = Catalog::new();
        catalog.intern_label_text("a");
        let first = NameCounts::of(&catalog);
        catalog.intern_label_text("a::b");
        catalog.intern_key("k");
        let names = Names::between(&catalog, first, NameCounts::of(&catalog));
        assert_eq!(names.end(), NameCounts { labels: 2, keys: 1, label_sets: 2 });
        let label = Some(LabelId(1));
        let info = IndexInfo {
            id: IndexId(4),
            element: ElementKind::Vertex,
            label,
            keys: [KeyId(0)].into(),
            ordered: true,
            unique: false,
        };
        let mut bytes = Vec::new();
        put_names(&names, &mut bytes);
        put_index_created(&info, &mut bytes);
        put_index_dropped(IndexId(4), &mut bytes);
        let before = bytes.len();
        put_moment(1 << 50, &mut bytes);
        assert_eq!(bytes.len() - before, MOMENT_BYTES);
        let mut reader = Reader::new(&bytes);
        let mut next = || read_record(reader.bytes().unwrap()).unwrap();
        assert_eq!(next(), Record::Names(names.clone()));
        assert_eq!(next(), Record::IndexCreated(info));
        assert_eq!(next(), Record::IndexDropped(IndexId(4)));
        assert_eq!(next(), Record::Moment(1 << 50));
        let other = Catalog::new();
        assert!(!names.clone().put_into(&other), "the names before are missing");
        let other = Catalog::new();
        other.intern_label_text("a");
        assert!(names.put_into(&other) && names.put_into(&other));
        assert_eq!(NameCounts::of(&other), names.end());
        assert_eq!(other.label_set_name(LabelSetId(1)), "a::b");
    }
}
