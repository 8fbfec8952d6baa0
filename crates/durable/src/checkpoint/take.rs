//! Taking a checkpoint: writing the pages that are due into packs, then the names, then the manifest.
//!
//! [`Checkpoints`] is the state from one checkpoint to the next: the newest manifest, and which blocks of its packs
//! count. One thread at a time takes checkpoints. It holds no lock of the store while it writes; a `pause` between two
//! pages lets other threads run, and may end the checkpoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use mangrove_failpoint::{Point, reach};
use mangrove_graph::{Error, Result, TabletId};
use mangrove_store::Store;
use mangrove_txn::Transaction;

use super::columns::write_columns;
use super::floor::CheckpointFloor;
use super::indexes::DueIndexes;
use super::live::{LivePacks, PackPolicy};
use super::names::put_names;
use super::pack::{BlockName, WrittenPack};
use super::place::Place;
use super::series::PackSeries;
use super::topology::DueTopology;
use crate::disk::Disk;
use crate::manifest::{
    CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR, MANIFEST_DIR, Manifest, ManifestRun, ManifestTablets, ManifestTopology,
    PackNumber, TabletRanges,
};
use crate::open::GraphCounts;
use crate::open::columns::{ColumnsFormat, ColumnsOrigin, OPEN_DIR};

/// The result of a checkpoint, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckpointReport {
    /// The number of its manifest.
    pub version: u64,
    /// The timestamp of the snapshot: it has everything up to this commit.
    pub checkpoint_ts: u64,
    /// Page images written.
    pub pages: u64,
    /// Topology blocks written, each of a page of vertices.
    pub topology_blocks: u64,
    /// Deltas of topology blocks written, each of a page of vertices.
    pub topology_deltas: u64,
    /// Runs of look-up indexes written.
    pub index_runs: u64,
    /// Files of open columns written.
    pub columns_files: u64,
    /// Packs written.
    pub files: u64,
    /// Bytes of these packs.
    pub bytes: u64,
    /// Packs that were retired: their pages that still counted are among those written.
    pub packs_retired: u64,
    /// Bytes of the blocks that count, of all packs.
    pub live_bytes: u64,
}

/// The forms for other programs that the caller of a checkpoint asks for. Recovery needs none of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckpointForms {
    /// Whether this checkpoint and later ones have topology blocks; `None`: as the last one.
    pub topology: Option<bool>,
    /// This checkpoint has open columns.
    pub columns: bool,
}

/// The snapshot that a checkpoint writes.
#[derive(Debug)]
pub(crate) struct CheckpointSnapshot {
    /// The timestamp of the snapshot.
    pub(crate) at_ts: u64,
    /// The floor of the log, as it was before the snapshot was taken.
    pub(crate) floor: CheckpointFloor,
    /// The transaction that keeps the snapshot from being collected; `None` while nothing else can change the graph.
    pub(crate) held: Option<Transaction>,
}

/// How and when open columns are written.
#[derive(Debug, Default)]
struct ColumnsPolicy {
    format: Option<Arc<dyn ColumnsFormat>>,
    /// With every checkpoint.
    always: bool,
    /// With the next one.
    asked: bool,
}

impl ColumnsPolicy {
    /// The format, if the checkpoint that is taken has open columns.
    fn take(&mut self) -> Option<Arc<dyn ColumnsFormat>> {
        let is_due = std::mem::take(&mut self.asked) || self.always;
        self.format.clone().filter(|_| is_due)
    }
}

/// A checkpoint whose packs are written.
#[derive(Debug)]
struct PendingCheckpoint {
    manifest: Manifest,
    written: Vec<WrittenPack>,
    names: Vec<u8>,
    report: CheckpointReport,
}

/// The state after the last checkpoint, on which the next one builds.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    manifest: Manifest,
    packs: LivePacks,
    /// The content of the catalog that counts.
    names: Vec<u8>,
    policy: PackPolicy,
    /// Checkpoints have topology blocks.
    has_topology: bool,
    columns: ColumnsPolicy,
    /// The last version that was tried, in a directory (LOG-24).
    tried: u64,
    /// A checkpoint whose manifest is written, or may be.
    pending: Option<PendingCheckpoint>,
    /// The last counter that was given to a pack of this incarnation (LOG-28, LOG-33).
    counter: u64,
}

impl Checkpoints {
    /// The state after the checkpoint of a manifest: its packs, and the content of its catalog.
    pub(super) fn new(manifest: Manifest, packs: LivePacks, names: Vec<u8>) -> Self {
        let policy = PackPolicy::default();
        let (tried, has_topology) = (manifest.version, false);
        let columns = ColumnsPolicy::default();
        Checkpoints { tried, pending: None, counter: 0, manifest, packs, names, policy, has_topology, columns }
    }

    /// Says whether checkpoints have topology blocks. A store that does not note changes of lists (STORE-37) costs all blocks
    /// in each of them; one that does has noted them since the snapshot of the last checkpoint.
    pub(crate) fn set_topology(&mut self, has_topology: bool) {
        self.has_topology = has_topology;
    }

    /// Says how open columns are written, and whether every checkpoint has them.
    pub(crate) fn set_columns(&mut self, format: Option<Arc<dyn ColumnsFormat>>, always: bool) {
        self.columns = ColumnsPolicy { format, always, asked: false };
    }

    /// Says what the next checkpoint has for other programs.
    pub(crate) fn ask(&mut self, forms: CheckpointForms) -> Result<()> {
        if forms.columns && self.columns.format.is_none() {
            return Err(Error::unsupported(
                "this program cannot write Parquet (it was built without the feature `parquet` of mangrove-load)",
            ));
        }
        self.columns.asked |= forms.columns;
        self.has_topology = forms.topology.unwrap_or(self.has_topology);
        Ok(())
    }

    /// Makes packs of other sizes.
    #[cfg(test)]
    pub(super) fn set_policy(&mut self, policy: PackPolicy) {
        self.policy = policy;
    }

    /// The newest manifest.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Bytes of the blocks that count.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.packs.live_bytes()
    }

    /// Writes a manifest with the same packs for a new incarnation (LOG-31). From now on no process that opened the
    /// database before can write one.
    pub(crate) fn begin_epoch(&mut self, disk: &dyn Disk) -> Result<()> {
        self.tried += 1;
        let mut next = self.manifest.next(self.tried);
        next.claim(self.manifest.epoch() + 1);
        next.packs = self.packs.entries_with(&[], &next.indexes);
        next.put(disk)?;
        (self.manifest, self.counter) = (next, 0);
        Ok(())
    }

    /// The number of the last pack that this incarnation has begun.
    pub(crate) fn last_pack(&self) -> PackNumber {
        PackNumber { incarnation: self.manifest.epoch(), counter: self.counter }
    }

    /// Returns true if a checkpoint has a manifest that may be written.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Takes a checkpoint of a snapshot. `pause` is called between pages; its error ends the checkpoint, and the packs
    /// that it has written are garbage. Returns `None` if nothing has changed.
    pub(crate) fn take<P: Place + ?Sized>(
        &mut self,
        place: &P,
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
        let mut settled = None;
        if place.puts_again() {
            // LOG-62. Without a failed put, there is none.
            settled = self.settle(place)?;
            self.tried = self.manifest.version;
        }
        // LOG-24.
        self.tried += 1;
        let last_ts = self.manifest.checkpoint_ts();
        assert!(at_ts >= last_ts, "a checkpoint goes back in time");
        let mut next = self.manifest.next(self.tried);
        next.tablets = vec![ManifestTablets { range: TabletRanges::all(next.tablet_count), checkpoint_ts: at_ts }];
        floor.put(&mut next);
        let mut report = CheckpointReport { version: next.version, checkpoint_ts: at_ts, ..Default::default() };
        // A graph without images may have been loaded in bulk, which notes no changes.
        let since = (self.packs.page_count() > 0).then_some(last_ts);
        let tablets = (1..=store.tablet_count()).map(TabletId);
        let changed: Vec<_> = tablets.flat_map(|id| store.pages_changed_since(id, since)).collect();
        let lists = self.changed_lists(store);
        let has_deltas = self.policy.deltas && self.topology_since().is_some();
        // LOG-100. If the blocks were not counted before, all of them are due.
        let is_first_topology = self.has_topology && (self.manifest.topology.is_none() || !self.packs.has_topology());
        self.packs.count_topology(self.has_topology);
        if !self.has_topology {
            self.packs.count_indexes(&[]).expect("no run is missing");
        }
        next.topology = self.has_topology.then_some(ManifestTopology { at_ts });
        let has_changes = !changed.is_empty() || !lists.is_empty();
        let due = match has_changes {
            true => self.packs.due(changed, lists, self.policy),
            false => Default::default(),
        };
        let mut packs = PackSeries {
            place,
            database: next.database,
            incarnation: next.epoch(),
            counter: &mut self.counter,
            policy: self.policy,
            live: self.packs.live_bytes(),
            has_topology: self.has_topology,
            due: (due.pages.len() + due.topology.len()) as u64,
            done: 0,
            bytes: 0,
            current: None,
            written: Vec::new(),
        };
        let has = (self.has_topology, has_changes);
        let mut indexes = DueIndexes::new((store, at_ts), &self.packs, &due, has, self.policy.gathered_bytes_max);
        for page in &due.pages {
            pause()?;
            // LOG-20.
            let image = store.page_image(*page, at_ts).ok_or_else(|| Error::bug(format!("{page} is gone")))?;
            packs.image(&image)?;
            indexes.gather(&image, &mut packs)?;
        }
        report.pages = due.pages.len() as u64;
        let topology = DueTopology { store, at_ts, packs: &self.packs, due: &due, has_deltas };
        (report.topology_blocks, report.topology_deltas) = topology.write(&mut packs, pause)?;
        let columns = self.columns.take();
        if let Some(format) = &columns {
            let of = ColumnsOrigin { database: next.database, at_ts };
            let numbers = (packs.incarnation, &mut *packs.counter);
            let written = write_columns(place, store, &**format, of, numbers, pause)?;
            report.columns_files = written.files.len() as u64;
            next.columns = Some(written);
        }
        // LOG-25: after the last image.
        let mut names = Vec::new();
        put_names(store, &mut names);
        next.indexes = indexes.finish((&self.packs, &due), &names, &mut packs, pause)?;
        if self.has_topology && (packs.is_begun() || self.packs.statistics_are_due(&due.retired)) {
            let counts = GraphCounts::of(store, at_ts, pause)?;
            packs.writer()?.add(BlockName::STATISTICS, &counts.text()?)?;
        }
        drop(held);
        reach(Point::CheckpointImages);
        let has_new_names = names != self.names || self.packs.catalog_is_due(&due.retired) || is_first_topology;
        if has_new_names {
            packs.writer()?.catalog(&names)?;
        }
        let written = packs.finish()?;
        let has_same_forms = next.topology.is_some() == self.manifest.topology.is_some();
        if written.is_empty() && columns.is_none() && has_same_forms && floor.is_that_of(&self.manifest) {
            return Ok(settled);
        }
        next.packs = self.packs.entries_with(&written, &next.indexes);
        let is_new = |run: &ManifestRun| written.iter().any(|pack| pack.entry.number() == run.pack());
        report.index_runs = next.indexes.iter().flat_map(|index| &index.runs).filter(|run| is_new(run)).count() as u64;
        next.names = match has_new_names {
            true => written.last().map(|pack| pack.entry.number()),
            false => self.packs.names(),
        };
        for owner in &mut next.owners {
            owner.through = self.counter;
        }
        place.keep_packs()?;
        reach(Point::CheckpointFiles);
        report.files = written.len() as u64;
        report.bytes = written.iter().map(|pack| pack.entry.bytes).sum();
        report.packs_retired = due.retired.len() as u64;
        // LOG-22: the packs and their names are durable.
        self.pending = Some(PendingCheckpoint { manifest: next, written, names, report });
        let settled = self.settle(place);
        if !place.puts_again() {
            self.pending = None;
        }
        settled
    }

    /// The timestamp since which the store has noted changes of lists, if the topology that counts is of that state. Topology of
    /// an older state is all written anew.
    fn topology_since(&self) -> Option<u64> {
        // A graph without images may have been loaded in bulk, which notes no changes.
        let is_noted = |topology: &ManifestTopology| {
            // A checkpoint without topology may have failed since.
            let counts = self.packs.has_topology() && self.packs.page_count() > 0;
            topology.at_ts == self.manifest.checkpoint_ts() && counts
        };
        self.manifest.topology.filter(is_noted).map(|topology| topology.at_ts)
    }

    /// The pages whose topology is due, because their lists have changed or no topology counts.
    fn changed_lists(&self, store: &Store) -> Vec<mangrove_store::image::PageName> {
        if !self.has_topology {
            return Vec::new();
        }
        let since = self.topology_since();
        let tablets = (1..=store.tablet_count()).map(TabletId);
        tablets.flat_map(|tablet| store.pages_with_changed_lists(tablet, since)).collect()
    }

    /// Puts the manifest of a checkpoint whose packs are written. Returns `None` if there is none.
    fn settle<P: Place + ?Sized>(&mut self, place: &P) -> Result<Option<CheckpointReport>> {
        let Some(pending) = &mut self.pending else { return Ok(None) };
        place.put_manifest(&mut pending.manifest, &self.manifest)?;
        let Some(PendingCheckpoint { manifest, written, names, mut report }) = self.pending.take() else {
            return Ok(None);
        };
        self.packs.put(written, &manifest.indexes);
        report.live_bytes = self.packs.live_bytes();
        (self.manifest, self.names) = (manifest, names);
        Ok(Some(report))
    }
}

/// Removes the files that neither the newest manifest nor the one before names (LOG-23). Later manifests, which this
/// process may have written without learning of it (LOG-24), are left alone with their files. The caller has the
/// database to itself, and takes no checkpoint meanwhile. Returns the number of removed files.
pub(crate) fn clean_up(disk: &dyn Disk, newest: &Manifest) -> Result<u64> {
    let mut needed: BTreeSet<String> = newest.paths().collect();
    let (mut old, later): (Vec<u64>, Vec<u64>) =
        Manifest::versions(disk)?.into_iter().partition(|&version| version < newest.version);
    for version in old.pop().into_iter().chain(later) {
        // A manifest that cannot be read needs no files: the graph is not opened from it.
        if let Ok(manifest) = Manifest::read(disk, version) {
            needed.extend(manifest.paths());
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
    for directory in [CHECKPOINT_DIR, FIRST_CHECKPOINT_DIR, OPEN_DIR] {
        for name in disk.list(directory)? {
            let path = format!("{directory}/{name}");
            if !needed.contains(&path) {
                disk.remove(&path)?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}
