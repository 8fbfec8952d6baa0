//! Graph algorithms on projections of the live graph, beside the GAP Benchmark Suite (`--gap DIR`).
//!
//! | variant | meaning |
//! |---|---|
//! | `bare` | a hand-written loop over the rows of a projection that reads what the algorithm must at least read: the limit |
//! | `gap` | the program of the GAP suite, on the same edges, from the same sources: the limit of the others |
//! | `projection` | the algorithm alone, on a projection |
//! | `live` | a transaction, the refreshed projection, and the algorithm: nothing has changed since the last run |
//! | `anew` | a transaction, a new projection, and the algorithm |
//!
//! Each case runs on one thread and on two. Degrees and positions are part of a projection, and of its time.

mod check;
mod gap;
mod graph;
mod writer;
mod written;

use std::cell::Cell;
use std::sync::Arc;

use mangrove::analytics::algorithm::{betweenness, bfs, pagerank, sssp, triangles, wcc};
use mangrove::analytics::cache::ProjectionCache;
use mangrove::analytics::{Orientation, Projection, ProjectionOptions, Team};
use mangrove::{Error, Result};
use mangrove_flow::schedule::{ExecutorOptions, Executors, Tenant};
use mangrove_generate::random::{RandomStream, mix};

use super::Context;
use crate::harness::{Timing, measure_runs};
use crate::options::Suite;
use crate::report::{Growing, Row};
use gap::Gap;
use graph::{Graph, Loaded, Source};

const NAME: &str = Suite::Analytics.name();

/// The cases of a graph, on each number of threads.
const CASES: [&str; 8] = [BUILD, BFS, PAGERANK, PAGERANK_DOUBLES, WCC, TRIANGLES, BETWEENNESS, SSSP];
const BUILD: &str = "projection, a cell";
const BFS: &str = "bfs";
const PAGERANK: &str = "pagerank, 10 rounds";
const PAGERANK_DOUBLES: &str = "pagerank, 10 rounds, doubles";
const WCC: &str = "wcc";
const TRIANGLES: &str = "triangles";
const BETWEENNESS: &str = "betweenness, 1 source";
const SSSP: &str = "sssp";
/// Beside a writer, the graph is the one with the degree skew of social networks.
const BESIDE_WRITER: &str = "beside a writer";

/// Numbers of threads.
const THREADS: [usize; 2] = [1, 2];

/// Sources of searches.
const SOURCES: usize = 4;
/// Rounds of PageRank.
const ROUNDS: u32 = 10;
/// Trials of GAP's `tc`, each of which takes seconds on a large graph.
const TRIALS_OF_TRIANGLES: usize = 3;

/// The targets of the design, as multiples of GAP's time: of the algorithm alone, and with the look for what has changed.
#[derive(Clone, Copy)]
struct Marks {
    projection: f64,
    live: f64,
}

const BFS_MAX: Marks = Marks { projection: 1.1, live: 1.8 };
const PAGERANK_MAX: Marks = Marks { projection: 1.1, live: 1.6 };
const WCC_MAX: Marks = Marks { projection: 1.0, live: 1.2 };
const OTHER_MAX: Marks = Marks { projection: 1.2, live: 1.8 };
/// Nanoseconds a cell.
const BUILD_MAX: f64 = 2.0;
const BESIDE_WRITER_MAX: f64 = 5.0;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let options = &context.options.analytics;
    if let Some(programs) = &options.gap {
        gap::check(programs)?;
    }
    let scale = context.options.scale;
    let sources = [Source::Kronecker(scale), Source::Road(scale)];
    let sources = sources.into_iter().chain(options.graphs.iter().map(|path| Source::File(path)));
    let folder = crate::run_directory::RunDirectory::new(context.options.choices.directory.as_deref())?;
    for source in sources {
        // Graphs of which no case is measured are not made.
        let name = source.name();
        let wants = |threads| CASES.iter().any(|case| context.options.wants(&named(case, &name, threads), ""));
        let is_beside_writer = matches!(source, Source::Kronecker(_)) && context.options.wants(BESIDE_WRITER, "");
        let threads: Vec<usize> = THREADS.into_iter().filter(|threads| wants(*threads)).collect();
        if threads.is_empty() && !is_beside_writer {
            continue;
        }
        let graph = &source.graph()?;
        let loaded = graph.load()?;
        let gap = match &options.gap {
            None => None,
            Some(programs) => {
                let file =
                    |end: &str| folder.fresh(&format!("{}-{end}", graph.name.replace(' ', "-"))).with_extension(end);
                let gap = Gap { programs: programs.clone(), edges: file("el"), weighted: file("wel") };
                graph.write(&gap.edges)?;
                graph.write_weighted(&gap.weighted)?;
                Some(gap)
            }
        };
        for threads in threads {
            let mut bench = Bench { context, report, graph, loaded: &loaded, gap: gap.as_ref(), threads };
            bench.run()?;
        }
        if is_beside_writer {
            writer::run(context, report, graph, &loaded)?;
        }
    }
    written::run(context, report, &folder)
}

/// The name of a case of a graph on a number of threads.
fn named(case: &str, graph: &str, threads: usize) -> String {
    format!("{case}, {graph}, {threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// A team of so many threads, and the executors that are in it.
pub(super) fn team_of(threads: usize) -> Result<(Team, Option<Executors>)> {
    if threads == 1 {
        return Ok((Team::alone(), None));
    }
    let executors = Executors::start(ExecutorOptions { count: threads - 1, ..ExecutorOptions::default() })?;
    Ok((Team::with_executors(&executors, &Tenant::default(), threads - 1), Some(executors)))
}

/// An algorithm, with the number of a run. Returns a digest of the answer.
type Kernel<'k> = &'k dyn Fn(&Projection, &Team, usize) -> Result<u64>;

/// Times a program of the GAP suite on a number of threads.
type Rival<'k> = &'k dyn Fn(&Gap, usize) -> Result<Timing>;

/// One graph, on a number of threads.
struct Bench<'a, 'r, 'c> {
    context: &'a Context<'c>,
    report: &'a mut Growing<'r>,
    graph: &'a Graph,
    loaded: &'a Loaded,
    gap: Option<&'a Gap>,
    threads: usize,
}

impl Bench<'_, '_, '_> {
    fn run(&mut self) -> Result<()> {
        let (team, _executors) = team_of(self.threads)?;
        let undirected = ProjectionOptions { orientation: Orientation::Undirected, ..ProjectionOptions::default() };
        let weighted = ProjectionOptions { weight: Some(self.loaded.weight), ..undirected.clone() };
        let projection = {
            let transaction = self.loaded.database.begin_read()?;
            Arc::new(Projection::of(transaction.view(), &undirected, &team)?)
        };
        self.building(&projection, &undirected, &team)?;
        let numbers = self.sources(&projection);
        let positions: Vec<u32> =
            numbers.iter().map(|at| projection.numbering().position(self.loaded.vertices[*at as usize])).collect();
        check::unweighted(&self.graph.name, &projection, &positions, &team)?;

        let gap = |gap: &Gap, threads| gap.of_sources("bfs", threads, &numbers, 8);
        let search = |projection: &Projection, team: &Team, run: usize| {
            let depths = bfs::run(projection, positions[run % SOURCES], bfs::Follow::Outgoing, team)?;
            Ok(depths.iter().filter(|depth| **depth != bfs::UNREACHED).count() as u64)
        };
        self.case(BFS, &gap, BFS_MAX, &undirected, &team, &search)?;

        self.pagerank(&projection, &undirected, &team)?;

        let gap = |gap: &Gap, threads| gap.timing("cc", threads, &["-n", "12"]);
        let connect = |projection: &Projection, team: &Team, _: usize| {
            Ok(wcc::run(projection, team)?.iter().map(|root| u64::from(*root)).sum())
        };
        self.case(WCC, &gap, WCC_MAX, &undirected, &team, &connect)?;

        self.triangles(&projection, &undirected, &team)?;

        let gap = |gap: &Gap, threads| gap.of_sources("bc", threads, &numbers, 4);
        let between = |projection: &Projection, team: &Team, run: usize| {
            Ok(betweenness::of_sources(projection, &[positions[run % SOURCES]], team)?.iter().sum::<f64>().to_bits())
        };
        self.case(BETWEENNESS, &gap, OTHER_MAX, &undirected, &team, &between)?;

        // GAP's default width of a bucket is 1; this one is good for both (weights are 1 to 255).
        const DELTA: f64 = 32.0;
        let gap = |gap: &Gap, threads| {
            let mut times = Vec::new();
            for source in &numbers {
                let arguments = ["-r", &source.to_string(), "-n", "3", "-d", "32"].map(str::to_owned);
                times.extend(gap.times("sssp", threads, &arguments)?);
            }
            Ok(Timing::of(times))
        };
        let measure = |projection: &Projection, team: &Team, run: usize| {
            let distances = sssp::run(projection, positions[run % SOURCES], Some(DELTA), team)?;
            Ok(distances.iter().filter(|distance| distance.is_finite()).count() as u64)
        };
        if self.context.options.wants(&self.named(SSSP), "") {
            let transaction = self.loaded.database.begin_read()?;
            let projection = Projection::of(transaction.view(), &weighted, &team)?;
            check::weighted(&self.graph.name, &projection, &positions, DELTA, &team)?;
        }
        self.case(SSSP, &gap, OTHER_MAX, &weighted, &team, &measure)
    }

    fn pagerank(&mut self, projection: &Projection, options: &ProjectionOptions, team: &Team) -> Result<()> {
        let case = self.named(PAGERANK);
        if self.context.options.wants(&case, "bare") {
            let passed = vec![1.0_f32; projection.positions()];
            let gather = |_: usize| -> Result<u64> {
                let mut digest = 0;
                for _ in 0..ROUNDS {
                    digest = gathered(projection, &passed, team)?;
                }
                Ok(digest)
            };
            let timing = self.time(&gather)?;
            self.report.push(Row::time(NAME, &case, "bare", timing));
        }
        let (rounds, known) = (ROUNDS.to_string(), Cell::new(None));
        // GAP computes in single precision, so one figure serves both cases.
        let gap = |gap: &Gap, threads| match known.get() {
            Some(timing) => Ok(timing),
            None => {
                let timing = gap.timing("pr", threads, &["-i", &rounds, "-t", "0", "-n", "8"])?;
                known.set(Some(timing));
                Ok(timing)
            }
        };
        for (case, precision) in
            [(PAGERANK, pagerank::Precision::Single), (PAGERANK_DOUBLES, pagerank::Precision::Double)]
        {
            let of_rank = pagerank::PageRankOptions {
                rounds: ROUNDS,
                dangling: pagerank::Dangling::Drop,
                precision,
                ..pagerank::PageRankOptions::default()
            };
            let rank = |projection: &Projection, team: &Team, _: usize| {
                Ok(pagerank::run(projection, &of_rank, team)?.change.to_bits())
            };
            self.case(case, &gap, PAGERANK_MAX, options, team, &rank)?;
        }
        Ok(())
    }

    fn triangles(&mut self, projection: &Projection, options: &ProjectionOptions, team: &Team) -> Result<()> {
        if !self.context.options.wants(&self.named(TRIANGLES), "") {
            return Ok(());
        }
        let of_gap = self.gap.map(|gap| gap.triangles(self.threads, TRIALS_OF_TRIANGLES)).transpose()?;
        check::triangles(&self.graph.name, projection, of_gap.map(|(_, number)| number), team)?;
        let gap = |_: &Gap, _: usize| {
            of_gap.map(|(timing, _)| timing).ok_or_else(|| Error::bug("GAP's triangles were not counted"))
        };
        let count = |projection: &Projection, team: &Team, _: usize| triangles::total(projection, team);
        self.case(TRIANGLES, &gap, OTHER_MAX, options, team, &count)
    }

    /// Vertices with edges, by their numbers.
    fn sources(&self, projection: &Projection) -> Vec<u32> {
        let mut random = RandomStream::from_seed(mix(27));
        let mut any = || random.below(self.graph.vertex_count as u64) as u32;
        let has_edges = |at: &u32| {
            let position = projection.numbering().position(self.loaded.vertices[*at as usize]);
            projection.out_degree(position) > 0
        };
        std::iter::repeat_with(&mut any).filter(has_edges).take(SOURCES).collect()
    }

    fn building(&mut self, projection: &Projection, options: &ProjectionOptions, team: &Team) -> Result<()> {
        let case = self.named(BUILD);
        if !self.context.options.wants(&case, "") {
            return Ok(());
        }
        let copy = |_: usize| copied(projection, team);
        let bare = self.time(&copy)?.divided_by(self.graph.cell_count());
        self.report.push(Row::time(NAME, &case, "bare", bare));
        let database = self.loaded.database.clone();
        let build = |_: usize| {
            let transaction = database.begin_read()?;
            Ok(Projection::of(transaction.view(), options, team)?.cell_count())
        };
        let timing = self.time(&build)?.divided_by(self.graph.cell_count());
        let row = Row::time(NAME, &case, "anew", timing).beside(bare.median);
        let rule = format!("{BUILD_MAX:.0} ns a cell and thread");
        self.report.push(row.aiming_at(BUILD_MAX / self.threads as f64).by_rule(rule));
        Ok(())
    }

    fn named(&self, case: &str) -> String {
        named(case, &self.graph.name, self.threads)
    }

    fn time(&self, run: &dyn Fn(usize) -> Result<u64>) -> Result<Timing> {
        measure_runs(self.context.options.seconds, &mut |number| run(number))
    }

    fn case(
        &mut self,
        case: &str,
        rival: Rival<'_>,
        marks: Marks,
        options: &ProjectionOptions,
        team: &Team,
        kernel: Kernel<'_>,
    ) -> Result<()> {
        let case = self.named(case);
        if !self.context.options.wants(&case, "") {
            return Ok(());
        }
        let gap = self.gap.map(|gap| rival(gap, self.threads)).transpose()?;
        if let Some(timing) = gap {
            self.report.push(Row::time(NAME, &case, "gap", timing));
        }
        let limit = gap.map(|timing| timing.median);
        let beside = |row: Row, mark: f64| {
            row.beside(limit).aiming_at(limit.map(|limit| limit * mark)).by_rule(format!("{mark:.1} × gap"))
        };
        let database = self.loaded.database.clone();
        let cache = ProjectionCache::default();
        let projection = cache.projection(database.begin_read()?.view(), options, team)?;
        let timing = self.time(&|run| kernel(&projection, team, run))?;
        self.report.push(beside(Row::time(NAME, &case, "projection", timing), marks.projection));
        let timing = self.time(&|run| {
            let projection = cache.projection(database.begin_read()?.view(), options, team)?;
            kernel(&projection, team, run)
        })?;
        self.report.push(beside(Row::time(NAME, &case, "live", timing), marks.live));
        let timing = self.time(&|run| {
            let projection = Projection::of(database.begin_read()?.view(), options, team)?;
            kernel(&projection, team, run)
        })?;
        self.report.push(Row::time(NAME, &case, "anew", timing).beside(limit));
        Ok(())
    }
}

/// The sum of what the neighbors of each vertex pass on, for all vertices: what a round of PageRank must at least read.
fn gathered(projection: &Projection, passed: &[f32], team: &Team) -> Result<u64> {
    let parts = projection.parts();
    let sums = team.map_parts(parts.len(), |part| {
        let sum_of =
            |at: usize| -> f32 { projection.outgoing(at as u32).iter().map(|other| passed[*other as usize]).sum() };
        parts[part].clone().map(|at| u64::from(sum_of(at).to_bits())).fold(0, u64::wrapping_add)
    })?;
    Ok(sums.into_iter().fold(0, u64::wrapping_add))
}

/// Copies the rows of a projection into memory that is new: what building one must at least write.
fn copied(projection: &Projection, team: &Team) -> Result<u64> {
    let parts = projection.parts();
    let copies: Vec<Vec<u32>> = team.map_parts(parts.len(), |part| {
        let rows = parts[part].clone().map(|at| projection.outgoing(at as u32));
        let mut copy = Vec::with_capacity(rows.clone().map(<[u32]>::len).sum());
        rows.for_each(|row| copy.extend_from_slice(row));
        copy
    })?;
    Ok(copies.iter().map(|copy| copy.len() as u64).sum())
}
