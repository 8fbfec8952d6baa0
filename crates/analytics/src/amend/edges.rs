//! Amended rows whose cells have weights or name edges.
//!
//! A cell that leaves or gets another weight is found by the position in it if no other cell of its row has that position, and by its edge if cells
//! name edges. A row in which it is not found so is read again, and so is one with very many changes. The weights of all cells that came, got
//! another weight or were read again are looked up together.

use std::ops::Range;

use mangrove_graph::{
    Direction, EdgeId, ExpandCursor, ExpandRequest, Expansion, GraphView, ListChange, ListChangeKind, Numbers, Result,
    VertexId, VertexPage,
};

use super::place_of;
use crate::choice::ProjectionOptions;
use crate::numbering::{NO_POSITION, Numbering, SLOTS};
use crate::page_rows::{PageRows, Pieces, fill_weights};

/// A row with more changes than this is read again: to look for each cell would take longer.
const LOOKS_MAX: usize = 64;

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
}

/// What happens to a cell.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Edit {
    Leave,
    /// It gets the weight of this one of the edges that are looked up.
    Weight(usize),
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
    /// By places in the old arrays.
    edits: Vec<(u32, Edit)>,
    rows: Vec<(u16, Row)>,
    vertices: Vec<VertexId>,
    found: Expansion,
    /// The edges of the changes, and then those of the cells that were read.
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
                ListChangeKind::Added(labels) => (Some(labels), true, false),
                ListChangeKind::Removed(labels) => (Some(labels), false, true),
                ListChangeKind::Wrote(key) if options.weight == Some(key) => (None, false, false),
                ListChangeKind::Wrote(_) => return None,
            };
            Some(EdgeChange {
                slot: change.slot,
                is_incoming: change.direction == Direction::In,
                edge: change.edge,
                target: numbering.position(change.neighbor),
                came,
                left,
                is_taken: labels.is_none_or(|labels| options.edges.takes(labels)),
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
        let Amender { changes, edits, rows, .. } = self;
        edits.clear();
        rows.clear();
        let mut begin = 0;
        for group in changes.chunk_by(|one, other| one.slot == other.slot) {
            let (of_group, slot) = (begin..begin + group.len(), group[0].slot);
            begin = of_group.end;
            let first = edits.len();
            let is_edited = group.len() <= LOOKS_MAX && find_edits(old, group, of_group.start, edits)?;
            if is_edited {
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
        edges.extend(changes.iter().map(|change| change.edge));
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
        let weight = |at: usize| options.weight.map(|_| weights[at]);
        let edge = |at: usize| options.names_edges.then(|| edges[at]);
        pieces.begin();
        let mut next = 0;
        for (slot, row) in rows {
            pieces.append_rows(old, next..usize::from(*slot));
            next = usize::from(*slot) + 1;
            match row {
                Row::Edited(of_row, came) => {
                    let mut from = old.places(usize::from(*slot)).start;
                    for (place, edit) in &edits[of_row.clone()] {
                        let place = *place as usize;
                        pieces.append_cells(from..place);
                        from = place + 1;
                        if let Edit::Weight(at) = edit {
                            pieces.push(changes[*at].target, weight(*at), edge(*at));
                        }
                    }
                    pieces.append_cells(from..old.places(usize::from(*slot)).end);
                    for at in came.clone().filter(|at| changes[*at].came) {
                        pieces.push(changes[at].target, weight(at), edge(at));
                    }
                }
                Row::Read(range) => {
                    for nth in range.clone() {
                        let (target, at) = (numbering.position(found.neighbor[nth]), changes.len() + nth);
                        if target != NO_POSITION {
                            pieces.push(target, weight(at), edge(at));
                        }
                    }
                }
            }
            pieces.end_row();
        }
        pieces.append_rows(old, next..SLOTS);
    }
}

/// Appends the edits of a row. Returns false if one cannot be told from another, and `None` if a cell is not there. `first` is the number of
/// the first change of the row.
fn find_edits(old: &PageRows, group: &[EdgeChange], first: usize, edits: &mut Vec<(u32, Edit)>) -> Option<bool> {
    let (row, edges) = old.cells_of(usize::from(group[0].slot));
    let (begin, of_row) = (old.places(usize::from(group[0].slot)).start, edits.len());
    for (nth, change) in group.iter().enumerate().filter(|(_, change)| !change.came) {
        let (mut from, mut found) = (0, None);
        while let Some(place) = place_of(&row[from..], change.target).map(|place| from + place) {
            from = place + 1;
            // A loop has two cells of the same edge.
            let is_other = edges.get(place).is_some_and(|edge| *edge != change.edge);
            let is_taken = edits[of_row..].iter().any(|(taken, _)| *taken as usize == begin + place);
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
        let edit = if change.left { Edit::Leave } else { Edit::Weight(first + nth) };
        edits.push(((begin + found?) as u32, edit));
    }
    Some(true)
}
