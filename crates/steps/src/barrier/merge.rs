//! Merging equal traversers: rows with the same object become one row with their bulks added.
//!
//! Without merging, a walk through a dense graph explodes; with it, there are at most as many rows as vertices after
//! `out().out()`. Rows that remember paths, or objects under step labels, are never equal.

use std::collections::VecDeque;

use mangrove_flow::{BATCH_ROWS, Batch, GroupId, Operator, Output, QueryControl};
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, FastMap, Result, Value, VertexId};
use mangrove_plan::physical::Requirements;

use crate::context::execution::ExecutionContext;
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

/// Rows of one group; equal ones are merged as they are added. When all have come, they are taken out batch by batch.
#[derive(Default)]
pub(crate) struct Merger {
    /// Each but the last has [`BATCH_ROWS`] rows, so that a row is found by its number.
    batches: VecDeque<Rows>,
    /// The number of rows.
    count: usize,
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
        self.count
    }

    /// Adds rows. Fails if the query would hold too much or a bulk overflows.
    pub fn add(&mut self, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        let merges = Merger::merges(&rows, out.context());
        let requirements = &out.context().requirements;
        let more = if merges { self.merge(rows, requirements, out.control())? } else { self.append(rows) };
        self.charged += more;
        out.control().charge(more)
    }

    /// Returns true if equal rows of this kind are merged: they do not remember where they came from.
    pub fn merges(rows: &Rows, context: &ExecutionContext) -> bool {
        let remember = rows.path.is_some() || !rows.bindings.is_empty();
        !remember && (rows.sacks.is_none() || context.requirements.merge_sacks.is_some())
    }

    /// Appends rows without merging. Returns their bytes.
    fn append(&mut self, rows: Rows) -> u64 {
        let bytes = rows.bytes() as u64;
        self.put(rows);
        bytes
    }

    fn put(&mut self, rows: Rows) {
        let count = rows.len();
        if count == 0 {
            return;
        }
        let room = (BATCH_ROWS - self.count % BATCH_ROWS) % BATCH_ROWS;
        self.count += count;
        match self.batches.back_mut().filter(|_| room > 0) {
            Some(last) if count <= room => return last.append(rows),
            Some(last) => last.append(rows.take(&(0..room as u32).collect::<Vec<_>>())),
            None if count <= BATCH_ROWS => return self.batches.push_back(rows),
            None => {}
        }
        let rest: Vec<u32> = (room as u32..count as u32).collect();
        self.batches.extend(rest.chunks(BATCH_ROWS).map(|rest| rows.take(rest)));
    }

    /// Appends new rows, and adds the bulks of rows that are equal to held ones. Returns the bytes added.
    fn merge(&mut self, rows: Rows, requirements: &Requirements, control: &QueryControl) -> Result<u64> {
        // Measured before the table becomes one more holder of the objects.
        let measured = rows.bytes() as u64;
        let mut new = Vec::new();
        let mut held = self.count;
        let mut raised: Vec<(usize, u64)> = Vec::new();
        // Rows that join a held row, and that row.
        let mut joined: Vec<(usize, usize)> = Vec::new();
        for row in 0..rows.len() {
            let object = match &rows.objects {
                ObjectColumn::Vertices(v) => MergeKey::Vertex(v[row].to_bits()),
                ObjectColumn::Edges(e) => MergeKey::Edge(e[row].to_bits()),
                ObjectColumn::Numbers(v) => MergeKey::Value(Equivalent(v.slice().value(row))),
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
        if let (Some(operator), Some(theirs)) = (requirements.merge_sacks, sacks) {
            let mut meter = Meter::new(control);
            for (index, row) in joined {
                let Some(sack) = self.batches[index / BATCH_ROWS].sacks.as_mut().map(|s| &mut s[index % BATCH_ROWS])
                else {
                    continue;
                };
                let (ours, theirs) = (std::mem::take(sack), &theirs[row]);
                *sack = fold::apply(operator, ours, theirs, &mut meter)?;
                bytes += fold::growth(operator, theirs) as u64;
            }
        }
        if !requirements.one_bulk {
            for (index, bulk) in raised {
                let batch = &mut self.batches[index / BATCH_ROWS];
                let count = batch.len();
                let held = &mut batch.bulk.get_or_insert_with(|| vec![1; count])[index % BATCH_ROWS];
                *held = held
                    .checked_add(bulk)
                    .ok_or_else(|| Error::evaluation("long overflow: more than 2^64 equal traversers"))?;
            }
        }
        Ok(bytes)
    }

    /// Takes the next merged rows, as many as a message holds, and releases their part of the charge. No row may be
    /// added between the first batch and the last one.
    pub fn take_next(&mut self, out: &Output<'_, Rows>) -> Option<Rows> {
        self.indexes.clear();
        self.vertices.clear();
        let rows = self.batches.pop_front();
        let taken = rows.as_ref().map_or(0, Rows::len);
        let part = match self.count - taken {
            0 => self.charged,
            _ => (u128::from(self.charged) * taken as u128 / self.count as u128) as u64,
        };
        self.count -= taken;
        self.charged -= part;
        out.control().release(part);
        rows
    }

    /// Returns the rows, batch by batch.
    pub fn batches(&self) -> impl Iterator<Item = &Rows> {
        self.batches.iter()
    }

    /// Returns true if no row is left.
    pub fn is_empty(&self) -> bool {
        self.count == 0
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
        if let Some(merger) = self.groups.get_mut(&group) {
            // These are a few batches (`GATHERED_ROWS`).
            while let Some(rows) = merger.take_next(out) {
                self.given += rows.len() as u64;
                out.emit(0, group, rows)?;
            }
        }
        Ok(())
    }
}

impl Operator<Rows> for PassingMerge {
    fn is_passing(&self) -> bool {
        true
    }

    fn keeps_rows(&self) -> bool {
        !self.has_given_up() && self.groups.values().any(|merger| !merger.is_empty())
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
