//! What `dedup()` compares of a row: its object, or its computed columns.
//!
//! A [`RowKey`] borrows it from the row. A set looks it up so, and makes a [`SeenKey`] of it only if it is new.

use std::hash::{Hash, Hasher};

use mangrove_graph::Value;
use mangrove_graph::compare::{Equivalent, watched};

use crate::computed::keys::{KeyWord, number_word, word_of};
use crate::limits::sizes::Sizes;
use crate::rows::{ObjectColumn, Rows};

/// The compared value of a row that was let through.
#[derive(PartialEq, Eq)]
pub(super) enum SeenKey {
    Vertex(u64),
    Edge(u64),
    /// A value that fits into a word.
    Word(KeyWord),
    Value(Equivalent),
    /// The values of several columns.
    Values(Vec<Equivalent>),
}

impl Hash for SeenKey {
    /// The same as for the [`RowKey`] that the key was made of.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            SeenKey::Vertex(bits) => RowKey::Vertex(*bits).hash(state),
            SeenKey::Edge(bits) => RowKey::Edge(*bits).hash(state),
            SeenKey::Word(word) => RowKey::Word(*word).hash(state),
            SeenKey::Value(value) => RowKey::Value(&value.0).hash(state),
            SeenKey::Values(values) => values.iter().for_each(|value| value.hash(state)),
        }
    }
}

/// The compared value of a row, borrowed from it.
#[derive(Clone, Copy)]
pub(super) enum RowKey<'a> {
    Vertex(u64),
    Edge(u64),
    Word(KeyWord),
    /// Any other value.
    Value(&'a Value),
    /// The first of the computed columns of a row: two or more, each of which has a value.
    Columns {
        rows: &'a Rows,
        row: usize,
        columns: usize,
    },
}

impl Hash for RowKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            RowKey::Vertex(bits) | RowKey::Edge(bits) => bits.hash(state),
            RowKey::Word(word) => word.hash(state),
            RowKey::Value(value) => watched::hash_equivalent(value, state),
            RowKey::Columns { rows, row, columns } => {
                values(rows, *row, *columns).for_each(|value| watched::hash_equivalent(value, state));
            }
        }
    }
}

/// Returns the values of the first computed columns of a row.
fn values(rows: &Rows, row: usize, columns: usize) -> impl Iterator<Item = &Value> {
    (0..columns).filter_map(move |column| rows.computed_value(column, row))
}

/// A text of at most this many bytes is short.
const SHORT_TEXT_BYTES: usize = 64;

impl<'a> RowKey<'a> {
    /// Returns the key of a row: that of its first `computed` columns, or of its object if `computed` is 0. Returns
    /// `None` if a column has no value, because a `by()` was unproductive.
    pub fn of(rows: &'a Rows, row: usize, computed: usize) -> Option<Self> {
        match (computed, &rows.objects) {
            (0, ObjectColumn::Vertices(ids)) => Some(RowKey::Vertex(ids[row].to_bits())),
            (0, ObjectColumn::Edges(ids)) => Some(RowKey::Edge(ids[row].to_bits())),
            (0, ObjectColumn::Numbers(numbers)) => Some(RowKey::Word(number_word(numbers.slice(), row))),
            (0, ObjectColumn::Values(values)) => Some(RowKey::of_value(&values[row])),
            (1, _) => rows.computed_value(0, row).map(RowKey::of_value),
            (columns, _) => {
                let is_complete = values(rows, row, columns).count() == columns;
                is_complete.then_some(RowKey::Columns { rows, row, columns })
            }
        }
    }

    /// A stream may bring the same vertex in a column of vertices and in a mixed one, so both have the same key.
    fn of_value(value: &'a Value) -> Self {
        match value {
            Value::Vertex(id) => RowKey::Vertex(id.to_bits()),
            Value::Edge(id) => RowKey::Edge(id.to_bits()),
            other => word_of(other).map_or(RowKey::Value(other), RowKey::Word),
        }
    }

    /// Returns true if this is the key of equal rows.
    pub fn is(&self, key: &SeenKey) -> bool {
        match (self, key) {
            (RowKey::Vertex(bits), SeenKey::Vertex(known)) | (RowKey::Edge(bits), SeenKey::Edge(known)) => {
                bits == known
            }
            (RowKey::Word(word), SeenKey::Word(known)) => word == known,
            (RowKey::Value(value), SeenKey::Value(known)) => watched::equivalent(value, &known.0),
            (RowKey::Columns { rows, row, columns }, SeenKey::Values(known)) => {
                *columns == known.len()
                    && values(rows, *row, *columns)
                        .zip(known)
                        .all(|(value, known)| watched::equivalent(value, &known.0))
            }
            _ => false,
        }
    }

    /// Returns a key that owns its values.
    pub fn to_seen(self) -> SeenKey {
        match self {
            RowKey::Vertex(bits) => SeenKey::Vertex(bits),
            RowKey::Edge(bits) => SeenKey::Edge(bits),
            RowKey::Word(word) => SeenKey::Word(word),
            RowKey::Value(value) => SeenKey::Value(Equivalent(value.clone())),
            RowKey::Columns { rows, row, columns } => {
                SeenKey::Values(values(rows, row, columns).cloned().map(Equivalent).collect())
            }
        }
    }

    /// Returns the bytes that the key will point to. A set measures it before it holds the key, too.
    pub fn held_bytes(&self, sizes: &mut Sizes) -> u64 {
        match self {
            RowKey::Vertex(_) | RowKey::Edge(_) | RowKey::Word(_) => 0,
            RowKey::Value(value) => sizes.pointed_to(value) as u64,
            RowKey::Columns { rows, row, columns } => sizes.all(values(rows, *row, *columns)) as u64,
        }
    }

    /// Returns true if the key points to few bytes. Then it is soon compared, too.
    pub fn is_short(&self) -> bool {
        match self {
            RowKey::Vertex(_) | RowKey::Edge(_) | RowKey::Word(_) => true,
            RowKey::Value(value) => is_short(value),
            RowKey::Columns { rows, row, columns } => values(rows, *row, *columns).all(is_short),
        }
    }
}

/// Returns true if a value points to few bytes.
fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= SHORT_TEXT_BYTES,
        Value::Null | Value::Bool(_) | Value::Char(_) | Value::Uuid(_) | Value::DateTime(_) | Value::Duration(_) => {
            true
        }
        Value::Vertex(_) | Value::Edge(_) => true,
        number => word_of(number).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use foldhash::fast::RandomState;
    use mangrove_graph::{TabletId, VertexId};
    use proptest::prelude::*;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            (0..2_i64).prop_map(Value::I64),
            prop::sample::select(vec![0.0, -0.0, f64::NAN]).prop_map(Value::F64),
            "[ab]{7,9}".prop_map(Value::from),
            (0..2_usize).prop_map(|n| Value::from("a".repeat(SHORT_TEXT_BYTES + n))),
            Just(Value::Null),
            (0..2_u64).prop_map(|slot| Value::Vertex(VertexId::new(TabletId(0), slot))),
            (0..2_i64).prop_map(|n| Value::list(vec![n.into()])),
        ]
    }

    proptest! {
        /// A borrowed key and a made one agree in what they equal and in their hash.
        #[test]
        fn a_borrowed_key_is_the_key(
            rows in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.9, any_value()), 3), 2..12),
            computed in 0..=3_usize,
        ) {
            let objects = rows.iter().map(|columns| columns[0].clone().unwrap_or(Value::Null)).collect();
            let mut batch = Rows::of(ObjectColumn::Values(objects));
            batch.computed = (0..3).map(|column| rows.iter().map(|row| row[column].clone()).collect()).collect();
            let hasher = RandomState::default();
            let compared = |row: usize| match computed {
                0 => Some(vec![batch.object(row)]),
                columns => rows[row][..columns].iter().cloned().collect::<Option<Vec<Value>>>(),
            };
            for a in 0..rows.len() {
                let (key, values) = (RowKey::of(&batch, a, computed), compared(a));
                prop_assert_eq!(key.is_some(), values.is_some());
                let (Some(key), Some(values)) = (key, values) else { continue };
                let seen = key.to_seen();
                prop_assert_eq!(hasher.hash_one(key), hasher.hash_one(&seen));
                for b in 0..rows.len() {
                    let (Some(other), Some(others)) = (RowKey::of(&batch, b, computed), compared(b)) else { continue };
                    let is_same = values.iter().zip(&others).all(|(a, b)| watched::equivalent(a, b));
                    prop_assert_eq!(other.is(&seen), is_same);
                    prop_assert_eq!(other.to_seen() == seen, is_same);
                }
            }
        }
    }
}
