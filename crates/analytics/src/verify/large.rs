//! Numbers of shortest paths, of any size.

/// A number that is 0 or at least 1: `mantissa · 2^exponent`, with a mantissa from 1 to 2.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Large {
    mantissa: f64,
    exponent: i64,
}

impl Large {
    pub(super) const ZERO: Large = Large { mantissa: 0.0, exponent: 0 };
    pub(super) const ONE: Large = Large { mantissa: 1.0, exponent: 0 };

    /// The sum.
    pub(super) fn plus(self, other: Large) -> Large {
        if self.mantissa == 0.0 || other.mantissa == 0.0 {
            return if self.mantissa == 0.0 { other } else { self };
        }
        let (most, least) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let sum = most.mantissa + least.mantissa * 0.5_f64.powf((most.exponent - least.exponent) as f64);
        match sum >= 2.0 {
            true => Large { mantissa: sum / 2.0, exponent: most.exponent + 1 },
            false => Large { mantissa: sum, ..most },
        }
    }

    /// The product.
    pub(super) fn times(self, other: Large) -> Large {
        let (product, exponent) = (self.mantissa * other.mantissa, self.exponent + other.exponent);
        match product >= 2.0 {
            true => Large { mantissa: product / 2.0, exponent: exponent + 1 },
            false => Large { mantissa: product, exponent },
        }
    }

    /// The quotient, which is about 1 at most.
    pub(super) fn divided_by(self, other: Large) -> f64 {
        self.mantissa / other.mantissa * 2.0_f64.powf((self.exponent - other.exponent) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: u32) -> Large {
        (0..number).fold(Large::ZERO, |sum, _| sum.plus(Large::ONE))
    }

    #[test]
    fn large_numbers_are_added_multiplied_and_divided_as_doubles_are() {
        for (one, other) in [(0, 5), (1, 1), (3, 7), (1_000, 999), (65_535, 2)] {
            let (left, right) = (f64::from(one), f64::from(other));
            assert_eq!(of(one).plus(of(other)), of(one + other));
            assert_eq!(of(one).divided_by(of(other)), left / right);
            if one > 0 {
                assert_eq!(of(one).times(of(other)).divided_by(of(3)), left * right / 3.0);
            }
        }
    }

    #[test]
    fn numbers_above_those_of_doubles_keep_their_ratios() {
        let mut large = of(3);
        (0..2_000).for_each(|_| large = large.plus(large));
        let half = (0..1_999).fold(of(3), |half, _| half.plus(half));
        assert_eq!(half.divided_by(large), 0.5);
        assert_eq!(large.plus(half).divided_by(half), 3.0);
        assert_eq!(large.times(half).divided_by(large.times(large)), 0.5);
        assert_eq!(Large::ONE.divided_by(large), 0.0);
    }
}
