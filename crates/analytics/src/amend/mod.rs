//! Rows that are amended: made of earlier rows and of what has changed since.
//!
//! The view may know which edges came to the lists of a page and left them since the projection's commit. Then the rows of the page are
//! not read again: cells that are the same are copied in long stretches, cells of edges that left are looked for in their
//! rows, and cells of edges that came are put at the end of theirs.
//!
//! `plain` amends rows of positions alone. `edges` amends rows whose cells have weights or name edges.

mod edges;
mod plain;

use mangrove_graph::{GraphView, ListChange, Result, VertexPage};

use crate::choice::ProjectionOptions;
use crate::numbering::Numbering;
use crate::page_rows::PageRows;

/// More changes than a part of this many of a page's cells are not worth amending its rows.
const CELLS_A_CHANGE: usize = 8;
/// Cells that are compared together.
const TOGETHER: usize = 32;
/// Up to this many cells of a row are looked for one by one, and more in one walk over the row.
const LOOKS_MAX: usize = 4;

/// Amends the rows of one page after another. It keeps its arrays from page to page.
#[derive(Default)]
pub(crate) struct Amender {
    /// What the view knows of a page.
    changes: Vec<ListChange>,
    plain: plain::Amender,
    edges: edges::Amender,
}

impl Amender {
    /// The rows of a page in each direction as a view shows them, made of `rows`, those at the commit `since`. `None` if they have to be
    /// read. The numbering has all pages that the view shows, and those of `rows` at their old positions.
    pub(crate) fn rows(
        &mut self,
        view: &dyn GraphView,
        page: &VertexPage,
        (rows, since): (&[&PageRows], u64),
        options: &ProjectionOptions,
        numbering: &Numbering,
    ) -> Result<Option<Vec<PageRows>>> {
        let Amender { changes, plain, edges } = self;
        changes.clear();
        if !list_changes(view, page, (rows, since), options, changes)? {
            return Ok(None);
        }
        let rows = rows.iter().zip(options.directions());
        if options.weight.is_none() && !options.names_edges {
            return Ok(rows.map(|(rows, way)| plain.rows(rows, changes, *way, options, numbering)).collect());
        }
        rows.map(|(rows, way)| edges.rows(view, page, rows, changes, *way, options, numbering)).collect()
    }
}

/// Lists what has changed in the lists of a page since the commit at which it had these rows. Returns false if the view does not know it.
pub(crate) fn list_changes(
    view: &dyn GraphView,
    page: &VertexPage,
    (rows, since): (&[&PageRows], u64),
    options: &ProjectionOptions,
    changes: &mut Vec<ListChange>,
) -> Result<bool> {
    let most = rows.iter().map(|rows| rows.cell_count()).sum::<usize>() / CELLS_A_CHANGE;
    view.list_changes(page, since, options.weight.is_some(), most, changes)
}

/// The first place of a position.
fn place_of(cells: &[u32], target: u32) -> Option<usize> {
    // Without a way out inside of a chunk, the compiler compares several cells at a time.
    let has = |chunk: &[u32]| chunk.iter().fold(false, |found, cell| found | (*cell == target));
    let nth = cells.chunks(TOGETHER).position(has)?;
    let begin = nth * TOGETHER;
    cells[begin..].iter().position(|cell| *cell == target).map(|place| begin + place)
}

/// The positions whose cells a walk over a row looks for: a bit for each position. It is empty between walks.
#[derive(Default)]
struct Wanted(Vec<u64>);

impl Wanted {
    /// Makes room for so many positions.
    fn fit(&mut self, positions: u32) {
        self.0.resize(positions.div_ceil(64) as usize, 0);
    }

    fn insert(&mut self, target: u32) {
        self.0[target as usize / 64] |= 1 << (target % 64);
    }

    fn remove(&mut self, target: u32) {
        self.0[target as usize / 64] &= !(1 << (target % 64));
    }

    fn has(&self, target: u32) -> bool {
        self.0[target as usize / 64] >> (target % 64) & 1 == 1
    }
}
