//! The options of a run: suites, sizes, times.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use mangrove::{Error, Result};

use crate::oltp::Choices;
use crate::queries::choices::QueryChoices;

/// A group of cases that share their data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Suite {
    /// The machine's own limits: memory and loopback
    Machine,
    /// Bytes of a vertex and of an edge
    Memory,
    /// Bulk load, from memory and from CSV
    Load,
    /// Loading of files in every format, on one thread and on more
    Files,
    /// Reads by id: two properties of a vertex
    Point,
    /// One hop and two hops from a vertex
    Hop,
    /// Look-ups in several indexes, beginnings of texts, and shortest paths to what an index finds
    Indexes,
    /// Whole scans: adjacency, counts, a property
    Scan,
    /// Properties by columns: maps of many neighbors, the first vertices by a property, groups, a filter
    Columns,
    /// Transactions that insert one vertex or one edge
    Insert,
    /// LinkBench's mix of operations (GDI paper, Table 3)
    #[value(name = "linkbench")]
    LinkBench,
    /// 99.8 % reads (GDI paper, Table 3)
    ReadMostly,
    /// 75 % reads (GDI paper, Table 3); with `--ops lbv`: 80 %
    ReadIntensive,
    /// 20 % reads (GDI paper, Table 3); with `--ops lbv`: 20 % of G-Tran's templates
    WriteIntensive,
    /// G-Tran's query templates: read-only, 80/20, 50/50, 20/80
    Lbv,
    /// Optimistic pre-read and validation, each on and off
    Optimizations,
    /// Garbage collection on and off over time, with memory
    Collection,
    /// Reads of a graph after many updates, and after compaction
    Locality,
    /// A vertex with very many edges: concurrent inserts, and its deletion
    Supernode,
    /// Transactions with very large read and write sets
    Large,
    /// Commits, checkpoints and recovery, on a disk (`--dir`)
    Durability,
    /// Requests over the wire: connections, encodings, numbers of results
    Wire,
    /// Walks of one to four edges (G-Tran, 6.1.2), on 1, 2, 4 and 8 executors
    #[value(name = "khop")]
    KHop,
    /// The patterns of LSQB, and subgraphs (Banyan, figure 8), on 1, 2, 4 and 8 executors
    Lsqb,
    /// LDBC's short reads and G-Tran's templates of them, on 1, 2, 4 and 8 executors
    #[value(name = "is")]
    ShortReads,
    /// LDBC's complex reads and G-Tran's templates of them, on 1, 2, 4 and 8 executors
    #[value(name = "ic")]
    ComplexReads,
    /// Banyan's complex queries CQ1 to CQ6, on 1, 2, 4 and 8 executors
    Cq,
    /// Grasper's queries Q1 to Q8, on 1, 2, 4 and 8 executors
    Grasper,
    /// Groups, sorts and sums of all messages of a network, on 1, 2, 4 and 8 executors
    Barriers,
    /// CQ1 to CQ6 with scopes, and the same questions without them (Banyan, figure 5a)
    Scopes,
    /// The cost of scope instances: 1 to 1,000,000 of them (Banyan, figure 5c)
    Instances,
    /// Scheduling policies of scopes and limits on their instances (Banyan, figure 5b)
    Policies,
    /// Adaptive and fixed numbers of threads for a query (Grasper, Tables 7 and 8)
    Adaptive,
    /// The orders of walks and patterns that the planner chooses, beside others that it could have chosen
    Plans,
    /// The time of planning, anew and from the cache of plans
    Planning,
    /// Reads of hot vertices through a cache of the thread, and from the store (Grasper, 5.2)
    Caches,
    /// Short queries beside 0 to 64 heavy ones, embedded and through a server
    Isolation,
    /// CPU shares of two users of a server with weights 1:3
    Shares,
    /// Graph algorithms on the live graph, beside the GAP Benchmark Suite (`--gap`), and beside a writer
    Analytics,
    /// The analytical workloads of the GDI paper (Figure 6), at growing scale and on growing numbers of threads, and its grid of labels,
    /// properties and edges (6.6)
    Gdi,
}

impl Suite {
    /// All suites, the machine first.
    pub const ALL: [Suite; 40] = [
        Suite::Machine,
        Suite::Memory,
        Suite::Load,
        Suite::Files,
        Suite::Point,
        Suite::Hop,
        Suite::Indexes,
        Suite::Scan,
        Suite::Columns,
        Suite::Insert,
        Suite::LinkBench,
        Suite::ReadMostly,
        Suite::ReadIntensive,
        Suite::WriteIntensive,
        Suite::Lbv,
        Suite::Optimizations,
        Suite::Collection,
        Suite::Locality,
        Suite::Supernode,
        Suite::Large,
        Suite::Durability,
        Suite::Wire,
        Suite::KHop,
        Suite::Lsqb,
        Suite::ShortReads,
        Suite::ComplexReads,
        Suite::Cq,
        Suite::Grasper,
        Suite::Barriers,
        Suite::Scopes,
        Suite::Instances,
        Suite::Policies,
        Suite::Adaptive,
        Suite::Plans,
        Suite::Planning,
        Suite::Caches,
        Suite::Isolation,
        Suite::Shares,
        Suite::Analytics,
        Suite::Gdi,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Machine => "machine",
            Suite::Memory => "memory",
            Suite::Load => "load",
            Suite::Files => "files",
            Suite::Point => "point",
            Suite::Hop => "hop",
            Suite::Indexes => "indexes",
            Suite::Scan => "scan",
            Suite::Columns => "columns",
            Suite::Insert => "insert",
            Suite::LinkBench => "linkbench",
            Suite::ReadMostly => "read-mostly",
            Suite::ReadIntensive => "read-intensive",
            Suite::WriteIntensive => "write-intensive",
            Suite::Lbv => "lbv",
            Suite::Optimizations => "optimizations",
            Suite::Collection => "collection",
            Suite::Locality => "locality",
            Suite::Supernode => "supernode",
            Suite::Large => "large",
            Suite::Durability => "durability",
            Suite::Wire => "wire",
            Suite::KHop => "khop",
            Suite::Lsqb => "lsqb",
            Suite::ShortReads => "is",
            Suite::ComplexReads => "ic",
            Suite::Cq => "cq",
            Suite::Grasper => "grasper",
            Suite::Barriers => "barriers",
            Suite::Scopes => "scopes",
            Suite::Instances => "instances",
            Suite::Policies => "policies",
            Suite::Adaptive => "adaptive",
            Suite::Plans => "plans",
            Suite::Planning => "planning",
            Suite::Caches => "caches",
            Suite::Isolation => "isolation",
            Suite::Shares => "shares",
            Suite::Analytics => "analytics",
            Suite::Gdi => "gdi",
        }
    }
}

/// The size of the data: a name, or the logarithm of the number of vertices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// 2^10 vertices: for tests
    Tiny,
    /// 2^14 vertices, edge factor 16
    Small,
    /// 2^18 vertices, edge factor 16; point reads of 1 M people
    Medium,
    /// 2^20 vertices, edge factor 16; point reads of 10 M people
    Full,
    /// 2^n vertices, edge factor 16; point reads of as many people
    Log(u32),
}

/// A graph within these bounds is neither empty nor larger than memory.
const LOG_VERTICES: std::ops::RangeInclusive<u32> = 6..=24;

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "tiny" => Ok(Scale::Tiny),
            "small" => Ok(Scale::Small),
            "medium" => Ok(Scale::Medium),
            "full" => Ok(Scale::Full),
            number => match number.parse() {
                Ok(log) if LOG_VERTICES.contains(&log) => Ok(Scale::Log(log)),
                _ => Err(format!(
                    "`{text}` is no scale; use tiny, small, medium, full, or the logarithm of the number of vertices, \
                     {} to {}",
                    LOG_VERTICES.start(),
                    LOG_VERTICES.end()
                )),
            },
        }
    }
}

impl Scale {
    /// The logarithm of the number of vertices of the graph.
    pub fn log_vertices(self) -> u32 {
        match self {
            Scale::Tiny => 10,
            Scale::Small => 14,
            Scale::Medium => 18,
            Scale::Full => 20,
            Scale::Log(log) => log,
        }
    }

    /// The number of people among whom point reads choose.
    pub fn people(self) -> usize {
        match self {
            Scale::Tiny => 1_000,
            Scale::Small => 100_000,
            Scale::Medium => 1_000_000,
            Scale::Full => 10_000_000,
            Scale::Log(log) => 1 << log,
        }
    }

    /// The size of the memory that the suite `machine` reads at random, in bytes.
    pub fn memory_bytes(self) -> usize {
        match self {
            Scale::Tiny => 1 << 20,
            Scale::Small | Scale::Log(..14) => 256 << 20,
            Scale::Medium | Scale::Full | Scale::Log(_) => 1 << 30,
        }
    }
}

/// Edges of the graph for each vertex.
pub(crate) const EDGE_FACTOR: usize = 16;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The suites, in this order.
    pub suites: Vec<Suite>,
    /// The size of the data.
    pub scale: Scale,
    /// The time of each case, all repetitions together.
    pub seconds: f64,
    /// The number of threads that run a case at the same time.
    pub threads: usize,
    /// If set, only cases whose `case/variant` contains this text: for profiling.
    pub only: Option<String>,
    /// The choices of suites that run transactions.
    pub choices: Choices,
    /// The choices of suites that run queries on several executors.
    pub queries: QueryChoices,
    /// The choices of the suite of algorithms.
    pub analytics: AnalyticsChoices,
}

/// The choices of the suites `analytics` and `gdi`.
#[derive(Clone, Debug, Default)]
pub struct AnalyticsChoices {
    /// The directory with the programs of the GAP Benchmark Suite; `None`: they are left out.
    pub gap: Option<PathBuf>,
    /// Files of graphs, besides those that are generated.
    pub graphs: Vec<PathBuf>,
    /// The logarithms of the numbers of vertices of the suite `gdi`, ascending. Empty: three up to that of the run, in steps of 2.
    pub scales: Vec<u32>,
}

impl AnalyticsChoices {
    /// The logarithms of the numbers of vertices of the suite `gdi`, at least one.
    pub(crate) fn scales(&self, scale: Scale) -> Vec<u32> {
        if !self.scales.is_empty() {
            return self.scales.clone();
        }
        let last = scale.log_vertices();
        let of_steps = [4, 2, 0].map(|step| last.saturating_sub(step).max(*LOG_VERTICES.start()));
        let mut scales = of_steps.to_vec();
        scales.dedup();
        scales
    }

    fn check(&self) -> Result<()> {
        if let Some(scale) = self.scales.iter().find(|scale| !LOG_VERTICES.contains(scale)) {
            let (first, last) = (LOG_VERTICES.start(), LOG_VERTICES.end());
            return Err(Error::invalid(format!("--scales has {scale}; use logarithms from {first} to {last}")));
        }
        if !self.scales.is_sorted_by(|one, next| one < next) {
            return Err(Error::invalid(format!("--scales has {:?}, which do not ascend", self.scales)));
        }
        Ok(())
    }
}

/// A larger number of threads is taken for a typing error.
const THREADS_MAX: usize = 1_024;

/// So is a longer time.
const SECONDS_MAX: f64 = 86_400.0;

impl Options {
    /// Returns true if a variant of a case is to be measured.
    pub(crate) fn wants(&self, case: &str, variant: &str) -> bool {
        self.only.as_ref().is_none_or(|only| format!("{case}/{variant}").contains(only))
    }

    /// Returns an error for options that cannot be run.
    pub fn check(&self) -> Result<()> {
        if !(1..=THREADS_MAX).contains(&self.threads) {
            return Err(Error::invalid(format!("{} threads were asked for; use 1 to {THREADS_MAX}", self.threads)));
        }
        if !(0.0..=SECONDS_MAX).contains(&self.seconds) {
            return Err(Error::invalid(format!("{} seconds were asked for; use 0 to {SECONDS_MAX}", self.seconds)));
        }
        self.queries.check()?;
        self.analytics.check()?;
        self.choices.check(&self.suites)
    }

    /// The options of tests: the smallest graphs, and no more repetitions than needed.
    #[cfg(test)]
    pub(crate) fn for_tests(suites: &[Suite]) -> Self {
        Options {
            suites: suites.to_vec(),
            scale: Scale::Tiny,
            seconds: 0.0,
            threads: 1,
            only: None,
            choices: Choices::default(),
            queries: QueryChoices::default(),
            analytics: AnalyticsChoices::default(),
        }
    }
}
