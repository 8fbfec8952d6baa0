//! Manifests: the versions of a graph's durable state.
//!
//! `manifest/N.json` says which files make up the graph as of a checkpoint, and in which log segment the later commits
//! begin. It is one line of JSON, so that people can read it too:
//!
//! ```text
//! {"crc32c":"xxxxxxxx","manifest":{…}}
//! ```
//!
//! The CRC32C, in hexadecimal, covers the bytes of the inner object.
//!
//! ```text
//!  N.draft: create ──▶ write ──▶ sync ──▶ link to N.json if the name is free ──▶ sync the directory ──▶ remove N.draft
//!                                               └── taken: another process has fenced this one
//! ```
//!
//! - **LOG-30.** A manifest that exists is whole, and everything it names was durable before it.
//! - **LOG-31.** Of two processes that write the manifest after `N`, one fails: it has been fenced. Opening a database
//!   to write writes the next manifest, with a new fencing epoch, before anything else is changed.
//! - **LOG-32.** The newest manifest counts. A damaged one is never passed over for an older one, whose log may be
//!   gone.

use std::io;

use mangrove_graph::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::damage::{damaged, unknown_format};
use crate::disk::{Disk, read_file};
use crate::log::{LogBefore, LogFloor};

/// The directory of manifests.
pub const MANIFEST_DIR: &str = "manifest";
/// The version of the content of a manifest.
const FORMAT: u64 = 1;

const HEAD: &str = r#"{"crc32c":""#;
const MIDDLE: &str = r#"","manifest":"#;
const TAIL: &str = "}\n";
const CRC_DIGITS: usize = 8;

/// One version of the durable state of a graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub format: u64,
    /// The number of the manifest: 1, 2, 3, …
    pub version: u64,
    /// The id of the database: drawn when it is created, and in every file.
    pub database: Uuid,
    /// The fencing epoch: how often the database was opened to be written to.
    pub epoch: u64,
    /// The files have every commit up to this timestamp.
    pub checkpoint_ts: u64,
    /// The first log segment with later commits.
    pub first_log_segment: u64,
    /// How far the log went before that segment; absent in manifests of versions that did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_before: Option<LogBefore>,
    /// The number of tablets of the graph.
    pub tablet_count: u16,
    /// The file of names, indexes and schema rules; absent in a graph without a checkpoint.
    pub names: Option<ManifestFile>,
    /// The tablets that have files.
    pub tablets: Vec<ManifestTablet>,
}

/// The checkpoint files of a tablet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestTablet {
    /// The number of the tablet.
    pub tablet: u16,
    /// Oldest first. Of several images of a page, the one in the last file counts.
    pub files: Vec<ManifestFile>,
}

/// A checkpoint file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestFile {
    /// The path.
    pub path: String,
    /// The version of the manifest that it was written for.
    pub version: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The CRC32C of all of it.
    pub crc32c: u32,
}

impl Manifest {
    /// The first manifest of a new database.
    pub fn first(database: Uuid, tablet_count: u16) -> Self {
        Manifest {
            format: FORMAT,
            version: 1,
            database,
            epoch: 0,
            checkpoint_ts: 0,
            first_log_segment: 1,
            log_before: Some(LogBefore { next_batch: 1, last_ts: 0 }),
            tablet_count,
            names: None,
            tablets: Vec::new(),
        }
    }

    /// All files that it names.
    pub fn files(&self) -> impl Iterator<Item = &ManifestFile> {
        self.names.iter().chain(self.tablets.iter().flat_map(|tablet| &tablet.files))
    }

    /// From where on it needs the log.
    pub fn log_floor(&self) -> LogFloor {
        LogFloor { segment: self.first_log_segment, before: self.log_before }
    }

    /// The path of the manifest with a number.
    pub fn path(version: u64) -> String {
        format!("{MANIFEST_DIR}/{version}.json")
    }

    fn to_text(&self) -> String {
        let inner = serde_json::to_string(self).expect("a manifest is numbers, text and lists of them");
        format!("{HEAD}{:08x}{MIDDLE}{inner}{TAIL}", crc32c::crc32c(inner.as_bytes()))
    }

    /// Writes this as the newest manifest. Fails with `Closed` if its number is taken (LOG-31).
    pub fn put(&self, disk: &dyn Disk) -> Result<()> {
        let draft = format!("{MANIFEST_DIR}/{}.draft", self.version);
        let file = match disk.create(&draft) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                disk.remove(&draft)?;
                disk.create(&draft)?
            }
            created => created?,
        };
        file.write_at(0, self.to_text().as_bytes())?;
        file.sync_data()?;
        let path = Manifest::path(self.version);
        // LOG-30: after the sync. LOG-31: only if the name is free.
        disk.link_new(&draft, &path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => fenced(&disk.describe(&path)),
            _ => error.into(),
        })?;
        disk.sync_dir(MANIFEST_DIR)?;
        disk.remove(&draft)?;
        Ok(())
    }

    /// Reads the newest manifest (LOG-32); `None` if there is none: the directory is no database yet.
    pub fn newest(disk: &dyn Disk) -> Result<Option<Manifest>> {
        match Manifest::versions(disk)?.last() {
            Some(&version) => Manifest::read(disk, version).map(Some),
            None => Ok(None),
        }
    }

    /// The numbers of the existing manifests, ascending.
    pub fn versions(disk: &dyn Disk) -> Result<Vec<u64>> {
        let names = disk.list(MANIFEST_DIR)?;
        let mut versions: Vec<u64> = names.iter().filter_map(|n| n.strip_suffix(".json")?.parse().ok()).collect();
        versions.sort_unstable();
        Ok(versions)
    }

    /// Reads the manifest with a number.
    pub fn read(disk: &dyn Disk, version: u64) -> Result<Manifest> {
        let path = Manifest::path(version);
        let bytes = read_file(disk, &path)?;
        let inner = inner_object(&bytes).map_err(|(at, what)| damaged(disk, &path, at as u64, what))?;
        let start = bytes.len() - TAIL.len() - inner.len();
        let malformed = |error: serde_json::Error| damaged(disk, &path, (start + error.column()) as u64, error);
        // The format first: a later format may have other fields.
        let format: Format = serde_json::from_slice(inner).map_err(malformed)?;
        if format.format != FORMAT {
            return Err(unknown_format(disk, &path, format.format, FORMAT));
        }
        let manifest: Manifest = serde_json::from_slice(inner).map_err(malformed)?;
        if manifest.version != version {
            let what = format!("expected manifest {version}, found manifest {}", manifest.version);
            return Err(damaged(disk, &path, start as u64, what));
        }
        if manifest.tablet_count == 0
            || manifest.tablets.iter().any(|t| t.tablet == 0 || t.tablet > manifest.tablet_count)
        {
            return Err(damaged(disk, &path, start as u64, "it names a tablet with an impossible number"));
        }
        if !manifest.log_floor().is_covered_by(manifest.checkpoint_ts) {
            let what = format!(
                "there is a gap between its checkpoint, which ends with commit {}, and the part of the log that it names, \
                 which begins after commit {}",
                manifest.checkpoint_ts,
                manifest.log_before.map_or(0, |before| before.last_ts)
            );
            return Err(damaged(disk, &path, start as u64, what));
        }
        Ok(manifest)
    }
}

#[derive(Deserialize)]
struct Format {
    format: u64,
}

/// Returns the bytes of the inner object if their checksum is right; otherwise where they are wrong, and how.
fn inner_object(bytes: &[u8]) -> std::result::Result<&[u8], (usize, &'static str)> {
    let rest = bytes.strip_prefix(HEAD.as_bytes()).ok_or((0, "the beginning is not that of a manifest"))?;
    let (crc, rest) = rest.split_at_checked(CRC_DIGITS).ok_or((bytes.len(), "the file ends here"))?;
    let at = HEAD.len() + CRC_DIGITS;
    let inner =
        rest.strip_prefix(MIDDLE.as_bytes()).ok_or((at, "the text after the checksum is not that of a manifest"))?;
    let inner = inner.strip_suffix(TAIL.as_bytes()).ok_or((bytes.len(), "the end is not that of a manifest"))?;
    let expected = std::str::from_utf8(crc).ok().and_then(|crc| u32::from_str_radix(crc, 16).ok());
    match expected == Some(crc32c::crc32c(inner)) {
        true => Ok(inner),
        false => Err((HEAD.len(), "the checksum is wrong")),
    }
}

/// The error for a process that another process has fenced by a manifest.
pub(crate) fn fenced(path: &str) -> Error {
    let message = format!(
        "another process has opened this database: it wrote {path}, which was the next manifest of this process. Close \
         this handle; acknowledged commits are kept"
    );
    Error::new(ErrorKind::Closed, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    fn disk() -> SimDisk {
        let disk = SimDisk::new();
        disk.create_dir(MANIFEST_DIR).unwrap();
        disk
    }

    fn manifest(version: u64) -> Manifest {
        let file = ManifestFile { path: "segment/x".into(), version, bytes: 7, crc32c: u32::MAX };
        Manifest {
            version,
            names: Some(file.clone()),
            tablets: vec![ManifestTablet { tablet: 2, files: vec![file] }],
            ..Manifest::first(Uuid::from_u128(7), 3)
        }
    }

    #[test]
    fn the_newest_manifest_counts_and_is_put_once() {
        let disk = disk();
        assert_eq!(Manifest::newest(&disk).unwrap(), None);
        for version in [1, 2, 9, 10] {
            manifest(version).put(&disk).unwrap();
            assert_eq!(Manifest::newest(&disk).unwrap(), Some(manifest(version)));
        }
        let error = manifest(10).put(&disk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    }

    #[test]
    fn every_flipped_bit_is_found_and_named() {
        let length = manifest(1).to_text().len() as u64;
        for at in 0..length {
            for bit in 0..8 {
                let disk = disk();
                manifest(1).put(&disk).unwrap();
                disk.flip_bit("manifest/1.json", at, bit).unwrap();
                // The case of a hexadecimal digit has no meaning.
                match Manifest::newest(&disk) {
                    Ok(found) => assert_eq!(found, Some(manifest(1))),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
                        assert!(error.message().contains("manifest/1.json is damaged at byte"), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_later_format_is_refused_by_name() {
        let disk = disk();
        Manifest { format: 2, ..manifest(1) }.put(&disk).unwrap();
        let error = Manifest::newest(&disk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("format 2"), "{error}");
    }

    #[test]
    fn a_gap_before_the_log_is_refused_and_named() {
        let disk = disk();
        let before = Some(LogBefore { next_batch: 9, last_ts: 41 });
        Manifest { log_before: before, checkpoint_ts: 41, ..manifest(1) }.put(&disk).unwrap();
        Manifest { log_before: before, checkpoint_ts: 40, ..manifest(2) }.put(&disk).unwrap();
        assert_eq!(Manifest::read(&disk, 1).unwrap().log_floor(), LogFloor { segment: 1, before });
        let error = Manifest::newest(&disk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(
            error.message().contains("manifest/2.json") && error.message().contains("begins after commit 41"),
            "{error}"
        );
    }

    #[test]
    fn a_power_cut_leaves_the_old_manifest_or_the_new_one() {
        for seed in 0..200 {
            for operation in 1..20 {
                let disk = disk();
                disk.sync_dir("").unwrap();
                manifest(1).put(&disk).unwrap();
                disk.power_off_at(disk.operations() + operation);
                let acknowledged = manifest(2).put(&disk).is_ok();
                let found = Manifest::newest(&disk.power_cut(seed)).unwrap().unwrap();
                assert!(found == manifest(2) || (found == manifest(1) && !acknowledged));
                // The manifest that was cut off can be written again.
                let disk = disk.power_cut(seed);
                manifest(found.version + 1).put(&disk).unwrap();
            }
        }
    }
}
