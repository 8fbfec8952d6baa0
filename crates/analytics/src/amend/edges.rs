//! Amended rows whose cells have weights or name edges.
//!
//! A cell that leaves or gets another weight is found by the position in it if no other cell of its row has that position, and by its edge if cells
//! name edges. A row in which it is not found so is read again. The weights of all cells that came, got
//! another weight or were read again are looked up together.

use std::ops::Range;

use mangrove_graph::{
    Direction, EdgeChangeKind, EdgeId, ExpandCursor, ExpandRequest, Expansion, GraphView, Numbers, Result, VertexId,
    VertexPage,
};

use super::changes::ListChange;
use super::{LOOKS_MAX, Wanted, place_of};
use crate::choice::ProjectionOptions;
use crate::numbering::{NO_POSITION, Numbering, SLOTS};
use crate::page_rows::{PageRows, Pieces, fill_weights};

/// What has become of an edge in a list of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct EdgeChange {
    slot: u16,
    is_incoming: bool,
    edge: EdgeId,
    target: u32,
    came: bool,
    left: bool,
    /// False if the edge has other labels than the projection's. Of an edge that did not come and did not leave, the labels are not in the log: then it is
    /// true.
    is_taken: bool,
    /// The place of its weight among those that are looked up, if the edge did not leave.
    weight: u32,
}

/// What happens to a cell.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Edit {
    Leave,
    /// It gets the weight of the edge of this change.
    Weight(usize),
}

impl Edit {
    /// Of a cell whose edge left or was written. `number` is that of the change.
    fn of(change: &EdgeChange, number: usize) -> Self {
        if change.left { Edit::Leave } else { Edit::Weight(number) }
    }
}

/// A row that changes.
#[derive(Debug)]
enum Row {
    /// These edits, by the places of the cells, and these changes, some of which come.
    Edited(Range<usize>, Range<usize>),
    /// These of the cells that were read.
    Read(Range<usize>),
}

#[derive(Default)]
pub(super) struct Amender {
    changes: Vec<EdgeChange>,
    /// By places in the old rows.
    edits: Vec<(u32, Edit)>,
    wanted: Wanted,
    rows: Vec<(u16, Row)>,
    vertices: Vec<VertexId>,
    found: Expansion,
    /// The edges whose weights are looked up: those of the changes, without edges that left, and then those of the cells that were read.
    edges: Vec<EdgeId>,
    weights: Vec<f64>,
    numbers: Numbers,
    pieces: Pieces,
}

impl Amender {
    /// The rows of a direction after some changes. `None` if the changes do not fit them.
    #[expect(clippy::too_many_arguments, reason = "a page, its rows, and what they are made of")]
    pub(super) fn rows(
        &mut self,
        view: &dyn GraphView,
        page: &VertexPage,
        old: &PageRows,
        changes: &[ListChange],
        direction: Direction,
        options: &ProjectionOptions,
        numbering: &Numbering,
    ) -> Result<Option<PageRows>> {
        self.note_changes(view, changes, direction, options, numbering)?;
        if self.changes.is_empty() {
            return Ok(Some(old.clone()));
        }
        self.wanted.fit(numbering.positions());
        if self.find_cells(old).is_none() {
            return Ok(None);
        }
        self.read_rows(view, page, direction, options, numbering)?;
        if options.weight.is_some() && !fill_weights(view, options, &self.edges, &mut self.weights, &mut self.numbers)?
        {
            // The read of the page says what is wrong.
            return Ok(None);
        }
        self.put_together(old, options, numbering);
        Ok(self.pieces.rows(old))
    }

    /// Lists the changes of edges in the order of slots, each edge of a list once.
    fn note_changes(
        &mut self,
        view: &dyn GraphView,
        changes: &[ListChange],
        direction: Direction,
        options: &ProjectionOptions,
        numbering: &Numbering,
    ) -> Result<()> {
        let noted = &mut self.changes;
        noted.clear();
        let of_direction = |change: &&ListChange| direction == Direction::Both || direction == change.direction;
        noted.extend(changes.iter().filter(of_direction).filter_map(|change| {
            let (labels, came, left) = match change.kind {
                EdgeChangeKind::Added(labels) => (Some(labels), true, false),
                EdgeChangeKind::Removed(labels) => (Some(labels), false, true),
                EdgeChangeKind::Wrote(key) if options.weight == Some(key) => (None, false, false),
                EdgeChangeKind::Wrote(_) => return None,
            };
            Some(EdgeChange {
                slot: change.slot,
                is_incoming: change.direction == Direction::In,
                edge: change.edge,
                target: numbering.position(change.neighbor),
                came,
                left,
                is_taken: labels.is_none_or(|labels| options.edges.takes(labels)),
                weight: 0,
            })
        }));
        noted.sort_unstable();
        noted.dedup_by(|change, kept| {
            let is_same = (change.slot, change.is_incoming, change.edge) == (kept.slot, kept.is_incoming, kept.edge);
            if is_same {
                kept.came |= change.came;
                kept.left |= change.left;
                kept.is_taken &= change.is_taken;
            }
            is_same
        });
        // Of an edge to a vertex with another label, only this end counts.
        noted.retain(|change| change.target != NO_POSITION && change.is_taken && !(change.came && change.left));
        // The labels of edges that were only written are not in the log.
        let written = |change: &EdgeChange| !change.came && !change.left;
        let edges: Vec<EdgeId> = noted.iter().filter(|change| written(change)).map(|change| change.edge).collect();
        let mut labels = Vec::with_capacity(edges.len());
        view.edge_labels(&edges, &mut labels)?;
        let mut labels = labels.into_iter();
        noted.retain(|change| !written(change) || labels.next().is_some_and(|labels| options.edges.takes(labels)));
        Ok(())
    }

    /// Finds the cells that leave or get another weight. `None` if a row does not have one.
    fn find_cells(&mut self, old: &PageRows) -> Option<()> {
        let Amender { changes, edits, rows, wanted, .. } = self;
        edits.clear();
        rows.clear();
        let mut begin = 0;
        for group in changes.chunk_by(|one, other| one.slot == other.slot) {
            let (of_group, slot) = (begin..begin + group.len(), group[0].slot);
            begin = of_group.end;
            let first = edits.len();
            if find_edits(old.cells_of(usize::from(slot)), group, of_group.start, wanted, edits)? {
                edits[first..].sort_unstable_by_key(|(place, _)| *place);
                rows.push((slot, Row::Edited(first..edits.len(), of_group)));
            } else {
                edits.truncate(first);
                rows.push((slot, Row::Read(0..0)));
            }
        }
        Some(())
    }

    /// Reads the rows in which a cell was not found.
    fn read_rows(
        &mut self,
        view: &dyn GraphView,
        page: &VertexPage,
        direction: Direction,
        options: &ProjectionOptions,
        numbering: &Numbering,
    ) -> Result<()> {
        let Amender { changes, rows, vertices, found, edges, .. } = self;
        let first = numbering.position(page.first);
        vertices.clear();
        let is_read = |(slot, row): &(u16, Row)| matches!(row, Row::Read(_)).then_some(*slot);
        vertices.extend(rows.iter().filter_map(is_read).map(|slot| numbering.vertex(first + u32::from(slot))));
        found.clear();
        let request = ExpandRequest { direction, labels: options.edges.clone(), edges: true, limit: usize::MAX };
        let mut cursor = ExpandCursor::default();
        while !vertices.is_empty() && !view.expand(vertices, &request, &mut cursor, found)? {}
        edges.clear();
        for change in changes.iter_mut().filter(|change| !change.left) {
            change.weight = edges.len() as u32;
            edges.push(change.edge);
        }
        edges.extend_from_slice(&found.edge);
        let mut end = 0;
        for (nth, range) in rows
            .iter_mut()
            .filter_map(|(_, row)| if let Row::Read(range) = row { Some(range) } else { None })
            .enumerate()
        {
            let begin = end;
            end += found.row[begin..].iter().take_while(|row| **row as usize == nth).count();
            *range = begin..end;
        }
        Ok(())
    }

    /// Puts the cells of all rows together.
    fn put_together(&mut self, old: &PageRows, options: &ProjectionOptions, numbering: &Numbering) {
        let Amender { changes, edits, rows, found, edges, weights, pieces, .. } = self;
        let of_found = edges.len() - found.edge.len();
        // Appends the cell of an edge whose weight is the one at a place among those that were looked up.
        let push = |pieces: &mut Pieces, target: u32, edge: EdgeId, at: usize| {
            pieces.push(target, options.weight.map(|_| weights[at]), options.names_edges.then_some(edge));
        };
        let push_change =
            |pieces: &mut Pieces, change: &EdgeChange| push(pieces, change.target, change.edge, change.weight as usize);
        pieces.begin();
        let mut next = 0;
        for (slot, row) in rows {
            pieces.append_rows(old, next..usize::from(*slot));
            next = usize::from(*slot) + 1;
            match row {
                Row::Edited(of_row, came) => {
                    let Range { start, end } = old.places(usize::from(*slot));
                    let mut from = start;
                    for (place, edit) in &edits[of_row.clone()] {
                        let place = start + *place as usize;
                        pieces.append_cells(from..place);
                        from = place + 1;
                        if let Edit::Weight(at) = edit {
                            push_change(pieces, &changes[*at]);
                        }
                    }
                    pieces.append_cells(from..end);
                    for change in changes[came.clone()].iter().filter(|change| change.came) {
                        push_change(pieces, change);
                    }
                }
                Row::Read(range) => {
                    for nth in range.clone() {
                        let target = numbering.position(found.neighbor[nth]);
                        if target != NO_POSITION {
                            push(pieces, target, found.edge[nth], of_found + nth);
                        }
                    }
                }
            }
            pieces.end_row();
        }
        pieces.append_rows(old, next..SLOTS);
    }
}

/// Appends the edits of a row with these cells, which name edges or do not. Returns false if one cannot be told from another, and `None` if a
/// cell is not there. `first` is the number of the first change of the row.
fn find_edits(
    cells: (&[u32], &[EdgeId]),
    group: &[EdgeChange],
    first: usize,
    wanted: &mut Wanted,
    edits: &mut Vec<(u32, Edit)>,
) -> Option<bool> {
    let sought = group.iter().filter(|change| !change.came).count();
    match sought <= LOOKS_MAX {
        true => find_one_by_one(cells, group, first, edits),
        false => find_together(cells, group, first, wanted, edits),
    }
}

/// As [`find_edits`], by a look at the row for each.
fn find_one_by_one(
    (row, edges): (&[u32], &[EdgeId]),
    group: &[EdgeChange],
    first: usize,
    edits: &mut Vec<(u32, Edit)>,
) -> Option<bool> {
    let of_row = edits.len();
    for (nth, change) in group.iter().enumerate().filter(|(_, change)| !change.came) {
        let (mut from, mut found) = (0, None);
        while let Some(place) = place_of(&row[from..], change.target).map(|place| from + place) {
            from = place + 1;
            // A loop has two cells of the same edge.
            let is_other = edges.get(place).is_some_and(|edge| *edge != change.edge);
            let is_taken = edits[of_row..].iter().any(|(taken, _)| *taken as usize == place);
            if is_other || is_taken {
                continue;
            }
            if found.is_some() && edges.is_empty() {
                return Some(false);
            }
            found = Some(place);
            if !edges.is_empty() {
                break;
            }
        }
        edits.push((found? as u32, Edit::of(change, first + nth)));
    }
    Some(true)
}

/// A change whose cell is looked for.
struct Sought {
    target: u32,
    /// Its number in the row.
    nth: usize,
    /// The place of the cell.
    place: Option<usize>,
}

/// As [`find_edits`], by one walk over the row.
fn find_together(
    (row, edges): (&[u32], &[EdgeId]),
    group: &[EdgeChange],
    first: usize,
    wanted: &mut Wanted,
    edits: &mut Vec<(u32, Edit)>,
) -> Option<bool> {
    let changes = group.iter().enumerate().filter(|(_, change)| !change.came);
    let mut sought: Vec<_> = changes.map(|(nth, change)| Sought { target: change.target, nth, place: None }).collect();
    sought.sort_unstable_by_key(|sought| (sought.target, sought.nth));
    sought.iter().for_each(|sought| wanted.insert(sought.target));
    let mut is_told_apart = true;
    for (place, target) in row.iter().enumerate().filter(|(_, target)| wanted.has(**target)) {
        let of_target = sought.partition_point(|sought| sought.target < *target);
        let mut same = sought[of_target..].iter_mut().take_while(|sought| sought.target == *target);
        if edges.is_empty() {
            // Told apart if one change and one cell have the position.
            let one = same.next();
            is_told_apart &= same.next().is_none();
            if let Some(one) = one {
                is_told_apart &= one.place.replace(place).is_none();
            }
        } else if let Some(of_edge) =
            same.find(|sought| sought.place.is_none() && group[sought.nth].edge == edges[place])
        {
            of_edge.place = Some(place);
        }
    }
    sought.iter().for_each(|sought| wanted.remove(sought.target));
    if is_told_apart {
        for Sought { nth, place, .. } in sought {
            edits.push((place? as u32, Edit::of(&group[nth], first + nth)));
        }
    }
    Some(is_told_apart)
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::TabletId;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    type Found = Option<(bool, Vec<(u32, Edit)>)>;

    /// What both ways find in a row, in the order of places.
    fn found(cells: (&[u32], &[EdgeId]), group: &[EdgeChange]) -> [Found; 2] {
        let mut wanted = Wanted::default();
        wanted.fit(1_024);
        let mut of = |together: bool| {
            let mut edits = Vec::new();
            let is_found = match together {
                true => find_together(cells, group, 7, &mut wanted, &mut edits),
                false => find_one_by_one(cells, group, 7, &mut edits),
            };
            edits.sort_unstable_by_key(|(place, _)| *place);
            assert!(wanted.0.iter().all(|word| *word == 0), "no bit is left");
            is_found.map(|is_found| (is_found, if is_found { edits } else { Vec::new() }))
        };
        [of(false), of(true)]
    }

    #[test]
    fn cells_are_found_one_by_one_and_together() {
        let mut rng = SmallRng::seed_from_u64(1);
        let (mut told_apart, mut not) = (0, 0);
        for round in 0..300 {
            let (length, positions) = (rng.random_range(1..200), rng.random_range(1..1_000));
            let row: Vec<u32> = (0..length).map(|_| rng.random_range(0..positions)).collect();
            let edges: Vec<EdgeId> = (0..length).map(|n| EdgeId::new(TabletId(1), n * 7 % 1_009)).collect();
            let mut places: Vec<usize> = (0..row.len()).filter(|_| rng.random_bool(0.2)).collect();
            places.sort_unstable_by_key(|place| edges[*place]);
            let change = |place: &usize| {
                let (edge, target) = (edges[*place], row[*place]);
                EdgeChange {
                    slot: 3,
                    is_incoming: false,
                    edge,
                    target,
                    came: false,
                    left: round % 2 == 0,
                    is_taken: true,
                    weight: 0,
                }
            };
            let group: Vec<EdgeChange> = places.iter().map(change).collect();
            let edit = |(nth, place): (usize, &usize)| (*place as u32, Edit::of(&group[nth], 7 + nth));
            let mut expected: Vec<_> = places.iter().enumerate().map(edit).collect();
            expected.sort_unstable_by_key(|(place, _)| *place);
            let [one_by_one, together] = found((&row, &edges), &group);
            assert_eq!(one_by_one, Some((true, expected.clone())));
            assert_eq!(together, one_by_one);
            let is_single = |place: &usize| row.iter().filter(|target| **target == row[*place]).count() == 1;
            let expected = if places.iter().all(is_single) { (true, expected) } else { (false, Vec::new()) };
            *(if expected.0 { &mut told_apart } else { &mut not }) += 1;
            let [one_by_one, together] = found((&row, &[]), &group);
            assert_eq!(one_by_one, Some(expected));
            assert_eq!(together, one_by_one);
            let other = EdgeChange { edge: EdgeId::new(TabletId(1), 2_000), target: 1_001, ..change(&0) };
            assert_eq!(found((&row, &edges), &[other]), [None, None], "the row does not have the cell");
        }
        assert!(told_apart > 20 && not > 20, "{told_apart} and {not}");
    }
}
