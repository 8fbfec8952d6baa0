//! LDBC SNB: counts from the data set's README, and answers that another engine computed on the same files.
//!
//! Results are those of the development data set, not results of the benchmark.

use std::path::Path;
use std::sync::OnceLock;

use mangrove::{Database, Parameters};
use mangrove_testdata::dataset;
use serde_json::Value as Json;

use super::cases::Case;
use super::support::{ask, ask_with, check_file, load_clean, number};

/// The traversals that have recorded answers, with the names of these answers. Parameters are variables in the
/// traversals.
const ANSWERED: &str = include_str!("queries/ldbc_answered.txt");

/// The graph of scale factor 0.1, loaded once for all tests, and the folder of its data set.
fn graph() -> Option<&'static (Database, std::path::PathBuf)> {
    static GRAPH: OnceLock<Option<(Database, std::path::PathBuf)>> = OnceLock::new();
    GRAPH.get_or_init(|| dataset("ldbc_snb_sf0.1").map(|folder| (load_sf01(&folder), folder))).as_ref()
}

fn load_sf01(folder: &Path) -> Database {
    let db = load_clean(&[folder.join("data")], Some("ldbc-snb"));
    for label in ["Person", "Post", "Comment", "Forum"] {
        db.create_index(Some(label), "id", false, true).unwrap();
    }
    db
}

/// The recorded answers to queries whose name starts with `start`: name, parameters and result.
fn answers(folder: &Path, start: &str) -> Vec<(String, Parameters, Json)> {
    let lines = std::fs::read_to_string(folder.join("answers/sf0.1_answers_public.jsonl")).unwrap();
    let answers = lines.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let answers = answers.map(|mut answer| {
        let parameters = answer["params"].as_object().unwrap().iter();
        let parameters = parameters.map(|(name, value)| (name.as_str().into(), value.as_i64().unwrap().into()));
        (answer["query"].as_str().unwrap().to_owned(), parameters.collect(), answer["result"].take())
    });
    answers.filter(|(query, ..)| query.starts_with(start)).collect()
}

/// Checks the answers of one interactive query; rows are compared in order.
fn check_answers(name: &str) {
    check_answers_by(name, name);
}

/// As [`check_answers`], by a traversal of another name.
fn check_answers_by(name: &str, traversal: &str) {
    let Some((db, folder)) = graph() else { return };
    let (cases, answers) = (Case::parse_all(ANSWERED), answers(folder, &format!("{name} ")));
    let script = &Case::named(&cases, traversal).script;
    assert_eq!(answers.len(), 30, "{name}");
    for (_, parameters, result) in answers {
        let expected: Vec<String> = match &result {
            Json::Array(rows) => rows.iter().map(Json::to_string).collect(),
            single => vec![single.to_string()],
        };
        assert_eq!(ask_with(db, script, &parameters), expected, "{name} of {parameters:?}: {script}");
    }
}

#[test]
fn counts_are_those_of_the_files() {
    let Some((db, _)) = graph() else { return };
    check_file(db, "ldbc", include_str!("queries/ldbc.txt"));
}

#[test]
fn ic2_recent_messages_of_friends() {
    check_answers("IC2");
}

#[test]
fn ic8_recent_replies() {
    check_answers("IC8");
}

#[test]
fn ic9_recent_messages_of_friends_of_friends() {
    check_answers("IC9");
}

#[test]
fn ic13_shortest_paths() {
    check_answers("IC13");
    check_answers_by("IC13", "IC13 by dedup");
}

#[test]
fn is3_friends() {
    check_answers("IS3");
}

#[test]
fn label_paths() {
    let Some((db, folder)) = graph() else { return };
    let (cases, answers) = (Case::parse_all(ANSWERED), answers(folder, "path "));
    assert_eq!(answers.len(), 7 * 20);
    for (name, parameters, result) in answers {
        let script = &Case::named(&cases, &name).script;
        let ask = |end: &str| -> i64 {
            let results = ask_with(db, &format!("{script}{end}"), &parameters);
            results.first().map_or(0, |sum| sum.parse().unwrap())
        };
        let label = format!("{name} of {parameters:?}");
        assert_eq!(ask(".count()"), result["results_with_repeats"], "{label}");
        assert_eq!(ask(".dedup().count()"), result["distinct"], "{label}");
        let sum = ask(".dedup().values('id').sum()") % 1_000_000_007;
        assert_eq!(sum, result["sum_of_distinct_ids_mod_1000000007"], "{label}");
    }
}

#[test]
fn the_generators_own_format_loads_too() {
    let Some(folder) = dataset("ldbc_snb_sf0.003") else { return };
    let db = load_clean(&[folder.join("vanilla")], Some("ldbc-snb"));
    assert_eq!((number(&db, "g.V().count()"), number(&db, "g.E().count()")), (34_735, 70_842));
    assert_eq!(number(&db, "g.E().hasLabel('knows').count()"), 825);
    assert_eq!(ask(&db, "g.V().has('Person', 'id', 8796093022220).values('firstName')"), ["\"Jose\""]);
}
