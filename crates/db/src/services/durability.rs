//! The services `mangrove.backup`, `mangrove.checkpoint` and `mangrove.durability`.

use mangrove_durable::checkpoint::CheckpointReport;
use mangrove_graph::{Result, Value};

use super::registry::{Arguments, row};
use crate::durability::Durability;
use crate::management::count;
use crate::state::Database;

/// Takes a checkpoint. Returns one row, or none if nothing has changed since the last one.
pub(super) fn checkpoint(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    Ok(database.checkpoint()?.iter().map(taken).collect())
}

fn taken(report: &CheckpointReport) -> Value {
    row([
        ("manifest", count(report.version)),
        ("timestamp", count(report.checkpoint_ts)),
        ("pages", count(report.pages)),
        ("files", count(report.files)),
        ("bytes", count(report.bytes)),
        ("packs_retired", count(report.packs_retired)),
        ("live_bytes", count(report.live_bytes)),
    ])
}

/// Copies a checkpoint to a home of backups. Returns one row.
pub(super) fn backup(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let to =
        arguments.text("to")?.ok_or_else(|| arguments.missing("to", "a home of backups, as in 's3://bucket/graph'"))?;
    let keep = arguments.get("keep").map(|given| {
        let number = match given {
            Value::I32(number) => u64::try_from(*number).ok(),
            Value::I64(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        number.filter(|keep| *keep > 0).ok_or_else(|| arguments.misfit("keep", "a number from 1 on", given))
    });
    let report = database.backup(to, keep.transpose()?)?;
    Ok(vec![row([
        ("backup", count(report.backup.number)),
        ("timestamp", count(report.backup.last_ts)),
        ("packs", count(report.backup.pack_count())),
        ("bytes", count(report.backup.pack_bytes())),
        ("copied", count(report.copied)),
        ("copied_bytes", count(report.copied_bytes)),
        ("deleted", count(report.deleted)),
        ("not_deleted_because_of", report.not_deleted.map_or(Value::Null, Value::from)),
    ])])
}

/// Returns one row with the state of log and checkpoints. For a graph in memory, the row has only the mode.
pub(super) fn state(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    let Some(durability) = database.durability() else { return Ok(vec![row([("mode", "memory".into())])]) };
    let cause = durability.read_only_cause().map_or(Value::Null, Value::from);
    let Durability { directory, database, epoch, log, lag, checkpoint } = &durability;
    Ok(vec![row([
        ("mode", "local".into()),
        ("directory", directory.display().to_string().into()),
        ("database", Value::Uuid(*database)),
        ("epoch", count(*epoch)),
        ("state", log.state.name().into()),
        ("cause", cause),
        ("durable_timestamp", count(log.durable_ts)),
        ("lag", count(*lag)),
        ("log_bytes", count(log.bytes)),
        ("log_batches", count(log.batches)),
        ("log_commits", count(log.commits)),
        ("log_segments", count(log.segments)),
        ("sync_microseconds", count(log.sync_us)),
        ("log_bytes_since_checkpoint", count(checkpoint.log_bytes)),
        ("checkpoints", count(checkpoint.taken)),
        ("last_checkpoint", checkpoint.last.as_ref().map_or(Value::Null, taken)),
        ("checkpoint_trouble", checkpoint.trouble.as_ref().map_or(Value::Null, |error| error.message().into())),
    ])])
}
