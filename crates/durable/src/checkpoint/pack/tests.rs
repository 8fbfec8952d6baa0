//! Packs come back as they were written, and every flipped bit is found and named.

use mangrove_graph::{ElementKind, ErrorKind, TabletId};
use mangrove_store::image::PageImage;
use proptest::prelude::*;
use uuid::Uuid;

use super::directory::{put_directory, read_directory};
use super::write::PackWriter;
use super::*;
use crate::checkpoint::Compression;
use crate::checkpoint::image::ImageReader;
use crate::disk::{Disk, SimDisk};
use crate::manifest::{CHECKPOINT_DIR, ManifestPack, PackName};
use crate::testing::empty_page;

const DATABASE: Uuid = Uuid::from_u128(5);

fn images() -> Vec<PageImage> {
    use ElementKind::{Edge, Vertex};
    [(Vertex, 1, 0), (Vertex, 1, 7), (Edge, 1, 3), (Vertex, 3, 2), (Edge, 3, 0)]
        .map(|(k, t, n)| empty_page(k, t, n))
        .into()
}

/// A disk with a pack of all kinds of blocks that are written.
fn written() -> (SimDisk, ManifestPack) {
    let disk = SimDisk::new();
    disk.create_dir(CHECKPOINT_DIR).unwrap();
    let mut writer = PlacedPackWriter::create(&disk, (3, 17), DATABASE, Compression::Zstd).unwrap();
    for image in images() {
        writer.image(&image).unwrap();
    }
    writer.catalog(b"names").unwrap();
    let pack = writer.finish().unwrap();
    disk.sync_dir(CHECKPOINT_DIR).and_then(|()| disk.sync_dir("")).unwrap();
    assert_eq!(pack.blocks.len(), 6);
    (disk, pack.entry)
}

#[test]
fn blocks_come_back() {
    let (disk, entry) = written();
    assert_eq!(entry.path(), PackName::Pack { incarnation: 3, counter: 17 }.path());
    assert!(entry.path().starts_with("pack/") && entry.path().ends_with("-0000000000000003-0000000000000011"));
    assert_eq!(entry.covers.to_string(), "0:1,3,1:1,3,2:0");
    let reader = open_pack(&disk, &entry, DATABASE).unwrap();
    assert!(reader.blocks.is_sorted_by_key(|(name, _)| *name));
    let mut decoder = ImageReader::default();
    let mut blocks: Vec<_> = reader.blocks.iter().copied().filter(|(name, _)| name.page().is_some()).collect();
    blocks.sort_by_key(|(_, position)| position.offset);
    let mut found = Vec::new();
    reader
        .bodies(&blocks, |name, position, body| {
            found.push(reader.image(&mut decoder, name.page().unwrap(), position, body)?);
            Ok(())
        })
        .unwrap();
    assert_eq!(found, images());
    assert_eq!(reader.catalog(|bytes| Ok(bytes.to_vec())).unwrap(), b"names");
    assert_eq!(check_pack(&disk, &entry, DATABASE).unwrap(), 6);
    assert!(open_pack(&disk, &entry, Uuid::from_u128(6)).is_err());
    assert!(open_pack(&disk, &ManifestPack { counter: 18, ..entry }, DATABASE).is_err());
}

#[test]
fn every_flipped_bit_and_every_cut_is_found_and_named() {
    let (disk, entry) = written();
    let path = entry.path();
    let mut kinds = std::collections::BTreeSet::new();
    for at in 0..entry.bytes {
        let other = disk.power_cut(0);
        other.flip_bit(&path, at, (at % 8) as u8).unwrap();
        let error = check_pack(&other, &entry, DATABASE).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Damaged), "byte {at}: {error}");
        assert!(error.message().contains(&format!("{path} is damaged at byte")), "byte {at}: {error}");
        for kind in [
            "the header",
            "the image of page 7 of vertices",
            "the image of page 3 of edges",
            "the catalog",
            "the directory",
            "the trailer",
        ] {
            if error.message().contains(kind) {
                kinds.insert(kind);
            }
        }
        let other = disk.power_cut(0);
        other.open(&path).unwrap().set_len(at).unwrap();
        let error = check_pack(&other, &entry, DATABASE).unwrap_err();
        assert!(error.kind() == ErrorKind::Damaged && error.message().contains(&path), "cut at {at}: {error}");
    }
    assert_eq!(kinds.len(), 6, "{kinds:?}");
}

/// A pack with a block of a kind that this version does not write.
fn with_kind(kind: u8) -> (SimDisk, ManifestPack) {
    let disk = SimDisk::new();
    disk.create_dir(CHECKPOINT_DIR).unwrap();
    let mut writer = PackWriter::new(1, 1, DATABASE, Compression::None);
    writer.image(&empty_page(ElementKind::Vertex, 1, 0)).unwrap();
    writer.add(BlockName { kind, tablet: 1, number: 0 }, b"something").unwrap();
    let blocks = writer.finish().unwrap();
    let entry = ManifestPack {
        incarnation: 1,
        counter: 1,
        bytes: writer.bytes(),
        crc32c: crc32c::crc32c(writer.ready()),
        format: u64::from(FORMAT),
        live: 0,
        covers: crate::manifest::Covers::of(blocks.iter().map(|(name, _)| (name.kind, name.tablet))),
        database: None,
        path: None,
    };
    let file = disk.create(&entry.path()).unwrap();
    file.write_at(0, writer.ready()).unwrap();
    (disk, entry)
}

#[test]
fn blocks_that_can_be_made_again_are_skipped_and_unknown_ones_are_refused() {
    let (disk, entry) = with_kind(5);
    assert_eq!(check_pack(&disk, &entry, DATABASE).unwrap(), 2);
    for kind in [3, 4, 7, 8] {
        let (disk, entry) = with_kind(kind);
        assert!(open_pack(&disk, &entry, DATABASE).is_ok(), "recovery does not read it");
        assert_eq!(check_pack(&disk, &entry, DATABASE).unwrap_err().kind(), ErrorKind::Damaged, "a check does");
    }
    for kind in [6, 9, 255] {
        let (disk, entry) = with_kind(kind);
        let Err(error) = open_pack(&disk, &entry, DATABASE) else { panic!("kind {kind} is not known") };
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains(&format!("kind {kind}")), "{error}");
    }
}

#[test]
fn names_are_those_of_paths() {
    let first = |tablet: Option<u16>| PackName::First { tablet: tablet.map(TabletId), version: 3 };
    for name in [PackName::Pack { incarnation: 1, counter: u64::MAX }, first(Some(1)), first(None)] {
        assert_eq!(PackName::of_path(&name.path()), Some(name));
    }
    // As the database in the tests of formats has them.
    assert_eq!(first(Some(1)).path(), "segment/e7cfcb8e-00001-0000000000000003");
    assert_eq!(first(None).path(), "segment/ed7f318e-names-0000000000000003");
    for path in
        ["", "pack/x", "pack/00000000-0000000000000001-0000000000000002", "segment/e7cfcb8e-00002-0000000000000003"]
    {
        assert_eq!(PackName::of_path(path), None);
    }
}

proptest! {
    #[test]
    fn any_directory_comes_back(blocks in prop::collection::btree_map((any::<u8>(), any::<u16>(), any::<u32>()), (0..1_u64 << 40, any::<u32>()), 0..40)) {
        let mut blocks: Vec<_> = blocks.into_iter().map(|((kind, tablet, number), (offset, length))| {
            (BlockName { kind, tablet, number }, BlockPosition { offset: HEADER_BYTES + offset, length })
        }).collect();
        let mut bytes = Vec::new();
        blocks.reverse();
        put_directory(&mut blocks, &mut bytes);
        prop_assert_eq!(read_directory(&bytes, u64::MAX).unwrap(), blocks);
        for at in 0..bytes.len() {
            prop_assert!(read_directory(&bytes[..at], u64::MAX).is_err());
        }
    }

    #[test]
    fn bytes_that_are_no_directory_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(mut blocks) = read_directory(&bytes, 1 << 40) {
            let mut again = Vec::new();
            put_directory(&mut blocks, &mut again);
            prop_assert_eq!(read_directory(&again, 1 << 40), Ok(blocks));
        }
    }
}
