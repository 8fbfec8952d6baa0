//! The lists of a page of vertices as bytes: the body of a block of kind 3.
//!
//! ```text
//! layer 1   first slot index 8 | slot index after the last 8 | tablet 4 | label set 4 | slots n 4 | flags 4 | timestamp 8
//!           | A 4 | bytes of layer 3, 8 | bits of a tablet number 4 | outgoing entries 4 | incoming entries 4
//! layer 2   for each slot: where its outgoing list begins 4, where its incoming list begins 4; bytes of layer 3, 4
//!           | generations 2n, if flag 1 | live bits ⌈n / 8⌉, if flag 2
//!           | CRC of each stripe of layer 3, 4 each | CRC of all before it 4
//! layer 3   begins at A: for each slot the outgoing list and the incoming list
//!
//! list      runs, by ascending label set
//! run       label set, 2 × count + g, [bytes of each part of 1,024 entries, if there are more than that], entries
//! entry     neighbor number, edge slot index: each as the signed difference from the last entry; [generations of both, if g]
//! ```
//!
//! Fixed numbers are little-endian; numbers of lists are varints. CRCs are CRC32C. A neighbor number is its slot index,
//! shifted by the bits of a tablet number, and its tablet. Each part of a run begins with differences from the owner's
//! number and from edge slot index 0, so a part can be read alone. The tablet of an edge is that of its source.
//!
//! Offsets of lists count from the beginning of layer 3. A stripe is 4,096 bytes of layer 3, so a reader of one list reads and
//! checks whole stripes.

use mangrove_graph::{
    EdgeId, ElementKind, GENERATION_MAX, GENERATION_SHIFT, LabelSetId, PAGE_SLOTS, TabletId, VertexId,
};
use mangrove_store::image::{PageName, SlotSet};
use mangrove_store::lists::{ListEntry, PageLists};

use crate::codec::{Malformed, Reader, put_signed, put_varint};

/// Bytes of layer 1.
const FIXED_BYTES: usize = 64;
/// Bytes of layer 3 that one checksum covers.
const STRIPE_BYTES: usize = 4_096;
/// The entries of a part of a run.
const PART_ENTRIES: usize = 1_024;
/// The slots have generations.
const GENERATIONS: u32 = 1;
/// Some slots have no vertex.
const NOT_ALL_LIVE: u32 = 2;
/// The block has outgoing lists.
const OUTGOING: u32 = 8;
/// The block has incoming lists.
const INCOMING: u32 = 16;
/// The slot index of an id.
const INDEX_MASK: u64 = (1 << GENERATION_SHIFT) - 1;

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

/// How many bits the number of a tablet takes in a graph with so many.
pub(crate) fn tablet_bits(tablet_count: u16) -> u32 {
    u16::BITS - tablet_count.leading_zeros()
}

/// The number by which a list names a neighbor: slot index and tablet. Without the generation.
fn neighbor_number(id: VertexId, bits: u32) -> u64 {
    ((id.to_bits() & INDEX_MASK) << bits) | u64::from(id.tablet().0)
}

fn edge_index(id: EdgeId) -> u64 {
    id.to_bits() & INDEX_MASK
}

/// The order of entries in a block.
fn sort(entries: &mut [ListEntry], bits: u32) {
    entries.sort_unstable_by_key(|entry| {
        let neighbor = (neighbor_number(entry.neighbor, bits), entry.neighbor.generation());
        (entry.slot, entry.labels, neighbor, edge_index(entry.edge), entry.edge.generation())
    });
}

/// The differences from which the next entry is read.
#[derive(Clone, Copy)]
struct Last {
    neighbor: u64,
    edge: u64,
}

/// Appends a block, and sorts its lists.
pub(crate) fn put_topology(block: &mut TopologyBlock, out: &mut Vec<u8>) {
    let TopologyBlock { at_ts, tablet_bits: bits, lists } = block;
    sort(&mut lists.outgoing, *bits);
    sort(&mut lists.incoming, *bits);
    let (used, first) = (lists.used as usize, u64::from(lists.name.number) * PAGE_SLOTS);
    let (mut layer3, mut offsets) = (Vec::new(), Vec::with_capacity(2 * used + 1));
    let mut by_slot = [lists.outgoing.chunk_by(same_slot).peekable(), lists.incoming.chunk_by(same_slot).peekable()];
    for at in 0..used {
        let owner = neighbor_number(VertexId::new(lists.name.tablet, first + at as u64), *bits);
        for lists in &mut by_slot {
            offsets.push(layer3.len() as u32);
            if let Some(list) = lists.next_if(|list| usize::from(list[0].slot) == at) {
                list.chunk_by(|one, other| one.labels == other.labels)
                    .for_each(|run| put_run(run, owner, *bits, &mut layer3));
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
    layer3.chunks(STRIPE_BYTES).for_each(|stripe| out.extend_from_slice(&crc32c::crc32c(stripe).to_le_bytes()));
    let crc = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
    debug_assert_eq!(out.len() - start, head, "layers 1 and 2 are as long as they say");
    out.extend_from_slice(&layer3);
}

fn same_slot(one: &ListEntry, other: &ListEntry) -> bool {
    one.slot == other.slot
}

/// Bytes of layers 1 and 2.
fn head_bytes(used: usize, flags: u32, layer3: usize) -> usize {
    let generations = if flags & GENERATIONS == 0 { 0 } else { 2 * used };
    let live = if flags & NOT_ALL_LIVE == 0 { 0 } else { used.div_ceil(8) };
    FIXED_BYTES + 8 * used + 4 + generations + live + 4 * layer3.div_ceil(STRIPE_BYTES) + 4
}

/// Appends the entries of one label set of a list.
fn put_run(run: &[ListEntry], owner: u64, bits: u32, out: &mut Vec<u8>) {
    let has_generations = run.iter().any(|entry| entry.neighbor.generation() != 0 || entry.edge.generation() != 0);
    put_varint(u64::from(run[0].labels.0), out);
    put_varint(2 * run.len() as u64 + u64::from(has_generations), out);
    let (mut parts, mut bytes) = (Vec::new(), Vec::new());
    for part in run.chunks(PART_ENTRIES) {
        let (mut last, start) = (Last { neighbor: owner, edge: 0 }, bytes.len());
        for entry in part {
            let next = Last { neighbor: neighbor_number(entry.neighbor, bits), edge: edge_index(entry.edge) };
            put_signed(next.neighbor.wrapping_sub(last.neighbor) as i64, &mut bytes);
            put_signed(next.edge.wrapping_sub(last.edge) as i64, &mut bytes);
            if has_generations {
                put_varint(u64::from(entry.neighbor.generation()), &mut bytes);
                put_varint(u64::from(entry.edge.generation()), &mut bytes);
            }
            last = next;
        }
        parts.push((bytes.len() - start) as u64);
    }
    if run.len() > PART_ENTRIES {
        parts.iter().for_each(|length| put_varint(*length, out));
    }
    out.append(&mut bytes);
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
    for stripe in layer3.chunks(STRIPE_BYTES) {
        if reader.u32()? != crc32c::crc32c(stripe) {
            return wrong("the checksum of a stripe of layer 3 is wrong");
        }
    }
    let is_sorted = offsets.is_sorted() && offsets[0] == 0 && offsets[2 * used] as usize == layer3.len();
    if !is_sorted {
        return wrong("the offsets of lists are not ascending, or do not end with layer 3");
    }
    let tablet = TabletId(tablet);
    let mut lists = PageLists {
        name: PageName { tablet, kind: ElementKind::Vertex, number },
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
            let owner =
                ListOwner { tablet, slot: at as u16, index: first + at as u64, is_outgoing: direction == 0, bits };
            let mut reader = Reader::new(&layer3[begin..end]);
            let read = owner.read_list(&mut reader, entries);
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

/// The vertex whose list is read.
struct ListOwner {
    tablet: TabletId,
    slot: u16,
    index: u64,
    is_outgoing: bool,
    bits: u32,
}

impl ListOwner {
    fn read_list(&self, reader: &mut Reader<'_>, out: &mut Vec<ListEntry>) -> Result<(), Malformed> {
        let mut last = None;
        while !reader.is_at_end() {
            let order = reader.malformed("the runs of a list are not in the order of their label sets");
            let labels = LabelSetId(reader.varint_u32()?);
            if last.is_some_and(|last| last >= labels) {
                return Err(order);
            }
            last = Some(labels);
            self.read_run(labels, reader, out)?;
        }
        Ok(())
    }

    fn read_run(&self, labels: LabelSetId, reader: &mut Reader<'_>, out: &mut Vec<ListEntry>) -> Result<(), Malformed> {
        let large = reader.malformed("a count larger than what follows, or zero");
        let count = reader.varint()?;
        let (count, has_generations) = (count / 2, count % 2 == 1);
        // An entry has two bytes at least.
        if count == 0 || count > reader.left() as u64 / 2 {
            return Err(large);
        }
        let count = count as usize;
        let part_count = if count > PART_ENTRIES { count.div_ceil(PART_ENTRIES) } else { 0 };
        let lengths = (0..part_count).map(|_| reader.varint()).collect::<Result<Vec<_>, _>>()?;
        let (start, mut any_generation) = (out.len(), false);
        for part in 0..count.div_ceil(PART_ENTRIES) {
            let wrong = reader.malformed("a part of a run of another length than the run says");
            let begin = reader.position();
            let mut at = Last { neighbor: (self.index << self.bits) | u64::from(self.tablet.0), edge: 0 };
            for _ in 0..(count - part * PART_ENTRIES).min(PART_ENTRIES) {
                let entry = self.read_entry(labels, has_generations, &mut at, reader)?;
                any_generation |= entry.neighbor.generation() != 0 || entry.edge.generation() != 0;
                out.push(entry);
            }
            if lengths.get(part).is_some_and(|&length| length != reader.position() - begin) {
                return Err(wrong);
            }
        }
        if has_generations != any_generation {
            return Err(reader.malformed("a run says wrongly whether it has generations"));
        }
        let key = |entry: &ListEntry| {
            let neighbor = (neighbor_number(entry.neighbor, self.bits), entry.neighbor.generation());
            (neighbor, edge_index(entry.edge), entry.edge.generation())
        };
        match out[start..].is_sorted_by(|one, other| key(one) < key(other)) {
            true => Ok(()),
            false => Err(reader.malformed("the entries of a run are not in order")),
        }
    }

    fn read_entry(
        &self,
        labels: LabelSetId,
        has_generations: bool,
        last: &mut Last,
        reader: &mut Reader<'_>,
    ) -> Result<ListEntry, Malformed> {
        let impossible = reader.malformed("an entry that names no possible element");
        last.neighbor = last.neighbor.wrapping_add_signed(reader.signed()?);
        last.edge = last.edge.wrapping_add_signed(reader.signed()?);
        let generations = match has_generations {
            true => [reader.varint()?, reader.varint()?],
            false => [0, 0],
        };
        let (index, tablet) = (last.neighbor >> self.bits, last.neighbor & ((1 << self.bits) - 1));
        let is_possible = index <= INDEX_MASK
            && last.edge <= INDEX_MASK
            && tablet > 0
            && generations.iter().all(|&generation| generation <= u64::from(GENERATION_MAX));
        if !is_possible {
            return Err(impossible);
        }
        let neighbor = VertexId::new(TabletId(tablet as u16), index).with_generation(generations[0] as u16);
        let edge_tablet = if self.is_outgoing { self.tablet } else { neighbor.tablet() };
        let edge = EdgeId::new(edge_tablet, last.edge).with_generation(generations[1] as u16);
        Ok(ListEntry { slot: self.slot, labels, neighbor, edge })
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
