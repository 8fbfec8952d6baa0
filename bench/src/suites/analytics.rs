//! Graph algorithms on projections of the live graph, beside the GAP Benchmark Suite (`--gap DIR`).
//!
//! | variant | meaning |
//! |---|---|
//! | `gap` | the program of the GAP suite, on the same edges, from the same sources |
//! | `projection` | the algorithm alone, on a projection |
//! | `live` | a transaction, the refreshed projection, and the algorithm: nothing has changed since the last run |
//! | `anew` | a transaction, a new projection, and the algorithm |
//!
//! Each case runs on one thread and on two. Degrees and positions are part of a projection, and of its time.

mod gap;
mod graph;
mod writer;

use std::sync::Arc;
use std::time::Instant;

use mangrove::analytics::algorithm::{bfs, pagerank, sssp, wcc};
use mangrove::analytics::cache::ProjectionCache;
use mangrove::analytics::{Orientation, Projection, ProjectionOptions, Team, verify};
use mangrove::{Error, Result};
use mangrove_flow::schedule::{ExecutorOptions, Executors, Tenant};
use mangrove_generate::random::{RandomStream, mix};

use super::Context;
use crate::harness::Timing;
use crate::options::Suite;
use crate::report::{Growing, Row};
use gap::Gap;
use graph::{Graph, Loaded};

const NAME: &str = Suite::Analytics.name();

/// Sources of searches.
const SOURCES: usize = 4;
/// Rounds of PageRank.
const ROUNDS: u32 = 10;
/// Runs of a case at least.
const RUNS_MIN: usize = 5;

/// The targets of the design, as multiples of GAP's time.
const BFS_MAX: (f64, f64) = (1.1, 1.8);
const PAGERANK_MAX: (f64, f64) = (1.1, 1.6);
const WCC_MAX: (f64, f64) = (1.0, 1.2);
const OTHER_MAX: (f64, f64) = (1.2, 1.8);
/// Nanoseconds a cell.
const BUILD_MAX: f64 = 2.0;
const BESIDE_WRITER_MAX: f64 = 5.0;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let options = &context.options.analytics;
    if let Some(programs) = &options.gap {
        gap::check(programs)?;
    }
    let mut graphs = vec![Graph::kronecker(context.options.scale), Graph::road(context.options.scale)];
    options.graphs.iter().try_for_each(|path| Graph::of_file(path).map(|graph| graphs.push(graph)))?;
    let folder = crate::run_directory::RunDirectory::new(context.options.choices.directory.as_deref())?;
    for graph in &graphs {
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
        for threads in [1, 2] {
            let mut bench = Bench { context, report, graph, loaded: &loaded, gap: gap.as_ref(), threads };
            bench.run()?;
        }
        if graph.name.starts_with("kronecker") && context.options.wants("beside a writer", "") {
            writer::run(context, report, graph, &loaded)?;
        }
    }
    Ok(())
}

/// A team of so many threads, and the executors that are in it.
fn team_of(threads: usize) -> Result<(Team, Option<Executors>)> {
    if threads == 1 {
        return Ok((Team::alone(), None));
    }
    let executors = Executors::start(ExecutorOptions { count: threads - 1, ..ExecutorOptions::default() })?;
    Ok((Team::with_executors(&executors, &Tenant::default(), threads - 1), Some(executors)))
}

/// An algorithm, with the number of a run. Returns a digest of the answer.
type Kernel<'k> = &'k dyn Fn(&Projection, &Team, usize) -> Result<u64>;

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
        self.building(&undirected, &team)?;
        let numbers = self.sources(&projection);
        let positions: Vec<u32> =
            numbers.iter().map(|at| projection.numbering().position(self.loaded.vertices[*at as usize])).collect();
        self.check(&projection, &positions, &team)?;

        let gap = self.of_gap(|gap, threads| gap.of_sources("bfs", threads, &numbers, 8))?;
        let search = |projection: &Projection, team: &Team, run: usize| {
            let depths = bfs::run(projection, positions[run % SOURCES], bfs::Follow::Outgoing, team)?;
            Ok(depths.iter().filter(|depth| **depth != bfs::UNREACHED).count() as u64)
        };
        self.case("bfs", gap, BFS_MAX, &undirected, &team, &search)?;

        let rounds = ROUNDS.to_string();
        let gap = self.of_gap(|gap, threads| gap.timing("pr", threads, &["-i", &rounds, "-t", "0", "-n", "8"]))?;
        // GAP computes in single precision.
        for (case, precision) in [
            ("pagerank, 10 rounds", pagerank::Precision::Single),
            ("pagerank, 10 rounds, doubles", pagerank::Precision::Double),
        ] {
            let options = pagerank::PageRankOptions {
                rounds: ROUNDS,
                dangling: pagerank::Dangling::Drop,
                precision,
                ..pagerank::PageRankOptions::default()
            };
            let rank = |projection: &Projection, team: &Team, _: usize| {
                Ok(pagerank::run(projection, &options, team)?.change.to_bits())
            };
            self.case(case, gap, PAGERANK_MAX, &undirected, &team, &rank)?;
        }

        let gap = self.of_gap(|gap, threads| gap.timing("cc", threads, &["-n", "12"]))?;
        let connect = |projection: &Projection, team: &Team, _: usize| {
            Ok(wcc::run(projection, team)?.iter().map(|root| u64::from(*root)).sum())
        };
        self.case("wcc", gap, WCC_MAX, &undirected, &team, &connect)?;

        // GAP's default width of a bucket is 1; this one is good for both (weights are 1 to 255).
        const DELTA: f64 = 32.0;
        let gap = self.of_gap(|gap, threads| {
            let mut times = Vec::new();
            for source in &numbers {
                let arguments = ["-r", &source.to_string(), "-n", "3", "-d", "32"].map(str::to_owned);
                times.extend(gap.times("sssp", threads, &arguments)?);
            }
            Ok(Timing::of(times))
        })?;
        let measure = |projection: &Projection, team: &Team, run: usize| {
            let distances = sssp::run(projection, positions[run % SOURCES], Some(DELTA), team)?;
            Ok(distances.iter().filter(|distance| distance.is_finite()).count() as u64)
        };
        self.case("sssp", gap, OTHER_MAX, &weighted, &team, &measure)
    }

    /// Times a program of the GAP suite, if it is there.
    fn of_gap(&self, measure: impl Fn(&Gap, usize) -> Result<Timing>) -> Result<Option<Timing>> {
        self.gap.map(|gap| measure(gap, self.threads)).transpose()
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

    /// Compares the answers with those of plain algorithms.
    fn check(&self, projection: &Projection, sources: &[u32], team: &Team) -> Result<()> {
        let wrong = |what: &str| Err(Error::bug(format!("{what} on {} has a wrong answer", self.graph.name)));
        for &source in sources {
            if bfs::run(projection, source, bfs::Follow::Outgoing, team)? != verify::bfs(projection, source) {
                return wrong("bfs");
            }
        }
        if wcc::run(projection, team)? != verify::wcc(projection) {
            return wrong("wcc");
        }
        let options = pagerank::PageRankOptions { rounds: 3, ..pagerank::PageRankOptions::default() };
        let ranks = pagerank::run(projection, &options, team)?.ranks;
        let is_near = |(one, other): (&f64, f64)| (one - other).abs() <= 1e-12;
        if !ranks.iter().zip(verify::pagerank(projection, 0.85, 3, true)).all(is_near) {
            return wrong("pagerank");
        }
        Ok(())
    }

    fn building(&mut self, options: &ProjectionOptions, team: &Team) -> Result<()> {
        if !self.context.options.wants(&self.named("projection, a cell"), "") {
            return Ok(());
        }
        let database = self.loaded.database.clone();
        let build = |_: usize| {
            let transaction = database.begin_read()?;
            Ok(Projection::of(transaction.view(), options, team)?.cell_count())
        };
        let timing = self.time(&build)?.divided_by(self.graph.cell_count());
        let row = Row::time(NAME, &self.named("projection, a cell"), "anew", timing);
        self.report.push(row.aiming_at(BUILD_MAX / self.threads as f64));
        Ok(())
    }

    fn named(&self, case: &str) -> String {
        let threads = if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) };
        format!("{case}, {}, {threads}", self.graph.name)
    }

    /// Runs several times, for the seconds of a case.
    fn time(&self, run: &dyn Fn(usize) -> Result<u64>) -> Result<Timing> {
        let begin = Instant::now();
        let mut times = Vec::new();
        // The first run touches new memory.
        run(0)?;
        while times.len() < RUNS_MIN || begin.elapsed().as_secs_f64() < self.context.options.seconds {
            let start = Instant::now();
            std::hint::black_box(run(times.len())?);
            times.push(start.elapsed().as_secs_f64() * 1e9);
        }
        Ok(Timing::of(times))
    }

    fn case(
        &mut self,
        case: &str,
        gap: Option<Timing>,
        (of_projection, of_live): (f64, f64),
        options: &ProjectionOptions,
        team: &Team,
        kernel: Kernel<'_>,
    ) -> Result<()> {
        let case = self.named(case);
        if !self.context.options.wants(&case, "") {
            return Ok(());
        }
        if let Some(timing) = gap {
            self.report.push(Row::time(NAME, &case, "gap", timing));
        }
        let limit = gap.map(|timing| timing.median);
        let database = self.loaded.database.clone();
        let cache = ProjectionCache::default();
        let projection = cache.projection(database.begin_read()?.view(), options, team)?;
        let timing = self.time(&|run| kernel(&projection, team, run))?;
        let target = limit.map(|limit| limit * of_projection);
        self.report.push(Row::time(NAME, &case, "projection", timing).beside(limit).aiming_at(target));
        let timing = self.time(&|run| {
            let projection = cache.projection(database.begin_read()?.view(), options, team)?;
            kernel(&projection, team, run)
        })?;
        let target = limit.map(|limit| limit * of_live);
        self.report.push(Row::time(NAME, &case, "live", timing).beside(limit).aiming_at(target));
        let timing = self.time(&|run| {
            let projection = Projection::of(database.begin_read()?.view(), options, team)?;
            kernel(&projection, team, run)
        })?;
        self.report.push(Row::time(NAME, &case, "anew", timing).beside(limit));
        Ok(())
    }
}
