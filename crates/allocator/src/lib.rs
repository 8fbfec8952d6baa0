//! The memory allocator of the programs `mangrove` and `mangrove-bench`: mimalloc.
//!
//! The crate `mimalloc` passes every request on with its alignment. For a request with an alignment, mimalloc 3 takes a
//! slow path unless the size is a power of two: it asks for `size + alignment - 1` bytes, which are in a larger size
//! class, and marks the whole page, so that each `free` in it divides. But every block of at least 16 bytes is aligned
//! to 16 bytes anyway, which is all that nearly every request needs. So [`Allocator`] asks without an alignment where it
//! can. (The same change is proposed to the crate: <https://github.com/purpleprotocol/mimalloc_rust/pull/170>.)

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

/// The alignment of every block of at least as many bytes, in bytes: `MI_MAX_ALIGN_SIZE` of mimalloc.
const NATURAL_ALIGNMENT: usize = 16;

/// A global allocator: mimalloc.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

/// Returns true if every block of so many bytes has this alignment.
#[inline]
const fn is_natural(size: usize, alignment: usize) -> bool {
    // Blocks of fewer than 16 bytes are aligned to 8; no block is smaller.
    alignment <= NATURAL_ALIGNMENT && alignment <= size
}

// SAFETY: mimalloc is an allocator: blocks are at least as large as asked for, do not overlap, stay until they are
// freed, and may be freed on any thread; it returns null when it has no memory, and does not unwind. Their alignment is
// that of the request if it is passed on, and else at least the one that `is_natural` compares with. Blocks of both
// kinds may be passed to `mi_free`, `mi_realloc` and `mi_realloc_aligned`.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        // SAFETY: both take any size; `Layout` makes sure that the alignment is a power of two.
        unsafe { if is_natural(size, alignment) { mi_malloc(size) } else { mi_malloc_aligned(size, alignment) } }.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        // SAFETY: as in `alloc`.
        unsafe { if is_natural(size, alignment) { mi_zalloc(size) } else { mi_zalloc_aligned(size, alignment) } }.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller promises that the block came from this allocator and is not used again.
        unsafe { mi_free(block.cast::<c_void>()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (block, alignment) = (block.cast::<c_void>(), layout.align());
        // SAFETY: the caller promises that the block came from this allocator, and that the new size is valid for its
        // alignment. After a failure the old block is untouched, as `GlobalAlloc` demands.
        unsafe {
            if is_natural(size, alignment) {
                mi_realloc(block, size)
            } else {
                mi_realloc_aligned(block, size, alignment)
            }
        }
        .cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of all sizes and alignments that requests have are aligned, also when they are used again, keep their
    /// content as they grow and shrink, and are zeroed where that was asked for.
    #[test]
    fn blocks_are_aligned_and_keep_their_content() {
        let mut blocks = Vec::new();
        for round in 0..3 {
            for alignment in (0..=12).map(|power| 1 << power) {
                for size in (1..200).chain([255, 256, 257, 1000, 1024, 1025, 4096, 5000, 70_000, 3 << 20]) {
                    let layout = Layout::from_size_align(size, alignment).unwrap();
                    // SAFETY: the size is not zero; blocks are used inside their bounds and freed once.
                    unsafe {
                        let block = Allocator.alloc_zeroed(layout);
                        assert!(!block.is_null() && block.addr().is_multiple_of(alignment), "{layout:?}");
                        assert!((0..size).all(|at| *block.add(at) == 0), "{layout:?}");
                        block.write_bytes(7, size);
                        let grown = Allocator.realloc(block, layout, size + 9);
                        assert!(grown.addr().is_multiple_of(alignment), "{layout:?}");
                        assert!((0..size).all(|at| *grown.add(at) == 7), "{layout:?}");
                        let smaller = size.div_ceil(2);
                        let grown_layout = Layout::from_size_align(size + 9, alignment).unwrap();
                        let shrunk = Allocator.realloc(grown, grown_layout, smaller);
                        assert!(shrunk.addr().is_multiple_of(alignment), "{layout:?}");
                        assert!((0..smaller).all(|at| *shrunk.add(at) == 7), "{layout:?}");
                        let plain = Allocator.alloc(layout);
                        assert!(plain.addr().is_multiple_of(alignment), "{layout:?}");
                        blocks.push((plain, layout));
                        blocks.push((shrunk, Layout::from_size_align(smaller, alignment).unwrap()));
                    }
                }
            }
            // Every other block is freed, so that the next round fills gaps.
            let mut at = 0;
            blocks.retain(|&(block, layout)| {
                at += 1;
                let is_kept = at % 2 == round % 2;
                if !is_kept {
                    // SAFETY: it was allocated above with this layout, and leaves the list.
                    unsafe { Allocator.dealloc(block, layout) };
                }
                is_kept
            });
        }
        for (block, layout) in blocks {
            // SAFETY: as above.
            unsafe { Allocator.dealloc(block, layout) };
        }
    }
}
