//! Packs as files of a [`Disk`].

use std::sync::Arc;

use mangrove_graph::Result;
use mangrove_store::image::PageImage;
use uuid::Uuid;

use super::directory::PlacedBlock;
use super::name::BlockName;
use super::read::{PackReader, RangeSource};
use super::write::{PackWriter, path};
use super::{BlockPosition, FIRST_FORMAT, FORMAT};
use crate::checkpoint::compress::Compression;
use crate::checkpoint::image::ImageReader;
use crate::damage::damaged;
use crate::disk::{Disk, DiskFile};
use crate::manifest::{Covers, ManifestPack};

/// Bytes that are written at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// A pack that is being written as a file. No manifest names it before [`DiskPackWriter::finish`].
pub(crate) struct DiskPackWriter {
    file: Arc<dyn DiskFile>,
    incarnation: u64,
    counter: u64,
    writer: PackWriter,
    written: u64,
    crc: u32,
}

/// A pack that was written, and its blocks.
pub(crate) struct WrittenPack {
    pub(crate) entry: ManifestPack,
    pub(crate) blocks: Vec<PlacedBlock>,
}

impl DiskPackWriter {
    /// Begins the file of a pack that no other has the name of (LOG-28).
    pub(crate) fn create(
        disk: &dyn Disk,
        (incarnation, counter): (u64, u64),
        database: Uuid,
        compression: Compression,
    ) -> Result<Self> {
        let file = disk.create(&path(incarnation, counter))?;
        let writer = PackWriter::new(incarnation, counter, database, compression);
        Ok(DiskPackWriter { file, incarnation, counter, writer, written: 0, crc: 0 })
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

    /// Adds names, indexes and rules.
    pub(crate) fn catalog(&mut self, names: &[u8]) -> Result<BlockPosition> {
        self.writer.catalog(names)
    }

    fn flush(&mut self) -> Result<()> {
        let ready = self.writer.ready();
        self.file.write_at(self.written, ready)?;
        self.crc = crc32c::crc32c_append(self.crc, ready);
        self.written += ready.len() as u64;
        self.writer.take();
        Ok(())
    }

    /// Ends the file and syncs it. Its name is durable when the directory has been synced.
    pub(crate) fn finish(mut self) -> Result<WrittenPack> {
        let blocks = self.writer.finish()?;
        self.flush()?;
        self.file.sync_data()?;
        let entry = ManifestPack {
            incarnation: self.incarnation,
            counter: self.counter,
            bytes: self.written,
            crc32c: self.crc,
            format: u64::from(FORMAT),
            live: blocks.iter().map(|(_, position)| position.bytes()).sum(),
            covers: Covers::of(blocks.iter().map(|(name, _)| (name.kind, name.tablet))),
            path: None,
        };
        Ok(WrittenPack { entry, blocks })
    }
}

/// A file, as the source of a pack.
///
/// It keeps no handle: a graph may have more packs than a process may have open files.
pub(crate) struct DiskSource<'a> {
    disk: &'a dyn Disk,
    path: String,
}

impl RangeSource for DiskSource<'_> {
    fn length(&self) -> Result<u64> {
        match self.disk.open_read(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(damaged(self.disk, &self.path, 0, "the file is missing, and the manifest names it"))
            }
            opened => Ok(opened?.len()?),
        }
    }

    fn read(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        let read = self.disk.open_read(&self.path)?.read_at(offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    fn describe(&self) -> String {
        self.disk.describe(&self.path)
    }
}

/// Opens a pack, or a file of format 1, that a manifest names.
pub(crate) fn open_pack<'a>(
    disk: &'a dyn Disk,
    pack: &ManifestPack,
    database: Uuid,
) -> Result<PackReader<DiskSource<'a>>> {
    let name = pack.name();
    PackReader::open(DiskSource { disk, path: name.path() }, name, pack.bytes, database)
}

/// Reads every block of a pack that a manifest names, including blocks that newer ones replace. Returns the number of
/// blocks.
pub(crate) fn check_pack(disk: &dyn Disk, pack: &ManifestPack, database: Uuid) -> Result<u64> {
    let reader = open_pack(disk, pack, database)?;
    let covers = Covers::of(reader.blocks.iter().map(|(name, _)| (name.kind, name.tablet)));
    // A manifest of format 1 does not say of which kinds the pages of a file are.
    if pack.format != u64::from(FIRST_FORMAT) && covers != pack.covers {
        return Err(reader.damaged(0, format_args!("it covers {covers}, and the manifest says {}", pack.covers)));
    }
    let mut blocks = reader.blocks.clone();
    blocks.sort_unstable_by_key(|(_, position)| position.offset);
    let mut images = ImageReader::default();
    reader.bodies(&blocks, |name: BlockName, position, body| match name.page() {
        Some(page) => reader.check_image(&mut images, page, position, body).map(drop),
        None => Ok(()),
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
    let mut blocks = open_pack(disk, pack, database)?.blocks;
    blocks.sort_unstable_by_key(|(_, position)| position.offset);
    let entry = |(name, position): (BlockName, BlockPosition)| BlockEntry {
        name: name.to_string(),
        offset: position.offset,
        bytes: position.bytes(),
    };
    Ok(blocks.into_iter().map(entry).collect())
}
