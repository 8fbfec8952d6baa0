//! Objects that no state needs that is kept, and their deletion.
//!
//! ```text
//! a checkpoint's manifest counts ──▶ list pins ──▶ from the oldest manifest on, up to the first that is kept:
//!     stream objects that the next manifest does not need ──▶ packs that it does not name ──▶ the manifest
//! the first time: packs and open columns of earlier owners that no manifest names
//! ```
//!
//! - **LOG-63.** An owner deletes only what is before `kept_from` of a manifest of its own, and before every pin (LOG-82),
//!   after that manifest has counted (LOG-56). No later manifest needs it: `kept_from` never moves back (LOG-80), and a
//!   manifest names packs that the one before it names, and new ones of its owner. So what an owner deletes late, after it
//!   was fenced, is garbage for its successors too.
//! - A manifest is deleted after the objects that it alone needs: an owner that dies in between leaves the manifest to the
//!   next one.
//! - **LOG-76.** What an earlier owner wrote and no manifest names is garbage, once a manifest of a later owner counts: the
//!   earlier one can put no manifest any more (LOG-56). Objects of an owner in the newest manifest may be those of a
//!   checkpoint that is being taken, and stay.
//! - Ends of streams and claims of incarnations are never deleted (LOG-57).

use std::collections::{BTreeMap, BTreeSet};

use mangrove_graph::Result;

use crate::ambient::unix_us;
use crate::checkpoint::home::HomePlace;
use crate::home::{HomeResult, Name, WaitHome};
use crate::manifest::{CHECKPOINT_DIR, Manifest, ManifestStream, PackName, PackNumber};
use crate::open::columns::{OPEN_DIR, columns_owner, columns_path};
use crate::pin::list_pins;
use crate::states::{Retention, manifest_numbers, read_manifest};
use crate::stream::format::{Content, END_BYTES_MAX, open};
use crate::stream::names::{manifest_name, stream_name, stream_place};
use crate::stream::writer::IN_FLIGHT_MAX;

/// Names that are deleted by one request.
const DELETED_AT_A_TIME: usize = 1_000;

/// What is to be deleted, and what may have to be.
#[derive(Debug)]
pub(super) struct Garbage {
    retention: Retention,
    /// Packs of checkpoints that failed before their manifest was put.
    abandoned: Vec<String>,
    /// Packs that no manifest will name.
    packs: Vec<String>,
    /// True once what earlier owners left was looked for.
    is_swept: bool,
    /// When a manifest was written that was looked at before.
    written: Option<(u64, u64)>,
}

impl Garbage {
    /// What an owner may delete that keeps states for so long.
    pub(super) fn new(retention: Retention) -> Self {
        Garbage { retention, abandoned: Vec::new(), packs: Vec::new(), is_swept: false, written: None }
    }

    /// The oldest manifest that is kept when the one after the newest is written.
    pub(super) fn kept_from(&mut self, place: &HomePlace, newest: &Manifest) -> Result<u64> {
        let known = &mut self.written;
        let written = |number: u64| {
            if number >= newest.version {
                return Ok(newest.written);
            }
            if let Some((_, written)) = known.filter(|(known, _)| *known == number) {
                return Ok(written);
            }
            // One that is missing was collected.
            let written = read_manifest(&**place.home(), number, place.patience())?.map_or(0, |found| found.written);
            *known = Some((number, written));
            Ok(written)
        };
        self.retention.kept_from(newest.kept_from, newest.version + 1, unix_us(), written)
    }

    /// Notes a failed checkpoint, which has written packs between these two.
    pub(super) fn abandon(&mut self, before: PackNumber, last: PackNumber) {
        let incarnation = last.incarnation;
        // A number is that of a pack or of open columns.
        let names = |counter| [PackName::Pack { incarnation, counter }.path(), columns_path(incarnation, counter)];
        self.abandoned.extend((before.counter + 1..=last.counter).flat_map(names));
    }

    /// Notes that a manifest counts.
    pub(super) fn counted(&mut self) {
        // LOG-33: the counter of the owner has passed them.
        self.packs.append(&mut self.abandoned);
    }

    /// Deletes what the newest manifest makes needless. What is not reached because of an error is left to the next call.
    pub(super) fn collect(&mut self, place: &HomePlace, newest: &Manifest) -> Result<()> {
        delete_all(place, &self.packs)?;
        self.packs.clear();
        // LOG-81: after the manifest counts.
        let pins = list_pins(&**place.home(), place.patience())?;
        let oldest = pins.iter().map(|pin| pin.manifest).fold(newest.kept_from, u64::min);
        let numbers = manifest_numbers(&**place.home(), place.patience())?;
        let mut dropped: BTreeMap<u64, Manifest> = BTreeMap::new();
        for pair in numbers.iter().zip(numbers.iter().skip(1)).filter(|(number, _)| **number < oldest) {
            let (number, next) = pair;
            let read = |number| read_manifest(&**place.home(), number, place.patience());
            let found = match dropped.remove(number) {
                Some(found) => Some(found),
                None => read(*number)?,
            };
            // Another process may have deleted either of them meanwhile.
            let (Some(found), Some(next)) = (found, read(*next)?) else { continue };
            drop_manifest(place, &found, &next)?;
            dropped.insert(next.version, next);
        }
        if !self.is_swept {
            sweep(place, newest)?;
            self.is_swept = true;
        }
        Ok(())
    }
}

/// Deletes packs and open columns of earlier owners that no manifest names (LOG-76).
fn sweep(place: &HomePlace, newest: &Manifest) -> Result<()> {
    let newest_owner = newest.owners.iter().map(|owner| owner.incarnation).max().unwrap_or(0);
    let is_earlier =
        |owner: u64| owner < newest_owner && newest.owners.iter().all(|present| present.incarnation != owner);
    let mut unnamed = BTreeSet::new();
    for directory in [CHECKPOINT_DIR, OPEN_DIR] {
        let directory = Name::new(directory)?;
        let listed = place.patiently(|| place.home().list(&directory))?;
        unnamed.extend(listed.into_iter().filter(|name| written_by(name.as_str()).is_some_and(is_earlier)));
    }
    // After the list: a manifest that the list of packs is older than names only packs of its owner besides.
    for number in manifest_numbers(&**place.home(), place.patience())?.into_iter().rev() {
        if unnamed.is_empty() {
            break;
        }
        if let Some(found) = read_manifest(&**place.home(), number, place.patience())? {
            for path in found.paths() {
                unnamed.remove(&Name::new(&path)?);
            }
        }
    }
    delete_all(place, &unnamed.iter().map(Name::to_string).collect::<Vec<_>>())
}

/// The incarnation that wrote a pack or open columns.
fn written_by(path: &str) -> Option<u64> {
    match PackName::of_path(path) {
        Some(PackName::Pack { incarnation, .. }) => Some(incarnation),
        Some(PackName::First { .. }) => None,
        None => columns_owner(path),
    }
}

/// Deletes a manifest, and what it needs and the next one does not.
fn drop_manifest(place: &HomePlace, manifest: &Manifest, next: &Manifest) -> Result<()> {
    for stream in &manifest.streams {
        match next.streams.iter().find(|kept| kept.incarnation == stream.incarnation) {
            Some(kept) => {
                let mut seq = stream.first;
                while seq < kept.first {
                    let end = kept.first.min(seq.saturating_add(DELETED_AT_A_TIME as u64));
                    delete(place, (seq..end).map(|seq| stream_name(stream.incarnation, seq)))?;
                    seq = end;
                }
            }
            None => drop_stream(place, stream)?,
        }
    }
    let kept: BTreeSet<String> = next.paths().collect();
    delete_all(place, &manifest.paths().filter(|path| !kept.contains(path)).collect::<Vec<_>>())?;
    delete(place, std::iter::once(manifest_name(manifest.version)))
}

/// Deletes all objects of an ended stream but its end (LOG-57).
fn drop_stream(place: &HomePlace, stream: &ManifestStream) -> Result<()> {
    let incarnation = stream.incarnation;
    let first = Name::new(&stream_name(incarnation, 1))?;
    let directory = Name::new(first.directory().unwrap_or_default())?;
    let listed = place.patiently(|| place.home().list(&directory))?;
    let seqs: BTreeSet<u64> = listed.iter().filter_map(|name| Some(stream_place(name.as_str())?.1)).collect();
    // Objects that were in flight when the stream was ended may follow the end.
    for &seq in seqs.iter().rev().take(IN_FLIGHT_MAX + 1) {
        let name = Name::new(&stream_name(incarnation, seq))?;
        let bytes = place.patiently(|| place.home().first_bytes(&name, Some(END_BYTES_MAX)))?.unwrap_or_default();
        if open(&bytes).is_ok_and(|(header, _)| !matches!(header.content, Content::Records(_))) {
            let needless = seqs.iter().filter(|found| **found != seq).map(|found| stream_name(incarnation, *found));
            return delete_all(place, &needless.collect::<Vec<_>>());
        }
    }
    Ok(())
}

fn delete_all(place: &HomePlace, names: &[String]) -> Result<()> {
    names.chunks(DELETED_AT_A_TIME).try_for_each(|names| delete(place, names.iter().cloned()))
}

fn delete(place: &HomePlace, names: impl Iterator<Item = String>) -> Result<()> {
    let names = names.map(|name| Name::new(&name)).collect::<HomeResult<Vec<_>>>()?;
    place.patiently(|| place.home().delete(names.clone()))
}
