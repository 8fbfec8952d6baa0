//! Projections and algorithms beside a writer that moves edges as fast as it can.
//!
//! The writer's rate is compared with its rate beside a thread that only computes: two threads on two cores slow one another down,
//! whatever they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mangrove::analytics::algorithm::{bfs, pagerank};
use mangrove::analytics::{Orientation, Projection, ProjectionOptions, Team};
use mangrove::{EdgeId, LabelFilter, Result, ScanCursor, Share, TransactionOptions};
use mangrove_generate::random::{RandomStream, mix};

use super::graph::{Graph, Loaded};
use super::{BESIDE_WRITER, BESIDE_WRITER_MAX, BFS, BUILD, NAME, PAGERANK};
use crate::harness::Timing;
use crate::report::{Growing, Metric, Row};
use crate::suites::Context;

/// Part of the edges that is replaced before a refresh.
const CHANGED_PERCENT: usize = 1;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>, graph: &Graph, loaded: &Loaded) -> Result<()> {
    let seconds = context.options.seconds.max(0.2);
    let (team, cells) = (Team::alone(), graph.cell_count());
    let options = ProjectionOptions { orientation: Orientation::Undirected, ..ProjectionOptions::default() };
    let read = |options: &ProjectionOptions| -> Result<Arc<Projection>> {
        Ok(Arc::new(Projection::of(loaded.database.begin_read()?.view(), options, &team)?))
    };
    let mut writer = Writer::new(loaded)?;
    let old = read(&options)?;
    (0..graph.edges.len() * CHANGED_PERCENT / 100).try_for_each(|_| writer.step())?;
    let case = format!("projection after 1 % of edges moved, a cell, {}, 1 thread", graph.name);
    let refresh = timed(1, &mut || old.refreshed(loaded.database.begin_read()?.view(), &team).map(drop))?;
    report.push(Row::time(NAME, &case, "refreshed, at once", refresh.divided_by(cells)));
    let new = timed(5, &mut || read(&options).map(drop))?;
    report.push(Row::time(NAME, &case, "anew", new.divided_by(cells)));
    let projection = read(&options)?;

    let rank = pagerank::PageRankOptions { rounds: 10, ..pagerank::PageRankOptions::default() };
    let source = (0..projection.positions() as u32).max_by_key(|at| projection.out_degree(*at)).unwrap_or_default();
    let run_rank = |projection: &Projection| pagerank::run(projection, &rank, &team).map(drop);
    let run_bfs = |projection: &Projection| bfs::run(projection, source, bfs::Follow::Outgoing, &team).map(drop);
    let quiet_rank = timed(5, &mut || run_rank(&projection))?;
    let quiet_bfs = timed(20, &mut || run_bfs(&projection))?;

    // The writer's rate: alone, beside a computing thread, and beside each kind of reader.
    let mut rates = Vec::new();
    let mut beside = |name: &'static str, reader: &mut dyn FnMut() -> Result<()>| -> Result<Vec<f64>> {
        let (is_over, count) = (AtomicBool::new(false), AtomicU64::new(0));
        let writer = &mut writer;
        let (times, elapsed) = std::thread::scope(|scope| -> Result<(Vec<f64>, f64)> {
            let writing = scope.spawn(|| -> Result<()> {
                while !is_over.load(Ordering::Relaxed) {
                    writer.step()?;
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
            let begin = Instant::now();
            let (mut times, mut outcome) = (Vec::new(), Ok(()));
            while outcome.is_ok() && begin.elapsed().as_secs_f64() < seconds {
                let start = Instant::now();
                outcome = reader();
                times.push(start.elapsed().as_secs_f64() * 1e9);
            }
            let elapsed = begin.elapsed().as_secs_f64();
            is_over.store(true, Ordering::Relaxed);
            writing.join().map_err(|_| mangrove::Error::bug("the writer panicked"))??;
            outcome.map(|()| (times, elapsed))
        })?;
        rates.push((name, count.into_inner() as f64 / elapsed));
        Ok(times)
    };
    beside("alone", &mut || {
        std::thread::sleep(Duration::from_millis(10));
        Ok(())
    })?;
    beside("beside a computing thread", &mut || {
        (0..1_000_000_u64).for_each(|n| {
            std::hint::black_box(n);
        });
        Ok(())
    })?;
    let taken = beside("beside new projections", &mut || read(&options).map(drop))?;
    let mut last = projection.clone();
    let refreshed = beside("beside refreshed projections", &mut || {
        last = last.refreshed(loaded.database.begin_read()?.view(), &team)?.0;
        Ok(())
    })?;
    let ranked = beside("beside PageRank", &mut || run_rank(&projection))?;
    let searched = beside("beside BFS", &mut || run_bfs(&projection))?;

    let case = |case: &str| format!("{case}, {BESIDE_WRITER}, {}, 1 thread", graph.name);
    for (variant, times) in [("anew", taken), ("refreshed", refreshed)] {
        let row = Row::time(NAME, &case(BUILD), variant, Timing::of(times).divided_by(cells));
        report.push(row.aiming_at(BESIDE_WRITER_MAX).by_rule("5 ns a cell"));
    }
    for (name, times, quiet) in [(PAGERANK, ranked, quiet_rank), (BFS, searched, quiet_bfs)] {
        report.push(Row::time(NAME, &case(name), "quiet", quiet));
        let row = Row::time(NAME, &case(name), "projection", Timing::of(times)).beside(quiet.median);
        report.push(row.aiming_at(1.1 * quiet.median).by_rule("1.1 × quiet"));
    }
    let burning = rates.iter().find(|(name, _)| name.contains("computing")).map(|(_, rate)| *rate);
    for (name, rate) in rates {
        let row = Row::single(NAME, &format!("moved edges, {}", graph.name), name, Metric::Rate, rate, "tx/s");
        let row = row.beside(burning);
        report.push(match burning {
            Some(rate) if name.starts_with("beside") && !name.contains("computing") => {
                row.aiming_at(0.9 * rate).by_rule("0.9 × beside a computing thread")
            }
            _ => row,
        });
    }
    Ok(())
}

/// Runs several times.
fn timed(runs: usize, run: &mut dyn FnMut() -> Result<()>) -> Result<Timing> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1e9);
    }
    Ok(Timing::of(times))
}

/// Moves edges, one a transaction.
struct Writer<'a> {
    loaded: &'a Loaded,
    edges: Vec<EdgeId>,
    random: RandomStream,
}

impl<'a> Writer<'a> {
    fn new(loaded: &'a Loaded) -> Result<Self> {
        let transaction = loaded.database.begin_read()?;
        let (mut edges, mut cursor) = (Vec::new(), ScanCursor::default());
        while !transaction.view().scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 1 << 16, &mut edges)? {}
        Ok(Writer { loaded, edges, random: RandomStream::from_seed(mix(3)) })
    }

    fn step(&mut self) -> Result<()> {
        let Writer { loaded, edges, random } = self;
        let label = loaded.database.catalog().intern_label_text("road");
        let options = TransactionOptions { isolation: mangrove::Isolation::Snapshot, read_only: false };
        let transaction = loaded.database.begin_with(options)?;
        let at = random.below(edges.len() as u64) as usize;
        let mut any = || loaded.vertices[random.below(loaded.vertices.len() as u64) as usize];
        let ends = [any(), any()];
        transaction.delete_edges(&[edges[at]])?;
        edges[at] = transaction.insert_edges(label, &[(ends[0], ends[1])])?[0];
        transaction.commit().map(drop)
    }
}
