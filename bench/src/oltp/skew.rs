//! The distribution of chosen vertices: uniform, or a few chosen much more often than the others.

use std::str::FromStr;

use mangrove_generate::random::{RandomStream, below, mix};

/// The distribution of chosen vertices.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Skew {
    /// Every vertex is as likely as any other.
    Uniform,
    /// The vertex of rank `r` is picked in proportion to `r^-s`; ranks are spread over the graph.
    Zipf(f64),
}

/// The default exponent: the usual one of key-value benchmarks.
const ZIPF_DEFAULT: f64 = 0.99;

impl FromStr for Skew {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no skew; use `uniform`, `zipf` or `zipf:0.99` (an exponent from 0.01 to 4)");
        match text.split_once(':') {
            None if text == "uniform" => Ok(Skew::Uniform),
            None if text == "zipf" => Ok(Skew::Zipf(ZIPF_DEFAULT)),
            Some(("zipf", exponent)) => {
                let exponent = exponent.parse::<f64>().ok().filter(|s| (0.01..=4.0).contains(s));
                exponent.map(Skew::Zipf).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

impl std::fmt::Display for Skew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Skew::Uniform => f.write_str("uniform"),
            Skew::Zipf(exponent) => write!(f, "zipf:{exponent}"),
        }
    }
}

/// Picks numbers below a bound.
#[derive(Clone, Debug)]
pub enum Picker {
    /// Uniformly.
    Uniform,
    /// By Zipf rank.
    Zipf(Zipf),
}

impl Picker {
    /// A picker over `count` vertices.
    pub fn new(skew: Skew, count: u64) -> Self {
        match skew {
            Skew::Uniform => Picker::Uniform,
            Skew::Zipf(exponent) => Picker::Zipf(Zipf::new(count, exponent)),
        }
    }

    /// A number below `bound`. A skewed picker never picks numbers above the count for which it was made.
    #[inline]
    pub fn pick(&self, random: &mut RandomStream, bound: u64) -> u64 {
        match self {
            Picker::Uniform => random.below(bound),
            // A product of the rank and an odd constant would keep the parity of neighboring ranks together.
            Picker::Zipf(zipf) => below(mix(zipf.rank(random) ^ 0x5eed), zipf.count),
        }
    }
}

/// Draws ranks from 1 to `count` in proportion to `rank^-exponent`, by rejection-inversion (Hörmann and Derflinger,
/// 1996): no tables, one or two random numbers a rank.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: u64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// Ranks from 1 to `count`.
    pub fn new(count: u64, exponent: f64) -> Self {
        let count = count.max(1);
        let mut zipf = Zipf { count, exponent, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(count as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// The integral of the density from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let (log, left) = (x.ln(), 1.0 - self.exponent);
        if (left * log).abs() < 1e-8 { log } else { (left * log).exp_m1() / left }
    }

    fn integral_inverse(&self, y: f64) -> f64 {
        let left = 1.0 - self.exponent;
        let scaled = (y * left).max(-1.0);
        if scaled.abs() < 1e-8 { y.exp() } else { (scaled.ln_1p() / left).exp() }
    }

    /// Draws a rank.
    pub fn rank(&self, random: &mut RandomStream) -> u64 {
        loop {
            let unit = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
            let y = self.integral_last + unit * (self.integral_first - self.integral_last);
            let x = self.integral_inverse(y);
            let rank = x.round().clamp(1.0, self.count as f64);
            if rank - x <= self.shortcut || y >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_as_frequent_as_their_law_says() {
        for exponent in [0.5, 0.99, 1.0, 1.5] {
            let (zipf, mut random) = (Zipf::new(1_000, exponent), RandomStream::from_seed(1));
            let mut found = vec![0.0; 1_001];
            const DRAWN: usize = 200_000;
            (0..DRAWN).for_each(|_| found[zipf.rank(&mut random) as usize] += 1.0 / DRAWN as f64);
            let total: f64 = (1..=1_000).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1usize, 2, 3, 10] {
                let expected = (rank as f64).powf(-exponent) / total;
                let error = (found[rank] - expected).abs() / expected;
                assert!(error < 0.1, "s = {exponent}, rank {rank}: {} instead of {expected}", found[rank]);
            }
        }
    }

    #[test]
    fn skews_are_read_as_they_are_written() {
        for text in ["uniform", "zipf:0.99", "zipf:1.2"] {
            assert_eq!(text.parse::<Skew>().unwrap().to_string(), text);
        }
        assert_eq!("zipf".parse(), Ok(Skew::Zipf(0.99)));
        for wrong in ["", "zipf:", "zipf:x", "zipf:-1", "gauss"] {
            assert!(wrong.parse::<Skew>().unwrap_err().contains("use `uniform`"), "{wrong}");
        }
    }
}
