//! A graph in a directory, as a user runs it.

use std::fs;
use std::path::PathBuf;

use crate::common::{Folder, fail, run, succeed};
use crate::server::Serving;

fn files_in(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

#[test]
fn a_graph_in_a_directory_is_loaded_once_and_asked_again() {
    let folder = Folder::new("durable");
    let [people, knows] = folder.people();
    let path = folder.path().join("graph");
    let data = path.to_str().unwrap();
    assert!(fail(1, &["query", "--data", data, "g.V()"]).contains("no database in"));
    let loaded = run(&["load", &people, &knows, "--data", data]);
    assert!(loaded.code == Some(0) && loaded.err.contains("is kept in"), "{}", loaded.err);
    let again = fail(1, &["load", &people, "--data", data]);
    assert!(again.contains("--upsert"), "{again}");
    succeed(&["query", "--data", data, "g.V().has('name', 'bob').property(single, 'age', 41)"]);
    succeed(&["index", "create", "--data", data, "--label", "person", "--key", "name", "--unique"]);
    let asked = succeed(&["query", "--data", data, "--format", "csv", "g.V().values('age').sum()"]);
    assert!(asked.contains("106"), "{asked}");
    let log = succeed(&["inspect", "log", "--data", data, "--format", "jsonl"]);
    assert!(log.contains("\"record\":\"commit\"") && log.contains("index created"), "{log}");
    let taken = succeed(&["checkpoint", "--data", data, "--format", "jsonl"]);
    assert!(taken.contains("\"pages\":") && !taken.contains("\"pages\":0"), "{taken}");
    assert!(succeed(&["inspect", "manifest", "--data", data]).contains("\"checkpoint_ts\":1"));
    assert!(succeed(&["inspect", "packs", "--data", data, "--format", "jsonl"]).contains("0:"));
    assert!(succeed(&["inspect", "packs", "--data", data, "--blocks"]).contains("the catalog"));
    assert!(succeed(&["inspect", "durability", "--data", data]).contains("running"));
    let verified = succeed(&["verify", "--data", data]);
    assert!(
        verified.contains("3 vertices and 2 edges") && verified.contains("index of vertices person on name: 3 entries"),
        "{verified}"
    );
}

#[test]
fn a_graph_is_backed_up_and_restored() {
    let folder = Folder::new("backup");
    let [people, knows] = folder.people();
    let [data, backups, restored, before, home] =
        ["graph", "backups", "restored", "before", "home"].map(|name| folder.path().join(name));
    let [data, backups, restored, before] = [&data, &backups, &restored, &before].map(|path| path.to_str().unwrap());
    let home = format!("file:{}", home.to_str().unwrap());
    let count = |data: &str| {
        let rows = succeed(&["query", "--data", data, "--format", "csv", "g.V().count()"]);
        rows.lines().last().unwrap().to_owned()
    };
    succeed(&["load", &people, &knows, "--data", data]);
    let first = succeed(&["backup", "--data", data, "--to", backups, "--format", "jsonl"]);
    assert!(first.contains("\"backup\":1") && first.contains("\"last_commit\":0"), "{first}");
    succeed(&["query", "--data", data, "g.addV('person').property('name', 'dan')"]);
    let second = run(&["backup", "--data", data, "--to", backups]);
    assert!(second.code == Some(0) && second.err.contains("files copied"), "{}", second.err);
    let again = run(&["backup", "--data", data, "--to", backups]);
    assert!(again.err.contains("0 files copied, 0 bytes"), "{}", again.err);
    assert_eq!(succeed(&["backup", "--to", backups, "--list", "--format", "jsonl"]).lines().count(), 3);
    let verified = succeed(&["verify", "--data", backups]);
    assert!(verified.contains("4 vertices and 2 edges") && verified.contains("3 backups"), "{verified}");
    assert!(succeed(&["inspect", "packs", "--data", backups]).contains("pack/"));
    assert!(succeed(&["inspect", "manifest", "--data", backups]).contains("\"checkpoint_ts\":0"));
    succeed(&["restore", "--from", backups, "--to", restored]);
    assert_eq!((count(restored), count(data)), ("4".to_owned(), "4".to_owned()));
    assert!(succeed(&["verify", "--data", restored]).contains("4 vertices and 2 edges"));
    succeed(&["restore", "--from", backups, "--at", "0", "--to", before]);
    assert_eq!(count(before), "3");
    let full = fail(1, &["restore", "--from", backups, "--to", before]);
    assert!(full.contains("is not empty"), "{full}");
    let other = fail(1, &["backup", "--data", before, "--to", backups]);
    assert!(other.contains("has backups of database"), "{other}");
    assert!(fail(1, &["restore", "--from", backups, "--at", "9", "--to", &home]).contains("no backup in"));
    assert!(fail(1, &["restore", "--from", backups, "--at", "soon", "--to", &home]).contains("is no moment"));
    // A home of objects, with a log.
    succeed(&["restore", "--from", data, "--to", &home]);
    assert!(succeed(&["verify", "--data", &home]).contains("4 vertices and 2 edges"));
    assert!(succeed(&["inspect", "packs", "--data", &home, "--blocks"]).contains("the catalog"));
    succeed(&["backup", "--data", data, "--to", backups, "--keep", "1"]);
    assert_eq!(succeed(&["backup", "--to", backups, "--list", "--format", "jsonl"]).lines().count(), 1);
    succeed(&["verify", "--data", backups]);
}

#[test]
fn a_server_backs_its_graph_up() {
    let folder = Folder::new("served-backup");
    let [data, backups, restored] = ["graph", "backups", "restored"].map(|name| folder.path().join(name));
    let [data, backups, restored] = [&data, &backups, &restored].map(|path| path.to_str().unwrap());
    let serving = Serving::start(&["--data", data]);
    let url = format!("ws://{}", serving.address);
    succeed(&["query", "--url", &url, "g.addV('person')"]);
    let taken = succeed(&["backup", "--url", &url, "--to", backups, "--keep", "2", "--format", "jsonl"]);
    assert!(taken.contains("\"backup\":1"), "{taken}");
    succeed(&["query", "--url", &url, "g.addV('person')"]);
    succeed(&["restore", "--from", backups, "--to", restored]);
    assert!(succeed(&["verify", "--data", restored]).contains("1 vertices and 0 edges"));
}

#[test]
fn damage_is_named_with_its_file() {
    let folder = Folder::new("damage");
    let path = folder.path().join("graph");
    let data = path.to_str().unwrap();
    succeed(&["generate", "kronecker", "--scale", "6", "--data", data, "--check"]);
    succeed(&["verify", "--data", data]);
    let [pack] = &*files_in(&path.join("pack")) else { panic!("the checkpoint of a small graph is one pack") };
    let mut bytes = fs::read(pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(pack, bytes).unwrap();
    let name = pack.file_name().unwrap().to_str().unwrap();
    for command in ["verify", "query"] {
        let mut args = vec![command, "--data", data];
        args.extend((command == "query").then_some("g.V().count()"));
        let error = fail(1, &args);
        assert!(error.contains(name) && error.contains("byte"), "{error}");
    }
}

#[test]
fn a_server_keeps_what_it_was_told_and_ends_with_a_checkpoint() {
    let folder = Folder::new("served");
    let [people, knows] = folder.people();
    let path = folder.path().join("graph");
    let data = path.to_str().unwrap();
    for round in 0..3 {
        // The files are for the first time.
        let serving = Serving::start(&["--data", data, "--load", &people, "--load", &knows]);
        let url = format!("ws://{}", serving.address);
        let count = succeed(&["query", "--url", &url, "--format", "csv", "g.V().count()"]);
        assert!(count.contains(&(3 + round).to_string()), "round {round}: {count}");
        succeed(&["query", "--url", &url, &format!("g.addV('person').property('name', 'new {round}')")]);
        let taken = fail(1, &["query", "--data", data, "g.V()"]);
        assert!(taken.contains("process") && taken.contains("open"), "{taken}");
        assert!(serving.get("/health").contains("\"status\":\"ok\""));
        let metrics = serving.get("/metrics");
        assert!(metrics.contains("mangrove_log_commits_total{graph=\"g\"} 1"), "{metrics}");
        assert!(metrics.contains("mangrove_log_sync_seconds_bucket{graph=\"g\",le=\"+Inf\"} "), "{metrics}");
        // Killed once, asked to end twice.
        match round {
            1 => drop(serving),
            _ => assert_eq!(serving.signal("TERM"), Some(0)),
        }
        let log = run(&["inspect", "log", "--data", data, "--format", "jsonl"]);
        let is_in_log = log.out.contains("\"record\":\"commit\"");
        assert_eq!(is_in_log, round == 1, "round {round}: a checkpoint covers the log: {}", log.out);
    }
    assert!(succeed(&["verify", "--data", data]).contains("6 vertices and 2 edges"));
}
