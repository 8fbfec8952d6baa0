//! A list of the numbers that an allocator has handed out. It catches a number that is handed out or taken back twice.
//!
//! Debug builds keep one bit per number. Release builds keep nothing, and every call is empty. The memory is not
//! reported to the allocator's owner, since no release build has it.

use std::ops::Range;

/// The numbers that are handed out, in debug builds.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// One bit per number, set while the number is handed out.
    #[cfg(debug_assertions)]
    words: Vec<u64>,
}

impl Ledger {
    /// Notes numbers that are handed out. In debug builds it panics if one of them is handed out already.
    #[inline]
    pub(crate) fn hand_out(&mut self, numbers: Range<u64>) {
        #[cfg(debug_assertions)]
        for number in numbers {
            let (word, bit) = bit_of(number);
            if self.words.len() <= word {
                self.words.resize(word + 1, 0);
            }
            assert!(self.words[word] & bit == 0, "number {number} is handed out twice");
            self.words[word] |= bit;
        }
        #[cfg(not(debug_assertions))]
        let _ = numbers;
    }

    /// Notes numbers that are taken back. In debug builds it panics if one of them is not handed out.
    #[inline]
    pub(crate) fn take_back(&mut self, numbers: Range<u64>) {
        #[cfg(debug_assertions)]
        for number in numbers {
            let (word, bit) = bit_of(number);
            let is_out = self.words.get(word).is_some_and(|word| word & bit != 0);
            assert!(is_out, "number {number} is taken back without having been handed out");
            self.words[word] &= !bit;
        }
        #[cfg(not(debug_assertions))]
        let _ = numbers;
    }
}

#[cfg(debug_assertions)]
fn bit_of(number: u64) -> (usize, u64) {
    ((number / 64) as usize, 1 << (number % 64))
}

#[cfg(all(test, debug_assertions, not(any(feature = "model", feature = "loom"))))]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_out_and_come_back() {
        let mut ledger = Ledger::default();
        for _ in 0..2 {
            ledger.hand_out(60..70);
            ledger.hand_out(70..71);
            ledger.take_back(65..71);
            ledger.take_back(60..65);
        }
    }

    #[test]
    #[should_panic(expected = "number 7 is handed out twice")]
    fn a_number_goes_out_once() {
        let mut ledger = Ledger::default();
        ledger.hand_out(4..8);
        ledger.hand_out(7..9);
    }

    #[test]
    #[should_panic(expected = "number 4 is taken back")]
    fn a_number_comes_back_once() {
        let mut ledger = Ledger::default();
        ledger.hand_out(4..8);
        ledger.take_back(4..8);
        ledger.take_back(4..5);
    }
}
