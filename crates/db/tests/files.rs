//! `io()`: traversals read and write files, only below the configured directory.

use std::path::{Path, PathBuf};

use mangrove::{Database, ErrorKind, Parameters, QueryLimits, QueryOptions, TransactionOptions, Value};

/// A directory for one test, removed at its end.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mangrove-io-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("inside/folder")).unwrap();
        TestDirectory(path)
    }

    fn inside(&self) -> PathBuf {
        self.0.join("inside")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.inside().join(name)
    }

    /// A graph whose directory of files is inside.
    fn graph(&self) -> Database {
        let database = Database::in_memory();
        database.set_io_directory(Some(&self.inside())).unwrap();
        database
    }
}

impl Drop for TestDirectory {
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
fn what_is_written_is_read() {
    let home = TestDirectory::new("round");
    let graph = home.graph();
    values(&graph, PEOPLE);
    let shown = "g.V().order().by(id).union(id(), label(), properties().order().by(key).by(value).value(), \
                 outE().union(id(), label(), values('since', 'weight')), out().id())";
    for (file, option) in [
        ("people.json", ""),
        ("folder/people.graphml", ""),
        ("./folder/./people", ".with(IO.writer, IO.graphml)"),
        ("people.bin", ".with(IO.writer, IO.graphson)"),
        // A file that exists is replaced.
        ("people.json", ".with(IO.reader, IO.graphml)"),
    ] {
        assert_eq!(values(&graph, &format!("g.io('{file}'){option}.write()")), []);
        let other = home.graph();
        let option = option.replace("writer", "reader");
        let option = if file == "people.json" { "" } else { &option };
        assert_eq!(values(&other, &format!("g.io('{file}'){option}.read()")), []);
        assert_eq!(values(&graph, shown), values(&other, shown), "{file}");
    }
    let left = std::fs::read_dir(home.inside()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(left.len(), 3, "{left:?}: nothing but what was asked for");
}

#[test]
fn paths_may_be_parameters_and_traversals_go_on() {
    let home = TestDirectory::new("parameters");
    let graph = home.graph();
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

/// A file is read or written in the transaction of its traversal: its writes are part of the transaction, and a
/// rollback undoes them.
#[test]
fn files_belong_to_their_transaction() {
    let home = TestDirectory::new("transaction");
    let graph = home.graph();
    values(&graph, PEOPLE);
    let transaction = graph.begin().unwrap();
    transaction.query("g.addV('person').property(id, 3)").unwrap();
    transaction.query("g.io('three.json').write()").unwrap();
    transaction.rollback();
    let other = home.graph();
    let transaction = other.begin_with(TransactionOptions::default()).unwrap();
    transaction.query("g.io('three.json').read()").unwrap();
    assert_eq!(transaction.query("g.V().count()").unwrap().collect().unwrap(), [Value::I64(3)]);
    transaction.rollback();
    assert_eq!(values(&other, "g.V().count()"), [Value::I64(0)]);
    // An id that exists ends the read, and undoes all of it.
    values(&other, "g.addV('person').property(id, 2)");
    refused(&other, "g.io('three.json').read()", ErrorKind::DuplicateId, "2");
    assert_eq!(values(&other, "g.V().count()"), [Value::I64(1)]);
    refused(&other, "g.withStrategies(ReadOnlyStrategy).io('three.json').write()", ErrorKind::Unsupported, "`io`");
    let error = other.begin_read().unwrap().query("g.io('three.json').read()").map(|_| ()).unwrap_err();
    assert!(error.message().contains("read-only"), "{error}");
}

#[test]
fn nothing_leads_out_of_the_directory() {
    let home = TestDirectory::new("escape");
    std::fs::write(home.0.join("secret.json"), "{\"id\":1,\"label\":\"secret\"}\n").unwrap();
    let graph = home.graph();
    let absolute = home.0.join("secret.json").display().to_string();
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
    let home = TestDirectory::new("names");
    let graph = home.graph();
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
    // A file with the longest possible name can be written and read.
    let longest = format!("{}.json", "n".repeat(195));
    values(&graph, PEOPLE);
    assert_eq!(values(&graph, &format!("g.io('{longest}').write()")), []);
    assert_eq!(values(&home.graph(), &format!("g.io('{longest}').read()")), []);
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_refused() {
    use std::os::unix::fs::symlink;
    let home = TestDirectory::new("links");
    let secret = home.0.join("secret.json");
    std::fs::write(&secret, "{\"id\":1,\"label\":\"secret\"}\n").unwrap();
    symlink(&secret, home.file("link.json")).unwrap();
    symlink(&home.0, home.file("up")).unwrap();
    symlink(home.0.join("new.json"), home.file("dangling.json")).unwrap();
    let graph = home.graph();
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
    assert!(!home.0.join("new.json").exists());
    assert!(std::fs::read_to_string(&secret).unwrap().contains("secret"));
    // The directory itself may be a symbolic link: the operator chose it.
    symlink(home.inside(), home.0.join("way")).unwrap();
    graph.set_io_directory(Some(&home.0.join("way"))).unwrap();
    values(&graph, "g.io('a.json').write()");
}

#[test]
fn without_a_directory_io_is_refused() {
    let graph = Database::in_memory();
    refused(&graph, "g.io('a.json').read()", ErrorKind::Unsupported, "--io-directory");
    assert!(graph.set_io_directory(Some(Path::new("/nowhere/at/all"))).is_err());
    let home = TestDirectory::new("taken");
    std::fs::write(home.file("a.json"), "").unwrap();
    assert!(graph.set_io_directory(Some(&home.file("a.json"))).is_err(), "a file is no directory");
}

#[test]
fn errors_say_what_is_wrong_and_not_where_it_is() {
    let home = TestDirectory::new("errors");
    std::fs::write(home.file("bad.json"), "{\"id\":1,\"label\":\"a\"}\n{\"id\":").unwrap();
    std::fs::write(home.file("twice.json"), "{\"id\":1,\"label\":\"a\"}\n{\"id\":1,\"label\":\"a\"}\n").unwrap();
    let graph = home.graph();
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
        ("g.V().read()", ErrorKind::Unsupported, "behind io"),
        (
            "g.withStrategies(new PartitionStrategy(partitionKey: 'p', writePartition: 'a', readPartitions: ['a'])).io('a.json').read()",
            ErrorKind::Unsupported,
            "whole graph",
        ),
    ] {
        refused(&graph, script, kind, part);
        let error = graph.query(script).map(|_| ()).unwrap_err();
        assert!(!error.message().contains(&home.0.display().to_string()), "{error}");
    }
    assert_eq!(values(&graph, "g.V().count()"), [Value::I64(0)]);
}

/// The ids that a reader keeps count as the query's memory, and the time that a file takes as the query's time.
#[test]
fn the_limits_of_the_query_hold() {
    let home = TestDirectory::new("limits");
    let graph = home.graph();
    let lines: String = (0..40_000).map(|n| format!("{{\"id\":\"v{n}\",\"label\":\"a\"}}\n")).collect();
    std::fs::write(home.file("many.json"), lines).unwrap();
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
