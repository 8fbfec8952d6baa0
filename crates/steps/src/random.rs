//! Chance: where `sample()`, `coin()` and their kin take it from.
//!
//! A run with a seed (`SeedStrategy`) draws the same every time, as long as its operators meet the same rows in the same
//! order; without one it begins at the clock. What a seed gives is documented: each operator draws from the linear
//! congruential generator of 48 bits that POSIX's `drand48` and Java's `java.util.Random` share, scrambled and read as
//! the latter does, so that a `coin()` falls as it does in TinkerPop. Without a seed the generator is SplitMix64
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

    /// A number of at least 0 and less than 1.
    pub fn unit(&mut self) -> f64 {
        let bits = match self.0.get_or_insert(State::SplitMix(0)) {
            State::SplitMix(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = *state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (z ^ (z >> 31)) >> 11
            }
            State::Congruential(state) => {
                let mut draw = |bits: u32| {
                    *state = state.wrapping_mul(FACTOR).wrapping_add(0xB) & MASK;
                    *state >> (48 - bits)
                };
                (draw(26) << 27) + draw(27)
            }
        };
        bits as f64 / (1_u64 << 53) as f64
    }
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
    }
}
