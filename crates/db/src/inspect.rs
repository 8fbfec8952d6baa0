//! Looks into a home, or into the files of a database that is not open: its log, its newest manifest and the packs that this names, as
//! they are written.

use std::path::Path;

use mangrove_durable::checkpoint::{BlockEntry, list_blocks};
use mangrove_durable::disk::read_file;
use mangrove_durable::inspect::{newest_manifest_text, read_streams};
use mangrove_durable::log::read::{LogEnd, read};
use mangrove_durable::log::record::Record;
use mangrove_durable::manifest::{MANIFEST_DIR, Manifest, ManifestPack};
use mangrove_durable::stream::tails::StreamsEnd;
use mangrove_graph::{Error, ErrorKind, Result};

use crate::backup::{PATIENCE, home_to_read};
use crate::home::enter_to_read;

/// A record of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// The segment's file, or the object.
    pub path: String,
    /// The offset in the file, in bytes, of the batch in which the record ends.
    pub offset: u64,
    /// `commit`, `names`, `index created`, `index dropped`, `rules`, `moment`, `before`, `identities`.
    pub kind: &'static str,
    /// The timestamp of a commit, or of the commit that the record belongs to.
    pub timestamp: Option<u64>,
    /// The content of the record, for people to read.
    pub detail: String,
}

/// What is known about streams, in the form of what is known about a directory's log: an object counts as a batch.
fn log_of_streams(found: StreamsEnd) -> LogEnd {
    let mut log = LogEnd::default();
    (log.batches, log.commits, log.bytes, log.last_ts) = (found.objects, found.commits, found.bytes, found.last_ts);
    log
}

/// Reads the records of the log, without the commits that the newest checkpoint contains, and the state of the end of
/// the log. Changes nothing. Holds the lock of the directory while it reads.
pub fn read_log(directory: &str) -> Result<(Vec<LogEntry>, LogEnd)> {
    if let Some(home) = home_to_read(directory)? {
        let mut entries = Vec::new();
        let end = read_streams(&*home, PATIENCE, &mut |record, place| {
            let (kind, timestamp, detail) = described(&record);
            entries.push(LogEntry { path: place.path.to_owned(), offset: place.offset, kind, timestamp, detail });
            Ok(())
        })?;
        return Ok((entries, log_of_streams(end)));
    }
    let (disk, _lock) = enter_to_read(Path::new(directory))?;
    let manifest = Manifest::newest(&disk)?.ok_or_else(|| no_manifest(directory))?;
    let mut entries = Vec::new();
    let end = read(&disk, manifest.database, manifest.log_floor(), &mut |record, place| {
        let (kind, timestamp, detail) = described(&record);
        if timestamp.is_some_and(|ts| ts <= manifest.checkpoint_ts()) {
            return Ok(());
        }
        entries.push(LogEntry { path: place.path.to_owned(), offset: place.offset, kind, timestamp, detail });
        Ok(())
    })?;
    Ok((entries, end))
}

fn described(record: &Record<'_>) -> (&'static str, Option<u64>, String) {
    match record {
        Record::Commit(commit) => ("commit", Some(commit.timestamp), format!("{} bytes of changes", commit.len())),
        Record::Names(names) => {
            let (labels, keys) = (names.labels.join(" "), names.keys.join(" "));
            let detail = format!("labels [{labels}], keys [{keys}], {} label sets", names.label_sets.len());
            ("names", None, detail)
        }
        Record::IndexCreated(info) => {
            let detail = format!("number {}, of {}, on {} keys", info.id.0, info.element.plural(), info.keys.len());
            ("index created", None, detail)
        }
        Record::Before(old) => ("before", Some(old.timestamp), format!("{} bytes of replaced values", old.len())),
        Record::Identities(named) => {
            ("identities", Some(named.timestamp), format!("{} bytes of identities", named.len()))
        }
        Record::Rules(rules) => ("rules", None, format!("{} rules of the schema", rules.list.len())),
        Record::IndexDropped(id) => ("index dropped", None, format!("number {}", id.0)),
        Record::Moment(us) => ("moment", None, format!("{us} microseconds since 1970")),
    }
}

/// The newest manifest: one line of JSON. In a directory it is as it is stored. Its checksum has been verified.
pub fn newest_manifest(directory: &str) -> Result<String> {
    if let Some(home) = home_to_read(directory)? {
        return newest_manifest_text(&*home, PATIENCE);
    }
    let (disk, _lock) = enter_to_read(Path::new(directory))?;
    let manifest = Manifest::newest(&disk)?.ok_or_else(|| no_manifest(directory))?;
    let bytes = read_file(&disk, &Manifest::path(manifest.version))?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// The packs that the newest manifest names, oldest first, each with its blocks. Their headers and directories have been
/// checked, and not their blocks.
pub fn read_packs(directory: &str) -> Result<Vec<(ManifestPack, Vec<BlockEntry>)>> {
    if let Some(home) = home_to_read(directory)? {
        return mangrove_durable::inspect::read_packs(&home, PATIENCE);
    }
    let (disk, _lock) = enter_to_read(Path::new(directory))?;
    let manifest = Manifest::newest(&disk)?.ok_or_else(|| no_manifest(directory))?;
    let listed = manifest.packs.iter().map(|pack| Ok((pack.clone(), list_blocks(&disk, pack, manifest.database)?)));
    listed.collect()
}

fn no_manifest(directory: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no database in {directory}: {MANIFEST_DIR} is empty"))
}
