//! Keys that operators read themselves, instead of from a computed column.
//!
//! `order().by("k")`, `groupCount().by("k")` and `group().by("k")` need one value for each row and no pipeline. If rows
//! and state are on one node, these operators read the column of the key ([`KeySource::Objects`]), and a property that
//! holds numbers of one type reaches them as an array ([`KeyReader`]). [`KeyTable`] numbers the keys of groups without
//! making values of keys that fit into a word.

use std::borrow::Cow;

use mangrove_graph::compare::Equivalent;
use mangrove_graph::{KeyId, Need, NumberType, Numbers, Result, Value};
use mangrove_plan::logical::Name;
use mangrove_plan::physical::Degree;

use crate::computed::degrees::DegreeReader;
use crate::computed::lookup::{compute_key, put_only};
use crate::context::execution::ExecutionContext;
use crate::limits::table::PartitionedTable;
use crate::rows::{ComputedColumn, NumberSlice, ObjectColumn, Rows, needs};

/// The source of an operator's `by()` values.
#[derive(Clone, Debug, Default)]
pub(crate) enum KeySource {
    /// From computed columns, which an earlier operator has filled.
    #[default]
    Computed,
    /// From the objects, one for each `by()`.
    Objects(Vec<KeyPart>),
}

/// The part of an object that is a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyPart {
    /// The object itself.
    Object,
    /// The value under a name.
    Value(Name),
    /// The degree of a vertex.
    Degree(Degree),
}

impl KeySource {
    /// Returns the readers of the keys; none if there are computed columns.
    pub fn readers(self) -> Vec<KeyReader> {
        match self {
            KeySource::Computed => Vec::new(),
            KeySource::Objects(keys) => keys.into_iter().map(KeyReader::new).collect(),
        }
    }
}

/// Reads one key of the objects of batches.
pub(crate) struct KeyReader {
    part: PartReader,
    numbers: Numbers,
    /// True if all batches of the run have held numbers so far. Otherwise numbers are not tried again.
    holds_numbers: bool,
}

/// A [`KeyPart`] that can be read.
enum PartReader {
    Object,
    Value(Name),
    Degree(DegreeReader),
}

/// The values that a [`KeyReader`] read, one for each object.
pub(crate) enum KeyValues<'a> {
    /// A number for each object.
    Numbers(NumberSlice<'a>),
    /// The objects themselves.
    Objects(&'a ObjectColumn),
    /// Any value for each object, or none.
    Values(ComputedColumn),
}

impl KeyReader {
    pub fn new(part: KeyPart) -> Self {
        let part = match part {
            KeyPart::Object => PartReader::Object,
            KeyPart::Value(key) => PartReader::Value(key),
            KeyPart::Degree(degree) => PartReader::Degree(DegreeReader::new(&degree)),
        };
        KeyReader { part, numbers: Numbers::default(), holds_numbers: true }
    }

    /// Returns what these readers read of a batch: nothing if its keys are computed already.
    pub fn needs<'a>(readers: &mut [KeyReader], rows: &'a Rows, context: &ExecutionContext) -> Need<'a> {
        if !rows.computed.is_empty() {
            return Need::Nothing;
        }
        let mut keys: Vec<KeyId> = Vec::new();
        let mut all = Vec::new();
        for reader in readers {
            match &mut reader.part {
                PartReader::Object => {}
                PartReader::Value(name) => keys.extend(context.view.key_of(name)),
                PartReader::Degree(degrees) => all.push(degrees.needs(&rows.objects, 0, context)),
            }
        }
        if !keys.is_empty() {
            all.push(needs::values(&rows.objects, 0, Some(keys)));
        }
        Need::all(all)
    }

    /// Ends a run.
    pub fn recycle(&mut self) {
        self.holds_numbers = true;
    }

    /// Reads the value of each object. Fails if one has several.
    pub fn read<'a>(&'a mut self, objects: &'a ObjectColumn, context: &ExecutionContext) -> Result<KeyValues<'a>> {
        let key = match &mut self.part {
            PartReader::Object => {
                return Ok(objects.numbers().map_or(KeyValues::Objects(objects), KeyValues::Numbers));
            }
            PartReader::Degree(degrees) => {
                degrees.read_integers(objects, context, &mut self.numbers.integers)?;
                let numbers = NumberSlice::Integers(NumberType::I64, &self.numbers.integers);
                return Ok(KeyValues::Numbers(numbers));
            }
            PartReader::Value(key) => key,
        };
        if !self.holds_numbers || !read_numbers(objects, key, context, &mut self.numbers)? {
            self.holds_numbers = false;
            return Ok(KeyValues::Values(compute_key(objects, key, context)?));
        }
        let is_one_each = self.numbers.len() == objects.len() && (0..).zip(&self.numbers.row).all(|(n, row)| n == *row);
        if let (true, Some(numbers)) = (is_one_each, NumberSlice::of(&self.numbers)) {
            return Ok(KeyValues::Numbers(numbers));
        }
        let mut column: ComputedColumn = vec![None; objects.len()];
        for (at, row) in self.numbers.row.iter().enumerate() {
            let value = self.numbers.value(at).expect("there is one for each row that is named");
            put_only(&mut column, *row as usize, value, key)?;
        }
        Ok(KeyValues::Values(column))
    }
}

/// Reads a key of the objects as numbers. Returns false if it has other values, or if there are other objects than
/// vertices only or edges only.
pub(crate) fn read_numbers(
    objects: &ObjectColumn,
    key: &Name,
    context: &ExecutionContext,
    numbers: &mut Numbers,
) -> Result<bool> {
    numbers.clear();
    let view = &context.view;
    let Some(key) = view.key_of(key) else { return Ok(false) };
    match objects {
        ObjectColumn::Vertices(ids) => view.vertex_numbers(ids, key, numbers),
        ObjectColumn::Edges(ids) => view.edge_numbers(ids, key, numbers),
        // Elements in a mixed column are read kind by kind.
        ObjectColumn::Numbers(_) | ObjectColumn::Values(_) => Ok(false),
    }
}

impl KeyValues<'_> {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            KeyValues::Numbers(numbers) => numbers.len(),
            KeyValues::Objects(objects) => objects.len(),
            KeyValues::Values(column) => column.len(),
        }
    }

    /// Returns the value of a row by reference, if it is in memory.
    pub fn value_ref(&self, row: usize) -> Option<Cow<'_, Value>> {
        match self {
            KeyValues::Numbers(numbers) => Some(Cow::Owned(numbers.value(row))),
            KeyValues::Objects(objects) => Some(match objects.values() {
                [] => Cow::Owned(objects.get(row)),
                values => Cow::Borrowed(&values[row]),
            }),
            KeyValues::Values(column) => column[row].as_ref().map(Cow::Borrowed),
        }
    }

    /// Returns the value of a row.
    pub fn value(&self, row: usize) -> Option<Value> {
        match self {
            KeyValues::Numbers(numbers) => Some(numbers.value(row)),
            KeyValues::Objects(objects) => Some(objects.get(row)),
            KeyValues::Values(column) => column[row].clone(),
        }
    }

    /// Returns the values of these rows.
    pub fn gather(&self, rows: &[u32]) -> ComputedColumn {
        rows.iter().map(|row| self.value(*row as usize)).collect()
    }

    /// Returns the values of all rows.
    pub fn into_computed(self) -> ComputedColumn {
        match self {
            KeyValues::Numbers(numbers) => numbers.values().map(Some).collect(),
            KeyValues::Objects(objects) => (0..objects.len()).map(|row| Some(objects.get(row))).collect(),
            KeyValues::Values(column) => column,
        }
    }
}

/// A value that fits into a word, with a number for its type. Two are equal if and only if their values are equivalent.
pub(crate) type KeyWord = (u8, u64);

/// The type of words that are texts of up to eight bytes; the length is added.
const TEXT: u8 = 16;

/// Returns the word of a number of fixed width.
fn typed_word(kind: NumberType, bits: u64) -> KeyWord {
    (kind as u8, bits)
}

/// Returns the word of a number of a column.
pub(crate) fn number_word(numbers: NumberSlice<'_>, row: usize) -> KeyWord {
    match numbers {
        NumberSlice::Integers(kind, numbers) => typed_word(kind, numbers[row] as u64),
        NumberSlice::Floats(kind, numbers) => typed_word(kind, float_bits(numbers[row])),
    }
}

/// Returns the bits of a float, made equal for all NaNs and for both zeros, so that equivalent floats have equal bits.
fn float_bits(number: f64) -> u64 {
    match number {
        n if n.is_nan() => f64::NAN.to_bits(),
        // Negative zero becomes positive zero.
        n => (n + 0.0).to_bits(),
    }
}

/// Returns the word of a value, if it has one.
pub(crate) fn word_of(value: &Value) -> Option<KeyWord> {
    Some(match value {
        Value::String(text) => {
            let mut word = [0; 8];
            word.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
            (TEXT + text.len() as u8, u64::from_le_bytes(word))
        }
        Value::F32(n) => typed_word(NumberType::F32, float_bits(f64::from(*n))),
        Value::F64(n) => typed_word(NumberType::F64, float_bits(*n)),
        other => typed_word(NumberType::of(other)?, mangrove_graph::numeric::integer(other)? as u64),
    })
}

/// Numbers the keys of each instance in the order in which they come. Equivalent keys have one number.
#[derive(Default)]
pub(crate) struct KeyTable {
    words: PartitionedTable<(u32, KeyWord), u32>,
    others: PartitionedTable<(u32, Equivalent), u32>,
}

impl KeyTable {
    /// Returns the number of a key of an instance. `new` gives the number of a new key.
    pub fn number(&mut self, tag: u32, key: &Value, new: impl FnOnce(&Value) -> u32) -> u32 {
        match word_of(key) {
            Some(word) => *self.words.get_or_insert_with((tag, word), || new(key)).0,
            None => *self.others.get_or_insert_with((tag, Equivalent(key.clone())), || new(key)).0,
        }
    }

    /// As [`KeyTable::number`], for all numbers of a batch. `each` gets the row and the number.
    pub fn number_all(
        &mut self,
        numbers: NumberSlice<'_>,
        tag: impl Fn(usize) -> u32,
        mut new: impl FnMut(u32, Value) -> u32,
        mut each: impl FnMut(usize, u32),
    ) {
        let kind = numbers.kind();
        let mut number = |row: usize, bits: u64, value: &dyn Fn() -> Value| {
            let tag = tag(row);
            let (found, _) = self.words.get_or_insert_with((tag, typed_word(kind, bits)), || new(tag, value()));
            each(row, *found);
        };
        match numbers {
            NumberSlice::Floats(_, numbers) => {
                let numbers = numbers.iter().enumerate();
                numbers.for_each(|(row, n)| number(row, float_bits(*n), &|| kind.float(*n)));
            }
            NumberSlice::Integers(_, numbers) => {
                let numbers = numbers.iter().enumerate();
                numbers.for_each(|(row, n)| number(row, *n as u64, &|| kind.integer(*n)));
            }
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
        fn keys_have_one_number_if_they_are_equivalent(keys in prop::collection::vec((0..2_u32, any_key()), 0..12)) {
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
                    let numbers = NumberSlice::of(&numbers).unwrap();
                    table.number_all(numbers, |_| *tag, |_, _| u32::MAX, |row, number| found.push((row, number)));
                    prop_assert_eq!(found, vec![(0, by_value[at])]);
                }
            }
        }
    }

    #[test]
    fn a_column_of_numbers_with_gaps_is_no_array() {
        let g = modern();
        let context = context_of(&g);
        let mut age = KeyReader::new(KeyPart::Value("age".into()));
        let people = ObjectColumn::Vertices(vec![g.josh, g.marko]);
        assert!(matches!(age.read(&people, &context).unwrap(), KeyValues::Numbers(NumberSlice::Integers(_, [32, 29]))));
        let all = ObjectColumn::Vertices(vec![g.josh, g.lop, g.marko]);
        let column = age.read(&all, &context).unwrap().into_computed();
        assert_eq!(column, vec![Some(32.into()), None, Some(29.into())]);
        let mut name = KeyReader::new(KeyPart::Value("name".into()));
        assert_eq!(name.read(&all, &context).unwrap().gather(&[2, 0]), vec![Some("marko".into()), Some("josh".into())]);
        let mut nick = KeyReader::new(KeyPart::Value("nick".into()));
        assert!(nick.read(&all, &context).is_err(), "marko has two");
        assert!(age.read(&ObjectColumn::Values(vec![1.into()]), &context).is_err());
    }
}
