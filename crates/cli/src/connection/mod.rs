//! The connection of a command: to a server, or to a graph that this program opens. Commands do not distinguish the
//! two.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove::{Error, Parameters, Result, Value};

use self::local::Local;
use crate::args::{GraphArgs, ServerAddress};
pub use crate::client::Ask;
use crate::client::{self, Client};

pub mod graphs;
mod local;

/// The behavior if the command names no graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// A new, empty graph in memory.
    Memory,
    /// The same. A named graph is opened for reading only, so that nothing in its directory changes.
    MemoryToRead,
    /// An error, because a new graph would accept any command and end with the program.
    Refuse,
}

/// Results in the order in which they arrive.
pub type Results<'a> = Box<dyn Iterator<Item = Result<Value>> + 'a>;

/// A connection to a server, or to a graph in this process.
pub enum Connection {
    /// A server.
    Server(Box<Client>),
    /// A graph in this process.
    Here(Box<Local>),
}

impl Connection {
    /// Connects to a server, on which `g` stands for the source given; or opens a graph and loads files into it.
    pub fn open(
        server: Option<ServerAddress<'_>>,
        graph: &GraphArgs,
        load: &[PathBuf],
        unnamed: Unnamed,
    ) -> Result<Self> {
        if let Some(ServerAddress { url, source }) = server {
            return Ok(Connection::Server(Box::new(Client::connect(url)?.with_source(source))));
        }
        if unnamed == Unnamed::Refuse && load.is_empty() && graph.data.is_none() {
            return Err(Error::invalid(
                "which database? name a running server with --url, as in --url ws://127.0.0.1:8182/gremlin, a \
                 directory \
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
            eprintln!("loaded {}", graphs::load_summary(&report));
            if report.rejects > 0 {
                eprintln!("{} rows were rejected; `mangrove load --rejects FILE` says why", report.rejects);
            }
        }
        let name = graph.data.as_deref().unwrap_or(graphs::DATA_DEFAULT);
        Ok(Connection::Here(Box::new(Local::new(database, name))))
    }

    /// The URL or the directory.
    pub fn name(&self) -> String {
        match self {
            Connection::Server(client) => client.url(),
            Connection::Here(local) => local.name().to_owned(),
        }
    }

    /// Runs a script, in the open transaction or else in one of its own.
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

    /// The traversal source of the open transaction.
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

    /// Commits the open transaction, which ends in any case.
    pub fn commit(&mut self) -> Result<()> {
        self.check_open("commit")?;
        match self {
            Connection::Server(client) => client.end("commit"),
            Connection::Here(local) => local.commit(),
        }
    }

    /// Rolls back the open transaction.
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

    /// Returns true if the connection to a server was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self, Connection::Server(client) if client.is_lost())
    }

    /// Connects again. An open transaction is lost.
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

    /// A handle that stops the running query from another thread.
    pub fn canceller(&mut self) -> Canceller {
        match self {
            Connection::Server(client) => Canceller::Server(client.canceller()),
            Connection::Here(local) => Canceller::Here(local.cancel()),
        }
    }
}

/// Stops the running query, from any thread.
#[derive(Clone)]
pub enum Canceller {
    /// A query on a server.
    Server(client::Canceller),
    /// A query in this process.
    Here(Arc<AtomicBool>),
}

impl Canceller {
    /// Stops it. Returns false if there was none to stop.
    pub fn cancel(&self, source: &str) -> Result<bool> {
        match self {
            Canceller::Server(canceller) => canceller.cancel(source).map(|count| count > 0),
            Canceller::Here(flag) => {
                flag.store(true, Ordering::Relaxed);
                Ok(true)
            }
        }
    }

    /// Gives up waiting for it. A connection to a server is closed. A query in this process is stopped and waited for.
    pub fn abandon(&self) {
        match self {
            Canceller::Server(canceller) => canceller.abandon(),
            Canceller::Here(flag) => flag.store(true, Ordering::Relaxed),
        }
    }
}
