//! Targets for the decoders of files and records in a database's directory.

use mangrove_durable::content;
use mangrove_durable::disk::{Disk, SimDisk};
use mangrove_durable::log::LogFloor;
use mangrove_durable::log::read::read;
use mangrove_durable::manifest::{MANIFEST_DIR, Manifest};
use uuid::Uuid;

/// The position in a segment's header of the database's identity.
const DATABASE: std::ops::Range<usize> = 16..32;

/// The position in a segment's header of the segment's number.
const SEQ: std::ops::Range<usize> = 40..48;

/// A record of the log.
pub fn record(bytes: &[u8]) -> bool {
    content::record(bytes).is_ok()
}

/// The image of a page.
pub fn page(bytes: &[u8]) -> bool {
    content::page(bytes).is_ok()
}

/// The image of a page in a file of format 1.
pub fn page_of_version_1(bytes: &[u8]) -> bool {
    content::page_of_version_1(bytes).is_ok()
}

/// The directory of a pack.
pub fn directory(bytes: &[u8]) -> bool {
    content::directory(bytes).is_ok()
}

/// The names and indexes of a graph, as a checkpoint file has them.
pub fn names(bytes: &[u8]) -> bool {
    content::names(bytes).is_ok()
}

/// Values, contents of cells, ids, indexes.
pub fn values(bytes: &[u8]) -> bool {
    content::values(bytes).is_ok()
}

/// A log segment with its headers and checksums.
pub fn segment(bytes: &[u8]) -> bool {
    // The file is named by the number in the header: a reader refuses a segment with another number.
    let seq = bytes.get(SEQ).and_then(|seq| Some(u64::from_le_bytes(seq.try_into().ok()?))).unwrap_or(1);
    let disk = disk_with(&format!("wal/{seq:016x}"), bytes);
    // Read as a segment of its own database; other tests check that a segment of another database is refused.
    let database = bytes.get(DATABASE).and_then(|id| Uuid::from_slice(id).ok()).unwrap_or_default();
    read(&disk, database, LogFloor::of_segment(seq), &mut |_, _| Ok(())).is_ok()
}

/// A manifest with its checksum.
pub fn manifest(bytes: &[u8]) -> bool {
    let disk = disk_with(&Manifest::path(version(bytes)), bytes);
    Manifest::newest(&disk).is_ok()
}

fn disk_with(path: &str, bytes: &[u8]) -> SimDisk {
    let disk = SimDisk::new();
    let written = ["wal", MANIFEST_DIR].iter().try_for_each(|directory| disk.create_dir(directory));
    let written = written.and_then(|()| disk.create(path)?.write_at(0, bytes));
    written.expect("a simulated disk takes what it is given");
    disk
}

/// The number in a manifest's header.
fn version(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let digits = text.split_once("\"version\":").map_or("", |(_, rest)| rest);
    digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(1)
}
