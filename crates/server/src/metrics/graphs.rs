//! The metrics of the graphs.
//!
//! Every sample has the label `graph`: the name of the graph's first traversal source. Names follow Prometheus'
//! conventions: counters end in `_total`, units are seconds and bytes. A scrape begins no transaction. It reads reports
//! of the database, and for graphs in directories also the state of the file system.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mangrove::{
    AbortCause, Database, Durability, DurabilityStatus, FollowState, FollowStatus, GarbageReport, LogReport,
    MemoryReport, ObjectLogStatus, PlanCacheReport, SYNC_TIME_BOUNDS_US, TransactionCounters,
};
use mangrove_graph::{Error, Result};
use parking_lot::Mutex;

use crate::metrics::exposition::MetricKind::{self, Counter, Gauge, Histogram};
use crate::metrics::exposition::{self, Exposition, SampleValue};
use crate::metrics::process::{self, DiskSpace};

/// Counters of the queries on one graph.
#[derive(Debug, Default)]
pub struct QueryMeters {
    reads: exposition::Histogram,
    writes: exposition::Histogram,
    /// By the name of the error's kind.
    errors: Mutex<BTreeMap<String, u64>>,
    slow: AtomicU64,
}

impl QueryMeters {
    /// Counts a query that has ended.
    pub fn ended<T>(&self, is_mutating: bool, elapsed: Duration, outcome: &Result<T>) {
        let times = if is_mutating { &self.writes } else { &self.reads };
        times.add(elapsed);
        if let Some(kind) = outcome.as_ref().err().map(Error::kind) {
            *self.errors.lock().entry(format!("{kind:?}")).or_default() += 1;
        }
    }

    /// Counts a query that was logged as slow.
    pub fn slow(&self) {
        self.slow.fetch_add(1, Ordering::Relaxed);
    }
}

/// A graph to report.
pub(crate) struct MeteredGraph<'a> {
    /// The value of the label `graph`.
    pub graph: &'a str,
    pub database: &'a Database,
    pub meters: &'a QueryMeters,
    /// Queries that run on it now.
    pub running: usize,
}

/// One reading of a graph.
struct GraphReading<'a> {
    graph: &'a str,
    counters: TransactionCounters,
    memory: MemoryReport,
    garbage: GarbageReport,
    plans: PlanCacheReport,
    retries: u64,
    snapshot_lag: u64,
    snapshot_age_ms: u64,
    /// Vertices and edges.
    elements: (u64, u64),
    /// `None` for a graph in memory.
    durability: Option<Durability>,
}

impl<'a> GraphReading<'a> {
    fn of(metered: &MeteredGraph<'a>) -> Self {
        let MeteredGraph { graph, database, .. } = *metered;
        GraphReading {
            graph,
            counters: database.transaction_counters(),
            memory: database.memory(),
            garbage: database.garbage(),
            plans: database.plan_cache(),
            retries: database.retry_count(),
            snapshot_lag: database.snapshot_lag(),
            snapshot_age_ms: database.snapshot_age_ms(),
            elements: database.element_counts(),
            durability: database.durability(),
        }
    }
}

/// A metric with one number a graph: name, type, help text, and the number.
type Metric = (&'static str, MetricKind, &'static str, fn(&GraphReading<'_>) -> u64);

const METRICS: &[Metric] = &[
    ("mangrove_commits_total", Counter, "Transactions committed with writes.", |s| s.counters.commits),
    ("mangrove_read_only_total", Counter, "Transactions ended without writes.", |s| s.counters.read_only),
    ("mangrove_retries_total", Counter, "Transactions run again after a conflict.", |s| s.retries),
    ("mangrove_dependency_waits_total", Counter, "Waits of a validator for another transaction.", |s| {
        s.counters.dependency_waits
    }),
    (
        "mangrove_pre_reads_total",
        Counter,
        "Items read at a timestamp later than their reader's begin: those with a newer version, and those read \
         together with one.",
        |s| s.counters.pre_reads,
    ),
    ("mangrove_active_transactions", Gauge, "Transactions running now.", |s| s.counters.active),
    ("mangrove_oldest_snapshot_lag", Gauge, "Commits since the begin of the oldest running snapshot.", |s| {
        s.snapshot_lag
    }),
    ("mangrove_gc_queued_writes", Gauge, "Writes of commits that wait to be collected.", |s| s.garbage.queued_writes),
    ("mangrove_gc_versions_total", Counter, "Older versions of properties reclaimed.", |s| s.garbage.versions),
    ("mangrove_gc_vertices_total", Counter, "Vertex slots reclaimed.", |s| s.garbage.vertices),
    ("mangrove_gc_edges_total", Counter, "Edge slots reclaimed.", |s| s.garbage.edges),
    ("mangrove_plan_cache_bytes", Gauge, "Memory of the plan cache, approximately.", |s| s.plans.bytes),
    ("mangrove_plan_cache_bytes_max", Gauge, "Memory that the plan cache may take.", |s| s.plans.bytes_max),
    ("mangrove_plan_cache_evictions_total", Counter, "Plans and texts that made room for others.", |s| {
        s.plans.evictions
    }),
    ("mangrove_plan_cache_texts", Gauge, "Texts that are known without being parsed.", |s| s.plans.texts),
    ("mangrove_plan_cache_plans", Gauge, "Plans that are kept for the shapes of traversals.", |s| s.plans.plans),
    ("mangrove_plan_cache_hits_total", Counter, "Queries whose plan was in the cache.", |s| s.plans.hits),
    ("mangrove_plan_cache_misses_total", Counter, "Queries for which a plan was made.", |s| s.plans.misses),
    ("mangrove_vertices", Gauge, "Vertices, those of transactions that have not ended included.", |s| s.elements.0),
    ("mangrove_edges", Gauge, "Edges, those of transactions that have not ended included.", |s| s.elements.1),
];

/// A gauge with a fraction.
type FigureMetric = (&'static str, &'static str, fn(&GraphReading<'_>) -> f64);

const FIGURES: &[FigureMetric] = &[
    ("mangrove_oldest_snapshot_age_seconds", "Age of the oldest running snapshot.", |s| s.snapshot_age_ms as f64 / 1e3),
    (
        "mangrove_memory_limit_bytes",
        "Writes are refused while the graph uses this much; +Inf: there is no limit.",
        |s| {
            if s.memory.limit_bytes == u64::MAX { f64::INFINITY } else { s.memory.limit_bytes as f64 }
        },
    ),
];

/// A metric of a graph that outlives its process.
type DurabilityMetric = (&'static str, MetricKind, &'static str, fn(&Durability) -> u64);

const DURABILITY_METRICS: &[DurabilityMetric] = &[
    ("mangrove_log_running", Gauge, "Whether the log takes commits: 1, or 0 where the graph is read-only.", |d| {
        u64::from(d.log.is_running())
    }),
    ("mangrove_log_bytes_total", Counter, "Bytes written to the log.", |d| d.log.bytes()),
    (
        "mangrove_log_batches_total",
        Counter,
        "Batches written to the log: each with one sync in a directory, or as one object in a home.",
        |d| d.log.writes(),
    ),
    ("mangrove_log_commits_total", Counter, "Commits written to the log.", |d| d.log.commits()),
    ("mangrove_log_bytes_since_checkpoint", Gauge, "Bytes of log that the last checkpoint does not cover.", |d| {
        d.checkpoint.log_bytes
    }),
    ("mangrove_durable_lag", Gauge, "Commits that are visible to writers and not durable yet.", |d| d.lag),
    ("mangrove_checkpoints_total", Counter, "Checkpoints taken.", |d| d.checkpoint.taken),
    ("mangrove_checkpoint_failing", Gauge, "Whether the last try to take a checkpoint failed.", |d| {
        u64::from(d.checkpoint.trouble.is_some())
    }),
    ("mangrove_checkpoint_last_bytes", Gauge, "Bytes that the last checkpoint wrote.", |d| {
        d.checkpoint.last.map_or(0, |last| last.bytes)
    }),
];

/// A metric of a graph in a home.
type HomeMetric = NumberMetric<ObjectLogStatus>;

const HOME_METRICS: &[HomeMetric] = &[
    (
        "mangrove_home_requests_total",
        Counter,
        "Requests of the log to the home: puts, with their retries, and reads.",
        |log| log.requests as f64,
    ),
    ("mangrove_home_puts_in_flight", Gauge, "Puts of the log whose outcome is not known.", |log| log.in_flight as f64),
    ("mangrove_home_put_seconds", Gauge, "How long a put of the log usually takes.", |log| {
        log.usual_put.unwrap_or_default().as_secs_f64()
    }),
    ("mangrove_home_oldest_put_seconds", Gauge, "How long the oldest put of the log has had no outcome.", |log| {
        log.oldest_unsettled.unwrap_or_default().as_secs_f64()
    }),
    ("mangrove_home_waiting_commits", Gauge, "Commits that no put has been begun for.", |log| {
        log.waiting_commits as f64
    }),
    (
        "mangrove_home_unproved_reads_total",
        Counter,
        "Reads that were served while the home did not answer, without a proof that no other process has the graph.",
        |log| log.unproved_reads as f64,
    ),
];

/// A metric of a graph whose owner this process follows.
type FollowMetric = NumberMetric<FollowStatus>;

const FOLLOW_METRICS: &[FollowMetric] = &[
    (
        "mangrove_follow_running",
        Gauge,
        "Whether the owner of the graph is followed: 1, or 0 after an error.",
        |status| f64::from(u8::from(!matches!(status.state, FollowState::Stopped { .. }))),
    ),
    ("mangrove_follow_behind_seconds", Gauge, "The time since all commits were there that the home had.", |status| {
        status.since_current.as_secs_f64()
    }),
    (
        "mangrove_follow_delay_seconds",
        Gauge,
        "From the last put of the owner to its commits' being readable here.",
        |status| status.delay.unwrap_or_default().as_secs_f64(),
    ),
    ("mangrove_follow_commits_total", Counter, "Commits of the owner that were redone.", |status| {
        status.commits as f64
    }),
    ("mangrove_follow_requests_total", Counter, "Requests to the home.", |status| {
        (status.requests.objects + status.requests.manifests + status.requests.packs) as f64
    }),
];

/// The metrics of graphs that outlive their process.
fn durability(text: &mut Exposition, readings: &[GraphReading<'_>]) {
    let durable: Vec<(&str, &Durability)> =
        readings.iter().filter_map(|reading| Some((reading.graph, reading.durability.as_ref()?))).collect();
    if durable.is_empty() {
        return;
    }
    for &(name, kind, meaning, value) in DURABILITY_METRICS {
        let mut family = text.family(name, kind, meaning);
        for (graph, durability) in &durable {
            family.sample(&[("graph", graph)], value(durability));
        }
    }
    let (mut in_directories, mut in_homes, mut followed) = (Vec::new(), Vec::new(), Vec::new());
    for (graph, durability) in &durable {
        match (&durability.log, durability.location.directory()) {
            (LogReport::Home(log), _) => in_homes.push((*graph, log)),
            (LogReport::Directory(log), Some(directory)) => in_directories.push((*graph, directory, *durability, log)),
            (LogReport::Following(status), _) => followed.push((*graph, &**status)),
            (LogReport::Directory(_) | LogReport::Lost(_), _) => {}
        }
    }
    numbers(text, HOME_METRICS, &in_homes);
    numbers(text, FOLLOW_METRICS, &followed);
    if !in_directories.is_empty() {
        of_directories(text, &in_directories);
    }
}

/// A metric of graphs that have something in common.
type NumberMetric<T> = (&'static str, MetricKind, &'static str, fn(&T) -> f64);

/// Metrics that only some graphs have.
fn numbers<T>(text: &mut Exposition, metrics: &[NumberMetric<T>], graphs: &[(&str, &T)]) {
    for &(name, kind, meaning, value) in metrics.iter().filter(|_| !graphs.is_empty()) {
        let mut family = text.family(name, kind, meaning);
        for (graph, of) in graphs {
            family.sample(&[("graph", graph)], value(of));
        }
    }
}

/// A graph in a directory, with its log.
type InDirectory<'a> = (&'a str, &'a Path, &'a Durability, &'a DurabilityStatus);

/// The metrics of graphs in directories.
fn of_directories(text: &mut Exposition, graphs: &[InDirectory<'_>]) {
    let mut family = text.family("mangrove_log_segments_total", Counter, "Segments of the log begun.");
    for (graph, _, _, log) in graphs {
        family.sample(&[("graph", graph)], log.segments);
    }
    on_disk(text, graphs);
    let mut family = text.family("mangrove_log_sync_seconds", Histogram, "How long the syncs of the log took.");
    for (graph, _, _, log) in graphs {
        let bounds = SYNC_TIME_BOUNDS_US.iter().map(|micros| *micros as f64 / 1e6);
        family.buckets(&[("graph", graph)], bounds, log.sync_times.iter().copied(), log.sync_us as f64 / 1e6);
    }
}

/// A gauge of a file system.
type SpaceMetric = (&'static str, &'static str, fn(&DiskSpace) -> u64);

/// Gauges of the file systems that the graphs are on.
fn on_disk(text: &mut Exposition, graphs: &[InDirectory<'_>]) {
    let spaces = graphs.iter().map(|(graph, directory, ..)| (*graph, DiskSpace::of(directory)));
    let spaces: Vec<(&str, DiskSpace)> = spaces.filter_map(|(graph, space)| Some((graph, space?))).collect();
    let of_space: [SpaceMetric; 2] = [
        ("mangrove_disk_free_bytes", "Bytes that are free where the graph's directory is.", |space| space.free_bytes),
        ("mangrove_disk_size_bytes", "Bytes of the file system that the graph's directory is on.", |space| {
            space.size_bytes
        }),
    ];
    for (name, meaning, value) in of_space {
        let mut family = text.family(name, Gauge, meaning);
        for (graph, space) in &spaces {
            family.sample(&[("graph", graph)], value(space));
        }
    }
    let meaning = "When the last checkpoint was written that had something to write, in seconds since 1970.";
    let mut family = text.family("mangrove_last_checkpoint_timestamp_seconds", Gauge, meaning);
    for (graph, _, durability, _) in graphs {
        let directories = durability.checkpoint_directories();
        if let Some(seconds) = directories.iter().filter_map(|path| process::newest_file(path)).reduce(f64::max) {
            family.sample(&[("graph", graph)], seconds);
        }
    }
}

/// The metrics of some graphs.
pub(crate) fn exposition(graphs: &[MeteredGraph<'_>]) -> String {
    let readings: Vec<GraphReading<'_>> = graphs.iter().map(GraphReading::of).collect();
    let mut text = Exposition::default();
    queries(&mut text, graphs);
    for &(name, kind, meaning, value) in METRICS {
        let mut family = text.family(name, kind, meaning);
        for reading in &readings {
            family.sample(&[("graph", reading.graph)], value(reading));
        }
    }
    for &(name, meaning, value) in FIGURES {
        let mut family = text.family(name, Gauge, meaning);
        for reading in &readings {
            family.sample(&[("graph", reading.graph)], SampleValue(value(reading)));
        }
    }
    let mut family = text.family("mangrove_aborts_total", Counter, "Transactions aborted, by cause.");
    for reading in &readings {
        for cause in AbortCause::ALL {
            family.sample(&[("graph", reading.graph), ("cause", cause.name())], reading.counters.aborted(cause));
        }
    }
    let mut family = text.family("mangrove_memory_bytes", Gauge, "Memory of the graph, by kind of record.");
    for reading in &readings {
        for row in &reading.memory.rows {
            family.sample(&[("graph", reading.graph), ("kind", row.name)], row.bytes);
        }
    }
    durability(&mut text, &readings);
    text.into_text()
}

/// The metrics of queries.
fn queries(text: &mut Exposition, graphs: &[MeteredGraph<'_>]) {
    let mut family = text.family("mangrove_queries_running", Gauge, "Queries that run now.");
    for MeteredGraph { graph, running, .. } in graphs {
        family.sample(&[("graph", graph)], running);
    }
    let meaning = "How long queries took, with their results, by whether they may write.";
    let mut family = text.family("mangrove_query_seconds", Histogram, meaning);
    for MeteredGraph { graph, meters, .. } in graphs {
        family.histogram(&[("graph", graph), ("kind", "read")], &meters.reads);
        family.histogram(&[("graph", graph), ("kind", "write")], &meters.writes);
    }
    let meaning = "Queries that failed, by the kind of error.";
    let mut family = text.family("mangrove_query_errors_total", Counter, meaning);
    for MeteredGraph { graph, meters, .. } in graphs {
        for (error, count) in meters.errors.lock().iter() {
            family.sample(&[("graph", graph), ("error", error)], count);
        }
    }
    let meaning = "Queries that took longer than slow_query.";
    let mut family = text.family("mangrove_slow_queries_total", Counter, meaning);
    for MeteredGraph { graph, meters, .. } in graphs {
        family.sample(&[("graph", graph)], meters.slow.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_has_a_head_and_a_label() {
        let database = Database::in_memory();
        database.query("g.addV('a')").unwrap();
        database.query("g.addV('a')").unwrap();
        let meters = QueryMeters::default();
        meters.ended(true, Duration::from_millis(1), &Result::<()>::Err(Error::conflict("another was first")));
        let text = exposition(&[MeteredGraph { graph: "g\"1", database: &database, meters: &meters, running: 0 }]);
        assert!(text.contains("mangrove_commits_total{graph=\"g\\\"1\"} 2\n"), "{text}");
        assert!(text.contains("mangrove_aborts_total{graph=\"g\\\"1\",cause=\"write_conflict\"} 0\n"), "{text}");
        assert!(text.contains("mangrove_plan_cache_hits_total{graph=\"g\\\"1\"} 1\n"), "{text}");
        assert!(text.contains("mangrove_query_errors_total{graph=\"g\\\"1\",error=\"Conflict\"} 1\n"), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split('{').next().unwrap();
            let name = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            assert!(text.contains(&format!("# TYPE {name} ")), "{line}");
        }
    }
}
