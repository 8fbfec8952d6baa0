//! Checks the papers' queries: the database must answer like the reference graph ([`crate::reference`]).

use serde_json::Value as Json;

use crate::compare::{Comparison, difference};
use crate::reference::{Graph, answer};
use crate::run::Runner;
use crate::set::{JsonParameters, Query, QuerySet};

/// The sets whose expected answers come from the reference.
pub const SETS: [&str; 6] = ["banyan-cq", "gtran-templates", "gtran-lbv", "grasper", "patterns", "lsqb"];

/// How rows are compared, by what the paper says of their order.
pub fn comparison(query: &Query) -> Comparison {
    match (query.limit, query.ordered) {
        (Some(limit), _) => Comparison::Some(limit),
        (None, true) => Comparison::Ordered,
        (None, false) => Comparison::AnyOrder,
    }
}

/// Runs a query on the database, compares its answer with the reference's, and returns the number of rows.
///
/// # Errors
///
/// The difference, or the error of the database, with the query and its parameters.
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
