//! The services `mangrove.backup`, `mangrove.checkpoint`, `mangrove.durability` and `mangrove.promote`.

use mangrove_durable::checkpoint::{CheckpointForms, CheckpointReport};
use mangrove_graph::{Result, Value};

use super::registry::{Arguments, row};
use crate::durability::{Durability, Location, LogReport};
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
        ("topology_deltas", count(report.topology_deltas)),
        ("index_runs", count(report.index_runs)),
        ("columns_files", count(report.columns_files)),
        ("files", count(report.files)),
        ("bytes", count(report.bytes)),
        ("packs_retired", count(report.packs_retired)),
        ("live_bytes", count(report.live_bytes)),
    ])
}

/// Makes the process, which follows the owner of the graph, the owner. Returns the row of `mangrove.durability`.
pub(super) fn promote(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    database.promote()?;
    state(database, arguments)
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
    let Durability { location, database, epoch, log, lag, checkpoint } = &durability;
    let (mode, place) = match location {
        Location::Directory(_) => ("local", "directory"),
        Location::Home(_) if durability.log.is_followed() => ("follow", "home"),
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
        LogReport::Following(status) => fields.extend([
            ("log_objects", count(status.objects)),
            ("behind_milliseconds", count(status.since_current.as_millis() as u64)),
            ("delay_milliseconds", status.delay.map_or(Value::Null, |delay| count(delay.as_millis() as u64))),
            ("requests", count(status.requests.objects + status.requests.manifests + status.requests.packs)),
            ("trouble", status.trouble.as_ref().map_or(Value::Null, |trouble| trouble.error.message().into())),
        ]),
        LogReport::Lost(_) => {}
    }
    fields.extend([
        ("log_bytes_since_checkpoint", count(checkpoint.log_bytes)),
        ("checkpoints", count(checkpoint.taken)),
        ("last_checkpoint", checkpoint.last.as_ref().map_or(Value::Null, taken)),
        ("checkpoint_trouble", checkpoint.trouble.as_ref().map_or(Value::Null, |error| error.message().into())),
    ]);
    Ok(vec![row(fields)])
}
