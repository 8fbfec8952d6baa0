//! `mangrove serve`, as a user runs it.

use crate::common::{Folder, fail, succeed};
use crate::server::Serving;

#[test]
fn signals_end_it_cleanly() {
    for name in ["INT", "TERM"] {
        let serving = Serving::start(&[]);
        assert!(serving.get("/health").starts_with("HTTP/1.1 200"), "{name}");
        assert_eq!(serving.signal(name), Some(0), "{name}");
    }
}

#[test]
fn a_configuration_file_names_graphs() {
    let folder = Folder::new("config");
    folder.people();
    let config = folder.file(
        "mangrove.toml",
        "[graphs.people]\nload = [\"people.csv\", \"knows.csv\"]\nsources = { gpeople = \"snapshot\" }\n",
    );
    let serving = Serving::start(&["--config", &config]);
    assert!(serving.get("/health").contains("200"));
    assert_eq!(serving.signal("TERM"), Some(0));
}

#[test]
fn what_it_cannot_serve_it_says() {
    let folder = Folder::new("refuse");
    let config = folder
        .file("two.toml", "[graphs.a]\nsources = { x = \"snapshot\" }\n[graphs.b]\nsources = { x = \"snapshot\" }\n");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (args, part) in [
        (vec!["serve", "--listen", "0.0.0.0:0"], "other machines"),
        (vec!["serve", "--listen", &address], "choose another"),
        (vec!["serve", "--config", &config], "traversal source x"),
        (vec!["serve", "--config", "no-such-file.toml"], "no-such-file.toml"),
        (vec!["serve", "--data", "ftp://bucket/graph"], "s3://BUCKET"),
        (vec!["serve", "--load", "no-such-file.csv"], "no-such-file.csv"),
    ] {
        let error = fail(1, &args);
        assert!(error.contains("error: ") && error.contains(part), "{args:?}: {error}");
    }
    let killed = fail(2, &["kill", "--url", "ws://127.0.0.1:9", "abc"]);
    assert!(killed.contains("`mangrove queries`") && !killed.contains("invalid digit"), "{killed}");
    fail(2, &["serve", "--listen", "somewhere"]);
}

#[test]
fn what_is_managed_must_be_named() {
    for command in [&["config", "set", "gc_workers=2"][..], &["index", "list"], &["inspect", "memory"]] {
        assert!(fail(1, command).contains("--url"), "{command:?}");
    }
}

#[test]
fn a_server_is_managed_from_the_command_line() {
    let folder = Folder::new("manage");
    let [people, knows] = folder.people();
    let serving = Serving::start(&["--load", &people, "--load", &knows]);
    let url = format!("ws://{}", serving.address);
    let made = succeed(&["index", "create", "--url", &url, "--label", "person", "--key", "name", "--unique"]);
    assert!(made.contains("hash") && made.contains("person"), "{made}");
    let listed = succeed(&["index", "list", "--url", &url, "--format", "jsonl"]);
    assert!(listed.contains("\"entries\":3"), "{listed}");
    let twin = fail(1, &["query", "--url", &url, "g.addV('person').property('name', 'ada')"]);
    assert!(twin.contains("'name' = 'ada'"), "{twin}");
    let set = succeed(&["config", "set", "--url", &url, "--format", "jsonl", "optimistic_validation=false"]);
    assert!(set.contains("\"optimistic_validation\":false"), "{set}");
    assert_eq!(succeed(&["config", "get", "--url", &url, "--format", "jsonl"]), set);
    let memory = succeed(&["inspect", "memory", "--url", &url]);
    assert!(memory.contains("property index") && memory.contains("total"), "{memory}");
    let statistics = succeed(&["inspect", "statistics", "--url", &url, "--label", "person", "--histogram", "--walks"]);
    for part in ["degrees", "bucket", "walks", "knows", "index"] {
        assert!(statistics.contains(part), "{part}: {statistics}");
    }
    assert!(fail(2, &["inspect", "statistics", "--url", &url, "--walks"]).contains("--label"));
    let out = "g.V().has('name', who).out().count()";
    let counted = succeed(&["query", "--url", &url, "--format", "csv", "--param", "who=ada", out]);
    assert!(counted.contains('2'), "{counted}");
    // At its limit the server refuses writes and goes on reading and deleting.
    succeed(&["config", "set", "--url", &url, "memory_limit_bytes=1"]);
    assert!(fail(1, &["query", "--url", &url, "g.addV('person')"]).contains("deletes go on"));
    succeed(&["query", "--url", &url, "g.V().has('name', 'eve').drop()"]);
    succeed(&["index", "drop", "--url", &url, "--label", "person", "--key", "name"]);
    assert_eq!(succeed(&["index", "list", "--url", &url, "--format", "json"]).trim(), "[]");
    let metrics = serving.get("/metrics");
    assert!(metrics.contains("mangrove_commits_total{graph=\"g\"} 1"), "{metrics}");
    assert_eq!(serving.signal("TERM"), Some(0));
}
