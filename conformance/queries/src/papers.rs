//! Checks the papers' queries: the database must answer like the reference graph ([`crate::reference`]).

use serde_json::Value as Json;

use crate::compare::{Comparison, difference};
use crate::reference::{Graph, answer};
use crate::run::Runner;
use crate::set::{Form, JsonParameters, Query, QuerySet};

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

/// How the rows of another form of a query are compared.
pub fn form_comparison(query: &Query, form: &Form) -> Comparison {
    if form.all { Comparison::AnyOrder } else { comparison(query) }
}

/// Runs the other forms of a query, and compares their answers with the reference's.
///
/// # Errors
///
/// The difference, or the error of the database, with the form and its parameters.
pub fn check_forms(
    runner: &Runner<'_>,
    graph: &Graph,
    set: &QuerySet,
    query: &Query,
    parameters: &JsonParameters,
) -> Result<(), String> {
    for (name, form) in &query.forms {
        let label = |problem: String| format!("{} {}, {name}, of {parameters:?}: {problem}", set.name, query.name);
        let asked = Query { text: form.text.clone(), ..query.clone() };
        let rows = runner.ask(&asked, parameters).map_err(|error| label(error.to_string()))?;
        let expected = answer(graph, set, query, parameters);
        if let Some(problem) = difference(&rows, &expected, &form_comparison(query, form), &query.unordered) {
            return Err(label(problem));
        }
    }
    Ok(())
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
    let rows: Vec<Json> = runner.answer(query, parameters).map_err(|error| label(error.to_string()))?;
    let expected = answer(graph, set, query, parameters);
    match difference(&rows, &expected, &comparison(query), &query.unordered) {
        Some(problem) => Err(label(problem)),
        None => Ok(rows.len()),
    }
}
