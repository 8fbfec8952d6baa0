//! `io()`: traversals read and write files, and cannot leave their directory.

use std::path::{Path, PathBuf};

use mangrove::{Database, ErrorKind, Parameters, QueryLimits, QueryOptions, TransactionOptions, Value};

/// A directory for one test, removed at its end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mangrove-io-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("inside/folder")).unwrap();
        Place(path)
    }

    fn inside(&self) -> PathBuf {
        self.0.join("inside")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.inside().join(name)
    }

    /// A graph whose `io()` may use the directory `inside`.
    fn graph(&self) -> Database {
        let database = Database::in_memory();
        database.set_io_directory(Some(&self.inside())).unwrap();
        database
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn values(database: &Database, script: &str) -> Vec<Value> {
    database.query(script).unwrap_or_else(|e| panic!("{script}: {e}")).collect().unwrap()
}

#[track_caller]
fn refused(database: &Database, script: &str, kind: ErrorKind, part: &str) {
    let error = database.query(script).and_then(|results| results.collect()).unwrap_err();
    assert_eq!(error.kind(), kind, "{script}: {error}");
    assert!(error.message().contains(part), "{script}: {error}");
}

const PEOPLE: &str = "g.addV('person').property(id, 1L).property('name', 'ada').property('age', 36).as('a').\
                      addV('person').property(id, 2L).property(list, 'name', 'bob').property(list, 'name', 'rob').\
                      addE('knows').from('a').property('since', 1843L).property('weight', 0.5d)";

#[test]
fn a_written_file_is_read_back() {
    let place = Place::new("round");
    let graph = place.graph();
    values(&graph, PEOPLE);
    let shown = "g.V().order().by(id).union(id(), label(), properties().order().by(key).by(value).value(), \
                 outE().union(id(), label(), values('since', 'weight')), out().id())";
    for (file, option) in [
        ("people.json", ""),
        ("folder/people.graphml", ""),
        ("./folder/./people", ".with(IO.writer, IO.graphml)"),
        ("people.bin", ".with(IO.writer, IO.graphson)"),
        // An existing file is replaced.
        ("people.json", ".with(IO.reader, IO.graphml)"),
    ] {
        assert_eq!(values(&graph, &format!("g.io('{file}'){option}.write()")), []);
        let other = place.graph();
        let option = option.replace("writer", "reader");
        let option = if file == "people.json" { "" } else { &option };
        assert_eq!(values(&other, &format!("g.io('{file}'){option}.read()")), []);
        assert_eq!(values(&graph, shown), values(&other, shown), "{file}");
    }
    let left = std::fs::read_dir(place.inside()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(left.len(), 3, "{left:?}: nothing but what was asked for");
}

#[test]
fn paths_may_be_parameters_and_traversals_go_on() {
    let place = Place::new("parameters");
    let graph = place.graph();
    values(&graph, PEOPLE);
    let parameters = Parameters::from([("file".into(), Value::from("people.xml"))]);
    for script in
        ["g.io(file).write().iterate()", "g.V().drop()", "g.io(file).with(IO.reader, IO.graphml).read().count()"]
    {
        let prepared = graph.prepare(script).unwrap();
        let results = graph.run(&prepared, &parameters).unwrap().collect().unwrap();
        assert_eq!(results, if script.ends_with("count()") { vec![Value::I64(0)] } else { vec![] });
    }
    assert_eq!(values(&graph, "g.V().count()"), [Value::I64(2)]);
}

/// A file is read and written in the traversal's transaction: the file has the transaction's own writes, and a rollback
/// takes back the elements that were read.
#[test]
fn files_belong_to_their_transaction() {
    let place = Place::new("transaction");
    let graph = place.graph();
    values(&graph, PEOPLE);
    let transaction = graph.begin().unwrap();
    transaction.query("g.addV('person').property(id, 3)").unwrap();
    transaction.query("g.io('three.json').write()").unwrap();
    transaction.rollback();
    let other = place.graph();
    let transaction = other.begin_with(TransactionOptions::default()).unwrap();
    transaction.query("g.io('three.json').read()").unwrap();
    assert_eq!(transaction.query("g.V().count()").unwrap().collect().unwrap(), [Value::I64(3)]);
    transaction.rollback();
    assert_eq!(values(&other, "g.V().count()"), [Value::I64(0)]);
    // An existing id ends the read, and all of the read is taken back.
    values(&other, "g.addV('person').property(id, 2)");
    refused(&other, "g.io('three.json').read()", ErrorKind::DuplicateId, "2");
    assert_eq!(values(&other, "g.V().count()"), [Value::I64(1)]);
    refused(&other, "g.withStrategies(ReadOnlyStrategy).io('three.json').write()", ErrorKind::Unsupported, "`io`");
    let error = other.begin_read().unwrap().query("g.io('three.json').read()").map(|_| ()).unwrap_err();
    assert!(error.message().contains("read-only"), "{error}");
}

#[test]
fn nothing_leads_out_of_the_directory() {
    let place = Place::new("escape");
    std::fs::write(place.0.join("secret.json"), "{\"id\":1,\"label\":\"secret\"}\n").unwrap();
    let graph = place.graph();
    let absolute = place.0.join("secret.json").display().to_string();
    for path in ["../secret.json", "folder/../../secret.json", "folder/..", absolute.as_str(), "/", "", ".", "./"] {
        for mode in ["with(IO.reader, IO.graphson).read()", "with(IO.writer, IO.graphson).write()"] {
            refused(&graph, &format!("g.io('{path}').{mode}"), ErrorKind::InvalidArgument, "io('");
        }
    }
    assert_eq!(values(&graph, "g.V().count()"), [Value::I64(0)]);
    refused(&graph, "g.io('folder').with(IO.reader, IO.graphml).read()", ErrorKind::InvalidArgument, "no plain file");
    refused(&graph, "g.io('none/a.json').write()", ErrorKind::InvalidArgument, "'none'");
    refused(&graph, "g.io('none.json').read()", ErrorKind::NotFound, "io('none.json')");
}

#[test]
fn names_that_no_file_system_takes_are_the_clients_mistake() {
    let place = Place::new("names");
    let graph = place.graph();
    let long = "n".repeat(300);
    for (path, part) in [
        ("a\\u0000b.json".to_owned(), "no character NUL"),
        ("folder\\u0000/b.json".to_owned(), "no character NUL"),
        (format!("{long}.json"), "305 bytes, more than 200"),
        (format!("{long}/b.json"), "300 bytes, more than 200"),
        ("folder/".repeat(900) + "b.json", "'folder'"),
    ] {
        for mode in ["with(IO.reader, IO.graphson).read()", "with(IO.writer, IO.graphson).write()"] {
            refused(&graph, &format!("g.io('{path}').{mode}"), ErrorKind::InvalidArgument, part);
        }
    }
    // A file with the longest allowed name can be written and read.
    let longest = format!("{}.json", "n".repeat(195));
    values(&graph, PEOPLE);
    assert_eq!(values(&graph, &format!("g.io('{longest}').write()")), []);
    assert_eq!(values(&place.graph(), &format!("g.io('{longest}').read()")), []);
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_refused() {
    use std::os::unix::fs::symlink;
    let place = Place::new("links");
    let secret = place.0.join("secret.json");
    std::fs::write(&secret, "{\"id\":1,\"label\":\"secret\"}\n").unwrap();
    symlink(&secret, place.file("link.json")).unwrap();
    symlink(&place.0, place.file("up")).unwrap();
    symlink(place.0.join("new.json"), place.file("dangling.json")).unwrap();
    let graph = place.graph();
    for file in ["link.json", "up/secret.json", "dangling.json"] {
        for mode in ["read()", "write()"] {
            refused(
                &graph,
                &format!("g.io('{file}').{mode}"),
                ErrorKind::InvalidArgument,
                file.split('/').next().unwrap(),
            );
        }
    }
    assert!(!place.0.join("new.json").exists());
    assert!(std::fs::read_to_string(&secret).unwrap().contains("secret"));
    // The directory itself may be a link, because the operator of the database has chosen it.
    symlink(place.inside(), place.0.join("way")).unwrap();
    graph.set_io_directory(Some(&place.0.join("way"))).unwrap();
    values(&graph, "g.io('a.json').write()");
}

#[test]
fn without_a_directory_io_is_refused() {
    let graph = Database::in_memory();
    refused(&graph, "g.io('a.json').read()", ErrorKind::Unsupported, "--io-directory");
    assert!(graph.set_io_directory(Some(Path::new("/nowhere/at/all"))).is_err());
    let place = Place::new("taken");
    std::fs::write(place.file("a.json"), "").unwrap();
    assert!(graph.set_io_directory(Some(&place.file("a.json"))).is_err(), "a file is no directory");
}

#[test]
fn errors_say_what_is_wrong_and_not_where_it_is() {
    let place = Place::new("errors");
    std::fs::write(place.file("bad.json"), "{\"id\":1,\"label\":\"a\"}\n{\"id\":").unwrap();
    std::fs::write(place.file("twice.json"), "{\"id\":1,\"label\":\"a\"}\n{\"id\":1,\"label\":\"a\"}\n").unwrap();
    let graph = place.graph();
    for (script, kind, part) in [
        ("g.io('bad.json').read()", ErrorKind::Syntax, "io('bad.json')"),
        ("g.io('twice.json').read()", ErrorKind::InvalidArgument, "line 2"),
        ("g.io('a.kryo').read()", ErrorKind::Unsupported, "gryo"),
        ("g.io('a.json').with(IO.reader, IO.gryo).read()", ErrorKind::Unsupported, "`with` at line 1"),
        ("g.io('a.json').with(IO.registry, 'x').read()", ErrorKind::Unsupported, "IO.reader"),
        ("g.io('a').read()", ErrorKind::InvalidArgument, "Could not detect the file format"),
        ("g.io('a.json')", ErrorKind::Unsupported, "read() or write()"),
        ("g.io('a.json').read().write()", ErrorKind::Unsupported, "keep one"),
        ("g.io(7).read()", ErrorKind::InvalidArgument, "the path of a file"),
        ("g.V().io('a.json').read()", ErrorKind::Unsupported, "start"),
        ("g.V().read()", ErrorKind::Unsupported, "after io"),
        (
            "g.withStrategies(new PartitionStrategy(partitionKey: 'p', writePartition: 'a', readPartitions: ['a'])).io('a.json').read()",
            ErrorKind::Unsupported,
            "whole graph",
        ),
    ] {
        refused(&graph, script, kind, part);
        let error = graph.query(script).map(|_| ()).unwrap_err();
        assert!(!error.message().contains(&place.0.display().to_string()), "{error}");
    }
    assert_eq!(values(&graph, "g.V().count()"), [Value::I64(0)]);
}

/// The ids that a reader keeps count towards the query's memory limit, and the time of reading towards its time limit.
#[test]
fn the_limits_of_the_query_hold() {
    let place = Place::new("limits");
    let graph = place.graph();
    let lines: String = (0..40_000).map(|n| format!("{{\"id\":\"v{n}\",\"label\":\"a\"}}\n")).collect();
    std::fs::write(place.file("many.json"), lines).unwrap();
    let prepared = graph.prepare("g.io('many.json').read()").unwrap();
    let limits = QueryLimits { memory_bytes: 64 * 1024, ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let error = graph.run_with(&prepared, &Parameters::new(), &options).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{error}");
    let options = QueryOptions::default();
    options.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = graph.run_with(&prepared, &Parameters::new(), &options).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert_eq!(values(&graph, "g.V().count()"), [Value::I64(0)]);
    values(&graph, "g.io('many.json').read()");
    assert_eq!(values(&graph, "g.V().count()"), [Value::I64(40_000)]);
}
