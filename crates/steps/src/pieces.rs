//! Long work in one call, done in pieces: between two of them the limits of the query are looked at, so that a query that
//! was cancelled, or whose time is over, ends at once and not when everything is sorted.

use std::cmp::Ordering;

use mangrove_flow::QueryContext;
use mangrove_graph::Result;

/// How many items are compared one with another between two looks at the limits. Comparing two long texts takes
/// microseconds.
pub const COMPARED: usize = 1 << 12;

/// How many items whose comparison takes nanoseconds.
pub const WORDS: usize = 1 << 17;

/// Sorts items; equal ones stay in the order in which they came. Each piece is sorted by itself, and then pieces are merged.
pub fn sort<T: Copy>(
    items: &mut Vec<T>,
    piece: usize,
    context: &QueryContext,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    for piece in items.chunks_mut(piece) {
        context.check()?;
        piece.sort_by(&compare);
    }
    let mut width = piece;
    let mut merged = Vec::new();
    while width < items.len() {
        merged.clear();
        merged.reserve(items.len());
        for two in items.chunks(2 * width) {
            let (first, second) = two.split_at(width.min(two.len()));
            merge(first, second, piece, context, &compare, &mut merged)?;
        }
        std::mem::swap(items, &mut merged);
        width *= 2;
    }
    Ok(())
}

/// Appends two sorted pieces as one; of equal items the first piece's come first.
fn merge<T: Copy>(
    mut first: &[T],
    mut second: &[T],
    piece: usize,
    context: &QueryContext,
    compare: &impl Fn(&T, &T) -> Ordering,
    merged: &mut Vec<T>,
) -> Result<()> {
    // Pieces that follow one another already are most of an ordered input.
    if let (Some(last), Some(next)) = (first.last(), second.first())
        && !compare(next, last).is_lt()
    {
        merged.extend_from_slice(first);
        merged.extend_from_slice(second);
        return context.check();
    }
    while let ([a, after_a @ ..], [b, after_b @ ..]) = (first, second) {
        if merged.len().is_multiple_of(piece) {
            context.check()?;
        }
        if compare(b, a).is_lt() {
            merged.push(*b);
            second = after_b;
        } else {
            merged.push(*a);
            first = after_a;
        }
    }
    merged.extend_from_slice(first);
    merged.extend_from_slice(second);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering as Memory};

    use mangrove_flow::Limits;
    use mangrove_flow::clock::ManualClock;
    use proptest::prelude::*;

    use super::*;

    fn context(cancelled: &Arc<AtomicBool>) -> QueryContext {
        QueryContext::new(Limits::default(), Arc::new(ManualClock::default()), cancelled.clone())
    }

    proptest! {
        #[test]
        fn pieces_sort_as_the_whole(keys in prop::collection::vec(0..9_u8, 0..200), piece in 1..9_usize) {
            let mut items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort(&mut items, piece, &context(&Arc::default()), |a, b| a.0.cmp(&b.0)).unwrap();
            prop_assert_eq!(items, expected);
        }
    }

    #[test]
    fn an_ordered_input_is_compared_once() {
        let compared = Cell::new(0_usize);
        let mut items: Vec<u64> = (0..100_000).collect();
        sort(&mut items, COMPARED, &context(&Arc::default()), |a, b| {
            compared.set(compared.get() + 1);
            a.cmp(b)
        })
        .unwrap();
        assert!(items.is_sorted());
        assert!(compared.get() < 110_000, "{} comparisons", compared.get());
    }

    /// Cancelled while pieces are sorted, and while they are merged: it ends within one more piece.
    #[test]
    fn a_cancelled_sort_ends_within_a_piece() {
        for cancelled_at in [1_000, 1_500_000] {
            let (cancelled, compared) = (Arc::new(AtomicBool::new(false)), Cell::new(0_u64));
            let mut items: Vec<u64> = (0..100_000).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let sorted = sort(&mut items, COMPARED, &context(&cancelled), |a, b| {
                compared.set(compared.get() + 1);
                cancelled.fetch_or(compared.get() == cancelled_at, Memory::Relaxed);
                a.cmp(b)
            });
            assert!(sorted.is_err(), "cancelled at {cancelled_at}, and sorted all the same");
            let after = compared.get() - cancelled_at;
            assert!(after <= 2 * COMPARED as u64 * 12, "{after} comparisons after it was cancelled");
        }
    }
}
