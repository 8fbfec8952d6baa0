//! A bulk load through the transaction manager: no transaction begins while it lives.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use mangrove_graph::Result;
use mangrove_store::BulkLoader;

use crate::shared::Shared;

/// A [`BulkLoader`] with exclusive use of the graph. Dropping it before [`BulkLoad::finish`] leaves the graph empty.
#[derive(Debug)]
pub struct BulkLoad {
    /// Present until the load has finished.
    loader: Option<BulkLoader>,
    shared: Arc<Shared>,
    /// True if the load is published in memory but could not be made durable.
    is_lost: bool,
}

impl BulkLoad {
    pub(crate) fn new(loader: BulkLoader, shared: Arc<Shared>) -> Self {
        BulkLoad { loader: Some(loader), shared, is_lost: false }
    }

    /// Publishes the load, makes it durable if the graph is durable, and lets transactions begin. If it cannot be made
    /// durable, no transaction begins until the graph is opened again; it is empty then.
    pub fn finish(self) -> Result<()> {
        self.finish_unless(&mut || Ok(()))
    }

    /// As [`BulkLoad::finish`], but an error of `check`, which is asked often, ends it until the load is published. The graph stays
    /// empty then.
    pub fn finish_unless(mut self, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.loader.take().expect("a load is finished once, by value").finish_unless(check)?;
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
        // The loader first: dropping it may clear data that a transaction would look at.
        self.loader = None;
        if !self.is_lost {
            self.shared.end_load();
        }
    }
}
