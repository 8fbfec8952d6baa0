//! Tests of numbers as ranges, so that a test of a column of numbers is two comparisons a row.
//!
//! | test | range |
//! |---|---|
//! | `gt(3)`, `lte(7)`, `eq(3)` | one range, with its ends |
//! | `between(3, 7)` and other conjunctions of these | the intersection |
//! | `not(t)`, `neq(3)` | what lies outside the range of `t`, which includes NaN |
//!
//! All other tests have no range. Numbers compare by value, whatever their types: an operand has a range only if the
//! type of the column holds its exact value.

use mangrove_graph::{Value, numeric};
use mangrove_gremlin::Comparison;

/// The types in which ranges are tested.
pub(crate) trait RangeNumber: Copy + PartialOrd {
    /// The smallest and the largest number.
    const ENDS: (Self, Self);

    /// Returns the operand of a test in this type; `None` if no number of this type equals it.
    fn exactly(operand: &Value) -> Option<Self>;

    /// Returns the next larger number; `None` for the largest.
    fn next(self) -> Option<Self>;

    /// Returns the next smaller number; `None` for the smallest.
    fn previous(self) -> Option<Self>;
}

impl RangeNumber for i64 {
    const ENDS: (Self, Self) = (i64::MIN, i64::MAX);

    fn exactly(operand: &Value) -> Option<Self> {
        numeric::whole(operand)
    }

    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }

    fn previous(self) -> Option<Self> {
        self.checked_sub(1)
    }
}

impl RangeNumber for f64 {
    const ENDS: (Self, Self) = (f64::NEG_INFINITY, f64::INFINITY);

    fn exactly(operand: &Value) -> Option<Self> {
        /// Up to this magnitude, every integer is a double.
        const EXACT_MAX: u64 = 1 << f64::MANTISSA_DIGITS;
        match operand {
            Value::F32(n) => Some(f64::from(*n)),
            Value::F64(n) => Some(*n),
            other => numeric::integer(other).filter(|n| n.unsigned_abs() <= EXACT_MAX).map(|n| n as f64),
        }
        .filter(|n| !n.is_nan())
    }

    fn next(self) -> Option<Self> {
        (self < f64::INFINITY).then(|| self.next_up())
    }

    fn previous(self) -> Option<Self> {
        (self > f64::NEG_INFINITY).then(|| self.next_down())
    }
}

/// The numbers that pass a test: those from `low` to `high`, or all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberRange<T> {
    low: T,
    high: T,
    is_inside: bool,
}

impl<T: RangeNumber> NumberRange<T> {
    /// Returns the range of a comparison, if it has one.
    pub fn of(comparison: Comparison, operand: &Value) -> Option<Self> {
        let number = T::exactly(operand)?;
        let (lowest, highest) = T::ENDS;
        let ends = match comparison {
            Comparison::Eq | Comparison::Neq => Some((number, number)),
            Comparison::Lt => number.previous().map(|high| (lowest, high)),
            Comparison::Lte => Some((lowest, number)),
            Comparison::Gt => number.next().map(|low| (low, highest)),
            Comparison::Gte => Some((number, highest)),
        };
        // No number lies between these ends.
        let (low, high) = ends.unwrap_or((highest, lowest));
        Some(NumberRange { low, high, is_inside: comparison != Comparison::Neq })
    }

    /// Returns the range of the negated test.
    pub fn negated(self) -> Self {
        NumberRange { is_inside: !self.is_inside, ..self }
    }

    /// Returns the range of both tests, if they have one.
    pub fn and(self, other: Self) -> Option<Self> {
        let low = if other.low > self.low { other.low } else { self.low };
        let high = if other.high < self.high { other.high } else { self.high };
        (self.is_inside && other.is_inside).then_some(NumberRange { low, high, is_inside: true })
    }

    /// Returns the rows of the numbers that pass, ascending.
    pub fn rows(self, numbers: &[T]) -> Vec<u32> {
        // The loop has no branch: which numbers pass cannot be predicted.
        let (mut rows, mut count) = (vec![0; numbers.len()], 0);
        for (row, number) in (0..).zip(numbers) {
            rows[count] = row;
            count += usize::from((*number >= self.low && *number <= self.high) == self.is_inside);
        }
        rows.truncate(count);
        rows
    }
}
