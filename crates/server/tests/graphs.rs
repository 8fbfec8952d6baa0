//! Graphs that are created and dropped in directories of their own, with a fault at every step. A refused graph does
//! not appear at the next start, and a dropped graph is wholly gone, at whatever moment a crash comes.

use std::fs;
#[cfg(debug_assertions)]
use std::io;
use std::path::{Path, PathBuf};

use mangrove::{Database, DatabaseOptions};
use mangrove_failpoint::Scenario;
#[cfg(debug_assertions)]
use mangrove_failpoint::{Point, set};
use mangrove_graph::{Error, Result};
use mangrove_server::Caller;
use mangrove_server::{GraphOpener, GraphOptions, Registry};

/// An empty directory, removed when this is dropped. One test at a time has one, because others may set failpoints.
struct Home(PathBuf, #[allow(dead_code, reason = "held")] Scenario);

impl Home {
    fn new(name: &str) -> Self {
        let scenario = Scenario::new();
        let path = std::env::temp_dir().join(format!("mangrove-graphs-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Home(path, scenario)
    }

    /// A start of a server.
    fn start(&self) -> Registry {
        self.start_with(Box::new(open))
    }

    fn start_with(&self, opener: GraphOpener) -> Registry {
        let mut registry = Registry::new(8, opener);
        registry.keep_in(self.0.clone()).unwrap();
        registry
    }

    /// The entries of the directory.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(path: Option<&Path>, _memory_limit: Option<u64>) -> Result<Database> {
    let location = path.map_or("memory:", |path| path.to_str().expect("a test's path is text"));
    Database::open(location, &DatabaseOptions::default())
}

fn sources(registry: &Registry) -> Vec<String> {
    registry.sources(&Caller::anybody("test")).iter().map(ToString::to_string).collect()
}

fn create(registry: &Registry) -> Result<()> {
    registry.create("books", false, &GraphOptions { memory_limit_bytes: Some(64 << 20), ..GraphOptions::default() })
}

/// Creates the graph and gives it a vertex.
fn create_with_a_book(registry: &Registry) {
    create(registry).unwrap();
    let source = registry.find("books", &Caller::anybody("test")).unwrap();
    assert_eq!(source.graph.database().query("g.addV('book')").unwrap().count(), 1);
}

fn count(registry: &Registry) -> usize {
    let source = registry.find("books", &Caller::anybody("test")).unwrap();
    source.graph.database().query("g.V()").unwrap().count()
}

#[cfg(debug_assertions)]
fn trouble() -> io::Result<()> {
    Err(io::Error::other("a test's trouble"))
}

#[test]
fn a_graph_that_could_not_be_created_is_not_there_at_the_next_start() {
    let home = Home::new("refused");
    // The fault comes after the files were made.
    let failing: GraphOpener = Box::new(|path, limit| {
        drop(open(path, limit)?);
        Err(Error::invalid("no more threads"))
    });
    assert!(create(&home.start_with(failing)).unwrap_err().message().contains("no more threads"));
    assert!(home.names().is_empty(), "{:?}", home.names());
    let registry = home.start();
    assert!(sources(&registry).is_empty());
    create_with_a_book(&registry);
    assert_eq!(count(&registry), 1);
    drop(registry);
    assert_eq!(count(&home.start()), 1);
}

#[cfg(debug_assertions)]
#[test]
fn trouble_at_any_step_of_a_creation_leaves_no_graph() {
    for point in [Point::GraphCreated, Point::GraphNamed] {
        let home = Home::new("creation");
        let registry = home.start();
        let armed = set(point, trouble);
        let error = create(&registry).unwrap_err();
        assert!(error.message().contains("a test's trouble"), "{point:?}: {error}");
        drop(armed);
        assert!(home.names().is_empty() && sources(&registry).is_empty(), "{point:?}: {:?}", home.names());
        // A panic is like a crash: it cleans nothing up.
        let armed = set(point, || panic!("a test panics"));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| create(&registry)));
        assert!(panicked.is_err());
        drop(armed);
        let is_named = home.names() == ["books"];
        assert_eq!(is_named, point == Point::GraphNamed, "{:?}", home.names());
        drop(registry);
        let registry = home.start();
        // After the rename the graph is there, whole; the client was told neither way.
        assert_eq!(sources(&registry).is_empty(), !is_named);
        if !is_named {
            create_with_a_book(&registry);
        }
        assert_eq!(count(&registry), usize::from(!is_named));
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_graph_that_could_not_be_dropped_is_whole() {
    let home = Home::new("kept");
    let registry = home.start();
    create_with_a_book(&registry);
    let armed = set(Point::GraphDrop, trouble);
    let error = registry.drop_graph("books").unwrap_err();
    assert!(error.message().contains("a test's trouble") && error.message().contains("not dropped"), "{error}");
    drop(armed);
    assert_eq!(count(&registry), 1);
    drop(registry);
    assert_eq!(count(&home.start()), 1);
}

/// A crash comes while the directory of a dropped graph is being removed, when any part of it is gone.
#[cfg(debug_assertions)]
#[test]
fn what_a_crash_leaves_of_a_dropped_graph_is_no_graph() {
    for gone in ["", "DROPPED", "graph.json", "manifest", "wal", "LOCK"] {
        let home = Home::new("dropped");
        let registry = home.start();
        create_with_a_book(&registry);
        let armed = set(Point::GraphRemove, trouble);
        registry.drop_graph("books").unwrap();
        drop(armed);
        let [left] = home.names().try_into().unwrap();
        let part = home.0.join(left).join(gone);
        match fs::metadata(&part).unwrap_or_else(|error| panic!("{}: {error}", part.display())).is_dir() {
            _ if gone.is_empty() => {}
            true => fs::remove_dir_all(&part).unwrap(),
            false => fs::remove_file(&part).unwrap(),
        }
        // The name is free at once, and the remains are removed at the next start.
        create_with_a_book(&registry);
        drop(registry);
        let registry = home.start();
        assert_eq!((home.names(), count(&registry)), (vec!["books".to_owned()], 1), "{gone}");
        registry.drop_graph("books").unwrap();
        assert!(home.names().is_empty());
    }
}

/// A dropped graph as an earlier version marked it: with a mark, in a directory of the graph's name.
#[test]
fn a_graph_that_is_marked_is_removed_at_the_start() {
    let home = Home::new("marked");
    let registry = home.start();
    create_with_a_book(&registry);
    drop(registry);
    fs::write(home.0.join("books").join("DROPPED"), "").unwrap();
    assert!(sources(&home.start()).is_empty() && home.names().is_empty());
}
