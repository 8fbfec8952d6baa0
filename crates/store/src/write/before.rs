//! What a commit changes, as it was before: for readers of the log who do not have the graph.
//!
//! An after-image ([`Redo`]) has internal ids, and says nothing of what it replaced. A reader who has only the log
//! cannot tell which chosen id, labels and ends an element has that an earlier commit made, nor its old values. So the
//! writer notes them while its transaction holds all its claims:
//!
//! | function | what it gives |
//! |---|---|
//! | [`Store::each_identity`] | elements that the commit changes or deletes, and ends of edges with a chosen id; not those that it inserted |
//! | [`Store::each_before`] | the values that were in place before the commit under the keys that it writes, and all values of elements that it deletes |
//!
//! Both give the same forms as after-images: an identity is an [`Redo::Insert`], an old value a [`Redo::Property`].
//! Elements that the commit inserted are in neither, because its after-images have them.

use hashbrown::HashSet;
use mangrove_graph::{ElementId, KeyId};
use mangrove_reclaim::epoch;

use crate::cell::undo;
use crate::memory::Write;
use crate::store::Store;
use crate::version::claimed_by;
use crate::write::redo::{Redo, user_id_of};

impl Store {
    /// Calls `each` with the identities that a reader of the after-images of a log needs besides them, each once. The
    /// transaction has finished writing and holds all its claims. Returns true if the log changes or deletes an element
    /// that it did not insert, or connects one.
    pub fn each_identity(&self, log: &[Write], txn: u64, each: &mut dyn FnMut(Redo)) -> bool {
        let _pin = epoch::pin();
        let (mut seen, mut names_others) = (HashSet::new(), false);
        for write in log {
            let element = write.element();
            let slot = self.slot(element).expect("a log names only elements that exist");
            if !seen.insert(element) {
                continue;
            }
            let (begin, end) = slot.core.version(slot.at);
            let is_new = claimed_by(begin) == Some(txn);
            if is_new && claimed_by(end) == Some(txn) {
                // It is in no after-image.
                continue;
            }
            let (user_id, ends) = (user_id_of(&slot), self.ends_of(element));
            for vertex in ends.iter().flat_map(|(source, target)| [*source, *target]) {
                let vertex = ElementId::Vertex(vertex);
                let Some(end) = self.slot(vertex) else { continue };
                if claimed_by(end.core.version(end.at).0) == Some(txn) {
                    continue;
                }
                names_others = true;
                // Without a chosen id, the internal id says it all.
                if let Some(user_id) = user_id_of(&end)
                    && seen.insert(vertex)
                {
                    each(Redo::Insert { element: vertex, labels: end.core.label, ends: None, user_id: Some(user_id) });
                }
            }
            if !is_new {
                names_others = true;
                each(Redo::Insert { element, labels: slot.core.label, ends, user_id });
            }
        }
        names_others
    }

    /// Calls `each` with the values that the commit of a log replaces or deletes, as they were before it. The
    /// transaction has finished writing and holds all its claims.
    pub fn each_before(&self, log: &[Write], txn: u64, each: &mut dyn FnMut(Redo)) {
        let _pin = epoch::pin();
        // The first write of a property has the value from before the transaction; later ones have its own values.
        let mut first_writes: HashSet<(ElementId, KeyId)> = HashSet::new();
        for write in log {
            let Write::Property { element, key, undo } = *write else { continue };
            if !first_writes.insert((element, key)) {
                continue;
            }
            let slot = self.slot(element).expect("a log names only elements that exist");
            if claimed_by(slot.core.version(slot.at).0) != Some(txn) {
                let old = undo::record(&slot.tablet.undo, undo).old();
                if !old.is_absent() {
                    each(Redo::Property { element, key, content: slot.tablet.values.decode(old) });
                }
            }
        }
        for write in log {
            let Write::End(element) = *write else { continue };
            let slot = self.slot(element).expect("a log names only elements that exist");
            if claimed_by(slot.core.version(slot.at).0) == Some(txn) {
                continue;
            }
            for (key, column) in slot.core.columns() {
                let cell = column.newest(slot.at);
                if !cell.is_absent() && !first_writes.contains(&(element, key)) {
                    each(Redo::Property { element, key, content: slot.tablet.values.decode(cell) });
                }
            }
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::{EdgeId, UserId, Value, VertexId};

    use super::*;
    use crate::cell::Content;
    use crate::store::StoreOptions;
    use crate::write::WriteCardinality;
    use crate::write::redo::tests::Transaction;

    const SINGLE: WriteCardinality = WriteCardinality::Single;

    fn identities(of: &Transaction<'_>) -> (Vec<Redo>, bool) {
        let mut found = Vec::new();
        let names_others = of.store.each_identity(&of.log, of.number, &mut |one| found.push(one));
        (found, names_others)
    }

    fn before(of: &Transaction<'_>) -> Vec<Redo> {
        let mut found = Vec::new();
        of.store.each_before(&of.log, of.number, &mut |one| found.push(one));
        found
    }

    #[test]
    fn elements_of_earlier_commits_are_named_and_what_they_had() {
        let store = Store::new(&StoreOptions::default());
        let (label, knows) = (store.catalog().intern_label_text("a"), store.catalog().intern_label_text("knows"));
        let (x, y) = (store.catalog().intern_key("x"), store.catalog().intern_key("y"));
        let vertex = |vertex: VertexId, id: Option<&str>| Redo::Insert {
            element: ElementId::Vertex(vertex),
            labels: label,
            ends: None,
            user_id: id.map(UserId::from),
        };
        let edge = |edge: EdgeId, ends| Redo::Insert {
            element: ElementId::Edge(edge),
            labels: knows,
            ends: Some(ends),
            user_id: None,
        };
        let old = |element, key, value: i64| Redo::Property { element, key, content: Content::One(Value::I64(value)) };

        let mut first = Transaction::begin(&store, 0);
        let (a, b, e) = first.run(|w| {
            let (a, b) = (w.insert_vertex(label, Some(&UserId::from("a")))?, w.insert_vertex(label, None)?);
            w.set_vertex_property(a, x, Value::I64(1), SINGLE, Vec::new())?;
            w.set_vertex_property(a, y, Value::I64(2), SINGLE, Vec::new())?;
            Ok((a, b, w.insert_edge(a, b, knows, None)?))
        });
        first.run(|w| w.set_edge_property(e, x, Value::I64(3)));
        assert_eq!(identities(&first), (Vec::new(), false), "all of it is in the after-images");
        assert_eq!(before(&first), []);
        first.commit();

        // An edge between old vertices: the end with a chosen id is named. The other one's number follows from its id.
        let mut second = Transaction::begin(&store, 1);
        let f = second.run(|w| w.insert_edge(b, a, knows, None));
        assert_eq!(identities(&second), (vec![vertex(a, Some("a"))], true));
        second.commit();

        // Only the value from before the transaction is an old one.
        let mut third = Transaction::begin(&store, 2);
        for value in 4..6 {
            third.run(|w| w.set_vertex_property(a, x, Value::I64(value), SINGLE, Vec::new()));
        }
        third.run(|w| w.set_edge_property(e, y, Value::I64(6)));
        let named = vec![vertex(a, Some("a")), edge(e, (a, b))];
        assert_eq!(identities(&third), (named, true));
        assert_eq!(before(&third), [old(ElementId::Vertex(a), x, 1)]);
        third.commit();

        // A deleted vertex has the values from before the transaction, and so have its edges.
        let mut fourth = Transaction::begin(&store, 3);
        fourth.run(|w| w.set_vertex_property(a, x, Value::I64(7), SINGLE, Vec::new()));
        fourth.run(|w| w.delete_vertex(a));
        let (at_a, at_e) = (ElementId::Vertex(a), ElementId::Edge(e));
        let mut found = before(&fourth);
        found.sort_by_key(|one| format!("{one:?}"));
        let mut expected = [old(at_a, x, 5), old(at_a, y, 2), old(at_e, x, 3), old(at_e, y, 6)];
        expected.sort_by_key(|one| format!("{one:?}"));
        assert_eq!(found, expected);
        let (mut named, names_others) = identities(&fourth);
        named.sort_by_key(|one| format!("{one:?}"));
        let mut expected = [vertex(a, Some("a")), edge(e, (a, b)), edge(f, (b, a))];
        expected.sort_by_key(|one| format!("{one:?}"));
        assert_eq!((named.as_slice(), names_others), (&expected[..], true));

        // What a transaction inserts and deletes again is in nothing.
        let mut fifth = Transaction::begin(&store, 4);
        let c = fifth.run(|w| w.insert_vertex(label, Some(&UserId::from("c"))));
        fifth.run(|w| w.insert_edge(c, b, knows, None));
        fifth.run(|w| w.delete_vertex(c));
        assert_eq!((identities(&fifth), before(&fifth)), ((Vec::new(), false), Vec::new()));
    }
}
