//! Loading an empty graph without transactions.
//!
//! A [`BulkLoader`] fills pages that no other thread can see, one label set at a time. [`BulkLoader::finish`] packs the
//! adjacency into blocks and publishes everything as the base that every snapshot sees. The graph then has no version
//! words, no tails and no garbage. If the loader is dropped instead, the graph stays empty. The memory of its large
//! values in the value regions is freed with the store.
//!
//! There is one loader at a time, on an empty graph, while no transaction runs. `txn` ensures that.
//!
//! Chosen ids go into the id index as rows are added, so a second use of an id is found at once.

use std::sync::Arc;

use hashbrown::HashMap;
use mangrove_graph::{
    EdgeId, ElementKind, Error, ErrorKind, KeyId, LabelSetId, Result, TabletId, UserId, Value, VertexId,
};
use smol_str::SmolStr;

use crate::cell::{MultiProperty, RawCell};
use crate::index::IdKey;
use crate::load::pack::{give_up_lists, pack};
use crate::load::staged::{HasPageCore, NO_PAGE, StagedPages};
use crate::page::{EdgePage, PAGE_SLOTS, PagePosition, Tablet, VertexPage, page_core};
use crate::store::{Slot, Store};
use crate::version::{BASE_TS, Snapshot};

/// The values of one property for the rows of a call.
#[derive(Clone, Debug)]
pub struct BulkColumn {
    /// The property key.
    pub key: KeyId,
    /// The values, one entry for each row.
    pub values: ColumnData,
}

/// The values of a column: of one simple type, or of any types.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ColumnData {
    /// Booleans.
    Bool(Vec<bool>),
    /// 32-bit integers.
    I32(Vec<i32>),
    /// 64-bit integers.
    I64(Vec<i64>),
    /// Doubles.
    F64(Vec<f64>),
    /// Strings.
    String(Vec<SmolStr>),
    /// Values of any types; `None` for a row without a value.
    Any(Vec<Option<Value>>),
    /// For vertices only: several values for each row, with meta-properties. A row without a value has an empty entry.
    Multi(Vec<MultiProperty>),
}

impl ColumnData {
    fn len(&self) -> usize {
        match self {
            ColumnData::Bool(v) => v.len(),
            ColumnData::I32(v) => v.len(),
            ColumnData::I64(v) => v.len(),
            ColumnData::F64(v) => v.len(),
            ColumnData::String(v) => v.len(),
            ColumnData::Any(v) => v.len(),
            ColumnData::Multi(v) => v.len(),
        }
    }

    /// Returns true if at least half of the rows have a value.
    fn is_mostly_present(&self) -> bool {
        match self {
            ColumnData::Any(v) => v.iter().filter(|value| value.is_some()).count() * 2 >= v.len(),
            ColumnData::Multi(v) => v.iter().filter(|multi| !multi.values.is_empty()).count() * 2 >= v.len(),
            _ => true,
        }
    }

    /// Encodes the value of a row as a cell.
    fn cell(&self, row: usize, tablet: &Tablet, store: &Store) -> RawCell {
        let value = match self {
            ColumnData::Bool(v) => v[row].into(),
            ColumnData::I32(v) => v[row].into(),
            ColumnData::I64(v) => v[row].into(),
            ColumnData::F64(v) => v[row].into(),
            ColumnData::String(v) => v[row].clone().into(),
            ColumnData::Any(v) => match &v[row] {
                Some(value) => value.clone(),
                None => return RawCell::ABSENT,
            },
            ColumnData::Multi(v) if v[row].values.is_empty() => return RawCell::ABSENT,
            ColumnData::Multi(v) => return tablet.values.encode_multi(v[row].clone(), &store.memory),
        };
        tablet.values.encode(value, &store.memory)
    }

    /// Fails if there is not one entry for each row, or if a value cannot be a property.
    fn check(&self, rows: usize, key: &str, is_edge: bool) -> Result<()> {
        if self.len() != rows {
            return Err(Error::invalid(format!("the column '{key}' has {} values for {rows} rows", self.len())));
        }
        let storable = match self {
            ColumnData::Any(values) => values.iter().flatten().all(Value::is_storable),
            ColumnData::Multi(_) if is_edge => {
                return Err(Error::invalid(format!("the edge property '{key}' cannot have several values")));
            }
            ColumnData::Multi(records) => records
                .iter()
                .flat_map(|m| &m.values)
                .all(|one| one.value.is_storable() && one.meta.iter().all(|(_, value)| value.is_storable())),
            _ => true,
        };
        if storable {
            Ok(())
        } else {
            Err(Error::invalid(format!("the column '{key}' has values no property can hold")))
        }
    }
}

/// The columns in which most rows of a call have a value. A page that is begun for many rows gets dense columns at
/// once.
struct ExpectedColumns {
    ids: bool,
    keys: Vec<KeyId>,
}

impl ExpectedColumns {
    fn of(ids: Option<&[UserId]>, columns: &[BulkColumn]) -> Self {
        let keys = columns.iter().filter(|column| column.values.is_mostly_present()).map(|column| column.key).collect();
        ExpectedColumns { ids: ids.is_some(), keys }
    }

    /// Makes columns dense if the slot is the first of a page and about enough `rows` are still to come.
    fn prepare(&self, slot: &Slot<'_>, rows: usize, store: &Store) {
        if slot.at == 0 && rows >= slot.core.capacity() / 2 {
            slot.core.expect_many(self.ids, self.keys.iter().copied(), store.space());
        }
    }
}

/// Loads an empty graph without transactions.
pub struct BulkLoader {
    store: Arc<Store>,
    vertices: StagedPages<VertexPage>,
    edges: StagedPages<EdgePage>,
    /// The index of the page of vertices that is being filled, by label set.
    open_vertices: HashMap<LabelSetId, u32, foldhash::fast::RandomState>,
    /// The indexes of the pages of edges that are being filled, by label set: one for each tablet, or `NO_PAGE`.
    open_edges: HashMap<LabelSetId, Vec<u32>, foldhash::fast::RandomState>,
    /// True if a call has failed halfway, or the load was finished.
    closed: bool,
}

impl BulkLoader {
    /// A loader for an empty store. `txn` lets no transaction begin while the loader exists.
    pub fn new(store: Arc<Store>) -> Result<Self> {
        if !store.is_empty() {
            let message =
                "a bulk load needs a graph that was never written to; load into a new one, or use transactions";
            return Err(Error::invalid(message));
        }
        let tablets = store.tablets.len();
        Ok(BulkLoader {
            vertices: StagedPages::new(tablets),
            edges: StagedPages::new(tablets),
            open_vertices: HashMap::default(),
            open_edges: HashMap::default(),
            closed: false,
            store,
        })
    }

    /// The store, whose catalog must have the names of labels and keys.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Adds `count` vertices of one label set, and returns their ids in the order of the rows. `ids` are chosen ids;
    /// without them, vertices are known by their external numbers. `columns` have one entry for each vertex.
    ///
    /// Fails with `DuplicateId` if an id is used twice. After an error the loader can only be dropped.
    pub fn vertices(
        &mut self,
        labels: LabelSetId,
        count: usize,
        ids: Option<&[UserId]>,
        columns: &[BulkColumn],
    ) -> Result<Vec<VertexId>> {
        self.check(count, ids, columns, false)?;
        self.store.check_rows(ElementKind::Vertex, labels, count, columns, |_| None)?;
        self.closed = true;
        let expected = ExpectedColumns::of(ids, columns);
        let mut loaded = Vec::with_capacity(count);
        while loaded.len() < count {
            let row = loaded.len();
            let (index, at) = self.next_vertex_slot(labels);
            let (tablet, number, page) = &self.vertices.pages[index as usize];
            let id = VertexId::new(*tablet, u64::from(*number) * PAGE_SLOTS + at as u64);
            let tablet = self.store.tablet(*tablet).expect("pages are staged for tablets there are");
            let slot = Slot { tablet, core: &page.core, at };
            expected.prepare(&slot, count - row, &self.store);
            match ids {
                Some(ids) => self.enter_id(&self.vertices, &self.store.vertex_ids, id, &slot, &ids[row], "vertex")?,
                None if self.is_taken(&self.store.vertex_ids, id.external()) => {
                    self.vertices.free_slots.insert((index, at));
                    continue;
                }
                None => {}
            }
            self.set_columns(&slot, row, columns);
            loaded.push(id);
        }
        self.closed = false;
        Ok(loaded)
    }

    /// Adds edges of one label set, given by source and target, otherwise as [`BulkLoader::vertices`]. Fails with
    /// `NotFound` if an end was not loaded before.
    pub fn edges(
        &mut self,
        label: LabelSetId,
        ends: &[(VertexId, VertexId)],
        ids: Option<&[UserId]>,
        columns: &[BulkColumn],
    ) -> Result<Vec<EdgeId>> {
        self.check(ends.len(), ids, columns, true)?;
        let missing = |id: VertexId| self.vertices.find(id).is_none() || self.vertices.is_free(id);
        if let Some(row) = ends.iter().position(|&(source, target)| missing(source) || missing(target)) {
            let (source, target) = ends[row];
            let message =
                format!("row {row}: {source:?} or {target:?} was not loaded; load vertices before their edges");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let labels_at = |id| self.vertices.labels_of(id, self.store.catalog());
        let ends_of = |row: usize| Some((labels_at(ends[row].0), labels_at(ends[row].1)));
        self.store.check_rows(ElementKind::Edge, label, ends.len(), columns, ends_of)?;
        self.closed = true;
        let expected = ExpectedColumns::of(ids, columns);
        let mut loaded = Vec::with_capacity(ends.len());
        while let Some(&(source, target)) = ends.get(loaded.len()) {
            let row = loaded.len();
            let (index, at) = self.next_edge_slot(source.tablet(), label);
            self.edges.pages[index as usize].2.set_own_ends(at, source, target);
            let (tablet, number, page) = &self.edges.pages[index as usize];
            let id = EdgeId::new(*tablet, u64::from(*number) * PAGE_SLOTS + at as u64);
            if ids.is_some() || !columns.is_empty() || self.store.edge_ids.has_ints() {
                let tablet = self.store.tablet(*tablet).expect("pages are staged for tablets there are");
                let slot = Slot { tablet, core: &page.core, at };
                // The rows are spread over the pages of all tablets.
                expected.prepare(&slot, (ends.len() - row) / self.store.tablets.len(), &self.store);
                let same_bits = VertexId::from_bits(id.to_bits());
                match ids {
                    Some(ids) => {
                        self.enter_id(&self.edges, &self.store.edge_ids, same_bits, &slot, &ids[row], "edge")?
                    }
                    None if self.is_taken(&self.store.edge_ids, id.external()) => {
                        self.edges.free_slots.insert((index, at));
                        continue;
                    }
                    None => {}
                }
                self.set_columns(&slot, row, columns);
            }
            loaded.push(id);
        }
        self.closed = false;
        Ok(loaded)
    }

    /// Packs the adjacency and publishes the graph as the base that every snapshot sees. Fails with `DuplicateId` if two
    /// elements have the same values of a unique index; then nothing is published.
    pub fn finish(self) -> Result<()> {
        self.finish_unless(&mut || Ok(()))
    }

    /// As [`BulkLoader::finish`], but an error of `check` ends it. The calling thread asks before each page that it packs, and not
    /// after the first page is published. The graph stays empty then.
    pub fn finish_unless(mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if self.closed {
            return Err(Error::invalid("an earlier step of this bulk load failed; drop it and load again"));
        }
        self.closed = true;
        let empty_vertices = self.vertices.leave_empty(&self.store.memory);
        let empty_edges = self.edges.leave_empty(&self.store.memory);
        self.store.check_staged_unique(ElementKind::Vertex, &self.vertices)?;
        check()?;
        self.store.check_staged_unique(ElementKind::Edge, &self.edges)?;
        pack(&self.store, &self.vertices, &self.edges, check)?;
        self.publish();
        self.give_slots(ElementKind::Vertex, &empty_vertices);
        self.give_slots(ElementKind::Edge, &empty_edges);
        Ok(())
    }

    /// Gives the slots that stay empty to the account of free slots (STORE-25).
    fn give_slots(&self, kind: ElementKind, slots: &[(PagePosition, usize)]) {
        for &(position, at) in slots {
            let page = self.store.slot_page(kind, position);
            let tablet = self.store.tablet(position.tablet).expect("pages are staged for tablets there are");
            self.store.cursor(tablet, kind, page.core.label).free.give(page, at);
            tablet.note_free_slots();
        }
    }

    fn publish(&mut self) {
        for (tablet, number, page) in std::mem::take(&mut self.vertices.pages) {
            let tablet = self.store.tablet(tablet).expect("pages are staged for tablets there are");
            let published = tablet.vertices.add(page, &self.store.memory);
            assert_eq!(published, number, "a bulk load is alone with its graph");
            self.fill_indexes(ElementKind::Vertex, tablet, number);
        }
        for (tablet, number, page) in std::mem::take(&mut self.edges.pages) {
            let tablet = self.store.tablet(tablet).expect("pages are staged for tablets there are");
            let published = tablet.edges.add(page, &self.store.memory);
            assert_eq!(published, number, "a bulk load is alone with its graph");
            self.fill_indexes(ElementKind::Edge, tablet, number);
        }
    }

    /// Adds the values on a published page to the property indexes of its kind.
    fn fill_indexes(&self, kind: ElementKind, tablet: &Tablet, number: u32) {
        let core = page_core(tablet, kind, number as usize).expect("the page was just added");
        for index in self.store.indexes.load().iter().filter(|index| index.info.element == kind) {
            self.store.index_page(index, tablet, number as usize, core, &Snapshot::committed(BASE_TS));
        }
    }

    /// Fails if the loader is closed, memory is used up, or ids and columns do not fit the rows.
    fn check(&self, rows: usize, ids: Option<&[UserId]>, columns: &[BulkColumn], is_edge: bool) -> Result<()> {
        if self.closed {
            return Err(Error::invalid("an earlier step of this bulk load failed; drop it and load again"));
        }
        self.store.memory.check()?;
        if let Some(ids) = ids.filter(|ids| ids.len() != rows) {
            return Err(Error::invalid(format!("there are {} ids for {rows} rows", ids.len())));
        }
        columns.iter().try_for_each(|c| c.values.check(rows, &self.store.catalog().key_name(c.key), is_edge))
    }

    /// Fills the next slot for a vertex of a label set: the index of the page, and the offset.
    fn next_vertex_slot(&mut self, labels: LabelSetId) -> (u32, usize) {
        let staged = &mut self.vertices;
        if let Some(&index) = self.open_vertices.get(&labels)
            && let Some(at) = staged.pages[index as usize].2.core_mut().fill()
        {
            return (index, at);
        }
        let tablet = self.store.next_tablet().id;
        let index = staged.add(tablet, VertexPage::clean(labels, self.store.sizes.page_slots_max, &self.store.memory));
        self.open_vertices.insert(labels, index);
        let at = staged.pages[index as usize].2.core.fill().expect("a new page has room");
        (index, at)
    }

    /// As [`BulkLoader::next_vertex_slot`], for an edge whose source is in a tablet.
    fn next_edge_slot(&mut self, tablet: TabletId, label: LabelSetId) -> (u32, usize) {
        let tablets = self.store.tablets.len();
        let open = self.open_edges.entry(label).or_insert_with(|| vec![NO_PAGE; tablets]);
        let index = &mut open[usize::from(tablet.0) - 1];
        if *index != NO_PAGE
            && let Some(at) = self.edges.pages[*index as usize].2.core_mut().fill()
        {
            return (*index, at);
        }
        let full = (*index != NO_PAGE).then(|| self.edges.pages[*index as usize].2.core.capacity());
        *index =
            self.edges.add(tablet, EdgePage::clean(label, self.store.sizes.next_capacity(full), &self.store.memory));
        let at = self.edges.pages[*index as usize].2.core.fill().expect("a new page has room");
        (*index, at)
    }

    /// Returns true if an external number is the chosen id of an element.
    fn is_taken(&self, index: &crate::index::IdIndex, external: i64) -> bool {
        let mut taken = false;
        if index.has_ints() {
            index.candidates(IdKey::of_int(external), |_| {
                taken = true;
                true
            });
        }
        taken
    }

    /// Gives a staged element its chosen id. Fails if another element has the id.
    fn enter_id<P: HasPageCore>(
        &self,
        staged: &StagedPages<P>,
        index: &crate::index::IdIndex,
        bits: VertexId,
        slot: &Slot<'_>,
        id: &UserId,
        kind: &str,
    ) -> Result<()> {
        let duplicate = || {
            let message = format!("the id {id} is given to two {kind} elements; ids are unique among them");
            Err(Error::new(ErrorKind::DuplicateId, message))
        };
        let has_id = |other: VertexId| {
            let regions = self.store.tablet(other.tablet());
            match (staged.find(other), regions) {
                (Some((core, at)), Some(tablet)) => core.has_user_id(at, id, &tablet.values),
                _ => false,
            }
        };
        slot.core.set_user_id(slot.at, id, &slot.tablet.values, self.store.space());
        index.insert(IdKey::of(id), bits.to_bits(), &self.store.memory, &self.store.limbo, |other| {
            if has_id(VertexId::from_bits(other)) { duplicate() } else { Ok(()) }
        })?;
        let UserId::Int(number) = id else { return Ok(()) };
        let twin = VertexId::from_external(number.number);
        match staged.find(twin) {
            Some((core, at)) if core.user_id(at).is_absent() && !staged.is_free(twin) => duplicate(),
            _ => Ok(()),
        }
    }

    /// Sets the values of one row.
    fn set_columns(&self, slot: &Slot<'_>, row: usize, columns: &[BulkColumn]) {
        for BulkColumn { key, values } in columns {
            let cell = values.cell(row, slot.tablet, &self.store);
            if !cell.is_absent() {
                let column = slot.core.column_or_create(*key, &self.store.memory);
                column.set_in_place(slot.at, cell, self.store.space());
            }
        }
    }
}

impl Drop for BulkLoader {
    fn drop(&mut self) {
        if self.store.is_empty() {
            // Nothing was published, so ids, lists and the memory of staged pages are given back.
            give_up_lists(&self.store, &self.vertices);
            self.store.vertex_ids.clear(&self.store.memory, &self.store.limbo);
            self.store.edge_ids.clear(&self.store.memory, &self.store.limbo);
            let mut remove = |kind, bytes| self.store.memory.remove(kind, bytes);
            self.vertices.pages.iter().for_each(|(_, _, page)| page.add_bytes(&mut remove));
            self.edges.pages.iter().for_each(|(_, _, page)| page.add_bytes(&mut remove));
        }
    }
}

impl std::fmt::Debug for BulkLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BulkLoader({} vertex pages, {} edge pages)", self.vertices.pages.len(), self.edges.pages.len())
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::{Effort, RunningTransactions, StoreOptions};

    struct Idle;

    impl RunningTransactions for Idle {
        fn oldest_snapshot(&self) -> u64 {
            BASE_TS
        }
        fn oldest_transaction(&self) -> u64 {
            1
        }
        fn next_transaction(&self) -> u64 {
            1
        }
    }

    #[test]
    fn a_slot_that_stays_empty_is_free_and_its_page_is_frozen() {
        let store = Arc::new(Store::new(&StoreOptions { tablet_count: 1, ..StoreOptions::default() }));
        let person = store.catalog().intern_label_text("person");
        let mut loader = BulkLoader::new(store.clone()).unwrap();
        // A user chooses the number that the second slot has by itself.
        let second = VertexId::new(TabletId(1), 1);
        loader.vertices(person, 1, Some(&[UserId::from(second.external())]), &[]).unwrap();
        let loaded = loader.vertices(person, 1, None, &[]).unwrap();
        assert_eq!(loaded, [VertexId::new(TabletId(1), 2)]);
        loader.finish().unwrap();
        assert_eq!((store.reserved_slots(), store.free_slots(), store.garbage().pages), (3, 1, 0));

        store.compact(&Idle, Effort::All);
        assert_eq!((store.free_slots(), store.garbage().pages), (1, 1));
    }
}
