//! Counting who uses a thing, without a place that everybody counts in.
//!
//! Every transaction holds what all transactions share, for as long as it lives. If each took a handle by adding to one
//! counter, the line of that counter would go to and fro between the cores, twice a transaction, and whatever lies beside
//! it would go with it. So there are several counters, each with a handle behind it, and a thread keeps to one of them.

use std::ops::Deref;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::thread_number;

/// Threads that run at the same time rarely meet in one of so many counters.
const COUNTERS: usize = 16;

/// Hands out [`Hold`]s on one thing.
#[derive(Debug)]
pub struct Holds<T>(Arc<[Hold<T>; COUNTERS]>);

/// Keeps a thing alive, as an `Arc` does.
#[derive(Debug)]
pub struct Hold<T>(Arc<CachePadded<Arc<T>>>);

impl<T> Holds<T> {
    /// Holds on this, which stays alive as long as one of them, or this, does.
    pub fn on(thing: &Arc<T>) -> Self {
        Holds(Arc::new(std::array::from_fn(|_| Hold::on(thing.clone()))))
    }

    /// One for the calling thread.
    #[inline]
    pub fn hold(&self) -> Hold<T> {
        self.0[thread_number() % COUNTERS].clone()
    }
}

impl<T> Hold<T> {
    /// One that is not counted together with any other.
    pub fn on(thing: Arc<T>) -> Self {
        Hold(Arc::new(CachePadded::new(thing)))
    }
}

impl<T> Clone for Holds<T> {
    fn clone(&self) -> Self {
        Holds(self.0.clone())
    }
}

impl<T> Clone for Hold<T> {
    fn clone(&self) -> Self {
        Hold(self.0.clone())
    }
}

impl<T> Deref for Hold<T> {
    type Target = Arc<T>;
    #[inline]
    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}
