//! A vertex with a million edges: concurrent inserts of edges to it, which are no conflict, and its deletion in one
//! transaction beside others.

use std::sync::Arc;
use std::time::Instant;

use mangrove::{
    AbortCause, Database, Direction, EdgeId, Isolation, LabelFilter, LabelSetId, Result, TransactionOptions, VertexId,
};

use super::Context;
use crate::harness::{Operation, Schedule, measure, wrong};
use crate::oltp::audit;
use crate::oltp::beside::{SmallTransactions, beside, retrying};
use crate::options::Suite;
use crate::people::{self, PeopleContent, PeopleNames};
use crate::report::{Growing, Metric, Row};
use crate::social::{KNOWS, load_edges};
use mangrove_generate::random::{RandomStream, mix};

const NAME: &str = Suite::Supernode.name();

/// Edges of the vertex: a million from scale 16 on; below that, 16 for each vertex of the graph.
const LOG_EDGES_MAX: u32 = 20;

/// The least number of threads that insert at once: a single thread meets no other.
const THREADS_MIN: usize = 2;

/// The length of a stall that a person would notice.
const STALL_NS_MAX: f64 = 50e6;

/// A database whose first vertex is the supernode.
struct Star {
    database: Database,
    knows: LabelSetId,
    hub: VertexId,
    others: Arc<Vec<VertexId>>,
    edge_count: u64,
}

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let mut star = Star::load(context.options.scale.log_vertices())?;
    let threads = context.options.threads.max(THREADS_MIN);
    inserts(context, &mut star, threads, report)?;
    deletion(&star, threads, report)
}

impl Star {
    fn load(log_vertices: u32) -> Result<Self> {
        let (count, edge_count) = (1usize << log_vertices, 1usize << (log_vertices + 4).min(LOG_EDGES_MAX));
        let database = Database::in_memory();
        let names = PeopleNames::of(&database);
        let knows = database.catalog().intern_label_text(KNOWS);
        let mut loader = database.bulk_load()?;
        let people = people::batches(&database, count, PeopleContent::TwoProperties);
        let vertices = people::load(&mut loader, names.person, &people)?;
        let (hub, others) = (vertices[0], vertices[1..].to_vec());
        let mut random = RandomStream::from_seed(mix(31));
        let ends: Vec<_> = (0..edge_count)
            .map(|n| {
                let other = others[random.below(others.len() as u64) as usize];
                if n % 2 == 0 { (hub, other) } else { (other, hub) }
            })
            .collect();
        load_edges(&mut loader, knows, &ends)?;
        loader.finish()?;
        Ok(Star { database, knows, hub, others: Arc::new(others), edge_count: edge_count as u64 })
    }

    fn hub_degree(&self) -> Result<u64> {
        let mut degrees = Vec::new();
        let transaction = self.database.begin_read()?;
        transaction.view().degrees(&[self.hub], Direction::Both, &LabelFilter::Any, &mut degrees)?;
        Ok(degrees[0])
    }
}

fn inserts(context: &Context<'_>, star: &mut Star, threads: usize, report: &mut Growing<'_>) -> Result<()> {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let variant = if isolation == Isolation::Serializable { "serializable" } else { "snapshot" };
        let before = star.database.transaction_counters();
        let mut operations: Vec<_> = (0..threads).map(|_| insert(star, isolation)).collect();
        let schedule = Schedule { threads, ..context.schedule };
        let timing = measure(schedule, star.others.len() as u64, &mut operations)?;
        drop(operations);
        let after = star.database.transaction_counters();
        let conflicts = after.aborted(AbortCause::WriteConflict) - before.aborted(AbortCause::WriteConflict);
        if conflicts != 0 {
            return Err(wrong(format!("{conflicts} inserts at one vertex met write-write conflicts")));
        }
        star.edge_count += after.commits - before.commits;
        let degree = star.hub_degree()?;
        if degree != star.edge_count {
            return Err(wrong(format!("the vertex has {degree} edges and not {}", star.edge_count)));
        }
        let row = Row::rate(NAME, "inserts at one vertex", variant, timing, threads as f64, "tx/s");
        report.push(row.with("threads", threads as f64, "count").with("edges", degree as f64, "count"));
        let conflicts = Row::single(NAME, "inserts: write conflicts", variant, Metric::Count, conflicts as f64, "");
        report.push(conflicts.aiming_at(0.0));
    }
    Ok(())
}

fn insert(star: &Star, isolation: Isolation) -> Box<dyn Operation> {
    let (database, others, hub, knows) = (star.database.clone(), star.others.clone(), star.hub, star.knows);
    let options = TransactionOptions { isolation, read_only: false };
    Box::new(move |input: u64| {
        let other = others[input as usize];
        let transaction = database.begin_with(options)?;
        let edges: Vec<EdgeId> = transaction.insert_edges(knows, &[(hub, other)])?;
        transaction.commit()?;
        Ok(edges[0].to_bits())
    })
}

fn deletion(star: &Star, threads: usize, report: &mut Growing<'_>) -> Result<()> {
    let ((), alone) = beside(&star.database, &star.others, threads, || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        Ok(())
    })?;
    let delete = || {
        let before = Instant::now();
        let transaction = star.database.begin()?;
        transaction.delete_vertices(&[star.hub])?;
        transaction.commit()?;
        Ok(before.elapsed().as_nanos() as f64)
    };
    let ((nanos, conflicts), during) = beside(&star.database, &star.others, threads, || retrying(delete))?;
    let size = audit::check(&star.database)?;
    if size.edges != 0 || size.vertices != star.others.len() as u64 {
        return Err(wrong(format!("after the center of the star was deleted, the graph still has {size:?}")));
    }
    let row = |case: &str, variant: &str, value: f64| Row::single(NAME, case, variant, Metric::Time, value, "ns");
    let edges = star.edge_count as f64;
    report.push(row("deletion in one transaction", "typed", nanos).with("edges", edges, "count").with(
        "conflicts",
        f64::from(conflicts),
        "count",
    ));
    for (variant, SmallTransactions { latency, failed }) in [("alone", &alone), ("beside the deletion", &during)] {
        let p99 = row("others: p99", variant, latency.quantile(0.99) as f64);
        report.push(p99.with("transactions", latency.count() as f64, "count").with("failed", *failed as f64, "count"));
        let target = (variant != "alone").then_some(STALL_NS_MAX);
        report.push(row("others: longest stall", variant, latency.max() as f64).aiming_at(target));
    }
    Ok(())
}
