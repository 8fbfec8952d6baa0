//! Reference counting in shards, so that threads do not share one counter.
//!
//! Every transaction keeps the graph's shared state alive for as long as it lives. If each took a plain `Arc`, the
//! cache line of its counter would go to and fro between the cores, twice a transaction, together with whatever lies
//! beside it. A [`ShardedArc`] therefore has several counters, each guarding an `Arc` of its own, and a thread keeps to
//! one of them.

use std::ops::Deref;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::thread_number;

/// Counters of one [`ShardedArc`]. Threads that run at the same time rarely share one.
const COUNTERS: usize = 16;

/// Hands out [`ShardHandle`]s on one value. The value lives as long as this or any handle does.
#[derive(Debug)]
pub struct ShardedArc<T>(Arc<[ShardHandle<T>; COUNTERS]>);

/// A handle that keeps a value alive, as an `Arc` does, and is counted in one shard.
#[derive(Debug)]
pub struct ShardHandle<T>(Arc<CachePadded<Arc<T>>>);

impl<T> ShardedArc<T> {
    /// Shards the reference count of a value.
    pub fn new(shared: &Arc<T>) -> Self {
        ShardedArc(Arc::new(std::array::from_fn(|_| ShardHandle::alone(shared.clone()))))
    }

    /// Returns a handle, counted in the shard of the calling thread.
    #[inline]
    pub fn handle(&self) -> ShardHandle<T> {
        self.0[thread_number() % COUNTERS].clone()
    }
}

impl<T> ShardHandle<T> {
    /// Returns a handle with a counter of its own.
    pub fn alone(shared: Arc<T>) -> Self {
        ShardHandle(Arc::new(CachePadded::new(shared)))
    }
}

impl<T> Clone for ShardedArc<T> {
    fn clone(&self) -> Self {
        ShardedArc(self.0.clone())
    }
}

impl<T> Clone for ShardHandle<T> {
    fn clone(&self) -> Self {
        ShardHandle(self.0.clone())
    }
}

impl<T> Deref for ShardHandle<T> {
    type Target = Arc<T>;
    #[inline]
    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}
