//! Whole scans: the adjacency of every vertex, counts, and a property of every vertex.
//!
//! Adjacency is compared with a static graph twice: summed in place, as an analytic kernel does, and copied into
//! columns of rows and neighbors, as operators do. The scan with *dirty* vertices runs on a graph of its own, after 2 %
//! of the vertices got one more edge.

use std::sync::Arc;

use mangrove::{
    AdjacencyRequest, Database, Direction, Error, ExpandCursor, ExpandRequest, Expansion, LabelFilter, Numbers,
    Parameters, Prepared, Result, ScanCursor, Share, VertexId,
};

use super::Context;
use crate::csr::Csr;
use crate::harness::{Operation, Schedule, Timing, measure, verify};
use crate::options::Suite;
use crate::people::digest;
use crate::report::{Growing, Row};
use crate::social::{self, Social};
use mangrove_generate::random::RandomStream;

const NAME: &str = Suite::Scan.name();

/// Vertices in one call.
const BATCH: usize = 1_024;

/// The targets of the design, as multiples of the static graph's time.
const CLEAN_MAX: f64 = 1.15;
const DIRTY_MAX: f64 = 1.3;

/// One vertex in this many is made dirty.
const DIRTY_ONE_IN: usize = 50;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    // One thread: a caller divides a scan among threads, and no part of the interface does.
    let schedule = context.schedule.alone();
    let social = Social::load(context.options.scale, &social::edges(context.options.scale))?;
    let summed = adjacency(&social, schedule, report)?;
    counts(&social, schedule, report)?;
    property(&social, schedule, report)?;
    dirty(context, schedule, summed, report)
}

/// Compares and times an operation that does not depend on its input.
fn time(schedule: Schedule, what: &str, expected: u64, operation: Box<dyn Operation>) -> Result<Timing> {
    let mut operations = [operation];
    verify(what, &mut *operations[0], 1, &mut |_| Ok(expected))?;
    measure(schedule, 1, &mut operations)
}

/// The sum of the numbers of all neighbors, counted once a path.
fn neighbor_sum(csr: &Csr) -> u64 {
    (0..csr.vertex_count()).flat_map(|v| csr.neighbors(v)).sum()
}

/// Times the static graph and the live one. Returns the time of the static one, in nanoseconds an edge.
fn adjacency(social: &Social, schedule: Schedule, report: &mut Growing<'_>) -> Result<f64> {
    let edges = social.csr.edge_count() as f64;
    let expected = neighbor_sum(&social.csr);
    let csr = Arc::new(social.csr.clone());
    let summed = time(schedule, "adjacency, bare", expected, sum_static(csr.clone()))?.divided_by(edges);
    let copied = time(schedule, "adjacency, bare, copied", expected, copy_static(csr))?.divided_by(edges);
    report.push(Row::time(NAME, "adjacency, an edge", "bare", summed));
    report.push(Row::time(NAME, "adjacency, an edge", "bare, copied", copied).beside(summed.median));

    let expected = live_sum(social);
    let live = time(schedule, "adjacency, typed", expected, sum_live(social))?.divided_by(edges);
    let row = Row::time(NAME, "adjacency, an edge", "typed", live).beside(summed.median);
    report.push(row.aiming_at(CLEAN_MAX * summed.median));
    let live = time(schedule, "adjacency, typed, copied", expected, copy_live(social))?.divided_by(edges);
    report.push(Row::time(NAME, "adjacency, an edge", "typed, copied", live).beside(copied.median));
    let prepared = ask(&social.database, "g.V().out('knows').count()")?;
    let asked = time(schedule, "adjacency, prepared", social.csr.edge_count() as u64, prepared)?.divided_by(edges);
    report.push(Row::time(NAME, "adjacency counted, an edge", "prepared", asked));
    Ok(summed.median)
}

fn sum_static(csr: Arc<Csr>) -> Box<dyn Operation> {
    Box::new(move |_| {
        let row = |v| csr.neighbors(v).iter().fold(0u64, |sum, &n| sum.wrapping_add(n));
        Ok((0..csr.vertex_count()).map(row).fold(0, u64::wrapping_add))
    })
}

fn copy_static(csr: Arc<Csr>) -> Box<dyn Operation> {
    let (mut rows, mut neighbors) = (Vec::<u32>::new(), Vec::<u64>::new());
    Box::new(move |_| {
        let mut total = 0u64;
        for first in (0..csr.vertex_count()).step_by(BATCH) {
            rows.clear();
            neighbors.clear();
            for row in 0..BATCH.min(csr.vertex_count() - first) {
                neighbors.extend_from_slice(csr.neighbors(first + row));
                rows.resize(neighbors.len(), row as u32);
            }
            std::hint::black_box(&rows);
            total = neighbors.iter().fold(total, |sum, &n| sum.wrapping_add(n));
        }
        Ok(total)
    })
}

/// The same sum over internal ids, from the static graph.
fn live_sum(social: &Social) -> u64 {
    let csr = &social.csr;
    let numbers = (0..csr.vertex_count()).flat_map(|v| csr.neighbors(v));
    numbers.map(|&n| social.vertices[n as usize].to_bits()).fold(0, u64::wrapping_add)
}

fn sum_live(social: &Social) -> Box<dyn Operation> {
    let database = social.database.clone();
    let labels = LabelFilter::Sets([social.knows].into());
    let request = AdjacencyRequest {
        vertices: LabelFilter::Any,
        direction: Direction::Out,
        labels,
        share: Share::ALL,
        pages: ScanCursor::default(),
        edges: false,
    };
    Box::new(move |_| {
        let transaction = database.begin_read()?;
        let mut total = 0u64;
        transaction.view().for_each_adjacency(&request, &mut |runs| {
            // One vertex at a time, as a kernel reads, though this sum does not need it.
            for (_, neighbors, _) in runs.iter() {
                total = total.wrapping_add(neighbors.iter().fold(0u64, |sum, n| sum.wrapping_add(n.to_bits())));
            }
            Ok(())
        })?;
        Ok(total)
    })
}

fn copy_live(social: &Social) -> Box<dyn Operation> {
    let database = social.database.clone();
    let labels = LabelFilter::Sets([social.knows].into());
    let request = ExpandRequest { direction: Direction::Out, labels, edges: false, limit: usize::MAX };
    let (mut vertices, mut found) = (Vec::<VertexId>::with_capacity(BATCH), Expansion::default());
    Box::new(move |_| {
        let transaction = database.begin_read()?;
        let view = transaction.view();
        let (mut total, mut scan, mut ended) = (0u64, ScanCursor::default(), false);
        while !ended {
            vertices.clear();
            ended = view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut scan, BATCH, &mut vertices)?;
            found.clear();
            let mut cursor = ExpandCursor::default();
            while !view.expand(&vertices, &request, &mut cursor, &mut found)? {}
            total = found.neighbor.iter().fold(total, |sum, n| sum.wrapping_add(n.to_bits()));
        }
        Ok(total)
    })
}

/// A Gremlin query without parameters as an operation.
fn ask(database: &Database, script: &str) -> Result<Box<dyn Operation>> {
    let (database, prepared): (Database, Prepared) = (database.clone(), database.prepare(script)?);
    Ok(Box::new(move |_| {
        let mut results = database.run(&prepared, &Parameters::new())?;
        let mut answer = 0u64;
        while let Some(batch) = results.next_batch()? {
            let sum = batch.iter().map(|(value, bulk)| digest(value).wrapping_mul(*bulk));
            answer = sum.fold(answer, u64::wrapping_add);
        }
        Ok(answer)
    }))
}

fn counts(social: &Social, schedule: Schedule, report: &mut Growing<'_>) -> Result<()> {
    let (vertices, edges) = (social.csr.vertex_count() as u64, social.csr.edge_count() as u64);
    let database = social.database.clone();
    let labels = LabelFilter::Sets([social.names.person].into());
    let typed: Box<dyn Operation> =
        Box::new(move |_| database.begin_read()?.view().count_vertices(&labels, Share::ALL));
    let timing = time(schedule, "count of a label, typed", vertices, typed)?;
    report.push(Row::time(NAME, "count of a label", "typed", timing));
    let prepared = ask(&social.database, "g.V().hasLabel('person').count()")?;
    let timing = time(schedule, "count of a label, prepared", vertices, prepared)?;
    report.push(Row::time(NAME, "count of a label", "prepared", timing));
    let timing = time(schedule, "count of edges, prepared", edges, ask(&social.database, "g.E().count()")?)?;
    report.push(Row::time(NAME, "count of all edges", "prepared", timing));
    Ok(())
}

fn property(social: &Social, schedule: Schedule, report: &mut Growing<'_>) -> Result<()> {
    const CASE: &str = "sum of a property, a vertex";
    let count = social.csr.vertex_count() as f64;
    let born = social.columns.born.clone();
    let expected = born.iter().fold(0u64, |sum, &n| sum.wrapping_add(n as u64));
    let bare: Box<dyn Operation> = Box::new(move |_| Ok(born.iter().fold(0u64, |sum, &n| sum.wrapping_add(n as u64))));
    let bare = time(schedule, "property, bare", expected, bare)?.divided_by(count);
    report.push(Row::time(NAME, CASE, "bare", bare));
    let typed = time(schedule, "property, typed", expected, sum_property(social))?.divided_by(count);
    report.push(Row::time(NAME, CASE, "typed", typed).beside(bare.median));
    let prepared = ask(&social.database, "g.V().values('born').sum()")?;
    let prepared = time(schedule, "property, prepared", expected, prepared)?.divided_by(count);
    report.push(Row::time(NAME, CASE, "prepared", prepared).beside(bare.median));
    let filtered = ask(&social.database, "g.V().hasLabel('person').has('age', gt(89)).count()")?;
    let expected = (0..social.csr.vertex_count() as u64).filter(|&n| crate::people::age(n) > 89).count() as u64;
    let filtered = time(schedule, "filter, prepared", expected, filtered)?.divided_by(count);
    report.push(Row::time(NAME, "filter by a property, a vertex", "prepared", filtered));
    Ok(())
}

fn sum_property(social: &Social) -> Box<dyn Operation> {
    let (database, born) = (social.database.clone(), social.names.born);
    let (mut vertices, mut numbers) = (Vec::with_capacity(BATCH), Numbers::default());
    Box::new(move |_| {
        let transaction = database.begin_read()?;
        let view = transaction.view();
        let (mut total, mut scan, mut ended) = (0u64, ScanCursor::default(), false);
        while !ended {
            vertices.clear();
            numbers.clear();
            ended = view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut scan, BATCH, &mut vertices)?;
            if !view.vertex_numbers(&vertices, born, &mut numbers)? {
                return Err(Error::bug("the years people were born in are numbers"));
            }
            total = numbers.integers.iter().fold(total, |sum, n| sum.wrapping_add(*n as u64));
        }
        Ok(total)
    })
}

/// The live scan again, after some vertices got one more edge. `summed` is the time of the static graph.
fn dirty(context: &Context<'_>, schedule: Schedule, summed: f64, report: &mut Growing<'_>) -> Result<()> {
    let social = Social::load(context.options.scale, &social::edges(context.options.scale))?;
    let mut random = RandomStream::from_seed(2);
    let (count, mut expected) = (social.vertices.len(), live_sum(&social));
    let with_edges: Vec<usize> = (0..count).filter(|&v| social.csr.degree(v) > 0).collect();
    let transaction = social.database.begin()?;
    for &source in with_edges.iter().step_by(DIRTY_ONE_IN) {
        let target = social.vertices[random.below(count as u64) as usize];
        transaction.insert_edges(social.knows, &[(social.vertices[source], target)])?;
        expected = expected.wrapping_add(target.to_bits());
    }
    transaction.commit()?;
    let edges = (social.csr.edge_count() + with_edges.len().div_ceil(DIRTY_ONE_IN)) as f64;
    let timing = time(schedule, "adjacency, dirty", expected, sum_live(&social))?.divided_by(edges);
    let row = Row::time(NAME, "adjacency, 2 % dirty, an edge", "typed", timing).beside(summed);
    report.push(row.aiming_at(DIRTY_MAX * summed));
    Ok(())
}
