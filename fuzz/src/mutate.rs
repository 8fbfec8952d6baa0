//! Mutations: inputs made of other inputs.
//!
//! Flipped bits alone find little after a length or a bracket. So mutations replace numbers by the ends of their ranges
//! and lengths by larger ones. They double, move and nest pieces, take pieces from other inputs, and insert words of
//! the language at word ends. Everything is a function of the random numbers.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

use crate::InputShape;

/// The longest mutated input, in bytes.
pub const LENGTH_MAX: usize = 64 << 10;

/// The largest number of repetitions of a piece: enough for any limit of nesting.
const REPEAT_COUNT_MAX: usize = 3_000;

/// The ends of the ranges of number types.
const EDGES: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
];

/// Replacements for numbers in texts.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "-0",
    "127",
    "2147483647",
    "-2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "1e-400",
    "99999999999999999999999999999999",
];

const BRACKETS: [(u8, u8); 4] = [(b'(', b')'), (b'[', b']'), (b'{', b'}'), (b'"', b'"')];

/// A mutation of one of these inputs, with pieces of others.
pub fn mutate(random: &mut SmallRng, inputs: &[Vec<u8>], shape: InputShape) -> Vec<u8> {
    let mut input = inputs.choose(random).cloned().unwrap_or_default();
    // Mostly a few changes: an input with many is refused at its first byte.
    let count = 1 << random.random_range(0..4u32);
    for _ in 0..random.random_range(1..=count) {
        match (shape, random.random_range(0..4)) {
            (_, 0) => bytes(random, &mut input),
            (_, 1) => pieces(random, &mut input, inputs),
            (InputShape::Binary, _) => number(random, &mut input),
            (InputShape::Text(words), _) => text(random, &mut input, words),
        }
        input.truncate(LENGTH_MAX);
    }
    input
}

/// A position in an input of this length.
fn place(random: &mut SmallRng, length: usize) -> usize {
    random.random_range(0..=length)
}

/// The range of a random piece of an input of this length.
fn piece(random: &mut SmallRng, length: usize) -> std::ops::Range<usize> {
    let (a, b) = (place(random, length), place(random, length));
    // Short pieces are as likely as long ones.
    let reach = if random.random() { 16 } else { length };
    a.min(b)..a.max(b).min(a.min(b) + reach)
}

/// Flips, replaces, inserts or removes one byte.
fn bytes(random: &mut SmallRng, input: &mut Vec<u8>) {
    let length = input.len();
    if length == 0 {
        return input.push(random.random());
    }
    let at = random.random_range(0..length);
    match random.random_range(0..4) {
        0 => input[at] ^= 1 << random.random_range(0..8u32),
        1 => input[at] = random.random(),
        2 => input.insert(at, random.random()),
        _ => drop(input.remove(at)),
    }
}

/// Removes, copies, repeats or cuts off a piece, or replaces it by a piece of another input.
fn pieces(random: &mut SmallRng, input: &mut Vec<u8>, others: &[Vec<u8>]) {
    let range = piece(random, input.len());
    match random.random_range(0..5) {
        0 => drop(input.drain(range)),
        1 => {
            let (copy, at) = (input[range].to_vec(), place(random, input.len()));
            drop(input.splice(at..at, copy));
        }
        2 => {
            let copy = input[range.clone()].to_vec();
            let count = random.random_range(1..=REPEAT_COUNT_MAX).min(LENGTH_MAX / copy.len().max(1));
            drop(input.splice(range.end..range.end, copy.repeat(count)));
        }
        3 => input.truncate(range.start),
        _ => {
            let Some(other) = others.choose(random) else { return };
            let theirs = piece(random, other.len());
            drop(input.splice(range, other[theirs].iter().copied()));
        }
    }
}

/// Writes a number of one to eight bytes, in either byte order, or a varint.
fn number(random: &mut SmallRng, input: &mut Vec<u8>) {
    let edge = *EDGES.choose(random).expect("there are some");
    let number = if random.random() { edge } else { edge.wrapping_add_signed(random.random_range(-2..=2)) };
    let width = 1 << random.random_range(0..4u32);
    let mut bytes = number.to_le_bytes()[..width].to_vec();
    match random.random_range(0..3) {
        0 => {}
        1 => bytes.reverse(),
        _ => bytes = varint(number),
    }
    let at = place(random, input.len());
    let replaced = if random.random_range(0..4) == 0 { 0 } else { bytes.len() };
    let end = (at + replaced).min(input.len());
    drop(input.splice(at..end, bytes));
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Replaces a number or a word, nests a bracket, or inserts a word of the language.
fn text(random: &mut SmallRng, input: &mut Vec<u8>, words: &[&str]) {
    match random.random_range(0..5) {
        0 => {
            if let Some(range) = run(random, input, |byte| byte.is_ascii_digit()) {
                drop(input.splice(range, NUMBERS.choose(random).expect("there are some").bytes()));
            }
        }
        1 => {
            if let Some(range) = run(random, input, |byte| byte.is_ascii_alphanumeric()) {
                drop(input.splice(range, words.choose(random).copied().unwrap_or_default().bytes()));
            }
        }
        2 => nest(random, input),
        _ => {
            // Inserts at the end of a word, so that both words stay whole.
            let at = place(random, input.len());
            let at =
                input[at..].iter().position(|byte| !byte.is_ascii_alphanumeric()).map_or(input.len(), |more| at + more);
            drop(input.splice(at..at, words.choose(random).copied().unwrap_or_default().bytes()));
        }
    }
}

/// The first run of such bytes after a random position.
fn run(random: &mut SmallRng, input: &[u8], is_one: impl Fn(u8) -> bool) -> Option<std::ops::Range<usize>> {
    let from = place(random, input.len());
    let start = from + input[from..].iter().position(|byte| is_one(*byte))?;
    let length = input[start..].iter().position(|byte| !is_one(*byte)).unwrap_or(input.len() - start);
    Some(start..start + length)
}

/// Repeats an opening bracket and its closing one around their content.
fn nest(random: &mut SmallRng, input: &mut Vec<u8>) {
    let (open, close) = *BRACKETS.choose(random).expect("there are some");
    let from = place(random, input.len());
    let Some(start) = input[from..].iter().position(|byte| *byte == open).map(|at| from + at) else { return };
    let Some(end) = matching(&input[start..], open, close).map(|at| start + at) else { return };
    // With the word before the bracket: `out(out(out(…)))`.
    let word =
        input[..start].iter().rposition(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').map_or(0, |at| at + 1);
    let (head, tail) = (input[word..=start].to_vec(), input[end..=end].to_vec());
    let count = (1 << random.random_range(0..12u32)).min(LENGTH_MAX / (head.len() + 1));
    drop(input.splice(end..end, tail.repeat(count)));
    drop(input.splice(start + 1..start + 1, head.repeat(count)));
}

/// The position of the closing bracket for the opening one at the start of these bytes.
fn matching(bytes: &[u8], open: u8, close: u8) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 && *byte == close {
            depth -= 1;
        } else if *byte == open {
            depth += 1;
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn the_same_numbers_make_the_same_inputs_and_none_is_too_long() {
        let inputs = [b"g.V(1).out('a')".to_vec(), b"[1,2]".to_vec()];
        let make = || {
            let mut random = SmallRng::seed_from_u64(7);
            let mut once = |_| mutate(&mut random, &inputs, InputShape::Text(&["x", "y("]));
            (0..2_000).map(&mut once).collect::<Vec<_>>()
        };
        let made = make();
        assert_eq!(made, make());
        assert!(made.iter().all(|input| input.len() <= LENGTH_MAX));
        assert!(made.iter().any(|input| input.starts_with(b"g.V(V(V(")));
    }
}
