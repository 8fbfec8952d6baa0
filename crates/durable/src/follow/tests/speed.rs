//! How fast commits are redone. A measurement, which is run by hand:
//! `cargo test -p mangrove-durable --lib follow::tests::speed -- --ignored --nocapture`.

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::{EdgeId, LabelSetId, UserId, Value, VertexId};
use mangrove_store::WriteCardinality;
use mangrove_txn::{Isolation, TransactionOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::super::*;
use super::{options, tail_with};
use crate::durable_home::tests::{self as owners, WAIT};
use crate::home::MemoryHome;
use crate::stream::log::ObjectLogOptions;
use crate::testing::{dump_now, quiet};

/// A number from the environment.
fn asked(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The time that this thread has had a core, in microseconds. 0 where the system does not tell.
fn core_us() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or_default() / 1_000
}

/// The mix of LinkBench's writes, in thousandths: a vertex is added, updated, deleted; an edge is added, deleted, updated.
const MIX: [(u32, Op); 6] = [
    (84, Op::AddNode),
    (239, Op::UpdateNode),
    (32, Op::DeleteNode),
    (290, Op::AddLink),
    (97, Op::DeleteLink),
    (258, Op::UpdateLink),
];

#[derive(Clone, Copy)]
enum Op {
    AddNode,
    UpdateNode,
    DeleteNode,
    AddLink,
    DeleteLink,
    UpdateLink,
}

/// A client with vertices and edges of its own, so that no two clients meet.
struct Client<'a> {
    graph: &'a DurableHome,
    rng: SmallRng,
    next_id: i64,
    nodes: Vec<VertexId>,
    links: Vec<EdgeId>,
    labels: [LabelSetId; 2],
    keys: [mangrove_graph::KeyId; 4],
}

impl<'a> Client<'a> {
    fn new(graph: &'a DurableHome, number: u64) -> Self {
        let catalog = graph.manager().store().catalog();
        Client {
            graph,
            rng: SmallRng::seed_from_u64(number),
            next_id: number as i64 * 1_000_000_000,
            nodes: Vec::new(),
            links: Vec::new(),
            labels: ["node", "link"].map(|name| catalog.intern_label_text(name)),
            keys: ["version", "time", "data", "visibility"].map(|name| catalog.intern_key(name)),
        }
    }

    fn drawn(&mut self) -> Op {
        let mut at = self.rng.random_range(0..1_000);
        let op = MIX.iter().find(|(share, _)| {
            let is_here = at < *share;
            at = at.saturating_sub(*share);
            is_here
        });
        let op = op.map_or(Op::UpdateLink, |(_, op)| *op);
        match (op, self.nodes.len(), self.links.len()) {
            (_, 0..100, _) => Op::AddNode,
            (Op::DeleteLink | Op::UpdateLink, _, 0) => Op::AddLink,
            (op, ..) => op,
        }
    }

    fn text(&mut self, bytes: usize) -> Value {
        let text: String = (0..bytes).map(|_| char::from(self.rng.random_range(b'a'..=b'z'))).collect();
        Value::from(text.as_str())
    }

    fn commit(&mut self) {
        let op = self.drawn();
        let [version, time, data, visibility] = self.keys;
        let isolation = TransactionOptions { isolation: Isolation::Snapshot, read_only: false };
        let txn = self.graph.manager().begin(isolation).unwrap();
        let now = self.rng.random_range(1_000_000_000_000..2_000_000_000_000_i64);
        let set_vertex = |vertex, key, value: Value| {
            txn.set_vertex_property(vertex, key, value, WriteCardinality::Single, Vec::new()).unwrap();
        };
        let at = |rng: &mut SmallRng, len: usize| rng.random_range(0..len);
        match op {
            Op::AddNode => {
                self.next_id += 1;
                let vertex = txn.insert_vertex(self.labels[0], Some(UserId::int(self.next_id))).unwrap();
                set_vertex(vertex, version, Value::I64(1));
                set_vertex(vertex, time, Value::I64(now));
                let text = self.text(128);
                set_vertex(vertex, data, text);
                self.nodes.push(vertex);
            }
            Op::UpdateNode => {
                let vertex = self.nodes[at(&mut self.rng, self.nodes.len())];
                set_vertex(vertex, version, Value::I64(now % 100));
                set_vertex(vertex, time, Value::I64(now));
                let text = self.text(128);
                set_vertex(vertex, data, text);
            }
            Op::DeleteNode => {
                // Of those without edges, as a rule.
                let vertex = self.nodes.swap_remove(at(&mut self.rng, self.nodes.len()));
                txn.delete_vertex(vertex).unwrap();
            }
            Op::AddLink => {
                let ends = [0, 1].map(|_| self.nodes[at(&mut self.rng, self.nodes.len())]);
                let edge = txn.insert_edge(ends[0], ends[1], self.labels[1], None).unwrap();
                txn.set_edge_property(edge, visibility, Value::I64(1)).unwrap();
                txn.set_edge_property(edge, time, Value::I64(now)).unwrap();
                let text = self.text(12);
                txn.set_edge_property(edge, data, text).unwrap();
                self.links.push(edge);
            }
            Op::DeleteLink => {
                let edge = self.links.swap_remove(at(&mut self.rng, self.links.len()));
                // It may have gone with one of its ends.
                let _ = txn.delete_edge(edge);
            }
            Op::UpdateLink => {
                let edge = self.links[at(&mut self.rng, self.links.len())];
                let text = self.text(12);
                if txn.set_edge_property(edge, data, text).is_ok() {
                    txn.set_edge_property(edge, time, Value::I64(now)).unwrap();
                }
            }
        }
        txn.finish_statement().unwrap();
        txn.commit().unwrap();
    }
}

#[test]
#[ignore = "a measurement, whose figures docs/design/stream.md has"]
fn redo_of_small_commits() {
    let commits = asked("MANGROVE_COMMITS", 200_000);
    // So many commits share an object, at most.
    let clients = asked("MANGROVE_CLIENTS", 64);
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let mut of_owner = owners::options();
    of_owner.log = ObjectLogOptions { log_interval: Duration::from_millis(2), ..ObjectLogOptions::default() };
    let owner = DurableHome::open(home.clone(), &of_owner, &|_| ()).unwrap();
    let mut tail = tail_with(&home, &options()).unwrap();
    tail.manager().settings().gc_workers.store(1, Ordering::Relaxed);
    let left = AtomicU64::new(commits);
    let begun = clock::now();
    std::thread::scope(|scope| {
        for number in 0..clients {
            let (owner, left) = (&owner, &left);
            let client = std::thread::Builder::new().name("client".into());
            let commits = move || {
                let mut client = Client::new(owner, number);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    client.commit();
                }
            };
            client.spawn_scoped(scope, commits).unwrap();
        }
    });
    let owner_us = clock::now().us - begun.us;
    quiet(owner.manager());
    let (begun, begun_core_us) = (clock::now(), core_us());
    while tail.step().unwrap() != Found::Nothing {}
    let (took_us, core_us) = (clock::now().us - begun.us, core_us() - begun_core_us);
    let (objects, redone) = (tail.end.objects, tail.end.commits);
    println!(
        "{redone} commits in {objects} objects: the owner committed {} a second, and the follower redid {} a second, {} a second \
         of its core",
        redone * 1_000_000 / owner_us,
        redone * 1_000_000 / took_us,
        redone * 1_000_000 / core_us.max(1)
    );
    quiet(tail.manager());
    assert!(dump_now(tail.manager()) == dump_now(owner.manager()));
    owner.close(WAIT).unwrap();
}
