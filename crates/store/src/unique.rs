//! Keeping property indexes while values are written, and unique values unique.
//!
//! A unique value is checked twice. Before the write, so that an ordinary duplicate is refused and changes
//! nothing. And when the entry is added, under the index's lock: of two running transactions that write one
//! value, the second to add its entry meets the first, whose cell is written by then, and gives way.

use mangrove_graph::{ElementRef, Error, ErrorKind, KeyId, Result, Value, VertexId};

use crate::store::{Slot, Store};
use crate::version::{NEVER, Snapshot, contested, happened};
use crate::write::{Writer, conflict};

impl Writer<'_> {
    /// Refuses a value that another visible vertex has under a unique index, before anything is written.
    pub(crate) fn check_unique(&self, id: VertexId, slot: &Slot<'_>, key: KeyId, value: &Value) -> Result<()> {
        for index in self.store.indexes.load().iter() {
            if index.info.unique && self.store.covers(&index.info, slot.core.label, key) {
                let mut rivals = Vec::new();
                index.equal_candidates(value, &mut rivals);
                self.check_rivals(id, key, value, &rivals)?;
            }
        }
        Ok(())
    }

    /// Adds a written value to the indexes that cover it.
    pub(crate) fn index(&self, id: VertexId, slot: &Slot<'_>, key: KeyId, value: &Value) -> Result<()> {
        for index in self.store.indexes.load().iter() {
            if !self.store.covers(&index.info, slot.core.label, key) {
                continue;
            }
            let mut rivals = Vec::new();
            let wanted = index.info.unique.then_some(&mut rivals);
            index.add(value, id, wanted, &self.store.memory);
            if let Err(error) = self.check_rivals(id, key, value, &rivals) {
                // The value is written by now, so only a rollback helps.
                return Err(Error::conflict(error.message()));
            }
        }
        Ok(())
    }

    fn check_rivals(&self, id: VertexId, key: KeyId, value: &Value, rivals: &[VertexId]) -> Result<()> {
        rivals.iter().filter(|&&rival| rival != id).try_for_each(|&rival| {
            match self.store.claims_value(rival, key, value, &self.snapshot) {
                ValueClaim::None => Ok(()),
                ValueClaim::Contested => Err(conflict("is giving the same unique value to another vertex")),
                ValueClaim::Visible => Err(Error::new(
                    ErrorKind::DuplicateId,
                    format!(
                        "a vertex whose '{}' is {} exists already, and an index keeps the values of that key unique",
                        self.store.catalog().key_name(key),
                        shown(value),
                    ),
                )),
            }
        })
    }
}

/// Whether another vertex stands in the way of a unique value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueClaim {
    None,
    /// It has the value in the snapshot.
    Visible,
    /// It has or gets the value in a way the snapshot does not see.
    Contested,
}

impl Store {
    /// How a vertex holds a value, seen from a writer's snapshot.
    pub(crate) fn claims_value(&self, id: VertexId, key: KeyId, value: &Value, snapshot: &Snapshot<'_>) -> ValueClaim {
        let Some(slot) = self.slot(ElementRef::Vertex(id)) else { return ValueClaim::None };
        let (begin, end) = slot.core.version(slot.at);
        if begin == NEVER || happened(end, snapshot) {
            return ValueClaim::None;
        }
        let Some(column) = slot.core.column(key) else { return ValueClaim::None };
        let holds = |cell| {
            let mut found = false;
            slot.tablet.values.values(cell, |v| found |= mangrove_graph::compare::equal(v, value));
            found
        };
        if !contested(begin, snapshot) && holds(column.read(slot.at, snapshot, &slot.tablet.undo)) {
            return ValueClaim::Visible;
        }
        let mut claim = ValueClaim::None;
        column.each_version(slot.at, &slot.tablet.undo, |version, cell| {
            if (contested(begin, snapshot) || contested(version, snapshot)) && holds(cell) {
                claim = ValueClaim::Contested;
            }
        });
        claim
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(s) => format!("'{s}'"),
        other => match mangrove_graph::numeric::integer(other) {
            Some(n) => n.to_string(),
            None => format!("{other:?}"),
        },
    }
}
