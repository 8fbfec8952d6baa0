//! The contract of every disk, and the further behavior of the simulated one.

use std::io::ErrorKind;

use super::*;

/// The behavior of a disk without failures.
fn check_contract(disk: &dyn Disk) {
    disk.create_dir("wal/old").unwrap();
    disk.create_dir("wal/old").unwrap();
    let file = disk.create("wal/a").unwrap();
    assert_eq!(disk.create("wal/a").unwrap_err().kind(), ErrorKind::AlreadyExists);
    file.write_at(3, b"abc").unwrap();
    file.zero_fill(6, 2_000_000).unwrap();
    file.sync_data().unwrap();
    assert_eq!(file.len().unwrap(), 2_000_000);
    let mut bytes = [9; 8];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), 8);
    assert_eq!(&bytes, b"\0\0\0abc\0\0");
    file.set_len(5).unwrap();
    assert_eq!(file.read_at(4, &mut bytes).unwrap(), 1);
    disk.link_new("wal/a", "wal/b").unwrap();
    assert_eq!(disk.link_new("wal/a", "wal/b").unwrap_err().kind(), ErrorKind::AlreadyExists);
    disk.rename("wal/a", "wal/c").unwrap();
    assert_eq!(disk.list("wal").unwrap(), ["b", "c", "old"]);
    disk.rename("wal/c", "wal/d").unwrap();
    disk.remove("wal/b").unwrap();
    disk.sync_dir("wal").unwrap();
    assert_eq!(read_file(disk, "wal/d").unwrap(), b"\0\0\0ab");
    assert_eq!(disk.open("wal/b").unwrap_err().kind(), ErrorKind::NotFound);
    assert!(disk.open_read("wal/d").unwrap().write_at(0, b"x").is_err());
    assert_eq!(disk.list_files("wal").unwrap(), ["d"]);
    assert!(disk.list("nowhere").unwrap().is_empty() && disk.list_files("nowhere").unwrap().is_empty());
    let message = disk.open("nowhere/x").unwrap_err().to_string();
    assert!(message.contains("cannot open") && message.contains("nowhere/x"), "{message}");
}

#[test]
fn the_simulated_disk_keeps_the_contract() {
    check_contract(&SimDisk::new());
}

#[test]
fn the_local_disk_keeps_the_contract() {
    let root = std::env::temp_dir().join(format!("mangrove-disk-{}", std::process::id()));
    let disk = LocalDisk::new(&root).unwrap();
    check_contract(&disk);
    assert!(disk.free_space().unwrap().is_some_and(|bytes| bytes > 0));
    std::fs::remove_dir_all(root).unwrap();
}

/// A synced file `a` with 4 sectors of `old`, whose name is durable.
fn with_old_file() -> (SimDisk, Arc<dyn DiskFile>) {
    let disk = SimDisk::new();
    let file = disk.create("a").unwrap();
    file.write_at(0, &[b'o'; 2048]).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir("").unwrap();
    (disk, file)
}

#[test]
fn a_power_cut_spares_what_was_synced_and_any_part_of_the_rest() {
    let (disk, file) = with_old_file();
    file.write_at(512, &[b'n'; 1024]).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..500 {
        let after = read_file(&disk.power_cut(seed), "a").unwrap();
        assert_eq!(after, read_file(&disk.power_cut(seed), "a").unwrap(), "the same for the same seed");
        assert_eq!((after.len(), &after[..512], &after[1536..]), (2048, &[b'o'; 512][..], &[b'o'; 512][..]));
        let kind = |sector: &[u8]| match (sector.iter().all(|b| *b == b'o'), sector.iter().all(|b| *b == b'n')) {
            (true, _) => 'o',
            (_, true) => 'n',
            _ => '?',
        };
        seen.insert((kind(&after[512..1024]), kind(&after[1024..1536])));
    }
    assert_eq!(seen.len(), 9, "each of the two sectors is old, new or torn, whatever the other is: {seen:?}");
    file.sync_data().unwrap();
    assert_eq!(read_file(&disk.power_cut(1), "a").unwrap()[512..1536], [b'n'; 1024]);
}

#[test]
fn names_survive_when_their_directory_was_synced() {
    let (disk, _) = with_old_file();
    disk.rename("a", "b").unwrap();
    disk.create("c").unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        seen.insert(disk.power_cut(seed).list("").unwrap().join(","));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["a", "a,c", "b", "b,c"]);
    disk.sync_dir("").unwrap();
    assert_eq!(disk.power_cut(7).list("").unwrap(), ["b", "c"]);
}

#[test]
fn a_file_in_a_directory_that_was_not_synced_may_be_gone() {
    let disk = SimDisk::new();
    disk.create_dir("d").unwrap();
    disk.create("d/x").unwrap();
    disk.sync_dir("d").unwrap();
    assert!((0..100).any(|seed| disk.power_cut(seed).list("").unwrap().is_empty()));
    disk.sync_dir("").unwrap();
    assert!((0..100).all(|seed| disk.power_cut(seed).list("d").unwrap() == ["x"]));
}

#[test]
fn a_sync_after_a_failed_one_makes_up_for_nothing() {
    let mut was_lost = false;
    for filler in 0..20 {
        let (disk, file) = with_old_file();
        (0..filler).for_each(|_| disk.sync_dir("").unwrap());
        disk.fail_sync(disk.syncs() + 1);
        file.write_at(0, &[b'n'; 2048]).unwrap();
        assert!(file.sync_data().is_err());
        file.sync_data().unwrap();
        assert_eq!(read_file(&disk, "a").unwrap(), [b'n'; 2048]);
        was_lost |= read_file(&disk.power_cut(0), "a").unwrap() != [b'n'; 2048];
    }
    assert!(was_lost);
}

#[test]
fn troubles_come_when_they_are_ordered() {
    let (disk, file) = with_old_file();
    disk.set_capacity(Some(3000));
    assert_eq!(disk.free_space().unwrap(), Some(952));
    assert!(file.write_at(2048, &[0; 1000]).unwrap_err().is_full());
    file.write_at(0, &[0; 2048]).unwrap();
    disk.set_read_only(true);
    assert_eq!(file.write_at(0, b"x").unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    assert!(disk.open("a").is_err() && disk.open_read("a").is_ok());
    disk.set_read_only(false);
    disk.flip_bit("a", 1, 3).unwrap();
    assert_eq!(read_file(&disk, "a").unwrap()[..3], [0, 8, 0]);
    disk.power_off_at(disk.operations() + 2);
    file.write_at(0, b"yes").unwrap();
    assert!(file.write_at(0, b"maybe").is_err() && file.sync_data().is_err() && disk.list("").is_err());
    assert_eq!(disk.power_cut(3).list("").unwrap(), ["a"]);
}
