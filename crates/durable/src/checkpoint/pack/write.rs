//! The bytes of a pack, front to back. Where they go is the caller's: a file, or the parts of an upload.

use mangrove_graph::{Error, Result};
use mangrove_store::image::PageImage;
use uuid::Uuid;

use super::directory::{PlacedBlock, put_directory};
use super::name::BlockName;
use super::{BlockPosition, FORMAT, HEADER_BYTES, MAGIC, TRAILER_BYTES, TRAILER_MAGIC, frame};
use crate::checkpoint::compress::{Compression, Packer};
use crate::checkpoint::image::ImageWriter;
use crate::manifest::PackName;

/// Makes the bytes of a pack. The caller takes them away as they come ([`PackWriter::take`]).
pub(super) struct PackWriter {
    images: ImageWriter,
    packer: Packer,
    /// Bytes that the caller has not taken.
    ready: Vec<u8>,
    /// Bytes that the caller has taken.
    taken: u64,
    blocks: Vec<PlacedBlock>,
    body: Vec<u8>,
}

impl PackWriter {
    /// Begins a pack.
    pub(super) fn new(incarnation: u64, counter: u64, database: Uuid, compression: Compression) -> Self {
        let mut ready = Vec::with_capacity(HEADER_BYTES as usize);
        ready.extend_from_slice(&MAGIC);
        ready.extend_from_slice(&FORMAT.to_le_bytes());
        ready.extend_from_slice(&[0; 4]);
        ready.extend_from_slice(&incarnation.to_le_bytes());
        ready.extend_from_slice(database.as_bytes());
        ready.extend_from_slice(&counter.to_le_bytes());
        ready.resize(HEADER_BYTES as usize - 4, 0);
        ready.extend_from_slice(&crc32c::crc32c(&ready).to_le_bytes());
        PackWriter {
            images: ImageWriter::new(compression),
            packer: Packer::new(compression),
            ready,
            taken: 0,
            blocks: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Leaves the directory and the catalog as they are (LOG-101).
    pub(super) fn leave_plain(&mut self) {
        self.packer = Packer::new(Compression::None);
    }

    /// Bytes of the pack up to here.
    pub(super) fn bytes(&self) -> u64 {
        self.taken + self.ready.len() as u64
    }

    /// Bytes that the caller has not taken.
    pub(super) fn ready(&self) -> &[u8] {
        &self.ready
    }

    /// Takes the ready bytes away.
    pub(super) fn take(&mut self) {
        self.taken += self.ready.len() as u64;
        self.ready.clear();
    }

    /// Adds the image of a page.
    pub(super) fn image(&mut self, image: &PageImage) -> Result<BlockPosition> {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        let name = BlockName::of_page(image.name);
        let added = self.images.put(image, &mut body).map_err(|_| too_large(name)).and_then(|()| self.add(name, &body));
        self.body = body;
        added
    }

    /// Adds names, indexes and rules.
    pub(super) fn catalog(&mut self, names: &[u8]) -> Result<BlockPosition> {
        let mut body = Vec::new();
        self.packer.put(names, &mut body).map_err(|_| too_large(BlockName::CATALOG))?;
        self.add(BlockName::CATALOG, &body)
    }

    /// Adds a block.
    pub(super) fn add(&mut self, name: BlockName, body: &[u8]) -> Result<BlockPosition> {
        let length = u32::try_from(body.len()).map_err(|_| too_large(name))?;
        let position = BlockPosition { offset: self.bytes(), length };
        self.blocks.push((name, position));
        self.append(body);
        Ok(position)
    }

    fn append(&mut self, body: &[u8]) {
        self.ready.extend_from_slice(&frame(body));
        self.ready.extend_from_slice(body);
    }

    /// Appends directory and trailer. Returns the blocks, sorted; the last bytes are ready.
    pub(super) fn finish(&mut self) -> Result<Vec<PlacedBlock>> {
        let mut blocks = std::mem::take(&mut self.blocks);
        let (mut directory, mut body) = (Vec::new(), Vec::new());
        put_directory(&mut blocks, &mut directory);
        let large = |_| Error::bug("the directory of a pack has more than 4 GiB");
        self.packer.put(&directory, &mut body).map_err(large)?;
        let offset = self.bytes();
        self.append(&body);
        let mut trailer = Vec::with_capacity(TRAILER_BYTES as usize);
        trailer.extend_from_slice(&offset.to_le_bytes());
        trailer.extend_from_slice(&(body.len() as u32).to_le_bytes());
        trailer.extend_from_slice(&[0; 4]);
        trailer.extend_from_slice(&TRAILER_MAGIC);
        trailer.extend_from_slice(&crc32c::crc32c(&trailer).to_le_bytes());
        self.ready.extend_from_slice(&trailer);
        Ok(blocks)
    }
}

fn too_large(name: BlockName) -> Error {
    Error::unsupported(format!("{name} has more than 4 GiB, which no checkpoint can hold; make its values smaller"))
}

/// The path of the pack with these numbers.
pub(super) fn path(incarnation: u64, counter: u64) -> String {
    PackName::Pack { incarnation, counter }.path()
}
