//! Amended rows of positions alone.
//!
//! Cells are equal if their positions are. So of parallel edges any one may go, and an edge that came and left in the meantime is
//! no change.
//!
//! Work: that of copying the page, and for each row that loses cells one look at its cells, or some looks that compare
//! several cells at a time.

use std::ops::Range;

use mangrove_graph::{Direction, EdgeChangeKind};

use super::changes::ListChange;
use super::{LOOKS_MAX, Wanted, place_of};
use crate::choice::ProjectionOptions;
use crate::numbering::{NO_POSITION, Numbering, SLOTS};
use crate::page_rows::{PageRows, Pieces};

/// A cell that comes to the row of a slot or leaves it, so many times: if negative, it leaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct CellChange {
    slot: u16,
    target: u32,
    by: i32,
}

#[derive(Default)]
pub(super) struct Amender {
    cells: Vec<CellChange>,
    /// The places of the cells that leave a row, ascending.
    leaving: Vec<usize>,
    wanted: Wanted,
    pieces: Pieces,
}

impl Amender {
    /// The rows of a direction after some changes. `None` if the changes do not fit them.
    pub(super) fn rows(
        &mut self,
        rows: &PageRows,
        changes: &[ListChange],
        direction: Direction,
        options: &ProjectionOptions,
        numbering: &Numbering,
    ) -> Option<PageRows> {
        self.note_cells(changes, direction, options, numbering);
        if self.cells.is_empty() {
            return Some(rows.clone());
        }
        let Amender { cells, leaving, wanted, pieces } = self;
        wanted.fit(numbering.positions());
        pieces.begin();
        let mut next = 0;
        for group in cells.chunk_by(|one, other| one.slot == other.slot) {
            let slot = usize::from(group[0].slot);
            pieces.append_rows(rows, next..slot);
            next = slot + 1;
            leaving.clear();
            find_leaving(rows.row(slot), group, wanted, leaving)?;
            let Range { start, end } = rows.places(slot);
            let mut from = start;
            for place in &*leaving {
                pieces.append_cells(from..start + place);
                from = start + place + 1;
            }
            pieces.append_cells(from..end);
            for change in group {
                (0..change.by).for_each(|_| pieces.push(change.target, None, None));
            }
            pieces.end_row();
        }
        pieces.append_rows(rows, next..SLOTS);
        pieces.rows(rows)
    }

    /// Lists the changes of cells, by slots and targets, each target of a slot once.
    fn note_cells(
        &mut self,
        changes: &[ListChange],
        direction: Direction,
        options: &ProjectionOptions,
        numbering: &Numbering,
    ) {
        let cells = &mut self.cells;
        cells.clear();
        let of_direction = |change: &&ListChange| direction == Direction::Both || direction == change.direction;
        cells.extend(changes.iter().filter(of_direction).filter_map(|change| {
            let (labels, by) = match change.kind {
                EdgeChangeKind::Added(labels) => (labels, 1),
                EdgeChangeKind::Removed(labels) => (labels, -1),
                EdgeChangeKind::Wrote(_) => return None,
            };
            let target = numbering.position(change.neighbor);
            options.edges.takes(labels).then_some(CellChange { slot: change.slot, target, by })
        }));
        // Of an edge to a vertex with another label, only this end counts.
        cells.retain(|change| change.target != NO_POSITION);
        cells.sort_unstable();
        cells.dedup_by(|change, kept| {
            let is_same = (change.slot, change.target) == (kept.slot, kept.target);
            kept.by += if is_same { change.by } else { 0 };
            is_same
        });
        cells.retain(|change| change.by != 0);
    }
}

/// Appends the places of the cells that leave a row, ascending. `None` if the row does not have all of them. `group` are the changes of
/// the row, by their targets.
fn find_leaving(row: &[u32], group: &[CellChange], wanted: &mut Wanted, leaving: &mut Vec<usize>) -> Option<()> {
    let count: usize = group.iter().map(|change| usize::try_from(-change.by).unwrap_or(0)).sum();
    if count <= LOOKS_MAX {
        for change in group {
            let mut from = 0;
            for _ in change.by..0 {
                let place = from + place_of(&row[from..], change.target)?;
                leaving.push(place);
                from = place + 1;
            }
        }
        leaving.sort_unstable();
        return Some(());
    }
    let targets = || group.iter().filter(|change| change.by < 0).map(|change| change.target);
    targets().for_each(|target| wanted.insert(target));
    let mut left: Vec<i32> = group.iter().map(|change| change.by).collect();
    for (place, target) in row.iter().enumerate() {
        if wanted.has(*target)
            && let Ok(nth) = group.binary_search_by_key(target, |change| change.target)
        {
            leaving.push(place);
            left[nth] += 1;
            if left[nth] == 0 {
                wanted.remove(*target);
            }
        }
    }
    targets().for_each(|target| wanted.remove(target));
    (leaving.len() == count).then_some(())
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn leaving(row: &[u32], changes: &[(u32, i32)]) -> Option<Vec<usize>> {
        let group: Vec<_> = changes.iter().map(|&(target, by)| CellChange { slot: 0, target, by }).collect();
        let (mut wanted, mut found) = (Wanted::default(), Vec::new());
        wanted.fit(1_024);
        let outcome = find_leaving(row, &group, &mut wanted, &mut found);
        assert!(wanted.0.iter().all(|word| *word == 0), "no bit is left");
        outcome.map(|()| found)
    }

    #[test]
    fn cells_that_leave_are_found_one_by_one_and_together() {
        let row: Vec<u32> = (0..400).map(|at| at * 37 % 100).collect();
        let places = |target: u32| row.iter().enumerate().filter(move |of| *of.1 == target).map(|of| of.0);
        let expected = |changes: &[(u32, i32)]| {
            let of = |&(target, by): &(u32, i32)| places(target).take(usize::try_from(-by).unwrap_or(0));
            let mut found: Vec<usize> = changes.iter().flat_map(of).collect();
            found.sort_unstable();
            Some(found)
        };
        let cases: [&[(u32, i32)]; 6] = [
            &[(0, -1)],
            &[(3, -2), (50, 4), (99, -1)],
            &[(3, 1)],
            &[(0, -4), (1, -1)],
            &[(2, -3), (5, 9), (7, -1), (8, -1), (9, -1)],
            &[(20, -4), (40, -4), (60, -4), (70, -2)],
        ];
        for changes in cases {
            assert_eq!(leaving(&row, changes), expected(changes), "{changes:?}");
        }
        for changes in [&[(100, -1)][..], &[(0, -5)], &[(1, -4), (2, -4), (200, -1)], &[(1, -5), (2, -3)]] {
            assert_eq!(leaving(&row, changes), None, "{changes:?}: the row does not have all of them");
        }
        assert_eq!(leaving(&[], &[(1, -1)]), None);
    }
}
