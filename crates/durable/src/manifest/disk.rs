//! Manifests as files of a [`Disk`].
//!
//! ```text
//!  N.draft: create ──▶ write ──▶ sync ──▶ link to N.json if the name is free ──▶ sync the directory ──▶ remove N.draft
//!                                               └── taken: another process has fenced this one
//! ```

use std::io;

use mangrove_graph::Result;

use super::text::Unreadable;
use super::{Manifest, fenced};
use crate::disk::{Disk, read_file};

/// The directory of manifests.
pub const MANIFEST_DIR: &str = "manifest";

impl Manifest {
    /// The path of the manifest with a number.
    pub fn path(version: u64) -> String {
        format!("{MANIFEST_DIR}/{version}.json")
    }

    /// Writes this as the newest manifest. Fails with `Closed` if its number is taken (LOG-31).
    pub fn put<D: Disk + ?Sized>(&mut self, disk: &D) -> Result<()> {
        let draft = format!("{MANIFEST_DIR}/{}.draft", self.version);
        let file = match disk.create(&draft) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                disk.remove(&draft)?;
                disk.create(&draft)?
            }
            created => created?,
        };
        let (checksum, text) = self.to_text();
        file.write_at(0, text.as_bytes())?;
        file.sync_data()?;
        let path = Manifest::path(self.version);
        // LOG-30: after the sync. LOG-31: only if the name is free.
        disk.link_new(&draft, &path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => fenced(&disk.describe(&path)),
            _ => error.into(),
        })?;
        disk.sync_dir(MANIFEST_DIR)?;
        disk.remove(&draft)?;
        self.checksum = Some(checksum);
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
    pub fn versions<D: Disk + ?Sized>(disk: &D) -> Result<Vec<u64>> {
        let names = disk.list(MANIFEST_DIR)?;
        let mut versions: Vec<u64> = names.iter().filter_map(|n| n.strip_suffix(".json")?.parse().ok()).collect();
        versions.sort_unstable();
        Ok(versions)
    }

    /// Reads the manifest with a number.
    pub fn read<D: Disk + ?Sized>(disk: &D, version: u64) -> Result<Manifest> {
        let path = Manifest::path(version);
        let read = Manifest::of_text(&read_file(disk, &path)?, version);
        let read = read.and_then(|manifest| match manifest.wal {
            Some(_) => Ok(manifest),
            None => Err(Unreadable::Damaged(0, "it names no log of this directory".to_owned())),
        });
        read.map_err(|unreadable| unreadable.of(&disk.describe(&path)))
    }
}
