//! A number of 32 bits for each vertex, in blocks that are found by two looks without a search.
//!
//! ```text
//!  id:   number of a leaf 50 │ block 8 │ vertex 6
//!
//!  number of a leaf ──► directory ──► leaf: place of each of its 256 blocks   16 bits each
//!                                           blocks: 64 × 32 bits each
//! ```
//!
//! The directory is a small table: a leaf is for 16,384 ids, and the ids of a tablet follow each other. So it stays in
//! the nearest cache, and so do most leaves. A row meets one line of memory that may be far away: that of its number.
//! The look takes the same branches for nearly every row, so the processor works on many rows at a time.
//!
//! A leaf grows alone, and the directory holds only pointers, so no call takes long. The leaves in the order of their
//! numbers are the blocks in the order of ids.

use std::cmp::Reverse;
use std::sync::Arc;

use mangrove_graph::VertexId;

/// The vertices of a block, whose ids are adjacent.
pub(super) const BLOCK_VERTICES: u64 = 1 << 6;

/// The bytes of a block.
pub(super) const BLOCK_BYTES: u64 = size_of::<Block>() as u64;

/// The bytes of a leaf without blocks.
pub(super) const LEAF_BYTES: u64 = size_of::<Leaf>() as u64;

/// The blocks of a leaf.
const LEAF_BLOCKS: u64 = 1 << 8;

/// The blocks that a leaf has room for at first. Room for half as many is added when it is full.
const BLOCKS_MIN: usize = 4;

/// The fewest places of a directory. A place in four is taken at most.
const DIRECTORY_MIN: usize = 1 << 5;

/// 2^64 divided by the golden ratio. Products with it have highest bits that are spread evenly.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// No leaf has this number.
const NO_LEAF: u64 = u64::MAX;

/// The numbers of vertices whose ids are adjacent.
pub(super) type Block = [u32; BLOCK_VERTICES as usize];

/// Returns the number of the block of a vertex.
pub(super) fn block_of(id: VertexId) -> u64 {
    id.to_bits() / BLOCK_VERTICES
}

/// Returns the number of the leaf of a vertex.
pub(super) fn leaf_of(id: VertexId) -> u64 {
    block_of(id) / LEAF_BLOCKS
}

/// Returns a hash of the number of a leaf or of a block, whose highest bits are spread evenly.
pub(super) fn hash(number: u64) -> u64 {
    number.wrapping_mul(SPREAD)
}

/// Returns a bit for each number of a block: 1 if the number is not 0.
pub(super) fn not_0(block: &Block) -> u64 {
    let (parts, _) = block.as_chunks::<8>();
    parts.iter().rev().fold(0, |all, part| {
        let bits = part.iter().enumerate().map(|(at, number)| u64::from(*number != 0) << at);
        all << 8 | bits.fold(0, |bits, bit| bits | bit)
    })
}

/// Returns the place of each bit that is 1, in ascending order.
pub(super) fn each_bit(bits: u64) -> impl Iterator<Item = u64> {
    let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|rest| *rest != 0);
    std::iter::successors(Some(bits).filter(|bits| *bits != 0), rest).map(|bits| u64::from(bits.trailing_zeros()))
}

struct Leaf {
    number: u64,
    /// For each block its place in `blocks` plus 1, or 0.
    places: [u16; LEAF_BLOCKS as usize],
    /// In the order in which they were added.
    blocks: Vec<Block>,
}

impl Leaf {
    fn new(number: u64) -> Self {
        Leaf { number, places: [0; LEAF_BLOCKS as usize], blocks: Vec::new() }
    }

    /// Returns the number of its first block at or after this block.
    fn next_block(&self, from: u64) -> Option<u64> {
        let first = self.number * LEAF_BLOCKS;
        let start = from.saturating_sub(first).min(LEAF_BLOCKS);
        let next = self.places[start as usize..].iter().position(|place| *place != 0);
        next.map(|next| first + start + next as u64)
    }

    /// Returns the numbers of its blocks at or after a block.
    fn numbers(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        std::iter::successors(self.next_block(from), |number| self.next_block(number + 1))
    }

    /// Returns the number of its blocks from one block to before another one.
    fn count(&self, from: u64, to: u64) -> usize {
        let at = |block: u64| block.saturating_sub(self.number * LEAF_BLOCKS).min(LEAF_BLOCKS) as usize;
        let places = self.places.get(at(from)..at(to)).unwrap_or_default();
        places.iter().filter(|place| **place != 0).count()
    }

    /// Returns the number of a vertex if the leaf has its block.
    #[inline(always)]
    fn number_mut(&mut self, id: VertexId) -> Option<&mut u32> {
        let place = self.places[(block_of(id) % LEAF_BLOCKS) as usize];
        let block = self.blocks.get_mut(usize::from(place).wrapping_sub(1))?;
        Some(&mut block[(id.to_bits() % BLOCK_VERTICES) as usize])
    }

    /// Returns a block that the leaf has.
    fn block(&self, number: u64) -> Option<&Block> {
        let place = self.places[(number % LEAF_BLOCKS) as usize];
        self.blocks.get(usize::from(place).wrapping_sub(1))
    }
}

/// A place of the directory.
struct Entry {
    /// The number of the leaf, or [`NO_LEAF`].
    number: u64,
    leaf: Option<Box<Leaf>>,
}

/// See the header of this file. Each number is 0 at first.
#[derive(Default)]
pub(super) struct VertexBlocks {
    /// Leaves by the highest bits of their hash, or at one of the next places. The length is a power of two, or 0.
    directory: Vec<Entry>,
    /// The bits of a hash that do not say the place.
    shift: u32,
    leaves: usize,
    blocks: usize,
    bytes: u64,
}

impl VertexBlocks {
    /// Returns the bytes of blocks and leaves, without room for more.
    pub fn used_bytes(&self) -> u64 {
        self.blocks as u64 * BLOCK_BYTES + self.leaves as u64 * LEAF_BYTES
    }

    /// Returns the bytes of blocks, leaves and the directory, with the room that is not used yet.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of a vertex whose leaf is where the search for it begins, as nearly all are.
    #[inline(always)]
    pub fn quick_mut(&mut self, id: VertexId) -> Option<&mut u32> {
        let at = self.place(leaf_of(id));
        let entry = self.directory.get_mut(at).filter(|entry| entry.number == leaf_of(id))?;
        entry.leaf.as_mut()?.number_mut(id)
    }

    /// Returns the number of a vertex. Makes a block for it if there is none.
    #[cold]
    pub fn number_mut(&mut self, id: VertexId) -> &mut u32 {
        let number = leaf_of(id);
        let at = self.find_or_insert(number);
        let leaf = self.directory[at].leaf.get_or_insert_with(|| Box::new(Leaf::new(number)));
        let place = &mut leaf.places[(block_of(id) % LEAF_BLOCKS) as usize];
        if *place == 0 {
            let before = leaf.blocks.capacity();
            if leaf.blocks.len() == before {
                leaf.blocks.reserve_exact((before / 2).max(BLOCKS_MIN).min(LEAF_BLOCKS as usize - before));
            }
            leaf.blocks.push([0; BLOCK_VERTICES as usize]);
            *place = leaf.blocks.len() as u16;
            self.blocks += 1;
            self.bytes += (leaf.blocks.capacity() - before) as u64 * BLOCK_BYTES;
        }
        &mut leaf.blocks[usize::from(*place) - 1][(id.to_bits() % BLOCK_VERTICES) as usize]
    }

    /// Returns the place of the directory at which the search for a leaf begins.
    #[inline]
    fn place(&self, number: u64) -> usize {
        (hash(number) >> self.shift) as usize
    }

    /// Returns the place of the directory that has a leaf, after it made the leaf if there is none.
    fn find_or_insert(&mut self, number: u64) -> usize {
        if self.directory.is_empty() {
            self.grow();
        }
        let at = self.find(number);
        if self.directory[at].number == number {
            return at;
        }
        if self.leaves == self.directory.len() / 4 {
            self.grow();
        }
        let at = self.find(number);
        self.directory[at] = Entry { number, leaf: Some(Box::new(Leaf::new(number))) };
        self.leaves += 1;
        self.bytes += LEAF_BYTES;
        at
    }

    /// Returns the place of the directory that has a leaf or is for it.
    fn find(&self, number: u64) -> usize {
        let mut at = self.place(number);
        while ![number, NO_LEAF].contains(&self.directory[at].number) {
            at = (at + 1) % self.directory.len();
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let places = (self.directory.len() * 2).max(DIRECTORY_MIN);
        let empty = (0..places).map(|_| Entry { number: NO_LEAF, leaf: None }).collect();
        let old = std::mem::replace(&mut self.directory, empty);
        self.shift = u64::BITS - places.ilog2();
        self.bytes += ((places - old.len()) * size_of::<Entry>()) as u64;
        for entry in old.into_iter().filter(|entry| entry.number != NO_LEAF) {
            let at = self.find(entry.number);
            self.directory[at] = entry;
        }
    }

    /// Returns the blocks in the order of ids. `vertices` is the number of vertices that have a number.
    pub fn into_run(self, vertices: usize) -> BlockRun {
        let leaves = self.directory.into_iter().filter_map(|entry| entry.leaf);
        let mut leaves: Vec<Arc<Leaf>> = leaves.map(Arc::from).collect();
        leaves.sort_unstable_by_key(|leaf| Reverse(leaf.number));
        let mut run =
            BlockRun { leaves, next: 0, left: self.blocks, vertices_of_block: (vertices / self.blocks.max(1)).max(1) };
        run.seek(0);
        run
    }
}

/// Blocks in the order of ids, which are given away one after the other.
///
/// Runs that were cut out of one run share leaves at the cuts. A leaf is dropped with the last of its blocks.
pub(super) struct BlockRun {
    /// The leaves that have blocks of the run, in descending order: the next one is the last.
    leaves: Vec<Arc<Leaf>>,
    /// The number of the next block, if one is left.
    next: u64,
    /// The blocks that are left.
    left: usize,
    vertices_of_block: usize,
}

impl BlockRun {
    /// Returns the number of blocks that are left.
    pub fn len(&self) -> usize {
        self.left
    }

    /// Returns about how many vertices a block holds.
    pub fn vertices_of_block(&self) -> usize {
        self.vertices_of_block
    }

    /// Returns the number of the next block.
    #[inline]
    pub fn next_block(&self) -> Option<u64> {
        (self.left > 0).then_some(self.next)
    }

    /// Takes the next block: passes it to a function.
    #[inline]
    pub fn take(&mut self, take: impl FnOnce(&Block)) {
        if self.left == 0 {
            return;
        }
        if let Some(block) = self.leaves.last().and_then(|leaf| leaf.block(self.next)) {
            take(block);
        }
        self.left -= 1;
        self.seek(self.next + 1);
    }

    /// Goes to the first block at or after this one.
    fn seek(&mut self, from: u64) {
        if self.left == 0 {
            return self.leaves.clear();
        }
        while let Some(leaf) = self.leaves.last() {
            if let Some(next) = leaf.next_block(from) {
                self.next = next;
                return;
            }
            self.leaves.pop();
        }
    }

    /// Takes the blocks before this one.
    pub fn split_before(&mut self, block: u64) -> BlockRun {
        let at = self.leaves.partition_point(|leaf| leaf.number * LEAF_BLOCKS >= block);
        let leaves = self.leaves.split_off(at);
        // The next leaf may have blocks that were taken, and the last one may be cut.
        let left = leaves.iter().map(|leaf| leaf.count(self.next, block)).sum();
        self.leaves.extend(leaves.first().filter(|leaf| leaf.next_block(block).is_some()).cloned());
        let mut before = BlockRun { leaves, next: self.next, left, vertices_of_block: self.vertices_of_block };
        before.seek(self.next);
        self.left -= left;
        self.seek(self.next.max(block));
        before
    }

    /// Returns the numbers of some blocks: `step` blocks are before the first one, and from each to the next one.
    pub fn every(&self, step: usize) -> Vec<u64> {
        let (mut looked, mut skip) = (Vec::with_capacity(self.left / step), step);
        for leaf in self.leaves.iter().rev() {
            let count = leaf.count(self.next, NO_LEAF);
            if skip < count {
                looked.extend(leaf.numbers(self.next).skip(skip).step_by(step));
                skip += (count - skip).div_ceil(step) * step;
            }
            skip -= count;
        }
        // The last leaf may have blocks of another run.
        looked.truncate(self.left.saturating_sub(1) / step);
        looked
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Ids, of which many are neighbors, some are of other tablets and generations, and few are far from all others.
    pub fn id() -> impl Strategy<Value = u64> {
        prop_oneof![
            20 => 0..5_000_u64,
            10 => (0..6_u64, 0..2_u64, 0..900_u64).prop_map(|(tablet, age, at)| (tablet << 48) | (age << 38) | (at * 7)),
            1 => any::<u64>(),
        ]
    }

    fn blocks_of(ids: &[u64]) -> (VertexBlocks, BTreeSet<u64>) {
        let mut blocks = VertexBlocks::default();
        ids.iter().for_each(|id| *blocks.number_mut(VertexId::from_bits(*id)) += 1);
        (blocks, ids.iter().map(|id| id / BLOCK_VERTICES).collect())
    }

    fn taken(run: &mut BlockRun) -> Vec<u64> {
        let numbers = std::iter::from_fn(|| {
            let number = run.next_block()?;
            run.take(|block| assert!(not_0(block) != 0));
            Some(number)
        });
        numbers.collect()
    }

    proptest! {
        /// A number is found again, at once or after a search, and 0 if it was not set.
        #[test]
        fn numbers_are_found(ids in prop::collection::vec(id(), 0..2_000), others in prop::collection::vec(id(), 100)) {
            let (mut blocks, _) = blocks_of(&ids);
            for id in ids.iter().chain(&others) {
                let count = ids.iter().filter(|other| *other == id).count() as u32;
                if let Some(number) = blocks.quick_mut(VertexId::from_bits(*id)) {
                    prop_assert_eq!(*number, count);
                }
                prop_assert_eq!(*blocks.number_mut(VertexId::from_bits(*id)), count);
            }
        }

        /// Runs that are cut, after some blocks were taken, hold each block once, in order.
        #[test]
        fn runs_are_cut(
            ids in prop::collection::vec(id(), 0..1_000), first in 0..50_usize, step in 1..40_usize, far in id(),
        ) {
            let (blocks, expected) = blocks_of(&ids);
            let mut run = blocks.into_run(ids.len());
            prop_assert_eq!(run.len(), expected.len());
            let mut expected: Vec<u64> = expected.into_iter().collect();
            for number in expected.drain(..first.min(expected.len())) {
                prop_assert_eq!(run.next_block(), Some(number));
                run.take(|_| {});
            }
            let looked = run.every(step);
            prop_assert_eq!(&looked, &expected.iter().skip(step).step_by(step).copied().collect::<Vec<_>>());
            let mut all = Vec::new();
            let mut cuts: Vec<u64> = looked.into_iter().flat_map(|number| [number, number + 1]).collect();
            cuts.push(far / BLOCK_VERTICES);
            cuts.sort_unstable();
            for cut in cuts {
                let mut part = run.split_before(cut);
                let left = expected.partition_point(|number| *number < cut) - all.len();
                prop_assert_eq!(part.len(), left);
                for cut in [&run, &part] {
                    prop_assert_eq!(cut.every(step).len(), cut.len().saturating_sub(1) / step);
                }
                all.extend(taken(&mut part));
                prop_assert!(part.len() == 0 && part.leaves.is_empty());
            }
            all.extend(taken(&mut run));
            prop_assert_eq!(all, expected);
        }
    }

    /// The bytes that are counted are those of the parts, and few far ids take few.
    #[test]
    fn all_bytes_are_counted() {
        let ids: Vec<u64> = (0..64).flat_map(|tablet| (0..=tablet).map(move |at| (tablet << 48) | (at * 64))).collect();
        let (blocks, _) = blocks_of(&ids);
        let leaves = blocks.directory.iter().filter_map(|entry| entry.leaf.as_ref());
        let held: usize = leaves.map(|leaf| size_of::<Leaf>() + leaf.blocks.capacity() * size_of::<Block>()).sum();
        assert_eq!(blocks.bytes(), (held + blocks.directory.capacity() * size_of::<Entry>()) as u64);
        assert_eq!(blocks.used_bytes(), 64 * LEAF_BYTES + 64 * 65 / 2 * BLOCK_BYTES);
        assert!(blocks.bytes() < blocks.used_bytes() * 3 / 2);
    }
}
