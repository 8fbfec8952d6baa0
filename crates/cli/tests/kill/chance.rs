//! Random numbers of a seed, for the kill tests.

use mangrove_generate::random::RandomStream;

/// The sequence of random numbers that one run of the test draws from.
pub struct Chance(RandomStream);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Chance(RandomStream::from_seed(seed))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    /// Returns true once in `n` calls on average.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
