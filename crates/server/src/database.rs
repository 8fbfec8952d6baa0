//! The database as the server's [`Engine`].
//!
//! Each traversal source stands for a database. A light query runs on the worker that took its request; one
//! that is not over soon goes on on the database's own executors, where many take turns and a short one does
//! not wait for a long one, and the worker takes the results.

use mangrove::{Database, Limits, QueryOptions, Transaction};
use mangrove_graph::{Result, Value};
use mangrove_gremlin::Terminal;
use smol_str::SmolStr;

use crate::engine::{Engine, EngineTransaction, Materialize, QueryRequest, ResultSink};

/// Databases behind a server.
pub struct DatabaseEngine {
    sources: Vec<(SmolStr, Database)>,
    query_memory_bytes: u64,
}

impl DatabaseEngine {
    /// No source yet; a query may hold so many bytes at a time.
    pub fn new(query_memory_bytes: u64) -> Self {
        DatabaseEngine { sources: Vec::new(), query_memory_bytes }
    }

    /// Offers a database under the name of a traversal source. A name that is there already is replaced.
    #[must_use]
    pub fn source(mut self, name: impl Into<SmolStr>, database: Database) -> Self {
        let name = name.into();
        self.sources.retain(|(other, _)| *other != name);
        self.sources.push((name, database));
        self
    }

    fn database(&self, source: &str) -> Result<&Database> {
        let found = self.sources.iter().find(|(name, _)| name == source);
        found.map(|(_, database)| database).ok_or_else(|| {
            mangrove_graph::Error::invalid(format!("there is no traversal source `{source}` on this server"))
        })
    }
}

impl Engine for DatabaseEngine {
    fn sources(&self) -> Vec<SmolStr> {
        self.sources.iter().map(|(name, _)| name.clone()).collect()
    }

    fn begin(&self, source: &str) -> Result<Box<dyn EngineTransaction>> {
        let transaction = self.database(source)?.begin()?;
        Ok(Box::new(DatabaseTransaction { transaction, query_memory_bytes: self.query_memory_bytes }))
    }

    fn run(&self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()> {
        let options = options(request, self.query_memory_bytes);
        let accept = &mut |batch: Vec<(Value, u64)>| sink.accept(batch);
        let database = self.database(&request.source)?;
        database.run_shared(&prepare(database, request)?, &request.parameters, &options, accept)
    }
}

struct DatabaseTransaction {
    transaction: Transaction,
    query_memory_bytes: u64,
}

impl EngineTransaction for DatabaseTransaction {
    fn run(&mut self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()> {
        let options = options(request, self.query_memory_bytes);
        let accept = &mut |batch: Vec<(Value, u64)>| sink.accept(batch);
        let prepared = prepare(self.transaction.database(), request)?;
        self.transaction.run_shared(&prepared, &request.parameters, &options, accept)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.transaction.commit().map(drop)
    }

    fn rollback(self: Box<Self>) {
        self.transaction.rollback();
    }
}

/// The plan of a request. Drivers send the same traversals again and again: plans are kept.
fn prepare(database: &Database, request: &QueryRequest) -> Result<mangrove::Prepared> {
    if request.explain {
        return mangrove::Prepared::new(&request.bytecode, Terminal::Explain);
    }
    database.prepare_bytecode(&request.bytecode)
}

fn options(request: &QueryRequest, memory_bytes: u64) -> QueryOptions {
    let time_nanos = request.timeout.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    QueryOptions {
        limits: Limits { time_nanos, memory_bytes },
        materialize: match request.materialize {
            Materialize::All => mangrove::Materialize::Properties,
            Materialize::Tokens => mangrove::Materialize::Tokens,
        },
        cancel: request.cancel.clone(),
        ..QueryOptions::default()
    }
}
