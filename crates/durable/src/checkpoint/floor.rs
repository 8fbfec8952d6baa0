//! From where on a checkpoint needs the log.

use crate::log::LogFloor;
use crate::manifest::{Manifest, ManifestStream, ManifestWal};
use crate::stream::writer::StreamFloor;

/// The position from which a checkpoint needs the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CheckpointFloor {
    /// In the segments of a directory.
    Segments(LogFloor),
    /// In the stream of an owner. It needs no other stream: a snapshot has every commit of earlier owners.
    Stream {
        /// The incarnation of the owner.
        incarnation: u64,
        floor: StreamFloor,
        /// The oldest manifest that stays (LOG-80).
        kept_from: u64,
    },
}

impl From<LogFloor> for CheckpointFloor {
    fn from(floor: LogFloor) -> Self {
        CheckpointFloor::Segments(floor)
    }
}

impl CheckpointFloor {
    /// Returns true if a checkpoint at this timestamp has every commit before the floor (LOG-7).
    pub(super) fn is_covered_by(&self, checkpoint_ts: u64) -> bool {
        match self {
            CheckpointFloor::Segments(floor) => floor.is_covered_by(checkpoint_ts),
            CheckpointFloor::Stream { floor, .. } => floor.through <= checkpoint_ts,
        }
    }

    /// Returns true if a manifest names this floor, so that a checkpoint releases nothing.
    pub(super) fn is_that_of(&self, manifest: &Manifest) -> bool {
        match self {
            CheckpointFloor::Segments(floor) => floor.segment == manifest.log_floor().segment,
            CheckpointFloor::Stream { incarnation, floor, .. } => manifest.streams == [stream(*incarnation, *floor)],
        }
    }

    /// Writes the floor into a manifest.
    pub(super) fn put(&self, manifest: &mut Manifest) {
        match self {
            CheckpointFloor::Segments(floor) => {
                manifest.wal = Some(ManifestWal { first_segment: floor.segment, before: floor.before });
            }
            CheckpointFloor::Stream { incarnation, floor, kept_from } => {
                manifest.streams = vec![stream(*incarnation, *floor)];
                manifest.kept_from = *kept_from;
            }
        }
    }
}

fn stream(incarnation: u64, floor: StreamFloor) -> ManifestStream {
    ManifestStream { incarnation, first: floor.seq, end: None, end_ts: None, database: None }
}
