//! Helpers for the tests of all generators.

use std::path::{Path, PathBuf};

use mangrove::{Database, LoadOptions, Mapping, Result, Value};
use mangrove_generate::{CountingSink, GenerateProgress, GraphCounts, GraphSink, MemorySink, NullSink};

/// A generator with its spec.
pub type Generate<'a> = &'a dyn Fn(&mut dyn GraphSink) -> Result<()>;

/// The counts of a generated graph.
pub fn counts(generate: Generate<'_>) -> GraphCounts {
    let (mut nowhere, mut silent) = (NullSink, |_: GenerateProgress, _: &GraphCounts| ());
    let mut counted = CountingSink::new(&mut nowhere, &mut silent);
    generate(&mut counted).unwrap();
    counted.counts
}

/// The graph in a database.
pub fn database(generate: Generate<'_>) -> Database {
    let database = Database::in_memory();
    let mut sink = MemorySink::new(&database).unwrap();
    generate(&mut sink).unwrap();
    sink.finish().unwrap();
    database
}

/// Files of this folder, with the mapping beside them if there is one, in a database.
pub fn loaded(folder: &Path) -> Database {
    let database = Database::in_memory();
    let mapping = folder.join("mapping.toml");
    let mapping = mapping.exists().then(|| Mapping::read(&mapping).unwrap());
    let files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_none_or(|extension| extension != "toml"))
        .collect();
    let options = LoadOptions { mapping, ..LoadOptions::default() };
    let report = database.load(&files, &options, &mut |_| ()).unwrap();
    assert_eq!((report.rejects, report.skipped), (0, Vec::new()));
    database
}

/// An empty folder for a test.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The results of a script.
pub fn ask(database: &Database, script: &str) -> Vec<Value> {
    database
        .query(script)
        .unwrap_or_else(|e| panic!("{script}: {e}"))
        .collect()
        .unwrap_or_else(|e| panic!("{script}: {e}"))
}

/// The only result of a script, a number.
pub fn number(database: &Database, script: &str) -> i64 {
    match ask(database, script).as_slice() {
        [Value::I64(number)] => *number,
        other => panic!("{script}: {other:?}"),
    }
}

/// All of a graph as sorted texts, with vertices named by what `name` reads of them.
pub fn dump(database: &Database, name: &str) -> Vec<String> {
    let vertices = format!("g.V().project('v', 'l', 'p').by({name}).by(label).by(valueMap())");
    let edges =
        format!("g.E().project('s', 'l', 't', 'p').by(outV().{name}).by(label).by(inV().{name}).by(valueMap())");
    let mut lines: Vec<String> =
        [vertices, edges].iter().flat_map(|script| ask(database, script)).map(|row| sorted(&row)).collect();
    lines.sort_unstable();
    lines
}

/// A value as text, with the entries of maps in order.
fn sorted(value: &Value) -> String {
    match value {
        Value::Map(entries) => {
            let mut entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}={}", sorted(key), sorted(value))).collect();
            entries.sort_unstable();
            format!("{{{}}}", entries.join(","))
        }
        Value::List(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => format!("{other:?}"),
    }
}

/// Checks that two dumps are equal and names the first difference.
#[track_caller]
pub fn check_same(left: &[String], right: &[String]) {
    let different = left.iter().zip(right).find(|(left, right)| left != right);
    assert_eq!(different, None);
    assert_eq!(left.len(), right.len());
}
