//! Services of the graph: what `call()` runs inside the caller's transaction, on what it sees.
//!
//! Two kinds of services answer `call()`. Those that manage the database stand outside transactions and are reached
//! through [`Services`](crate::environment::Services). Those here only read the graph, are called with the object of
//! each row, and are known to every source, also a read-only one. They have the names TinkerGraph's have, and as there
//! a name they do not know is passed over.
//!
//! Whoever adds one adds an entry to [`GRAPH_SERVICES`] and its name to the planner's list.

mod degree;
mod search;

use mangrove_flow::QueryContext;
use mangrove_graph::{Error, GraphView, Result, Value};
use mangrove_plan::logical::Name;

/// One call of a service.
pub struct Call<'a> {
    /// The graph as the caller's transaction sees it.
    pub view: &'a dyn GraphView,
    /// Limits of the query: what takes long checks them, what holds much charges it.
    pub context: &'a QueryContext,
    /// The object of the row; of a call that starts a traversal, null.
    pub object: &'a Value,
    /// What the service is given, in order; of two with one name the later holds.
    pub arguments: &'a [(Name, Value)],
}

impl Call<'_> {
    /// What is given under a name.
    fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value)
    }
}

/// A service of the graph.
pub struct GraphService {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// How it may be called, as `call("--list")` says it.
    pub types: &'static [&'static str],
    /// What it may be given, and what that means.
    pub parameters: &'static [(&'static str, &'static str)],
    run: fn(&Call<'_>) -> Result<Vec<Value>>,
}

impl GraphService {
    /// Its results for one call.
    pub fn run(&self, call: &Call<'_>) -> Result<Vec<Value>> {
        (self.run)(call)
    }
}

/// All services of the graph.
pub const GRAPH_SERVICES: &[GraphService] = &[
    GraphService {
        name: "tinker.degree.centrality",
        summary: "the number of edges of the vertex it is called for",
        types: &["Streaming"],
        parameters: &[("direction", "OUT, IN or BOTH; default IN")],
        run: degree::run,
    },
    GraphService {
        name: "tinker.search",
        summary: "the properties whose text contains a text",
        types: &["Start"],
        parameters: &[
            ("search", "the text"),
            ("type", "'Vertex', 'Edge' or 'VertexProperty': whose properties; default all"),
        ],
        run: search::run,
    },
];

/// The service of a name.
pub fn graph_service(name: &str) -> Option<&'static GraphService> {
    GRAPH_SERVICES.iter().find(|service| service.name == name)
}

/// The error for a setting that is something else than it should be.
fn misfit(service: &str, name: &str, wanted: &str, given: &Value) -> Error {
    Error::invalid(format!("{service}: '{name}' is {wanted}, not a {}", given.type_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planner_knows_the_names() {
        let names: Vec<&str> = GRAPH_SERVICES.iter().map(|service| service.name).collect();
        assert_eq!(names, mangrove_plan::GRAPH_SERVICES);
    }
}
