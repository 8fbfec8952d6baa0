//! How a database is opened, and how a query is run.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mangrove_durable::durable::DurableOptions;
use mangrove_durable::log::LogOptions;
use mangrove_flow::QueryLimits;
use mangrove_graph::MemoryBudget;
use mangrove_steps::Services;
use mangrove_store::{StoreOptions, StoreSizes};
use mangrove_txn::Isolation;
use uuid::Uuid;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Tablets a new graph is spread over; one in a directory keeps the number it was made with.
    pub tablet_count: u16,
    /// The database refuses writes while the graph uses this much memory; reads go on.
    pub memory_limit_bytes: u64,
    /// The process's budget of memory, in which the graph, its queries and its loads count. By default nothing is counted.
    pub memory_budget: MemoryBudget,
    /// At what sizes structures of the store take another form: tests choose small ones.
    #[doc(hidden)]
    pub sizes: StoreSizes,
    /// Threads that queries share when they do not run on their caller's; 0: as many as there are cores.
    pub executor_count: usize,
    /// How a graph in a directory is kept there.
    pub durability: DurabilityOptions,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        let store = StoreOptions::default();
        DatabaseOptions {
            tablet_count: store.tablet_count,
            memory_limit_bytes: store.memory_limit_bytes,
            memory_budget: store.memory_budget,
            sizes: store.sizes,
            executor_count: 0,
            durability: DurabilityOptions::default(),
        }
    }
}

/// How a graph is kept in a directory; one in memory has no use for it.
#[derive(Clone, Debug)]
pub struct DurabilityOptions {
    /// Whether a directory that has no database yet, or is not there, becomes a new one.
    pub create: bool,
    /// The log.
    pub log: LogOptions,
    /// A checkpoint is taken in the background when so many bytes of log have been written since the last one; 0: never.
    pub checkpoint_log_bytes: u64,
    /// A checkpoint is taken in the background, too, when so much time has passed since the last one and anything was
    /// committed; `None`: however long that is.
    pub checkpoint_after: Option<Duration>,
    /// Threads for recovery; 0: one a core.
    pub recovery_threads: usize,
    /// The identity of a database that is made; `None`: a random one. A given one makes the files of a test repeatable.
    pub new_database: Option<Uuid>,
}

impl Default for DurabilityOptions {
    fn default() -> Self {
        let DurableOptions { log, checkpoint_log_bytes, checkpoint_after, recovery_threads, new_database, .. } =
            DurableOptions::default();
        DurabilityOptions { create: true, log, checkpoint_log_bytes, checkpoint_after, recovery_threads, new_database }
    }
}

/// How a query is run.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Limits of time and memory. A time limit that the traversal names (`with("evaluationTimeout", ms)`)
    /// counts too: the shorter one holds, and 0 names none.
    pub limits: QueryLimits,
    /// What elements in the results carry.
    pub materialize: Materialize,
    /// Setting it ends the query at its next message.
    pub cancel: Arc<AtomicBool>,
    /// How many messages a query that goes to the executors ([`Database::run_shared`]) is first run for on its
    /// caller's thread. Waking an executor costs more than a light query: one that ends within these never
    /// leaves its thread, and a heavy one takes its turn with the others.
    pub inline_messages: usize,
    /// What a query that runs in a transaction of its own is protected from.
    pub isolation: Isolation,
    /// How many times a query that writes, in a transaction of its own, is run again after a conflict.
    pub retries: u32,
    /// Who answers `call()` instead of the database itself: a server adds services of its own, and decides who may
    /// call which.
    pub services: Option<ServiceDesk>,
}

/// As often as a server retries.
const RETRIES_DEFAULT: u32 = 10;

impl Default for QueryOptions {
    fn default() -> Self {
        QueryOptions {
            limits: QueryLimits::default(),
            materialize: Materialize::default(),
            cancel: Arc::default(),
            inline_messages: INLINE_MESSAGES,
            isolation: Isolation::default(),
            retries: RETRIES_DEFAULT,
            services: None,
        }
    }
}

/// Two turns of an executor: at most some hundred microseconds.
const INLINE_MESSAGES: usize = 2 * mangrove_flow::executor::QUOTA_MESSAGES;

/// What elements in results carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Materialize {
    /// Id, label and properties: results stand on their own.
    #[default]
    Properties,
    /// Id and label.
    Tokens,
    /// Nothing: elements are [`Value::Vertex`] and [`Value::Edge`], to be read through the transaction that
    /// found them.
    References,
}

/// Who answers the `call()`s of a query: [`QueryOptions::services`].
#[derive(Clone)]
pub struct ServiceDesk(pub Arc<dyn Services>);

impl fmt::Debug for ServiceDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceDesk")
    }
}
