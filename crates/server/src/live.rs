//! What may change while the server runs.

use std::sync::Arc;

use parking_lot::RwLock;

/// A value that is replaced as a whole. Who has read it goes on with what was read.
#[derive(Debug)]
pub struct Live<T>(RwLock<Arc<T>>);

impl<T> Live<T> {
    /// This value, at first.
    pub fn new(value: T) -> Self {
        Live(RwLock::new(Arc::new(value)))
    }

    /// The value now.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read())
    }

    /// Replaces it.
    pub fn set(&self, value: T) {
        *self.0.write() = Arc::new(value);
    }
}
