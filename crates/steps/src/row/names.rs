//! Names of labels and keys, looked up in the catalog once and kept.
//!
//! The catalog only grows and never renames, so a name that was found stays right. Only "which label sets
//! contain these names" may change: when a new set has come.

use mangrove_graph::{GraphView, KeyId, LabelFilter, LabelSetId, Value};
use mangrove_plan::logical::Name;

/// The label sets that contain one of some names, kept as long as no new set has come.
#[derive(Debug)]
pub struct LabelSets {
    names: Vec<Name>,
    /// How many sets the catalog had when the filter was made.
    known: usize,
    filter: LabelFilter,
}

impl LabelSets {
    /// Those with one of these names.
    pub fn with_any(names: Vec<Name>) -> Self {
        LabelSets { names, known: 0, filter: LabelFilter::Sets([].into()) }
    }

    /// Those that an expansion along edges of these names takes; no names mean all.
    pub fn along(names: Vec<Name>) -> Self {
        let filter = if names.is_empty() { LabelFilter::Any } else { LabelFilter::Sets([].into()) };
        LabelSets { names, known: 0, filter }
    }

    /// The sets as a filter.
    pub fn filter(&mut self, view: &dyn GraphView) -> &LabelFilter {
        // Counted before the sets are looked up: one that comes in between is found the next time.
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
pub struct NameCache {
    labels: Vec<Option<Name>>,
    keys: Vec<Option<Name>>,
}

impl NameCache {
    /// The name of a label set.
    pub fn label(&mut self, id: LabelSetId, view: &dyn GraphView) -> Name {
        entry(&mut self.labels, id.0).get_or_insert_with(|| view.catalog().label_set_name(id)).clone()
    }

    /// The name of a key.
    pub fn key(&mut self, id: KeyId, view: &dyn GraphView) -> Name {
        entry(&mut self.keys, id.0).get_or_insert_with(|| view.catalog().key_name(id)).clone()
    }

    /// The name of a key as a value.
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

/// The keys of these names, each once; names that no key ever had are left out. `None` where no names were
/// given, which means all keys.
pub fn known_keys(names: &[Name], view: &dyn GraphView) -> Option<Vec<KeyId>> {
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
