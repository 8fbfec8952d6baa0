//! A bulk load that keeps transactions away while it lives.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use mangrove_graph::Result;
use mangrove_store::BulkLoader;

use crate::shared::Shared;

/// A [`BulkLoader`] with the graph to itself. Dropping it before [`BulkLoad::finish`] leaves the graph empty.
#[derive(Debug)]
pub struct BulkLoad {
    /// Present until the load has finished.
    loader: Option<BulkLoader>,
    shared: Arc<Shared>,
    /// The graph in memory is not the one on the disk.
    is_lost: bool,
}

impl BulkLoad {
    pub(crate) fn new(loader: BulkLoader, shared: Arc<Shared>) -> Self {
        BulkLoad { loader: Some(loader), shared, is_lost: false }
    }

    /// Publishes what was loaded, makes it durable where the graph is, and lets transactions begin. If what was loaded
    /// could not be made durable, no transaction ever begins: the graph is to be opened again, and is empty then.
    pub fn finish(mut self) -> Result<()> {
        self.loader.take().expect("a load is finished once, by value").finish()?;
        self.shared.after_load().inspect_err(|_| self.is_lost = true)
    }
}

impl Deref for BulkLoad {
    type Target = BulkLoader;
    fn deref(&self) -> &BulkLoader {
        self.loader.as_ref().expect("the loader is there until finish, which takes the load by value")
    }
}

impl DerefMut for BulkLoad {
    fn deref_mut(&mut self) -> &mut BulkLoader {
        self.loader.as_mut().expect("the loader is there until finish, which takes the load by value")
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        // The loader first: it may have to clear what transactions would look at.
        self.loader = None;
        if !self.is_lost {
            self.shared.end_load();
        }
    }
}
