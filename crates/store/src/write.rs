//! What a transaction writes: claims, conflicts, and how they end.
//!
//! A [`Writer`] carries out one operation after another of one statement of one transaction and appends to
//! the transaction's log what it has claimed. Each entry later becomes a commit ([`Store::install`]) or is
//! taken back ([`Store::rollback`]). After an error of kind `Conflict` the only thing left to do with the
//! log is the rollback; any other error has changed nothing.
//!
//! Conflicts, first updater wins:
//!
//! - *Delete against delete*: compare-and-swap on the end word.
//! - *Property against property*: see the module `column`.
//! - *Property against delete*: the setter writes, then looks at the end word; the deleter claims the end
//!   word, then looks at the columns. A SeqCst fence between the two steps on both sides (as in Dekker's
//!   algorithm) lets at least one of them notice the other.
//! - *New edge against delete of an end*: the same, with the adjacency lists in place of the columns. So no
//!   edge dangles, and the visibility of an edge implies that of its ends.
//! - *Id against the same id*: under the id index's shard mutex. A chosen integer against an automatic id
//!   that happens to be that number: index entry and slot, Dekker again.
//! - Adding different edges to one vertex is no conflict.

pub(crate) mod changes;
mod deletion;
mod finalization;
mod index_build;
mod index_entries;
pub(crate) mod redo;
mod rule_check;
mod unique;

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use mangrove_graph::{
    Direction, EdgeId, ElementId, Error, ErrorKind, KeyId, LabelSetId, Result, UserId, Value, VertexId,
};
use mangrove_reclaim::{Pin, epoch};

use crate::cell::column::{Column, WriteClaim, Written};
use crate::cell::{Content, MultiProperty, MultiValue, RawCell};
use crate::index::IdKey;
use crate::memory::Write;
use crate::page::TableName;
use crate::store::{Slot, Store, edge, vertex};
use crate::version::{NEVER, Snapshot, claim, contested, visible};

/// What happens to the values a key has already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteCardinality {
    /// They are replaced.
    Single,
    /// They stay; the new one is added.
    List,
    /// They stay; the new one is added unless an equal one is there, which then takes the meta-properties.
    Set,
}

/// One statement of one transaction, writing. See the module.
pub struct Writer<'a> {
    pub(crate) store: &'a Store,
    /// What the operation follows stays while it runs.
    pub(crate) pin: Pin,
    /// With all own writes: what conflicts and existence are judged by.
    pub(crate) snapshot: Snapshot<'a>,
    claim: u64,
    log: &'a mut Vec<Write>,
    has_written: bool,
}

pub(crate) fn conflict(what: &str) -> Error {
    Error::conflict(format!("another transaction {what} first; run this transaction again"))
}

fn check_storable(value: &Value) -> Result<()> {
    if value.is_storable() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a property cannot hold this {}: it holds numbers, strings, booleans, dates and collections of these, nested at \
         most {} deep",
        value.type_name(),
        Value::NESTING_MAX
    )))
}

impl<'a> Writer<'a> {
    /// A writer for the running statement of a transaction. `snapshot` names the transaction and its begin;
    /// `statement` is the number of the running statement.
    pub fn new(store: &'a Store, snapshot: Snapshot<'a>, statement: u16, log: &'a mut Vec<Write>) -> Self {
        let claim = claim(snapshot.txn, statement);
        let snapshot = snapshot.with_all_own_writes().amid(&store.installing);
        Writer { store, pin: epoch::pin(), snapshot, claim, log, has_written: false }
    }

    /// Whether it has changed anything: in place too, where the log has an entry for the element already.
    pub fn has_written(&self) -> bool {
        self.has_written
    }

    fn claimed(&mut self, write: Write) {
        self.log.push(write);
        self.has_written = true;
    }

    fn begin(&self, slot: &Slot<'_>) {
        // Release: whoever sees the claim sees the record written before it.
        slot.core.versions(&self.pin, &self.store.memory)[slot.at].begin.store(self.claim, Ordering::Release);
    }

    /// Takes back the claim on a slot that was just reserved.
    fn abandon(&self, element: ElementId, slot: &Slot<'_>) {
        slot.core.versions(&self.pin, &self.store.memory)[slot.at].begin.store(NEVER, Ordering::Release);
        self.store.give_up(element, slot);
    }

    /// The place of an element that this transaction sees and nobody else is deleting.
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

    fn missing(&self, element: ElementId) -> Error {
        let (kind, external) = match element {
            ElementId::Vertex(id) => ("vertex", id.external()),
            ElementId::Edge(id) => ("edge", id.external()),
        };
        // The id as its user knows it, where there is such an element at all.
        let known = self.store.slot(element).map(|slot| self.store.user_id(&slot, external));
        let id = known.and_then(|value| UserId::from_value(&value)).unwrap_or(UserId::int(external));
        Error::new(
            ErrorKind::NotFound,
            format!("the {kind} with id {id} does not exist (any more); it may have been deleted in this transaction"),
        )
    }

    // --- Elements -----------------------------------------------------------------------------------

    /// Adds a vertex, under an id of its own or an automatic one.
    pub fn insert_vertex(&mut self, labels: LabelSetId, id: Option<&UserId>) -> Result<VertexId> {
        self.store.memory.check()?;
        loop {
            let (vertex_id, slot) = self.store.reserve_vertex(labels);
            if self.begin_element(ElementId::Vertex(vertex_id), &slot, vertex_id.external(), id, vertex)? {
                return Ok(vertex_id);
            }
        }
    }

    /// Adds an edge between two vertices that this transaction sees.
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

    /// Adds edges with automatic ids between vertices that this transaction sees, given by source and target. As every
    /// operation, it has changed nothing after an error that is no conflict.
    pub fn insert_edges(&mut self, ends: &[(VertexId, VertexId)], label: LabelSetId) -> Result<Vec<EdgeId>> {
        self.store.memory.check()?;
        for vertex in ends.iter().flat_map(|&(source, target)| [source, target]) {
            self.seen(ElementId::Vertex(vertex))?;
        }
        // From here on only a conflict stands in the way: what the transaction sees it goes on seeing.
        ends.iter().map(|&(source, target)| self.join(source, target, label, None)).collect()
    }

    fn join(&mut self, source: VertexId, target: VertexId, label: LabelSetId, id: Option<&UserId>) -> Result<EdgeId> {
        let lists = [(source, Direction::Out), (target, Direction::In)];
        lists.iter().for_each(|(at, direction)| self.prefetch_descriptor(*at, *direction, label));
        let ends = [self.seen(ElementId::Vertex(source))?, self.seen(ElementId::Vertex(target))?];
        lists.iter().for_each(|(at, direction)| self.prefetch_header(*at, *direction, label));
        let edge_id = loop {
            let (edge_id, page, slot) = self.store.reserve_edge(ends[0].tablet, label);
            page.set_ends(slot.at, source, target, &self.store.memory, &self.pin);
            if self.begin_element(ElementId::Edge(edge_id), &slot, edge_id.external(), id, edge)? {
                break edge_id;
            }
        };
        self.append(source, Direction::Out, label, target, edge_id);
        self.append(target, Direction::In, label, source, edge_id);
        // Pairs with the fence in `delete_vertex`: see the module.
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
            // What is looked at first.
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

    fn append(&self, at: VertexId, direction: Direction, label: LabelSetId, neighbor: VertexId, edge: EdgeId) {
        let (tablet, page) = self.store.vertex_page(at).expect("the vertex was seen");
        let table = page.table_or_create(direction, label, &self.store.sizes, &self.store.memory);
        if table.append(at.offset(), neighbor, edge, &tablet.lists, self.store.space(), &self.pin) {
            self.store.give_table(tablet, TableName { page: at.page() as u32, direction, label });
        }
    }

    /// Claims a reserved slot for an element with this id; false when its automatic id is taken, so that
    /// another slot is needed.
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

    /// Whether a user chose the number of an automatic id, or is just about to.
    fn automatic_id_is_taken(&self, external: i64, element: ElementId, as_element: fn(u64) -> ElementId) -> bool {
        let ids = self.store.ids_of(element);
        // Slot first, index second; `enter_id` does it the other way round.
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

    fn enter_id(&self, element: ElementId, id: &UserId, as_element: fn(u64) -> ElementId) -> Result<()> {
        let bits = match element {
            ElementId::Vertex(v) => v.to_bits(),
            ElementId::Edge(e) => e.to_bits(),
        };
        self.store.ids_of(element).insert(IdKey::of(id), bits, &self.store.memory, &self.store.limbo, |other| {
            let other = as_element(other);
            if self.store.has_id(other, id) { self.check_rival(other, id) } else { Ok(()) }
        })?;
        fence(Ordering::SeqCst);
        let Some((rival, _)) = self.store.automatic(id, as_element) else { return Ok(()) };
        self.check_rival(rival, id).inspect_err(|_| self.store.ids_of(element).remove(IdKey::of(id), bits))
    }

    /// Whether an element that has, had or is getting the same id leaves it to us.
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

    /// Sets or adds a value of a vertex.
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
        self.check_unique(id, &slot, key, &value)?;
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
        self.index(id, &slot, key, &value)
    }

    /// Sets the value of an edge.
    pub fn set_edge_property(&mut self, id: EdgeId, key: KeyId, value: Value) -> Result<()> {
        check_storable(&value)?;
        self.store.memory.check()?;
        let element = ElementId::Edge(id);
        let slot = self.seen(element)?;
        let column = slot.core.column_or_create(key, &self.store.memory);
        let cell = slot.tablet.values.encode(value, &self.store.memory);
        self.write_cell(element, &slot, key, column, cell)
    }

    /// Removes one value of a vertex, or all under the key. Nothing happens where there is none.
    pub fn remove_vertex_property(&mut self, id: VertexId, key: KeyId, ordinal: Option<u32>) -> Result<()> {
        let Some(ordinal) = ordinal else { return self.remove(ElementId::Vertex(id), key) };
        self.change_multi(id, key, |multi| multi.values.retain(|v| v.ordinal != ordinal))
    }

    /// Removes the value of an edge. Nothing happens where there is none.
    pub fn remove_edge_property(&mut self, id: EdgeId, key: KeyId) -> Result<()> {
        self.remove(ElementId::Edge(id), key)
    }

    /// Sets a meta-property of one value of a vertex.
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

    /// Removes a meta-property of one value of a vertex. Nothing happens where there is none.
    pub fn remove_meta_property(&mut self, id: VertexId, key: KeyId, ordinal: u32, meta_key: KeyId) -> Result<()> {
        self.change_multi(id, key, |multi| {
            if let Some(owner) = multi.values.iter_mut().find(|v| v.ordinal == ordinal) {
                Arc::make_mut(&mut owner.meta).retain(|(k, _)| *k != meta_key);
            }
        })
    }

    fn remove(&mut self, element: ElementId, key: KeyId) -> Result<()> {
        let slot = self.seen(element)?;
        let Some(column) = slot.core.column(key) else { return Ok(()) };
        if self.own_newest(column, &slot)?.is_absent() {
            return Ok(());
        }
        self.write_cell(element, &slot, key, column, RawCell::ABSENT)?;
        if let ElementId::Vertex(id) = element {
            self.index_without(id, &slot, key);
        }
        Ok(())
    }

    /// Replaces all values under a key by what `change` makes of them, if it changes anything.
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
            self.index_without(id, &slot, key);
        }
        Ok(())
    }

    /// The newest version of a cell, if this transaction may build on it.
    fn own_newest(&self, column: &Column, slot: &Slot<'_>) -> Result<RawCell> {
        if column.is_contested(slot.at, &self.snapshot, slot.tablet.undo_under(&self.pin)) {
            return Err(conflict("changed the same property"));
        }
        Ok(column.newest(slot.at))
    }

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
            Ok(Written::InPlace(old)) => self.store.discard(slot.tablet, old),
            Ok(Written::Undo(undo)) => self.claimed(Write::Property { element, key, undo }),
            Err(_) => {
                self.store.discard(slot.tablet, cell);
                return Err(conflict("changed the same property"));
            }
        }
        // Pairs with the fence after a claim of the end word, and with the one in `create_index`.
        fence(Ordering::SeqCst);
        if contested(slot.core.version(slot.at).1, &self.snapshot) {
            return Err(conflict("is deleting the same element"));
        }
        Ok(())
    }
}

/// In whose lists the other end of an edge has it.
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

/// Adds a value to those under a key.
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
