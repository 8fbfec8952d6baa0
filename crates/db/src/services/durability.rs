//! The services `mangrove.checkpoint` and `mangrove.durability`.

use mangrove_durable::checkpoint::CheckpointReport;
use mangrove_graph::{Result, Value};

use super::registry::{Arguments, row};
use crate::durability::{Durability, Location, LogReport};
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

/// Returns one row with the state of log and checkpoints. For a graph in memory, the row has only the mode.
pub(super) fn state(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    let Some(durability) = database.durability() else { return Ok(vec![row([("mode", "memory".into())])]) };
    let cause = durability.read_only_cause().map_or(Value::Null, Value::from);
    let Durability { location, database, epoch, log, lag, checkpoint } = &durability;
    let (mode, place) = match location {
        Location::Directory(_) => ("local", "directory"),
        Location::Home(_) => ("object", "home"),
    };
    let mut fields = vec![
        ("mode", mode.into()),
        (place, location.to_string().into()),
        ("database", Value::Uuid(*database)),
        ("epoch", count(*epoch)),
        ("state", log.state_name().into()),
        ("cause", cause),
        ("durable_timestamp", count(log.durable_ts())),
        ("lag", count(*lag)),
        ("log_bytes", count(log.bytes())),
        ("log_commits", count(log.commits())),
    ];
    match log {
        LogReport::Directory(log) => fields.extend([
            ("log_batches", count(log.batches)),
            ("log_segments", count(log.segments)),
            ("sync_microseconds", count(log.sync_us)),
        ]),
        LogReport::Home(log) => fields.extend([
            ("log_objects", count(log.counts.objects)),
            ("requests", count(log.requests)),
            ("puts_in_flight", count(log.in_flight)),
            ("put_microseconds", log.usual_put.map_or(Value::Null, |put| count(put.as_micros() as u64))),
            ("waiting_commits", count(log.waiting_commits)),
            ("unproved_reads", count(log.unproved_reads)),
        ]),
    }
    fields.extend([
        ("log_bytes_since_checkpoint", count(checkpoint.log_bytes)),
        ("checkpoints", count(checkpoint.taken)),
        ("last_checkpoint", checkpoint.last.as_ref().map_or(Value::Null, taken)),
        ("checkpoint_trouble", checkpoint.trouble.as_ref().map_or(Value::Null, |error| error.message().into())),
    ]);
    Ok(vec![row(fields)])
}
