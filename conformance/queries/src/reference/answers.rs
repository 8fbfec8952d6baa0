//! Maps each query to the function that answers it.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::{Graph, Vertex, barriers, cq, grasper, lbv, lsqb, patterns, templates};
use crate::set::{JsonParameters, Query, QuerySet};

/// The parameters of a query.
pub struct Given<'a>(&'a JsonParameters);

impl<'a> Given<'a> {
    /// A number parameter.
    pub fn number(&self, name: &str) -> i64 {
        self.0[name].as_i64().unwrap_or_else(|| panic!("{name} is a number"))
    }

    /// A text parameter.
    pub fn text(&self, name: &str) -> &'a str {
        self.0[name].as_str().unwrap_or_else(|| panic!("{name} is a text"))
    }

    /// The start person.
    pub fn person(&self, graph: &Graph) -> Vertex {
        graph.find("Person", self.number("person"))
    }

    /// The vertex that a parameter names by label and id.
    pub fn vertex(&self, graph: &Graph, name: &str) -> Vertex {
        let named = &self.0[name]["vertex"];
        graph.find(named[0].as_str().expect("a kind"), named[1].as_i64().expect("an id"))
    }

    /// The edge that a parameter names by its source, its label, and the id of its target.
    pub fn edge(&self, graph: &Graph, name: &str) -> (Vertex, &'a str, i64) {
        let named = &self.0[name]["edge"];
        let from = graph.find(named[0].as_str().expect("a kind"), named[1].as_i64().expect("an id"));
        (from, named[2].as_str().expect("a label"), named[3].as_i64().expect("an id"))
    }
}

/// All rows of the answer. If the query has a limit and no order, these are all rows among which the limit may choose.
///
/// # Panics
///
/// If the reference does not answer the query: LDBC's own queries have published answers.
pub fn answer(graph: &Graph, set: &QuerySet, query: &Query, parameters: &JsonParameters) -> Vec<Json> {
    let given = Given(parameters);
    let found = match set.name.as_str() {
        "banyan-cq" => complex(graph, &query.name, &given),
        "gtran-templates" => template(graph, &query.name, &given),
        "gtran-lbv" => lbv::answer(graph, &query.name, &given),
        "grasper" => grasper::answer(graph, &query.name, &given),
        "patterns" => patterns::answer(graph, &query.name, &given),
        "lsqb" => lsqb::answer(graph, &query.name),
        "barriers" => barriers::answer(graph, &query.name),
        _ => None,
    };
    found.unwrap_or_else(|| panic!("the reference has no answer to {} of {}", query.name, set.name))
}

fn complex(graph: &Graph, name: &str, given: &Given<'_>) -> Option<Vec<Json>> {
    let start = given.person(graph);
    let ids = |persons: BTreeSet<Vertex>| {
        let mut ids: Vec<i64> = persons.into_iter().map(|person| graph.id(person)).collect();
        ids.sort_unstable();
        ids
    };
    let ids = match name {
        "CQ1" => ids(cq::cq1(graph, start)),
        "CQ2" => ids(cq::cq2(graph, start)),
        // This query alone has an order: its answer is the first ten rows.
        "CQ3" => ids(cq::cq3(graph, start)).into_iter().take(10).collect(),
        "CQ4" => ids(cq::cq4(graph, start)),
        "CQ5" => ids(cq::cq5(graph, start)),
        "CQ6" => ids(cq::cq6(graph, start)),
        _ => return None,
    };
    Some(ids.into_iter().map(|id| json!(id)).collect())
}

fn template(graph: &Graph, name: &str, given: &Given<'_>) -> Option<Vec<Json>> {
    let answer = match name {
        "IS1" => templates::is1,
        "IS2" => templates::is2,
        "IS3" => templates::is3,
        "IS4" => templates::is4,
        "IC1" => templates::ic1,
        "IC2" => templates::ic2,
        "IC3" => templates::ic3,
        "IC4" => templates::ic4,
        _ => return None,
    };
    Some(answer(graph, given))
}
