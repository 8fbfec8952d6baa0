//! The part of the process's memory budget that messages take.
//!
//! A message counts while its frames arrive (`connections::allowance`), while its request waits and runs, while its
//! answer is held back, and until the client has read the answer. Small messages do not count, so that an administrator
//! can find and end the query that uses the budget up. Limits of connections, and of requests on each, bound their
//! number.

use axum::body::Bytes;
use mangrove_graph::{Draw, Result, Value};

use crate::memory::weight::weight;

/// Messages up to this size are not counted.
const SMALL_BYTES_MAX: u64 = 4 << 10;

/// Bytes that a request may take, decoded, for each byte on the wire. A number in JSON or in a script takes two bytes
/// with its comma, and a value in memory takes 32.
const DECODED_PER_BYTE: u64 = 16;

/// Bytes that a value takes in memory for each byte of its weight: the weight of a number is 16.
const BYTES_PER_WEIGHT: u64 = 2;

/// Resizes the draw of a message to its size.
pub fn hold(draw: &mut Draw, bytes: u64) -> Result<()> {
    draw.resize(if bytes <= SMALL_BYTES_MAX { 0 } else { bytes })
}

/// Resizes the draw of a request for the time of its decoding: to its bytes, and to the most that they may become.
pub fn hold_decoding(draw: &mut Draw, length: usize) -> Result<()> {
    match length as u64 {
        ..=SMALL_BYTES_MAX => draw.resize(0),
        length => draw.resize(length.saturating_mul(1 + DECODED_PER_BYTE)).map_err(|error| {
            let times = 1 + DECODED_PER_BYTE;
            error.context(format_args!(
                "a request of {length} bytes, which may take {times} times as much while it is decoded"
            ))
        }),
    }
}

/// The most bytes that a request of this length may take, decoded, beside its own.
pub fn decoded_bytes(length: usize) -> u64 {
    (length as u64).saturating_mul(DECODED_PER_BYTE)
}

/// About how many bytes values take in memory.
pub fn values_bytes<'v>(values: impl Iterator<Item = &'v Value>) -> u64 {
    values.map(weight).fold(0, u64::saturating_add).saturating_mul(BYTES_PER_WEIGHT)
}

/// Shrinks the draw of [`hold_decoding`] to the bytes that the decoded request takes.
pub fn shrink_to(draw: &mut Draw, taken: u64) {
    let all = draw.bytes();
    draw.shrink(all.saturating_sub(taken));
}

/// Bytes that hold their draw until the last of their handles is dropped.
struct CountedBytes {
    bytes: Bytes,
    _draw: Draw,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The same bytes, which hold the draw until their last handle is dropped.
pub fn counted(bytes: Bytes, draw: Draw) -> Bytes {
    if draw.bytes() == 0 { bytes } else { Bytes::from_owner(CountedBytes { bytes, _draw: draw }) }
}

#[cfg(test)]
mod tests {
    use mangrove_graph::{MemoryBudget, Purpose};

    use super::*;

    #[test]
    fn bytes_count_until_their_last_handle_is_gone() {
        let budget = MemoryBudget::of(1 << 20);
        let mut draw = budget.account(Purpose::Messages);
        hold(&mut draw, SMALL_BYTES_MAX).unwrap();
        assert_eq!(budget.used_bytes(), 0);
        hold(&mut draw, 10_000).unwrap();
        let bytes = counted(vec![7; 10_000].into(), draw);
        let part = bytes.slice(5..10);
        drop(bytes);
        assert_eq!((budget.used_bytes(), &part[..]), (10_000, &[7; 5][..]));
        drop(part);
        assert_eq!(budget.used_bytes(), 0);
        let mut draw = budget.account(Purpose::Messages);
        hold_decoding(&mut draw, 4 << 10).unwrap();
        assert_eq!(budget.used_bytes(), 0, "a short request is never refused");
        hold_decoding(&mut draw, 10_000).unwrap();
        assert_eq!(budget.used_bytes(), 170_000);
        assert!(hold_decoding(&mut draw, 100_000).is_err());
        assert_eq!(budget.used_bytes(), 170_000);
        shrink_to(&mut draw, 0);
        assert_eq!(budget.used_bytes(), 0);
    }
}
