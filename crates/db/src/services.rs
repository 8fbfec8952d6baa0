//! The services of `call()`: management of a database through the query language, and searches in its graph.
//!
//! [`DATABASE_SERVICES`] is the table of all services that an embedded database has. To add a service, add a row and
//! write its function. `g.call()` lists the rows, `g.call('--list').with('verbose', true)` describes them. In a
//! traversal, a service is called once for every row that reaches it. A source with `ReadOnlyStrategy` refuses all but
//! the list and the services that read in the caller's transaction.

mod algorithms;
mod degree;
mod durability;
mod indexes;
mod projections;
mod registry;
mod reports;
mod schema;
mod search;
mod statistics;
mod upsert;

use std::sync::Arc;

use mangrove_analytics::registry::{MemoryEstimate, StateBytes};
use mangrove_analytics::{Projection, ProjectionOptions, Team};
use mangrove_flow::QueryControl;
use mangrove_flow::schedule::Tenant;
use mangrove_graph::{GraphView, Result};
use mangrove_load::rows::names;
use mangrove_steps::{ServiceCall, ServiceResults, Services};

use self::registry::ParameterType::{Any, Direction, Flag, Id, Integer, List, Map, Names, Text};
use self::registry::ServiceFunction::{InTransaction, InTransactionOn, OnDatabase};
use self::registry::ServiceRight::{Admin, AdminWithArguments, Read, Write};
pub use self::registry::{
    Arguments, LIST_SERVICE, ParameterType, Service, ServiceFunction, ServiceParameter, ServiceRegistry, ServiceRight,
    parameter, row, service,
};
use crate::management::SETTINGS;
use crate::state::Database;

/// The settings of [`Database::configure`] as arguments. Their values are checked by the setting.
const CONFIG_PARAMETERS: &[ServiceParameter] = &{
    let mut parameters = [const { parameter("", Any, "") }; SETTINGS.len()];
    let mut at = 0;
    while at < SETTINGS.len() {
        parameters[at] = parameter(SETTINGS[at].0, Any, SETTINGS[at].1);
        at += 1;
    }
    parameters
};

/// The services of a database.
pub const DATABASE_SERVICES: &[Service] = &[
    service(
        LIST_SERVICE,
        "list the services",
        Read,
        &[parameter("service", Text, "only this one"), parameter("verbose", Flag, "with what they do and are given")],
        ServiceFunction::List,
    ),
    service(
        "mangrove.algo.estimate",
        "the memory in bytes that a run of an algorithm needs: for its projection, unless one is kept, and for its state",
        Read,
        &[
            parameter("algorithm", Text, "the name of the algorithm, such as 'pagerank'"),
            parameter("options", Map, "the options that it would be called with"),
        ],
        InTransactionOn(algorithms::estimate),
    ),
    service(
        "mangrove.backup",
        "take a checkpoint and copy it to a home of backups: what no earlier backup there has",
        Admin,
        &[
            parameter("to", Text, "file:/PATH or s3://BUCKET/DIRECTORY, as the server sees it"),
            parameter("keep", Integer, "delete all backups but the newest so many; default: keep all"),
        ],
        OnDatabase(durability::backup),
    ),
    service(
        "mangrove.checkpoint",
        "write what has changed to the database's directory, so that its log is short",
        Admin,
        &[
            parameter("parquet", Flag, "with the elements of each label set as a Parquet file"),
            parameter(
                "topology",
                Flag,
                "with the edges of each vertex and look-up indexes for other programs, in later checkpoints too; false: without",
            ),
        ],
        OnDatabase(durability::checkpoint),
    ),
    service(
        "mangrove.config",
        "the settings of the running database; given some, change them first",
        AdminWithArguments,
        CONFIG_PARAMETERS,
        OnDatabase(reports::config),
    ),
    service(
        "mangrove.durability",
        "the state of the log and of the checkpoints",
        Read,
        &[],
        OnDatabase(durability::state),
    ),
    service(
        "mangrove.gc",
        "what garbage collection waits for and has done; asked to, collect first, on the caller's time",
        AdminWithArguments,
        &[
            parameter("collect", Flag, "collect the versions that no transaction can see"),
            parameter("compact", Flag, "collect, and pack the adjacency of what all running transactions see alike"),
        ],
        OnDatabase(reports::garbage),
    ),
    service(
        "mangrove.index.create",
        "create an index while transactions go on",
        Admin,
        &[
            parameter("element", Text, "'vertex' or 'edge'; default vertex"),
            parameter("label", Text, "of vertices, or edges, with this label; without: of all"),
            parameter("key", Names, "the property, or a list of properties"),
            parameter("kind", Text, "'hash' (equality) or 'ordered' (ranges, too); default hash"),
            parameter("unique", Flag, "refuse a second vertex, or edge, with the same values; default false"),
        ],
        OnDatabase(indexes::create),
    ),
    service(
        "mangrove.index.drop",
        "drop the index with this number, or the one that is about this",
        Admin,
        &[
            parameter("id", Integer, "its number"),
            parameter("element", Text, "of which elements it is: 'vertex' or 'edge'; default vertex"),
            parameter("label", Text, "its label"),
            parameter("key", Names, "its property, or the list of them"),
            parameter("kind", Text, "its kind, where two differ in that alone"),
        ],
        OnDatabase(indexes::drop),
    ),
    service(
        "mangrove.index.list",
        "the indexes with their numbers of entries and values",
        Read,
        &[],
        OnDatabase(indexes::list),
    ),
    service(
        "mangrove.memory",
        "what the memory of the graph goes into, by kind of record, and that of its projections",
        Read,
        &[],
        OnDatabase(reports::memory),
    ),
    service(
        "mangrove.names",
        "the labels and the property keys that were ever used",
        Read,
        &[],
        OnDatabase(reports::names),
    ),
    service(
        "mangrove.plans",
        "the plans that are kept, with their uses, mean times and memory; values are shown as ?",
        Admin,
        &[],
        OnDatabase(reports::plans),
    ),
    service(
        "mangrove.projection.create",
        "read vertices and their edges into memory under a name, for algorithms with the option 'projection'",
        Admin,
        &[
            parameter("name", Text, "its name"),
            parameter("vertices", Text, "the label of the vertices; default all"),
            parameter("edges", Text, "the label of the edges; default all"),
            parameter("directed", Flag, "whether edges lead from their source to their target only; default true"),
            parameter("weight", Text, "the property of edges that is their weight; default none"),
        ],
        OnDatabase(projections::create),
    ),
    service(
        "mangrove.projection.drop",
        "drop the projection of this name",
        Admin,
        &[parameter("name", Text, "its name")],
        OnDatabase(projections::drop),
    ),
    service(
        "mangrove.projection.list",
        "the projections with names, with their sizes and the last commit that they show",
        Read,
        &[],
        OnDatabase(projections::list),
    ),
    service(
        "mangrove.projection.refresh",
        "read again what has changed since, so that the next algorithm need not",
        Admin,
        &[parameter("name", Text, "its name")],
        OnDatabase(projections::refresh),
    ),
    service(
        "mangrove.promote",
        "make this server, which follows the owner of the graph, the owner",
        Admin,
        &[],
        OnDatabase(durability::promote),
    ),
    service(
        "mangrove.schema.drop",
        "drop the rule with this number",
        Admin,
        &[parameter("id", Integer, "its number")],
        OnDatabase(schema::drop),
    ),
    service(
        "mangrove.schema.ends",
        "make a rule: edges of a label lead from vertices with some labels to vertices with others",
        Admin,
        &[
            parameter("label", Text, "the edges' label"),
            parameter("ends", List, "the pairs of labels that are allowed, from and to: [['person', 'company']]"),
        ],
        OnDatabase(schema::ends),
    ),
    service(
        "mangrove.schema.list",
        "the rules that everything committed keeps to",
        Read,
        &[],
        OnDatabase(schema::list),
    ),
    service(
        "mangrove.schema.require",
        "make a rule: vertices, or edges, with a label have a property",
        Admin,
        &[
            parameter("element", Text, "'vertex' or 'edge'; default vertex"),
            parameter("label", Text, "with this label"),
            parameter("key", Text, "the property"),
        ],
        OnDatabase(schema::require),
    ),
    service(
        "mangrove.schema.type",
        "make a rule: the values of a property of vertices, or edges, with a label are of a type",
        Admin,
        &[
            parameter("element", Text, "'vertex' or 'edge'; default vertex"),
            parameter("label", Text, "with this label"),
            parameter("key", Text, "the property"),
            parameter("type", Text, "'string', 'long', 'integer' (of any width), 'number', 'datetime' and so on"),
        ],
        OnDatabase(schema::value_type),
    ),
    service(
        "mangrove.statistics",
        "how many vertices and edges there are, and how degrees are distributed; a row for each fact",
        Read,
        &[
            parameter("label", Text, "only vertices with this label; with exactly these labels for a::b"),
            parameter("edge", Text, "only edges with this label"),
            parameter(
                "histogram",
                Flag,
                "also how many vertices have degrees from each power of two on, and which values are frequent",
            ),
            parameter("ends", Flag, "also which part of the edges leads to vertices of each label"),
            parameter("walks", Flag, "with a label: also how many pairs of edges its vertices have, by their labels"),
            parameter(
                "connections",
                Flag,
                "also where edges may lead, and whether a vertex has at most one: facts that plans may rely on",
            ),
            parameter("refresh", Flag, "count anew, on the caller's time; the first call always does"),
        ],
        OnDatabase(statistics::statistics),
    ),
    service(
        "mangrove.stats",
        "all the others that report, in one row: memory, transactions, garbage, log, plans, executors",
        Read,
        &[],
        OnDatabase(reports::stats),
    ),
    service(
        "mangrove.transactions",
        "how many transactions ended which way",
        Read,
        &[],
        OnDatabase(reports::transactions),
    ),
    service(
        "mangrove.upsert.edges",
        "write edges as one transaction, in place of those that are there: what `mangrove load --url` sends",
        Write,
        &[
            parameter(names::LABEL, Text, "their label"),
            parameter(names::COUNT, Integer, "how many rows there are"),
            parameter(names::SOURCES, List, "the ids of the vertices they come from, one a row"),
            parameter(names::TARGETS, List, "the ids of the vertices they go to, one a row"),
            parameter(names::IDS, List, "their own ids, one a row; without: the graph chooses"),
            parameter(
                names::COLUMNS,
                Map,
                "a map of property keys to lists of values, one a row; null where the row has none",
            ),
            parameter(names::KEY, List, "the properties that tell them from others between the same vertices"),
            parameter(names::MET, List, "ids of edges that earlier rows of the load mean"),
        ],
        OnDatabase(upsert::edges),
    ),
    service(
        "mangrove.upsert.find",
        "the id of the vertex that an upsert would find",
        Read,
        &[
            parameter(names::ID, Id, "its id, or the value of the key"),
            parameter(names::KEY, Names, "the property it is found by"),
            parameter(names::KEY_LABEL, Text, "the label of the vertices with this key"),
        ],
        OnDatabase(upsert::find),
    ),
    service(
        "mangrove.upsert.vertices",
        "write vertices as one transaction, in place of those that are there: what `mangrove load --url` sends",
        Write,
        &[
            parameter(names::LABEL, Text, "their label, or several as in a::b"),
            parameter(names::COUNT, Integer, "how many rows there are"),
            parameter(names::IDS, List, "their ids, one a row; without: the graph chooses"),
            parameter(
                names::COLUMNS,
                Map,
                "a map of property keys to lists of values, one a row; null where the row has none",
            ),
            parameter(
                names::MULTI,
                List,
                "properties of several values: lists of row, key, 'list' or 'set', and [value, map] of each",
            ),
            parameter(names::KEY, Names, "the properties that they are found by; without: their ids"),
            parameter(names::KEY_LABEL, Text, "the label of the vertices with this key"),
        ],
        OnDatabase(upsert::vertices),
    ),
    service(
        "tinker.degree.centrality",
        "the number of edges of the vertex it is called for",
        Read,
        &[parameter("direction", Direction, "OUT, IN or BOTH; default IN")],
        InTransaction { types: &["Streaming"], run: degree::run },
    ),
    service(
        "tinker.search",
        "the properties whose text contains a text",
        Read,
        &[
            parameter("search", Any, "the text"),
            parameter("type", Any, "'Vertex', 'Edge' or 'VertexProperty': whose properties; default all"),
        ],
        InTransaction { types: &["Start"], run: search::run },
    ),
];

/// The services of algorithms.
fn algorithm_services() -> &'static [Service] {
    algorithms::services()
}

impl Services for Database {
    fn call(&self, service: Option<&str>, call: &ServiceCall<'_>) -> Result<ServiceResults> {
        let registry = ServiceRegistry::of_database();
        registry.call(registry.find(service)?, self, &(), &Tenant::default(), call)
    }

    fn team(&self, control: Arc<QueryControl>, workers_max: usize) -> Result<Team> {
        Ok(self.team_of(&Tenant::default(), workers_max)?.controlled_by(control))
    }

    fn estimate(&self, view: &dyn GraphView, options: &ProjectionOptions, state: StateBytes) -> MemoryEstimate {
        options.estimate(view, state, self.projections())
    }

    fn projection(&self, view: &dyn GraphView, options: &ProjectionOptions, team: &Team) -> Result<Arc<Projection>> {
        self.projections().projection(view, options, team)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The planner lets a read-only source call the services that read in the caller's transaction, by name.
    #[test]
    fn the_planner_knows_the_services_that_only_read() {
        let is_read = |service: &&Service| matches!(service.function, InTransaction { .. });
        let names: Vec<&str> = ServiceRegistry::of_database().services().filter(is_read).map(|s| s.name).collect();
        assert_eq!(names, mangrove_plan::GRAPH_SERVICES);
    }
}
