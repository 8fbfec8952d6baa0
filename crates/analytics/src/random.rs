//! Random numbers that are a function of a seed and of what they are for: a vertex, a walk, a step. So they do not depend on
//! which thread draws them, nor when.
//!
//! Each number that is named is mixed into 64 bits by the finalizer of SplitMix64 (Steele, Lea and Flood, *Fast Splittable Pseudorandom
//! Number Generators*, 2014).

/// The odd number next to 2⁶⁴ divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A random number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(0).of(seed)
    }

    /// Another one for each number.
    #[inline]
    pub(crate) fn of(self, number: u64) -> Self {
        let mut mixed = self.0.wrapping_add(number.wrapping_add(1).wrapping_mul(STEP));
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random(mixed ^ mixed >> 31)
    }

    /// A number below a limit, which is not 0; all are equally likely up to 2⁻⁶⁴ of the limit.
    #[inline]
    pub(crate) fn below(self, limit: u64) -> u64 {
        ((u128::from(self.0) * u128::from(limit)) >> 64) as u64
    }

    /// A number from 0 to 1, without 1.
    #[inline]
    pub(crate) fn unit(self) -> f64 {
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A random number for each number of a seed; different for different numbers.
#[inline]
pub(crate) fn mixed(seed: u64, number: u64) -> u64 {
    Random::new(seed).of(number).0
}

/// Some of all positions with a vertex, each at most once, ascending. All if there are no more.
pub(crate) fn sample(mut positions: Vec<u32>, count: usize, seed: u64) -> Vec<u32> {
    let random = Random::new(seed);
    let all = positions.len();
    if count >= all {
        return positions;
    }
    for chosen in 0..count {
        let other = chosen + random.of(chosen as u64).below((all - chosen) as u64) as usize;
        positions.swap(chosen, other);
    }
    positions.truncate(count);
    positions.sort_unstable();
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly() {
        let random = Random::new(7);
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|number| counts[random.of(number).of(3).below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        let sum: f64 = (0..100_000).map(|number| random.of(number).unit()).sum();
        assert!((49_500.0..50_500.0).contains(&sum), "{sum}");
    }

    #[test]
    fn samples_have_each_position_once() {
        let mut chosen = [0_u32; 50];
        for seed in 0..2_000 {
            let found = sample((0..50).collect(), 10, seed);
            assert!(found.len() == 10 && found.is_sorted_by(|one, other| one < other), "{found:?}");
            found.iter().for_each(|at| chosen[*at as usize] += 1);
        }
        assert!(chosen.iter().all(|count| (320..480).contains(count)), "{chosen:?}");
        assert_eq!(sample(vec![3, 9], 2, 1), [3, 9]);
    }
}
