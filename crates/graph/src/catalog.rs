//! The names of a graph, interned: labels, label sets and property keys.
//!
//! - **GRAPH-6.** The catalog only grows: a name keeps its number for the life of the graph. So plans, records and
//!   cursors may keep numbers without a version.
//!
//! The catalog is read when a plan is made and when results get their names, not for each row. So one read-write lock
//! for each kind of name is enough. No other lock is taken while one of them is held.

use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use parking_lot::RwLock;
use smol_str::{SmolStr, SmolStrBuilder};

use crate::ids::{KeyId, LabelId, LabelSetId};

/// The separator between the labels of a set, as Gremlin writes it.
pub const LABEL_SEPARATOR: &str = "::";

#[derive(Default)]
struct Names {
    by_name: HashMap<SmolStr, u32, foldhash::fast::RandomState>,
    by_id: Vec<SmolStr>,
}

impl Names {
    fn get(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    fn intern(&mut self, name: &str) -> u32 {
        if let Some(id) = self.get(name) {
            return id;
        }
        // GRAPH-6: the next number is a new one, since names are never removed.
        let id = u32::try_from(self.by_id.len()).expect("fewer than 2^32 names fit in memory");
        let name = SmolStr::from(name);
        self.by_id.push(name.clone());
        self.by_name.insert(name, id);
        id
    }
}

#[derive(Default)]
struct LabelSets {
    by_labels: HashMap<Box<[LabelId]>, LabelSetId, foldhash::fast::RandomState>,
    by_id: Vec<(Box<[LabelId]>, SmolStr)>,
}

/// The labels, label sets and property keys of one graph.
#[derive(Default)]
pub struct Catalog {
    labels: RwLock<Names>,
    keys: RwLock<Names>,
    sets: RwLock<LabelSets>,
    /// The numbers of sets and keys. Every transaction reads them, and taking a lock would move its word from core to
    /// core.
    set_count: AtomicUsize,
    key_count: AtomicUsize,
}

impl Catalog {
    /// An empty catalog.
    pub fn new() -> Self {
        Self::default()
    }

    /// The label of a name, if there is one.
    pub fn label(&self, name: &str) -> Option<LabelId> {
        self.labels.read().get(name).map(LabelId)
    }

    /// The label of a name, which is made if it is new.
    pub fn intern_label(&self, name: &str) -> LabelId {
        match self.label(name) {
            Some(id) => id,
            None => LabelId(self.labels.write().intern(name)),
        }
    }

    /// The name of a label.
    pub fn label_name(&self, id: LabelId) -> SmolStr {
        self.labels.read().by_id[id.0 as usize].clone()
    }

    /// The number of labels. Their ids are the numbers below it.
    pub fn label_count(&self) -> usize {
        self.labels.read().by_id.len()
    }

    /// The key of a name, if there is one.
    pub fn key(&self, name: &str) -> Option<KeyId> {
        self.keys.read().get(name).map(KeyId)
    }

    /// The key of a name, which is made if it is new.
    pub fn intern_key(&self, name: &str) -> KeyId {
        match self.key(name) {
            Some(id) => id,
            None => {
                let mut keys = self.keys.write();
                let id = KeyId(keys.intern(name));
                // Release, and under the lock: a thread that has met the id reads a count above it (`key_count`,
                // Acquire).
                self.key_count.store(keys.by_id.len(), Ordering::Release);
                id
            }
        }
    }

    /// The name of a key.
    pub fn key_name(&self, id: KeyId) -> SmolStr {
        self.keys.read().by_id[id.0 as usize].clone()
    }

    /// The number of keys. Their ids are the numbers below it.
    pub fn key_count(&self) -> usize {
        self.key_count.load(Ordering::Acquire)
    }

    /// The set of these labels, which is made if it is new. Order and duplicates do not matter.
    pub fn intern_label_set(&self, labels: &[LabelId]) -> LabelSetId {
        let mut sorted = labels.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        if let Some(id) = self.sets.read().by_labels.get(sorted.as_slice()) {
            return *id;
        }
        let mut text = SmolStrBuilder::new();
        for (i, label) in sorted.iter().enumerate() {
            if i > 0 {
                text.push_str(LABEL_SEPARATOR);
            }
            text.push_str(&self.label_name(*label));
        }
        let mut sets = self.sets.write();
        if let Some(id) = sets.by_labels.get(sorted.as_slice()) {
            return *id;
        }
        let id = LabelSetId(u32::try_from(sets.by_id.len()).expect("fewer than 2^32 label sets fit in memory"));
        sets.by_id.push((sorted.clone().into(), text.finish()));
        sets.by_labels.insert(sorted.into(), id);
        // Release, and under the lock: a thread that has met the id reads a count above it (`label_set_count`,
        // Acquire).
        self.set_count.store(sets.by_id.len(), Ordering::Release);
        id
    }

    /// The set that Gremlin writes as `a::b` or `a`, which is made if it is new.
    pub fn intern_label_text(&self, text: &str) -> LabelSetId {
        let labels: Vec<LabelId> = text.split(LABEL_SEPARATOR).map(|name| self.intern_label(name)).collect();
        self.intern_label_set(&labels)
    }

    /// A set as Gremlin writes it: the names of its labels joined by `::`.
    pub fn label_set_name(&self, id: LabelSetId) -> SmolStr {
        self.sets.read().by_id[id.0 as usize].1.clone()
    }

    /// The labels of a set, in ascending order of their ids.
    pub fn labels_of(&self, id: LabelSetId) -> Vec<LabelId> {
        self.sets.read().by_id[id.0 as usize].0.to_vec()
    }

    /// The sets that contain at least one of these labels.
    pub fn label_sets_with_any(&self, labels: &[LabelId]) -> Vec<LabelSetId> {
        let sets = self.sets.read();
        (0..sets.by_id.len())
            .filter(|&i| sets.by_id[i].0.iter().any(|label| labels.contains(label)))
            .map(|i| LabelSetId(i as u32))
            .collect()
    }

    /// The number of label sets. Their ids are the numbers below it.
    pub fn label_set_count(&self) -> usize {
        self.set_count.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_its_labels_whatever_their_order() {
        let catalog = Catalog::new();
        let ab = catalog.intern_label_text("a::b");
        assert_eq!(ab, catalog.intern_label_text("b::a::b"));
        assert_eq!(catalog.label_set_name(ab), "a::b");
        let a = catalog.intern_label_text("a");
        let with_a = catalog.label_sets_with_any(&[catalog.label("a").unwrap()]);
        assert_eq!(with_a, vec![ab, a]);
        assert_eq!(catalog.label("c"), None);
    }
}
