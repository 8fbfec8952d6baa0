//! Arrays of an algorithm's state: made by all threads of a team, and shared by them while a phase writes to them.
//!
//! To fill an array takes as long as memory is written, and the first touch of a page of memory is slow. So the threads of a
//! team share that, too.
//!
//! The code is unsafe for two reasons. An array that is filled by several threads, or put together of short runs, has no values before: to write some
//! first takes as long as to fill it. And an array of numbers is borrowed as one of atomic numbers: to turn it into one, and back, are
//! two passes by one thread. On two threads, each pass is 3 % of the time of components in a grid.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use mangrove_graph::Result;

use crate::team::Team;

/// Entries that a part of a phase fills: about ten microseconds.
const PART: usize = 1 << 14;

/// A number that has an atomic form.
///
/// # Safety
///
/// The two have the same values with the same bits.
pub(crate) unsafe trait Number: Copy {
    /// The atomic form.
    type Atomic: Sync;
}

// SAFETY: the standard library says of each atomic number that it has the same size and bit validity as the number.
unsafe impl Number for u8 {
    type Atomic = AtomicU8;
}

// SAFETY: as for `u8`.
unsafe impl Number for u32 {
    type Atomic = AtomicU32;
}

// SAFETY: as for `u8`.
unsafe impl Number for u64 {
    type Atomic = AtomicU64;
}

/// Borrows numbers as atomic ones, so that several threads write to them.
pub(crate) fn shared<N: Number>(numbers: &mut [N]) -> &[N::Atomic] {
    const { assert!(size_of::<N>() == size_of::<N::Atomic>() && align_of::<N>() == align_of::<N::Atomic>()) }
    let (pointer, length) = (numbers.as_mut_ptr().cast::<N::Atomic>(), numbers.len());
    // SAFETY: the two have the same size and alignment, and every value of one is a value of the other (`Number`). The numbers are borrowed for as long as the atomic ones, and exclusively, so all other accesses to them are after that.
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
        write(&mut self.array[self.end..self.end + entries.len()], entries);
        self.end += entries.len();
    }

    /// Appends lists of entries: the first list of each series, then the second one of each, and so on. List `at` of a series is that from `begins[at]`
    /// to `begins[at + 1]`. Most lists are short: to find out how short one is takes longer than to copy some entries too many, which
    /// the next list overwrites. Panics if the array has no room for them.
    pub(crate) fn append_lists<const N: usize>(&mut self, entries: &[T], series: &[&[u32; N]]) {
        let mut end = self.end;
        // Mostly there are two series: then they are no loop.
        if let [one, other] = series {
            for at in 1..N {
                end = self.write_list(end, entries, one[at - 1] as usize..one[at] as usize);
                end = self.write_list(end, entries, other[at - 1] as usize..other[at] as usize);
            }
        } else {
            for at in 1..N {
                for begins in series {
                    end = self.write_list(end, entries, begins[at - 1] as usize..begins[at] as usize);
                }
            }
        }
        self.end = end;
    }

    /// Writes a list from a place on. Returns the place after it.
    // A call takes as long as the list.
    #[inline(always)]
    fn write_list(&mut self, at: usize, entries: &[T], range: Range<usize>) -> usize {
        // A great number, if the range ends before it begins: then there is no such slice of the entries, and this panics.
        let length = range.end.wrapping_sub(range.start);
        // Before these places, there are so many entries, and room for so many: one comparison each.
        let few = (entries.len() + 1).saturating_sub(TOGETHER);
        let room = (self.array.len() + 1).saturating_sub(TOGETHER);
        if range.start < few && at < room && length <= TOGETHER {
            // SAFETY: both have so many entries from these places on, the array is borrowed exclusively, and any bits may be copied.
            unsafe {
                let to = self.array.as_mut_ptr().add(at).cast::<T>();
                std::ptr::copy_nonoverlapping(entries.as_ptr().add(range.start), to, TOGETHER);
            }
        } else {
            write(&mut self.array[at..at + range.len()], &entries[range]);
        }
        at + length
    }
}

/// Writes entries to as many places.
#[inline]
fn write<T: Copy>(places: &mut [MaybeUninit<T>], entries: &[T]) {
    assert_eq!(places.len(), entries.len(), "an entry for each place");
    // SAFETY: both have so many entries of one layout, the places are borrowed exclusively, and any bits may be copied.
    unsafe { std::ptr::copy_nonoverlapping(entries.as_ptr(), places.as_mut_ptr().cast::<T>(), entries.len()) }
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
    fn an_array_is_made_of_lists_of_all_lengths() {
        let entries: Vec<u32> = (0..1_000).collect();
        // The lists of a series follow one another.
        let series = |from: u32| std::array::from_fn::<u32, 40, _>(|at| from + (at * (at + 1) / 4) as u32);
        let (one, other, third) = (series(0), series(200), series(1_000 - 390));
        assert_eq!(third[39], 1_000);
        for series in [vec![&one], vec![&one, &third], vec![&third, &other, &one]] {
            let lists = (1..40).flat_map(|at| series.iter().map(move |begins| begins[at - 1]..begins[at]));
            let expected: Vec<u32> = lists.flatten().collect();
            let found = made(expected.len() + 1, |making| {
                making.append(&[7]);
                making.append_lists(&entries, &series);
            });
            assert!(found[0] == 7 && found[1..] == expected);
        }
        assert!(made(0, |_: &mut Making<'_, u8>| ()).is_empty());
        for length in [4, 6] {
            let made = std::panic::catch_unwind(|| made(length, |making| making.append_lists(&entries, &[&[0, 5]])));
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
