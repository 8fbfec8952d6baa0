//! Manifests of format 1: they name the checkpoint files of each tablet. They are read, and not written.

use serde::Deserialize;
use uuid::Uuid;

use super::{
    Covers, KIND_CATALOG, KIND_EDGES, KIND_VERTICES, Manifest, ManifestOwner, ManifestPack, ManifestTablets,
    ManifestWal, PackNumber, TabletRanges,
};
use crate::log::LogBefore;

#[derive(Deserialize)]
pub(super) struct FirstManifest {
    version: u64,
    database: Uuid,
    epoch: u64,
    checkpoint_ts: u64,
    first_log_segment: u64,
    #[serde(default)]
    log_before: Option<LogBefore>,
    tablet_count: u16,
    names: Option<FirstFile>,
    tablets: Vec<FirstTablet>,
}

#[derive(Deserialize)]
struct FirstTablet {
    tablet: u16,
    /// Oldest first.
    files: Vec<FirstFile>,
}

#[derive(Deserialize)]
struct FirstFile {
    path: String,
    version: u64,
    bytes: u64,
    crc32c: u32,
}

impl FirstFile {
    /// The entry of the file. Its directory says which of these kinds it has.
    fn into_pack(self, blocks: &[(u8, u16)]) -> ManifestPack {
        ManifestPack {
            incarnation: 0,
            counter: self.version,
            bytes: self.bytes,
            crc32c: self.crc32c,
            format: 1,
            live: self.bytes,
            covers: Covers::of(blocks.iter().copied()),
            path: Some(self.path),
            database: None,
        }
    }
}

impl From<FirstManifest> for Manifest {
    fn from(first: FirstManifest) -> Manifest {
        let all = TabletRanges::all(first.tablet_count);
        let names = first.names.as_ref().map(|file| PackNumber { incarnation: 0, counter: file.version });
        let mut packs: Vec<ManifestPack> =
            first.names.into_iter().map(|file| file.into_pack(&[(KIND_CATALOG, 0)])).collect();
        for FirstTablet { tablet, files } in first.tablets {
            let blocks = [(KIND_VERTICES, tablet), (KIND_EDGES, tablet)];
            packs.extend(files.into_iter().map(|file| file.into_pack(&blocks)));
        }
        Manifest {
            format: 1,
            version: first.version,
            parent: None,
            database: first.database,
            tablet_count: first.tablet_count,
            owners: vec![ManifestOwner { incarnation: first.epoch, through: 0, tablets: all.clone() }],
            streams: Vec::new(),
            wal: Some(ManifestWal { first_segment: first.first_log_segment, before: first.log_before }),
            tablets: vec![ManifestTablets { range: all, checkpoint_ts: first.checkpoint_ts }],
            packs,
            names,
            topology: None,
            indexes: Vec::new(),
            columns: None,
            kept_from: first.version,
            written: 0,
            origin: None,
            checksum: None,
        }
    }
}
