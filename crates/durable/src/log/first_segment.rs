//! The first segment of a new database: a header and nothing else, made before the first manifest (LOG-5).
//!
//! So the segment that a manifest names exists from the first manifest on, and a missing log is distinguished from an
//! empty one. The first segment is of epoch 0. Every opening of the database writes to segments of its own fencing
//! epoch, from 1 on.

use std::io;

use mangrove_graph::Result;
use uuid::Uuid;

use super::format::{BLOCK, DIRECTORY, SegmentHeader, UNFINISHED, segment_path, segment_seq};
use crate::disk::{Disk, DiskResult, read_file};

/// The number of the first segment.
const FIRST: u64 = 1;
/// The fencing epoch before the first opening.
const BEFORE: u64 = 0;

/// Creates the directory of the log and the first segment, both durable when this returns. Replaces the files of an
/// earlier, interrupted attempt.
pub(crate) fn create_first_segment(disk: &dyn Disk, database: Uuid) -> Result<()> {
    disk.create_dir(DIRECTORY)?;
    disk.sync_dir(crate::disk::parent(DIRECTORY))?;
    let path = segment_path(FIRST);
    let unfinished = format!("{path}{UNFINISHED}");
    for left in [&path, &unfinished] {
        remove_if_there(disk, left)?;
    }
    let header = SegmentHeader { database, epoch: BEFORE, seq: FIRST, size: BLOCK, is_reused: false };
    let file = disk.create(&unfinished)?;
    file.write_at(0, &header.encode())?;
    file.sync_data()?;
    disk.rename(&unfinished, &path)?;
    disk.sync_dir(DIRECTORY)?;
    Ok(())
}

fn remove_if_there(disk: &dyn Disk, path: &str) -> DiskResult<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Returns the path of something in the log directory that is more than the remains of an interrupted creation of a
/// database.
pub(crate) fn remains(disk: &dyn Disk) -> Result<Option<String>> {
    for name in disk.list(DIRECTORY)? {
        let path = format!("{DIRECTORY}/{name}");
        let is_of_founding =
            name.ends_with(UNFINISHED) || (segment_seq(&name) == Some(FIRST) && is_empty(disk, &path)?);
        if !is_of_founding {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Returns true if a segment has no room for a batch and belongs to no opened database.
fn is_empty(disk: &dyn Disk, path: &str) -> Result<bool> {
    let bytes = read_file(disk, path)?;
    Ok(bytes.len() as u64 <= BLOCK && SegmentHeader::decode(&bytes).is_ok_and(|header| header.epoch == BEFORE))
}
