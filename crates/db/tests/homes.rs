//! Graphs in homes of objects, through the public interface.

use std::path::PathBuf;

use mangrove::{Database, DatabaseOptions, ErrorKind, Location, LogReport, Result, Value, is_home_address};

/// A directory that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mangrove-homes-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn address(&self) -> String {
        format!("file:{}", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(folder: &Folder) -> Database {
    Database::open(&folder.address(), &DatabaseOptions::default()).unwrap()
}

fn count(database: &Database) -> Result<Vec<Value>> {
    database.query("g.V().hasLabel('person').count()")?.collect()
}

#[test]
fn a_graph_in_a_home_outlives_its_process() {
    let folder = Folder::new("outlives");
    assert!(is_home_address(&folder.address()));
    let database = open(&folder);
    database.query("g.addV('person').property('name', 'ada')").unwrap();
    assert!(database.checkpoint().unwrap().is_some());
    database.query("g.addV('person')").unwrap();
    let durability = database.durability().unwrap();
    assert_eq!((durability.epoch, durability.lag, durability.read_only_cause()), (1, 0, None));
    assert!(matches!(durability.log, LogReport::Home(_)) && matches!(durability.location, Location::Home(_)));
    assert_eq!(durability.log.commits(), 2);
    drop(database);

    let database = open(&folder);
    assert_eq!(count(&database).unwrap(), [Value::I64(2)]);
    let recovery = database.recovery().unwrap();
    assert_eq!((recovery.graph.vertices, recovery.commits_replayed), (2, 1));
    assert_eq!(database.durability().unwrap().epoch, 2);
}

#[test]
fn an_owner_that_was_taken_over_serves_nothing() {
    let folder = Folder::new("taken");
    let old = open(&folder);
    old.query("g.addV('person')").unwrap();
    let new = open(&folder);
    // The old one may serve reads until its lease is over, and the new one waits for that before it acknowledges a commit.
    new.query("g.addV('person')").unwrap();
    let read = count(&old).unwrap_err();
    let write = old.query("g.addV('person')").err().unwrap();
    for error in [&read, &write] {
        assert!(error.message().contains("another process has opened the graph"), "{error}");
    }
    assert_eq!(read.kind(), ErrorKind::Closed);
    let cause = old.durability().unwrap().read_only_cause().unwrap();
    assert!(cause.contains("incarnation 2"), "{cause}");
    // A transaction that may write and has only read is judged by its commit.
    let transaction = old.begin().unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(count(&new).unwrap(), [Value::I64(2)]);
    drop(old);
    assert_eq!(count(&new).unwrap(), [Value::I64(2)], "the end of an owner that was fenced changes nothing");
}

#[test]
fn addresses_that_are_wrong_are_refused() {
    for (location, told) in [("ftp://host/graph", "s3://BUCKET"), ("", "empty name")] {
        let error = Database::open(location, &DatabaseOptions::default()).err().unwrap();
        assert!(error.message().contains(told), "{error}");
    }
}
