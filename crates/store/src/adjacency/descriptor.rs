//! The descriptor word of a list, as it is drawn in the header of `adjacency`: packing and unpacking its parts.

use std::ops::Range;

use crate::sizes::LENGTH_MAX;

pub(crate) const HEADER: u64 = 1 << 63;
pub(super) const DIRTY: u64 = 1 << 62;
pub(super) const COMPACTING: u64 = 1 << 61;
/// The flags of a descriptor; the other bits say where the list lies.
pub(super) const FLAGS: u64 = DIRTY | COMPACTING;
pub(super) const HEADER_MASK: u64 = (1 << 48) - 1;
const LENGTH_BITS: u32 = 16;
const LENGTH_MASK: u64 = (1 << LENGTH_BITS) - 1;
const _: () = assert!(LENGTH_MAX == (1 << (LENGTH_BITS - 1)) - 1, "the length of a run fills its part of a descriptor");
const LAYOUT_SHIFT: u32 = 48;
/// Layout versions have 13 bits.
pub(crate) const LAYOUT_VERSIONS: u32 = 1 << 13;

/// Returns true if the word is that of a clean packed run, whose edges need no look (STORE-13), or of an empty list.
#[inline]
pub(crate) fn is_clean_run(descriptor: u64) -> bool {
    descriptor & (HEADER | DIRTY) == 0
}

/// The number of edges of a list, if the word is that of a clean packed run or of an empty list.
#[inline]
pub(crate) fn clean_run_len(descriptor: u64) -> Option<usize> {
    is_clean_run(descriptor).then_some((descriptor & LENGTH_MASK) as usize)
}

/// Returns true if two descriptors name the same list. They may differ in their flags.
#[inline]
pub(super) fn same_list(one: u64, other: u64) -> bool {
    one & !FLAGS == other & !FLAGS
}

/// Returns true if two descriptors name the same header.
pub(super) fn same_header(one: u64, other: u64) -> bool {
    let mask = HEADER | HEADER_MASK;
    one & mask == other & mask
}

#[inline]
pub(super) fn packed_word(layout_version: u32, offset: u64, len: u64) -> u64 {
    debug_assert!(len <= u64::from(LENGTH_MAX), "a run of {len} edges has a list header");
    (u64::from(layout_version) << LAYOUT_SHIFT) | (offset << LENGTH_BITS) | len
}

/// The layout version of a packed descriptor.
#[inline]
pub(super) fn packed_layout(descriptor: u64) -> u32 {
    (descriptor >> LAYOUT_SHIFT) as u32 & (LAYOUT_VERSIONS - 1)
}

#[inline]
pub(super) fn packed_run(descriptor: u64) -> Range<usize> {
    let offset = (descriptor >> LENGTH_BITS) as u32 as usize;
    offset..offset + (descriptor & LENGTH_MASK) as usize
}

/// For descriptors that begin with a clean packed run: where that run starts, and how many lists from there on follow
/// one another in its block. Sets their ends; a list without edges ends where the one before it does.
#[inline]
pub(crate) fn follow_runs(words: &[u64], ends: &mut [u32]) -> (u32, usize) {
    let Some(first) = words.first() else { return (0, 0) };
    // The descriptor of the empty run that would come next: its difference to the word is the length.
    let mut next = first & !LENGTH_MASK;
    let start = (next >> LENGTH_BITS) as u32;
    let mut count = 0;
    for (&word, end) in words.iter().zip(ends) {
        let len = if word == 0 { 0 } else { word.wrapping_sub(next) };
        if len > u64::from(LENGTH_MAX) {
            break;
        }
        next += len << LENGTH_BITS;
        *end = (next >> LENGTH_BITS) as u32;
        count += 1;
    }
    (start, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_followed_to_where_another_begins() {
        let word = |version, offset, len: u32| packed_word(version, offset, len.into());
        let follow = |words: &[u64]| {
            let mut ends = [0; 8];
            let (start, count) = follow_runs(words, &mut ends);
            (start, ends[..count].to_vec())
        };
        assert_eq!(follow(&[word(3, 5, 2), 0, word(3, 7, LENGTH_MAX), 0]), (5, vec![7, 7, 32_774, 32_774]));
        assert_eq!(follow(&[word(3, 5, 2), word(3, 8, 1)]), (5, vec![7]));
        assert_eq!(follow(&[word(3, 5, 2), word(4, 7, 1)]), (5, vec![7]));
        assert_eq!(follow(&[word(3, 5, 2), HEADER | 7, word(3, 7, 1)]), (5, vec![7]));
        assert_eq!(follow(&[word(3, 5, 2), DIRTY | word(3, 7, 1)]), (5, vec![7]));
        assert_eq!(follow(&[word(3, 5, 2), DIRTY | COMPACTING | word(3, 7, 1)]), (5, vec![7]));
        assert_eq!(follow(&[word(0, u64::from(u32::MAX) - 3, 3), 0]), (u32::MAX - 3, vec![u32::MAX, u32::MAX]));
    }

    #[test]
    fn flags_stand_beside_the_run() {
        let word = packed_word(LAYOUT_VERSIONS - 1, u64::from(u32::MAX) - 9, LENGTH_MAX.into());
        for flags in [0, DIRTY, FLAGS] {
            let flagged = word | flags;
            assert_eq!((packed_layout(flagged), packed_run(flagged)), (LAYOUT_VERSIONS - 1, packed_run(word)));
            assert_eq!((is_clean_run(flagged), same_list(flagged, word)), (flags == 0, true));
        }
        assert!(!is_clean_run(HEADER | 1) && !same_list(HEADER | 1, HEADER | 2) && !same_list(word, HEADER | word));
    }
}
