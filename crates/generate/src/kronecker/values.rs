//! Random values of properties.

use smol_str::{SmolStr, SmolStrBuilder};

use super::schema::{PropertyType, ValueType};
use crate::random::{RandomStream, below};
use crate::sink::GeneratedValues;

/// The letters of random texts, all equally likely.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The bound of 32-bit integers: small enough for values to repeat, large enough for an index to be useful.
const INT_BOUND: u64 = 1 << 20;

/// The values of a property for the elements with these numbers, one value an element.
pub(super) fn values(property: &PropertyType, seed: u64, numbers: &[u64]) -> GeneratedValues {
    let bits = |number: &u64| RandomStream::new(seed, *number).bits();
    if let Some(own) = &property.own {
        let value = |(row, number): (usize, &u64)| (row as u32, vec![own(*number, bits(number))]);
        return GeneratedValues::Several(numbers.iter().enumerate().map(value).collect());
    }
    match property.value_type {
        ValueType::Bool => GeneratedValues::Bool(numbers.iter().map(|number| bits(number) >> 63 != 0).collect()),
        ValueType::Int => {
            GeneratedValues::I32(numbers.iter().map(|number| below(bits(number), INT_BOUND) as i32).collect())
        }
        ValueType::Long => GeneratedValues::I64(numbers.iter().map(|number| (bits(number) >> 1) as i64).collect()),
        ValueType::Double => {
            GeneratedValues::F64(numbers.iter().map(|number| RandomStream::new(seed, *number).unit()).collect())
        }
        ValueType::String => {
            GeneratedValues::Text(numbers.iter().map(|number| text(seed, *number, property.size)).collect())
        }
    }
}

/// A text of `size` bytes.
fn text(seed: u64, number: u64, size: usize) -> SmolStr {
    let mut random = RandomStream::new(seed, number);
    let mut text = SmolStrBuilder::new();
    let mut left = size;
    while left > 0 {
        let bits = random.bits();
        let letters = left.min(12);
        (0..letters).for_each(|letter| text.push(char::from(LETTERS[(bits >> (5 * letter) & 31) as usize])));
        left -= letters;
    }
    text.finish()
}
