//! Helpers that load a data set, run traversals, and show values as text.

use std::path::{Path, PathBuf};

use mangrove::{Database, Detached, LoadOptions, LoadReport, Mapping, Parameters, QueryOptions, Value};

use super::cases::{Case, Expected};

/// The number of virtual nodes that a traversal also runs over; also the seed that shuffles their messages.
const NODES: u16 = 3;
const SEED: u64 = 7;

/// The files, loaded with the mapping of this name that ships (`None`: the files say enough).
pub fn load(files: &[PathBuf], mapping: Option<&str>) -> (Database, LoadReport) {
    let shipped = |name| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings").join(format!("{name}.toml"));
    let mapping = mapping.map(|name| Mapping::read(&shipped(name)).unwrap());
    let db = Database::in_memory();
    let report = db.load(files, &LoadOptions { mapping, ..LoadOptions::default() }, &mut |_| {}).unwrap();
    (db, report)
}

/// As [`load`], for files without rejected rows.
pub fn load_clean(files: &[PathBuf], mapping: Option<&str>) -> Database {
    let (db, report) = load(files, mapping);
    assert_eq!(report.rejects, 0, "{files:?}");
    db
}

/// The results of a script as text.
#[track_caller]
pub fn ask(db: &Database, script: &str) -> Vec<String> {
    ask_with(db, script, &Parameters::new())
}

/// The results of a script with parameters as text.
#[track_caller]
pub fn ask_with(db: &Database, script: &str, parameters: &Parameters) -> Vec<String> {
    let results = db.prepare(script).and_then(|prepared| db.run(&prepared, parameters)?.collect());
    match results {
        Ok(values) => values.iter().map(text).collect(),
        Err(error) => panic!("{script}: {error}"),
    }
}

/// The only result of a script, an integer.
#[track_caller]
pub fn number(db: &Database, script: &str) -> i64 {
    let results = ask(db, script);
    let [result] = results.as_slice() else { panic!("{script}: {results:?}") };
    result.parse().unwrap_or_else(|_| panic!("{script}: {result}"))
}

/// Checks the cases of a file: in one stream on this thread, and over virtual nodes.
#[track_caller]
pub fn check_file(db: &Database, name: &str, cases: &str) {
    for case in Case::parse_all(cases) {
        let label = format!("{name}: {}", case.script);
        case.expected.check(&label, ask(db, &case.script));
        case.expected.check(&format!("{label} over {NODES} nodes"), ask_over_nodes(db, &case.script));
    }
}

#[track_caller]
fn ask_over_nodes(db: &Database, script: &str) -> Vec<String> {
    let results = db.prepare(script).and_then(|prepared| {
        let transaction = db.begin_read()?;
        transaction.run_on_nodes(&prepared, &Parameters::new(), &QueryOptions::default(), NODES, Some(SEED))
    });
    let results = results.unwrap_or_else(|error| panic!("{script} over {NODES} nodes: {error}"));
    results.iter().flat_map(|(value, times)| vec![text(value); usize::try_from(*times).unwrap()]).collect()
}

impl Expected {
    /// Compares results, in order where that is promised.
    #[track_caller]
    pub fn check(&self, label: &str, mut results: Vec<String>) {
        match self {
            Expected::InOrder(expected) => assert_eq!(&results, expected, "{label}"),
            Expected::AnyOrder(expected) => {
                let mut expected = expected.clone();
                expected.sort();
                results.sort();
                assert_eq!(results, expected, "{label}");
            }
        }
    }
}

/// A value as text, close to JSON: numbers without their type, paths as lists, elements as `v[id]` and `e[id]`.
pub fn text(value: &Value) -> String {
    let list = |values: &[Value]| format!("[{}]", values.iter().map(text).collect::<Vec<_>>().join(","));
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::I8(n) => n.to_string(),
        Value::I16(n) => n.to_string(),
        Value::I32(n) => n.to_string(),
        Value::I64(n) => n.to_string(),
        Value::BigInt(n) => n.to_string(),
        Value::F32(x) => x.to_string(),
        Value::F64(x) => x.to_string(),
        Value::String(s) => serde_json::to_string(s.as_str()).unwrap(),
        Value::Uuid(uuid) => uuid.to_string(),
        Value::DateTime(at) => at.to_string(),
        Value::List(values) | Value::Set(values) => list(values),
        Value::Map(entries) => {
            let entries: Vec<_> = entries.iter().map(|(k, v)| format!("{}:{}", text(k), text(v))).collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Path(path) => list(&path.objects),
        Value::Token(token) => format!("T.{}", format!("{token:?}").to_lowercase()),
        Value::Detached(detached) => element(detached),
        other => panic!("no test should meet a {}", other.type_name()),
    }
}

fn element(detached: &Detached) -> String {
    match detached {
        Detached::Vertex { id, .. } => format!("v[{}]", text(id)),
        Detached::Edge { id, .. } => format!("e[{}]", text(id)),
        Detached::VertexProperty(property) => format!("vp[{}->{}]", property.key, text(&property.value)),
        Detached::Property { key, value } => format!("p[{key}->{}]", text(value)),
    }
}
