//! Checking the counts in a checkpoint against the graph of its images.

use mangrove_graph::Result;
use mangrove_store::Store;

use crate::checkpoint::place::Place;
use crate::checkpoint::with_statistics;
use crate::manifest::Manifest;
use crate::open::GraphCounts;

/// Compares the counts that count with those of the graph of the images. A checkpoint of an earlier version has none.
pub(super) fn check_statistics<P: Place + ?Sized>(place: &P, manifest: &Manifest, store: &Store) -> Result<()> {
    if manifest.topology.is_none() {
        return Ok(());
    }
    let expected = GraphCounts::of(store, manifest.checkpoint_ts(), &mut || Ok(()))?;
    with_statistics(place, manifest, |found, reader, position| {
        let late = (found.at_ts > manifest.checkpoint_ts())
            .then(|| format!("they are of commit {}, and the checkpoint of {}", found.at_ts, manifest.checkpoint_ts()));
        match late.or_else(|| found.difference(&expected)) {
            None => Ok(()),
            Some(what) => Err(reader.damaged(position.offset, format!("the counts contradict the images: {what}"))),
        }
    })
}
