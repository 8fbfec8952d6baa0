//! A stable sort in pieces: between two pieces it calls a function of the caller, which may end it.
//!
//! An operator passes a function that checks the limits of its query. So a query that was cancelled, or whose time is
//! over, ends after one more piece and not after the whole sort.

use std::cmp::Ordering;

/// Items of a piece if a comparison may take microseconds, as of two long texts.
pub const COMPARED: usize = 1 << 12;

/// Items of a piece if a comparison takes nanoseconds.
pub const WORDS: usize = 1 << 17;

/// Pieces of one item, for collections. After their query has ended, comparisons of collections contradict each other
/// (see `compare::watch`). The sort of the standard library may panic then; merging does not.
pub const MERGED: usize = 1;

/// Sorts items; equal items keep their order. Pieces are sorted one by one and then merged. `check` is called between
/// pieces. If it fails, the sort ends with its error, and the items are in any order.
pub fn sort<T: Copy, E>(
    items: &mut Vec<T>,
    piece: usize,
    check: impl Fn() -> Result<(), E>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<(), E> {
    if piece > MERGED {
        for piece in items.chunks_mut(piece) {
            check()?;
            piece.sort_by(&compare);
        }
    }
    let mut width = piece;
    let mut merged = Vec::new();
    while width < items.len() {
        merged.clear();
        merged.reserve(items.len());
        for two in items.chunks(2 * width) {
            let (first, second) = two.split_at(width.min(two.len()));
            merge(first, second, piece.max(COMPARED), &check, &compare, &mut merged)?;
        }
        std::mem::swap(items, &mut merged);
        width *= 2;
    }
    Ok(())
}

/// Appends two sorted pieces as one sorted piece. Equal items of the first piece come before those of the second.
fn merge<T: Copy, E>(
    mut first: &[T],
    mut second: &[T],
    piece: usize,
    check: &impl Fn() -> Result<(), E>,
    compare: &impl Fn(&T, &T) -> Ordering,
    merged: &mut Vec<T>,
) -> Result<(), E> {
    // In an input that is ordered already, most pieces follow one another as they are.
    if let (Some(last), Some(next)) = (first.last(), second.first())
        && !compare(next, last).is_lt()
    {
        merged.extend_from_slice(first);
        merged.extend_from_slice(second);
        return check();
    }
    while let ([a, after_a @ ..], [b, after_b @ ..]) = (first, second) {
        if merged.len().is_multiple_of(piece) {
            check()?;
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

    use proptest::prelude::*;

    use super::*;

    fn sorted<T: Copy>(items: &mut Vec<T>, piece: usize, compare: impl Fn(&T, &T) -> Ordering) {
        let Ok(()) = sort(items, piece, || Ok::<_, std::convert::Infallible>(()), compare);
    }

    proptest! {
        #[test]
        fn pieces_sort_as_the_whole(keys in prop::collection::vec(0..9_u8, 0..200), piece in 1..9_usize) {
            let mut items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            sorted(&mut items, piece, |a, b| a.0.cmp(&b.0));
            prop_assert_eq!(items, expected);
        }

        /// Comparisons that contradict one another, as they do after a query has ended.
        #[test]
        fn merging_needs_no_order(answers in prop::collection::vec(any::<bool>(), 1..40), len in 0..300_usize) {
            let asked = Cell::new(0);
            let mut items: Vec<usize> = (0..len).collect();
            sorted(&mut items, MERGED, |_, _| {
                asked.set(asked.get() + 1);
                if answers[asked.get() % answers.len()] { Ordering::Less } else { Ordering::Greater }
            });
            items.sort_unstable();
            prop_assert_eq!(items, (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_ordered_input_is_compared_once() {
        let compared = Cell::new(0_usize);
        let mut items: Vec<u64> = (0..100_000).collect();
        sorted(&mut items, COMPARED, |a, b| {
            compared.set(compared.get() + 1);
            a.cmp(b)
        });
        assert!(items.is_sorted());
        assert!(compared.get() < 110_000, "{} comparisons", compared.get());
    }

    /// Ended while pieces are sorted, and while they are merged: sorting ends within one more piece.
    #[test]
    fn a_sort_that_is_ended_ends_within_a_piece() {
        for ended_at in [1_000, 1_500_000] {
            let compared = Cell::new(0_u64);
            let mut items: Vec<u64> = (0..100_000).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let check = || if compared.get() < ended_at { Ok(()) } else { Err(()) };
            let outcome = sort(&mut items, COMPARED, check, |a, b| {
                compared.set(compared.get() + 1);
                a.cmp(b)
            });
            assert!(outcome.is_err(), "ended at {ended_at}, and sorted all the same");
            let after = compared.get() - ended_at;
            assert!(after <= 2 * COMPARED as u64 * 12, "{after} comparisons after it was ended");
        }
    }
}
