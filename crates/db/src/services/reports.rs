//! `mangrove.config`, `mangrove.gc`, `mangrove.memory`, `mangrove.transactions`

use mangrove_graph::{Result, Value};
use mangrove_txn::AbortCause;

use super::{Arguments, row};
use crate::database::Database;
use crate::management::count;

/// The settings, after those given were changed.
pub(super) fn config(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    arguments.given.iter().try_for_each(|(name, value)| database.configure(name, value))?;
    Ok(vec![row(database.config())])
}

/// What was collected, after collecting where that was asked for.
pub(super) fn garbage(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    if arguments.flag("compact")? {
        database.compact();
    } else if arguments.flag("collect")? {
        database.collect_garbage();
    }
    let report = database.garbage();
    Ok(vec![row([
        ("queued_writes", count(report.queued_writes)),
        ("tasks", count(report.tasks)),
        ("in_limbo", count(report.in_limbo)),
        ("versions", count(report.versions)),
        ("values", count(report.values)),
        ("vertices", count(report.vertices)),
        ("edges", count(report.edges)),
        ("cells", count(report.cells)),
        ("tables", count(report.tables)),
        ("pages", count(report.pages)),
    ])])
}

/// A row a kind of record, and one for the whole.
pub(super) fn memory(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    let report = database.memory();
    let kinds = report.rows.iter().map(|kind| {
        row([("kind", kind.name.into()), ("allocations", count(kind.allocations)), ("bytes", count(kind.bytes))])
    });
    let allocations = report.rows.iter().map(|kind| kind.allocations).sum();
    let total =
        row([("kind", "total".into()), ("allocations", count(allocations)), ("bytes", count(report.total_bytes()))]);
    Ok(kinds.chain([total]).collect())
}

pub(super) fn transactions(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    let counters = database.transaction_counters();
    let snapshots = database.snapshot_lag();
    let aborts = AbortCause::ALL.iter().map(|&cause| (cause.name(), count(counters.aborted(cause))));
    Ok(vec![row([
        ("active", count(counters.active)),
        ("commits", count(counters.commits)),
        ("read_only", count(counters.read_only)),
        ("aborts", row(aborts)),
        ("retries", count(database.retry_count())),
        ("dependency_waits", count(counters.dependency_waits)),
        ("pre_reads", count(counters.pre_reads)),
        ("oldest_snapshot_lag", count(snapshots)),
        ("oldest_snapshot_age_ms", count(database.snapshot_age_ms())),
    ])])
}
