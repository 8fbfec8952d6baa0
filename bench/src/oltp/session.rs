//! The interfaces that run templates: typed, prepared Gremlin, or a server. One template is one transaction.

use std::sync::Arc;

use mangrove::{
    Database, Detached, EdgeId, Error, Isolation, Parameters, Prepared, Result, TransactionOptions, UserId, Value,
};
use smol_str::SmolStr;

use super::draw::Arguments;
use super::graph::{Graph, id_value};
use super::template::{Mix, Parameter, Template};
use super::typed::Typed;
use crate::client::Client;
use crate::served::{Served, source};

/// An interface of the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Api {
    /// The typed interface
    Typed,
    /// Gremlin, prepared once and run with parameters
    Gremlin,
    /// Gremlin as text with parameters, through a server on the loopback interface
    Server,
}

impl Api {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Api::Typed => "typed",
            Api::Gremlin => "gremlin",
            Api::Server => "server",
        }
    }
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Done {
    /// The number of results, or of elements written to; 0 if the vertex or edge of the template does not exist.
    pub rows: u64,
    /// Versions written.
    pub writes: usize,
    /// Items in its read set.
    pub reads: usize,
    /// The edge that it added.
    pub created: Option<EdgeId>,
}

/// Runs the templates of one mix.
pub trait Session: Send {
    /// Runs one template, given by its index in the mix. A conflict is an error; it is not retried.
    fn perform(&mut self, template: usize, arguments: &Arguments) -> Result<Done>;
}

/// A session for one thread.
pub fn session(
    api: Api,
    graph: &Arc<Graph>,
    mix: &Mix,
    isolation: Isolation,
    served: Option<&Served>,
) -> Result<Box<dyn Session>> {
    Ok(match api {
        Api::Typed => Box::new(Typed::new(graph, mix, isolation)),
        Api::Gremlin => Box::new(Gremlin::new(&graph.database, mix, isolation)?),
        Api::Server => {
            let served = served.ok_or_else(|| Error::bug("a session with a server needs one"))?;
            let client = Client::connect(served.address(), source(isolation))?;
            Box::new(Remote { client, scripts: Script::all(mix) })
        }
    })
}

/// The options of a transaction that may write.
pub fn options(isolation: Isolation) -> TransactionOptions {
    TransactionOptions { isolation, read_only: false }
}

/// A template's script and its parameters.
struct Script {
    text: SmolStr,
    uses: Vec<Parameter>,
    /// True if its result is the edge that it adds.
    makes_edge: bool,
    bound: Parameters,
}

impl Script {
    fn all(mix: &Mix) -> Vec<Self> {
        mix.entries.iter().map(|(template, _)| Script::new(template)).collect()
    }

    fn new(template: &Template) -> Self {
        Script {
            text: template.gremlin.as_str().into(),
            uses: template.uses.clone(),
            makes_edge: template.verb.adds_edge(),
            bound: Parameters::new(),
        }
    }

    fn bind(&mut self, arguments: &Arguments) {
        for parameter in &self.uses {
            let (name, value) = match parameter {
                Parameter::Vertex => ("v", id_value(arguments.vertex)),
                Parameter::Other => ("w", id_value(arguments.other)),
                Parameter::Edge => ("e", Value::I64(arguments.edge.external())),
                Parameter::New => ("n", id_value(arguments.new)),
                Parameter::Number => ("x", Value::I64(arguments.number)),
                Parameter::Text => ("s", Value::String(arguments.text.clone())),
            };
            self.bound.insert(SmolStr::new_static(name), value);
        }
    }

    /// Records a result.
    fn take(&self, done: &mut Done, value: &Value, bulk: u64) {
        done.rows += bulk;
        if self.makes_edge
            && let Value::Detached(element) = value
            && let Detached::Edge { id, .. } = &**element
            && let Some(UserId::Int(id)) = UserId::from_value(id)
        {
            done.created = Some(EdgeId::from_external(id.number));
        }
    }
}

/// Runs prepared Gremlin.
struct Gremlin {
    database: Database,
    isolation: Isolation,
    scripts: Vec<(Script, Prepared)>,
}

impl Gremlin {
    fn new(database: &Database, mix: &Mix, isolation: Isolation) -> Result<Self> {
        let prepare = |script: Script| database.prepare(&script.text).map(|prepared| (script, prepared));
        let scripts = Script::all(mix).into_iter().map(prepare).collect::<Result<_>>()?;
        Ok(Gremlin { database: database.clone(), isolation, scripts })
    }
}

impl Session for Gremlin {
    fn perform(&mut self, template: usize, arguments: &Arguments) -> Result<Done> {
        let (script, prepared) = &mut self.scripts[template];
        script.bind(arguments);
        let transaction = match prepared.is_mutating() {
            true => self.database.begin_with(options(self.isolation))?,
            false => self.database.begin_read()?,
        };
        let mut done = Done::default();
        let mut results = transaction.run(prepared, &script.bound)?;
        while let Some(batch) = results.next_batch()? {
            batch.iter().for_each(|(value, bulk)| script.take(&mut done, value, *bulk));
        }
        drop(results);
        let info = transaction.commit()?;
        Ok(Done { writes: info.write_count, reads: info.read_count, ..done })
    }
}

/// Runs scripts on a server, over one connection.
struct Remote {
    client: Client,
    scripts: Vec<Script>,
}

impl Session for Remote {
    fn perform(&mut self, template: usize, arguments: &Arguments) -> Result<Done> {
        let script = &mut self.scripts[template];
        script.bind(arguments);
        let mut done = Done::default();
        let script = &*script;
        self.client.evaluate(&script.text, &script.bound, &mut |value, bulk| script.take(&mut done, value, bulk))?;
        Ok(done)
    }
}
