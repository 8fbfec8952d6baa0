//! Blocks come back as they were, and a block with any other byte or length is refused.

use proptest::prelude::*;

use mangrove_graph::{EdgeId, VertexId};
use mangrove_store::lists::ListEntry;

use super::super::lists::{Last, tablet_bits};
use super::*;

const BITS: u32 = 3;

/// A list entry: owner, label set, neighbor (tablet, slot index, generation), edge (slot index, generation).
type Drawn = (u16, u32, (u16, u64, u16), (u64, u16));

fn drawn_entries() -> impl Strategy<Value = Vec<Drawn>> {
    let index = || prop_oneof![0..50_u64, 0..5_000_u64, Just(INDEX_MASK)];
    let generation = || prop_oneof![9 => Just(0_u16), 1 => 0..=GENERATION_MAX];
    let neighbor = (1..8_u16, index(), generation());
    prop::collection::vec((0..60_u16, 0..4_u32, neighbor, (index(), generation())), 0..200)
}

fn lists(used: u32, entries: [&[Drawn]; 2], generations: Vec<u16>, dead: &[usize]) -> PageLists {
    let name = PageName { tablet: TabletId(5), kind: ElementKind::Vertex, number: 3 };
    let mut live: SlotSet = (0..used as usize).collect();
    dead.iter().for_each(|&at| live.remove(at));
    let [outgoing, incoming] = [0, 1].map(|direction| {
        let mut entries: Vec<ListEntry> = entries[direction]
            .iter()
            .map(|&(slot, labels, (tablet, index, generation), (edge, edge_generation))| {
                let neighbor = VertexId::new(TabletId(tablet), index).with_generation(generation);
                let tablet = if direction == 0 { name.tablet } else { neighbor.tablet() };
                let edge = EdgeId::new(tablet, edge).with_generation(edge_generation);
                ListEntry { slot, labels: LabelSetId(labels), neighbor, edge }
            })
            .filter(|entry| live.contains(usize::from(entry.slot)))
            .collect();
        sort(&mut entries, BITS);
        entries.dedup();
        entries
    });
    PageLists { name, labels: LabelSetId(9), used, generations, live, outgoing, incoming }
}

fn written(lists: &PageLists) -> (TopologyBlock, Vec<u8>) {
    let block = TopologyBlock::new(77, BITS, lists.clone());
    let mut bytes = Vec::new();
    put_topology(&block, &mut bytes);
    (block, bytes)
}

proptest! {
    #[test]
    fn blocks_come_back(
        outgoing in drawn_entries(),
        incoming in drawn_entries(),
        generations in prop_oneof![Just(Vec::new()), prop::collection::vec(0..=GENERATION_MAX, 60)],
        dead in prop_oneof![Just(Vec::new()), prop::collection::vec(0..60_usize, 0..30)],
    ) {
        let (block, bytes) = written(&lists(60, [&outgoing, &incoming], generations, &dead));
        prop_assert_eq!(read_topology(&bytes).unwrap(), block);
    }

    #[test]
    fn bytes_that_no_writer_wrote_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read_topology(&bytes).is_err());
    }
}

fn small_block() -> Vec<u8> {
    let entries: Vec<Drawn> =
        (0..40).map(|n| (n % 12, u32::from(n % 3), (1 + n % 7, 9 * u64::from(n), n % 2), (7, 0))).collect();
    written(&lists(14, [&entries, &entries[..20]], (0..14).collect(), &[3, 12, 13])).1
}

#[test]
fn every_flipped_byte_is_found() {
    let bytes = small_block();
    for at in 0..bytes.len() {
        for bit in [1, 128] {
            let mut flipped = bytes.clone();
            flipped[at] ^= bit;
            assert!(read_topology(&flipped).is_err(), "byte {at} of {}", bytes.len());
        }
    }
}

#[test]
fn every_other_length_is_refused() {
    let mut bytes = small_block();
    for length in 0..bytes.len() {
        assert!(read_topology(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
    bytes.push(0);
    assert!(read_topology(&bytes).is_err());
}

/// Corrects the checksums of a block after a change, so that the decoder below them has to find it.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let head = word(&bytes, 40);
    if head > bytes.len() || head < FIXED_BYTES + 8 {
        return bytes;
    }
    let crcs: Vec<u8> =
        bytes[head..].chunks(STRIPE_BYTES).flat_map(|stripe| crc32c::crc32c(stripe).to_le_bytes()).collect();
    let at = (head - 4).saturating_sub(crcs.len());
    bytes[at..head - 4].copy_from_slice(&crcs);
    let crc = crc32c::crc32c(&bytes[..head - 4]).to_le_bytes();
    bytes[head - 4..head].copy_from_slice(&crc);
    bytes
}

#[test]
fn what_is_read_below_right_checksums_is_what_would_be_written() {
    let bytes = small_block();
    let (mut refused, mut read) = (0, 0);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            let changed = resealed(changed);
            match read_topology(&changed) {
                Err(_) => refused += 1,
                Ok(block) => {
                    let mut again = Vec::new();
                    put_topology(&block, &mut again);
                    assert_eq!(read_topology(&again).unwrap(), block, "bit {bit} of byte {at}");
                    read += 1;
                }
            }
        }
    }
    // Timestamps, label sets and slot indexes may be any.
    assert!(refused > read && read > 100, "{refused} refused, {read} read");
}

#[test]
fn a_run_of_many_entries_can_be_read_from_the_middle() {
    let entries: Vec<Drawn> = (0..5_000).map(|n| (1, 2, (1 + (n % 7) as u16, n / 7, 0), (n * 31 % 5_000, 0))).collect();
    let (block, bytes) = written(&lists(3, [&entries, &[]], Vec::new(), &[]));
    assert_eq!(read_topology(&bytes).unwrap(), block);
    // The run begins layer 3: label set, 2 × count, five lengths.
    let head = u32::from_le_bytes(bytes[40..44].try_into().unwrap()) as usize;
    let mut reader = Reader::new(&bytes[head..]);
    assert_eq!((reader.varint().unwrap(), reader.varint().unwrap()), (2, 10_000));
    let lengths: Vec<usize> = (0..5).map(|_| reader.varint().unwrap() as usize).collect();
    let begin = head + reader.position() as usize + lengths[..3].iter().sum::<usize>();
    let owner = owner_at(block.lists.name, 1, true, BITS);
    let mut last = Last { neighbor: ((3 * 1_024 + 1) << BITS) | 5, edge: 0 };
    let mut reader = Reader::new(&bytes[begin..begin + lengths[3]]);
    let read = owner.read_entry(LabelSetId(2), false, &mut last, &mut reader).unwrap();
    assert_eq!(read, block.lists.outgoing[3_072]);
    let small = lists(3, [&entries[..1_024], &[]], Vec::new(), &[]);
    assert_eq!(read_topology(&written(&small).1).unwrap().lists, small, "a run of one part has no lengths");
}

#[test]
fn a_page_of_nothing_has_a_block() {
    let (block, bytes) = written(&lists(0, [&[], &[]], Vec::new(), &[]));
    assert_eq!(bytes.len(), FIXED_BYTES + 8);
    assert_eq!(read_topology(&bytes).unwrap(), block);
}

#[test]
fn numbers_of_tablets_have_as_many_bits_as_the_largest_needs() {
    assert_eq!([1, 2, 3, 4, 64, u16::MAX].map(tablet_bits), [1, 2, 2, 3, 7, 16]);
}
