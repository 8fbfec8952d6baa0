//! What has changed in the lists of a page of vertices since a topology block: the body of a block of kind 4.
//!
//! ```text
//! head      first slot index 8 | tablet 4 | label set 4 | slots n 4 | bits of a tablet number 4
//!           | timestamp 8 | timestamp of the base 8 | checksum of layers 1 and 2 of the base 4
//!           | A 4 | bytes of the changes 4 | flags 4: 0 | outgoing entries 4 | incoming entries 4
//! slots     count; for each slot with another vertex, or another generation: gap, 2 × generation + 1 if it has a vertex
//! owners    count; for each vertex with other lists: gap, bytes of its change
//!           | CRC of each stripe of the changes, 4 each | CRC of all before it 4
//! changes   begin at A: for each owner that of its outgoing list, then that of its incoming list
//!
//! change    count of removed entries; for each: gap. Bytes of the added entries; these, as a list
//! ```
//!
//! Fixed numbers are little-endian, others are varints. A *gap* is what lies between a number and the one before it in its list.
//! A removed entry is named by its place in the list of the base, from 0. [`super::lists`] has the bytes of a list.
//!
//! - **LOG-103.** A delta is of one block, its *base*: the newest block of kind 3 of its page, which it names by timestamp and
//!   checksum. Lists are those of the base, without the removed entries, with the added ones. The newest delta of a page
//!   counts, if no later block of kind 3 does: it has all changes since the base.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use mangrove_graph::{ElementKind, GENERATION_MAX, LabelSetId, PAGE_SLOTS, TabletId};
use mangrove_store::image::PageName;
use mangrove_store::lists::{ListEntry, PageLists};

use super::lists::{INDEX_MASK, STRIPE_BYTES, check_stripes, entry_key, put_stripes, same_slot, sort};
use super::topology::{TopologyBlock, owner_at};
use crate::codec::{Malformed, Reader, put_varint};

/// Bytes of the head.
const FIXED_BYTES: usize = 64;

/// The topology block that a delta is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DeltaBase {
    /// The block has the lists at this timestamp.
    pub(crate) at_ts: u64,
    /// The checksum of its layers 1 and 2. These have checksums of all lists.
    pub(crate) checksum: u32,
}

/// The content of a delta.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TopologyDelta {
    /// The page: one of vertices.
    pub(crate) name: PageName,
    /// Block and delta together have the lists of the graph at this timestamp.
    pub(crate) at_ts: u64,
    pub(crate) base: DeltaBase,
    tablet_bits: u32,
    labels: LabelSetId,
    used: u32,
    /// The entries of all outgoing lists, and of all incoming lists, after the changes.
    entries: [u32; 2],
    /// Ascending.
    slots: Vec<SlotChange>,
    /// What has changed in the outgoing and in the incoming list, by the slots of the vertices.
    lists: BTreeMap<u16, [ListChange; 2]>,
}

/// A slot that has another vertex than in the base, or none, or another generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SlotChange {
    slot: u16,
    generation: u16,
    is_live: bool,
}

/// What has changed in a list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct ListChange {
    /// The places in the list of the base, ascending.
    removed: Vec<u32>,
    /// Sorted as in a block.
    added: Vec<ListEntry>,
}

impl ListChange {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }
}

/// The outgoing and the incoming lists of a page.
fn sides(lists: &PageLists) -> [&Vec<ListEntry>; 2] {
    [&lists.outgoing, &lists.incoming]
}

/// The generation of a slot, and whether it has a vertex.
fn slot_of(lists: &PageLists, at: usize) -> (u16, bool) {
    (lists.generations.get(at).copied().unwrap_or(0), lists.live.contains(at))
}

impl TopologyDelta {
    /// What has changed in a page since its block. The lists of both are sorted as in a block. Returns `None` if the block
    /// cannot be the base: the page has another label set, or fewer slots.
    pub(crate) fn between(block: &TopologyBlock, checksum: u32, now: &TopologyBlock) -> Option<Self> {
        let (old, new) = (&block.lists, &now.lists);
        let is_base = (old.name, old.labels, block.tablet_bits) == (new.name, new.labels, now.tablet_bits);
        if !is_base || old.used > new.used || block.at_ts > now.at_ts {
            return None;
        }
        let slots = (0..new.used as usize).filter(|&at| slot_of(old, at) != slot_of(new, at));
        let slots = slots.map(|at| {
            let (generation, is_live) = slot_of(new, at);
            SlotChange { slot: at as u16, generation, is_live }
        });
        let mut delta = TopologyDelta {
            name: new.name,
            at_ts: now.at_ts,
            base: DeltaBase { at_ts: block.at_ts, checksum },
            tablet_bits: now.tablet_bits,
            labels: new.labels,
            used: new.used,
            entries: sides(new).map(|entries| entries.len() as u32),
            slots: slots.collect(),
            lists: BTreeMap::new(),
        };
        for (direction, (old, new)) in sides(old).into_iter().zip(sides(new)).enumerate() {
            delta.compare(direction, old, new);
        }
        Some(delta)
    }

    /// Returns true if nothing has changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.lists.is_empty()
    }

    /// Notes how the lists of one direction differ.
    fn compare(&mut self, direction: usize, old: &[ListEntry], new: &[ListEntry]) {
        let key = |entry: &ListEntry| entry_key(entry, self.tablet_bits);
        let (mut at, mut next, mut list_begin) = (0, 0, 0);
        loop {
            let order = match (old.get(at), new.get(next)) {
                (Some(one), Some(other)) => key(one).cmp(&key(other)),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            if old.get(at).is_some_and(|entry| !same_slot(entry, &old[list_begin])) {
                list_begin = at;
            }
            match order {
                Ordering::Equal => (at, next) = (at + 1, next + 1),
                Ordering::Less => {
                    let place = (at - list_begin) as u32;
                    self.lists.entry(old[at].slot).or_default()[direction].removed.push(place);
                    at += 1;
                }
                Ordering::Greater => {
                    self.lists.entry(new[next].slot).or_default()[direction].added.push(new[next]);
                    next += 1;
                }
            }
        }
    }

    /// The lists of the page, from the lists of the base.
    ///
    /// # Errors
    ///
    /// If the block is not the base, or if the two contradict each other; as a clause.
    pub(crate) fn apply(&self, block: &TopologyBlock, checksum: u32) -> Result<TopologyBlock, &'static str> {
        let old = &block.lists;
        if (self.base, self.name) != (DeltaBase { at_ts: block.at_ts, checksum }, old.name) {
            return Err("it is of another block than the one that counts");
        }
        if (self.labels, self.tablet_bits) != (old.labels, block.tablet_bits) || self.used < old.used {
            return Err("it has another label set than its block, or fewer slots");
        }
        let mut generations: Vec<u16> = (0..self.used as usize).map(|at| slot_of(old, at).0).collect();
        let mut live = old.live;
        for change in &self.slots {
            let at = usize::from(change.slot);
            generations[at] = change.generation;
            match change.is_live {
                true => live.insert(at),
                false => live.remove(at),
            }
        }
        if generations.iter().all(|&generation| generation == 0) {
            generations.clear();
        }
        let [outgoing, incoming] = [0, 1].map(|direction| self.changed(direction, sides(old)[direction]));
        let (outgoing, incoming) = (outgoing?, incoming?);
        if [outgoing.len(), incoming.len()] != self.entries.map(|count| count as usize) {
            return Err("the lists have another number of entries than it says");
        }
        if outgoing.iter().chain(&incoming).any(|entry| !live.contains(usize::from(entry.slot))) {
            return Err("a slot without a vertex has a list");
        }
        let (name, labels, used) = (self.name, self.labels, self.used);
        let lists = PageLists { name, labels, used, generations, live, outgoing, incoming };
        Ok(TopologyBlock { at_ts: self.at_ts, tablet_bits: self.tablet_bits, lists })
    }

    /// The entries of one direction after the changes.
    fn changed(&self, direction: usize, old: &[ListEntry]) -> Result<Vec<ListEntry>, &'static str> {
        let mut entries = Vec::with_capacity(old.len());
        // The lists that lose entries and that the base does not have.
        let mut unknown = self.lists.values().filter(|change| !change[direction].removed.is_empty()).count();
        for list in old.chunk_by(same_slot) {
            let removed = self.lists.get(&list[0].slot).map_or(&[][..], |change| &change[direction].removed);
            if removed.last().is_some_and(|&last| last as usize >= list.len()) {
                return Err("it removes an entry that the list of its block does not have");
            }
            unknown -= usize::from(!removed.is_empty());
            let mut removed = removed.iter().copied().peekable();
            let stays = |&(place, _): &(usize, &ListEntry)| removed.next_if_eq(&(place as u32)).is_none();
            entries.extend(list.iter().enumerate().filter(stays).map(|(_, entry)| *entry));
        }
        if unknown > 0 {
            return Err("it removes an entry of a list that its block does not have");
        }
        entries.extend(self.lists.values().flat_map(|change| &change[direction].added));
        sort(&mut entries, self.tablet_bits);
        let key = |entry: &ListEntry| entry_key(entry, self.tablet_bits);
        match entries.is_sorted_by(|one, other| key(one) < key(other)) {
            true => Ok(entries),
            false => Err("it adds an entry that the list of its block has"),
        }
    }
}

/// Appends a delta.
pub(crate) fn put_delta(delta: &TopologyDelta, out: &mut Vec<u8>) {
    let (mut table, mut changes, mut list) = (Vec::new(), Vec::new(), Vec::new());
    let (slots, owners) = (delta.slots.iter().map(|change| change.slot.into()), delta.lists.keys().copied());
    put_varint(delta.slots.len() as u64, &mut table);
    for (change, gap) in delta.slots.iter().zip(gaps(slots)) {
        put_varint(gap, &mut table);
        put_varint(2 * u64::from(change.generation) + u64::from(change.is_live), &mut table);
    }
    put_varint(delta.lists.len() as u64, &mut table);
    for ((slot, of_vertex), gap) in delta.lists.iter().zip(gaps(owners.map(u32::from))) {
        let start = changes.len();
        for (direction, change) in of_vertex.iter().enumerate() {
            put_varint(change.removed.len() as u64, &mut changes);
            gaps(change.removed.iter().copied()).for_each(|gap| put_varint(gap, &mut changes));
            list.clear();
            let owner = owner_at(delta.name, usize::from(*slot), direction == 0, delta.tablet_bits);
            owner.put_list(&change.added, &mut list);
            put_varint(list.len() as u64, &mut changes);
            changes.extend_from_slice(&list);
        }
        put_varint(gap, &mut table);
        put_varint((changes.len() - start) as u64, &mut table);
    }
    let start = out.len();
    let head = FIXED_BYTES + table.len() + 4 * changes.len().div_ceil(STRIPE_BYTES) + 4;
    out.extend_from_slice(&(u64::from(delta.name.number) * PAGE_SLOTS).to_le_bytes());
    for word in [u32::from(delta.name.tablet.0), delta.labels.0, delta.used, delta.tablet_bits] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for long in [delta.at_ts, delta.base.at_ts] {
        out.extend_from_slice(&long.to_le_bytes());
    }
    let [outgoing, incoming] = delta.entries;
    for word in [delta.base.checksum, head as u32, changes.len() as u32, 0, outgoing, incoming] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    debug_assert_eq!(out.len() - start, FIXED_BYTES, "the head is as long as it says");
    out.extend_from_slice(&table);
    put_stripes(&changes, out);
    let crc = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&changes);
}

/// What lies between each number and the one before it.
fn gaps(numbers: impl Iterator<Item = u32>) -> impl Iterator<Item = u64> {
    let mut next = 0;
    numbers.map(move |number| {
        let gap = u64::from(number) - next;
        next = u64::from(number) + 1;
        gap
    })
}

/// Reads the number after `last` of a list of gaps, which is below `end`.
fn read_number(last: Option<u32>, end: u32, reader: &mut Reader<'_>) -> Result<u32, Malformed> {
    let large = reader.malformed("a number larger than it can be");
    let number = last.map_or(0, |last| u64::from(last) + 1).saturating_add(reader.varint()?);
    u32::try_from(number).ok().filter(|&number| number < end).ok_or(large)
}

/// Reads a delta that takes all of the bytes.
pub(crate) fn read_delta(bytes: &[u8]) -> Result<TopologyDelta, Malformed> {
    let wrong = |what| Err(Malformed { at: 0, what });
    let mut reader = Reader::new(bytes);
    let first = reader.u64()?;
    let [tablet, labels, used, bits] = [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
    let (at_ts, base_ts) = (reader.u64()?, reader.u64()?);
    let [checksum, head, length, flags] = [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
    let entries = [reader.u32()?, reader.u32()?];
    let (head, length) = (head as usize, length as usize);
    if head < FIXED_BYTES + 4 || head.checked_add(length) != Some(bytes.len()) {
        return wrong("a delta of topology of another length than it says");
    }
    let (head, changes) = bytes.split_at(head);
    let (covered, crc) = head.split_at(head.len() - 4);
    if crc != crc32c::crc32c(covered).to_le_bytes() {
        return wrong("the checksum of the head of a delta is wrong");
    }
    if flags != 0 {
        return wrong("a delta with flags that this version does not know");
    }
    let is_possible = first % PAGE_SLOTS == 0 && first <= INDEX_MASK && u64::from(used) <= PAGE_SLOTS;
    let Some((tablet, number)) = u16::try_from(tablet).ok().zip(u32::try_from(first / PAGE_SLOTS).ok()) else {
        return wrong("a delta of a page with an impossible name");
    };
    let is_possible = is_possible && (1..=u16::BITS).contains(&bits) && u32::from(tablet) >> bits == 0;
    if !is_possible || base_ts > at_ts {
        return wrong("a delta of impossible slots or times");
    }
    let mut delta = TopologyDelta {
        name: PageName { tablet: TabletId(tablet), kind: ElementKind::Vertex, number },
        at_ts,
        base: DeltaBase { at_ts: base_ts, checksum },
        tablet_bits: bits,
        labels: LabelSetId(labels),
        used,
        entries,
        slots: Vec::new(),
        lists: BTreeMap::new(),
    };
    let Some(table) = (covered.len() - FIXED_BYTES).checked_sub(4 * changes.chunks(STRIPE_BYTES).len()) else {
        return wrong("a delta without checksums of its changes");
    };
    let mut table = Reader::new(&covered[FIXED_BYTES..][..table]);
    let mut stripes = Reader::new(&covered[FIXED_BYTES + table.left()..]);
    check_stripes(changes, &mut stripes)?;
    for _ in 0..table.count()? {
        let slot = read_number(delta.slots.last().map(|last| last.slot.into()), used, &mut table)?;
        let large = table.malformed("a generation that no slot can have");
        let state = table.varint()?;
        let generation = u16::try_from(state / 2).ok().filter(|&found| found <= GENERATION_MAX).ok_or(large)?;
        delta.slots.push(SlotChange { slot: slot as u16, generation, is_live: state % 2 == 1 });
    }
    let mut changes = Reader::new(changes);
    for _ in 0..table.count()? {
        let last = delta.lists.last_key_value().map(|(slot, _)| u32::from(*slot));
        let slot = read_number(last, used, &mut table)? as u16;
        let length = usize::try_from(table.varint()?).unwrap_or(usize::MAX);
        let at = head.len() as u64 + changes.position();
        let read = delta.read_changes(slot, changes.take(length)?);
        let read = read.map_err(|malformed| Malformed { at: at + malformed.at, ..malformed })?;
        delta.lists.insert(slot, read);
    }
    table.expect_end()?;
    changes.expect_end()?;
    Ok(delta)
}

impl TopologyDelta {
    /// Reads the changes of both lists of a vertex.
    fn read_changes(&self, slot: u16, bytes: &[u8]) -> Result<[ListChange; 2], Malformed> {
        let reader = &mut Reader::new(bytes);
        let mut changes = <[ListChange; 2]>::default();
        for (direction, change) in changes.iter_mut().enumerate() {
            for _ in 0..reader.count()? {
                let place = read_number(change.removed.last().copied(), u32::MAX, reader)?;
                change.removed.push(place);
            }
            let length = reader.count()?;
            let at = reader.position();
            let owner = owner_at(self.name, usize::from(slot), direction == 0, self.tablet_bits);
            let read = owner.read_list(&mut Reader::new(reader.take(length)?), &mut change.added);
            read.map_err(|malformed| Malformed { at: at + malformed.at, ..malformed })?;
        }
        reader.expect_end()?;
        match changes.iter().all(ListChange::is_empty) {
            true => Err(reader.malformed("a vertex with other lists, of which nothing has changed")),
            false => Ok(changes),
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
