//! Objects that no manifest needs, and their deletion.
//!
//! ```text
//! a checkpoint's manifest counts ──▶ stream objects below its floor ──▶ packs ──▶ manifests, the oldest first
//! ```
//!
//! - **LOG-63.** An owner deletes only what a manifest of its own has made needless, after that manifest has counted
//!   (LOG-56). No later manifest needs it: a manifest names packs that the one before it names, and new ones of its
//!   owner. So what an owner deletes late, after it was fenced, is garbage for its successors too.
//! - The packs that the manifest before the newest one names are kept for readers (LOG-23). A manifest is deleted after the
//!   packs that it alone names: an owner that dies in between leaves the manifest to the next one.
//! - Ends of streams and claims of incarnations are never deleted (LOG-57).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use mangrove_graph::Result;

use crate::checkpoint::home::HomePlace;
use crate::home::{HomeResult, Name, WaitHome};
use crate::manifest::{Manifest, PackName, PackNumber};
use crate::open::columns::columns_path;
use crate::stream::fence::StreamTail;
use crate::stream::names::{MANIFESTS, manifest_name, manifest_number, stream_name};
use crate::stream::writer::IN_FLIGHT_MAX;

/// Names that are deleted by one request.
const DELETED_AT_A_TIME: usize = 1_000;

/// What is to be deleted, and what may have to be.
#[derive(Debug)]
pub(super) struct Garbage {
    /// The object that ends each stream of earlier owners, by incarnation.
    ends: BTreeMap<u64, u64>,
    /// Packs of checkpoints that failed before their manifest was put.
    abandoned: Vec<String>,
    /// Packs that no manifest will name.
    packs: Vec<String>,
    /// Objects of streams that no manifest needs, by incarnation.
    objects: Vec<(u64, Range<u64>)>,
}

impl Garbage {
    /// What an owner that has taken over may delete later.
    pub(super) fn new(tails: &[StreamTail]) -> Self {
        let ends = tails.iter().map(|tail| (tail.incarnation, tail.end_seq)).collect();
        Garbage { ends, abandoned: Vec::new(), packs: Vec::new(), objects: Vec::new() }
    }

    /// Notes a failed checkpoint, which has written packs between these two.
    pub(super) fn abandon(&mut self, before: PackNumber, last: PackNumber) {
        let incarnation = last.incarnation;
        // A number is that of a pack or of open columns.
        let names = |counter| [PackName::Pack { incarnation, counter }.path(), columns_path(incarnation, counter)];
        self.abandoned.extend((before.counter + 1..=last.counter).flat_map(names));
    }

    /// Notes that a manifest counts.
    pub(super) fn counted(&mut self, before: &Manifest, after: &Manifest) {
        // LOG-33: the counter of the owner has passed them.
        self.packs.append(&mut self.abandoned);
        for stream in &before.streams {
            let incarnation = stream.incarnation;
            match after.streams.iter().find(|kept| kept.incarnation == incarnation) {
                Some(kept) => self.add(incarnation, stream.first..kept.first),
                None => {
                    if let Some(&end) = self.ends.get(&incarnation) {
                        self.add(incarnation, stream.first..end);
                        // Objects that were in flight when the stream was ended: no reader comes to them.
                        self.add(incarnation, end + 1..end + 1 + IN_FLIGHT_MAX as u64);
                    }
                }
            }
        }
    }

    fn add(&mut self, incarnation: u64, objects: Range<u64>) {
        if !objects.is_empty() {
            self.objects.push((incarnation, objects));
        }
    }

    /// Deletes what the newest manifest makes needless. What is not reached because of an error is left to the next call.
    pub(super) fn collect(&mut self, place: &HomePlace, newest: &Manifest) -> Result<()> {
        while let Some((incarnation, range)) = self.objects.last_mut() {
            let end = range.end.min(range.start.saturating_add(DELETED_AT_A_TIME as u64));
            delete(place, (range.start..end).map(|seq| stream_name(*incarnation, seq)))?;
            range.start = end;
            if range.is_empty() {
                self.objects.pop();
            }
        }
        delete_all(place, &self.packs)?;
        self.packs.clear();
        collect_manifests(place, newest)
    }
}

/// Deletes manifests that are older than those that are kept, and the packs that they alone name.
fn collect_manifests(place: &HomePlace, newest: &Manifest) -> Result<()> {
    let directory = Name::new(MANIFESTS)?;
    let listed = place.patiently(|| place.home().list(&directory))?;
    let numbers: BTreeSet<u64> = listed.iter().filter_map(|name| manifest_number(name.as_str())).collect();
    let mut needed: BTreeSet<String> = newest.paths().collect();
    for number in numbers.range(newest.kept_from..newest.version) {
        let kept = read(place, *number)?;
        needed.extend(kept.iter().flat_map(Manifest::paths));
    }
    for number in numbers.range(..newest.kept_from) {
        let dropped = read(place, *number)?;
        let named: BTreeSet<String> = dropped.iter().flat_map(Manifest::paths).collect();
        delete_all(place, &named.difference(&needed).cloned().collect::<Vec<_>>())?;
        delete(place, std::iter::once(manifest_name(*number)))?;
    }
    Ok(())
}

/// Reads a manifest; `None` if another process has deleted it meanwhile.
fn read(place: &HomePlace, number: u64) -> Result<Option<Manifest>> {
    let name = Name::new(&manifest_name(number))?;
    let found = place.patiently(|| place.home().get(&name))?;
    found.map(|bytes| Manifest::of_object(&**place.home(), number, &bytes)).transpose()
}

fn delete_all(place: &HomePlace, names: &[String]) -> Result<()> {
    names.chunks(DELETED_AT_A_TIME).try_for_each(|names| delete(place, names.iter().cloned()))
}

fn delete(place: &HomePlace, names: impl Iterator<Item = String>) -> Result<()> {
    let names = names.map(|name| Name::new(&name)).collect::<HomeResult<Vec<_>>>()?;
    place.patiently(|| place.home().delete(names.clone()))
}
