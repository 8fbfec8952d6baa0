//! Statistics of the values that vertices have under one key: how often, how many different ones, which are frequent,
//! and how the others are distributed.
//!
//! They are made from a sample: of few values from all of them. The most frequent values have counts of their own. The
//! others lie between *bounds*, with as many of them between any two neighbors (an equi-depth histogram).
//!
//! How far an estimate may be off, for `n` values of which `s` were sampled:
//!
//! - a frequent value of `c` sampled occurrences: about `1/√c` of its count (one standard deviation);
//! - a range: the values between two bounds, `n / 64`, at either end, and the error of the sample, `n · 1.36 / √s` (the
//!   inequality of Dvoretzky, Kiefer and Wolfowitz, at 95 %);
//! - another value: it is taken to be as frequent as the mean of all values that are not frequent.

use crate::compare::{order, watched};
use crate::ids::{KeyId, LabelSetId};
use crate::numeric;
use crate::value::Value;
use crate::view::IndexRange;

/// The most values that are listed with their counts.
pub const FREQUENT_VALUES_MAX: usize = 32;

/// The most parts that the values which are not listed are divided into.
pub const VALUE_PARTS_MAX: usize = 64;

/// A text in statistics has at most so many bytes. Longer ones are cut.
pub const VALUE_BYTES_MAX: usize = 64;

/// A frequent value has at least so many occurrences in a sample that lacks values.
const SAMPLED_OCCURRENCES_MIN: usize = 8;

/// The values of the vertices of one label set under one key.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueStatistics {
    /// The label set of the vertices.
    pub label: LabelSetId,
    /// The property key.
    pub key: KeyId,
    /// How many values there are. A vertex with several values counts several times.
    pub values: u64,
    /// How many different values there are; of many, an estimate.
    pub distinct: u64,
    /// The most frequent values and how often they occur, the most frequent one first.
    frequent: Box<[(Value, u64)]>,
    /// The bounds of the parts of all other values, ascending.
    bounds: Box<[Value]>,
}

/// The value as a sample keeps it: a long text is cut. `None` for a value that is not sampled, such as a list.
pub fn sampled_value(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if text.len() > VALUE_BYTES_MAX => {
            let end = (0..=VALUE_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end))?;
            text.get(..end).map(Value::from)
        }
        Value::String(_) => Some(value.clone()),
        Value::List(_) | Value::Set(_) | Value::Map(_) => None,
        other if watched::comparable(other, other).is_some() => Some(other.clone()),
        _ => None,
    }
}

impl ValueStatistics {
    /// Statistics of so many values, `distinct` of them different, from a sample of them, as [`sampled_value`] gives it.
    pub fn new((label, key): (LabelSetId, KeyId), values: u64, distinct: u64, mut sample: Vec<Value>) -> Self {
        sample.sort_by(order);
        let is_whole = sample.len() as u64 >= values;
        let mut runs: Vec<&[Value]> = sample.chunk_by(|a, b| order(a, b).is_eq()).collect();
        let least = match (is_whole, runs.len() <= FREQUENT_VALUES_MAX) {
            (true, true) => 1,
            (true, false) => 2,
            (false, _) => SAMPLED_OCCURRENCES_MIN,
        };
        runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
        runs.truncate(FREQUENT_VALUES_MAX);
        runs.retain(|run| run.len() >= least);
        let scale = values as f64 / sample.len().max(1) as f64;
        let frequent: Box<[(Value, u64)]> =
            runs.iter().map(|run| (run[0].clone(), (run.len() as f64 * scale).round() as u64)).collect();
        let is_listed = |value: &Value| frequent.iter().any(|(listed, _)| order(listed, value).is_eq());
        let others: Vec<&Value> = sample.iter().filter(|value| !is_listed(value)).collect();
        let parts = VALUE_PARTS_MAX.min(others.len().saturating_sub(1));
        let bounds = match others.len() {
            0 => Box::default(),
            len => (0..=parts).map(|at| others[at * (len - 1) / parts.max(1)].clone()).collect(),
        };
        ValueStatistics { label, key, values, distinct: distinct.max(frequent.len() as u64), frequent, bounds }
    }

    /// The most frequent values and how often they occur, the most frequent one first.
    pub fn frequent(&self) -> &[(Value, u64)] {
        &self.frequent
    }

    /// The parts of the values that are not listed: where each begins, ascending, and about how many values it has.
    pub fn parts(&self) -> impl Iterator<Item = (&Value, f64)> {
        let parts = self.bounds.len().saturating_sub(1).max(1);
        let each = self.others() / parts as f64;
        self.bounds.iter().take(parts).map(move |bound| (bound, each))
    }

    /// About how many values are in a range.
    pub fn expected(&self, range: &IndexRange) -> f64 {
        match range {
            IndexRange::Equal(values) => values.iter().map(|value| self.equal_to(value)).sum(),
            IndexRange::Between { low, high } => {
                let listed = self.frequent.iter().filter(|(value, _)| range.holds(value)).map(|(_, count)| *count);
                listed.sum::<u64>() as f64 + self.others() * self.part_between(low.as_ref(), high.as_ref())
            }
        }
    }

    fn equal_to(&self, value: &Value) -> f64 {
        let Some(value) = sampled_value(value) else { return self.mean_of_others() };
        let listed = self.frequent.iter().find(|(listed, _)| watched::equal(listed, &value));
        listed.map_or_else(|| self.mean_of_others(), |(_, count)| *count as f64)
    }

    /// How many values are not listed.
    fn others(&self) -> f64 {
        let listed: u64 = self.frequent.iter().map(|(_, count)| count).sum();
        self.values.saturating_sub(listed) as f64
    }

    /// How often a value occurs that is not listed.
    fn mean_of_others(&self) -> f64 {
        self.others() / (self.distinct as f64 - self.frequent.len() as f64).max(1.0)
    }

    /// The part of the values that are not listed between two bounds of a range.
    fn part_between(&self, low: Option<&(Value, bool)>, high: Option<&(Value, bool)>) -> f64 {
        // A range takes only values that can be compared with its bounds.
        let bound = low.or(high).map(|(value, _)| value);
        let suits = |known: &Value| bound.is_none_or(|bound| watched::comparable(known, bound).is_some());
        let (Some(first), Some(last)) = (self.bounds.iter().position(suits), self.bounds.iter().rposition(suits))
        else {
            return 0.0;
        };
        let from = low.map_or(first as f64, |(value, _)| self.place(value)).max(first as f64);
        let to = high.map_or(last as f64, |(value, _)| self.place(value)).min(last as f64);
        let parts = self.bounds.len().saturating_sub(1);
        if parts == 0 {
            return if from <= to { 1.0 } else { 0.0 };
        }
        // A value between the bounds is taken to be there.
        let one = 1.0 / (self.distinct as f64 - self.frequent.len() as f64).max(1.0);
        let is_outside = to < 0.0 || from > parts as f64 || from > to;
        if is_outside { 0.0 } else { ((to - from) / parts as f64).max(one).min(1.0) }
    }

    /// The position of a value among the bounds, with fractions; below 0 for a value before the first one.
    fn place(&self, value: &Value) -> f64 {
        let after = self.bounds.partition_point(|bound| order(bound, value).is_lt());
        let Some(before) = after.checked_sub(1) else {
            let is_first = self.bounds.first().is_some_and(|first| order(first, value).is_eq());
            return if is_first { 0.0 } else { -1.0 };
        };
        match (self.bounds.get(before), self.bounds.get(after)) {
            (Some(low), Some(high)) => before as f64 + share_below(low, high, value),
            _ => after as f64,
        }
    }

    /// The memory that the value takes, in bytes.
    pub fn bytes(&self) -> usize {
        let of = |value: &Value| size_of::<u64>() + bytes_of(value);
        size_of::<Self>()
            + self.frequent.iter().map(|(value, _)| of(value)).chain(self.bounds.iter().map(of)).sum::<usize>()
    }
}

/// The bytes of a value in a sample.
pub fn bytes_of(value: &Value) -> usize {
    let text = if let Value::String(text) = value { text.len() } else { 0 };
    size_of::<Value>() + text
}

/// How far a value is from `low` to `high`, from 0 to 1.
fn share_below(low: &Value, high: &Value, value: &Value) -> f64 {
    let numbers = match (low, high, value) {
        (Value::String(low), Value::String(high), Value::String(value)) => {
            let common = low.bytes().zip(high.bytes()).take_while(|(a, b)| a == b).count();
            let [low, high, value] = [low, high, value].map(|text| text.as_bytes().get(common..).unwrap_or_default());
            let digits = || low.iter().chain(high).copied();
            let range = (digits().min().unwrap_or(0), digits().max().unwrap_or(u8::MAX));
            Some([low, high, value].map(|text| number_of(text, range)))
        }
        _ => match (numeric::to_f64(low), numeric::to_f64(high), numeric::to_f64(value)) {
            (Some(low), Some(high), Some(value)) => Some([low, high, value]),
            _ => None,
        },
    };
    match numbers {
        Some([low, high, value]) if high > low => ((value - low) / (high - low)).clamp(0.0, 1.0),
        _ => 0.5,
    }
}

/// A number that orders texts by their first bytes. The bytes are taken for digits from the least to the largest one of
/// a range, so that texts of the same digits or letters are spread evenly.
fn number_of(text: &[u8], (least, most): (u8, u8)) -> f64 {
    let base = f64::from(most.saturating_sub(least)) + 1.0;
    let digit = |at: usize| f64::from(text.get(at).map_or(0, |byte| byte.clamp(&least, &most) - least));
    (0..8).fold(0.0, |sum, at| sum * base + digit(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = Value>) -> ValueStatistics {
        let values: Vec<Value> = values.into_iter().collect();
        let mut sorted = values.clone();
        sorted.sort_by(order);
        sorted.dedup_by(|a, b| order(a, b).is_eq());
        ValueStatistics::new((LabelSetId(1), KeyId(1)), values.len() as u64, sorted.len() as u64, values)
    }

    fn equal(value: impl Into<Value>) -> IndexRange {
        IndexRange::Equal(vec![value.into()])
    }

    fn between(low: impl Into<Value>, high: impl Into<Value>) -> IndexRange {
        IndexRange::Between { low: Some((low.into(), true)), high: Some((high.into(), false)) }
    }

    /// How many times more or fewer an estimate is; of numbers below 1, those count as 1.
    fn q_error(estimate: f64, truth: f64) -> f64 {
        let (estimate, truth) = (estimate.max(1.0), truth.max(1.0));
        (estimate / truth).max(truth / estimate)
    }

    /// Value `n` of `1..=1_000` occurs `20_000 / n` times: a Zipf distribution with exponent 1.
    fn zipf() -> Vec<Value> {
        (1..=1_000_i64).flat_map(|n| std::iter::repeat_n(Value::from(n), 20_000 / n as usize)).collect()
    }

    #[test]
    fn estimates_of_skewed_values_are_near_the_truth() {
        let values = zipf();
        // Every 37th value is sampled.
        let sample: Vec<Value> = values.iter().step_by(37).cloned().collect();
        assert!(sample.len() < 4_096);
        let sampled = ValueStatistics::new((LabelSetId(1), KeyId(1)), values.len() as u64, 1_000, sample);
        let whole = of(values.clone());
        let truth = |range: &IndexRange| values.iter().filter(|value| range.holds(value)).count() as f64;
        for (statistics, frequent_most, rare_most) in [(&whole, 1.0, 8.0), (&sampled, 1.5, 8.0)] {
            for n in [1, 2, 5, 10, 20, 31] {
                let error = q_error(statistics.expected(&equal(n)), truth(&equal(n)));
                assert!(error <= frequent_most, "{n}: {error}");
            }
            // Values that are not listed are taken for equally frequent.
            for n in [40, 100, 500, 1_000] {
                let error = q_error(statistics.expected(&equal(n)), truth(&equal(n)));
                assert!(error <= rare_most, "{n}: {error}");
            }
            for (low, high) in [(1, 3), (2, 100), (50, 1_000), (100, 200), (900, 1_001), (300, 5_000), (0, 5_000)] {
                let error = q_error(statistics.expected(&between(low, high)), truth(&between(low, high)));
                assert!(error <= 1.3, "{low} to {high}: {error}");
            }
            let most = |low: i64| IndexRange::Between { low: Some((low.into(), true)), high: None };
            assert!(q_error(statistics.expected(&most(10)), truth(&most(10))) < 1.2);
            assert_eq!(statistics.expected(&between(2_000, 3_000)), 0.0);
            assert_eq!(statistics.expected(&between(-9, -5)), 0.0);
        }
    }

    #[test]
    fn few_values_are_all_listed() {
        let statistics = of([true, false, true, true].map(Value::from));
        assert_eq!(statistics.frequent(), [(Value::from(true), 3), (Value::from(false), 1)]);
        assert_eq!(statistics.expected(&equal("a text")), 0.0);
    }

    #[test]
    fn beginnings_of_texts_are_ranges() {
        let texts = (0..10_000).map(|n| Value::from(format!("name {n:04}")));
        let statistics = of(texts);
        for (beginning, truth) in [("name 0", 1_000.0), ("name 123", 10.0), ("name", 10_000.0)] {
            let expected = statistics.expected(&IndexRange::beginning_with(beginning));
            assert!(q_error(expected, truth) < 4.0, "{beginning}: {expected}");
        }
        assert_eq!(statistics.expected(&IndexRange::beginning_with("other")), 0.0);
    }

    #[test]
    fn ranges_take_values_of_one_type() {
        let numbers = (0..500).map(|n| Value::from(n % 250));
        let statistics = of(numbers.chain((0..500).map(|n| Value::from(format!("t{n}")))));
        let above = |value: Value| IndexRange::Between { low: Some((value, true)), high: None };
        for (range, truth) in [(above(0.into()), 500.0), (above("t".into()), 500.0), (above(125.into()), 250.0)] {
            assert!(q_error(statistics.expected(&range), truth) < 1.3, "{range:?}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let text = |end: &str| Value::from(format!("{}{end}", "é".repeat(500)));
        let statistics = of((0..100).filter_map(|n| sampled_value(&text(&n.to_string()))));
        assert!(statistics.bytes() < 1_000, "{}", statistics.bytes());
        assert_eq!(statistics.expected(&IndexRange::Equal(vec![text("7")])), 100.0, "they begin alike");
        assert_eq!(sampled_value(&Value::list(vec![])), None);
    }

    #[test]
    fn no_value_is_none() {
        let statistics = of([]);
        assert_eq!((statistics.expected(&equal(1)), statistics.expected(&between(1, 2))), (0.0, 0.0));
    }
}
