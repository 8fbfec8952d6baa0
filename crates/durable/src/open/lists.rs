//! Lists of edges as bytes: what blocks of topology and their deltas have in common.
//!
//! ```text
//! list      runs, by ascending label set
//! run       label set, 2 × count + g, [bytes of each part of 1,024 entries, if there are more than that], entries
//! entry     neighbor number, edge slot index: each as the signed difference from the last entry; [generations of both, if g]
//! ```
//!
//! Numbers are varints. A neighbor number is its slot index, shifted by the bits of a tablet number, and its tablet. Each part
//! of a run begins with differences from the owner's number and from edge slot index 0, so a part can be read alone. The
//! tablet of an edge is that of its source.
//!
//! The bytes of lists are in stripes of 4,096 bytes, each with a CRC32C. So a reader of one list reads and checks whole
//! stripes.

use mangrove_graph::{EdgeId, GENERATION_MAX, GENERATION_SHIFT, LabelSetId, TabletId, VertexId};
use mangrove_store::lists::ListEntry;

use crate::codec::{Malformed, Reader, put_signed, put_varint};

/// Bytes of lists that one checksum covers.
pub(super) const STRIPE_BYTES: usize = 4_096;
/// The entries of a part of a run.
const PART_ENTRIES: usize = 1_024;
/// The slot index of an id.
pub(super) const INDEX_MASK: u64 = (1 << GENERATION_SHIFT) - 1;

/// How many bits the number of a tablet takes in a graph with so many.
pub(crate) fn tablet_bits(tablet_count: u16) -> u32 {
    u16::BITS - tablet_count.leading_zeros()
}

/// The number by which a list names a neighbor: slot index and tablet. Without the generation.
pub(super) fn neighbor_number(id: VertexId, bits: u32) -> u64 {
    ((id.to_bits() & INDEX_MASK) << bits) | u64::from(id.tablet().0)
}

fn edge_index(id: EdgeId) -> u64 {
    id.to_bits() & INDEX_MASK
}

/// What decides the order of entries in a block: owner, label set, neighbor, edge.
pub(super) type EntryKey = (u16, LabelSetId, (u64, u16), u64, u16);

/// The place of an entry in the order of a block.
pub(super) fn entry_key(entry: &ListEntry, bits: u32) -> EntryKey {
    let neighbor = (neighbor_number(entry.neighbor, bits), entry.neighbor.generation());
    (entry.slot, entry.labels, neighbor, edge_index(entry.edge), entry.edge.generation())
}

/// Puts entries in the order of a block.
pub(super) fn sort(entries: &mut [ListEntry], bits: u32) {
    entries.sort_unstable_by_key(|entry| entry_key(entry, bits));
}

/// Returns true if two entries are in the list of the same vertex of a page.
pub(super) fn same_slot(one: &ListEntry, other: &ListEntry) -> bool {
    one.slot == other.slot
}

/// Appends the checksums of the stripes of these bytes.
pub(super) fn put_stripes(bytes: &[u8], out: &mut Vec<u8>) {
    bytes.chunks(STRIPE_BYTES).for_each(|stripe| out.extend_from_slice(&crc32c::crc32c(stripe).to_le_bytes()));
}

/// Reads the checksums of the stripes of these bytes, and checks each.
pub(super) fn check_stripes(bytes: &[u8], reader: &mut Reader<'_>) -> Result<(), Malformed> {
    for stripe in bytes.chunks(STRIPE_BYTES) {
        if reader.u32()? != crc32c::crc32c(stripe) {
            return Err(Malformed { at: 0, what: "the checksum of a stripe of lists is wrong" });
        }
    }
    Ok(())
}

/// The differences from which the next entry is read.
#[derive(Clone, Copy)]
pub(super) struct Last {
    pub(super) neighbor: u64,
    pub(super) edge: u64,
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

/// The vertex whose list it is, and the direction of the list.
#[derive(Clone, Copy)]
pub(super) struct ListOwner {
    pub(super) tablet: TabletId,
    pub(super) slot: u16,
    /// Its slot index.
    pub(super) index: u64,
    pub(super) is_outgoing: bool,
    /// The bits of a tablet number.
    pub(super) bits: u32,
}

impl ListOwner {
    /// The number of the owner, from which the differences of a part begin.
    fn number(&self) -> u64 {
        (self.index << self.bits) | u64::from(self.tablet.0)
    }

    /// Appends a list, whose entries are sorted.
    pub(super) fn put_list(&self, list: &[ListEntry], out: &mut Vec<u8>) {
        let runs = list.chunk_by(|one, other| one.labels == other.labels);
        runs.for_each(|run| put_run(run, self.number(), self.bits, out));
    }

    /// Reads a list that takes all of the bytes, and appends its entries.
    pub(super) fn read_list(&self, reader: &mut Reader<'_>, out: &mut Vec<ListEntry>) -> Result<(), Malformed> {
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
            let mut at = Last { neighbor: self.number(), edge: 0 };
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
        let key = |entry: &ListEntry| entry_key(entry, self.bits);
        match out[start..].is_sorted_by(|one, other| key(one) < key(other)) {
            true => Ok(()),
            false => Err(reader.malformed("the entries of a run are not in order")),
        }
    }

    /// Reads an entry, as the difference from the last one.
    pub(super) fn read_entry(
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
