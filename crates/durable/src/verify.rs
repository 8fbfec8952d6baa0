//! Verification: reading and checking everything that a database has on its disk, without changing it.
//!
//! Recovery reads only what it needs: the newest image of every page. Verification reads every block of every pack that
//! a manifest names. It covers the newest manifest and the older ones that still exist, and checks each file also as a
//! whole. It compares topology blocks, look-up indexes and open columns with the graph that the images make. Then it recovers the graph as
//! opening would. The caller checks in the graph in memory that indexes and
//! adjacency lists agree with the elements.
//!
//! | module | what it holds |
//! |---|---|
//! | `home` | the same for a home, of a graph or of backups |

mod home;

mod columns;
mod indexes;
mod statistics;
mod topology;

use hashbrown::HashSet;
use mangrove_graph::{Error, ErrorKind, GraphView, MemoryBudget, Result};
use mangrove_store::restore::Restore;
use mangrove_store::{Store, StoreOptions, StoreSizes};

use crate::checkpoint::place::Place;
use crate::checkpoint::{check_pack, load};
use crate::damage::{damaged, damaged_in};
use crate::disk::Disk;
use crate::manifest::{MANIFEST_DIR, Manifest, ManifestPack};
use crate::open::columns::ManifestColumnsFile;
use crate::recovery::{Recovered, RecoveryOptions, RecoveryProgress, RecoverySummary, recover};

/// Bytes of a file that are read at a time.
const PIECE: usize = 1 << 20;

pub use home::{VerifiedHome, verify_home};

/// A database whose files are all whole.
#[derive(Debug)]
pub struct Verified {
    /// The recovered graph.
    pub store: Store,
    /// The summary of the recovery.
    pub recovery: RecoverySummary,
    /// The newest manifest.
    pub manifest: Manifest,
    /// The number of manifests read.
    pub manifests: u64,
    /// The number of checkpoint files read.
    pub files: u64,
    /// The number of blocks in these files.
    pub blocks: u64,
    /// Bytes of these files.
    pub file_bytes: u64,
    /// The open forms of the newest checkpoint.
    pub forms: OpenForms,
}

/// How many blocks and files in open formats were compared with the images of the same checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpenForms {
    /// Topology blocks.
    pub topology_blocks: u64,
    /// Runs of look-up indexes.
    pub index_runs: u64,
    /// Files of open columns. Those of an earlier checkpoint are not among them: only their checksums were checked.
    pub columns_files: u64,
}

/// Compares the bytes of a file of open columns with the graph of the images of the same checkpoint. Returns the first difference,
/// as text.
pub type CompareColumns<'c> = dyn FnMut(&dyn GraphView, &ManifestColumnsFile, Vec<u8>) -> Result<Option<String>> + 'c;

/// Reads and checks everything. The caller keeps other processes from changing files meanwhile. Fails with `NotFound`
/// if there is no database. `threads` work in parallel; 0: one per core.
/// `compare` compares files of open columns.
pub fn verify(
    disk: &dyn Disk,
    threads: usize,
    compare: &mut CompareColumns<'_>,
    progress: &(dyn Fn(RecoveryProgress) + Sync),
) -> Result<Verified> {
    let versions = Manifest::versions(disk)?;
    let manifests: Vec<Manifest> = versions.iter().map(|&v| Manifest::read(disk, v)).collect::<Result<_>>()?;
    let Some(newest) = manifests.last().cloned() else {
        let message = format!("there is no database: {} has no manifest", disk.describe(MANIFEST_DIR));
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    let (mut seen, mut blocks, mut file_bytes) = (HashSet::new(), 0, 0);
    for manifest in &manifests {
        for pack in &manifest.packs {
            let path = pack.path();
            // All packs of the newest manifest must exist. Those of an older one may be in the middle of their removal.
            let is_needed = manifest.version == newest.version;
            if seen.contains(&path) || (!is_needed && !is_there(disk, &path)?) {
                continue;
            }
            blocks += check_pack(disk, pack, manifest.database)?;
            check_whole(disk, pack)?;
            file_bytes += pack.bytes;
            seen.insert(path);
        }
    }
    for file in newest.columns.iter().flat_map(|columns| &columns.files) {
        if !is_there(disk, &file.path)? {
            return Err(damaged(disk, &file.path, 0, "the file is missing, and the manifest names it"));
        }
        check_bytes(disk, file.path.clone(), file.bytes, file.crc32c)?;
        file_bytes += file.bytes;
        seen.insert(file.path.clone());
    }
    let options = options_of(threads);
    let forms = check_open_forms(disk, &newest, options.threads, compare)?;
    let Recovered { store, summary, .. } = recover(disk, &newest, options, progress)?;
    Ok(Verified {
        store,
        recovery: summary,
        manifest: newest,
        manifests: manifests.len() as u64,
        files: seen.len() as u64,
        blocks,
        file_bytes,
        forms,
    })
}

/// Compares topology blocks, look-up indexes, counts and open columns with the images of a manifest.
pub(crate) fn check_open_forms<P: Place + ?Sized>(
    place: &P,
    manifest: &Manifest,
    threads: usize,
    compare: &mut CompareColumns<'_>,
) -> Result<OpenForms> {
    let is_comparable = manifest.columns.as_ref().is_some_and(|columns| columns.at_ts == manifest.checkpoint_ts());
    if manifest.topology.is_none() && !is_comparable {
        return Ok(OpenForms::default());
    }
    // Without the log: open forms are of the snapshot of the checkpoint.
    let store = store_of_images(place, manifest, threads)?;
    let topology_blocks = topology::check_topology(place, manifest, &store)?;
    statistics::check_statistics(place, manifest, &store)?;
    let columns_files = columns::check_columns(place, manifest, &store, compare)?;
    drop(store);
    Ok(OpenForms { topology_blocks, index_runs: indexes::check_indexes(place, manifest)?, columns_files })
}

/// The graph of the checkpoint alone, without indexes.
fn store_of_images<P: Place + ?Sized>(place: &P, manifest: &Manifest, threads: usize) -> Result<Store> {
    let options = StoreOptions {
        tablet_count: manifest.tablet_count,
        memory_limit_bytes: u64::MAX,
        memory_budget: MemoryBudget::unlimited(),
        sizes: StoreSizes::default(),
        notes_replayed_lists: false,
    };
    let loaded = load(place, manifest, Restore::new(Store::new(&options)), threads, &|_, _| ())?;
    let restored = loaded.restore.finish(&[], 0, manifest.checkpoint_ts(), threads, &mut |_| ());
    restored.map(|restored| restored.store).map_err(|damage| loaded.source.error(place, &damage))
}

fn is_there(disk: &dyn Disk, path: &str) -> Result<bool> {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    Ok(disk.list(crate::disk::parent(path))?.iter().any(|found| found == name))
}

/// The options of a recovery by so many threads; 0: one per core.
fn options_of(threads: usize) -> RecoveryOptions {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    RecoveryOptions {
        threads,
        memory_limit_bytes: u64::MAX,
        memory_budget: MemoryBudget::unlimited(),
        sizes: StoreSizes::default(),
        follows: false,
        notes_replayed_lists: false,
    }
}

/// Checks a pack against the checksum in the manifest, which also covers the bytes between the blocks.
fn check_whole<P: Place + ?Sized>(place: &P, pack: &ManifestPack) -> Result<()> {
    check_bytes(place, pack.path(), pack.bytes, pack.crc32c)
}

/// Checks the bytes of a file or an object against a checksum.
fn check_bytes<P: Place + ?Sized>(place: &P, path: String, bytes: u64, expected: u32) -> Result<()> {
    let source = place.open_pack(path, bytes)?;
    let found = source.length()?;
    if found != bytes {
        let what = format!("it ends there, and the manifest says that it has {bytes} bytes");
        return Err(damaged_in(&source.describe(), found.min(bytes), what));
    }
    let (mut crc, mut offset) = (0, 0);
    loop {
        let piece = source.read(offset, PIECE)?;
        if piece.is_empty() {
            break;
        }
        crc = crc32c::crc32c_append(crc, &piece);
        offset += piece.len() as u64;
    }
    if crc != expected {
        let what = format!("the checksum is {crc:08x}, and the manifest says {expected:08x}");
        return Err(damaged_in(&source.describe(), 0, what));
    }
    Ok(())
}
