//! Adding written values to property indexes, and keeping unique values unique.
//!
//! A unique value is checked twice:
//!
//! 1. Before the write, so that a value that another element has or gets by then is refused, and nothing is changed.
//! 2. When its entry is added, under the lock of the index's shard. If two running transactions write the same value,
//!    the second to add its entry meets the entry of the first, whose cell is written by then. The second is in
//!    conflict.

use mangrove_graph::{ElementId, Error, ErrorKind, KeyId, Result, Value};
use mangrove_reclaim::Pin;

use crate::index::{ElementBits, IndexKey, PropertyIndex};
use crate::store::{Slot, Store};
use crate::version::{NEVER, Snapshot, contested, happened};
use crate::write::index_entries::{Versions, each_key};
use crate::write::{Writer, conflict};

impl Writer<'_> {
    /// Fails if another element has or gets a value that a unique index covers. Nothing is written yet.
    pub(crate) fn check_unique(&self, id: ElementId, slot: &Slot<'_>, key: KeyId, value: &Value) -> Result<()> {
        for index in self.store.indexes.load().iter().filter(|index| index.info.unique) {
            let Some(position) = self.store.key_position(&index.info, (id.kind(), slot.core.label), key) else {
                continue;
            };
            self.each_key(index, slot, (position, Some(value)), |key| {
                let mut rivals = Vec::new();
                index.equal_candidates(&key, &mut rivals);
                self.check_rivals(index, id, &key, &rivals)
            })?;
        }
        Ok(())
    }

    /// Adds a written value to the indexes that cover it. Fails with a conflict if another element has or gets a value
    /// that is to be unique.
    pub(crate) fn index(&self, id: ElementId, slot: &Slot<'_>, key: KeyId, value: &Value) -> Result<()> {
        self.add_entries(id, slot, key, value, true)
    }

    /// As [`Writer::index`]; without `checks`, unique values are not checked, and this does not fail.
    pub(crate) fn add_entries(
        &self,
        id: ElementId,
        slot: &Slot<'_>,
        key: KeyId,
        value: &Value,
        checks: bool,
    ) -> Result<()> {
        for index in self.store.indexes.load().iter() {
            let Some(position) = self.store.key_position(&index.info, (id.kind(), slot.core.label), key) else {
                continue;
            };
            self.each_key(index, slot, (position, Some(value)), |key| {
                if !(checks && index.info.unique) {
                    index.add(key, id, None, &self.store.memory);
                    return Ok(());
                }
                let mut rivals = Vec::new();
                index.add(key.clone(), id, Some(&mut rivals), &self.store.memory);
                // The value is written by now, so the transaction must roll back.
                self.check_rivals(index, id, &key, &rivals).map_err(|error| Error::conflict(error.message()))
            })?;
        }
        Ok(())
    }

    /// Adds entries for an element that has lost a key: in ordered composite indexes, those of the keys before it.
    pub(crate) fn index_without(&self, id: ElementId, slot: &Slot<'_>, key: KeyId) {
        for index in self.store.indexes.load().iter().filter(|index| index.info.ordered) {
            let Some(position @ 1..) = self.store.key_position(&index.info, (id.kind(), slot.core.label), key) else {
                continue;
            };
            each_key(index, slot, Some((position, None)), Versions::From(&self.snapshot), &self.pin, |key| {
                index.add(key, id, None, &self.store.memory);
            });
        }
    }

    /// Calls `each` with the combinations of values that may be visible beside a written value, until it fails. `fixed`
    /// is the position of the written key, and its value.
    fn each_key(
        &self,
        index: &PropertyIndex,
        slot: &Slot<'_>,
        fixed: (usize, Option<&Value>),
        mut each: impl FnMut(IndexKey) -> Result<()>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        each_key(index, slot, Some(fixed), Versions::From(&self.snapshot), &self.pin, |key| {
            if outcome.is_ok() {
                outcome = each(key);
            }
        });
        outcome
    }

    /// Fails if one of the candidates, other than the element itself, has or gets all values of a complete key.
    fn check_rivals(&self, index: &PropertyIndex, id: ElementId, key: &IndexKey, rivals: &[ElementBits]) -> Result<()> {
        let (keys, values) = (&index.info.keys, key.values());
        if values.len() < keys.len() {
            return Ok(());
        }
        let kind = id.kind();
        rivals.iter().map(|&rival| index.element(rival)).filter(|&rival| rival != id).try_for_each(|rival| {
            match self.store.claims_values(rival, keys, values, &self.snapshot, &self.pin) {
                ValueClaim::None => Ok(()),
                ValueClaim::Contested => {
                    Err(conflict(&format!("is giving the same unique value to another {}", kind.name())))
                }
                ValueClaim::Visible => Err(Error::new(
                    ErrorKind::DuplicateId,
                    format!(
                        "{} with {} exists already, and an index keeps that unique; choose another value or update the \
                         existing {}",
                        kind.with_article(),
                        self.store.shown(keys, key),
                        kind.name()
                    ),
                )),
            }
        })
    }
}

/// How an element holds a value that is to be unique, for a writer that gives the value to another element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueClaim {
    /// It does not have the value.
    None,
    /// It has the value in the snapshot.
    Visible,
    /// It has or gets the value by a write of another transaction that the snapshot does not see.
    Contested,
}

impl Store {
    /// How an element holds the values of several keys all at once, from the view of a writer's snapshot.
    pub(crate) fn claims_values(
        &self,
        id: ElementId,
        keys: &[KeyId],
        values: &[Value],
        snapshot: &Snapshot<'_>,
        pin: &Pin,
    ) -> ValueClaim {
        let mut whole = ValueClaim::Visible;
        for (&key, value) in keys.iter().zip(values) {
            match self.claims_value(id, (key, value), snapshot, pin) {
                ValueClaim::None => return ValueClaim::None,
                ValueClaim::Contested => whole = ValueClaim::Contested,
                ValueClaim::Visible => {}
            }
        }
        whole
    }

    /// Keys with their values, for an error message.
    pub(crate) fn shown(&self, keys: &[KeyId], key: &IndexKey) -> String {
        let one = |(&key, value): (&KeyId, &Value)| format!("'{}' = {}", self.catalog().key_name(key), shown(value));
        keys.iter().zip(key.values()).map(one).collect::<Vec<_>>().join(" and ")
    }

    /// How an element holds a value, from the view of a writer's snapshot.
    fn claims_value(
        &self,
        id: ElementId,
        (key, value): (KeyId, &Value),
        snapshot: &Snapshot<'_>,
        pin: &Pin,
    ) -> ValueClaim {
        let Some(slot) = self.slot(id) else { return ValueClaim::None };
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
        let undo = slot.tablet.undo_under(pin);
        if !contested(begin, snapshot) && holds(column.read(slot.at, snapshot, undo)) {
            return ValueClaim::Visible;
        }
        let mut claim = ValueClaim::None;
        column.each_version(slot.at, undo, |version, cell| {
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
