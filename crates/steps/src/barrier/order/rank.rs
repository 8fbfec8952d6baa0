//! Sort keys as 64-bit words: a smaller key has a smaller word.
//!
//! | keys | word | equal words mean |
//! |---|---|---|
//! | integers of all widths | the number, shifted to be unsigned | equal keys |
//! | floats of both widths | the bits, made ascending | equal keys |
//! | texts | the first eight bytes | nothing: values must be compared |
//!
//! Integers and floats do not mix, because not every integer is a double. The words of a descending order are those of
//! the ascending one inverted, so equal keys keep the order in which they came either way.

use std::cmp::Ordering;

use mangrove_flow::QueryControl;
use mangrove_graph::{NumberType, Result, Value, numeric, pieces};
use mangrove_gremlin::Order as Way;

/// The kind of keys that words stand for. Words of different kinds cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RankKind {
    Integers,
    Floats,
    Texts,
}

impl RankKind {
    /// Returns true if equal words mean equal keys.
    pub fn is_exact(self) -> bool {
        self != RankKind::Texts
    }
}

/// A word for each row.
pub(super) struct Ranks {
    pub words: Vec<u64>,
    pub kind: RankKind,
}

fn turned(word: u64, way: Way) -> u64 {
    if way == Way::Desc { !word } else { word }
}

/// Returns the word of an integer.
pub(super) fn of_integer(number: i64, way: Way) -> u64 {
    turned(number as u64 ^ (1 << 63), way)
}

/// Returns the word of a float. NaN comes last, and both zeros are equal.
pub(super) fn of_float(number: f64, way: Way) -> u64 {
    let bits = if number.is_nan() { f64::NAN.to_bits() } else { (number + 0.0).to_bits() };
    // The bits of negative numbers descend.
    let sign = bits >> 63 != 0;
    turned(if sign { !bits } else { bits | (1 << 63) }, way)
}

/// Returns the word of a number among floats, or among integers; `None` for another kind of value.
pub(super) fn of_number(value: &Value, among_floats: bool, way: Way) -> Option<u64> {
    match (value, among_floats) {
        (Value::F32(n), true) => Some(of_float(f64::from(*n), way)),
        (Value::F64(n), true) => Some(of_float(*n, way)),
        (value, false) => Some(of_integer(numeric::integer(value)?, way)),
        _ => None,
    }
}

fn of_text(value: &Value, way: Way) -> Option<u64> {
    let Value::String(text) = value else { return None };
    let mut word = [0; 8];
    let len = text.len().min(word.len());
    word[..len].copy_from_slice(&text.as_bytes()[..len]);
    Some(turned(u64::from_be_bytes(word), way))
}

/// Returns the words of keys that are all of one kind.
pub(super) fn ranks(keys: &[Option<Value>], way: Way) -> Option<Ranks> {
    let first = keys.first()?.as_ref()?;
    if matches!(first, Value::String(_)) {
        let words = keys.iter().map(|key| of_text(key.as_ref()?, way)).collect::<Option<_>>()?;
        return Some(Ranks { words, kind: RankKind::Texts });
    }
    let is_float = NumberType::of(first)?.is_float();
    let words = keys.iter().map(|key| of_number(key.as_ref()?, is_float, way)).collect::<Option<_>>()?;
    Some(Ranks { words, kind: if is_float { RankKind::Floats } else { RankKind::Integers } })
}

/// Sorts rows by their words, and by `compare` if words do not decide. `piece` is the size of the pieces sorted at a
/// time. Returns the rows in order, and their words.
pub(super) fn sort(
    ranks: Ranks,
    piece: Option<usize>,
    control: &QueryControl,
    compare: impl Fn(u32, u32) -> Ordering,
) -> Result<(Vec<u32>, Vec<u64>)> {
    let check = || control.check();
    let mut rows: Vec<(u64, u32)> = ranks.words.into_iter().zip(0..).collect();
    if ranks.kind.is_exact() && piece.is_none() {
        pieces::sort(&mut rows, pieces::WORDS, check, |a, b| a.0.cmp(&b.0))?;
    } else {
        let piece = piece.unwrap_or(pieces::COMPARED);
        pieces::sort(&mut rows, piece, check, |a, b| a.0.cmp(&b.0).then_with(|| compare(a.1, b.1)))?;
    }
    let (words, order) = rows.into_iter().unzip();
    Ok((order, words))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rows::ComputedColumn;
    use mangrove_flow::clock::ManualClock;
    use mangrove_graph::compare;
    use proptest::prelude::*;

    fn any_keys() -> impl Strategy<Value = Vec<Value>> {
        fn keys(one: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<Value>> {
            prop::collection::vec(one, 1..12)
        }
        let floats = vec![0.0, -0.0, 1.5, -1.5, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324];
        let integer = || prop_oneof![any::<i64>(), -2..3_i64, Just(i64::MIN), Just(i64::MAX)];
        prop_oneof![
            keys(prop_oneof![integer().prop_map(Value::I64), any::<i8>().prop_map(Value::I8)]),
            keys(prop_oneof![
                prop::sample::select(floats.clone()).prop_map(Value::F64),
                prop::sample::select(floats).prop_map(|n| Value::F32(n as f32)),
            ]),
            keys("[ab\0ß]{0,3}([ab]{6,8})?".prop_map(Value::from)),
            keys(prop_oneof![integer().prop_map(Value::I64), Just(Value::F64(0.5)), Just(Value::from("a"))]),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn words_sort_as_values_do(keys in any_keys(), descending in any::<bool>()) {
            let way = if descending { Way::Desc } else { Way::Asc };
            let column: ComputedColumn = keys.iter().cloned().map(Some).collect();
            let in_order = |a: u32, b: u32| {
                let (a, b) = (&keys[a as usize], &keys[b as usize]);
                if descending { compare::order(b, a) } else { compare::order(a, b) }
            };
            let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
            expected.sort_by(|a, b| in_order(*a, *b));
            if let Some(ranks) = ranks(&column, way) {
                let control = QueryControl::new(Default::default(), Arc::new(ManualClock::default()), Arc::default());
                let (order, words) = sort(ranks, None, &control, in_order).unwrap();
                prop_assert_eq!(order, expected);
                prop_assert!(words.is_sorted());
            }
        }
    }

    #[test]
    fn keys_of_several_kinds_have_no_words() {
        let column = |values: Vec<Value>| values.into_iter().map(Some).collect::<ComputedColumn>();
        for values in [vec![1.into(), 0.5.into()], vec!["a".into(), 1.into()], vec![true.into()], vec![Value::Null]] {
            assert!(ranks(&column(values), Way::Asc).is_none());
        }
        assert!(ranks(&[Some(1.into()), None], Way::Asc).is_none());
    }
}
