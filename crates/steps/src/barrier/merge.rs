//! Merging equal traversers: rows with the same object become one row with their bulks added.
//!
//! Without merging, a walk through a dense graph explodes; with it, there are at most as many rows as vertices after
//! `out().out()`. Rows that remember paths, or objects under step labels, are never equal.

use mangrove_flow::{Batch, GroupId, Operator, Output, QueryControl};
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, FastMap, Result, Value, VertexId, numeric};
use mangrove_plan::physical::Requirements;

use crate::limits::meter::Meter;
use crate::limits::table::PartitionedTable;
use crate::rows::{Loops, ObjectColumn, Rows};
use crate::values::fold;

#[derive(PartialEq, Eq, Hash)]
enum MergeKey {
    Vertex(u64),
    Edge(u64),
    Value(Equivalent),
}

/// Rows of one group; equal ones are merged as they are added.
#[derive(Default)]
pub(crate) struct Merger {
    rows: Option<Rows>,
    /// The row of each vertex, for instance 0 without loop counters: the common case, with a small key.
    vertices: PartitionedTable<VertexId, u32>,
    indexes: PartitionedTable<(u32, MergeKey, Option<Loops>), usize>,
    charged: u64,
}

/// The approximate bytes of an entry in the table of rows.
const ENTRY_BYTES: u64 = 72;

impl Merger {
    /// Returns the number of rows held.
    pub fn len(&self) -> usize {
        self.rows.as_ref().map_or(0, Rows::len)
    }

    /// Adds rows. Fails if the query would hold too much or a bulk overflows.
    pub fn add(&mut self, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        let requirements = &out.context().requirements;
        let remembers = rows.path.is_some() || !rows.bindings.is_empty();
        let apart = remembers || (rows.sacks.is_some() && requirements.merge_sacks.is_none());
        let more = if apart { self.append(rows) } else { self.merge(rows, requirements, out.control())? };
        self.charged += more;
        out.control().charge(more)
    }

    /// Appends rows without merging. Returns their bytes.
    fn append(&mut self, rows: Rows) -> u64 {
        let bytes = rows.bytes() as u64;
        self.put(rows);
        bytes
    }

    fn put(&mut self, rows: Rows) {
        match &mut self.rows {
            Some(held) => held.append(rows),
            None => self.rows = Some(rows),
        }
    }

    /// Appends new rows, and adds the bulks of rows that are equal to held ones. Returns the bytes added.
    fn merge(&mut self, rows: Rows, requirements: &Requirements, control: &QueryControl) -> Result<u64> {
        // Measured before the table becomes one more holder of the objects.
        let measured = rows.bytes() as u64;
        let mut new = Vec::new();
        let mut held = self.rows.as_ref().map_or(0, Rows::len);
        let mut raised: Vec<(usize, u64)> = Vec::new();
        // Rows that join a held row, and that row.
        let mut joined: Vec<(usize, usize)> = Vec::new();
        for row in 0..rows.len() {
            let object = match &rows.objects {
                ObjectColumn::Vertices(v) => MergeKey::Vertex(v[row].to_bits()),
                ObjectColumn::Edges(e) => MergeKey::Edge(e[row].to_bits()),
                ObjectColumn::Values(v) => match &v[row] {
                    Value::Vertex(id) => MergeKey::Vertex(id.to_bits()),
                    Value::Edge(id) => MergeKey::Edge(id.to_bits()),
                    other => MergeKey::Value(Equivalent(other.clone())),
                },
            };
            if let (MergeKey::Vertex(bits), 0, None) = (&object, rows.tag(row), &rows.loops) {
                match self.vertices.get_or_insert_with(VertexId::from_bits(*bits), || held as u32) {
                    (index, false) => {
                        raised.push((*index as usize, rows.bulk(row)));
                        joined.push((*index as usize, row));
                    }
                    (_, true) => {
                        held += 1;
                        new.push(row as u32);
                    }
                }
                continue;
            }
            let loops = rows.loops.as_ref().map(|l| l[row].clone());
            match self.indexes.get_or_insert_with((rows.tag(row), object, loops), || held) {
                (index, false) => {
                    raised.push((*index, rows.bulk(row)));
                    joined.push((*index, row));
                }
                (_, true) => {
                    held += 1;
                    new.push(row as u32);
                }
            }
        }
        let sacks = rows.sacks.clone();
        let mut bytes = measured * new.len() as u64 / rows.len().max(1) as u64 + new.len() as u64 * ENTRY_BYTES;
        self.put(rows.take(&new));
        let Some(held) = &mut self.rows else { return Ok(bytes) };
        if let (Some(operator), Some(theirs), Some(sacks)) = (requirements.merge_sacks, sacks, &mut held.sacks) {
            let mut meter = Meter::new(control);
            for (index, row) in joined {
                let (ours, theirs) = (std::mem::take(&mut sacks[index]), &theirs[row]);
                sacks[index] = fold::apply(operator, ours, theirs, &mut meter)?;
                bytes += fold::growth(operator, theirs) as u64;
            }
        }
        if !raised.is_empty() && !requirements.one_bulk {
            let count = held.len();
            let bulks = held.bulk.get_or_insert_with(|| vec![1; count]);
            for (index, bulk) in raised {
                bulks[index] = bulks[index]
                    .checked_add(bulk)
                    .ok_or_else(|| Error::evaluation("long overflow: more than 2^64 equal traversers"))?;
            }
        }
        Ok(bytes)
    }

    /// Takes the merged rows and releases their charge.
    pub fn take(&mut self, out: &Output<'_, Rows>) -> Option<Rows> {
        out.control().release(std::mem::take(&mut self.charged));
        self.indexes.clear();
        self.vertices.clear();
        self.rows.take().filter(|r| !r.is_empty())
    }
}

/// `barrier()`: waits for all rows of a group and sends them merged.
#[derive(Default)]
pub(crate) struct Barrier {
    norm_sack: bool,
    groups: FastMap<GroupId, Merger>,
}

impl Barrier {
    /// With `norm_sack`, the sacks of each instance are scaled so that they add up to 1.
    pub fn new(norm_sack: bool) -> Self {
        Barrier { norm_sack, groups: FastMap::default() }
    }
}

/// Divides every sack by the sum of the sacks of its instance.
fn normalize(rows: &mut Rows) -> Result<()> {
    let Some(sacks) = rows.sacks.take() else { return Ok(()) };
    let mut totals: FastMap<u32, Value> = FastMap::default();
    for (row, sack) in sacks.iter().enumerate() {
        let share = numeric::times(sack, rows.bulk(row))?;
        match totals.entry(rows.tag(row)) {
            hashbrown::hash_map::Entry::Vacant(index) => drop(index.insert(share)),
            hashbrown::hash_map::Entry::Occupied(mut total) => {
                *total.get_mut() = numeric::arithmetic(numeric::Operation::Add, total.get(), &share)?;
            }
        }
    }
    let divided = sacks.iter().enumerate().map(|(row, sack)| {
        let total = totals.get(&rows.tag(row)).unwrap_or(&Value::Null);
        // A share is a fraction: whole numbers are divided as doubles, large ones as decimals.
        let share = numeric::mean(sack, 1)?;
        numeric::arithmetic(numeric::Operation::Divide, &share, total)
    });
    rows.sacks = Some(divided.collect::<Result<_>>()?);
    Ok(())
}

impl Operator<Rows> for Barrier {
    fn recycle(&mut self) -> bool {
        self.groups.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.groups.entry(group).or_default().add(batch, out)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(mut rows) = self.groups.remove(&group).and_then(|mut merger| merger.take(out)) {
            if self.norm_sack {
                normalize(&mut rows)?;
            }
            for chunk in rows.chunks() {
                out.emit(0, group, chunk)?;
            }
        }
        out.finish_all(group, instances)
    }
}

/// Merges rows on their way: it gathers some thousands and sends them merged. Rows with bulks replace equal rows, and
/// nothing else changes, so it may give up if few rows are equal.
#[derive(Default)]
pub(crate) struct PassingMerge {
    groups: FastMap<GroupId, Merger>,
    taken: u64,
    given: u64,
}

/// Rows gathered before they are sent.
const GATHERED_ROWS: usize = 8192;

/// After this many rows, merging goes on only if it has saved a quarter of them.
const JUDGED_ROWS: u64 = 4 * GATHERED_ROWS as u64;

impl PassingMerge {
    fn has_given_up(&self) -> bool {
        self.taken >= JUDGED_ROWS && self.given > self.taken / 4 * 3
    }

    fn give(&mut self, group: GroupId, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(rows) = self.groups.get_mut(&group).and_then(|merger| merger.take(out)) {
            self.given += rows.len() as u64;
            for chunk in rows.chunks() {
                out.emit(0, group, chunk)?;
            }
        }
        Ok(())
    }
}

impl Operator<Rows> for PassingMerge {
    fn is_passing(&self) -> bool {
        true
    }

    fn flush(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        groups.into_iter().try_for_each(|group| self.give(group, out))?;
        self.groups.clear();
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        (self.taken, self.given) = (0, 0);
        self.groups.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if self.has_given_up() {
            self.give(group, out)?;
            return out.emit(0, group, batch);
        }
        self.taken += batch.len() as u64;
        let merger = self.groups.entry(group).or_default();
        merger.add(batch, out)?;
        if merger.len() >= GATHERED_ROWS { self.give(group, out) } else { Ok(()) }
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        self.give(group, out)?;
        self.groups.remove(&group);
        out.finish_all(group, instances)
    }
}
