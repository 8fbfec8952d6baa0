//! The engine answers the papers' queries like plain loops over the same files.

use std::sync::OnceLock;

use mangrove::Database;
use mangrove_queries::papers::{check, check_forms};
use mangrove_queries::reference::{self, Graph};
use mangrove_queries::{DataSet, QuerySet, Runner, loaded};

/// The graph of scale factor 0.1, in the engine and in maps.
fn graphs() -> Option<&'static (Database, Graph)> {
    static GRAPHS: OnceLock<Option<(Database, Graph)>> = OnceLock::new();
    let load = || {
        let folder = DataSet::Tenth.folder()?;
        Some((loaded(DataSet::Tenth, &folder), reference::load(&DataSet::Tenth.files(&folder))))
    };
    GRAPHS.get_or_init(load).as_ref()
}

/// Checks all answers of a set.
fn check_set(name: &str) {
    let Some((db, graph)) = graphs() else { return };
    let (set, runner) = (QuerySet::named(name), Runner::new(db));
    let full = std::env::var_os("MANGROVE_TEST_FULL").is_some();
    let queries = set.queries.iter().filter(|query| full || !query.slow);
    let questions = queries.flat_map(|query| set.parameters_of(query).iter().map(move |given| (query, given)));
    let problems: Vec<String> =
        questions.filter_map(|(query, given)| check(&runner, graph, &set, query, given).err()).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn banyan_complex_queries() {
    check_set("banyan-cq");
}

#[test]
fn other_forms_of_the_complex_queries_have_the_same_answers() {
    let Some((db, graph)) = graphs() else { return };
    let (set, runner) = (QuerySet::named("banyan-cq"), Runner::new(db));
    let questions =
        set.queries.iter().flat_map(|query| set.parameters_of(query).iter().map(move |given| (query, given)));
    let problems: Vec<String> =
        questions.filter_map(|(query, given)| check_forms(&runner, graph, &set, query, given).err()).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn gtran_templates() {
    check_set("gtran-templates");
}

#[test]
fn gtran_lbv() {
    check_set("gtran-lbv");
}

#[test]
fn grasper() {
    check_set("grasper");
}

#[test]
fn walks_and_patterns() {
    check_set("patterns");
}

#[test]
fn groups_and_sorts() {
    check_set("barriers");
}

#[test]
fn lsqb_patterns() {
    check_set("lsqb");
}
