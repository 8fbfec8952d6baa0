//! One opening of the database, with the book of its commits.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove::{
    Database, DatabaseOptions, DurabilityOptions, ElementKind, Error, ErrorKind, IndexDefinition, IndexKind, Isolation,
    LogOptions, Parameters, Result, StoreSizes, Transaction, UserId, Value, VertexId,
};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::book::{Book, Closed};
use crate::model::{EDGE_LABELS, KEYS, State, Tag, VERTEX_LABELS, value_of};
use crate::names::{Names, Outcome};
use crate::reading::Reading;
use crate::whole;
use crate::writer::WRITER_ID;

/// Indexes are of these keys.
const INDEXED_KEYS: usize = 3;

/// How transactions run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Serializable,
    Snapshot,
    Mixed,
}

impl Level {
    pub fn of(seed: u64) -> Level {
        [Level::Serializable, Level::Snapshot, Level::Mixed][(seed % 3) as usize]
    }
}

/// Options with the smallest log segments and without background work. The sizes at which structures of the store
/// change their form depend on the seed: the smallest ones, medium ones, or the defaults.
pub fn options(seed: u64) -> DatabaseOptions {
    let log = LogOptions {
        segment_bytes_min: 16 << 10,
        segment_bytes_max: 16 << 10,
        spare_segments: 1,
        prepare_ahead: false,
        ..LogOptions::default()
    };
    let durability =
        DurabilityOptions { log, checkpoint_log_bytes: Some(0), recovery_threads: 2, ..DurabilityOptions::default() };
    let sizes = match seed / 2 % 4 {
        0 => StoreSizes::SMALLEST,
        1 => StoreSizes { first_page_slots: 2, page_slots_max: 8, run_max: 24, long_list: 12, changes_min: 4 },
        2 => StoreSizes { first_page_slots: 4, page_slots_max: 64, run_max: 100, long_list: 40, changes_min: 1 },
        _ => StoreSizes::default(),
    };
    DatabaseOptions { tablet_count: 3, executor_count: 1, sizes, durability, ..DatabaseOptions::default() }
}

/// An index of vertices or of edges on one key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Index {
    element: ElementKind,
    /// `None`: all vertices, or all edges.
    label: Option<usize>,
    key: usize,
    is_ordered: bool,
}

/// The labels of the elements of a kind.
pub fn labels_of(element: ElementKind) -> &'static [&'static str] {
    match element {
        ElementKind::Vertex => &VERTEX_LABELS,
        ElementKind::Edge => &EDGE_LABELS,
    }
}

/// One opening of the database, with the book of its commits.
pub struct Life {
    db: Database,
    names: Names,
    book: Book,
    level: Level,
    has_threads: bool,
    /// True if the disk may fail. Then the life ends with the first error.
    pub may_fail: bool,
    is_over: AtomicBool,
    counters: Vec<Option<(Tag, VertexId)>>,
    /// The numbers of the writers' last commits.
    pub numbers: Vec<u64>,
    pub indexes: Mutex<BTreeSet<Index>>,
}

impl Life {
    /// A life that begins with the current graph, which the caller has compared with the model.
    pub fn begin(db: Database, level: Level, writer_count: usize, journal: Option<File>) -> Outcome<(Self, State)> {
        let names = Names::of(&db);
        let (state, made) = whole::read(&db, &names)?;
        let book = Book::new(state.clone(), made, writer_count, journal);
        let numbers = (0..writer_count).map(|writer| state.count_of(writer)).collect();
        let mut life = Life {
            db,
            names,
            book,
            level,
            has_threads: false,
            may_fail: false,
            is_over: AtomicBool::new(false),
            counters: vec![None; writer_count],
            numbers,
            indexes: Mutex::default(),
        };
        life.find_counters()?;
        Ok((life, state))
    }

    /// Finds the vertices that count the writers' commits.
    pub fn find_counters(&mut self) -> Outcome<()> {
        let ids: Vec<UserId> = (0..self.counters.len()).map(|n| UserId::from(WRITER_ID + n as i64)).collect();
        let find = || -> Result<Vec<Option<(Tag, VertexId)>>> {
            let (reading, mut found) = (self.db.begin_read()?, Vec::new());
            reading.view().find_vertices(&ids, &mut found)?;
            let tagged = found.into_iter().map(|vertex| match vertex {
                Some(vertex) => Ok(Some((self.names.vertex_tags(reading.view(), &[vertex])?[0], vertex))),
                None => Ok(None),
            });
            tagged.collect()
        };
        self.counters = find().map_err(|error| error.to_string())?;
        Ok(())
    }

    /// From now on several threads use it.
    pub fn with_threads(mut self) -> Self {
        self.has_threads = true;
        self
    }

    pub fn db(&self) -> &Database {
        &self.db
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    pub fn book(&self) -> &Book {
        &self.book
    }

    pub fn has_threads(&self) -> bool {
        self.has_threads
    }

    pub fn counter(&self, writer: usize) -> Option<(Tag, VertexId)> {
        self.counters[writer]
    }

    pub fn reading<'a>(&'a self, transaction: &'a Transaction) -> Reading<'a> {
        Reading { transaction, names: &self.names, book: &self.book }
    }

    pub fn isolation(&self, random: &mut SmallRng) -> Isolation {
        match self.level {
            Level::Serializable => Isolation::Serializable,
            Level::Snapshot => Isolation::Snapshot,
            Level::Mixed if random.random() => Isolation::Serializable,
            Level::Mixed => Isolation::Snapshot,
        }
    }

    /// Handles an error. One that is neither a conflict nor expected ends the life, and is a failure unless the power
    /// went off.
    pub fn excuse(&self, error: Error) -> Outcome<()> {
        let is_of_disk =
            matches!(error.kind(), ErrorKind::Io | ErrorKind::ReadOnly | ErrorKind::OutcomeUnknown | ErrorKind::Closed);
        self.is_over.store(true, Ordering::SeqCst);
        if self.may_fail && is_of_disk { Ok(()) } else { Err(format!("{:?}: {error}", error.kind())) }
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Ends the life, since something went wrong.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Adds a value to those of a vertex, with a traversal.
    pub fn add_value(
        &self,
        tx: &Transaction,
        vertex: VertexId,
        cardinality: &str,
        key: usize,
        value: u64,
    ) -> Result<()> {
        let mut ids = Vec::new();
        tx.view().vertex_user_ids(&[vertex], &mut ids)?;
        let prepared = self.db.prepare(&format!("g.V(v).property({cardinality}, '{}', x)", KEYS[key]))?;
        let parameters =
            Parameters::from([("v".into(), ids.pop().unwrap_or(Value::Null)), ("x".into(), value_of(key, value))]);
        tx.run(&prepared, &parameters)?.collect().map(drop)
    }

    /// One action of a keeper: packs lists, collects garbage, takes a checkpoint, or creates or drops an index.
    pub fn keep(&self, random: &mut SmallRng) -> Outcome<()> {
        let outcome = match random.random_range(0..12) {
            0..6 => {
                self.db.compact();
                Ok(())
            }
            6..8 => {
                self.db.collect_garbage();
                Ok(())
            }
            8..11 => self.db.checkpoint().map(drop),
            _ => self.change_index(random),
        };
        outcome.or_else(|error| self.excuse(error))
    }

    /// The indexes that the database lists.
    pub fn indexes_of_database(&self) -> BTreeSet<Index> {
        let known: Vec<IndexDefinition> = self.db.indexes().into_iter().map(|index| index.definition).collect();
        let mut found = BTreeSet::new();
        for element in [ElementKind::Vertex, ElementKind::Edge] {
            for label in (0..labels_of(element).len()).map(Some).chain([None]) {
                let all = (0..INDEXED_KEYS).flat_map(|key| [(key, false), (key, true)]);
                let all = all.map(|(key, is_ordered)| Index { element, label, key, is_ordered });
                found.extend(all.filter(|index| known.contains(&definition(*index))));
            }
        }
        found
    }

    /// Makes an index, or drops it if it is there.
    fn change_index(&self, random: &mut SmallRng) -> Result<()> {
        let element = if random.random() { ElementKind::Vertex } else { ElementKind::Edge };
        let label = random.random_bool(0.5).then(|| random.random_range(0..labels_of(element).len()));
        let index = Index { element, label, key: random.random_range(0..INDEXED_KEYS), is_ordered: random.random() };
        let mut indexes = self.indexes.lock().unwrap();
        let definition = definition(index);
        match self.db.indexes().iter().find(|known| known.definition == definition) {
            Some(known) => {
                self.db.drop_index(known.id)?;
                indexes.remove(&index);
            }
            None => {
                self.db.define_index(&definition)?;
                indexes.insert(index);
            }
        }
        Ok(())
    }

    /// Closes the database; all transactions are over.
    pub fn close(self) -> (Closed, BTreeSet<Index>) {
        (self.book.close(), self.indexes.into_inner().unwrap())
    }
}

fn definition(Index { element, label, key, is_ordered }: Index) -> IndexDefinition {
    IndexDefinition {
        element,
        label: label.map(|label| labels_of(element)[label].into()),
        keys: vec![KEYS[key].into()],
        kind: if is_ordered { IndexKind::Ordered } else { IndexKind::Hash },
        unique: false,
    }
}
