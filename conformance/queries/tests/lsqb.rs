//! LSQB's nine patterns, beside the counts that its publisher gives, and beside those of a SQL engine on LDBC's network.

use std::collections::BTreeMap;
use std::path::Path;

use mangrove::{Database, LoadOptions, Mapping};
use mangrove_queries::{DataSet, QuerySet, Runner, published};
use mangrove_testdata::dataset;
use serde_json::json;

/// The data set of this folder.
fn loaded(folder: &Path) -> Database {
    let mapping = Some(Mapping::shipped("lsqb").expect("the mapping ships"));
    let db = Database::in_memory();
    let report =
        db.load(&[folder.to_owned()], &LoadOptions { mapping, ..LoadOptions::default() }, &mut |_| {}).unwrap();
    assert_eq!(report.rejects, 0, "{}", folder.display());
    db
}

/// The only result of a script, an integer.
#[track_caller]
fn number(db: &Database, script: &str) -> i64 {
    let results = db.query(script).unwrap().collect().unwrap();
    let [mangrove::Value::I64(number)] = results.as_slice() else { panic!("{script}: {results:?}") };
    *number
}

/// Returns true if the slow queries run, too.
fn full() -> bool {
    std::env::var_os("MANGROVE_TEST_FULL").is_some()
}

/// Checks every form of every pattern. Slow ones run if `slow` is true.
#[track_caller]
fn check_counts(db: &Database, counts: &BTreeMap<String, i64>, slow: bool) {
    let (set, runner) = (QuerySet::named("lsqb"), Runner::new(db));
    for query in set.queries.iter().filter(|query| slow || !query.slow) {
        let pattern = query.name.split(' ').next().unwrap();
        let rows = runner.ask(query, &set.parameters[0]).unwrap();
        assert_eq!(rows, [json!(counts[pattern])], "{}", query.name);
    }
}

#[test]
fn the_example_graph_has_the_published_counts() {
    let (Some(folder), Some(answers)) = (dataset("lsqb_sfexample"), dataset("lsqb_sf0.1")) else { return };
    let db = loaded(&folder);
    assert_eq!((number(&db, "g.V().count()"), number(&db, "g.E().count()")), (28, 72));
    check_counts(&db, &published::lsqb_counts(&answers, "example").unwrap(), true);
}

#[test]
fn scale_factor_a_tenth_has_the_published_counts() {
    let Some(folder) = dataset("lsqb_sf0.1") else { return };
    let db = loaded(&folder.join("data"));
    assert_eq!((number(&db, "g.V().count()"), number(&db, "g.E().count()")), (432_235, 2_080_404));
    assert_eq!(number(&db, "g.E().hasLabel('knows').count()"), 18_135);
    assert_eq!(number(&db, "g.V().hasLabel('Person').both('knows').count()"), 2 * 18_135);
    // Posts and comments have a creator each, and comments answer one message.
    assert_eq!(number(&db, "g.V().hasLabel('Post', 'Comment').not(out('hasCreator').count().is(1)).count()"), 0);
    assert_eq!(number(&db, "g.V().hasLabel('Comment').not(out('replyOf').count().is(1)).count()"), 0);
    check_counts(&db, &published::lsqb_counts(&folder, "0.1").unwrap(), full());
}

#[test]
fn on_ldbcs_network_a_sql_engine_counts_the_same() {
    let Some(folder) = DataSet::Tenth.folder() else { return };
    let lines = std::fs::read_to_string(folder.join("answers/sf0.1_lsqb_style_counts.csv")).unwrap();
    let counts = lines.lines().skip(1).map(|line| line.split_once(',').unwrap());
    let counts: BTreeMap<_, _> = counts.map(|(name, count)| (name.to_owned(), count.parse().unwrap())).collect();
    assert_eq!(counts.len(), 9);
    check_counts(&mangrove_queries::loaded(DataSet::Tenth, &folder), &counts, full());
}
