//! How the structures of this crate report their memory.
//!
//! A structure counts each allocation once when it makes it, and once when it gives it up, under a *kind* that its
//! owner chose. The owner decides what the counts are for.

/// A counter of allocations.
pub trait Accounting<K> {
    /// Counts an allocation of so many bytes.
    fn add(&self, kind: K, bytes: usize);
    /// Takes back what [`Accounting::add`] counted.
    fn remove(&self, kind: K, bytes: usize);
}

/// A counter for tests.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Counted(std::sync::atomic::AtomicU64);

#[cfg(test)]
impl Counted {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[cfg(test)]
impl Accounting<()> for Counted {
    fn add(&self, _: (), bytes: usize) {
        self.0.fetch_add(bytes as u64, std::sync::atomic::Ordering::Relaxed);
    }

    fn remove(&self, _: (), bytes: usize) {
        self.0.fetch_sub(bytes as u64, std::sync::atomic::Ordering::Relaxed);
    }
}
