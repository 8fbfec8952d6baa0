//! A graph whose checkpoints have topology blocks: they agree with the images, and only pages whose lists have changed are
//! written anew.

use std::sync::Arc;

use mangrove_graph::{GraphView, LabelFilter, ScanCursor, Share, Value, VertexId};
use mangrove_store::WriteCardinality;
use rand::Rng;

use super::*;
use crate::disk::{LocalDisk, SimDisk};
use crate::testing::{Actor, dump_now, quiet};
use crate::verify::verify;

/// Options without background threads.
fn options() -> DurableOptions {
    DurableOptions { tablet_count: 3, checkpoint_log_bytes: Some(0), recovery_threads: 2, ..DurableOptions::default() }
}

fn open(disk: &SimDisk, open_topology: impl Into<Option<bool>>) -> Durable {
    let options = DurableOptions { open_topology: open_topology.into(), ..options() };
    let durable = Durable::open(Arc::new(disk.clone()), &options, &|_| ()).unwrap();
    quiet(durable.manager());
    durable
}

/// The number of topology blocks on a disk. Fails the test if one contradicts the images.
fn verified(disk: &SimDisk) -> u64 {
    verify(disk, 2, &mut |_, _, _| Ok(None), &|_| ()).unwrap().forms.topology_blocks
}

fn vertices(durable: &Durable) -> Vec<VertexId> {
    let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
    let txn = durable.manager().begin_read().unwrap();
    while !txn.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut found).unwrap() {}
    found
}

#[test]
fn blocks_agree_with_images_after_any_history() {
    let cases = mangrove_testdata::case_count(20);
    let (mut written, mut blocks_of_all) = (0, 0);
    for seed in 0..cases {
        let disk = SimDisk::new();
        let mut actor = Actor::new(seed);
        for _ in 0..4 {
            let durable = open(&disk, true);
            for _ in 0..actor.rng.random_range(1..4) {
                for _ in 0..actor.rng.random_range(0..30) {
                    actor.transaction(durable.manager());
                    if actor.rng.random_ratio(1, 20) {
                        durable.manager().compact();
                    }
                }
                written += durable.checkpoint().unwrap().map_or(0, |report| report.topology_blocks);
                blocks_of_all += verified(&disk);
            }
            // Recovery replays these, and the first checkpoint after it must know which lists they have changed.
            (0..actor.rng.random_range(0..10)).for_each(|_| drop(actor.transaction(durable.manager())));
        }
    }
    assert!(written > 20 * cases && written < blocks_of_all, "{written} of {blocks_of_all} blocks were written");
}

#[test]
fn only_changed_lists_are_written_anew() {
    let disk = SimDisk::new();
    let durable = open(&disk, true);
    let manager = durable.manager();
    let catalog = manager.store().catalog();
    let [person, city, knows] = ["person", "city", "knows"].map(|label| catalog.intern_label_text(label));
    let key = catalog.intern_key("name");
    let txn = manager.begin(Default::default()).unwrap();
    let people: Vec<_> = (0..8).map(|_| txn.insert_vertex(person, None).unwrap()).collect();
    let cities: Vec<_> = (0..5).map(|_| txn.insert_vertex(city, None).unwrap()).collect();
    txn.insert_edge(people[0], people[1], knows, None).unwrap();
    txn.commit().unwrap();
    let pages = durable.checkpoint().unwrap().unwrap().topology_blocks;
    assert_eq!((pages, verified(&disk)), (2, 2), "a page of each label");
    let last = std::cell::Cell::new(durable.checkpoint_status().last.unwrap().checkpoint_ts);
    // How many pages have other lists after a change. A checkpoint may write more blocks: those of packs that it retires.
    let commit = |change: &dyn Fn(&mangrove_txn::Transaction)| {
        let txn = manager.begin(Default::default()).unwrap();
        change(&txn);
        txn.commit().unwrap();
        let tablets = (1..=3).map(mangrove_graph::TabletId);
        let changed: usize =
            tablets.map(|tablet| manager.store().pages_with_changed_lists(tablet, Some(last.get())).len()).sum();
        let report = durable.checkpoint().unwrap().unwrap();
        last.set(report.checkpoint_ts);
        assert!(report.topology_blocks >= changed as u64);
        assert_eq!(verified(&disk), 2);
        changed
    };
    let set = |txn: &mangrove_txn::Transaction| {
        txn.set_vertex_property(people[0], key, Value::from("Ada"), WriteCardinality::Single, Vec::new()).unwrap();
    };
    assert_eq!(commit(&set), 0, "a property is in no list");
    let edge = std::cell::Cell::new(None);
    let insert = |txn: &mangrove_txn::Transaction| {
        edge.set(Some(txn.insert_edge(people[3], people[4], knows, None).unwrap()));
    };
    assert_eq!(commit(&insert), 1, "the lists of both people");
    let edge = edge.get().unwrap();
    assert_eq!(commit(&|txn| txn.delete_edge(edge).unwrap()), 1, "as many after the edge is gone");
    let to_city = |txn: &mangrove_txn::Transaction| _ = txn.insert_edge(people[5], cities[1], knows, None).unwrap();
    assert_eq!(commit(&to_city), 2, "lists of both pages");
    assert_eq!(commit(&|txn| txn.delete_vertex(cities[3]).unwrap()), 1, "a vertex without edges");
    assert_eq!(commit(&|txn| txn.delete_vertex(cities[1]).unwrap()), 2, "a vertex with an edge");
}

#[test]
fn blocks_go_and_come_with_the_option() {
    let disk = SimDisk::new();
    let mut actor = Actor::new(5);
    let newest = || Manifest::newest(&disk).unwrap().unwrap();
    let live = || newest().packs.iter().map(|pack| pack.live).sum::<u64>();
    let work = |durable: &Durable, actor: &mut Actor| {
        let before = dump_now(durable.manager());
        while dump_now(durable.manager()) == before {
            (0..30).for_each(|_| drop(actor.transaction(durable.manager())));
        }
        durable.checkpoint().unwrap().unwrap().topology_blocks
    };
    let durable = open(&disk, false);
    assert_eq!((work(&durable, &mut actor), newest().topology, verified(&disk)), (0, None, 0));
    drop(durable);
    // No transaction has changed the graph. The checkpoint still writes the blocks.
    let durable = open(&disk, true);
    let report = durable.checkpoint().unwrap().unwrap();
    assert_eq!((report.pages, report.topology_blocks), (0, verified(&disk)));
    assert!(report.topology_blocks > 0 && live() == report.live_bytes);
    assert_eq!(newest().topology.map(|topology| topology.at_ts), Some(newest().checkpoint_ts()));
    let at_first = vertices(&durable).len();
    drop(durable);
    let durable = open(&disk, None);
    assert!(newest().topology.is_some(), "an opening keeps the blocks");
    assert!(durable.checkpoint().unwrap().is_none_or(|report| report.topology_blocks == 0), "they are still right");
    let with_blocks = live();
    drop(durable);
    let durable = open(&disk, false);
    assert_eq!(vertices(&durable).len(), at_first);
    work(&durable, &mut actor);
    assert_eq!((newest().topology, verified(&disk)), (None, 0));
    assert!(live() < with_blocks, "blocks that do not count take no space that counts");
    drop(durable);
    let durable = open(&disk, true);
    let report = durable.checkpoint().unwrap().unwrap();
    assert_eq!(report.topology_blocks, verified(&disk));
}

#[test]
fn a_bulk_load_has_topology() {
    let disk = SimDisk::new();
    let durable = open(&disk, true);
    durable.checkpoint().unwrap();
    assert_eq!((Manifest::newest(&disk).unwrap().unwrap().topology.is_some(), verified(&disk)), (true, 0));
    drop(durable);
    let durable = open(&disk, None);
    let mut load = durable.manager().bulk_load().unwrap();
    let labels = ["person", "knows"].map(|label| load.store().catalog().intern_label_text(label));
    let people: Vec<_> = (0..3).flat_map(|_| load.vertices(labels[0], 1, None, &[]).unwrap()).collect();
    load.edges(labels[1], &[(people[0], people[2])], None, &[]).unwrap();
    load.finish().unwrap();
    assert_eq!(durable.checkpoint_status().last.unwrap().topology_blocks, verified(&disk));
    assert!(verified(&disk) > 0);
}

#[test]
fn packs_with_topology_can_be_read_without_zstd() {
    let disk = SimDisk::new();
    let durable = open(&disk, true);
    let mut actor = Actor::new(8);
    (0..200).for_each(|_| drop(actor.transaction(durable.manager())));
    durable.checkpoint().unwrap().unwrap();
    let manifest = Manifest::newest(&disk).unwrap().unwrap();
    let with_topology = |pack: &&crate::manifest::ManifestPack| {
        pack.covers.kinds().any(|(kind, _)| kind == crate::manifest::KIND_TOPOLOGY)
    };
    let packs: Vec<_> = manifest.packs.iter().filter(with_topology).chain(manifest.names_pack()).collect();
    assert!(packs.len() >= 2);
    for pack in packs {
        let bytes = crate::disk::read_file(&disk, &pack.path()).unwrap();
        let at = bytes.len() - 24;
        let directory = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        // The body of the directory begins with the codec of its only part.
        assert_eq!(bytes[directory + 8], 0, "{}", pack.path());
    }
}

/// The lines that `read_neighbors.py` prints for all vertices, from the edges of the graph.
fn expected_lines(manager: &TransactionManager) -> Vec<String> {
    let view = manager.begin_read().unwrap();
    let (mut edges, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 1_000, &mut edges).unwrap() {}
    let (mut sources, mut targets, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    view.edge_ends(&edges, &mut sources, &mut targets).unwrap();
    view.edge_labels(&edges, &mut labels).unwrap();
    let mut lines = Vec::new();
    for (at, edge) in edges.iter().enumerate() {
        let label = view.catalog().label_set_name(labels[at]);
        let [edge, source, target] = [edge.external(), sources[at].external(), targets[at].external()];
        lines.push(format!("{source}\tout\t{label}\t{edge}\t{target}"));
        lines.push(format!("{target}\tin\t{label}\t{edge}\t{source}"));
    }
    lines.sort_unstable();
    lines
}

/// The reader knows the description of the format alone. So the description is complete.
#[test]
fn a_reader_in_another_language_finds_the_same_edges() {
    let root = std::env::temp_dir().join(format!("mangrove-topology-{}", std::process::id()));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/formats/read_neighbors.py");
    for seed in 0..4 {
        let _ = std::fs::remove_dir_all(&root);
        let disk = Arc::new(LocalDisk::new(&root).unwrap());
        let options = DurableOptions { open_topology: Some(true), ..options() };
        let (mut actor, mut edges, mut deltas) = (Actor::new(seed), 0, 0);
        for round in 0..3 {
            // An opening makes the slots of deleted elements free, so generations grow.
            let durable = Durable::open(disk.clone(), &options, &|_| ()).unwrap();
            quiet(durable.manager());
            match (seed, round) {
                (3, 0) => add_a_town(durable.manager(), 4_000),
                (3, _) => add_a_town(durable.manager(), 20),
                _ => (0..150).for_each(|_| drop(actor.transaction(durable.manager()))),
            }
            if seed == 2 {
                add_a_hub(durable.manager());
            }
            deltas += durable.checkpoint().unwrap().unwrap().topology_deltas;
            let expected = expected_lines(durable.manager());
            let read = std::process::Command::new("python3").arg(script).arg(&root).arg("all").output();
            let Ok(read) = read else {
                println!("left out: the reader of topology in Python, because there is no python3");
                return;
            };
            assert!(read.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&read.stderr));
            let mut found: Vec<String> = String::from_utf8(read.stdout).unwrap().lines().map(str::to_owned).collect();
            found.sort_unstable();
            let differs = found.iter().zip(&expected).find(|(one, other)| one != other);
            assert_eq!((differs, found.len()), (None, expected.len()), "seed {seed}");
            edges += expected.len() / 2;
        }
        assert!(edges > 50 && (seed < 3 || deltas > 3), "seed {seed} has {edges} edges, {deltas} deltas");
    }
    std::fs::remove_dir_all(&root).unwrap();
}

/// Adds so many edges between all vertices of a label, and deletes some edges and a vertex. Makes the vertices if there are none.
fn add_a_town(manager: &TransactionManager, count: usize) {
    let catalog = manager.store().catalog();
    let [person, knows] = ["person", "knows"].map(|label| catalog.intern_label_text(label));
    let txn = manager.begin(Default::default()).unwrap();
    let (mut people, mut edges) = (Vec::new(), Vec::new());
    let (mut of_vertices, mut of_edges) = (ScanCursor::default(), ScanCursor::default());
    while !txn.scan_vertices(&LabelFilter::Any, Share::ALL, &mut of_vertices, 1_000, &mut people).unwrap() {}
    while !txn.scan_edges(&LabelFilter::Any, Share::ALL, &mut of_edges, 1_000, &mut edges).unwrap() {}
    let new = if people.is_empty() { 200 } else { 2 };
    people.extend((0..new).map(|_| txn.insert_vertex(person, None).unwrap()));
    edges.iter().step_by(97).for_each(|edge| txn.delete_edge(*edge).unwrap());
    for number in 0..count {
        txn.insert_edge(people[number * 7 % people.len()], people[number * 31 % 89], knows, None).unwrap();
    }
    if !edges.is_empty() {
        txn.delete_vertex(people[150]).unwrap();
    }
    txn.commit().unwrap();
}

/// Adds a vertex with so many edges that their run has several parts.
fn add_a_hub(manager: &TransactionManager) {
    let catalog = manager.store().catalog();
    let [hub, spoke] = ["hub", "spoke"].map(|label| catalog.intern_label_text(label));
    let txn = manager.begin(Default::default()).unwrap();
    let hub = txn.insert_vertex(hub, None).unwrap();
    let ends: Vec<_> = (0..9).map(|_| txn.insert_vertex(spoke, None).unwrap()).collect();
    for number in 0..2_500 {
        txn.insert_edge(hub, ends[number * 7 % ends.len()], spoke, None).unwrap();
    }
    txn.commit().unwrap();
}
