//! A graph opened in this process, asked as a server would be.
//!
//! It has the traversal sources that `mangrove serve` gives the graph of `--data`: `g`, whose transactions are
//! serializable, and `gsi`, whose have snapshot isolation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove::{
    Database, Error, Isolation, QueryLimits, QueryOptions, Result, ResultStream, Transaction, TransactionOptions,
};

use crate::connection::Ask;

/// The traversal sources, with the isolation they stand for.
pub const SOURCES: [(&str, Isolation); 2] = [("g", Isolation::Serializable), ("gsi", Isolation::Snapshot)];

/// A graph here.
pub struct Local {
    // Before the database: a transaction is over before its database is closed.
    open: Option<(Transaction, &'static str)>,
    database: Database,
    /// Where it is kept, as it was named.
    name: String,
    /// Set to stop what runs.
    cancel: Arc<AtomicBool>,
}

impl Local {
    /// A database, and how it was named.
    pub fn new(database: Database, name: &str) -> Self {
        Local { open: None, database, name: name.to_owned(), cancel: Arc::default() }
    }

    /// Where it is kept.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a script: in the transaction that is open, or in one of its own.
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
                "a transaction is open on the traversal source `{open}`: commit it or roll it back before using `{source}`"
            ))),
        }
    }

    /// The traversal source of the transaction that is open.
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

    /// Commits the transaction that is open. It is over, whatever the outcome.
    pub fn commit(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), |(transaction, _)| transaction.commit().map(drop))
    }

    /// Rolls it back.
    pub fn rollback(&mut self) {
        self.open = None;
    }

    /// Set to stop what runs.
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
