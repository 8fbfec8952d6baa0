//! The values that each snapshot reads, in both forms of a column and during the change of form.

use super::*;
use crate::cell::undo;
use crate::memory::{Limbo, Memory};
use crate::version::{Snapshot, claim};

fn cell(word: u64) -> RawCell {
    RawCell { tag: 5, word }
}

/// A column that is dense from the start, and one that stays sparse.
const SLOTS: [usize; 2] = [4, 1_024];

struct Fixture {
    column: Column,
    pool: UndoPool,
    memory: Memory,
    limbo: Limbo,
}

impl Fixture {
    /// A column of this many slots, of which slot 1 is read: a dense column if there are few slots.
    fn new(slots: usize) -> Self {
        let memory = Memory::new(u64::MAX);
        let pool = UndoPool::new(RecordKind::Undo);
        Fixture { column: Column::new(slots), pool, memory, limbo: Limbo::default() }
    }

    fn space(&self) -> Space<'_> {
        Space { memory: &self.memory, limbo: &self.limbo }
    }

    fn is_dense(&self) -> bool {
        self.column.cells.get().is_some()
    }

    fn write_at(&self, at: usize, word: u64, txn: u64, statement: u16, begin_ts: u64) -> Result<Written, Contested> {
        let snapshot = Snapshot::new(begin_ts, txn, 0).with_all_own_writes();
        let claim_of = WriteClaim { snapshot: &snapshot, claim: claim(txn, statement), fresh_element: false };
        self.column.write(at, cell(word), &claim_of, &self.pool, self.space())
    }

    fn write(&self, word: u64, txn: u64, statement: u16, begin_ts: u64) -> Result<Written, Contested> {
        self.write_at(1, word, txn, statement, begin_ts)
    }

    /// The memory as counted and as added up, which must be equal.
    fn check_bytes(&self) -> u64 {
        let (values, heads) = self.column.bytes();
        let total = (values + heads + self.pool.bytes()) as u64;
        assert_eq!(self.memory.report().total_bytes(), total);
        values as u64
    }

    fn read_as(&self, at: usize, snapshot: &Snapshot<'_>) -> RawCell {
        self.column.read(at, snapshot, UndoReader::new(&self.pool, &epoch::pin()))
    }

    fn read(&self, begin_ts: u64) -> RawCell {
        self.read_as(1, &Snapshot::committed(begin_ts))
    }
}

#[test]
fn each_snapshot_reads_its_version() {
    for slots in SLOTS {
        let f = Fixture::new(slots);
        for ts in [3, 6, 9] {
            let Ok(Written::Undo(undo)) = f.write(ts * 10, ts, 1, ts - 1) else { panic!("no conflict expected") };
            assert_ne!(f.read(100), cell(ts * 10), "a claim is not seen");
            undo::finalize(undo, ts, &f.pool);
        }
        assert_eq!(f.read(2), RawCell::ABSENT);
        assert_eq!(
            (f.read(3), f.read(5), f.read(6), f.read(8), f.read(9)),
            (cell(30), cell(30), cell(60), cell(60), cell(90))
        );
        f.check_bytes();
    }
}

#[test]
fn the_first_updater_wins() {
    for slots in SLOTS {
        let f = Fixture::new(slots);
        let Ok(Written::Undo(undo)) = f.write(1, 1, 1, 0) else { panic!() };
        assert_eq!(f.write(2, 2, 1, 0), Err(Contested));
        undo::finalize(undo, 5, &f.pool);
        assert_eq!(f.write(2, 2, 1, 4), Err(Contested), "committed after its begin");
        assert!(f.write(2, 2, 1, 5).is_ok());
        f.check_bytes();
    }
}

#[test]
fn a_statement_sees_the_finished_ones_and_overwrites_itself() {
    for slots in SLOTS {
        let f = Fixture::new(slots);
        assert!(matches!(f.write(1, 1, 1, 0), Ok(Written::Undo(_))));
        assert_eq!(f.write(2, 1, 1, 0), Ok(Written::InPlace(cell(1))));
        assert!(matches!(f.write(3, 1, 2, 0), Ok(Written::Undo(_))));
        let own = |statement| f.read_as(1, &Snapshot::new(0, 1, statement));
        assert_eq!((own(0), own(1), own(2)), (RawCell::ABSENT, cell(2), cell(3)));
        f.check_bytes();
    }
}

#[test]
fn a_cut_takes_what_no_snapshot_reads() {
    for slots in SLOTS {
        let f = Fixture::new(slots);
        for ts in [3, 6, 9] {
            let Ok(Written::Undo(undo)) = f.write(ts * 10, ts, 1, ts - 1) else { panic!("no conflict expected") };
            undo::finalize(undo, ts, &f.pool);
        }
        let cut = |oldest| {
            let mut gone = Vec::new();
            f.column.cut(1, oldest, &f.pool, |record| gone.push(record));
            gone
        };
        assert_eq!(cut(2), [0; 0]);
        assert_eq!(cut(4), [1], "the first version is read up to 3 only, where its successor begins");
        assert_eq!((f.read(4), f.read(6), f.read(9)), (cell(30), cell(60), cell(90)));
        let Ok(Written::Undo(running)) = f.write(7, 12, 1, 9) else { panic!() };
        assert_eq!(cut(9), [3, 2], "a claim keeps its own record only");
        assert_eq!(f.read(9), cell(90));
        f.column.restore(1, running, &f.pool);
        undo::forget(running, 12, &f.pool);
        assert_eq!(cut(9), [0; 0], "readers of the rollback may be about");
        undo::end_rollback(running, &f.pool);
        assert_eq!(undo::old_value(running, &f.pool), RawCell::ABSENT);
        assert_eq!((cut(9), f.read(9)), (vec![running], cell(90)));
        assert_eq!((f.column.clear(1, &f.pool, |_| panic!("no chain")), f.read(9)), (cell(90), RawCell::ABSENT));
        f.check_bytes();
    }
}

#[test]
fn a_rollback_of_several_versions_leaves_the_oldest() {
    for slots in SLOTS {
        let f = Fixture::new(slots);
        let Ok(Written::Undo(base)) = f.write(7, 1, 1, 0) else { panic!() };
        undo::finalize(base, 4, &f.pool);
        let mut undone = Vec::new();
        for statement in 1..4 {
            let Ok(Written::Undo(undo)) = f.write(u64::from(statement), 2, statement, 4) else { panic!() };
            undone.push(undo);
        }
        let values = undone.iter().rev().map(|&undo| f.column.restore(1, undo, &f.pool).word);
        assert!(values.eq([3, 2, 1]));
        assert_eq!((f.read(3), f.read(4)), (RawCell::ABSENT, cell(7)));
        for &undo in undone.iter().rev() {
            undo::forget(undo, 2, &f.pool);
            assert_eq!((f.read(3), f.read(4)), (RawCell::ABSENT, cell(7)));
        }
        assert!(matches!(f.write(8, 3, 1, 4), Ok(Written::Undo(_))), "the cell is free again");
        f.check_bytes();
    }
}

#[test]
fn a_column_becomes_dense_with_claims_chains_and_rollbacks_in_it() {
    let f = Fixture::new(128);
    f.column.set_in_place(9, cell(90), f.space());
    // Slot 1 has two versions, slot 2 a claim that is taken back later, slot 3 one that commits later.
    for ts in [3, 6] {
        let Ok(Written::Undo(undo)) = f.write(ts * 10, ts, 1, ts - 1) else { panic!("no conflict expected") };
        undo::finalize(undo, ts, &f.pool);
    }
    let Ok(Written::Undo(lost)) = f.write_at(2, 22, 7, 1, 6) else { panic!("no conflict expected") };
    let Ok(Written::Undo(kept)) = f.write_at(3, 33, 8, 1, 6) else { panic!("no conflict expected") };
    let read = |at, ts| f.read_as(at, &Snapshot::committed(ts));
    let check = || {
        assert_eq!((read(1, 2), read(1, 3), read(1, 5), read(1, 6)), (RawCell::ABSENT, cell(30), cell(30), cell(60)));
        assert_eq!((read(2, 99), read(3, 6), read(9, 0)), (RawCell::ABSENT, RawCell::ABSENT, cell(90)));
        assert_eq!(f.write_at(2, 1, 9, 1, 6), Err(Contested));
        f.check_bytes();
    };
    assert!(!f.is_dense());
    check();
    for at in 10..28 {
        f.column.set_in_place(at, cell(at as u64), f.space());
        check();
    }
    assert!(f.is_dense());
    assert!((10..28).all(|at| read(at, 0) == cell(at as u64)));
    assert_eq!(f.column.restore(2, lost, &f.pool), cell(22));
    undo::forget(lost, 7, &f.pool);
    undo::finalize(kept, 9, &f.pool);
    assert_eq!((read(2, 99), read(3, 8), read(3, 9)), (RawCell::ABSENT, RawCell::ABSENT, cell(33)));
    assert!(f.write_at(2, 1, 9, 1, 6).is_ok(), "the cell is free again");
    crate::memory::release_boxes(&f.limbo);
}

#[test]
fn the_cells_of_elements_that_are_gone_do_not_make_a_column_grow() {
    let count = if cfg!(miri) { 64 } else { 1_024 };
    let f = Fixture::new(count);
    for at in 0..count {
        f.column.set_in_place(at, cell(at as u64 + 1), f.space());
        assert_eq!(f.column.clear(at, &f.pool, |_| panic!("no chain")), cell(at as u64 + 1));
        assert!(f.check_bytes() < 200);
    }
    assert!(!f.is_dense());
    assert_eq!(f.column.newest(5), RawCell::ABSENT);
}

#[test]
fn threads_write_and_read_cells_of_a_column_that_changes_its_form() {
    for round in 0..if cfg!(miri) { 1 } else { 20 } {
        let f = Fixture::new(256);
        std::thread::scope(|scope| {
            for thread in 0..3_u64 {
                let f = &f;
                scope.spawn(move || {
                    for n in 0..60 {
                        let at = (n * 3 + thread) as usize;
                        let txn = 1 + round * 1_000 + n * 3 + thread;
                        let Ok(Written::Undo(undo)) = f.write_at(at, txn, txn, 1, 0) else { panic!("nobody else's") };
                        assert_eq!(f.read_as(at, &Snapshot::committed(5)), RawCell::ABSENT);
                        match n % 2 {
                            0 => undo::finalize(undo, 5, &f.pool),
                            _ => {
                                f.column.restore(at, undo, &f.pool);
                                undo::forget(undo, txn, &f.pool);
                            }
                        }
                        for before in (thread as usize..=at).step_by(3) {
                            let seen = f.read_as(before, &Snapshot::committed(5));
                            let txn = 1 + round * 1_000 + before as u64;
                            let committed = (before as u64 / 3).is_multiple_of(2);
                            assert_eq!(seen, if committed { cell(txn) } else { RawCell::ABSENT });
                        }
                    }
                });
            }
        });
        assert!(f.is_dense());
        f.check_bytes();
        crate::memory::release_boxes(&f.limbo);
    }
}

#[test]
fn threads_that_cut_one_cell_share_its_records() {
    const LAST: u64 = 300;
    for slots in SLOTS {
        let f = Fixture::new(slots);
        let oldest = AtomicU64::new(0);
        let cut_to_the_end = |f: &Fixture| {
            let mut gone = Vec::new();
            loop {
                let ts = oldest.load(Ordering::Acquire);
                let _pin = epoch::pin();
                f.column.cut(1, ts, &f.pool, |record| gone.push(record));
                if ts == LAST {
                    return gone;
                }
            }
        };
        let mut gone = std::thread::scope(|scope| {
            let cutters = [(); 2].map(|()| scope.spawn(|| cut_to_the_end(&f)));
            for ts in 1..=LAST {
                let Ok(Written::Undo(undo)) = f.write(ts, ts, 1, ts - 1) else { panic!("nobody else writes") };
                undo::finalize(undo, ts, &f.pool);
                // Chains of up to three records, so that some are cut after their newest record.
                oldest.store(if ts == LAST { ts } else { ts - ts % 3 }, Ordering::Release);
            }
            cutters.map(|cutter| cutter.join().expect("no panic")).concat()
        });
        gone.sort_unstable();
        assert!(gone.into_iter().eq(1..=LAST), "each record is cut off by one thread");
        assert_eq!(f.read(LAST), cell(LAST));
        crate::memory::release_boxes(&f.limbo);
    }
}
