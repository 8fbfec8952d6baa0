//! Histograms of whole numbers: latencies in nanoseconds, sizes of sets.
//!
//! Log-linear: every power of two has 32 buckets of equal width, so the width of a bucket is at most 3.2 % of its
//! values. An entry costs one addition. Histograms of several threads are merged by addition.

/// The number of buckets of one power of two.
const LINEAR: u64 = 32;
const LINEAR_BITS: u32 = LINEAR.trailing_zeros();
const BUCKET_COUNT: usize = (64 - LINEAR_BITS as usize + 1) * LINEAR as usize;

/// A log-linear histogram.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u64]>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: vec![0; BUCKET_COUNT].into(), count: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.buckets[bucket(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Adds the entries of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(mine, others)| *mine += others);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The number of entries.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest entry.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The arithmetic mean; 0 if there are no entries.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The upper end of the bucket that holds the quantile; 0 if there are no entries.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let rank = ((quantile * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper(index).min(self.max);
            }
        }
        self.max
    }

    /// The distribution function: the upper end of each non-empty bucket, and the share of entries up to it.
    pub fn cumulative(&self) -> Vec<(u64, f64)> {
        let mut seen = 0;
        let counted = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        counted
            .map(|(index, count)| {
                seen += count;
                (upper(index).min(self.max), seen as f64 / self.count as f64)
            })
            .collect()
    }

    /// The non-empty powers of two: upper end (inclusive) and number of entries.
    pub fn by_power(&self) -> Vec<(u64, u64)> {
        let mut powers: Vec<(u64, u64)> = Vec::new();
        for (index, &count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let end = upper(index).checked_next_power_of_two().map_or(u64::MAX, |power| power.max(1));
            match powers.last_mut() {
                Some((last, total)) if *last == end => *total += count,
                _ => powers.push((end, count)),
            }
        }
        powers
    }
}

/// A number below [`LINEAR`] has a bucket of its own. Above, the highest bit selects a row, and the five bits below it
/// a bucket.
#[inline]
fn bucket(value: u64) -> usize {
    if value < LINEAR {
        return value as usize;
    }
    let row = 63 - value.leading_zeros() - LINEAR_BITS;
    ((u64::from(row) + 1) * LINEAR + ((value >> row) - LINEAR)) as usize
}

/// The largest number in a bucket.
fn upper(index: usize) -> u64 {
    let index = index as u64;
    if index < LINEAR {
        return index;
    }
    let (row, column) = (index / LINEAR - 1, index % LINEAR);
    let end = u128::from(LINEAR + column + 1) << row;
    u64::try_from(end - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_lies_in_a_narrow_bucket() {
        for value in (0..2_000).chain((10..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 12_345 % bit]))
        {
            let end = upper(bucket(value));
            assert!(value <= end && (end - value) as f64 <= value as f64 / 31.0, "{value} is counted as {end}");
        }
        assert_eq!(bucket(u64::MAX), BUCKET_COUNT - 1);
    }

    #[test]
    fn quantiles_of_merged_histograms_are_those_of_all_numbers() {
        let (mut odd, mut even) = (Histogram::default(), Histogram::default());
        (0..10_000u64).for_each(|n| if n % 2 == 0 { even.add(n) } else { odd.add(n) });
        odd.merge(&even);
        assert_eq!((odd.count(), odd.max(), odd.mean()), (10_000, 9_999, 4_999.5));
        for (quantile, expected) in [(0.5, 5_000.0), (0.99, 9_900.0), (1.0, 9_999.0)] {
            let found = odd.quantile(quantile) as f64;
            assert!((found - expected).abs() / expected < 0.04, "{quantile}: {found}");
        }
        assert_eq!(odd.by_power().iter().map(|(_, count)| count).sum::<u64>(), 10_000);
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }
}
