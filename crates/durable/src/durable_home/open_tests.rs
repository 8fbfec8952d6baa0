//! What a checkpoint of a graph in a home has for other programs.

use std::sync::atomic::Ordering;

use super::*;
use crate::checkpoint::each_topology;
use crate::home::MemoryHome;
use crate::open::columns::OPEN_DIR;
use crate::stream::names::manifest_number;
use crate::testing::{Actor, LineColumns, quiet};

const COLUMNS: CheckpointForms = CheckpointForms { topology: None, columns: true };

fn work(graph: &DurableHome, actor: &mut Actor) {
    (0..30).for_each(|_| drop(actor.transaction(graph.manager())));
}

#[test]
fn a_graph_in_a_home_has_topology() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let (mut actor, mut blocks, mut deltas) = (Actor::new(6), 0, 0);
    let graph = DurableOptions { tablet_count: 3, ..DurableOptions::default() };
    let options = DurableHomeOptions { graph, ..DurableHomeOptions::default() };
    for opening in 0..4 {
        let graph = DurableHome::open(home.clone(), &options, &|_| ()).unwrap();
        quiet(graph.manager());
        if opening == 0 {
            add_edges(graph.manager());
        }
        work(&graph, &mut actor);
        let forms = CheckpointForms { topology: (opening == 0).then_some(true), columns: false };
        let report = graph.checkpoint_with(forms).unwrap().unwrap();
        blocks = blocks.max(report.topology_blocks);
        deltas += report.topology_deltas;
        let manifests = home.list(&Name::new("manifest").unwrap()).unwrap();
        let number = |name: &Name| manifest_number(name.as_str()).unwrap();
        let newest = manifests.iter().max_by_key(|name| number(name)).unwrap();
        let manifest = Manifest::of_object(&*home, number(newest), &home.get(newest).unwrap().unwrap()).unwrap();
        let place = HomePlace::new(home.clone(), Duration::ZERO);
        let mut found = 0;
        each_topology(&place, &manifest, &mut |_, _, block| {
            let expected = graph.manager().store().page_lists(block.lists.name, report.checkpoint_ts).unwrap();
            for (found, expected) in
                [(block.lists.outgoing, expected.outgoing), (block.lists.incoming, expected.incoming)]
            {
                let sorted = |entries: Vec<_>| std::collections::BTreeSet::from_iter(entries);
                assert_eq!((found.len(), sorted(found)), (expected.len(), sorted(expected)), "{}", block.lists.name);
            }
            found += 1;
            Ok(())
        })
        .unwrap();
        assert!(manifest.topology.is_some() && found >= blocks, "opening {opening}: {found} of {blocks} blocks");
    }
    assert!(deltas > 3, "{deltas} deltas");
}

/// Adds so many edges that a few more are a small part of them.
fn add_edges(manager: &TransactionManager) {
    let catalog = manager.store().catalog();
    let [label, knows] = ["x", "knows"].map(|label| catalog.intern_label_text(label));
    let txn = manager.begin(Default::default()).unwrap();
    let people: Vec<_> = (0..90).map(|_| txn.insert_vertex(label, None).unwrap()).collect();
    for number in 0..4_000 {
        txn.insert_edge(people[number % 90], people[number * 31 % 89], knows, None).unwrap();
    }
    txn.commit().unwrap();
}

#[test]
fn open_columns_in_a_home_are_collected() {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let (format, mut actor) = (Arc::new(LineColumns::default()), Actor::new(4));
    let graph = DurableOptions { tablet_count: 3, columns: Some(format.clone()), ..DurableOptions::default() };
    let options = DurableHomeOptions { graph, ..DurableHomeOptions::default() };
    let graph = DurableHome::open(home.clone(), &options, &|_| ()).unwrap();
    quiet(graph.manager());
    let objects = || home.list(&Name::new(OPEN_DIR).unwrap()).unwrap().len() as u64;
    let mut written = [0, 0];
    for _ in 0..4 {
        work(&graph, &mut actor);
        written = [written[1], graph.checkpoint_with(COLUMNS).unwrap().unwrap().columns_files];
        assert_eq!(objects(), written.iter().sum::<u64>());
    }
    // The objects of a failed checkpoint go with the next one.
    work(&graph, &mut actor);
    format.fails.store(true, Ordering::Relaxed);
    graph.checkpoint_with(COLUMNS).unwrap_err();
    format.fails.store(false, Ordering::Relaxed);
    let last = graph.checkpoint_with(COLUMNS).unwrap().unwrap().columns_files;
    assert_eq!(objects(), written[1] + last);
}
