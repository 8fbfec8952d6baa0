//! Memory that was unlinked and that no thread has freed yet, with its type erased.
//!
//! A cell of `epoch_cell` returns its old content as [`Retired`], and the caller hands that to a `limbo`. A [`Retired`]
//! owns the memory and gives no access to it. Only the limbo frees it, and only when RECLAIM-3 (`epoch`) allows it.

#![expect(unsafe_code, reason = "frees memory whose type is erased; the constructor says how")]

/// Unlinked memory that is not freed yet. Dropping it leaks the memory; a `Limbo` frees it in time.
#[derive(Debug)]
#[must_use = "dropping it leaks the memory"]
pub struct Retired {
    target: *mut (),
    len: usize,
    free: unsafe fn(*mut (), usize),
}

// SAFETY: made only from boxes of `T: Send` (bounds of `EpochCell` and `EpochSlice`), and gives no access but freeing.
unsafe impl Send for Retired {}

impl Retired {
    /// Memory of `len` entries at `target`. The caller has given it up, and `free` must fit the box it came from.
    pub(crate) fn new(target: *mut (), len: usize, free: unsafe fn(*mut (), usize)) -> Self {
        Retired { target, len, free }
    }

    /// Frees the memory.
    ///
    /// # Safety
    /// Every pin in the process must have begun after the memory was unlinked (RECLAIM-3).
    pub(crate) unsafe fn free(self) {
        // SAFETY: `target` and `len` are those of the box that `free` was made for, given up once by the cell;
        // the caller vouches that no thread has a reference.
        unsafe { (self.free)(self.target, self.len) }
    }
}
