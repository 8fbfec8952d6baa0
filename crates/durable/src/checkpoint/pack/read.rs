//! Reading packs, and checkpoint files of format 1, by ranges. Where the bytes come from is the place's
//! ([`RangeSource`]).

use std::ops::Range;

use mangrove_graph::{Result, TabletId};
use mangrove_store::image::{PageImage, PageName};
use uuid::Uuid;

use super::directory::{PlacedBlock, read_directory};
use super::name::BlockName;
use super::{
    BlockPosition, FIRST_FORMAT, FORMAT, FRAME_BYTES, HEADER_BYTES, MAGIC, TRAILER_BYTES, TRAILER_MAGIC, frame,
};
use crate::checkpoint::compress::{Unpacker, read_packed};
use crate::checkpoint::image::{ImageReader, read_image_of_version_1, read_kind};
use crate::checkpoint::place::{RangeSource, ReadShape};
use crate::codec::{Malformed, Reader};
use crate::damage::{damaged_in, unknown_format_in};
use crate::manifest::PackName;
use crate::open::runs::{Entry, RunHead, read_run};
use crate::open::{TopologyBlock, TopologyDelta, read_delta, read_topology};

/// A pack or a file of format 1 that is being read. Its header, trailer and directory have been checked.
pub(crate) struct PackReader<'a> {
    source: Box<dyn RangeSource + 'a>,
    is_first_format: bool,
    /// The blocks, sorted by name; those of a file of format 1 in the order of the file.
    pub(crate) blocks: Vec<PlacedBlock>,
}

impl<'a> PackReader<'a> {
    /// Opens a pack whose manifest says that it has this name and this many bytes.
    pub(crate) fn open(source: Box<dyn RangeSource + 'a>, name: PackName, bytes: u64, database: Uuid) -> Result<Self> {
        let is_first_format = matches!(name, PackName::First { .. });
        let mut reader = PackReader { source, is_first_format, blocks: Vec::new() };
        let found = reader.source.length()?;
        if found != bytes || bytes < HEADER_BYTES + FRAME_BYTES + TRAILER_BYTES {
            let what = format!("the file ends there, and the manifest says that it has {bytes} bytes");
            return Err(reader.damaged(found.min(bytes), what));
        }
        reader.check_header(name, database)?;
        let position = reader.directory_position(bytes)?;
        let body = reader.read_body("the directory", position)?;
        let read = match name {
            PackName::Pack { .. } => {
                read_packed(&body, &mut Unpacker::default(), |directory| read_directory(directory, position.offset))
            }
            PackName::First { tablet, .. } => read_block_table(&body, tablet, position.offset),
        };
        reader.blocks = read.map_err(|m| reader.malformed(position, m))?;
        let unknown = reader
            .blocks
            .iter()
            .find(|(name, _)| name.page().is_none() && *name != BlockName::CATALOG && !name.may_be_skipped());
        match unknown {
            // LOG-27.
            Some((name, _)) => Err(mangrove_graph::Error::unsupported(format!(
                "{} has {name}, and this version of Mangrove does not know blocks of that kind; open the graph with the \
                 version that wrote it, or a later one",
                reader.source.describe()
            ))),
            None => Ok(reader),
        }
    }

    /// The error for the content at an offset.
    pub(crate) fn damaged(&self, offset: u64, what: impl std::fmt::Display) -> mangrove_graph::Error {
        damaged_in(&self.source.describe(), offset, what)
    }

    /// The error for the body of a block.
    pub(crate) fn malformed(&self, position: BlockPosition, malformed: Malformed) -> mangrove_graph::Error {
        self.damaged(position.offset + FRAME_BYTES + malformed.at, malformed.what)
    }

    fn exactly(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        let bytes = self.source.read(offset, count)?;
        match bytes.len() == count {
            true => Ok(bytes),
            false => Err(self.damaged(offset + bytes.len() as u64, "the file ends here")),
        }
    }

    fn check_header(&self, name: PackName, database: Uuid) -> Result<()> {
        let header = self.exactly(0, HEADER_BYTES as usize)?;
        if header[..8] != MAGIC {
            return Err(self.damaged(0, "this is no checkpoint file: its first bytes differ"));
        }
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        if word(60) != crc32c::crc32c(&header[..60]) {
            return Err(self.damaged(0, "the checksum of the header is wrong"));
        }
        let (format, numbers) = match name {
            PackName::Pack { incarnation, counter } => (FORMAT, (0, incarnation, counter)),
            PackName::First { tablet, version } => (FIRST_FORMAT, (tablet.map_or(0, |t| u32::from(t.0)), version, 0)),
        };
        if word(8) > FORMAT {
            return Err(unknown_format_in(&self.source.describe(), u64::from(word(8)), u64::from(FORMAT)));
        }
        if header[24..40] != *database.as_bytes() {
            return Err(self.damaged(24, "the file belongs to another database"));
        }
        if (word(8), (word(12), long(16), long(40))) != (format, numbers) {
            return Err(self.damaged(8, "the header belongs to another file than the name"));
        }
        Ok(())
    }

    fn directory_position(&self, bytes: u64) -> Result<BlockPosition> {
        let at = bytes - TRAILER_BYTES;
        let trailer = self.exactly(at, TRAILER_BYTES as usize)?;
        let crc = u32::from_le_bytes(trailer[20..].try_into().expect("four bytes"));
        if trailer[16..20] != TRAILER_MAGIC || crc != crc32c::crc32c(&trailer[..20]) {
            return Err(self.damaged(at, "the checksum of the trailer is wrong"));
        }
        let offset = u64::from_le_bytes(trailer[..8].try_into().expect("eight bytes"));
        let length = u32::from_le_bytes(trailer[8..12].try_into().expect("four bytes"));
        let position = BlockPosition { offset, length };
        if offset < HEADER_BYTES || position.end() != at {
            return Err(self.damaged(at, "the directory does not end where the trailer begins"));
        }
        Ok(position)
    }

    /// Reads the body of a block.
    pub(crate) fn body(&self, name: BlockName, position: BlockPosition) -> Result<Vec<u8>> {
        self.read_body(name, position)
    }

    fn read_body(&self, name: impl std::fmt::Display, position: BlockPosition) -> Result<Vec<u8>> {
        let mut bytes = self.exactly(position.offset, position.bytes() as usize)?;
        let body = bytes.split_off(FRAME_BYTES as usize);
        self.check_frame(name, position, &bytes, &body)?;
        Ok(body)
    }

    fn check_frame(
        &self,
        name: impl std::fmt::Display,
        position: BlockPosition,
        found: &[u8],
        body: &[u8],
    ) -> Result<()> {
        match found == frame(body) {
            true => Ok(()),
            false => Err(self.damaged(position.offset, format_args!("the checksum of {name} is wrong"))),
        }
    }

    /// Calls `each` with the bodies of these blocks, which are in the order of their offsets. Near blocks are read
    /// together.
    pub(crate) fn bodies(
        &self,
        blocks: &[PlacedBlock],
        mut each: impl FnMut(BlockName, BlockPosition, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let runs = runs(blocks, self.source.shape());
        let ranges: Vec<Range<u64>> = runs.iter().map(|run| range_of(run)).collect();
        let mut runs = runs.into_iter();
        self.source.read_each(&ranges, &mut |bytes| {
            let run = runs.next().unwrap_or_default();
            let begin = range_of(run).start;
            for &(name, position) in run {
                let at = (position.offset - begin) as usize;
                let Some(block) = bytes.get(at..at + position.bytes() as usize) else {
                    return Err(self.damaged(begin + bytes.len() as u64, "the file ends here"));
                };
                let (head, body) = block.split_at(FRAME_BYTES as usize);
                self.check_frame(name, position, head, body)?;
                each(name, position, body)?;
            }
            Ok(())
        })
    }

    /// Decodes the image of a page from the body of its block.
    pub(crate) fn image(
        &self,
        images: &mut ImageReader,
        name: PageName,
        position: BlockPosition,
        body: &[u8],
    ) -> Result<PageImage> {
        let read = match self.is_first_format {
            true => {
                let mut reader = Reader::new(body);
                read_image_of_version_1(&mut reader).and_then(|image| reader.expect_end().map(|()| image))
            }
            false => images.image(body),
        };
        self.named(name, position, read)
    }

    /// Decodes the image of a page, and checks everything that it has twice.
    pub(crate) fn check_image(
        &self,
        images: &mut ImageReader,
        name: PageName,
        position: BlockPosition,
        body: &[u8],
    ) -> Result<PageImage> {
        match self.is_first_format {
            true => self.image(images, name, position, body),
            false => self.named(name, position, images.check(body)),
        }
    }

    fn named(
        &self,
        name: PageName,
        position: BlockPosition,
        read: std::result::Result<PageImage, Malformed>,
    ) -> Result<PageImage> {
        let image = read.map_err(|m| self.malformed(position, m))?;
        match image.name == name {
            true => Ok(image),
            false => Err(self.damaged(position.offset, format!("expected {name}, found {}", image.name))),
        }
    }

    /// Decodes the topology of a page of vertices, and checks everything that it has twice.
    pub(crate) fn topology(&self, name: PageName, position: BlockPosition, body: &[u8]) -> Result<TopologyBlock> {
        let block = read_topology(body).map_err(|m| self.malformed(position, m))?;
        match block.lists.name == name {
            true => Ok(block),
            false => {
                let what = format!("expected the topology of {name}, found that of {}", block.lists.name);
                Err(self.damaged(position.offset, what))
            }
        }
    }

    /// Decodes the delta of the topology of a page of vertices.
    pub(crate) fn delta(&self, name: PageName, position: BlockPosition, body: &[u8]) -> Result<TopologyDelta> {
        let delta = read_delta(body).map_err(|m| self.malformed(position, m))?;
        match delta.name == name {
            true => Ok(delta),
            false => {
                let what = format!("expected the delta of the topology of {name}, found that of {}", delta.name);
                Err(self.damaged(position.offset, what))
            }
        }
    }

    /// Decodes a run of a look-up index.
    pub(crate) fn run(&self, name: BlockName, position: BlockPosition, body: &[u8]) -> Result<(RunHead, Vec<Entry>)> {
        let (head, entries) = read_run(name.kind, body).map_err(|m| self.malformed(position, m))?;
        self.check_run(name, position, &head).map(|()| (head, entries))
    }

    /// Reads the head of a run of a look-up index, which has this many bytes.
    pub(crate) fn run_head(&self, name: BlockName, position: BlockPosition, bytes: u64) -> Result<RunHead> {
        let bytes = self.part(position, 0..bytes)?;
        let head = RunHead::read(name.kind, &bytes).map_err(|m| self.malformed(position, m))?;
        self.check_run(name, position, &head).map(|()| head)
    }

    fn check_run(&self, name: BlockName, position: BlockPosition, head: &RunHead) -> Result<()> {
        match (head.number, head.block_bytes()) == (name.number, u64::from(position.length)) {
            true => Ok(()),
            false => Err(self.damaged(position.offset, format_args!("expected {name}, found another run"))),
        }
    }

    /// Reads stripes of a run of a look-up index.
    pub(crate) fn stripes(&self, position: BlockPosition, head: &RunHead, stripes: Range<usize>) -> Result<Vec<Entry>> {
        let range = head.range_of(stripes.clone());
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = self.part(position, range)?;
        head.read_stripes(stripes, &bytes).map_err(|m| self.malformed(position, m))
    }

    /// Reads a part of the body of a block. The caller checks it.
    fn part(&self, position: BlockPosition, range: Range<u64>) -> Result<Vec<u8>> {
        if range.end > u64::from(position.length) {
            return Err(self.damaged(position.offset, "a block is shorter than a part of it"));
        }
        self.exactly(position.offset + FRAME_BYTES + range.start, (range.end - range.start) as usize)
    }

    /// Reads the catalog, and decodes it.
    pub(crate) fn catalog<T>(&self, read: impl FnOnce(&[u8]) -> std::result::Result<T, Malformed>) -> Result<T> {
        let found = self.blocks.iter().find(|(name, _)| *name == BlockName::CATALOG);
        let &(name, position) = found.ok_or_else(|| self.damaged(0, "the manifest says that it has the catalog"))?;
        let body = self.body(name, position)?;
        let read = match self.is_first_format {
            true => read(&body),
            false => read_packed(&body, &mut Unpacker::default(), read),
        };
        read.map_err(|m| self.malformed(position, m))
    }
}

/// Divides blocks, which are in the order of their offsets, into runs that are read together.
fn runs(blocks: &[PlacedBlock], shape: ReadShape) -> Vec<&[PlacedBlock]> {
    let mut runs = Vec::new();
    let mut rest = blocks;
    while let Some((_, first)) = rest.first() {
        let mut end = first.end();
        let is_near = |(_, position): &&PlacedBlock| {
            let follows = position.offset >= end && position.offset - end <= shape.gap_bytes;
            let goes_on = follows && end - first.offset < shape.run_bytes;
            end = if goes_on { position.end() } else { end };
            goes_on
        };
        let count = 1 + rest[1..].iter().take_while(is_near).count();
        let (run, after) = rest.split_at(count);
        runs.push(run);
        rest = after;
    }
    runs
}

/// The bytes that a run takes, with gaps.
fn range_of(run: &[PlacedBlock]) -> Range<u64> {
    run.first().map_or(0, |(_, first)| first.offset)..run.last().map_or(0, |(_, last)| last.end())
}

/// Reads the block table of a file of format 1.
fn read_block_table(
    bytes: &[u8],
    tablet: Option<TabletId>,
    end: u64,
) -> std::result::Result<Vec<PlacedBlock>, Malformed> {
    let mut reader = Reader::new(bytes);
    let count = reader.count()?;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = read_kind(&mut reader)?;
        let number = reader.varint_u32()?;
        let name = tablet.map_or(BlockName::CATALOG, |tablet| BlockName::of_page(PageName { tablet, kind, number }));
        let outside = reader.malformed("a block outside of the file");
        let position = BlockPosition { offset: reader.varint()?, length: reader.varint_u32()? };
        if position.offset < HEADER_BYTES || position.end() > end {
            return Err(outside);
        }
        blocks.push((name, position));
    }
    reader.expect_end()?;
    Ok(blocks)
}
