//! The facts that a log of writes changes, one after another: what `txn` makes the write set of a transaction from.
//!
//! A log entry names the version that was claimed. For a property, the undo record has the value before the write and
//! the column has the value after it. For a created or deleted element, all its columns are read.
//!
//! The transaction has finished writing and still holds all its claims. So no other transaction can change the values
//! while they are read.

use mangrove_graph::{ElementId, KeyId, LabelSetId, UserId, Value, VertexId};
use mangrove_reclaim::epoch;

use crate::cell::{RawCell, undo};
use crate::index::IdKey;
use crate::memory::Write;
use crate::store::{Slot, Store};
use crate::write::redo::user_id_of;

/// An element that a log creates or deletes.
#[derive(Clone, Debug)]
pub struct ChangedElement {
    /// The element.
    pub element: ElementId,
    /// Its label set.
    pub labels: LabelSetId,
    /// The id that its user chose, if one was chosen.
    pub user_id: Option<UserId>,
    /// Source and target of an edge; `None` for a vertex.
    pub ends: Option<(VertexId, VertexId)>,
}

/// A property that a log writes, or a property of an element that the log creates or deletes.
#[derive(Clone, Copy, Debug)]
pub struct ChangedProperty {
    /// The element.
    pub element: ElementId,
    /// The label set of the element.
    pub labels: LabelSetId,
    /// The key of the property.
    pub key: KeyId,
}

/// Receives the facts that a log changes. A fact may come more than once.
pub trait ChangeVisitor {
    /// An element is created or deleted. Its properties follow.
    fn element(&mut self, changed: &ChangedElement);

    /// A property is changed. Its values before and after the change follow.
    fn property(&mut self, changed: ChangedProperty);

    /// A value that a changed property has before or after the change. For a created or deleted element only the
    /// values that it is created or deleted with are given.
    fn value(&mut self, of: ChangedProperty, value: &Value);
}

impl Store {
    /// Shows a visitor the changes of a log. The transaction has finished writing and still holds all its claims.
    pub fn visit_changes(&self, log: &[Write], visitor: &mut impl ChangeVisitor) {
        let _pin = epoch::pin();
        for write in log {
            let (Write::Begin(element) | Write::End(element) | Write::Property { element, .. }) = *write;
            let slot = self.slot(element).expect("a log names only elements that exist");
            match *write {
                Write::Begin(_) | Write::End(_) => self.visit_element(element, &slot, visitor),
                Write::Property { key, undo, .. } => {
                    let column = slot.core.column(key).expect("a written property has a column");
                    let changed = ChangedProperty { element, labels: slot.core.label, key };
                    visitor.property(changed);
                    visit_values(&slot, changed, undo::record(&slot.tablet.undo, undo).old(), visitor);
                    visit_values(&slot, changed, column.newest(slot.at), visitor);
                }
            }
        }
    }

    fn visit_element(&self, element: ElementId, slot: &Slot<'_>, visitor: &mut impl ChangeVisitor) {
        let (user_id, ends, labels) = (user_id_of(slot), self.ends_of(element), slot.core.label);
        visitor.element(&ChangedElement { element, labels, user_id, ends });
        for (key, column) in slot.core.columns() {
            let cell = column.newest(slot.at);
            if !cell.is_absent() {
                let changed = ChangedProperty { element, labels, key };
                visitor.property(changed);
                visit_values(slot, changed, cell, visitor);
            }
        }
    }
}

fn visit_values(slot: &Slot<'_>, of: ChangedProperty, cell: RawCell, visitor: &mut impl ChangeVisitor) {
    slot.tablet.values.values(cell, |value| visitor.value(of, value));
}

/// 64 bits that stand for a user id in memory. Equal ids have the same, and different ids may share them.
pub fn user_id_hash(id: &UserId) -> u64 {
    IdKey::of(id).hash()
}
