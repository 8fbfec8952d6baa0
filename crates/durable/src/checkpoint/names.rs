//! The names of a graph, its indexes and its schema rules as bytes.
//!
//! ```text
//! labels: count, texts
//! keys: count, texts
//! label sets: count, then (count, labels)
//! indexes: number of the next one, count, then the indexes (`codec::put_index`)
//! rules (`codec::put_rules`); absent in files of versions without schema rules
//! ```
//!
//! The number of a name is its position. Names may be added while they are written here: rules and sets are taken
//! first, so that the names they use are among those that are taken after them (LOG-25).

use mangrove_graph::{Catalog, IndexInfo, KeyId, LabelId};
use mangrove_store::{INDEX_KEYS_MAX, Store};

use crate::codec::{
    IMPOSSIBLE_RULE, Malformed, Reader, SavedRules, put_index, put_rules, put_text, put_varint, read_index, read_rules,
};

/// Appends the names, indexes and rules of a store.
pub(super) fn put_names(store: &Store, out: &mut Vec<u8>) {
    // Taken first, so that the names taken below include all names that they use (LOG-25).
    let (rules, next) = store.lasting_rules();
    let catalog = store.catalog();
    let mut sets = Vec::new();
    let set_count = catalog.label_set_count();
    put_varint(set_count as u64, &mut sets);
    for id in 0..set_count {
        let labels = catalog.labels_of(mangrove_graph::LabelSetId(id as u32));
        put_varint(labels.len() as u64, &mut sets);
        labels.iter().for_each(|label| put_varint(u64::from(label.0), &mut sets));
    }
    let (label_count, key_count) = (catalog.label_count(), catalog.key_count());
    put_varint(label_count as u64, out);
    (0..label_count).for_each(|id| put_text(&catalog.label_name(LabelId(id as u32)), out));
    put_varint(key_count as u64, out);
    (0..key_count).for_each(|id| put_text(&catalog.key_name(KeyId(id as u32)), out));
    out.append(&mut sets);
    put_indexes(store, out);
    let list = rules.into_iter().map(|entry| (entry.id, entry.rule)).collect();
    put_rules(&SavedRules { list, next }, out);
}

fn put_indexes(store: &Store, out: &mut Vec<u8>) {
    let (indexes, next) = store.online_indexes();
    put_varint(u64::from(next), out);
    put_varint(indexes.len() as u64, out);
    indexes.iter().for_each(|index| put_index(index, out));
}

/// The indexes of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Indexes {
    pub(crate) list: Vec<IndexInfo>,
    /// The number of the next index.
    pub(crate) next: u32,
}

/// Reads names into an empty catalog. Returns the indexes and the rules.
pub(crate) fn read_names(bytes: &[u8], catalog: &Catalog) -> Result<(Indexes, SavedRules), Malformed> {
    let mut reader = Reader::new(bytes);
    for id in 0..reader.count()? {
        let twice = reader.malformed("a label that has a number already");
        if catalog.intern_label(reader.text()?).0 as usize != id {
            return Err(twice);
        }
    }
    for id in 0..reader.count()? {
        let twice = reader.malformed("a key that has a number already");
        if catalog.intern_key(reader.text()?).0 as usize != id {
            return Err(twice);
        }
    }
    for id in 0..reader.count()? {
        let count = reader.count()?;
        let labels = (0..count).map(|_| read_label(&mut reader, catalog)).collect::<Result<Vec<_>, _>>()?;
        let twice = reader.malformed("a label set that has a number already");
        if catalog.intern_label_set(&labels).0 as usize != id {
            return Err(twice);
        }
    }
    let indexes = read_indexes(&mut reader, catalog)?;
    let impossible = reader.malformed(IMPOSSIBLE_RULE);
    let rules = if reader.is_at_end() { SavedRules::default() } else { read_rules(&mut reader)? };
    reader.expect_end()?;
    if rules.are_possible(catalog) { Ok((indexes, rules)) } else { Err(impossible) }
}

fn read_label(reader: &mut Reader<'_>, catalog: &Catalog) -> Result<LabelId, Malformed> {
    let unknown = reader.malformed("a label without a name");
    let id = reader.varint_u32()?;
    if (id as usize) < catalog.label_count() { Ok(LabelId(id)) } else { Err(unknown) }
}

fn read_indexes(reader: &mut Reader<'_>, catalog: &Catalog) -> Result<Indexes, Malformed> {
    let next = reader.varint_u32()?;
    let count = reader.count()?;
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        let impossible = reader.malformed(IMPOSSIBLE_INDEX);
        let index = read_index(reader)?;
        if !is_possible(&index, catalog) {
            return Err(impossible);
        }
        list.push(index);
    }
    Ok(Indexes { list, next })
}

/// The error text for an index that is not [`is_possible`].
pub(crate) const IMPOSSIBLE_INDEX: &str =
    "an index with names that the catalog does not have, without a key, or with too many keys";

/// Returns true if a catalog has all names that an index uses, and it has a possible number of keys.
pub(crate) fn is_possible(index: &IndexInfo, catalog: &Catalog) -> bool {
    let has_label = index.label.is_none_or(|label| (label.0 as usize) < catalog.label_count());
    let has_keys = index.keys.iter().all(|key| (key.0 as usize) < catalog.key_count());
    has_label && has_keys && (1..=INDEX_KEYS_MAX).contains(&index.keys.len())
}

#[cfg(test)]
mod tests {
    use mangrove_graph::{ElementKind, IndexId};
    use mangrove_store::{IndexOptions, StoreOptions};

    use super::*;

    #[test]
    fn names_and_indexes_come_back_under_their_numbers() {
        let store = Store::new(&StoreOptions::default());
        let catalog = store.catalog();
        catalog.intern_label_text("b::a");
        catalog.intern_label_text("c");
        catalog.intern_label_set(&[]);
        let keys = vec![catalog.intern_key("k"), catalog.intern_key("l")];
        let label = catalog.label("a");
        for (element, label, ordered) in [(ElementKind::Vertex, label, true), (ElementKind::Edge, None, false)] {
            let options = IndexOptions { element, label, keys: keys.clone(), ordered, unique: !ordered };
            store.create_index(&options, || 0).unwrap();
        }
        store.drop_index(IndexId(0)).unwrap();
        let mut bytes = Vec::new();
        put_names(&store, &mut bytes);
        let read = Catalog::new();
        let (indexes, rules) = read_names(&bytes, &read).unwrap();
        assert_eq!(rules, SavedRules::default());
        assert_eq!((indexes.list, indexes.next), (store.indexes(), 2));
        assert_eq!((read.label_count(), read.key_count(), read.label_set_count()), (3, 2, 3));
        assert_eq!(
            read.label_set_name(read.intern_label_text("a::b")),
            catalog.label_set_name(mangrove_graph::LabelSetId(0))
        );
        // The last two bytes are the empty rules. Without them the bytes are those of a version without schema rules.
        let older = bytes.len() - 2;
        for at in 0..bytes.len() {
            assert_eq!(read_names(&bytes[..at], &Catalog::new()).is_ok(), at == older, "{at} bytes");
        }
    }
}
