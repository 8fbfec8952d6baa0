//! `/metrics`: what the graphs have to say, in Prometheus' text format.
//!
//! Every sample has the label `graph`: the name of the graph's first traversal source. Names follow Prometheus'
//! conventions: what only grows ends in `_total`, bytes are bytes.

use std::fmt::Write;

use mangrove::{
    AbortCause, Database, Durability, GarbageReport, LogState, MemoryReport, SYNC_TIME_BOUNDS_US, TransactionCounters,
};

/// What one graph reports.
struct Sample<'a> {
    graph: &'a str,
    counters: TransactionCounters,
    memory: MemoryReport,
    garbage: GarbageReport,
    retries: u64,
    snapshot_lag: u64,
    snapshot_age_ms: u64,
    /// Of a graph in a directory.
    durability: Option<Durability>,
}

/// A metric of one number a graph: name, type, meaning, and the number.
type Metric = (&'static str, &'static str, &'static str, fn(&Sample<'_>) -> u64);

const METRICS: &[Metric] = &[
    ("mangrove_commits_total", "counter", "Transactions committed with writes.", |s| s.counters.commits),
    ("mangrove_read_only_total", "counter", "Transactions ended without writes.", |s| s.counters.read_only),
    ("mangrove_retries_total", "counter", "Transactions run again after a conflict.", |s| s.retries),
    ("mangrove_dependency_waits_total", "counter", "Waits of a validator for another transaction.", |s| {
        s.counters.dependency_waits
    }),
    ("mangrove_pre_reads_total", "counter", "Reads of a version newer than the reader's begin.", |s| {
        s.counters.pre_reads
    }),
    ("mangrove_active_transactions", "gauge", "Transactions running now.", |s| s.counters.active),
    ("mangrove_oldest_snapshot_lag", "gauge", "Commits the oldest running snapshot is behind.", |s| s.snapshot_lag),
    ("mangrove_oldest_snapshot_age_milliseconds", "gauge", "Age of the oldest running snapshot.", |s| {
        s.snapshot_age_ms
    }),
    ("mangrove_gc_queued_writes", "gauge", "Writes of commits that wait to be collected.", |s| s.garbage.queued_writes),
    ("mangrove_gc_versions_total", "counter", "Older versions of properties reclaimed.", |s| s.garbage.versions),
    ("mangrove_gc_vertices_total", "counter", "Places of vertices reclaimed.", |s| s.garbage.vertices),
    ("mangrove_gc_edges_total", "counter", "Places of edges reclaimed.", |s| s.garbage.edges),
    ("mangrove_memory_limit_bytes", "gauge", "Writes are refused while the graph uses this much.", |s| {
        s.memory.limit_bytes
    }),
];

/// A metric of a graph in a directory.
type DurabilityMetric = (&'static str, &'static str, &'static str, fn(&Durability) -> u64);

const DURABILITY_METRICS: &[DurabilityMetric] = &[
    ("mangrove_log_running", "gauge", "Whether the log takes commits: 1, or 0 where the graph is read-only.", |d| {
        u64::from(d.log.state == LogState::Running)
    }),
    ("mangrove_log_bytes_total", "counter", "Bytes written to the log.", |d| d.log.bytes),
    ("mangrove_log_batches_total", "counter", "Batches written to the log, each with one sync.", |d| d.log.batches),
    ("mangrove_log_commits_total", "counter", "Commits in them.", |d| d.log.commits),
    ("mangrove_log_segments_total", "counter", "Segments of the log begun.", |d| d.log.segments),
    ("mangrove_log_bytes_since_checkpoint", "gauge", "Bytes of log that the last checkpoint does not cover.", |d| {
        d.checkpoint.log_bytes
    }),
    ("mangrove_durable_lag", "gauge", "Commits that are visible to writers and not durable yet.", |d| d.lag),
    ("mangrove_checkpoints_total", "counter", "Checkpoints taken.", |d| d.checkpoint.taken),
    ("mangrove_checkpoint_failing", "gauge", "Whether the last try to take a checkpoint failed.", |d| {
        u64::from(d.checkpoint.trouble.is_some())
    }),
    ("mangrove_checkpoint_last_bytes", "gauge", "Bytes that the last checkpoint wrote.", |d| {
        d.checkpoint.last.map_or(0, |last| last.bytes)
    }),
];

/// The metrics of graphs in directories; nothing where there is none.
fn durability(text: &mut String, samples: &[Sample<'_>]) {
    let durable: Vec<(&str, &Durability)> =
        samples.iter().filter_map(|sample| Some((sample.graph, sample.durability.as_ref()?))).collect();
    if durable.is_empty() {
        return;
    }
    for &(name, kind, meaning, value) in DURABILITY_METRICS {
        head(text, name, kind, meaning);
        for (graph, durability) in &durable {
            line(text, name, &[("graph", graph)], value(durability));
        }
    }
    let name = "mangrove_log_sync_seconds";
    head(text, name, "histogram", "How long the syncs of the log took.");
    for (graph, durability) in &durable {
        let log = &durability.log;
        let mut count = 0;
        for (syncs, bound) in log.sync_times.iter().zip(SYNC_TIME_BOUNDS_US.map(Some).into_iter().chain([None])) {
            count += syncs;
            let bound = bound.map_or("+Inf".to_owned(), |micros| (micros as f64 / 1e6).to_string());
            line(text, &format!("{name}_bucket"), &[("graph", graph), ("le", &bound)], count);
        }
        let _ = writeln!(text, "{name}_sum{{graph=\"{}\"}} {}", escaped(graph), log.sync_us as f64 / 1e6);
        line(text, &format!("{name}_count"), &[("graph", graph)], count);
    }
}

/// The metrics of some graphs, each with its name.
pub(crate) fn exposition<'a>(graphs: &[(&'a str, &Database)]) -> String {
    let sample = |&(graph, database): &(&'a str, &Database)| Sample {
        graph,
        counters: database.transaction_counters(),
        memory: database.memory(),
        garbage: database.garbage(),
        retries: database.retry_count(),
        snapshot_lag: database.snapshot_lag(),
        snapshot_age_ms: database.snapshot_age_ms(),
        durability: database.durability(),
    };
    let samples: Vec<Sample<'_>> = graphs.iter().map(sample).collect();
    let mut text = String::new();
    for &(name, kind, meaning, value) in METRICS {
        head(&mut text, name, kind, meaning);
        for sample in &samples {
            line(&mut text, name, &[("graph", sample.graph)], value(sample));
        }
    }
    head(&mut text, "mangrove_aborts_total", "counter", "Transactions aborted, by cause.");
    for sample in &samples {
        for cause in AbortCause::ALL {
            let labels = [("graph", sample.graph), ("cause", cause.name())];
            line(&mut text, "mangrove_aborts_total", &labels, sample.counters.aborted(cause));
        }
    }
    head(&mut text, "mangrove_memory_bytes", "gauge", "Memory of the graph, by kind of record.");
    for sample in &samples {
        for row in &sample.memory.rows {
            line(&mut text, "mangrove_memory_bytes", &[("graph", sample.graph), ("kind", row.name)], row.bytes);
        }
    }
    durability(&mut text, &samples);
    text
}

fn head(text: &mut String, name: &str, kind: &str, meaning: &str) {
    let _ = writeln!(text, "# HELP {name} {meaning}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &[(&str, &str)], value: u64) {
    let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
    let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
}

/// A label's value may hold anything; a backslash, a quote and a line's end are written as such.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_has_a_head_and_a_label() {
        let database = Database::in_memory();
        database.query("g.addV('a')").unwrap();
        let text = exposition(&[("g\"1", &database)]);
        assert!(text.contains("mangrove_commits_total{graph=\"g\\\"1\"} 1\n"), "{text}");
        assert!(text.contains("mangrove_aborts_total{graph=\"g\\\"1\",cause=\"write_conflict\"} 0\n"), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split('{').next().unwrap();
            assert!(text.contains(&format!("# TYPE {name} ")), "{line}");
        }
    }
}
