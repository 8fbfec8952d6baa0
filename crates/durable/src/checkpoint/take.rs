//! Taking a checkpoint: writing the changed pages of every tablet, then the names, then the manifest.
//!
//! [`Checkpoints`] is the state from one checkpoint to the next: the newest manifest, and where the newest image of
//! each page lies. One thread at a time takes checkpoints. It holds no lock of the store while it writes; a `pause`
//! between two pages lets other threads run, and may end the checkpoint.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, Result, TabletId};
use mangrove_store::Store;
use mangrove_store::image::PageName;
use mangrove_txn::Transaction;

use super::FILES_MAX;
use super::file::{BlockPosition, CHECKPOINT_DIR, CheckpointFileName, CheckpointFileWriter, WrittenFile};
use super::names::put_names;
use crate::disk::Disk;
use crate::log::LogFloor;
use crate::manifest::{MANIFEST_DIR, Manifest, ManifestFile, ManifestTablet, fenced};

/// The result of a checkpoint, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckpointReport {
    /// The number of its manifest.
    pub version: u64,
    /// The timestamp of the snapshot: it has everything up to this commit.
    pub checkpoint_ts: u64,
    /// Page images written.
    pub pages: u64,
    /// Files written.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Tablets that were written whole.
    pub tablets_rewritten: u64,
}

/// The newest image of each page of a tablet: the version of its file, and its position there.
pub(super) type NewestImages = HashMap<PageName, (u64, BlockPosition)>;

/// The files of a tablet, as its next checkpoint needs to know them.
#[derive(Debug, Default)]
pub(super) struct TabletFiles {
    /// Oldest first.
    pub(super) files: Vec<ManifestFile>,
    pub(super) newest: NewestImages,
}

impl TabletFiles {
    /// Returns true if writing the whole tablet is better than writing only these pages.
    fn is_to_be_rewritten(&self, changed: &[PageName]) -> bool {
        let changed: BTreeSet<PageName> = changed.iter().copied().collect();
        let kept = self.newest.iter().filter(|(name, _)| !changed.contains(*name));
        let kept_bytes: u64 = kept.map(|(_, (_, position))| position.bytes()).sum();
        let bytes: u64 = self.files.iter().map(|file| file.bytes).sum();
        self.files.len() >= FILES_MAX || kept_bytes * 2 < bytes
    }
}

/// The snapshot that a checkpoint writes.
#[derive(Debug)]
pub(crate) struct CheckpointSnapshot {
    /// The timestamp of the snapshot.
    pub(crate) at_ts: u64,
    /// The floor of the log, as it was before the snapshot was taken.
    pub(crate) floor: LogFloor,
    /// The transaction that keeps the snapshot from being collected; `None` while nothing else can change the graph.
    pub(crate) held: Option<Transaction>,
}

/// The state after the last checkpoint, on which the next one builds.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    manifest: Manifest,
    /// By tablet, counted from 0.
    tablets: Vec<TabletFiles>,
    /// The content of the newest file of names.
    names: Vec<u8>,
    /// The last version that was tried (LOG-24).
    tried: u64,
}

impl Checkpoints {
    /// The state after the checkpoint of a manifest: the files of each tablet, and the content of the file of names.
    pub(super) fn new(manifest: Manifest, tablets: Vec<TabletFiles>, names: Vec<u8>) -> Self {
        Checkpoints { tried: manifest.version, manifest, tablets, names }
    }

    /// The newest manifest.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Writes a manifest with the same files for a new fencing epoch (LOG-31). From now on no process that opened the
    /// database before can write one.
    pub(crate) fn begin_epoch(&mut self, disk: &dyn Disk) -> Result<()> {
        self.tried += 1;
        let next = Manifest { version: self.tried, epoch: self.manifest.epoch + 1, ..self.manifest.clone() };
        next.put(disk)?;
        self.manifest = next;
        Ok(())
    }

    /// Fails if another process has written a manifest since. A version above the newest of this process was a failed
    /// attempt of its own, or it has another epoch.
    fn check_epoch(&self, disk: &dyn Disk) -> Result<()> {
        for version in Manifest::versions(disk)?.into_iter().filter(|&version| version > self.manifest.version) {
            if Manifest::read(disk, version)?.epoch != self.manifest.epoch {
                return Err(fenced(&disk.describe(&Manifest::path(version))));
            }
        }
        Ok(())
    }

    /// Takes a checkpoint of a snapshot. `pause` is called between pages; its error ends the checkpoint and leaves
    /// nothing on the disk. Returns `None` if nothing has changed.
    pub(crate) fn take(
        &mut self,
        disk: &dyn Disk,
        store: &Store,
        snapshot: CheckpointSnapshot,
        pause: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<CheckpointReport>> {
        let CheckpointSnapshot { at_ts, floor, held } = snapshot;
        if !floor.is_covered_by(at_ts) {
            // LOG-7: recovery would refuse it, after the log that it releases is gone.
            return Err(Error::bug(format!(
                "a checkpoint at commit {at_ts} would release later commits of the log: {floor:?}"
            )));
        }
        assert!(at_ts >= self.manifest.checkpoint_ts, "a checkpoint goes back in time");
        // LOG-24.
        self.tried += 1;
        let mut next = Manifest {
            version: self.tried,
            checkpoint_ts: at_ts,
            first_log_segment: floor.segment,
            log_before: floor.before,
            ..self.manifest.clone()
        };
        let mut report = CheckpointReport { version: next.version, checkpoint_ts: at_ts, ..Default::default() };
        // A graph without images may have been loaded in bulk, which notes no changes.
        let is_first = self.tablets.iter().all(|tablet| tablet.files.is_empty());
        let since = (!is_first).then_some(self.manifest.checkpoint_ts);
        let mut written = Vec::new();
        for id in (1..=store.tablet_count()).map(TabletId) {
            let turn = TabletTurn { disk, store, manifest: &next, id, at_ts };
            written.extend(turn.write(&self.tablets[usize::from(id.0) - 1], since, &mut report, pause)?);
        }
        drop(held);
        reach(Point::CheckpointImages);
        // LOG-25: after the last image.
        let mut names = Vec::new();
        put_names(store, &mut names);
        let has_new_names = names != self.names || next.names.is_none();
        if has_new_names {
            let mut file = CheckpointFileWriter::create(
                disk,
                CheckpointFileName { tablet: None, version: next.version },
                next.database,
            )?;
            file.block(&names)?;
            next.names = Some(manifest_file(file.finish()?, next.version, &mut report));
        }
        if written.is_empty() && !has_new_names && next.first_log_segment == self.manifest.first_log_segment {
            return Ok(None);
        }
        for (id, files) in &written {
            set_files(&mut next, *id, &files.files);
        }
        disk.sync_dir(CHECKPOINT_DIR)?;
        reach(Point::CheckpointFiles);
        self.check_epoch(disk)?;
        // LOG-22: the files and their names are synced.
        next.put(disk)?;
        for (id, files) in written {
            self.tablets[usize::from(id.0) - 1] = files;
        }
        self.names = names;
        self.manifest = next;
        Ok(Some(report))
    }
}

fn set_files(manifest: &mut Manifest, id: TabletId, files: &[ManifestFile]) {
    match manifest.tablets.iter_mut().find(|tablet| tablet.tablet == id.0) {
        Some(tablet) => tablet.files = files.to_vec(),
        None => manifest.tablets.push(ManifestTablet { tablet: id.0, files: files.to_vec() }),
    }
}

fn manifest_file(info: WrittenFile, version: u64, report: &mut CheckpointReport) -> ManifestFile {
    report.files += 1;
    report.bytes += info.bytes;
    ManifestFile { path: info.path, version, bytes: info.bytes, crc32c: info.crc }
}

/// The work of a checkpoint on one tablet.
struct TabletTurn<'a> {
    disk: &'a dyn Disk,
    store: &'a Store,
    manifest: &'a Manifest,
    id: TabletId,
    at_ts: u64,
}

impl TabletTurn<'_> {
    /// Writes the changed pages. Returns the files of the tablet after that; `None` if nothing has changed.
    fn write(
        &self,
        before: &TabletFiles,
        since: Option<u64>,
        report: &mut CheckpointReport,
        pause: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<(TabletId, TabletFiles)>> {
        let mut changed = self.store.pages_changed_since(self.id, since);
        if changed.is_empty() {
            return Ok(None);
        }
        let mut files = TabletFiles { files: before.files.clone(), newest: before.newest.clone() };
        if !before.files.is_empty() && before.is_to_be_rewritten(&changed) {
            changed = self.store.pages_changed_since(self.id, None);
            files = TabletFiles::default();
            report.tablets_rewritten += 1;
        }
        let version = self.manifest.version;
        let name = CheckpointFileName { tablet: Some(self.id), version };
        let mut file = CheckpointFileWriter::create(self.disk, name, self.manifest.database)?;
        for page in changed {
            pause()?;
            // LOG-20.
            let Some(image) = self.store.page_image(page, self.at_ts) else { continue };
            let position = file.image(&image)?;
            files.newest.insert(page, (version, position));
            report.pages += 1;
        }
        files.files.push(manifest_file(file.finish()?, version, report));
        Ok(Some((self.id, files)))
    }
}

/// Removes the files that neither the newest manifest nor the one before names (LOG-23). Later manifests, which this
/// process may have written without learning of it (LOG-24), are left alone with their files. The caller has the
/// database to itself, and takes no checkpoint meanwhile. Returns the number of removed files.
pub(crate) fn clean_up(disk: &dyn Disk, newest: &Manifest) -> Result<u64> {
    let mut needed: BTreeSet<String> = newest.files().map(|file| file.path.clone()).collect();
    let (mut old, later): (Vec<u64>, Vec<u64>) =
        Manifest::versions(disk)?.into_iter().partition(|&version| version < newest.version);
    for version in old.pop().into_iter().chain(later) {
        // A manifest that cannot be read needs no files: the graph is not opened from it.
        if let Ok(manifest) = Manifest::read(disk, version) {
            needed.extend(manifest.files().map(|file| file.path.clone()));
        }
    }
    let mut removed = 0;
    for version in old {
        disk.remove(&Manifest::path(version))?;
        removed += 1;
    }
    for name in disk.list(MANIFEST_DIR)?.iter().filter(|name| name.ends_with(".draft")) {
        disk.remove(&format!("{MANIFEST_DIR}/{name}"))?;
    }
    for name in disk.list(CHECKPOINT_DIR)? {
        let path = format!("{CHECKPOINT_DIR}/{name}");
        if !needed.contains(&path) {
            disk.remove(&path)?;
            removed += 1;
        }
    }
    Ok(removed)
}
