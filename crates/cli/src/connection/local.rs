//! A graph in this process, used like a graph of a server.
//!
//! It has the traversal sources of the main graph of `mangrove serve`: transactions of `g` are serializable, those of
//! `gsi` have snapshot isolation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove::{
    Database, Error, Isolation, QueryLimits, QueryOptions, Result, ResultStream, Transaction, TransactionOptions,
};

use crate::client::Ask;

/// The traversal sources and their isolation levels.
pub const SOURCES: [(&str, Isolation); 2] = [("g", Isolation::Serializable), ("gsi", Isolation::Snapshot)];

/// A graph in this process.
pub struct Local {
    // Declared before the database, so that a transaction is dropped before its database.
    open: Option<(Transaction, &'static str)>,
    database: Database,
    /// Its directory, as the user named it.
    name: String,
    /// If set, the running query stops.
    cancel: Arc<AtomicBool>,
}

impl Local {
    /// Wraps a database, and its directory as the user named it.
    pub fn new(database: Database, name: &str) -> Self {
        Local { open: None, database, name: name.to_owned(), cancel: Arc::default() }
    }

    /// Its directory, as the user named it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a script, in the open transaction or else in one of its own.
    pub fn ask(&mut self, ask: &Ask<'_>) -> Result<ResultStream> {
        self.cancel.store(false, Ordering::Relaxed);
        let script = self.database.prepare_script(ask.script)?;
        let named = match (script.source(), ask.source) {
            ("g", Some(source)) => source,
            (source, _) => source,
        };
        let (source, isolation) = source_of(named)?;
        let time_nanos = ask.timeout.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        let options = QueryOptions {
            limits: QueryLimits { time_nanos, ..QueryLimits::default() },
            materialize: ask.materialize,
            cancel: Arc::clone(&self.cancel),
            isolation,
            ..QueryOptions::default()
        };
        match &self.open {
            None => self.database.run_script(&script, ask.parameters, &options),
            Some((transaction, open)) if *open == source => transaction.run_script(&script, ask.parameters, &options),
            Some((_, open)) => Err(Error::invalid(format!(
                "a transaction is open on the traversal source `{open}`: commit it or roll it back before using \
                 `{source}`"
            ))),
        }
    }

    /// The traversal source of the open transaction.
    pub fn transaction(&self) -> Option<&str> {
        self.open.as_ref().map(|(_, source)| *source)
    }

    /// Begins a transaction on a traversal source.
    pub fn begin(&mut self, source: &str) -> Result<()> {
        let (source, isolation) = source_of(source)?;
        let options = TransactionOptions { isolation, ..TransactionOptions::default() };
        self.open = Some((self.database.begin_with(options)?, source));
        Ok(())
    }

    /// Commits the open transaction, which ends in any case.
    pub fn commit(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), |(transaction, _)| transaction.commit().map(drop))
    }

    /// Rolls back the open transaction.
    pub fn rollback(&mut self) {
        self.open = None;
    }

    /// If set, the running query stops.
    pub fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }
}

fn source_of(name: &str) -> Result<(&'static str, Isolation)> {
    SOURCES.into_iter().find(|(source, _)| *source == name).ok_or_else(|| {
        Error::invalid(format!(
            "there is no traversal source `{name}` here; there are g (serializable) and gsi (snapshot isolation)"
        ))
    })
}
