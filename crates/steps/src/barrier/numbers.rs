//! Folding arrays of numbers into partial reductions, without a [`Value`] for each number.
//!
//! Result, type and errors are those of folding the values one by one. So integers are added as an array only if no
//! partial sum can leave their type, and floats are added in the order of the rows.

use mangrove_graph::{NumberType, Result, Value, numeric};
use mangrove_plan::logical::Reduction;

use crate::barrier::partial::{PartialReduction, ReduceKind, StatesByTag};
use crate::rows::{NumberSlice, Rows, Tags};

/// Adds numbers to the states of a reduction. `batch` has their tags and bulks, and `row` gives the row of a number
/// there by its index.
pub(super) fn add_to_states(
    states: &mut impl StatesByTag,
    numbers: NumberSlice<'_>,
    batch: &Rows,
    row: impl Fn(usize) -> usize,
) -> Result<()> {
    let kind = states.kind();
    if batch.tags == Tags::One && batch.bulk.is_none() {
        // An instance without numbers has no state.
        return if numbers.len() == 0 { Ok(()) } else { fold(states.state(0), kind, numbers) };
    }
    (0..numbers.len()).try_for_each(|at| {
        let row = row(at);
        add_one(states.state(batch.tag(row)), kind, numbers, at, batch.bulk(row))
    })
}

/// Adds numbers to the state of a reduction.
fn fold(state: &mut PartialReduction, kind: ReduceKind, numbers: NumberSlice<'_>) -> Result<()> {
    let done = match state {
        PartialReduction::Sum(sum) => add_all(sum, numbers),
        PartialReduction::Mean(sum, count) => {
            let done = add_all(sum, numbers);
            if done {
                *count += numbers.len() as u64;
            }
            done
        }
        PartialReduction::Extreme(_) => match extreme(numbers, kind == ReduceKind::Language(Reduction::Max)) {
            Some(value) => return state.add(kind, value, 1),
            None => false,
        },
        PartialReduction::Count(_) => return state.count(numbers.len() as u64),
        PartialReduction::Fold(_) => false,
    };
    if done {
        return Ok(());
    }
    numbers.values().try_for_each(|value| state.add(kind, value, 1))
}

/// Adds one number of an array to the state of a reduction.
fn add_one(
    state: &mut PartialReduction,
    kind: ReduceKind,
    numbers: NumberSlice<'_>,
    at: usize,
    bulk: u64,
) -> Result<()> {
    // The common types, without making a `Value`.
    if let (PartialReduction::Sum(Some(Value::I64(sum))), NumberSlice::Integers(NumberType::I64, integers), 1) =
        (&mut *state, numbers, bulk)
        && let Some(more) = sum.checked_add(integers[at])
    {
        *sum = more;
        return Ok(());
    }
    state.add(kind, numbers.value(at), bulk)
}

/// Adds an array of numbers to a sum. Returns false, having done nothing, if that could leave the type of the sum.
fn add_all(sum: &mut Option<Value>, numbers: NumberSlice<'_>) -> bool {
    let added = match numbers {
        NumberSlice::Floats(NumberType::F64, numbers) => add_doubles(sum.as_ref(), numbers),
        NumberSlice::Floats(..) => None,
        NumberSlice::Integers(kind, numbers) => add_integers(sum.as_ref(), kind, numbers),
    };
    match added {
        Some(_) => {
            *sum = added;
            true
        }
        None => false,
    }
}

fn add_doubles(sum: Option<&Value>, numbers: &[f64]) -> Option<Value> {
    let (start, rest) = match sum {
        None => numbers.split_first().map(|(first, rest)| (*first, rest))?,
        Some(Value::F64(sum)) => (*sum, numbers),
        Some(_) => return None,
    };
    Some(Value::F64(rest.iter().fold(start, |sum, n| sum + n)))
}

/// Returns the sum in the wider of both types; `None` if some order of adding could leave that type.
fn add_integers(sum: Option<&Value>, kind: NumberType, numbers: &[i64]) -> Option<Value> {
    let (start, held) = match sum {
        None => (0, kind),
        Some(sum) => (numeric::integer(sum)?, NumberType::of(sum)?),
    };
    let (kind, limit) = match widest(kind, held) {
        NumberType::I8 => (NumberType::I8, i8::MAX as u64),
        NumberType::I16 => (NumberType::I16, i16::MAX as u64),
        NumberType::I32 => (NumberType::I32, i32::MAX as u64),
        _ => (NumberType::I64, i64::MAX as u64),
    };
    let largest = numbers.iter().map(|n| n.unsigned_abs()).max()?;
    let reach = largest.checked_mul(numbers.len() as u64)?.checked_add(start.unsigned_abs())?;
    (reach <= limit).then(|| kind.integer(start + numbers.iter().sum::<i64>()))
}

fn widest(a: NumberType, b: NumberType) -> NumberType {
    if a as u8 >= b as u8 { a } else { b }
}

/// Returns the largest (or smallest) number, the first of equal ones; NaN only if there is nothing else.
fn extreme(numbers: NumberSlice<'_>, largest: bool) -> Option<Value> {
    match numbers {
        NumberSlice::Floats(kind, floats) => {
            let is_better = |best: f64, n: f64| (largest && n > best) || (!largest && n < best) || best.is_nan();
            let better = |best: f64, n: f64| if is_better(best, n) { n } else { best };
            floats.iter().copied().reduce(better).map(|n| kind.float(n))
        }
        NumberSlice::Integers(kind, integers) => {
            let integers = integers.iter().copied();
            if largest { integers.max() } else { integers.min() }.map(|n| kind.integer(n))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mangrove_graph::Numbers;
    use proptest::prelude::*;

    fn any_batch() -> impl Strategy<Value = Vec<Value>> {
        fn batch(one: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<Value>> {
            prop::collection::vec(one, 1..6)
        }
        let doubles = vec![0.0, -0.0, 0.1, -7.5, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        prop_oneof![
            batch(any::<i8>().prop_map(Value::I8)),
            batch(any::<i16>().prop_map(Value::I16)),
            batch(any::<i32>().prop_map(Value::I32)),
            batch((-9..9_i32).prop_map(Value::I32)),
            batch(prop_oneof![any::<i64>(), -9..9_i64].prop_map(Value::I64)),
            batch((-9..9_i16).prop_map(|n| Value::F32(f32::from(n) / 3.0))),
            batch(prop::sample::select(doubles).prop_map(Value::F64)),
        ]
    }

    /// Equality that tells the sign of zero and NaN apart.
    fn text(result: Result<Value>) -> String {
        format!("{result:?}")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn folding_arrays_is_folding_values(batches in prop::collection::vec(any_batch(), 1..5)) {
            for reduction in [Reduction::Sum, Reduction::Mean, Reduction::Min, Reduction::Max] {
                let kind = ReduceKind::Language(reduction);
                let (mut by_value, mut by_array) = (PartialReduction::new(kind), PartialReduction::new(kind));
                let one_by_one = batches.iter().flatten().try_for_each(|v| by_value.add(kind, v.clone(), 1));
                let at_once = batches.iter().try_for_each(|batch| {
                    let mut numbers = Numbers::default();
                    assert!(batch.iter().all(|value| numbers.push(0, value)));
                    fold(&mut by_array, kind, NumberSlice::of(&numbers).unwrap())
                });
                let mut one_by_one_of_arrays = PartialReduction::new(kind);
                let added = batches.iter().try_for_each(|batch| {
                    let mut numbers = Numbers::default();
                    assert!(batch.iter().all(|value| numbers.push(0, value)));
                    let numbers = NumberSlice::of(&numbers).unwrap();
                    (0..numbers.len()).try_for_each(|at| add_one(&mut one_by_one_of_arrays, kind, numbers, at, 1))
                });
                let one_by_one = text(one_by_one.and_then(|()| by_value.result()));
                prop_assert_eq!(&one_by_one, &text(added.and_then(|()| one_by_one_of_arrays.result())));
                prop_assert_eq!(
                    one_by_one,
                    text(at_once.and_then(|()| by_array.result())),
                    "{:?}", reduction
                );
            }
        }
    }
}
