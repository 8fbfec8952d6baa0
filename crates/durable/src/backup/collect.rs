//! The deletion of old backups, and of what they alone need.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::Result;

use super::{COLLECTION, list_backups};
use crate::checkpoint::home::patiently;
use crate::disk::parent;
use crate::home::{Home, HomeResult, Name, WaitHome};
use crate::manifest::CHECKPOINT_DIR;
use crate::pin::{Pin, PinOptions, list_pins};
use crate::stream::names::{stream_name, stream_place};

/// Names that are deleted by one request.
const DELETED_AT_A_TIME: usize = 1_000;

/// Deletes all backups but the newest, unless another process uses the home. Returns how many were deleted, and what else
/// uses the home.
pub(super) fn keep_newest(home: &Arc<dyn Home>, keep: u64, patience: Duration) -> Result<(u64, Option<String>)> {
    let mut pin = Pin::mark(home.clone(), PinOptions::of(COLLECTION, patience))?;
    // LOG-89: after the own pin was put, and before the backups are listed.
    let pins = list_pins(&**home, patience)?;
    if pins.len() > 1 {
        let others: Vec<String> = pins.iter().map(|pin| format!("a {} of {}", pin.what, pin.who)).collect();
        return Ok((0, Some(others.join(", "))));
    }
    let backups = list_backups(&**home, patience)?;
    let dropped = backups.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
    let (dropped, kept) = backups.split_at(dropped);
    let needed_packs: BTreeSet<String> =
        kept.iter().flat_map(|backup| backup.packs()).map(|pack| pack.path()).collect();
    let needed: BTreeSet<(u64, u64)> =
        kept.iter().flat_map(|backup| backup.spans()).flat_map(|span| span.places()).collect();
    // What is there and not needed: also what a failed backup or collection has left.
    let list = |directory: &str| {
        let directory = Name::new(directory)?;
        patiently(patience, || home.list(&directory))
    };
    let packs = list(CHECKPOINT_DIR)?.into_iter().filter(|name| !needed_packs.contains(name.as_str()));
    let mut garbage: Vec<String> = packs.map(|name| name.to_string()).collect();
    let incarnations: BTreeSet<u64> =
        backups.iter().flat_map(|backup| backup.spans()).map(|span| span.incarnation).collect();
    for incarnation in incarnations {
        let first = stream_name(incarnation, 1);
        let listed = list(parent(&first))?;
        let is_needed = |name: &&Name| stream_place(name.as_str()).is_none_or(|place| needed.contains(&place));
        garbage.extend(listed.iter().filter(|name| !is_needed(name)).map(Name::to_string));
    }
    // LOG-87: a backup goes before its objects.
    let entries: Vec<String> = dropped.iter().map(|backup| backup.name()).collect();
    for portion in entries.chunks(DELETED_AT_A_TIME).chain(garbage.chunks(DELETED_AT_A_TIME)) {
        // Fails if the pin has ended: then another backup may rely on what is here.
        pin.renew()?;
        let names = portion.iter().map(|name| Name::new(name)).collect::<HomeResult<Vec<_>>>()?;
        patiently(patience, || home.delete(names.clone()))?;
    }
    Ok((dropped.len() as u64, None))
}
