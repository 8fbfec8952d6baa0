//! Large transactions: a read set of a million items, a write set of a million elements, a million commits of others
//! meanwhile, and a writer held open beside 100,000 commits a second. The suite measures their cost, and how long small
//! transactions beside them wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mangrove::{
    AbortCause, Database, Direction, ExpandCursor, ExpandRequest, Expansion, GraphView, KeyId, LabelFilter, Result,
    Transaction, Value, ValueRows, VertexId,
};

use super::Context;
use crate::environment::resident_bytes;
use crate::harness::{REPETITION_COUNT, wrong};
use crate::oltp::Operations;
use crate::oltp::audit::{self, all_vertices};
use crate::oltp::beside::{SmallTransactions, beside, retrying};
use crate::oltp::driver::is_conflict;
use crate::oltp::graph::{Blueprint, Graph, NAME as NAME_KEY, UPDATED};
use crate::options::Suite;
use crate::report::{Growing, Metric, Row};

const NAME: &str = Suite::Large.name();

/// Items and elements of the sets: a million, or all of a smaller graph.
const SET_MAX: usize = 1_000_000;

/// Items that one vertex adds to a read set: two properties, and its lists in both directions.
const ITEMS_A_VERTEX: usize = 4;

/// Vertices or edges in one call.
const BATCH: usize = 1_024;
const WRITE_BATCH: usize = 64 << 10;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let blueprint = Blueprint::kronecker(context.options.scale.log_vertices());
    let graph = blueprint.load(Operations::Gdi)?;
    let vertices = Arc::new(all_vertices(graph.database.begin_read()?.view())?);
    let threads = context.options.threads;
    let ((), alone) = beside(&graph.database, &vertices, threads, || {
        std::thread::sleep(Duration::from_millis(200));
        Ok(())
    })?;
    others("alone", &alone, report);
    reads(&graph, &vertices, threads, report)?;
    writes(&graph, &blueprint, &vertices, threads, report)?;
    old_writers(&graph, &vertices, report)?;
    held_writers(&graph, &vertices, Duration::from_secs_f64(context.options.seconds), report)?;
    audit::check(&graph.database).map(drop)
}

fn row(case: &str, variant: &str, metric: Metric, value: f64, unit: &'static str) -> Row {
    Row::single(NAME, case, variant, metric, value, unit)
}

fn others(variant: &str, others: &SmallTransactions, report: &mut Growing<'_>) {
    let p99 = others.latency.quantile(0.99) as f64;
    let percent = 100.0 * others.failed as f64 / (others.failed + others.latency.count()).max(1) as f64;
    let worst = others.latency.max() as f64;
    report.push(row("others: p99", variant, Metric::Time, p99, "ns").with("latency_max", worst, "ns"));
    report.push(row("others: failed", variant, Metric::Share, percent, "%"));
}

/// Reads `count` items.
fn read(view: &dyn GraphView, vertices: &[VertexId], keys: [KeyId; 2]) -> Result<u64> {
    let (mut values, mut neighbors, mut found) = (ValueRows::default(), Expansion::default(), 0);
    for batch in vertices.chunks(BATCH) {
        for key in keys {
            values.clear();
            view.vertex_values(batch, key, &mut values)?;
            found += values.value.len() as u64;
        }
        for direction in [Direction::Out, Direction::In] {
            let request = ExpandRequest { direction, labels: LabelFilter::Any, edges: false, limit: usize::MAX };
            let mut cursor = ExpandCursor::default();
            neighbors.clear();
            while !view.expand(batch, &request, &mut cursor, &mut neighbors)? {}
            found += neighbors.len() as u64;
        }
    }
    Ok(found)
}

/// The cost of a read set: the least time of reads in a transaction that may write, less that in a read-only one.
fn reads(graph: &Graph, vertices: &Arc<Vec<VertexId>>, threads: usize, report: &mut Growing<'_>) -> Result<()> {
    const CASE: &str = "read set";
    let (database, some) = (&graph.database, &vertices[..vertices.len().min(SET_MAX / ITEMS_A_VERTEX)]);
    let items = (some.len() * ITEMS_A_VERTEX) as f64;
    let keys = [graph.names.name, database.catalog().intern_key(UPDATED)];
    let timed = |transaction: &Transaction| {
        let before = Instant::now();
        let found = read(transaction.view(), some, keys)?;
        Ok::<_, mangrove::Error>((found, before.elapsed().as_nanos() as f64))
    };
    let (mut expected, mut untracked, mut tracked) = (0, f64::INFINITY, f64::INFINITY);
    for _ in 0..REPETITION_COUNT {
        let (found, nanos) = timed(&database.begin_read()?)?;
        (expected, untracked) = (found, untracked.min(nanos));
        let (_, nanos) = timed(&database.begin()?)?;
        tracked = tracked.min(nanos);
    }
    let (resident, transaction) = (resident_bytes(), database.begin()?);
    let (found, _) = timed(&transaction)?;
    let bytes = resident_bytes() - resident;
    if found != expected {
        return Err(wrong(format!("{found} items are read by a writer and {expected} by a reader")));
    }
    // Written to a new vertex, so that only its reads could conflict with others' writes, and there are none yet.
    transaction.insert_vertex(graph.names.labels[0], None)?;
    let before = Instant::now();
    let info = transaction.commit()?;
    let commit = before.elapsed().as_nanos() as f64;
    let per_item = |value: f64| value.max(0.0) / items;
    report.push(row(CASE, "items, as asked for", Metric::Count, items, ""));
    report.push(row(CASE, "items, as tracked", Metric::Count, info.read_count as f64, ""));
    report.push(
        row(CASE, "to track, each", Metric::Time, per_item(tracked - untracked), "ns").beside(per_item(untracked)),
    );
    report.push(row(CASE, "resident memory, each", Metric::Size, per_item(bytes), "B"));
    report.push(row(CASE, "commit, alone", Metric::Time, commit, "ns"));

    let heavy = || {
        let transaction = database.begin()?;
        let read =
            read(transaction.view(), some, keys).and_then(|_| transaction.insert_vertex(graph.names.labels[0], None));
        let before = Instant::now();
        // It read everything that others write. It may fail, but must not take long.
        match read.and_then(|_| transaction.commit()) {
            Err(error) if !is_conflict(&error) => Err(error),
            outcome => Ok((outcome.is_err(), before.elapsed().as_nanos() as f64)),
        }
    };
    let ((failed, commit), besides) = beside(database, vertices, threads, heavy)?;
    let beside = row(CASE, "commit, beside writers", Metric::Time, commit, "ns");
    report.push(beside.with("failed", f64::from(u8::from(failed)), "flag"));
    others("beside a read set", &besides, report);
    Ok(())
}

/// Writes a million elements: the name of every vertex, and new edges for the rest. The small transactions change another
/// property, so they conflict with none of this.
fn writes(
    graph: &Graph,
    blueprint: &Blueprint,
    vertices: &Arc<Vec<VertexId>>,
    threads: usize,
    report: &mut Growing<'_>,
) -> Result<()> {
    const CASE: &str = "write set";
    let database = &graph.database;
    let before = audit::check(database)?;
    let numbered = by_number(database, blueprint.vertex_count())?;
    let end = |number: u32| numbered[number as usize];
    let added = SET_MAX.saturating_sub(vertices.len()).min(blueprint.edges().len());
    let ends: Vec<_> = blueprint.edges()[..added].iter().map(|&(source, target)| (end(source), end(target))).collect();
    let heavy = || {
        let (start, transaction) = (Instant::now(), database.begin()?);
        for batch in ends.chunks(WRITE_BATCH) {
            transaction.insert_edges(graph.names.edge_labels[0], batch)?;
        }
        for batch in vertices.chunks(WRITE_BATCH) {
            let values: Vec<_> = batch.iter().map(|&vertex| (vertex, Value::from("renamed"))).collect();
            transaction.set_vertex_property(NAME_KEY, &values)?;
        }
        let (written, commit) = (start.elapsed(), Instant::now());
        let info = transaction.commit()?;
        Ok((info, written.as_nanos() as f64, commit.elapsed().as_nanos() as f64))
    };
    let (((info, write, commit), conflicts), besides) = beside(database, vertices, threads, || retrying(heavy))?;
    let after = audit::check(database)?;
    if after.edges != before.edges + added as u64 {
        return Err(wrong(format!("{added} edges were added to {before:?}, which became {after:?}")));
    }
    let elements = (added + vertices.len()) as f64;
    let size = row(CASE, "elements", Metric::Count, elements, "").with("versions", info.write_count as f64, "count");
    report.push(size.with("conflicts", f64::from(conflicts), "count"));
    report.push(row(CASE, "to write, each", Metric::Time, write / elements, "ns"));
    report.push(row(CASE, "commit", Metric::Time, commit, "ns").with("each", commit / elements, "ns"));
    others("beside a write set", &besides, report);
    Ok(())
}

/// Commits beside a transaction that has read before them and commits after them.
const COMMITS_MAX: usize = 1_000_000;
const COMMITS_A_VERTEX: usize = 16;

/// Commits `count` transactions, each of which changes a property of one vertex. Returns the mean time of a
/// commit, in nanoseconds.
fn commit_others(database: &Database, vertices: &[VertexId], count: usize) -> Result<f64> {
    let before = Instant::now();
    for (n, &vertex) in vertices.iter().cycle().take(count).enumerate() {
        let transaction = database.begin()?;
        transaction.set_vertex_property(UPDATED, &[(vertex, Value::I64(n as i64))])?;
        transaction.commit()?;
    }
    Ok(before.elapsed().as_nanos() as f64 / count as f64)
}

/// A writer reads one property, or one of every vertex, and commits after very many commits of others.
fn old_writers(graph: &Graph, vertices: &[VertexId], report: &mut Growing<'_>) -> Result<()> {
    const CASE: &str = "old writer";
    let database = &graph.database;
    let count = COMMITS_MAX.min(vertices.len() * COMMITS_A_VERTEX);
    report.push(row(CASE, "commits of others", Metric::Count, count as f64, ""));
    let alone = commit_others(database, vertices, count)?;
    report.push(row(CASE, "others: each commit, alone", Metric::Time, alone, "ns"));
    for (read, said) in [(1, "one item read"), (vertices.len(), "all vertices read")] {
        let transaction = database.begin()?;
        let mut values = ValueRows::default();
        for batch in vertices[..read].chunks(BATCH) {
            values.clear();
            transaction.view().vertex_values(batch, graph.names.name, &mut values)?;
        }
        transaction.insert_vertex(graph.names.labels[0], None)?;
        let beside = commit_others(database, vertices, count)?;
        let bytes = database.commit_history_bytes() as f64;
        let before = Instant::now();
        transaction.commit()?;
        let commit = before.elapsed().as_nanos() as f64;
        report.push(row(CASE, &format!("others: each commit, {said}"), Metric::Time, beside, "ns"));
        report.push(row(CASE, &format!("history a commit, {said}"), Metric::Size, bytes / count as f64, "B"));
        report.push(row(CASE, &format!("commit, {said}"), Metric::Time, commit, "ns"));
    }
    Ok(())
}

/// Commits a second beside a writer that is held open: the design's requirement for serializable writers.
const COMMITS_A_SECOND: u32 = 100_000;

/// The number of commits after which the rate is checked.
const COMMITS_BETWEEN_PAUSES: usize = 1_000;

/// A writer that has read a property of every vertex stays open while others commit at an even rate; then it commits.
/// If it has read what they change, it is refused, and for that reason.
fn held_writers(graph: &Graph, vertices: &[VertexId], time: Duration, report: &mut Growing<'_>) -> Result<()> {
    const CASE: &str = "held writer";
    let database = &graph.database;
    report.push(row(CASE, "held open", Metric::Time, time.as_nanos() as f64, "ns"));
    let updated = database.catalog().intern_key(UPDATED);
    for (key, conflicts, said) in
        [(graph.names.name, false, "nothing that it read changes"), (updated, true, "what it read changes")]
    {
        let transaction = database.begin()?;
        let mut values = ValueRows::default();
        for batch in vertices.chunks(BATCH) {
            values.clear();
            transaction.view().vertex_values(batch, key, &mut values)?;
        }
        transaction.insert_vertex(graph.names.labels[0], None)?;
        let (start, mut commits) = (Instant::now(), 0_u32);
        while commits == 0 || start.elapsed() < time {
            let from = commits as usize % vertices.len();
            let some = &vertices[from..vertices.len().min(from + COMMITS_BETWEEN_PAUSES)];
            commit_others(database, some, some.len())?;
            commits += some.len() as u32;
            std::thread::sleep((Duration::from_secs(1) * commits / COMMITS_A_SECOND).saturating_sub(start.elapsed()));
        }
        let rate = f64::from(commits) / start.elapsed().as_secs_f64();
        let bytes = database.commit_history_bytes() as f64;
        let before = Instant::now();
        let outcome = transaction.commit();
        let commit = before.elapsed().as_nanos() as f64;
        match &outcome {
            Ok(_) if !conflicts => {}
            Err(error) if conflicts && error.reason() == Some(AbortCause::ReadConflict.name()) => {}
            _ => return Err(wrong(format!("a writer ends with {outcome:?} where {said}"))),
        }
        report.push(row(CASE, &format!("commits of others, {said}"), Metric::Count, f64::from(commits), ""));
        report.push(row(CASE, &format!("their rate, {said}"), Metric::Rate, rate, "/s"));
        report.push(row(CASE, &format!("history, {said}"), Metric::Size, bytes, "B"));
        report.push(row(CASE, &format!("commit, {said}"), Metric::Time, commit, "ns"));
    }
    Ok(())
}

fn by_number(database: &Database, count: u64) -> Result<Vec<VertexId>> {
    let ids: Vec<_> = (0..count).map(crate::people::id).collect();
    let mut found = Vec::new();
    database.begin_read()?.view().find_vertices(&ids, &mut found)?;
    found.into_iter().map(|vertex| vertex.ok_or_else(|| wrong("a vertex is missing".to_owned()))).collect()
}
