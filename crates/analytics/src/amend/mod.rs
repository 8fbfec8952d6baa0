//! Rows that are amended: made of earlier rows and of what has changed since.
//!
//! The view may know which edges commits have added and removed since the projection's commit. Then the rows of the pages that they changed are
//! not read again: cells that are the same are copied in long stretches, cells of edges that left are looked for in their
//! rows, and cells of edges that came are put at the end of theirs.
//!
//! `changes` sorts the changes by page. `plain` amends rows of positions alone. `edges` amends rows whose cells have weights or name edges.

mod changes;
mod edges;
mod plain;

use mangrove_graph::{GraphView, Result, VertexPage};

use crate::choice::ProjectionOptions;
use crate::numbering::Numbering;
use crate::page_rows::PageRows;

use changes::ListChange;
pub(crate) use changes::PageChanges;

/// More changes than a part of this many of a page's cells are not worth amending its rows.
const CELLS_A_CHANGE: usize = 8;
/// So many changes of a page are worth it, however few cells it has.
const CHANGES_MIN: usize = 64;
/// Cells that are compared together.
const TOGETHER: usize = 32;
/// Up to this many cells of a row are looked for one by one, and more in one walk over the row.
const LOOKS_MAX: usize = 4;

/// Amends the rows of one page after another. It keeps its arrays from page to page.
#[derive(Default)]
pub(crate) struct Amender {
    plain: plain::Amender,
    edges: edges::Amender,
}

impl Amender {
    /// The rows of a page in each direction as a view shows them, made of `rows` and of what has changed since. `None` if they have to be
    /// read. The numbering has all pages that the view shows, and those of `rows` at their old positions.
    pub(crate) fn rows(
        &mut self,
        view: &dyn GraphView,
        page: &VertexPage,
        (rows, changes): (&[&PageRows], &[ListChange]),
        options: &ProjectionOptions,
        numbering: &Numbering,
    ) -> Result<Option<Vec<PageRows>>> {
        let cells: usize = rows.iter().map(|rows| rows.cell_count()).sum();
        if changes.len() > (cells / CELLS_A_CHANGE).max(CHANGES_MIN) {
            return Ok(None);
        }
        let Amender { plain, edges } = self;
        let rows = rows.iter().zip(options.directions());
        if options.weight.is_none() && !options.names_edges {
            return Ok(rows.map(|(rows, way)| plain.rows(rows, changes, *way, options, numbering)).collect());
        }
        rows.map(|(rows, way)| edges.rows(view, page, rows, changes, *way, options, numbering)).collect()
    }
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
