//! The values of a column as bytes, and the smallest and the largest of them.
//!
//! | type | values | a value |
//! |---|---|---|
//! | 1 | booleans | a byte |
//! | 2, 3 | integers of 32, 64 bits | a signed varint |
//! | 4, 8 | floating point of 64, 32 bits | 8, 4 bytes |
//! | 5 | texts | text |
//! | 6 | of any types | content of a key |
//! | 7 | texts, of which at most 256 differ | count and texts that occur, in the order of their first place; then a byte for each value: the number of its text |
//! | 9 | UUIDs | 16 bytes |
//!
//! Images of version 1 have types 1 to 6.

use hashbrown::HashMap;
use mangrove_store::Content;
use mangrove_store::image::ColumnValues;
use smol_str::SmolStr;
use uuid::Uuid;

use super::slots::read_list;
use crate::codec::{Malformed, Reader, put_content, put_signed, put_text, put_varint, read_content};

const BOOL: u8 = 1;
const I32: u8 = 2;
const I64: u8 = 3;
const F64: u8 = 4;
const STRING: u8 = 5;
const ANY: u8 = 6;
const DICTIONARY: u8 = 7;
const F32: u8 = 8;
const UUID: u8 = 9;

/// Texts that a dictionary has at most: the number of a text is a byte.
const DICTIONARY_MAX: usize = 256;

/// The types that an image may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Types {
    /// Those of version 1.
    First,
    /// All.
    All,
}

impl Types {
    /// Reads the type of a column.
    pub(super) fn read(self, reader: &mut Reader<'_>) -> Result<u8, Malformed> {
        let unknown = reader.malformed("a column of an unknown type");
        match (self, reader.byte()?) {
            (_, tag @ BOOL..=ANY) | (Types::All, tag @ DICTIONARY..=UUID) => Ok(tag),
            _ => Err(unknown),
        }
    }
}

/// Appends the values and returns their type.
pub(super) fn put_values(values: &ColumnValues, out: &mut Vec<u8>) -> u8 {
    match values {
        ColumnValues::Bool(v) => {
            v.iter().for_each(|&value| out.push(u8::from(value)));
            BOOL
        }
        ColumnValues::I32(v) => {
            v.iter().for_each(|&value| put_signed(i64::from(value), out));
            I32
        }
        ColumnValues::I64(v) => {
            v.iter().for_each(|&value| put_signed(value, out));
            I64
        }
        ColumnValues::F32(v) => {
            v.iter().for_each(|&value| out.extend_from_slice(&value.to_bits().to_le_bytes()));
            F32
        }
        ColumnValues::F64(v) => {
            v.iter().for_each(|&value| out.extend_from_slice(&value.to_bits().to_le_bytes()));
            F64
        }
        ColumnValues::Uuid(v) => {
            v.iter().for_each(|value| out.extend_from_slice(value.as_bytes()));
            UUID
        }
        ColumnValues::String(v) if put_dictionary(v, out) => DICTIONARY,
        ColumnValues::String(v) => {
            v.iter().for_each(|value| put_text(value, out));
            STRING
        }
        ColumnValues::Any(v) => {
            v.iter().for_each(|value| put_content(value, out));
            ANY
        }
    }
}

/// Appends texts as a dictionary, if that is shorter; otherwise nothing.
fn put_dictionary(values: &[SmolStr], out: &mut Vec<u8>) -> bool {
    let (mut numbers, mut texts, mut bytes) = (HashMap::new(), Vec::new(), 0);
    let mut places = Vec::with_capacity(values.len());
    for value in values {
        let number = *numbers.entry(value.as_str()).or_insert_with(|| {
            texts.push(value);
            bytes += value.len() + 1;
            texts.len() - 1
        });
        if texts.len() > DICTIONARY_MAX {
            return false;
        }
        places.push(number as u8);
    }
    let plain: usize = values.iter().map(|value| value.len() + 1).sum();
    if bytes + places.len() >= plain {
        return false;
    }
    put_varint(texts.len() as u64, out);
    texts.iter().for_each(|text| put_text(text, out));
    out.extend_from_slice(&places);
    true
}

/// Reads `count` values of a type from [`Types::read`].
pub(super) fn read_values(tag: u8, count: usize, reader: &mut Reader<'_>) -> Result<ColumnValues, Malformed> {
    Ok(match tag {
        BOOL => ColumnValues::Bool(reader.take(count)?.iter().map(|&byte| byte != 0).collect()),
        I32 => {
            let wide = reader.malformed("an integer too large for its type");
            ColumnValues::I32(read_list(reader, count, |reader| i32::try_from(reader.signed()?).map_err(|_| wide))?)
        }
        I64 => ColumnValues::I64(read_list(reader, count, |reader| reader.signed())?),
        F32 => ColumnValues::F32(read_list(reader, count, |reader| reader.u32().map(f32::from_bits))?),
        F64 => ColumnValues::F64(read_list(reader, count, |reader| reader.u64().map(f64::from_bits))?),
        UUID => ColumnValues::Uuid(read_list(reader, count, |reader| reader.array().map(Uuid::from_bytes))?),
        STRING => ColumnValues::String(read_list(reader, count, read_text)?),
        DICTIONARY => {
            let texts = reader.count()?;
            let texts = read_list(reader, texts, read_text)?;
            let unknown = reader.malformed("the number of a text that the dictionary does not have");
            let text = |&number: &u8| texts.get(usize::from(number)).cloned().ok_or(unknown);
            ColumnValues::String(reader.take(count)?.iter().map(text).collect::<Result<_, _>>()?)
        }
        _ => ColumnValues::Any(read_list(reader, count, read_present)?),
    })
}

fn read_text(reader: &mut Reader<'_>) -> Result<SmolStr, Malformed> {
    reader.text().map(SmolStr::from)
}

fn read_present(reader: &mut Reader<'_>) -> Result<Content, Malformed> {
    let at = reader.malformed("an absent value in a slot that is marked as present");
    match read_content(reader)? {
        Content::Absent => Err(at),
        content => Ok(content),
    }
}

/// The beginnings of texts that a [`ValueRange`] has, in bytes.
const TEXT_BYTES: usize = 16;

/// The smallest and the largest value of a column. A column without values has zeros or empty texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ValueRange {
    /// Booleans, UUIDs, values of any types: not known.
    Unknown,
    /// Integers.
    Integers(i64, i64),
    /// The bits of floating-point numbers of 64 bits, ordered as by [`f64::total_cmp`].
    Floats(u64, u64),
    /// The first 16 bytes of the smallest and of the largest text, or all of it if it is shorter.
    Texts(Box<[u8]>, Box<[u8]>),
}

impl ValueRange {
    pub(super) fn of(values: &ColumnValues) -> Self {
        let floats = |numbers: &mut dyn Iterator<Item = f64>| {
            let first = numbers.next().unwrap_or_default();
            let (min, max) = numbers.fold((first, first), |(min, max), n| {
                (if n.total_cmp(&min).is_lt() { n } else { min }, if n.total_cmp(&max).is_gt() { n } else { max })
            });
            ValueRange::Floats(min.to_bits(), max.to_bits())
        };
        let integers =
            |min: Option<i64>, max: Option<i64>| ValueRange::Integers(min.unwrap_or_default(), max.unwrap_or_default());
        match values {
            ColumnValues::I32(v) => integers(v.iter().min().map(|&n| n.into()), v.iter().max().map(|&n| n.into())),
            ColumnValues::I64(v) => integers(v.iter().min().copied(), v.iter().max().copied()),
            ColumnValues::F32(v) => floats(&mut v.iter().map(|&n| f64::from(n))),
            ColumnValues::F64(v) => floats(&mut v.iter().copied()),
            ColumnValues::String(v) => {
                let beginning = |text: Option<&SmolStr>| {
                    let bytes = text.map_or(&[][..], |text| text.as_bytes());
                    bytes[..bytes.len().min(TEXT_BYTES)].into()
                };
                ValueRange::Texts(beginning(v.iter().min()), beginning(v.iter().max()))
            }
            ColumnValues::Bool(_) | ColumnValues::Uuid(_) | ColumnValues::Any(_) => ValueRange::Unknown,
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            ValueRange::Unknown => {}
            ValueRange::Integers(min, max) => [min, max].iter().for_each(|n| put_signed(**n, out)),
            ValueRange::Floats(min, max) => [min, max].iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes())),
            ValueRange::Texts(min, max) => {
                for text in [min, max] {
                    put_varint(text.len() as u64, out);
                    out.extend_from_slice(text);
                }
            }
        }
    }

    /// Reads the range of a column of a type from [`Types::read`].
    pub(super) fn read(tag: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match tag {
            I32 | I64 => ValueRange::Integers(reader.signed()?, reader.signed()?),
            F32 | F64 => ValueRange::Floats(reader.u64()?, reader.u64()?),
            STRING | DICTIONARY => ValueRange::Texts(read_beginning(reader)?, read_beginning(reader)?),
            _ => ValueRange::Unknown,
        })
    }
}

fn read_beginning(reader: &mut Reader<'_>) -> Result<Box<[u8]>, Malformed> {
    let long = reader.malformed("the beginning of a text with too many bytes");
    let bytes = reader.bytes()?;
    if bytes.len() > TEXT_BYTES { Err(long) } else { Ok(bytes.into()) }
}
