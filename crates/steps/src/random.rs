//! Chance: where `sample()`, `coin()` and their kin take it from.
//!
//! A run with a seed (`SeedStrategy`) draws the same every time, as long as its operators meet the same rows in the same
//! order; without one it begins at the clock. The generator is SplitMix64 (Steele, Lea, Flood 2014).

use mangrove_flow::Output;

use crate::rows::Rows;

/// A generator that is seeded when it is first asked in a run.
#[derive(Debug, Default)]
pub struct Random(Option<u64>);

impl Random {
    /// Forgets where it was: the next run seeds it anew.
    pub fn rest(&mut self) {
        self.0 = None;
    }

    /// Seeds it, unless it was in this run.
    pub fn begin(&mut self, out: &Output<'_, Rows>) {
        let seed = || match out.surroundings().requirements.seed {
            Some(seed) => seed as u64,
            None => out.context().clock().now_nanos(),
        };
        self.0.get_or_insert_with(seed);
    }

    /// A number of at least 0 and less than 1.
    pub fn unit(&mut self) -> f64 {
        let state = self.0.get_or_insert(0);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
