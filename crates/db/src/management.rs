//! Management of a database while it runs: indexes and settings.
//!
//! The same operations are methods here, services of `call()` (`services`), and commands of the command line, which
//! calls the services of a server. They act outside of transactions (DB-4): a change counts for all clients at once,
//! and no rollback takes it back. Settings belong to the process and are not kept with the graph.

use std::sync::atomic::Ordering;

use mangrove_graph::{ElementKind, Error, ErrorKind, IndexId, KeyId, LabelId, Result, Value};
use mangrove_store::{IndexOptions, IndexReport};
use mangrove_txn::GC_WORKERS_MAX;
use smol_str::SmolStr;

use crate::state::Database;

/// The kinds of conditions that an index answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IndexKind {
    /// Equality on all its keys.
    #[default]
    Hash,
    /// Also ranges, and equality on some of its first keys with a range on the next.
    Ordered,
}

impl IndexKind {
    /// `hash`, `ordered`.
    pub fn name(self) -> &'static str {
        match self {
            IndexKind::Hash => "hash",
            IndexKind::Ordered => "ordered",
        }
    }
}

impl std::str::FromStr for IndexKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "hash" => Ok(IndexKind::Hash),
            "ordered" => Ok(IndexKind::Ordered),
            other => Err(Error::invalid(format!("an index is of the kind 'hash' or 'ordered', not '{other}'"))),
        }
    }
}

/// An index to be created.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexDefinition {
    /// Whether vertices or edges are indexed.
    pub element: ElementKind,
    /// The label of the indexed elements; `None` means all vertices, or all edges.
    pub label: Option<SmolStr>,
    /// The properties, most significant first.
    pub keys: Vec<SmolStr>,
    /// The conditions that it answers.
    pub kind: IndexKind,
    /// If true, the index refuses a second element with the same values.
    pub unique: bool,
}

/// An existing index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexDescription {
    /// The number of the index.
    pub id: IndexId,
    /// The label, the keys and the kind of the index.
    pub definition: IndexDefinition,
    /// True if the index is complete, so that new transactions use it.
    pub online: bool,
    /// The number of entries. An element has one for each value that it has or recently had.
    pub entries: u64,
    /// The number of different values in the entries.
    pub distinct: u64,
    /// The memory of the index in bytes.
    pub bytes: u64,
}

/// The settings that can be changed in a running database, with their descriptions.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    ("optimistic_pre_read", "serializable transactions read what writers about to commit wrote (boolean)"),
    ("optimistic_validation", "validators wait for one another instead of aborting (boolean)"),
    ("garbage_collection", "versions that no transaction can see are collected (boolean)"),
    ("gc_workers", "threads that collect them (integer)"),
    (
        "max_snapshot_age_ms",
        "transactions open for longer are ended, so that garbage can be collected; 0: no limit (integer)",
    ),
    (
        "commit_history_bytes",
        "memory for what recent commits wrote; above it the oldest running serializable transactions cannot commit \
         (integer)",
    ),
    ("plan_cache_bytes", "memory for plans of queries; above it those that were used least recently go (integer)"),
    (
        "projection_cache_bytes",
        "memory for what algorithms have read last; above it those that were used least recently go; 0: none (integer)",
    ),
    ("memory_limit_bytes", "writes are refused while the graph uses this much memory; 0: no limit (integer)"),
];

impl Database {
    /// Creates an index of vertices on the values of `key`, for all vertices or for those with `label`. Writers continue
    /// meanwhile. Transactions that began before the index was complete do not use it. Indexes of edges are made with
    /// [`Database::define_index`].
    ///
    /// A unique index fails with `DuplicateId` if two vertices have the same value, and with `Conflict` if they would
    /// have it after a running transaction commits.
    pub fn create_index(&self, label: Option<&str>, key: &str, ordered: bool, unique: bool) -> Result<IndexId> {
        let kind = if ordered { IndexKind::Ordered } else { IndexKind::Hash };
        let (element, label) = (ElementKind::Vertex, label.map(Into::into));
        self.define_index(&IndexDefinition { element, label, keys: vec![key.into()], kind, unique })
    }

    /// Creates an index of any kind, under the terms of [`Database::create_index`].
    pub fn define_index(&self, definition: &IndexDefinition) -> Result<IndexId> {
        self.inner.manager.check_writable()?;
        let catalog = self.catalog();
        let options = IndexOptions {
            element: definition.element,
            label: definition.label.as_ref().map(|name| catalog.intern_label(name)),
            keys: definition.keys.iter().map(|name| catalog.intern_key(name)).collect(),
            ordered: definition.kind == IndexKind::Ordered,
            unique: definition.unique,
        };
        self.inner.manager.create_index(&options)
    }

    /// Drops an index. Queries that were about to use it scan instead.
    pub fn drop_index(&self, index: IndexId) -> Result<()> {
        self.inner.manager.drop_index(index)
    }

    /// All indexes, also those that are being built.
    pub fn indexes(&self) -> Vec<IndexDescription> {
        let catalog = self.catalog();
        let label = |id: LabelId| catalog.label_name(id);
        let key = |&id: &KeyId| catalog.key_name(id);
        let described = |report: IndexReport| IndexDescription {
            id: report.info.id,
            definition: IndexDefinition {
                element: report.info.element,
                label: report.info.label.map(label),
                keys: report.info.keys.iter().map(key).collect(),
                kind: if report.info.ordered { IndexKind::Ordered } else { IndexKind::Hash },
                unique: report.info.unique,
            },
            online: report.online,
            entries: report.entries,
            distinct: report.distinct,
            bytes: report.bytes,
        };
        self.inner.manager.store().index_reports().into_iter().map(described).collect()
    }

    /// The settings that can be changed in a running database, with their values.
    pub fn config(&self) -> Vec<(&'static str, Value)> {
        let settings = self.settings();
        let limit = self.inner.manager.store().memory_limit();
        SETTINGS
            .iter()
            .map(|&(name, _)| {
                let value = match name {
                    "optimistic_pre_read" => settings.optimistic_pre_read.load(Ordering::Relaxed).into(),
                    "optimistic_validation" => settings.optimistic_validation.load(Ordering::Relaxed).into(),
                    "garbage_collection" => settings.garbage_collection.load(Ordering::Relaxed).into(),
                    "gc_workers" => count(settings.gc_workers.load(Ordering::Relaxed) as u64),
                    "max_snapshot_age_ms" => count(settings.max_snapshot_age_ms.load(Ordering::Relaxed)),
                    "commit_history_bytes" => count(settings.commit_history_bytes.load(Ordering::Relaxed)),
                    "plan_cache_bytes" => count(self.inner.plans.bytes_max()),
                    "projection_cache_bytes" => count(self.inner.projections.limit()),
                    _ => count(if limit == u64::MAX { 0 } else { limit }),
                };
                (name, value)
            })
            .collect()
    }

    /// Changes a setting of [`Database::config`] for all clients, at once.
    pub fn configure(&self, name: &str, value: &Value) -> Result<()> {
        let settings = self.settings();
        match name {
            "optimistic_pre_read" => settings.optimistic_pre_read.store(switch(name, value)?, Ordering::Relaxed),
            "optimistic_validation" => settings.optimistic_validation.store(switch(name, value)?, Ordering::Relaxed),
            "garbage_collection" => settings.garbage_collection.store(switch(name, value)?, Ordering::Relaxed),
            "gc_workers" => {
                let workers = number(name, value)?;
                let fitting = usize::try_from(workers).ok().filter(|workers| *workers <= GC_WORKERS_MAX);
                let fitting = fitting.ok_or_else(|| {
                    Error::invalid(format!(
                        "'gc_workers' is at most {GC_WORKERS_MAX}, not {workers}: more would wait for one another"
                    ))
                })?;
                settings.gc_workers.store(fitting, Ordering::Relaxed);
            }
            "max_snapshot_age_ms" => settings.max_snapshot_age_ms.store(number(name, value)?, Ordering::Relaxed),
            "commit_history_bytes" => settings.commit_history_bytes.store(number(name, value)?, Ordering::Relaxed),
            "plan_cache_bytes" => self.inner.plans.set_bytes_max(number(name, value)?),
            "projection_cache_bytes" => self.inner.projections.set_limit(number(name, value)?),
            "memory_limit_bytes" => {
                let limit = number(name, value)?;
                self.inner.manager.store().set_memory_limit(if limit == 0 { u64::MAX } else { limit });
            }
            unknown => {
                let names: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
                let message = format!("there is no setting '{unknown}'; there are {}", names.join(", "));
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
        }
        // The collector may have work now, also in a database that is not written to.
        self.inner.manager.wake_collector();
        Ok(())
    }
}

pub(crate) fn count(n: u64) -> Value {
    Value::I64(i64::try_from(n).unwrap_or(i64::MAX))
}

pub(crate) fn switch(name: &str, value: &Value) -> Result<bool> {
    match value {
        Value::Bool(on) => Ok(*on),
        other => Err(Error::invalid(format!("'{name}' is true or false, not a {}", other.type_name()))),
    }
}

fn number(name: &str, value: &Value) -> Result<u64> {
    let number = mangrove_graph::numeric::integer(value).and_then(|n| u64::try_from(n).ok());
    number.ok_or_else(|| Error::invalid(format!("'{name}' is a whole number from 0, not {value:?}")))
}
