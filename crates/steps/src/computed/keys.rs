//! What operators that sort and group take of their rows by themselves: the values of keys, as numbers where they are.
//!
//! `order().by("k")`, `groupCount().by("k")` and `group().by("k")` need a value a row and nothing of what a
//! `Modulate` operator is for. Where rows and state are on one node, these operators read the
//! key's column themselves ([`Taken::Keys`]), and a property that holds numbers of one type reaches them as an array
//! ([`KeyReader`]). [`KeyTable`] numbers the keys of groups without making values of those that fit a word.

use std::borrow::Cow;

use mangrove_graph::compare::Equivalent;
use mangrove_graph::{NumberType, Numbers, Result, Value};
use mangrove_plan::logical::Name;

use crate::computed::lookup::{compute_key, put_only};
use crate::context::execution::ExecutionContext;
use crate::limits::table::Table;
use crate::rows::{Column, ComputedColumn};

/// Where an operator's `by()` values come from.
#[derive(Clone, Debug, Default)]
pub(crate) enum Taken {
    /// From the computed columns of its rows, which an operator before has filled.
    #[default]
    Computed,
    /// From these keys of its rows' objects, one a `by()`.
    Keys(Vec<Name>),
}

impl Taken {
    /// The readers of the keys; none where there are computed columns.
    pub fn readers(self) -> Vec<KeyReader> {
        match self {
            Taken::Computed => Vec::new(),
            Taken::Keys(keys) => keys.into_iter().map(KeyReader::new).collect(),
        }
    }
}

/// Reads one key of the objects of batches.
pub(crate) struct KeyReader {
    key: Name,
    numbers: Numbers,
    /// Whether all batches of the run have held numbers so far: else nobody asks for them in vain again.
    holds_numbers: bool,
}

/// The value of each object.
pub(crate) enum Keys<'a> {
    /// A number each.
    Numbers(&'a Numbers),
    /// Anything, or nothing.
    Values(ComputedColumn),
}

impl KeyReader {
    /// Reads this key.
    pub fn new(key: Name) -> Self {
        KeyReader { key, numbers: Numbers::default(), holds_numbers: true }
    }

    /// Forgets what the values of a run were.
    pub fn recycle(&mut self) {
        self.holds_numbers = true;
    }

    /// The value of each object, of which none may have several.
    pub fn read(&mut self, objects: &Column, context: &ExecutionContext) -> Result<Keys<'_>> {
        if !self.holds_numbers || !self.read_numbers(objects, context)? {
            self.holds_numbers = false;
            return Ok(Keys::Values(compute_key(objects, &self.key, context)?));
        }
        let is_one_each = self.numbers.len() == objects.len() && (0..).zip(&self.numbers.row).all(|(n, row)| n == *row);
        if is_one_each {
            return Ok(Keys::Numbers(&self.numbers));
        }
        let mut column: ComputedColumn = vec![None; objects.len()];
        for (at, row) in self.numbers.row.iter().enumerate() {
            let value = self.numbers.value(at).expect("there is one for each row that is named");
            put_only(&mut column, *row as usize, value, &self.key)?;
        }
        Ok(Keys::Values(column))
    }

    fn read_numbers(&mut self, objects: &Column, context: &ExecutionContext) -> Result<bool> {
        self.numbers.clear();
        let view = &context.view;
        let Some(key) = view.key_of(&self.key) else { return Ok(false) };
        match objects {
            Column::Vertices(ids) => view.vertex_numbers(ids, key, &mut self.numbers),
            Column::Edges(ids) => view.edge_numbers(ids, key, &mut self.numbers),
            Column::Values(_) => Ok(false),
        }
    }
}

impl Keys<'_> {
    /// The value of a row, where it is if it is somewhere.
    pub fn value_ref(&self, row: usize) -> Option<Cow<'_, Value>> {
        match self {
            Keys::Numbers(numbers) => numbers.value(row).map(Cow::Owned),
            Keys::Values(column) => column[row].as_ref().map(Cow::Borrowed),
        }
    }

    /// The value of a row.
    pub fn value(&self, row: usize) -> Option<Value> {
        match self {
            Keys::Numbers(numbers) => numbers.value(row),
            Keys::Values(column) => column[row].clone(),
        }
    }

    /// The values of these rows.
    pub fn gather(&self, rows: &[u32]) -> ComputedColumn {
        rows.iter().map(|row| self.value(*row as usize)).collect()
    }

    /// The values of all rows.
    pub fn into_computed(self) -> ComputedColumn {
        match self {
            Keys::Numbers(numbers) => (0..numbers.len()).map(|row| numbers.value(row)).collect(),
            Keys::Values(column) => column,
        }
    }
}

/// A value that fits a word, and a number for its type: equal ones are equivalent values, and the other way round.
type Word = (u8, u64);

/// Types of words that are no numbers: a text of up to eight bytes; its length is added.
const TEXT: u8 = 16;

/// The word of a number of fixed width.
fn number_word(kind: NumberType, bits: u64) -> Word {
    (kind as u8, bits)
}

/// Equivalent floats have the same bits: there is one NaN, and one zero.
fn float_bits(number: f64) -> u64 {
    match number {
        n if n.is_nan() => f64::NAN.to_bits(),
        // Negative zero becomes the other.
        n => (n + 0.0).to_bits(),
    }
}

fn word_of(value: &Value) -> Option<Word> {
    Some(match value {
        Value::String(text) => {
            let mut word = [0; 8];
            word.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
            (TEXT + text.len() as u8, u64::from_le_bytes(word))
        }
        Value::F32(n) => number_word(NumberType::F32, float_bits(f64::from(*n))),
        Value::F64(n) => number_word(NumberType::F64, float_bits(*n)),
        other => number_word(NumberType::of(other)?, mangrove_graph::numeric::integer(other)? as u64),
    })
}

/// Numbers keys by instance, as they come: equivalent ones have the same number.
#[derive(Default)]
pub(crate) struct KeyTable {
    words: Table<(u32, Word), u32>,
    others: Table<(u32, Equivalent), u32>,
}

impl KeyTable {
    /// The number of a key of an instance; `new` is called for one that it is to have.
    pub fn number(&mut self, tag: u32, key: &Value, new: impl FnOnce(&Value) -> u32) -> u32 {
        match word_of(key) {
            Some(word) => *self.words.get_or_insert_with((tag, word), || new(key)).0,
            None => *self.others.get_or_insert_with((tag, Equivalent(key.clone())), || new(key)).0,
        }
    }

    /// As [`KeyTable::number`], for every one of a batch's numbers; `each` is shown row and number.
    pub fn number_all(
        &mut self,
        numbers: &Numbers,
        tag: impl Fn(usize) -> u32,
        mut new: impl FnMut(u32, Value) -> u32,
        mut each: impl FnMut(usize, u32),
    ) {
        let Some(kind) = numbers.kind else { return };
        let mut place = |row: usize, bits: u64, value: &dyn Fn() -> Value| {
            let tag = tag(row);
            let (place, _) = self.words.get_or_insert_with((tag, number_word(kind, bits)), || new(tag, value()));
            each(row, *place);
        };
        if kind.is_float() {
            let numbers = numbers.floats.iter().enumerate();
            numbers.for_each(|(row, n)| place(row, float_bits(*n), &|| kind.float(*n)));
        } else {
            let numbers = numbers.integers.iter().enumerate();
            numbers.for_each(|(row, n)| place(row, *n as u64, &|| kind.integer(*n)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_view::{context_of, modern};
    use mangrove_graph::compare::watched;
    use proptest::prelude::*;

    fn any_key() -> impl Strategy<Value = Value> {
        let floats = vec![0.0, -0.0, 1.0, f64::NAN, -f64::NAN, f64::INFINITY];
        prop_oneof![
            (-1..2_i8).prop_map(Value::I8),
            (-1..2_i32).prop_map(Value::I32),
            (-1..2_i64).prop_map(Value::I64),
            prop::sample::select(floats.clone()).prop_map(Value::F64),
            prop::sample::select(floats).prop_map(|n| Value::F32(n as f32)),
            "[ab\0]{0,3}".prop_map(Value::from),
            "[ab]{7,9}".prop_map(Value::from),
            Just(Value::Bool(true)),
            Just(Value::Null),
            Just(Value::Char('a')),
            Just(Value::list(vec![1.into()])),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn keys_have_one_place_if_they_are_equivalent(keys in prop::collection::vec((0..2_u32, any_key()), 0..12)) {
            let mut table = KeyTable::default();
            let mut count = 0;
            let mut next = || {
                count += 1;
                count - 1
            };
            let by_value: Vec<u32> = keys.iter().map(|(tag, key)| table.number(*tag, key, |_| next())).collect();
            for (at, (tag, key)) in keys.iter().enumerate() {
                for (other, (other_tag, other_key)) in keys.iter().enumerate() {
                    let same = tag == other_tag && watched::equivalent(key, other_key);
                    prop_assert_eq!(by_value[at] == by_value[other], same, "{:?} {:?}", key, other_key);
                }
                // A number in an array is the same key.
                let mut numbers = Numbers::default();
                if numbers.push(0, key) {
                    let mut found = Vec::new();
                    table.number_all(&numbers, |_| *tag, |_, _| u32::MAX, |row, place| found.push((row, place)));
                    prop_assert_eq!(found, vec![(0, by_value[at])]);
                }
            }
        }
    }

    #[test]
    fn a_column_of_numbers_with_gaps_is_no_array() {
        let g = modern();
        let context = context_of(&g);
        let mut age = KeyReader::new("age".into());
        let people = Column::Vertices(vec![g.josh, g.marko]);
        assert!(matches!(age.read(&people, &context).unwrap(), Keys::Numbers(n) if n.integers == [32, 29]));
        let all = Column::Vertices(vec![g.josh, g.lop, g.marko]);
        let column = age.read(&all, &context).unwrap().into_computed();
        assert_eq!(column, vec![Some(32.into()), None, Some(29.into())]);
        let mut name = KeyReader::new("name".into());
        assert_eq!(name.read(&all, &context).unwrap().gather(&[2, 0]), vec![Some("marko".into()), Some("josh".into())]);
        assert!(KeyReader::new("nick".into()).read(&all, &context).is_err(), "marko has two");
        assert!(KeyReader::new("age".into()).read(&Column::Values(vec![1.into()]), &context).is_err());
    }
}
