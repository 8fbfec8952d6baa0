//! Packs in their place: written as the files of a directory or the objects of a home, and opened from there.

use mangrove_graph::Result;
use mangrove_store::image::PageImage;
use uuid::Uuid;

use super::directory::PlacedBlock;
use super::name::BlockName;
use super::read::PackReader;
use super::write::{PackWriter, path};
use super::{BlockPosition, FIRST_FORMAT, FORMAT};
use crate::checkpoint::compress::Compression;
use crate::checkpoint::image::ImageReader;
use crate::checkpoint::place::{NewPack, Place};
use crate::disk::Disk;
use crate::manifest::{Covers, ManifestPack, PackNumber};

/// Bytes that are written at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// A pack that is being written. No manifest names it before [`PlacedPackWriter::finish`].
pub(crate) struct PlacedPackWriter<'a> {
    pack: Box<dyn NewPack + 'a>,
    incarnation: u64,
    counter: u64,
    writer: PackWriter,
    written: u64,
    crc: u32,
}

/// A pack that was written, and its blocks.
#[derive(Debug)]
pub(crate) struct WrittenPack {
    pub(crate) entry: ManifestPack,
    pub(crate) blocks: Vec<PlacedBlock>,
}

impl<'a> PlacedPackWriter<'a> {
    /// Begins a pack that no other has the name of (LOG-28).
    pub(crate) fn create<P: Place + ?Sized>(
        place: &'a P,
        (incarnation, counter): (u64, u64),
        database: Uuid,
        compression: Compression,
    ) -> Result<Self> {
        let pack = place.begin_pack(&path(incarnation, counter))?;
        let writer = PackWriter::new(incarnation, counter, database, compression);
        Ok(PlacedPackWriter { pack, incarnation, counter, writer, written: 0, crc: 0 })
    }

    /// Leaves the directory and the catalog as they are (LOG-101).
    pub(crate) fn leave_plain(&mut self) {
        self.writer.leave_plain();
    }

    /// The numbers that name the pack.
    pub(crate) fn number(&self) -> PackNumber {
        PackNumber { incarnation: self.incarnation, counter: self.counter }
    }

    /// Bytes of the pack up to here.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Adds the image of a page.
    pub(crate) fn image(&mut self, image: &PageImage) -> Result<BlockPosition> {
        let position = self.writer.image(image)?;
        if self.writer.ready().len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(position)
    }

    /// Adds a block.
    pub(crate) fn add(&mut self, name: BlockName, body: &[u8]) -> Result<BlockPosition> {
        let position = self.writer.add(name, body)?;
        if self.writer.ready().len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(position)
    }

    /// Adds names, indexes and rules.
    pub(crate) fn catalog(&mut self, names: &[u8]) -> Result<BlockPosition> {
        self.writer.catalog(names)
    }

    fn flush(&mut self) -> Result<()> {
        let ready = self.writer.ready();
        self.pack.write(ready)?;
        self.crc = crc32c::crc32c_append(self.crc, ready);
        self.written += ready.len() as u64;
        self.writer.take();
        Ok(())
    }

    /// Ends the pack. Its name is durable after [`Place::keep_packs`].
    pub(crate) fn finish(mut self) -> Result<WrittenPack> {
        let blocks = self.writer.finish()?;
        self.flush()?;
        self.pack.finish()?;
        let entry = ManifestPack {
            incarnation: self.incarnation,
            counter: self.counter,
            bytes: self.written,
            crc32c: self.crc,
            format: u64::from(FORMAT),
            live: blocks.iter().map(|(_, position)| position.bytes()).sum(),
            covers: Covers::of(blocks.iter().map(|(name, _)| (name.kind, name.tablet))),
            path: None,
            database: None,
        };
        Ok(WrittenPack { entry, blocks })
    }
}

/// Opens a pack, or a file of format 1, that a manifest of this database names. A pack that a restore has copied names the
/// database that it was copied from (LOG-83).
pub(crate) fn open_pack<'a, P: Place + ?Sized>(
    place: &'a P,
    pack: &ManifestPack,
    database: Uuid,
) -> Result<PackReader<'a>> {
    let name = pack.name();
    let database = pack.database.unwrap_or(database);
    PackReader::open(place.open_pack(name.path(), pack.bytes)?, name, pack.bytes, database)
}

/// Reads every block of a pack that a manifest names, including blocks that newer ones replace. Returns the number of
/// blocks.
pub(crate) fn check_pack<P: Place + ?Sized>(place: &P, pack: &ManifestPack, database: Uuid) -> Result<u64> {
    let reader = open_pack(place, pack, database)?;
    let covers = Covers::of(reader.blocks.iter().map(|(name, _)| (name.kind, name.tablet)));
    // A manifest of format 1 does not say of which kinds the pages of a file are.
    if pack.format != u64::from(FIRST_FORMAT) && covers != pack.covers {
        return Err(reader.damaged(0, format_args!("it covers {covers}, and the manifest says {}", pack.covers)));
    }
    let mut blocks = reader.blocks.clone();
    blocks.sort_unstable_by_key(|(_, position)| position.offset);
    let mut images = ImageReader::default();
    reader.bodies(&blocks, |name: BlockName, position, body| {
        if let Some(page) = name.page() {
            reader.check_image(&mut images, page, position, body)?;
        } else if let Some(page) = name.topology_page() {
            reader.topology(page, position, body)?;
        } else if let Some(page) = name.delta_page() {
            reader.delta(page, position, body)?;
        } else if name.is_run() {
            reader.run(name, position, body)?;
        }
        Ok(())
    })?;
    Ok(blocks.len() as u64)
}

/// A block of a pack, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockEntry {
    /// What it is: the image of a page, the catalog, or a block of a kind that can be made again.
    pub name: String,
    /// The offset of its frame in bytes.
    pub offset: u64,
    /// The bytes that it takes, with its frame.
    pub bytes: u64,
}

/// The blocks of a pack that a manifest names, in the order of their offsets.
///
/// # Errors
///
/// If header, directory or trailer of the pack are damaged. The blocks are not read.
pub fn list_blocks(disk: &dyn Disk, pack: &ManifestPack, database: Uuid) -> Result<Vec<BlockEntry>> {
    list_blocks_in(disk, pack, database)
}

/// The blocks of a pack in a directory or a home.
pub(crate) fn list_blocks_in<P: Place + ?Sized>(
    place: &P,
    pack: &ManifestPack,
    database: Uuid,
) -> Result<Vec<BlockEntry>> {
    let mut blocks = open_pack(place, pack, database)?.blocks;
    blocks.sort_unstable_by_key(|(_, position)| position.offset);
    let entry = |(name, position): (BlockName, BlockPosition)| BlockEntry {
        name: name.to_string(),
        offset: position.offset,
        bytes: position.bytes(),
    };
    Ok(blocks.into_iter().map(entry).collect())
}
