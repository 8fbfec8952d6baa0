//! The services of `call()`, by name: management through the query language.
//!
//! `g.call()` lists them, `g.call('--list').with('verbose')` says what each is given. In a traversal, a service is
//! called once for every row that reaches it. Services work on the database, not in the transaction that calls
//! them: they act at once, see what is there now, and are not taken back by a rollback. A source with
//! `ReadOnlyStrategy` refuses them.
//!
//! Whoever adds a service adds a line to [`SERVICES`]. Those that read the graph in the caller's transaction are the
//! [services of the graph](mangrove_steps::GRAPH_SERVICES).

mod durability;
mod indexes;
mod reports;
mod schema;
mod upsert;

use std::fmt;
use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind, Result, Value};
use mangrove_load::rows::names;
use mangrove_plan::logical::Name;
use mangrove_steps::Services;
use mangrove_steps::{GRAPH_SERVICES, GraphService};

use crate::database::Database;
use crate::management::{SETTINGS, switch};

/// What a service is given, by name.
struct Arguments<'a> {
    service: &'a Service,
    given: &'a [(Name, Value)],
}

impl Arguments<'_> {
    /// The value under a name; of two the later.
    fn get(&self, name: &str) -> Option<&Value> {
        self.given.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value)
    }

    fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.misfit(name, "a string", other)),
        }
    }

    fn flag(&self, name: &str) -> Result<bool> {
        self.get(name).map_or(Ok(false), |value| switch(name, value))
    }

    fn misfit(&self, name: &str, wanted: &str, given: &Value) -> Error {
        Error::invalid(format!("{}: '{name}' is {wanted}, not a {}", self.service.name, given.type_name()))
    }

    /// An error of an argument, with the service it was given to.
    fn placed(&self, error: Error) -> Error {
        error.context(self.service.name)
    }

    /// Refuses names the service does not know: a misspelled one must not be ignored.
    fn check(&self) -> Result<()> {
        let known = |name: &str| self.service.parameters.iter().any(|(parameter, _)| *parameter == name);
        match self.given.iter().find(|(name, _)| !known(name)) {
            None => Ok(()),
            // The list may be asked as that of TinkerGraph, which passes over what it does not know.
            Some(_) if self.service.name == LIST => Ok(()),
            Some((unknown, _)) => {
                let names: Vec<&str> = self.service.parameters.iter().map(|(name, _)| *name).collect();
                let takes = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                Err(Error::invalid(format!("{} takes {takes}, not '{unknown}'", self.service.name)))
            }
        }
    }
}

/// Who answers the `call()`s of a query: [`QueryOptions::services`](crate::QueryOptions::services).
#[derive(Clone)]
pub struct ServiceDesk(pub Arc<dyn Services>);

impl fmt::Debug for ServiceDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceDesk")
    }
}

/// What a call of a service may do, and so what right on the graph its caller needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceEffect {
    /// It only looks.
    Looks,
    /// It writes to the graph.
    Writes,
    /// It changes how the database works, or what it costs everybody, and so is an administrator's.
    Administers,
}

/// What the calls of a service do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// All the same.
    Of(ServiceEffect),
    /// Those that are given something administer; the others only look.
    OfGiven,
}

const LOOKS: Effect = Effect::Of(ServiceEffect::Looks);
const WRITES: Effect = Effect::Of(ServiceEffect::Writes);
const ADMINISTERS: Effect = Effect::Of(ServiceEffect::Administers);

/// A service.
struct Service {
    name: &'static str,
    summary: &'static str,
    effect: Effect,
    /// What it may be given, and what that means.
    parameters: &'static [(&'static str, &'static str)],
    run: fn(&Database, &Arguments<'_>) -> Result<Vec<Value>>,
}

/// The service that lists the others.
const LIST: &str = "--list";

/// All services, by name.
const SERVICES: &[Service] = &[
    Service {
        name: LIST,
        summary: "list the services",
        effect: LOOKS,
        parameters: &[("service", "only this one"), ("verbose", "with what they do and are given")],
        run: list,
    },
    Service {
        name: "mangrove.checkpoint",
        summary: "write what has changed to the database's directory, so that its log is short",
        effect: ADMINISTERS,
        parameters: &[],
        run: durability::checkpoint,
    },
    Service {
        name: "mangrove.config",
        summary: "the settings of the running database; given some, change them first",
        effect: Effect::OfGiven,
        parameters: SETTINGS,
        run: reports::config,
    },
    Service {
        name: "mangrove.durability",
        summary: "the state of the log and of the checkpoints",
        effect: LOOKS,
        parameters: &[],
        run: durability::state,
    },
    Service {
        name: "mangrove.gc",
        summary: "what garbage collection waits for and has done; asked to, collect first, on the caller's time",
        effect: Effect::OfGiven,
        parameters: &[
            ("collect", "collect what nobody sees any more"),
            ("compact", "collect, and pack the adjacency of what all running transactions see alike"),
        ],
        run: reports::garbage,
    },
    Service {
        name: "mangrove.index.create",
        summary: "create an index while transactions go on",
        effect: ADMINISTERS,
        parameters: &[
            ("label", "of vertices with this label; without: of all"),
            ("key", "the property, or a list of properties"),
            ("kind", "'hash' (equality) or 'ordered' (ranges, too); default hash"),
            ("unique", "refuse a second vertex with the same values; default false"),
        ],
        run: indexes::create,
    },
    Service {
        name: "mangrove.index.drop",
        summary: "drop the index with this number, or the one that is about this",
        effect: ADMINISTERS,
        parameters: &[
            ("id", "its number"),
            ("label", "its label"),
            ("key", "its property, or the list of them"),
            ("kind", "its kind, where two differ in that alone"),
        ],
        run: indexes::drop,
    },
    Service {
        name: "mangrove.index.list",
        summary: "the indexes with their numbers of entries and values",
        effect: LOOKS,
        parameters: &[],
        run: indexes::list,
    },
    Service {
        name: "mangrove.memory",
        summary: "what the graph's memory goes into, by kind of record",
        effect: LOOKS,
        parameters: &[],
        run: reports::memory,
    },
    Service {
        name: "mangrove.names",
        summary: "the labels and the property keys that were ever used",
        effect: LOOKS,
        parameters: &[],
        run: reports::names,
    },
    Service {
        name: "mangrove.schema.drop",
        summary: "drop the rule with this number",
        effect: ADMINISTERS,
        parameters: &[("id", "its number")],
        run: schema::drop,
    },
    Service {
        name: "mangrove.schema.ends",
        summary: "make a rule: edges of a label lead from vertices with some labels to vertices with others",
        effect: ADMINISTERS,
        parameters: &[
            ("label", "the edges' label"),
            ("ends", "the pairs of labels that are allowed, from and to: [['person', 'company']]"),
        ],
        run: schema::ends,
    },
    Service {
        name: "mangrove.schema.list",
        summary: "the rules that everything committed keeps to",
        effect: LOOKS,
        parameters: &[],
        run: schema::list,
    },
    Service {
        name: "mangrove.schema.require",
        summary: "make a rule: vertices, or edges, with a label have a property",
        effect: ADMINISTERS,
        parameters: &[
            ("element", "'vertex' or 'edge'; default vertex"),
            ("label", "with this label"),
            ("key", "the property"),
        ],
        run: schema::require,
    },
    Service {
        name: "mangrove.schema.type",
        summary: "make a rule: the values of a property of vertices, or edges, with a label are of a type",
        effect: ADMINISTERS,
        parameters: &[
            ("element", "'vertex' or 'edge'; default vertex"),
            ("label", "with this label"),
            ("key", "the property"),
            ("type", "'string', 'long', 'integer' (of any width), 'number', 'datetime' and so on"),
        ],
        run: schema::value_type,
    },
    Service {
        name: "mangrove.stats",
        summary: "all the others that report, in one row: memory, transactions, garbage, log, plans, executors",
        effect: LOOKS,
        parameters: &[],
        run: reports::stats,
    },
    Service {
        name: "mangrove.transactions",
        summary: "how many transactions ended which way",
        effect: LOOKS,
        parameters: &[],
        run: reports::transactions,
    },
    Service {
        name: "mangrove.upsert.edges",
        summary: "write edges as one transaction, in place of those that are there: what `mangrove load --url` sends",
        effect: WRITES,
        parameters: &[
            (names::LABEL, "their label"),
            (names::COUNT, "how many rows there are"),
            (names::SOURCES, "the ids of the vertices they come from, one a row"),
            (names::TARGETS, "the ids of the vertices they go to, one a row"),
            (names::IDS, "their own ids, one a row; without: the graph chooses"),
            (names::COLUMNS, "a map of property keys to lists of values, one a row; null where the row has none"),
            (names::KEY, "the properties that tell them from others between the same vertices"),
            (names::MET, "ids of edges that earlier rows of the load mean"),
        ],
        run: upsert::edges,
    },
    Service {
        name: "mangrove.upsert.find",
        summary: "the id of the vertex that an upsert would find",
        effect: LOOKS,
        parameters: &[
            (names::ID, "its id, or the value of the key"),
            (names::KEY, "the property it is found by"),
            (names::KEY_LABEL, "the label of the vertices with this key"),
        ],
        run: upsert::find,
    },
    Service {
        name: "mangrove.upsert.vertices",
        summary: "write vertices as one transaction, in place of those that are there: what `mangrove load --url` sends",
        effect: WRITES,
        parameters: &[
            (names::LABEL, "their label, or several as in a::b"),
            (names::COUNT, "how many rows there are"),
            (names::IDS, "their ids, one a row; without: the graph chooses"),
            (names::COLUMNS, "a map of property keys to lists of values, one a row; null where the row has none"),
            (
                names::MULTI,
                "properties of several values: lists of row, key, 'list' or 'set', and [value, map] of each",
            ),
            (names::KEY, "the properties that they are found by; without: their ids"),
            (names::KEY_LABEL, "the label of the vertices with this key"),
        ],
        run: upsert::vertices,
    },
];

impl Database {
    /// What a call of a service may do. One that is unknown is taken for an administrator's.
    pub fn service_effect(service: Option<&str>, arguments: &[(Name, Value)]) -> ServiceEffect {
        let name = service.unwrap_or(LIST);
        let found = SERVICES.iter().find(|service| service.name == name);
        match found.map_or(ADMINISTERS, |service| service.effect) {
            Effect::Of(effect) => effect,
            Effect::OfGiven if arguments.is_empty() => ServiceEffect::Looks,
            Effect::OfGiven => ServiceEffect::Administers,
        }
    }
}

impl Services for Database {
    fn call(&self, service: Option<&str>, arguments: &[(Name, Value)]) -> Result<Vec<Value>> {
        let name = service.unwrap_or(LIST);
        let found = SERVICES.iter().find(|service| service.name == name).ok_or_else(|| {
            let of_graph = GRAPH_SERVICES.iter().map(|service| service.name);
            let names = SERVICES.iter().map(|service| service.name).chain(of_graph);
            let hint = mangrove_gremlin::suggest(name, names);
            Error::new(ErrorKind::InvalidArgument, format!("there is no service '{name}'{hint}; call() lists them"))
        })?;
        let arguments = Arguments { service: found, given: arguments };
        arguments.check()?;
        (found.run)(self, &arguments)
    }
}

fn list(_: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let (only, verbose) = (arguments.text("service")?, arguments.flag("verbose")?);
    let listed = SERVICES.iter().filter(|service| only.is_none_or(|name| service.name == name));
    let listed = listed.map(|service| if verbose { described(service) } else { service.name.into() });
    let of_graph = GRAPH_SERVICES.iter().filter(|service| only.is_none_or(|name| service.name == name));
    let of_graph = of_graph.map(|service| if verbose { described_of_graph(service) } else { service.name.into() });
    Ok(listed.chain(of_graph).collect())
}

fn described_of_graph(service: &GraphService) -> Value {
    let parameters = service.parameters.iter().map(|&(name, meaning)| (name, meaning.into()));
    row([
        ("name", service.name.into()),
        ("type", Value::list(service.types.iter().map(|&name| name.into()).collect())),
        ("description", service.summary.into()),
        ("params", row(parameters)),
    ])
}

fn described(service: &Service) -> Value {
    let parameters = service.parameters.iter().map(|&(name, meaning)| (name, meaning.into()));
    row([
        ("name", service.name.into()),
        ("type", Value::list(vec!["Start".into(), "Streaming".into()])),
        ("description", service.summary.into()),
        ("params", row(parameters)),
    ])
}

/// A map with these entries.
fn row(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
}
