//! The directory of a pack as bytes, before it is packed. The layout is in the header of [`super`].

use std::collections::BTreeMap;

use super::name::BlockName;
use super::{BlockPosition, HEADER_BYTES};
use crate::checkpoint::compress::{Unpacker, read_packed};
use crate::codec::{Malformed, Reader, put_signed, put_varint};

/// A block and where it lies.
pub(crate) type PlacedBlock = (BlockName, BlockPosition);

/// Appends the directory of these blocks, and sorts them.
pub(super) fn put_directory(blocks: &mut [PlacedBlock], out: &mut Vec<u8>) {
    blocks.sort_unstable_by_key(|(name, _)| *name);
    let mut kinds = BTreeMap::<u8, u64>::new();
    blocks.iter().for_each(|(name, _)| *kinds.entry(name.kind).or_default() += 1);
    put_varint(kinds.len() as u64, out);
    for (kind, count) in kinds {
        out.push(kind);
        put_varint(count, out);
    }
    let mut last: Option<BlockName> = None;
    for (name, _) in blocks.iter() {
        let before = last.filter(|last| last.kind == name.kind).map_or(0, |last| last.tablet);
        put_varint(u64::from(name.tablet - before), out);
        last = Some(*name);
    }
    let mut last: Option<BlockName> = None;
    for (name, _) in blocks.iter() {
        let same = last.filter(|last| (last.kind, last.tablet) == (name.kind, name.tablet));
        put_varint(
            same.map_or(u64::from(name.number), |last| u64::from(name.number) - u64::from(last.number) - 1),
            out,
        );
        last = Some(*name);
    }
    let mut end = HEADER_BYTES;
    for (_, position) in blocks.iter() {
        put_signed(position.offset.wrapping_sub(end) as i64, out);
        end = position.end();
    }
    blocks.iter().for_each(|(_, position)| put_varint(u64::from(position.length), out));
}

/// Reads the directory of a pack whose blocks end at `end` or before it.
pub(super) fn read_directory(bytes: &[u8], end: u64) -> Result<Vec<PlacedBlock>, Malformed> {
    let reader = &mut Reader::new(bytes);
    let mut kinds = Vec::new();
    for _ in 0..reader.count()? {
        let order = reader.malformed("the kinds of blocks are not in order");
        let kind = reader.byte()?;
        if kinds.last().is_some_and(|&last| last >= kind) {
            return Err(order);
        }
        let count = reader.count()?;
        kinds.resize(kinds.len() + count, kind);
        if kinds.len() > bytes.len() {
            return Err(reader.malformed("a count larger than what follows"));
        }
    }
    let count = kinds.len();
    let mut names = Vec::<BlockName>::with_capacity(count);
    for kind in kinds {
        let wide = reader.malformed("the number of a tablet of more than 16 bits");
        let before = names.last().filter(|last| last.kind == kind).map_or(0, |last| last.tablet);
        let tablet = u16::try_from(u64::from(before).saturating_add(reader.varint()?)).map_err(|_| wide)?;
        names.push(BlockName { kind, tablet, number: 0 });
    }
    for at in 0..count {
        let wide = reader.malformed("the number of a block of more than 32 bits");
        let same = at.checked_sub(1).map(|last| names[last]);
        let same = same.filter(|last| (last.kind, last.tablet) == (names[at].kind, names[at].tablet));
        let least = same.map_or(0, |last| u64::from(last.number) + 1);
        names[at].number = u32::try_from(least.saturating_add(reader.varint()?)).map_err(|_| wide)?;
    }
    let mut offsets = reader.clone();
    for _ in 0..count {
        reader.varint()?;
    }
    let mut last = HEADER_BYTES;
    let mut blocks = Vec::with_capacity(count);
    for name in names {
        let outside = reader.malformed("a block outside of the file");
        let offset = last.wrapping_add_signed(offsets.signed()?);
        let position = BlockPosition { offset, length: reader.varint_u32()? };
        last = position.end();
        if offset < HEADER_BYTES || last > end {
            return Err(outside);
        }
        blocks.push((name, position));
    }
    reader.expect_end()?;
    Ok(blocks)
}

/// Reads the packed directory of a pack, writes it, and reads it again; for fuzzing.
///
/// # Panics
///
/// If the two results differ.
pub(crate) fn check_directory(bytes: &[u8]) -> Result<(), Malformed> {
    // Larger than any pack.
    let end = 1 << 40;
    let mut blocks = read_packed(bytes, &mut Unpacker::default(), |directory| read_directory(directory, end))?;
    let mut again = Vec::new();
    put_directory(&mut blocks, &mut again);
    assert_eq!(read_directory(&again, end), Ok(blocks), "what was read, written and read again is not the same");
    Ok(())
}
