//! The database as the server's [`Engine`].
//!
//! Each traversal source stands for a database and an isolation level. A light query runs on the worker that took its request; one
//! that is not over soon goes on on the database's own executors, where many take turns and a short one does
//! not wait for a long one, and the worker takes the results.

use mangrove::{Database, Isolation, Limits, QueryOptions, Transaction, TransactionOptions};
use mangrove_graph::{Result, Value};
use mangrove_gremlin::Terminal;
use smol_str::SmolStr;

use crate::access::Caller;
use crate::engine::{Engine, EngineTransaction, Materialize, QueryRequest, ResultSink};

/// Databases behind a server.
pub struct DatabaseEngine {
    sources: Vec<Source>,
    query_memory_bytes: u64,
}

/// A traversal source.
struct Source {
    name: SmolStr,
    database: Database,
    isolation: Isolation,
}

impl DatabaseEngine {
    /// No source yet; a query may hold so many bytes at a time.
    pub fn new(query_memory_bytes: u64) -> Self {
        DatabaseEngine { sources: Vec::new(), query_memory_bytes }
    }

    /// Offers a database under the name of a traversal source, whose transactions are serializable. A name that is
    /// there already is replaced.
    #[must_use]
    pub fn source(self, name: impl Into<SmolStr>, database: Database) -> Self {
        self.source_with(name, database, Isolation::Serializable)
    }

    /// As [`DatabaseEngine::source`], at an isolation level.
    #[must_use]
    pub fn source_with(mut self, name: impl Into<SmolStr>, database: Database, isolation: Isolation) -> Self {
        let name = name.into();
        self.sources.retain(|other| other.name != name);
        self.sources.push(Source { name, database, isolation });
        self
    }

    fn find(&self, source: &str) -> Result<&Source> {
        self.sources.iter().find(|known| known.name == source).ok_or_else(|| {
            mangrove_graph::Error::invalid(format!("there is no traversal source `{source}` on this server"))
        })
    }

    /// Each graph once, under the name of its first source.
    fn graphs(&self) -> Vec<(&str, &Database)> {
        let mut graphs: Vec<(&str, &Database)> = Vec::new();
        for source in &self.sources {
            if !graphs.iter().any(|(_, known)| known.is_same(&source.database)) {
                graphs.push((&source.name, &source.database));
            }
        }
        graphs
    }
}

impl Engine for DatabaseEngine {
    fn sources(&self, _: &Caller) -> Vec<SmolStr> {
        self.sources.iter().map(|source| source.name.clone()).collect()
    }

    fn begin(&self, source: &str, _: &Caller) -> Result<Box<dyn EngineTransaction>> {
        let Source { database, isolation, .. } = self.find(source)?;
        let options = TransactionOptions { isolation: *isolation, ..TransactionOptions::default() };
        let transaction = database.begin_with(options)?;
        Ok(Box::new(DatabaseTransaction { transaction, query_memory_bytes: self.query_memory_bytes }))
    }

    fn run(&self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()> {
        let Source { database, isolation, .. } = self.find(&request.source)?;
        // The server retries: it knows whether the client has seen anything.
        let options = QueryOptions { isolation: *isolation, retries: 0, ..options(request, self.query_memory_bytes) };
        let accept = &mut |batch: Vec<(Value, u64)>| sink.accept(batch);
        database.run_shared(&prepare(database, request)?, &request.parameters, &options, accept)
    }

    fn note_retry(&self, source: &str) {
        if let Ok(source) = self.find(source) {
            source.database.note_retry();
        }
    }

    fn read_only(&self) -> Vec<(SmolStr, String)> {
        let cause = |(name, database): (&str, &Database)| {
            Some((name.into(), database.durability()?.read_only_cause()?.to_owned()))
        };
        self.graphs().into_iter().filter_map(cause).collect()
    }

    fn metrics(&self) -> String {
        crate::metrics::exposition(&self.graphs())
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
