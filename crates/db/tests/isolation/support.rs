//! Short forms of queries and transactions, shared by the tests.

use mangrove::{
    Database, ElementKind, ErrorKind, IndexDefinition, IndexKind, Isolation, Parameters, Result, Transaction,
    TransactionOptions, Value,
};
use mangrove_histories::Level;

pub const BOTH: [Isolation; 2] = [Isolation::Snapshot, Isolation::Serializable];

/// True if serializable transactions are validated. If false, the tests require only snapshot isolation of them.
pub const VALIDATED: bool = true;

/// Returns true if it is decided whether this level allows write skew: snapshot does, serializable does not.
pub fn skew_is_decided(isolation: Isolation) -> bool {
    VALIDATED || isolation == Isolation::Snapshot
}

/// The level that the histories of an isolation level must satisfy.
pub fn promised(isolation: Isolation) -> Level {
    match isolation {
        Isolation::Serializable if VALIDATED => Level::StrictSerializable,
        _ => Level::StrongSnapshot,
    }
}

pub fn database(script: &str) -> Database {
    let database = Database::in_memory();
    database.query(script).unwrap().collect().unwrap();
    database
}

/// Creates indexes of vertices and of edges: for equality on `hashed`, and ordered ones on `sorted`.
pub fn create_indexes(database: &Database) {
    for element in [ElementKind::Vertex, ElementKind::Edge] {
        for (key, kind) in [("hashed", IndexKind::Hash), ("sorted", IndexKind::Ordered)] {
            let keys = vec![key.into()];
            database.define_index(&IndexDefinition { element, keys, kind, ..IndexDefinition::default() }).unwrap();
        }
    }
}

pub fn begin(database: &Database, isolation: Isolation) -> Transaction {
    database.begin_with(TransactionOptions { isolation, ..TransactionOptions::default() }).unwrap()
}

pub fn run(tx: &Transaction, script: &str) -> Result<Vec<Value>> {
    tx.query(script)?.collect()
}

/// The numbers a script gives.
pub fn numbers(tx: &Transaction, script: &str) -> Vec<i64> {
    integers(&run(tx, script).unwrap())
}

/// The numbers a script gives in a transaction of its own.
pub fn committed(database: &Database, script: &str) -> Vec<i64> {
    integers(&database.query(script).unwrap().collect().unwrap())
}

pub fn integers(values: &[Value]) -> Vec<i64> {
    values.iter().map(integer).collect()
}

pub fn integer(value: &Value) -> i64 {
    match value {
        Value::I32(n) => i64::from(*n),
        Value::I64(n) => *n,
        other => panic!("a number expected, not {other:?}"),
    }
}

/// Parameters named `v`, `x`, `y` in this order.
pub fn parameters(values: &[i64]) -> Parameters {
    ["v", "x", "y"].into_iter().zip(values).map(|(name, value)| (name.into(), Value::I64(*value))).collect()
}

/// Runs transactions until one commits. Returns its result, and the number of retries.
pub fn until_committed<T>(
    database: &Database,
    isolation: Isolation,
    mut attempt: impl FnMut(&Transaction) -> Result<T>,
) -> (T, usize) {
    let mut retries = 0;
    loop {
        let tx = begin(database, isolation);
        let outcome = attempt(&tx).and_then(|value| tx.commit().map(|_| value));
        match outcome {
            Ok(value) => return (value, retries),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
        retries += 1;
        std::thread::yield_now();
    }
}
