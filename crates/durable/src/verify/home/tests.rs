//! Bits that flip in every kind of object of a home.

use mangrove_graph::GraphView;

use super::*;
use crate::backup::{BackupOptions, backup};
use crate::durable::DurableOptions;
use crate::durable_home::{DurableHome, DurableHomeOptions};
use crate::extract::Location;
use crate::home::MemoryHome;
use crate::open::columns::ManifestColumnsFile;
use crate::states::Retention;
use crate::stream::log::ObjectLogOptions;
use crate::testing::{Actor, LineColumns, lines, quiet};

fn verify(home: &Arc<dyn Home>) -> Result<VerifiedHome> {
    let mut compare = |view: &dyn GraphView, file: &ManifestColumnsFile, bytes: Vec<u8>| {
        let found: Vec<u64> = std::str::from_utf8(&bytes).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        Ok((lines(view, file.table()) != found).then(|| "other lines".to_owned()))
    };
    verify_home(home, Duration::ZERO, 2, &mut compare, &|_| ())
}

/// A graph with several owners, whose home keeps all states.
fn graph() -> (Arc<dyn Home>, u64) {
    let home: Arc<dyn Home> = Arc::new(MemoryHome::new());
    let (mut actor, mut last_ts) = (Actor::new(2), 0);
    for life in 0..3 {
        let options = DurableHomeOptions {
            graph: DurableOptions {
                tablet_count: 3,
                checkpoint_log_bytes: Some(0),
                open_topology: Some(true),
                columns: Some(Arc::new(LineColumns::default())),
                open_columns: true,
                ..DurableOptions::default()
            },
            log: ObjectLogOptions { lease: Duration::ZERO, ..ObjectLogOptions::default() },
            retention: Retention { retain_for: Duration::from_secs(3_600), retain_at_least: 2 },
            ..DurableHomeOptions::default()
        };
        let graph = DurableHome::open(home.clone(), &options, &|_| ()).unwrap();
        quiet(graph.manager());
        for round in 0..12 {
            drop(actor.transaction(graph.manager()));
            if round == 6 {
                graph.checkpoint().unwrap();
            }
        }
        last_ts = graph.manager().watermark();
        if life == 1 {
            graph.close(Duration::from_secs(20)).unwrap();
        }
    }
    (home, last_ts)
}

fn list(home: &dyn Home, directory: &str) -> Vec<Name> {
    home.list(&Name::new(directory).unwrap()).unwrap()
}

/// Flips bits of an object, and checks that each is found and that the error names it.
fn flip(home: &Arc<dyn Home>, name: &Name) {
    let right = home.get(name).unwrap().unwrap();
    for at in [0, 9, right.len() / 4, right.len() / 2, right.len().saturating_sub(20), right.len() - 1] {
        let at = at.min(right.len() - 1);
        let mut wrong = right.to_vec();
        wrong[at] ^= 0x04;
        home.put_unique(name, Box::new(bytes::Bytes::from(wrong))).unwrap();
        let Err(error) = verify(home) else { panic!("byte {at} of {name} is wrong") };
        assert!(error.message().contains(name.as_str()), "{name}, byte {at}: {error}");
    }
    home.put_unique(name, Box::new(right)).unwrap();
}

/// Checks that a missing object is noticed.
fn miss(home: &Arc<dyn Home>, name: &Name) {
    let right = home.get(name).unwrap().unwrap();
    home.delete(vec![name.clone()]).unwrap();
    let Err(error) = verify(home) else { panic!("{name} is missing") };
    assert!(error.message().contains(name.as_str()), "{name}: {error}");
    home.put_unique(name, Box::new(right)).unwrap();
}

#[test]
fn every_kind_of_object_of_a_graph_is_checked() {
    let (home, last_ts) = graph();
    let verified = verify(&home).unwrap();
    assert_eq!(verified.recovery.last_ts, last_ts);
    let manifests = list(&*home, "manifest");
    assert_eq!(verified.manifests, manifests.len() as u64);
    let packs = list(&*home, "pack");
    assert_eq!(verified.packs, packs.len() as u64);
    let newest = newest_manifest(&*home, Duration::ZERO).unwrap();
    let columns: Vec<Name> = newest.columns.unwrap().files.iter().map(|file| Name::new(&file.path).unwrap()).collect();
    assert_eq!(verified.forms.columns_files, columns.len() as u64);
    assert!(verified.forms.topology_blocks > 0 && verified.forms.index_runs > 0 && !columns.is_empty());
    let streams: Vec<Name> =
        (1..=3).flat_map(|incarnation| list(&*home, crate::disk::parent(&stream_name(incarnation, 1)))).collect();
    assert_eq!(verified.objects, streams.len() as u64, "all objects of all streams, with their ends");
    manifests.iter().chain(&packs).chain(&streams).chain(&columns).for_each(|name| flip(&home, name));
    let ended = |name: &&Name| crate::stream::names::stream_place(name.as_str()).is_some_and(|place| place.0 < 3);
    packs.iter().chain(streams.iter().filter(ended)).chain(&columns).for_each(|name| miss(&home, name));
    miss(&home, &Name::new(&node_name(3)).unwrap());
    assert!(verify(&home).is_ok());
    let wrong = Name::new("pin/x").unwrap();
    home.put_unique(&wrong, Box::new(bytes::Bytes::from_static(b"{"))).unwrap();
    assert!(verify(&home).unwrap_err().message().contains("pin/x"));
}

#[test]
fn every_kind_of_object_of_a_backup_is_checked() {
    let (home, last_ts) = graph();
    let to: Arc<dyn Home> = Arc::new(MemoryHome::new());
    assert!(verify(&to).unwrap_err().message().contains("no graph and no backup"));
    backup(&Location::Home(home), &to, BackupOptions::default()).unwrap();
    let verified = verify(&to).unwrap();
    assert_eq!((verified.backups, verified.recovery.last_ts), (1, last_ts));
    assert!(verified.forms.topology_blocks > 0 && verified.forms.index_runs > 0);
    let packs = list(&*to, "pack");
    let streams = list(&*to, crate::disk::parent(&stream_name(3, 1)));
    assert_eq!((verified.packs, verified.objects), (packs.len() as u64, streams.len() as u64));
    let backups = [Name::new("backup/1.json").unwrap()];
    packs.iter().chain(&streams).chain(&backups).for_each(|name| flip(&to, name));
    packs.iter().chain(&streams).for_each(|name| miss(&to, name));
    let database = Name::new("backup/database").unwrap();
    to.put_unique(&database, Box::new(bytes::Bytes::from_static(b"another"))).unwrap();
    assert!(verify(&to).unwrap_err().message().contains("backup/database"));
}
