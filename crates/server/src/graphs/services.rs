//! The services of `call()` on a server: its own beside those of the database, and the rights to call them.
//!
//! A query that calls services is given a [`QueryServices`], which knows the caller and the graph. It checks the right
//! that the service's row names ([`mangrove::services`]). Every call that administers is noted in the audit log, even
//! if it is refused. Reports pass the redactor, so that they show paths to administrators only (SERVER-10).
//!
//! To add a service of the server, add a row to [`SERVER_SERVICES`] and write its function.

use std::any::Any;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use mangrove::analytics::registry::{MemoryEstimate, StateBytes};
use mangrove::analytics::{Projection, ProjectionOptions};
use mangrove::services::ParameterType::{Flag, Integer, Map, Text};
use mangrove::services::ServiceFunction::OnHost;
use mangrove::services::ServiceRight::PerObject;
use mangrove::services::{Arguments, Service, ServiceFunction, ServiceRegistry, ServiceRight, parameter, row, service};
use mangrove::{
    Executors, Isolation, QueryControl, QueryProgressFigures, ServiceCall, ServiceResults, Services, Team, Tenant,
};
use mangrove_graph::{Error, GraphView, Result, Value};
use smol_str::SmolStr;

use crate::access::audit::{self, AuditedAct};
use crate::access::caller::{Access, Caller};
use crate::engine::running::{RunningQueries, RunningQuery};
use crate::graphs::redactor::DirectoryRedactor;
use crate::graphs::registry::{Graph, GraphOptions, Registry, isolation_name, isolation_of};

/// The graphs and the running queries of an engine.
pub struct EngineState {
    /// The graphs.
    pub registry: Registry,
    /// The queries that run.
    pub queries: RunningQueries,
}

/// Answers the `call()`s of one query.
pub struct QueryServices {
    /// The graphs and running queries of the server.
    pub state: Arc<EngineState>,
    /// The graph the query is about.
    pub graph: Arc<Graph>,
    /// The caller of the query.
    pub caller: Caller,
    /// The tenant that the query counts for.
    pub tenant: Tenant,
}

const KILL: &str = "mangrove.kill";

/// The services that a server adds to those of the database.
const SERVER_SERVICES: &[Service] = &[
    service(
        "mangrove.graph.create",
        "create a graph, with the traversal sources NAME and NAMEsi or those given",
        PerObject,
        &[
            parameter("name", Text, "its name"),
            parameter("memory", Flag, "in memory, and gone when the server ends; default false"),
            parameter(
                "memory_limit",
                Integer,
                "refuse writes while it uses so many bytes; default: the server's setting memory_limit",
            ),
            parameter("sources", Map, "its traversal sources, a map of names to 'serializable' or 'snapshot'"),
        ],
        OnHost(create),
    ),
    service(
        "mangrove.graph.drop",
        "drop a graph that was created, with its files",
        PerObject,
        &[parameter("name", Text, "its name")],
        OnHost(drop_graph),
    ),
    service(
        "mangrove.graph.list",
        "the graphs of the server that the caller may read, and their traversal sources",
        PerObject,
        &[],
        OnHost(list_graphs),
    ),
    service(
        KILL,
        "stop a query: one's own, or any on a graph one administers",
        PerObject,
        &[parameter("id", Integer, "its number, as mangrove.queries shows it")],
        OnHost(kill_query),
    ),
    service(
        "mangrove.queries",
        "the queries that run: one's own, and all on graphs one administers",
        PerObject,
        &[],
        OnHost(list_queries),
    ),
];

/// All services that can be called on a server.
static REGISTRY: LazyLock<ServiceRegistry> = LazyLock::new(|| ServiceRegistry::of_database().with(SERVER_SERVICES));

impl Services for QueryServices {
    fn team(&self, control: Arc<QueryControl>, workers_max: usize) -> Result<Team> {
        Ok(self.graph.database().team_of(&self.tenant, workers_max)?.controlled_by(control))
    }

    fn estimate(&self, view: &dyn GraphView, options: &ProjectionOptions, state: StateBytes) -> MemoryEstimate {
        options.estimate(view, state, self.graph.database().projections())
    }

    fn projection(&self, view: &dyn GraphView, options: &ProjectionOptions, team: &Team) -> Result<Arc<Projection>> {
        self.graph.database().projections().projection(view, options, team)
    }

    fn call(&self, name: Option<&str>, call: &ServiceCall<'_>) -> Result<ServiceResults> {
        let service = match REGISTRY.find(name) {
            Ok(service) => service,
            // An unknown service is refused like an administrative one, and noted in the audit log.
            Err(unknown) => {
                let name = name.unwrap_or_default();
                return self.administering(name, &self.graph.name, || {
                    self.caller.require(&self.graph.name, Access::Admin, format_args!("the service {name}"))?;
                    Err(unknown)
                });
            }
        };
        let run = || REGISTRY.call(service, self.graph.database(), self, &self.tenant, call);
        let need = |access| self.caller.require(&self.graph.name, access, format_args!("the service {}", service.name));
        match service.right_for(call.arguments) {
            ServiceRight::PerObject => return run(),
            ServiceRight::Admin | ServiceRight::AdminWithArguments | ServiceRight::WriteWith(_) => {
                return self.administering(service.name, &self.graph.name, || {
                    need(Access::Admin)?;
                    run()
                });
            }
            ServiceRight::Write => need(Access::Write)?,
            ServiceRight::Read => need(Access::Read)?,
        }
        match (&service.function, run()?) {
            // What such a service returns is data of the graph, not a report.
            (ServiceFunction::InTransaction { .. } | ServiceFunction::Algorithm(..), results) => Ok(results),
            (_, ServiceResults::All(rows)) => {
                let redactor = DirectoryRedactor::for_caller(&self.caller, &self.graph);
                Ok(ServiceResults::All(rows.into_iter().map(|row| redactor.value(row)).collect()))
            }
            (_, ServiceResults::Batches(_)) => Err(Error::bug("only algorithms give results batch by batch")),
        }
    }
}

/// The services of the query that called a service of the server.
fn query_services(host: &dyn Any) -> Result<&QueryServices> {
    host.downcast_ref().ok_or_else(|| Error::bug("the services of a server are called on its QueryServices"))
}

impl QueryServices {
    /// Does the work of an administrator on `object`, and notes the outcome in the audit log.
    fn administering<T>(&self, service: &str, object: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let outcome = work();
        audit::note(&self.caller, AuditedAct::Service { service, object }, outcome.as_ref().err());
        outcome
    }
}

fn graph_name<'a>(arguments: &Arguments<'a>) -> Result<&'a str> {
    arguments.text("name")?.ok_or_else(|| arguments.missing("name", "the name of a graph, a string"))
}

/// The argument `memory_limit`, in bytes.
fn memory_limit(arguments: &Arguments<'_>) -> Result<Option<u64>> {
    let Some(value) = arguments.get("memory_limit") else { return Ok(None) };
    let bytes = match value {
        Value::I32(bytes) => u64::try_from(*bytes).ok(),
        Value::I64(bytes) => u64::try_from(*bytes).ok(),
        _ => None,
    };
    match bytes {
        Some(bytes) if bytes > 0 => Ok(Some(bytes)),
        _ => Err(Error::invalid(format!("{}: 'memory_limit' is a number of bytes, above 0", arguments.service()))),
    }
}

/// The argument `sources`: names with isolation levels. Empty if it is not given.
fn sources(arguments: &Arguments<'_>) -> Result<Vec<(SmolStr, Isolation)>> {
    let service = arguments.service();
    let wrong = || Error::invalid(format!("{service}: 'sources' is a map, as in ['gbooks': 'serializable']"));
    let Some(value) = arguments.get("sources") else { return Ok(Vec::new()) };
    let Value::Map(entries) = value else { return Err(wrong()) };
    let source = |(name, level): &(Value, Value)| match (name, level) {
        (Value::String(name), Value::String(level)) => Ok((name.clone(), isolation_of(level)?)),
        _ => Err(wrong()),
    };
    let sources: Vec<_> = entries.iter().map(source).collect::<Result<_>>()?;
    if sources.is_empty() { Err(wrong()) } else { Ok(sources) }
}

fn create(host: &dyn Any, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let services = query_services(host)?;
    let (name, in_memory) = (graph_name(arguments)?, arguments.flag("memory")?);
    let options = GraphOptions { memory_limit_bytes: memory_limit(arguments)?, sources: sources(arguments)? };
    services.administering(arguments.service(), name, || {
        services.caller.require_server_admin(format_args!("creating the graph `{name}`"))?;
        services.state.registry.create(name, in_memory, &options)
    })?;
    Ok(graph_rows(services).into_iter().filter(|(listed, _)| listed == name).map(|(_, row)| row).collect())
}

fn drop_graph(host: &dyn Any, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let services = query_services(host)?;
    let name = graph_name(arguments)?;
    let shown = graph_rows(services).into_iter().filter(|(listed, _)| listed == name).map(|(_, row)| row).collect();
    services.administering(arguments.service(), name, || {
        services.caller.require_server_admin(format_args!("dropping the graph `{name}`"))?;
        services.state.registry.drop_graph(name)
    })?;
    Ok(shown)
}

fn list_graphs(host: &dyn Any, _: &Arguments<'_>) -> Result<Vec<Value>> {
    Ok(graph_rows(query_services(host)?).into_iter().map(|(_, row)| row).collect())
}

/// The graphs that the caller may know of, by name.
fn graph_rows(services: &QueryServices) -> Vec<(SmolStr, Value)> {
    let visible = services.state.registry.graphs().into_iter().filter_map(|(graph, sources)| {
        let access = services.caller.access(&graph.name)?;
        let sources =
            sources.into_iter().map(|(name, isolation)| (Value::String(name), isolation_name(isolation).into()));
        let location = graph.database().durability().map(|durability| durability.location.to_string());
        let kept = location.map_or("memory:".into(), |location| {
            DirectoryRedactor::for_caller(&services.caller, &graph).text(&location).into_owned()
        });
        let limit = graph.database().memory().limit_bytes;
        let limit = i64::try_from(limit).ok().filter(|_| limit != u64::MAX).map_or(Value::Null, Value::I64);
        let shown = row([
            ("name", Value::String(graph.name.clone())),
            ("sources", Value::map(sources.collect())),
            ("memory_limit", limit),
            ("role", access.name().into()),
            ("origin", if graph.is_configured { "configured" } else { "created" }.into()),
            ("kept", kept.into()),
        ]);
        Some((graph.name.clone(), shown))
    });
    visible.collect()
}

fn list_queries(host: &dyn Any, _: &Arguments<'_>) -> Result<Vec<Value>> {
    let services = query_services(host)?;
    Ok(services.state.queries.seen_by(&services.caller).iter().map(query_row).collect())
}

/// Ends a query, which is noted in the audit log.
pub fn kill(queries: &RunningQueries, id: u64, caller: &Caller) -> Result<RunningQuery> {
    let killed = caller.require_change("ending a query").and_then(|()| queries.kill(id, caller));
    let object = id.to_string();
    audit::note(caller, AuditedAct::Service { service: KILL, object: &object }, killed.as_ref().err());
    killed
}

fn kill_query(host: &dyn Any, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let services = query_services(host)?;
    let number = arguments.get("id").and_then(mangrove_graph::numeric::integer).and_then(|n| u64::try_from(n).ok());
    let Some(id) = number else { return Err(arguments.missing("id", "the number of a query")) };
    Ok(vec![query_row(&kill(&services.state.queries, id, &services.caller)?)])
}

fn milliseconds(time: Duration) -> Value {
    Value::I64(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

/// What an algorithm does, and how far it has come.
fn progress_row(progress: QueryProgressFigures) -> Value {
    let count = |number: u64| Value::I64(i64::try_from(number).unwrap_or(i64::MAX));
    row([
        ("phase", progress.phase.into()),
        ("done", count(progress.done)),
        ("all", count(progress.all)),
        ("unit", progress.unit.into()),
    ])
}

fn query_row(query: &RunningQuery) -> Value {
    let figures = query.figures();
    let share = Executors::shared_share(&query.tenant);
    let count = |number: u64| Value::I64(i64::try_from(number).unwrap_or(i64::MAX));
    row([
        ("id", Value::I64(i64::try_from(query.id).unwrap_or(i64::MAX))),
        ("user", query.caller.name().into()),
        ("from", query.caller.peer().into()),
        ("graph", Value::String(query.graph.clone())),
        ("source", Value::String(query.source.clone())),
        ("milliseconds", milliseconds(query.since.elapsed())),
        ("tenant", query.tenant.name().into()),
        ("tenant_weight", Value::I64(share.weight.get().into())),
        ("tenant_share", share.share.map_or(Value::Null, Value::F64)),
        ("executor_milliseconds", milliseconds(Duration::from_nanos(figures.executor_nanos))),
        ("threads", count(figures.threads.into())),
        ("helpers", count(figures.helpers.into())),
        ("parcels", count(figures.parcels)),
        ("messages", count(figures.messages)),
        ("memory_bytes", count(figures.memory_bytes)),
        ("memory_peak_bytes", count(figures.memory_peak_bytes)),
        ("scope_groups", count(figures.scope_groups)),
        ("scope_groups_peak", count(figures.scope_groups_peak)),
        ("instances_cancelled", count(figures.instances_cancelled)),
        ("lanes", count(figures.lanes)),
        ("progress", figures.progress.map_or(Value::Null, progress_row)),
        ("query", audit::shortened(&query.bytecode.to_string()).into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of `docs/services.md`, made from the registry.
    fn page() -> String {
        let mut page = String::from(
            "# Services\n\n\
             `g.call(NAME)` calls a service. Arguments come from a map, from `with(name, value)`, or from a traversal that yields a map.\n\
             `g.call()` lists the services, `g.call('--list').with('verbose', true)` describes them.\n\n\
             A service in the caller's transaction reads what the traversal sees. Every other service acts at once, outside of any\n\
             transaction, and a rollback does not take it back. The right is the one that the caller needs on the graph; *by object*\n\
             means that the service checks each object.\n\n\
             This page is written by a test from the table of services. After a change, run\n\
             `MANGROVE_UPDATE_FIXTURES=1 cargo test -p mangrove-server --lib services`.\n",
        );
        let is_algorithm = |service: &&Service| matches!(service.function, ServiceFunction::Algorithm(..));
        page += "\n## mangrove.algo.NAME\n\n\
                 a service for each algorithm, with its options and, for most, `write`: see [Graph algorithms](algorithms.md#in-gremlin). \
                 Right: read; write with `write`. Scope: the caller's transaction; with `write`, the database.\n";
        for service in REGISTRY.services().filter(|service| !is_algorithm(service)) {
            page += &format!("\n## {}\n\n", service.name);
            page += &format!(
                "{}. Right: {}. Scope: {}.\n",
                service.summary,
                service.right.name(),
                service.function.scope()
            );
            if !service.parameters.is_empty() {
                page += "\n| argument | type | meaning |\n|---|---|---|\n";
            }
            for parameter in service.parameters {
                page +=
                    &format!("| `{}` | {} | {} |\n", parameter.name, parameter.value_type.name(), parameter.summary);
            }
        }
        page
    }

    #[test]
    fn the_page_of_services_is_the_registry() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/services.md");
        if std::env::var_os("MANGROVE_UPDATE_FIXTURES").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), page(), "docs/services.md is stale: see its top");
    }
}
