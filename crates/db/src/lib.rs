//! Mangrove, embedded: a property graph in your process that answers Gremlin on live, transactional data.
//!
//! ```
//! use mangrove::{Database, Parameters, Value};
//!
//! # fn main() -> mangrove::Result<()> {
//! let db = Database::in_memory();
//! db.query("g.addV('person').property('name', 'ada').as('a').addV('person').property('name', 'bob').addE('knows').from('a')")?
//!     .collect()?;
//!
//! // Text is parsed and planned once; parameters take part in neither.
//! let friends = db.prepare("g.V().has('person', 'name', name).out('knows').values('name')")?;
//! let parameters = Parameters::from([("name".into(), Value::from("ada"))]);
//! assert_eq!(db.run(&friends, &parameters)?.collect()?, vec![Value::from("bob")]);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Database`] is a handle that can be cloned and shared among threads. Every request runs in a transaction: in one
//! of its own ([`Database::query`]), or together with others in a [`Transaction`]. A [`Script`] of several statements,
//! which can keep results in variables, is one transaction, too. A graph lives in memory ([`Database::in_memory`]) or
//! in a directory ([`Database::open`]), where it survives its process. A query runs on the thread that reads its
//! [`ResultStream`]. [`Database::run_shared`] passes a query that is not over soon to the executors of the process,
//! where many queries take turns.
//!
//! Below Gremlin lies the typed interface of [`Transaction`]: batches of ids in, columns out, no text, no plan.
//!
//! | public API | its module | stands on |
//! |---|---|---|
//! | [`Database`] | `state` (shared state), `database` (methods) | `home`, `options`, `query` |
//! | [`Transaction`] | `transaction` | `state`, `query`, `load_sink` |
//! | [`Prepared`], [`ResultStream`] | `query` | nothing of this crate but `options` and `gauges` |
//! | [`QueryGauges`] | `gauges` | nothing of this crate |
//! | [`Epoch`] | `sampling` | `state`, `transaction` |
//! | scripts | [`script`] | `transaction`, `retry` |
//! | services of `call()` | [`services`] | `management`, `schema`, `upsert`, `durability` |
//! | Arrow (feature `arrow`) | `arrow` | `query`, `algorithms`, `bulk`, `upsert` |
//! | loading | `bulk`, `load_sink`, `upsert`, `files` | `state` |
//! | directories, homes | `home`, `open_home`, `durable_options`, `columns`, `recovery`, `durability`, `backup`, `inspect`, `verify` | `options`, `state` |

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod algorithms;
#[cfg(feature = "arrow")]
pub mod arrow;
mod backup;
mod bulk;
mod changes;
mod columns;
mod database;
mod durability;
mod durable_options;
mod files;
mod gauges;
mod home;
mod inspect;
mod load_sink;
mod management;
#[cfg(feature = "virtual-nodes")]
mod nodes;
mod open_home;
mod options;
mod query;
mod recovery;
mod retry;
mod sampling;
mod schema;
pub mod script;
pub mod services;
mod state;
mod trace;
mod transaction;
mod upsert;
mod verify;

pub use algorithms::AlgorithmRows;
pub use backup::{backup, list_backups, restore};
pub use bulk::{LoadOptions, LoadProgress, LoadReport, RejectedRow};
pub use changes::{ChangeLine, Changes, read_changes};
pub use durability::{Durability, Location, LogReport};
pub use gauges::{QueryFigures, QueryGauges};
pub use inspect::{LogEntry, newest_manifest, read_log, read_packs};
pub use load_sink::TransactionSink;
pub use management::{IndexDefinition, IndexDescription, IndexKind};
/// Graph algorithms as functions, and the projections that they read.
pub use mangrove_analytics as analytics;
pub use mangrove_analytics::{Team, registry};
pub use mangrove_durable::backup::{Backup, BackupReport};
pub use mangrove_durable::checkpoint::CheckpointReport;
#[doc(hidden)]
pub use mangrove_durable::disk::{Disk, SimDisk};
pub use mangrove_durable::durable::CheckpointStatus;
pub use mangrove_durable::feed::{FeedContent, FeedPosition};
pub use mangrove_durable::follow::{FollowPinState, FollowRequests, FollowState, FollowStatus, FollowTrouble};
pub use mangrove_durable::home::address::is_address as is_home_address;
pub use mangrove_durable::log::read::{LogEnd, TornTail};
pub use mangrove_durable::log::{DurabilityStatus, LogOptions, LogState, SYNC_TIME_BOUNDS_US};
pub use mangrove_durable::recovery::{RecoveryPhase, RecoveryProgress, RecoverySummary};
pub use mangrove_durable::restore::{Moment, RestoreReport};
pub use mangrove_durable::states::Retention;
pub use mangrove_durable::stream::log::{ObjectLogOptions, ObjectLogState, ObjectLogStatus};
pub use mangrove_flow::schedule::{ExecutorLoad, ExecutorOptions, Executors, Tenant, TenantShare, Weight};
pub use mangrove_flow::{Interrupt, QueryControl, QueryLimits, QueryProgressFigures};
pub use mangrove_graph::statistics;
pub use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, DateTime, Detached, DetachedVertexProperty, Direction, Duration, EdgeId,
    ElementKind, Error, ErrorKind, ExpandCursor, ExpandRequest, Expansion, GraphValue, GraphView, IdRule, IndexId,
    IndexRange, KeyId, LabelFilter, LabelSetId, MemoryBudget, NumberType, Numbers, OperatorMetrics, PathValue, Purpose,
    Remedy, Result, ScanCursor, Share, Token, TraversalMetrics, Tree, UserId, Value, ValueColumns, ValueRows, VertexId,
    VertexPage,
};
pub use mangrove_gremlin::{Bytecode, Parameters};
pub use mangrove_load::export::{
    Compression, ExportFormat, ExportOptions, ExportProgress, ExportReport, Losses, PlainChanges, TakeElement,
    export_elements, write_from, write_rows,
};
pub use mangrove_load::rows;
pub use mangrove_load::{
    ColumnReport, DryRun, FileGroup, FileReport, LoadFormat, Mapping, RowSource, SourceBatch, SourceBlock,
    SourceElements, SourceLabel, SourceProperty, SourceTable, TableReport, TextColumn, UpsertCounts, UpsertKeys,
    dry_run,
};
pub use mangrove_plan::compile::strategy_names;
pub use mangrove_plan::explain::{PlanNode, PlanTree};
pub use mangrove_plan::physical::Flow;
pub use mangrove_plan::{PlanOptions, Planner};
pub use mangrove_steps::{ServiceCall, ServiceResults, Services};
#[doc(hidden)]
pub use mangrove_store::StoreSizes;
pub use mangrove_store::schema::RuleId;
pub use mangrove_store::{GarbageReport, MemoryReport, MemoryRow, WriteCardinality};
pub use mangrove_txn::{
    AbortCause, CommitInfo, DatedStatistics, Isolation, Settings, TransactionCounters, TransactionOptions,
};
#[cfg(feature = "virtual-nodes")]
pub use nodes::NodeThreads;
pub use options::{DatabaseOptions, DurabilityOptions, Materialize, QueryOptions, ServicesHandle};
pub use query::plans::{KeptPlan, PlanCacheReport};
pub use query::prepared::Prepared;
pub use query::stream::ResultStream;
pub use recovery::{LogRead, Recovery};
pub use retry::Retries;
pub use sampling::Epoch;
pub use schema::{RuleDefinition, RuleDescription};
pub use script::Script;
pub use state::Database;
pub use transaction::Transaction;
pub use verify::{CheckedIndex, VerifyReport, verify};

/// The README's examples, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples in Rust of the page about algorithms.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/algorithms.md")]
struct AlgorithmsPage;

/// The examples in Rust of the page about Arrow.
#[cfg(all(doctest, feature = "arrow"))]
#[doc = include_str!("../../../docs/arrow.md")]
struct ArrowPage;
