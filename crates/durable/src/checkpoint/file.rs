//! Checkpoint files: blocks with a checksum each, and a table of the blocks.
//!
//! ```text
//! header 64   magic 8 | format 4 | what 4: 0 names, n tablet n | version 8 | database 16 | zeros 20 | CRC 4
//! blocks      length 4 | CRC 4 of length and body | body …
//! table       length 4 | CRC 4 | count, then (kind 1 | number | offset | length) for each block
//! trailer 24  offset of the table 8 | its length 4 | zeros 4 | magic 4 | CRC 4 of the trailer before it
//! ```
//!
//! Fixed numbers are little-endian; the table has varints. A block's offset is that of its length word, its length that
//! of its body. CRCs are CRC32C. The manifest has the length of the file and the CRC of all of it.
//!
//! A file is written once, front to back, and synced before a manifest names it (LOG-22).

use std::sync::Arc;

use mangrove_graph::{ElementKind, Result, TabletId};
use mangrove_store::image::{PageImage, PageName};
use uuid::Uuid;

use super::image::{kind_byte, put_image_of_version_1, read_image_of_version_1, read_kind};
use crate::codec::{Malformed, Reader, put_varint};
use crate::damage::{damaged, unknown_format};
use crate::disk::{Disk, DiskFile};
use crate::manifest::ManifestFile;

const MAGIC: [u8; 8] = *b"MGRVSEG\0";
const TRAILER_MAGIC: [u8; 4] = *b"GEND";
/// The version of this layout and of the content of the blocks.
pub(super) const FORMAT: u32 = 1;
const HEADER_BYTES: u64 = 64;
const TRAILER_BYTES: u64 = 24;
const FRAME_BYTES: u64 = 8;
/// Bytes that are written at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// The directory of checkpoint files.
pub const CHECKPOINT_DIR: &str = "segment";

/// The name of a checkpoint file: its content, and the version of the manifest that first names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct CheckpointFileName {
    /// The tablet; `None` for the names of the graph.
    pub(super) tablet: Option<TabletId>,
    pub(super) version: u64,
}

impl CheckpointFileName {
    /// The path. It begins with a hash, so that object stores spread the files.
    pub(super) fn path(self) -> String {
        let rest = match self.tablet {
            Some(TabletId(tablet)) => format!("{tablet:05}-{:016x}", self.version),
            None => format!("names-{:016x}", self.version),
        };
        format!("{CHECKPOINT_DIR}/{:08x}-{rest}", crc32c::crc32c(rest.as_bytes()))
    }

    fn word(self) -> u32 {
        self.tablet.map_or(0, |tablet| u32::from(tablet.0))
    }
}

/// Where a block lies in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockPosition {
    pub(super) offset: u64,
    /// Bytes of the body.
    pub(super) length: u32,
}

impl BlockPosition {
    /// Bytes of the file that the block takes.
    pub(super) fn bytes(self) -> u64 {
        FRAME_BYTES + u64::from(self.length)
    }
}

/// The facts about a file that a manifest notes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct WrittenFile {
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

/// A file being written. No manifest names it before [`CheckpointFileWriter::finish`].
pub(super) struct CheckpointFileWriter {
    file: Arc<dyn DiskFile>,
    path: String,
    buffer: Vec<u8>,
    /// Bytes that are in the file.
    flushed: u64,
    crc: u32,
    blocks: Vec<(ElementKind, u32, BlockPosition)>,
    scratch: Vec<u8>,
}

impl CheckpointFileWriter {
    /// Begins a file. A file of the same name that a failed checkpoint left is removed.
    pub(super) fn create(disk: &dyn Disk, name: CheckpointFileName, database: Uuid) -> Result<Self> {
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
        Ok(CheckpointFileWriter {
            file,
            path,
            buffer: header,
            flushed: 0,
            crc: 0,
            blocks: Vec::new(),
            scratch: Vec::new(),
        })
    }

    fn end(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    fn append(&mut self, body: &[u8]) -> Result<BlockPosition> {
        let position = BlockPosition { offset: self.end(), length: body.len() as u32 };
        self.buffer.extend_from_slice(&frame(body));
        self.buffer.extend_from_slice(body);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(position)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(self.flushed, &self.buffer)?;
        self.crc = crc32c::crc32c_append(self.crc, &self.buffer);
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Adds a page image.
    pub(super) fn image(&mut self, image: &PageImage) -> Result<BlockPosition> {
        let mut body = std::mem::take(&mut self.scratch);
        body.clear();
        put_image_of_version_1(image, &mut body);
        let position = self.append(&body)?;
        self.scratch = body;
        self.blocks.push((image.name.kind, image.name.number, position));
        Ok(position)
    }

    /// Adds a block that is no page; a file has at most one.
    pub(super) fn block(&mut self, body: &[u8]) -> Result<()> {
        let position = self.append(body)?;
        self.blocks.push((ElementKind::Vertex, 0, position));
        Ok(())
    }

    /// Ends the file and syncs it. Its name is durable when the directory has been synced.
    pub(super) fn finish(mut self) -> Result<WrittenFile> {
        let mut table = Vec::new();
        put_varint(self.blocks.len() as u64, &mut table);
        for (kind, number, position) in std::mem::take(&mut self.blocks) {
            table.push(kind_byte(kind));
            put_varint(u64::from(number), &mut table);
            put_varint(position.offset, &mut table);
            put_varint(u64::from(position.length), &mut table);
        }
        let position = self.append(&table)?;
        let mut trailer = Vec::with_capacity(TRAILER_BYTES as usize);
        trailer.extend_from_slice(&position.offset.to_le_bytes());
        trailer.extend_from_slice(&position.length.to_le_bytes());
        trailer.extend_from_slice(&[0; 4]);
        trailer.extend_from_slice(&TRAILER_MAGIC);
        trailer.extend_from_slice(&crc32c::crc32c(&trailer).to_le_bytes());
        self.buffer.extend_from_slice(&trailer);
        self.flush()?;
        self.file.sync_data()?;
        Ok(WrittenFile { path: self.path, bytes: self.flushed, crc: self.crc })
    }
}

/// A file being read. Its header, trailer and block table have been checked.
pub(super) struct CheckpointFileReader<'a> {
    disk: &'a dyn Disk,
    file: Arc<dyn DiskFile>,
    path: String,
    /// The blocks in the order of the file.
    pub(super) blocks: Vec<(PageName, BlockPosition)>,
}

impl<'a> CheckpointFileReader<'a> {
    /// Opens a file that a manifest names, and reads its block table.
    pub(super) fn open(disk: &'a dyn Disk, name: CheckpointFileName, bytes: u64, database: Uuid) -> Result<Self> {
        let path = name.path();
        let file = match disk.open_read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(damaged(disk, &path, 0, "the file is missing, and the manifest names it"));
            }
            opened => opened?,
        };
        let mut reader = CheckpointFileReader { disk, file, path, blocks: Vec::new() };
        let found = reader.file.len()?;
        if found != bytes || bytes < HEADER_BYTES + FRAME_BYTES + TRAILER_BYTES {
            let what = format!("the file ends there, and the manifest says that it has {bytes} bytes");
            return Err(reader.damaged(found, what));
        }
        reader.check_header(name, database)?;
        let position = reader.block_table_position(bytes)?;
        let table = reader.body(position)?;
        let malformed = |m: Malformed| reader.damaged(position.offset + FRAME_BYTES + m.at, m.what);
        let blocks =
            read_block_table(&table, name.tablet.unwrap_or(TabletId(0)), position.offset).map_err(malformed)?;
        reader.blocks = blocks;
        Ok(reader)
    }

    /// The error for the content at an offset.
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

    fn check_header(&self, name: CheckpointFileName, database: Uuid) -> Result<()> {
        let header = self.exactly(0, HEADER_BYTES as usize)?;
        if header[..8] != MAGIC {
            return Err(self.damaged(0, "this is no checkpoint file: its first bytes differ"));
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
            return Err(self.damaged(12, "the header belongs to another file than the name"));
        }
        Ok(())
    }

    fn block_table_position(&self, bytes: u64) -> Result<BlockPosition> {
        let at = bytes - TRAILER_BYTES;
        let trailer = self.exactly(at, TRAILER_BYTES as usize)?;
        let crc = u32::from_le_bytes(trailer[20..].try_into().expect("four bytes"));
        if trailer[16..20] != TRAILER_MAGIC || crc != crc32c::crc32c(&trailer[..20]) {
            return Err(self.damaged(at, "the checksum of the trailer is wrong"));
        }
        let offset = u64::from_le_bytes(trailer[..8].try_into().expect("eight bytes"));
        let length = u32::from_le_bytes(trailer[8..12].try_into().expect("four bytes"));
        let position = BlockPosition { offset, length };
        if offset < HEADER_BYTES || offset.checked_add(position.bytes()) != Some(at) {
            return Err(self.damaged(at, "the block table does not end where the trailer begins"));
        }
        Ok(position)
    }

    /// Reads the body of a block.
    pub(super) fn body(&self, position: BlockPosition) -> Result<Vec<u8>> {
        let mut bytes = self.exactly(position.offset, position.bytes() as usize)?;
        let body = bytes.split_off(FRAME_BYTES as usize);
        if bytes != frame(&body) {
            return Err(self.damaged(position.offset, "the checksum of the block is wrong"));
        }
        Ok(body)
    }

    /// Reads a page image.
    pub(super) fn image(&self, name: PageName, position: BlockPosition) -> Result<PageImage> {
        let body = self.body(position)?;
        let mut reader = Reader::new(&body);
        let read = read_image_of_version_1(&mut reader).and_then(|image| reader.expect_end().map(|()| image));
        let image = read.map_err(|m| self.damaged(position.offset + FRAME_BYTES + m.at, m.what))?;
        match image.name == name {
            true => Ok(image),
            false => Err(self.damaged(position.offset, format!("expected {name}, found {}", image.name))),
        }
    }
}

/// Reads every block of a file that a manifest names, including blocks that a newer image replaces. Returns the number
/// of blocks.
pub(crate) fn check_file(
    disk: &dyn Disk,
    tablet: Option<TabletId>,
    file: &ManifestFile,
    database: Uuid,
) -> Result<u64> {
    let reader =
        CheckpointFileReader::open(disk, CheckpointFileName { tablet, version: file.version }, file.bytes, database)?;
    for &(page, position) in &reader.blocks {
        match tablet {
            Some(_) => drop(reader.image(page, position)?),
            None => drop(reader.body(position)?),
        }
    }
    Ok(reader.blocks.len() as u64)
}

fn read_block_table(bytes: &[u8], tablet: TabletId, end: u64) -> Result<Vec<(PageName, BlockPosition)>, Malformed> {
    let mut reader = Reader::new(bytes);
    let count = reader.count()?;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = read_kind(&mut reader)?;
        let name = PageName { tablet, kind, number: reader.varint_u32()? };
        let outside = reader.malformed("a block outside of the file");
        let position = BlockPosition { offset: reader.varint()?, length: reader.varint_u32()? };
        let is_inside = position.offset >= HEADER_BYTES
            && position.offset.checked_add(position.bytes()).is_some_and(|block_end| block_end <= end);
        if !is_inside {
            return Err(outside);
        }
        blocks.push((name, position));
    }
    reader.expect_end()?;
    Ok(blocks)
}
