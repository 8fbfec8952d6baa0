//! Loads that the program ends: the graph is as empty as before, and can be loaded then.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mangrove::{Database, ErrorKind, Interrupt, LoadOptions, UpsertKeys, Value};

/// A graph of some batches, in a folder of its own.
struct Files {
    folder: PathBuf,
    paths: Vec<PathBuf>,
}

impl Files {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("mangrove-interrupted-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let people: String = (0..30_000).map(|n| format!("{n},person {n},person\n")).collect();
        let knows: String = (0..60_000).map(|n| format!("{},{},knows\n", n % 7, n % 30_000)).collect();
        let paths = vec![folder.join("people.csv"), folder.join("knows.csv")];
        std::fs::write(&paths[0], format!("id:ID,name,:LABEL\n{people}")).unwrap();
        std::fs::write(&paths[1], format!(":START_ID,:END_ID,:TYPE\n{knows}")).unwrap();
        Files { folder, paths }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Best effort: it is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Options with an interrupt that is raised when it was asked so often, and the number of times it was asked.
fn raised_after(asks_max: u32) -> (LoadOptions, Arc<AtomicU32>) {
    let asks = Arc::new(AtomicU32::new(0));
    let counted = asks.clone();
    let interrupt = Interrupt::new(move || counted.fetch_add(1, Ordering::Relaxed) >= asks_max);
    (LoadOptions { interrupt: Some(interrupt), ..LoadOptions::default() }, asks)
}

fn count(db: &Database, query: &str) -> Vec<Value> {
    db.query(query).unwrap().collect().unwrap()
}

#[test]
fn a_load_ends_wherever_it_is_interrupted_and_leaves_nothing() {
    let files = Files::new("load");
    let db = Database::in_memory();
    let mut asks_max = 0;
    loop {
        let (options, asks) = raised_after(asks_max);
        let Err(error) = db.load(&files.paths, &options, &mut |_| {}) else {
            // Some asks for each block of rows, and more while the lists are packed.
            assert!(asks.load(Ordering::Relaxed) > 40, "{asks:?}");
            break;
        };
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        assert!(error.message().contains("the load was cancelled"), "{error}");
        assert_eq!(asks.load(Ordering::Relaxed), asks_max + 1, "a load that is cancelled asks no more");
        assert_eq!(count(&db, "g.V().count()"), [Value::I64(0)]);
        assert!(db.is_empty());
        asks_max += 6;
    }
    assert_eq!(count(&db, "g.V().count()"), [Value::I64(30_000)]);
    assert_eq!(
        count(&db, "g.V(3).out('knows').count()"),
        count(&db, "g.E().has(T.label, 'knows').outV().hasId(3).count()")
    );
}

#[test]
fn an_upsert_that_is_interrupted_can_be_run_again() {
    let files = Files::new("upsert");
    let db = Database::in_memory();
    let (options, _) = raised_after(9);
    let error = db.upsert(&files.paths, &options, UpsertKeys::default(), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    let (options, _) = raised_after(u32::MAX);
    let report = db.upsert(&files.paths, &options, UpsertKeys::default(), &mut |_| {}).unwrap();
    assert!(report.upserts.unchanged > 0, "the batches before the interrupt were committed");
    assert_eq!(count(&db, "g.V().count()"), [Value::I64(30_000)]);
}
