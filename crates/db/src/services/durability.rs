//! The services `mangrove.checkpoint` and `mangrove.durability`.

use mangrove_durable::checkpoint::{CheckpointForms, CheckpointReport};
use mangrove_graph::{Result, Value};

use super::registry::{Arguments, row};
use crate::durability::Durability;
use crate::management::count;
use crate::state::Database;

/// Takes a checkpoint. Returns one row, or none if nothing has changed since the last one.
pub(super) fn checkpoint(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let topology = arguments.get("topology").map(|_| arguments.flag("topology")).transpose()?;
    let columns = arguments.flag("parquet")?;
    Ok(database.checkpoint_with(CheckpointForms { topology, columns })?.iter().map(taken).collect())
}

fn taken(report: &CheckpointReport) -> Value {
    row([
        ("manifest", count(report.version)),
        ("timestamp", count(report.checkpoint_ts)),
        ("pages", count(report.pages)),
        ("topology_blocks", count(report.topology_blocks)),
        ("columns_files", count(report.columns_files)),
        ("files", count(report.files)),
        ("bytes", count(report.bytes)),
        ("packs_retired", count(report.packs_retired)),
        ("live_bytes", count(report.live_bytes)),
    ])
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
