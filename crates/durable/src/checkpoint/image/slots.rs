//! The pieces that images of both versions share: kinds of pages, sets of slots, chosen ids.

use mangrove_graph::{ElementKind, PAGE_SLOTS, TabletId, UserId};
use mangrove_store::image::SlotSet;

use crate::codec::{Malformed, Reader, put_user_id, put_varint, read_user_id};

const VERTICES: u8 = 0;
const EDGES: u8 = 1;

/// The largest slot. A slot has 48 bits: generation and slot index.
pub(super) const SLOT_MAX: u64 = (1 << 48) - 1;

/// The byte for a kind of page.
pub(in crate::checkpoint) fn kind_byte(kind: ElementKind) -> u8 {
    match kind {
        ElementKind::Vertex => VERTICES,
        ElementKind::Edge => EDGES,
    }
}

/// Reads the byte of a kind of page.
pub(in crate::checkpoint) fn read_kind(reader: &mut Reader<'_>) -> Result<ElementKind, Malformed> {
    let at = reader.malformed("a page of an unknown kind");
    match reader.byte()? {
        VERTICES => Ok(ElementKind::Vertex),
        EDGES => Ok(ElementKind::Edge),
        _ => Err(at),
    }
}

/// Reads `count` items of a page into a list of that capacity. A page has at most [`PAGE_SLOTS`] of anything, whatever the
/// bytes say.
pub(super) fn read_list<T>(
    reader: &mut Reader<'_>,
    count: usize,
    mut item: impl FnMut(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut items = Vec::with_capacity(count.min(PAGE_SLOTS as usize));
    for _ in 0..count {
        items.push(item(reader)?);
    }
    Ok(items)
}

pub(super) fn read_u16(reader: &mut Reader<'_>) -> Result<u16, Malformed> {
    let at = reader.malformed("a number of more than 16 bits");
    u16::try_from(reader.varint()?).map_err(|_| at)
}

pub(super) fn read_tablet(reader: &mut Reader<'_>) -> Result<TabletId, Malformed> {
    read_u16(reader).map(TabletId)
}

pub(super) fn put_slots(slots: &SlotSet, used: usize, out: &mut Vec<u8>) {
    slots.words()[..used.div_ceil(64)].iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// Reads a set of slots. A slot at or above `used` is refused, so that the number of live slots tells whether all are
/// live.
pub(super) fn read_slots(reader: &mut Reader<'_>, used: usize) -> Result<SlotSet, Malformed> {
    let mut words = [0; SlotSet::WORDS];
    for (number, word) in words[..used.div_ceil(64)].iter_mut().enumerate() {
        let at = reader.malformed("a slot beyond those that the page uses");
        *word = reader.u64()?;
        let used_here = used - number * 64;
        if used_here < 64 && *word >> used_here != 0 {
            return Err(at);
        }
    }
    Ok(SlotSet::from_words(words))
}

pub(super) fn put_ids(ids: &[(u16, UserId)], out: &mut Vec<u8>) {
    put_varint(ids.len() as u64, out);
    let mut last = 0;
    for (at, id) in ids {
        put_varint(u64::from(at - last), out);
        put_user_id(id, out);
        last = *at;
    }
}

pub(super) fn read_ids(reader: &mut Reader<'_>) -> Result<Vec<(u16, UserId)>, Malformed> {
    let mut last = 0_u16;
    let count = reader.count()?;
    read_list(reader, count, |reader| {
        let at = reader.malformed("the id of a slot that no page has");
        last = last.checked_add(read_u16(reader)?).ok_or(at)?;
        Ok((last, read_user_id(reader)?))
    })
}
