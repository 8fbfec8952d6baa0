//! How many traversers are at each vertex: merged rows that hold nothing but a vertex and a bulk.
//!
//! ```text
//!  vertex ──► block of 64 vertices ──► the lowest 32 bits of its bulk     [`VertexBlocks`]
//!         └─► the other bits, and bulks whose lowest 32 bits are 0        a table, nearly always empty
//! ```
//!
//! So a vertex is held if the number of its block is not 0, or if it is in the table.
//!
//! A vertex of a full block takes 4 bytes, a row of a table about 88, at a place that is seldom in the cache. Blocks are
//! given away in the order of ids, which is the order of the store's pages. So the next hop reads its lists one after the
//! other, not here and there.

use mangrove_flow::BATCH_ROWS;
use mangrove_graph::{Error, FastMap, FastSet, Result, VertexId};

use crate::barrier::vertex_blocks::{
    BLOCK_BYTES, BLOCK_VERTICES, BlockRun, LEAF_BYTES, VertexBlocks, block_of, each_bit, hash, leaf_of, not_0,
};
use crate::rows::{ObjectColumn, Rows};

/// The approximate bytes of a bulk of more than 32 bits, in addition.
const HIGH_BYTES: u64 = 24;

/// So many vertices or fewer are looked at one by one; of more, those of one block in several.
const LOOK_VERTICES: usize = 1 << 12;

/// So many bytes a vertex, or fewer, are worth it: blocks are faster than other tables.
const NEAR_BYTES: u64 = 144;

/// See the header of this file.
#[derive(Default)]
pub(super) struct VertexBulks {
    blocks: VertexBlocks,
    /// The highest bits of bulks that have more than 32 bits, or whose lowest 32 bits are 0.
    high: FastMap<VertexId, u32>,
    /// From the first batch that is taken on: the blocks that are left.
    taken: Option<BlockRun>,
    len: usize,
}

/// Returns true if blocks for `count` vertices, all different, take no more memory than rows of this size. If there are
/// many, it looks at a part of them.
pub(super) fn are_smaller(vertices: impl Iterator<Item = VertexId>, count: usize, row_bytes: u64) -> bool {
    let sample = (count / LOOK_VERTICES).max(1) as u64;
    let is_looked_at = |number: u64| sample == 1 || hash(number) < u64::MAX / sample;
    let (mut seen, mut blocks, mut leaves) = (0, FastSet::default(), FastSet::default());
    for id in vertices {
        if is_looked_at(block_of(id)) {
            seen += 1;
            blocks.insert(block_of(id));
        }
        if is_looked_at(leaf_of(id)) {
            leaves.insert(leaf_of(id));
        }
    }
    blocks.len() as u64 * BLOCK_BYTES + leaves.len() as u64 * LEAF_BYTES <= seen * row_bytes
}

impl VertexBulks {
    /// Returns the number of vertices.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if many of the vertices share blocks and leaves: a vertex takes as much as half a block, or less.
    pub fn are_near(&self) -> bool {
        self.blocks.used_bytes() <= self.len as u64 * NEAR_BYTES
    }

    /// Returns about how many bytes the blocks and the table take.
    pub fn bytes(&self) -> u64 {
        self.blocks.bytes() + self.high.len() as u64 * HIGH_BYTES
    }

    /// Adds traversers, as many as each bulk says. With `one_bulk`, a vertex counts once, however many traversers are
    /// there. Fails if a bulk overflows.
    #[inline]
    pub fn add(&mut self, vertices: impl IntoIterator<Item = (VertexId, u64)>, one_bulk: bool) -> Result<()> {
        // Counted here: a sum in memory would be the slowest part of the loop.
        let mut new = 0;
        for (id, bulk) in vertices {
            let has_high = !self.high.is_empty();
            if let Some(low) = self.blocks.quick_mut(id) {
                let is_new = *low == 0;
                let sum = u64::from(*low).wrapping_add(if one_bulk && !is_new { 0 } else { bulk });
                // Nearly always: a bulk of 32 bits, and a sum that has 32 bits and is not 0.
                let is_small = bulk <= u64::from(u32::MAX) && sum.wrapping_sub(1) < u64::from(u32::MAX);
                if is_small && !(is_new & has_high) {
                    *low = sum as u32;
                    new += usize::from(is_new);
                    continue;
                }
            }
            if let Err(error) = self.add_slowly(id, bulk, one_bulk) {
                self.len += new;
                return Err(error);
            }
        }
        self.len += new;
        Ok(())
    }

    /// Adds traversers of a vertex whose block is new or not found at once, or whose bulk has many bits.
    #[cold]
    fn add_slowly(&mut self, id: VertexId, bulk: u64, one_bulk: bool) -> Result<()> {
        let low = self.blocks.number_mut(id);
        let known = self.high.get(&id).copied();
        let is_held = *low != 0 || known.is_some();
        if is_held && one_bulk {
            return Ok(());
        }
        let (sum, overflows) = bulk.overflowing_add(u64::from(*low));
        let high = (sum >> u32::BITS) as u32;
        *low = sum as u32;
        self.len += usize::from(!is_held);
        if *low == 0 || high > 0 || overflows {
            let high = known.unwrap_or_default().checked_add(high).filter(|_| !overflows);
            self.high.insert(id, high.ok_or_else(too_many)?);
        }
        Ok(())
    }

    /// Returns the blocks in the order of ids, and the vertices of the table with their bulks. They are in no block.
    pub fn into_sorted(mut self) -> (BlockRun, Vec<(VertexId, u64)>) {
        let take = |(id, high): (VertexId, u32)| {
            let low = std::mem::take(self.blocks.number_mut(id));
            (id, u64::from(high) << u32::BITS | u64::from(low))
        };
        let large = std::mem::take(&mut self.high).into_iter().map(take).collect();
        (self.blocks.into_run(self.len), large)
    }

    /// Takes the next vertices in the order of their ids, at most as many as a message holds. No vertex may be added
    /// between the first batch and the last one.
    pub fn take_next(&mut self) -> Option<Rows> {
        let blocks = self.taken.get_or_insert_with(|| std::mem::take(&mut self.blocks).into_run(self.len));
        let room = self.len.min(BATCH_ROWS);
        let (mut vertices, mut bulks) = (Vec::with_capacity(room), Vec::with_capacity(room));
        // Each message holds whole blocks.
        while vertices.len() + BLOCK_VERTICES as usize <= BATCH_ROWS
            && let Some(number) = blocks.next_block()
        {
            blocks.take(|block| {
                let held = if self.high.is_empty() { not_0(block) } else { u64::MAX };
                for at in each_bit(held) {
                    let (id, low) = (VertexId::from_bits(number * BLOCK_VERTICES + at), block[at as usize]);
                    let high = if self.high.is_empty() { None } else { self.high.remove(&id) };
                    if low != 0 || high.is_some() {
                        vertices.push(id);
                        bulks.push(u64::from(high.unwrap_or_default()) << u32::BITS | u64::from(low));
                    }
                }
            });
        }
        self.len -= vertices.len();
        if self.len == 0 {
            self.taken = None;
        }
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
pub(super) mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::barrier::vertex_blocks::tests::id;

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

    /// Bulks, of which few have more than 32 bits, or lowest 32 bits of 0.
    pub fn bulk() -> impl Strategy<Value = u64> {
        prop_oneof![40 => 1..9_u64, 2 => (u64::from(u32::MAX) - 9)..(1 << 40), 1 => Just(1 << 32), 1 => Just(0)]
    }

    proptest! {
        /// Each vertex comes once, in the order of ids, with all its traversers.
        #[test]
        fn bulks_add_up(
            messages in prop::collection::vec(prop::collection::vec((id(), bulk()), 0..1024), 0..8),
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
            prop_assert!(bulks.bytes() >= 4 * expected.len() as u64);
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
        let far = |count: u64| {
            let ids = (0..count).map(|at| VertexId::from_bits(((at / 4) << 48) | (at % 4)));
            are_smaller(ids, count as usize, 88)
        };
        assert!(!far(1024) && !far(100_000));
        let near = |step: u64| {
            let mut bulks = VertexBulks::default();
            bulks.add((0..1000).map(|id| (VertexId::from_bits(id * step), 1)), false).expect("no bulk overflows");
            bulks.are_near()
        };
        assert!(near(1) && near(32) && !near(40));
        // Blocks are alone in their leaves.
        assert!(!near(1 << 14));
        let mut bulks = VertexBulks::default();
        let far = (0..1000).map(|at| (VertexId::from_bits(((at / 4) << 48) | (at % 4)), 1));
        bulks.add(far, false).expect("no bulk overflows");
        assert!(!bulks.are_near());
    }
}
