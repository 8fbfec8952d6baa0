//! A page image as bytes.
//!
//! An image of version 2 is a *head* and *parts*. A part is compressed by itself and has a checksum of its own. So a
//! reader takes the whole image, or the head and the parts that it wants.
//!
//! ```text
//! head:  bytes of the head 4 | CRC 4 of these 4 bytes and of the rest of the head
//!        kind 1 | tablet | number | label set | capacity | used | flags 1
//!        live: words of 8 bytes for `used` slots, unless flag 2 says that all are
//!        form of the part of the generations, if flag 1; of the chosen ids, if flag 4; of the ends, for edges
//!        columns: count, then key | type 1 | present 1: 0 all live slots, 1 some | range | form of the part
//! parts: in the order of their forms
//!   generations  `used` varints
//!   ids          count, then (slots since the last one, id)
//!   ends         differences of the source slots; then the target tablets; then the target slots
//!   a column     if present is 1, words of 8 bytes; then the values
//!
//! form of a part: codec 1: 0 as it is, 1 zstd | bytes as stored | bytes unpacked, if the codec is not 0
//!                 | CRC 4 of the bytes as stored
//! range of a column: of numbers the smallest and the largest value; of texts the first 16 bytes of these; else nothing
//! ```
//!
//! Numbers without a width are varints; differences and integers are signed. CRCs are CRC32C. Sources lie in the tablet
//! of the page. `values` has the types of columns.
//!
//! Decoders check each page by itself; `store::restore` checks that pages agree with one another.
//!
//! | module | what it holds |
//! |---|---|
//! | `head` | reading an image of version 2, whole or in part |
//! | `write` | writing one |
//! | `version1` | reading an image of version 1 |
//! | `values` | the values of a column |
//! | `slots` | the pieces that both versions share |

mod head;
mod slots;
mod values;
mod version1;
mod write;

pub(crate) use head::ImageReader;
pub(super) use slots::read_kind;
pub(crate) use version1::read_image as read_image_of_version_1;
pub(crate) use write::ImageWriter;

const HAS_GENERATIONS: u8 = 1;
const ALL_LIVE: u8 = 2;
const HAS_IDS: u8 = 4;
/// Bytes before the fields of a head.
const PREFIX_BYTES: usize = 8;

#[cfg(test)]
mod tests;
