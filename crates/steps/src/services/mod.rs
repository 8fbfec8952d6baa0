//! Services of the graph, which `call()` runs inside the caller's transaction.
//!
//! Two kinds of services answer `call()`. The services of the database stand outside transactions and are reached through
//! [`Services`](crate::context::execution::Services). Those here only read the graph through the caller's view, are called with
//! the object of each row, and are known to every traversal source, also a read-only one. They have the names of TinkerGraph's
//! services and, as there, ignore arguments that they do not know.
//!
//! A new service needs an entry in [`GRAPH_SERVICES`] and its name in the list of the planner.

mod degree;
mod search;

use mangrove_flow::QueryControl;
use mangrove_graph::{Error, GraphView, Result, Value};
use mangrove_plan::logical::Name;

/// One call of a service.
pub(crate) struct Call<'a> {
    /// The graph as the transaction of the caller sees it.
    pub view: &'a dyn GraphView,
    /// The control of the query. A service that takes long checks it, and charges what it holds.
    pub control: &'a QueryControl,
    /// The object of the row; null if the call starts a traversal.
    pub object: &'a Value,
    /// The arguments in order. Of two with one name, the later one wins.
    pub arguments: &'a [(Name, Value)],
}

impl Call<'_> {
    /// Returns the argument of a name.
    fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value)
    }
}

/// A service of the graph.
pub struct GraphService {
    /// The name that `call()` takes.
    pub name: &'static str,
    /// What it does, in one line for `call("--list")`.
    pub summary: &'static str,
    /// How it may be called, as `call("--list")` shows it: `Start`, `Streaming`.
    pub types: &'static [&'static str],
    /// The names of its parameters, and their meaning.
    pub parameters: &'static [(&'static str, &'static str)],
    run: fn(&Call<'_>) -> Result<Vec<Value>>,
}

impl GraphService {
    /// Runs it for one call. Returns its results in order.
    pub(crate) fn run(&self, call: &Call<'_>) -> Result<Vec<Value>> {
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

/// Returns the service of a name.
pub(crate) fn graph_service(name: &str) -> Option<&'static GraphService> {
    GRAPH_SERVICES.iter().find(|service| service.name == name)
}

/// Returns the error for an argument of the wrong kind.
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
