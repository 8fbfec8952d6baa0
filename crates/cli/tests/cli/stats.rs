//! `mangrove stats`, as a user runs it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::{Folder, fail, mangrove, succeed};
use crate::server::Serving;

#[test]
fn a_server_says_how_it_is() {
    let folder = Folder::new("stats");
    let [people, knows] = folder.people();
    let serving = Serving::start(&["--load", &people, "--load", &knows]);
    succeed(&["query", "--url", &serving.url, "g.addV('person').iterate()"]);
    let shown = succeed(&["stats", "--url", &serving.url]);
    for part in [
        "vertex page",
        "total",
        "memory budget",
        "commits",
        "aborts: write conflict",
        "plans made",
        "garbage: versions collected",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let json = succeed(&["stats", "--url", &serving.url, "--json"]);
    assert!(
        json.contains("\"commits\":1") && json.contains("\"plan_cache\":{") && json.contains("\"kind\":\"column\""),
        "{json}"
    );
    assert!(fail(1, &["stats"]).contains("--url"));
    assert!(fail(1, &["stats", "--url", &serving.url, "--watch", "0"]).contains("--watch 0"));
    serving.stop();
}

#[test]
fn a_directory_is_looked_at_and_a_watch_goes_on() {
    let folder = Folder::new("watch");
    let graph = folder.path().join("graph").to_str().unwrap().to_owned();
    let [people, knows] = folder.people();
    succeed(&["load", &people, &knows, "--data", &graph]);
    assert!(succeed(&["stats", "--data", &graph]).contains("log: bytes"));
    let args = ["stats", "--data", &graph, "--watch", "0.05", "--json"];
    let mut watching = mangrove().args(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        assert!(lines.next().unwrap().unwrap().contains("\"transactions\""));
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
}
