//! Names of labels and keys, read from the catalog once and kept.
//!
//! The catalog only grows and never renames, so a kept name stays valid. Only the answer to "which label sets contain
//! these names" may change: when the catalog gets a new set.

use mangrove_graph::{GraphView, KeyId, LabelFilter, LabelSetId, Value};
use mangrove_plan::logical::Name;

/// The label sets that contain one of some names. Looked up again when the catalog has a new set.
#[derive(Debug)]
pub(crate) struct LabelSets {
    names: Vec<Name>,
    /// The number of sets in the catalog when the filter was made.
    known: usize,
    filter: LabelFilter,
}

impl LabelSets {
    /// The sets with one of these names.
    pub fn with_any(names: Vec<Name>) -> Self {
        LabelSets { names, known: 0, filter: LabelFilter::Sets([].into()) }
    }

    /// The sets that an expansion along edges of these names takes; no names mean all.
    pub fn along(names: Vec<Name>) -> Self {
        let filter = if names.is_empty() { LabelFilter::Any } else { LabelFilter::Sets([].into()) };
        LabelSets { names, known: 0, filter }
    }

    /// Returns the sets as a filter.
    pub fn filter(&mut self, view: &dyn GraphView) -> &LabelFilter {
        // Counted before the look-up: a set that is added between is found the next time.
        let count = view.catalog().label_set_count();
        if count != self.known && self.filter != LabelFilter::Any {
            self.filter = view.label_filter(&self.names);
            self.known = count;
        }
        &self.filter
    }
}

/// Names by number.
#[derive(Debug, Default)]
pub(crate) struct NameCache {
    labels: Vec<Option<Name>>,
    keys: Vec<Option<Name>>,
}

impl NameCache {
    /// Returns the name of a label set.
    pub fn label(&mut self, id: LabelSetId, view: &dyn GraphView) -> Name {
        entry(&mut self.labels, id.0).get_or_insert_with(|| view.catalog().label_set_name(id)).clone()
    }

    /// Returns the name of a key.
    pub fn key(&mut self, id: KeyId, view: &dyn GraphView) -> Name {
        // A view may have keys of its own, with any numbers.
        if id.0 as usize >= view.catalog().key_count() {
            return view.key_name(id);
        }
        entry(&mut self.keys, id.0).get_or_insert_with(|| view.key_name(id)).clone()
    }

    /// Returns the name of a key as a value.
    pub fn key_value(&mut self, id: KeyId, view: &dyn GraphView) -> Value {
        Value::String(self.key(id, view))
    }
}

fn entry(names: &mut Vec<Option<Name>>, id: u32) -> &mut Option<Name> {
    let at = id as usize;
    if names.len() <= at {
        names.resize(at + 1, None);
    }
    &mut names[at]
}

/// Returns the keys of these names, each once, without names that no key has. `None`, which means all keys, if no names
/// are given.
pub(crate) fn known_keys(names: &[Name], view: &dyn GraphView) -> Option<Vec<KeyId>> {
    if names.is_empty() {
        return None;
    }
    let mut keys = Vec::with_capacity(names.len());
    for key in names.iter().filter_map(|name| view.key_of(name)) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Some(keys)
}
