//! The writes of a transaction: claims, conflicts, and how claims are finalized.
//!
//! A [`Writer`] carries out the operations of one statement of one transaction, one after the other. It appends an
//! entry to the transaction's log for each claim that it makes. A commit turns the claims of the log into timestamps
//! ([`Store::install`]); a rollback takes them back ([`Store::rollback`]). After an error of kind `Conflict` the caller
//! must roll the log back. An operation that fails with another error has changed nothing.
//!
//! The first updater wins. Two transactions are in conflict in these cases:
//!
//! | one transaction | another transaction | how they notice |
//! |---|---|---|
//! | deletes an element | deletes the same element | compare-and-swap of the end word |
//! | writes a property | writes the same property | the head of the cell's undo chain (`cell::column`) |
//! | writes a property | deletes the element | *store, then look* at columns and end word |
//! | adds an edge | deletes one of its ends | *store, then look* at lists and end word |
//! | inserts with a chosen id | inserts with the same chosen id | the lock of a shard of the id index |
//! | inserts with a chosen integer | inserts without one, and gets that number | *store, then look* at index and slot |
//! | writes a value of a unique index | writes it to another element | the lock of a shard of the property index |
//!
//! *Store, then look*: each side stores its own claim, passes a SeqCst fence, and then looks for the claim of the other
//! side, as in Dekker's algorithm. So at least one of the two notices the other. In particular no edge dangles: an edge
//! is visible only if both its ends are (GRAPH-2).
//!
//! Adding different edges to one vertex is no conflict.
//!
//! | module | what it holds |
//! |---|---|
//! | this one | inserting elements and writing properties |
//! | `many` | writing one property of many vertices at once |
//! | `deletion` | deleting elements |
//! | `finalization` | turning claims into timestamps, or taking them back |
//! | `unique`, `index_entries` | entries of property indexes, and unique values |
//! | `index_build` | making and dropping property indexes |
//! | `rule_check` | checking a commit against the schema |
//! | `redo` | the after-images of a commit, for the log on disk |
//! | `before` | what a commit changes, as it was before, for readers of the log |
//! | `apply` | redoing commits of another process |

mod apply;
mod before;
pub(crate) mod changes;
mod deletion;
mod finalization;
mod index_build;
mod index_entries;
mod many;
pub(crate) mod redo;
mod rule_check;
mod unique;

pub(crate) use self::index_build::Duplicate;
pub(crate) use self::index_entries::{Versions, each_key};

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use mangrove_graph::{
    Direction, EdgeId, ElementId, Error, ErrorKind, KeyId, LabelSetId, Result, UserId, Value, VertexId,
};
use mangrove_reclaim::{Pin, epoch};

use crate::cell::column::{Column, WriteClaim, Written};
use crate::cell::{Content, MultiProperty, MultiValue, RawCell};
use crate::connections::{Connecting, ListKind};
use crate::index::IdKey;
use crate::memory::Write;
use crate::page::TableName;
use crate::store::{Slot, Store, edge, vertex};
use crate::version::{NEVER, Snapshot, claim, contested, visible};

/// The effect of setting a value on the other values under the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteCardinality {
    /// The new value replaces them.
    Single,
    /// They stay, and the new value is added.
    List,
    /// They stay. The new value is added unless an equal one exists, which then gets the new meta-properties.
    Set,
}

/// Carries out the writes of one statement of one transaction.
pub struct Writer<'a> {
    pub(crate) store: &'a Store,
    /// Keeps the memory that an operation follows pointers into.
    pub(crate) pin: Pin,
    /// The transaction's snapshot with all its own writes. Existence and conflicts are judged by it.
    pub(crate) snapshot: Snapshot<'a>,
    /// The version word of a claim by this statement.
    claim: u64,
    log: &'a mut Vec<Write>,
    has_written: bool,
}

/// The error that another transaction did something first, which the text names.
pub(crate) fn conflict(what: &str) -> Error {
    Error::conflict(format!("another transaction {what} first; run this transaction again"))
}

fn check_storable(value: &Value) -> Result<()> {
    if value.is_storable() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a property cannot hold this {}: it holds numbers, strings, booleans, dates and collections of these, nested \
         at most {} deep",
        value.type_name(),
        Value::NESTING_MAX
    )))
}

impl<'a> Writer<'a> {
    /// A writer for the running statement of a transaction. `snapshot` is the transaction's snapshot, `statement` the
    /// number of the running statement, and `log` the log of the transaction.
    pub fn new(store: &'a Store, snapshot: Snapshot<'a>, statement: u16, log: &'a mut Vec<Write>) -> Self {
        let claim = claim(snapshot.txn, statement);
        let snapshot = snapshot.with_all_own_writes().amid(&store.installing);
        Writer { store, pin: epoch::pin(), snapshot, claim, log, has_written: false }
    }

    /// Returns true if the writer has changed anything that the log covers.
    pub fn has_written(&self) -> bool {
        self.has_written
    }

    /// Logs a claim.
    fn claimed(&mut self, write: Write) {
        self.log.push(write);
        self.has_written = true;
    }

    /// Claims the begin word of a slot that the caller has reserved. No other thread stores to the word (STORE-2).
    fn begin(&self, slot: &Slot<'_>) {
        // Release: a thread that sees the claim sees the parts of the element that were written before it.
        slot.core.versions(&self.pin, &self.store.memory)[slot.at].begin.store(self.claim, Ordering::Release);
    }

    /// Takes back the claim on a slot that was just reserved, and gives the slot up.
    fn abandon(&self, element: ElementId, slot: &Slot<'_>) {
        slot.core.versions(&self.pin, &self.store.memory)[slot.at].begin.store(NEVER, Ordering::Release);
        self.store.give_up(element, slot);
    }

    /// The slot of an element that this transaction sees and no other transaction is deleting. Fails with `NotFound` or
    /// `Conflict` if there is none.
    fn seen(&self, element: ElementId) -> Result<Slot<'a>> {
        let Some(slot) = self.store.slot(element) else { return Err(self.missing(element)) };
        let (begin, end) = slot.core.version(slot.at);
        if !visible(begin, end, &self.snapshot) {
            return Err(self.missing(element));
        }
        if contested(end, &self.snapshot) {
            return Err(conflict("is deleting the same element"));
        }
        Ok(slot)
    }

    /// The error that an element does not exist.
    fn missing(&self, element: ElementId) -> Error {
        let (kind, external) = match element {
            ElementId::Vertex(id) => ("vertex", id.external()),
            ElementId::Edge(id) => ("edge", id.external()),
        };
        // The id that the client knows, if the slot still has it.
        let known = self.store.slot(element).map(|slot| self.store.user_id(&slot, external));
        let id = known.and_then(|value| UserId::from_value(&value)).unwrap_or(UserId::int(external));
        Error::new(
            ErrorKind::NotFound,
            format!("the {kind} with id {id} does not exist (any more); it may have been deleted in this transaction"),
        )
    }

    // --- Elements -----------------------------------------------------------------------------------

    /// Adds a vertex under a chosen id, or under its external number if `id` is `None`. Fails with `DuplicateId` if a
    /// visible vertex has the id.
    pub fn insert_vertex(&mut self, labels: LabelSetId, id: Option<&UserId>) -> Result<VertexId> {
        self.store.memory.check()?;
        loop {
            let (vertex_id, slot) = self.store.reserve_vertex(labels);
            if self.begin_element(ElementId::Vertex(vertex_id), &slot, vertex_id.external(), id, vertex)? {
                return Ok(vertex_id);
            }
        }
    }

    /// Adds an edge between two vertices that this transaction sees. Fails with `NotFound` if it does not see one of
    /// them; the id as for [`Writer::insert_vertex`].
    pub fn insert_edge(
        &mut self,
        source: VertexId,
        target: VertexId,
        label: LabelSetId,
        id: Option<&UserId>,
    ) -> Result<EdgeId> {
        self.store.memory.check()?;
        self.join(source, target, label, id)
    }

    /// Adds edges without chosen ids between vertices that this transaction sees, given by source and target. Unless
    /// the error is a conflict, a failed call has added none of them.
    pub fn insert_edges(&mut self, ends: &[(VertexId, VertexId)], label: LabelSetId) -> Result<Vec<EdgeId>> {
        self.store.memory.check()?;
        for vertex in ends.iter().flat_map(|&(source, target)| [source, target]) {
            self.seen(ElementId::Vertex(vertex))?;
        }
        // All vertices were seen, and the transaction goes on seeing them. So only a conflict can fail from here on.
        ends.iter().map(|&(source, target)| self.join(source, target, label, None)).collect()
    }

    fn join(&mut self, source: VertexId, target: VertexId, label: LabelSetId, id: Option<&UserId>) -> Result<EdgeId> {
        let lists = [(source, Direction::Out), (target, Direction::In)];
        lists.iter().for_each(|(at, direction)| self.prefetch_descriptor(*at, *direction, label));
        let ends = [self.seen(ElementId::Vertex(source))?, self.seen(ElementId::Vertex(target))?];
        lists.iter().for_each(|(at, direction)| self.prefetch_header(*at, *direction, label));
        let edge_id = loop {
            let (edge_id, page, slot) = self.store.reserve_edge(ends[0].tablet, label, &self.pin);
            page.set_ends(slot.at, source, target, &self.store.memory, &self.pin);
            if self.begin_element(ElementId::Edge(edge_id), &slot, edge_id.external(), id, edge)? {
                break edge_id;
            }
        };
        let [of_source, of_target] = [ends[0].core.label, ends[1].core.label];
        self.append(source, Direction::Out, label, (target, of_target), edge_id);
        self.append(target, Direction::In, label, (source, of_source), edge_id);
        // Store, then look. Pairs with the fence in `delete_vertex`.
        fence(Ordering::SeqCst);
        for slot in ends {
            if contested(slot.core.version(slot.at).1, &self.snapshot) {
                return Err(conflict("is deleting an end of the new edge"));
            }
        }
        Ok(edge_id)
    }

    /// Starts loading the descriptor of a list.
    fn prefetch_descriptor(&self, at: VertexId, direction: Direction, label: LabelSetId) {
        if let Some((_, page)) = self.store.vertex_page(at) {
            // `seen` looks at the version words first.
            page.core.prefetch_version(&self.pin, at.offset());
            if let Some(table) = page.tables(direction).get(label.0) {
                table.prefetch_descriptor(at.offset(), &self.pin);
            }
        }
    }

    /// Starts loading the header of a list, if it has one.
    fn prefetch_header(&self, at: VertexId, direction: Direction, label: LabelSetId) {
        if let Some((tablet, page)) = self.store.vertex_page(at)
            && let Some(table) = page.tables(direction).get(label.0)
        {
            tablet.lists.prefetch(table.descriptor(at.offset(), &self.pin), &self.pin);
        }
    }

    /// Adds an edge to the list of one of its ends. The neighbor comes with its label set.
    fn append(
        &self,
        at: VertexId,
        direction: Direction,
        label: LabelSetId,
        (neighbor, neighbors): (VertexId, LabelSetId),
        edge: EdgeId,
    ) {
        let (tablet, page) = self.store.vertex_page(at).expect("the vertex was seen");
        let table = page.table_or_create(direction, label, &self.store.sizes, &self.store.memory);
        let kind = ListKind { vertices: page.core.label, direction, edges: label };
        let connecting = Connecting { facts: &self.store.connections, kind, neighbors };
        let cell = (neighbor, edge);
        if table.append(at.offset(), cell, &connecting, &tablet.lists, self.store.space(), &self.pin) {
            // STORE-31: this writer's change has made the table due.
            self.store.give_table(tablet, TableName { page: at.page() as u32, direction, label });
        }
    }

    /// Claims a reserved slot for an element with this id. Returns false if the element has no chosen id and another
    /// element has chosen its external number, so that another slot is needed.
    fn begin_element(
        &mut self,
        element: ElementId,
        slot: &Slot<'_>,
        external: i64,
        id: Option<&UserId>,
        as_element: fn(u64) -> ElementId,
    ) -> Result<bool> {
        let taken = match id {
            None => {
                self.begin(slot);
                self.automatic_id_is_taken(external, element, as_element)
            }
            Some(id) => {
                slot.core.set_user_id(slot.at, id, &slot.tablet.values, self.store.space());
                self.begin(slot);
                if let Err(error) = self.enter_id(element, id, as_element) {
                    self.abandon(element, slot);
                    return Err(error);
                }
                false
            }
        };
        if taken {
            self.abandon(element, slot);
            return Ok(false);
        }
        self.claimed(Write::Begin(element));
        Ok(true)
    }

    /// Returns true if an element has an external number as its chosen id, or is getting it.
    fn automatic_id_is_taken(&self, external: i64, element: ElementId, as_element: fn(u64) -> ElementId) -> bool {
        let ids = self.store.ids_of(element);
        // Store, then look: slot first, index second. `enter_id` does it in the other order.
        fence(Ordering::SeqCst);
        if !ids.has_ints() {
            return false;
        }
        let mut taken = false;
        ids.candidates(IdKey::of_int(external), |bits| {
            taken = self.store.slot(as_element(bits)).is_some_and(|slot| slot.core.version(slot.at).0 != NEVER);
            taken
        });
        taken
    }

    /// Adds a chosen id to the id index. Fails if another element has the id, or is getting it.
    fn enter_id(&self, element: ElementId, id: &UserId, as_element: fn(u64) -> ElementId) -> Result<()> {
        let bits = match element {
            ElementId::Vertex(v) => v.to_bits(),
            ElementId::Edge(e) => e.to_bits(),
        };
        self.store.ids_of(element).insert(IdKey::of(id), bits, &self.store.memory, &self.store.limbo, |other| {
            let other = as_element(other);
            if self.store.has_id(other, id) { self.check_rival(other, id) } else { Ok(()) }
        })?;
        // Store, then look: index first, slot second. Pairs with the fence in `automatic_id_is_taken`.
        fence(Ordering::SeqCst);
        let Some((rival, _)) = self.store.automatic(id, as_element) else { return Ok(()) };
        self.check_rival(rival, id).inspect_err(|_| self.store.ids_of(element).remove(IdKey::of(id), bits))
    }

    /// Fails if another element keeps the id: a visible one, or one that another transaction is adding or has added
    /// since this snapshot.
    fn check_rival(&self, rival: ElementId, id: &UserId) -> Result<()> {
        let Some(slot) = self.store.slot(rival) else { return Ok(()) };
        let (begin, end) = slot.core.version(slot.at);
        if visible(begin, end, &self.snapshot) {
            let kind = if matches!(rival, ElementId::Vertex(_)) { "a vertex" } else { "an edge" };
            let message = format!("{kind} with id {id} exists already; choose another id or update the existing one");
            return Err(Error::new(ErrorKind::DuplicateId, message));
        }
        if contested(begin, &self.snapshot) {
            return Err(conflict(&format!("has taken the id {id}")));
        }
        Ok(())
    }

    // --- Properties ---------------------------------------------------------------------------------

    /// Sets or adds a value of a vertex, with meta-properties.
    pub fn set_vertex_property(
        &mut self,
        id: VertexId,
        key: KeyId,
        value: Value,
        cardinality: WriteCardinality,
        meta: Vec<(KeyId, Value)>,
    ) -> Result<()> {
        check_storable(&value)?;
        meta.iter().try_for_each(|(_, value)| check_storable(value))?;
        self.store.memory.check()?;
        let element = ElementId::Vertex(id);
        let slot = self.seen(element)?;
        self.check_unique(element, &slot, key, &value)?;
        let column = slot.core.column_or_create(key, &self.store.memory);
        let regions = (&slot.tablet.values, &self.store.memory);
        let is_plain =
            meta.is_empty() && (cardinality == WriteCardinality::Single || self.own_newest(column, &slot)?.is_absent());
        let cell = if is_plain {
            regions.0.encode(value.clone(), regions.1)
        } else {
            let mut multi = match cardinality {
                WriteCardinality::Single => MultiProperty::default(),
                _ => multi_of(&slot, self.own_newest(column, &slot)?),
            };
            add_value(&mut multi, value.clone(), cardinality, meta);
            regions.0.encode_multi(multi, regions.1)
        };
        self.write_cell(element, &slot, key, column, cell)?;
        self.index(element, &slot, key, &value)
    }

    /// Sets the value of an edge.
    pub fn set_edge_property(&mut self, id: EdgeId, key: KeyId, value: Value) -> Result<()> {
        check_storable(&value)?;
        self.store.memory.check()?;
        let element = ElementId::Edge(id);
        let slot = self.seen(element)?;
        self.check_unique(element, &slot, key, &value)?;
        let column = slot.core.column_or_create(key, &self.store.memory);
        let cell = slot.tablet.values.encode(value.clone(), &self.store.memory);
        self.write_cell(element, &slot, key, column, cell)?;
        self.index(element, &slot, key, &value)
    }

    /// Removes the value with this ordinal, or all values under the key. Does nothing if there is none.
    pub fn remove_vertex_property(&mut self, id: VertexId, key: KeyId, ordinal: Option<u32>) -> Result<()> {
        let Some(ordinal) = ordinal else { return self.remove(ElementId::Vertex(id), key) };
        self.change_multi(id, key, |multi| multi.values.retain(|v| v.ordinal != ordinal))
    }

    /// Removes the value of an edge. Does nothing if there is none.
    pub fn remove_edge_property(&mut self, id: EdgeId, key: KeyId) -> Result<()> {
        self.remove(ElementId::Edge(id), key)
    }

    /// Sets a meta-property of the value with this ordinal. Fails with `NotFound` if there is no such value.
    pub fn set_meta_property(
        &mut self,
        id: VertexId,
        key: KeyId,
        ordinal: u32,
        meta_key: KeyId,
        value: Value,
    ) -> Result<()> {
        check_storable(&value)?;
        self.store.memory.check()?;
        let mut found = false;
        self.change_multi(id, key, |multi| {
            if let Some(owner) = multi.values.iter_mut().find(|v| v.ordinal == ordinal) {
                found = true;
                set_meta(&mut owner.meta, meta_key, value);
            }
        })?;
        if found {
            return Ok(());
        }
        let name = self.store.catalog().key_name(key);
        let message = format!("the vertex has no property '{name}' (number {ordinal}) that could take a meta-property");
        Err(Error::new(ErrorKind::NotFound, message))
    }

    /// Removes a meta-property of the value with this ordinal. Does nothing if there is none.
    pub fn remove_meta_property(&mut self, id: VertexId, key: KeyId, ordinal: u32, meta_key: KeyId) -> Result<()> {
        self.change_multi(id, key, |multi| {
            if let Some(owner) = multi.values.iter_mut().find(|v| v.ordinal == ordinal) {
                Arc::make_mut(&mut owner.meta).retain(|(k, _)| *k != meta_key);
            }
        })
    }

    /// Removes all values under a key.
    fn remove(&mut self, element: ElementId, key: KeyId) -> Result<()> {
        let slot = self.seen(element)?;
        let Some(column) = slot.core.column(key) else { return Ok(()) };
        if self.own_newest(column, &slot)?.is_absent() {
            return Ok(());
        }
        self.write_cell(element, &slot, key, column, RawCell::ABSENT)?;
        self.index_without(element, &slot, key);
        Ok(())
    }

    /// Applies `change` to all values under a key, and writes the result if it differs.
    fn change_multi(&mut self, id: VertexId, key: KeyId, change: impl FnOnce(&mut MultiProperty)) -> Result<()> {
        let element = ElementId::Vertex(id);
        let slot = self.seen(element)?;
        let Some(column) = slot.core.column(key) else { return Ok(()) };
        let before = multi_of(&slot, self.own_newest(column, &slot)?);
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return Ok(());
        }
        let is_left = !after.values.is_empty();
        let cell = match is_left {
            false => RawCell::ABSENT,
            true => slot.tablet.values.encode_multi(after, &self.store.memory),
        };
        self.write_cell(element, &slot, key, column, cell)?;
        if !is_left {
            self.index_without(element, &slot, key);
        }
        Ok(())
    }

    /// The newest version of a cell, if this transaction may build on it; otherwise a conflict.
    fn own_newest(&self, column: &Column, slot: &Slot<'_>) -> Result<RawCell> {
        if column.is_contested(slot.at, &self.snapshot, slot.tablet.undo_under(&self.pin)) {
            return Err(conflict("changed the same property"));
        }
        Ok(column.newest(slot.at))
    }

    /// Writes a new version of a cell.
    fn write_cell(
        &mut self,
        element: ElementId,
        slot: &Slot<'_>,
        key: KeyId,
        column: &Column,
        cell: RawCell,
    ) -> Result<()> {
        let fresh_element = slot.core.version(slot.at).0 == self.claim;
        let claim = WriteClaim { snapshot: &self.snapshot, claim: self.claim, fresh_element };
        match column.write(slot.at, cell, &claim, &slot.tablet.undo, self.store.space()) {
            Ok(Written::InPlace(old)) => {
                // No undo record keeps the value for a collector, which would take it out of the indexes.
                self.store.forget_value(element, slot, key, old);
                self.store.discard(slot.tablet, old);
            }
            Ok(Written::Undo(undo)) => self.claimed(Write::Property { element, key, undo }),
            Err(_) => {
                self.store.discard(slot.tablet, cell);
                return Err(conflict("changed the same property"));
            }
        }
        // Store, then look. Pairs with the fence after a claim of the end word, and with the one in `create_index`.
        fence(Ordering::SeqCst);
        if contested(slot.core.version(slot.at).1, &self.snapshot) {
            return Err(conflict("is deleting the same element"));
        }
        Ok(())
    }
}

/// The values of a cell as those of a multi-property, in which a single value has ordinal 0.
fn multi_of(slot: &Slot<'_>, cell: RawCell) -> MultiProperty {
    match slot.tablet.values.decode(cell) {
        Content::Absent => MultiProperty::default(),
        Content::One(value) => MultiProperty { values: vec![MultiValue { ordinal: 0, value, meta: Arc::default() }] },
        Content::Multi(multi) => MultiProperty::clone(&multi),
    }
}

fn set_meta(metas: &mut Arc<Vec<(KeyId, Value)>>, key: KeyId, value: Value) {
    let metas = Arc::make_mut(metas);
    match metas.iter_mut().find(|(k, _)| *k == key) {
        Some((_, old)) => *old = value,
        None => metas.push((key, value)),
    }
}

/// Adds a value to the values under a key, as the cardinality demands.
pub(crate) fn add_value(
    multi: &mut MultiProperty,
    value: Value,
    cardinality: WriteCardinality,
    meta: Vec<(KeyId, Value)>,
) {
    let twin = match cardinality {
        WriteCardinality::Set => {
            multi.values.iter_mut().find(|v| mangrove_graph::compare::equivalent(&v.value, &value))
        }
        _ => None,
    };
    if let Some(twin) = twin {
        meta.into_iter().for_each(|(key, value)| set_meta(&mut twin.meta, key, value));
        return;
    }
    let ordinal = multi.values.iter().map(|v| v.ordinal + 1).max().unwrap_or(0);
    let mut metas = Arc::default();
    meta.into_iter().for_each(|(key, value)| set_meta(&mut metas, key, value));
    multi.values.push(MultiValue { ordinal, value, meta: metas });
}
