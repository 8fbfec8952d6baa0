//! The decoders below the checksums, for fuzzing: they read bytes that no checksum guards.
//!
//! A checksum protects decoders from damage but not from malice. A decoder that trusted it would also turn one wrong
//! byte in memory, written before the checksum was computed, into a crash of every later recovery. So a decoder must
//! refuse bytes that no encoder writes, and must not panic. `fuzz/` calls these functions with arbitrary bytes. Each
//! encodes the result and decodes it again; both results must be equal.

use mangrove_store::image::PageImage;
use mangrove_store::{Store, StoreOptions};

use crate::checkpoint::{Compression, ImageReader, ImageWriter, check_directory, read_image_of_version_1, read_names};
use crate::codec::{
    Malformed, Reader, put_content, put_index, put_user_id, put_value, read_content, read_index, read_user_id,
    read_value,
};
use crate::log::record::{Record, read_record};

/// Decodes a log record and, if it has some, its redo entries.
pub fn record(bytes: &[u8]) -> Result<(), Malformed> {
    if let Record::Commit(commit) | Record::Before(commit) | Record::Identities(commit) = read_record(bytes)? {
        commit.each_redo(|_| Ok::<(), Malformed>(()))?;
    }
    Ok(())
}

/// Decodes a page image.
///
/// # Panics
///
/// If the image, written with and without compression, is read differently.
pub fn page(bytes: &[u8]) -> Result<(), Malformed> {
    let mut reader = ImageReader::default();
    let plain = |image: &PageImage| written(image, Compression::None);
    let once = plain(&reader.image(bytes)?);
    for compression in [Compression::None, Compression::Zstd] {
        let bytes = written(&reader.image(&once)?, compression);
        let again = reader.check(&bytes).expect("what was written can be read");
        // Compared as bytes, because NaN is not equal to itself.
        assert_eq!(plain(&again), once, "what was read, written and read again is not the same");
    }
    Ok(())
}

/// Decodes a page image of version 1, which files of format 1 have.
pub fn page_of_version_1(bytes: &[u8]) -> Result<(), Malformed> {
    let image = read_image_of_version_1(&mut Reader::new(bytes))?;
    page(&written(&image, Compression::None))
}

/// Decodes the directory of a pack: a packed part.
///
/// # Panics
///
/// If the directory, written again, is read differently.
pub fn directory(bytes: &[u8]) -> Result<(), Malformed> {
    check_directory(bytes)
}

fn written(image: &PageImage, compression: Compression) -> Vec<u8> {
    let mut bytes = Vec::new();
    ImageWriter::new(compression).put(image, &mut bytes).expect("an image in memory is small");
    bytes
}

/// Decodes the names, indexes and schema rules of a graph.
pub fn names(bytes: &[u8]) -> Result<(), Malformed> {
    let store = Store::new(&StoreOptions { tablet_count: 1, ..StoreOptions::default() });
    read_names(bytes, store.catalog()).map(drop)
}

/// Decodes a value, the content under a key, a user id, and an index.
pub fn values(bytes: &[u8]) -> Result<(), Malformed> {
    let read = again(bytes, read_value, put_value);
    let content = again(bytes, read_content, put_content);
    let id = again(bytes, read_user_id, put_user_id);
    let index = again(bytes, read_index, put_index);
    read.and(content).and(id).and(index)
}

/// Reads, writes and reads again.
///
/// # Panics
///
/// If the two results differ.
fn again<T>(
    bytes: &[u8],
    read: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>,
    put: impl Fn(&T, &mut Vec<u8>),
) -> Result<(), Malformed> {
    let first = read(&mut Reader::new(bytes))?;
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    put(&first, &mut once);
    let second = read(&mut Reader::new(&once)).expect("what was written can be read");
    // Compared as bytes, because NaN is not equal to itself.
    put(&second, &mut twice);
    assert_eq!(once, twice, "what was read, written and read again is not the same");
    Ok(())
}
