//! `mangrove export`, as a user runs it: of a local graph and of a served one, in every format.

use std::fs;

use crate::common::{Folder, fail, run, succeed};
use crate::server::Serving;

const FORMATS: [(&str, &str); 7] = [
    ("csv", "csv"),
    ("csv-neo4j", "neo4j"),
    ("parquet", "parquet"),
    ("graphml", "g.graphml.gz"),
    ("graphson", "whole.json"),
    ("graphson-adjacency", "g.json"),
    ("jsonl", "g.jsonl.zst"),
];

#[test]
fn every_format_is_loaded_again() {
    let folder = Folder::new("export");
    let [people, knows] = folder.people();
    for (format, name) in FORMATS {
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        let said = succeed(&["export", "--load", &people, "--load", &knows, "--format", format, "-o", &path]);
        assert!(said.starts_with("3 vertices and 2 edges to "), "{said}");
        let again = succeed(&["load", &path, "--query", "g.E().values('since').sum()"]);
        assert!(again.contains("4004"), "{format}: {again}");
    }
    let path = folder.path().join("more").to_str().unwrap().to_owned();
    let args = ["export", "--load", &people, "--format", "parquet", "-o", &path, "--compress"];
    let refused = fail(1, &[&args[..], &["bzip2"]].concat());
    assert!(refused.contains("snappy, gzip or zstd"), "{refused}");
    succeed(&[&args[..], &["zstd"]].concat());
}

#[test]
fn plain_tables_are_for_parquet_alone() {
    let folder = Folder::new("export-plain");
    let [people, knows] = folder.people();
    let path = folder.path().join("plain").to_str().unwrap().to_owned();
    let args = |format| ["export", "--load", &people, "--load", &knows, "-o", &path, "--plain", "--format", format];
    for format in ["csv", "csv-neo4j", "graphml", "graphson", "graphson-adjacency", "jsonl"] {
        let refused = fail(1, &args(format));
        assert!(refused.contains("--plain is for --format parquet only"), "{format}: {refused}");
        assert!(!folder.path().join("plain").exists());
    }
    assert!(succeed(&args("parquet")).starts_with("3 vertices and 2 edges to "));
    assert!(folder.path().join("plain/edges_knows.parquet").exists());
}

#[test]
fn a_served_graph_is_exported_in_one_snapshot() {
    let folder = Folder::new("export-url");
    let [people, knows] = folder.people();
    let serving = Serving::start(&["--load", &people, "--load", &knows]);
    let more =
        "g.addV('city::place').property(id, 'a b').property(list, 'name', 'x', 'since', 1).property(list, 'name', 'y')";
    succeed(&["query", "--url", &serving.url, more]);
    for (format, name) in FORMATS {
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        let said = succeed(&["export", "--url", &serving.url, "--format", format, "-o", &path]);
        assert!(said.starts_with("4 vertices and 2 edges to "), "{said}");
        let query = "g.V().hasLabel('place').values('name').fold()";
        let ran = run(&["load", &path, "--query", query, "--query", "g.E().values('since').sum()"]);
        assert!(ran.code == Some(0) && ran.out.contains("4004") && ran.out.contains('y'), "{format}: {}", ran.out);
    }
    let lines = folder.path().join("people.jsonl").to_str().unwrap().to_owned();
    let args = ["export", "--url", &serving.url, "--labels", "person,knows", "-o", &lines];
    assert!(succeed(&args).starts_with("3 vertices and 2 edges"));
    assert_eq!(fs::read_to_string(&lines).unwrap().lines().count(), 5);
    let everything = folder.path().join("all.jsonl").to_str().unwrap().to_owned();
    succeed(&["export", "--url", &serving.url, "-o", &everything]);
    let text = fs::read_to_string(&everything).unwrap();
    assert!(text.contains(r#""multi":{"name":[{"value":"x","properties":{"since""#), "{text}");
    let unknown = fail(1, &["export", "--url", &serving.url, "--source", "nobody", "-o", &lines]);
    assert!(unknown.contains("nobody"), "{unknown}");
    assert_eq!(fs::read_to_string(&lines).unwrap().lines().count(), 5, "a failed export replaces nothing");
    serving.stop();
}
