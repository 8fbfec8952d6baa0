//! The book: the answers to commits that writers received, and the model that follows from them.
//!
//! A writer enters a transaction before it asks for the commit, and the outcome after the answer. So the book knows
//! three kinds of transactions: *acknowledged* ones, with their timestamps; refused ones; and ones whose outcome is
//! *unknown*, because the commit was never answered.
//!
//! A reader of the snapshot `ts` is checked once every transaction that was asking for its commit is entered: then the
//! book has every commit up to `ts`.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use mangrove::{EdgeId, VertexId};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::journal;
use crate::model::{HUB, Model, Op, State, Tag, WRITER};
use crate::names::Outcome;
use crate::observed::Observed;

/// Ids below this one are chosen by writers.
const CHOSEN_IDS: i64 = 600;

/// A transaction that asked for its commit.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub writer: usize,
    /// The number of the transaction among those of its writer. The writer's vertex has it as its count.
    pub number: u64,
    pub begin_ts: u64,
    pub ops: Vec<Op>,
}

/// The internal ids of the model's elements in the graph.
pub struct Handles<Id> {
    list: Vec<(Tag, Id)>,
    places: HashMap<Tag, usize>,
}

impl<Id> Default for Handles<Id> {
    fn default() -> Self {
        Handles { list: Vec::new(), places: HashMap::new() }
    }
}

impl<Id: Copy> Handles<Id> {
    fn add(&mut self, tag: Tag, id: Id) {
        self.places.insert(tag, self.list.len());
        self.list.push((tag, id));
    }

    fn remove(&mut self, tag: Tag) {
        let Some(place) = self.places.remove(&tag) else { return };
        self.list.swap_remove(place);
        if let Some((moved, _)) = self.list.get(place) {
            self.places.insert(*moved, place);
        }
    }

    fn pick(&self, random: &mut SmallRng) -> Option<(Tag, Id)> {
        (!self.list.is_empty()).then(|| self.list[random.random_range(0..self.list.len())])
    }
}

/// The elements that a transaction made.
#[derive(Default)]
pub struct Made {
    pub vertices: Vec<(Tag, VertexId, usize)>,
    pub edges: Vec<(Tag, EdgeId)>,
}

struct Entries {
    base: Arc<State>,
    model: Model,
    /// Acknowledged since the book was begun, by timestamp.
    commits: BTreeMap<u64, Attempt>,
    unknown: Vec<Attempt>,
    /// By writer, the transaction that asks for its commit.
    committing: Vec<Option<Attempt>>,
    vertices: Handles<VertexId>,
    hubs: Handles<VertexId>,
    edges: Handles<EdgeId>,
    aborted: u64,
    checked: u64,
    journal: Option<File>,
}

/// The answers to commits that writers received, and the model that follows from them.
pub struct Book {
    entries: Mutex<Entries>,
    is_entered: Condvar,
}

impl Book {
    /// A book about a graph with the content `base` and these internal ids.
    pub fn new(base: State, handles: Made, writer_count: usize, journal: Option<File>) -> Self {
        let mut entries = Entries {
            model: Model::of(base.clone(), 0),
            base: Arc::new(base),
            commits: BTreeMap::new(),
            unknown: Vec::new(),
            committing: vec![None; writer_count],
            vertices: Handles::default(),
            hubs: Handles::default(),
            edges: Handles::default(),
            aborted: 0,
            checked: 0,
            journal,
        };
        entries.add_handles(handles);
        Book { entries: Mutex::new(entries), is_entered: Condvar::new() }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap()
    }

    /// One more than the largest id that writers choose.
    pub fn id_count(&self) -> i64 {
        CHOSEN_IDS
    }

    /// A vertex of the latest commits: a hub once in three times.
    pub fn pick_vertex(&self, random: &mut SmallRng) -> Option<(Tag, VertexId)> {
        let entries = self.entries();
        let hub = if random.random_bool(0.33) { entries.hubs.pick(random) } else { None };
        hub.or_else(|| entries.vertices.pick(random))
    }

    pub fn pick_edge(&self, random: &mut SmallRng) -> Option<(Tag, EdgeId)> {
        self.entries().edges.pick(random)
    }

    /// Excludes this edge from being picked, because one of its ends was deleted.
    pub fn forget_edge(&self, tag: Tag) {
        self.entries().edges.remove(tag);
    }

    /// The numbers of vertices and edges that can be picked.
    pub fn sizes(&self) -> (usize, usize) {
        let entries = self.entries();
        (entries.vertices.list.len(), entries.edges.list.len())
    }

    /// A writer asks for a commit.
    pub fn asks(&self, attempt: &Attempt) {
        let mut entries = self.entries();
        entries.note(&journal::asked(attempt));
        entries.committing[attempt.writer] = Some(attempt.clone());
    }

    /// The commit was acknowledged.
    pub fn committed(&self, attempt: Attempt, ts: u64, made: Made) -> Outcome<()> {
        let mut entries = self.entries();
        entries.note(&journal::acknowledged(&attempt, ts));
        entries.committing[attempt.writer] = None;
        entries.add_handles(made);
        entries.remove_handles(&attempt.ops);
        let rival = entries.commits.insert(ts, attempt);
        let last_ts = entries.model.last_ts;
        drop(entries);
        self.is_entered.notify_all();
        match rival {
            Some(rival) => Err(format!("two commits have the timestamp {ts}; one is {rival:x?}")),
            None if ts <= last_ts => Err(format!("a commit got the timestamp {ts}, and {last_ts} was seen before")),
            None => Ok(()),
        }
    }

    /// The commit was refused, because of others.
    pub fn aborted(&self, attempt: &Attempt) {
        let mut entries = self.entries();
        entries.note(&journal::refused(attempt));
        entries.committing[attempt.writer] = None;
        entries.aborted += 1;
        drop(entries);
        self.is_entered.notify_all();
    }

    /// The outcome of the commit is unknown.
    pub fn unknown(&self, attempt: Attempt) {
        let mut entries = self.entries();
        entries.committing[attempt.writer] = None;
        entries.unknown.push(attempt);
        drop(entries);
        self.is_entered.notify_all();
    }

    /// The last commit that was acknowledged.
    pub fn last_ts(&self) -> u64 {
        self.entries().commits.last_key_value().map_or(0, |(ts, _)| *ts)
    }

    /// Checks the observations of a reader of the snapshot `ts`, unless a commit of unknown outcome is involved.
    pub fn check(&self, seen: &[Observed], ts: u64) -> Outcome<()> {
        let mut entries = self.entries();
        let numbers = |entries: &Entries| -> Vec<Option<u64>> {
            entries.committing.iter().map(|attempt| attempt.as_ref().map(|attempt| attempt.number)).collect()
        };
        let asking = numbers(&entries);
        while numbers(&entries).iter().zip(&asking).any(|(now, then)| now.is_some() && now == then) {
            entries = self.is_entered.wait(entries).unwrap();
        }
        if !entries.unknown.is_empty() {
            return Ok(());
        }
        entries.settle(ts)?;
        entries.checked += seen.len() as u64;
        seen.iter()
            .try_for_each(|observed| observed.check(&entries.model, ts))
            .map_err(|error| format!("at {ts}: {error}"))
    }

    /// Runs `happens`, and returns the book's content at that moment with its result.
    pub fn at_this_moment<T>(&self, happens: impl FnOnce() -> T) -> (T, Closed) {
        let entries = self.entries();
        let unknown = entries.unknown.iter().chain(entries.committing.iter().flatten()).cloned().collect();
        let (base, commits) = (entries.base.clone(), entries.commits.clone());
        (happens(), Closed { base, commits, unknown, ..Closed::default() })
    }

    /// The content of the book at its end.
    pub fn close(self) -> Closed {
        let Entries { base, commits, unknown, aborted, checked, .. } = self.entries.into_inner().unwrap();
        Closed { base, commits, unknown, aborted, checked }
    }
}

impl Entries {
    fn add_handles(&mut self, made: Made) {
        for (tag, vertex, label) in made.vertices {
            match label {
                HUB => self.hubs.add(tag, vertex),
                WRITER => {}
                _ => self.vertices.add(tag, vertex),
            }
        }
        made.edges.into_iter().for_each(|(tag, edge)| self.edges.add(tag, edge));
    }

    fn remove_handles(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::DeleteVertex { tag } => {
                    self.vertices.remove(*tag);
                    self.hubs.remove(*tag);
                }
                Op::DeleteEdge { tag } => self.edges.remove(*tag),
                _ => {}
            }
        }
    }

    /// Applies all commits up to a timestamp to the model.
    fn settle(&mut self, ts: u64) -> Outcome<()> {
        let Entries { model, commits, .. } = self;
        let mut news = commits.range(model.last_ts + 1..).take_while(|(at, _)| **at <= ts);
        news.try_for_each(|(at, attempt)| {
            model.apply(*at, &attempt.ops).map_err(|error| format!("{error}; begin {}", attempt.begin_ts))
        })?;
        model.last_ts = model.last_ts.max(ts);
        Ok(())
    }

    /// Writes a line to the journal, if there is one.
    fn note(&mut self, line: &str) {
        if let Some(journal) = &mut self.journal {
            journal.write_all(line.as_bytes()).unwrap();
        }
    }
}

/// The content of a book at its end.
#[derive(Default)]
pub struct Closed {
    pub base: Arc<State>,
    pub commits: BTreeMap<u64, Attempt>,
    pub unknown: Vec<Attempt>,
    pub aborted: u64,
    pub checked: u64,
}
