//! Checking the papers' queries against the reference.

use serde_json::Value as Json;

use crate::compare::{Comparison, difference};
use crate::reference::{Graph, answer};
use crate::run::Runner;
use crate::set::{JsonParameters, Query, QuerySet};

/// The sets whose answers the reference gives.
pub const SETS: [&str; 5] = ["banyan-cq", "gtran-templates", "gtran-lbv", "grasper", "patterns"];

/// What the paper promises of the order of rows.
fn comparison(query: &Query) -> Comparison {
    match (query.limit, query.ordered) {
        (Some(limit), _) => Comparison::Some(limit),
        (None, true) => Comparison::Ordered,
        (None, false) => Comparison::AnyOrder,
    }
}

/// Asks a question and compares; says how many rows there were.
///
/// # Errors
///
/// What is wrong with the answer, naming the query and its parameters.
pub fn check(
    runner: &Runner<'_>,
    graph: &Graph,
    set: &QuerySet,
    query: &Query,
    parameters: &JsonParameters,
) -> Result<usize, String> {
    let label = |problem: String| format!("{} {} of {parameters:?}: {problem}", set.name, query.name);
    let rows: Vec<Json> = match query.shows {
        Some(_) => runner.try_write(query, parameters),
        None => runner.ask(query, parameters),
    }
    .map_err(|error| label(error.to_string()))?;
    let expected = answer(graph, set, query, parameters);
    match difference(&rows, &expected, &comparison(query), &query.unordered) {
        Some(problem) => Err(label(problem)),
        None => Ok(rows.len()),
    }
}
