//! The section `indexes` of a manifest: which runs of look-up indexes count.

use serde::{Deserialize, Serialize};

use super::{Manifest, PackNumber};
use crate::open::runs::{KIND_HASHED, KIND_ORDERED, describe};

/// A look-up index: the runs that have its entries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestIndex {
    /// The kind of its blocks: 7 for hashes of ids or values, 8 for values in order.
    pub kind: u8,
    /// The number of its blocks: 0 for the chosen ids of vertices, 1 for those of edges, n + 2 for the property index n.
    pub number: u32,
    /// How many of the first runs have the entries of all pages, as one checkpoint wrote them.
    pub base: u64,
    /// The runs, oldest first. A pack has at most one run of an index.
    pub runs: Vec<ManifestRun>,
}

/// A run of a look-up index: the block of its kind, tablet 0, and its number in a pack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestRun {
    /// The incarnation that wrote the pack.
    pub incarnation: u64,
    /// The number of the pack among those of the incarnation.
    pub counter: u64,
    /// The number of entries.
    pub entries: u64,
    /// Bytes of the head of the block, which a reader takes first.
    pub head: u64,
}

impl ManifestRun {
    /// The numbers that name its pack.
    pub fn pack(&self) -> PackNumber {
        PackNumber { incarnation: self.incarnation, counter: self.counter }
    }
}

impl ManifestIndex {
    /// Returns true if the block of a kind and a number in a pack is one of its runs.
    pub(crate) fn has(&self, (kind, number): (u8, u32), pack: PackNumber) -> bool {
        (self.kind, self.number) == (kind, number) && self.runs.iter().any(|run| run.pack() == pack)
    }

    /// What the section contradicts.
    fn contradiction(&self, manifest: &Manifest) -> Option<String> {
        let name = describe(self.number);
        if !matches!(self.kind, KIND_HASHED | KIND_ORDERED) || (self.kind == KIND_ORDERED && self.number < 2) {
            return Some(format!(
                "the look-up index of {name} has blocks of kind {}, which is none of an index",
                self.kind
            ));
        }
        if self.base == 0 || self.base > self.runs.len() as u64 {
            return Some(format!(
                "of {} runs of the look-up index of {name}, the first {} are all",
                self.runs.len(),
                self.base
            ));
        }
        let mut places = self.runs.iter().map(|run| {
            let has_kind = |kind: (u8, _)| kind.0 == self.kind;
            manifest.packs.iter().position(|pack| pack.number() == run.pack() && pack.covers.kinds().any(has_kind))
        });
        let in_order = places.try_fold(None, |last, place| place.filter(|place| last < Some(*place)).map(Some));
        in_order
            .is_none()
            .then(|| format!("the runs of the look-up index of {name} are not in its packs, in their order"))
    }
}

/// What the section `indexes` of a manifest contradicts.
pub(super) fn contradiction(manifest: &Manifest) -> Option<String> {
    if manifest.topology.is_none() && !manifest.indexes.is_empty() {
        return Some("it has look-up indexes, and no topology".to_owned());
    }
    if manifest.indexes.windows(2).any(|pair| pair[0].number >= pair[1].number) {
        return Some("its look-up indexes are not in the order of their numbers".to_owned());
    }
    manifest.indexes.iter().find_map(|index| index.contradiction(manifest))
}
