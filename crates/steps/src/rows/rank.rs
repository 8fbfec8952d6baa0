//! The order of rows by a value: of the instances of a scope that they open, under `with("policy", "by age")`.
//!
//! A value orders instances as `order()` orders it. Instances without the value are last, also in descending order. So
//! are those with null or a collection in its place: the values that are compared have the size of a property, and a
//! comparison takes little time.

use std::cmp::Ordering;

use mangrove_graph::Value;
use mangrove_graph::compare::{is_number, order};

use crate::limits::sizes::Sizes;
use crate::rows::batch::Rows;

/// The place of an instance among those of its scope.
#[derive(Clone, Debug)]
pub enum Rank {
    /// The smallest value is first.
    Ascending(Value),
    /// The largest value is first.
    Descending(Value),
    /// There is no value.
    Last,
}

impl Rank {
    /// Returns the bytes that it holds.
    pub fn bytes(&self) -> usize {
        match self {
            Rank::Ascending(value) | Rank::Descending(value) => size_of::<Rank>() + Sizes::default().pointed_to(value),
            Rank::Last => size_of::<Rank>(),
        }
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Rank::Ascending(a), Rank::Ascending(b)) => order(a, b),
            (Rank::Descending(a), Rank::Descending(b)) => order(b, a),
            (Rank::Last, Rank::Last) => Ordering::Equal,
            // The ranks of a scope have one direction.
            (_, Rank::Last) | (Rank::Ascending(_), Rank::Descending(_)) => Ordering::Less,
            (Rank::Last, _) | (Rank::Descending(_), Rank::Ascending(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rank {}

/// The value that orders the instances of a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priority {
    /// True if it is the sack of the row. Otherwise it is in a computed column, which the operator names.
    pub is_sack: bool,
    /// True if the instance with the largest value is first.
    pub descending: bool,
}

impl Priority {
    /// Returns the rank of each row.
    pub fn ranks(self, rows: &Rows, column: usize) -> Vec<Rank> {
        let value = |row: usize| match self.is_sack {
            true => rows.sacks.as_ref().and_then(|sacks| sacks.get(row)),
            false => rows.computed_value(column, row),
        };
        let rank = |row: usize| match value(row).filter(|value| is_single(value)) {
            None => Rank::Last,
            Some(value) if self.descending => Rank::Descending(value.clone()),
            Some(value) => Rank::Ascending(value.clone()),
        };
        (0..rows.len()).map(rank).collect()
    }
}

/// Returns true if a value is a single one: no null, collection or element.
fn is_single(value: &Value) -> bool {
    is_number(value)
        || matches!(
            value,
            Value::Bool(_)
                | Value::Char(_)
                | Value::String(_)
                | Value::Bytes(_)
                | Value::Uuid(_)
                | Value::DateTime(_)
                | Value::Duration(_)
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::ObjectColumn;

    fn ranks(values: &[Option<Value>], descending: bool) -> Vec<Rank> {
        let mut rows = Rows::of(ObjectColumn::Values(vec![Value::Null; values.len()]));
        rows.computed = vec![vec![], values.to_vec()];
        Priority { is_sack: false, descending }.ranks(&rows, 1)
    }

    fn order_of(values: &[Option<Value>], descending: bool) -> Vec<usize> {
        let mut ranked: Vec<(Rank, usize)> = ranks(values, descending).into_iter().zip(0..).collect();
        ranked.sort();
        ranked.into_iter().map(|(_, row)| row).collect()
    }

    #[test]
    fn values_are_ordered_as_order_does_and_what_has_none_is_last() {
        let nan = Some(Value::F64(f64::NAN));
        let list = Some(Value::list(vec![Value::I32(0)]));
        let values =
            [None, Some(Value::from("b")), Some(2.into()), list, Some(Value::F64(1.5)), Some(Value::Null), nan];
        assert_eq!(order_of(&values, false), [4, 2, 6, 1, 0, 3, 5]);
        assert_eq!(order_of(&values, true), [1, 6, 2, 4, 0, 3, 5]);
    }

    #[test]
    fn equal_values_have_equal_ranks() {
        let equal = ranks(&[Some(Value::I32(1)), Some(Value::F64(1.0))], true);
        assert_eq!(equal[0], equal[1]);
        let last = ranks(&[None, Some(Value::Null)], false);
        assert_eq!(last[0], last[1]);
    }

    #[test]
    fn the_sack_orders_rows() {
        let mut rows = Rows::of(ObjectColumn::Values(vec![Value::Null; 2]));
        rows.sacks = Some(vec![Value::I32(2), Value::I32(1)]);
        let ranks = Priority { is_sack: true, descending: false }.ranks(&rows, 0);
        assert!(ranks[1] < ranks[0]);
    }
}
