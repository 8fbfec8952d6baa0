//! A value that is replaced while the server runs, such as the limits after a reload of the configuration.

use std::sync::Arc;

use parking_lot::RwLock;

/// A value that is replaced as a whole. A reader keeps the version that it has read.
#[derive(Debug)]
pub struct Reloadable<T>(RwLock<Arc<T>>);

impl<T> Reloadable<T> {
    /// Starts with this value.
    pub fn new(value: T) -> Self {
        Reloadable(RwLock::new(Arc::new(value)))
    }

    /// The current version.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read())
    }

    /// Replaces the value for all later readers.
    pub fn set(&self, value: T) {
        *self.0.write() = Arc::new(value);
    }
}
