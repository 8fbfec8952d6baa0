//! Writing a checkpoint.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, Result, TabletId};
use mangrove_store::Store;
use mangrove_store::image::PageName;
use mangrove_txn::Transaction;

use super::FILES_MAX;
use super::names::put_names;
use super::segment::{BlockPlace, FileInfo, SEGMENT_DIR, SegmentName, SegmentWriter};
use crate::disk::Disk;
use crate::log::LogFloor;
use crate::manifest::{MANIFEST_DIR, Manifest, ManifestFile, ManifestTablet, fenced};

/// What a checkpoint has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckpointReport {
    /// The number of its manifest.
    pub version: u64,
    /// The commit up to which it has everything.
    pub checkpoint_ts: u64,
    /// Images written.
    pub pages: u64,
    /// Files written.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Tablets that were written whole.
    pub tablets_rewritten: u64,
}

/// The newest image of each page of a tablet: the version of its file, and its place there.
pub(super) type Places = HashMap<PageName, (u64, BlockPlace)>;

/// The files of a tablet, as its next checkpoint needs to know them.
#[derive(Debug, Default)]
pub(super) struct TabletFiles {
    /// Oldest first.
    pub(super) files: Vec<ManifestFile>,
    pub(super) places: Places,
}

impl TabletFiles {
    /// Whether the tablet is better written whole than these pages alone.
    fn is_to_be_rewritten(&self, due: &[PageName]) -> bool {
        let due: BTreeSet<PageName> = due.iter().copied().collect();
        let kept = self.places.iter().filter(|(name, _)| !due.contains(*name));
        let kept_bytes: u64 = kept.map(|(_, (_, place))| place.bytes()).sum();
        let bytes: u64 = self.files.iter().map(|file| file.bytes).sum();
        self.files.len() >= FILES_MAX || kept_bytes * 2 < bytes
    }
}

/// What a checkpoint is to be of.
#[derive(Debug)]
pub(crate) struct CheckpointSnapshot {
    /// Its timestamp.
    pub(crate) at_ts: u64,
    /// From where on the log has what is later than the snapshot, as it was before the snapshot was taken.
    pub(crate) floor: LogFloor,
    /// What keeps the snapshot from being collected; none while nothing else can happen to the graph.
    pub(crate) held: Option<Transaction>,
}

/// What the last checkpoint left: what the next one builds on. One thread at a time takes checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    manifest: Manifest,
    /// By tablet, counting from 0.
    tablets: Vec<TabletFiles>,
    /// The bytes of the newest file of names.
    names: Vec<u8>,
    /// The last version that was tried. One that failed may have been put all the same, so its files are left alone.
    tried: u64,
}

impl Checkpoints {
    /// After the checkpoint of a manifest, with what was loaded of it.
    pub(super) fn new(manifest: Manifest, tablets: Vec<TabletFiles>, names: Vec<u8>) -> Self {
        Checkpoints { tried: manifest.version, manifest, tablets, names }
    }

    /// The newest manifest.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Puts a manifest with the same files for a new epoch: from now on nobody who opened the database before can put
    /// one.
    pub(crate) fn begin_epoch(&mut self, disk: &dyn Disk) -> Result<()> {
        self.tried += 1;
        let next = Manifest { version: self.tried, epoch: self.manifest.epoch + 1, ..self.manifest.clone() };
        next.put(disk)?;
        self.manifest = next;
        Ok(())
    }

    /// Fails where somebody else has put a manifest since. What is later than the own newest was tried, or it is of
    /// another epoch.
    fn check_epoch(&self, disk: &dyn Disk) -> Result<()> {
        for version in Manifest::versions(disk)?.into_iter().filter(|&version| version > self.manifest.version) {
            if Manifest::read(disk, version)?.epoch != self.manifest.epoch {
                return Err(fenced(&disk.describe(&Manifest::path(version))));
            }
        }
        Ok(())
    }

    /// Takes a checkpoint of a snapshot. `pause` is called between pages, and its error ends the checkpoint without a
    /// trace. `None` where there is nothing new.
    pub(crate) fn take(
        &mut self,
        disk: &dyn Disk,
        store: &Store,
        snapshot: CheckpointSnapshot,
        pause: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<CheckpointReport>> {
        let CheckpointSnapshot { at_ts, floor, held } = snapshot;
        if !floor.is_covered_by(at_ts) {
            // Recovery would refuse it, when the log that it lets go is gone.
            return Err(Error::bug(format!("a checkpoint at commit {at_ts} lets go of later commits: {floor:?}")));
        }
        self.tried += 1;
        let mut next = Manifest {
            version: self.tried,
            checkpoint_ts: at_ts,
            first_log_segment: floor.segment,
            log_before: floor.before,
            ..self.manifest.clone()
        };
        let mut report = CheckpointReport { version: next.version, checkpoint_ts: at_ts, ..Default::default() };
        // A graph that has no image was perhaps loaded in bulk: that notes no changes.
        let is_first = self.tablets.iter().all(|tablet| tablet.files.is_empty());
        let since = (!is_first).then_some(self.manifest.checkpoint_ts);
        let mut written = Vec::new();
        for id in (1..=store.tablet_count()).map(TabletId) {
            let turn = TabletTurn { disk, store, manifest: &next, id, at_ts };
            written.extend(turn.write(&self.tablets[usize::from(id.0) - 1], since, &mut report, pause)?);
        }
        drop(held);
        reach(Point::CheckpointImages);
        let mut names = Vec::new();
        put_names(store, &mut names);
        let has_new_names = names != self.names || next.names.is_none();
        if has_new_names {
            let mut file =
                SegmentWriter::create(disk, SegmentName { tablet: None, version: next.version }, next.database)?;
            file.block(&names)?;
            next.names = Some(manifest_file(file.finish()?, next.version, &mut report));
        }
        if written.is_empty() && !has_new_names && next.first_log_segment == self.manifest.first_log_segment {
            return Ok(None);
        }
        for (id, files) in &written {
            set_files(&mut next, *id, &files.files);
        }
        disk.sync_dir(SEGMENT_DIR)?;
        reach(Point::CheckpointFiles);
        self.check_epoch(disk)?;
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

fn manifest_file(info: FileInfo, version: u64, report: &mut CheckpointReport) -> ManifestFile {
    report.files += 1;
    report.bytes += info.bytes;
    ManifestFile { path: info.path, version, bytes: info.bytes, crc32c: info.crc }
}

/// A checkpoint's work on one tablet.
struct TabletTurn<'a> {
    disk: &'a dyn Disk,
    store: &'a Store,
    manifest: &'a Manifest,
    id: TabletId,
    at_ts: u64,
}

impl TabletTurn<'_> {
    /// Writes what has changed; the tablet's files then. `None` where nothing has.
    fn write(
        &self,
        before: &TabletFiles,
        since: Option<u64>,
        report: &mut CheckpointReport,
        pause: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<(TabletId, TabletFiles)>> {
        let mut due = self.store.pages_changed_since(self.id, since);
        if due.is_empty() {
            return Ok(None);
        }
        let mut files = TabletFiles { files: before.files.clone(), places: before.places.clone() };
        if !before.files.is_empty() && before.is_to_be_rewritten(&due) {
            due = self.store.pages_changed_since(self.id, None);
            files = TabletFiles::default();
            report.tablets_rewritten += 1;
        }
        let version = self.manifest.version;
        let name = SegmentName { tablet: Some(self.id), version };
        let mut file = SegmentWriter::create(self.disk, name, self.manifest.database)?;
        for page in due {
            pause()?;
            let Some(image) = self.store.page_image(page, self.at_ts) else { continue };
            let place = file.image(&image)?;
            files.places.insert(page, (version, place));
            report.pages += 1;
        }
        files.files.push(manifest_file(file.finish()?, version, report));
        Ok(Some((self.id, files)))
    }
}

/// Removes what neither the newest manifest nor the one before names (invariants 3 and 4). Later ones, which were put
/// without our knowing for sure (invariant 6), are left alone. The caller has the database to itself, and takes no
/// checkpoint meanwhile. Returns how many files went.
pub(crate) fn clean_up(disk: &dyn Disk, newest: &Manifest) -> Result<u64> {
    let mut needed: BTreeSet<String> = newest.files().map(|file| file.path.clone()).collect();
    let (mut old, later): (Vec<u64>, Vec<u64>) =
        Manifest::versions(disk)?.into_iter().partition(|&version| version < newest.version);
    for version in old.pop().into_iter().chain(later) {
        // One that cannot be read needs nothing: it is not what the graph is opened from.
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
    for name in disk.list(SEGMENT_DIR)? {
        let path = format!("{SEGMENT_DIR}/{name}");
        if !needed.contains(&path) {
            disk.remove(&path)?;
            removed += 1;
        }
    }
    Ok(removed)
}
