//! The models of the log, which the model checker runs (`tests/model_check.rs`): committing threads and a checkpoint.

use std::collections::BTreeSet;

use mangrove_store::StoreOptions;
use shuttle::thread;

pub use super::group::model::committers_go_on_once_durable;
use super::read::read;
use super::record::Record;
use super::*;
use crate::disk::SimDisk;

const DATABASE: Uuid = Uuid::from_u128(7);
/// A commit of this size takes four blocks, and a segment has three for batches: every flush crosses into the next
/// segment.
const BODY_BYTES: usize = 13_000;

/// The watermarks, as transactions keep them.
#[derive(Debug, Default)]
struct Marks {
    stable: AtomicU64,
    durable: AtomicU64,
    /// Held from drawing a timestamp until the watermark passes it.
    order: Mutex<(), rank::EnterValidation>,
}

impl Watermarks for Marks {
    fn stable(&self) -> u64 {
        self.stable.load(Ordering::SeqCst)
    }

    fn set_durable(&self, ts: u64) {
        self.durable.store(ts, Ordering::SeqCst);
    }
}

impl Marks {
    /// The timestamp at which a read-only transaction begins.
    fn readable(&self) -> u64 {
        self.durable.load(Ordering::SeqCst).min(self.stable())
    }
}

struct Graph {
    disk: SimDisk,
    log: Log,
    marks: Marks,
}

impl Graph {
    fn new() -> Self {
        let disk = SimDisk::new();
        create_first_segment(&disk, DATABASE).expect("the disk has no trouble");
        let store = Arc::new(Store::new(&StoreOptions { tablet_count: 1, ..StoreOptions::default() }));
        let start = LogStart {
            database: DATABASE,
            epoch: 1,
            next_segment: 2,
            next_batch: 1,
            durable_ts: 0,
            names: NameCounts::of(store.catalog()),
        };
        let bytes = 4 * 4096;
        let options = LogOptions {
            segment_bytes_min: bytes,
            segment_bytes_max: bytes,
            spare_segments: 0,
            prepare_ahead: false,
            ..LogOptions::default()
        };
        let log = Log::open(Arc::new(disk.clone()), store, start, options).expect("the disk has no trouble");
        Graph { disk, log, marks: Marks::default() }
    }

    /// Commits, and returns when the commit is durable.
    fn commit(&self) {
        let forged = EncodedCommit::forged(vec![0; BODY_BYTES]);
        let prepared = Box::new(self.log.reserve(forged).expect("the disk has no trouble"));
        let ts = {
            let _turn = self.marks.order.lock();
            let ts = self.marks.stable() + 1;
            prepared.hand_over(ts);
            self.marks.stable.store(ts, Ordering::SeqCst);
            ts
        };
        self.log.wait(ts, &self.marks).expect("the disk has no trouble");
    }

    /// Takes the steps of a checkpoint. Every durable commit is in its snapshot, or in the part of the log that it
    /// leaves.
    fn checkpoint(&self) {
        let floor = self.log.checkpoint_floor().expect("the disk has no trouble");
        let snapshot = self.marks.readable();
        assert!(floor.is_covered_by(snapshot), "the log goes on at {floor:?}, after a snapshot at {snapshot}");
        let durable = self.marks.durable.load(Ordering::SeqCst);
        let mut left = BTreeSet::new();
        read(&self.disk, DATABASE, floor, &mut |record, _| {
            if let Record::Commit(commit) = record {
                left.insert(commit.timestamp);
            }
            Ok(())
        })
        .expect("the log is whole");
        let lost: Vec<u64> = (snapshot + 1..=durable).filter(|ts| !left.contains(ts)).collect();
        assert!(lost.is_empty(), "commits {lost:?} are after the snapshot at {snapshot}, and before {floor:?}");
        self.log.release_before(floor.segment).expect("the disk has no trouble");
    }
}

/// Threads that each commit some times, and one that takes checkpoints.
pub fn checkpoints_have_what_is_before_their_floor(threads: usize, rounds: usize) {
    let graph = Arc::new(Graph::new());
    let mut actors: Vec<_> = (0..threads)
        .map(|_| {
            let graph = graph.clone();
            thread::spawn(move || (0..rounds).for_each(|_| graph.commit()))
        })
        .collect();
    let checkpoints = graph.clone();
    actors.push(thread::spawn(move || (0..rounds).for_each(|_| checkpoints.checkpoint())));
    actors.into_iter().for_each(|actor| actor.join().expect("no actor panics"));
    graph.checkpoint();
}
