//! Loads into graphs that are in use, and export of what is in them.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use mangrove::{Database, ExportFormat, ExportOptions, LoadOptions, UpsertKeys, Value};

/// Files for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("upsert-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(path.join(name), text).unwrap());
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: a file that stays behind lies in the build folder.
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
fn what_is_there_is_replaced_and_the_rest_stays() {
    let folder = Folder::new(
        "ids",
        &[
            ("v.csv", "~id,~label,age:int\n1,person,31\n3,person,5\n3,person,6\n"),
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
    let error = db.upsert(&[folder.file("f.csv")], &options, UpsertKeys::default(), &mut |_| {}).unwrap_err();
    assert!(error.message().contains("edge 7 exists with other ends"), "{error}");
    let keys = UpsertKeys::parse(&["a.mail".to_owned()]).unwrap();
    let error = db.upsert(&[folder.file("v.csv")], &options, keys, &mut |_| {}).unwrap_err();
    assert!(error.message().contains("no value under 'mail'"), "{error}");
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
