//! The after-images of a commit: enough to apply it again to a store that does not have it.
//!
//! A log entry names the version that was claimed. The after-image is read from the store while the transaction still
//! holds its claims, so it cannot change meanwhile. Every element and property is named once, in its final state:
//!
//! | in the transaction | in the after-images |
//! |---|---|
//! | a property was written several times | its last value |
//! | an element was created and deleted again | nothing |
//! | an element was deleted | the deletion, and none of its properties |
//!
//! A new element comes before its properties, and new vertices come before the edges between them, in the order in
//! which the transaction made them.
//!
//! Ids are internal ids. A client knows an element without a chosen id by its external number, which follows from the
//! internal id, so replay must put every element into its old slot. The generations of elements that one transaction
//! created and deleted are in no image. No commit ever showed their ids, so the ids may be given again.

use mangrove_graph::{ElementId, KeyId, LabelSetId, UserId, VertexId};
use mangrove_reclaim::epoch;

use crate::cell::Content;
use crate::memory::Write;
use crate::store::{Slot, Store};
use crate::version::claimed_by;

/// One after-image of a commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Redo {
    /// A new vertex or edge.
    Insert {
        /// Its internal id.
        element: ElementId,
        /// Its label set.
        labels: LabelSetId,
        /// Source and target of an edge; `None` for a vertex.
        ends: Option<(VertexId, VertexId)>,
        /// The chosen id, if there is one.
        user_id: Option<UserId>,
    },
    /// A deleted element, with its properties. The edges of a deleted vertex have after-images of their own.
    Delete(ElementId),
    /// The new values of an element under a key.
    Property {
        /// The element.
        element: ElementId,
        /// The property key.
        key: KeyId,
        /// All values under the key; absent if the property was removed.
        content: Content,
    },
}

impl Store {
    /// Calls `each` with the after-images of the commit of a log. The transaction must have finished writing and hold
    /// all its claims.
    pub fn each_redo(&self, log: &[Write], txn: u64, each: &mut dyn FnMut(Redo)) {
        let _pin = epoch::pin();
        for write in log {
            let (Write::Begin(element) | Write::End(element) | Write::Property { element, .. }) = *write;
            let slot = self.slot(element).expect("a log names only elements that exist");
            let (begin, end) = slot.core.version(slot.at);
            let (is_new, is_gone) = (claimed_by(begin) == Some(txn), claimed_by(end) == Some(txn));
            match *write {
                Write::Begin(_) if !is_gone => self.redo_insert(element, &slot, each),
                Write::End(_) if !is_new => each(Redo::Delete(element)),
                Write::Property { key, undo, .. } if !is_new && !is_gone => {
                    redo_property(&slot, element, key, undo, each)
                }
                // The element is named already, or gets no after-image.
                _ => {}
            }
        }
    }

    fn redo_insert(&self, element: ElementId, slot: &Slot<'_>, each: &mut dyn FnMut(Redo)) {
        let (ends, user_id) = (self.ends_of(element), user_id_of(slot));
        each(Redo::Insert { element, labels: slot.core.label, ends, user_id });
        for (key, column) in slot.core.columns() {
            let cell = column.newest(slot.at);
            if !cell.is_absent() {
                each(Redo::Property { element, key, content: slot.tablet.values.decode(cell) });
            }
        }
    }

    /// Source and target of an edge whose slot was found; `None` for a vertex.
    pub(super) fn ends_of(&self, element: ElementId) -> Option<(VertexId, VertexId)> {
        match element {
            ElementId::Vertex(_) => None,
            ElementId::Edge(id) => {
                let (_, page) = self.edge_page(id).expect("the edge's slot was found");
                Some(page.ends(id.offset(), &epoch::pin()))
            }
        }
    }
}

/// The id that its user chose for the element in a slot, if one was chosen.
pub(super) fn user_id_of(slot: &Slot<'_>) -> Option<UserId> {
    match slot.tablet.values.decode(slot.core.user_id(slot.at)) {
        Content::One(value) => UserId::from_value(&value),
        _ => None,
    }
}

/// Calls `each` with the property that the log entry with this undo record wrote, if no later entry wrote it again.
fn redo_property(slot: &Slot<'_>, element: ElementId, key: KeyId, undo: u64, each: &mut dyn FnMut(Redo)) {
    let column = slot.core.column(key).expect("a written property has a column");
    if column.is_newest(slot.at, undo) {
        each(Redo::Property { element, key, content: slot.tablet.values.decode(column.newest(slot.at)) });
    }
}

#[cfg(all(test, not(feature = "model")))]
pub(super) mod tests {
    use std::sync::Arc;

    use mangrove_graph::{EdgeId, Value};

    use super::*;
    use crate::store::StoreOptions;
    use crate::version::Snapshot;
    use crate::write::{WriteCardinality, Writer};

    /// A transaction's statements, each seeing the ones before.
    pub(in crate::write) struct Transaction<'a> {
        pub(in crate::write) store: &'a Store,
        begin: u64,
        pub(in crate::write) number: u64,
        statement: u16,
        pub(in crate::write) log: Vec<Write>,
    }

    impl<'a> Transaction<'a> {
        pub(in crate::write) fn begin(store: &'a Store, begin: u64) -> Self {
            Transaction { store, begin, number: begin + 1, statement: 0, log: Vec::new() }
        }

        pub(in crate::write) fn run<T>(
            &mut self,
            statement: impl FnOnce(&mut Writer<'_>) -> mangrove_graph::Result<T>,
        ) -> T {
            let snapshot = Snapshot::new(self.begin, self.number, self.statement);
            self.statement += 1;
            statement(&mut Writer::new(self.store, snapshot, self.statement, &mut self.log)).unwrap()
        }

        pub(in crate::write) fn redo(&self) -> Vec<Redo> {
            let mut redo = Vec::new();
            self.store.each_redo(&self.log, self.number, &mut |one| redo.push(one));
            redo
        }

        pub(in crate::write) fn commit(self) {
            self.store.install(&self.log, self.begin + 1);
        }
    }

    fn property(element: ElementId, key: KeyId, value: i64) -> Redo {
        Redo::Property { element, key, content: Content::One(Value::I64(value)) }
    }

    fn insert_vertex(vertex: VertexId, labels: LabelSetId, user_id: Option<UserId>) -> Redo {
        Redo::Insert { element: ElementId::Vertex(vertex), labels, ends: None, user_id }
    }

    const SINGLE: WriteCardinality = WriteCardinality::Single;

    #[test]
    fn every_change_is_named_once_in_its_final_state() {
        let store = Store::new(&StoreOptions::default());
        let (label, knows) = (store.catalog().intern_label_text("a"), store.catalog().intern_label_text("knows"));
        let (x, y) = (store.catalog().intern_key("x"), store.catalog().intern_key("y"));
        let mut first = Transaction::begin(&store, 0);
        let id = UserId::from("one");
        let (a, b, e) = first.run(|w| {
            let (a, b) = (w.insert_vertex(label, Some(&id))?, w.insert_vertex(label, None)?);
            w.set_vertex_property(a, x, Value::I64(1), SINGLE, Vec::new())?;
            Ok((a, b, w.insert_edge(a, b, knows, None)?))
        });
        first.run(|w| w.set_vertex_property(a, x, Value::I64(2), SINGLE, Vec::new()));
        first.run(|w| w.set_edge_property(e, y, Value::I64(3)));
        // Created and deleted again, with its property and its edge.
        let c = first.run(|w| w.insert_vertex(label, Some(&UserId::int(7))));
        first.run(|w| w.set_vertex_property(c, x, Value::I64(9), SINGLE, Vec::new()));
        first.run(|w| w.insert_edge(c, a, knows, None));
        first.run(|w| w.delete_vertex(c));
        let edge = |e: EdgeId, ends| Redo::Insert {
            element: ElementId::Edge(e),
            labels: knows,
            ends: Some(ends),
            user_id: None,
        };
        let (at_a, at_b, at_e) = (ElementId::Vertex(a), ElementId::Vertex(b), ElementId::Edge(e));
        let expected = [
            insert_vertex(a, label, Some(id)),
            property(at_a, x, 2),
            insert_vertex(b, label, None),
            edge(e, (a, b)),
            property(at_e, y, 3),
        ];
        assert_eq!(first.redo(), expected);
        first.commit();

        let mut second = Transaction::begin(&store, 1);
        for n in 4..7 {
            second.run(|w| w.set_vertex_property(b, x, Value::I64(n), SINGLE, Vec::new()));
        }
        second.run(|w| w.set_vertex_property(b, y, Value::I64(1), WriteCardinality::List, vec![(x, true.into())]));
        second.run(|w| w.remove_vertex_property(a, x, None));
        let f = second.run(|w| w.insert_edge(b, b, knows, None));
        let redo = second.redo();
        let Redo::Property { content: Content::Multi(multi), .. } = &redo[1] else { panic!("{redo:?}") };
        assert_eq!(multi.values[0].meta, Arc::new(vec![(x, Value::Bool(true))]));
        let gone = Redo::Property { element: at_a, key: x, content: Content::Absent };
        assert_eq!((&redo[0], &redo[2], &redo[3]), (&property(at_b, x, 6), &gone, &edge(f, (b, b))));
        assert_eq!(redo.len(), 4);
        second.commit();

        let mut third = Transaction::begin(&store, 2);
        third.run(|w| w.set_vertex_property(b, x, Value::I64(8), SINGLE, Vec::new()));
        third.run(|w| w.delete_vertex(b));
        let (at_f, mut redo) = (ElementId::Edge(f), third.redo());
        redo.sort_by_key(|redo| format!("{redo:?}"));
        assert_eq!(redo, [Redo::Delete(at_e), Redo::Delete(at_f), Redo::Delete(at_b)]);
    }
}
