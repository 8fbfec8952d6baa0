//! Checkpoints of a graph with a random history, on a disk with power cuts.

use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind, GraphView, LabelFilter, Result, ScanCursor, Share, Value};
use mangrove_store::restore::Restore;
use mangrove_store::{Store, StoreOptions, WriteCardinality};
use mangrove_txn::{RecentOptions, TransactionManager};
use uuid::Uuid;

use super::live::{LivePacks, PackPolicy};
use super::*;
use crate::disk::{Disk, SimDisk};
use crate::log::LogFloor;
use crate::manifest::{CHECKPOINT_DIR, MANIFEST_DIR, Manifest};
use crate::testing::{Actor, Dump, dump_now, new_graph, new_graph_with, quiet};
use crate::verify::check_open_forms;

/// Small packs, so that a checkpoint writes several.
pub(super) const POLICY: PackPolicy = PackPolicy {
    bytes_min: 1_500,
    bytes_max: 4_000,
    packs_free: 3,
    compression: Compression::Zstd,
    deltas: true,
    gathered_bytes_max: 2_000,
};

/// A graph and the state of its checkpoints.
pub(super) struct CheckpointedGraph {
    pub(super) disk: SimDisk,
    pub(super) manager: TransactionManager,
    pub(super) checkpoints: Checkpoints,
}

fn new_disk() -> SimDisk {
    let disk = SimDisk::new();
    for directory in [MANIFEST_DIR, CHECKPOINT_DIR] {
        disk.create_dir(directory).unwrap();
    }
    disk.sync_dir("").unwrap();
    disk
}

impl CheckpointedGraph {
    fn new() -> Self {
        Self::of(new_graph())
    }

    /// A graph whose checkpoints have topology.
    pub(super) fn with_topology() -> Self {
        let mut graph =
            Self::of(new_graph_with(StoreOptions { notes_replayed_lists: true, ..StoreOptions::default() }));
        graph.checkpoints.set_topology(true);
        graph
    }

    fn of(manager: TransactionManager) -> Self {
        let disk = new_disk();
        let mut manifest = Manifest::first(Uuid::from_u128(1), 3);
        manifest.put(&disk).unwrap();
        let mut checkpoints = Checkpoints::new(manifest, LivePacks::default(), Vec::new());
        checkpoints.set_policy(POLICY);
        CheckpointedGraph { disk, manager, checkpoints }
    }

    /// Recovers the graph from a disk.
    pub(super) fn open(disk: SimDisk) -> Result<CheckpointedGraph> {
        let manifest = Manifest::newest(&disk)?.ok_or_else(|| Error::invalid("no manifest"))?;
        let has_topology = manifest.topology.is_some();
        let options = StoreOptions {
            tablet_count: manifest.tablet_count,
            notes_replayed_lists: has_topology,
            ..StoreOptions::default()
        };
        let loaded = load(&disk, &manifest, Restore::new(Store::new(&options)), 2, &|_, _| ())?;
        let Indexes { list, next } = &loaded.indexes;
        let at = manifest.checkpoint_ts();
        let restored = loaded.restore.finish(list, *next, at, 2, &mut |_| ());
        let restored = restored.map_err(|damage| loaded.source.error(&disk, &damage))?;
        let manager = TransactionManager::resuming(Arc::new(restored.store), RecentOptions::default(), at);
        quiet(&manager);
        // Names of packs are given once in an incarnation (LOG-28).
        let mut checkpoints = loaded.checkpoints;
        checkpoints.set_policy(POLICY);
        checkpoints.set_topology(has_topology);
        checkpoints.begin_epoch(&disk)?;
        Ok(CheckpointedGraph { disk, manager, checkpoints })
    }

    /// Takes a checkpoint with transactions in between. Returns the state that it should have.
    pub(super) fn take(&mut self, actor: &mut Actor) -> (Dump, Result<Option<CheckpointReport>>) {
        self.take_with(&mut |manager| drop(actor.transaction(manager)))
    }

    /// The same, with something else in between.
    pub(super) fn take_with(
        &mut self,
        meanwhile: &mut dyn FnMut(&TransactionManager),
    ) -> (Dump, Result<Option<CheckpointReport>>) {
        let expected = dump_now(&self.manager);
        (expected, self.take_alone(meanwhile))
    }

    /// Takes a checkpoint, and removes the files that no manifest names.
    pub(super) fn take_alone(
        &mut self,
        meanwhile: &mut dyn FnMut(&TransactionManager),
    ) -> Result<Option<CheckpointReport>> {
        let held = self.manager.begin_protected_read().unwrap();
        let snapshot =
            CheckpointSnapshot { at_ts: held.begin_ts(), floor: LogFloor::of_segment(1).into(), held: Some(held) };
        let (manager, store) = (&self.manager, self.manager.store());
        let mut pause = || {
            meanwhile(manager);
            Ok(())
        };
        let taken = self.checkpoints.take(&self.disk, store, snapshot, &mut pause);
        let cleaned = match &taken {
            Ok(Some(_)) => clean_up(&self.disk, self.checkpoints.manifest()).map(|_| ()),
            _ => Ok(()),
        };
        taken.and_then(|report| cleaned.map(|()| report))
    }

    /// Changes one property of one vertex.
    pub(super) fn change_one(&self, which: usize) {
        let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
        let txn = self.manager.begin(Default::default()).unwrap();
        while !txn.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut found).unwrap() {}
        let key = txn.store().catalog().intern_key("a");
        txn.set_vertex_property(found[which % found.len()], key, Value::I64(77), WriteCardinality::Single, Vec::new())
            .unwrap();
        txn.commit().unwrap();
    }

    fn run(&self, actor: &mut Actor, transactions: usize) {
        for _ in 0..transactions {
            actor.transaction(&self.manager);
        }
    }
}

/// Takes a checkpoint without concurrent transactions.
fn take_quietly(kept: &mut CheckpointedGraph) -> Option<CheckpointReport> {
    let held = kept.manager.begin_protected_read().unwrap();
    let snapshot =
        CheckpointSnapshot { at_ts: held.begin_ts(), floor: LogFloor::of_segment(1).into(), held: Some(held) };
    kept.checkpoints.take(&kept.disk, kept.manager.store(), snapshot, &mut || Ok(())).unwrap()
}

#[test]
fn the_newest_checkpoint_is_recovered_and_old_files_are_removed() {
    let mut kept = CheckpointedGraph::new();
    let mut actor = Actor::new(1);
    let (mut retired, mut skipped, mut several) = (0, 0, 0);
    for round in 0..40 {
        // A transaction may change nothing, or roll back.
        let before = dump_now(&kept.manager);
        kept.run(&mut actor, 1 + round % 4 * 20);
        while dump_now(&kept.manager) == before {
            kept.run(&mut actor, 1);
        }
        kept.manager.compact();
        let (expected, report) = kept.take(&mut actor);
        let report = report.unwrap().expect("there is something new");
        retired += report.packs_retired;
        several += u64::from(report.files > 1);
        let pages: u64 = (1..=3)
            .map(|n| kept.manager.store().pages_changed_since(mangrove_graph::TabletId(n), None).len() as u64)
            .sum();
        skipped += pages - report.pages;
        let found = CheckpointedGraph::open(kept.disk.power_cut(round as u64)).unwrap();
        assert_eq!(dump_now(&found.manager), expected);
        assert_eq!(found.manager.store().indexes(), kept.manager.store().indexes());
        // Sometimes the recovered graph continues.
        if round % 5 == 0 {
            kept = found;
            clean_up(&kept.disk, kept.checkpoints.manifest()).unwrap();
        }
        let manifest = kept.checkpoints.manifest();
        let live: u64 = manifest.packs.iter().map(|pack| pack.live).sum();
        let packs_max = (POLICY.packs_free + live.div_ceil(POLICY.target(live))) as usize + report.files as usize;
        assert!(manifest.packs.len() <= packs_max, "{} packs of {live} live bytes", manifest.packs.len());
        let named = kept.disk.list(CHECKPOINT_DIR).unwrap().len();
        assert!(named <= 2 * packs_max, "{named} files");
        let images: u64 = manifest.packs.iter().map(|pack| pack.bytes).sum();
        assert!(images <= 2 * live + 400 * manifest.packs.len() as u64, "{images} bytes, {live} live");
        assert!(kept.disk.list(MANIFEST_DIR).unwrap().len() <= 2);
    }
    assert!(retired > 0 && skipped > 0 && several > 0, "{retired} packs retired, {skipped} pages skipped, {several}");
}

#[test]
fn a_checkpoint_without_changes_writes_nothing() {
    let mut kept = CheckpointedGraph::new();
    let mut actor = Actor::new(2);
    kept.run(&mut actor, 20);
    assert!(take_quietly(&mut kept).is_some());
    let before = kept.disk.operations();
    assert_eq!(take_quietly(&mut kept), None);
    assert_eq!(kept.disk.operations(), before);
}

/// Cuts the power at every operation of a checkpoint in turn. Recovery finds the old state or the new one, and the new
/// one if the checkpoint was acknowledged. The recovered graph can continue.
#[test]
fn a_power_cut_at_any_moment_leaves_the_old_checkpoint_or_the_new_one() {
    let seeds: u64 = mangrove_testdata::case_count(4);
    for seed in 0..seeds {
        let mut operation = 0;
        loop {
            operation += 1;
            let mut kept = CheckpointedGraph::new();
            let mut actor = Actor::new(seed);
            kept.run(&mut actor, 30);
            let (old, taken) = kept.take(&mut actor);
            taken.unwrap();
            kept.run(&mut actor, 5);
            kept.disk.power_off_at(kept.disk.operations() + operation);
            let version = kept.checkpoints.manifest().version;
            let (new, taken) = kept.take(&mut actor);
            let is_put = kept.checkpoints.manifest().version > version;
            let disk = kept.disk.power_cut(seed.wrapping_mul(1_000) + operation);
            let mut found = CheckpointedGraph::open(disk).unwrap();
            let state = dump_now(&found.manager);
            assert!(state == new || (state == old && !is_put), "operation {operation} of seed {seed}");
            // Another checkpoint is taken over the remains of the interrupted one.
            found.run(&mut actor, 3);
            let (expected, again) = found.take(&mut actor);
            assert!(again.unwrap().is_some());
            assert_eq!(dump_now(&CheckpointedGraph::open(found.disk.power_cut(operation)).unwrap().manager), expected);
            if taken.is_ok() {
                break;
            }
        }
        assert!(operation > 10, "a checkpoint has more than {operation} operations");
    }
}

#[test]
fn a_flipped_bit_in_any_file_is_found_and_named() {
    let mut kept = CheckpointedGraph::new();
    let mut actor = Actor::new(5);
    kept.run(&mut actor, 100);
    take_quietly(&mut kept).unwrap();
    let mut which = 0;
    loop {
        kept.change_one(which);
        let report = take_quietly(&mut kept).unwrap();
        assert!(which < 50, "a page that is a small part of its pack is written alone");
        if report.packs_retired == 0 {
            break;
        }
        which += 1;
    }
    let expected = dump_now(&kept.manager);
    let named: Vec<String> = kept.checkpoints.manifest().packs.iter().map(|pack| pack.path()).collect();
    let mut harmless = 0;
    for (path, length) in kept.disk.files().into_iter().filter(|(path, _)| named.contains(path)) {
        for at in (0..length).step_by(13) {
            let disk = kept.disk.power_cut(0);
            disk.flip_bit(&path, at, (at % 8) as u8).unwrap();
            match CheckpointedGraph::open(disk) {
                // The byte is in an image that a newer image replaces.
                Ok(found) => {
                    assert_eq!(dump_now(&found.manager), expected);
                    harmless += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
                    assert!(error.message().contains(&format!("{path} is damaged at byte")), "{error}");
                }
            }
        }
    }
    assert!(harmless > 0, "some bytes are in replaced images");
}

#[test]
fn a_missing_or_a_cut_file_is_named() {
    let mut kept = CheckpointedGraph::new();
    let mut actor = Actor::new(6);
    kept.run(&mut actor, 40);
    kept.take(&mut actor).1.unwrap();
    for pack in &kept.checkpoints.manifest().packs {
        let path = pack.path();
        let disk = kept.disk.power_cut(0);
        disk.open(&path).unwrap().set_len(pack.bytes - 1).unwrap();
        let Err(error) = CheckpointedGraph::open(disk) else { panic!("a file is too short") };
        assert!(error.message().contains(&path) && error.kind() == ErrorKind::Damaged, "{error}");
        let disk = kept.disk.power_cut(0);
        disk.remove(&path).unwrap();
        let Err(error) = CheckpointedGraph::open(disk) else { panic!("a file is gone") };
        assert!(error.message().contains(&path), "{error}");
    }
}

#[test]
fn a_full_disk_ends_a_checkpoint_and_the_next_one_makes_up_for_it() {
    let mut kept = CheckpointedGraph::new();
    let mut actor = Actor::new(7);
    kept.run(&mut actor, 40);
    kept.take(&mut actor).1.unwrap();
    kept.run(&mut actor, 40);
    kept.disk.set_capacity(Some(kept.disk.used() + 1_000));
    let (_, report) = kept.take(&mut actor);
    assert_eq!(report.unwrap_err().kind(), ErrorKind::Io);
    kept.disk.set_capacity(None);
    let (expected, report) = kept.take(&mut actor);
    assert!(report.unwrap().is_some());
    assert_eq!(dump_now(&CheckpointedGraph::open(kept.disk.power_cut(3)).unwrap().manager), expected);
}

#[test]
fn topology_is_that_of_the_images_while_transactions_go_on() {
    let mut blocks = 0;
    let seeds: u64 = mangrove_testdata::case_count(4);
    for seed in 0..seeds {
        let mut kept = CheckpointedGraph::with_topology();
        let mut actor = Actor::new(seed);
        for round in 0..12 {
            kept.run(&mut actor, 10 + round % 3 * 20);
            if round % 4 == 3 {
                kept.manager.compact();
            }
            // Transactions run between any two pages and blocks.
            let (_, taken) = kept.take(&mut actor);
            taken.unwrap();
            let manifest = kept.checkpoints.manifest();
            blocks += check_open_forms(&kept.disk, manifest, 1, &mut |_, _, _| Ok(None)).unwrap().topology_blocks;
        }
    }
    assert!(blocks > 60 * seeds, "{blocks} blocks");
}
