//! The management commands: `index`, `schema`, `config`, `inspect`, `checkpoint`, `graph`, `queries` and `kill`.
//!
//! Each is one `call()` of a service, on a server or on a graph that this program opens.

use std::io::{self, IsTerminal, Write};

use mangrove::{Error, Parameters, Result, Value};

use super::store;
use crate::args::ServerAddress;
use crate::args::{
    BackupArgs, CheckpointArgs, ConfigCommand, GraphArgs, GraphCommand, IndexCommand, InspectCommand, KillArgs,
    PromoteArgs, QueriesArgs, RuleArgs, SchemaCommand, ServerArgs, TargetArgs,
};
use crate::connection::{Connection, Unnamed};
use crate::output::ResultFormat;
use crate::{Failure, output};

/// Connects to the graph of a command.
fn open(args: &TargetArgs) -> Result<Connection> {
    Connection::open(args.server(), &args.graph, &args.load, Unnamed::Refuse)
}

/// A call of a service, with its arguments.
pub struct ServiceCall {
    script: String,
    parameters: Parameters,
}

impl ServiceCall {
    /// A call without arguments.
    pub fn new(service: &str) -> Self {
        ServiceCall { script: format!("g.call('{service}')"), parameters: Parameters::new() }
    }

    /// Adds an argument. Values travel as parameters, so nothing in them needs quoting.
    pub fn with(mut self, name: &str, value: Option<Value>) -> Self {
        if let Some(value) = value {
            self.script.push_str(&format!(".with('{name}', {name}_value)"));
            self.parameters.insert(format!("{name}_value").into(), value);
        }
        self
    }

    /// The script that makes the call, and its parameters.
    pub fn script(&self) -> (&str, &Parameters) {
        (&self.script, &self.parameters)
    }

    /// Makes the call on a server, for services that only a server has.
    fn send(self, server: &ServerArgs) -> Result<(), Failure> {
        self.answer(
            &mut Connection::open(
                Some(ServerAddress { url: &server.url, source: None }),
                &GraphArgs::default(),
                &[],
                Unnamed::Refuse,
            )?,
            server.format,
        )
    }

    fn print(self, target: &TargetArgs, format: ResultFormat) -> Result<(), Failure> {
        self.answer(&mut open(target)?, format)
    }

    fn answer(self, target: &mut Connection, format: ResultFormat) -> Result<(), Failure> {
        let results = target.run(&self.script, &self.parameters)?;
        let mut out = io::stdout().lock();
        output::print(&mut results.into_iter().map(Ok), format, &mut out)?;
        out.flush()?;
        Ok(())
    }
}

/// `mangrove index`.
pub fn index(command: &IndexCommand) -> Result<(), Failure> {
    match command {
        IndexCommand::Create { target, edges, label, keys, ordered, kind, unique, format } => {
            let kind = kind.as_deref().or(ordered.then_some("ordered"));
            let call = ServiceCall::new("mangrove.index.create")
                .with("element", edges.then(|| "edge".into()))
                .with("label", label.as_deref().map(Value::from))
                .with("key", Some(names(keys)))
                .with("kind", kind.map(Value::from))
                .with("unique", Some((*unique).into()));
            let mut connection = open(target)?;
            // Read before the call: creating the index adds its names to the catalog.
            let known = known_names(&mut connection)?;
            call.answer(&mut connection, *format)?;
            note_unknown_names(&known, label.iter().chain(keys));
            Ok(())
        }
        IndexCommand::Drop { target, id, edges, label, keys, format } => ServiceCall::new("mangrove.index.drop")
            .with("id", id.map(|id| Value::I64(i64::from(id))))
            .with("element", edges.then(|| "edge".into()))
            .with("label", label.as_deref().map(Value::from))
            .with("key", (!keys.is_empty()).then(|| names(keys)))
            .print(target, *format),
        IndexCommand::List { target, format } => ServiceCall::new("mangrove.index.list").print(target, *format),
    }
}

/// All labels and property keys that were ever used.
fn known_names(connection: &mut Connection) -> Result<Vec<String>> {
    let rows = connection.run("g.call('mangrove.names')", &Parameters::new())?;
    let lists = rows.iter().flat_map(|row| ["labels", "keys"].into_iter().filter_map(|kind| field(row, kind)));
    let names = lists.flat_map(|list| match list {
        Value::List(names) => names.as_slice(),
        _ => &[],
    });
    let text = |name: &Value| match name {
        Value::String(name) => Some(name.to_string()),
        _ => None,
    };
    Ok(names.filter_map(text).collect())
}

/// Warns about names that nothing in the graph ever had, because they may be misspelt.
fn note_unknown_names<'n>(known: &[String], names: impl Iterator<Item = &'n String>) {
    for name in names.filter(|name| !known.contains(name)) {
        let hint = mangrove_gremlin::suggest(name, known.iter().map(String::as_str));
        eprintln!("note: nothing in the graph has had the label or the property `{name}` so far{hint}");
    }
}

/// `mangrove schema`.
pub fn schema(command: &SchemaCommand) -> Result<(), Failure> {
    let rule = |service: &str, rule: &RuleArgs| {
        ServiceCall::new(service)
            .with("element", Some(if rule.edges { "edge".into() } else { "vertex".into() }))
            .with("label", Some(rule.label.as_str().into()))
            .with("key", Some(rule.key.as_str().into()))
    };
    match command {
        SchemaCommand::Require(args) => rule("mangrove.schema.require", args).print(&args.target, args.format),
        SchemaCommand::Type { rule: args, value_type } => rule("mangrove.schema.type", args)
            .with("type", Some(value_type.as_str().into()))
            .print(&args.target, args.format),
        SchemaCommand::Ends { target, label, pairs, format } => {
            let pairs = pairs.iter().map(|pair| label_pair(pair)).collect::<Result<_>>()?;
            ServiceCall::new("mangrove.schema.ends")
                .with("label", Some(label.as_str().into()))
                .with("ends", Some(Value::list(pairs)))
                .print(target, *format)
        }
        SchemaCommand::Drop { id, target, format } => {
            ServiceCall::new("mangrove.schema.drop").with("id", Some(Value::I64(i64::from(*id)))).print(target, *format)
        }
        SchemaCommand::List { target, format } => ServiceCall::new("mangrove.schema.list").print(target, *format),
    }
}

/// Parses `FROM:TO`.
fn label_pair(text: &str) -> Result<Value> {
    match text.split_once(':') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok(Value::list(vec![from.into(), to.into()])),
        _ => Err(Error::invalid(format!("`{text}`: write FROM:TO, two labels, as in person:company"))),
    }
}

fn names(keys: &[String]) -> Value {
    Value::list(keys.iter().map(|key| Value::from(key.as_str())).collect())
}

/// `mangrove graph`.
pub fn graph(command: &GraphCommand) -> Result<(), Failure> {
    match command {
        GraphCommand::Create { name, memory, memory_limit, sources, server } => {
            let bytes = memory_limit.map(|limit| Value::I64(limit.bytes.try_into().unwrap_or(i64::MAX)));
            let level = |source: &String| match source.split_once('=') {
                Some((name, level)) => Ok((name.into(), level.into())),
                None => Err(Error::invalid(format!("`{source}` is no NAME=LEVEL, as in gbooks=serializable"))),
            };
            let sources: Vec<(Value, Value)> = sources.iter().map(level).collect::<Result<_, _>>()?;
            ServiceCall::new("mangrove.graph.create")
                .with("name", Some(name.as_str().into()))
                .with("memory", Some((*memory).into()))
                .with("memory_limit", bytes)
                .with("sources", Some(sources).filter(|sources| !sources.is_empty()).map(Value::map))
                .send(server)
        }
        GraphCommand::Drop { name, yes, server } => {
            if !yes {
                confirm_drop(name)?;
            }
            ServiceCall::new("mangrove.graph.drop").with("name", Some(name.as_str().into())).send(server)
        }
        GraphCommand::List { server } => ServiceCall::new("mangrove.graph.list").send(server),
    }
}

/// Asks for confirmation before a graph is dropped.
fn confirm_drop(name: &str) -> Result<()> {
    if !io::stdin().is_terminal() {
        return Err(Error::invalid(format!(
            "this deletes all of the graph `{name}`; add --yes to say that it is meant"
        )));
    }
    eprint!("This deletes all of the graph `{name}`, and nothing brings it back. Type its name to go on: ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|e| Error::from(e).context("standard input"))?;
    if answer.trim() == name { Ok(()) } else { Err(Error::invalid("this was not its name; nothing was deleted")) }
}

/// `mangrove queries`.
pub fn queries(args: &QueriesArgs) -> Result<(), Failure> {
    ServiceCall::new("mangrove.queries").send(&args.server)
}

/// `mangrove kill`.
pub fn kill(args: &KillArgs) -> Result<(), Failure> {
    let id = i64::try_from(args.id).map_err(|_| Error::invalid(format!("{} numbers no query", args.id)))?;
    ServiceCall::new("mangrove.kill").with("id", Some(Value::I64(id))).send(&args.server)
}

/// `mangrove checkpoint`.
pub fn checkpoint(args: &CheckpointArgs) -> Result<(), Failure> {
    let topology = args.topology.map(Value::Bool);
    let parquet = args.parquet.then_some(Value::Bool(true));
    let call = ServiceCall::new("mangrove.checkpoint").with("topology", topology).with("parquet", parquet);
    call.print(&args.target, args.format)
}

/// `mangrove promote`.
pub fn promote(args: &PromoteArgs) -> Result<(), Failure> {
    ServiceCall::new("mangrove.promote").send(&args.server)
}

/// `mangrove backup`.
pub fn backup(args: &BackupArgs) -> Result<(), Failure> {
    if args.list {
        return store::list_backups(args);
    }
    match (&args.url, &args.data) {
        (Some(_), _) => {
            let target = TargetArgs { url: args.url.clone(), source: args.source.clone(), ..TargetArgs::default() };
            ServiceCall::new("mangrove.backup")
                .with("to", Some(args.to.as_str().into()))
                .with("keep", args.keep.map(|keep| Value::I64(i64::try_from(keep).unwrap_or(i64::MAX))))
                .print(&target, args.format)
        }
        (None, Some(data)) => store::backup(args, data),
        (None, None) => Err(Error::invalid("say with --data or --url which graph").into()),
    }
}

/// `mangrove config`.
pub fn config(command: &ConfigCommand) -> Result<(), Failure> {
    let (target, call, format) = match command {
        ConfigCommand::Get { target, format } => (target, ServiceCall::new("mangrove.config"), *format),
        ConfigCommand::Set { target, settings, format } => {
            let mut call = ServiceCall::new("mangrove.config");
            for setting in settings {
                let (name, value) = parse(setting)?;
                call = call.with(name, Some(value));
            }
            (target, call, *format)
        }
    };
    call.print(target, format)
}

/// Parses `NAME=VALUE`. The value is true, false or a whole number.
fn parse(setting: &str) -> Result<(&str, Value)> {
    let wrong =
        || Error::invalid(format!("{setting}: write NAME=VALUE, as in gc_workers=2 or garbage_collection=false"));
    let (name, value) = setting.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
        return Err(wrong());
    }
    let value = match value {
        "true" => true.into(),
        "false" => false.into(),
        number => number.parse::<i64>().map(Value::I64).map_err(|_| wrong())?,
    };
    Ok((name, value))
}

/// A purpose of memory: its name, the scripts that count its elements, and the kinds of record that serve it alone.
type MemoryPurpose = (&'static str, &'static [&'static str], &'static [&'static str]);

const PURPOSES: &[MemoryPurpose] = &[
    ("vertex", &["g.V().count()"], &["vertex page"]),
    (
        "edge",
        &["g.E().count()"],
        &["edge page", "adjacency descriptors", "packed adjacency", "adjacency headers", "adjacency tails"],
    ),
    ("vertex or edge", &["g.V().count()", "g.E().count()"], &["version words", "id index", "directory"]),
    (
        "property value",
        &["g.V().properties().count()", "g.E().properties().count()"],
        &["column", "value", "property index"],
    ),
];

/// `mangrove inspect`.
pub fn inspect(command: &InspectCommand) -> Result<(), Failure> {
    let (target, format) = match command {
        InspectCommand::Memory { target, format } => (target, format),
        InspectCommand::Durability { target, format } => {
            return ServiceCall::new("mangrove.durability").print(target, *format);
        }
        InspectCommand::Statistics { target, label, edge, histogram, ends, walks, connections, refresh, format } => {
            let flag = |given: &bool| given.then_some(Value::Bool(true));
            return ServiceCall::new("mangrove.statistics")
                .with("label", label.as_deref().map(Value::from))
                .with("edge", edge.as_deref().map(Value::from))
                .with("histogram", flag(histogram))
                .with("ends", flag(ends))
                .with("walks", flag(walks))
                .with("connections", flag(connections))
                .with("refresh", flag(refresh))
                .print(target, *format);
        }
        InspectCommand::Log { data, format } => return store::log(data, *format),
        InspectCommand::Manifest { data } => return store::manifest(data),
        InspectCommand::Packs { data, blocks, format } => return store::packs(data, *blocks, *format),
    };
    let mut target = open(target)?;
    let none = Parameters::new();
    let rows = target.run("g.call('mangrove.memory')", &none)?;
    let mut out = io::stdout().lock();
    output::print(&mut rows.iter().cloned().map(Ok), *format, &mut out)?;
    out.flush()?;
    if *format == ResultFormat::Table {
        for (singular, counts, kinds) in PURPOSES {
            let mut count = 0;
            for script in *counts {
                count += target.run(script, &none)?.first().and_then(integer).unwrap_or(0);
            }
            let bytes: i64 = rows.iter().filter(|row| kinds.contains(&text(row, "kind"))).filter_map(bytes).sum();
            if count > 0 {
                let each = bytes as f64 / count as f64;
                eprintln!("{each:.1} bytes for each {singular} of {count} ({})", kinds.join(", "));
            }
        }
    }
    Ok(())
}

/// The value under a name in a row.
pub fn field<'a>(row: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(entries) = row else { return None };
    entries.iter().find(|(key, _)| *key == Value::from(name)).map(|(_, value)| value)
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    match field(row, name) {
        Some(Value::String(text)) => text,
        _ => "",
    }
}

fn bytes(row: &Value) -> Option<i64> {
    field(row, "bytes").and_then(integer)
}

/// A whole number.
pub fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::I64(n) => Some(*n),
        Value::I32(n) => Some(i64::from(*n)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_names_with_values() {
        assert_eq!(parse("gc_workers=2").unwrap(), ("gc_workers", Value::I64(2)));
        assert_eq!(parse("garbage_collection=false").unwrap(), ("garbage_collection", Value::Bool(false)));
        for wrong in ["gc", "=1", "a b=1", "gc_workers=two"] {
            assert!(parse(wrong).unwrap_err().message().contains("NAME=VALUE"), "{wrong}");
        }
    }
}
