//! What is behind the checksums, read from bytes that no checksum guards.
//!
//! A checksum keeps damage from the decoders, not malice, and a decoder that trusts it turns one wrong byte in memory
//! before it was taken into a crash of every recovery after. So the decoders must refuse whatever is not theirs, and
//! `fuzz/` shows them anything: these functions are its way in. Each writes what it read and reads that again, which must
//! be the same.

use mangrove_store::{Store, StoreOptions};

use crate::checkpoint::{put_image, read_image, read_names};
use crate::codec::{
    Malformed, Reader, put_content, put_index, put_user_id, put_value, read_content, read_index, read_user_id,
    read_value,
};
use crate::log::record::{Record, read_record};

/// Reads a record of the log, and what a commit left.
pub fn record(bytes: &[u8]) -> Result<(), Malformed> {
    if let Record::Commit(commit) = read_record(bytes)? {
        commit.each_redo(|_| Ok::<(), Malformed>(()))?;
    }
    Ok(())
}

/// Reads the image of a page.
pub fn page(bytes: &[u8]) -> Result<(), Malformed> {
    again(bytes, read_image, put_image)
}

/// Reads the names of a graph and what its indexes are like.
pub fn names(bytes: &[u8]) -> Result<(), Malformed> {
    let store = Store::new(&StoreOptions { tablet_count: 1, ..StoreOptions::default() });
    read_names(bytes, store.catalog()).map(drop)
}

/// Reads a value, the content of a cell, an id that users see, and an index.
pub fn values(bytes: &[u8]) -> Result<(), Malformed> {
    let read = again(bytes, read_value, put_value);
    let content = again(bytes, read_content, put_content);
    let id = again(bytes, read_user_id, put_user_id);
    let index = again(bytes, read_index, put_index);
    read.and(content).and(id).and(index)
}

/// Reads, writes and reads.
///
/// # Panics
///
/// If that is not the same.
fn again<T>(
    bytes: &[u8],
    read: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>,
    put: impl Fn(&T, &mut Vec<u8>),
) -> Result<(), Malformed> {
    let first = read(&mut Reader::new(bytes))?;
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    put(&first, &mut once);
    let second = read(&mut Reader::new(&once)).expect("what was written can be read");
    // Compared as bytes: a value that is no number is not equal to itself.
    put(&second, &mut twice);
    assert_eq!(once, twice, "what was read, written and read again is not the same");
    Ok(())
}
