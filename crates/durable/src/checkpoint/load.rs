//! Loading a checkpoint into a store that is being restored.
//!
//! Of every page only the newest image is read; tablets are read in parallel. Every block is checked against its
//! checksum, its own name and its format. References between images are checked at the end of the restore;
//! [`ImageSource`] then tells which file and offset a damaged page came from. Nothing in the place is changed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hashbrown::HashMap;
use mangrove_graph::{Catalog, Error, ErrorKind, Result, TabletId};
use mangrove_store::Store;
use mangrove_store::image::PageName;
use mangrove_store::restore::{Damage, Restore};
use parking_lot::Mutex;
use uuid::Uuid;

use super::image::ImageReader;
use super::live::{LivePacks, PagePlace};
use super::names::{Indexes, read_names};
use super::pack::{BlockName, BlockPosition, PackReader, PlacedBlock, open_pack};
use super::place::Place;
use super::take::Checkpoints;
use crate::codec::SavedRules;
use crate::damage::damaged_in;
use crate::manifest::{Manifest, ManifestPack, PackNumber};
use crate::open::{GraphCounts, TopologyBlock, layers_checksum};

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

/// Where each page of a graph came from: the file, and the offset in it.
pub(crate) struct ImageSource {
    /// By their place in the order of packs.
    paths: Vec<String>,
    newest: HashMap<PageName, (u64, u64)>,
}

impl ImageSource {
    /// The error for damage that was found while or after pages were put together.
    pub(crate) fn error<P: Place + ?Sized>(&self, place: &P, damage: &Damage) -> Error {
        match self.newest.get(&damage.page) {
            Some(&(pack, offset)) => {
                let path = place.describe(&self.paths[pack as usize]);
                damaged_in(&path, offset, format_args!("{damage}, here or by a later commit in the log"))
            }
            None => {
                let log = place.describe_log();
                let message =
                    format!("the commits in {log} contradict each other: {damage}; restore the graph from a backup");
                Error::new(ErrorKind::Damaged, message)
            }
        }
    }
}

/// Loads the checkpoint of a manifest with `threads` threads. `progress` is called, from any of the threads, with the
/// number of loaded pages and of all pages.
pub(crate) fn load<P: Place + ?Sized>(
    place: &P,
    manifest: &Manifest,
    restore: Restore,
    threads: usize,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<LoadedCheckpoint> {
    let threads = place.reading_threads(threads);
    let readers = open_packs(place, &manifest.packs, manifest.database, threads)?;
    let packs = live_packs(place, manifest, readers.iter().map(|reader| reader.blocks.as_slice()))?;
    let (names, (indexes, rules)) = match packs.names().zip(manifest.names) {
        Some((named, _)) => load_names(manifest, &readers, named, restore.store())?,
        None => Default::default(),
    };
    let tablets = by_tablet(place, manifest, &packs)?;
    let (total, done) = (packs.page_count() as u64, AtomicU64::new(0));
    side_by_side(threads, &tablets, |tablet| {
        let each = &mut || progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        load_tablet(&readers, &restore, tablet, each)
    })?;
    let bytes = names.len() as u64 + packs.newest().map(|(_, at)| at.position.bytes()).sum::<u64>();
    let source = ImageSource {
        paths: manifest.packs.iter().map(|pack| pack.path()).collect(),
        newest: packs.newest().map(|(page, at)| (page, (at.pack, at.position.offset))).collect(),
    };
    let checkpoints = Checkpoints::new(manifest.clone(), packs, names);
    Ok(LoadedCheckpoint { restore, indexes, rules, source, checkpoints, bytes })
}

/// Reads the names of a manifest's checkpoint.
pub(crate) fn load_catalog<P: Place + ?Sized>(place: &P, manifest: &Manifest) -> Result<Catalog> {
    let catalog = Catalog::new();
    if let Some(pack) = manifest.names_pack() {
        open_pack(place, pack, manifest.database)?.catalog(|bytes| read_names(bytes, &catalog).map(drop))?;
    }
    Ok(catalog)
}

/// Which blocks of the packs of a manifest count. `blocks` are those of each pack, in the order of the manifest.
pub(super) fn live_packs<'a, P: Place + ?Sized>(
    place: &P,
    manifest: &Manifest,
    blocks: impl Iterator<Item = &'a [PlacedBlock]>,
) -> Result<LivePacks> {
    let mut packs = LivePacks::default();
    packs.count_topology(manifest.topology.is_some());
    for (pack, blocks) in manifest.packs.iter().zip(blocks) {
        packs.add(pack.clone(), blocks);
    }
    let of_manifest = |what: String| damaged_in(&place.describe(&Manifest::path(manifest.version)), 0, what);
    packs.count_indexes(&manifest.indexes).map_err(of_manifest)?;
    match packs.names().zip(manifest.names) {
        Some((found, named)) if found != named => {
            let what = "the catalog that it names is not that of the last pack with one";
            Err(of_manifest(what.to_owned()))
        }
        _ => Ok(packs),
    }
}

/// Calls `each` with the topology of every page of a manifest, and the place of the newest block or delta that it comes from.
pub(crate) fn each_topology<P: Place + ?Sized>(
    place: &P,
    manifest: &Manifest,
    each: &mut dyn FnMut(&PackReader<'_>, BlockPosition, TopologyBlock) -> Result<()>,
) -> Result<()> {
    let readers = open_packs(place, &manifest.packs, manifest.database, 1)?;
    let packs = live_packs(place, manifest, readers.iter().map(|reader| reader.blocks.as_slice()))?;
    let mut deltas = HashMap::new();
    let of_deltas = packs.newest_topology().filter_map(|(page, at)| Some((BlockName::of_delta(page), at.delta?)));
    each_body(&readers, of_deltas, |reader, name, position, body| {
        let page = name.delta_page().expect("these are deltas");
        deltas.insert(page, (reader, position, reader.delta(page, position, body)?));
        Ok(())
    })?;
    let of_blocks = packs.newest_topology().map(|(page, at)| (BlockName::of_topology(page), at.block));
    each_body(&readers, of_blocks, |reader, name, position, body| {
        let page = name.topology_page().expect("these are topology blocks");
        let block = reader.topology(page, position, body)?;
        let Some((reader, position, delta)) = deltas.remove(&page) else { return each(reader, position, block) };
        let contradiction = |what| {
            reader.damaged(
                position.offset,
                format_args!("the delta of the topology of {page} contradicts its block: {what}"),
            )
        };
        each(reader, position, delta.apply(&block, layers_checksum(body)).map_err(contradiction)?)
    })
}

/// Calls `each` with the bodies of these blocks, pack by pack.
pub(super) fn each_body<'r, 'a>(
    readers: &'r [PackReader<'a>],
    blocks: impl Iterator<Item = (BlockName, PagePlace)>,
    mut each: impl FnMut(&'r PackReader<'a>, BlockName, BlockPosition, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut found: Vec<_> = blocks.map(|(name, at)| (at.pack, (name, at.position))).collect();
    found.sort_unstable_by_key(|(pack, (_, position))| (*pack, position.offset));
    for of_pack in found.chunk_by(|(one, _), (other, _)| one == other) {
        let reader = &readers[of_pack[0].0 as usize];
        let blocks: Vec<_> = of_pack.iter().map(|(_, block)| *block).collect();
        reader.bodies(&blocks, |name, position, body| each(reader, name, position, body))?;
    }
    Ok(())
}

/// Calls `with` with the counts of a manifest that count, if there are some, and with where they were found.
pub(crate) fn with_statistics<P: Place + ?Sized>(
    place: &P,
    manifest: &Manifest,
    with: impl FnOnce(GraphCounts, &PackReader<'_>, BlockPosition) -> Result<()>,
) -> Result<()> {
    let readers = open_packs(place, &manifest.packs, manifest.database, 1)?;
    let packs = live_packs(place, manifest, readers.iter().map(|reader| reader.blocks.as_slice()))?;
    let Some(at) = packs.statistics() else { return Ok(()) };
    let reader = &readers[at.pack as usize];
    let body = reader.body(BlockName::STATISTICS, at.position)?;
    let counts = GraphCounts::read(&body).map_err(|malformed| reader.malformed(at.position, malformed))?;
    with(counts, reader, at.position)
}

/// Opens packs, and returns them in the same order.
pub(super) fn open_packs<'a, P: Place + ?Sized>(
    place: &'a P,
    packs: &[ManifestPack],
    database: Uuid,
    threads: usize,
) -> Result<Vec<PackReader<'a>>> {
    let readers: Vec<_> = packs.iter().map(|_| Mutex::new(None)).collect();
    let work: Vec<_> = packs.iter().zip(&readers).collect();
    side_by_side(threads, &work, |(pack, reader)| {
        *reader.lock() = Some(open_pack(place, pack, database)?);
        Ok(())
    })?;
    Ok(readers.into_iter().map(|reader| reader.into_inner().expect("every pack was opened")).collect())
}

fn load_names(
    manifest: &Manifest,
    readers: &[PackReader<'_>],
    named: PackNumber,
    store: &Store,
) -> Result<(Vec<u8>, (Indexes, SavedRules))> {
    let is_named = |pack: &ManifestPack| pack.number() == named && pack.covers.has_catalog();
    let at = manifest.packs.iter().position(is_named).expect("a manifest has the pack of its names");
    readers[at].catalog(|bytes| Ok((bytes.to_vec(), read_names(bytes, store.catalog())?)))
}

/// The images of one tablet, each with its pack. Those of a pack lie side by side, in the order of their offsets.
type TabletImages = (TabletId, Vec<(u64, (BlockName, BlockPosition))>);

fn by_tablet<P: Place + ?Sized>(place: &P, manifest: &Manifest, packs: &LivePacks) -> Result<Vec<TabletImages>> {
    let mut tablets: Vec<TabletImages> = (1..=manifest.tablet_count).map(|id| (TabletId(id), Vec::new())).collect();
    for (page, at) in packs.newest() {
        let found = usize::from(page.tablet.0).checked_sub(1).and_then(|number| tablets.get_mut(number));
        let (_, images) = found.ok_or_else(|| {
            let path = place.describe(&manifest.packs[at.pack as usize].path());
            damaged_in(&path, at.position.offset, format_args!("{page} is of a tablet that does not exist"))
        })?;
        images.push((at.pack, (BlockName::of_page(page), at.position)));
    }
    for (_, images) in &mut tablets {
        images.sort_unstable_by_key(|(pack, (_, position))| (*pack, position.offset));
    }
    Ok(tablets)
}

/// Reads the newest images of a tablet, pack by pack.
fn load_tablet(
    readers: &[PackReader<'_>],
    restore: &Restore,
    (tablet, images): &TabletImages,
    each: &mut dyn FnMut(),
) -> Result<()> {
    let mut turn = restore.tablet(*tablet).expect("the store has the tablets of the manifest");
    let mut decoder = ImageReader::default();
    for images in images.chunk_by(|(one, _), (other, _)| one == other) {
        let reader = &readers[images[0].0 as usize];
        let blocks: Vec<_> = images.iter().map(|(_, block)| *block).collect();
        reader.bodies(&blocks, |name, position, body| {
            let page = name.page().expect("these are the blocks of pages");
            let image = reader.image(&mut decoder, page, position, body)?;
            turn.image(image).map_err(|damage| reader.damaged(position.offset, damage))?;
            each();
            Ok(())
        })?;
    }
    Ok(())
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
