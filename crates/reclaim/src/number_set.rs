//! A set of numbers that are taken in ascending order, and from the lowest again when there is none above.
//!
//! An arena takes its free rows from such sets. So it hands out rows side by side one after another, whatever the order in which they came back.
//! Most of them are on the memory page of the row before, and in its chunk, which saves the processor the way to another. Handed out in the order
//! in which they came back, nearly every row was on a page of its own: to take rows and to write to them was 0.66 µs of a transaction that
//! moves an edge of a large graph, and is 0.42.
//!
//! A number takes a bit. For each word of 64 numbers, another bit says whether it has any, so that a search skips 4,096 numbers a step.

use std::ops::Range;

/// Numbers a word has.
const BITS: usize = u64::BITS as usize;

/// The set. Numbers are expected to be dense: it has a bit for each number up to the largest that was ever in it.
#[derive(Debug, Default)]
pub(crate) struct NumberSet {
    words: Vec<u64>,
    /// A bit for each word: whether it has a number.
    is_any: Vec<u64>,
    len: usize,
    /// The next number is this one or the first above.
    from: usize,
}

impl NumberSet {
    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a number that is not in the set.
    pub(crate) fn insert(&mut self, number: usize) {
        let (word, bit) = (number / BITS, 1 << (number % BITS));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
            self.is_any.resize(word / BITS + 1, 0);
        }
        assert_eq!(self.words[word] & bit, 0, "number {number} is put back twice");
        self.words[word] |= bit;
        self.is_any[word / BITS] |= 1 << (word % BITS);
        self.len += 1;
    }

    /// The number that [`NumberSet::take`] would take.
    pub(crate) fn next(&self) -> Option<usize> {
        if self.len == 0 { None } else { self.first_from(self.from).or_else(|| self.first_from(0)) }
    }

    /// Takes the next number.
    pub(crate) fn take(&mut self) -> Option<usize> {
        let number = self.next()?;
        self.remove(number / BITS, 1 << (number % BITS));
        self.from = number + 1;
        Some(number)
    }

    /// The lowest numbers are taken first from here on.
    pub(crate) fn restart(&mut self) {
        self.from = 0;
    }

    /// Takes out all numbers of a range.
    pub(crate) fn remove_range(&mut self, range: Range<usize>) {
        let last = range.end.min(self.words.len() * BITS);
        let mut at = range.start;
        while at < last {
            let (word, end) = (at / BITS, last.min((at / BITS + 1) * BITS));
            let upper = u64::MAX << (at % BITS);
            let lower = u64::MAX >> (BITS - 1 - (end - 1) % BITS);
            self.remove(word, upper & lower);
            at = end;
        }
    }

    /// Takes out the numbers of a word whose bits are set.
    fn remove(&mut self, word: usize, bits: u64) {
        let removed = self.words[word] & bits;
        self.len -= removed.count_ones() as usize;
        self.words[word] &= !bits;
        if self.words[word] == 0 {
            self.is_any[word / BITS] &= !(1 << (word % BITS));
        }
    }

    /// The first number that is `number` or above.
    fn first_from(&self, number: usize) -> Option<usize> {
        let word = number / BITS;
        let here = self.words.get(word)? & (u64::MAX << (number % BITS));
        if here != 0 {
            return Some(word * BITS + here.trailing_zeros() as usize);
        }
        let next = word + 1;
        let mut mask = u64::MAX << (next % BITS);
        for (at, words) in self.is_any.iter().enumerate().skip(next / BITS) {
            let words = words & mask;
            if words != 0 {
                let word = at * BITS + words.trailing_zeros() as usize;
                return Some(word * BITS + self.words[word].trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(all(test, not(any(feature = "model", feature = "loom"))))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Beside an ordered set, with numbers in words and groups of words that lie far apart.
    #[test]
    fn numbers_are_taken_in_order_and_then_from_the_lowest_again() {
        let (mut set, mut model, mut from) = (NumberSet::default(), BTreeSet::new(), 0);
        let mut random = 7_u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) % n) as usize
        };
        for round in 0..20_000 {
            // Now mostly added, now mostly taken.
            let adds = if round / 2_000 % 2 == 0 { 6 } else { 3 };
            match below(10) {
                9 if round % 50 == 0 => {
                    set.restart();
                    from = 0;
                }
                9 => {
                    let start = below(300);
                    let range = if round % 2 == 0 {
                        64 * start..64 * (start + below(5))
                    } else {
                        64 * start + 16..64 * start + 32
                    };
                    set.remove_range(range.clone());
                    model.retain(|number| !range.contains(number));
                }
                n if n < adds => {
                    let number = [below(20), 64 * below(20) + 63, below(20_000), 4_096 * below(5)][below(4)];
                    if model.insert(number) {
                        set.insert(number);
                    }
                }
                _ => {
                    let next = model.range(from..).next().or_else(|| model.first()).copied();
                    assert_eq!((set.next(), set.take()), (next, next));
                    next.into_iter().for_each(|next| {
                        model.remove(&next);
                        from = next + 1;
                    });
                }
            }
            assert_eq!(set.len(), model.len());
        }
    }

    #[test]
    #[should_panic(expected = "number 5 is put back twice")]
    fn a_number_is_put_back_once() {
        let mut set = NumberSet::default();
        set.insert(5);
        set.insert(5);
    }
}
