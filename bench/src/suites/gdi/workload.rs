//! The workloads of Figure 6, each as one call.

use std::fmt;
use std::sync::Arc;

use mangrove::analytics::algorithm::{bfs, cdlp, k_hop, lcc, pagerank, wcc};
use mangrove::analytics::cache::ProjectionCache;
use mangrove::analytics::{Orientation, Projection, ProjectionOptions, Team, verify};
use mangrove::{Parameters, Prepared, QueryOptions, Result, Value};
use mangrove_generate::random::{RandomStream, mix};

use super::graph::{LETTER, Loaded};
use crate::harness::wrong;

/// A workload, with the paper's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Workload {
    Bfs,
    PageRank,
    Cdlp,
    Wcc,
    Lcc,
    /// With the number of hops.
    KHop(u32),
    /// LDBC's BI2 as the artifact asks it of its own labels: resources, and how many projects that need them have a name that begins
    /// with a letter; the hundred with the most.
    Bi2,
}

const PAGERANK_ROUNDS: u32 = 10;
const CDLP_ROUNDS: u32 = 5;
/// Roots of searches.
const ROOTS: usize = 4;
/// Rows of BI2.
const ROWS_MAX: usize = 100;
/// Vertices of a graph whose coefficients are compared with those of a plain algorithm, which looks all pairs of neighbors up.
const FEW_VERTICES: u64 = 1 << 12;

impl Workload {
    pub(super) const ALL: [Workload; 9] = [
        Workload::Bfs,
        Workload::PageRank,
        Workload::Cdlp,
        Workload::Wcc,
        Workload::Lcc,
        Workload::KHop(2),
        Workload::KHop(3),
        Workload::KHop(4),
        Workload::Bi2,
    ];

    /// The interface through which it runs.
    pub(super) fn variant(self) -> &'static str {
        if self == Workload::Bi2 { "prepared" } else { "live" }
    }

    fn orientation(self) -> Orientation {
        if self == Workload::PageRank { Orientation::Directed } else { Orientation::Undirected }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::Bfs => write!(f, "bfs"),
            Workload::PageRank => write!(f, "pagerank, {PAGERANK_ROUNDS} rounds"),
            Workload::Cdlp => write!(f, "cdlp, {CDLP_ROUNDS} rounds"),
            Workload::Wcc => write!(f, "wcc"),
            Workload::Lcc => write!(f, "lcc"),
            Workload::KHop(hops) => write!(f, "{hops}-hop"),
            Workload::Bi2 => write!(f, "bi2"),
        }
    }
}

/// A graph on which workloads run.
pub(super) struct Subject {
    pub(super) loaded: Loaded,
    cache: ProjectionCache,
    /// Positions of vertices with edges.
    roots: Vec<u32>,
    bi2: Prepared,
}

impl Subject {
    pub(super) fn new(loaded: Loaded) -> Result<Self> {
        let cache = ProjectionCache::default();
        let projection = projection(&loaded, &cache, Orientation::Undirected, &Team::alone())?;
        let mut random = RandomStream::from_seed(mix(6));
        let any =
            || projection.numbering().position(loaded.vertices[random.below(loaded.vertices.len() as u64) as usize]);
        let roots = std::iter::repeat_with(any).filter(|at| projection.out_degree(*at) > 0).take(ROOTS).collect();
        let bi2 = loaded.database.prepare(&format!(
            "g.V().hasLabel('Project').has('name', startingWith('{LETTER}')).both('needs').groupCount()\
             .order(local).by(values, desc).limit(local, {ROWS_MAX}).unfold()\
             .project('name', 'count').by(select(keys).values('name')).by(select(values))"
        ))?;
        Ok(Subject { loaded, cache, roots, bi2 })
    }

    /// Makes a new projection.
    pub(super) fn project(&self, team: &Team) -> Result<u64> {
        let transaction = self.loaded.database.begin_read()?;
        Ok(Projection::of(transaction.view(), &choice(Orientation::Undirected), team)?.cell_count())
    }

    /// Runs a workload in a transaction of its own. Returns a digest of the answer. Searches begin at another root each run.
    pub(super) fn run(&self, workload: Workload, run: usize, threads: usize, team: &Team) -> Result<u64> {
        if workload == Workload::Bi2 {
            return Ok(digest(self.bi2(threads)?.iter().copied()));
        }
        let projection = projection(&self.loaded, &self.cache, workload.orientation(), team)?;
        let root = self.roots[run % ROOTS];
        Ok(match workload {
            Workload::Bfs => {
                digest(bfs::run(&projection, root, bfs::Follow::Outgoing, team)?.into_iter().map(u64::from))
            }
            Workload::PageRank => digest(ranks(&projection, team)?.into_iter().map(f64::to_bits)),
            Workload::Cdlp => digest(communities(&projection, team)?),
            Workload::Wcc => digest(wcc::run(&projection, team)?.into_iter().map(u64::from)),
            Workload::Lcc => digest(lcc::run(&projection, team)?.into_iter().map(f64::to_bits)),
            Workload::KHop(hops) => k_hop::run(&projection, &[root], hops, team)?[0],
            Workload::Bi2 => unreachable!("it is a query, and has returned"),
        })
    }

    /// The numbers of BI2's rows, the greatest first.
    fn bi2(&self, threads: usize) -> Result<Vec<u64>> {
        let options = QueryOptions { workers_max: threads, ..QueryOptions::default() };
        let results = self.loaded.database.run_with(&self.bi2, &Parameters::new(), &options)?;
        results.map(|row| count_of(&row?)).collect()
    }

    /// Compares the answers with those of plain algorithms, and of the generator.
    pub(super) fn check(&self, team: &Team) -> Result<()> {
        let directed = projection(&self.loaded, &self.cache, Orientation::Directed, team)?;
        let undirected = projection(&self.loaded, &self.cache, Orientation::Undirected, team)?;
        let is_near = |(one, other): (&f64, f64)| (one - other).abs() <= 1e-12;
        let plain_ranks = verify::pagerank(&directed, 0.85, PAGERANK_ROUNDS, true);
        let plain_labels = verify::cdlp(&undirected, &labels(&undirected), CDLP_ROUNDS);
        let mut outcomes = vec![
            (Workload::PageRank, ranks(&directed, team)?.iter().zip(plain_ranks).all(is_near)),
            (Workload::Cdlp, communities(&undirected, team)? == plain_labels),
            (Workload::Wcc, wcc::run(&undirected, team)? == verify::wcc(&undirected)),
            (Workload::Bi2, self.bi2(1)? == self.loaded.facts.most_needed(ROWS_MAX)),
        ];
        if undirected.vertex_count() <= FEW_VERTICES {
            let plain = verify::lcc(&undirected);
            outcomes.push((Workload::Lcc, lcc::run(&undirected, team)?.iter().zip(plain).all(is_near)));
        }
        for &root in &self.roots {
            let depths = verify::bfs(&undirected, root);
            outcomes.push((Workload::Bfs, bfs::run(&undirected, root, bfs::Follow::Outgoing, team)? == depths));
            for hops in 2..=4 {
                let within = depths.iter().filter(|depth| (1..=hops).contains(*depth)).count() as u64;
                let found = k_hop::run(&undirected, &[root], hops, team)?;
                outcomes.push((Workload::KHop(hops), found == [within]));
            }
        }
        match outcomes.iter().find(|(_, is_right)| !is_right) {
            Some((workload, _)) => Err(wrong(format!("gdi: {workload} has a wrong answer"))),
            None => Ok(()),
        }
    }
}

fn choice(orientation: Orientation) -> ProjectionOptions {
    ProjectionOptions { orientation, ..ProjectionOptions::default() }
}

fn projection(
    loaded: &Loaded,
    cache: &ProjectionCache,
    orientation: Orientation,
    team: &Team,
) -> Result<Arc<Projection>> {
    cache.projection(loaded.database.begin_read()?.view(), &choice(orientation), team)
}

fn ranks(projection: &Projection, team: &Team) -> Result<Vec<f64>> {
    let options = pagerank::PageRankOptions { rounds: PAGERANK_ROUNDS, ..pagerank::PageRankOptions::default() };
    Ok(pagerank::run(projection, &options, team)?.ranks)
}

fn labels(projection: &Projection) -> Vec<u64> {
    (0..projection.positions() as u64).collect()
}

fn communities(projection: &Projection, team: &Team) -> Result<Vec<u64>> {
    cdlp::run(projection, labels(projection), CDLP_ROUNDS, team)
}

/// The number in a row of BI2.
fn count_of(row: &Value) -> Result<u64> {
    let count = match row {
        Value::Map(map) => map.iter().find(|(key, _)| *key == Value::from("count")).map(|(_, count)| count.clone()),
        _ => None,
    };
    match count {
        Some(Value::I64(count)) => Ok(count as u64),
        _ => Err(wrong(format!("gdi: a row of bi2 has no count: {row:?}"))),
    }
}

fn digest(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, |digest, value| mix(digest ^ value))
}
