//! Indexes of edges, as clients meet them: created, listed and dropped by services, used by traversals, kept by a
//! directory.

use std::path::PathBuf;

use mangrove::{
    Database, DatabaseOptions, ElementKind, Error, ErrorKind, IndexDefinition, IndexKind, LoadOptions, Value, verify,
};

/// A directory for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mangrove-edge-indexes-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
fn all(db: &Database, script: &str) -> Vec<Value> {
    db.query(script).and_then(|results| results.collect()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

#[track_caller]
fn failure(db: &Database, script: &str) -> Error {
    db.query(script).and_then(|results| results.collect()).expect_err(script)
}

fn field(row: &Value, name: &str) -> Value {
    let Value::Map(entries) = row else { panic!("{row:?} is no map") };
    let found = entries.iter().find(|(key, _)| *key == Value::from(name));
    found.unwrap_or_else(|| panic!("{row:?} has no {name}")).1.clone()
}

fn network(db: &Database) {
    all(db, "g.addV('person').property('name', 'ada').addV('person').property('name', 'bob')");
    for (since, weight) in [(2010, 0.5), (2010, 1.5), (2012, 0.25), (2015, 2.0)] {
        all(
            db,
            &format!(
                "g.V().has('name', 'ada').as('a').V().has('name', 'bob').addE('knows').from('a')\
                 .property('since', {since}).property('weight', {weight}d)"
            ),
        );
    }
    all(db, "g.V().has('name', 'ada').as('a').V().has('name', 'bob').addE('likes').from('a').property('since', 2010)");
}

/// The weights of the edges that a filter leaves, ascending.
fn weights(db: &Database, filter: &str) -> Vec<Value> {
    all(db, &format!("g.E(){filter}.values('weight').order()"))
}

const FILTERS: [&str; 8] = [
    ".hasLabel('knows').has('since', 2010)",
    ".has('knows', 'since', within(2010, 2015, 'x'))",
    ".hasLabel('knows').has('since', gt(2010))",
    ".hasLabel('knows').has('since', between(2010, 2015))",
    ".has('since', 2010)",
    ".hasLabel('knows').has('since', 2010).has('weight', gt(1.0))",
    ".hasLabel('knows', 'likes').has('since', 2010)",
    ".hasLabel('knows').has('since', 2010L).where(outV().has('name', 'ada'))",
];

#[test]
fn traversals_use_an_index_of_edges_and_answer_as_before() {
    let db = Database::in_memory();
    network(&db);
    let before = FILTERS.map(|filter| weights(&db, filter));
    assert!(before.iter().all(|found| !found.is_empty()), "{before:?}");
    let create = "g.call('mangrove.index.create').with('element', 'edge').with('label', 'knows').with('key', 'since')";
    for kind in ["hash", "ordered"] {
        let made = all(&db, &format!("{create}.with('kind', '{kind}')"));
        assert_eq!(field(&made[0], "element"), "edge".into());
        assert_eq!(field(&made[0], "kind"), kind.into());
        assert_eq!((field(&made[0], "entries"), field(&made[0], "distinct")), (Value::I64(4), Value::I64(3)));
        let by_index =
            |filter: &str| db.explain(&format!("g.E(){filter}")).unwrap().contains("edges by index knows.since");
        let used = FILTERS.map(by_index);
        let ranges = kind == "ordered";
        assert_eq!(used, [true, true, ranges, ranges, false, true, false, true], "{kind}");
        assert_eq!(FILTERS.map(|filter| weights(&db, filter)), before, "{kind}");
        // An index of vertices with these names would be another one.
        let error = failure(&db, "g.call('mangrove.index.drop').with('label', 'knows').with('key', 'since')");
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        let drop = create.replace("create", "drop");
        assert_eq!(all(&db, &drop).len(), 1);
        assert_eq!(all(&db, "g.call('mangrove.index.list')").len(), 0);
    }
}

#[test]
fn wrong_arguments_are_named() {
    let db = Database::in_memory();
    network(&db);
    let create = "g.call('mangrove.index.create').with('label', 'knows').with('key', 'since')";
    for (with, expected) in [
        (".with('element', 'edges')", "'element' is 'vertex' or 'edge', not 'edges'"),
        (".with('element', 1)", "'element' is a string, not a"),
        (".with('element', 'edge').with('kind', 'btree')", "'hash' or 'ordered', not 'btree'"),
    ] {
        let error = failure(&db, &format!("{create}{with}"));
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains(expected), "{error}");
    }
    let error = failure(&db, &format!("{create}.with('element', 'edge').with('unique', true)"));
    assert_eq!(error.kind(), ErrorKind::DuplicateId);
    assert!(error.message().contains("two edges have 'since' = 2010"), "{error}");
    assert!(db.indexes().is_empty());
}

#[test]
fn a_merge_finds_edges_by_their_index() {
    let db = Database::in_memory();
    network(&db);
    let keys = vec!["serial".into()];
    let unique = IndexDefinition { element: ElementKind::Edge, keys, unique: true, ..IndexDefinition::default() };
    db.define_index(&unique).unwrap();
    let merge = |serial: i32| {
        format!(
            "g.mergeE([(T.label): 'knows', serial: {serial}]).option(onCreate, [(Direction.OUT): a, (Direction.IN): b])\
             .option(onMatch, [met: true]).values('met')"
        )
    };
    all(&db, "g.E().hasLabel('knows').has('since', 2012).property('serial', 7)");
    assert_eq!(all(&db, &merge(7).replace(": a,", ": 1,").replace(": b]", ": 2]")), [true.into()]);
    let error = failure(&db, "g.E().hasLabel('knows').has('since', 2015).property('serial', 7)");
    assert_eq!(error.kind(), ErrorKind::DuplicateId, "{error}");
    assert!(error.message().contains("an edge with 'serial' = 7 exists already"), "{error}");
    assert_eq!(all(&db, "g.E().has('serial').count()"), [Value::I64(1)]);
}

#[test]
fn a_directory_keeps_indexes_of_edges() {
    let folder = Folder::new("kept");
    let path = folder.0.to_str().unwrap();
    let open = || Database::open(path, &DatabaseOptions::default()).unwrap();
    let definition = |key: &str, kind, unique| IndexDefinition {
        element: ElementKind::Edge,
        label: Some("knows".into()),
        keys: vec![key.into()],
        kind,
        unique,
    };
    let mut db = open();
    network(&db);
    db.define_index(&definition("since", IndexKind::Ordered, false)).unwrap();
    db.define_index(&definition("weight", IndexKind::Hash, true)).unwrap();
    let dropped = db.define_index(&definition("since", IndexKind::Hash, false)).unwrap();
    db.drop_index(dropped).unwrap();
    let expected = FILTERS.map(|filter| weights(&db, filter));
    let known: Vec<_> = db.indexes().into_iter().map(|index| (index.id, index.definition, index.entries)).collect();
    assert_eq!(known.len(), 2);
    // From the log, from a checkpoint, and from both.
    for round in 0..3 {
        if round > 0 {
            drop(db);
            db = open();
        }
        let found: Vec<_> = db.indexes().into_iter().map(|index| (index.id, index.definition, index.entries)).collect();
        assert_eq!(found, known, "round {round}");
        assert_eq!(FILTERS.map(|filter| weights(&db, filter)), expected, "round {round}");
        assert!(db.explain("g.E().hasLabel('knows').has('since', gt(2010))").unwrap().contains("by index"));
        let error = failure(&db, "g.E().has('knows', 'since', 2015).property('weight', 0.5d)");
        assert_eq!(error.kind(), ErrorKind::DuplicateId, "{error}");
        if round == 1 {
            db.checkpoint().unwrap();
            all(&db, "g.E().has('knows', 'since', 2015).property('weight', 9.0d)");
            all(&db, "g.E().has('knows', 'since', 2015).property('weight', 2.0d)");
        }
        db.collect_garbage();
    }
    drop(db);
    let report = verify(path, &|_| {}).unwrap();
    let checked: Vec<_> = report.indexes.iter().map(|index| (index.element, &*index.label, index.entries)).collect();
    assert_eq!(checked, [(ElementKind::Edge, "knows", 4), (ElementKind::Edge, "knows", 4)]);
}

#[test]
fn a_load_fills_indexes_of_edges() {
    let folder = Folder::new("load");
    let file = |name: &str, text: String| {
        let path = folder.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let people: String = (0..50).map(|n| format!("p{n},person\n")).collect();
    let edges: String = (0..400).map(|n| format!("p{},p{},knows,{}\n", n % 50, n / 8, 2000 + n % 20)).collect();
    let files = [
        file("people.csv", format!("id:ID,:LABEL\n{people}")),
        file("knows.csv", format!(":START_ID,:END_ID,:TYPE,since:int\n{edges}")),
    ];
    let db = Database::in_memory();
    let keys = vec!["since".into()];
    let definition = IndexDefinition { element: ElementKind::Edge, keys, ..IndexDefinition::default() };
    db.define_index(&definition).unwrap();
    db.load(&files, &LoadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(all(&db, "g.E().has('since', 2007).count()"), [Value::I64(20)]);
    let [index] = &db.indexes()[..] else { panic!("there is one index") };
    assert_eq!((index.entries, index.distinct), (400, 20));
}
