//! The cells of a block whose edges may have ended since the block was made: a bit for each cell.
//!
//! A dirty list says that some edge of its run has ended, but not which. If readers and compaction *checked* every edge
//! of the run, that is, read its version words, each would cost them a cache line. So a transaction that ends a packed
//! edge first *names* the edge: it finds the edge's cell and sets the bit of the cell. Only named edges are checked.
//!
//! - **STORE-15.** When the call that has claimed the end of a packed edge returns, the list is dirty and the cell has its
//!   bit. If a compaction is looking at the list, it has a *late name* of the edge, too. Bits stay until their block goes.
//!
//! Why a reader may take the edges of a dirty run that have no bit. Suppose that the reader's snapshot does not see a
//! packed edge of a list that it has found. So a transaction has ended the edge, and committed before the reader's
//! transaction began. It named the edge in the list that was there then. If that is the reader's list, the edge has its
//! bit. Otherwise compaction has replaced the list since, once or several times, and each time one of these holds:
//!
//! | the edge was named | then compaction |
//! |---|---|
//! | before compaction read the bits | has checked the edge: it drops the cell, or puts it into the new tail |
//! | after that, so the writer met the compaction bit | has a late name, and sets the bit of the edge in the new run |
//! | after that, and the list was a clean run, which has no compaction bit | finds the run dirty when it replaces the list, and takes its bits over |
//!
//! A late name is given, and a list replaced, under the lock of the names. So no name comes between the last look at the
//! names and the exchange of the descriptor. A writer that comes later meets the new list, and names the edge there.
//!
//! Edges in tails have no bit: every reader checks them. But a compaction may pack such an edge while a transaction ends
//! it. So the transaction gives a late name for it, too.
//!
//! A bit too many costs a check and nothing else. So a rollback takes no bit back.

use std::ops::Range;
use std::sync::atomic::Ordering;

use mangrove_graph::{EdgeId, VertexId};
use mangrove_reclaim::sync::AtomicU64;

const BITS: usize = u64::BITS as usize;
/// Words of a cache line.
const WORDS_A_LINE: usize = 64 / size_of::<u64>();

/// The bits of `len` of the 64 cells that a word is about, from the one at `first` on.
#[inline]
fn mask(first: usize, len: usize) -> u64 {
    (u64::MAX >> (BITS - len)) << first
}

/// Calls `each` with every word that has bits of these cells, and with the mask of the bits.
#[inline]
fn each_word(cells: Range<usize>, mut each: impl FnMut(usize, u64)) {
    let mut at = cells.start;
    while at < cells.end {
        let (word, first) = (at / BITS, at % BITS);
        let len = (BITS - first).min(cells.end - at);
        each(word, mask(first, len));
        at += len;
    }
}

/// How far from a guess cells are loaded at most: for a few times the cache lines that a core loads at the same time.
const FAR_MAX: usize = 64;
/// Cells of a cache line.
const CELLS_A_LINE: usize = 64 / size_of::<VertexId>();

/// The cell of an edge that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedCell {
    pub(crate) neighbor: VertexId,
    pub(crate) edge: EdgeId,
    /// About which part of the graph's vertices have smaller ids than the neighbor, as a fraction of 2^32. If the
    /// neighbors of a list are spread like the vertices, this is where in the list the cell is.
    pub(crate) place: u32,
}

impl EndedCell {
    /// About where the cell is in a run of this length, which is not 0.
    fn guess(&self, len: usize) -> usize {
        ((len as u64 * u64::from(self.place)) >> 32) as usize
    }

    /// Where the cell is in a run. Of parallel edges, only their ids tell. If there is only one cell with the neighbor,
    /// it is that one without a look at its edge, which would be a cache miss: a name too many does no harm.
    pub(super) fn position(&self, neighbors: &[VertexId], edges: &[EdgeId]) -> Option<usize> {
        let first = count_less(neighbors, self.neighbor, self.guess(neighbors.len()));
        let is_one = |neighbor: &VertexId| *neighbor == self.neighbor;
        match &neighbors[first..] {
            [] => None,
            [neighbor, ..] if !is_one(neighbor) => None,
            [_, next, ..] if is_one(next) => {
                let count = neighbors[first..].partition_point(is_one);
                Some(first + edges[first..first + count].binary_search(&self.edge).ok()?)
            }
            _ => Some(first),
        }
    }

    /// Starts loading what [`EndedCell::position`] is going to look at in a run, and the bit that [`Ended::name`] sets.
    #[inline]
    pub(super) fn prefetch(&self, neighbors: &[VertexId], run: Range<usize>, ended: &Ended) {
        let guess = run.start + self.guess(run.len());
        ended.0.get(guess / BITS).into_iter().for_each(mangrove_reclaim::prefetch::prefetch);
        // Of a run of n cells whose neighbors are spread like the vertices, a guess misses its cell by about √n / 2.
        let far = run.len().isqrt().min(FAR_MAX);
        let (first, last) = (guess.saturating_sub(far).max(run.start), (guess + far).min(run.end));
        neighbors[first..last].iter().step_by(CELLS_A_LINE).for_each(mangrove_reclaim::prefetch::prefetch);
    }
}

/// The number of neighbors in a run, which is sorted, that are less than one: by a search from a guess, in steps that
/// double. So a good guess costs a cache miss or two, and a bad one twice as much as a search of the whole run.
fn count_less(neighbors: &[VertexId], one: VertexId, guess: usize) -> usize {
    // Those before `low` are less, and those from `high` on are not.
    let (mut low, mut high) = (0, neighbors.len());
    let (mut at, mut step) = (guess, CELLS_A_LINE);
    while let Some(neighbor) = neighbors[low..high].get(at.wrapping_sub(low)) {
        if *neighbor < one {
            low = at + 1;
            at = if high == neighbors.len() { at.saturating_add(step) } else { break };
        } else {
            high = at;
            at = if low == 0 { at.saturating_sub(step) } else { break };
        }
        step *= 2;
    }
    low + neighbors[low..high].partition_point(|neighbor| *neighbor < one)
}

/// The bits of a block's cells: less than 1 % of the memory of the cells. Invariant: STORE-15.
#[derive(Debug)]
pub(crate) struct Ended(Box<[AtomicU64]>);

impl Ended {
    /// No bits yet, of a block with this many cells.
    pub(super) fn new(cells: usize) -> Self {
        Ended((0..cells.div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Sets the bits of these cells.
    pub(super) fn name(&self, cells: Range<usize>) {
        // Release: a thread that finds a bit sees the claim.
        each_word(cells, |word, mask| _ = self.0[word].fetch_or(mask, Ordering::Release));
    }

    /// Starts loading all bits.
    pub(super) fn prefetch(&self) {
        self.0.iter().step_by(WORDS_A_LINE).for_each(mangrove_reclaim::prefetch::prefetch);
    }

    /// The bits of a run, for a reader that has found it dirty.
    #[inline]
    pub(super) fn of_run(&self, run: Range<usize>) -> Suspects<'_> {
        Suspects { words: &self.0, run }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// The named edges of a run, which have to be checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects<'a> {
    /// Of the whole block; empty if the run is clean.
    words: &'a [AtomicU64],
    /// Where the run lies in its block.
    run: Range<usize>,
}

impl Suspects<'_> {
    /// Returns true if an edge may have to be checked.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        !self.words.is_empty()
    }

    /// Returns true if the edge at a position of the run has to be checked.
    #[inline]
    pub(crate) fn has(&self, at: usize) -> bool {
        let at = self.run.start + at;
        // Acquire: its partner is the Release in `Ended::name`.
        self.words.get(at / BITS).is_some_and(|word| word.load(Ordering::Acquire) >> (at % BITS) & 1 != 0)
    }

    /// Calls `each` with the positions of the edges that have to be checked, ascending.
    #[inline]
    pub(crate) fn each(&self, mut each: impl FnMut(usize)) {
        if self.words.is_empty() {
            return;
        }
        each_word(self.run.clone(), |word, mask| {
            // Acquire: as in `has`.
            let mut bits = self.words[word].load(Ordering::Acquire) & mask;
            while bits != 0 {
                each(word * BITS + bits.trailing_zeros() as usize - self.run.start);
                bits &= bits - 1;
            }
        });
    }

    /// How many edges have to be checked.
    pub(crate) fn count(&self) -> usize {
        let mut count = 0;
        self.each(|_| count += 1);
        count
    }

    /// Starts loading the bits of the beginning of the run.
    #[inline]
    pub(super) fn prefetch(&self) {
        if let Some(word) = self.words.get(self.run.start / BITS) {
            mangrove_reclaim::prefetch::prefetch(word);
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use mangrove_graph::TabletId;

    fn positions(suspects: &Suspects<'_>) -> Vec<usize> {
        let mut found = Vec::new();
        suspects.each(|at| found.push(at));
        found
    }

    #[test]
    fn named_cells_are_the_suspects_of_their_run_and_of_no_other() {
        let ended = Ended::new(300);
        assert_eq!(ended.bytes(), 5 * 8, "a word for 64 cells");
        assert!(positions(&ended.of_run(0..300)).is_empty());
        [70..71, 63..65, 299..300, 128..128].into_iter().for_each(|cells| ended.name(cells));
        for (run, expected) in [
            (0..300, vec![63, 64, 70, 299]),
            (0..63, vec![]),
            (60..71, vec![3, 4, 10]),
            (64..70, vec![0]),
            (71..299, vec![]),
            (299..300, vec![0]),
            (128..128, vec![]),
        ] {
            let suspects = ended.of_run(run.clone());
            assert_eq!(positions(&suspects), expected, "{run:?}");
            assert!((0..run.len()).all(|at| suspects.has(at) == expected.contains(&at)), "{run:?}");
        }
        ended.name(100..290);
        assert_eq!(positions(&ended.of_run(90..300)), (10..200).chain([209]).collect::<Vec<_>>());
    }

    #[test]
    fn a_cell_is_found_among_parallel_edges_wherever_it_is_looked_for_first() {
        let cell = |(neighbor, edge)| (VertexId::new(TabletId(1), neighbor), EdgeId::new(TabletId(2), edge));
        let cells: Vec<_> = [(1, 5), (3, 1), (3, 2), (3, 9), (3, 10), (8, 4)].map(cell).into();
        let (neighbors, edges): (Vec<_>, Vec<_>) = cells.iter().copied().unzip();
        for place in [0, 1 << 30, 1 << 31, 3 << 30, u32::MAX] {
            let position = |(neighbor, edge)| EndedCell { neighbor, edge, place }.position(&neighbors, &edges);
            assert!(cells.iter().enumerate().all(|(at, &cell)| position(cell) == Some(at)));
            for missing in [(0, 5), (2, 1), (3, 3), (3, 11), (9, 1)] {
                assert_eq!(position(cell(missing)), None, "{missing:?}");
            }
            assert_eq!(position(cell((8, 5))), Some(5), "the edge is not looked at");
            let (neighbor, edge) = cells[0];
            assert_eq!(EndedCell { neighbor, edge, place }.position(&[], &[]), None);
        }
    }

    #[test]
    fn a_search_from_any_guess_finds_every_place() {
        let vertex = |n| VertexId::new(TabletId(3), n);
        for len in (0..70).chain([511, 512, 3_000]) {
            let neighbors: Vec<_> = (0..len).map(|n| vertex(n * 2 + 1)).collect();
            let spread = |end: u64| (0..=end).step_by(1 + end as usize / 60);
            for (one, guess) in spread(2 * len + 1).flat_map(|one| spread(len).map(move |guess| (one, guess))) {
                let found = count_less(&neighbors, vertex(one), guess as usize);
                assert_eq!(found, one as usize / 2, "{one} from {guess} in {len}");
            }
        }
        let parallel: Vec<_> = (0..1_000).map(|n| vertex(n / 100)).collect();
        let found = |one, guess| count_less(&parallel, vertex(one), guess);
        assert!((0..=10).all(|one| (0..1_000).all(|guess| found(one, guess) == one as usize * 100)));
    }
}
