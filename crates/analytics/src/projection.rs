//! A projection: the neighbors of all vertices of a moment, as positions in compressed rows.
//!
//! Chosen vertices and edges, each edge once or in both directions, with a weight or without. The rows of a page of vertices are one
//! array, which a thread reads in one walk (`page_rows`). So pages are read side by side. A projection is
//! *refreshed* page by page: it shares the arrays of pages that have not changed with the old one, makes those of others of the old rows and of what the view
//! knows about changes (`amend`), and reads only the rest.
//!
//! Memory: 4 bytes a cell and 4 a position for each direction, and 8 a cell more with weights or with edges. A *cell* is an entry of a
//! row: an edge that is kept in both directions has two.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mangrove_graph::{Draw, EdgeId, GraphView, Purpose, Result, VertexPage};
use parking_lot::Mutex;

use crate::amend::{Amender, PageChanges};
use crate::choice::PART_WORK;
pub use crate::choice::{Orientation, ProjectionOptions};
use crate::numbering::{Numbering, SLOTS};
pub use crate::page_rows::WeightFacts;
use crate::page_rows::{self, Page, PageReader, PageRows};
use crate::team::Team;

/// The neighbors of all vertices of a moment.
#[derive(Clone, Debug)]
pub struct Projection {
    options: ProjectionOptions,
    numbering: Numbering,
    /// By ordinal, the rows of outgoing edges, or of both directions.
    out: Vec<PageRows>,
    /// By ordinal, the rows of incoming edges; `None` if rows have both directions.
    incoming: Option<Vec<PageRows>>,
    /// By ordinal, where the positions of a page are cut into ranges of about equal work.
    cuts: Vec<Arc<[u16]>>,
    /// By ordinal, what the memory of a page is drawn from: projections that share a page share its draw.
    draws: Vec<Option<Arc<Draw>>>,
    /// Positions in ranges of about equal work.
    parts: Vec<Range<usize>>,
    /// The cells of the outgoing rows.
    cells: u64,
    /// Whether every edge is turned around.
    is_reversed: bool,
    /// What the view showed, if it showed the commits up to one and nothing else.
    commit: Option<u64>,
}

/// What a refresh has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refreshed {
    /// The pages that were read.
    pub read: usize,
    /// The pages whose rows were amended by the changes that the view knew.
    pub amended: usize,
    /// The pages that are as before.
    pub kept: usize,
}

impl Projection {
    /// Reads a projection. Its memory is drawn from the budget of the team, until it is dropped.
    ///
    /// # Errors
    ///
    /// If the view cannot be read page by page, if an edge has a weight that is no number, if the view fails, if the query of the
    /// team has ended, or if the budget of the team has no room.
    pub fn of(view: &dyn GraphView, options: &ProjectionOptions, team: &Team) -> Result<Self> {
        let mut pages = Vec::new();
        view.vertex_pages(&options.vertices, &mut pages)?;
        let empty = Projection {
            options: options.clone(),
            numbering: Numbering::of_pages(None, &pages)?,
            out: Vec::new(),
            incoming: (options.orientation == Orientation::Directed).then(Vec::new),
            cuts: Vec::new(),
            draws: Vec::new(),
            parts: Vec::new(),
            cells: 0,
            is_reversed: false,
            commit: view.shown_commit(),
        };
        Ok(empty.with_pages(view, &pages, None, team)?.0)
    }

    /// The projection with the same options of what another view of the same graph shows. Reads or amends the pages that have changed
    /// in between. Reads all pages, if a view shows more than commits. With weights, the first refresh reads all pages, too, if an edge has changed.
    ///
    /// # Errors
    ///
    /// As those of [`Projection::of`].
    pub fn refreshed(self: &Arc<Self>, view: &dyn GraphView, team: &Team) -> Result<(Arc<Self>, Refreshed)> {
        let mut pages = Vec::new();
        view.vertex_pages(&self.options.vertices, &mut pages)?;
        let shown = view.shown_commit();
        // A page that no commit after both moments has changed is the same at both, whichever is the earlier one.
        let since = self.commit.zip(shown).map(|(one, other)| one.min(other));
        // If writes of properties are not noted by page, any edge may have another weight.
        let are_edges_old = self.options.weight.is_none()
            || view.edges_changed().zip(since).is_some_and(|(changed, since)| changed <= since);
        let is_kept = |page: &VertexPage| {
            let is_before = |changed: u64| since.is_some_and(|since| changed <= since);
            let are_weights_old = are_edges_old || page.edges_written.is_some_and(is_before);
            are_weights_old && page.changed.is_some_and(is_before) && self.numbering.ordinal(page.first).is_some()
        };
        let all = pages.len();
        pages.retain(|page| !is_kept(page));
        let refreshed = Refreshed { read: pages.len(), kept: all - pages.len(), amended: 0 };
        if pages.is_empty() {
            return Ok((self.clone(), refreshed));
        }
        let changes = self.changes_since(view)?;
        if refreshed.kept == 0 && !(self.numbering.is_of_pages(&pages) || changes.is_some()) {
            // Positions in the order of ids again.
            let read = Projection::of(view, &self.options, team)?;
            return Ok((Arc::new(if self.is_reversed { read.reversed() } else { read }), refreshed));
        }
        let numbering = Numbering::of_pages(Some(&self.numbering), &pages)?;
        let old = Projection { numbering, commit: shown, ..(**self).clone() };
        let old_and_changes = changes.as_ref().map(|changes| (&**self, changes));
        let (projection, amended) = old.with_pages(view, &pages, old_and_changes, team)?;
        Ok((Arc::new(projection), Refreshed { read: refreshed.read - amended, amended, ..refreshed }))
    }

    /// Reads these pages, all of which have ordinals, or amends those of an old projection. Returns how many were amended, too.
    fn with_pages(
        mut self,
        view: &dyn GraphView,
        pages: &[VertexPage],
        old: Option<(&Projection, &PageChanges)>,
        team: &Team,
    ) -> Result<(Self, usize)> {
        let reader = PageReader::new(view, &self.options, &self.numbering);
        let (amenders, amended) = (Mutex::<Vec<Amender>>::default(), AtomicUsize::new(0));
        let directions = self.options.directions();
        team.begin_parts("projection", "pages");
        let budget = team.budget();
        let read = team.map_parts(pages.len(), |at| -> Result<_> {
            let page = match old {
                Some((old, changes)) => {
                    let mut amender = amenders.lock().pop().unwrap_or_default();
                    let page = old.amended(&pages[at], view, changes, &self.numbering, &mut amender)?;
                    amenders.lock().push(amender);
                    amended.fetch_add(usize::from(page.is_some()), Ordering::Relaxed);
                    page
                }
                None => None,
            };
            let page = page.map_or_else(|| reader.read(&pages[at], directions), Ok)?;
            let draw = budget.draw(Purpose::Projections, page.bytes())?;
            Ok((page, Arc::new(draw)))
        })?;
        let count = self.numbering.positions() as usize / SLOTS;
        let empty = PageRows::default();
        self.incoming.iter_mut().for_each(|incoming| incoming.resize(count, empty.clone()));
        self.out.resize(count, empty);
        self.cuts.resize_with(count, Arc::default);
        self.draws.resize_with(count, || None);
        for (page, read) in pages.iter().zip(read) {
            let (Page { vertices, mut rows, cuts }, draw) = read?;
            if self.is_reversed {
                rows.reverse();
            }
            let ordinal = self.numbering.ordinal(page.first).expect("the page has an ordinal");
            self.numbering.set_page(ordinal, vertices);
            if let Some(incoming) = &mut self.incoming {
                incoming[ordinal] = rows.pop().unwrap_or_default();
            }
            self.out[ordinal] = rows.pop().unwrap_or_default();
            self.cuts[ordinal] = cuts;
            self.draws[ordinal] = Some(draw);
        }
        self.cells = self.out.iter().map(|rows| rows.cell_count() as u64).sum();
        self.parts = parts_of(&self);
        Ok((self, amended.into_inner()))
    }

    /// What has changed since the commit of the projection, if a view knows it.
    fn changes_since(&self, view: &dyn GraphView) -> Result<Option<PageChanges>> {
        let Some(since) = self.commit else { return Ok(None) };
        let cells: usize = self.out.iter().chain(self.incoming.iter().flatten()).map(PageRows::cell_count).sum();
        PageChanges::since(view, since, (&self.options, cells), &self.numbering)
    }

    /// The rows of a page in the order of the options' directions.
    fn page_rows(&self, ordinal: usize) -> Vec<&PageRows> {
        let of_page = [Some(&self.out), self.incoming.as_ref()].into_iter().flatten().map(|rows| &rows[ordinal]);
        let mut rows: Vec<&PageRows> = of_page.collect();
        if self.is_reversed {
            rows.reverse();
        }
        rows
    }

    /// A page as a view shows it, made of the rows of this projection and of what has changed since. `None` if the page is to be read. Positions
    /// are those of `numbering`, which has those of this projection.
    fn amended(
        &self,
        page: &VertexPage,
        view: &dyn GraphView,
        changes: &PageChanges,
        numbering: &Numbering,
        amender: &mut Amender,
    ) -> Result<Option<Page>> {
        let Some(ordinal) = self.numbering.ordinal(page.first) else { return Ok(None) };
        let Some(changes) = changes.of_page(ordinal) else { return Ok(None) };
        let rows = amender.rows(view, page, (&self.page_rows(ordinal), changes), &self.options, numbering)?;
        let Some(rows) = rows else { return Ok(None) };
        Ok(Some(Page { vertices: self.numbering.page(ordinal), cuts: page_rows::cuts_of(&rows), rows }))
    }

    /// What the projection is made of.
    pub fn options(&self) -> &ProjectionOptions {
        &self.options
    }

    /// The timestamp of the last commit that the projection shows, if it shows the commits up to one and nothing else.
    pub fn commit(&self) -> Option<u64> {
        self.commit
    }

    /// The positions.
    pub fn numbering(&self) -> &Numbering {
        &self.numbering
    }

    /// The number of positions, holes included: the length of the arrays of an algorithm.
    pub fn positions(&self) -> usize {
        self.numbering.positions() as usize
    }

    /// The number of vertices.
    pub fn vertex_count(&self) -> u64 {
        self.numbering.vertex_count()
    }

    /// The number of cells of outgoing rows, or of rows of both directions.
    pub fn cell_count(&self) -> u64 {
        self.cells
    }

    /// Returns true if outgoing and incoming edges have rows of their own.
    pub fn is_directed(&self) -> bool {
        self.incoming.is_some()
    }

    /// Returns true if cells have weights.
    pub fn is_weighted(&self) -> bool {
        self.options.weight.is_some()
    }

    /// The ends of outgoing edges; in an undirected projection, the other ends of all edges.
    #[inline]
    pub fn outgoing(&self, at: u32) -> &[u32] {
        self.out[at as usize / SLOTS].row(at as usize % SLOTS)
    }

    /// The same graph with every edge turned around. An undirected projection stays as it is. What is refreshed from it is
    /// turned around, too.
    pub fn reversed(mut self) -> Self {
        if let Some(incoming) = &mut self.incoming {
            std::mem::swap(&mut self.out, incoming);
            self.is_reversed = !self.is_reversed;
        }
        self
    }

    /// The sources of incoming edges; in an undirected projection, the other ends of all edges.
    #[inline]
    pub fn incoming(&self, at: u32) -> &[u32] {
        self.incoming_rows()[at as usize / SLOTS].row(at as usize % SLOTS)
    }

    /// Calls `each` with [`Projection::incoming`] of each position in a range: faster than one by one, because a page is looked up once.
    #[inline]
    pub fn each_incoming(&self, range: Range<usize>, each: impl FnMut(usize, &[u32])) {
        each_row(self.incoming_rows(), range, each);
    }

    /// As [`Projection::each_incoming`], for [`Projection::outgoing`].
    #[inline]
    pub fn each_outgoing(&self, range: Range<usize>, each: impl FnMut(usize, &[u32])) {
        each_row(&self.out, range, each);
    }

    #[inline]
    pub(crate) fn incoming_rows(&self) -> &[PageRows] {
        self.incoming.as_ref().unwrap_or(&self.out)
    }

    /// The number of cells, and the sum of the squares of the lengths of all rows: of outgoing and of incoming rows.
    pub(crate) fn cells_and_squares(&self) -> [u64; 2] {
        let pages = self.out.iter().chain(self.incoming.iter().flatten());
        pages.fold([0, 0], |[cells, squares], rows| {
            [cells + rows.cell_count() as u64, squares.saturating_add(rows.rest.squares)]
        })
    }

    /// Facts about the weights of outgoing rows.
    pub fn weights(&self) -> WeightFacts {
        let pages = self.out.iter().map(|rows| rows.rest.of_weights);
        pages.fold(WeightFacts::default(), |facts, of_page| WeightFacts {
            sum: facts.sum + of_page.sum,
            unfit: facts.unfit.or(of_page.unfit),
        })
    }

    /// The weights of [`Projection::outgoing`]; empty if there are none.
    #[inline]
    pub fn outgoing_weights(&self, at: u32) -> &[f64] {
        self.out[at as usize / SLOTS].weights(at as usize % SLOTS)
    }

    /// [`Projection::outgoing`] and [`Projection::outgoing_weights`].
    #[inline]
    pub fn outgoing_weighted(&self, at: u32) -> (&[u32], &[f64]) {
        self.out[at as usize / SLOTS].weighted(at as usize % SLOTS)
    }

    /// The weights of [`Projection::incoming`]; empty if there are none.
    #[inline]
    pub fn incoming_weights(&self, at: u32) -> &[f64] {
        self.incoming_rows()[at as usize / SLOTS].weights(at as usize % SLOTS)
    }

    /// The edges of [`Projection::outgoing`]; empty if cells do not name them.
    #[inline]
    pub fn outgoing_edges(&self, at: u32) -> &[EdgeId] {
        self.out[at as usize / SLOTS].edges(at as usize % SLOTS)
    }

    /// The edges of [`Projection::incoming`]; empty if cells do not name them.
    #[inline]
    pub fn incoming_edges(&self, at: u32) -> &[EdgeId] {
        self.incoming_rows()[at as usize / SLOTS].edges(at as usize % SLOTS)
    }

    /// The length of [`Projection::outgoing`].
    #[inline]
    pub fn out_degree(&self, at: u32) -> u32 {
        self.outgoing(at).len() as u32
    }

    /// Ranges of positions that are about equally much work. They ascend and have all positions.
    pub fn parts(&self) -> &[Range<usize>] {
        &self.parts
    }

    /// The bytes that the projection holds.
    pub fn bytes(&self) -> u64 {
        let rows = self.out.iter().chain(self.incoming.iter().flatten()).map(PageRows::bytes).sum::<u64>();
        let cuts: usize = self.cuts.iter().map(|cuts| cuts.len() * 2 + 32).sum();
        rows + self.numbering.bytes() + (cuts + self.parts.len() * 16) as u64
    }
}

/// Calls `each` with each position in a range, and its row.
#[inline]
fn each_row(pages: &[PageRows], range: Range<usize>, mut each: impl FnMut(usize, &[u32])) {
    let mut position = range.start;
    each_page(pages, range, |page, slots| {
        page.each_row(slots, |row| {
            each(position, row);
            position += 1;
        });
    });
}

/// Calls `each` with each page that has positions in a range, and with their slots.
#[inline]
pub(crate) fn each_page(pages: &[PageRows], range: Range<usize>, mut each: impl FnMut(&PageRows, Range<usize>)) {
    let mut at = range.start;
    while at < range.end {
        let (ordinal, first) = (at / SLOTS, at % SLOTS);
        let slots = first..SLOTS.min(first + range.end - at);
        at += slots.len();
        each(&pages[ordinal], slots);
    }
}

/// Cuts the positions into ranges of about equal work. Pages with little work are put together.
fn parts_of(projection: &Projection) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut work) = (Vec::new(), 0, 0);
    let mut cut = |at: usize, start: &mut usize| {
        if *start < at {
            parts.push(*start..at);
            *start = at;
        }
    };
    for (ordinal, cuts) in projection.cuts.iter().enumerate() {
        let first = ordinal * SLOTS;
        let incoming = projection.incoming.as_ref().map_or(0, |rows| rows[ordinal].cell_count());
        let of_page = SLOTS + projection.out[ordinal].cell_count() + incoming;
        if work + of_page > PART_WORK {
            cut(first, &mut start);
            work = 0;
        }
        cuts.iter().for_each(|offset| cut(first + usize::from(*offset), &mut start));
        work += if cuts.is_empty() { of_page } else { PART_WORK };
    }
    cut(projection.positions(), &mut start);
    parts
}
