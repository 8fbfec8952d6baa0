//! The fence protocols of this crate under loom, which tries out what the C11 memory model allows:
//! `cargo test -p mangrove-reclaim --features loom --test loom`.
//!
//! Each model has two or three threads that run the real code. Loom explores the orders of their operations, and every
//! value that each atomic load may then return. It reports a data race, a failed assertion, and a deadlock. With two
//! threads it explores every order, with three those with at most [`PREEMPTIONS_OF_THREE`] forced switches.
//!
//! Memory that readers protect with a pin is a [`Tracked`] here. Its reads are atomic, and it is freed by an access
//! that is not. So loom reports a read that comes before the writing or after the freeing, and one that is not ordered
//! with them.
//!
//! Loom is stricter than C11 in one respect and laxer in another: it takes a SeqCst load or store for an Acquire or a
//! Release, and orders what comes before a SeqCst fence before what comes after a later SeqCst fence.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use mangrove_reclaim::{
    Accounting, Arena, EpochCell, EpochSlice, Grace, Limbo, OnceCells, OnceSlice, RecordCell, Retired, Unlinked, epoch,
};

/// How many forced switches an execution of three threads has, at most. `LOOM_MAX_PREEMPTIONS` changes it.
const PREEMPTIONS_OF_THREE: usize = 3;

fn check(model: impl Fn() + Send + Sync + 'static) {
    loom::model::Builder::new().check(model);
}

fn check_three(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS_OF_THREE));
    builder.check(model);
}

/// A value whose making and freeing are accesses that loom sees.
#[derive(Debug, Default)]
struct Tracked(AtomicU64);

impl Tracked {
    fn new(value: u64) -> Self {
        Tracked(AtomicU64::new(value))
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn write(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        // Not atomic: every other access must come before it.
        self.0.with_mut(|value| *value = u64::MAX);
    }
}

/// Garbage that is memory alone.
#[derive(Debug)]
struct Memory(Retired);

impl From<Retired> for Memory {
    fn from(retired: Retired) -> Self {
        Memory(retired)
    }
}

impl Unlinked for Memory {
    fn into_memory(self) -> Result<Retired, Self> {
        Ok(self.0)
    }
}

/// An account that counts nothing.
struct Uncounted;

impl Accounting<()> for Uncounted {
    fn add(&self, (): (), _: usize) {}
    fn remove(&self, (): (), _: usize) {}
}

fn release(limbo: &Limbo<Memory>) {
    limbo.release(usize::MAX, |name| unreachable!("{name:?} is memory"));
}

/// Frees what is left, when no thread is pinned any more.
fn release_the_rest(limbo: &Limbo<Memory>) {
    release(limbo);
    assert_eq!(limbo.len(), 0, "no pin is left, so every grace period is over");
}

/// RECLAIM-1 to RECLAIM-3: a pin against the release of what was unlinked.
#[test]
fn a_pinned_reader_keeps_what_it_found() {
    check(|| {
        let cell = Arc::new(EpochCell::new(Tracked::new(1)));
        let limbo = Limbo::<Memory>::default();
        let reader = thread::spawn({
            let cell = cell.clone();
            move || {
                let pin = epoch::pin();
                let found = cell.get(&pin).expect("there is always a content");
                assert!(matches!(found.read(), 1 | 2));
            }
        });
        limbo.retire(cell.swap(Some(Tracked::new(2))));
        release(&limbo);
        reader.join().unwrap();
        release_the_rest(&limbo);
    });
}

/// What a thread's first pin protected may be freed by a reclaimer that sees the thread's second pin.
#[test]
fn the_end_of_a_pin_is_seen_through_the_next_pin() {
    check(|| {
        let cell = Arc::new(EpochCell::new(Tracked::new(1)));
        let limbo = Limbo::<Memory>::default();
        let reader = thread::spawn({
            let cell = cell.clone();
            move || {
                for _ in 0..2 {
                    let pin = epoch::pin();
                    assert!(matches!(cell.get(&pin).expect("there is always a content").read(), 1 | 2));
                }
            }
        });
        limbo.retire(cell.swap(Some(Tracked::new(2))));
        release(&limbo);
        reader.join().unwrap();
        release_the_rest(&limbo);
    });
}

/// Two threads replace and release; each may free what the other has unlinked.
#[test]
fn two_reclaimers_share_a_limbo() {
    check(|| {
        let cell = Arc::new(EpochCell::new(Tracked::new(1)));
        let limbo = Arc::new(Limbo::<Memory>::default());
        let other = thread::spawn({
            let (cell, limbo) = (cell.clone(), limbo.clone());
            move || {
                limbo.retire(cell.swap(Some(Tracked::new(2))));
                release(&limbo);
            }
        });
        {
            let pin = epoch::pin();
            assert!(matches!(cell.get(&pin).expect("there is always a content").read(), 1 | 2));
        }
        limbo.retire(cell.swap(Some(Tracked::new(3))));
        release(&limbo);
        other.join().unwrap();
        release_the_rest(&limbo);
    });
}

/// A reader beside two threads that replace and release.
#[test]
fn a_pinned_reader_keeps_what_it_found_beside_two_reclaimers() {
    check_three(|| {
        let cell = Arc::new(EpochCell::new(Tracked::new(1)));
        let limbo = Arc::new(Limbo::<Memory>::default());
        let reclaim = |value| {
            let (cell, limbo) = (cell.clone(), limbo.clone());
            move || {
                limbo.retire(cell.swap(Some(Tracked::new(value))));
                release(&limbo);
            }
        };
        let other = thread::spawn(reclaim(2));
        let reader = thread::spawn({
            let cell = cell.clone();
            move || {
                let pin = epoch::pin();
                assert!(matches!(cell.get(&pin).expect("there is always a content").read(), 1..=3));
            }
        });
        reclaim(3)();
        other.join().unwrap();
        reader.join().unwrap();
        release_the_rest(&limbo);
    });
}

/// An array is made by one of two threads, and taken away while the other may read it.
#[test]
fn an_array_is_made_once_and_taken_away() {
    check(|| {
        let slice = Arc::new(EpochSlice::<Tracked>::empty(1));
        let limbo = Limbo::<Memory>::default();
        let maker = thread::spawn({
            let slice = slice.clone();
            move || {
                let pin = epoch::pin();
                let (array, is_new) = slice.get_or_init(&pin, || Box::new([Tracked::new(1)]));
                assert_eq!(array[0].read(), if is_new { 1 } else { 2 });
            }
        });
        {
            let pin = epoch::pin();
            let (array, is_new) = slice.get_or_init(&pin, || Box::new([Tracked::new(2)]));
            assert_eq!(array[0].read(), if is_new { 2 } else { 1 });
        }
        limbo.retire(slice.take());
        release(&limbo);
        maker.join().unwrap();
        limbo.retire(slice.take());
        release_the_rest(&limbo);
    });
}

/// A reader that finds a box gone finds the array that took its place. It asks without a pin.
#[test]
fn what_takes_the_place_of_a_box_is_found() {
    check(|| {
        let cell = Arc::new(EpochCell::new(Tracked::new(1)));
        let slice = Arc::new(EpochSlice::<Tracked>::empty(1));
        let limbo = Limbo::<Memory>::default();
        let writer = thread::spawn({
            let (cell, slice) = (cell.clone(), slice.clone());
            move || {
                let pin = epoch::pin();
                slice.get_or_init(&pin, || Box::new([Tracked::new(2)]));
                cell.swap(None)
            }
        });
        if !cell.is_some() {
            assert!(slice.is_some(), "the box went after the array was there");
        }
        limbo.retire(writer.join().unwrap());
        limbo.retire(slice.take());
        release_the_rest(&limbo);
    });
}

/// A reader that finds an array gone finds the box that took its place. It asks without a pin.
#[test]
fn what_takes_the_place_of_an_array_is_found() {
    check(|| {
        let cell = Arc::new(EpochCell::<Tracked>::default());
        let slice = Arc::new(EpochSlice::<Tracked>::empty(1));
        slice.get_or_init(&epoch::pin(), || Box::new([Tracked::new(1)]));
        let limbo = Limbo::<Memory>::default();
        let writer = thread::spawn({
            let (cell, slice) = (cell.clone(), slice.clone());
            move || {
                assert!(cell.swap(Some(Tracked::new(2))).is_none());
                slice.take()
            }
        });
        if !slice.is_some() {
            assert!(cell.is_some(), "the array went after the box was there");
        }
        limbo.retire(writer.join().unwrap());
        limbo.retire(cell.swap(None));
        release_the_rest(&limbo);
    });
}

/// RECLAIM-6: a reader of a record gets a whole content or none, and keeps it for as long as its pin.
#[test]
fn a_record_is_used_again_after_its_readers() {
    check(|| {
        let record = Arc::new(RecordCell::default());
        record.set(Tracked::new(1));
        let reader = thread::spawn({
            let record = record.clone();
            move || {
                let pin = epoch::pin();
                if let Some(content) = record.get(&pin) {
                    assert!(matches!(content.read(), 1 | 2));
                }
            }
        });
        assert!(record.retire());
        let grace = Grace::begin();
        if grace.is_over() {
            // SAFETY: the grace period began after the record was retired, and is over.
            let content = unsafe { record.clear() };
            assert_eq!(content.expect("it was retired").read(), 1);
            record.set(Tracked::new(2));
        }
        reader.join().unwrap();
    });
}

/// RECLAIM-5 and RECLAIM-7: a row that a pinned reader has found by its number is not handed out again, and keeps its
/// memory, until the pin ends.
#[test]
fn a_row_is_handed_out_again_after_its_readers() {
    check(|| {
        let arena = Arc::new(Arena::<Tracked, (), 1>::new(()));
        let published = Arc::new(AtomicU64::new(0));
        let limbo = Limbo::<Memory>::default();
        let reader = thread::spawn({
            let (arena, published) = (arena.clone(), published.clone());
            move || {
                let pin = epoch::pin();
                let number = published.load(Ordering::Acquire);
                if number != 0 {
                    let row = arena.row(number, 1, &pin).expect("a row that is published has memory");
                    assert_eq!(row[0].read(), 7);
                }
            }
        });
        let allocate = |value| {
            let pin = epoch::pin();
            let (number, row) = arena.allocate(1, &Uncounted, &pin);
            row[0].write(value);
            number
        };
        let number = allocate(7);
        published.store(number, Ordering::Release);
        published.store(0, Ordering::Release);
        let grace = Grace::begin();
        if grace.is_over() {
            arena.free(number, 1);
            let mut garbage = Vec::new();
            assert_eq!(arena.give_back_chunks(&Uncounted, &mut garbage), 1);
            limbo.take_in(garbage);
            release(&limbo);
            assert_eq!(allocate(8), number, "the number of the chunk is used again");
        }
        reader.join().unwrap();
        release_the_rest(&limbo);
    });
}

/// RECLAIM-4: an array that a reader finds is complete.
#[test]
fn an_array_is_complete_when_it_is_found() {
    check(|| {
        let arrays = Arc::new((OnceSlice::<Tracked>::empty(1), OnceCells::empty(1)));
        let maker = thread::spawn({
            let arrays = arrays.clone();
            move || {
                arrays.0.get_or_init(|| Box::new([Tracked::new(1)]));
                arrays.1.init(|cells| {
                    cells.words[0].store(1, Ordering::Relaxed);
                    cells.tags[0].store(1, Ordering::Relaxed);
                });
            }
        });
        let (array, _) = arrays.0.get_or_init(|| Box::new([Tracked::new(2)]));
        assert!(matches!(array[0].read(), 1 | 2));
        if let Some(cells) = arrays.1.get() {
            assert_eq!((cells.words[0].load(Ordering::Relaxed), cells.tags[0].load(Ordering::Relaxed)), (1, 1));
        }
        maker.join().unwrap();
    });
}
