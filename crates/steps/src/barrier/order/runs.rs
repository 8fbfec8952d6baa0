//! Sorted runs of rows, and merging them.
//!
//! A run is cut into blocks of at most [`BATCH_ROWS`] rows. A merge goes through the blocks of each run in order, and
//! drops a block when its last row is taken. So the merged rows take the place of those that they are made from.
//!
//! ```text
//! run 0   [1 4 9] [9 12] ─┐
//! run 1   [2 4]           ├─► heap of the first row of each run ─► 1 2 3 4 4 …
//! run 2   [3 8] [15]     ─┘
//! ```
//!
//! Runs are in the order in which their rows came. Of equal rows, the one of the earlier run goes first, so the merge
//! is stable.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use mangrove_flow::{BATCH_ROWS, Batch as _, QueryControl, TagSet};
use mangrove_graph::Result;

use super::rank::RankKind;
use super::sorter::{RowSorter, SortedRows, compare_keys};
use crate::rows::gather::PickedRows;
use crate::rows::{Rows, Tags};
use crate::values::element_order::ElementOrder;

/// A part of a run: rows with their keys, and the bytes that the query is charged for them.
pub(super) struct Block {
    rows: Arc<Rows>,
    words: Arc<[u64]>,
    /// The rows that belong to the block. The others belong to blocks of other parts of the run ([`super::parts`]).
    range: Range<usize>,
    pub charged: u64,
}

/// Rows in order, by blocks.
pub(super) struct Run {
    pub blocks: VecDeque<Block>,
    /// The kind of the words of the blocks; `None` if they have none.
    pub kind: Option<RankKind>,
}

impl Block {
    fn new(rows: Rows, words: Vec<u64>, control: &QueryControl) -> Result<Self> {
        let charged = (rows.bytes() + size_of_val(&words[..])) as u64;
        control.charge(charged)?;
        Ok(Block { range: 0..rows.len(), rows: Arc::new(rows), words: words.into(), charged })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns the rows, among those of other blocks, and which of them belong to this one.
    pub fn rows(&self) -> (&Rows, Range<usize>) {
        (&self.rows, self.range.clone())
    }

    /// Returns the rows without their charge.
    pub fn into_rows(self) -> Rows {
        if self.range.len() < self.rows.len() {
            let rows: Vec<u32> = (self.range.start as u32..self.range.end as u32).collect();
            return self.rows.take(&rows);
        }
        Arc::unwrap_or_clone(self.rows)
    }

    /// Takes the first `count` rows off, with their part of the charge.
    pub fn split_off(&mut self, count: usize) -> Block {
        let part = (u128::from(self.charged) * count as u128 / self.len().max(1) as u128) as u64;
        let middle = self.range.start + count;
        let range = std::mem::replace(&mut self.range.start, middle)..middle;
        self.charged -= part;
        Block { rows: self.rows.clone(), words: self.words.clone(), range, charged: part }
    }
}

impl Run {
    /// A run of rows that have been sorted.
    pub fn new(rows: Rows, sorted: SortedRows, control: &QueryControl) -> Result<Self> {
        let SortedRows { order, words } = sorted;
        let (kind, words) = words.map_or((None, Vec::new()), |(kind, words)| (Some(kind), words));
        let mut blocks = VecDeque::with_capacity(order.len().div_ceil(BATCH_ROWS));
        if rows.len() <= BATCH_ROWS && order.is_sorted() {
            blocks.push_back(Block::new(rows, words, control)?);
            return Ok(Run { blocks, kind });
        }
        let mut words = words.chunks(BATCH_ROWS);
        for some in order.chunks(BATCH_ROWS) {
            let words = words.next().unwrap_or_default().to_vec();
            blocks.push_back(Block::new(rows.take(some), words, control)?);
        }
        Ok(Run { blocks, kind })
    }

    fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(Block::len).sum()
    }

    /// Takes the charge of its blocks over.
    pub fn take_charge(&mut self) -> u64 {
        self.blocks.iter_mut().map(|block| std::mem::take(&mut block.charged)).sum()
    }

    /// Drops the rows of these tags, and releases their charge.
    pub fn drop_tags(&mut self, tags: &TagSet, control: &QueryControl) {
        for block in &mut self.blocks {
            let Block { rows, words, range, charged } = block;
            let is_kept = |row: &u32| !tags.contains(rows.tag(*row as usize));
            let kept: Vec<u32> = (range.start as u32..range.end as u32).filter(is_kept).collect();
            if kept.len() < range.len() {
                if !words.is_empty() {
                    *words = kept.iter().map(|row| words[*row as usize]).collect();
                }
                *rows = Arc::new(rows.take(&kept));
                *range = 0..kept.len();
                let bytes = ((rows.bytes() + size_of_val(&words[..])) as u64).min(*charged);
                control.release(*charged - bytes);
                *charged = bytes;
            }
        }
        self.blocks.retain(|block| block.len() > 0);
    }
}

/// Runs that are being merged into one.
pub(super) struct Merge {
    runs: Vec<VecDeque<Block>>,
    /// The first row of each run that is left, as a binary heap: the least one is at index 0.
    heads: Vec<Head>,
    /// The kind of words by which rows are compared; `None` if they are compared by their keys.
    kind: Option<RankKind>,
    /// The number of traversers of the instance that was met last that have been taken.
    taken: (u32, u64),
    /// True if merged rows keep their keys.
    keeps_keys: bool,
}

/// A row of a run, such as the first one that is left.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub run: u32,
    row: u32,
    tag: u32,
    word: u64,
}

impl Head {
    /// The row of this number of a block of a run. `kind` is that of the words by which rows are compared.
    pub fn new(run: usize, block: &Block, row: usize, kind: Option<RankKind>) -> Self {
        let word = if kind.is_some() { block.words[row] } else { 0 };
        Head { run: run as u32, row: row as u32, tag: block.rows.tag(row), word }
    }
}

/// The rows of a step of a merge, with their words.
pub(super) struct MergedRows {
    pub rows: Rows,
    words: Vec<u64>,
}

/// What comparisons of rows need besides the rows.
#[derive(Clone, Copy)]
pub(super) struct Criteria<'a> {
    pub sorter: &'a RowSorter,
    pub elements: ElementOrder<'a>,
}

/// Returns the kind of words by which the rows of all runs are compared; `None` if they are compared by their keys.
pub(super) fn kind_of(runs: &[Run]) -> Option<RankKind> {
    let mut kinds = runs.iter().filter(|run| !run.is_empty()).map(|run| run.kind);
    let first = kinds.next()??;
    kinds.all(|kind| kind == Some(first)).then_some(first)
}

/// Compares two rows of runs, each with its block. The one of the earlier run goes first if they are equal. Two rows of
/// one run may be equal.
pub(super) fn compare_heads(
    kind: Option<RankKind>,
    criteria: Criteria<'_>,
    (a, a_block): (&Head, &Block),
    (b, b_block): (&Head, &Block),
) -> Ordering {
    let by_word = a.tag.cmp(&b.tag).then(a.word.cmp(&b.word));
    let decided = by_word.is_ne() || kind.is_some_and(|kind| criteria.sorter.is_exact(kind));
    let by_keys = || match decided {
        true => Ordering::Equal,
        false => {
            let (a, b) = ((&*a_block.rows, a.row as usize), (&*b_block.rows, b.row as usize));
            compare_keys(&criteria.sorter.ways, &criteria.elements, a, b)
        }
    };
    by_word.then_with(by_keys).then(a.run.cmp(&b.run))
}

impl Merge {
    /// A merge of runs in the order in which their rows came.
    pub fn new(runs: Vec<Run>, criteria: Criteria<'_>) -> Self {
        let runs: Vec<Run> = runs.into_iter().filter(|run| !run.is_empty()).collect();
        let kind = kind_of(&runs);
        let runs: Vec<VecDeque<Block>> = runs.into_iter().map(|run| run.blocks).collect();
        let mut merge = Merge { runs, heads: Vec::new(), kind, taken: (0, 0), keeps_keys: true };
        merge.heads = (0..merge.runs.len()).map(|run| merge.first(run, 0)).collect();
        for at in (0..merge.heads.len() / 2).rev() {
            merge.sift_down(at, criteria, &vec![0; merge.runs.len()]);
        }
        merge
    }

    /// The same merge, for rows that are not merged again: they lose their keys.
    pub fn without_keys(self) -> Self {
        Merge { keeps_keys: false, ..self }
    }

    /// The kind of the words of merged rows.
    pub fn kind(&self) -> Option<RankKind> {
        self.kind
    }

    /// Returns true if no row is left.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Returns the first row of a block of a run.
    fn first(&self, run: usize, block: usize) -> Head {
        let block = &self.runs[run][block];
        Head::new(run, block, block.range.start, self.kind)
    }

    /// Returns the next rows, about as many as a message holds: fewer if rows beyond the limit are passed. `at` is the
    /// block of each run that its head is in.
    pub fn next(&mut self, criteria: Criteria<'_>, control: &QueryControl) -> Result<MergedRows> {
        control.check()?;
        let mut at: Vec<usize> = vec![0; self.runs.len()];
        let mut picks: Vec<(u32, u32, u32)> = Vec::with_capacity(BATCH_ROWS);
        let mut words = Vec::with_capacity(if self.kind.is_some() { BATCH_ROWS } else { 0 });
        for _ in 0..BATCH_ROWS {
            let Some(head) = self.heads.first().copied() else { break };
            let (run, row) = (head.run as usize, head.row as usize);
            let block = &self.runs[run][at[run]];
            let rows = &block.rows;
            if self.taken.0 != head.tag {
                self.taken = (head.tag, 0);
            }
            if criteria.sorter.limit.is_none_or(|limit| self.taken.1 < limit) {
                self.taken.1 = self.taken.1.saturating_add(rows.bulk(row));
                picks.push((head.run, at[run] as u32, head.row));
                words.extend(self.kind.map(|_| head.word));
            } else if matches!(rows.tags, Tags::One) {
                // The group has one instance, and no more of it is needed.
                self.heads.clear();
                break;
            }
            if row + 1 < block.range.end {
                self.heads[0] = Head::new(run, block, row + 1, self.kind);
            } else if at[run] + 1 < self.runs[run].len() {
                at[run] += 1;
                self.heads[0] = self.first(run, at[run]);
            } else {
                self.heads.swap_remove(0);
            }
            self.sift_down(0, criteria, &at);
        }
        let picked =
            picks.iter().map(|(run, block, row)| (&*self.runs[*run as usize][*block as usize].rows, *row as usize));
        let picked = PickedRows::new(picked.collect());
        let rows = if self.keeps_keys { picked.gathered() } else { picked.gathered_without_computed() };
        self.drop_blocks(&at, control);
        Ok(MergedRows { rows, words })
    }

    /// Drops the blocks before those that the heads are in.
    fn drop_blocks(&mut self, at: &[usize], control: &QueryControl) {
        let mut ends: Vec<Option<usize>> = vec![None; self.runs.len()];
        self.heads.iter().for_each(|head| ends[head.run as usize] = Some(at[head.run as usize]));
        for (run, end) in self.runs.iter_mut().zip(ends) {
            let gone = end.unwrap_or(run.len());
            run.drain(..gone).for_each(|block| control.release(block.charged));
        }
    }

    /// Drops all rows that are left.
    pub fn close(self, control: &QueryControl) {
        self.runs.into_iter().flatten().for_each(|block| control.release(block.charged));
    }

    /// Moves a head down the heap until it is not greater than those below it.
    fn sift_down(&mut self, mut at: usize, criteria: Criteria<'_>, blocks: &[usize]) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut least = at;
            for below in [left, right] {
                if below < self.heads.len() && self.compare(below, least, criteria, blocks).is_lt() {
                    least = below;
                }
            }
            if least == at {
                return;
            }
            self.heads.swap(at, least);
            at = least;
        }
    }

    /// Compares two heads of the heap. No two are equal: the earlier run goes first.
    fn compare(&self, a: usize, b: usize, criteria: Criteria<'_>, blocks: &[usize]) -> Ordering {
        let with_block = |at: usize| {
            let head = &self.heads[at];
            (head, &self.runs[head.run as usize][blocks[head.run as usize]])
        };
        compare_heads(self.kind, criteria, with_block(a), with_block(b))
    }
}

/// Merges runs into one, in which each instance has no more traversers than the limit.
pub(super) fn merge_all(runs: Vec<Run>, criteria: Criteria<'_>, control: &QueryControl) -> Result<Run> {
    let mut merge = Merge::new(runs, criteria);
    let mut merged = Run { blocks: VecDeque::new(), kind: merge.kind() };
    while !merge.is_empty() {
        let MergedRows { rows, words } = merge.next(criteria, control)?;
        if !rows.is_empty() {
            merged.blocks.push_back(Block::new(rows, words, control)?);
        }
    }
    merge.close(control);
    Ok(merged)
}
