//! The manifests of the simulation: which commits a checkpoint has, and from where streams are needed.

use std::collections::{BTreeMap, BTreeSet};

use mangrove_graph::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::fence::{ListedStream, ManifestView, Manifests};

/// The database of all owners.
pub(super) fn database() -> Uuid {
    Uuid::from_u128(0xda7a_ba5e)
}

/// A commit of a simulated client.
pub(super) type CommitId = u64;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SimManifest {
    pub(super) owner: u64,
    /// The floor of each stream that recovery needs, by incarnation.
    pub(super) streams: BTreeMap<u64, u64>,
    /// The number of the object that ends each stream that recovery does not need, by incarnation.
    pub(super) ended: BTreeMap<u64, u64>,
    /// The commits of the checkpoint.
    pub(super) covered: BTreeSet<CommitId>,
}

impl SimManifest {
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| Error::new(ErrorKind::Damaged, error.to_string()))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers can be written")
    }
}

/// The layout of [`SimManifest`], for take-overs.
#[derive(Debug, Default)]
pub(super) struct SimManifests {
    /// A follower takes over that has no commit: then a checkpoint has some that no listed stream has (LOG-73).
    pub(super) has_nothing: bool,
}

impl Manifests for SimManifests {
    fn view(&self, _: u64, manifest: &[u8]) -> Result<ManifestView> {
        let SimManifest { owner, streams, .. } = SimManifest::read(manifest)?;
        let listed =
            |(incarnation, floor)| ListedStream { incarnation, floor, end: None, end_ts: None, database: None };
        Ok(ManifestView { database: database(), owner, streams: streams.into_iter().map(listed).collect() })
    }

    fn claim(&self, _: u64, parent: &[u8], incarnation: u64) -> Result<Vec<u8>> {
        let mut manifest = SimManifest::read(parent)?;
        if self.has_nothing && !manifest.covered.is_empty() {
            return Err(Error::new(ErrorKind::Closed, "the checkpoint has commits that the follower lacks"));
        }
        manifest.owner = incarnation;
        manifest.streams.insert(incarnation, 1);
        Ok(manifest.bytes())
    }
}
