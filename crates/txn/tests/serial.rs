//! Random interleavings of serializable transactions, checked by running them again one after the other.
//!
//! Every transaction records its operations and their results. The committed ones are then replayed on a plain model in
//! the order of their commit timestamps (one without writes comes after the timestamp that it read at): every recorded
//! result must equal that of the model. One seed is one history; `MANGROVE_CASES` is the number of histories.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use mangrove_graph::{
    Direction, Error, ErrorKind, GraphView, IndexRange, LabelFilter, ScanCursor, Share, UserId, Value, VertexId,
};
use mangrove_txn::{CommitInfo, RecentOptions, Transaction, Validating};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{Graph, expand, find};

#[derive(Clone, Debug, PartialEq)]
enum Did {
    // Reads, with their results.
    Balance(VertexId, Option<i64>),
    Targets(VertexId, Vec<VertexId>),
    Degree(VertexId, u64),
    Count(u64),
    Between(i64, i64, Vec<VertexId>),
    Equal(i64, Vec<VertexId>),
    Found(i64, Option<VertexId>),
    Missing(VertexId),
    // Writes.
    Set(VertexId, i64),
    Remove(VertexId),
    Insert(VertexId, Option<i64>),
    Connect(VertexId, VertexId),
    Delete(VertexId),
}

#[derive(Clone, Debug, Default)]
struct Vertex {
    balance: Option<i64>,
    id: Option<i64>,
    targets: Vec<VertexId>,
}

#[derive(Clone, Debug, Default)]
struct Model {
    vertices: BTreeMap<VertexId, Vertex>,
}

impl Model {
    fn with_balance(&self, takes: impl Fn(i64) -> bool) -> Vec<VertexId> {
        self.vertices.iter().filter(|(_, v)| v.balance.is_some_and(&takes)).map(|(id, _)| *id).collect()
    }

    /// Repeats one operation. A read must have its recorded result.
    fn repeat(&mut self, did: &Did) -> Did {
        let vertex = |id: &VertexId| self.vertices.get(id).cloned().unwrap_or_default();
        match did {
            Did::Balance(v, _) => Did::Balance(*v, vertex(v).balance),
            Did::Targets(v, _) => {
                let mut targets = vertex(v).targets;
                targets.sort_unstable();
                Did::Targets(*v, targets)
            }
            Did::Degree(v, _) => {
                let incoming = self.vertices.values().flat_map(|o| &o.targets).filter(|t| *t == v).count();
                Did::Degree(*v, (vertex(v).targets.len() + incoming) as u64)
            }
            Did::Count(_) => Did::Count(self.vertices.len() as u64),
            Did::Between(low, high, _) => Did::Between(*low, *high, self.with_balance(|b| b >= *low && b < *high)),
            Did::Equal(value, _) => Did::Equal(*value, self.with_balance(|b| b == *value)),
            Did::Found(id, _) => {
                Did::Found(*id, self.vertices.iter().find(|(_, v)| v.id == Some(*id)).map(|(v, _)| *v))
            }
            Did::Missing(v) if self.vertices.contains_key(v) => panic!("{v:?} was there"),
            Did::Missing(_) => did.clone(),
            write => {
                self.apply(write);
                did.clone()
            }
        }
    }

    fn apply(&mut self, write: &Did) {
        match *write {
            Did::Set(v, balance) => self.vertices.get_mut(&v).expect("it is there").balance = Some(balance),
            Did::Remove(v) => self.vertices.get_mut(&v).expect("it is there").balance = None,
            Did::Insert(v, id) => {
                let taken = self.vertices.values().any(|other| id.is_some() && other.id == id);
                assert!(!taken, "{id:?} was taken");
                self.vertices.insert(v, Vertex { id, ..Vertex::default() });
            }
            Did::Connect(source, target) => {
                assert!(self.vertices.contains_key(&target), "no dangling edge");
                self.vertices.get_mut(&source).expect("no dangling edge").targets.push(target);
            }
            Did::Delete(v) => {
                self.vertices.remove(&v);
                self.vertices.values_mut().for_each(|other| other.targets.retain(|target| *target != v));
            }
            _ => unreachable!("reads change nothing"),
        }
    }
}

#[derive(Debug)]
struct Committed {
    timestamp: u64,
    is_reader: bool,
    did: Vec<Did>,
}

/// Prints the commits in order if their check fails.
struct Shown<'a>(&'a [Committed]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.iter().for_each(|committed| eprintln!("{committed:?}"));
        }
    }
}

struct History {
    graph: Graph,
    rng: SmallRng,
    running: Vec<(Transaction, Vec<Did>)>,
    validating: Vec<(Validating, Vec<Did>)>,
    committed: Vec<Committed>,
    /// All vertices that were ever added.
    known: BTreeSet<VertexId>,
    failed: usize,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        // Commits are merged as soon as they are finished, after a few others, or never.
        let merge_after = [0, 3, 1 << 15][rng.random_range(0..3)];
        let graph = Graph::with_recent(RecentOptions { merge_after, ..RecentOptions::default() });
        let settings = graph.manager.settings();
        settings.optimistic_pre_read.store(rng.random_ratio(3, 4), Ordering::Relaxed);
        settings.optimistic_validation.store(rng.random_ratio(3, 4), Ordering::Relaxed);
        let mut history = History {
            graph,
            rng,
            running: Vec::new(),
            validating: Vec::new(),
            committed: Vec::new(),
            known: BTreeSet::new(),
            failed: 0,
        };
        // A few elements to begin with.
        history.running.push((history.graph.serializable(), Vec::new()));
        (0..4).for_each(|_| history.insert(0, None));
        let (txn, did) = history.running.remove(0);
        history.keep(txn.commit(), did);
        history
    }

    fn keep(&mut self, outcome: mangrove_graph::Result<CommitInfo>, did: Vec<Did>) {
        match outcome {
            Ok(CommitInfo { timestamp, write_count, .. }) => {
                self.committed.push(Committed { timestamp, is_reader: write_count == 0, did });
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                self.failed += 1;
            }
        }
    }

    /// Validators in the order of their timestamps: each waits only for earlier ones.
    fn finish_one(&mut self) {
        let (validating, did) = self.validating.remove(0);
        if self.rng.random_ratio(1, 8) {
            drop(validating);
        } else {
            self.keep(validating.finish(), did);
        }
    }

    fn pick(&mut self) -> VertexId {
        let at = self.rng.random_range(0..self.known.len());
        *self.known.iter().nth(at).expect("inside the set")
    }

    fn step(&mut self) {
        if self.running.is_empty() || (self.running.len() < 4 && self.rng.random_ratio(1, 6)) {
            return self.running.push((self.graph.serializable(), Vec::new()));
        }
        let who = self.rng.random_range(0..self.running.len());
        let what = self.rng.random_range(0..24);
        if (9..17).contains(&what) {
            // A write waits for the validators that its transaction depends on, and on this thread no other code would
            // end them.
            while !self.validating.is_empty() {
                self.finish_one();
            }
        }
        match what {
            0..9 => self.read(who),
            9..12 => self.set(who),
            12 => self.remove(who),
            13 => {
                let id = self.rng.random_ratio(1, 2).then(|| -self.rng.random_range(1..4_i64));
                self.insert(who, id);
            }
            14..16 => self.connect(who),
            16 => self.delete(who),
            17..20 => {
                let (txn, did) = self.running.remove(who);
                // A transaction without writes draws no timestamp, and waits for all.
                if !txn.has_writes() {
                    while !self.validating.is_empty() {
                        self.finish_one();
                    }
                    return self.keep(txn.commit(), did);
                }
                match txn.enter_validation() {
                    Ok(validating) => self.validating.push((validating, did)),
                    Err(error) => self.keep(Err(error), did),
                }
            }
            20..23 if !self.validating.is_empty() => self.finish_one(),
            _ => {}
        }
    }

    fn read(&mut self, who: usize) {
        let (v, low) = (self.pick(), self.rng.random_range(0..8));
        let (txn, graph) = (&self.running[who].0, &self.graph);
        let seen = match self.rng.random_range(0..9) {
            0..3 => Did::Balance(v, graph.get(txn, v)),
            3 => {
                let mut targets: Vec<_> = expand(txn, &[v], Direction::Out, 2).into_iter().map(|(_, t, _)| t).collect();
                targets.sort_unstable();
                Did::Targets(v, targets)
            }
            4 => {
                let mut out = Vec::new();
                txn.degrees(&[v], Direction::Both, &LabelFilter::Any, &mut out).unwrap();
                Did::Degree(v, out[0])
            }
            5 => Did::Count(txn.count_vertices(&LabelFilter::Any, Share::ALL).unwrap()),
            6 => {
                let bound = |n: i64, inclusive| Some((Value::I64(n), inclusive));
                let range = IndexRange::Between { low: bound(low, true), high: bound(low + 3, false) };
                Did::Between(low, low + 3, self.search(txn, &range))
            }
            7 => Did::Equal(low, self.search(txn, &IndexRange::Equal(vec![Value::I64(low)]))),
            _ => Did::Found(-1 - low % 3, find(txn, -1 - low % 3)),
        };
        self.running[who].1.push(seen);
    }

    fn search(&self, txn: &Transaction, range: &IndexRange) -> Vec<VertexId> {
        let (mut out, mut cursor) = (Vec::new(), ScanCursor::default());
        let (any, key) = (LabelFilter::Any, self.graph.balance);
        while !txn.scan_vertices_where(&any, key, range, Share::ALL, &mut cursor, 5, &mut out).unwrap() {}
        out.sort_unstable();
        out
    }

    /// Records the effect of a write, or that it found nothing. A conflict ends the transaction.
    fn wrote<T>(
        &mut self,
        who: usize,
        outcome: mangrove_graph::Result<T>,
        did: impl FnOnce(T) -> Did,
        refused: Option<Did>,
    ) {
        match (outcome, refused) {
            (Ok(value), _) => {
                let (txn, log) = &mut self.running[who];
                txn.finish_statement().unwrap();
                log.push(did(value));
            }
            (Err(error), Some(refused)) if is_refusal(&error) => self.running[who].1.push(refused),
            (Err(error), _) if is_refusal(&error) => {}
            (Err(error), _) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                self.running.remove(who);
                self.failed += 1;
            }
        }
    }

    fn set(&mut self, who: usize) {
        let (v, balance) = (self.pick(), self.rng.random_range(0..10));
        let outcome = self.graph.set(&self.running[who].0, v, balance);
        self.wrote(who, outcome, |()| Did::Set(v, balance), Some(Did::Missing(v)));
    }

    fn remove(&mut self, who: usize) {
        let v = self.pick();
        let outcome = self.running[who].0.remove_vertex_property(v, self.graph.balance, None);
        self.wrote(who, outcome, |()| Did::Remove(v), Some(Did::Missing(v)));
    }

    fn insert(&mut self, who: usize, id: Option<i64>) {
        let outcome = self.running[who].0.insert_vertex(self.graph.person, id.map(UserId::int));
        self.known.extend(outcome.as_ref().ok());
        self.wrote(who, outcome, |v| Did::Insert(v, id), None);
    }

    fn connect(&mut self, who: usize) {
        let (s, t) = (self.pick(), self.pick());
        let outcome = self.running[who].0.insert_edge(s, t, self.graph.knows, None);
        self.wrote(who, outcome, |_| Did::Connect(s, t), None);
    }

    fn delete(&mut self, who: usize) {
        let v = self.pick();
        let outcome = self.running[who].0.delete_vertex(v);
        self.wrote(who, outcome, |()| Did::Delete(v), None);
    }

    fn check(mut self) -> (usize, usize, u64) {
        while !self.validating.is_empty() {
            self.finish_one();
        }
        self.running.clear();
        self.committed.sort_by_key(|one| (one.timestamp, one.is_reader));
        let _shown = Shown(&self.committed);
        let mut model = Model::default();
        for Committed { timestamp, did, .. } in &self.committed {
            for one in did {
                assert_eq!(*one, model.repeat(one), "at {timestamp}: {did:?}");
            }
        }
        let last = self.graph.begin();
        assert_eq!(crate::common::vertices(&last).len(), model.vertices.len());
        (self.committed.len(), self.failed, self.graph.manager.counters().pre_reads)
    }
}

fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DuplicateId)
}

#[test]
fn committed_transactions_are_as_if_one_after_the_other() {
    let cases = mangrove_testdata::case_count(20_000);
    let (mut committed, mut failed, mut pre_reads) = (0, 0, 0);
    let first = mangrove_testdata::first_seed(0);
    for seed in first..first + cases {
        let outcome = std::panic::catch_unwind(|| {
            let mut history = History::new(seed);
            (0..120).for_each(|_| history.step());
            history.check()
        });
        let (c, f, p) = outcome.unwrap_or_else(|panic| {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic)
        });
        (committed, failed, pre_reads) = (committed + c, failed + f, pre_reads + p);
    }
    assert!(committed > 2 * failed && failed as u64 > cases, "{committed} committed, {failed} failed");
    assert!(pre_reads > cases, "{pre_reads} pre-reads");
}
