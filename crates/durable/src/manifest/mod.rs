//! Manifests: the versions of a graph's durable state.
//!
//! `manifest/N.json` says which packs make up the graph as of a checkpoint, and where the later commits are. It has a
//! section for each thing that owners of tablets write:
//!
//! | section | what it says |
//! |---|---|
//! | `owners` | who writes which tablets, and up to which counter its packs are accounted for |
//! | `streams` | the log streams that recovery needs, in a graph whose home is an object store |
//! | `wal` | the log segments that recovery needs, in a graph whose home is a directory |
//! | `tablets` | up to which commit the packs have the tablets |
//! | `packs` | the packs, oldest first: of several images of a page, that in the last pack counts |
//! | `names` | the pack whose catalog counts |
//! | `columns` | files with the elements of each label set, for other programs |
//! | `topology` | which state the topology blocks show that are in the packs (LOG-100) |
//! | `indexes` | the runs of the look-up indexes (LOG-104) |
//!
//! A manifest has the checksum of the one that it was made from (`parent`), so the manifests are a chain.
//!
//! - **LOG-30.** A manifest that exists is whole, and everything it names was durable before it.
//! - **LOG-31.** Of two processes that write the manifest after `N`, one fails: it has been fenced. Opening a database
//!   to write writes the next manifest, with a new incarnation, before anything else is changed.
//! - **LOG-32.** The newest manifest counts. A damaged one is never passed over for an older one, whose log may be
//!   gone.
//! - **LOG-33.** An owner names its packs by its incarnation and a counter that only grows. Packs of an owner with
//!   counters up to its `through` are in the manifest, or will never be: who finds such a pack in no manifest may remove
//!   it.
//!
//! | module | what it holds |
//! |---|---|
//! | `text` | a manifest as text, and what is checked when it is read |
//! | `first` | manifests of format 1 |
//! | `indexes` | the section `indexes` |
//! | `name` | names of packs |
//! | `ranges` | sets of tablets, and of kinds of blocks |
//! | `disk` | manifests as files |
//! | `home` | manifests as objects of a home |

mod disk;
mod first;
mod home;
mod indexes;
mod name;
mod ranges;
mod text;

use mangrove_graph::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ambient::unix_us;
use crate::log::{LogBefore, LogFloor};
use crate::open::columns::ManifestColumns;

pub use disk::MANIFEST_DIR;
pub(crate) use home::HomeManifests;
pub use indexes::{ManifestIndex, ManifestRun};
pub use name::{CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR};
pub(crate) use name::{
    KIND_CATALOG, KIND_EDGES, KIND_STATISTICS, KIND_TOPOLOGY, KIND_TOPOLOGY_DELTA, KIND_VERTICES, PackName,
};
pub use ranges::{Covers, TabletRanges};
pub use text::Checksum;

/// The format of manifests that this version writes.
const FORMAT: u64 = 2;

/// One version of the durable state of a graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub format: u64,
    /// The number of the manifest: 1, 2, 3, …
    pub version: u64,
    /// The checksum of the manifest that it was made from; the first one has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Checksum>,
    /// The id of the database: drawn when it is created, and in every file.
    pub database: Uuid,
    /// The number of tablets of the graph.
    pub tablet_count: u16,
    /// The owners.
    pub owners: Vec<ManifestOwner>,
    /// The log streams that recovery needs; none in a directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<ManifestStream>,
    /// The log segments that recovery needs; only in a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal: Option<ManifestWal>,
    /// How far the packs have each tablet. Every tablet is in one of the ranges.
    pub tablets: Vec<ManifestTablets>,
    /// The packs, oldest first.
    pub packs: Vec<ManifestPack>,
    /// The pack with the catalog that counts; absent in a graph without a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<PackNumber>,
    /// The topology blocks of the packs; absent if they have none that count (LOG-100).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<ManifestTopology>,
    /// The look-up indexes, of the state that the topology shows; empty if there is no topology (LOG-104).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<ManifestIndex>,
    /// The files of open columns; absent if no checkpoint wrote any (LOG-102).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<ManifestColumns>,
    /// The oldest manifest whose packs are kept; in a home, also the streams from its floors on.
    pub kept_from: u64,
    /// When it was made, in microseconds since 1970. It never falls along the chain. 0: unknown, or before all others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub written: u64,
    /// The state of another database that this one was restored from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ManifestOrigin>,
    /// The checksum of its text, as it was read or written.
    #[serde(skip)]
    checksum: Option<Checksum>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The state of another database that a database was restored from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestOrigin {
    /// The other database.
    pub database: Uuid,
    /// The manifest that the restore began with.
    pub version: u64,
    /// The last commit of the other database that is in this one.
    pub last_ts: u64,
}

/// An owner: a process that writes, or wrote, tablets of the graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestOwner {
    /// Its incarnation: the number of an opening of the database.
    pub incarnation: u64,
    /// Its packs with counters up to this one are accounted for (LOG-33).
    pub through: u64,
    /// Its tablets.
    pub tablets: TabletRanges,
}

/// A log stream that recovery needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestStream {
    /// The incarnation that wrote it.
    pub incarnation: u64,
    /// The first object that recovery needs.
    pub first: u64,
    /// The object that ends it; absent if it was not ended when the manifest was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// The last commit of it that counts, if not all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ts: Option<u64>,
    /// The database that its objects name, if that is another one: it was copied by a restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<Uuid>,
}

/// The log segments of a directory that recovery needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestWal {
    /// The first segment with commits that the packs do not have.
    pub first_segment: u64,
    /// How far the log went before that segment; absent in manifests of versions that did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<LogBefore>,
}

/// How far the packs have some tablets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestTablets {
    /// The tablets.
    pub range: TabletRanges,
    /// The packs have every commit up to this timestamp.
    pub checkpoint_ts: u64,
}

/// The numbers that name a pack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct PackNumber {
    /// The incarnation that wrote it; 0 for files of format 1.
    pub incarnation: u64,
    /// Its number among the packs of the incarnation; of a file of format 1, the version of its first manifest.
    pub counter: u64,
}

/// The topology blocks of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestTopology {
    /// The newest block of each page, with its newest delta, shows the lists of the page at this timestamp.
    pub at_ts: u64,
}

/// A pack, or a checkpoint file of format 1.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestPack {
    /// The incarnation that wrote it; 0 for files of format 1.
    pub incarnation: u64,
    /// Its number among the packs of the incarnation; of a file of format 1, the version of its first manifest.
    pub counter: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The CRC32C of all of it.
    pub crc32c: u32,
    /// The format of its container.
    pub format: u64,
    /// The bytes of its blocks that count. Of a file of format 1 it is its length until the next checkpoint.
    pub live: u64,
    /// The kinds of its blocks, and the tablets of each kind. Of a file of format 1, those that it may have.
    pub covers: Covers,
    /// The path of a file of format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The database that it names, if that is another one: it was copied by a restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<Uuid>,
}

impl ManifestPack {
    /// The numbers that name it.
    pub fn number(&self) -> PackNumber {
        PackNumber { incarnation: self.incarnation, counter: self.counter }
    }

    /// The path of its file, or the name of its object.
    pub fn path(&self) -> String {
        self.name().path()
    }

    /// Its name. Reading a manifest has checked the path of a file of format 1.
    pub(crate) fn name(&self) -> PackName {
        let pack = PackName::Pack { incarnation: self.incarnation, counter: self.counter };
        self.path.as_deref().and_then(PackName::of_path).unwrap_or(pack)
    }
}

impl Manifest {
    /// The first manifest of a new database in a directory.
    pub fn first(database: Uuid, tablet_count: u16) -> Self {
        let tablets = TabletRanges::all(tablet_count);
        Manifest {
            format: FORMAT,
            version: 1,
            parent: None,
            database,
            tablet_count,
            owners: vec![ManifestOwner { incarnation: 0, through: 0, tablets: tablets.clone() }],
            streams: Vec::new(),
            wal: Some(ManifestWal { first_segment: 1, before: Some(LogBefore { next_batch: 1, last_ts: 0 }) }),
            tablets: vec![ManifestTablets { range: tablets, checkpoint_ts: 0 }],
            packs: Vec::new(),
            names: None,
            topology: None,
            indexes: Vec::new(),
            columns: None,
            kept_from: 1,
            written: 0,
            origin: None,
            checksum: None,
        }
    }

    /// A manifest with this number that is made from this one, with the same sections. No older manifest than this one is
    /// kept, unless the caller says so.
    pub fn next(&self, version: u64) -> Self {
        Manifest {
            format: FORMAT,
            version,
            parent: Some(self.checksum.unwrap_or_else(|| self.to_text().0)),
            kept_from: self.version,
            written: self.written.max(unix_us()),
            checksum: None,
            ..self.clone()
        }
    }

    /// Returns true if this manifest was made from that one.
    pub(crate) fn follows(&self, before: &Manifest) -> bool {
        self.parent == Some(before.checksum.unwrap_or_else(|| before.to_text().0))
    }

    /// Makes an incarnation the only owner, of all tablets. No later manifest names packs of earlier owners that this
    /// one does not name, so such packs are garbage.
    pub fn claim(&mut self, incarnation: u64) {
        let tablets = TabletRanges::all(self.tablet_count);
        self.owners = vec![ManifestOwner { incarnation, through: 0, tablets }];
    }

    /// The largest incarnation of an owner. In a directory it is the fencing epoch: how often the database was opened to
    /// be written to.
    pub fn epoch(&self) -> u64 {
        self.owners.iter().map(|owner| owner.incarnation).max().unwrap_or(0)
    }

    /// The packs have every commit up to this timestamp.
    pub fn checkpoint_ts(&self) -> u64 {
        self.tablets.iter().map(|tablets| tablets.checkpoint_ts).min().unwrap_or(0)
    }

    /// From where on it needs the log of its directory; without one, all of it.
    pub fn log_floor(&self) -> LogFloor {
        let wal = self.wal.unwrap_or(ManifestWal { first_segment: 1, before: None });
        LogFloor { segment: wal.first_segment, before: wal.before }
    }

    /// The paths of all files that it names: packs and open columns.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        let columns = self.columns.iter().flat_map(|columns| &columns.files);
        self.packs.iter().map(|pack| pack.path()).chain(columns.map(|file| file.path.clone()))
    }

    /// The pack with the catalog that counts.
    pub fn names_pack(&self) -> Option<&ManifestPack> {
        let names = self.names?;
        self.packs.iter().find(|pack| pack.number() == names && pack.covers.has_catalog())
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
mod tests;
