//! Looking into a home: the newest manifest, its packs, and the log after it, as they are stored. A home of backups shows
//! its newest backup.

use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{Error, Result};

use crate::backup;
use crate::checkpoint::home::{HomePlace, patiently};
use crate::checkpoint::{BlockEntry, list_blocks_in};
use crate::damage::damaged_in;
use crate::extract::Moment;
use crate::extract::find::{Found, walk_home};
use crate::home::{Home, Name, WaitHome};
use crate::log::read::RecordPosition;
use crate::log::record::Record;
use crate::manifest::ManifestPack;
use crate::states::{manifest_numbers, newest_manifest};
use crate::stream::tails::{StreamsEnd, read_object};

/// The newest state of a home.
fn newest(home: &dyn Home, patience: Duration) -> Result<Found> {
    match manifest_numbers(home, patience)?.is_empty() {
        true => backup::find(home, Moment::Newest, patience),
        false => walk_home(home, newest_manifest(home, patience)?, Moment::Newest, patience),
    }
}

/// The newest manifest: one line of JSON. Its checksum has been verified.
///
/// # Errors
///
/// `NotFound` if there is no graph and no backup.
pub fn newest_manifest_text(home: &dyn Home, patience: Duration) -> Result<String> {
    let manifest = newest(home, patience)?.manifest;
    serde_json::to_string(&manifest).map_err(|error| Error::bug(format!("a manifest as text: {error}")))
}

/// The packs that the newest manifest names, oldest first, each with its blocks. Their headers and directories have been
/// checked, and not their blocks.
///
/// # Errors
///
/// `NotFound` if there is no graph and no backup. If a pack is damaged, which the error names.
pub fn read_packs(home: &Arc<dyn Home>, patience: Duration) -> Result<Vec<(ManifestPack, Vec<BlockEntry>)>> {
    let manifest = newest(&**home, patience)?.manifest;
    let place = HomePlace::new(home.clone(), patience);
    let listed = |pack: &ManifestPack| Ok((pack.clone(), list_blocks_in(&place, pack, manifest.database)?));
    manifest.packs.iter().map(listed).collect()
}

/// Calls `each` with the records of the log after the newest checkpoint, in order.
///
/// # Errors
///
/// `NotFound` if there is no graph and no backup. If an object is damaged, which the error names.
pub fn read_streams(
    home: &dyn Home,
    patience: Duration,
    each: &mut dyn FnMut(Record<'_>, RecordPosition<'_>) -> Result<()>,
) -> Result<StreamsEnd> {
    let Found { manifest, spans, .. } = newest(home, patience)?;
    let checkpoint_ts = manifest.checkpoint_ts();
    let mut end = StreamsEnd::default();
    for span in &spans {
        for name in span.names() {
            let (place, shown) = (Name::new(&name)?, home.describe(&name));
            let missing = || damaged_in(&shown, 0, "the object is missing, and its stream goes on");
            let bytes = patiently(patience, || home.get(&place))?.ok_or_else(missing)?;
            read_object(&bytes, &shown, span.end_ts, &mut end, &mut |record, position| match &record {
                Record::Commit(commit) if commit.timestamp <= checkpoint_ts => Ok(()),
                _ => each(record, position),
            })?;
        }
    }
    Ok(end)
}
