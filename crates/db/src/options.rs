//! The options of opening a database, and the options of running a query.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mangrove_durable::durable::DurableOptions;
use mangrove_durable::log::LogOptions;
use mangrove_durable::states::Retention;
use mangrove_durable::stream::log::ObjectLogOptions;
use mangrove_flow::schedule::Tenant;
use mangrove_flow::{Interrupt, QueryLimits};
use mangrove_graph::MemoryBudget;
use mangrove_steps::{Detail, Services};
use mangrove_store::{StoreOptions, StoreSizes};
use mangrove_txn::Isolation;
use uuid::Uuid;

use crate::gauges::QueryGauges;

/// The options of a database.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// The number of tablets of a new graph. A graph in a directory keeps the number that it was created with.
    pub tablet_count: u16,
    /// The database refuses writes while the graph uses this many bytes of memory. Reads continue.
    pub memory_limit_bytes: u64,
    /// The memory budget of the process, which the graph, its queries and its loads draw on. The default is unlimited
    /// and counts nothing.
    pub memory_budget: MemoryBudget,
    /// The sizes at which structures of the store take another form. Tests choose small ones.
    #[doc(hidden)]
    pub sizes: StoreSizes,
    /// The executor threads, which queries share when they do not run on the thread of their caller. 0 means those of
    /// the process ([`Executors::shared`](crate::Executors::shared)), which all such databases share. With another
    /// number, the database starts that many of its own, which end when it is closed; tests and benches do that.
    pub executor_count: usize,
    /// The options of durability, for a graph in a directory.
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

/// The options of durability, for a graph in a directory. A graph in memory ignores them.
#[derive(Clone, Debug)]
pub struct DurabilityOptions {
    /// If true, a directory that has no database or does not exist becomes a new database.
    pub create: bool,
    /// The options of the log.
    pub log: LogOptions,
    /// The options of the log of a graph in a home of objects.
    pub object_log: ObjectLogOptions,
    /// How long states of a graph in a home of objects are kept, so that they can be restored.
    pub retention: Retention,
    /// A checkpoint is taken in the background after this many bytes of log since the last one. 0 means never; `None`
    /// means a quarter of the checkpoint's live bytes, and 64 MiB at least.
    pub checkpoint_log_bytes: Option<u64>,
    /// A checkpoint is also taken in the background after this time since the last one, if anything was committed;
    /// `None` means never.
    pub checkpoint_after: Option<Duration>,
    /// True: checkpoints have the lists of all vertices as blocks that other programs can read. False: they do
    /// not. `None`: as the last checkpoint was.
    pub open_topology: Option<bool>,
    /// Every checkpoint has open columns: a Parquet file with the elements of each label set, for other programs.
    pub open_columns: bool,
    /// The number of threads of recovery; 0 means one for each core.
    pub recovery_threads: usize,
    /// The identity of a new database; `None` means a random one. A given identity makes the files of a test
    /// repeatable.
    pub new_database: Option<Uuid>,
}

impl Default for DurabilityOptions {
    fn default() -> Self {
        let options = DurableOptions::default();
        DurabilityOptions {
            create: true,
            log: options.log,
            object_log: ObjectLogOptions::default(),
            retention: Retention::default(),
            checkpoint_log_bytes: options.checkpoint_log_bytes,
            checkpoint_after: options.checkpoint_after,
            open_topology: options.open_topology,
            open_columns: options.open_columns,
            recovery_threads: options.recovery_threads,
            new_database: options.new_database,
        }
    }
}

/// The options of a run of a query.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Limits of time and memory. If the traversal names a time limit, too (`with("evaluationTimeout", ms)`), the
    /// shorter one counts; 0 names none.
    pub limits: QueryLimits,
    /// The properties that elements in the results carry.
    pub materialize: Materialize,
    /// A flag that ends the query at its next message when it is set.
    pub cancel: Arc<AtomicBool>,
    /// What the query asks the program while it runs: whether it is to end. It then sets `cancel`.
    pub interrupt: Option<Interrupt>,
    /// The most threads that work on the query at a time; 0 means as many as the database has executors.
    pub workers_max: usize,
    /// The number of messages for which a query of `Database::run_shared` first runs on the thread of its caller, but for
    /// no longer than about a millisecond. Waking an executor costs more than a light query, so a query that ends within
    /// these messages does not leave its thread, unless the last runs of its plan were heavy.
    pub inline_messages: usize,
    /// The tenant that the query counts for, when queries of several tenants share the executors. If this is the
    /// default tenant, the name in the traversal counts (`with("tenant", name)`). So a program that gives each user a
    /// tenant decides by itself whether the name in a text counts ([`Prepared::tenant`](crate::Prepared::tenant)).
    pub tenant: Tenant,
    /// Places in which the figures of the query are shown while it runs.
    pub gauges: Option<Arc<QueryGauges>>,
    /// The isolation of a query that runs in a transaction of its own.
    pub isolation: Isolation,
    /// The number of retries after a conflict, for a query that writes in a transaction of its own.
    pub retries: u32,
    /// The services that `call()` reaches, instead of those of the database. A server adds services of its own and
    /// checks rights.
    pub services: Option<ServicesHandle>,
}

/// The number of retries, by default the same as that of a server.
const RETRIES_DEFAULT: u32 = 10;

impl Default for QueryOptions {
    fn default() -> Self {
        QueryOptions {
            workers_max: 0,
            limits: QueryLimits::default(),
            materialize: Materialize::default(),
            cancel: Arc::default(),
            interrupt: None,
            inline_messages: INLINE_MESSAGES,
            tenant: Tenant::default(),
            gauges: None,
            isolation: Isolation::default(),
            retries: RETRIES_DEFAULT,
            services: None,
        }
    }
}

/// The messages of two turns of an executor, which take at most some hundred microseconds.
const INLINE_MESSAGES: usize = 2 * mangrove_flow::schedule::QUOTA_MESSAGES;

/// The properties that elements in results carry.
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

impl Materialize {
    /// What is read of an element, in a transaction that only reads or one that may have written; `None`: nothing.
    pub(crate) fn detail(self, is_read_only: bool) -> Option<Detail> {
        match self {
            Materialize::Properties if is_read_only => Some(Detail::Properties),
            Materialize::Properties => Some(Detail::Current),
            Materialize::Tokens => Some(Detail::Reference),
            Materialize::References => None,
        }
    }
}

/// The services that the `call()` steps of a query reach: [`QueryOptions::services`].
#[derive(Clone)]
pub struct ServicesHandle(pub Arc<dyn Services>);

impl fmt::Debug for ServicesHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServicesHandle")
    }
}
