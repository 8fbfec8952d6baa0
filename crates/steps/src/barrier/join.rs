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

    /// Takes the rows of a group, whose walks have ended.
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
        joined.pairs = Some(Pairs::new(small, large));
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
    /// The rows of `small` that are not in the table: the first ones.
    left: usize,
    /// The row of `large` whose pairs are made.
    row: usize,
    /// The row of `small` that it makes the next pair with; `None` if that is to be looked up.
    with: Option<u32>,
}

const NO_ROW: u32 = u32::MAX;

impl Pairs {
    fn new(small: Rows, large: Rows) -> Self {
        let mut first = FastMap::default();
        first.reserve(small.len());
        let (next, left) = (vec![NO_ROW; small.len()], small.len());
        Pairs { small, large, first, next, left, row: 0, with: None }
    }

    /// Puts some rows into the table, as long as there are any, and then makes the next pairs, as many as a message has at
    /// most. Returns `None` after the last pair.
    fn take_next(&mut self, names: &[usize]) -> Result<Option<Rows>> {
        if self.left > 0 {
            self.enter(names)?;
            return Ok(Some(Rows::default()));
        }
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

    /// Puts the next rows into the table, as many as a message has at most. They come backwards, so that the rows of a key
    /// are found in their order.
    fn enter(&mut self, names: &[usize]) -> Result<()> {
        let until = self.left;
        self.left = until.saturating_sub(BATCH_ROWS);
        for row in (self.left..until).rev() {
            if let Some(later) = self.first.insert(key(&self.small, row, names)?, row as u32) {
                self.next[row] = later;
            }
        }
        Ok(())
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

    /// After the end of the second walk, each step puts some rows into the table, or sends one batch. The row of the cursor
    /// is 0 before the end of the walk is counted.
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

#[cfg(test)]
mod tests {
    use mangrove_graph::TabletId;

    use super::*;

    fn vertices(slots: &[u64]) -> Vec<VertexId> {
        slots.iter().map(|slot| VertexId::new(TabletId(0), *slot)).collect()
    }

    /// Rows at vertices, with a vertex in each binding column.
    fn rows(objects: &[u64], bindings: &[&[u64]]) -> Rows {
        let column = |slots: &&[u64]| match slots {
            [] => BindingColumn::Unset,
            slots => BindingColumn::Vertices(vertices(slots)),
        };
        Rows { bindings: bindings.iter().map(column).collect(), ..Rows::of(ObjectColumn::Vertices(vertices(objects))) }
    }

    /// The slots of a pair's object and of its binding columns, and its bulk.
    type Pair = (u64, Vec<Option<u64>>, u64);

    /// All pairs.
    fn joined(small: Rows, large: Rows, names: &[usize]) -> Result<Vec<Pair>> {
        let mut pairs = Pairs::new(small, large);
        let mut all = Vec::new();
        while let Some(rows) = pairs.take_next(names)? {
            assert!(rows.len() <= BATCH_ROWS);
            for row in 0..rows.len() {
                let ObjectColumn::Vertices(objects) = &rows.objects else { panic!("pairs are at vertices") };
                let bound = rows.bindings.iter().map(|column| column.vertex(row).map(|id| id.slot()));
                all.push((objects[row].slot(), bound.collect(), rows.bulk(row)));
            }
        }
        all.sort();
        Ok(all)
    }

    #[test]
    fn a_pair_has_the_bindings_of_both_rows() {
        let small = rows(&[1, 2, 2], &[&[10, 20, 21], &[]]);
        let large = rows(&[2, 3, 2, 1], &[&[], &[30, 31, 32, 33]]);
        let pair = |object, a, b| (object, vec![Some(a), Some(b)], 1);
        let expected = [pair(1, 10, 33), pair(2, 20, 30), pair(2, 20, 32), pair(2, 21, 30), pair(2, 21, 32)];
        assert_eq!(joined(small, large, &[]).unwrap(), expected);
    }

    #[test]
    fn rows_meet_at_all_names() {
        let small = rows(&[1, 1], &[&[10, 11]]);
        let large = rows(&[1, 1, 2], &[&[11, 12, 10]]);
        assert_eq!(joined(small, large, &[0]).unwrap(), [(1, vec![Some(11)], 1)]);
    }

    #[test]
    fn bulks_are_multiplied() {
        let with_bulk = |bulk: &[u64]| Rows { bulk: Some(bulk.to_vec()), ..rows(&[1, 2], &[]) };
        assert_eq!(joined(with_bulk(&[3, 1]), with_bulk(&[5, 7]), &[]).unwrap(), [(1, vec![], 15), (2, vec![], 7)]);
        assert_eq!(joined(rows(&[1], &[]), with_bulk(&[5, 7]), &[]).unwrap(), [(1, vec![], 5)]);
        assert!(joined(with_bulk(&[1 << 40, 1]), with_bulk(&[1 << 40, 1]), &[]).is_err());
    }

    #[test]
    fn pairs_of_one_row_may_fill_several_messages() {
        let count = 2 * BATCH_ROWS + 7;
        let many: Vec<u64> = vec![1; count];
        assert_eq!(joined(rows(&[1, 1], &[]), rows(&many, &[]), &[]).unwrap().len(), 2 * count);
        assert_eq!(joined(rows(&many, &[]), rows(&[1], &[]), &[]).unwrap().len(), count);
        assert!(joined(rows(&[], &[]), rows(&many, &[]), &[]).unwrap().is_empty());
    }
}
