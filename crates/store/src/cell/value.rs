//! Property values in columns: a tag byte and a word.
//!
//! Small values (booleans, integers, floats, characters, strings of at most eight bytes) live in the word itself. All
//! others live in the tablet's value region, a pool of write-once records, and the word is the number of the record.
//! Several values under one key, or one with meta-properties, are a single immutable [`MultiProperty`] in the region
//! that is replaced as a whole. So a column has one cell a vertex whatever the cardinality, and plain properties pay
//! nothing for the others.
//!
//! The region gives out content by the state of its record, at every access (RECLAIM-6): a number that was read late or
//! torn gets a whole record or none.

use std::sync::Arc;

use mangrove_graph::{KeyId, NumberType, Value};
use mangrove_reclaim::{Pin, RecordCell, Usage, epoch};
use smol_str::SmolStr;

use crate::memory::{Memory, Pool, RecordKind};

/// The content of a cell of a column: a tag and a word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RawCell {
    pub(crate) tag: u8,
    pub(crate) word: u64,
}

const BOOL: u8 = 1;
const I8: u8 = 2;
const I16: u8 = 3;
const I32: u8 = 4;
const I64: u8 = 5;
const F32: u8 = 6;
const F64: u8 = 7;
const CHAR: u8 = 8;
const SHORT_STRING: u8 = 9;
const POOLED: u8 = 10;
const MULTI: u8 = 11;
/// A string that fills the word: no byte is left for its length, so the tag says it.
const WORD_STRING: u8 = 12;

/// The longest string kept in a word with its length in the top byte.
const SHORT_STRING_MAX: usize = 7;

impl RawCell {
    /// No value.
    pub(crate) const ABSENT: RawCell = RawCell { tag: 0, word: 0 };

    /// Returns true if there is no value.
    pub(crate) fn is_absent(self) -> bool {
        self.tag == 0
    }

    /// Returns true if the value is a record of the value region.
    #[inline]
    pub(crate) fn is_record(self) -> bool {
        matches!(self.tag, POOLED | MULTI)
    }
}

/// The content of a cell, as far as tag and word have it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum CellKind {
    Absent,
    /// An integer of any width.
    Integer(i64),
    /// A float of either width.
    Float(f64),
    /// A string in the word, as [`packed_text`] packs it.
    ShortString,
    /// A record of the value region.
    Record,
    /// Anything else, in the word.
    Other,
}

impl RawCell {
    /// The content of the cell, without a look at the value region.
    #[inline]
    pub(crate) fn kind(self) -> CellKind {
        match self.tag {
            0 => CellKind::Absent,
            I8..=I64 => CellKind::Integer(self.word as i64),
            F32 => CellKind::Float(f64::from(f32::from_bits(self.word as u32))),
            F64 => CellKind::Float(f64::from_bits(self.word)),
            SHORT_STRING | WORD_STRING => CellKind::ShortString,
            POOLED | MULTI => CellKind::Record,
            _ => CellKind::Other,
        }
    }
}

impl RawCell {
    /// The value in the cell itself; `None` if the cell is absent or names a record.
    #[inline]
    pub(crate) fn inline_value(self) -> Option<Value> {
        let word = self.word;
        Some(match self.tag {
            BOOL => Value::Bool(word != 0),
            I8 => Value::I8(word as i8),
            I16 => Value::I16(word as i16),
            I32 => Value::I32(word as i32),
            I64 => Value::I64(word as i64),
            F32 => Value::F32(f32::from_bits(word as u32)),
            F64 => Value::F64(f64::from_bits(word)),
            CHAR => Value::Char(char::from_u32(word as u32)?),
            SHORT_STRING | WORD_STRING => Value::String(unpack_string(self)?),
            _ => return None,
        })
    }
}

/// The type of the numbers that cells with this tag hold; `None` if they hold no numbers.
#[inline]
pub(crate) fn number_type(tag: u8) -> Option<NumberType> {
    Some(match tag {
        I8 => NumberType::I8,
        I16 => NumberType::I16,
        I32 => NumberType::I32,
        I64 => NumberType::I64,
        F32 => NumberType::F32,
        F64 => NumberType::F64,
        _ => return None,
    })
}

/// The cell of a string that fits in a word. Equal cells are equal strings.
pub(crate) fn packed_text(text: &str) -> Option<RawCell> {
    let bytes = text.as_bytes();
    if let Ok(word) = bytes.try_into().map(u64::from_le_bytes) {
        return Some(RawCell { tag: WORD_STRING, word });
    }
    let mut word = [0; 8];
    word.get_mut(..SHORT_STRING_MAX)?.get_mut(..bytes.len())?.copy_from_slice(bytes);
    word[SHORT_STRING_MAX] = bytes.len() as u8;
    Some(RawCell { tag: SHORT_STRING, word: u64::from_le_bytes(word) })
}

/// One of several values under a key.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiValue {
    /// The number of the value under its key. Numbers are not given out again while the property lives.
    pub ordinal: u32,
    /// The value.
    pub value: Value,
    /// Meta-properties, in the order in which they were first set.
    pub meta: Arc<Vec<(KeyId, Value)>>,
}

/// All values of one vertex under one key, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MultiProperty {
    /// The values.
    pub values: Vec<MultiValue>,
}

/// A record of the value region.
#[derive(Debug)]
pub(crate) enum Pooled {
    Value(Value),
    Multi(Arc<MultiProperty>),
}

/// The content of a property, decoded.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// No value.
    Absent,
    /// One value without meta-properties.
    One(Value),
    /// Several values, or one with meta-properties.
    Multi(Arc<MultiProperty>),
}

/// The value region of a tablet.
#[derive(Debug)]
pub(crate) struct ValueRegion {
    pool: Pool<RecordCell<Pooled>, 6>,
}

impl ValueRegion {
    pub(crate) fn new() -> Self {
        ValueRegion { pool: Pool::new(RecordKind::Value) }
    }

    /// The cell for a value. The value goes into the region if it does not fit in a word.
    pub(crate) fn encode(&self, value: Value, memory: &Memory) -> RawCell {
        let (tag, word) = match &value {
            Value::Bool(v) => (BOOL, u64::from(*v)),
            Value::I8(v) => (I8, *v as u64),
            Value::I16(v) => (I16, *v as u64),
            Value::I32(v) => (I32, *v as u64),
            Value::I64(v) => (I64, *v as u64),
            Value::F32(v) => (F32, u64::from(v.to_bits())),
            Value::F64(v) => (F64, v.to_bits()),
            Value::Char(v) => (CHAR, u64::from(*v)),
            Value::String(text) => match packed_text(text) {
                Some(cell) => return cell,
                None => (POOLED, self.keep(Pooled::Value(value), memory)),
            },
            _ => (POOLED, self.keep(Pooled::Value(value), memory)),
        };
        RawCell { tag, word }
    }

    /// The cell for a content.
    pub(crate) fn encode_content(&self, content: Content, memory: &Memory) -> RawCell {
        match content {
            Content::Absent => RawCell::ABSENT,
            Content::One(value) => self.encode(value, memory),
            Content::Multi(multi) => RawCell { tag: MULTI, word: self.keep(Pooled::Multi(multi), memory) },
        }
    }

    /// The cell for several values.
    pub(crate) fn encode_multi(&self, multi: MultiProperty, memory: &Memory) -> RawCell {
        RawCell { tag: MULTI, word: self.keep(Pooled::Multi(Arc::new(multi)), memory) }
    }

    /// Puts a record into the region, and returns its number.
    fn keep(&self, record: Pooled, memory: &Memory) -> u64 {
        memory.add(RecordKind::Value, record.heap_bytes());
        let (index, cell) = self.pool.allocate(memory);
        cell.set(record);
        index
    }

    /// First step of giving back a record that no cell names: readers are refused its content. Returns false if the
    /// number names no full record.
    pub(crate) fn retire(&self, record: u64, memory: &Memory) -> bool {
        let pin = epoch::pin();
        let Some(cell) = self.pool.get(record) else { return false };
        let bytes = cell.get(&pin).map_or(0, Pooled::heap_bytes);
        let retired = cell.retire();
        if retired {
            memory.remove(RecordKind::Value, bytes);
        }
        retired
    }

    /// Second step: clears the record, which is then free.
    #[expect(unsafe_code, reason = "passes on the contract of RecordCell::clear")]
    pub(crate) unsafe fn clear(&self, record: u64) {
        // SAFETY: the caller makes the promise that `clear` asks for.
        if self.pool.get(record).and_then(|cell| unsafe { cell.clear() }).is_some() {
            self.pool.free(record);
        }
    }

    /// Records in use.
    pub(crate) fn usage(&self) -> Usage {
        self.pool.usage()
    }

    /// Starts loading the record that a cell names. Returns true if it names one.
    #[inline]
    pub(crate) fn prefetch(&self, cell: RawCell) -> bool {
        if let Some(record) = cell.is_record().then(|| self.pool.get(cell.word)).flatten() {
            mangrove_reclaim::prefetch::prefetch(record);
        }
        cell.is_record()
    }

    /// The content of a cell. A cell whose word is no content of its tag holds nothing. Only the builder of an index
    /// can meet such a cell, while its owner writes it. The owner then adds the value to the index itself.
    pub(crate) fn decode(&self, cell: RawCell) -> Content {
        self.decode_under(&epoch::pin(), cell)
    }

    /// As [`ValueRegion::decode`], under the caller's pin.
    pub(crate) fn decode_under(&self, pin: &Pin, cell: RawCell) -> Content {
        if !cell.is_record() {
            return cell.inline_value().map_or(Content::Absent, Content::One);
        }
        match self.pool.get(cell.word).and_then(|record| record.get(pin)) {
            Some(Pooled::Value(value)) => Content::One(value.clone()),
            Some(Pooled::Multi(multi)) => Content::Multi(multi.clone()),
            None => Content::Absent,
        }
    }

    /// Calls `each` with the values of a cell, without meta-properties.
    pub(crate) fn values(&self, cell: RawCell, each: impl FnMut(&Value)) {
        self.values_under(&epoch::pin(), cell, each);
    }

    /// As [`ValueRegion::values`], under the caller's pin.
    pub(crate) fn values_under(&self, pin: &Pin, cell: RawCell, mut each: impl FnMut(&Value)) {
        // A record is shown in place, since a copy may cost more than all the rest.
        if cell.is_record() {
            match self.pool.get(cell.word).and_then(|record| record.get(pin)) {
                Some(Pooled::Value(value)) => each(value),
                Some(Pooled::Multi(multi)) => multi.values.iter().for_each(|v| each(&v.value)),
                None => {}
            }
        } else if let Some(value) = cell.inline_value() {
            each(&value);
        }
    }

    /// The memory of the region in bytes: the pool, and the memory that its records own.
    pub(crate) fn bytes(&self) -> usize {
        let pin = epoch::pin();
        let heap = self.pool.iter().filter_map(|record| record.get(&pin)).map(Pooled::heap_bytes);
        self.pool.bytes() + heap.sum::<usize>()
    }
}

#[inline]
/// The string in a cell; `None` if the word is no string.
fn unpack_string(cell: RawCell) -> Option<SmolStr> {
    let bytes = cell.word.to_le_bytes();
    let text = match cell.tag {
        WORD_STRING => &bytes[..],
        _ => bytes[..SHORT_STRING_MAX].get(..usize::from(bytes[SHORT_STRING_MAX]))?,
    };
    mangrove_reclaim::text::utf8(text).map(SmolStr::new_inline)
}

impl Pooled {
    fn heap_bytes(&self) -> usize {
        match self {
            Pooled::Value(value) => heap_bytes(value),
            Pooled::Multi(multi) => {
                size_of::<MultiProperty>() + multi.values.iter().map(MultiValue::bytes).sum::<usize>()
            }
        }
    }
}

impl MultiValue {
    fn bytes(&self) -> usize {
        let meta: usize = self.meta.iter().map(|(_, v)| size_of::<(KeyId, Value)>() + heap_bytes(v)).sum();
        size_of::<MultiValue>() + heap_bytes(&self.value) + meta
    }
}

/// The heap memory of a value in bytes, besides its own 32. Shared content counts at each owner.
pub(crate) fn heap_bytes(value: &Value) -> usize {
    match value {
        Value::String(s) if s.is_heap_allocated() => s.len(),
        Value::Bytes(b) => b.len(),
        Value::F32Array(a) => size_of_val(&**a),
        Value::BigInt(n) => (n.bits() as usize).div_ceil(8),
        Value::Decimal(_) => 64,
        Value::List(v) | Value::Set(v) => v.iter().map(|v| size_of::<Value>() + heap_bytes(v)).sum(),
        Value::Map(m) => m.iter().map(|(k, v)| 2 * size_of::<Value>() + heap_bytes(k) + heap_bytes(v)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(value: Value) -> (RawCell, Value) {
        let memory = Memory::new(u64::MAX);
        let region = ValueRegion::new();
        let cell = region.encode(value, &memory);
        match region.decode(cell) {
            Content::One(value) => (cell, value),
            _ => panic!("{cell:?} is not one value"),
        }
    }

    #[test]
    fn values_come_back_as_they_were() {
        let inline = [
            Value::Bool(true),
            Value::I8(-1),
            Value::I16(i16::MIN),
            Value::I32(-7),
            Value::I64(i64::MIN),
            Value::F32(-0.5),
            Value::F64(f64::MAX),
            Value::Char('ß'),
            Value::from(""),
            Value::from("1234567"),
            Value::from("12345678"),
            Value::from("äöü\0\u{7}"),
        ];
        for value in inline {
            let (cell, back) = round_trip(value.clone());
            assert_eq!(back, value);
            assert_ne!(cell.tag, POOLED, "{value:?}");
        }
        for value in [Value::from("123456789"), Value::list(vec![Value::I32(1)]), Value::from("x".repeat(100))] {
            let (cell, back) = round_trip(value.clone());
            assert_eq!((back, cell.tag), (value, POOLED));
        }
    }

    #[test]
    fn a_word_that_fits_no_tag_is_nothing() {
        let region = ValueRegion::new();
        for cell in [
            RawCell { tag: POOLED, word: 77 },
            RawCell { tag: CHAR, word: 0xD800 },
            RawCell { tag: SHORT_STRING, word: u64::MAX },
            RawCell { tag: 200, word: 0 },
        ] {
            assert!(matches!(region.decode(cell), Content::Absent), "{cell:?}");
        }
    }
}
