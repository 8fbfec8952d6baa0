//! Projections that are kept between runs of algorithms, and refreshed.
//!
//! Most runs read the graph that the last one has read, or one with few changes. So a database keeps the projections that it has made
//! last, up to a number of bytes. A run of an algorithm with the same choice of vertices and edges reads only the
//! pages that have changed since.
//!
//! The memory of all projections is drawn from the memory budget of the process. A kept one that no algorithm uses gives way to whatever
//! else needs the memory: so nothing is refused because of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use mangrove_graph::{ErrorKind, GraphView, MemoryBudget, Result, SpareMemory};
use parking_lot::Mutex;

use crate::named::NamedProjections;
use crate::projection::{Projection, ProjectionOptions};
use crate::team::Team;

/// The bytes of kept projections, unless the limit is set.
pub const CACHE_BYTES: u64 = 1 << 30;

/// The projections that a database keeps.
#[derive(Debug)]
pub struct ProjectionCache {
    /// The last used one at the end.
    kept: Mutex<Vec<Arc<Projection>>>,
    limit: AtomicU64,
    named: NamedProjections,
}

impl Default for ProjectionCache {
    fn default() -> Self {
        ProjectionCache {
            kept: Mutex::default(),
            limit: AtomicU64::new(CACHE_BYTES),
            named: NamedProjections::default(),
        }
    }
}

impl SpareMemory for ProjectionCache {
    /// Drops the one that was used least recently, of those that no algorithm uses.
    fn give_way(&self, _: u64) -> bool {
        let mut kept = self.kept.lock();
        // Uses begin with the lock held.
        let unused = kept.iter().position(|projection| Arc::strong_count(projection) == 1).map(|at| kept.remove(at));
        drop(kept);
        unused.is_some()
    }
}

impl ProjectionCache {
    /// A cache whose projections give way to everything else that draws from a budget.
    pub fn giving_way_in(budget: &MemoryBudget) -> Arc<Self> {
        let cache = Arc::new(ProjectionCache::default());
        budget.give_way_first(Arc::downgrade(&cache) as Weak<dyn SpareMemory>);
        cache
    }

    /// Keeps projections of this many bytes together at most. 0: none.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
        self.drop_oldest(&mut self.kept.lock());
    }

    /// The most bytes of kept projections.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// The bytes of the kept projections. Projections that share arrays count them each.
    pub fn bytes(&self) -> u64 {
        self.kept.lock().iter().map(|projection| projection.bytes()).sum()
    }

    /// The number of the kept projections.
    pub fn count(&self) -> usize {
        self.kept.lock().len()
    }

    /// Returns true if a projection with these options is kept.
    pub fn keeps(&self, options: &ProjectionOptions) -> bool {
        self.kept.lock().iter().any(|kept| kept.options() == options)
    }

    /// The projections with names. They are not part of the limit.
    pub fn named(&self) -> &NamedProjections {
        &self.named
    }

    /// Drops all that have no name.
    pub fn clear(&self) {
        self.kept.lock().clear();
    }

    /// A projection of what a view shows: a kept one that is refreshed, or a new one.
    ///
    /// # Errors
    ///
    /// As those of [`Projection::of`].
    pub fn projection(
        &self,
        view: &dyn GraphView,
        options: &ProjectionOptions,
        team: &Team,
    ) -> Result<Arc<Projection>> {
        if view.shown_commit().is_none() {
            // The changes of a transaction that runs are its own.
            return Projection::of(view, options, team).map(Arc::new);
        }
        let found = self.kept.lock().iter().find(|kept| kept.options() == options).cloned();
        let refreshed = found.map(|kept| kept.refreshed(view, team)).transpose();
        let projection = match refreshed {
            Ok(Some((refreshed, _))) => refreshed,
            Ok(None) => Arc::new(Projection::of(view, options, team)?),
            // There is no room for the old pages and the new ones.
            Err(error) if error.kind() == ErrorKind::MemoryLimit => {
                self.kept.lock().retain(|kept| kept.options() != options);
                Arc::new(Projection::of(view, options, team)?)
            }
            Err(error) => return Err(error),
        };
        self.keep(projection.clone());
        Ok(projection)
    }

    fn keep(&self, projection: Arc<Projection>) {
        let mut kept = self.kept.lock();
        kept.retain(|other| other.options() != projection.options());
        kept.push(projection);
        self.drop_oldest(&mut kept);
    }

    fn drop_oldest(&self, kept: &mut Vec<Arc<Projection>>) {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut bytes: u64 = kept.iter().map(|projection| projection.bytes()).sum();
        let is_too_much = |projection: &Arc<Projection>| {
            let is_over = bytes > limit;
            bytes -= projection.bytes();
            is_over
        };
        let count = kept.iter().map(is_too_much).take_while(|is_over| *is_over).count();
        kept.drain(..count);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_store::Store;
    use mangrove_txn::{Isolation, TransactionManager, TransactionOptions};

    use super::*;
    use crate::projection::Orientation;

    #[test]
    fn the_last_used_projections_are_kept_up_to_the_limit() {
        let store = Arc::new(Store::new(&Default::default()));
        let label = store.catalog().intern_label_text("vertex");
        let manager = TransactionManager::new(store);
        let txn = manager.begin(TransactionOptions { isolation: Isolation::Snapshot, read_only: false }).unwrap();
        (0..100).for_each(|_| {
            txn.insert_vertex(label, None).unwrap();
        });
        txn.commit().unwrap();
        let (cache, team) = (ProjectionCache::default(), Team::alone());
        let options = |orientation| ProjectionOptions { orientation, ..ProjectionOptions::default() };
        let (directed, undirected) = (options(Orientation::Directed), options(Orientation::Undirected));
        let view = manager.begin_read().unwrap();
        let first = cache.projection(&view, &directed, &team).unwrap();
        let bytes = cache.bytes();
        assert_eq!(bytes, first.bytes());
        assert!(Arc::ptr_eq(&first, &cache.projection(&view, &directed, &team).unwrap()));
        cache.projection(&view, &undirected, &team).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.projection(&view, &directed, &team).unwrap()), "both are kept");
        cache.set_limit(bytes);
        assert_eq!(cache.bytes(), bytes, "the last used one is kept");
        assert!(Arc::ptr_eq(&first, &cache.projection(&view, &directed, &team).unwrap()));
        cache.set_limit(bytes - 1);
        assert_eq!(cache.bytes(), 0);
        cache.set_limit(u64::MAX);
        let own = manager.begin(TransactionOptions { isolation: Isolation::Snapshot, read_only: false }).unwrap();
        cache.projection(&own, &directed, &team).unwrap();
        assert_eq!(cache.bytes(), 0, "a transaction that may write shows more than commits");
    }
}
