//! Creating and dropping property indexes while others read and write; see [`crate::property_index`].

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use mangrove_graph::{Error, ErrorKind, IndexId, IndexInfo, KeyId, LabelSetId, Result, Value, VertexId};

use crate::page::{PAGE_SLOTS, VertexPage};
use crate::property_index::{IndexOptions, PropertyIndex};
use crate::store::Store;
use crate::tablet::Tablet;
use crate::unique::ValueClaim;
use crate::version::{NEVER, Snapshot};

impl Store {
    /// Builds an index and offers it to snapshots from `now()` on, a timestamp at or below which everything
    /// is installed, asked when the index is complete. Other transactions go on meanwhile. Fails, and leaves
    /// nothing behind, where the same index exists or a unique one would start with duplicates.
    pub fn create_index(&self, options: &IndexOptions, now: impl Fn() -> u64) -> Result<IndexId> {
        let index = self.register(options)?;
        // Pairs with the fence after a writer's store into a cell: either the writer sees the index
        // registered, or the scan sees the cell.
        fence(Ordering::SeqCst);
        for tablet in &self.tablets {
            for (number, page) in tablet.vertices.iter().enumerate() {
                if self.covers(&index.info, page.core.label, options.key) {
                    self.index_page(&index, tablet, number, page);
                }
            }
        }
        if options.unique
            && let Err(error) = self.check_unique_from(&index, &Snapshot::committed(now()))
        {
            self.drop_index(index.info.id)?;
            return Err(error);
        }
        index.publish(now());
        Ok(index.info.id)
    }

    /// Takes an index away. Queries that are about to use it fail with `NotFound`.
    pub fn drop_index(&self, id: IndexId) -> Result<()> {
        let _turn = self.index_changes.lock();
        let mut indexes = Vec::clone(&self.indexes.load());
        let Some(at) = indexes.iter().position(|index| index.info.id == id) else {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no index {}", id.0)));
        };
        indexes.remove(at).release(&self.memory);
        self.indexes.store(Arc::new(indexes));
        Ok(())
    }

    /// The indexes there are, those being built included.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.indexes.load().iter().map(|index| index.info.clone()).collect()
    }

    /// Whether an index is about this key of vertices with this label set.
    pub(crate) fn covers(&self, index: &IndexInfo, labels: LabelSetId, key: KeyId) -> bool {
        index.key == key && index.label.is_none_or(|label| self.catalog().labels_of(labels).contains(&label))
    }

    fn register(&self, options: &IndexOptions) -> Result<Arc<PropertyIndex>> {
        let mut next = self.index_changes.lock();
        let mut indexes = Vec::clone(&self.indexes.load());
        let same = |index: &Arc<PropertyIndex>| {
            let info = &index.info;
            (info.label, info.key, info.ordered, info.unique)
                == (options.label, options.key, options.ordered, options.unique)
        };
        if let Some(twin) = indexes.iter().find(|index| same(index)) {
            let message = format!("the same index exists already, as number {}", twin.info.id.0);
            return Err(Error::new(ErrorKind::DuplicateId, message));
        }
        let index = Arc::new(PropertyIndex::new(IndexId(*next), options));
        *next += 1;
        indexes.push(index.clone());
        self.indexes.store(Arc::new(indexes));
        Ok(index)
    }

    /// Adds every version of every value on a page.
    pub(crate) fn index_page(&self, index: &PropertyIndex, tablet: &Tablet, number: usize, page: &VertexPage) {
        let Some(column) = page.core.column(index.info.key) else { return };
        for at in 0..page.core.used() {
            if page.core.version(at).0 == NEVER {
                continue;
            }
            let id = VertexId::new(tablet.id, number as u64 * PAGE_SLOTS + at as u64);
            column.each_version(at, &tablet.undo, |_, cell| {
                tablet.values.values(cell, |value| index.add(value, id, None, &self.memory));
            });
        }
    }

    /// Whether every value of an index has one vertex at most.
    fn check_unique_from(&self, index: &PropertyIndex, snapshot: &Snapshot<'_>) -> Result<()> {
        let key = index.info.key;
        index.each_group(|vertices| {
            for (i, &one) in vertices.iter().enumerate() {
                let Some(value) = self.first_shared(one, &vertices[i + 1..], key, snapshot) else { continue };
                let name = self.catalog().key_name(key);
                let message = format!(
                    "two vertices have the value {value:?} under '{name}', so a unique index cannot be made of it; \
                     change one of them first"
                );
                return Err(Error::new(ErrorKind::DuplicateId, message));
            }
            Ok(())
        })
    }

    /// A value of a vertex that one of the others has too, visibly.
    fn first_shared(&self, one: VertexId, others: &[VertexId], key: KeyId, snapshot: &Snapshot<'_>) -> Option<Value> {
        let (tablet, page) = self.vertex_page(one)?;
        if !page.core.visible(one.offset(), snapshot) {
            return None;
        }
        let mut values = Vec::new();
        let cell = page.core.column(key)?.read(one.offset(), snapshot, &tablet.undo);
        tablet.values.values(cell, |value| values.push(value.clone()));
        values.into_iter().find(|value| {
            others.iter().any(|&other| self.claims_value(other, key, value, snapshot) == ValueClaim::Visible)
        })
    }
}
