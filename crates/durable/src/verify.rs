//! Verification: reading and checking everything that a database has on its disk, without changing it.
//!
//! Recovery reads only what it needs: the newest image of every page. Verification reads every block of every pack that
//! a manifest names. It covers the newest manifest and the older ones that still exist, and checks each file also as a
//! whole. Then it recovers the graph as opening would. The caller checks in the graph in memory that indexes and
//! adjacency lists agree with the elements.
//!
//! | module | what it holds |
//! |---|---|
//! | `home` | the same for a home, of a graph or of backups |

mod home;

use hashbrown::HashSet;
use mangrove_graph::{Error, ErrorKind, MemoryBudget, Result};
use mangrove_store::{Store, StoreSizes};

use crate::checkpoint::check_pack;
use crate::checkpoint::place::Place;
use crate::damage::damaged_in;
use crate::disk::Disk;
use crate::manifest::{MANIFEST_DIR, Manifest, ManifestPack};
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
}

/// Reads and checks everything. The caller keeps other processes from changing files meanwhile. Fails with `NotFound`
/// if there is no database. `threads` work in parallel; 0: one per core.
pub fn verify(disk: &dyn Disk, threads: usize, progress: &(dyn Fn(RecoveryProgress) + Sync)) -> Result<Verified> {
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
    let options = options_of(threads);
    let Recovered { store, summary, .. } = recover(disk, &newest, options, progress)?;
    Ok(Verified {
        store,
        recovery: summary,
        manifest: newest,
        manifests: manifests.len() as u64,
        files: seen.len() as u64,
        blocks,
        file_bytes,
    })
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
    }
}

/// Checks a pack against the checksum in the manifest, which also covers the bytes between the blocks.
fn check_whole<P: Place + ?Sized>(place: &P, pack: &ManifestPack) -> Result<()> {
    let source = place.open_pack(pack.path(), pack.bytes)?;
    let (mut crc, mut offset) = (0, 0);
    loop {
        let piece = source.read(offset, PIECE)?;
        if piece.is_empty() {
            break;
        }
        crc = crc32c::crc32c_append(crc, &piece);
        offset += piece.len() as u64;
    }
    if crc != pack.crc32c {
        let what = format!("the checksum is {crc:08x}, and the manifest says {:08x}", pack.crc32c);
        return Err(damaged_in(&source.describe(), 0, what));
    }
    Ok(())
}
