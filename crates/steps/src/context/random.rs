//! Random numbers of one run: for `sample()`, `coin()` and shuffling orders.
//!
//! A run with a seed (`SeedStrategy`) must draw what TinkerPop draws: a `coin()` falls, and a shuffle ends, as it does
//! there. TinkerPop uses `java.util.Random`, so its generator is implemented here: the linear congruential generator of
//! 48 bits that POSIX's `drand48` shares. No crate that the workspace uses has it. A run without a seed uses `SmallRng`
//! of the crate `rand`, seeded by the clock.
//!
//! - **STEPS-1.** A run with a seed draws the same numbers every time, provided that its operators meet the same rows
//!   in the same order. So each operator has a generator of its own, which is seeded anew in every run.

use mangrove_flow::QueryControl;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::context::execution::ExecutionContext;

/// A generator of one operator. It is seeded at its first use in a run.
#[derive(Debug, Default)]
pub(crate) struct Random(Option<RandomGenerator>);

#[derive(Debug)]
enum RandomGenerator {
    Fast(SmallRng),
    /// `java.util.Random`: 48 bits of state.
    Congruential(u64),
}

/// The factor of the 48-bit generator. Java scrambles seeds with it, too.
const FACTOR: u64 = 0x5_DEEC_E66D;
const MASK: u64 = (1 << 48) - 1;

impl Random {
    /// A generator with a fixed seed.
    pub fn seeded(seed: u64) -> Self {
        Random(Some(RandomGenerator::Congruential((seed ^ FACTOR) & MASK)))
    }

    /// Ends a run: the next one seeds the generator anew.
    pub fn recycle(&mut self) {
        self.0 = None;
    }

    /// Seeds the generator unless this run has done so already.
    pub fn begin(&mut self, context: &ExecutionContext, control: &QueryControl) {
        // STEPS-1: the seed depends on nothing but the strategy.
        self.0.get_or_insert_with(|| match context.requirements.seed {
            Some(seed) => RandomGenerator::Congruential((seed as u64 ^ FACTOR) & MASK),
            None => RandomGenerator::Fast(SmallRng::seed_from_u64(control.clock().now_nanos())),
        });
    }

    /// Returns true if the run has a seed, so that its draws must be those of TinkerPop.
    pub fn is_seeded(&self) -> bool {
        matches!(self.0, Some(RandomGenerator::Congruential(_)))
    }

    fn generator(&mut self) -> &mut RandomGenerator {
        self.0.get_or_insert_with(|| RandomGenerator::Fast(SmallRng::seed_from_u64(0)))
    }

    /// Draws a number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        match self.generator() {
            RandomGenerator::Fast(generator) => generator.random(),
            RandomGenerator::Congruential(state) => {
                let bits = (congruential(state, 26) << 27) + congruential(state, 27);
                bits as f64 / (1_u64 << 53) as f64
            }
        }
    }

    /// Draws an index in `[0, below)`; `below` is not 0.
    pub fn index(&mut self, below: usize) -> usize {
        let state = match self.generator() {
            RandomGenerator::Fast(generator) => return generator.random_range(0..below),
            RandomGenerator::Congruential(state) => state,
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

    /// Shuffles items as `Collections.shuffle` of Java does.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.index(at + 1));
        }
    }
}

/// Draws the next `bits` bits, at most 32.
fn congruential(state: &mut u64, bits: u32) -> u64 {
    *state = state.wrapping_mul(FACTOR).wrapping_add(0xB) & MASK;
    *state >> (48 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_what_java_draws() {
        // The first result of `new java.util.Random(42).nextDouble()`.
        let mut random = Random(Some(RandomGenerator::Congruential((42 ^ FACTOR) & MASK)));
        assert_eq!(random.unit(), 0.727_563_680_032_868_1);
        assert_eq!(random.unit(), 0.683_223_471_759_845_4);
        // And `nextInt(10)` five times, then `nextInt(16)`.
        let mut random = Random(Some(RandomGenerator::Congruential((42 ^ FACTOR) & MASK)));
        assert_eq!([0; 5].map(|_| random.index(10)), [0, 3, 8, 4, 0]);
        assert_eq!([0; 5].map(|_| random.index(16)), [15, 4, 11, 10, 1]);
    }

    #[test]
    fn indexes_are_below_their_bound_and_reach_it() {
        let fast = RandomGenerator::Fast(SmallRng::seed_from_u64(7));
        for mut random in [Random(Some(fast)), Random(Some(RandomGenerator::Congruential(7)))] {
            for below in [1, 2, 3, 8, 10] {
                let mut met = vec![0_u32; below];
                (0..1000).for_each(|_| met[random.index(below)] += 1);
                assert!(met.iter().all(|times| *times > 1000 / (2 * below as u32)), "{below}: {met:?}");
            }
        }
    }
}
