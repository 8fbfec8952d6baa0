//! Manifests come back as they were written, and damaged ones are refused.

use mangrove_graph::{ErrorKind, TabletId};

use super::*;
use crate::disk::{Disk, SimDisk, read_file};

fn disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir(MANIFEST_DIR).unwrap();
    disk
}

/// A manifest with every section.
fn manifest(version: u64) -> Manifest {
    let pack = |incarnation, counter, covers: &str, path: Option<&str>| ManifestPack {
        incarnation,
        counter,
        bytes: 7_000,
        crc32c: u32::MAX,
        format: if path.is_some() { 1 } else { 2 },
        live: 6_000,
        covers: covers.to_owned().try_into().unwrap(),
        path: path.map(str::to_owned),
        database: None,
    };
    let names = pack(4, 9, "0:1-3,1:2,2:0", None);
    let mut manifest = Manifest {
        version,
        parent: Some(Checksum::try_from("00c0ffee".to_owned()).unwrap()),
        names: Some(names.number()),
        streams: vec![ManifestStream { incarnation: 3, first: 2, end: Some(8), end_ts: Some(77), database: None }],
        packs: vec![
            pack(0, 5, "0:2,1:2", Some(&PackName::First { tablet: Some(TabletId(2)), version: 5 }.path())),
            names,
        ],
        ..Manifest::first(Uuid::from_u128(7), 3)
    };
    manifest.claim(4);
    manifest.owners[0].through = 9;
    manifest
}

/// A manifest as it is after it was written.
fn put(disk: &SimDisk, mut manifest: Manifest) -> Manifest {
    manifest.put(disk).unwrap();
    manifest
}

#[test]
fn the_newest_manifest_counts_and_is_put_once() {
    let disk = disk();
    assert_eq!(Manifest::newest(&disk).unwrap(), None);
    for version in [1, 2, 9, 10] {
        let written = put(&disk, manifest(version));
        assert_eq!(Manifest::newest(&disk).unwrap(), Some(written));
    }
    let error = manifest(10).put(&disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

#[test]
fn every_flipped_bit_is_found_and_named() {
    let length = manifest(1).to_text().1.len() as u64;
    for at in 0..length {
        for bit in 0..8 {
            let disk = disk();
            let written = put(&disk, manifest(1));
            disk.flip_bit("manifest/1.json", at, bit).unwrap();
            // The case of a hexadecimal digit has no meaning.
            match Manifest::newest(&disk) {
                Ok(found) => assert_eq!(found, Some(written)),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
                    assert!(error.message().contains("manifest/1.json is damaged at byte"), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_later_format_is_refused_by_name() {
    let disk = disk();
    Manifest { format: 3, ..manifest(1) }.put(&disk).unwrap();
    let error = Manifest::newest(&disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("format 3"), "{error}");
}

#[test]
fn a_gap_before_the_log_is_refused_and_named() {
    let disk = disk();
    let before = Some(LogBefore { next_batch: 9, last_ts: 41 });
    let with_gap = |version, checkpoint_ts| {
        let mut manifest = manifest(version);
        manifest.wal = Some(ManifestWal { first_segment: 1, before });
        manifest.tablets[0].checkpoint_ts = checkpoint_ts;
        manifest
    };
    put(&disk, with_gap(1, 41));
    put(&disk, with_gap(2, 40));
    assert_eq!(Manifest::read(&disk, 1).unwrap().log_floor(), LogFloor { segment: 1, before });
    let error = Manifest::newest(&disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(
        error.message().contains("manifest/2.json") && error.message().contains("begins after commit 41"),
        "{error}"
    );
}

#[test]
fn sections_that_contradict_each_other_are_refused() {
    type Change = fn(&mut Manifest);
    let changes: [(Change, &str); 9] = [
        (|m| m.tablets[0].range = "1-2".parse().unwrap(), "once for each tablet"),
        (|m| m.tablets.push(m.tablets[0].clone()), "once for each tablet"),
        (|m| m.owners[0].tablets = "1-4".parse().unwrap(), "impossible number"),
        (|m| m.packs[1].covers = "0:4,2:0".to_owned().try_into().unwrap(), "impossible number"),
        (|m| m.packs[1].live = 7_001, "fewer bytes than count"),
        (|m| m.packs[1].format = 1, "a path that is not its own"),
        (|m| m.packs[0].path = Some("segment/x".into()), "a path that is not its own"),
        (|m| m.packs.push(m.packs[1].clone()), "twice"),
        (|m| m.names = Some(PackNumber { incarnation: 4, counter: 8 }), "is not among its packs"),
    ];
    for (change, what) in changes {
        let disk = disk();
        let mut manifest = manifest(1);
        change(&mut manifest);
        put(&disk, manifest);
        let error = Manifest::newest(&disk).unwrap_err();
        assert!(error.message().contains(what), "{what}: {error}");
    }
}

#[test]
fn a_manifest_names_the_one_that_it_was_made_from() {
    let disk = disk();
    let first = put(&disk, Manifest::first(Uuid::from_u128(7), 3));
    let read = Manifest::newest(&disk).unwrap().unwrap();
    let (from_memory, from_disk) = (put(&disk, first.next(2)), read.next(2));
    assert_eq!((first.parent, from_memory.parent), (None, from_disk.parent));
    let text = String::from_utf8(read_file(&disk, "manifest/1.json").unwrap()).unwrap();
    assert!(text.contains(&format!("{}", from_memory.parent.unwrap())), "{text}");
    assert_eq!(from_memory.kept_from, 1);
}

/// The text that earlier builds wrote is read, and written in the same way.
#[test]
fn the_text_does_not_change() {
    let text = include_str!("golden.json");
    assert_eq!(manifest(57).to_text().1, text);
}

#[test]
fn a_manifest_of_format_1_is_read() {
    let inner = format!(
        r#"{{"format":1,"version":6,"database":"{}","epoch":3,"checkpoint_ts":50,"first_log_segment":4,"log_before":{{"next_batch":8,"last_ts":49}},"tablet_count":2,"names":{{"path":"{}","version":6,"bytes":200,"crc32c":1}},"tablets":[{{"tablet":2,"files":[{{"path":"{}","version":5,"bytes":300,"crc32c":2}}]}}]}}"#,
        Uuid::from_u128(9),
        PackName::First { tablet: None, version: 6 }.path(),
        PackName::First { tablet: Some(TabletId(2)), version: 5 }.path(),
    );
    let text = format!("{{\"crc32c\":\"{:08x}\",\"manifest\":{inner}}}\n", crc32c::crc32c(inner.as_bytes()));
    let read = Manifest::of_text(text.as_bytes(), 6).unwrap();
    assert_eq!((read.epoch(), read.checkpoint_ts(), read.tablet_count), (3, 50, 2));
    assert_eq!(read.log_floor(), LogFloor { segment: 4, before: Some(LogBefore { next_batch: 8, last_ts: 49 }) });
    let covers: Vec<String> = read.packs.iter().map(|pack| pack.covers.to_string()).collect();
    assert_eq!(covers, ["2:0", "0:2,1:2"]);
    assert_eq!(read.names_pack(), Some(&read.packs[0]));
    // The next one has format 2, and the same files.
    let disk = disk();
    let next = put(&disk, read.next(7));
    assert_eq!((next.format, &next.packs), (2, &read.packs));
    assert_eq!(Manifest::newest(&disk).unwrap(), Some(next));
}

#[test]
fn a_power_cut_leaves_the_old_manifest_or_the_new_one() {
    for seed in 0..200 {
        for operation in 1..20 {
            let disk = disk();
            disk.sync_dir("").unwrap();
            manifest(1).put(&disk).unwrap();
            disk.power_off_at(disk.operations() + operation);
            let acknowledged = manifest(2).put(&disk).is_ok();
            let found = Manifest::newest(&disk.power_cut(seed)).unwrap().unwrap();
            assert!(found.version == 2 || (found.version == 1 && !acknowledged));
            // The manifest that was cut off can be written again.
            let disk = disk.power_cut(seed);
            manifest(found.version + 1).put(&disk).unwrap();
        }
    }
}
