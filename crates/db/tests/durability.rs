//! A graph in a directory: its content after it is opened again.

use std::path::{Path, PathBuf};
use std::process;

use mangrove::{
    Database, DatabaseOptions, DurabilityOptions, ElementKind, ErrorKind, IndexDefinition, IndexKind, LoadOptions,
    LogOptions, Result, UserId, Value, verify,
};

/// A directory for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mangrove-durability-{}-{name}", process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Options with small files, so that there are several.
fn options() -> DatabaseOptions {
    let log = LogOptions { segment_bytes_min: 64 << 10, segment_bytes_max: 64 << 10, ..LogOptions::default() };
    let durability = DurabilityOptions { log, checkpoint_log_bytes: Some(0), ..DurabilityOptions::default() };
    DatabaseOptions { tablet_count: 4, durability, ..DatabaseOptions::default() }
}

fn open(folder: &Folder) -> Database {
    Database::open(folder.path(), &options()).unwrap()
}

#[track_caller]
fn ask(db: &Database, script: &str) -> Vec<Value> {
    db.query(script).and_then(|results| results.collect()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

#[track_caller]
fn refused<T>(outcome: Result<T>) -> (ErrorKind, String) {
    let error = outcome.err().expect("an error");
    (error.kind(), error.message().to_owned())
}

/// All elements, in a fixed order.
fn dump(db: &Database) -> Vec<Value> {
    let mut all = ask(db, "g.V().order().by(id).valueMap(true)");
    all.extend(ask(
        db,
        "g.E().order().by(id).project('e','p','o','i').by(id).by(valueMap()).by(outV().id()).by(inV().id())",
    ));
    all.extend(ask(db, "g.V().order().by(id).properties().as('p').valueMap()"));
    all
}

const FILL: &[&str] = &[
    "g.addV('person').property(id, 1).property('name', 'ada').property('age', 36)",
    "g.addV('person').property(id, 'two').property('name', 'bob').property(list, 'nick', 'b', 'since', 1999).property(list, 'nick', 'bo')",
    "g.addV('person::admin').property('name', 'eve').property('key', UUID('00000000-0000-0000-0000-000000000007'))",
    "g.V().has('name', 'ada').addE('knows').to(__.V('two')).property('since', 1999)",
    "g.V('two').addE('knows').to(__.V(1))",
    "g.V(1).addE('self').to(__.V(1))",
    "g.addV('gone').property(id, 'gone')",
    "g.V('gone').drop()",
    "g.V(1).property(single, 'age', 37)",
];

#[test]
fn committed_elements_are_there_again() {
    let folder = Folder::new("again");
    let db = open(&folder);
    for script in FILL {
        ask(&db, script);
    }
    db.define_index(&IndexDefinition {
        element: ElementKind::Vertex,
        label: Some("person".into()),
        keys: vec!["name".into()],
        kind: IndexKind::Ordered,
        unique: true,
    })
    .unwrap();
    let dropped = db.create_index(None, "age", false, false).unwrap();
    db.drop_index(dropped).unwrap();
    let (before, indexes) = (dump(&db), db.indexes());
    let (kind, message) = refused(Database::open(folder.path(), &options()));
    assert!(kind == ErrorKind::Closed && message.contains(&format!("process {}", process::id())), "{message}");
    drop(db);
    let db = open(&folder);
    assert_eq!(db.recovery().unwrap().commits_replayed, FILL.len() as u64);
    assert_eq!(dump(&db), before);
    assert!(db.checkpoint().unwrap().is_some());
    assert!(db.checkpoint().unwrap().is_none(), "nothing changed");
    ask(&db, "g.addV('late').property(id, 'late')");
    drop(db);
    let db = open(&folder);
    assert_eq!(db.recovery().unwrap().commits_replayed, 1);
    ask(&db, "g.V('late').drop()");
    assert_eq!(dump(&db), before);
    drop(db);
    let db = open(&folder);
    assert_eq!(dump(&db), before);
    assert_eq!((db.indexes().len(), &db.indexes()[0].definition), (1, &indexes[0].definition));
    let (kind, message) = refused(db.query("g.addV('person').property('name', 'ada')").and_then(|r| r.collect()));
    assert!(kind != ErrorKind::Bug && message.contains("ada"), "{message}");
    drop(db);
    let report = verify(folder.path(), &|_| {}).unwrap();
    assert_eq!((report.vertices, report.edges, report.indexes.len()), (3, 3, 1));
    assert_eq!(report.indexes[0].entries, 3, "{report:?}");
}

#[test]
fn ids_are_not_given_twice() {
    let folder = Folder::new("ids");
    let mut seen = Vec::new();
    for round in 0..6 {
        let db = open(&folder);
        for _ in 0..20 {
            seen.extend(ask(&db, "g.addV('a').id()"));
        }
        let before = seen.len();
        seen.sort_by_key(|id| format!("{id:?}"));
        seen.dedup();
        assert_eq!(seen.len(), before, "round {round}: an id was given again");
        // Their slots are free again; their ids are not.
        ask(&db, "g.V().limit(15).drop()");
        if round % 2 == 0 {
            db.checkpoint().unwrap();
        }
    }
}

#[test]
fn a_value_that_a_vertex_has_twice_is_one_entry_of_an_index() {
    let folder = Folder::new("twice");
    let db = open(&folder);
    for ordered in [false, true] {
        db.create_index(None, "nick", ordered, false).unwrap();
    }
    ask(&db, "g.addV('a').property(list, 'nick', 'b').property(list, 'nick', 'b').property(list, 'nick', 'c')");
    ask(&db, "g.addV('a').property(list, 'nick', 'b')");
    drop(db);
    let report = verify(folder.path(), &|_| {}).unwrap();
    assert_eq!(report.indexes.iter().map(|index| index.entries).collect::<Vec<_>>(), [3, 3], "{report:?}");
}

#[test]
fn conflicts_and_rollbacks_leave_nothing() {
    let folder = Folder::new("conflict");
    let db = open(&folder);
    ask(&db, "g.addV('a').property(id, 1).property('n', 0)");
    let (one, two) = (db.begin().unwrap(), db.begin().unwrap());
    one.query("g.V(1).property(single, 'n', 1)").unwrap();
    assert_eq!(refused(two.query("g.addV('b').V(1).property(single, 'n', 2)")).0, ErrorKind::Conflict);
    one.commit().unwrap();
    drop(two);
    let rolled_back = db.begin().unwrap();
    rolled_back.query("g.addV('c').property('only', 'here')").unwrap();
    rolled_back.rollback();
    drop(db);
    let db = open(&folder);
    assert_eq!(ask(&db, "g.V().label()"), vec![Value::from("a")]);
    assert_eq!(ask(&db, "g.V(1).values('n')"), vec![Value::I32(1)]);
}

#[test]
fn the_typed_interface_is_as_durable() {
    let folder = Folder::new("typed");
    let db = open(&folder);
    let label = db.catalog().intern_label_text("point");
    let ids: Vec<UserId> = (0..3000_i64).map(Into::into).collect();
    let tx = db.begin().unwrap();
    let vertices = tx.insert_vertices(label, &ids).unwrap();
    let values: Vec<_> = vertices.iter().zip(0..).map(|(&v, n)| (v, Value::I64(n * n))).collect();
    tx.set_vertex_property("square", &values).unwrap();
    let ends: Vec<_> = vertices.windows(2).map(|pair| (pair[0], pair[1])).collect();
    tx.insert_edges(db.catalog().intern_label_text("next"), &ends).unwrap();
    tx.commit().unwrap();
    drop(db);
    let db = open(&folder);
    assert_eq!(ask(&db, "g.V().values('square').sum()"), vec![Value::I64((0..3000).map(|n: i64| n * n).sum())]);
    assert_eq!(ask(&db, "g.V(17).out('next').out('next').id()"), vec![Value::I64(19)]);
    assert_eq!(ask(&db, "g.E().count()"), vec![Value::I64(2999)]);
}

#[test]
fn a_bulk_load_leaves_a_checkpoint_or_nothing() {
    let folder = Folder::new("load");
    let files = Folder::new("load-files");
    std::fs::create_dir_all(&files.0).unwrap();
    let csv = files.0.join("people.csv");
    let rows: String = (0..5000).map(|n| format!("{n},name {n},{n},person\n")).collect();
    std::fs::write(&csv, format!("id:ID,name:string,age:int,:LABEL\n{rows}")).unwrap();
    let broken = files.0.join("broken.csv");
    std::fs::write(&broken, "id:ID,name:string,:LABEL\n1,a,person\n1,b,person\n1,c,person\n").unwrap();

    let db = open(&folder);
    let strict = LoadOptions { max_rejects: 0, ..LoadOptions::default() };
    db.load(&[broken], &strict, &mut |_| {}).unwrap_err();
    drop(db);
    let db = open(&folder);
    assert!(db.is_empty());
    db.load(&[csv], &LoadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(db.durability().unwrap().checkpoint.taken, 1);
    assert_eq!(db.durability().unwrap().log.commits(), 0, "a load is not in the log");
    drop(db);
    let db = open(&folder);
    let recovery = db.recovery().unwrap();
    assert_eq!((recovery.graph.vertices, recovery.commits_replayed), (5000, 0));
    assert_eq!(ask(&db, "g.V().has('name', 'name 4711').values('age')"), vec![Value::I32(4711)]);
}

#[test]
fn an_error_of_opening_says_why() {
    let folder = Folder::new("refuse");
    let must_exist = DatabaseOptions {
        durability: DurabilityOptions { create: false, ..DurabilityOptions::default() },
        ..DatabaseOptions::default()
    };
    let (kind, message) = refused(Database::open(folder.path(), &must_exist));
    assert!(kind == ErrorKind::NotFound && message.contains(folder.path()), "{message}");
    assert!(!folder.0.exists());
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("notes.txt"), "mine").unwrap();
    let (kind, message) = refused(Database::open(folder.path(), &options()));
    assert!(kind == ErrorKind::InvalidArgument && message.contains("notes.txt"), "{message}");
    let (_, message) = refused(Database::open(folder.0.join("notes.txt").to_str().unwrap(), &options()));
    assert!(message.contains("is a file"), "{message}");
    let (kind, message) = refused(Database::in_memory().checkpoint());
    assert!(kind == ErrorKind::Unsupported && message.contains("memory"), "{message}");
}

/// All files under a directory.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

#[test]
fn a_flipped_bit_is_found_and_its_file_named() {
    let folder = Folder::new("flip");
    let db = open(&folder);
    for n in 0..200 {
        ask(&db, &format!("g.addV('a').property(id, {n}).property('text', 'the value of {n}')"));
    }
    db.checkpoint().unwrap();
    for n in 200..400 {
        ask(&db, &format!("g.addV('a').property(id, {n}).property('text', 'the value of {n}')"));
    }
    drop(db);
    verify(folder.path(), &|_| {}).unwrap();
    let mut found = std::collections::BTreeSet::new();
    let mut files = files_in(&folder.0);
    files.sort();
    for path in files.into_iter().filter(|path| !path.ends_with("LOCK")) {
        let (directory, whole) = (path.parent().unwrap(), std::fs::read(&path).unwrap());
        let is_log = directory.ends_with("wal");
        if is_log && found.contains(directory.file_name().unwrap()) {
            // The end of the log may be torn. A batch in the first file is followed by others.
            continue;
        }
        // In the log, a byte of the salt of the first batch.
        let at = if is_log { 4096 + 8 } else { whole.len() / 2 };
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        std::fs::write(&path, &flipped).unwrap();
        let (kind, message) = refused(verify(folder.path(), &|_| {}));
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(kind == ErrorKind::Damaged && message.contains(name), "{}: {kind:?} {message}", path.display());
        std::fs::write(&path, &whole).unwrap();
        found.insert(path.parent().unwrap().file_name().unwrap().to_owned());
    }
    assert!(found.iter().eq(["manifest", "pack", "wal"].iter()), "{found:?}");
    assert_eq!(verify(folder.path(), &|_| {}).unwrap().vertices, 400);
}

/// Every file under a directory with its bytes.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.clone(), std::fs::read(path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_directory_that_is_opened_to_be_read_stays_as_it_is() {
    let folder = Folder::new("to_read");
    let read = || Database::open_to_read(folder.path(), &options(), &|_| {});
    assert_eq!(read().err().expect("there is no database yet").kind(), ErrorKind::NotFound);

    let database = open(&folder);
    database.query("g.addV('a').property('x', 1)").unwrap().collect().unwrap();
    assert_eq!(read().err().expect("it is open").kind(), ErrorKind::Closed);
    drop(database);

    let before = contents(&folder.0);
    for _ in 0..3 {
        let reader = read().unwrap();
        assert_eq!(reader.recovery().unwrap().graph.vertices, 1);
        assert_eq!(reader.query("g.V().values('x')").unwrap().collect().unwrap(), [Value::I32(1)]);
        let refused = reader.query("g.addV('b')").and_then(|results| results.collect()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused}");
        assert!(reader.create_index(None, "x", false, false).is_err());
        assert_eq!(reader.query("g.V().count()").unwrap().collect().unwrap(), [Value::I64(1)]);
    }
    assert_eq!(contents(&folder.0), before);
    let database = open(&folder);
    database.query("g.addV('c')").unwrap().collect().unwrap();
}

/// A page that only the log knows begins small, and a larger one takes its place while the log is read.
#[test]
fn memory_is_counted_where_pages_are_enlarged() {
    let folder = Folder::new("enlarged");
    let database = open(&folder);
    for number in 0..40 {
        let script =
            format!("g.inject(1).repeat(union(identity(), identity())).times(7).addV('a').property('x', {number})");
        database.query(&script).unwrap().collect().unwrap();
    }
    drop(database);
    let database = open(&folder);
    for row in database.memory().rows {
        assert!(row.allocations <= row.bytes, "{} allocations of {} bytes: {}", row.allocations, row.bytes, row.name);
    }
}

#[test]
fn values_of_many_vertices_are_there_again() {
    let folder = Folder::new("many");
    let db = open(&folder);
    db.create_index(None, "rank", true, false).unwrap();
    let transaction = db.begin().unwrap();
    let ids: Vec<UserId> = (0..3_000).map(UserId::int).collect();
    let label = db.catalog().intern_label_text("person");
    let vertices = transaction.insert_vertices(label, &ids).unwrap();
    transaction.commit().unwrap();
    let write = |rank: fn(i64) -> Value| {
        let transaction = db.begin().unwrap();
        let values: Vec<_> = vertices.iter().zip(0..).map(|(vertex, n)| (*vertex, rank(n))).collect();
        transaction.set_vertex_property("rank", &values).unwrap();
        transaction
    };
    write(|n| Value::I64(n % 7)).commit().unwrap();
    write(|n| Value::I64(n % 11)).commit().unwrap();
    // One that is rolled back leaves nothing.
    drop(write(|_| Value::from("nobody")));
    let before = dump(&db);
    let of_five = "g.V().has('rank', 5).count()";
    let count = ask(&db, of_five);
    assert_eq!(count, [Value::I64((0..3_000).filter(|n| n % 11 == 5).count() as i64)]);
    drop(db);
    let db = open(&folder);
    assert_eq!(dump(&db), before);
    assert_eq!(ask(&db, of_five), count);
}
