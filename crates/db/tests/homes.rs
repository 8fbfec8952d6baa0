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

#[test]
fn a_follower_reads_refuses_to_write_and_becomes_the_owner() {
    let folder = Folder::new("follows");
    let owner = open(&folder);
    owner.query("g.addV('person').property('name', 'ada')").unwrap();
    let follower = Database::follow(&folder.address(), &DatabaseOptions::default(), &|_| {}).unwrap();
    assert_eq!(count(&follower).unwrap(), [Value::I64(1)]);
    assert!(follower.following().is_some() && owner.following().is_none());
    // Each of them names something that the owner has not named. Nothing is done before it is refused.
    let refused = [
        follower.query("g.addV('stranger').property('strange', 1)").err(),
        follower.create_index(Some("alien"), "odd", false, false).err(),
        follower.checkpoint().err(),
    ];
    for error in refused {
        assert_eq!(error.unwrap().kind(), ErrorKind::ReadOnly);
    }
    assert!(owner.promote().unwrap_err().message().contains("owner"));
    // Names that the owner adds go to the same numbers.
    owner.query("g.addV('person').property('born', 1815)").unwrap();
    owner.query("g.addV('town').property('place', 'London')").unwrap();
    while count(&follower).unwrap() != [Value::I64(2)] {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let open_before = follower.begin_read().unwrap();

    follower.promote().unwrap();
    assert!(follower.following().is_none());
    follower.query("g.addV('stranger').property('strange', 1)").unwrap();
    assert_eq!(follower.query("g.V().count()").unwrap().collect().unwrap(), [Value::I64(4)]);
    assert_eq!(open_before.query("g.V().hasLabel('stranger').count()").unwrap().collect().unwrap(), [Value::I64(0)]);
    drop(open_before);
    assert!(count(&owner).unwrap_err().message().contains("another process has opened the graph"));
    assert!(follower.checkpoint().unwrap().is_some());
    drop((owner, follower));
    assert_eq!(open(&folder).query("g.V().count()").unwrap().collect().unwrap(), [Value::I64(4)]);
}

#[test]
fn the_change_feed_of_a_home_has_its_commits() {
    let folder = Folder::new("feed");
    let mut options = DatabaseOptions::default();
    options.durability.log.feed = mangrove::FeedContent::Full;
    let database = Database::open(&folder.address(), &options).unwrap();
    database.query("g.addV('person').property('name', 'ada')").unwrap();
    database.query("g.V().property('name', 'lovelace')").unwrap();
    let mut changes = mangrove::read_changes(&folder.address(), None).unwrap().plain();
    let mut lines = Vec::new();
    while let Some(line) = changes.next().unwrap() {
        lines.push(line.json);
    }
    assert!(
        lines.iter().any(|line| line.contains("\"after\":\"lovelace\"") && line.contains("\"before\":\"ada\"")),
        "{lines:?}"
    );
    assert_eq!(lines.iter().filter(|line| line.contains("\"op\":\"commit\"")).count(), 2, "{lines:?}");
}
