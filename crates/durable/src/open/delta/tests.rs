//! A block and its delta give the lists that the delta was made from; a delta with any other byte or length is refused.

use mangrove_graph::{EdgeId, VertexId};
use mangrove_store::image::SlotSet;
use proptest::prelude::*;

use super::*;
use crate::open::{layers_checksum, put_topology, read_topology};

const BITS: u32 = 3;
const PAGE: PageName = PageName { tablet: TabletId(5), kind: ElementKind::Vertex, number: 3 };

/// An entry: owner, label set, neighbor (tablet, slot index, generation), edge (slot index, generation).
type Drawn = (u16, u32, (u16, u64, u16), (u64, u16));

fn drawn_entries() -> impl Strategy<Value = Vec<Drawn>> {
    let generation = || prop_oneof![9 => Just(0_u16), 1 => 0..=GENERATION_MAX];
    let neighbor = (1..8_u16, prop_oneof![0..20_u64, Just(INDEX_MASK)], generation());
    prop::collection::vec((0..60_u16, 0..4_u32, neighbor, (0..20_u64, generation())), 0..150)
}

fn generations() -> impl Strategy<Value = Vec<u16>> {
    prop_oneof![Just(Vec::new()), prop::collection::vec(0..3_u16, 40..61)]
}

/// The lists of a page with so many slots. Slots in `dead` have no vertex, and so no lists.
fn block(at_ts: u64, used: u32, drawn: [&[Drawn]; 2], mut generations: Vec<u16>, dead: &[usize]) -> TopologyBlock {
    let mut live: SlotSet = (0..used as usize).collect();
    dead.iter().for_each(|&at| live.remove(at));
    let [outgoing, incoming] = [0, 1].map(|direction| {
        let entry = |&(slot, labels, (tablet, index, generation), (edge, edge_generation)): &Drawn| {
            let neighbor = VertexId::new(TabletId(tablet), index).with_generation(generation);
            let tablet = if direction == 0 { PAGE.tablet } else { neighbor.tablet() };
            let edge = EdgeId::new(tablet, edge).with_generation(edge_generation);
            ListEntry { slot, labels: LabelSetId(labels), neighbor, edge }
        };
        let mut entries: Vec<ListEntry> =
            drawn[direction].iter().map(entry).filter(|entry| live.contains(entry.slot.into())).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    });
    if !generations.is_empty() {
        generations.resize(used as usize, 0);
    }
    if generations.iter().all(|generation| *generation == 0) {
        generations.clear();
    }
    let lists = PageLists { name: PAGE, labels: LabelSetId(9), used, generations, live, outgoing, incoming };
    TopologyBlock::new(at_ts, BITS, lists)
}

/// The block as it is read, its checksum, and the bytes of the delta to other lists.
fn written(base: &TopologyBlock, now: &TopologyBlock) -> (u32, Vec<u8>) {
    let (mut bytes, mut delta) = (Vec::new(), Vec::new());
    put_topology(base, &mut bytes);
    assert_eq!(read_topology(&bytes).unwrap(), *base);
    let checksum = layers_checksum(&bytes);
    put_delta(&TopologyDelta::between(base, checksum, now).unwrap(), &mut delta);
    (checksum, delta)
}

proptest! {
    #[test]
    fn block_and_delta_have_the_lists(
        common in [drawn_entries(), drawn_entries()],
        before in [drawn_entries(), drawn_entries()],
        after in [drawn_entries(), drawn_entries()],
        generations in [generations(), generations()],
        dead in [prop::collection::vec(0..60_usize, 0..20), prop::collection::vec(0..60_usize, 0..20)],
        used in 40..61_u32,
    ) {
        let of = |drawn: &[Vec<Drawn>; 2]| [0, 1].map(|side| {
            let mut entries = [common[side].as_slice(), &drawn[side]].concat();
            entries.retain(|entry| u32::from(entry.0) < used);
            entries
        });
        let (before, after) = (of(&before), of(&after));
        let [first, second] = generations;
        let base = block(70, used, [&before[0], &before[1]], first, &dead[0]);
        let now = block(77, 60, [&after[0], &after[1]], second, &dead[1]);
        let (checksum, bytes) = written(&base, &now);
        let delta = read_delta(&bytes).unwrap();
        prop_assert_eq!(delta.apply(&base, checksum), Ok(now));
        let other = block(70, used, [&before[0], &before[1]], Vec::new(), &[0, 1, 2, 3]);
        prop_assert!(delta.apply(&base, checksum ^ 1).is_err() && delta.apply(&other, checksum ^ 1).is_err());
    }

    #[test]
    fn bytes_that_no_writer_wrote_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read_delta(&bytes).is_err());
    }
}

fn small() -> (TopologyBlock, TopologyBlock) {
    let entry = |n: u16| (n % 12, u32::from(n % 3), (1 + n % 7, 9 * u64::from(n), n % 2), (u64::from(n), 0));
    let (old, new): (Vec<Drawn>, Vec<Drawn>) = ((0..40).map(entry).collect(), (25..60).map(entry).collect());
    let base = block(70, 14, [&old, &old[..20]], (0..14).collect(), &[3, 12, 13]);
    (base, block(77, 16, [&new, &old[5..30]], (2..18).collect(), &[5, 13]))
}

#[test]
fn a_delta_without_changes_is_empty_and_one_of_another_page_is_none() {
    let (base, now) = small();
    let mut same = base.clone();
    same.at_ts = 99;
    assert!(TopologyDelta::between(&base, 1, &same).unwrap().is_empty());
    assert!(!TopologyDelta::between(&base, 1, &now).unwrap().is_empty());
    assert_eq!(TopologyDelta::between(&now, 1, &base), None, "slots do not go");
    let mut other = now.clone();
    other.lists.labels = LabelSetId(8);
    assert_eq!(TopologyDelta::between(&base, 1, &other), None);
}

#[test]
fn every_flipped_byte_is_found() {
    let (base, now) = small();
    let (_, bytes) = written(&base, &now);
    for at in 0..bytes.len() {
        for bit in [1, 128] {
            let mut flipped = bytes.clone();
            flipped[at] ^= bit;
            assert!(read_delta(&flipped).is_err(), "byte {at} of {}", bytes.len());
        }
    }
}

#[test]
fn every_other_length_is_refused() {
    let (base, now) = small();
    let (_, mut bytes) = written(&base, &now);
    for length in 0..bytes.len() {
        assert!(read_delta(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
    bytes.push(0);
    assert!(read_delta(&bytes).is_err());
}

/// Corrects the checksums of a delta after a change, so that the decoder below them has to find it.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let head = u32::from_le_bytes(bytes[44..48].try_into().unwrap()) as usize;
    if head > bytes.len() || head < FIXED_BYTES + 8 {
        return bytes;
    }
    let mut crcs = Vec::new();
    put_stripes(&bytes[head..], &mut crcs);
    let at = (head - 4).saturating_sub(crcs.len());
    bytes[at..head - 4].copy_from_slice(&crcs);
    let crc = crc32c::crc32c(&bytes[..head - 4]).to_le_bytes();
    bytes[head - 4..head].copy_from_slice(&crc);
    bytes
}

#[test]
fn what_is_read_below_right_checksums_is_what_would_be_written() {
    let (base, now) = small();
    let (checksum, bytes) = written(&base, &now);
    let (mut refused, mut read, mut wrong) = (0, 0, 0);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            let Ok(delta) = read_delta(&resealed(changed)) else {
                refused += 1;
                continue;
            };
            let mut again = Vec::new();
            put_delta(&delta, &mut again);
            assert_eq!(read_delta(&again).as_ref(), Ok(&delta), "bit {bit} of byte {at}");
            read += 1;
            // No change is taken for the true lists, but one of what the delta alone knows: its timestamp.
            wrong += u64::from(delta.apply(&base, checksum).is_ok_and(|found| found.lists == now.lists));
        }
    }
    assert!(refused > 100 && read > 100 && wrong <= 128, "{refused} refused, {read} read, {wrong} as before");
}

#[test]
fn a_removed_entry_that_the_block_does_not_have_is_refused() {
    let (base, now) = small();
    let (checksum, bytes) = written(&base, &now);
    let delta = read_delta(&bytes).unwrap();
    let change = |change: &dyn Fn(&mut TopologyDelta)| {
        let mut delta = delta.clone();
        change(&mut delta);
        let mut bytes = Vec::new();
        put_delta(&delta, &mut bytes);
        read_delta(&bytes).unwrap().apply(&base, checksum)
    };
    assert!(change(&|_| ()).is_ok());
    assert!(change(&|delta| delta.lists.entry(0).or_default()[0].removed.push(1_000)).is_err(), "beyond a list");
    // Slot 13 has no vertex, so no list.
    assert!(change(&|delta| delta.lists.entry(13).or_default()[0].removed.push(0)).is_err(), "of no list");
    let twice = |delta: &mut TopologyDelta| {
        let kept = base.lists.outgoing.iter().find(|entry| now.lists.outgoing.contains(entry)).unwrap();
        delta.lists.entry(kept.slot).or_default()[0].added = vec![*kept];
    };
    assert!(change(&twice).is_err(), "an entry twice");
    assert!(change(&|delta| delta.entries[1] += 1).is_err(), "another count");
    assert_eq!((delta.slots[0].slot, now.lists.outgoing[0].slot), (0, 0));
    assert!(change(&|delta| delta.slots[0].is_live = false).is_err(), "a list of no vertex");
}
