//! The options of a database, as those of the parts that keep it.

use std::sync::Arc;

use mangrove_durable::durable::DurableOptions;
use mangrove_durable::durable_home::DurableHomeOptions;
use mangrove_durable::stream::log::ObjectLogOptions;

use crate::columns::ParquetColumns;
use crate::options::{DatabaseOptions, DurabilityOptions};

/// The options of a database in a home of objects.
pub(crate) fn home_options(options: &DatabaseOptions) -> DurableHomeOptions {
    let DurabilityOptions { object_log, retention, create, ref log, .. } = options.durability;
    // One setting for graphs in both.
    let log = ObjectLogOptions { feed: log.feed, ..object_log };
    DurableHomeOptions { graph: durable_options(options), log, retention, create, ..DurableHomeOptions::default() }
}

/// The options of a database in a directory.
pub(crate) fn durable_options(options: &DatabaseOptions) -> DurableOptions {
    let DurabilityOptions {
        log,
        checkpoint_log_bytes,
        checkpoint_after,
        open_topology,
        open_columns,
        recovery_threads,
        new_database,
        create: _,
        object_log: _,
        retention: _,
    } = options.durability.clone();
    DurableOptions {
        tablet_count: options.tablet_count,
        memory_limit_bytes: options.memory_limit_bytes,
        memory_budget: options.memory_budget.clone(),
        sizes: options.sizes,
        log,
        checkpoint_log_bytes,
        checkpoint_after,
        open_topology,
        columns: Some(Arc::new(ParquetColumns)),
        open_columns,
        recovery_threads,
        new_database,
        ..DurableOptions::default()
    }
}
