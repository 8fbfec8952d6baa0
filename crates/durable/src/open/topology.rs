//! The lists of a page of vertices as bytes: the body of a block of kind 3.
//!
//! ```text
//! layer 1   first slot index 8 | slot index after the last 8 | tablet 4 | label set 4 | slots n 4 | flags 4 | timestamp 8
//!           | A 4 | bytes of layer 3, 8 | bits of a tablet number 4 | outgoing entries 4 | incoming entries 4
//! layer 2   for each slot: where its outgoing list begins 4, where its incoming list begins 4; bytes of layer 3, 4
//!           | generations 2n, if flag 1 | live bits ⌈n / 8⌉, if flag 2
//!           | CRC of each stripe of layer 3, 4 each | CRC of all before it 4
//! layer 3   begins at A: for each slot the outgoing list and the incoming list
//! ```
//!
//! Fixed numbers are little-endian. CRCs are CRC32C. [`super::lists`] has the bytes of a list. Offsets of lists count from the
//! beginning of layer 3.

use mangrove_graph::{ElementKind, GENERATION_MAX, LabelSetId, PAGE_SLOTS, TabletId};
use mangrove_store::image::{PageName, SlotSet};
use mangrove_store::lists::PageLists;

use super::lists::{INDEX_MASK, ListOwner, STRIPE_BYTES, check_stripes, put_stripes, same_slot, sort};
use crate::codec::{Malformed, Reader};

/// Bytes of layer 1.
const FIXED_BYTES: usize = 64;
/// Where layer 1 says at which offset layer 3 begins.
const LAYER3_AT: usize = 40;
/// The slots have generations.
const GENERATIONS: u32 = 1;
/// Some slots have no vertex.
const NOT_ALL_LIVE: u32 = 2;
/// The block has outgoing lists.
const OUTGOING: u32 = 8;
/// The block has incoming lists.
const INCOMING: u32 = 16;

/// The content of a topology block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TopologyBlock {
    /// The lists are those of the graph at this timestamp.
    pub(crate) at_ts: u64,
    /// How many bits the number of a tablet takes in this graph.
    pub(crate) tablet_bits: u32,
    /// The lists, sorted as in the block.
    pub(crate) lists: PageLists,
}

impl TopologyBlock {
    /// Makes a block of the lists of a page, which are in any order.
    pub(crate) fn new(at_ts: u64, tablet_bits: u32, mut lists: PageLists) -> Self {
        sort(&mut lists.outgoing, tablet_bits);
        sort(&mut lists.incoming, tablet_bits);
        TopologyBlock { at_ts, tablet_bits, lists }
    }
}

/// Appends a block.
pub(crate) fn put_topology(block: &TopologyBlock, out: &mut Vec<u8>) {
    let TopologyBlock { at_ts, tablet_bits: bits, lists } = block;
    let (used, first) = (lists.used as usize, u64::from(lists.name.number) * PAGE_SLOTS);
    let (mut layer3, mut offsets) = (Vec::new(), Vec::with_capacity(2 * used + 1));
    let mut by_slot = [lists.outgoing.chunk_by(same_slot).peekable(), lists.incoming.chunk_by(same_slot).peekable()];
    for at in 0..used {
        for (direction, by_slot) in by_slot.iter_mut().enumerate() {
            offsets.push(layer3.len() as u32);
            if let Some(list) = by_slot.next_if(|list| usize::from(list[0].slot) == at) {
                owner_at(lists.name, at, direction == 0, *bits).put_list(list, &mut layer3);
            }
        }
    }
    offsets.push(layer3.len() as u32);
    let is_full = (0..used).all(|at| lists.live.contains(at));
    let mut flags = OUTGOING | INCOMING;
    flags |= if lists.generations.is_empty() { 0 } else { GENERATIONS };
    flags |= if is_full { 0 } else { NOT_ALL_LIVE };
    let start = out.len();
    let head = head_bytes(used, flags, layer3.len());
    for long in [first, first + used as u64] {
        out.extend_from_slice(&long.to_le_bytes());
    }
    for word in [u32::from(lists.name.tablet.0), lists.labels.0, used as u32, flags] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&at_ts.to_le_bytes());
    out.extend_from_slice(&(head as u32).to_le_bytes());
    out.extend_from_slice(&(layer3.len() as u64).to_le_bytes());
    for word in [*bits, lists.outgoing.len() as u32, lists.incoming.len() as u32] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    offsets.iter().for_each(|offset| out.extend_from_slice(&offset.to_le_bytes()));
    lists.generations.iter().for_each(|generation| out.extend_from_slice(&generation.to_le_bytes()));
    if !is_full {
        let bytes = lists.live.words().iter().flat_map(|word| word.to_le_bytes());
        out.extend(bytes.take(used.div_ceil(8)));
    }
    put_stripes(&layer3, out);
    let crc = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
    debug_assert_eq!(out.len() - start, head, "layers 1 and 2 are as long as they say");
    out.extend_from_slice(&layer3);
}

/// The vertex in a slot of a page, as the owner of a list.
pub(super) fn owner_at(page: PageName, at: usize, is_outgoing: bool, bits: u32) -> ListOwner {
    let index = u64::from(page.number) * PAGE_SLOTS + at as u64;
    ListOwner { tablet: page.tablet, slot: at as u16, index, is_outgoing, bits }
}

/// Bytes of layers 1 and 2.
fn head_bytes(used: usize, flags: u32, layer3: usize) -> usize {
    let generations = if flags & GENERATIONS == 0 { 0 } else { 2 * used };
    let live = if flags & NOT_ALL_LIVE == 0 { 0 } else { used.div_ceil(8) };
    FIXED_BYTES + 8 * used + 4 + generations + live + 4 * layer3.div_ceil(STRIPE_BYTES) + 4
}

/// The checksum of layers 1 and 2 of a block that can be read.
pub(crate) fn layers_checksum(block: &[u8]) -> u32 {
    let word =
        |at: usize| block.get(at..at + 4).map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")));
    word((word(LAYER3_AT) as usize).saturating_sub(4))
}

/// Reads a block that takes all of the bytes, and checks everything that it has twice.
pub(crate) fn read_topology(bytes: &[u8]) -> Result<TopologyBlock, Malformed> {
    let mut reader = Reader::new(bytes);
    let reader = &mut reader;
    let (first, end) = (reader.u64()?, reader.u64()?);
    let [tablet, labels, used, flags] = [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
    let (at_ts, head, layer3) = (reader.u64()?, reader.u32()? as usize, reader.u64()?);
    let [bits, outgoing, incoming] = [reader.u32()?, reader.u32()?, reader.u32()?];
    let wrong = |what| Err(Malformed { at: 0, what });
    if flags & !(GENERATIONS | NOT_ALL_LIVE) != OUTGOING | INCOMING {
        return wrong("a topology block with flags that this version does not know");
    }
    let Some((tablet, number)) = u16::try_from(tablet).ok().zip(u32::try_from(first / PAGE_SLOTS).ok()) else {
        return wrong("a topology block of a page with an impossible name");
    };
    let is_possible = first % PAGE_SLOTS == 0 && u64::from(used) <= PAGE_SLOTS && end == first + u64::from(used);
    if !is_possible || first > INDEX_MASK || !(1..=u16::BITS).contains(&bits) || u32::from(tablet) >> bits != 0 {
        return wrong("a topology block of impossible slots");
    }
    let used = used as usize;
    if layer3 > bytes.len() as u64 || head != head_bytes(used, flags, layer3 as usize) {
        return wrong("the layers of a topology block are not as long as it says");
    }
    if head as u64 + layer3 != bytes.len() as u64 {
        return wrong("a topology block of another length than it says");
    }
    let (head, layer3) = bytes.split_at(head);
    let (covered, crc) = head.split_at(head.len() - 4);
    if crc != crc32c::crc32c(covered).to_le_bytes() {
        return wrong("the checksum of layers 1 and 2 is wrong");
    }
    let offsets = (0..2 * used + 1).map(|_| reader.u32()).collect::<Result<Vec<_>, _>>()?;
    let generation_count = if flags & GENERATIONS == 0 { 0 } else { used };
    let generations = (0..generation_count).map(|_| read_u16(reader)).collect::<Result<Vec<_>, _>>()?;
    if generations.iter().any(|&generation| generation > GENERATION_MAX) {
        return wrong("a generation that no slot can have");
    }
    let live: SlotSet = match flags & NOT_ALL_LIVE {
        0 => (0..used).collect(),
        _ => {
            let bits = reader.take(used.div_ceil(8))?;
            (0..8 * bits.len()).filter(|at| bits[at / 8] & (1 << (at % 8)) != 0).collect()
        }
    };
    if live.iter().any(|at| at >= used) || (flags & NOT_ALL_LIVE != 0) == (live.len() == used) {
        return wrong("the live bits are not those of the slots");
    }
    check_stripes(layer3, reader)?;
    let is_sorted = offsets.is_sorted() && offsets[0] == 0 && offsets[2 * used] as usize == layer3.len();
    if !is_sorted {
        return wrong("the offsets of lists are not ascending, or do not end with layer 3");
    }
    let name = PageName { tablet: TabletId(tablet), kind: ElementKind::Vertex, number };
    let mut lists = PageLists {
        name,
        labels: LabelSetId(labels),
        used: used as u32,
        generations,
        live,
        outgoing: Vec::new(),
        incoming: Vec::new(),
    };
    for at in 0..used {
        for (direction, entries) in [&mut lists.outgoing, &mut lists.incoming].into_iter().enumerate() {
            let (begin, end) = (offsets[2 * at + direction] as usize, offsets[2 * at + direction + 1] as usize);
            let read =
                owner_at(name, at, direction == 0, bits).read_list(&mut Reader::new(&layer3[begin..end]), entries);
            read.map_err(|malformed| Malformed { at: (head.len() + begin) as u64 + malformed.at, ..malformed })?;
            if begin < end && !lists.live.contains(at) {
                return wrong("a slot without a vertex has a list");
            }
        }
    }
    if (lists.outgoing.len(), lists.incoming.len()) != (outgoing as usize, incoming as usize) {
        return wrong("the lists have another number of entries than the block says");
    }
    Ok(TopologyBlock { at_ts, tablet_bits: bits, lists })
}

fn read_u16(reader: &mut Reader<'_>) -> Result<u16, Malformed> {
    reader.array().map(u16::from_le_bytes)
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
