//! Means with confidence intervals that assume no distribution.

use mangrove_generate::random::RandomStream;

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The arithmetic mean.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

const RESAMPLE_COUNT: usize = 1_000;

impl Estimate {
    /// Estimates the mean of samples by the bootstrap. A resample draws as many samples as there are, with replacement.
    /// The interval holds the middle 95 % of the means of a thousand resamples. `None` if there are no samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let count = samples.len();
        let mean = |sum: f64| sum / count as f64;
        let mut random = RandomStream::from_seed(95);
        let mut means: Vec<f64> = (0..RESAMPLE_COUNT)
            .map(|_| mean((0..count).map(|_| samples[random.below(count as u64) as usize]).sum()))
            .collect();
        means.sort_unstable_by(f64::total_cmp);
        (count > 0).then(|| Estimate {
            mean: mean(samples.iter().sum()),
            low: means[RESAMPLE_COUNT * 25 / 1_000].min(mean(samples.iter().sum())),
            high: means[RESAMPLE_COUNT * 975 / 1_000 - 1].max(mean(samples.iter().sum())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_surrounds_the_mean_and_narrows_with_more_samples() {
        let mut random = RandomStream::from_seed(7);
        let mut samples = |count: usize| (0..count).map(|_| random.below(1_000) as f64).collect::<Vec<_>>();
        let (few, many) = (Estimate::of(&samples(20)).unwrap(), Estimate::of(&samples(2_000)).unwrap());
        assert!(few.low < few.mean && few.mean < few.high);
        assert!(many.low < 500.0 && 500.0 < many.high, "{many:?}");
        assert!(many.high - many.low < (few.high - few.low) / 5.0);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[3.0]), Some(Estimate { mean: 3.0, low: 3.0, high: 3.0 }));
    }
}
