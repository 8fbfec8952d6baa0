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

/// Reads the text format strictly: a head before its samples, every family once, names and numbers as they must be.
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

#[test]
fn every_metric_is_explained_in_the_manual() {
    let folder = Folder::new("metrics");
    let directory = folder.path().join("data").to_str().unwrap().to_owned();
    let serving = Serving::start(&["--data", &directory, "--slow-query", "1ms"]);
    let url = format!("ws://{}", serving.address);
    succeed(&["query", "--url", &url, "g.addV('person')"]);
    succeed(&["query", "--url", &url, "g.inject(1).repeat(__.map(__.sum())).times(20000)"]);
    fail(1, &["query", "--url", &url, "g.V().fail()"]);
    serving.get("/health");
    let answer = serving.get("/metrics");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    let mut table = String::from("| metric | labels | what it is |\n|---|---|---|\n");
    for (name, Family { meaning, kind, labels }) in families(text) {
        let labels: Vec<String> = labels.iter().filter(|label| *label != "le").map(|l| format!("`{l}`")).collect();
        let meaning = if kind == "histogram" { format!("{meaning} (histogram, seconds)") } else { meaning };
        table.push_str(&format!("| `{name}` | {} | {meaning} |\n", labels.join(", ")));
    }
    for line in [
        "mangrove_query_errors_total{graph=\"g\",error=\"Evaluation\"} 1",
        "mangrove_commits_total{graph=\"g\"} 1",
        "mangrove_http_requests_total{path=\"/health\",method=\"GET\",status=\"200\"} 1",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
    }
    assert!(!text.contains("mangrove_slow_queries_total{graph=\"g\"} 0\n"), "{text}");
    assert_eq!(serving.signal("TERM"), Some(0));
    manual::check("metrics", &table);
}
