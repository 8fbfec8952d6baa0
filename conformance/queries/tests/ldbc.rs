//! Compares LDBC's reads with their published answers, and runs its updates between them.

use mangrove::Database;
use mangrove_queries::published::{self, Operation};
use mangrove_queries::{DataSet, QuerySet, Runner, difference, loaded, shift_likes};

/// Runs an operation: compares the answer of a read, and performs an update.
fn check(runner: &Runner<'_>, set: &QuerySet, operation: &Operation) -> Result<(), String> {
    let query = set.query(&operation.query);
    let label = |problem: String| format!("{} of {:?}: {problem}", query.name, operation.parameters);
    let Some(expected) = &operation.answer else {
        return runner.update(query, &operation.parameters).map_err(|error| label(error.to_string()));
    };
    let rows = runner.ask(query, &operation.parameters).map_err(|error| label(error.to_string()))?;
    match difference(&rows, expected, &published::comparison(query), &query.unordered) {
        Some(problem) => Err(label(problem)),
        None => Ok(()),
    }
}

/// Checks operations in order and reports all failures.
fn check_all(db: &Database, operations: &[Operation]) {
    let (set, runner) = (QuerySet::named("ldbc-interactive"), Runner::new(db));
    let problems: Vec<String> =
        operations.iter().filter_map(|operation| check(&runner, &set, operation).err()).collect();
    assert!(problems.is_empty(), "{} of {} answers:\n{}", problems.len(), operations.len(), problems.join("\n"));
}

#[test]
fn complex_reads_answer_as_published() {
    let Some(folder) = DataSet::Tenth.folder() else { return };
    let operations = published::complex_reads(&folder).unwrap();
    assert_eq!(operations.len(), 224);
    check_all(&loaded(DataSet::Tenth, &folder), &operations);
}

#[test]
fn reads_between_updates_answer_as_published() {
    let Some(folder) = DataSet::Tenth.folder() else { return };
    let operations = published::mixed_operations(&folder).unwrap();
    assert_eq!(operations.len(), 100);
    let db = loaded(DataSet::Tenth, &folder);
    shift_likes(&db);
    check_all(&db, &operations);
}
