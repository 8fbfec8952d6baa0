//! Checking look-up indexes against the images of the same checkpoint.
//!
//! The entries are made again of all images. They must be those of the runs that count (LOG-104): none is missing, none is there
//! twice, and none is of something else. Then one element of each index is looked up by ranges, as another program would.

use mangrove_graph::{ElementId, Result, UserId, Value};

use crate::checkpoint::LookUps;
use crate::checkpoint::place::Place;
use crate::damage::damaged_in;
use crate::manifest::{Manifest, ManifestRun};
use crate::open::runs::{Entry, LookUpIndex, LookUpKey, describe};

/// What an element of an index is looked up by.
enum Sample {
    Id(UserId),
    Values(Vec<Value>),
}

/// Checks the runs of a manifest against its images. Returns how many there are.
pub(super) fn check_indexes<P: Place + ?Sized>(place: &P, manifest: &Manifest) -> Result<u64> {
    if manifest.indexes.is_empty() {
        return Ok(0);
    }
    let of_manifest = |what: String| damaged_in(&place.describe(&Manifest::path(manifest.version)), 0, what);
    let look_ups = LookUps::open(place, manifest)?;
    if manifest.indexes.iter().take(2).map(|index| index.number).ne([0, 1]) {
        return Err(of_manifest("it has look-up indexes, and not those of chosen ids".to_owned()));
    }
    let count = look_ups.indexes().len();
    let mut expected: Vec<Vec<Entry>> = vec![Vec::new(); count];
    let mut samples: Vec<Option<(ElementId, Sample)>> = (0..count).map(|_| None).collect();
    look_ups.each_image(&mut |image| {
        for ((index, expected), sample) in look_ups.indexes().iter().zip(&mut expected).zip(&mut samples) {
            index.each_entry(image, look_ups.catalog(), |entry| expected.push(entry));
            if sample.is_none()
                && let Some(entry) = expected.first()
            {
                let id = index.id_of(image, entry).cloned().map(Sample::Id);
                let of = id.unwrap_or_else(|| Sample::Values(index.values_of(image, entry)));
                *sample = Some((ElementId::from_bits(index.element, entry.element), of));
            }
        }
    })?;
    let mut runs = 0;
    for (index, mut expected) in look_ups.indexes().iter().zip(expected) {
        expected.sort_unstable();
        expected.dedup();
        let missing = check_index(&look_ups, index, manifest.checkpoint_ts(), &expected, &mut runs)?;
        if let Some(entry) = missing {
            let name = describe(index.number);
            return Err(of_manifest(format!(
                "no run of the look-up index of {name} has {entry:?}, which the images have"
            )));
        }
    }
    for (index, sample) in look_ups.indexes().iter().zip(&samples) {
        let Some((element, of)) = sample else { continue };
        let key = match of {
            Sample::Id(id) => LookUpKey::Id(id),
            Sample::Values(values) => LookUpKey::Values(values),
        };
        // Values that hold NaN equal none.
        let is_equal = |value: &Value| mangrove_graph::compare::equal(value, value);
        let is_findable =
            matches!(of, Sample::Id(_)) || matches!(of, Sample::Values(values) if values.iter().all(is_equal));
        if is_findable && !look_ups.find(index, key)?.contains(element) {
            return Err(of_manifest(format!(
                "the look-up index of {} does not find {element:?}",
                describe(index.number)
            )));
        }
    }
    Ok(runs)
}

/// Compares the entries of an index that count with those that it should have, which are sorted. Returns one that is missing.
fn check_index<'e>(
    look_ups: &LookUps<'_>,
    index: &LookUpIndex,
    at_ts: u64,
    expected: &'e [Entry],
    runs: &mut u64,
) -> Result<Option<&'e Entry>> {
    let mut seen = vec![false; expected.len()];
    let name = describe(index.number);
    look_ups.each_run(index, &mut |run| {
        let ManifestRun { entries, head, .. } = run.said;
        let wrong =
            |what: String| run.reader.damaged(run.offset, format!("a run of the look-up index of {name} {what}"));
        if (entries, head) != (run.head.entries, run.head.bytes()) {
            return Err(wrong("has another head than the manifest says".to_owned()));
        }
        if run.head.at_ts > at_ts {
            return Err(wrong(format!("is of commit {}, and the checkpoint of {at_ts}", run.head.at_ts)));
        }
        for entry in &run.entries {
            match expected.binary_search(entry) {
                Ok(at) if !seen[at] => seen[at] = true,
                Ok(_) => return Err(wrong(format!("has {entry:?}, which another run has, too"))),
                Err(_) => return Err(wrong(format!("contradicts the images: it has {entry:?}"))),
            }
        }
        *runs += 1;
        Ok(())
    })?;
    Ok(expected.iter().zip(seen).find(|(_, seen)| !seen).map(|(entry, _)| entry))
}
