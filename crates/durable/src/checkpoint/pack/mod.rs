//! Packs: files, or objects, of checksummed blocks of several tablets.
//!
//! ```text
//! header 64   magic 8 | format 4 | what 4 | incarnation 8 | database 16 | counter 8 | zeros 12 | CRC 4
//! blocks      length 4 | CRC 4 of length and body | body …
//! directory   a block; its body is a packed part
//! trailer 24  offset of the directory 8 | length of its body 4 | zeros 4 | magic 4 | CRC 4 of the trailer before it
//!
//! packed part: the form of a part (`image`), then its bytes as stored
//!
//! directory: count of kinds; for each: kind, count of blocks
//!            tablet of each block, as the difference from the block before it of the same kind
//!            number of each block: in a new tablet the number, else what lies between it and the number before it
//!            offset of each block, as the signed difference from the end of the block before it in this order
//!            length of the body of each block
//! ```
//!
//! Fixed numbers are little-endian; others are varints. A block's offset is that of its length word. CRCs are CRC32C.
//! The directory is sorted by kind, tablet and number. In the file, the blocks of a tablet lie side by side, so a tablet
//! is one range of it. The manifest has the length of a pack and the CRC of all of it.
//!
//! | kind | block | number |
//! |---|---|---|
//! | 0, 1 | the image of a page of vertices, of edges | that of the page |
//! | 2 | the catalog, a packed part: names, indexes, rules | 0, in tablet 0 |
//! | 3 | the topology of a page of vertices ([`crate::open`]) | that of the page |
//! | 4 | what has changed in the topology of a page since its newest block of kind 3 ([`crate::open`]) | that of the page |
//! | 5 | reserved for statistics, which can be made again from the images | |
//! | 7, 8 | a run of a look-up index, by hashes or by values ([`crate::open`]) | that of the index, in tablet 0 |
//! | others | not used | |
//!
//! - **LOG-27.** Readers skip blocks of the kinds 3, 4, 5, 7 and 8, and refuse a pack with a block of a kind that is not in
//!   this table: it may have a part of the graph.
//! - **LOG-28.** The name of a pack, its incarnation and counter, is given once. So two packs of one name are the same.
//!
//! Files of format 1 (`segment/`) have the same frame. Such a file has the images of one tablet, in version 1, or the
//! names. Where a pack has incarnation, counter and `what` = 0, it has the version of a manifest, zeros and the tablet,
//! 0 for names. Its block table has a count, then kind 1, number, offset and length of each block. Such files are read,
//! and not written.
//!
//! | module | what it holds |
//! |---|---|
//! | `name` | names of blocks |
//! | `directory` | the directory of a pack as bytes |
//! | `write` | the bytes of a pack, front to back |
//! | `read` | reading a pack or a file of format 1 by ranges |
//! | `placed` | packs in their place: a directory or a home |

mod directory;
mod name;
mod placed;
mod read;
mod write;

pub(crate) use directory::{PlacedBlock, check_directory};
pub(crate) use name::BlockName;
pub use placed::{BlockEntry, list_blocks};
pub(crate) use placed::{PlacedPackWriter, WrittenPack, check_pack, list_blocks_in, open_pack};
pub(crate) use read::PackReader;

const MAGIC: [u8; 8] = *b"MGRVSEG\0";
const TRAILER_MAGIC: [u8; 4] = *b"GEND";
/// The format of files with the images of one tablet.
pub(crate) const FIRST_FORMAT: u32 = 1;
/// The format of packs.
pub(crate) const FORMAT: u32 = 2;
const HEADER_BYTES: u64 = 64;
const TRAILER_BYTES: u64 = 24;
const FRAME_BYTES: u64 = 8;

/// Where a block lies in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockPosition {
    pub(crate) offset: u64,
    /// Bytes of the body.
    pub(crate) length: u32,
}

impl BlockPosition {
    /// Bytes of the file that the block takes.
    pub(crate) fn bytes(self) -> u64 {
        FRAME_BYTES + u64::from(self.length)
    }

    /// The offset of the byte after it.
    fn end(self) -> u64 {
        self.offset.saturating_add(self.bytes())
    }
}

/// The frame of a block: length, and CRC of length and body.
fn frame(body: &[u8]) -> [u8; FRAME_BYTES as usize] {
    let length = (body.len() as u32).to_le_bytes();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&length), body).to_le_bytes();
    let mut frame = [0; FRAME_BYTES as usize];
    frame[..4].copy_from_slice(&length);
    frame[4..].copy_from_slice(&crc);
    frame
}

#[cfg(test)]
mod tests;
