//! Cutting sorted runs into parts that threads merge apart.
//!
//! A part has the rows of all runs that come before a *splitter* and not before the one of the part before. Splitters
//! are among the first rows of blocks, so there is no search for good ones. In each run, the rows before a splitter are
//! found by halving.
//!
//! ```text
//!                  splitter 4 of run 0
//! run 0   [1 3]     │ [4 9] [9 12]
//! run 1   [2] [3    │ 4 7]                of equal rows, that of the earlier run goes first
//!         part 0    │ part 1
//! ```
//!
//! The order of rows is that of the merge: by instance, keys and run. So if the parts are merged one by one, their rows
//! are those of the merge of the whole runs, in the same order. A limit is for all parts together, so runs with a limit
//! are not cut.
//!
//! Parts share the blocks that a splitter cuts. Each has the charge of its rows.

use std::cmp::Ordering;
use std::collections::VecDeque;

use mangrove_flow::{BATCH_ROWS, QueryControl};
use mangrove_graph::Result;

use super::runs::{Block, Criteria, Head, Run, compare_heads, kind_of};

/// The rows of a part, about.
pub(super) const PART_ROWS: usize = 1 << 13;

/// The most parts. Each splitter is searched for in each run, so more parts of more runs would take long to find.
const PARTS_MAX: usize = 128;

/// Cuts runs into parts: in each, a run for each of these, some of which may be empty.
pub(super) fn cut(runs: Vec<Run>, criteria: Criteria<'_>, control: &QueryControl) -> Result<Vec<Vec<Run>>> {
    let blocks = runs.iter().map(|run| run.blocks.len()).sum::<usize>().div_ceil(PARTS_MAX);
    cut_at(runs, blocks.max(PART_ROWS / BATCH_ROWS), criteria, control)
}

/// As [`cut`], with so many blocks in a part, about.
fn cut_at(runs: Vec<Run>, blocks: usize, criteria: Criteria<'_>, control: &QueryControl) -> Result<Vec<Vec<Run>>> {
    let kind = kind_of(&runs);
    let first = |run: usize, block: &Block| Head::new(run, block, block.rows().1.start, kind);
    // The first rows of blocks, each with its block, the number of it in the run.
    let mut sample: Vec<(Head, usize)> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        sample.extend(run.blocks.iter().enumerate().map(|(at, block)| (first(number, block), at)));
    }
    let block_of = |(head, at): &(Head, usize)| &runs[head.run as usize].blocks[*at];
    sample.sort_by(|a, b| compare_heads(kind, criteria, (&a.0, block_of(a)), (&b.0, block_of(b))).then(a.1.cmp(&b.1)));
    let splitters: Vec<(Head, usize)> = sample.into_iter().step_by(blocks.max(1)).skip(1).collect();
    // For each splitter and run: the blocks that come before, and the end of the rows of the next block that do.
    let mut ends: Vec<Vec<(usize, usize)>> = Vec::with_capacity(splitters.len());
    for splitter in &splitters {
        control.check()?;
        let is_before = |run: usize, block: &Block, row: usize| {
            let head = Head::new(run, block, row, kind);
            compare_heads(kind, criteria, (&head, block), (&splitter.0, block_of(splitter))) == Ordering::Less
        };
        let end = |(number, run): (usize, &Run)| match number == splitter.0.run as usize {
            true => (splitter.1, 0),
            false => rows_before(run, |block, row| is_before(number, block, row)),
        };
        ends.push(runs.iter().enumerate().map(end).collect());
    }
    let mut left: Vec<(Run, usize)> = runs.into_iter().map(|run| (run, 0)).collect();
    let mut parts: Vec<Vec<Run>> = Vec::with_capacity(ends.len() + 1);
    for ends in ends {
        let taken = left.iter_mut().zip(ends).map(|((run, gone), (blocks, rows))| take(run, gone, blocks, rows));
        parts.push(taken.collect());
    }
    parts.push(left.into_iter().map(|(run, _)| run).collect());
    Ok(parts)
}

/// Returns how many blocks of a run come before a splitter, and the end of the rows of the next one that do; 0 for none.
fn rows_before(run: &Run, is_before: impl Fn(&Block, usize) -> bool) -> (usize, usize) {
    // Blocks whose first rows come before it. All but the last one do so with all rows.
    let (mut low, mut high) = (0, run.blocks.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let block = &run.blocks[middle];
        if is_before(block, block.rows().1.start) { low = middle + 1 } else { high = middle }
    }
    let Some(block) = low.checked_sub(1).map(|last| &run.blocks[last]) else { return (0, 0) };
    let range = block.rows().1;
    let (mut from, mut to) = (range.start + 1, range.end);
    while from < to {
        let middle = from + (to - from) / 2;
        if is_before(block, middle) { from = middle + 1 } else { to = middle }
    }
    if from == range.end { (low, 0) } else { (low - 1, from) }
}

/// Takes the rows of a run that [`rows_before`] has found. `gone` is the number of blocks that were taken before.
fn take(run: &mut Run, gone: &mut usize, blocks: usize, end: usize) -> Run {
    let whole = blocks.saturating_sub(*gone).min(run.blocks.len());
    *gone += whole;
    let mut taken: VecDeque<Block> = run.blocks.drain(..whole).collect();
    if let Some(next) = run.blocks.front_mut() {
        let start = next.rows().1.start;
        if end > start {
            taken.push_back(next.split_off(end - start));
        }
    }
    Run { blocks: taken, kind: run.kind }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mangrove_flow::clock::ManualClock;
    use mangrove_graph::Value;
    use mangrove_gremlin::Order as Way;
    use proptest::prelude::*;

    use super::*;
    use crate::barrier::order::runs::Merge;
    use crate::barrier::order::sorter::RowSorter;
    use crate::context::random::Random;
    use crate::fake_view::modern;
    use crate::rows::{ObjectColumn, Rows, Tags};
    use crate::values::element_order::{ElementIds, ElementOrder};

    /// A row: its instance and its keys.
    type Row = (u32, Value, Value);

    fn any_rows() -> impl Strategy<Value = Vec<Vec<Row>>> {
        fn runs(first: impl Strategy<Value = Value> + Clone, tags: u32) -> impl Strategy<Value = Vec<Vec<Row>>> {
            let row = (0..tags, first, (0..3_i64).prop_map(Value::I64));
            prop::collection::vec(prop::collection::vec(row, 1..40), 0..6)
        }
        let numbers = (0..9_i64).prop_map(Value::I64);
        let texts = "[ab]{7,9}".prop_map(Value::from);
        let mixed = prop_oneof![numbers.clone(), texts.clone(), Just(Value::F64(2.5))];
        prop_oneof![runs(numbers.clone(), 1), runs(texts, 1), runs(mixed.clone(), 1), runs(mixed, 3), runs(numbers, 3)]
    }

    /// Sorts the rows of each run. The object of a row is its number. `block` is the number of rows of a block.
    fn sorted(runs: &[Vec<Row>], sorter: &mut RowSorter, ids: &ElementIds, block: usize) -> Vec<Run> {
        let (g, control) = (modern(), control());
        let mut number = 0;
        let mut made = Vec::new();
        for rows in runs {
            let objects = rows.iter().map(|_| {
                number += 1;
                Value::I64(number)
            });
            let mut all = Rows::of(ObjectColumn::Values(objects.collect()));
            if rows.iter().any(|(tag, ..)| *tag > 0) {
                all.tags = Tags::Many(rows.iter().map(|(tag, ..)| *tag).collect());
            }
            all.computed = vec![rows.iter().map(|row| Some(row.1.clone())).collect()];
            if sorter.ways.len() > 1 {
                all.computed.push(rows.iter().map(|row| Some(row.2.clone())).collect());
            }
            let order = sorter.sort(&all, ids, &*g.view, &control).unwrap();
            let mut run = Run::new(all, order, &control).unwrap();
            // Smaller blocks, as if there were more rows.
            let mut blocks = VecDeque::new();
            for mut whole in run.blocks.drain(..) {
                while whole.len() > block {
                    blocks.push_back(whole.split_off(block));
                }
                blocks.push_back(whole);
            }
            run.blocks = blocks;
            made.push(run);
        }
        made
    }

    fn control() -> QueryControl {
        QueryControl::new(Default::default(), Arc::new(ManualClock::default()), Arc::default())
    }

    /// The objects of merged runs, in order.
    fn merged(runs: Vec<Run>, criteria: Criteria<'_>) -> Vec<Value> {
        let mut merge = Merge::new(runs, criteria);
        let mut objects = Vec::new();
        while !merge.is_empty() {
            objects.extend(merge.next(criteria, &control()).unwrap().rows.objects.into_values());
        }
        objects
    }

    fn charged(runs: &[Run]) -> u64 {
        runs.iter().flat_map(|run| &run.blocks).map(|block| block.charged).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn merged_parts_are_the_merge_of_the_whole(
            rows in any_rows(),
            descending in any::<bool>(),
            two_keys in any::<bool>(),
            block in 1..8_usize,
            blocks in 1..5_usize,
        ) {
            let way = if descending { Way::Desc } else { Way::Asc };
            let ways = if two_keys { vec![way, Way::Asc] } else { vec![way] };
            let mut sorter = RowSorter { ways, limit: None, random: Random::default() };
            let (g, ids) = (modern(), ElementIds::default());
            let whole = sorted(&rows, &mut sorter, &ids, block);
            let cut_runs = sorted(&rows, &mut sorter, &ids, block);
            let criteria = Criteria { sorter: &sorter, elements: ElementOrder::new(&*g.view, &ids) };
            let (count, bytes) = (rows.iter().map(Vec::len).sum::<usize>(), charged(&whole));
            let expected = merged(whole, criteria);
            prop_assert_eq!(expected.len(), count);
            let parts = cut_at(cut_runs, blocks, criteria, &control()).unwrap();
            prop_assert_eq!(parts.iter().map(|part| charged(part)).sum::<u64>(), bytes);
            // A part has the blocks from one splitter to the next, and at most a block of each run besides.
            let most = (blocks + rows.len() + 1) * block;
            for part in &parts {
                prop_assert!(part.iter().flat_map(|run| &run.blocks).map(Block::len).sum::<usize>() <= most);
            }
            let found: Vec<Value> = parts.into_iter().flat_map(|part| merged(part, criteria)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
