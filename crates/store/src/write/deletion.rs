//! Deleting vertices and edges.
//!
//! A deleter claims the end word first, then marks the lists of the edge, and then looks for writes that conflict with
//! it. That order is its half of *store, then look* (`write`). The other half belongs to a transaction that adds an
//! edge to the vertex or sets a property: it writes first, and then looks at the end word.
//!
//! A vertex is deleted with its edges. The lists of the vertices at their other ends are marked edge by edge. The lists
//! of the deleted vertex itself are marked once, with all their edges (`adjacency::ended`).

use std::sync::atomic::{Ordering, fence};

use mangrove_graph::{Direction, EdgeId, ElementId, LabelSetId, Result, VertexId};
use mangrove_reclaim::epoch;
use mangrove_reclaim::sync::yield_now;
use smallvec::SmallVec;

use super::{Writer, conflict};
use crate::adjacency::{AdjacencyTable, EndedCell, ListStorage};
use crate::memory::Write;
use crate::page::{PageCore, TableName};
use crate::version::{CLOSED, NEVER, Standing, TIMESTAMP_MAX, contested, visible};

/// How many edges of a deleted vertex are loaded ahead together.
const DELETE_GROUP: usize = 16;

/// An end of an edge: the vertex that has the edge in one of its lists, and the cell of the edge there.
struct EndOfEdge {
    at: VertexId,
    direction: Direction,
    label: LabelSetId,
    cell: EndedCell,
}

fn opposite(direction: Direction) -> Direction {
    if direction == Direction::In { Direction::Out } else { Direction::In }
}

impl Writer<'_> {
    /// Deletes a vertex with its edges. Does nothing if this transaction sees no such vertex.
    pub fn delete_vertex(&mut self, id: VertexId) -> Result<()> {
        if !self.end(ElementId::Vertex(id))? {
            return Ok(());
        }
        // Store, then look. Pairs with the fences in `join` and `write_cell`.
        fence(Ordering::SeqCst);
        self.check_properties(ElementId::Vertex(id))?;
        let (tablet, page) = self.store.vertex_page(id).expect("the vertex was ended");
        let pin = epoch::pin();
        for direction in [Direction::Out, Direction::In] {
            for (label, table) in page.tables(direction).iter() {
                let cells = table.list(id.offset(), &tablet.lists, &pin).cells();
                if self.delete_edges_of_deleted(id, direction, cells)?
                    && table.mark_all_ended(id.offset(), &tablet.lists, self.store.space(), &self.pin)
                {
                    let name = TableName { page: id.page() as u32, direction, label: LabelSetId(label) };
                    self.store.give_table(tablet, name);
                }
            }
        }
        Ok(())
    }

    /// Deletes the edges of one list of a deleted vertex, and marks the lists at their other ends. Returns true if it
    /// has deleted any. The caller marks the list itself, once for all edges.
    fn delete_edges_of_deleted(
        &mut self,
        deleted: VertexId,
        direction: Direction,
        mut cells: impl Iterator<Item = (VertexId, EdgeId)>,
    ) -> Result<bool> {
        let mut is_any = false;
        loop {
            let group: SmallVec<[(VertexId, EdgeId); DELETE_GROUP]> = cells.by_ref().take(DELETE_GROUP).collect();
            if group.is_empty() {
                return Ok(is_any);
            }
            self.prefetch_cells(deleted, &group, direction);
            for &(neighbor, edge) in &group {
                is_any |= self.delete_edge_of_deleted(deleted, edge, neighbor, direction)?;
            }
        }
    }

    /// Starts loading the memory that deleting the edges of some cells of a deleted vertex changes, step by step for all of them.
    fn prefetch_cells(&self, deleted: VertexId, cells: &[(VertexId, EdgeId)], direction: Direction) {
        let mut ends: SmallVec<[EndOfEdge; DELETE_GROUP]> = SmallVec::new();
        cells.iter().for_each(|&(_, edge)| self.store.prefetch_edge_page(edge, true));
        for &(_, edge) in cells {
            self.store.prefetch_edge(edge, &self.pin);
            self.store.prefetch_edge_properties(edge);
        }
        for &(neighbor, edge) in cells {
            let Some(core) = self.store.edge_core(edge) else { continue };
            ends.push(EndOfEdge {
                at: neighbor,
                direction: opposite(direction),
                label: core.label,
                cell: self.ended_cell(deleted, edge),
            });
        }
        self.prefetch_marks(&ends);
    }

    /// The cell of an edge that leads to a vertex.
    fn ended_cell(&self, neighbor: VertexId, edge: EdgeId) -> EndedCell {
        EndedCell { neighbor, edge, place: self.store.place_of(neighbor) }
    }

    /// Starts loading what marking these lists changes, step by step for all of them.
    fn prefetch_marks(&self, ends: &[EndOfEdge]) {
        let mut lists: SmallVec<[(&AdjacencyTable, &ListStorage, &EndOfEdge); DELETE_GROUP]> = SmallVec::new();
        for end in ends {
            if let Some((tablet, page)) = self.store.vertex_page(end.at)
                && let Some(table) = page.tables(end.direction).get(end.label.0)
            {
                table.prefetch_descriptor(end.at.offset(), &self.pin);
                lists.push((table, &tablet.lists, end));
            }
        }
        lists.iter().for_each(|(table, lists, end)| table.prefetch_header(end.at.offset(), lists, &self.pin));
        lists.iter().for_each(|(table, lists, end)| table.prefetch_ended(end.at.offset(), &end.cell, lists, &self.pin));
    }

    /// Deletes an edge of a deleted vertex. Returns false if this transaction does not see the edge.
    fn delete_edge_of_deleted(
        &mut self,
        deleted: VertexId,
        id: EdgeId,
        neighbor: VertexId,
        direction: Direction,
    ) -> Result<bool> {
        let (_, page) = self.store.edge_page(id).expect("a cell names an edge that was reserved");
        let (begin, end) = page.core.version_under(&self.pin, id.offset());
        if contested(begin, &self.snapshot) {
            // A committed deletion of the edge is no conflict. An edge that a running transaction has added and deleted
            // again is one. Adding the edge has shown that transaction that the vertex exists, and it may commit after
            // this deletion.
            let is_over = Standing::of((begin, end), TIMESTAMP_MAX) == Standing::Over;
            return if is_over { Ok(false) } else { Err(conflict("added an edge to the vertex to be deleted")) };
        }
        if !visible(begin, end, &self.snapshot) {
            return Ok(false);
        }
        self.claim_end(ElementId::Edge(id), &page.core, id.offset())?;
        let (direction, label) = (opposite(direction), page.core.label);
        self.mark_ended(&EndOfEdge { at: neighbor, direction, label, cell: self.ended_cell(deleted, id) });
        fence(Ordering::SeqCst);
        self.check_properties(ElementId::Edge(id))?;
        Ok(true)
    }

    /// Deletes an edge. Does nothing if this transaction sees no such edge.
    pub fn delete_edge(&mut self, id: EdgeId) -> Result<()> {
        let element = ElementId::Edge(id);
        self.store.prefetch_edge_page(id, true);
        self.store.prefetch_edge(id, &self.pin);
        self.store.prefetch_edge_properties(id);
        let Some((_, page)) = self.store.edge_page(id) else { return Ok(()) };
        if !page.core.visible(id.offset(), &self.snapshot) {
            return Ok(());
        }
        let ((source, target), label) = (page.ends(id.offset(), &self.pin), page.core.label);
        let ends = [
            EndOfEdge { at: source, direction: Direction::Out, label, cell: self.ended_cell(target, id) },
            EndOfEdge { at: target, direction: Direction::In, label, cell: self.ended_cell(source, id) },
        ];
        self.prefetch_marks(&ends);
        if self.end(element)? {
            // STORE-14: the lists are marked after the claim, and before this call returns.
            ends.iter().for_each(|end| self.mark_ended(end));
            fence(Ordering::SeqCst);
            self.check_properties(element)?;
        }
        Ok(())
    }

    /// Marks the list of a vertex that the cell of an ended edge is in, if the vertex has a table for it.
    fn mark_ended(&self, &EndOfEdge { at, direction, label, cell }: &EndOfEdge) {
        let (tablet, page) = self.store.vertex_page(at).expect("the end of an edge is a vertex");
        if let Some(table) = page.tables(direction).get(label.0)
            && table.mark_ended(at.offset(), cell, &tablet.lists, self.store.space(), &self.pin)
        {
            self.store.give_table(tablet, TableName { page: at.page() as u32, direction, label });
        }
    }

    /// Claims the end word of an element. Returns false if this transaction sees no such element.
    fn end(&mut self, element: ElementId) -> Result<bool> {
        let Some(slot) = self.store.slot(element) else { return Ok(false) };
        if !slot.visible(&self.snapshot) {
            return Ok(false);
        }
        self.claim_end(element, slot.core, slot.at)?;
        Ok(true)
    }

    /// Claims the end word of an element that this transaction sees.
    fn claim_end(&mut self, element: ElementId, core: &PageCore, at: usize) -> Result<()> {
        loop {
            let words = core.versions(&self.pin, &self.store.memory);
            // STORE-2. SeqCst: this is the *store* of store, then look; the fences are in the callers.
            let claimed = words[at].end.compare_exchange(NEVER, self.claim, Ordering::SeqCst, Ordering::Acquire);
            match claimed {
                Ok(_) => break,
                // STORE-21. A collector is about to take the words away or to open them again; then the next round
                // makes new words or finds these open.
                Err(CLOSED) => yield_now(),
                Err(_) => return Err(conflict("is deleting the same element")),
            }
        }
        self.claimed(Write::End(element));
        Ok(())
    }

    /// Fails if another transaction has changed a property of the element.
    fn check_properties(&self, element: ElementId) -> Result<()> {
        let slot = self.store.slot(element).expect("the element was ended");
        let undo = slot.tablet.undo_under(&self.pin);
        let contested = slot.core.columns().any(|(_, c)| c.is_contested(slot.at, &self.snapshot, undo));
        if contested { Err(conflict("changed a property of the element to be deleted")) } else { Ok(()) }
    }
}
