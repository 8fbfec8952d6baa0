//! Open columns: which files there are, when they go, and what a check of them finds. The
//! format is one of the test.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use mangrove_graph::GraphView;

use super::*;
use crate::disk::{SimDisk, read_file};
use crate::manifest::Manifest;
use crate::open::columns::{ManifestColumns, OPEN_DIR};
use crate::testing::{Actor, LineColumns, lines, quiet};
use crate::verify::verify;

const COLUMNS: CheckpointForms = CheckpointForms { topology: None, columns: true };

fn options(format: &Arc<LineColumns>) -> DurableOptions {
    DurableOptions {
        tablet_count: 3,
        checkpoint_log_bytes: Some(0),
        recovery_threads: 2,
        columns: Some(format.clone()),
        ..DurableOptions::default()
    }
}

fn open(disk: &SimDisk, format: &Arc<LineColumns>) -> Durable {
    let durable = Durable::open(Arc::new(disk.clone()), &options(format), &|_| ()).unwrap();
    quiet(durable.manager());
    durable
}

fn work(manager: &TransactionManager, actor: &mut Actor) {
    (0..30).for_each(|_| drop(actor.transaction(manager)));
}

fn columns(disk: &SimDisk) -> ManifestColumns {
    Manifest::newest(disk).unwrap().unwrap().columns.expect("the checkpoint has open columns")
}

fn content(bytes: &[u8]) -> Vec<u64> {
    std::str::from_utf8(bytes).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

/// The number of files that a verification compares with the graph of the images.
fn compared(disk: &SimDisk) -> Result<u64> {
    let mut compare = |view: &dyn GraphView, file: &crate::open::columns::ManifestColumnsFile, bytes: Vec<u8>| {
        Ok((lines(view, file.table()) != content(&bytes)).then(|| "other lines".to_owned()))
    };
    verify(disk, 1, &mut compare, &|_| ()).map(|verified| verified.forms.columns_files)
}

#[test]
fn open_columns_are_of_their_checkpoint_and_stay_until_the_next() {
    let (disk, format, mut actor) = (SimDisk::new(), Arc::new(LineColumns::default()), Actor::new(1));
    let durable = open(&disk, &format);
    work(durable.manager(), &mut actor);
    durable.checkpoint().unwrap().unwrap();
    assert_eq!((Manifest::newest(&disk).unwrap().unwrap().columns, compared(&disk)), (None, Ok(0)));
    // Nothing has changed but what is asked for.
    let report = durable.checkpoint_with(COLUMNS).unwrap().unwrap();
    let first = columns(&disk);
    assert_eq!((report.columns_files, compared(&disk)), (first.files.len() as u64, Ok(first.files.len() as u64)));
    assert!(first.files.len() > 2 && first.at_ts == report.checkpoint_ts);
    for file in &first.files {
        let bytes = read_file(&disk, &file.path).unwrap();
        assert_eq!((bytes.len() as u64, content(&bytes).len() as u64), (file.bytes, file.rows));
    }
    work(durable.manager(), &mut actor);
    assert_eq!(durable.checkpoint().unwrap().unwrap().columns_files, 0);
    assert_eq!((columns(&disk), compared(&disk)), (first.clone(), Ok(0)), "they are of an earlier checkpoint");
    drop(durable);
    let durable = open(&disk, &format);
    assert_eq!(columns(&disk), first);
    let mut named: HashMap<u64, BTreeSet<String>> = HashMap::new();
    for _ in 0..4 {
        work(durable.manager(), &mut actor);
        let report = durable.checkpoint_with(COLUMNS).unwrap().unwrap();
        let paths = |columns: &ManifestColumns| columns.files.iter().map(|file| file.path.clone()).collect();
        named.insert(report.version, paths(&columns(&disk)));
        assert_eq!(compared(&disk), Ok(report.columns_files));
        let there: BTreeSet<String> =
            disk.list(OPEN_DIR).unwrap().iter().map(|name| format!("{OPEN_DIR}/{name}")).collect();
        let before = named.get(&(report.version - 1)).cloned();
        let kept = before.unwrap_or_else(|| paths(&first)).union(&named[&report.version]).cloned().collect();
        assert_eq!(there, kept, "what the newest two manifests name");
    }
}

#[test]
fn open_columns_that_fail_leave_the_last_checkpoint() {
    let (disk, format, mut actor) = (SimDisk::new(), Arc::new(LineColumns::default()), Actor::new(2));
    let durable = open(&disk, &format);
    work(durable.manager(), &mut actor);
    durable.checkpoint_with(COLUMNS).unwrap().unwrap();
    let before = Manifest::newest(&disk).unwrap();
    work(durable.manager(), &mut actor);
    format.fails.store(true, Ordering::Relaxed);
    assert!(durable.checkpoint_with(COLUMNS).unwrap_err().message().contains("as the test wants"));
    assert_eq!(Manifest::newest(&disk).unwrap(), before);
    assert_eq!(disk.list(OPEN_DIR).unwrap().len(), columns(&disk).files.len(), "the files of the failed one are gone");
    disk.set_capacity(Some(disk.used() + 2_000));
    format.fails.store(false, Ordering::Relaxed);
    let error = durable.checkpoint_with(COLUMNS).unwrap_err();
    assert!(error.message().contains("pack/") || error.message().contains("open/"), "{error}");
    disk.set_capacity(None);
    assert!(durable.checkpoint_with(COLUMNS).unwrap().unwrap().columns_files > 0);
    drop(durable);
    let without = DurableOptions { columns: None, ..options(&format) };
    let durable = Durable::open(Arc::new(disk.clone()), &without, &|_| ()).unwrap();
    assert_eq!(durable.checkpoint_with(COLUMNS).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn damaged_open_columns_are_found() {
    let (disk, format, mut actor) = (SimDisk::new(), Arc::new(LineColumns::default()), Actor::new(3));
    let durable = open(&disk, &format);
    work(durable.manager(), &mut actor);
    durable.checkpoint_with(COLUMNS).unwrap().unwrap();
    drop(durable);
    for file in columns(&disk).files {
        for offset in [0, file.bytes - 1] {
            let copy = disk.power_cut(offset);
            copy.flip_bit(&file.path, offset, 2).unwrap();
            assert!(compared(&copy).unwrap_err().message().contains(&file.path));
        }
        let copy = disk.power_cut(7);
        copy.remove(&file.path).unwrap();
        let error = compared(&copy).unwrap_err();
        assert!(error.kind() == ErrorKind::Damaged && error.message().contains(&file.path), "{error}");
        // Recovery does not read them.
        drop(open(&copy, &format));
    }
}

#[test]
fn every_checkpoint_has_open_columns_if_an_option_says_so() {
    let (disk, format, mut actor) = (SimDisk::new(), Arc::new(LineColumns::default()), Actor::new(5));
    let always = DurableOptions { open_columns: true, ..options(&format) };
    let durable = Durable::open(Arc::new(disk.clone()), &always, &|_| ()).unwrap();
    quiet(durable.manager());
    for _ in 0..2 {
        work(durable.manager(), &mut actor);
        let report = durable.checkpoint().unwrap().unwrap();
        assert_eq!((columns(&disk).at_ts, compared(&disk)), (report.checkpoint_ts, Ok(report.columns_files)));
    }
}
