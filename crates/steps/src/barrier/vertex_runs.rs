//! Sorted runs of vertices with bulks, which several threads merge: each thread a range of ids.
//!
//! ```text
//!  run of thread 0:   ──────────┼───────────┼───────
//!  run of thread 1:   ───┼──────────────┼───────────
//!                     range 0   │ range 1   │ range 2
//! ```
//!
//! A range begins and ends between two blocks ([`VertexBulks`]). So a block is cut by none.

use mangrove_flow::{BATCH_ROWS, QueryControl};
use mangrove_graph::{Result, VertexId};

use crate::barrier::sort_by_id::sort_by_id;
use crate::barrier::vertex_bulks::{
    BLOCK_BYTES, BLOCK_VERTICES, NumberedBlock, VertexBulks, block_of, each_bit, too_many,
};
use crate::rows::{ObjectColumn, Rows};

/// The blocks of a run that are looked at to find out how many vertices a block holds.
const LOOK_BLOCKS: usize = 64;

/// A range has about as many rows as this many looks at each run are apart.
const LOOKS_OF_RANGE: usize = 8;

/// Vertices in descending order, so that the next one is the last.
enum Run {
    List(Vec<(VertexId, u64)>),
    Blocks(Vec<NumberedBlock>),
}

impl Run {
    fn bytes(&self) -> u64 {
        match self {
            Run::List(list) => (list.len() * size_of::<(VertexId, u64)>()) as u64,
            Run::Blocks(blocks) => blocks.len() as u64 * BLOCK_BYTES,
        }
    }

    /// Returns about how many vertices an entry holds.
    fn vertices_of_entry(&self) -> usize {
        let Run::Blocks(blocks) = self else { return 1 };
        let seen = blocks.iter().step_by(blocks.len().div_ceil(LOOK_BLOCKS).max(1));
        let (count, held) = seen.fold((0, 0), |(count, held), (_, block)| (count + 1, held + block.len()));
        (held / count.max(1)).max(1)
    }

    fn entries(&self) -> usize {
        match self {
            Run::List(list) => list.len(),
            Run::Blocks(blocks) => blocks.len(),
        }
    }

    /// Returns the number of the block of an entry.
    fn block_at(&self, entry: usize) -> u64 {
        match self {
            Run::List(list) => block_of(list[entry].0),
            Run::Blocks(blocks) => blocks[entry].0,
        }
    }

    /// Takes the part before a block.
    fn split_before(&mut self, block: u64) -> Run {
        match self {
            Run::List(list) => {
                let at = list.partition_point(|(id, _)| block_of(*id) >= block);
                Run::List(list.split_off(at))
            }
            Run::Blocks(blocks) => {
                let at = blocks.partition_point(|(number, _)| *number >= block);
                Run::Blocks(blocks.split_off(at))
            }
        }
    }

    /// Returns the number of the next block in which a vertex is held.
    fn next_block(&mut self) -> Option<u64> {
        match self {
            Run::List(list) => list.last().map(|(id, _)| block_of(*id)),
            Run::Blocks(blocks) => loop {
                let (number, block) = blocks.last()?;
                match block.len() {
                    0 => drop(blocks.pop()),
                    _ => return Some(*number),
                }
            },
        }
    }

    /// Takes the vertices of the block that [`Run::next_block`] has returned, and adds up their bulks.
    fn take_block(&mut self, number: u64, sums: &mut BlockSums) {
        match self {
            Run::List(list) => {
                while let Some((id, bulk)) = list.pop_if(|(id, _)| block_of(*id) == number) {
                    sums.add(id.to_bits() % BLOCK_VERTICES, bulk);
                }
            }
            Run::Blocks(blocks) => {
                if let Some((_, block)) = blocks.pop_if(|(at, _)| *at == number) {
                    block.vertices().for_each(|(at, bulk)| sums.add(at, bulk));
                }
            }
        }
    }
}

/// The vertices of one block, of all runs.
struct BlockSums {
    /// A bit for each vertex that is held.
    held: u64,
    /// The bulk of each vertex that is held.
    bulks: [u64; BLOCK_VERTICES as usize],
    /// True if a vertex counts once, however many runs have it.
    one_bulk: bool,
    overflows: bool,
}

impl BlockSums {
    fn new(one_bulk: bool) -> Self {
        BlockSums { held: 0, bulks: [0; BLOCK_VERTICES as usize], one_bulk, overflows: false }
    }

    #[inline]
    fn add(&mut self, at: u64, bulk: u64) {
        let sum = &mut self.bulks[(at % BLOCK_VERTICES) as usize];
        if self.held & 1 << at == 0 {
            self.held |= 1 << at;
            *sum = bulk;
        } else if !self.one_bulk {
            let (both, overflows) = sum.overflowing_add(bulk);
            *sum = both;
            self.overflows |= overflows;
        }
    }

    /// Takes all vertices in the order of ids. Fails if a bulk overflows.
    fn take(&mut self, number: u64, vertices: &mut Vec<VertexId>, bulks: &mut Vec<u64>) -> Result<()> {
        for at in each_bit(std::mem::take(&mut self.held)) {
            vertices.push(VertexId::from_bits(number * BLOCK_VERTICES + at));
            bulks.push(self.bulks[at as usize]);
        }
        if self.overflows { Err(too_many()) } else { Ok(()) }
    }
}

/// Runs that are merged as they are taken, and their charge.
#[derive(Default)]
pub(super) struct VertexRuns {
    runs: Vec<Run>,
    charged: u64,
}

impl VertexRuns {
    /// Adds a list of different vertices in any order.
    pub fn add_list(&mut self, mut list: Vec<(VertexId, u64)>) {
        if !list.is_sorted_by_key(|(id, _)| *id) {
            sort_by_id(&mut list);
        }
        list.reverse();
        self.runs.push(Run::List(list));
    }

    /// Adds vertices in blocks.
    pub fn add_blocks(&mut self, bulks: VertexBulks) {
        // Bulks that a block has no room for.
        let (blocks, large) = bulks.into_sorted();
        self.runs.push(Run::Blocks(blocks));
        self.add_list(large);
    }

    /// Adds to the charge, which is that of all vertices.
    pub fn add_charge(&mut self, bytes: u64) {
        self.charged += bytes;
    }

    /// Adds runs, with their charge.
    pub fn add(&mut self, mut others: VertexRuns) {
        self.runs.append(&mut others.runs);
        self.charged += others.charged;
    }

    fn bytes(&self) -> u64 {
        self.runs.iter().map(Run::bytes).sum()
    }

    /// Returns true if nothing is left and nothing is charged.
    pub fn is_empty(&self) -> bool {
        self.charged == 0 && self.bytes() == 0
    }

    /// Drops all vertices.
    pub fn clear(&mut self, control: &QueryControl) {
        control.release(self.charged);
        *self = VertexRuns::default();
    }

    /// Cuts them into ranges of ids in ascending order, each with about as many rows as a sixteenth of all, but not
    /// fewer than `rows_min` and not more than `rows_max`.
    pub fn ranges(mut self, rows_min: usize, rows_max: usize) -> Vec<VertexRuns> {
        let rows: usize = self.runs.iter().map(|run| run.entries() * run.vertices_of_entry()).sum();
        let range_rows = (rows / 16).clamp(rows_min, rows_max);
        let apart = (range_rows / LOOKS_OF_RANGE).max(1);
        let looks = |run: &Run| {
            let step = (apart / run.vertices_of_entry()).max(1);
            (step..run.entries()).step_by(step).map(|entry| run.block_at(entry)).collect::<Vec<u64>>()
        };
        let mut looked: Vec<u64> = self.runs.iter().flat_map(looks).collect();
        looked.sort_unstable();
        let mut cuts: Vec<u64> =
            looked.into_iter().skip(LOOKS_OF_RANGE - 1).step_by(LOOKS_OF_RANGE).map(|block| block + 1).collect();
        cuts.dedup();
        let (charged, bytes) = (self.charged, self.bytes().max(1));
        let mut ranges = Vec::with_capacity(cuts.len() + 1);
        for cut in cuts {
            let parts = self.runs.iter_mut().map(|run| run.split_before(cut));
            let mut range = VertexRuns { runs: parts.filter(|part| part.entries() > 0).collect(), charged: 0 };
            range.charged = part_of(charged, range.bytes(), bytes);
            self.charged -= range.charged;
            ranges.push(range);
        }
        self.runs.retain(|run| run.entries() > 0);
        ranges.push(self);
        ranges.retain(|range| !range.is_empty());
        ranges
    }

    /// Takes the next vertices, at most as many as a message holds, and releases their part of the charge. With
    /// `one_bulk`, a vertex counts once, however many runs have it. Fails if a bulk overflows.
    pub fn take_next(&mut self, one_bulk: bool, control: &QueryControl) -> Result<Option<Rows>> {
        let before = self.bytes();
        let (mut vertices, mut bulks) = (Vec::with_capacity(BATCH_ROWS), Vec::with_capacity(BATCH_ROWS));
        let mut sums = BlockSums::new(one_bulk);
        // Each message holds whole blocks.
        while vertices.len() + BLOCK_VERTICES as usize <= BATCH_ROWS
            && let Some(next) = self.runs.iter_mut().filter_map(Run::next_block).min()
        {
            self.runs.iter_mut().for_each(|run| run.take_block(next, &mut sums));
            sums.take(next, &mut vertices, &mut bulks)?;
        }
        let released = match self.bytes() {
            0 => self.charged,
            after => part_of(self.charged, before - after, before),
        };
        self.charged -= released;
        control.release(released);
        Ok((!vertices.is_empty()).then(|| Rows {
            bulk: bulks.iter().any(|bulk| *bulk != 1).then_some(bulks),
            ..Rows::of(ObjectColumn::Vertices(vertices))
        }))
    }
}

/// Returns this part of a number.
fn part_of(number: u64, part: u64, whole: u64) -> u64 {
    (u128::from(number) * u128::from(part) / u128::from(whole)) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use mangrove_flow::QueryLimits;
    use mangrove_flow::clock::MonotonicClock;
    use proptest::prelude::*;

    use super::*;

    fn control() -> QueryControl {
        QueryControl::new(QueryLimits::default(), Arc::new(MonotonicClock::default()), Arc::new(AtomicBool::new(false)))
    }

    /// A run: vertices with bulks, and whether they are in blocks.
    fn run() -> impl Strategy<Value = (BTreeMap<u64, u64>, bool)> {
        let bulk = prop_oneof![20 => 1..9_u64, 1 => (u64::from(u32::MAX) - 9)..(1 << 40)];
        (prop::collection::btree_map(0..9_000_u64, bulk, 0..3_000), any::<bool>())
    }

    proptest! {
        /// Each vertex comes once, in one range, in the order of ids, with all its traversers; and the charge is released.
        #[test]
        fn ranges_hold_each_vertex_once(all in prop::collection::vec(run(), 0..5), rows_max in 1..2_000_usize, one_bulk: bool) {
            let control = control();
            let (mut runs, mut expected) = (VertexRuns::default(), BTreeMap::new());
            for (vertices, in_blocks) in all {
                for (id, bulk) in &vertices {
                    let held = expected.entry(*id);
                    held.and_modify(|held| *held += if one_bulk { 0 } else { *bulk }).or_insert(*bulk);
                }
                let vertices = vertices.into_iter().map(|(id, bulk)| (VertexId::from_bits(id), bulk));
                let bytes = 7 * vertices.len() as u64;
                if in_blocks {
                    let mut bulks = VertexBulks::default();
                    bulks.add(vertices, false).expect("no bulk overflows");
                    runs.add_blocks(bulks);
                } else {
                    runs.add_list(vertices.collect());
                }
                control.charge(bytes).expect("little is charged");
                runs.add_charge(bytes);
            }
            let mut taken = Vec::new();
            let ranges = runs.ranges(1, rows_max);
            prop_assert!(expected.len() < 20 * rows_max || ranges.len() > 1, "{} ranges", ranges.len());
            for mut range in ranges {
                while let Some(rows) = range.take_next(one_bulk, &control).expect("no bulk overflows") {
                    prop_assert!(rows.len() <= BATCH_ROWS);
                    let ObjectColumn::Vertices(ids) = &rows.objects else { panic!("vertices") };
                    taken.extend(ids.iter().enumerate().map(|(row, id)| (id.to_bits(), rows.bulk(row))));
                }
                prop_assert!(range.is_empty());
            }
            prop_assert_eq!(taken, expected.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(control.memory(), 0);
        }
    }

    #[test]
    fn a_bulk_that_overflows_is_an_error() {
        let (mut runs, id) = (VertexRuns::default(), VertexId::from_bits(7));
        runs.add_list(vec![(id, u64::MAX)]);
        runs.add_list(vec![(id, 1)]);
        assert!(runs.take_next(false, &control()).is_err());
    }
}
