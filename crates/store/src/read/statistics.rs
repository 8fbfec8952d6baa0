//! The pass over all pages of vertices that makes [`Statistics`].
//!
//! A pass reads one snapshot, page by page. It takes no lock, changes nothing in the store, and pins one page at a time,
//! so no writer waits for it. [`StatisticsPass::step`] does a bounded part of it; between steps the pass is a position
//! and the sums so far (`tally`), and holds no memory of the store. The caller keeps the snapshot alive until the pass
//! is over: a transaction, or an entry that counts as one.
//!
//! The degrees of a page are read from the descriptors of its tables. A clean run is one word; only the cells of other
//! lists are looked at. A vertex that the snapshot does not see has no visible edge (GRAPH-2), so its degree is 0.
//!
//! Of the edges of each table, some are followed, so that it is known to which label sets they lead (`ends`).
//!
//! The values of some keys are counted, too: those that the caller names (`values`).
//!
//! Pair moments need the degrees of a vertex in two tables at once, so those of one page are kept in columns. A label
//! set with few tables has a column for each. Which tables of another one have the most edges is known only at the end,
//! so a second round over its pages makes their moments.

mod columns;
mod ends;
mod tally;
mod values;

use std::collections::BTreeMap;

use mangrove_graph::statistics::{EdgeTable, Statistics};
use mangrove_graph::{Direction, KeyId, LabelSetId};
use mangrove_reclaim::epoch;

use self::columns::Columns;
use self::ends::Sources;
use self::tally::LabelTally;
use self::values::ValueTally;
use crate::adjacency::clean_run_len;
use crate::page::{Tablet, VertexPage};
use crate::read::scan::count_page;
use crate::read::view::StoreView;
use crate::store::Store;

/// The position of a pass: the page that comes next.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    tablet: usize,
    page: usize,
}

/// The round of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Round {
    /// Counts everything; and moments of label sets with few tables.
    Counting,
    /// Moments of the label sets with many tables.
    Moments,
}

/// A pass over the pages of a store, in steps.
#[derive(Debug)]
pub struct StatisticsPass {
    at: Position,
    round: Round,
    labels: BTreeMap<LabelSetId, LabelTally>,
    /// How many tables are sorted into buckets.
    bucketed: usize,
    values: BTreeMap<(LabelSetId, KeyId), ValueTally>,
    buffers: Buffers,
}

/// What is read of one page. The memory is used for one page after another.
#[derive(Debug, Default)]
struct Buffers {
    words: Vec<u64>,
    columns: Columns,
    sources: Sources,
}

impl Default for StatisticsPass {
    fn default() -> Self {
        StatisticsPass {
            at: Position::default(),
            round: Round::Counting,
            labels: BTreeMap::new(),
            bucketed: 0,
            values: BTreeMap::new(),
            buffers: Buffers::default(),
        }
    }
}

impl StatisticsPass {
    /// A pass that begins at the first page.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`StatisticsPass::new`]. The pass also counts the values of the vertices of each of these label sets under the
    /// key that is given with it.
    pub fn with_values(pairs: &[(LabelSetId, KeyId)]) -> Self {
        let values = pairs.iter().map(|pair| (*pair, ValueTally::default())).collect();
        StatisticsPass { values, ..Self::default() }
    }

    /// Goes on until about this many descriptors and edges were looked at. All steps of a pass read one snapshot, which
    /// has no writes of its own. Returns true if the pass is complete. A step ends at the end of a page, and reads one
    /// page at least.
    pub fn step(&mut self, view: &StoreView<'_>, limit: usize) -> bool {
        let mut looked = 0;
        while looked < limit {
            let Some(tablet) = view.store.tablets.get(self.at.tablet) else {
                if self.round == Round::Moments || !self.begin_moments() {
                    return true;
                }
                continue;
            };
            if self.at.page >= tablet.vertices.count() {
                self.at = Position { tablet: self.at.tablet + 1, page: 0 };
                continue;
            }
            if let Some(page) = tablet.vertices.get(self.at.page) {
                looked += self.page(view, tablet, page);
            }
            self.at.page += 1;
        }
        false
    }

    /// The bytes that the pass itself takes, without its buffers for one page.
    pub fn bytes(&self) -> usize {
        let values = self.values.values().map(ValueTally::bytes).sum::<usize>();
        self.labels.values().map(LabelTally::bytes).sum::<usize>() + values
    }

    /// The statistics of a complete pass over a snapshot at this timestamp. Figures of indexes are those of now.
    pub fn finish(self, store: &Store, as_of: u64) -> Statistics {
        let labels = self.labels.into_iter().filter_map(|(label, tally)| tally.finish(label)).collect();
        let values = self.values.into_iter().map(|(pair, tally)| tally.finish(pair)).collect();
        Statistics::new(as_of, labels, store.index_sizes()).with_values(values)
    }

    /// Begins the second round. Returns false if no label set needs it.
    fn begin_moments(&mut self) -> bool {
        self.round = Round::Moments;
        self.at = Position::default();
        let mut is_needed = false;
        for tally in self.labels.values_mut().filter(|tally| tally.is_wide()) {
            tally.choose_tables();
            is_needed = true;
        }
        is_needed
    }

    /// Reads a page, and returns how many words and edges were looked at.
    fn page(&mut self, view: &StoreView<'_>, tablet: &Tablet, page: &VertexPage) -> usize {
        let tally = self.labels.entry(page.core.label).or_default();
        if self.round == Round::Moments && !tally.is_wide() {
            return 1;
        }
        // One pin for each page, so that blocks that compaction replaces need not wait for the whole pass.
        let pin = epoch::pin();
        let mut looked = 1;
        if self.round == Round::Counting {
            let are_kept_counts_seen = view.snapshot.txn == 0 && view.store.installing.is_idle();
            tally.vertices += count_page(&page.core, &view.snapshot, are_kept_counts_seen);
            let label = page.core.label;
            for (&(_, key), values) in self.values.range_mut((label, KeyId(0))..=(label, KeyId(u32::MAX))) {
                looked += VALUE_WORDS * values.add_page(view, (tablet, self.at.page), key, &pin);
            }
        }
        let Buffers { words, columns, sources } = &mut self.buffers;
        columns.clear();
        for direction in [Direction::Out, Direction::In] {
            page.tables(direction).each_while(|_, label, table| {
                if table.is_empty() {
                    return true;
                }
                let name = EdgeTable { direction, label: LabelSetId(label) };
                let place = match self.round {
                    Round::Counting => Some(tally.place(name, &mut self.bucketed)),
                    Round::Moments => tally.known_place(name),
                };
                let Some(place) = place else { return true };
                let number = tally.number(place);
                if self.round == Round::Moments && number.is_none() {
                    return true;
                }
                words.clear();
                sources.clear();
                table.append_words(page.core.used(), words, &pin);
                looked += words.len();
                let mut sums = (self.round == Round::Counting).then(|| tally.table(place));
                let mut column = number.map(|number| columns.begin(number, words.len()));
                for (at, &word) in words.iter().enumerate() {
                    let degree = match clean_run_len(word) {
                        Some(0) => continue,
                        Some(len) => len as u64,
                        None => {
                            let list = table.list_of(word, &tablet.lists, &pin);
                            looked += list.checked_len();
                            view.count_list(&pin, &list)
                        }
                    };
                    if degree == 0 {
                        continue;
                    }
                    if let Some(sums) = &mut sums {
                        sums.add(degree);
                        sources.push((word, degree));
                    }
                    if let Some(column) = &mut column {
                        column.set(at, degree);
                    }
                }
                if let Some(sums) = &mut sums {
                    looked += sums.ends.add(view, (tablet, table), sources, &pin);
                }
                true
            });
        }
        if !tally.is_wide() || self.round == Round::Moments {
            looked += columns.pair_count() * page.core.used() / PAIRS_A_WORD;
            columns.each_product(|a, b, product| tally.add_moment(a, b, product));
        }
        looked
    }
}

/// A value is read in the time in which so many words are looked at.
const VALUE_WORDS: usize = 8;

/// So many products of degrees are made in the time in which a word is looked at.
const PAIRS_A_WORD: usize = 4;
