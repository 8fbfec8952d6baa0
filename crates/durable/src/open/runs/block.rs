//! A run as the body of a block of kind 7 or 8.
//!
//! ```text
//! head      A 4 | number of the index 4 | timestamp 8 | entries 8 | bytes of all stripes L 8 | stripes s 4 | flags 4: 0
//!           | for each stripe: offset from A 4, CRC of its bytes 4
//!           | for each stripe the key of its first entry: in kind 7 the hash 8, in kind 8 its values
//!           | CRC of all before it 4
//! stripes   begin at A: entries, one after the other
//! entry     kind 7: hash, as the difference from the hash before it; the element
//!           kind 8: values, the element
//! values    count of values, then each (`codec::put_value`)
//! element   2 × slot index + g, tablet, and if g is 1 the generation
//! ```
//!
//! Fixed numbers are little-endian, others are varints. CRCs are CRC32C. The hash before the first entry of a stripe is that in
//! the head. A stripe of kind 7 has 1,024 entries, the last one fewer. A stripe of kind 8 is ended when it has 16 KiB.
//! Entries are sorted by key and element. So a reader takes the head once, and one stripe for a look-up.

use std::ops::Range;

use mangrove_graph::{GENERATION_MAX, GENERATION_SHIFT, TabletId, VertexId};

use super::entries::{Entry, RunKey};
use super::{KIND_ORDERED, LookUpIndex};
use crate::codec::{Malformed, Reader, put_varint, read_value};

/// Bytes of the head before the table of stripes.
const FIXED_BYTES: usize = 40;
/// Entries of a stripe of kind 7.
const STRIPE_ENTRIES: usize = 1_024;
/// A stripe of kind 8 is ended at this size.
const STRIPE_BYTES: usize = 16 << 10;

/// The head of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunHead {
    /// The number of its index.
    pub(crate) number: u32,
    /// The entries are those of the graph at this timestamp.
    pub(crate) at_ts: u64,
    /// The number of entries.
    pub(crate) entries: u64,
    /// Bytes of the head.
    bytes: u64,
    stripes: Vec<Stripe>,
}

#[derive(Clone, Debug)]
struct Stripe {
    /// The key of its first entry.
    first: RunKey,
    /// Where it lies in the block.
    range: Range<u64>,
    crc: u32,
}

/// Appends a run of these entries, which are sorted. Returns the bytes of its head.
pub(crate) fn put_run(index: &LookUpIndex, at_ts: u64, entries: &[Entry], out: &mut Vec<u8>) -> u64 {
    let (mut stripes, mut table, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rest, mut count) = (entries, 0_u32);
    while let Some(first) = rest.first() {
        let begin = stripes.len();
        match &first.key {
            RunKey::Hash(hash) => firsts.extend_from_slice(&hash.to_le_bytes()),
            RunKey::Values(values) => RunKey::put_values(values, &mut firsts),
        }
        let (mut last, mut taken) = (&first.key, 0);
        for entry in rest {
            let is_full = match entry.key {
                RunKey::Hash(_) => taken == STRIPE_ENTRIES,
                RunKey::Values(_) => stripes.len() - begin >= STRIPE_BYTES,
            };
            if is_full {
                break;
            }
            put_entry(entry, last, &mut stripes);
            (last, taken) = (&entry.key, taken + 1);
        }
        rest = &rest[taken..];
        // A block has less than 4 GiB, which the pack checks.
        table.extend_from_slice(&(begin as u32).to_le_bytes());
        table.extend_from_slice(&crc32c::crc32c(&stripes[begin..]).to_le_bytes());
        count += 1;
    }
    let head = FIXED_BYTES + table.len() + firsts.len() + 4;
    let start = out.len();
    out.extend_from_slice(&(head as u32).to_le_bytes());
    out.extend_from_slice(&index.number.to_le_bytes());
    for long in [at_ts, entries.len() as u64, stripes.len() as u64] {
        out.extend_from_slice(&long.to_le_bytes());
    }
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&table);
    out.extend_from_slice(&firsts);
    let crc = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&stripes);
    head as u64
}

fn put_entry(entry: &Entry, last: &RunKey, out: &mut Vec<u8>) {
    match (&entry.key, last) {
        (RunKey::Hash(hash), RunKey::Hash(last)) => put_varint(hash - last, out),
        (RunKey::Hash(hash), RunKey::Values(_)) => put_varint(*hash, out),
        (RunKey::Values(values), _) => RunKey::put_values(values, out),
    }
    let id = VertexId::from_bits(entry.element);
    let (generation, index) = (id.generation(), id.slot() & ((1 << GENERATION_SHIFT) - 1));
    put_varint(2 * index + u64::from(generation > 0), out);
    put_varint(u64::from(id.tablet().0), out);
    if generation > 0 {
        put_varint(u64::from(generation), out);
    }
}

fn read_entry(reader: &mut Reader<'_>, last: &RunKey) -> Result<Entry, Malformed> {
    let impossible = |reader: &Reader<'_>| reader.malformed("an element with an impossible id");
    let key = match last {
        RunKey::Hash(last) => {
            let large = reader.malformed("a hash of more than 64 bits");
            RunKey::Hash(last.checked_add(reader.varint()?).ok_or(large)?)
        }
        RunKey::Values(_) => RunKey::Values(read_values(reader)?),
    };
    let at = impossible(reader);
    let slot = reader.varint()?;
    let (tablet, mut generation) = (reader.varint()?, 0);
    if slot % 2 == 1 {
        generation = reader.varint()?;
    }
    let (index, tablet) = (slot / 2, u16::try_from(tablet).ok().filter(|&tablet| tablet > 0));
    let is_possible = index >> GENERATION_SHIFT == 0
        && generation <= u64::from(GENERATION_MAX)
        && (generation > 0) == (slot % 2 == 1);
    match tablet.filter(|_| is_possible) {
        Some(tablet) => {
            let id = VertexId::new(TabletId(tablet), index).with_generation(generation as u16);
            Ok(Entry { key, element: id.to_bits() })
        }
        None => Err(at),
    }
}

fn read_values(reader: &mut Reader<'_>) -> Result<Box<[mangrove_graph::Value]>, Malformed> {
    let count = reader.count()?;
    Ok(reader.repeat(count, read_value)?.into())
}

impl RunHead {
    /// Reads the head of a run of a kind from its first bytes, which are at least the head.
    pub(crate) fn read(kind: u8, bytes: &[u8]) -> Result<Self, Malformed> {
        let is_ordered = kind == KIND_ORDERED;
        let wrong = |what| Err(Malformed { at: 0, what });
        let reader = &mut Reader::new(bytes);
        let length = reader.u32()? as usize;
        let Some(head) = bytes.get(..length).filter(|_| length >= FIXED_BYTES + 4) else {
            return wrong("the head of a run is not as long as it says");
        };
        let (covered, crc) = head.split_at(length - 4);
        if crc != crc32c::crc32c(covered).to_le_bytes() {
            return wrong("the checksum of the head of a run is wrong");
        }
        let reader = &mut Reader::new(covered);
        reader.take(4)?;
        let (number, at_ts, entries, all) = (reader.u32()?, reader.u64()?, reader.u64()?, reader.u64()?);
        let (count, flags) = (reader.u32()? as usize, reader.u32()?);
        if flags != 0 {
            return wrong("a run with flags that this version does not know");
        }
        let table = reader.take(count.saturating_mul(8))?;
        let mut places = table.chunks_exact(8).map(|place| {
            let word = |at: usize| u32::from_le_bytes(place[at..at + 4].try_into().expect("four bytes"));
            (u64::from(word(0)), word(4))
        });
        let begins: Vec<(u64, u32)> = places.by_ref().collect();
        let ends = begins.iter().skip(1).map(|(begin, _)| *begin).chain([all]);
        let mut stripes = Vec::with_capacity(count);
        let base = length as u64;
        for ((begin, crc), end) in begins.iter().copied().zip(ends) {
            if begin >= end || (stripes.is_empty() && begin != 0) {
                return wrong("the stripes of a run are not in order");
            }
            let first = match is_ordered {
                true => RunKey::Values(read_values(reader)?),
                false => RunKey::Hash(reader.u64()?),
            };
            stripes.push(Stripe { first, range: base + begin..base.saturating_add(end), crc });
        }
        reader.expect_end()?;
        if stripes.is_empty() != (entries == 0) || (stripes.is_empty() && all > 0) {
            return wrong("a run whose stripes do not have its entries");
        }
        if stripes.windows(2).any(|pair| pair[0].first > pair[1].first) {
            return wrong("the first keys of the stripes of a run are not in order");
        }
        Ok(RunHead { number, at_ts, entries, bytes: base, stripes })
    }

    /// Bytes of the head.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the block.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.stripes.last().map_or(self.bytes, |last| last.range.end)
    }

    /// The stripes that may have entries between two keys. `is_before` says whether a key is before the interval, and `is_after`
    /// whether it is after it.
    pub(crate) fn stripes_between(
        &self,
        is_before: impl Fn(&RunKey) -> bool,
        is_after: impl Fn(&RunKey) -> bool,
    ) -> Range<usize> {
        // Entries with one key may begin in the stripe before the first one that begins with the key.
        let begin = self.stripes.partition_point(|stripe| is_before(&stripe.first)).saturating_sub(1);
        let end = self.stripes.partition_point(|stripe| !is_after(&stripe.first));
        begin..end.max(begin)
    }

    /// Where these stripes lie in the block. They are one range.
    pub(crate) fn range_of(&self, stripes: Range<usize>) -> Range<u64> {
        match self.stripes.get(stripes).and_then(|stripes| stripes.first().zip(stripes.last())) {
            Some((first, last)) => first.range.start..last.range.end,
            None => 0..0,
        }
    }

    /// Reads stripes from the bytes of their range, and checks them.
    pub(crate) fn read_stripes(&self, stripes: Range<usize>, bytes: &[u8]) -> Result<Vec<Entry>, Malformed> {
        let begin = self.range_of(stripes.clone()).start;
        let mut entries = Vec::new();
        for stripe in self.stripes.get(stripes).unwrap_or_default() {
            let at = (stripe.range.start - begin) as usize;
            let wrong = |what| Malformed { at: stripe.range.start, what };
            let bytes = bytes.get(at..at + (stripe.range.end - stripe.range.start) as usize);
            let bytes = bytes.ok_or_else(|| wrong("a run is shorter than its stripes"))?;
            if crc32c::crc32c(bytes) != stripe.crc {
                return Err(wrong("the checksum of a stripe of a run is wrong"));
            }
            let first_at = entries.len();
            let reader = &mut Reader::new(bytes);
            let mut last = stripe.first.clone();
            while !reader.is_at_end() {
                let read = read_entry(reader, &last);
                let entry: Entry = read.map_err(|error| Malformed { at: stripe.range.start + error.at, ..error })?;
                last = entry.key.clone();
                if entries.last().is_some_and(|before| *before >= entry) {
                    return Err(wrong("the entries of a run are not in order"));
                }
                entries.push(entry);
            }
            if entries[first_at].key != stripe.first {
                return Err(wrong("a stripe of a run begins with another key than the head says"));
            }
        }
        Ok(entries)
    }
}

/// Reads a run of a kind that takes all of the bytes, and checks everything that it has twice.
pub(crate) fn read_run(kind: u8, bytes: &[u8]) -> Result<(RunHead, Vec<Entry>), Malformed> {
    let head = RunHead::read(kind, bytes)?;
    if head.block_bytes() != bytes.len() as u64 {
        return Err(Malformed { at: 0, what: "a run of another length than it says" });
    }
    let all = 0..head.stripes.len();
    let range = head.range_of(all.clone());
    let entries = head.read_stripes(all, &bytes[range.start as usize..range.end as usize])?;
    match entries.len() as u64 == head.entries {
        true => Ok((head, entries)),
        false => Err(Malformed { at: 0, what: "a run with another number of entries than it says" }),
    }
}

#[cfg(test)]
mod tests {
    use mangrove_graph::{ElementKind, IndexId, IndexInfo, KeyId, Value};

    use super::*;
    use crate::open::runs::{KIND_HASHED, LookUpBy};

    fn index(ordered: bool) -> LookUpIndex {
        let info = IndexInfo {
            id: IndexId(3),
            element: ElementKind::Vertex,
            label: None,
            keys: [KeyId(0)].into(),
            ordered,
            unique: false,
        };
        LookUpIndex::all(&[info]).pop().unwrap()
    }

    fn entries(ordered: bool, count: u64) -> Vec<Entry> {
        let key = |n: u64| match ordered {
            false => RunKey::Hash((n / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            true if n.is_multiple_of(5) => RunKey::Values([Value::from(n as i64 / 7), "x".into()].into()),
            true => RunKey::Values([Value::from(&*format!("a text {}", n / 3))].into()),
        };
        let id = |n: u64| VertexId::new(TabletId(1 + (n % 3) as u16), n).with_generation((n % 4) as u16);
        let mut entries: Vec<Entry> = (0..count).map(|n| Entry { key: key(n), element: id(n).to_bits() }).collect();
        entries.sort_unstable();
        entries
    }

    #[test]
    fn a_run_comes_back_and_any_part_of_it() {
        for (ordered, count) in [(false, 0), (true, 0), (false, 1), (true, 1), (false, 5_000), (true, 5_000)] {
            let (index, entries) = (index(ordered), entries(ordered, count));
            let mut body = Vec::new();
            let head_bytes = put_run(&index, 77, &entries, &mut body);
            let (head, read) = read_run(index.kind(), &body).unwrap();
            assert_eq!((head.number, head.at_ts, head.entries, head.bytes()), (5, 77, count, head_bytes));
            assert!(read == entries);
            assert!(count < 5_000 || head.stripes.len() > 4, "{} stripes", head.stripes.len());
            assert!(matches!(index.by, LookUpBy::Values { .. }));
            for entry in entries.iter().step_by(37) {
                let stripes = head.stripes_between(|key| *key < entry.key, |key| *key > entry.key);
                assert!(stripes.len() <= 2, "{stripes:?}");
                let range = head.range_of(stripes.clone());
                let part = &body[range.start as usize..range.end as usize];
                let found = head.read_stripes(stripes, part).unwrap();
                let expected = entries.iter().filter(|other| other.key == entry.key);
                assert!(found.iter().filter(|other| other.key == entry.key).eq(expected));
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        for kind in [KIND_HASHED, KIND_ORDERED] {
            let ordered = kind == KIND_ORDERED;
            let mut body = Vec::new();
            put_run(&index(ordered), 77, &entries(ordered, 1_500), &mut body);
            for at in 0..body.len() {
                body[at] ^= 1 << (at % 8);
                assert!(read_run(kind, &body).is_err(), "byte {at}");
                body[at] ^= 1 << (at % 8);
            }
            assert!((0..body.len()).step_by(7).all(|end| read_run(kind, &body[..end]).is_err()));
        }
    }
}
