//! How many traversers are at each vertex: merged rows that hold nothing but a vertex and a bulk.
//!
//! ```text
//!  number of a block (id / 64) ──► which of its vertices are held   64 bits
//!                                  bulk of each, its lowest bits    64 × 32 bits
//!  vertex ───────────────────────► the other bits, if not 0         a table, nearly always empty
//! ```
//!
//! A vertex of a full block takes 4.5 bytes, a row of a table about 88, at a place that is seldom in the cache. Blocks are given
//! away in the order of ids, which is the order of the store's pages. So the next hop reads its lists one after the
//! other, not here and there.

use mangrove_flow::BATCH_ROWS;
use mangrove_graph::{Error, FastMap, FastSet, Result, VertexId};

use crate::rows::{ObjectColumn, Rows};

/// The vertices of a block, whose ids are adjacent.
pub(super) const BLOCK_VERTICES: u64 = u64::BITS as u64;

/// The approximate bytes of a block: bits and bulks, its place in the table.
pub(super) const BLOCK_BYTES: u64 = 8 + 4 * BLOCK_VERTICES + 24;

/// The approximate bytes of a bulk of more than 32 bits, in addition.
const HIGH_BYTES: u64 = 24;

/// So many vertices or fewer are looked at one by one; of more, those of one block in several.
const LOOK_VERTICES: usize = 1 << 12;

pub(super) struct Block {
    /// A bit for each vertex that is held.
    held: u64,
    /// The lowest 32 bits of each bulk.
    bulks: [u32; BLOCK_VERTICES as usize],
}

/// A block with its number.
pub(super) type NumberedBlock = (u64, Box<Block>);

impl Block {
    /// Returns the number of vertices that are held.
    pub fn len(&self) -> usize {
        self.held.count_ones() as usize
    }

    /// Returns the place of each vertex that is held, in ascending order, with the lowest bits of its bulk.
    pub fn vertices(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        each_bit(self.held).map(|at| (at, u64::from(self.bulks[at as usize])))
    }
}

/// Returns the place of each bit that is 1, in ascending order.
pub(super) fn each_bit(bits: u64) -> impl Iterator<Item = u64> {
    let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|rest| *rest != 0);
    std::iter::successors(Some(bits).filter(|bits| *bits != 0), rest).map(|bits| u64::from(bits.trailing_zeros()))
}

/// See the header of this file.
#[derive(Default)]
pub(super) struct VertexBulks {
    blocks: FastMap<u64, Box<Block>>,
    /// The other bits of bulks that have more.
    high: FastMap<VertexId, u32>,
    /// From the first batch that is taken on: the numbers of the blocks that are left, the next one last.
    order: Vec<u64>,
    len: usize,
}

/// Returns the number of the block of a vertex.
pub(super) fn block_of(id: VertexId) -> u64 {
    id.to_bits() / BLOCK_VERTICES
}

/// Returns a hash of the block of a vertex, whose highest bits are spread evenly.
fn block_hash(id: VertexId) -> u64 {
    /// 2^64 divided by the golden ratio.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    block_of(id).wrapping_mul(SPREAD)
}

/// Returns true if blocks for `count` vertices, all different, take no more memory than rows of this size. If there are
/// many, it looks at a part of them.
pub(super) fn are_smaller(vertices: impl Iterator<Item = VertexId>, count: usize, row_bytes: u64) -> bool {
    let sample = (count / LOOK_VERTICES).max(1) as u64;
    let (mut seen, mut blocks) = (0, FastSet::default());
    vertices.filter(|id| sample == 1 || block_hash(*id) < u64::MAX / sample).for_each(|id| {
        seen += 1;
        blocks.insert(block_of(id));
    });
    blocks.len() as u64 * BLOCK_BYTES <= seen * row_bytes
}

impl VertexBulks {
    /// Returns the number of vertices.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of blocks.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Returns true if a block holds at least two vertices on average.
    pub fn are_near(&self) -> bool {
        self.blocks.len() <= self.len / 2
    }

    /// Returns about how many bytes the blocks take.
    pub fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_BYTES + self.high.len() as u64 * HIGH_BYTES
    }

    /// Adds traversers, as many as each bulk says. With `one_bulk`, a vertex counts once, however many traversers are
    /// there. Fails if a bulk overflows.
    pub fn add(&mut self, vertices: impl IntoIterator<Item = (VertexId, u64)>, one_bulk: bool) -> Result<()> {
        let mut vertices = vertices.into_iter().peekable();
        while let Some((first, _)) = vertices.peek() {
            let number = block_of(*first);
            let new = || Box::new(Block { held: 0, bulks: [0; BLOCK_VERTICES as usize] });
            let block = self.blocks.entry(number).or_insert_with(new);
            // Vertices of one block follow each other if they are sorted.
            while let Some((id, bulk)) = vertices.next_if(|(id, _)| block_of(*id) == number) {
                let at = id.to_bits() % BLOCK_VERTICES;
                let is_held = block.held & 1 << at != 0;
                self.len += usize::from(!is_held);
                block.held |= 1 << at;
                if is_held && one_bulk {
                    continue;
                }
                let low = &mut block.bulks[at as usize];
                let (sum, overflows) = bulk.overflowing_add(u64::from(*low));
                *low = sum as u32;
                let high = (sum >> u32::BITS) as u32;
                if high > 0 || overflows {
                    let known = self.high.entry(id).or_default();
                    *known = known.checked_add(high).filter(|_| !overflows).ok_or_else(too_many)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the blocks with their numbers in descending order, and the vertices whose bulks have more bits than a block
    /// holds. They are in no block.
    pub fn into_sorted(mut self) -> (Vec<NumberedBlock>, Vec<(VertexId, u64)>) {
        let take = |(id, high): (VertexId, u32)| {
            let at = id.to_bits() % BLOCK_VERTICES;
            let block = self.blocks.get_mut(&block_of(id))?;
            block.held &= !(1 << at);
            Some((id, u64::from(high) << u32::BITS | u64::from(block.bulks[at as usize])))
        };
        let large = std::mem::take(&mut self.high).into_iter().filter_map(take).collect();
        let mut blocks: Vec<_> = self.blocks.into_iter().collect();
        blocks.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        (blocks, large)
    }

    /// Takes the next vertices in the order of their ids, at most as many as a message holds. No vertex may be added
    /// between the first batch and the last one.
    pub fn take_next(&mut self) -> Option<Rows> {
        if self.order.is_empty() {
            self.order = self.blocks.keys().copied().collect();
            self.order.sort_unstable_by(|a, b| b.cmp(a));
        }
        let room = self.len.min(BATCH_ROWS);
        let (mut vertices, mut bulks) = (Vec::with_capacity(room), Vec::with_capacity(room));
        while let Some(number) = self.order.last()
            && let Some(block) = self.blocks.get_mut(number)
        {
            while block.held != 0 && vertices.len() < room {
                let at = block.held.trailing_zeros();
                let id = VertexId::from_bits(number * BLOCK_VERTICES + u64::from(at));
                let high = if self.high.is_empty() { 0 } else { self.high.remove(&id).unwrap_or_default() };
                vertices.push(id);
                bulks.push(u64::from(high) << u32::BITS | u64::from(block.bulks[at as usize]));
                block.held &= block.held - 1;
            }
            if block.held != 0 {
                break;
            }
            self.blocks.remove(number);
            self.order.pop();
        }
        self.len -= vertices.len();
        (!vertices.is_empty()).then(|| Rows {
            bulk: bulks.iter().any(|bulk| *bulk != 1).then_some(bulks),
            ..Rows::of(ObjectColumn::Vertices(vertices))
        })
    }
}

/// The error of a bulk that overflows.
pub(super) fn too_many() -> Error {
    Error::evaluation("long overflow: more than 2^64 equal traversers")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn taken(mut bulks: VertexBulks) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        while let Some(rows) = bulks.take_next() {
            assert!(rows.len() <= BATCH_ROWS);
            let ObjectColumn::Vertices(ids) = &rows.objects else { panic!("vertices") };
            all.extend(ids.iter().enumerate().map(|(row, id)| (id.to_bits(), rows.bulk(row))));
        }
        assert_eq!((bulks.len(), bulks.bytes()), (0, 0));
        all
    }

    /// Bulks, of which few have more than 32 bits.
    fn bulk() -> impl Strategy<Value = u64> {
        prop_oneof![20 => 1..9_u64, 1 => (u64::from(u32::MAX) - 9)..(1 << 40)]
    }

    proptest! {
        /// Each vertex comes once, in the order of ids, with all its traversers.
        #[test]
        fn bulks_add_up(
            messages in prop::collection::vec(prop::collection::vec((0..5_000_u64, bulk()), 0..1024), 0..8),
            one_bulk: bool,
        ) {
            let (mut bulks, mut expected) = (VertexBulks::default(), BTreeMap::new());
            for message in messages {
                let added = message.iter().map(|(id, bulk)| (VertexId::from_bits(*id), *bulk));
                bulks.add(added, one_bulk).expect("no bulk overflows");
                for (id, bulk) in message {
                    let held = expected.entry(id);
                    held.and_modify(|held| *held += if one_bulk { 0 } else { bulk }).or_insert(bulk);
                }
            }
            prop_assert_eq!(bulks.len(), expected.len());
            prop_assert_eq!(taken(bulks), expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_bulk_that_overflows_is_an_error() {
        let mut bulks = VertexBulks::default();
        let id = VertexId::from_bits(7);
        bulks.add([(id, u64::MAX)], false).expect("2^64 - 1 traversers");
        let error = bulks.add([(id, 1)], false).expect_err("one too many");
        assert!(error.to_string().contains("2^64"), "{error}");
        let mut bulks = VertexBulks::default();
        (0..2).for_each(|_| bulks.add([(id, 1 << 62), (id, 1 << 62)], true).expect("each vertex counts once"));
        bulks.add([(id, 2 << 62)], false).expect("three quarters of 2^64 traversers");
        assert!(bulks.add([(id, 1 << 62)], false).is_err());
    }

    #[test]
    fn blocks_are_for_vertices_that_are_neighbors() {
        let smaller = |count: u64, step: u64| {
            are_smaller((0..count).map(|id| VertexId::from_bits(id * step)), count as usize, 88)
        };
        assert!(smaller(1024, 1) && smaller(100_000, 8));
        assert!(!smaller(1024, 64) && !smaller(100_000, 40));
        let near = |step: u64| {
            let mut bulks = VertexBulks::default();
            bulks.add((0..1000).map(|id| (VertexId::from_bits(id * step), 1)), false).expect("no bulk overflows");
            bulks.are_near()
        };
        assert!(near(1) && near(32) && !near(33));
    }
}
