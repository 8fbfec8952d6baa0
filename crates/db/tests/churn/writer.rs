//! A writer: transactions of random reads and writes, one step at a time.

use mangrove::{
    EdgeId, Error, ErrorKind, Isolation, Result, Transaction, TransactionOptions, UserId, Value, ValueRows, VertexId,
};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::book::{Attempt, Made};
use crate::life::Life;
use crate::model::{COUNT, EDGE_LABELS, HUB, KEYS, Op, Tag, VERTEX_LABELS, WRITER, net, value_of};
use crate::names::Outcome;
use crate::observed::Observed;
use crate::reading::Reading;

/// The ids of vertices that count their writers' commits.
pub const WRITER_ID: i64 = 1_000_000;
/// The number of hubs at the beginning.
const HUBS: u64 = 3;
/// About the numbers of vertices and edges that the graph settles at.
const VERTICES: usize = 300;
const EDGES: usize = 4_000;

/// A client that runs transactions of random reads and writes, one step at a time.
pub struct Writer<'a> {
    life: &'a Life,
    writer: usize,
    /// The number of its last transaction.
    number: u64,
    next_tag: Tag,
    pub random: SmallRng,
    running: Option<Running>,
    pub op_count: u64,
}

struct Running {
    transaction: Transaction,
    isolation: Isolation,
    attempt: Attempt,
    made: Made,
    seen: Vec<Observed>,
    reads_left: usize,
    writes_left: usize,
}

impl<'a> Writer<'a> {
    /// A writer whose last transaction had this number. `first_tag` is the first of the tags that only this writer
    /// gives.
    pub fn new(life: &'a Life, writer: usize, number: u64, first_tag: Tag, random: SmallRng) -> Self {
        Writer { life, writer, number, next_tag: first_tag, random, running: None, op_count: 0 }
    }

    /// Makes hubs, and a vertex for every writer to count on.
    pub fn set_up(&mut self, writer_count: usize) -> Outcome<()> {
        let mut running = self.begin(Isolation::Serializable).map_err(said)?;
        for writer in 0..writer_count {
            self.add_vertex(&mut running, WRITER, Some(WRITER_ID + writer as i64)).map_err(said)?;
            let tag = running.made.vertices[writer].0;
            let count = if writer == self.writer { self.number } else { 0 };
            self.set_vertex(&mut running, writer, tag, COUNT, count).map_err(said)?;
        }
        for _ in 0..HUBS {
            self.add_vertex(&mut running, HUB, None).map_err(said)?;
        }
        self.commit(running)
    }

    /// Begins a transaction, does one operation in it, or commits it.
    pub fn step(&mut self) -> Outcome<()> {
        let Some(mut running) = self.running.take() else {
            let isolation = self.life.isolation(&mut self.random);
            let acknowledged = self.life.book().last_ts();
            return match self.begin(isolation) {
                Ok(running) => sees(self.running.insert(running).attempt.begin_ts, acknowledged),
                Err(error) => self.life.excuse(error),
            };
        };
        let outcome = match (running.reads_left, running.writes_left) {
            (0, 0) if self.random.random_bool(0.03) => {
                running.transaction.rollback();
                return Ok(());
            }
            (0, 0) => return self.commit(running),
            (0, _) => {
                running.writes_left -= 1;
                self.write(&mut running)
            }
            (_, _) => {
                running.reads_left -= 1;
                self.read(&mut running)
            }
        };
        match outcome {
            Ok(()) => self.running = Some(running),
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return self.life.excuse(error),
        }
        Ok(())
    }

    fn begin(&mut self, isolation: Isolation) -> Result<Running> {
        let transaction = self.life.db().begin_with(TransactionOptions { isolation, read_only: false })?;
        self.number += 1;
        let (writer, number, begin_ts) = (self.writer, self.number, transaction.begin_ts());
        Ok(Running {
            transaction,
            isolation,
            attempt: Attempt { writer, number, begin_ts, ops: Vec::new() },
            made: Made::default(),
            seen: Vec::new(),
            reads_left: self.random.random_range(0..4),
            writes_left: self.random.random_range(1..12),
        })
    }

    fn commit(&mut self, mut running: Running) -> Outcome<()> {
        let counted = match self.life.counter(self.writer) {
            Some((tag, vertex)) => self.count(&mut running, tag, vertex),
            None => Ok(()),
        };
        match counted {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(()),
            Err(error) => return self.life.excuse(error),
        }
        let Running { transaction, isolation, mut attempt, made, seen, .. } = running;
        attempt.ops = net(attempt.ops);
        let (book, begin_ts) = (self.life.book(), attempt.begin_ts);
        let op_count = attempt.ops.len() + seen.len();
        book.asks(&attempt);
        match transaction.commit() {
            Ok(info) => {
                book.committed(attempt, info.timestamp, made)?;
                self.op_count += op_count as u64;
                // The place of a serializable transaction is that of its commit: it has seen all commits before it.
                let ts = if isolation == Isolation::Serializable { info.timestamp - 1 } else { begin_ts };
                book.check(&seen, ts).map_err(|error| format!("{isolation:?} transaction of begin {begin_ts}, {error}"))
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {
                book.aborted(&attempt);
                Ok(())
            }
            Err(error) => {
                book.unknown(attempt);
                self.life.excuse(error)
            }
        }
    }

    fn count(&mut self, running: &mut Running, tag: Tag, vertex: VertexId) -> Result<()> {
        let number = running.attempt.number;
        running.transaction.set_vertex_property(KEYS[COUNT], &[(vertex, value_of(COUNT, number))])?;
        running.attempt.ops.push(Op::SetVertex { tag, key: COUNT, value: number });
        Ok(())
    }

    /// Reads, before the first write, because then the model has the expected result.
    fn read(&mut self, running: &mut Running) -> Result<()> {
        let reading = self.life.reading(&running.transaction);
        if self.life.has_threads() && self.random.random_bool(0.2) {
            return read_on_two_threads(&reading, &mut self.random, &mut running.seen);
        }
        if self.random.random_bool(0.7) {
            return reading.look(&mut self.random, &mut running.seen);
        }
        let Some(mut walk) = reading.begin_walk(&mut self.random)? else { return Ok(()) };
        loop {
            match reading.walk_on(walk, self.random.random_range(1..200))? {
                Ok(observed) => {
                    running.seen.push(observed);
                    return Ok(());
                }
                Err(further) => walk = further,
            }
        }
    }

    fn write(&mut self, running: &mut Running) -> Result<()> {
        let (vertices, edges) = self.life.book().sizes();
        let has_enough = (vertices > VERTICES, edges > EDGES);
        match self.random.random_range(0..100) {
            0..12 if has_enough.0 => self.delete_vertex(running),
            0..12 => {
                let label = if self.random.random_bool(0.02) { HUB } else { self.random.random_range(0..HUB) };
                let id = self.random.random_bool(0.5).then(|| self.random.random_range(1..self.life.book().id_count()));
                self.add_vertex(running, label, id)
            }
            12..15 => self.delete_vertex(running),
            15..50 if has_enough.1 && self.random.random() => self.delete_edge(running),
            15..50 => self.add_edges(running),
            50..62 => self.delete_edge(running),
            62..86 => self.write_vertex(running),
            _ => self.write_edge(running),
        }
    }

    fn new_tag(&mut self) -> Tag {
        self.next_tag += 1;
        self.next_tag
    }

    fn add_vertex(&mut self, running: &mut Running, label: usize, id: Option<i64>) -> Result<()> {
        let (transaction, tag) = (&running.transaction, self.new_tag());
        if let Some(id) = id {
            let mut found = Vec::new();
            transaction.view().find_vertices(&[UserId::from(id)], &mut found)?;
            if found[0].is_some() {
                return Ok(());
            }
        }
        let vertex = transaction.insert_vertex(self.life.names().vertex_labels[label], id.map(UserId::from))?;
        transaction.set_vertex_property(crate::model::TAG, &[(vertex, Value::I64(tag as i64))])?;
        let mut ids = Vec::new();
        transaction.view().vertex_user_ids(&[vertex], &mut ids)?;
        let Some(Value::I64(id)) = ids.pop() else { return Err(Error::bug("an id that is no number")) };
        running.attempt.ops.push(Op::AddVertex { tag, label, id });
        running.made.vertices.push((tag, vertex, label));
        Ok(())
    }

    /// One of the transaction's own vertices, or an earlier one.
    fn some_vertex(&mut self, running: &Running) -> Result<Option<(Tag, VertexId)>> {
        let own = &running.made.vertices;
        if own.is_empty() || self.random.random_bool(0.7) {
            return self.life.reading(&running.transaction).visible_vertex(&mut self.random);
        }
        let (tag, vertex, _) = own[self.random.random_range(0..own.len())];
        let mut visible = vec![vertex];
        running.transaction.view().retain_vertices(&mut visible)?;
        Ok((!visible.is_empty()).then_some((tag, vertex)))
    }

    fn some_edge(&mut self, running: &Running) -> Result<Option<(Tag, EdgeId)>> {
        let own = &running.made.edges;
        let is_own = !own.is_empty() && self.random.random_bool(0.2);
        let picked = match is_own {
            true => Some(own[self.random.random_range(0..own.len())]),
            false => self.life.book().pick_edge(&mut self.random),
        };
        let Some((tag, edge)) = picked else { return Ok(None) };
        let mut visible = vec![edge];
        running.transaction.view().retain_edges(&mut visible)?;
        if visible.is_empty() {
            self.life.book().forget_edge(tag);
            return Ok(None);
        }
        Ok(Some((tag, edge)))
    }

    /// Edges between random vertices, which may be one and the same; several at once are parallel.
    fn add_edges(&mut self, running: &mut Running) -> Result<()> {
        let (Some(from), Some(to)) = (self.some_vertex(running)?, self.some_vertex(running)?) else { return Ok(()) };
        let (count, label) = (self.random.random_range(1..4), self.random.random_range(0..EDGE_LABELS.len()));
        let transaction = &running.transaction;
        let edges = transaction.insert_edges(self.life.names().edge_labels[label], &vec![(from.1, to.1); count])?;
        let tagged: Vec<(Tag, EdgeId)> = edges.into_iter().map(|edge| (self.new_tag(), edge)).collect();
        let values: Vec<(EdgeId, Value)> = tagged.iter().map(|(tag, edge)| (*edge, Value::I64(*tag as i64))).collect();
        transaction.set_edge_property(crate::model::TAG, &values)?;
        let ops = tagged.iter().map(|(tag, _)| Op::AddEdge { tag: *tag, label, from: from.0, to: to.0 });
        running.attempt.ops.extend(ops);
        running.made.edges.extend(tagged);
        Ok(())
    }

    fn delete_vertex(&mut self, running: &mut Running) -> Result<()> {
        let Some((tag, vertex)) = self.some_vertex(running)? else { return Ok(()) };
        let mut labels = Vec::new();
        running.transaction.view().vertex_labels(&[vertex], &mut labels)?;
        // Hubs are seldom deleted, so that they grow.
        if labels[0] == self.life.names().vertex_labels[HUB] && self.random.random_bool(0.95) {
            return Ok(());
        }
        running.transaction.delete_vertices(&[vertex])?;
        running.attempt.ops.push(Op::DeleteVertex { tag });
        Ok(())
    }

    fn delete_edge(&mut self, running: &mut Running) -> Result<()> {
        let Some((tag, edge)) = self.some_edge(running)? else { return Ok(()) };
        running.transaction.delete_edges(&[edge])?;
        running.attempt.ops.push(Op::DeleteEdge { tag });
        Ok(())
    }

    fn set_vertex(&mut self, running: &mut Running, place: usize, tag: Tag, key: usize, value: u64) -> Result<()> {
        let (_, vertex, _) = running.made.vertices[place];
        running.transaction.set_vertex_property(KEYS[key], &[(vertex, value_of(key, value))])?;
        running.attempt.ops.push(Op::SetVertex { tag, key, value });
        Ok(())
    }

    fn write_vertex(&mut self, running: &mut Running) -> Result<()> {
        let Some((tag, vertex)) = self.some_vertex(running)? else { return Ok(()) };
        let (key, value) = (self.random.random_range(0..COUNT), self.random.random_range(0..1_000));
        let transaction = &running.transaction;
        let op = match self.random.random_range(0..10) {
            0..5 => {
                transaction.set_vertex_property(KEYS[key], &[(vertex, value_of(key, value))])?;
                Op::SetVertex { tag, key, value }
            }
            5..7 => {
                self.life.add_value(transaction, vertex, "list", key, value)?;
                Op::AddToList { tag, key, value }
            }
            // Values of one type, so that equal values are identical.
            7..9 if key < 2 => {
                self.life.add_value(transaction, vertex, "set", key, value)?;
                Op::AddToSet { tag, key, value }
            }
            _ => {
                let mut rows = ValueRows::default();
                transaction.view().vertex_values(&[vertex], self.life.names().keys[key], &mut rows)?;
                transaction.remove_vertex_property(KEYS[key], &[vertex])?;
                if rows.row.is_empty() {
                    // Nothing is changed, so a deletion of the vertex is no conflict.
                    return Ok(());
                }
                Op::RemoveVertexProperty { tag, key }
            }
        };
        running.attempt.ops.push(op);
        Ok(())
    }

    fn write_edge(&mut self, running: &mut Running) -> Result<()> {
        let Some((tag, edge)) = self.some_edge(running)? else { return Ok(()) };
        let (key, value) = (self.random.random_range(0..COUNT), self.random.random_range(0..1_000));
        let op = match self.random.random_range(0..3) {
            0 => {
                let mut rows = ValueRows::default();
                running.transaction.view().edge_values(&[edge], self.life.names().keys[key], &mut rows)?;
                running.transaction.remove_edge_property(KEYS[key], &[edge])?;
                if rows.row.is_empty() {
                    return Ok(());
                }
                Op::RemoveEdgeProperty { tag, key }
            }
            _ => {
                running.transaction.set_edge_property(KEYS[key], &[(edge, value_of(key, value))])?;
                Op::SetEdge { tag, key, value }
            }
        };
        running.attempt.ops.push(op);
        Ok(())
    }
}

/// Fails unless a transaction with this begin timestamp sees the last commit that was acknowledged before.
pub fn sees(begin_ts: u64, acknowledged: u64) -> Outcome<()> {
    match begin_ts >= acknowledged {
        true => Ok(()),
        false => Err(format!("a transaction began at {begin_ts}, and {acknowledged} was acknowledged before")),
    }
}

/// Two threads read the same vertices of one transaction again and again, in opposite order and a few at a time.
fn read_on_two_threads(reading: &Reading<'_>, random: &mut SmallRng, seen: &mut Vec<Observed>) -> Result<()> {
    // Few vertices several times, or many at once, so that others commit while they are read.
    let (count, portion, passes) = match random.random() {
        true => (random.random_range(2..30), random.random_range(1..12), random.random_range(1..6)),
        false => (300, 300, 1),
    };
    let picked: Vec<(Tag, VertexId)> = (0..count).filter_map(|_| reading.book.pick_vertex(random)).collect();
    let reversed: Vec<(Tag, VertexId)> = picked.iter().rev().copied().collect();
    let key = random.random_range(0..COUNT);
    let read = |picked: &[(Tag, VertexId)]| -> Result<Vec<Observed>> {
        let mut seen = Vec::new();
        for portion in (0..passes).flat_map(|_| picked.chunks(portion)) {
            reading.read_values(portion, key, &mut seen)?;
            std::thread::yield_now();
        }
        Ok(seen)
    };
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| read(&reversed));
        (read(&picked), other.join().unwrap())
    });
    seen.extend(one?);
    seen.extend(other?);
    Ok(())
}

/// An error of the set-up, which must not fail.
fn said(error: Error) -> String {
    format!("the set-up failed: {error}")
}

const _: () = assert!(VERTEX_LABELS.len() == WRITER + 1);
