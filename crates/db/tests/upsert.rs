//! Loads into graphs that are in use, and export of what is in them.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use mangrove::{Database, ExportFormat, ExportOptions, LoadOptions, Mapping, UpsertKeys, Value};

/// Files for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("upsert-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for (name, text) in files {
            let file = path.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: a remaining file is in the build folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn number(db: &Database, script: &str) -> i64 {
    match db.query(script).unwrap().collect().unwrap().as_slice() {
        [Value::I64(number)] => *number,
        other => panic!("{script}: {other:?}"),
    }
}

fn upsert(db: &Database, files: &[PathBuf], keys: &[&str]) {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let options = LoadOptions { max_rejects: 0, ..LoadOptions::default() };
    db.upsert(files, &options, UpsertKeys::parse(&keys).unwrap(), &mut |_| {}).unwrap();
}

#[test]
fn existing_values_are_replaced_and_the_rest_stays() {
    let folder = Folder::new(
        "ids",
        &[
            ("v.csv", "~id,~label,age:int\n1,person,31\n3,person,6\n"),
            ("e.csv", "~from,~to,~label,since:int\n1,2,knows,7\n1,3,knows,8\n"),
        ],
    );
    let db = Database::in_memory();
    db.query("g.addV('person').property(id, 1L).property('age', 30).property('name', 'ann').as('a').addV('person').property(id, 2L).addE('knows').from('a').property('since', 1)")
        .unwrap()
        .collect()
        .unwrap();
    // Twice: a load that was stopped is run again.
    for _ in 0..2 {
        upsert(&db, &[folder.file("v.csv"), folder.file("e.csv")], &[]);
        assert_eq!(number(&db, "g.V().count()"), 3);
        assert_eq!(number(&db, "g.E().count()"), 2);
        assert_eq!(
            number(
                &db,
                "g.V(1L).has('age', 31).has('name', 'ann').outE('knows').has('since', 7).inV().hasId(2L).count()"
            ),
            1
        );
        assert_eq!(number(&db, "g.V(3L).has('age', 6).count()"), 1);
    }
}

#[test]
fn vertices_are_found_by_a_key_with_and_without_an_index() {
    let folder = Folder::new(
        "keys",
        &[
            (
                "v.jsonl",
                "{\"vertex\":\"x\",\"label\":\"person\",\"properties\":{\"mail\":\"a@x\",\"age\":40}}\n{\"vertex\":\"y\",\"label\":\"person\",\"properties\":{\"mail\":\"b@x\"}}\n",
            ),
            ("e.csv", ":START_ID(Person),:END_ID(Person),:TYPE\na@x,b@x,knows\n"),
        ],
    );
    for index in [false, true] {
        let db = Database::in_memory();
        db.query("g.addV('person').property('mail', 'a@x').addV('other').property('mail', 'b@x')")
            .unwrap()
            .collect()
            .unwrap();
        if index {
            db.query(
                "g.call('mangrove.index.create').with('label', 'person').with('key', 'mail').with('unique', true)",
            )
            .unwrap()
            .collect()
            .unwrap();
        }
        for _ in 0..2 {
            upsert(&db, &[folder.file("v.jsonl")], &["person.mail"]);
            upsert(&db, &[folder.file("e.csv")], &["person.mail"]);
        }
        assert_eq!(number(&db, "g.V().hasLabel('person').count()"), 2, "index: {index}");
        assert_eq!(
            number(&db, "g.V().has('person', 'mail', 'a@x').has('age', 40).out('knows').has('mail', 'b@x').count()"),
            1
        );
        assert_eq!(number(&db, "g.E().count()"), 1);
    }
}

#[test]
fn keys_and_edges_that_cannot_be_are_refused() {
    assert!(UpsertKeys::parse(&["person".to_owned()]).unwrap_err().message().contains("LABEL.KEY"));
    let folder = Folder::new(
        "refused",
        &[
            ("v.csv", "~id,~label\n1,a\n2,a\n"),
            ("e.csv", "~id,~from,~to,~label\n7,1,2,k\n"),
            ("f.csv", "~id,~from,~to,~label\n7,2,1,k\n"),
        ],
    );
    let db = Database::in_memory();
    upsert(&db, &[folder.file("v.csv"), folder.file("e.csv")], &[]);
    let options = LoadOptions::default();
    let rejects = folder.file("rejects.out");
    let keeping = LoadOptions { rejects: Some(rejects.clone()), ..LoadOptions::default() };
    let report = db.upsert(&[folder.file("f.csv")], &keeping, UpsertKeys::default(), &mut |_| {}).unwrap();
    assert_eq!((report.edges, report.rejects), (0, 1));
    let reasons = std::fs::read_to_string(&rejects).unwrap();
    assert!(reasons.contains("edge 7 exists with other ends"), "{reasons}");
    let refused = |key: &str, edge_key: &[&str], files: &[&str]| {
        let edge_keys: Vec<String> = edge_key.iter().map(|key| (*key).to_owned()).collect();
        let keys = UpsertKeys::parse(&[key.to_owned()]).unwrap().with_edge_keys(&edge_keys).unwrap();
        let files: Vec<PathBuf> = files.iter().map(|file| folder.file(file)).collect();
        db.upsert(&files, &options, keys, &mut |_| {}).unwrap_err().message().to_owned()
    };
    let unknown = refused("person.mail", &[], &["v.csv"]);
    assert!(
        unknown.contains("nothing in this load has the label 'person'") && unknown.contains("labels are a"),
        "{unknown}"
    );
    let unknown = refused("a.name", &["kk.x"], &["v.csv", "e.csv"]);
    assert!(unknown.contains("a.name") && unknown.contains("no property 'name'"), "{unknown}");
    assert_eq!(number(&db, "g.V().count()"), 2);
    assert_eq!(number(&db, "g.E().count()"), 1);
}

/// The payments of the report: three between two accounts.
const PAYMENTS: &str = "from,to,amount\n1,2,10\n1,2,20\n1,2,30\n";

#[test]
fn parallel_edges_are_neither_lost_nor_doubled() {
    let folder = Folder::new(
        "parallel",
        &[
            ("account.csv", "id,name\n1,a\n2,b\n"),
            ("pay.csv", PAYMENTS),
            ("more/pay.csv", "from,to,amount\n1,2,40\n1,2,10\n1,2,20\n1,2,30\n"),
            ("other/pay.csv", "from,to,amount\n1,2,50\n1,2,60\n"),
        ],
    );
    let amounts = |db: &Database| {
        let script = "g.E().values('amount').order().fold()";
        db.query(script).unwrap().collect().unwrap().remove(0)
    };
    let list = |amounts: &[i64]| Value::list(amounts.iter().map(|amount| Value::I64(*amount)).collect());
    let db = Database::in_memory();
    let load = |files: &[&str]| {
        let files: Vec<PathBuf> = files.iter().map(|file| folder.file(file)).collect();
        db.upsert(&files, &LoadOptions::default(), UpsertKeys::default(), &mut |_| {}).unwrap()
    };
    let report = load(&["account.csv", "pay.csv"]);
    assert_eq!((report.edges, report.upserts.created), (3, 5));
    assert_eq!(amounts(&db), list(&[10, 20, 30]));
    let report = load(&["account.csv", "pay.csv"]);
    assert_eq!((report.edges, report.upserts.unchanged), (3, 5));
    // New elements are added, existing ones are found.
    let report = load(&["more/pay.csv"]);
    assert_eq!((report.upserts.created, report.upserts.unchanged, report.rejects), (1, 3, 0));
    assert_eq!(amounts(&db), list(&[10, 20, 30, 40]));
    // These rows may mean any of the four edges.
    let report = load(&["other/pay.csv"]);
    assert_eq!((report.edges, report.rejects), (0, 2));
    assert_eq!(amounts(&db), list(&[10, 20, 30, 40]));
}

#[test]
fn a_lone_edge_between_two_vertices_is_updated() {
    let folder = Folder::new(
        "lone",
        &[
            ("account.csv", "id\n1\n2\n"),
            ("pay.csv", "from,to,amount\n1,2,10\n"),
            ("new/pay.csv", "from,to,amount\n1,2,11\n"),
        ],
    );
    let db = Database::in_memory();
    upsert(&db, &[folder.file("account.csv"), folder.file("pay.csv")], &[]);
    let report =
        db.upsert(&[folder.file("new/pay.csv")], &LoadOptions::default(), UpsertKeys::default(), &mut |_| {}).unwrap();
    assert_eq!((report.upserts.updated, report.upserts.created), (1, 0));
    assert_eq!(number(&db, "g.E().has('amount', 11).count()"), 1);
    assert_eq!(number(&db, "g.E().count()"), 1);
}

#[test]
fn an_edge_key_tells_parallel_edges_apart() {
    let folder = Folder::new(
        "edge-key",
        &[
            ("account.csv", "id\n1\n2\n"),
            ("pay.csv", "from,to,nr,amount\n1,2,a,10\n1,2,b,20\n"),
            ("new/pay.csv", "from,to,nr,amount\n1,2,b,21\n1,2,c,30\n1,2,c,31\n1,2,,5\n"),
        ],
    );
    let mapping = Mapping::parse("[[file]]\nmatch = \"pay.csv\"\nkey = \"nr\"\n").unwrap();
    let given = UpsertKeys::default().with_edge_keys(&["pay.nr".to_owned()]).unwrap();
    for (mapping, keys) in [(None, given), (Some(mapping), UpsertKeys::default())] {
        let db = Database::in_memory();
        upsert(&db, &[folder.file("account.csv")], &[]);
        let options = LoadOptions { mapping, ..LoadOptions::default() };
        let load = |file: &str| db.upsert(&[folder.file(file)], &options, keys.clone(), &mut |_| {}).unwrap();
        assert_eq!(load("pay.csv").upserts.created, 2);
        let report = load("new/pay.csv");
        // The second row of key c, and the one without a key, are no edges.
        assert_eq!((report.upserts.created, report.upserts.updated, report.rejects), (1, 1, 2));
        assert_eq!(number(&db, "g.E().values('amount').sum()"), 10 + 21 + 30);
        assert_eq!(load("pay.csv").upserts.updated, 1);
    }
}

/// Without an index and with one; the vertex that is there twice under the key is not guessed at.
#[test]
fn a_key_of_several_vertices_or_properties() {
    let folder = Folder::new(
        "several",
        &[
            ("plane.csv", "name,icao,seats\nA,x,1\nA,y,2\nB,,3\n"),
            ("new/plane.csv", "name,icao,seats\nA,y,20\nB,,30\nB,z,40\n"),
            ("twice/plane.csv", "name,icao,seats\nA,q,7\n"),
        ],
    );
    let rules = "[[file]]\nmatch = \"plane.csv\"\nkind = \"vertex\"\nkey = [\"name\", \"icao\"]\n";
    let options = LoadOptions { mapping: Some(Mapping::parse(rules).unwrap()), ..LoadOptions::default() };
    let db = Database::in_memory();
    let load = |file: &str, keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        db.upsert(&[folder.file(file)], &options, UpsertKeys::parse(&keys).unwrap(), &mut |_| {}).unwrap()
    };
    assert_eq!(load("plane.csv", &[]).upserts.created, 3);
    let report = load("new/plane.csv", &[]);
    assert_eq!((report.upserts.created, report.upserts.updated), (1, 2));
    assert_eq!(number(&db, "g.V().hasLabel('plane').values('seats').sum()"), 1 + 20 + 30 + 40);
    let report = load("twice/plane.csv", &["plane.name"]);
    assert_eq!((report.vertices, report.rejects), (0, 1));
    assert_eq!(number(&db, "g.V().has('icao', 'q').count()"), 0);
}

/// Each combination of values is a key of the vertex. Their number is a product, so it has a limit.
#[test]
fn combinations_of_values_under_a_key_are_limited() {
    let folder = Folder::new("combinations", &[("plane.csv", "name,icao,seats\nn3,i7,1\n")]);
    let rules = "[[file]]\nmatch = \"plane.csv\"\nkind = \"vertex\"\nkey = [\"name\", \"icao\"]\n";
    let options = LoadOptions { mapping: Some(Mapping::parse(rules).unwrap()), ..LoadOptions::default() };
    let ask = |db: &Database, script: &str| drop(db.query(script).unwrap().collect().unwrap());
    // One vertex with so many values under each property.
    let plane = |count: i32| {
        let db = Database::in_memory();
        ask(&db, "g.addV('plane').property(id, 'p')");
        for from in (0..count).step_by(64) {
            let one = |n: i32| format!(".property(list, 'name', 'n{n}').property(list, 'icao', 'i{n}')");
            let values: String = (from..count.min(from + 64)).map(one).collect();
            ask(&db, &format!("g.V('p'){values}"));
        }
        db
    };
    let load = |db: &Database| db.upsert(&[folder.file("plane.csv")], &options, UpsertKeys::default(), &mut |_| {});
    let upserts = load(&plane(256)).unwrap().upserts;
    assert_eq!((upserts.created, upserts.updated), (0, 1));
    let db = plane(257);
    let error = load(&db).unwrap_err();
    assert_eq!(error.kind(), mangrove::ErrorKind::InvalidArgument, "{error}");
    for part in ["the vertex p of 'plane'", "more than 65536 combinations", "(name, icao)", "remove values"] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    // Many values of one property are no product.
    ask(&db, "g.V('p').properties('icao').drop()");
    assert_eq!(load(&db).unwrap().upserts.created, 1);
}

/// If vertices could not be found again, nothing is written. The message names the file and the missing option.
#[test]
fn vertices_that_cannot_be_recognized_are_refused() {
    let folder = Folder::new(
        "unrecognized",
        &[
            ("person.csv", "id:ID(Person),name\n1,Ann\n"),
            ("place.csv", "id:ID(Place),name\n1,Rome\n"),
            ("thing.csv", "name\nx\n"),
        ],
    );
    let db = Database::in_memory();
    let load = |file: &str, keys: &[&str], map: Option<&str>| {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let options = LoadOptions { mapping: map.map(|map| Mapping::parse(map).unwrap()), ..LoadOptions::default() };
        db.upsert(&[folder.file(file)], &options, UpsertKeys::parse(&keys).unwrap(), &mut |_| {})
    };
    let message =
        |file: &str, keys: &[&str], map: Option<&str>| load(file, keys, map).unwrap_err().message().to_owned();
    let refused = message("person.csv", &[], None);
    assert!(refused.contains("person.csv") && refused.contains("id space 'Person'"), "{refused}");
    assert!(refused.contains("--key person.id") && refused.contains("key = \"id\""), "{refused}");
    let refused = message("person.csv", &["persn.id"], None);
    assert!(refused.contains("--key person.id"), "{refused}");
    let refused = message("person.csv", &["person.nam"], None);
    assert!(refused.contains("did you mean person.name?"), "{refused}");
    let refused = message("person.csv", &["person.id", "prson.id"], None);
    assert!(refused.contains("did you mean person.id?"), "{refused}");
    let thing = "[[file]]\nmatch = \"thing.csv\"\nkind = \"vertex\"\n";
    let refused = message("thing.csv", &[], Some(thing));
    assert!(refused.contains("no id") && refused.contains("properties are name"), "{refused}");
    let refused = message("thing.csv", &[], Some(&format!("{thing}key = \"nme\"\n")));
    assert!(refused.contains("there is no property 'nme' for the key"), "{refused}");
    assert_eq!(number(&db, "g.V().count()"), 0);
    for count in [(1, 0), (0, 1)] {
        let report = load("person.csv", &["person.id"], None).unwrap();
        assert_eq!((report.upserts.created, report.upserts.unchanged), count);
    }
}

/// Rows that a load rejected are mended and loaded again: alone, with the same mapping, without any key.
#[test]
fn mended_rows_of_id_spaces_find_their_vertices() {
    let map = "[defaults]\nuser_id = false\nkey = \"id\"\n[[file]]\nmatch = \"airport.csv\"\nid_space = \"airport\"\n\
               [[file]]\nmatch = \"route.csv\"\nsource_space = \"airport\"\ntarget_space = \"airport\"\n";
    let folder = Folder::new(
        "mended",
        &[
            ("airport.csv", "id,name,runways:int\n1,A,1\n2,B,two\n3,C,3\n"),
            ("route.csv", "from,to,km:int\n1,3,10\n1,2,20\n3,1,x\n"),
        ],
    );
    let rejects = folder.file("bad.csv");
    let options = LoadOptions {
        mapping: Some(Mapping::parse(map).unwrap()),
        rejects: Some(rejects.clone()),
        ..LoadOptions::default()
    };
    let db = Database::in_memory();
    let files = ["airport.csv", "route.csv"].map(|file| folder.file(file));
    let report = db.load(&files, &options, &mut |_| {}).unwrap();
    assert_eq!((report.vertices, report.edges, report.rejects), (2, 1, 3));
    let rows = folder.file("bad.csv.rows");
    for (file, wrong, right) in [("airport.csv", "two", "2"), ("route.csv", "x", "30")] {
        let text = std::fs::read_to_string(rows.join(file)).unwrap();
        std::fs::write(rows.join(file), text.replace(wrong, right)).unwrap();
    }
    // A vertex that is there already is among them.
    let text = std::fs::read_to_string(rows.join("airport.csv")).unwrap();
    std::fs::write(rows.join("airport.csv"), text + "3,C,4\n").unwrap();
    let options = LoadOptions { rejects: None, max_rejects: 0, ..options };
    let report = db.upsert(&[rows], &options, UpsertKeys::default(), &mut |_| {}).unwrap();
    assert_eq!((report.upserts.created, report.upserts.updated), (3, 1));
    assert_eq!(number(&db, "g.V().count()"), 3);
    assert_eq!(number(&db, "g.V().has('airport', 'runways', 4).has('id', 3).count()"), 1);
    assert_eq!(number(&db, "g.V().has('id', 1).out('route').has('id', 2).count()"), 1);
    assert_eq!(number(&db, "g.E().has('km', within(10, 20, 30)).count()"), 3);
}

/// A file read in a transaction is seen by that transaction, and by others when it commits.
#[test]
fn a_transaction_loads_files() {
    let folder = Folder::new(
        "transaction",
        &[("g.jsonl", "{\"vertex\":1}\n{\"vertex\":2}\n{\"edge\":null,\"from\":1,\"to\":2}\n")],
    );
    let db = Database::in_memory();
    let transaction = db.begin().unwrap();
    transaction.load(&[folder.file("g.jsonl")], &LoadOptions::default()).unwrap();
    assert_eq!(number(&db, "g.V().count()"), 0);
    transaction.commit().unwrap();
    assert_eq!(number(&db, "g.V(1L).out().hasId(2L).count()"), 1);
}

/// Several files at once, and a selection that leaves edges with one end out.
#[test]
fn exports_take_labels_and_threads() {
    let folder = Folder::new("export", &[]);
    let db = Database::in_memory();
    db.query("g.addV('a').as('x').addV('b').as('y').addV('a').as('z').addE('k').from('x').to('y').addE('k').from('x').to('z').addE('l').from('x').to('z')")
        .unwrap()
        .collect()
        .unwrap();
    let mut options = ExportOptions::new(ExportFormat::Csv);
    options.labels = vec!["a".into(), "k".into()];
    options.threads = NonZeroUsize::new(3).unwrap();
    let report = db.export(&folder.file("csv"), &options, &mut |_| Ok(())).unwrap();
    assert_eq!((report.vertices, report.edges), (2, 1));
    let loaded = Database::in_memory();
    loaded.load(&[folder.file("csv")], &LoadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(number(&loaded, "g.V().hasLabel('a').out('k').hasLabel('a').count()"), 1);
    let error = db.export(&folder.file("csv"), &options, &mut |_| Ok(())).unwrap_err();
    assert!(error.message().contains("not empty"), "{error}");
    options.labels = vec!["nothing".into()];
    assert!(db.export(&folder.file("other"), &options, &mut |_| Ok(())).is_err());
}
