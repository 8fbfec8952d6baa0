//! Chance: where `sample()`, `coin()` and their kin take it from.
//!
//! A run with a seed (`SeedStrategy`) draws the same every time, as long as its operators meet the same rows in the same
//! order; without one it begins at the clock. What a seed gives is documented: each operator draws from the linear
//! congruential generator of 48 bits that POSIX's `drand48` and Java's `java.util.Random` share, scrambled and read as
//! the latter does, so that a `coin()` falls, and a shuffle ends, as it does in TinkerPop. Without a seed the generator is SplitMix64
//! (Steele, Lea, Flood 2014), which is the better one.

use mangrove_flow::Output;

use crate::rows::Rows;

/// A generator that is seeded when it is first asked in a run.
#[derive(Debug, Default)]
pub struct Random(Option<State>);

#[derive(Debug)]
enum State {
    SplitMix(u64),
    Congruential(u64),
}

/// The factor of the 48-bit generator, which Java also scrambles seeds with.
const FACTOR: u64 = 0x5_DEEC_E66D;
const MASK: u64 = (1 << 48) - 1;

impl Random {
    /// Forgets where it was: the next run seeds it anew.
    pub fn rest(&mut self) {
        self.0 = None;
    }

    /// Seeds it, unless it was in this run.
    pub fn begin(&mut self, out: &Output<'_, Rows>) {
        self.0.get_or_insert_with(|| match out.surroundings().requirements.seed {
            Some(seed) => State::Congruential((seed as u64 ^ FACTOR) & MASK),
            None => State::SplitMix(out.context().clock().now_nanos()),
        });
    }

    /// Whether the run has a seed, so that what is drawn should be what TinkerPop draws.
    pub fn is_seeded(&self) -> bool {
        matches!(self.0, Some(State::Congruential(_)))
    }

    /// A number of at least 0 and less than 1.
    pub fn unit(&mut self) -> f64 {
        let bits = match self.0.get_or_insert(State::SplitMix(0)) {
            State::SplitMix(state) => split_mix(state) >> 11,
            State::Congruential(state) => (congruential(state, 26) << 27) + congruential(state, 27),
        };
        bits as f64 / (1_u64 << 53) as f64
    }

    /// A number of at least 0 and less than `below`, which is not 0.
    pub fn index(&mut self, below: usize) -> usize {
        let state = match self.0.get_or_insert(State::SplitMix(0)) {
            State::SplitMix(state) => {
                // The high half of the product: as even as 64 bits allow.
                return ((u128::from(split_mix(state)) * below as u128) >> 64) as usize;
            }
            State::Congruential(state) => state,
        };
        // Java's numbers have 31 bits; a larger collection than they reach would not fit a Java list.
        let below = below as u64;
        if below.is_power_of_two() {
            return ((below * congruential(state, 31)) >> 31) as usize;
        }
        loop {
            let bits = congruential(state, 31);
            let found = bits % below;
            // The last, incomplete run of remainders would favor the small ones.
            if bits - found + (below - 1) < 1 << 31 || below > 1 << 31 {
                return found as usize;
            }
        }
    }

    /// Puts items in an order by chance.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.index(at + 1));
        }
    }
}

/// The next 64 bits.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The next so many bits, at most 32.
fn congruential(state: &mut u64, bits: u32) -> u64 {
    *state = state.wrapping_mul(FACTOR).wrapping_add(0xB) & MASK;
    *state >> (48 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_what_java_draws() {
        // What `new java.util.Random(42).nextDouble()` is known to give first.
        let mut random = Random(Some(State::Congruential((42 ^ FACTOR) & MASK)));
        assert_eq!(random.unit(), 0.727_563_680_032_868_1);
        assert_eq!(random.unit(), 0.683_223_471_759_845_4);
        // And `nextInt(10)` five times, then `nextInt(16)`.
        let mut random = Random(Some(State::Congruential((42 ^ FACTOR) & MASK)));
        assert_eq!([0; 5].map(|_| random.index(10)), [0, 3, 8, 4, 0]);
        assert_eq!([0; 5].map(|_| random.index(16)), [15, 4, 11, 10, 1]);
    }

    #[test]
    fn indexes_are_below_their_bound_and_reach_it() {
        for mut random in [Random(Some(State::SplitMix(7))), Random(Some(State::Congruential(7)))] {
            for below in [1, 2, 3, 8, 10] {
                let mut met = vec![0_u32; below];
                (0..1000).for_each(|_| met[random.index(below)] += 1);
                assert!(met.iter().all(|times| *times > 1000 / (2 * below as u32)), "{below}: {met:?}");
            }
        }
    }
}
