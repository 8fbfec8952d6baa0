//! What messages take of the process's memory budget.
//!
//! A message counts from the moment that it is put together until it is worked off: while its frames come in
//! ([`crate::allowance`]), while it waits and runs, while an answer is held back, and until the client has taken it. Small
//! messages are not counted, so that an operator can find and end what uses the budget up. How many there may be is
//! limited by connections and by requests of each.

use axum::body::Bytes;
use mangrove_graph::{Draw, MemoryBudget, Result};

use crate::exposition::{Exposition, Kind};
use crate::job::Work;
use crate::program::{Evaluation, Gremlin};
use crate::weight::weight;

/// Messages up to this size are not counted.
const SMALL_BYTES_MAX: u64 = 4 << 10;

/// How many bytes a request may take, decoded, for each of its own: a number of JSON or of a script is two bytes with its comma,
/// and a value of 32.
const DECODED_PER_BYTE: u64 = 16;

/// How many bytes a value takes in memory for each that it weighs: the weight of a number is 16.
const BYTES_PER_WEIGHT: u64 = 2;

/// Makes the draw of a message fit its size.
pub fn hold(draw: &mut Draw, bytes: u64) -> Result<()> {
    draw.resize(if bytes <= SMALL_BYTES_MAX { 0 } else { bytes })
}

/// Makes the draw of a request fit while its bytes are decoded: for them, and for the most that they may become.
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

/// Gives back what [`hold_decoding`] has drawn for a request of so many bytes and the request, decoded, does not take. Values of
/// parameters are known then. What a script or bytecode becomes is not.
pub fn settle(draw: &mut Draw, length: usize, work: &Work) {
    let taken = match work {
        Work::Evaluate(Evaluation { gremlin, parameters, .. }) => {
            let values = parameters.values().map(weight).fold(0, u64::saturating_add);
            let query = match gremlin {
                Gremlin::Script(text) => (text.len() as u64).saturating_mul(1 + DECODED_PER_BYTE),
                Gremlin::Bytecode(_) => (length as u64).saturating_mul(DECODED_PER_BYTE),
            };
            values.saturating_mul(BYTES_PER_WEIGHT).saturating_add(query)
        }
        Work::Close | Work::Authenticate(_) => 0,
    };
    let all = draw.bytes();
    draw.shrink(all.saturating_sub(taken));
}

/// Bytes that are counted until the last of their handles is dropped, wherever they wait.
struct Counted {
    bytes: Bytes,
    _draw: Draw,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The same bytes, counted by a draw for as long as they are somewhere.
pub fn counted(bytes: Bytes, draw: Draw) -> Bytes {
    if draw.bytes() == 0 { bytes } else { Bytes::from_owner(Counted { bytes, _draw: draw }) }
}

/// The budget for `/metrics`; nothing where there is none.
pub fn exposition(budget: &MemoryBudget) -> String {
    let mut text = Exposition::default();
    if let Some(limit) = budget.limit_bytes() {
        let meaning = "The memory budget of the process: work that would exceed it is refused.";
        text.single("mangrove_memory_budget_bytes", Kind::Gauge, meaning, limit);
        let meaning = "Bytes of the memory budget that are in use, by what for.";
        let mut family = text.family("mangrove_memory_budget_used_bytes", Kind::Gauge, meaning);
        for purpose in mangrove_graph::Purpose::ALL {
            family.sample(&[("purpose", purpose.name())], budget.used_for(purpose));
        }
        let meaning = "The most bytes of the memory budget that were in use at a time.";
        text.single("mangrove_memory_budget_peak_bytes", Kind::Gauge, meaning, budget.peak_bytes());
        let meaning = "How often work was refused because it would have exceeded the memory budget.";
        text.single("mangrove_memory_budget_refusals_total", Kind::Counter, meaning, budget.refusal_count());
    }
    text.into_text()
}

#[cfg(test)]
mod tests {
    use mangrove_graph::Purpose;

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
        settle(&mut draw, 10_000, &Work::Close);
        assert_eq!(budget.used_bytes(), 0);
    }
}
