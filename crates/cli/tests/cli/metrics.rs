//! `/metrics` of a server that has done some of everything, against the format and the manual.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Folder, fail, succeed};
use crate::manual;
use crate::server::Serving;

/// A family: what it means, its type, and the labels of its samples.
#[derive(Debug, Default)]
struct Family {
    meaning: String,
    kind: String,
    labels: BTreeSet<String>,
}

/// Parses the text format strictly: the head of a family comes before its samples, each family occurs once, and names
/// and numbers are valid.
fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, meaning) = rest.split_once(' ').unwrap();
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{line}");
            let family = Family { meaning: meaning.to_owned(), ..Family::default() };
            assert!(families.insert(name.to_owned(), family).is_none(), "twice: {line}");
            current = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, current, "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            families.get_mut(name).unwrap().kind = kind.to_owned();
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap_or_else(|e| panic!("{line}: {e}"));
            let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
            let family = families.get_mut(&current).unwrap();
            let endings: &[&str] = if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(endings.iter().any(|end| name.strip_suffix(end) == Some(&current)), "{line} after {current}");
            // No label's value has a comma here.
            for label in labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()) {
                let (label, value) = label.split_once("=\"").unwrap();
                assert!(value.ends_with('"'), "{line}");
                family.labels.insert(label.to_owned());
            }
        }
    }
    families
}

/// Checks that names have base units, and that no name is another name without the counters' ending `_total`:
/// OpenMetrics would take the two for one family.
fn check_names(families: &BTreeMap<String, Family>) {
    for name in families.keys() {
        let unit = name.trim_end_matches("_total").rsplit('_').next().unwrap();
        let is_scaled =
            ["milliseconds", "microseconds", "minutes", "kilobytes", "megabytes", "percent"].contains(&unit);
        assert!(!is_scaled, "{name} is not in a base unit");
        let twin = name.strip_suffix("_total").filter(|twin| families.contains_key(*twin));
        assert_eq!(twin, None, "{name}");
    }
    for usual in ["process_start_time_seconds", "process_max_fds", "process_virtual_memory_bytes"] {
        assert!(families.contains_key(usual), "{usual}");
    }
}

/// The names of metrics in a text: words that begin with `mangrove_` or `process_`.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("mangrove_") || word.starts_with("process_")).map(str::to_owned).collect()
}

/// Checks that the dashboard and the alert rules that come with the program name only existing metrics.
fn check_monitoring(families: &BTreeMap<String, Family>) {
    for file in ["grafana-dashboard.json", "prometheus-alerts.yml"] {
        let path = format!("{}/../../packaging/monitoring/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let named = named(&text);
        assert!(named.len() >= 8, "{file} names {named:?}");
        for name in named {
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let is_there = families.contains_key(&name) || family.is_some_and(|name| families.contains_key(name));
            assert!(is_there, "{file} asks for {name}, which is no metric");
        }
    }
}

#[test]
fn every_metric_is_explained_in_the_manual() {
    let folder = Folder::new("metrics");
    let directory = folder.path().join("data").to_str().unwrap().to_owned();
    // A second graph in a home of objects, and a third that follows it, which have metrics of their own.
    let config = folder.file(
        "config.toml",
        &format!(
            "[graphs.kept]\ndata = \"file:{directory}-home\"\n[graphs.standby]\nfollow = \"file:{directory}-home\"\n"
        ),
    );
    let serving = Serving::start(&["--data", &directory, "--slow-query", "1ms", "--config", &config]);
    let url = format!("ws://{}", serving.address);
    succeed(&["query", "--url", &url, "g.addV('person')"]);
    succeed(&["checkpoint", "--url", &url]);
    succeed(&["query", "--url", &url, "g.inject(1).repeat(__.map(__.sum())).times(20000)"]);
    fail(1, &["query", "--url", &url, "g.V().fail()"]);
    serving.get("/health");
    let answer = serving.get("/metrics");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    let all = families(text);
    check_names(&all);
    check_monitoring(&all);
    let mut table = String::from("| metric | labels | what it is |\n|---|---|---|\n");
    for (name, Family { meaning, kind, labels }) in all {
        let labels: Vec<String> = labels.iter().filter(|label| *label != "le").map(|l| format!("`{l}`")).collect();
        let meaning = if kind == "histogram" { format!("{meaning} (histogram, seconds)") } else { meaning };
        table.push_str(&format!("| `{name}` | {} | {meaning} |\n", labels.join(", ")));
    }
    for line in [
        "mangrove_query_errors_total{graph=\"g\",error=\"Evaluation\"} 1",
        "mangrove_commits_total{graph=\"g\"} 1",
        "mangrove_http_requests_total{path=\"/health\",method=\"GET\",status=\"200\"} 1",
        "mangrove_vertices{graph=\"g\"} 1",
        "mangrove_edges{graph=\"g\"} 0",
        "mangrove_memory_limit_bytes{graph=\"g\"} +Inf",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
    }
    assert!(!text.contains("mangrove_slow_queries_total{graph=\"g\"} 0\n"), "{text}");
    assert_eq!(serving.signal("TERM"), Some(0));
    manual::check("metrics.md", "metrics", &table);
}
