//! Transactions that insert one vertex with two properties, or one edge between two vertices found by their ids.
//!
//! Beside them stands one mutex around a hash map and growing arrays: no versions, nothing to roll back, and no reader
//! beside the writer. Each variant writes to a database of its own. A few inserts are read back before the timing;
//! afterwards everything is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use mangrove::{
    Database, Direction, ExpandCursor, ExpandRequest, Expansion, LabelFilter, LabelSetId, Parameters, Result, Share,
    Value, ValueRows,
};
use parking_lot::Mutex;
use smol_str::SmolStr;

use super::Context;
use crate::harness::{Operation, measure, wrong};
use crate::options::Suite;
use crate::people::{self, BORN, NAME as NAME_KEY, PeopleContent, PeopleNames, digest};
use crate::report::{Growing, Metric, Row};
use crate::served::Served;
use crate::social::{self, KNOWS};
use crate::ways::{Question, Way};
use mangrove_generate::random::{RandomStream, mix};

const NAME: &str = Suite::Insert.name();

/// The target: half the time of the best research store with two threads at scale 18, in nanoseconds an edge and
/// thread.
const EDGE_NS_MAX: f64 = 2.0 * 1e9 / (2.0 * 562_000.0);

/// The target of the design: bytes of an edge without properties.
pub(super) const EDGE_BYTES_MAX: f64 = 64.0;

/// The number of inserts that are read back before the timing. The rivals' inserts are durable and these are not, so
/// rivals set no targets here.
const VERIFIED: u64 = 16;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    vertices(context, report)?;
    edges(context, report)
}

/// Numbers for new people; each is given out once.
type Numbers = Arc<AtomicU64>;

fn next(numbers: &Numbers) -> u64 {
    numbers.fetch_add(1, Ordering::Relaxed)
}

fn vertices(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    const CASE: &str = "vertex, id, 2 properties";
    let arrays = Arc::new(Mutex::new(BareVertices::default()));
    let numbers = Numbers::default();
    let bare = timing(context, 1, &mut || {
        let (arrays, numbers) = (arrays.clone(), numbers.clone());
        Ok(Box::new(move |_| Ok(arrays.lock().insert(next(&numbers)))))
    })?;
    let limit = bare.median;
    report.push(Row::time(NAME, CASE, "bare", bare));
    for way in [None, Some(Way::Prepared), Some(Way::Text), Some(Way::Server)] {
        if !context.options.wants(CASE, way.map_or("typed", Way::name)) {
            continue;
        }
        let (database, numbers) = (people::database(0, PeopleContent::Ids)?, Numbers::default());
        let served = Served::start(&database)?;
        let mut make = || match way {
            None => Ok(insert_vertices(&database, &numbers)),
            Some(way) => add_vertex(&numbers).ask(way, &database, &served),
        };
        let mut first = make()?;
        (0..VERIFIED).try_for_each(|_| first.perform(0).map(drop))?;
        (0..VERIFIED).try_for_each(|number| check_person(&database, number))?;
        let timing = timing(context, 1, &mut make)?;
        let count = database.begin_read()?.view().count_vertices(&LabelFilter::Any, Share::ALL)?;
        check_count(CASE, count, numbers.load(Ordering::Relaxed))?;
        report.push(Row::time(NAME, CASE, way.map_or("typed", Way::name), timing).beside(limit));
    }
    Ok(())
}

fn timing(
    context: &Context<'_>,
    input_count: u64,
    make: &mut dyn FnMut() -> Result<Box<dyn Operation>>,
) -> Result<crate::harness::Timing> {
    let mut operations = (0..context.schedule.threads).map(|_| make()).collect::<Result<Vec<_>>>()?;
    measure(context.schedule, input_count, &mut operations)
}

fn check_count(what: &str, found: u64, expected: u64) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(wrong(format!("{what}: {expected} were inserted, found {found}")))
}

#[derive(Default)]
struct BareVertices {
    numbers: HashMap<i64, u32, foldhash::fast::RandomState>,
    born: Vec<i64>,
    names: Vec<SmolStr>,
}

impl BareVertices {
    fn insert(&mut self, number: u64) -> u64 {
        self.numbers.insert(number as i64, self.born.len() as u32);
        self.born.push(people::born(number));
        self.names.push(people::name(number));
        number
    }
}

fn insert_vertices(database: &Database, numbers: &Numbers) -> Box<dyn Operation> {
    let (database, numbers, person) = (database.clone(), numbers.clone(), PeopleNames::of(database).person);
    Box::new(move |_| {
        let number = next(&numbers);
        let transaction = database.begin()?;
        let vertex = transaction.insert_vertex(person, Some(people::id(number)))?;
        transaction.set_vertex_property(BORN, &[(vertex, Value::I64(people::born(number)))])?;
        transaction.set_vertex_property(NAME_KEY, &[(vertex, Value::String(people::name(number)))])?;
        transaction.commit()?;
        Ok(number)
    })
}

fn add_vertex(numbers: &Numbers) -> Question {
    let numbers = numbers.clone();
    let script = "g.addV('person').property(T.id, x).property('born', b).property('name', n).iterate()";
    Question::new(script, move |_, parameters: &mut Parameters| {
        let number = next(&numbers);
        parameters.insert("x".into(), Value::I64(number as i64));
        parameters.insert("b".into(), Value::I64(people::born(number)));
        parameters.insert("n".into(), Value::String(people::name(number)));
    })
}

/// Reads an inserted person back by the typed interface.
fn check_person(database: &Database, number: u64) -> Result<()> {
    let (transaction, names) = (database.begin_read()?, PeopleNames::of(database));
    let (mut found, mut values) = (Vec::new(), ValueRows::default());
    transaction.view().find_vertices(&[people::id(number)], &mut found)?;
    let vertices: Vec<_> = found.into_iter().flatten().collect();
    transaction.view().vertex_values(&vertices, names.born, &mut values)?;
    transaction.view().vertex_values(&vertices, names.name, &mut values)?;
    if values.value == [Value::I64(people::born(number)), Value::String(people::name(number))] {
        return Ok(());
    }
    Err(wrong(format!("person {number} was inserted and {:?} is read back", values.value)))
}

fn edges(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    const CASE: &str = "edge between two ids";
    let mut edges = social::edges(context.options.scale);
    RandomStream::from_seed(mix(3)).shuffle(&mut edges);
    let (edges, count) = (Arc::new(edges), 1usize << context.options.scale.log_vertices());
    let arrays = Arc::new(Mutex::new(BareEdges::new(count)));
    let numbers = Numbers::default();
    let bare = timing(context, 1, &mut || {
        let (arrays, numbers, edges) = (arrays.clone(), numbers.clone(), edges.clone());
        Ok(Box::new(move |_| Ok(arrays.lock().insert(edge_at(&edges, next(&numbers))))))
    })?;
    drop(arrays);
    let limit = bare.median;
    report.push(Row::time(NAME, CASE, "bare", bare));
    for way in [None, Some(Way::Prepared), Some(Way::Text), Some(Way::Server)] {
        if !context.options.wants(CASE, way.map_or("typed", Way::name)) {
            continue;
        }
        let (database, numbers) = (people::database(count, PeopleContent::Ids)?, Numbers::default());
        let empty_bytes = database.memory().total_bytes();
        let knows = database.catalog().intern_label_text(KNOWS);
        let served = Served::start(&database)?;
        let mut make = || match way {
            None => Ok(insert_edges(&database, knows, &edges, &numbers)),
            Some(way) => add_edge(&edges, &numbers).ask(way, &database, &served),
        };
        let mut first = make()?;
        (0..VERIFIED).try_for_each(|_| first.perform(0).map(drop))?;
        (0..VERIFIED).try_for_each(|number| check_edge(&database, &edges, number))?;
        let timing = timing(context, 1, &mut make)?;
        let found = database.begin_read()?.view().count_edges(&LabelFilter::Any, Share::ALL)?;
        check_count(CASE, found, numbers.load(Ordering::Relaxed))?;
        if way.is_none() {
            memory_an_edge(&database, empty_bytes, found, report);
        }
        let target = if way.is_none() { Some(EDGE_NS_MAX) } else { None };
        report.push(Row::time(NAME, CASE, way.map_or("typed", Way::name), timing).beside(limit).aiming_at(target));
    }
    Ok(())
}

/// Bytes of an edge that a transaction of its own inserted: as inserted, after compaction, and then without the records
/// that compaction freed, which later inserts use.
fn memory_an_edge(database: &Database, empty_bytes: u64, count: u64, report: &mut Growing<'_>) {
    let mut push = |variant: &str, bytes: u64| {
        let each = bytes.saturating_sub(empty_bytes) as f64 / count.max(1) as f64;
        let row = Row::single(NAME, "bytes an inserted edge", variant, Metric::Size, each, "B");
        report.push(row.aiming_at(EDGE_BYTES_MAX).with("edges", count as f64, "count"));
    };
    push("inserted", database.memory().total_bytes());
    database.compact();
    let memory = database.memory();
    push("compacted", memory.total_bytes());
    let free: u64 = memory.rows.iter().map(|row| row.free_bytes).sum();
    push("compacted, in use", memory.total_bytes().saturating_sub(free));
}

/// After all edges were inserted, they are inserted again: parallel edges are allowed.
fn edge_at(edges: &[(u32, u32)], number: u64) -> (u32, u32) {
    edges[(number % edges.len() as u64) as usize]
}

struct BareEdges {
    numbers: HashMap<i64, u32, foldhash::fast::RandomState>,
    out: Vec<Vec<u64>>,
    into: Vec<Vec<u64>>,
}

impl BareEdges {
    fn new(count: usize) -> Self {
        let numbers = (0..count as u32).map(|n| (i64::from(n), n)).collect();
        BareEdges { numbers, out: vec![Vec::new(); count], into: vec![Vec::new(); count] }
    }

    fn insert(&mut self, (source, target): (u32, u32)) -> u64 {
        let number = |id: u32| self.numbers.get(&i64::from(id)).copied();
        let (Some(source), Some(target)) = (number(source), number(target)) else { return 0 };
        self.out[source as usize].push(u64::from(target));
        self.into[target as usize].push(u64::from(source));
        1
    }
}

fn insert_edges(
    database: &Database,
    knows: LabelSetId,
    edges: &Arc<Vec<(u32, u32)>>,
    numbers: &Numbers,
) -> Box<dyn Operation> {
    let (database, edges, numbers) = (database.clone(), edges.clone(), numbers.clone());
    let mut found = Vec::new();
    Box::new(move |_| {
        let (source, target) = edge_at(&edges, next(&numbers));
        let transaction = database.begin()?;
        found.clear();
        let ids = [people::id(u64::from(source)), people::id(u64::from(target))];
        transaction.view().find_vertices(&ids, &mut found)?;
        let [Some(source), Some(target)] = found[..] else {
            return Err(wrong(format!("people {source} and {target} are missing")));
        };
        transaction.insert_edges(knows, &[(source, target)])?;
        transaction.commit()?;
        Ok(1)
    })
}

fn add_edge(edges: &Arc<Vec<(u32, u32)>>, numbers: &Numbers) -> Question {
    let (edges, numbers) = (edges.clone(), numbers.clone());
    Question::new("g.V(s).addE('knows').to(__.V(t)).iterate()", move |_, parameters: &mut Parameters| {
        let (source, target) = edge_at(&edges, next(&numbers));
        parameters.insert("s".into(), Value::I64(i64::from(source)));
        parameters.insert("t".into(), Value::I64(i64::from(target)));
    })
}

/// Reads an inserted edge back by the typed interface, in both directions.
fn check_edge(database: &Database, edges: &[(u32, u32)], number: u64) -> Result<()> {
    let (source, target) = edge_at(edges, number);
    let transaction = database.begin_read()?;
    let view = transaction.view();
    for (from, to, direction) in [(source, target, Direction::Out), (target, source, Direction::In)] {
        let mut found = Vec::new();
        view.find_vertices(&[people::id(u64::from(from))], &mut found)?;
        let from: Vec<_> = found.into_iter().flatten().collect();
        let request = ExpandRequest { direction, labels: LabelFilter::Any, edges: false, limit: usize::MAX };
        let (mut cursor, mut neighbors, mut ids) = (ExpandCursor::default(), Expansion::default(), Vec::new());
        while !view.expand(&from, &request, &mut cursor, &mut neighbors)? {}
        view.vertex_user_ids(&neighbors.neighbor, &mut ids)?;
        if !ids.iter().any(|id| digest(id) == u64::from(to)) {
            return Err(wrong(format!("the edge from {source} to {target} was inserted and is not found")));
        }
    }
    Ok(())
}
