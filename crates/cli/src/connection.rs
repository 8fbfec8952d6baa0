//! Whom to ask: a server, or a graph opened in this process. Commands do not care which.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove::{Error, Parameters, Result, Value};

use crate::args::GraphArgs;
pub use crate::client::Ask;
use crate::client::{self, Client};
use crate::local::{self, Local};
use crate::{graphs, load};

/// What is done where the command names no graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// A new, empty graph in memory.
    Memory,
    /// The same; and a graph that is named is only read, so that nothing in its directory is changed.
    MemoryToRead,
    /// An error: such a graph would take any command and be gone with it.
    Refuse,
}

/// A running server, and which of its graphs.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// Where it is.
    pub url: &'a str,
    /// The traversal source; `None`: the one named `g`.
    pub source: Option<&'a str>,
}

/// Results as they come.
pub type Results<'a> = Box<dyn Iterator<Item = Result<Value>> + 'a>;

/// A server, or a graph here.
pub enum Connection {
    /// A server.
    Server(Box<Client>),
    /// A graph opened here.
    Here(Box<Local>),
}

impl Connection {
    /// Connects to the server of a URL, where `g` is the traversal source named, or opens a graph and loads files into it.
    pub fn open(server: Option<Server<'_>>, graph: &GraphArgs, load: &[PathBuf], unnamed: Unnamed) -> Result<Self> {
        if let Some(Server { url, source }) = server {
            return Ok(Connection::Server(Box::new(Client::connect(url)?.with_source(source))));
        }
        if unnamed == Unnamed::Refuse && load.is_empty() && graph.data.is_none() {
            return Err(Error::invalid(
                "which database? name a running server with --url, as in --url ws://127.0.0.1:8182/gremlin, a directory \
                 with --data, or files with --load",
            ));
        }
        let missing = match (load.is_empty(), unnamed) {
            (false, _) => graphs::Missing::Create,
            (true, Unnamed::MemoryToRead) => graphs::Missing::ReadOnly,
            (true, _) => graphs::Missing::Refuse,
        };
        let database = graphs::open(graph.data.as_deref(), graph.memory_limit, missing)?;
        if !load.is_empty() {
            let report = graphs::load(&database, load, &graphs::load_options(graph.map.as_deref())?)?;
            eprintln!("loaded {}", load::summary(&report));
            if report.rejects > 0 {
                eprintln!("{} rows were rejected; `mangrove load --rejects FILE` says why", report.rejects);
            }
        }
        let name = graph.data.as_deref().unwrap_or(graphs::DATA_DEFAULT);
        Ok(Connection::Here(Box::new(Local::new(database, name))))
    }

    /// A URL or a directory.
    pub fn name(&self) -> String {
        match self {
            Connection::Server(client) => client.url(),
            Connection::Here(local) => local.name().to_owned(),
        }
    }

    /// Runs a script, in the transaction that is open or in one of its own.
    pub fn ask(&mut self, ask: &Ask<'_>) -> Result<Results<'_>> {
        Ok(match self {
            Connection::Server(client) => Box::new(client.ask(ask)?),
            Connection::Here(local) => Box::new(local.ask(ask)?),
        })
    }

    /// All results of a script with parameters.
    pub fn run(&mut self, script: &str, parameters: &Parameters) -> Result<Vec<Value>> {
        match self {
            Connection::Server(client) => client.run(script, parameters),
            Connection::Here(local) => local.ask(&Ask::new(script, parameters))?.collect(),
        }
    }

    /// The traversal source of the transaction that is open.
    pub fn transaction(&self) -> Option<&str> {
        match self {
            Connection::Server(client) => client.transaction(),
            Connection::Here(local) => local.transaction(),
        }
    }

    /// Begins a transaction.
    pub fn begin(&mut self, source: &str) -> Result<()> {
        if let Some(open) = self.transaction() {
            return Err(Error::invalid(format!(
                "a transaction is open on `{open}` already; commit it or roll it back first"
            )));
        }
        match self {
            Connection::Server(client) => client.begin(source),
            Connection::Here(local) => local.begin(source),
        }
    }

    /// Commits the open transaction. It is over, whatever the outcome.
    pub fn commit(&mut self) -> Result<()> {
        self.check_open("commit")?;
        match self {
            Connection::Server(client) => client.end("commit"),
            Connection::Here(local) => local.commit(),
        }
    }

    /// Takes back what the open transaction did.
    pub fn rollback(&mut self) -> Result<()> {
        self.check_open("roll back")?;
        match self {
            Connection::Server(client) => client.end("rollback"),
            Connection::Here(local) => {
                local.rollback();
                Ok(())
            }
        }
    }

    fn check_open(&self, act: &str) -> Result<()> {
        match self.transaction() {
            Some(_) => Ok(()),
            None => Err(Error::invalid(format!("there is no transaction to {act}: none was begun"))),
        }
    }

    /// Whether there was a connection, and it was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self, Connection::Server(client) if client.is_lost())
    }

    /// Connects again. What was open is gone.
    pub fn reconnect(&mut self) -> Result<()> {
        match self {
            Connection::Server(client) => client.reconnect(),
            Connection::Here(_) => Ok(()),
        }
    }

    /// The names of the traversal sources.
    pub fn sources(&mut self, source: &str) -> Result<Vec<String>> {
        if let Connection::Here(_) = self {
            return Ok(local::SOURCES.map(|(name, _)| name.to_owned()).to_vec());
        }
        let none = Parameters::new();
        let ask = Ask { source: Some(source), ..Ask::new("g.call('mangrove.graph.list').select('sources')", &none) };
        let mut names = Vec::new();
        for row in self.ask(&ask)? {
            if let Value::Map(sources) = row? {
                names.extend(sources.iter().filter_map(|(name, _)| match name {
                    Value::String(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
        }
        Ok(names)
    }

    /// What stops a query from another thread.
    pub fn canceller(&self) -> Canceller {
        match self {
            Connection::Server(client) => Canceller::Server(client.canceller()),
            Connection::Here(local) => Canceller::Here(local.cancel()),
        }
    }
}

/// Stops the query that runs, from any thread.
#[derive(Clone)]
pub enum Canceller {
    /// On a server.
    Server(client::Canceller),
    /// Here.
    Here(Arc<AtomicBool>),
}

impl Canceller {
    /// Stops it; `Ok(false)` where nothing was found to stop.
    pub fn cancel(&self, source: &str) -> Result<bool> {
        match self {
            Canceller::Server(canceller) => canceller.cancel(source).map(|count| count > 0),
            Canceller::Here(flag) => {
                flag.store(true, Ordering::Relaxed);
                Ok(true)
            }
        }
    }

    /// Waits for it no longer, at the price of the connection. What runs here is stopped and waited for.
    pub fn abandon(&self) {
        match self {
            Canceller::Server(canceller) => canceller.abandon(),
            Canceller::Here(flag) => flag.store(true, Ordering::Relaxed),
        }
    }
}
