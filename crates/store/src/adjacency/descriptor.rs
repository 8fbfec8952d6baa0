//! The descriptor word of a list: see the drawing in the parent module.

use std::ops::Range;

pub(crate) const HEADER: u64 = 1 << 63;
pub(super) const DIRTY: u64 = 1 << 62;
pub(super) const COMPACTING: u64 = 1 << 61;
pub(super) const HEADER_MASK: u64 = (1 << 48) - 1;
const LENGTH_BITS: u32 = 16;
/// The longest run that a descriptor word describes.
pub(crate) const LENGTH_MAX: u64 = (1 << (LENGTH_BITS - 1)) - 1;
const BLOCK_SHIFT: u32 = 48;
/// Block numbers have 14 bits.
pub(super) const BLOCK_NUMBERS: u32 = 1 << 14;

pub(super) fn same_header(one: u64, other: u64) -> bool {
    let mask = HEADER | HEADER_MASK;
    one & mask == other & mask
}

#[inline]
pub(super) fn packed_word(block: u32, offset: u64, len: u64) -> u64 {
    (u64::from(block) << BLOCK_SHIFT) | (offset << LENGTH_BITS) | len
}

/// The block of a packed descriptor.
#[inline]
pub(super) fn packed_block(descriptor: u64) -> u32 {
    (descriptor >> BLOCK_SHIFT) as u32
}

#[inline]
pub(super) fn packed_run(descriptor: u64) -> Range<usize> {
    let offset = (descriptor >> LENGTH_BITS) as u32 as usize;
    offset..offset + (descriptor & ((1 << LENGTH_BITS) - 1)) as usize
}
