//! Projections and algorithms beside a writer that moves edges as fast as it can.
//!
//! The writer's rate is compared with its rate beside a thread that only computes: two threads on two cores slow one another down,
//! whatever they do. A thread that only copies an array shows what any companion costs that reads and writes memory: the writer and the
//! algorithms are measured beside it, too.

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
/// How often the writer runs beside each companion.
const ROUNDS: usize = 7;
/// The time that the collector has before a measurement on a graph at rest.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>, graph: &Graph, loaded: &Loaded) -> Result<()> {
    let seconds = context.options.seconds.max(0.2);
    let (team, cells) = (Team::alone(), graph.cell_count());
    let options = ProjectionOptions { orientation: Orientation::Undirected, ..ProjectionOptions::default() };
    let read = |options: &ProjectionOptions| -> Result<Arc<Projection>> {
        Ok(Arc::new(Projection::of(loaded.database.begin_read()?.view(), options, &team)?))
    };
    let mut writer = Writer::new(loaded)?;
    let weighted = ProjectionOptions { weight: Some(loaded.weight), ..options.clone() };
    let (mut last, mut last_weighted) = (read(&options)?, read(&weighted)?);
    let refresh = |last: &mut Arc<Projection>| -> Result<f64> {
        let start = Instant::now();
        *last = last.refreshed(loaded.database.begin_read()?.view(), &team)?.0;
        Ok(start.elapsed().as_secs_f64() * 1e9)
    };
    let mut change = || (0..graph.edges.len() * CHANGED_PERCENT / 100).try_for_each(|_| writer.step());
    let case = format!("projection after 1 % of edges moved, a cell, {}, 1 thread", graph.name);
    for variant in ["refreshed, first", "refreshed, second"] {
        change()?;
        report.push(Row::time(NAME, &case, variant, Timing::of(vec![refresh(&mut last)?]).divided_by(cells)));
    }
    let new = timed(5, &mut || read(&options).map(drop))?;
    report.push(Row::time(NAME, &case, "anew", new.divided_by(cells)));

    let projection = read(&options)?;
    let rank = pagerank::PageRankOptions { rounds: 10, ..pagerank::PageRankOptions::default() };
    let source = (0..projection.positions() as u32).max_by_key(|at| projection.out_degree(*at)).unwrap_or_default();
    let run_rank = |projection: &Projection| pagerank::run(projection, &rank, &team).map(drop);
    let run_bfs = |projection: &Projection| bfs::run(projection, source, bfs::Follow::Outgoing, &team).map(drop);
    // As many bytes as the cells of the projection.
    let (from, mut to) = (vec![1_u32; cells as usize], vec![0_u32; cells as usize]);
    let mut copy = || std::hint::black_box(&mut to).copy_from_slice(&from);
    // What the writer runs beside, in turn, because the speed of a machine changes from second to second.
    let mut companions = [
        Companion::new("alone"),
        Companion::new("beside a computing thread"),
        Companion::new("beside a copying thread"),
        Companion::new("beside new projections"),
        Companion::new("beside refreshed projections and BFS"),
        Companion::new("beside refreshed projections with weights and BFS"),
        Companion::new("beside PageRank"),
        Companion::new("beside BFS"),
    ];
    let (mut refreshed, mut refreshed_weights) = (Vec::new(), Vec::new());
    let (mut quiet_rank, mut quiet_bfs) = (Vec::new(), Vec::new());
    let (mut copying_rank, mut copying_bfs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // The collector ends its work on what was written before.
        std::thread::sleep(PAUSE);
        quiet_rank.extend(times(3, &mut || run_rank(&projection))?);
        quiet_bfs.extend(times(10, &mut || run_bfs(&projection))?);
        copying_rank.extend(beside(&mut copy, &mut || times(3, &mut || run_rank(&projection)))?);
        copying_bfs.extend(beside(&mut copy, &mut || times(10, &mut || run_bfs(&projection)))?);
        let [alone, computing, copying, anew, live, live_weights, ranked, searched] = &mut companions;
        alone.run(&mut writer, seconds, &mut || {
            std::thread::sleep(Duration::from_millis(10));
            Ok(())
        })?;
        computing.run(&mut writer, seconds, &mut || {
            (0..1_000_000_u64).for_each(|n| {
                std::hint::black_box(n);
            });
            Ok(())
        })?;
        copying.run(&mut writer, seconds, &mut || {
            copy();
            Ok(())
        })?;
        anew.run(&mut writer, seconds, &mut || read(&options).map(drop))?;
        // As algorithms on the live graph do it: a projection is refreshed, and then it is searched. Nothing refreshed it since the last round.
        refresh(&mut last)?;
        live.run(&mut writer, seconds, &mut || {
            refreshed.push(refresh(&mut last)?);
            run_bfs(&last)
        })?;
        refresh(&mut last_weighted)?;
        live_weights.run(&mut writer, seconds, &mut || {
            refreshed_weights.push(refresh(&mut last_weighted)?);
            run_bfs(&last_weighted)
        })?;
        ranked.run(&mut writer, seconds, &mut || run_rank(&projection))?;
        searched.run(&mut writer, seconds, &mut || run_bfs(&projection))?;
    }
    let [_, _, _, anew, _, _, ranked, searched] = &companions;

    let case = |case: &str| format!("{case}, {BESIDE_WRITER}, {}, 1 thread", graph.name);
    let variants = [("anew", &anew.times), ("refreshed", &refreshed), ("refreshed, with weights", &refreshed_weights)];
    for (variant, times) in variants {
        let row = Row::time(NAME, &case(BUILD), variant, Timing::of(times.clone()).divided_by(cells));
        report.push(row.aiming_at(BESIDE_WRITER_MAX).by_rule("5 ns a cell"));
    }
    let algorithms =
        [(PAGERANK, &ranked.times, quiet_rank, copying_rank), (BFS, &searched.times, quiet_bfs, copying_bfs)];
    for (name, times, quiet, copying) in algorithms {
        let quiet = Timing::of(quiet);
        report.push(Row::time(NAME, &case(name), "quiet", quiet));
        let row = Row::time(NAME, &case(name), "beside a copying thread", Timing::of(copying));
        report.push(row.beside(quiet.median));
        let row = Row::time(NAME, &case(name), "projection", Timing::of(times.clone())).beside(quiet.median);
        report.push(row.aiming_at(1.1 * quiet.median).by_rule("1.1 × quiet"));
    }
    let [_, computing, ..] = &mut companions;
    let burning = computing.rate();
    for mut companion in companions {
        let (name, rate) = (companion.name, companion.rate());
        let row = Row::single(NAME, &format!("moved edges, {}", graph.name), name, Metric::Rate, rate, "tx/s");
        let row = row.beside(Some(burning));
        report.push(match name {
            "alone" | "beside a computing thread" | "beside a copying thread" => row,
            _ => row.aiming_at(0.9 * burning).by_rule("0.9 × beside a computing thread"),
        });
    }
    Ok(())
}

/// The result of a run, while another thread does something again and again.
fn beside<T>(other: &mut (dyn FnMut() + Send), run: &mut dyn FnMut() -> Result<T>) -> Result<T> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                other();
            }
        });
        let outcome = run();
        is_over.store(true, Ordering::Relaxed);
        outcome
    })
}

/// The nanoseconds of several runs.
fn times(runs: usize, run: &mut dyn FnMut() -> Result<()>) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1e9);
    }
    Ok(times)
}

fn timed(runs: usize, run: &mut dyn FnMut() -> Result<()>) -> Result<Timing> {
    times(runs, run).map(Timing::of)
}

/// What the writer runs beside.
struct Companion {
    name: &'static str,
    /// The transactions a second of each round.
    rates: Vec<f64>,
    /// The nanoseconds of each run of the companion.
    times: Vec<f64>,
}

impl Companion {
    fn new(name: &'static str) -> Self {
        Companion { name, rates: Vec::new(), times: Vec::new() }
    }

    /// Runs it again and again while the writer writes.
    fn run(&mut self, writer: &mut Writer<'_>, seconds: f64, run: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        // The collector ends its work on what was written beside other companions.
        std::thread::sleep(PAUSE);
        let (is_over, count) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| -> Result<()> {
            let writing = scope.spawn(|| -> Result<()> {
                while !is_over.load(Ordering::Relaxed) {
                    writer.step()?;
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
            let begin = Instant::now();
            let mut outcome = Ok(());
            while outcome.is_ok() && begin.elapsed().as_secs_f64() < seconds {
                let start = Instant::now();
                outcome = run();
                self.times.push(start.elapsed().as_secs_f64() * 1e9);
            }
            self.rates.push(count.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64());
            is_over.store(true, Ordering::Relaxed);
            writing.join().map_err(|_| mangrove::Error::bug("the writer panicked"))??;
            outcome
        })
    }

    /// The median of the rates.
    fn rate(&mut self) -> f64 {
        self.rates.sort_unstable_by(f64::total_cmp);
        self.rates[self.rates.len() / 2]
    }
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
