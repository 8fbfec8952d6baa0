//! Segment files: blocks that each have a checksum, and a directory of them.
//!
//! ```text
//! header 64   magic 8 | format 4 | what 4: 0 names, n tablet n | version 8 | database 16 | zeros 20 | CRC 4
//! blocks      length 4 | CRC 4 of length and body | body …
//! directory   length 4 | CRC 4 | count, then (kind 1 | number | offset | length) for each block
//! trailer 24  offset of the directory 8 | its length 4 | zeros 4 | magic 4 | CRC 4 of the trailer before it
//! ```
//!
//! Fixed numbers are little-endian; in the directory they are varints. A block's offset is that of its length word, its
//! length that of its body. CRCs are CRC32C. The file's length and the CRC of all of it are in the manifest.
//!
//! A file is written once, front to back, and synced before anything names it.

use std::sync::Arc;

use mangrove_graph::{ElementKind, Result, TabletId};
use mangrove_store::image::{PageImage, PageName};
use uuid::Uuid;

use super::page::{kind_byte, put_image, read_image, read_kind};
use crate::codec::{Malformed, Reader, put_varint};
use crate::damage::{damaged, unknown_format};
use crate::disk::{Disk, DiskFile};
use crate::manifest::ManifestFile;

const MAGIC: [u8; 8] = *b"MGRVSEG\0";
const TRAILER_MAGIC: [u8; 4] = *b"GEND";
/// The version of this layout and of what is in the blocks.
pub(super) const FORMAT: u32 = 1;
const HEADER_BYTES: u64 = 64;
const TRAILER_BYTES: u64 = 24;
const FRAME_BYTES: u64 = 8;
/// How much is written at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// The directory of the files of checkpoints.
pub const SEGMENT_DIR: &str = "segment";

/// Which file: what it is about, and the version of the manifest that first names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct SegmentName {
    /// The tablet; `None` for the names of the graph.
    pub(super) tablet: Option<TabletId>,
    pub(super) version: u64,
}

impl SegmentName {
    /// The path. It begins with a hash, so that object stores spread the files.
    pub(super) fn path(self) -> String {
        let rest = match self.tablet {
            Some(TabletId(tablet)) => format!("{tablet:05}-{:016x}", self.version),
            None => format!("names-{:016x}", self.version),
        };
        format!("{SEGMENT_DIR}/{:08x}-{rest}", crc32c::crc32c(rest.as_bytes()))
    }

    fn word(self) -> u32 {
        self.tablet.map_or(0, |tablet| u32::from(tablet.0))
    }
}

/// Where a block lies in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockPlace {
    pub(super) offset: u64,
    /// Of the body.
    pub(super) length: u32,
}

impl BlockPlace {
    /// The bytes of the file that it takes.
    pub(super) fn bytes(self) -> u64 {
        FRAME_BYTES + u64::from(self.length)
    }
}

/// What a manifest says of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileInfo {
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) crc: u32,
}

fn frame(body: &[u8]) -> [u8; FRAME_BYTES as usize] {
    let length = (body.len() as u32).to_le_bytes();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&length), body).to_le_bytes();
    let mut frame = [0; FRAME_BYTES as usize];
    frame[..4].copy_from_slice(&length);
    frame[4..].copy_from_slice(&crc);
    frame
}

/// A file being written.
pub(super) struct SegmentWriter {
    file: Arc<dyn DiskFile>,
    path: String,
    buffer: Vec<u8>,
    /// What is in the file already.
    flushed: u64,
    crc: u32,
    blocks: Vec<(ElementKind, u32, BlockPlace)>,
    scratch: Vec<u8>,
}

impl SegmentWriter {
    /// Begins a file. One of the same name that was left by a checkpoint that did not come to its end is removed.
    pub(super) fn create(disk: &dyn Disk, name: SegmentName, database: Uuid) -> Result<Self> {
        let path = name.path();
        let file = match disk.create(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                disk.remove(&path)?;
                disk.create(&path)?
            }
            created => created?,
        };
        let mut header = Vec::with_capacity(HEADER_BYTES as usize);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&FORMAT.to_le_bytes());
        header.extend_from_slice(&name.word().to_le_bytes());
        header.extend_from_slice(&name.version.to_le_bytes());
        header.extend_from_slice(database.as_bytes());
        header.resize(HEADER_BYTES as usize - 4, 0);
        header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
        Ok(SegmentWriter { file, path, buffer: header, flushed: 0, crc: 0, blocks: Vec::new(), scratch: Vec::new() })
    }

    fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    fn append(&mut self, body: &[u8]) -> Result<BlockPlace> {
        let place = BlockPlace { offset: self.position(), length: body.len() as u32 };
        self.buffer.extend_from_slice(&frame(body));
        self.buffer.extend_from_slice(body);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(place)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(self.flushed, &self.buffer)?;
        self.crc = crc32c::crc32c_append(self.crc, &self.buffer);
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Adds the image of a page.
    pub(super) fn image(&mut self, image: &PageImage) -> Result<BlockPlace> {
        let mut body = std::mem::take(&mut self.scratch);
        body.clear();
        put_image(image, &mut body);
        let place = self.append(&body)?;
        self.scratch = body;
        self.blocks.push((image.name.kind, image.name.number, place));
        Ok(place)
    }

    /// Adds a block that is no page; a file has one at most.
    pub(super) fn block(&mut self, body: &[u8]) -> Result<()> {
        let place = self.append(body)?;
        self.blocks.push((ElementKind::Vertex, 0, place));
        Ok(())
    }

    /// Ends the file and syncs it. Its name is durable when the directory has been synced.
    pub(super) fn finish(mut self) -> Result<FileInfo> {
        let mut directory = Vec::new();
        put_varint(self.blocks.len() as u64, &mut directory);
        for (kind, number, place) in std::mem::take(&mut self.blocks) {
            directory.push(kind_byte(kind));
            put_varint(u64::from(number), &mut directory);
            put_varint(place.offset, &mut directory);
            put_varint(u64::from(place.length), &mut directory);
        }
        let place = self.append(&directory)?;
        let mut trailer = Vec::with_capacity(TRAILER_BYTES as usize);
        trailer.extend_from_slice(&place.offset.to_le_bytes());
        trailer.extend_from_slice(&place.length.to_le_bytes());
        trailer.extend_from_slice(&[0; 4]);
        trailer.extend_from_slice(&TRAILER_MAGIC);
        trailer.extend_from_slice(&crc32c::crc32c(&trailer).to_le_bytes());
        self.buffer.extend_from_slice(&trailer);
        self.flush()?;
        self.file.sync_data()?;
        Ok(FileInfo { path: self.path, bytes: self.flushed, crc: self.crc })
    }
}

/// A file being read.
pub(super) struct SegmentReader<'a> {
    disk: &'a dyn Disk,
    file: Arc<dyn DiskFile>,
    path: String,
    /// The blocks in the order of the file.
    pub(super) blocks: Vec<(PageName, BlockPlace)>,
}

impl<'a> SegmentReader<'a> {
    /// Opens a file that a manifest names, and reads its directory.
    pub(super) fn open(disk: &'a dyn Disk, name: SegmentName, bytes: u64, database: Uuid) -> Result<Self> {
        let path = name.path();
        let file = match disk.open_read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(damaged(disk, &path, 0, "the file is missing, and the manifest names it"));
            }
            opened => opened?,
        };
        let mut reader = SegmentReader { disk, file, path, blocks: Vec::new() };
        let found = reader.file.len()?;
        if found != bytes || bytes < HEADER_BYTES + FRAME_BYTES + TRAILER_BYTES {
            let what = format!("the file ends there, and the manifest says that it has {bytes} bytes");
            return Err(reader.damaged(found, what));
        }
        reader.check_header(name, database)?;
        let place = reader.directory_place(bytes)?;
        let directory = reader.body(place)?;
        let malformed = |m: Malformed| reader.damaged(place.offset + FRAME_BYTES + m.at, m.what);
        let blocks = read_directory(&directory, name.tablet.unwrap_or(TabletId(0)), place.offset).map_err(malformed)?;
        reader.blocks = blocks;
        Ok(reader)
    }

    /// The error for what is at an offset.
    pub(super) fn damaged(&self, offset: u64, what: impl std::fmt::Display) -> mangrove_graph::Error {
        damaged(self.disk, &self.path, offset, what)
    }

    fn exactly(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        match self.file.read_at(offset, &mut bytes)? {
            read if read == count => Ok(bytes),
            read => Err(self.damaged(offset + read as u64, "the file ends here")),
        }
    }

    fn check_header(&self, name: SegmentName, database: Uuid) -> Result<()> {
        let header = self.exactly(0, HEADER_BYTES as usize)?;
        if header[..8] != MAGIC {
            return Err(self.damaged(0, "this is not how a segment file begins"));
        }
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        if word(60) != crc32c::crc32c(&header[..60]) {
            return Err(self.damaged(0, "the checksum of the header is wrong"));
        }
        if word(8) != FORMAT {
            return Err(unknown_format(self.disk, &self.path, u64::from(word(8)), u64::from(FORMAT)));
        }
        if header[24..40] != *database.as_bytes() {
            return Err(self.damaged(24, "the file belongs to another database"));
        }
        let version = u64::from_le_bytes(header[16..24].try_into().expect("eight bytes"));
        if (word(12), version) != (name.word(), name.version) {
            return Err(self.damaged(12, "the file is another one than its name says"));
        }
        Ok(())
    }

    fn directory_place(&self, bytes: u64) -> Result<BlockPlace> {
        let at = bytes - TRAILER_BYTES;
        let trailer = self.exactly(at, TRAILER_BYTES as usize)?;
        let crc = u32::from_le_bytes(trailer[20..].try_into().expect("four bytes"));
        if trailer[16..20] != TRAILER_MAGIC || crc != crc32c::crc32c(&trailer[..20]) {
            return Err(self.damaged(at, "the checksum of the trailer is wrong"));
        }
        let offset = u64::from_le_bytes(trailer[..8].try_into().expect("eight bytes"));
        let length = u32::from_le_bytes(trailer[8..12].try_into().expect("four bytes"));
        let place = BlockPlace { offset, length };
        if offset < HEADER_BYTES || offset.checked_add(place.bytes()) != Some(at) {
            return Err(self.damaged(at, "the directory does not lie before the trailer"));
        }
        Ok(place)
    }

    /// The body of a block.
    pub(super) fn body(&self, place: BlockPlace) -> Result<Vec<u8>> {
        let mut bytes = self.exactly(place.offset, place.bytes() as usize)?;
        let body = bytes.split_off(FRAME_BYTES as usize);
        if bytes != frame(&body) {
            return Err(self.damaged(place.offset, "the checksum of the block is wrong"));
        }
        Ok(body)
    }

    /// The image of a page.
    pub(super) fn image(&self, name: PageName, place: BlockPlace) -> Result<PageImage> {
        let body = self.body(place)?;
        let mut reader = Reader::new(&body);
        let read = read_image(&mut reader).and_then(|image| reader.expect_end().map(|()| image));
        let image = read.map_err(|m| self.damaged(place.offset + FRAME_BYTES + m.at, m.what))?;
        match image.name == name {
            true => Ok(image),
            false => Err(self.damaged(place.offset, format!("here is {}, and not {name}", image.name))),
        }
    }
}

/// Reads every block of a file that a manifest names, those that no longer count included; how many there are.
pub(crate) fn check_file(
    disk: &dyn Disk,
    tablet: Option<TabletId>,
    file: &ManifestFile,
    database: Uuid,
) -> Result<u64> {
    let reader = SegmentReader::open(disk, SegmentName { tablet, version: file.version }, file.bytes, database)?;
    for &(page, place) in &reader.blocks {
        match tablet {
            Some(_) => drop(reader.image(page, place)?),
            None => drop(reader.body(place)?),
        }
    }
    Ok(reader.blocks.len() as u64)
}

fn read_directory(bytes: &[u8], tablet: TabletId, end: u64) -> Result<Vec<(PageName, BlockPlace)>, Malformed> {
    let mut reader = Reader::new(bytes);
    let count = reader.count()?;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = read_kind(&mut reader)?;
        let name = PageName { tablet, kind, number: reader.varint_u32()? };
        let outside = reader.malformed("a block outside of the file");
        let place = BlockPlace { offset: reader.varint()?, length: reader.varint_u32()? };
        let is_inside = place.offset >= HEADER_BYTES
            && place.offset.checked_add(place.bytes()).is_some_and(|block_end| block_end <= end);
        if !is_inside {
            return Err(outside);
        }
        blocks.push((name, place));
    }
    reader.expect_end()?;
    Ok(blocks)
}
