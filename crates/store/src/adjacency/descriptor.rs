//! The descriptor word of a list, as it is drawn in the header of `adjacency`: packing and unpacking its parts.

use std::hint::select_unpredictable;
use std::ops::Range;

use crate::sizes::LENGTH_MAX;

pub(crate) const HEADER: u64 = 1 << 63;
pub(super) const DIRTY: u64 = 1 << 62;
pub(super) const COMPACTING: u64 = 1 << 61;
/// The flags of a descriptor; the other bits say where the list lies.
pub(super) const FLAGS: u64 = DIRTY | COMPACTING;
/// In a descriptor that a compaction has replaced and remembers: the header has no memory to be given up but its own.
pub(super) const BARE: u64 = 1 << 48;
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

/// Words that are followed together.
const TOGETHER: usize = 8;

/// The descriptor of the empty run that would come next in the block of a clean packed run.
#[inline]
fn after(word: u64) -> u64 {
    (word & !LENGTH_MASK) + ((word & LENGTH_MASK) << LENGTH_BITS)
}

/// For descriptors that begin with a clean packed run: where that run starts, and how many lists from there on follow
/// one another in its block. Sets their ends; a list without edges ends where the one before it does.
#[inline]
pub(crate) fn follow_runs(words: &[u64], ends: &mut [u32]) -> (u32, usize) {
    let Some(first) = words.first() else { return (0, 0) };
    let (mut next, mut count) = (first & !LENGTH_MASK, 0);
    let start = (next >> LENGTH_BITS) as u32;
    let (mut words, mut ends) = (words, ends);
    while let (Some(some), Some(their_ends)) = (words.first_chunk(), ends.first_chunk_mut()) {
        let all_follow = follow_together(some, their_ends, &mut next);
        let followed = if all_follow { TOGETHER } else { follow_each(some, their_ends, &mut next) };
        count += followed;
        if followed < TOGETHER {
            return (start, count);
        }
        (words, ends) = (&words[TOGETHER..], &mut ends[TOGETHER..]);
    }
    count += follow_each(words, ends, &mut next);
    (start, count)
}

/// If all of these lists follow one another from `next` on, sets their ends, and what is next after them. Looks for no place
/// where one does not, so that no word waits for a comparison with the one before.
#[inline]
fn follow_together(words: &[u64; TOGETHER], ends: &mut [u32; TOGETHER], next: &mut u64) -> bool {
    let (mut reached, mut differences) = (*next, 0);
    for at in 0..TOGETHER {
        let (word, is_empty) = (words[at], words[at] == 0);
        // No bits for an empty list.
        let counted = u64::from(is_empty).wrapping_sub(1);
        differences |= ((word & !LENGTH_MASK) ^ reached) & counted;
        reached = select_unpredictable(is_empty, reached, after(word));
        ends[at] = (reached >> LENGTH_BITS) as u32;
    }
    if differences == 0 {
        *next = reached;
    }
    differences == 0
}

/// As [`follow_together`], until a list begins elsewhere. Returns how many come before that one.
#[inline]
fn follow_each(words: &[u64], ends: &mut [u32], next: &mut u64) -> usize {
    for (at, &word) in words.iter().enumerate() {
        if word != 0 {
            if word & !LENGTH_MASK != *next {
                return at;
            }
            *next = after(word);
        }
        ends[at] = (*next >> LENGTH_BITS) as u32;
    }
    words.len()
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

    /// Words that are followed together, with each other word at each place.
    #[test]
    fn runs_are_followed_to_the_first_word_that_does_not_fit() {
        const WORDS: usize = 2 * TOGETHER + 3;
        let lengths: [u64; WORDS] = std::array::from_fn(|at| 1 + at as u64 * 7 % 5);
        let begins: Vec<u64> = lengths.iter().scan(9, |sum, len| Some(std::mem::replace(sum, *sum + len))).collect();
        let words: Vec<u64> = begins.iter().zip(lengths).map(|(begin, len)| packed_word(3, *begin, len)).collect();
        let follow = |words: &[u64]| {
            let mut ends = [0; WORDS];
            let (start, count) = follow_runs(words, &mut ends);
            assert_eq!(start, 9);
            ends[..count].to_vec()
        };
        let ends: Vec<u32> = begins.iter().zip(lengths).map(|(begin, len)| (begin + len) as u32).collect();
        assert_eq!(follow(&words), ends);
        for at in 1..WORDS {
            for flags in [DIRTY, HEADER, COMPACTING, 1 << LAYOUT_SHIFT, 1 << LENGTH_BITS] {
                let mut words = words.clone();
                words[at] ^= flags;
                assert_eq!(follow(&words), ends[..at], "{flags:x} at {at}");
            }
            // An empty list, after which the others begin earlier.
            let mut words = words.clone();
            words[at] = 0;
            words[at + 1..].iter_mut().for_each(|word| *word -= lengths[at] << LENGTH_BITS);
            let mut expected = ends.clone();
            expected[at..].iter_mut().for_each(|end| *end -= lengths[at] as u32);
            assert_eq!(follow(&words), expected);
        }
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
