//! Reading a checkpoint back.
//!
//! Of every page the newest image is read, and only that; tablets are read side by side. Every block is checked against
//! its checksum, its own name and its format; what the images say about each other is for the end of the restore, and
//! [`Source`] then says where the page came from.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hashbrown::HashMap;
use mangrove_graph::{Error, ErrorKind, Result, TabletId};
use mangrove_store::image::PageName;
use mangrove_store::restore::{Damage, Restore};
use mangrove_store::{Store, StoreOptions};
use parking_lot::Mutex;

use super::names::{Indexes, read_names};
use super::segment::{BlockPlace, SegmentName, SegmentReader};
use super::take::{Checkpoints, TabletFiles};
use crate::codec::SavedRules;
use crate::damage::damaged;
use crate::disk::Disk;
use crate::manifest::{Manifest, ManifestFile, ManifestTablet};

/// A checkpoint in memory, to be brought up to date with the log and then finished.
pub(crate) struct Loaded {
    pub(crate) restore: Restore,
    pub(crate) indexes: Indexes,
    pub(crate) rules: SavedRules,
    pub(crate) source: Source,
    /// What the next checkpoint builds on.
    pub(crate) checkpoints: Checkpoints,
    /// The bytes that were read.
    pub(crate) bytes: u64,
}

/// Where the pages of a graph came from: the version of the file, and the offset in it.
pub(crate) struct Source {
    places: HashMap<PageName, (u64, u64)>,
}

impl Source {
    /// The error for damage that was found while or after pages were put together.
    pub(crate) fn error(&self, disk: &dyn Disk, damage: &Damage) -> Error {
        match self.places.get(&damage.page) {
            Some(&(version, offset)) => {
                let path = SegmentName { tablet: Some(damage.page.tablet), version }.path();
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

/// Reads the checkpoint of a manifest with this many threads, into a store with these options. `progress` is told how many
/// pages of how many are in, from any of the threads.
pub(crate) fn load(
    disk: &dyn Disk,
    manifest: &Manifest,
    store: &StoreOptions,
    threads: usize,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Loaded> {
    let store = Store::new(store);
    let (names, (indexes, rules)) = match &manifest.names {
        Some(file) => load_names(disk, manifest, file, &store)?,
        None => Default::default(),
    };
    let restore = Restore::new(store);
    let tablets: Vec<Mutex<TabletFiles>> = (0..manifest.tablet_count).map(|_| Mutex::default()).collect();
    let reading = Reading { disk, manifest, restore: &restore, tablets: &tablets };
    let total = AtomicU64::new(0);
    side_by_side(threads, &manifest.tablets, |tablet| {
        let count = reading.directories(tablet)?;
        total.fetch_add(count, Ordering::Relaxed);
        Ok(())
    })?;
    let (total, done) = (total.into_inner(), AtomicU64::new(0));
    side_by_side(threads, &manifest.tablets, |tablet| {
        reading.images(tablet, &mut || progress(done.fetch_add(1, Ordering::Relaxed) + 1, total))
    })?;
    let tablets: Vec<TabletFiles> = tablets.into_iter().map(Mutex::into_inner).collect();
    let places = tablets.iter().flat_map(|tablet| &tablet.places);
    let places = places.map(|(&page, &(version, place))| (page, (version, place.offset)));
    let source = Source { places: places.collect() };
    let images = tablets.iter().flat_map(|tablet| tablet.places.values());
    let bytes = names.len() as u64 + images.map(|(_, place)| place.bytes()).sum::<u64>();
    let checkpoints = Checkpoints::new(manifest.clone(), tablets, names);
    Ok(Loaded { restore, indexes, rules, source, checkpoints, bytes })
}

fn load_names(
    disk: &dyn Disk,
    manifest: &Manifest,
    file: &ManifestFile,
    store: &Store,
) -> Result<(Vec<u8>, (Indexes, SavedRules))> {
    let name = SegmentName { tablet: None, version: file.version };
    let reader = SegmentReader::open(disk, name, file.bytes, manifest.database)?;
    let [(_, place)] = *reader.blocks else {
        return Err(reader.damaged(0, format!("it has {} blocks, and names are one", reader.blocks.len())));
    };
    let body = reader.body(place)?;
    let read = read_names(&body, store.catalog()).map_err(|m| reader.damaged(place.offset + m.at, m.what))?;
    Ok((body, read))
}

/// Calls `work` with every item, from several threads; the first error.
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

struct Reading<'a> {
    disk: &'a dyn Disk,
    manifest: &'a Manifest,
    restore: &'a Restore,
    tablets: &'a [Mutex<TabletFiles>],
}

impl Reading<'_> {
    fn open(&self, tablet: &ManifestTablet, file: &ManifestFile) -> Result<SegmentReader<'_>> {
        let name = SegmentName { tablet: Some(TabletId(tablet.tablet)), version: file.version };
        if file.path != name.path() {
            let what = format!("it names {}, and that file is {}", file.path, name.path());
            return Err(damaged(self.disk, &Manifest::path(self.manifest.version), 0, what));
        }
        SegmentReader::open(self.disk, name, file.bytes, self.manifest.database)
    }

    /// Reads the directories of a tablet's files; how many pages it has.
    fn directories(&self, tablet: &ManifestTablet) -> Result<u64> {
        let mut files = self.tablets[usize::from(tablet.tablet) - 1].lock();
        for file in &tablet.files {
            let reader = self.open(tablet, file)?;
            files.places.extend(reader.blocks.iter().map(|&(page, place)| (page, (file.version, place))));
            files.files.push(file.clone());
        }
        Ok(files.places.len() as u64)
    }

    /// Reads the images of a tablet that count, file by file.
    fn images(&self, tablet: &ManifestTablet, each: &mut dyn FnMut()) -> Result<()> {
        let files = self.tablets[usize::from(tablet.tablet) - 1].lock();
        let mut turn = self.restore.tablet(TabletId(tablet.tablet)).expect("a manifest names tablets there are");
        for file in &tablet.files {
            let reader = self.open(tablet, file)?;
            let counts = |page: PageName, place: BlockPlace| files.places.get(&page) == Some(&(file.version, place));
            for &(page, place) in reader.blocks.iter().filter(|&&(page, place)| counts(page, place)) {
                let image = reader.image(page, place)?;
                turn.image(image).map_err(|damage| reader.damaged(place.offset, damage))?;
                each();
            }
        }
        Ok(())
    }
}
