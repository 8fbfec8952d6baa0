//! Testing cells against a range of values, for predicate scans.
//!
//! [`IndexRange::holds`] defines the answer. A [`Predicate`] gives the same answer, mostly without decoding the cell to
//! a [`Value`]. Nearly all properties are numbers or strings. For these, a predicate has tests that are made once for
//! each call: for example, a range is two integers for integer cells, whatever types its bounds have. A cell without
//! such a test is decoded.

use std::sync::atomic::Ordering;

use mangrove_graph::compare::is_number;
use mangrove_graph::numeric::{self, to_f64};
use mangrove_graph::{IndexRange, Value};
use mangrove_reclaim::sync::{AtomicU8, AtomicU64};
use smol_str::SmolStr;

use crate::cell::{CellKind, RawCell, ValueRegion, packed_text};

/// Above this, several integers are equal to one double.
const EXACT_MAX: i64 = 1 << 53;

/// A range of values, made ready for testing cells.
pub(crate) struct Predicate<'a> {
    range: &'a IndexRange,
    integers: IntegerTest,
    floats: FloatTest,
    strings: StringTest,
}

/// The test of integer cells.
enum IntegerTest {
    /// From the first to the last, both included.
    Between(i64, i64),
    /// One of these, which are sorted.
    Among(Vec<i64>),
    /// Cells must be decoded.
    Decode,
}

/// The test of float cells. NaN passes neither of the first two.
enum FloatTest {
    /// Between two limits; true if the range includes the limit.
    Between { low: (f64, bool), high: (f64, bool) },
    /// One of these, which are sorted by `total_cmp`.
    Among(Vec<f64>),
    /// Cells must be decoded.
    Decode,
}

/// The test of string cells.
enum StringTest {
    /// One of these: cells of short strings and texts of long ones, each sorted.
    Among(Vec<RawCell>, Vec<SmolStr>),
    /// Cells must be decoded.
    Decode,
}

/// No integer passes.
const NO_INTEGER: IntegerTest = IntegerTest::Between(0, -1);

impl<'a> Predicate<'a> {
    pub(crate) fn new(range: &'a IndexRange) -> Self {
        let (integers, floats, strings) = match range {
            IndexRange::Equal(values) => (equal_integers(values), equal_floats(values), equal_strings(values)),
            IndexRange::Between { low, high } => (
                integers_between(low.as_ref(), high.as_ref()),
                floats_between(low.as_ref(), high.as_ref()),
                StringTest::Decode,
            ),
        };
        Predicate { range, integers, floats, strings }
    }

    /// Returns true if one of the values of a cell is in the range.
    #[inline]
    pub(crate) fn holds(&self, cell: RawCell, region: &ValueRegion) -> bool {
        match cell.kind() {
            CellKind::Absent => false,
            CellKind::Integer(n) => match &self.integers {
                IntegerTest::Between(low, high) => (*low..=*high).contains(&n),
                IntegerTest::Among(members) => members.binary_search(&n).is_ok(),
                IntegerTest::Decode => self.holds_decoded(cell, region),
            },
            CellKind::Float(n) => match &self.floats {
                FloatTest::Between { low, high } => {
                    (n > low.0 || (low.1 && n == low.0)) && (n < high.0 || (high.1 && n == high.0))
                }
                FloatTest::Among(members) => members.binary_search_by(|m| m.total_cmp(&(n + 0.0))).is_ok(),
                FloatTest::Decode => self.holds_decoded(cell, region),
            },
            CellKind::ShortString => match &self.strings {
                StringTest::Among(short, _) => short.binary_search(&cell).is_ok(),
                StringTest::Decode => self.holds_decoded(cell, region),
            },
            CellKind::Record | CellKind::Other => self.holds_decoded(cell, region),
        }
    }

    /// Writes the indexes of the cells that pass to the front of `passing`, and returns their number. Returns `None` if
    /// one test of tags and words does not decide, so that the caller must use [`Predicate::holds`]. One test decides
    /// for numbers of one type and a range, and for one short string if no cell is a record.
    ///
    /// The loads are Acquire, as the protocol of columns demands.
    pub(crate) fn select(&self, tags: &[AtomicU8], words: &[AtomicU64], passing: &mut [u16]) -> Option<usize> {
        let tag = |tag: &AtomicU8| tag.load(Ordering::Acquire);
        let word = |word: &AtomicU64| word.load(Ordering::Acquire);
        let first = tag(tags.first()?);
        // The loops have no early exit, which would be a branch for each cell.
        let is_of_one_type = || tags.iter().fold(0, |other, t| other | (tag(t) ^ first)) == 0;
        let holds_records = || tags.iter().fold(false, |some, t| some | RawCell { tag: tag(t), word: 0 }.is_record());
        let first = RawCell { tag: first, word: 0 };
        match (first.kind(), &self.integers, &self.floats, &self.strings) {
            (CellKind::Integer(_), IntegerTest::Between(low, high), ..) if is_of_one_type() => {
                if low > high {
                    return Some(0);
                }
                let width = high.wrapping_sub(*low) as u64;
                Some(indexes_of_true(passing, words.iter().map(|w| word(w).wrapping_sub(*low as u64) <= width)))
            }
            (CellKind::Float(_), _, FloatTest::Between { low, high }, _) if is_of_one_type() => {
                let holds = |w| match (RawCell { word: w, ..first }).kind() {
                    CellKind::Float(n) => {
                        (n > low.0 || (low.1 && n == low.0)) & (n < high.0 || (high.1 && n == high.0))
                    }
                    _ => false,
                };
                Some(indexes_of_true(passing, words.iter().map(|w| holds(word(w)))))
            }
            (.., StringTest::Among(short, _)) if self.is_of_one_value() && short.len() == 1 && !holds_records() => {
                let cells = tags.iter().zip(words).map(|(t, w)| RawCell { tag: tag(t), word: word(w) });
                Some(indexes_of_true(
                    passing,
                    cells.map(|cell| (cell.tag == short[0].tag) & (cell.word == short[0].word)),
                ))
            }
            _ => None,
        }
    }

    fn is_of_one_value(&self) -> bool {
        matches!(self.range, IndexRange::Equal(values) if values.len() == 1)
    }

    /// As [`Predicate::holds`], by decoding the cell.
    fn holds_decoded(&self, cell: RawCell, region: &ValueRegion) -> bool {
        let mut found = false;
        region.values(cell, |value| found = found || self.holds_value(value));
        found
    }

    fn holds_value(&self, value: &Value) -> bool {
        match (value, &self.strings) {
            (Value::String(text), StringTest::Among(short, long)) => match packed_text(text) {
                Some(cell) => short.binary_search(&cell).is_ok(),
                None => long.binary_search(text).is_ok(),
            },
            _ => self.range.holds(value),
        }
    }
}

/// Writes the indexes of `true` one after the other, without a branch for each. Returns their number.
#[inline]
fn indexes_of_true(passing: &mut [u16], holds: impl Iterator<Item = bool>) -> usize {
    let mut count = 0;
    for (at, holds) in holds.enumerate().take(passing.len()) {
        passing[count] = at as u16;
        count += usize::from(holds);
    }
    count
}

/// Returns true if one of the values is a number of a type that neither an `i64` nor an `f64` represents.
fn has_big(values: &[Value]) -> bool {
    values.iter().any(|v| matches!(v, Value::BigInt(_) | Value::Decimal(_)))
}

fn equal_integers(values: &[Value]) -> IntegerTest {
    if has_big(values) {
        return IntegerTest::Decode;
    }
    let mut members: Vec<i64> = values.iter().filter_map(whole).collect();
    members.sort_unstable();
    members.dedup();
    match members[..] {
        [] => NO_INTEGER,
        [only] => IntegerTest::Between(only, only),
        _ => IntegerTest::Among(members),
    }
}

/// The integer that is equal to a number of a fixed width, if there is one.
fn whole(value: &Value) -> Option<i64> {
    numeric::integer(value).or_else(|| {
        // 2^63: a whole double below it is exactly one i64.
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        let float = float_of(value)?;
        (float.fract() == 0.0 && (-LIMIT..LIMIT).contains(&float)).then_some(float as i64)
    })
}

fn float_of(value: &Value) -> Option<f64> {
    match value {
        Value::F32(n) => Some(f64::from(*n)),
        Value::F64(n) => Some(*n),
        _ => None,
    }
}

/// The double that is equal to a number of a fixed width, if no other integer is equal to it.
fn exact(value: &Value) -> Option<f64> {
    match numeric::integer(value) {
        Some(n) => (-EXACT_MAX..=EXACT_MAX).contains(&n).then_some(n as f64),
        None => float_of(value),
    }
}

fn equal_floats(values: &[Value]) -> FloatTest {
    let mut members = Vec::new();
    for value in values.iter().filter(|v| is_number(v)) {
        match exact(value) {
            Some(n) if n.is_nan() => {}
            // Negative zero is equal to zero and sorts before it. The sum turns it into zero.
            Some(n) => members.push(n + 0.0),
            None => return FloatTest::Decode,
        }
    }
    members.sort_unstable_by(f64::total_cmp);
    FloatTest::Among(members)
}

fn equal_strings(values: &[Value]) -> StringTest {
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for value in values {
        if let Value::String(text) = value {
            match packed_text(text) {
                Some(cell) => short.push(cell),
                None => long.push(text.clone()),
            }
        }
    }
    short.sort_unstable();
    long.sort_unstable();
    StringTest::Among(short, long)
}

type ValueBound<'a> = Option<&'a (Value, bool)>;

/// The test of integers between two bounds. A number is comparable with numbers only, so with a bound of another type
/// no integer passes. Without bounds every integer passes.
fn integers_between(low: ValueBound<'_>, high: ValueBound<'_>) -> IntegerTest {
    let mut ends = (i64::MIN, i64::MAX);
    for (bound, is_low) in [(low, true), (high, false)] {
        let Some((value, inclusive)) = bound else { continue };
        if matches!(value, Value::BigInt(_) | Value::Decimal(_)) {
            return IntegerTest::Decode;
        }
        let Some(end) = nearest_integer(value, *inclusive, is_low) else { return NO_INTEGER };
        if is_low {
            ends.0 = end;
        } else {
            ends.1 = end;
        }
    }
    IntegerTest::Between(ends.0, ends.1)
}

/// The first integer within a low bound, or the last one within a high bound; `None` if there is none.
fn nearest_integer(bound: &Value, inclusive: bool, is_low: bool) -> Option<i64> {
    if let Some(n) = numeric::integer(bound) {
        return match (inclusive, is_low) {
            (true, _) => Some(n),
            (false, true) => n.checked_add(1),
            (false, false) => n.checked_sub(1),
        };
    }
    let float = float_of(bound).filter(|f| !f.is_nan())?;
    if let Some(n) = whole(bound) {
        return nearest_integer(&Value::I64(n), inclusive, is_low);
    }
    let rounded = if is_low { float.ceil() } else { float.floor() };
    match whole(&Value::F64(rounded)) {
        Some(n) => Some(n),
        // The bound is beyond all `i64`, so all of them are within it or none is.
        None if is_low => (float < 0.0).then_some(i64::MIN),
        None => (float > 0.0).then_some(i64::MAX),
    }
}

/// The test of floats between two bounds, as [`integers_between`]. Without bounds even NaN passes.
fn floats_between(low: ValueBound<'_>, high: ValueBound<'_>) -> FloatTest {
    const NOWHERE: FloatTest = FloatTest::Between { low: (f64::INFINITY, false), high: (f64::NEG_INFINITY, false) };
    if low.is_none() && high.is_none() {
        return FloatTest::Decode;
    }
    let mut ends = [(f64::NEG_INFINITY, true), (f64::INFINITY, true)];
    for (end, bound) in ends.iter_mut().zip([low, high]) {
        let Some((value, inclusive)) = bound else { continue };
        *end = match (exact(value), to_f64(value)) {
            (Some(n), _) => (n, *inclusive),
            (None, Some(_)) => return FloatTest::Decode,
            (None, None) => return NOWHERE,
        };
    }
    FloatTest::Between { low: ends[0], high: ends[1] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn any_value() -> impl Strategy<Value = Value> {
        let edges = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 9.3e18, -9.3e18, 9_007_199_254_740_993.0];
        prop_oneof![
            (-3..4_i8).prop_map(Value::I8),
            (-3..4_i32).prop_map(Value::I32),
            (-3..4_i64).prop_map(Value::I64),
            prop::sample::select(vec![i64::MIN, i64::MAX, i64::MAX - 1, (1 << 53) + 1, 1 << 53]).prop_map(Value::I64),
            (-6..7_i32).prop_map(|n| Value::F64(f64::from(n) / 2.0)),
            (-6..7_i32).prop_map(|n| Value::F32(n as f32 / 2.0)),
            prop::sample::select(edges.to_vec()).prop_map(Value::F64),
            (-3..4_i64).prop_map(|n| Value::BigInt(Arc::new(n.into()))),
            (-30..40_i64).prop_map(|n| Value::Decimal(Arc::new(bigdecimal::BigDecimal::new(n.into(), 1)))),
            "[ab]{0,2}".prop_map(Value::from),
            "[ab\u{7}]{7,9}".prop_map(Value::from),
            Just(Value::Bool(true)),
            Just(Value::Char('a')),
            Just(Value::Null),
            Just(Value::list(vec![Value::I32(1)])),
        ]
    }

    fn any_range() -> impl Strategy<Value = IndexRange> {
        let bound = || prop::option::of((any_value(), any::<bool>()));
        prop_oneof![
            prop::collection::vec(any_value(), 0..4).prop_map(IndexRange::Equal),
            (bound(), bound()).prop_map(|(low, high)| IndexRange::Between { low, high }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn a_cell_passes_if_its_value_does(range in any_range(), value in any_value()) {
            let (memory, region) = (Memory::new(u64::MAX), ValueRegion::new());
            let cell = region.encode(value.clone(), &memory);
            prop_assert_eq!(Predicate::new(&range).holds(cell, &region), range.holds(&value));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn what_is_selected_at_once_is_what_passes_one_by_one(
            range in any_range(),
            values in prop_oneof![
                prop::collection::vec(prop::option::of(any_value()), 1..9),
                prop::collection::vec((-3..4_i64).prop_map(|n| Some(Value::I64(n))), 1..9),
                prop::collection::vec((-6..7_i32).prop_map(|n| Some(Value::F64(f64::from(n) / 2.0))), 1..9),
                prop::collection::vec(prop::option::of("[ab]{0,2}".prop_map(Value::from)), 1..9),
            ],
        ) {
            let (memory, region) = (Memory::new(u64::MAX), ValueRegion::new());
            let encode = |value: Option<Value>| value.map_or(RawCell::ABSENT, |value| region.encode(value, &memory));
            let cells: Vec<RawCell> = values.into_iter().map(encode).collect();
            let tags: Vec<AtomicU8> = cells.iter().map(|cell| AtomicU8::new(cell.tag)).collect();
            let words: Vec<AtomicU64> = cells.iter().map(|cell| AtomicU64::new(cell.word)).collect();
            let predicate = Predicate::new(&range);
            let mut passing = [0; 8];
            if let Some(count) = predicate.select(&tags, &words, &mut passing) {
                let one_by_one = (0..cells.len()).filter(|at| predicate.holds(cells[*at], &region));
                let expected: Vec<u16> = one_by_one.map(|at| at as u16).collect();
                prop_assert_eq!(&passing[..count], &expected[..]);
            }
        }
    }

    #[test]
    fn one_of_several_values_is_enough_and_none_is_not() {
        let (memory, region) = (Memory::new(u64::MAX), ValueRegion::new());
        let value = |ordinal, value| crate::cell::MultiValue { ordinal, value, meta: Arc::default() };
        let values = vec![value(0, Value::I32(1)), value(1, "a text of some length".into())];
        let cell = region.encode_multi(crate::cell::MultiProperty { values }, &memory);
        let equal = |value: Value| IndexRange::Equal(vec![value]);
        for (range, expected) in
            [(equal(1.0.into()), true), (equal("a text of some length".into()), true), (equal(2.into()), false)]
        {
            assert_eq!(Predicate::new(&range).holds(cell, &region), expected, "{range:?}");
        }
        let everything = IndexRange::Between { low: None, high: None };
        assert!(!Predicate::new(&everything).holds(RawCell::ABSENT, &region));
    }
}
