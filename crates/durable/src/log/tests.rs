//! The log on a disk with power cuts, full disks, failures, and flipped bits.
//!
//! Transactions here insert some vertices with one mark each. The log must contain whole transactions, in order and
//! without a gap, and every acknowledged one among them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64 as Counter;

use mangrove_graph::{ElementKind, GraphView, LabelFilter, Share, Value};
use mangrove_store::{Content, IndexOptions, Redo, StoreOptions, WriteCardinality};
use mangrove_txn::{CommitInfo, Isolation, RecentOptions, TransactionManager, TransactionOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::read::{LogEnd, read};
use super::record::Record;
use super::*;
use crate::disk::{SimDisk, read_file};
use mangrove_testdata::case_count;

const DATABASE: Uuid = Uuid::from_u128(7);

/// A disk with the log of a new database.
fn new_disk() -> SimDisk {
    let disk = SimDisk::new();
    create_first_segment(&disk, DATABASE).unwrap();
    disk
}

fn small_segments() -> LogOptions {
    let bytes = 5 * 4096;
    LogOptions { segment_bytes_min: bytes, segment_bytes_max: 2 * bytes, prepare_ahead: false, ..LogOptions::default() }
}

/// The marks of the commits in a log, by timestamp.
type Marks = BTreeMap<u64, String>;

struct Graph {
    disk: SimDisk,
    log: Arc<Log>,
    manager: TransactionManager,
    /// The marks in the log when it was opened.
    found: Marks,
    end: LogEnd,
}

fn mark_of(commit: &record::CommitRecord<'_>, position: &read::RecordPosition<'_>) -> String {
    let mut marks = Vec::new();
    let mut vertices = 0;
    commit
        .each_redo::<crate::codec::Malformed>(|redo| {
            match redo {
                Redo::Insert { .. } => vertices += 1,
                Redo::Property { content: Content::One(Value::String(mark)), .. } => marks.push(mark),
                other => panic!("nobody wrote {other:?} at {position:?}"),
            }
            Ok(())
        })
        .unwrap();
    let mut words = marks[0].split(' ');
    let (mark, count) = (words.next().unwrap(), words.next().unwrap());
    assert_eq!((vertices, marks.len()), (count.parse().unwrap(), count.parse().unwrap()), "a part of a commit");
    assert!(marks.iter().all(|other| *other == marks[0]), "parts of several commits");
    mark.to_owned()
}

fn read_marks(disk: &SimDisk, catalog: &mangrove_graph::Catalog) -> Result<(Marks, LogEnd)> {
    read_marks_from(1, disk, catalog)
}

fn read_marks_from(first: u64, disk: &SimDisk, catalog: &mangrove_graph::Catalog) -> Result<(Marks, LogEnd)> {
    let mut marks = Marks::new();
    let end = read(disk, DATABASE, LogFloor::of_segment(first), &mut |record, position| {
        match record {
            Record::Commit(commit) => {
                marks.insert(commit.timestamp, mark_of(&commit, &position));
            }
            Record::Names(names) => assert!(names.put_into(catalog), "{names:?}"),
            Record::IndexCreated(_) | Record::IndexDropped(_) | Record::Rules(_) | Record::Moment(_) => {}
            Record::Before(_) | Record::Identities(_) => panic!("the feed is off"),
        }
        Ok(())
    })?;
    Ok((marks, end))
}

impl Graph {
    fn open(disk: &SimDisk, options: LogOptions) -> Result<Self> {
        let store = Arc::new(Store::new(&StoreOptions::default()));
        let (found, end) = read_marks(disk, store.catalog())?;
        end.cut(disk)?;
        let start = LogStart {
            database: DATABASE,
            epoch: end.epoch + 1,
            next_segment: end.next_segment,
            next_batch: end.next_batch,
            durable_ts: end.last_ts,
            names: NameCounts::of(store.catalog()),
        };
        let log = Arc::new(Log::open(Arc::new(disk.clone()), store.clone(), start, options)?);
        let manager = TransactionManager::with_log(store, RecentOptions::default(), end.last_ts, log.clone());
        Ok(Graph { disk: disk.clone(), log, manager, found, end })
    }

    /// Runs a transaction that inserts vertices with a mark, of a given length.
    fn insert(&self, mark: &str, vertices: usize, filler: usize) -> Result<CommitInfo> {
        let txn = self.manager.begin(TransactionOptions::default())?;
        let catalog = txn.catalog();
        // Sometimes a new name.
        let label = catalog.intern_label_text(&format!("label{}", vertices % 5));
        let key = catalog.intern_key(&format!("key{}", filler % 7));
        for _ in 0..vertices {
            let vertex = txn.insert_vertex(label, None)?;
            let text = format!("{mark} {vertices} {}", "x".repeat(filler));
            txn.set_vertex_property(vertex, key, text.into(), WriteCardinality::Single, Vec::new())?;
        }
        txn.commit()
    }

    fn count(&self, read_only: bool) -> u64 {
        let txn = self.manager.begin(TransactionOptions { read_only, isolation: Isolation::Snapshot }).unwrap();
        txn.count_vertices(&LabelFilter::Any, Share::ALL).unwrap()
    }
}

/// Commits transactions of random sizes until the power is cut. Returns the acknowledged ones.
fn commit_until_dark(graph: &Graph, rng: &mut SmallRng, who: &str, acknowledged: &mut Marks) {
    for i in 0.. {
        let mark = format!("{who}.{i}");
        let filler = match rng.random_range(0..20) {
            0 => rng.random_range(4_000..60_000),
            _ => rng.random_range(0..300),
        };
        match graph.insert(&mark, rng.random_range(1..4), filler) {
            Ok(info) => assert_eq!(acknowledged.insert(info.timestamp, mark), None),
            Err(error) => {
                let is_expected = matches!(error.kind(), ErrorKind::OutcomeUnknown | ErrorKind::ReadOnly);
                assert!(is_expected, "{error}");
                return;
            }
        }
    }
}

/// Checks that every acknowledged commit is there, and that no commit before it is missing.
fn check_recovered(found: &Marks, acknowledged: &Marks) {
    for (ts, mark) in acknowledged {
        assert_eq!(found.get(ts), Some(mark), "acknowledged at {ts}");
    }
    let last = found.keys().next_back().copied().unwrap_or(0);
    assert_eq!(found.len() as u64, last, "the commits up to {last} without a gap");
}

/// Several runs of a database on one disk, each ended by a power cut.
fn check_power_cuts(seed: u64, threads: usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut disk, mut acknowledged) = (new_disk(), Marks::new());
    for life in 0..4 {
        // The power may be cut while the log is opened.
        disk.power_off_at(disk.operations() + rng.random_range(1..120));
        if let Ok(graph) = Graph::open(&disk, small_segments()) {
            check_recovered(&graph.found, &acknowledged);
            // A commit that was not acknowledged but was found stays.
            acknowledged = graph.found.clone();
            let seeds: Vec<u64> = (0..threads).map(|_| rng.random()).collect();
            let lives = std::thread::scope(|scope| {
                let threads: Vec<_> = (seeds.into_iter().enumerate())
                    .map(|(who, seed)| {
                        let graph = &graph;
                        scope.spawn(move || {
                            let mut marks = Marks::new();
                            commit_until_dark(
                                graph,
                                &mut SmallRng::seed_from_u64(seed),
                                &format!("{life}-{who}"),
                                &mut marks,
                            );
                            marks
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            acknowledged.extend(lives.into_iter().flatten());
        }
        disk = disk.power_cut(rng.random());
    }
    let catalog = mangrove_graph::Catalog::new();
    let (found, end) = read_marks(&disk, &catalog).unwrap();
    check_recovered(&found, &acknowledged);
    // The cut changes no record, and may be interrupted itself.
    disk.power_off_at(disk.operations() + rng.random_range(1..5));
    let _ = end.cut(&disk);
    let disk = disk.power_cut(rng.random());
    assert_eq!(read_marks(&disk, &catalog).unwrap().0, found);
}

#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    for seed in 0..case_count(400) {
        check_power_cuts(seed, 1);
    }
}

#[test]
fn power_cuts_under_threads_lose_nothing_that_was_acknowledged() {
    for seed in 0..case_count(60) {
        check_power_cuts(seed, 3);
    }
}

#[test]
fn commits_that_wait_together_share_a_sync() {
    let graph = Graph::open(&new_disk(), LogOptions::default()).unwrap();
    let next = Counter::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    graph.insert(&format!("m{n}"), 1, 0).unwrap();
                }
            });
        }
    });
    let status = graph.log.status();
    assert_eq!((status.commits, status.durable_ts, status.state), (400, 400, LogState::Running));
    assert!(status.batches <= 400 && status.sync_times.iter().sum::<u64>() == status.batches);
    assert_eq!(status.bytes, status.batches * 4096);
    let (found, end) = read_marks(&graph.disk, &mangrove_graph::Catalog::new()).unwrap();
    assert_eq!((found.len(), end.commits, end.torn), (400, 400, None));
}

#[test]
fn a_transaction_larger_than_segments_is_one() {
    let disk = new_disk();
    let graph = Graph::open(&disk, small_segments()).unwrap();
    graph.insert("small", 1, 0).unwrap();
    graph.insert("large", 10, 50_000).unwrap();
    graph.insert("after", 1, 0).unwrap();
    assert!(graph.log.status().segments > 10);
    let again = Graph::open(&disk.power_cut(1), small_segments()).unwrap();
    assert_eq!(again.found.into_values().collect::<Vec<_>>(), ["small", "large", "after"]);
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space() {
    let disk = new_disk();
    let graph = Graph::open(&disk, small_segments()).unwrap();
    disk.set_capacity(Some(disk.used()));
    let mut committed = 0;
    let error = loop {
        match graph.insert("m", 1, 10) {
            Ok(_) => committed += 1,
            Err(error) => break error,
        }
    };
    assert!(committed >= 2);
    assert_eq!((error.kind(), error.remedy()), (ErrorKind::ReadOnly, mangrove_graph::Remedy::RetryLater));
    assert!(error.message().contains("no space"), "{error}");
    assert!(matches!(graph.log.status().state, LogState::Refusing { .. }));
    assert_eq!((graph.count(true), graph.count(false)), (committed, committed), "the refused one left nothing");
    disk.set_capacity(None);
    graph.insert("m", 1, 10).unwrap();
    assert_eq!((graph.log.status().state, graph.count(true)), (LogState::Running, committed + 1));
    let counters = graph.manager.counters();
    assert_eq!(counters.aborted(mangrove_txn::AbortCause::Refused), 1);
    assert_eq!(Graph::open(&disk.power_cut(3), small_segments()).unwrap().found.len() as u64, committed + 1);
}

#[test]
fn a_failed_sync_ends_the_log_and_nothing_durable_with_it() {
    for seed in 0..30 {
        let disk = new_disk();
        let graph = Graph::open(&disk, LogOptions { prepare_ahead: false, ..LogOptions::default() }).unwrap();
        for n in 0..5 {
            graph.insert(&format!("m{n}"), 1, 0).unwrap();
        }
        disk.fail_sync(disk.syncs() + 1);
        let error = graph.insert("lost", 1, 0).unwrap_err();
        assert_eq!((error.kind(), error.remedy()), (ErrorKind::OutcomeUnknown, mangrove_graph::Remedy::CheckOutcome));
        let syncs = disk.syncs();
        let refused = graph.insert("m6", 1, 0).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly);
        assert!(refused.message().contains("cannot sync wal/"), "{refused}");
        assert_eq!(disk.syncs(), syncs, "never synced again");
        assert!(matches!(graph.log.status().state, LogState::Failed { .. }));
        assert_eq!(graph.count(true), 5, "readers go on with what is durable");
        // A transaction that may write sees the commit with the unknown outcome. Its commit is refused, because that
        // commit may be lost.
        let txn = graph.manager.begin(TransactionOptions::default()).unwrap();
        assert_eq!(txn.count_vertices(&LabelFilter::Any, Share::ALL).unwrap(), 6);
        assert_eq!(txn.commit().unwrap_err().kind(), ErrorKind::ReadOnly);
        let again = Graph::open(&disk.power_cut(seed), LogOptions::default()).unwrap();
        assert!(matches!(again.found.len(), 5 | 6));
    }
}

#[test]
fn read_only_disks_refuse_too() {
    let disk = new_disk();
    drop(Graph::open(&disk, small_segments()).unwrap());
    let graph = Graph::open(&disk, small_segments()).unwrap();
    disk.set_read_only(true);
    // The first batches have space. If the disk becomes read-only, the write fails.
    assert_eq!(graph.insert("m", 1, 0).unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(graph.insert("m", 1, 0).unwrap_err().kind(), ErrorKind::ReadOnly);
}

/// A log with a few batches in two segments. Returns the disk and the paths of the segments.
fn written() -> (SimDisk, Vec<String>) {
    let disk = new_disk();
    let graph = Graph::open(&disk, small_segments()).unwrap();
    for n in 0..7 {
        graph.insert(&format!("m{n}"), 1, 0).unwrap();
    }
    // Without the first segment, which has no batches.
    let paths = disk.files().into_iter().map(|(path, _)| path).skip(1).collect();
    (disk, paths)
}

#[test]
fn damage_is_named_with_file_and_offset() {
    let read = |disk: &SimDisk| read_marks(disk, &mangrove_graph::Catalog::new());
    let (disk, paths) = written();
    assert_eq!((paths.len(), read(&disk).unwrap().0.len()), (2, 7));
    // Each batch takes a block: four are in the first segment, three in the second.
    for (path, block, batches) in [(&paths[0], 1, 5), (&paths[0], 4, 5), (&paths[1], 2, 3)] {
        for bit in (0..90 * 8).step_by(13) {
            let (disk, _) = written();
            disk.flip_bit(path, block * 4096 + bit / 8, (bit % 8) as u8).unwrap();
            let error = read(&disk).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged);
            let position = format!("{path}, offset {}", block * 4096);
            assert!(error.message().contains(&position), "{block} of {batches}: {error}");
            assert!(error.message().ends_with("; restore the graph from a backup"), "{error}");
        }
    }
    for (path, what) in [(&paths[0], "segment"), (&paths[1], "segment")] {
        let (disk, _) = written();
        disk.flip_bit(path, 20, 1).unwrap();
        let error = read(&disk).unwrap_err();
        assert!(error.message().contains(&format!("{path}, offset 0")) && error.message().contains(what), "{error}");
    }
    let (disk, _) = written();
    disk.flip_bit(&paths[1], 8, 0).unwrap();
    let error = read(&disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let found = format!("{} has format 3", disk.describe(&paths[1]));
    assert!(error.message().contains(&found) && error.message().contains("the version that wrote it"), "{error}");
    let (disk, _) = written();
    disk.create("wal/0000000000000005").unwrap();
    assert!(read(&disk).unwrap_err().message().contains("wal/0000000000000004"));
}

#[test]
fn segments_of_format_1_are_read() {
    let (disk, paths) = written();
    let read = |disk: &SimDisk| read_marks(disk, &mangrove_graph::Catalog::new()).unwrap();
    let before = read(&disk);
    for path in &paths {
        // From 2 to 1.
        disk.flip_bit(path, 8, 0).unwrap();
        disk.flip_bit(path, 8, 1).unwrap();
    }
    assert_eq!(read(&disk), before);
}

#[test]
fn a_missing_segment_is_named_before_the_first_checkpoint_too() {
    let read = |disk: &SimDisk| read_marks(disk, &mangrove_graph::Catalog::new());
    for missing in ["wal/0000000000000001", "wal/0000000000000002"] {
        let (disk, _) = written();
        disk.remove(missing).unwrap();
        let error = read(&disk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(error.message().contains(missing) && error.message().contains("missing"), "{error}");
    }
    let (disk, _) = written();
    disk.files().into_iter().for_each(|(path, _)| disk.remove(&path).unwrap());
    assert!(read(&disk).unwrap_err().message().contains("wal/0000000000000001"));
}

#[test]
fn a_torn_end_is_cut_and_reported() {
    let (disk, paths) = written();
    // The last batch: no batch follows, so a power cut may have torn it.
    let before = read_file(&disk, &paths[1]).unwrap();
    disk.flip_bit(&paths[1], 3 * 4096 + 70, 0).unwrap();
    let graph = Graph::open(&disk, small_segments()).unwrap();
    let torn = graph.end.torn.clone().unwrap();
    assert_eq!((graph.found.len(), &torn.path, torn.offset), (6, &paths[1], 3 * 4096));
    assert!(torn.bytes > 64 && torn.bytes <= 4096 && torn.reason.contains("checksum"), "{torn:?}");
    assert_eq!(read_file(&disk, &paths[1]).unwrap(), before[..3 * 4096]);
    graph.insert("new", 1, 0).unwrap();
    let again = Graph::open(&disk, small_segments()).unwrap();
    assert_eq!((again.found.len(), again.end.torn), (7, None));
    assert_eq!(again.found[&7], "new");
}

#[test]
fn segments_that_a_checkpoint_covers_are_used_again() {
    let disk = new_disk();
    let graph = Graph::open(&disk, small_segments()).unwrap();
    let names = graph.manager.store().catalog();
    let mut reused = 0;
    for n in 1..=60 {
        graph.insert(&format!("m{n}"), 1, 2_000).unwrap();
        let floor = graph.log.checkpoint_floor().unwrap().segment;
        graph.log.release_before(floor).unwrap();
        // The current segment, a spare, and sometimes a ready one.
        assert!(disk.files().len() <= 3, "{:?}", disk.files());
        // After the last batch, a reused file has the content of its earlier use, which must be ignored.
        let (found, end) = read_marks_from(floor, &disk.power_cut(n), names).unwrap();
        assert_eq!((end.last_ts, found.get(&n)), (n, Some(&format!("m{n}"))));
        assert_eq!(end.torn, None, "nobody was interrupted");
        let path = format::segment_path(floor);
        reused += u64::from(format::SegmentHeader::decode(&read_file(&disk, &path).unwrap()).unwrap().is_reused);
    }
    assert!(reused > 20, "{reused} commits went to files that were used before");
}

/// A spare must not be removed while it becomes the next segment.
#[test]
fn segments_are_released_while_others_are_made_of_them() {
    let disk = new_disk();
    let graph = Graph::open(&disk, small_segments()).unwrap();
    let (is_over, released) = (AtomicBool::new(false), Counter::new(0));
    std::thread::scope(|scope| {
        let releasing = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let count = graph.log.release_before(graph.log.checkpoint_floor()?.segment)?;
                released.fetch_add(count as u64, Ordering::Relaxed);
            }
            Ok::<_, Error>(())
        });
        // On a busy machine the other thread may run rarely, so commits continue until it has run often enough.
        let enough = |n: u64| n > case_count(1_000) && released.load(Ordering::Relaxed) > 20;
        let mut commits = (1..=100_000).take_while(|n| !enough(*n) && !releasing.is_finished());
        let inserted = commits.try_for_each(|n| graph.insert(&format!("m{n}"), 1, 3_000).map(drop));
        is_over.store(true, Ordering::Relaxed);
        inserted.unwrap();
        releasing.join().unwrap().unwrap();
    });
    let released = released.into_inner();
    assert!(released > 20, "{released} segments were released meanwhile");
}

/// Watermarks for commits without transactions. When a flush publishes how far the log is durable, and before readers
/// can see that, this reads the floor that a checkpoint would get.
#[derive(Debug)]
struct Looking<'a> {
    log: &'a Log,
    stable: u64,
    durable: Counter,
    floors: parking_lot::Mutex<Vec<(LogFloor, u64)>>,
}

impl Watermarks for Looking<'_> {
    fn stable(&self) -> u64 {
        self.stable
    }

    fn set_durable(&self, ts: u64) {
        let before = self.durable.swap(ts, Ordering::SeqCst);
        self.floors.lock().push((self.log.checkpoint_floor().unwrap(), before));
    }
}

#[test]
fn the_floor_of_a_checkpoint_never_passes_what_its_snapshot_has() {
    let graph = Graph::open(&new_disk(), small_segments()).unwrap();
    let mut looking =
        Looking { log: &graph.log, stable: 0, durable: Counter::new(0), floors: parking_lot::Mutex::default() };
    for ts in 1..=60 {
        graph.log.forge(ts, vec![0; 9_000]);
        looking.stable = ts;
        CommitLog::wait(&*graph.log, ts, &looking).unwrap();
    }
    let floors = looking.floors.into_inner();
    assert_eq!(floors.len(), 60);
    assert!(floors.last().unwrap().0.segment > 10, "the log crossed into segment after segment");
    for (floor, snapshot) in floors {
        let mut left = Vec::new();
        read(&graph.disk, DATABASE, floor, &mut |record, _| {
            if let Record::Commit(commit) = record {
                left.push(commit.timestamp);
            }
            Ok(())
        })
        .unwrap();
        assert!(
            left.contains(&(snapshot + 1)),
            "commit {} is neither in the snapshot nor after {floor:?}",
            snapshot + 1
        );
        assert!(floor.is_covered_by(snapshot), "{floor:?} after a snapshot at {snapshot}");
    }
}

impl Log {
    /// Hands over a commit with these bytes, which no transaction would write.
    pub(crate) fn forge(&self, ts: u64, body: Vec<u8>) {
        Box::new(self.reserve(EncodedCommit::forged(body)).unwrap()).hand_over(ts);
    }
}

#[test]
fn a_flush_that_panics_ends_the_log_and_acknowledges_nothing() {
    for operation in 1..=2 {
        let graph = Graph::open(&new_disk(), small_segments()).unwrap();
        let mut looking =
            Looking { log: &graph.log, stable: 0, durable: Counter::new(0), floors: parking_lot::Mutex::default() };
        (1..=2).for_each(|ts| graph.log.forge(ts, vec![0; 100]));
        looking.stable = 2;
        graph.disk.panic_at(graph.disk.operations() + operation);
        let error = CommitLog::wait(&*graph.log, 1, &looking).unwrap_err();
        assert!(error.kind() == ErrorKind::ReadOnly && error.message().contains("the disk panics"), "{error}");
        let error = CommitLog::wait(&*graph.log, 2, &looking).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "commit 2 was taken from the queue and not written");
        assert_eq!(looking.durable.load(Ordering::SeqCst), 0);
        assert!(matches!(graph.log.status().state, LogState::Failed { .. }));
    }
}

/// One operation of the disk fails, each in turn. Commits may be refused only until the disk works again, unless a
/// write or a sync of the log itself failed.
#[test]
fn a_segment_that_could_not_be_made_is_made_by_the_next_attempt() {
    let (mut made, mut refused) = (0, 0);
    for operation in 1..200 {
        for spare_segments in [0, 1] {
            let disk = new_disk();
            let graph = Graph::open(&disk, LogOptions { spare_segments, ..small_segments() }).unwrap();
            disk.fail_at(disk.operations() + operation);
            for n in 0..20 {
                match graph.insert(&format!("m{n}"), 1, 3_000) {
                    Ok(_) => made += 1,
                    Err(_) if matches!(graph.log.status().state, LogState::Failed { .. }) => break,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
                        refused += 1;
                        graph
                            .insert("again", 1, 3_000)
                            .unwrap_or_else(|error| panic!("operation {operation}: {error}"));
                    }
                }
                let _ = graph.log.release_before(graph.log.checkpoint_floor().unwrap().segment);
            }
            let floor = graph.log.checkpoint_floor().unwrap();
            let names = graph.manager.store().catalog();
            read_marks_from(floor.segment, &disk.power_cut(operation), names).unwrap();
        }
    }
    assert!(made > 1_000 && refused > 10, "{made} commits, {refused} were refused");
}

/// A floor before which the log had the batches before `next_batch`.
fn floor_at(segment: u64, next_batch: u64) -> LogFloor {
    LogFloor { segment, before: Some(LogBefore { next_batch, last_ts: 0 }) }
}

#[test]
fn a_gap_between_checkpoint_and_log_is_damage() {
    let (disk, paths) = written();
    // Batches 1 to 4 are in segment 2, the others in segment 3.
    let read = |disk: &SimDisk, floor| read(disk, DATABASE, floor, &mut |_, _| Ok(()));
    for next_batch in 1..=8 {
        assert_eq!(read(&disk, floor_at(2, next_batch)).unwrap().next_batch, 8);
        match read(&disk, floor_at(3, next_batch)) {
            Ok(end) => assert!(next_batch >= 5 && end.next_batch == 8),
            Err(error) => {
                assert!(next_batch < 5 && error.kind() == ErrorKind::Damaged, "{next_batch}: {error}");
                assert!(error.message().contains(&format!("{}, offset 4096", paths[1])), "{error}");
                assert!(error.message().contains("found batch 5"), "{error}");
            }
        }
    }
    // The last batch was durable when the manifest was written, so it cannot be torn.
    disk.flip_bit(&paths[1], 3 * 4096 + 70, 0).unwrap();
    assert_eq!(read(&disk, floor_at(2, 7)).unwrap().next_batch, 7);
    let error = read(&disk, floor_at(2, 8)).unwrap_err();
    assert!(error.message().contains(&format!("{}, offset {}", paths[1], 3 * 4096)), "{error}");
    assert!(error.message().contains("batch 7 is missing"), "{error}");
}

#[test]
fn indexes_are_in_the_log() {
    let disk = new_disk();
    let graph = Graph::open(&disk, small_segments()).unwrap();
    let key = graph.manager.store().catalog().intern_key("name");
    let options =
        IndexOptions { element: ElementKind::Vertex, label: None, keys: vec![key], ordered: true, unique: false };
    let first = graph.manager.create_index(&options).unwrap();
    let second = graph.manager.create_index(&IndexOptions { ordered: false, unique: true, ..options }).unwrap();
    graph.manager.drop_index(first).unwrap();
    let mut said = Vec::new();
    read(&disk.power_cut(5), DATABASE, LogFloor::of_segment(1), &mut |record, _| {
        match record {
            Record::IndexCreated(info) => said.push((info.id, info.unique)),
            Record::IndexDropped(id) => said.push((id, false)),
            Record::Names(names) => assert_eq!(names.keys, ["name"]),
            Record::Moment(_) => {}
            Record::Commit(_) | Record::Rules(_) | Record::Before(_) | Record::Identities(_) => {
                panic!("the test has made no commit and no rule")
            }
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(said, [(first, false), (second, true), (first, false)]);
    disk.set_capacity(Some(0));
    disk.fail_sync(disk.syncs() + 1);
    assert!(graph.manager.drop_index(second).is_err());
    assert_eq!(graph.manager.store().indexes().len(), 1, "not dropped, as the log does not say so");
}
