//! `mangrove verify`, `mangrove backup`, `mangrove restore`, `mangrove inspect log`, `mangrove inspect manifest`,
//! `mangrove inspect packs`: the files of a database, or the objects of a home.
//!
//! Nothing here changes a graph. A directory is locked meanwhile, because files that are being written cannot be
//! checked or copied.

use std::io::{self, Write};

use mangrove::{Backup, DateTime, LogEntry, RestoreReport, Value};

use crate::args::{BackupArgs, RestoreArgs};
use crate::clock::Stopwatch;
use crate::connection::graphs::{RecoveryBar, recovered};
use crate::output::ResultFormat;
use crate::{Failure, output};

/// Reads all of a database, and prints what was checked.
pub fn verify(directory: &str) -> Result<(), Failure> {
    let stopwatch = Stopwatch::start();
    let bar = RecoveryBar::new();
    let verified = mangrove::verify(directory, &|progress| bar.show(progress));
    bar.0.finish_and_clear();
    let report = verified?;
    let mut out = io::stdout().lock();
    let (manifests, files, blocks, bytes) = (report.manifests, report.files, report.blocks, report.file_bytes);
    let (objects, backups) = (report.objects, report.backups);
    let of_home = match (backups, objects) {
        (0, 0) => String::new(),
        (0, _) => format!(", {objects} objects of the log"),
        _ => format!(", {objects} objects of the log, {backups} backups"),
    };
    writeln!(
        out,
        "{manifests} manifests, {files} files with {blocks} blocks in {bytes} bytes{of_home}: every checksum is right"
    )?;
    if report.topology_blocks > 0 {
        writeln!(out, "{} topology blocks, as the images have it", report.topology_blocks)?;
    }
    if report.index_runs > 0 {
        writeln!(out, "{} runs of look-up indexes, as the images have it", report.index_runs)?;
    }
    if report.columns_files > 0 {
        writeln!(out, "{} files of open columns, as the images have it", report.columns_files)?;
    }
    writeln!(out, "{}", recovered(&report.recovery, stopwatch.elapsed().as_secs_f64()))?;
    writeln!(out, "{} edges: each is listed once by its source and once by its target", report.edges)?;
    for index in &report.indexes {
        let label = if index.label.is_empty() { String::new() } else { format!(" {}", index.label) };
        let of = index.element.plural();
        writeln!(
            out,
            "index of {of}{label} on {}: {} entries, as the data has it",
            index.keys.join(", "),
            index.entries
        )?;
    }
    Ok(())
}

/// Copies a graph to a place of backups, and prints the backup.
pub fn backup(args: &BackupArgs, from: &str) -> Result<(), Failure> {
    let report = mangrove::backup(from, &args.to, args.keep)?;
    print_backups(std::slice::from_ref(&report.backup), args.format)?;
    eprintln!("{} files copied, {} bytes; {} backups deleted", report.copied, report.copied_bytes, report.deleted);
    if let Some(others) = &report.not_deleted {
        eprintln!("note: no backup was deleted, because this is under way there: {others}");
    }
    Ok(())
}

/// Prints the backups at a place, oldest first.
pub fn list_backups(args: &BackupArgs) -> Result<(), Failure> {
    print_backups(&mangrove::list_backups(&args.to)?, args.format)
}

fn print_backups(backups: &[Backup], format: ResultFormat) -> Result<(), Failure> {
    let row = |backup: &Backup| {
        Value::map(vec![
            ("backup".into(), integer(backup.number)),
            ("taken".into(), time_of(backup.taken_us)),
            ("first_commit".into(), integer(backup.checkpoint_ts())),
            ("last_commit".into(), integer(backup.last_ts)),
            ("packs".into(), integer(backup.pack_count())),
            ("pack_bytes".into(), integer(backup.pack_bytes())),
            ("log_objects".into(), integer(backup.object_count())),
        ])
    };
    let mut out = io::stdout().lock();
    output::print(&mut backups.iter().map(|backup| Ok(row(backup))), format, &mut out)?;
    out.flush()?;
    Ok(())
}

/// A time in microseconds since 1970; null for 0.
fn time_of(unix_us: u64) -> Value {
    let millis = i64::try_from(unix_us / 1_000).unwrap_or(i64::MAX);
    if unix_us == 0 { Value::Null } else { Value::DateTime(DateTime::from_epoch_millis(millis)) }
}

/// Restores a state of a graph as a new database, and prints what it has.
pub fn restore(args: &RestoreArgs) -> Result<(), Failure> {
    let stopwatch = Stopwatch::start();
    let report = mangrove::restore(&args.from, args.at.parse()?, &args.to)?;
    let RestoreReport { database, origin, written_us, packs, objects, bytes } = report;
    let seconds = stopwatch.elapsed().as_secs_f64();
    let mut out = io::stdout().lock();
    write!(out, "database {database} in {}: commit {} of database {}", args.to, origin.last_ts, origin.database)?;
    if let Value::DateTime(time) = time_of(written_us) {
        write!(out, ", log until {time}")?;
    }
    writeln!(out)?;
    eprintln!("{packs} packs and {objects} parts of the log copied, {bytes} bytes; {seconds:.3} s");
    Ok(())
}

/// Prints the records of the log, oldest first.
pub fn log(directory: &str, format: ResultFormat) -> Result<(), Failure> {
    let (entries, end) = mangrove::read_log(directory)?;
    let row = |entry: LogEntry| {
        Value::map(vec![
            ("segment".into(), entry.path.into()),
            ("batch_at".into(), integer(entry.offset)),
            ("record".into(), entry.kind.into()),
            ("timestamp".into(), entry.timestamp.map_or(Value::Null, integer)),
            ("detail".into(), entry.detail.into()),
        ])
    };
    let mut out = io::stdout().lock();
    output::print(&mut entries.into_iter().map(|entry| Ok(row(entry))), format, &mut out)?;
    out.flush()?;
    let (segments, batches, bytes) = (end.segments, end.batches, end.bytes);
    eprintln!("{segments} segments, {batches} batches, {bytes} bytes");
    if let Some(torn) = &end.torn {
        eprintln!(
            "the last write is torn: {} at byte {}, {} bytes: {}",
            torn.path, torn.offset, torn.bytes, torn.reason
        );
    }
    Ok(())
}

fn integer(n: u64) -> Value {
    Value::I64(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Prints the newest manifest as it is stored.
pub fn manifest(directory: &str) -> Result<(), Failure> {
    let text = mangrove::newest_manifest(directory)?;
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(())
}

/// Prints the packs that the newest manifest names, or with `blocks` their blocks.
pub fn packs(directory: &str, blocks: bool, format: ResultFormat) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (pack, found) in mangrove::read_packs(directory)? {
        if blocks {
            rows.extend(found.into_iter().map(|block| {
                Value::map(vec![
                    ("pack".into(), pack.path().into()),
                    ("offset".into(), integer(block.offset)),
                    ("bytes".into(), integer(block.bytes)),
                    ("block".into(), block.name.into()),
                ])
            }));
        } else {
            rows.push(Value::map(vec![
                ("pack".into(), pack.path().into()),
                ("format".into(), integer(pack.format)),
                ("bytes".into(), integer(pack.bytes)),
                ("live".into(), integer(pack.live)),
                ("blocks".into(), integer(found.len() as u64)),
                ("covers".into(), pack.covers.to_string().into()),
            ]));
        }
    }
    let mut out = io::stdout().lock();
    output::print(&mut rows.into_iter().map(Ok), format, &mut out)?;
    out.flush()?;
    Ok(())
}
