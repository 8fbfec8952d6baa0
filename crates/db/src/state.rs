//! The state that all handles of one database share.
//!
//! The modules of the public API (`transaction`, `upsert`, `services` and so on) stand on this one and never import
//! `database`, whose methods begin transactions and run queries.
//!
//! - **DB-5.** A database is closed in the order of the fields of `DatabaseState`: first executors of its own that may
//!   still run queries, last the directory and its lock. The executors of the process go on, but run none of its
//!   queries, because a running query keeps the database open (DB-6).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mangrove_analytics::cache::ProjectionCache;
use mangrove_flow::clock::{Clock, MonotonicClock};
use mangrove_flow::schedule::{ExecutorLoad, ExecutorOptions, Executors, Tenant, Weight};
use mangrove_graph::{Catalog, IdRule, MemoryBudget, Result};
use mangrove_txn::{ShardHandle, ShardedArc, TransactionManager};
use parking_lot::Mutex;

use crate::files::FileAccess;
use crate::home::Home;
use crate::options::{DatabaseOptions, QueryOptions};
use crate::query::helpers::{ExecutorSource, not_started, shared_executors};
use crate::query::instance::DatabaseIdentity;
use crate::query::plans::PlanCache;

/// The shared state. DB-5: the order of the fields is the order in which they are dropped.
pub(crate) struct DatabaseState {
    /// `None` until a query needs them.
    pub executors: Mutex<Option<Arc<Executors>>>,
    /// The number of executors of its own; 0: it uses those of the process.
    executor_count: usize,
    pub manager: TransactionManager,
    pub clock: Arc<dyn Clock>,
    /// For which database a plan was made.
    pub identity: DatabaseIdentity,
    pub plans: PlanCache,
    pub retries: AtomicU64,
    /// True if a string that spells an integer means that integer as an id: [`IdRule::Numbers`].
    pub numeric_ids: AtomicBool,
    /// The files that `io()` may use.
    pub files: Mutex<Arc<FileAccess>>,
    /// What algorithms have read last.
    pub projections: Arc<ProjectionCache>,
    /// The options of a query that is run without options. Its cancel flag is never set.
    options: QueryOptions,
    /// The memory budget of the process.
    pub budget: MemoryBudget,
    pub home: Home,
}

impl DatabaseState {
    /// Returns true if the database has executors of its own.
    pub fn has_own_executors(&self) -> bool {
        self.executor_count > 0
    }

    /// The files of `io()`.
    pub fn files(&self) -> Arc<FileAccess> {
        self.files.lock().clone()
    }
}

impl ExecutorSource for DatabaseState {
    fn executors(&self) -> Result<Arc<Executors>> {
        let mut executors = self.executors.lock();
        if let Some(running) = &*executors {
            return Ok(running.clone());
        }
        let started = match self.executor_count {
            0 => shared_executors()?,
            count => {
                let options = ExecutorOptions { count, ..ExecutorOptions::default() };
                Arc::new(Executors::start(options).map_err(not_started)?)
            }
        };
        Ok(executors.insert(started).clone())
    }
}

/// A graph database in this process. Cloning gives another handle to the same graph.
#[derive(Clone)]
pub struct Database {
    pub(crate) inner: Arc<DatabaseState>,
    /// Makes the handles that transactions hold. Those handles have `None` here; otherwise the state would keep itself
    /// alive.
    of_transactions: Option<ShardedArc<Database>>,
}

impl Database {
    /// A handle to an existing graph.
    pub(crate) fn assemble(options: &DatabaseOptions, manager: TransactionManager, home: Home) -> Self {
        let inner = DatabaseState {
            executors: Mutex::new(None),
            executor_count: options.executor_count,
            manager,
            clock: Arc::new(MonotonicClock::default()),
            identity: DatabaseIdentity::default(),
            plans: PlanCache::new(&options.memory_budget),
            retries: AtomicU64::new(0),
            numeric_ids: AtomicBool::new(false),
            files: Mutex::default(),
            projections: ProjectionCache::giving_way_in(&options.memory_budget),
            options: QueryOptions::default(),
            budget: options.memory_budget.clone(),
            home,
        };
        let database = Database { inner: Arc::new(inner), of_transactions: None };
        Database { of_transactions: Some(ShardedArc::new(&Arc::new(database.clone()))), ..database }
    }

    /// The handle of a transaction.
    pub(crate) fn hold(&self) -> ShardHandle<Database> {
        match &self.of_transactions {
            Some(shared) => shared.handle(),
            // This handle belongs to a transaction.
            None => ShardHandle::alone(Arc::new(self.clone())),
        }
    }

    /// The names of labels and keys.
    pub fn catalog(&self) -> &Catalog {
        self.inner.manager.store().catalog()
    }

    /// The rule by which values are read as user ids.
    pub fn id_rule(&self) -> IdRule {
        if self.inner.numeric_ids.load(Ordering::Relaxed) { IdRule::Numbers } else { IdRule::Any }
    }

    /// The memory budget of the process, which the database draws on.
    pub fn memory_budget(&self) -> &MemoryBudget {
        &self.inner.budget
    }

    /// The executors that run the queries of this database. The first call starts them.
    pub(crate) fn executors(&self) -> Result<Arc<Executors>> {
        self.inner.executors()
    }

    /// The clock the database takes the time from.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// The options of a query that is run without options.
    pub(crate) fn options(&self) -> &QueryOptions {
        &self.inner.options
    }

    /// The load of the executors that run the queries of this database. All figures are 0 until they are started.
    pub fn executor_load(&self) -> ExecutorLoad {
        if self.inner.executor_count == 0 {
            return Executors::shared_load();
        }
        self.inner.executors.lock().as_ref().map_or_else(ExecutorLoad::default, |executors| executors.load())
    }

    /// Charges a tenant for queries on the threads of their callers, on the executors that run the queries of this
    /// database. Until these are started, no tenant owes anything.
    pub(crate) fn owe(&self, tenant: &Tenant, nanos: u64) {
        if self.inner.executor_count == 0 {
            Executors::owe_shared(tenant, nanos);
        } else if let Some(executors) = &*self.inner.executors.lock() {
            executors.owe(tenant, nanos);
        }
    }

    /// Sets the weight of a tenant on the executors that run the queries of this database. On the executors of the
    /// process it counts for the tenant's queries on all databases. [`Weight::DEFAULT`] is that of every other tenant.
    pub fn set_tenant_weight(&self, tenant: &Tenant, weight: Weight) -> Result<()> {
        if self.inner.executor_count == 0 {
            Executors::set_shared_weight(tenant, weight);
        } else {
            self.executors()?.set_weight(tenant, weight);
        }
        Ok(())
    }
}
