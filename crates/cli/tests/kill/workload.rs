//! Transactions whose effects can be checked.
//!
//! Each of [`WRITERS`] writers counts its transactions in a vertex of its own. Transaction `k` of writer `w`, all in
//! one:
//!
//! - moves money between two accounts: the sum never changes;
//! - sets the writer's count to `k`;
//! - adds the mark `w-k`, unique by an index, with an edge from the writer and one back: both or none;
//! - deletes mark `w-(k-KEPT)` with its edges.
//!
//! A writer waits for the acknowledgment of a transaction before it begins the next. So after a kill, the graph has all
//! acknowledged transactions of each writer and at most one more, each of them completely.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use mangrove::{Database, DatabaseOptions, ElementKind, ErrorKind, IndexDefinition, IndexKind, Result, Value, verify};

/// The number of concurrent writers.
pub const WRITERS: usize = 3;
/// The number of marks that a writer keeps.
const KEPT: u64 = 10;
/// The number of accounts, two for each writer.
pub const ACCOUNTS: usize = 2 * WRITERS;
/// The balance of each account at the beginning.
const BALANCE: i64 = 1000;
/// Other vertices, to make the load longer.
const FILLERS: i64 = 2000;

/// Transactions of each writer that are known to be committed.
pub type Counts = [u64; WRITERS];

/// Writes the files that a graph begins with.
pub fn write_files(folder: &Path) -> Vec<PathBuf> {
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let accounts: String = (0..ACCOUNTS).map(|n| format!("a{n},{BALANCE},account\n")).collect();
    let writers: String = (0..WRITERS).map(|n| format!("w{n},0,writer\n")).collect();
    let fillers: String = (0..FILLERS).map(|n| format!("f{n},filler {n},filler\n")).collect();
    vec![
        file("accounts.csv", format!("id:ID,balance:long,:LABEL\n{accounts}")),
        file("writers.csv", format!("id:ID,n:long,:LABEL\n{writers}")),
        file("fillers.csv", format!("id:ID,text:string,:LABEL\n{fillers}")),
    ]
}

/// The indexes that keep marks unique, and the edges that lead to them.
pub fn indexes() -> [IndexDefinition; 2] {
    [(ElementKind::Vertex, "mark", IndexKind::Hash), (ElementKind::Edge, "pair", IndexKind::Ordered)].map(
        |(element, label, kind)| {
            let (label, keys) = (Some(label.into()), vec!["key".into()]);
            IndexDefinition { element, label, keys, kind, unique: true }
        },
    )
}

/// Transaction `k` of a writer as one traversal, when these accounts are to have these balances.
pub fn script(writer: usize, k: u64, balances: [(usize, i64); 2]) -> String {
    let [(from, less), (to, more)] = balances;
    let mut script = format!(
        "g.V('w{writer}').property(single, 'n', {k}L).as('w')\
         .addV('mark').property(id, 'm{writer}-{k}').property('key', '{writer}-{k}').as('m')\
         .addE('pair').from('w').to('m').property('key', '{writer}-{k}').addE('pair').from('m').to('w')\
         .V('a{from}').property(single, 'balance', {less}L).V('a{to}').property(single, 'balance', {more}L)"
    );
    if let Some(old) = k.checked_sub(KEPT).filter(|&old| old > 0) {
        script.push_str(&format!(".V('m{writer}-{old}').drop()"));
    }
    script
}

fn ask(db: &Database, script: &str) -> Vec<Value> {
    db.query(script).and_then(|results| results.collect()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

pub fn long(db: &Database, script: &str) -> Option<i64> {
    match ask(db, script).as_slice() {
        [Value::I64(n)] => Some(*n),
        [Value::I32(n)] => Some(i64::from(*n)),
        [] => None,
        other => panic!("{script}: {other:?}"),
    }
}

/// Opens the database of a killed process and checks it against the acknowledged transactions. Returns the transactions
/// that it has. With `read_all`, verifies all files first.
pub fn check(directory: &Path, acknowledged: Counts, read_all: bool, what: &str) -> Counts {
    let directory = directory.to_str().expect("a temporary directory has a name of text");
    if read_all {
        match verify(directory, &|_| {}) {
            Ok(_) => {}
            // The process was killed before it created a database.
            Err(error) if error.kind() == ErrorKind::NotFound && acknowledged == Counts::default() => {}
            Err(error) => panic!("{what}: {error}"),
        }
    }
    let opened: Result<Database> = Database::open(directory, &DatabaseOptions::default());
    let db = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
    if db.is_empty() {
        assert_eq!(acknowledged, Counts::default(), "{what}: everything is gone");
        return acknowledged;
    }
    assert_eq!(long(&db, "g.V().hasLabel('filler').count()"), Some(FILLERS), "{what}: a load is there whole");
    let total = long(&db, "g.V().hasLabel('account').values('balance').sum()");
    assert_eq!(total, Some(BALANCE * ACCOUNTS as i64), "{what}: half a transfer");
    let mut counts = Counts::default();
    let mut marks = BTreeSet::new();
    for (writer, count) in counts.iter_mut().enumerate() {
        let n = long(&db, &format!("g.V('w{writer}').values('n')")).expect("a writer counts");
        *count = u64::try_from(n).unwrap();
        let told = acknowledged[writer];
        assert!(
            *count == told || *count == told + 1,
            "{what}: writer {writer} was told of {told} transactions, and {count} are there"
        );
        marks.extend((count.saturating_sub(KEPT - 1).max(1)..=*count).map(|k| format!("{writer}-{k}")));
    }
    let found = ask(&db, "g.V().hasLabel('mark').values('key')");
    let found_set: BTreeSet<String> = found
        .iter()
        .map(|key| match key {
            Value::String(text) => text.to_string(),
            other => panic!("{what}: a mark has the key {other:?}"),
        })
        .collect();
    assert_eq!((found.len(), &found_set), (marks.len(), &marks), "{what}: marks");
    let paired = "g.V().hasLabel('mark').where(__.out('pair').hasLabel('writer')).where(__.in('pair').hasLabel('writer')).count()";
    assert_eq!(long(&db, paired), Some(marks.len() as i64), "{what}: half a pair of edges");
    assert_eq!(long(&db, "g.E().count()"), Some(2 * marks.len() as i64), "{what}: edges");
    for key in &marks {
        let by_index = format!("g.V().has('mark', 'key', '{key}').count()");
        assert_eq!(long(&db, &by_index), Some(1), "{what}: mark {key} by its index");
        let by_index = format!("g.E().has('pair', 'key', '{key}').where(inV().has('key', '{key}')).count()");
        assert_eq!(long(&db, &by_index), Some(1), "{what}: the edge to mark {key} by its index");
    }
    counts
}
