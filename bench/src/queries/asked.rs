//! A query with its parameters and its expected answers.

use mangrove::{Parameters, Result};
use mangrove_queries::reference::{Graph, answer};
use mangrove_queries::{Comparison, JsonParameters, Query, QuerySet, bound, difference, papers};
use serde_json::Value as Json;

use super::drawn::Drawn;
use super::network::{Network, Origin};
use crate::harness::wrong;

/// A query as a suite runs it.
#[derive(Clone)]
pub struct Asked {
    /// The name in reports.
    pub case: String,
    /// The traversal.
    pub text: String,
    /// The parameters of each run.
    pub runs: Vec<Run>,
    /// How rows are compared.
    pub comparison: Comparison,
    /// Fields of a row whose lists have no order.
    pub unordered: Vec<String>,
}

/// The parameters of a run, and its expected answer.
#[derive(Clone)]
pub struct Run {
    /// The parameters.
    pub parameters: Parameters,
    /// The expected rows. If the query has a limit and no order, these are all rows among which it may choose.
    pub expected: Vec<Json>,
}

impl Asked {
    /// The name of a query of a paper on a network, in reports.
    pub fn case(network: &Network, query: &Query) -> String {
        format!("{}, {}", network.name, query.name)
    }

    /// A query of a paper on a network, with the answers of the reference. `None` if there are no parameters for it.
    pub fn of_paper(network: &Network, drawn: &Drawn<'_>, set: &QuerySet, query: &Query) -> Option<Self> {
        let parameters = match &network.origin {
            Origin::Generated => drawn.parameters(set, query),
            Origin::Ldbc(_) => set.parameters_of(query).to_vec(),
        };
        let case = Self::case(network, query);
        Self::with_reference(&network.reference, case, set, query, &parameters)
    }

    /// The same with these parameters; `None` if there are none.
    pub fn with_reference(
        graph: &Graph,
        case: String,
        set: &QuerySet,
        query: &Query,
        parameters: &[JsonParameters],
    ) -> Option<Self> {
        let run = |given: &JsonParameters| Run { parameters: bound(given), expected: answer(graph, set, query, given) };
        let runs: Vec<Run> = parameters.iter().map(run).collect();
        (!runs.is_empty()).then(|| Asked {
            case,
            text: query.text.trim().to_owned(),
            runs,
            comparison: papers::comparison(query),
            unordered: query.unordered.clone(),
        })
    }

    /// Returns an error if these rows are not the answer to a run.
    pub fn check(&self, run: usize, rows: &[Json]) -> Result<()> {
        let Run { parameters, expected } = &self.runs[run];
        match difference(rows, expected, &self.comparison, &self.unordered) {
            Some(problem) => Err(wrong(format!("{} of {parameters:?}: {problem}", self.case))),
            None => Ok(()),
        }
    }
}
