//! `mangrove verify`, `mangrove inspect log`, `mangrove inspect manifest`, `mangrove inspect packs`: the files of a
//! database.
//!
//! Nothing here changes a file. The directory is locked meanwhile, because files that are being written cannot be
//! checked.

use std::io::{self, Write};

use mangrove::{LogEntry, Value};

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
    writeln!(
        out,
        "{manifests} manifests, {files} files with {blocks} blocks in {bytes} bytes: every checksum is right"
    )?;
    if report.topology_blocks > 0 {
        writeln!(out, "{} topology blocks, as the images have it", report.topology_blocks)?;
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
