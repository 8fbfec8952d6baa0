//! The state of a directory at a moment: its newest manifest, and its log after it.
//!
//! A directory keeps the log from its newest checkpoint on, so earlier moments are in backups only. Commits before the
//! first moment of a log (`log::record`) were written by a version that noted none: they count as before any time.

use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind, Result};

use super::find::Found;
use super::moment::too_early;
use super::{Moment, ends_before};
use crate::disk::Disk;
use crate::log::FramedRecord;
use crate::log::read::read;
use crate::log::record::Record;
use crate::manifest::{MANIFEST_DIR, Manifest};

/// Bytes of records that are passed on at a time.
const PORTION_BYTES: usize = 1 << 20;

/// Finds the state of a directory at a moment. The caller keeps other processes away.
pub(crate) fn find(disk: &Arc<dyn Disk>, moment: Moment) -> Result<Found> {
    let Some(manifest) = Manifest::newest(&**disk)? else {
        let message = format!("there is no database: {} has no manifest", disk.describe(MANIFEST_DIR));
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    let end = read_until(&**disk, &manifest, moment, &mut |_, _| Ok(()))?;
    let place = || disk.describe("");
    let checkpoint_ts = manifest.checkpoint_ts();
    let is_too_early = match moment {
        Moment::Newest => false,
        Moment::Commit(commit) => commit < checkpoint_ts,
        Moment::Time(unix_us) => end.last_ts < checkpoint_ts && manifest.written > unix_us,
    };
    if is_too_early {
        return Err(too_early(&place(), checkpoint_ts, manifest.written));
    }
    let last_ts = end.last_ts.max(checkpoint_ts);
    match moment {
        Moment::Commit(commit) if !end.has_later && last_ts < commit => Err(ends_before(&place(), commit, last_ts)),
        _ => Ok(Found { manifest, spans: Vec::new(), last_ts, written_us: end.written_us, has_log: true }),
    }
}

/// Where the part of a log before a moment ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogUntil {
    /// Its last commit; 0 if there is none.
    last_ts: u64,
    /// When its last records were written, in microseconds since 1970; 0 if that is unknown.
    written_us: u64,
    /// True if the log has commits after the moment.
    has_later: bool,
}

/// Reads the log of a manifest up to a moment. `each` is called with records in order, and with the time when they were
/// written.
pub(crate) fn read_until(
    disk: &dyn Disk,
    manifest: &Manifest,
    moment: Moment,
    each: &mut dyn FnMut(u64, &[FramedRecord]) -> Result<()>,
) -> Result<LogUntil> {
    let (mut until, mut now_us) = (LogUntil::default(), 0);
    let (mut portion, mut bytes) = (Vec::new(), 0);
    read(disk, manifest.database, manifest.log_floor(), &mut |record, _| {
        if let Record::Moment(unix_us) = record {
            if !portion.is_empty() {
                each(now_us, &std::mem::take(&mut portion))?;
                bytes = 0;
            }
            now_us = unix_us;
            return Ok(());
        }
        let is_later = match (moment, &record) {
            (Moment::Time(unix_us), _) => now_us > unix_us,
            (Moment::Commit(last), Record::Commit(commit)) => commit.timestamp > last,
            _ => false,
        };
        until.has_later |= is_later;
        if until.has_later {
            return Ok(());
        }
        if let Record::Commit(commit) = &record {
            until.last_ts = commit.timestamp;
        }
        until.written_us = now_us;
        let framed = FramedRecord::of(&record);
        bytes += framed.bytes.len();
        portion.push(framed);
        if bytes >= PORTION_BYTES {
            each(now_us, &std::mem::take(&mut portion))?;
            bytes = 0;
        }
        Ok(())
    })?;
    if !portion.is_empty() {
        each(now_us, &portion)?;
    }
    Ok(until)
}
