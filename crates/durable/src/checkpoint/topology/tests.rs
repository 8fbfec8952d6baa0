//! Topology that checkpoints write as blocks and deltas: it is that of the store at every checkpoint.

use std::collections::BTreeMap;

use mangrove_graph::{EdgeId, GraphView, LabelFilter, ScanCursor, Share, TabletId, VertexId};
use mangrove_store::image::PageName;
use mangrove_store::lists::PageLists;
use rand::Rng;

use super::*;
use crate::checkpoint::live::PackPolicy;
use crate::checkpoint::pack::PlacedBlock;
use crate::checkpoint::tests::{CheckpointedGraph, POLICY};
use crate::checkpoint::{CheckpointReport, check_pack, each_topology};
use crate::manifest::ManifestPack;
use crate::testing::Actor;
use crate::verify::check_open_forms;

/// A graph with one label of vertices, whose pages have so many edges that there are deltas.
struct Town {
    kept: CheckpointedGraph,
    actor: Actor,
}

impl Town {
    fn new(seed: u64, policy: PackPolicy, people: usize, edges: usize) -> Self {
        let mut kept = CheckpointedGraph::with_topology();
        kept.checkpoints.set_policy(policy);
        let mut town = Town { kept, actor: Actor::new(seed) };
        let txn = town.kept.manager.begin(Default::default()).unwrap();
        let person = txn.store().catalog().intern_label_text("person");
        (0..people).for_each(|_| _ = txn.insert_vertex(person, None).unwrap());
        txn.commit().unwrap();
        town.insert_edges(edges);
        town
    }

    fn elements(&self) -> (Vec<VertexId>, Vec<EdgeId>) {
        let txn = self.kept.manager.begin_unproved_read().unwrap();
        let (mut vertices, mut edges) = (Vec::new(), Vec::new());
        let mut cursor = ScanCursor::default();
        while !txn.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut vertices).unwrap() {}
        let mut cursor = ScanCursor::default();
        while !txn.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut edges).unwrap() {}
        (vertices, edges)
    }

    /// Inserts edges between vertices that `draw` chooses among so many.
    fn insert_edges_by(&mut self, count: usize, mut draw: impl FnMut(&mut Actor, usize) -> usize) {
        let (vertices, _) = self.elements();
        let txn = self.kept.manager.begin(Default::default()).unwrap();
        let labels = ["knows", "likes"].map(|label| txn.store().catalog().intern_label_text(label));
        for number in 0..count {
            let ends = [0, 1].map(|_| vertices[draw(&mut self.actor, vertices.len())]);
            txn.insert_edge(ends[0], ends[1], labels[number % 2], None).unwrap();
        }
        txn.commit().unwrap();
    }

    fn insert_edges(&mut self, count: usize) {
        self.insert_edges_by(count, |actor, all| actor.rng.random_range(0..all));
    }

    fn delete_edges(&mut self, count: usize) {
        let (_, mut edges) = self.elements();
        let txn = self.kept.manager.begin(Default::default()).unwrap();
        for _ in 0..count.min(edges.len()) {
            txn.delete_edge(edges.swap_remove(self.actor.rng.random_range(0..edges.len()))).unwrap();
        }
        txn.commit().unwrap();
    }

    /// Opens the graph again, which makes the places of deleted elements free.
    fn reopen(&mut self, policy: PackPolicy) {
        let live = self.kept.checkpoints.live_bytes();
        self.kept = CheckpointedGraph::open(self.kept.disk.clone()).unwrap();
        assert_eq!(self.kept.checkpoints.live_bytes(), live, "as many bytes count as before");
        self.kept.checkpoints.set_policy(policy);
    }

    /// The lists of the newest snapshot.
    fn lists(&self) -> BTreeMap<PageName, PageLists> {
        let held = self.kept.manager.begin_unproved_read().unwrap();
        let store = self.kept.manager.store();
        let pages = (1..=store.tablet_count()).flat_map(|id| store.pages_with_changed_lists(TabletId(id), None));
        comparable(pages.map(|page| store.page_lists(page, held.begin_ts()).unwrap()))
    }

    /// Takes a checkpoint while random transactions go on. Its topology must be that of the store and of the images.
    fn checkpoint(&mut self) -> CheckpointReport {
        let expected = self.lists();
        let report = self.kept.take(&mut self.actor).1.unwrap().unwrap_or_default();
        let packs = &self.kept.checkpoints.manifest().packs;
        assert_eq!(packs.iter().map(|pack| pack.live).sum::<u64>(), self.kept.checkpoints.live_bytes());
        assert!(self.read().unwrap() == expected, "the lists of blocks and deltas are not those of the store");
        report
    }

    /// The lists of blocks and deltas, after every block of every pack was checked and compared with the images.
    fn read(&self) -> mangrove_graph::Result<BTreeMap<PageName, PageLists>> {
        let (disk, manifest) = (&self.kept.disk, self.kept.checkpoints.manifest());
        for pack in &manifest.packs {
            check_pack(disk, pack, manifest.database)?;
        }
        let mut found = Vec::new();
        each_topology(disk, manifest, &mut |_, _, block| {
            found.push(block.lists);
            Ok(())
        })?;
        let compared = check_open_forms(disk, manifest, 1, &mut |_, _, _| Ok(None))?;
        assert_eq!(compared.topology_blocks, found.len() as u64);
        Ok(comparable(found.into_iter()))
    }

    /// The packs of the manifest, each with its blocks.
    fn blocks(&self) -> Vec<(ManifestPack, Vec<PlacedBlock>)> {
        let (disk, manifest) = (&self.kept.disk, self.kept.checkpoints.manifest());
        let blocks = |pack: &ManifestPack| open_pack(disk, pack, manifest.database).unwrap().blocks;
        manifest.packs.iter().map(|pack| (pack.clone(), blocks(pack))).collect()
    }
}

/// Lists without what is of no vertex: slots that a later transaction has reserved, and generations of free slots.
fn comparable(lists: impl Iterator<Item = PageLists>) -> BTreeMap<PageName, PageLists> {
    let mut pages = BTreeMap::new();
    for mut lists in lists.filter(|lists| !lists.live.is_empty()) {
        let generation =
            |at: usize| lists.generations.get(at).copied().filter(|_| lists.live.contains(at)).unwrap_or(0);
        lists.generations = (0..1_024).map(generation).collect();
        lists.used = 0;
        lists.outgoing.sort_unstable();
        lists.incoming.sort_unstable();
        pages.insert(lists.name, lists);
    }
    pages
}

#[test]
fn lists_of_blocks_and_deltas_are_those_of_the_store() {
    let cases = mangrove_testdata::case_count(4);
    let (mut blocks, mut deltas, mut reused) = (0, 0, 0);
    for seed in 0..cases {
        // Small packs are retired often, with the blocks and deltas in them.
        let policy = if seed % 2 == 0 { POLICY } else { PackPolicy::default() };
        let mut town = Town::new(seed, policy, 400, 3_000);
        town.checkpoint();
        for round in 0..14 {
            let count = town.actor.rng.random_range(1..40);
            match round % 3 {
                0 => town.insert_edges(count),
                1 => town.delete_edges(count),
                _ => (0..count / 4).for_each(|_| _ = town.actor.transaction(&town.kept.manager)),
            }
            if round % 4 == 3 {
                town.kept.manager.compact();
            }
            let report = town.checkpoint();
            (blocks, deltas) = (blocks + report.topology_blocks, deltas + report.topology_deltas);
            if round % 5 == 4 {
                town.reopen(policy);
            }
        }
        let lists = town.lists();
        let edges = lists.values().flat_map(|lists| &lists.outgoing);
        reused += edges.filter(|entry| entry.edge.generation() > 0).count();
    }
    assert!(blocks > 10 * cases && deltas > 20 * cases, "{blocks} blocks, {deltas} deltas");
    assert!(reused > 10 * cases as usize, "{reused} edges in places that were used again");
}

#[test]
fn half_of_a_hub_is_deleted_and_inserted_again() {
    const EDGES: usize = 12_000;
    let mut town = Town::new(1, PackPolicy::default(), 3_000, 0);
    let mut is_source = false;
    let mut from_hub = |actor: &mut Actor, all: usize| {
        is_source = !is_source;
        if is_source { 0 } else { actor.rng.random_range(0..all) }
    };
    town.insert_edges_by(EDGES, &mut from_hub);
    let (_, edges) = town.elements();
    town.checkpoint();
    // Every second edge.
    let txn = town.kept.manager.begin(Default::default()).unwrap();
    edges.iter().step_by(2).for_each(|edge| txn.delete_edge(*edge).unwrap());
    txn.commit().unwrap();
    let report = town.checkpoint();
    assert!(report.topology_deltas > 0, "{report:?}: a byte for each removed entry is less than a quarter");
    for _ in 0..3 {
        town.reopen(PackPolicy::default());
        town.insert_edges_by(EDGES / 6, &mut from_hub);
        town.checkpoint();
    }
    let lists = town.lists();
    let generations: Vec<u16> =
        lists.values().flat_map(|lists| &lists.outgoing).map(|entry| entry.edge.generation()).collect();
    assert!(generations.len() > EDGES - 100, "{} edges", generations.len());
    assert!(generations.iter().filter(|&&generation| generation == 1).count() > EDGES / 4, "places are used again");
}

/// A graph with a delta, and the pack and the place of it.
fn with_delta(kind: impl Fn(BlockName) -> bool) -> (Town, ManifestPack, PlacedBlock) {
    let mut town = Town::new(3, PackPolicy::default(), 60, 12_000);
    town.checkpoint();
    town.insert_edges(9);
    assert!(town.checkpoint().topology_deltas > 0);
    let with_block = |(pack, blocks): (ManifestPack, Vec<PlacedBlock>)| {
        let found = blocks.into_iter().rfind(|(name, _)| kind(*name));
        found.map(|block| (pack, block))
    };
    let (pack, block) = town.blocks().into_iter().find_map(with_block).unwrap();
    (town, pack, block)
}

#[test]
fn every_flipped_byte_of_a_delta_is_found() {
    let (mut town, pack, (_, position)) = with_delta(|name| name.delta_page().is_some());
    let whole = town.kept.disk.clone();
    for at in position.offset..position.offset + position.bytes() {
        town.kept.disk = whole.power_cut(0);
        town.kept.disk.flip_bit(&pack.path(), at, (at % 8) as u8).unwrap();
        let error = town.read().unwrap_err();
        assert!(error.message().contains(&pack.path()), "byte {at}: {error}");
    }
}

#[test]
fn a_damaged_block_is_written_anew() {
    let (mut town, pack, (name, position)) = with_delta(|name| name.topology_page().is_some());
    town.kept.disk.flip_bit(&pack.path(), position.offset + 70, 3).unwrap();
    assert!(town.read().is_err());
    // All pages have other lists.
    town.insert_edges(60);
    let expected = town.lists();
    let report = town.kept.take(&mut town.actor).1.unwrap().unwrap();
    let newest = town.blocks().into_iter().rfind(|(_, blocks)| blocks.iter().any(|(other, _)| *other == name));
    assert!(newest.unwrap().0.number() > pack.number() && report.topology_deltas > 0, "{report:?}");
    let (disk, manifest) = (&town.kept.disk, town.kept.checkpoints.manifest());
    let mut found = Vec::new();
    each_topology(disk, manifest, &mut |_, _, block| {
        found.push(block.lists);
        Ok(())
    })
    .unwrap();
    assert!(comparable(found.into_iter()) == expected);
}

/// Bytes of topology that ten checkpoints write, in so many blocks and deltas. Before each, edges are inserted between
/// vertices that `draw` chooses.
fn bytes_of_topology(deltas: bool, count: usize, draw: fn(&mut Actor, usize) -> usize) -> u64 {
    let mut town = Town::new(9, PackPolicy { deltas, ..PackPolicy::default() }, 3_000, 12_000);
    let (mut bytes, mut last) = (0, None);
    for round in 0..11 {
        town.kept.take_alone(&mut |_| ()).unwrap();
        for (pack, blocks) in town.blocks() {
            let is_new = last.is_none_or(|last| pack.number() > last);
            let topology = blocks.iter().filter(|(name, _)| name.page().is_none() && *name != BlockName::CATALOG);
            if is_new && round > 0 {
                bytes += topology.map(|(_, position)| position.bytes()).sum::<u64>();
            }
        }
        last = town.kept.checkpoints.manifest().packs.iter().map(ManifestPack::number).max();
        town.insert_edges_by(count, draw);
    }
    bytes
}

#[test]
fn deltas_write_less() {
    let uniform = |actor: &mut Actor, all: usize| actor.rng.random_range(0..all);
    let [with, without] = [true, false].map(|deltas| bytes_of_topology(deltas, 60, uniform));
    assert!(with * 4 < without, "{with} bytes with deltas, {without} without");
}
