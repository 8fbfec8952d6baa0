//! Loading a checkpoint into a store that is being restored.
//!
//! Of every page only the newest image is read; tablets are read in parallel. Every block is checked against its
//! checksum, its own name and its format. References between images are checked at the end of the restore;
//! [`ImageSource`] then tells which file and offset a damaged page came from. Nothing on the disk is changed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hashbrown::HashMap;
use mangrove_graph::{Error, ErrorKind, Result, TabletId};
use mangrove_store::image::PageName;
use mangrove_store::restore::{Damage, Restore};
use mangrove_store::{Store, StoreOptions};
use parking_lot::Mutex;

use super::file::{BlockPosition, CheckpointFileName, CheckpointFileReader};
use super::names::{Indexes, read_names};
use super::take::{Checkpoints, TabletFiles};
use crate::codec::SavedRules;
use crate::damage::damaged;
use crate::disk::Disk;
use crate::manifest::{Manifest, ManifestFile, ManifestTablet};

/// A checkpoint in memory. The log is replayed into it before the restore is finished.
pub(crate) struct LoadedCheckpoint {
    pub(crate) restore: Restore,
    pub(crate) indexes: Indexes,
    pub(crate) rules: SavedRules,
    pub(crate) source: ImageSource,
    /// The state that the next checkpoint builds on.
    pub(crate) checkpoints: Checkpoints,
    /// Bytes read.
    pub(crate) bytes: u64,
}

/// Where each page of a graph came from: the version of the file, and the offset in it.
pub(crate) struct ImageSource {
    newest: HashMap<PageName, (u64, u64)>,
}

impl ImageSource {
    /// The error for damage that was found while or after pages were put together.
    pub(crate) fn error(&self, disk: &dyn Disk, damage: &Damage) -> Error {
        match self.newest.get(&damage.page) {
            Some(&(version, offset)) => {
                let path = CheckpointFileName { tablet: Some(damage.page.tablet), version }.path();
                damaged(disk, &path, offset, format_args!("{damage}, here or by a later commit in the log"))
            }
            None => {
                let log = disk.describe(crate::log::DIRECTORY);
                let message =
                    format!("the commits in {log} contradict each other: {damage}; restore the graph from a backup");
                Error::new(ErrorKind::Damaged, message)
            }
        }
    }
}

/// Loads the checkpoint of a manifest with `threads` threads, into a store with these options. `progress` is called,
/// from any of the threads, with the number of loaded pages and of all pages.
pub(crate) fn load(
    disk: &dyn Disk,
    manifest: &Manifest,
    store: &StoreOptions,
    threads: usize,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<LoadedCheckpoint> {
    let store = Store::new(store);
    let (names, (indexes, rules)) = match &manifest.names {
        Some(file) => load_names(disk, manifest, file, &store)?,
        None => Default::default(),
    };
    let restore = Restore::new(store);
    let tablets: Vec<Mutex<TabletFiles>> = (0..manifest.tablet_count).map(|_| Mutex::default()).collect();
    let reading = CheckpointLoad { disk, manifest, restore: &restore, tablets: &tablets };
    let total = AtomicU64::new(0);
    side_by_side(threads, &manifest.tablets, |tablet| {
        let count = reading.block_tables(tablet)?;
        total.fetch_add(count, Ordering::Relaxed);
        Ok(())
    })?;
    let (total, done) = (total.into_inner(), AtomicU64::new(0));
    side_by_side(threads, &manifest.tablets, |tablet| {
        reading.images(tablet, &mut || progress(done.fetch_add(1, Ordering::Relaxed) + 1, total))
    })?;
    let tablets: Vec<TabletFiles> = tablets.into_iter().map(Mutex::into_inner).collect();
    let newest = tablets.iter().flat_map(|tablet| &tablet.newest);
    let newest = newest.map(|(&page, &(version, position))| (page, (version, position.offset)));
    let source = ImageSource { newest: newest.collect() };
    let images = tablets.iter().flat_map(|tablet| tablet.newest.values());
    let bytes = names.len() as u64 + images.map(|(_, position)| position.bytes()).sum::<u64>();
    let checkpoints = Checkpoints::new(manifest.clone(), tablets, names);
    Ok(LoadedCheckpoint { restore, indexes, rules, source, checkpoints, bytes })
}

fn load_names(
    disk: &dyn Disk,
    manifest: &Manifest,
    file: &ManifestFile,
    store: &Store,
) -> Result<(Vec<u8>, (Indexes, SavedRules))> {
    let name = CheckpointFileName { tablet: None, version: file.version };
    let reader = CheckpointFileReader::open(disk, name, file.bytes, manifest.database)?;
    let [(_, position)] = *reader.blocks else {
        return Err(
            reader.damaged(0, format!("expected one block with the names, found {} blocks", reader.blocks.len()))
        );
    };
    let body = reader.body(position)?;
    let read = read_names(&body, store.catalog()).map_err(|m| reader.damaged(position.offset + m.at, m.what))?;
    Ok((body, read))
}

/// Calls `work` with every item, from several threads. Returns the first error.
fn side_by_side<T: Sync>(threads: usize, items: &[T], work: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let run = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = work(item) {
                failed.lock().get_or_insert(error);
                next.store(items.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            scope.spawn(run);
        }
        run();
    });
    failed.into_inner().map_or(Ok(()), Err)
}

/// Reads the files of one manifest.
struct CheckpointLoad<'a> {
    disk: &'a dyn Disk,
    manifest: &'a Manifest,
    restore: &'a Restore,
    tablets: &'a [Mutex<TabletFiles>],
}

impl CheckpointLoad<'_> {
    fn open(&self, tablet: &ManifestTablet, file: &ManifestFile) -> Result<CheckpointFileReader<'_>> {
        let name = CheckpointFileName { tablet: Some(TabletId(tablet.tablet)), version: file.version };
        if file.path != name.path() {
            let what = format!("expected the file {}, found the name {}", name.path(), file.path);
            return Err(damaged(self.disk, &Manifest::path(self.manifest.version), 0, what));
        }
        CheckpointFileReader::open(self.disk, name, file.bytes, self.manifest.database)
    }

    /// Reads the block tables of the files of a tablet. Returns the number of its pages.
    fn block_tables(&self, tablet: &ManifestTablet) -> Result<u64> {
        let mut files = self.tablets[usize::from(tablet.tablet) - 1].lock();
        for file in &tablet.files {
            let reader = self.open(tablet, file)?;
            files.newest.extend(reader.blocks.iter().map(|&(page, position)| (page, (file.version, position))));
            files.files.push(file.clone());
        }
        Ok(files.newest.len() as u64)
    }

    /// Reads the newest images of a tablet, file by file.
    fn images(&self, tablet: &ManifestTablet, each: &mut dyn FnMut()) -> Result<()> {
        let files = self.tablets[usize::from(tablet.tablet) - 1].lock();
        let mut turn = self.restore.tablet(TabletId(tablet.tablet)).expect("a manifest names tablets there are");
        for file in &tablet.files {
            let reader = self.open(tablet, file)?;
            let counts =
                |page: PageName, position: BlockPosition| files.newest.get(&page) == Some(&(file.version, position));
            for &(page, position) in reader.blocks.iter().filter(|&&(page, position)| counts(page, position)) {
                let image = reader.image(page, position)?;
                turn.image(image).map_err(|damage| reader.damaged(position.offset, damage))?;
                each();
            }
        }
        Ok(())
    }
}
