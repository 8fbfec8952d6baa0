//! Random numbers, each a function of its purpose.
//!
//! A [`RandomStream`] is SplitMix64 (Steele, Lea, Flood 2014), started at a point that the seed, a *domain* (the
//! purpose: an edge, a name) and a number (of a vertex, of a chunk) determine. Threads share no stream, so any thread
//! may draw any stream at any time and the graph is the same.
//!
//! - **GENERATE-1.** Everything here gives the same bits on every machine and in every version: digests of generated
//!   graphs are compared in tests and printed in documents. Changing a constant or the order of two draws changes every
//!   graph.
//!
//! This is why the crate `rand` is not used. Its `StdRng` and `SmallRng` may change with a version or a platform.
//! ChaCha (`rand_chacha`) has streams that are functions of a number, but sets up 64 words of state for each, and a
//! graph of a million edges opens a million streams that draw a few numbers each. The standard library's `ln` and `exp`
//! differ between platforms in the last bit; [`ln`] and [`exp`] here use only operations that IEEE 754 defines to the
//! bit.
//!
//! Benchmarks (`bench`) and the tests that kill the server draw from here, too.

/// A well-mixed bijection of 64 bits (the finalizer of SplitMix64).
#[inline]
pub fn mix(bits: u64) -> u64 {
    let mut z = bits.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Maps 64 random bits to a number below `bound`. Some numbers are more likely than others by at most `bound / 2^64`.
#[inline]
pub fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// The key of a domain: of everything that is drawn for one purpose.
#[inline]
pub fn domain(seed: u64, name: u64) -> u64 {
    mix(seed ^ mix(name))
}

/// A sequence of random numbers that belongs to one caller.
#[derive(Clone, Debug)]
pub struct RandomStream(u64);

impl RandomStream {
    /// The sequence that belongs to a number (of a vertex, of a chunk) in a [domain](domain()).
    #[inline]
    pub fn new(domain: u64, number: u64) -> Self {
        RandomStream(mix(domain ^ mix(number)))
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// The next number below `bound`; 0 where the bound is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        below(self.bits(), bound)
    }

    /// The sequence that belongs to a seed alone, for callers that draw everything from one sequence.
    pub fn from_seed(seed: u64) -> Self {
        RandomStream(mix(seed))
    }

    /// Puts the items in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.index(at + 1));
        }
    }

    /// The next position in a slice of this length.
    #[inline]
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// The next item of a slice that is not empty.
    #[inline]
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, items: &'a [&'a T]) -> &'a T {
        items[self.index(items.len())]
    }

    /// The next number in `[0, 1)`.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns true with this probability.
    #[inline]
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A number from `low` to `high`, both included.
    #[inline]
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        debug_assert!(low <= high, "{low}..={high}");
        low + self.below((high - low) as u64 + 1) as i64
    }

    /// A number of the geometric distribution from 0 up with this mean.
    pub(crate) fn geometric(&mut self, mean: f64) -> u64 {
        if mean <= 0.0 {
            return 0;
        }
        let stay = mean / (1.0 + mean);
        // `1 - unit` is never 0, so the logarithm is finite.
        (ln(1.0 - self.unit()) / ln(stay)) as u64
    }

    /// An exponentially distributed number of this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -ln(1.0 - self.unit()) * mean
    }

    /// A number whose logarithm is about normally distributed, with this mean and deviation of the logarithm.
    pub(crate) fn lognormal(&mut self, mean: f64, deviation: f64) -> f64 {
        // The sum of twelve even numbers is near enough to the normal distribution, and never far out.
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        mean * exp(deviation * normal - deviation * deviation / 2.0)
    }
}

/// The natural logarithm of a positive number. GENERATE-1: the one of the standard library differs in the last bit from
/// machine to machine; this one uses only operations that IEEE 754 defines to the bit. The relative error is about
/// 1e-14.
pub(crate) fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    debug_assert!(x.is_normal() && x > 0.0, "{x}");
    let exponent = (x.to_bits() >> 52) as f64 - 1023.0;
    let mantissa = f64::from_bits(x.to_bits() & MANTISSA | 1023 << 52);
    // ln m = 2 artanh((m - 1) / (m + 1)), as a series that converges fast since the argument is at most 1/3.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..15).rev().fold(0.0, |sum, k| sum * t * t + 1.0 / f64::from(2 * k + 1));
    exponent * std::f64::consts::LN_2 + 2.0 * t * series
}

/// e to the power of a number near 0, computed under the same rule as [`ln`].
pub(crate) fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() < 500.0, "{x}");
    // e^x = (e^(x/256))^256: the series converges fast near 0, and eight squarings undo the division.
    let small = x / 256.0;
    let series = (1..=12).rev().fold(1.0, |sum, k| 1.0 + sum * small / f64::from(k));
    (0..8).fold(series, |power, _| power * power)
}

/// Draws positions with given weights in constant time (Vose's alias method).
#[derive(Clone, Debug)]
pub(crate) struct Weighted {
    /// For each position the part of its column that it keeps, in units of 2⁻³², and the position that has the other
    /// part.
    columns: Vec<(u64, u32)>,
}

impl Weighted {
    /// Positions with these weights. At least one is positive and none is negative.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        assert!(total > 0.0, "something must be possible");
        let count = weights.len();
        let mut scaled: Vec<f64> = weights.iter().map(|weight| weight * count as f64 / total).collect();
        let mut columns: Vec<(u64, u32)> = (0..count as u32).map(|own| (WHOLE, own)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..count).partition(|&i| scaled[i] < 1.0);
        while let (Some(few), Some(&many)) = (small.pop(), large.last()) {
            columns[few] = ((scaled[few] * WHOLE as f64) as u64, many as u32);
            scaled[many] -= 1.0 - scaled[few];
            if scaled[many] < 1.0 {
                large.pop();
                small.push(many);
            }
        }
        Weighted { columns }
    }

    /// Positions with the weights of Zipf's law: the n-th has `1 / n^exponent`.
    pub(crate) fn zipf(count: usize, exponent: f64) -> Self {
        Self::new(&(1..=count).map(|rank| exp(-exponent * ln(rank as f64))).collect::<Vec<_>>())
    }

    /// The position for 64 random bits.
    #[inline]
    pub(crate) fn at(&self, bits: u64) -> usize {
        // The high half chooses the column, the low half one of its two parts.
        let column = below(bits & !(WHOLE - 1), self.columns.len() as u64) as usize;
        let (own, other) = self.columns[column];
        if (bits & (WHOLE - 1)) < own { column } else { other as usize }
    }

    /// The next position.
    #[inline]
    pub(crate) fn draw(&self, random: &mut RandomStream) -> usize {
        self.at(random.bits())
    }
}

const WHOLE: u64 = 1 << 32;

/// A bijection of the numbers of `width` bits that looks random. It is computed, not stored.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    mask: u64,
    shift: u32,
    factors: [u64; 4],
    offsets: [u64; 4],
}

impl Permutation {
    /// The bijection of a key.
    pub(crate) fn new(key: u64, width: u32) -> Self {
        let mut random = RandomStream::new(key, 0);
        let factors = std::array::from_fn(|_| random.bits() | 1);
        let offsets = std::array::from_fn(|_| random.bits());
        Permutation { mask: (1 << width) - 1, shift: width.div_ceil(2).max(1), factors, offsets }
    }

    /// The image of a number. Adding, multiplying by an odd number (both modulo 2^width) and folding the upper half
    /// into the lower one can each be undone.
    #[inline]
    pub(crate) fn apply(&self, number: u64) -> u64 {
        let mut x = number;
        for (factor, offset) in self.factors.iter().zip(&self.offsets) {
            x = x.wrapping_add(*offset).wrapping_mul(*factor) & self.mask;
            x ^= x >> self.shift;
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffling_keeps_the_items_and_moves_them() {
        let mut items: Vec<u32> = (0..1000).collect();
        RandomStream::from_seed(1).shuffle(&mut items);
        assert_ne!(items[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn weights_are_kept() {
        let weighted = Weighted::new(&[1.0, 0.0, 3.0, 6.0]);
        let (mut counts, mut random) = ([0; 4], RandomStream::new(1, 2));
        (0..100_000).for_each(|_| counts[weighted.draw(&mut random)] += 1);
        for (count, expected) in counts.into_iter().zip([10_000_i32, 0, 30_000, 60_000]) {
            assert!((count - expected).abs() < 800, "{counts:?}");
        }
        assert_eq!(counts[1], 0);
    }

    #[test]
    fn permutations_are_bijections_that_move() {
        for width in [1, 2, 3, 7, 12] {
            let permutation = Permutation::new(7, width);
            let mut images: Vec<u64> = (0..1 << width).map(|number| permutation.apply(number)).collect();
            let fixed = images.iter().enumerate().filter(|(number, image)| *number as u64 == **image).count();
            assert!(width < 7 || fixed < 10, "{fixed} stay at width {width}");
            images.sort_unstable();
            assert_eq!(images, (0..1 << width).collect::<Vec<_>>());
        }
    }

    #[test]
    fn geometric_numbers_have_their_mean() {
        let mut random = RandomStream::new(3, 4);
        for mean in [0.2, 3.0, 50.0] {
            let sum: u64 = (0..50_000).map(|_| random.geometric(mean)).sum();
            let found = sum as f64 / 50_000.0;
            assert!((found / mean - 1.0).abs() < 0.05, "{found} for {mean}");
        }
        assert_eq!(random.geometric(0.0), 0);
    }

    #[test]
    fn logarithms_and_powers_are_near_those_of_the_standard_library() {
        for x in [1e-12_f64, 0.1, 0.5, 0.999, 1.0, 1.5, 2.0, 17.0, 1e9] {
            assert!((ln(x) - x.ln()).abs() < 1e-13 * (1.0 + x.ln().abs()), "{x}: {} {}", ln(x), x.ln());
            let y = x.ln();
            assert!((exp(y) / y.exp() - 1.0).abs() < 1e-11, "{y}: {} {}", exp(y), y.exp());
        }
    }

    #[test]
    fn streams_of_neighbors_have_nothing_in_common() {
        let draw = |number| RandomStream::new(domain(1, 2), number).bits();
        let different = (0..1000).map(|number| (draw(number) ^ draw(number + 1)).count_ones()).sum::<u32>();
        assert!((30_000..34_000).contains(&different), "half of the bits differ: {different}");
    }
}
