//! The state that all handles of one database share.
//!
//! Modules below the public API (`transaction`, `upsert`, `services` and so on) use this module and never `database`, which has
//! the methods that begin transactions and run queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mangrove_flow::clock::{Clock, MonotonicClock};
use mangrove_flow::executor::Executors;
use mangrove_graph::{Catalog, Error, ErrorKind, IdRule, MemoryBudget, Result};
use mangrove_txn::{Hold, Holds, TransactionManager};
use parking_lot::Mutex;

use crate::files::FileAccess;
use crate::home::Home;
use crate::options::{DatabaseOptions, QueryOptions};
use crate::query::instance::DatabaseIdentity;
use crate::query::prepared::PlanCache;

/// Fields go in this order: first those who may still run queries, last the directory that they are about.
pub(crate) struct Inner {
    pub executors: Mutex<Option<Arc<Executors>>>,
    executor_count: usize,
    pub manager: TransactionManager,
    pub clock: Arc<dyn Clock>,
    /// For which database a plan was made.
    pub identity: DatabaseIdentity,
    pub plans: PlanCache,
    pub retries: AtomicU64,
    /// Whether strings that spell integers name them: [`IdRule::Numbers`].
    pub numeric_ids: AtomicBool,
    /// Where `io()` reads and writes, if anywhere.
    pub files: Mutex<Arc<FileAccess>>,
    /// How a query is run of which nothing is said. Nobody ever cancels it.
    options: QueryOptions,
    /// The process's budget of memory.
    pub budget: MemoryBudget,
    pub home: Home,
}

impl Inner {
    /// The files of `io()`.
    pub fn files(&self) -> Arc<FileAccess> {
        self.files.lock().clone()
    }
}

/// A graph database in this process. Cloning gives another handle to the same graph.
#[derive(Clone)]
pub struct Database {
    pub(crate) inner: Arc<Inner>,
    /// The handles that transactions hold. They are without this: otherwise the last one would never go.
    of_transactions: Option<Holds<Database>>,
}

impl Database {
    /// A handle to a graph that is there.
    pub(crate) fn assemble(options: &DatabaseOptions, manager: TransactionManager, home: Home) -> Self {
        let inner = Inner {
            executors: Mutex::new(None),
            executor_count: options.executor_count,
            manager,
            clock: Arc::new(MonotonicClock::default()),
            identity: DatabaseIdentity::default(),
            plans: PlanCache::default(),
            retries: AtomicU64::new(0),
            numeric_ids: AtomicBool::new(false),
            files: Mutex::default(),
            options: QueryOptions::default(),
            budget: options.memory_budget.clone(),
            home,
        };
        let database = Database { inner: Arc::new(inner), of_transactions: None };
        Database { of_transactions: Some(Holds::on(&Arc::new(database.clone()))), ..database }
    }

    /// The handle of a transaction.
    pub(crate) fn hold(&self) -> Hold<Database> {
        match &self.of_transactions {
            Some(holds) => holds.hold(),
            // Begun by the handle of another transaction.
            None => Hold::on(Arc::new(self.clone())),
        }
    }

    /// The names of labels and keys.
    pub fn catalog(&self) -> &Catalog {
        self.inner.manager.store().catalog()
    }

    /// How ids are read.
    pub fn id_rule(&self) -> IdRule {
        if self.inner.numeric_ids.load(Ordering::Relaxed) { IdRule::Numbers } else { IdRule::Any }
    }

    /// The process's budget of memory that the database draws on.
    pub fn memory_budget(&self) -> &MemoryBudget {
        &self.inner.budget
    }

    /// The clock the database takes the time from.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// How a query is run of which nothing is said.
    pub(crate) fn options(&self) -> &QueryOptions {
        &self.inner.options
    }

    /// The executors; started when they are first needed.
    pub(crate) fn executors(&self) -> Result<Arc<Executors>> {
        let mut executors = self.inner.executors.lock();
        if let Some(running) = &*executors {
            return Ok(running.clone());
        }
        let count = match self.inner.executor_count {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let started = Executors::start(count)
            .map_err(|e| Error::new(ErrorKind::Io, format!("the executor threads could not be started: {e}")))?;
        Ok(executors.insert(Arc::new(started)).clone())
    }
}
