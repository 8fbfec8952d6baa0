//! Arrays of an algorithm's state: made by all threads of a team, and shared by them while a phase writes to them.
//!
//! To fill an array takes as long as memory is written, and the first touch of a page of memory is slow. So the threads of a
//! team share that, too.
//!
//! The code is unsafe for two reasons. An array that is filled by several threads has no values before, and one thread would
//! take as long to write some first. And an array of numbers is borrowed as one of atomic numbers: to turn it into one, and back, are
//! two passes by one thread. On two threads, each pass is 3 % of the time of components in a grid.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use mangrove_graph::Result;

use crate::team::Team;

/// Entries that a part of a phase fills: about ten microseconds.
const PART: usize = 1 << 14;

/// A number that has an atomic form of the same layout.
pub(crate) trait Number: Copy {
    /// The atomic form.
    type Atomic: Sync;
}

impl Number for u8 {
    type Atomic = AtomicU8;
}

impl Number for u32 {
    type Atomic = AtomicU32;
}

impl Number for u64 {
    type Atomic = AtomicU64;
}

/// Borrows numbers as atomic ones, so that several threads write to them.
pub(crate) fn shared<N: Number>(numbers: &mut [N]) -> &[N::Atomic] {
    const { assert!(size_of::<N>() == size_of::<N::Atomic>() && align_of::<N>() == align_of::<N::Atomic>()) }
    let (pointer, length) = (numbers.as_mut_ptr().cast::<N::Atomic>(), numbers.len());
    // SAFETY: the two have the same size and alignment, and every value of one is a value of the other: the standard library says so of each
    // atomic number. The numbers are borrowed for as long as the atomic ones, and exclusively, so all other accesses to them are after that.
    unsafe { std::slice::from_raw_parts(pointer, length) }
}

/// An array of one value.
///
/// # Errors
///
/// If the query of the team has ended.
pub(crate) fn filled<T: Copy + Send + Sync>(team: &Team, length: usize, value: T) -> Result<Vec<T>> {
    of_places(team, length, |_| value)
}

/// The array of the values of a function of the place.
///
/// # Errors
///
/// If the query of the team has ended.
pub(crate) fn of_places<T: Copy + Send>(
    team: &Team,
    length: usize,
    value: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>> {
    let mut array = Vec::with_capacity(length);
    let ranges: Vec<Range<usize>> = (0..length).step_by(PART).map(|at| at..length.min(at + PART)).collect();
    team.map_slices(&ranges, &mut array.spare_capacity_mut()[..length], |part, places: &mut [MaybeUninit<T>]| {
        for (at, place) in ranges[part].clone().zip(places) {
            place.write(value(at));
        }
    })?;
    // SAFETY: the capacity is at least `length`, and the ranges have all places below it. Each range is as long as its slice, so all its
    // places were written: without an error all parts of the phase were done.
    unsafe { array.set_len(length) };
    Ok(array)
}

/// Entries that are copied together.
const TOGETHER: usize = 8;

/// An array that is being made: entries are appended until it is full.
pub(crate) struct Making<'a, T> {
    array: &'a mut [MaybeUninit<T>],
    /// The entries before this one were written.
    end: usize,
}

impl<T: Copy> Making<'_, T> {
    /// Appends entries. Panics if the array has no room for them.
    pub(crate) fn append(&mut self, entries: &[T]) {
        self.array[self.end..self.end + entries.len()].write_copy_of_slice(entries);
        self.end += entries.len();
    }

    /// Appends ranges of entries. Most of them are short: to find out how short one is takes longer than to copy some entries too many, which the
    /// next range overwrites. Panics if the array has no room for them.
    #[inline]
    pub(crate) fn append_ranges<const N: usize>(
        &mut self,
        entries: &[T],
        ranges: impl Iterator<Item = [Range<usize>; N]>,
    ) {
        let mut end = self.end;
        for range in ranges.flatten() {
            let (places, few) =
                (self.array.get_mut(end..end + TOGETHER), entries.get(range.start..range.start + TOGETHER));
            match places.zip(few) {
                Some((places, few)) if range.len() <= TOGETHER => {
                    places.write_copy_of_slice(few);
                }
                _ => {
                    self.array[end..end + range.len()].write_copy_of_slice(&entries[range.clone()]);
                }
            }
            end += range.len();
        }
        self.end = end;
    }
}

/// An array of so many entries, all of which `append` appends. Panics if it appends fewer or more.
pub(crate) fn made<T: Copy>(length: usize, append: impl FnOnce(&mut Making<'_, T>)) -> Arc<[T]> {
    let mut array = Arc::<[T]>::new_uninit_slice(length);
    let mut making = Making { array: Arc::get_mut(&mut array).expect("the array is new"), end: 0 };
    append(&mut making);
    assert_eq!(making.end, length, "all entries are appended");
    // SAFETY: the entries before `end` were written, and these are all.
    unsafe { array.assume_init() }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn arrays_have_all_their_values() {
        let team = Team::alone();
        for length in [0, 1, PART - 1, PART, PART + 1, 3 * PART + 5] {
            assert_eq!(filled(&team, length, 7_u64).unwrap(), vec![7; length]);
            let squares = of_places(&team, length, |at| at * at).unwrap();
            assert!(squares.len() == length && squares.iter().enumerate().all(|(at, square)| *square == at * at));
        }
    }

    #[test]
    fn an_array_is_made_of_runs_of_all_lengths() {
        let entries: Vec<u32> = (0..1_000).collect();
        let runs: Vec<Range<usize>> = (0..40).map(|run| run * 20..run * 20 + run % 21).chain([995..1_000]).collect();
        let expected: Vec<u32> = runs.iter().flat_map(|run| entries[run.clone()].iter().copied()).collect();
        let found = made(expected.len() + 1, |making| {
            making.append(&[7]);
            making.append_ranges(&entries, runs.iter().map(|run| [run.clone()]));
        });
        assert!(found[0] == 7 && found[1..] == expected);
        assert!(made(0, |_: &mut Making<'_, u8>| ()).is_empty());
        for length in [4, 6] {
            let made = std::panic::catch_unwind(|| {
                made(length, |making| making.append_ranges(&entries, std::iter::once([0..5])))
            });
            assert!(made.is_err(), "five entries for {length} places");
        }
    }

    #[test]
    fn what_several_threads_add_to_shared_numbers_is_there_afterwards() {
        let mut numbers = vec![1_u32; 100];
        let places = shared(&mut numbers);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for place in places {
                        place.fetch_add(2, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(numbers, [7; 100]);
        let mut longs = vec![u64::MAX; 2];
        shared(&mut longs)[1].store(5, Ordering::Relaxed);
        assert_eq!(longs, [u64::MAX, 5]);
    }
}
