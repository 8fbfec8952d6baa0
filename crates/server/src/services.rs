//! The services of `call()` on a server: its own beside the database's, and who may call which.
//!
//! A query that calls services is given a [`Desk`]. It knows who asks and on which graph, answers for the server's own
//! services, and hands on what is the database's. Every call that administers takes the role it needs and is noted in
//! the audit log, refused or not.
//!
//! Whoever adds a service of the server adds a line to [`SERVICES`].

use std::sync::Arc;

use mangrove::{Database, Isolation, ServiceEffect, Services};
use mangrove_graph::{Error, Result, Value};
use smol_str::SmolStr;

use crate::access::{Access, Caller};
use crate::audit::{self, Act};
use crate::places::Places;
use crate::queries::{Queries, Running};
use crate::registry::{Graph, GraphOptions, Registry, isolation_name, isolation_of};

/// What services need of the server.
pub struct Hub {
    /// The graphs.
    pub registry: Registry,
    /// The queries that run.
    pub queries: Queries,
}

/// Answers the `call()`s of one query.
pub struct Desk {
    /// The server.
    pub hub: Arc<Hub>,
    /// The graph the query is about.
    pub graph: Arc<Graph>,
    /// Who asks.
    pub caller: Caller,
}

/// The arguments of a call, by name; of two the later counts.
type Given = [(SmolStr, Value)];

struct Service {
    name: &'static str,
    summary: &'static str,
    /// What it may be given, and what that means.
    parameters: &'static [(&'static str, &'static str)],
    run: fn(&Desk, &Given) -> Result<Vec<Value>>,
}

const KILL: &str = "mangrove.kill";

const SERVICES: &[Service] = &[
    Service {
        name: "mangrove.graph.create",
        summary: "create a graph, with the traversal sources NAME and NAMEsi or those given",
        parameters: &[
            ("name", "its name"),
            ("memory", "in memory, and gone when the server ends; default false"),
            ("memory_limit", "refuse writes while it uses so many bytes; default: the server's setting memory_limit"),
            ("sources", "its traversal sources, a map of names to 'serializable' or 'snapshot'"),
        ],
        run: create,
    },
    Service {
        name: "mangrove.graph.drop",
        summary: "drop a graph that was created, with its files",
        parameters: &[("name", "its name")],
        run: drop_graph,
    },
    Service {
        name: "mangrove.graph.list",
        summary: "the graphs of the server that the caller may read, and their traversal sources",
        parameters: &[],
        run: list_graphs,
    },
    Service {
        name: KILL,
        summary: "stop a query: one's own, or any on a graph one administers",
        parameters: &[("id", "its number, as mangrove.queries shows it")],
        run: kill_query,
    },
    Service {
        name: "mangrove.queries",
        summary: "the queries that run: one's own, and all on graphs one administers",
        parameters: &[],
        run: list_queries,
    },
];

/// The database's service that lists services.
const LIST: &str = "--list";

impl Services for Desk {
    fn call(&self, service: Option<&str>, given: &Given) -> Result<Vec<Value>> {
        let name = service.unwrap_or(LIST);
        if let Some(own) = SERVICES.iter().find(|own| own.name == name) {
            own.check(given)?;
            return (own.run)(self, given);
        }
        let database = self.graph.database();
        let places = Places::told(&self.caller, &self.graph);
        if name == LIST {
            let mut rows = database.call(service, given)?;
            rows.extend(listed(given)?);
            rows.sort_by(|a, b| listed_name(a).cmp(listed_name(b)));
            return Ok(rows);
        }
        let need = |level| self.caller.require(&self.graph.name, level, format_args!("the service {name}"));
        let level = match Database::service_effect(service, given) {
            ServiceEffect::Looks => Access::Read,
            ServiceEffect::Writes => Access::Write,
            ServiceEffect::Administers => {
                return self.administering(name, &self.graph.name, || {
                    need(Access::Admin)?;
                    database.call(service, given)
                });
            }
        };
        need(level)?;
        Ok(database.call(service, given)?.into_iter().map(|row| places.value(row)).collect())
    }
}

impl Desk {
    /// Does something that is noted in the audit log, whatever becomes of it.
    fn administering<T>(&self, service: &str, object: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let outcome = work();
        audit::note(&self.caller, Act::Service { service, object }, outcome.as_ref().err());
        outcome
    }
}

impl Service {
    /// Refuses names the service does not know: a misspelled one must not be ignored.
    fn check(&self, given: &Given) -> Result<()> {
        let names = || self.parameters.iter().map(|(name, _)| *name);
        match given.iter().find(|(name, _)| !names().any(|known| known == name)) {
            None => Ok(()),
            Some((unknown, _)) => {
                let takes: Vec<&str> = names().collect();
                let takes = if takes.is_empty() { "nothing".to_owned() } else { takes.join(", ") };
                Err(Error::invalid(format!("{} takes {takes}, not '{unknown}'", self.name)))
            }
        }
    }
}

fn get<'a>(given: &'a Given, name: &str) -> Option<&'a Value> {
    given.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn graph_name<'a>(service: &str, given: &'a Given) -> Result<&'a str> {
    match get(given, "name") {
        Some(Value::String(name)) => Ok(name),
        _ => Err(Error::invalid(format!("{service} needs with('name', …): the name of a graph, a string"))),
    }
}

fn flag(service: &str, given: &Given, name: &str) -> Result<bool> {
    match get(given, name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => {
            Err(Error::invalid(format!("{service}: '{name}' is true or false, not a {}", other.type_name())))
        }
    }
}

fn bytes(service: &str, given: &Given) -> Result<Option<u64>> {
    let Some(value) = get(given, "memory_limit") else { return Ok(None) };
    let bytes = match value {
        Value::I32(bytes) => u64::try_from(*bytes).ok(),
        Value::I64(bytes) => u64::try_from(*bytes).ok(),
        _ => None,
    };
    match bytes {
        Some(bytes) if bytes > 0 => Ok(Some(bytes)),
        _ => Err(Error::invalid(format!("{service}: 'memory_limit' is a number of bytes, above 0"))),
    }
}

fn sources(service: &str, given: &Given) -> Result<Vec<(SmolStr, Isolation)>> {
    let wrong = || Error::invalid(format!("{service}: 'sources' is a map, as in ['gbooks': 'serializable']"));
    let Some(value) = get(given, "sources") else { return Ok(Vec::new()) };
    let Value::Map(entries) = value else { return Err(wrong()) };
    let source = |(name, level): &(Value, Value)| match (name, level) {
        (Value::String(name), Value::String(level)) => Ok((name.clone(), isolation_of(level)?)),
        _ => Err(wrong()),
    };
    let sources: Vec<_> = entries.iter().map(source).collect::<Result<_>>()?;
    if sources.is_empty() { Err(wrong()) } else { Ok(sources) }
}

/// What the database's list of services lacks.
fn listed(given: &Given) -> Result<Vec<Value>> {
    let only = match get(given, "service") {
        Some(Value::String(name)) => Some(name),
        _ => None,
    };
    let verbose = flag(LIST, given, "verbose")?;
    let wanted = SERVICES.iter().filter(|service| only.is_none_or(|name| service.name == name));
    Ok(wanted.map(|service| if verbose { described(service) } else { service.name.into() }).collect())
}

/// The name in a row of the list: the row itself, or its entry.
fn listed_name(row: &Value) -> &str {
    let name = match row {
        Value::Map(entries) => entries.iter().find(|(key, _)| *key == Value::from("name")).map(|(_, value)| value),
        other => Some(other),
    };
    match name {
        Some(Value::String(name)) => name,
        _ => "",
    }
}

fn described(service: &Service) -> Value {
    row([
        ("name", service.name.into()),
        ("type", Value::list(vec!["Start".into(), "Streaming".into()])),
        ("description", service.summary.into()),
        ("params", row(service.parameters.iter().map(|&(name, meaning)| (name, meaning.into())))),
    ])
}

fn row(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

fn create(desk: &Desk, given: &Given) -> Result<Vec<Value>> {
    let service = "mangrove.graph.create";
    let (name, in_memory) = (graph_name(service, given)?, flag(service, given, "memory")?);
    let options = GraphOptions { memory_limit_bytes: bytes(service, given)?, sources: sources(service, given)? };
    desk.administering(service, name, || {
        desk.caller.require_server_admin(format_args!("creating the graph `{name}`"))?;
        desk.hub.registry.create(name, in_memory, &options)
    })?;
    Ok(graph_rows(desk).into_iter().filter(|(listed, _)| listed == name).map(|(_, row)| row).collect())
}

fn drop_graph(desk: &Desk, given: &Given) -> Result<Vec<Value>> {
    let service = "mangrove.graph.drop";
    let name = graph_name(service, given)?;
    let shown = graph_rows(desk).into_iter().filter(|(listed, _)| listed == name).map(|(_, row)| row).collect();
    desk.administering(service, name, || {
        desk.caller.require_server_admin(format_args!("dropping the graph `{name}`"))?;
        desk.hub.registry.drop_graph(name)
    })?;
    Ok(shown)
}

fn list_graphs(desk: &Desk, _: &Given) -> Result<Vec<Value>> {
    Ok(graph_rows(desk).into_iter().map(|(_, row)| row).collect())
}

/// The graphs that the caller may know of, by name.
fn graph_rows(desk: &Desk) -> Vec<(SmolStr, Value)> {
    let visible = desk.hub.registry.graphs().into_iter().filter_map(|(graph, sources)| {
        let access = desk.caller.access(&graph.name)?;
        let sources =
            sources.into_iter().map(|(name, isolation)| (Value::String(name), isolation_name(isolation).into()));
        let directory = graph.database().durability().map(|durability| durability.directory.display().to_string());
        let kept = directory
            .map_or("memory:".into(), |directory| Places::told(&desk.caller, &graph).text(&directory).into_owned());
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

fn list_queries(desk: &Desk, _: &Given) -> Result<Vec<Value>> {
    Ok(desk.hub.queries.seen_by(&desk.caller).iter().map(query_row).collect())
}

/// Ends a query, which is noted in the audit log.
pub fn kill(queries: &Queries, id: u64, caller: &Caller) -> Result<Running> {
    let killed = caller.require_change("ending a query").and_then(|()| queries.kill(id, caller));
    let object = id.to_string();
    audit::note(caller, Act::Service { service: KILL, object: &object }, killed.as_ref().err());
    killed
}

fn kill_query(desk: &Desk, given: &Given) -> Result<Vec<Value>> {
    let number = get(given, "id").and_then(mangrove_graph::numeric::integer).and_then(|n| u64::try_from(n).ok());
    let Some(id) = number else {
        return Err(Error::invalid(format!("{KILL} needs with('id', …): the number of a query")));
    };
    Ok(vec![query_row(&kill(&desk.hub.queries, id, &desk.caller)?)])
}

fn query_row(query: &Running) -> Value {
    row([
        ("id", Value::I64(i64::try_from(query.id).unwrap_or(i64::MAX))),
        ("user", query.caller.name().into()),
        ("from", query.caller.peer().into()),
        ("graph", Value::String(query.graph.clone())),
        ("source", Value::String(query.source.clone())),
        ("milliseconds", Value::I64(i64::try_from(query.since.elapsed().as_millis()).unwrap_or(i64::MAX))),
        ("query", audit::shortened(&query.bytecode.to_string()).into()),
    ])
}
