//! A hash join: the rows of two walks that end at one variable of a query graph.
//!
//! ```text
//! walk 0 ─► port 0 ┐
//!                  ├─► rows, until both walks have ended ─► table of the walk with fewer rows ─► pairs
//! walk 1 ─► port 1 ┘
//! ```
//!
//! A pair is made of two rows with the same object, and the same object under each of the join's names. It has the
//! bindings of both rows. It stands for the product of the traversers that they stand for.
//!
//! The rows are charged to the query while they are held, and so is the table. If the graph is spread over several nodes,
//! both walks send their rows to the home.

use mangrove_flow::{BATCH_ROWS, Cursor, GroupId, Operator, Output, Step, TagSet};
use mangrove_graph::{Error, FastMap, Result, VertexId};
use smallvec::SmallVec;

use crate::barrier::vertex_bulks::too_many;
use crate::rows::held::HeldRows;
use crate::rows::{BindingColumn, ObjectColumn, Rows, Tags};

/// The walks that are joined.
const WALKS: usize = 2;

/// What the two rows of a pair have in common: the object, and the objects under the names.
type Key = SmallVec<[VertexId; 3]>;

/// The approximate bytes that the table has for a row.
const ENTRY_BYTES: u64 = (size_of::<Key>() + 3 * size_of::<u32>()) as u64;

/// See the header of this file.
pub(crate) struct Join {
    /// The numbers of the binding columns that are compared besides the objects.
    names: Vec<usize>,
    /// The rows of each walk that has not been joined.
    walks: [HeldRows; WALKS],
    groups: FastMap<GroupId, Joined>,
}

/// How far a group is joined.
#[derive(Default)]
struct Joined {
    /// The walks that have ended.
    ended: usize,
    /// From the end of the second walk on.
    pairs: Option<Pairs>,
    /// The bytes that are charged for `pairs`.
    charged: u64,
}

impl Join {
    /// Joins by the objects and by the objects in these binding columns.
    pub fn new(names: Vec<usize>) -> Self {
        Join { names, walks: Default::default(), groups: FastMap::default() }
    }

    /// Takes the rows of a group, whose walks have ended, and makes the table.
    fn begin_pairs(&mut self, group: GroupId, out: &Output<'_, Rows>) -> Result<()> {
        let joined = self.groups.entry(group).or_default();
        let mut taken = [Rows::default(), Rows::default()];
        for (walk, rows) in self.walks.iter_mut().zip(&mut taken) {
            // All of a group may be cancelled. There are then no rows.
            if let Some((held, charged)) = walk.take(group, out)? {
                joined.charged += charged;
                *rows = held;
            }
        }
        let [first, second] = taken;
        let (small, large) = if first.len() <= second.len() { (first, second) } else { (second, first) };
        let table = small.len() as u64 * ENTRY_BYTES;
        out.control().charge(table)?;
        joined.charged += table;
        joined.pairs = Some(Pairs::new(small, large, &self.names, out)?);
        Ok(())
    }
}

/// The pairs of two walks, of which some are made.
struct Pairs {
    small: Rows,
    large: Rows,
    /// The first row of `small` with a key.
    first: FastMap<Key, u32>,
    /// For each row of `small`, the next one with the same key; [`NO_ROW`] after the last.
    next: Vec<u32>,
    /// The row of `large` whose pairs are made.
    row: usize,
    /// The row of `small` that it makes the next pair with; `None` if that is to be looked up.
    with: Option<u32>,
}

const NO_ROW: u32 = u32::MAX;

impl Pairs {
    fn new(small: Rows, large: Rows, names: &[usize], out: &Output<'_, Rows>) -> Result<Self> {
        let mut first = FastMap::default();
        first.reserve(small.len());
        let mut next = vec![NO_ROW; small.len()];
        // Backwards, so that the rows of a key are found in their order.
        for row in (0..small.len()).rev() {
            if row % BATCH_ROWS == 0 {
                out.control().check()?;
            }
            if let Some(later) = first.insert(key(&small, row, names)?, row as u32) {
                next[row] = later;
            }
        }
        Ok(Pairs { small, large, first, next, row: 0, with: None })
    }

    /// The next rows, as many as a message has at most; `None` after the last.
    fn take_next(&mut self, names: &[usize]) -> Result<Option<Rows>> {
        let (mut of_large, mut of_small): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut looked_up = 0;
        while self.row < self.large.len() && of_large.len() < BATCH_ROWS && looked_up < BATCH_ROWS {
            let mut with = match self.with.take() {
                Some(with) => with,
                None => {
                    looked_up += 1;
                    self.first.get(&key(&self.large, self.row, names)?).copied().unwrap_or(NO_ROW)
                }
            };
            while with != NO_ROW && of_large.len() < BATCH_ROWS {
                of_large.push(self.row as u32);
                of_small.push(with);
                with = self.next[with as usize];
            }
            if with == NO_ROW {
                self.row += 1;
            } else {
                self.with = Some(with);
            }
        }
        if looked_up == 0 && of_large.is_empty() {
            return Ok(None);
        }
        self.pairs(&of_large, &of_small).map(Some)
    }

    /// Makes rows of pairs, given by the numbers of their rows.
    fn pairs(&self, of_large: &[u32], of_small: &[u32]) -> Result<Rows> {
        let Pairs { small, large, .. } = self;
        let mut rows = large.derive(of_large, large.objects.gather(of_large));
        if let Some(bulks) = &small.bulk {
            let times = |(pair, row): (usize, &u32)| rows.bulk(pair).checked_mul(bulks[*row as usize]);
            let products = of_small.iter().enumerate().map(times).collect::<Option<Vec<u64>>>();
            rows.bulk = Some(products.ok_or_else(too_many)?);
        }
        let columns = small.bindings.len().max(rows.bindings.len());
        rows.bindings.resize(columns, BindingColumn::Unset);
        for (column, other) in rows.bindings.iter_mut().zip(&small.bindings) {
            if *column == BindingColumn::Unset {
                *column = other.gather(of_small);
            }
        }
        Ok(rows)
    }
}

/// What a row must have in common with the other row of a pair.
fn key(rows: &Rows, row: usize, names: &[usize]) -> Result<Key> {
    let object = match &rows.objects {
        ObjectColumn::Vertices(ids) => Some(ids[row]),
        ObjectColumn::Edges(_) | ObjectColumn::Numbers(_) | ObjectColumn::Values(_) => None,
    };
    let named = names.iter().map(|name| rows.binding(*name).and_then(|column| column.vertex(row)));
    let key = std::iter::once(object).chain(named).collect::<Option<Key>>();
    key.ok_or_else(|| Error::bug("the walks of a join end at vertices, and give its names to vertices"))
}

impl Operator<Rows> for Join {
    fn is_by_group(&self) -> bool {
        true
    }

    fn recycle(&mut self) -> bool {
        self.groups.is_empty() && self.walks.iter().all(HeldRows::is_empty)
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.walks.iter_mut().for_each(|walk| walk.cancelled(group, tags, out));
        if let (None, Some(joined)) = (tags, self.groups.get_mut(&group)) {
            joined.pairs = None;
            out.control().release(std::mem::take(&mut joined.charged));
        }
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Tags::Many(_) = batch.tags {
            return Err(Error::bug("a join stands in the outermost chain, which has one instance"));
        }
        self.walks[usize::from(port)].add(group, batch, out)
    }

    /// After the end of the second walk, the first step makes the table, and each further one sends one batch. The row of
    /// the cursor is 0 before the end of the walk is counted.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let joined = self.groups.entry(group).or_default();
        if at.is_start() {
            at.row = 1;
            joined.ended += 1;
            if joined.ended < WALKS {
                return Ok(Step::Done);
            }
            self.begin_pairs(group, out)?;
            return Ok(Step::More);
        }
        // There are none if the group was cancelled.
        if let Some(pairs) = &mut joined.pairs
            && let Some(rows) = pairs.take_next(&self.names)?
        {
            out.emit(0, group, rows)?;
            return Ok(Step::More);
        }
        let charged = self.groups.remove(&group).map_or(0, |joined| joined.charged);
        out.control().release(charged);
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}
