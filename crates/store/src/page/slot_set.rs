//! A set of slots of a page, such as its free slots or the slots that have a value: one bit a slot.
//!
//! A set is a plain value of 128 bytes. Its slots are below [`PAGE_SLOTS`].

use mangrove_graph::PAGE_SLOTS;

const WORDS: usize = PAGE_SLOTS as usize / 64;

/// Some of the slots of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlotSet([u64; WORDS]);

impl SlotSet {
    /// How many 64-bit words a set has.
    pub const WORDS: usize = WORDS;

    /// The set with these words; slot 0 is the lowest bit of the first.
    pub fn from_words(words: [u64; WORDS]) -> Self {
        SlotSet(words)
    }

    /// The words of the set.
    pub fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// Returns true if a slot is in the set.
    #[inline]
    pub fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word & (1 << (at % 64)) != 0)
    }

    /// Adds a slot, below [`PAGE_SLOTS`].
    #[inline]
    pub fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// Takes a slot out, below [`PAGE_SLOTS`].
    #[inline]
    pub fn remove(&mut self, at: usize) {
        self.0[at / 64] &= !(1 << (at % 64));
    }

    /// How many slots are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns true if the set has no slot.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Returns true if all slots of the set are in the other set.
    pub fn is_subset(&self, other: &SlotSet) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// The slots, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            let mut left = bits;
            std::iter::from_fn(move || {
                let at = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(word * 64 + at)
            })
        })
    }
}

impl FromIterator<usize> for SlotSet {
    fn from_iter<I: IntoIterator<Item = usize>>(slots: I) -> Self {
        let mut set = SlotSet::default();
        slots.into_iter().for_each(|at| set.insert(at));
        set
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_slots_is_what_was_put_in() {
        let slots = [0, 1, 63, 64, 500, 1_023];
        let mut set: SlotSet = slots.into_iter().collect();
        assert!(set.iter().eq(slots));
        assert_eq!((set.len(), set.contains(63), set.contains(62), set.contains(1 << 20)), (6, true, false, false));
        set.remove(63);
        assert!(!set.contains(63) && set.is_subset(&slots.into_iter().collect()));
        assert!(!slots.into_iter().collect::<SlotSet>().is_subset(&set));
        assert_eq!(SlotSet::from_words(*set.words()), set);
    }
}
