//! Locality after churn: the time to read a graph's adjacency after a period of updates, and after compaction, beside
//! the same graph loaded afresh.
//!
//! The updates are the templates of G-Tran that write, with as many removals as additions, so that the loaded edges are
//! replaced one by one. Then the graph is copied into a new database by bulk load: the same vertices and edges in the
//! best layout. Both graphs answer the same questions with the same inputs, so the ratio of their times is the loss of
//! locality and nothing else. A difference in the answers fails the suite.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mangrove::{
    Database, Direction, ExpandCursor, ExpandRequest, Expansion, GraphView, LabelFilter, LabelSetId, Result,
    ScanCursor, Share, UserId, VertexId,
};

use super::Context;
use super::mixes::{Setting, TRANSACTIONS_MIN, run_counted, workers};
use crate::harness::{REPETITION_COUNT, Timing, wrong};
use crate::oltp::audit::{self, all_vertices};
use crate::oltp::draw::Population;
use crate::oltp::driver::Length;
use crate::oltp::graph::Blueprint;
use crate::oltp::{Api, Level, Operations, Skew};
use crate::options::Suite;
use crate::people;
use crate::report::{Growing, Metric, Row};
use crate::social::EDGE_BATCH;
use mangrove_generate::random::{RandomStream, mix};

const NAME: &str = Suite::Locality.name();

/// The target for the time after compaction, as a multiple of the time on a fresh graph.
const COMPACTED_MAX: f64 = 1.1;

/// The questions: name, number of hops, number of start vertices. Three hops from ten vertices reach nearly
/// everything. A scan reads the lists of all vertices at once.
const QUESTIONS: [(&str, usize, usize); 4] =
    [("scan", 0, 0), ("1 hop", 1, 4_000), ("2 hops", 2, 100), ("3 hops", 3, 10)];

/// Vertices or edges in one call of the database.
const BATCH: usize = 1_024;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    if !context.options.wants("churn", "edges replaced") {
        return Ok(());
    }
    let churned = churn(context, report)?;
    let fresh = copy(&churned)?;
    let (size, copied) = (audit::check(&churned)?, audit::check(&fresh)?);
    if size != copied {
        return Err(wrong(format!("the copy of {size:?} is {copied:?}")));
    }
    let numbers = numbers(&churned)?;
    let baseline = stage("fresh", &fresh, &numbers, None, report)?;
    stage("churned", &churned, &numbers, Some(&baseline), report)?;
    let before = Instant::now();
    churned.compact();
    let taken = before.elapsed().as_nanos() as f64;
    report.push(Row::single(NAME, "compaction of everything", "", Metric::Time, taken, "ns"));
    stage("compacted", &churned, &numbers, Some(&baseline), report)?;
    if audit::check(&churned)? != size {
        return Err(wrong("compaction has changed the graph".to_owned()));
    }
    Ok(())
}

/// A graph after updates.
fn churn(context: &Context<'_>, report: &mut Growing<'_>) -> Result<Database> {
    let setting = Setting {
        suite: Suite::Locality,
        operations: Operations::Lbv,
        api: Api::Typed,
        level: Level::Serializable,
        skew: Skew::Uniform,
        population: Population::Turnover { threads: context.options.threads },
    };
    let mix = setting.operations.mix("write-intensive")?.writes();
    let graph = Arc::new(Blueprint::kronecker(context.options.scale.log_vertices()).load(setting.operations)?);
    let mut workers = workers(context, &setting, &mix, &graph, None)?;
    let seconds = if context.options.seconds == 0.0 { 0.0 } else { context.options.choices.churn_seconds };
    let length = Length { seconds, transactions_min: 5 * TRANSACTIONS_MIN };
    let measured = run_counted(&graph.database, Api::Typed, &mix, length, &mut workers, None)?;
    let updates = Row::single(NAME, "churn", "updates", Metric::Count, measured.record.done() as f64, "");
    report.push(updates.with("seconds", measured.record.seconds, "s"));
    let transaction = graph.database.begin_read()?;
    let mut left = graph.edges.clone();
    transaction.view().retain_edges(&mut left)?;
    let replaced = 100.0 * (1.0 - left.len() as f64 / graph.edges.len() as f64);
    report.push(Row::single(NAME, "churn", "loaded edges removed", Metric::Share, replaced, "%"));
    Ok(graph.database.clone())
}

/// Copies the vertices and edges of a graph, without properties, to a new database.
pub(super) fn copy(from: &Database) -> Result<Database> {
    let transaction = from.begin_read()?;
    let view = transaction.view();
    let to = Database::in_memory();
    let same = |set: LabelSetId| to.catalog().intern_label_text(&from.catalog().label_set_name(set));
    let vertices = all_vertices(view)?;
    let (mut labels, mut ids) = (Vec::new(), Vec::new());
    view.vertex_labels(&vertices, &mut labels)?;
    view.vertex_user_ids(&vertices, &mut ids)?;
    let mut by_label: BTreeMap<LabelSetId, Vec<usize>> = BTreeMap::new();
    labels.iter().enumerate().for_each(|(at, label)| by_label.entry(*label).or_default().push(at));
    let mut loader = to.bulk_load()?;
    let mut copies = hashbrown::HashMap::with_hasher(foldhash::fast::RandomState::default());
    for (label, places) in by_label {
        let chosen = places.iter().map(|&at| UserId::from_value(&ids[at]).ok_or_else(|| wrong("no id".to_owned())));
        let chosen = chosen.collect::<Result<Vec<_>>>()?;
        let loaded = loader.vertices(same(label), places.len(), Some(&chosen), &[])?;
        copies.extend(places.iter().zip(loaded).map(|(&at, copy)| (vertices[at], copy)));
    }
    for (label, ends) in edges_by_label(view)? {
        let ends: Vec<_> = ends.iter().map(|(source, target)| (copies[source], copies[target])).collect();
        for batch in ends.chunks(EDGE_BATCH) {
            loader.edges(same(label), batch, None, &[])?;
        }
    }
    loader.finish()?;
    Ok(to)
}

type Ends = Vec<(VertexId, VertexId)>;

/// The ends of all edges, by the edges' label set.
fn edges_by_label(view: &dyn GraphView) -> Result<BTreeMap<LabelSetId, Ends>> {
    let (mut cursor, mut by_label) = (ScanCursor::default(), BTreeMap::<LabelSetId, Ends>::new());
    let (mut edges, mut sources, mut targets, mut labels) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    loop {
        edges.clear();
        sources.clear();
        targets.clear();
        labels.clear();
        let ended = view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, BATCH, &mut edges)?;
        view.edge_ends(&edges, &mut sources, &mut targets)?;
        view.edge_labels(&edges, &mut labels)?;
        for ((&label, &source), &target) in labels.iter().zip(&sources).zip(&targets) {
            by_label.entry(label).or_default().push((source, target));
        }
        if ended {
            return Ok(by_label);
        }
    }
}

/// The numbers of all vertices in a fixed random order, so questions begin at the same vertices in both graphs.
fn numbers(database: &Database) -> Result<Vec<u64>> {
    let transaction = database.begin_read()?;
    let (vertices, mut ids) = (all_vertices(transaction.view())?, Vec::new());
    transaction.view().vertex_user_ids(&vertices, &mut ids)?;
    let mut numbers: Vec<u64> = ids.iter().map(people::digest).collect();
    numbers.sort_unstable();
    RandomStream::from_seed(mix(77)).shuffle(&mut numbers);
    Ok(numbers)
}

/// The answer to a question.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// The number of neighbors met, with repetitions.
    met: u64,
    /// Nanoseconds a neighbor.
    each: Timing,
}

/// Runs all questions on a graph. With a baseline, fails if an answer differs from the fresh graph's.
fn stage(
    name: &str,
    database: &Database,
    numbers: &[u64],
    baseline: Option<&[Answer]>,
    report: &mut Growing<'_>,
) -> Result<Vec<Answer>> {
    report.push(layout(name, database));
    let mut answers = Vec::new();
    for (index, (question, hops, starts)) in QUESTIONS.into_iter().enumerate() {
        let answer = ask(database, hops, &numbers[..starts.min(numbers.len())])?;
        let row = Row::time(NAME, &format!("{question}, a neighbor"), name, answer.each);
        let Some(fresh) = baseline.map(|answers| answers[index]) else {
            report.push(row.with("neighbors", answer.met as f64, "count"));
            answers.push(answer);
            continue;
        };
        if fresh.met != answer.met {
            return Err(wrong(format!(
                "{question}: {} neighbors in the fresh graph, {} in the {name} one",
                fresh.met, answer.met
            )));
        }
        let target = (name == "compacted").then_some(COMPACTED_MAX * fresh.each.median);
        report.push(row.beside(fresh.each.median).aiming_at(target));
        answers.push(answer);
    }
    Ok(answers)
}

/// A row with the layout of the adjacency lists: its value is the number of stretches a table. A stretch is a maximal
/// group of packed runs that are adjacent in memory.
fn layout(name: &str, database: &Database) -> Row {
    let layout = database.adjacency_layout();
    let of = |count: u64, all: u64| count as f64 / all.max(1) as f64;
    let filled = layout.tables - layout.empty_tables;
    Row::single(NAME, "layout", name, Metric::Count, of(layout.stretches, filled), "stretches/table")
        .with("vertices a page", of(layout.vertices, layout.pages), "count")
        .with("tables a page, both ways", of(layout.tables, layout.pages), "count")
        .with("of these empty", of(layout.empty_tables, layout.pages), "count")
        .with("lists packed", 100.0 * of(layout.packed_lists, layout.lists), "%")
}

/// Walks this many hops from each start vertex, or through all vertices at once if `hops` is 0.
fn ask(database: &Database, hops: usize, starts: &[u64]) -> Result<Answer> {
    let transaction = database.begin_read()?;
    let view = transaction.view();
    let sources: Vec<Vec<VertexId>> = if hops == 0 {
        vec![all_vertices(view)?]
    } else {
        let ids: Vec<UserId> = starts.iter().map(|&number| people::id(number)).collect();
        let mut found = Vec::new();
        view.find_vertices(&ids, &mut found)?;
        found.into_iter().flatten().map(|vertex| vec![vertex]).collect()
    };
    let mut samples = Vec::new();
    let mut met = 0;
    for _ in 0..REPETITION_COUNT {
        let mut taken = Duration::ZERO;
        met = 0;
        for source in &sources {
            met += walk(view, source, hops.max(1), &mut taken)?;
        }
        samples.push(taken.as_nanos() as f64 / met.max(1) as f64);
    }
    Ok(Answer { met, each: Timing::of(samples) })
}

/// Follows outgoing edges for this many hops, from each vertex once a hop, and counts the neighbors met. Only the
/// reading of adjacency is timed, not the removal of duplicates between hops.
fn walk(view: &dyn GraphView, from: &[VertexId], hops: usize, taken: &mut Duration) -> Result<u64> {
    let request =
        ExpandRequest { direction: Direction::Out, labels: LabelFilter::Any, edges: false, limit: 16 * BATCH };
    let (mut here, mut met, mut found) = (from.to_vec(), 0, Expansion::default());
    for hop in 1..=hops {
        let mut next = Vec::new();
        for batch in here.chunks(BATCH) {
            let mut cursor = ExpandCursor::default();
            loop {
                found.clear();
                let before = Instant::now();
                let ended = view.expand(batch, &request, &mut cursor, &mut found)?;
                *taken += before.elapsed();
                met += found.len() as u64;
                if hop < hops {
                    next.extend_from_slice(&found.neighbor);
                }
                if ended {
                    break;
                }
            }
        }
        next.sort_unstable();
        next.dedup();
        here = next;
    }
    Ok(met)
}
