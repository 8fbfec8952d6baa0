//! Merging equal traversers: rows with the same object become one row with their bulks added.
//!
//! Without merging, a walk through a dense graph explodes; with it, there are at most as many rows as vertices after
//! `out().out()`. Rows that remember paths, or objects under step labels, are never equal.

use std::collections::VecDeque;

use mangrove_flow::{BATCH_ROWS, Batch, GroupId, Output, QueryControl};
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Result, Value, VertexId};
use mangrove_plan::physical::Requirements;

use crate::barrier::sort_by_id::sort_by_id;
use crate::barrier::vertex_bulks::{self, VertexBulks};
use crate::barrier::vertex_runs::VertexRuns;
use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::limits::table::PartitionedTable;
use crate::rows::{Loops, ObjectColumn, Rows, Tags};
use crate::values::fold;

#[derive(PartialEq, Eq, Hash)]
enum MergeKey {
    Vertex(u64),
    Edge(u64),
    Value(Equivalent),
}

/// Rows of one group; equal ones are merged as they are added. When all have come, they are taken out batch by batch.
///
/// If the rows may leave in any order, those that hold only a vertex and a bulk leave in the order of vertices. A few
/// thousand are sorted, so that equal ones are neighbors. Of more, the bulks are added up in blocks ([`VertexBulks`]), if
/// many of the vertices have ids that are near to each other. All other rows are in a table.
#[derive(Default)]
pub(crate) struct Merger {
    /// True if the rows may leave in any order. Otherwise they leave in that in which the first of equal ones came.
    any_order: bool,
    /// The latest vertices with their bulks. From the first batch that is taken on they are sorted.
    recent: Vec<(VertexId, u64)>,
    /// The number of `recent` that were taken, once batches are taken.
    taken_recent: Option<usize>,
    bulks: Option<Box<VertexBulks>>,
    /// The rows of the table. Each batch but the last has [`BATCH_ROWS`] rows, so that a row is found by its number.
    batches: VecDeque<Rows>,
    /// The number of rows of the table.
    count: usize,
    /// The row of each vertex, for instance 0 without loop counters, with a small key.
    vertices: PartitionedTable<VertexId, u32>,
    indexes: PartitionedTable<(u32, MergeKey, Option<Loops>), usize>,
    /// The number of rows in the table at which the next look decides whether they become `bulks`; 0 for the first.
    next_look: usize,
    charged: u64,
}

/// Whether it is worth the time to merge rows that pass ([`Merger::pass`]) in a table.
#[derive(Default)]
pub(crate) struct Worth {
    /// The rows that tables have taken.
    taken: u64,
    /// The merged rows that they gave.
    given: u64,
    /// How often vertices were looked at to find out whether blocks suit them.
    looks: u32,
}

impl Worth {
    /// For a thread of several, which work on a heavy query: it tries blocks with the first vertices. Each thread merges
    /// only its own rows, so rows that leave early are equal to those of other threads more often.
    pub fn of_heavy() -> Self {
        Worth { looks: 1, ..Worth::default() }
    }

    fn is_lost(&self) -> bool {
        self.taken >= JUDGED_ROWS && self.given > self.taken / 4 * 3
    }

    /// Returns true if vertices should be put into blocks: not the first ones, because a block takes new memory, and ever
    /// more seldom if it was in vain.
    fn tries_blocks(&mut self) -> bool {
        self.looks = self.looks.saturating_add(1);
        self.looks > 1 && self.looks.is_power_of_two()
    }
}

/// The approximate bytes of an entry in the table of rows.
const ENTRY_BYTES: u64 = 72;

/// The rows that are sorted at a time, which takes about a tenth of a millisecond.
const RECENT_ROWS: usize = 1 << 14;

/// The bytes of a vertex and its bulk.
const RECENT_BYTES: u64 = size_of::<(VertexId, u64)>() as u64;

/// The number of rows in the table at the first look ([`Merger::look`]). Each further look comes at four times as many.
const LOOK_FIRST: usize = 1 << 12;

/// The number of rows of the last look. To move more would be a long pause.
const LOOK_LAST: usize = 1 << 18;

/// If rows pass: the rows of a table that is full.
const PASSING_ROWS: usize = 1 << 13;

/// If rows pass: they go on as soon as the query holds this part of its memory limit.
const PASSING_SHARE: u64 = 4;

/// If rows pass: the bytes of blocks that are full. They have room for 3.7 million vertices.
const PASSING_BYTES: u64 = 16 << 20;

/// After this many rows that pass, a table goes on only if it has saved a quarter of them.
const JUDGED_ROWS: u64 = 4 * PASSING_ROWS as u64;

/// Returns the vertices if rows hold nothing but them and bulks.
fn only_vertices(rows: &Rows) -> Option<&[VertexId]> {
    match &rows.objects {
        ObjectColumn::Vertices(ids)
            if matches!(rows.tags, Tags::One) && rows.loops.is_none() && rows.sacks.is_none() =>
        {
            Some(ids)
        }
        _ => None,
    }
}

/// Rows with these vertices and bulks.
fn rows_of(part: &[(VertexId, u64)]) -> Rows {
    let bulk = part.iter().any(|(_, bulk)| *bulk != 1).then(|| part.iter().map(|(_, bulk)| *bulk).collect());
    Rows { bulk, ..Rows::of(ObjectColumn::Vertices(part.iter().map(|(id, _)| *id).collect())) }
}

impl Merger {
    /// No rows. With `any_order`, they may leave in any order.
    pub fn new(any_order: bool) -> Self {
        Merger { any_order, ..Merger::default() }
    }

    /// Returns the number of rows held, before the latest are merged.
    pub fn len(&self) -> usize {
        let recent = self.recent.len() - self.taken_recent.unwrap_or_default();
        recent + self.bulks.as_ref().map_or(0, |bulks| bulks.len()) + self.count
    }

    /// Returns true if no row is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds rows. Fails if the query would hold too much or a bulk overflows.
    pub fn add(&mut self, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        self.gather(rows, out)?;
        if self.recent.len() < RECENT_ROWS || self.settle(true, out)? {
            return Ok(());
        }
        // Neither blocks nor sorting save memory for these vertices. The merger must hold them, so the table takes them.
        self.move_to_table(out)
    }

    /// Adds rows that may leave at any time. Sends rows on when there are many, and at once if few are equal.
    pub fn pass(&mut self, group: GroupId, rows: Rows, worth: &mut Worth, out: &mut Output<'_, Rows>) -> Result<()> {
        if self.needs_table(&rows) {
            if worth.is_lost() {
                self.give(group, worth, out)?;
                return out.emit(0, group, rows);
            }
            worth.taken += rows.len() as u64;
        }
        self.gather(rows, out)?;
        let is_full = self.recent.len() >= RECENT_ROWS && !self.settle(worth.tries_blocks(), out)?
            || self.bulks.as_ref().is_some_and(|bulks| bulks.bytes() > PASSING_BYTES)
            || self.count >= PASSING_ROWS
            || out.control().memory() > out.control().memory_limit() / PASSING_SHARE;
        if is_full { self.give(group, worth, out) } else { Ok(()) }
    }

    /// Sends all rows on.
    pub fn give(&mut self, group: GroupId, worth: &mut Worth, out: &mut Output<'_, Rows>) -> Result<()> {
        worth.given += self.count as u64;
        while let Some(rows) = self.take_next(out)? {
            out.emit(0, group, rows)?;
        }
        Ok(())
    }

    /// Returns true if a table merges these rows.
    fn needs_table(&self, rows: &Rows) -> bool {
        !self.any_order || self.bulks.is_none() && self.count > 0 || only_vertices(rows).is_none()
    }

    /// Adds rows to the latest ones or to the table.
    fn gather(&mut self, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        if !Merger::merges(&rows, out.context()) {
            let bytes = self.append(rows);
            return self.charge(bytes, out.control());
        }
        let ids = if self.any_order { only_vertices(&rows) } else { None };
        let one_bulk = out.context().requirements.one_bulk;
        match (ids, &mut self.bulks) {
            (Some(ids), Some(bulks)) => {
                let before = bulks.bytes();
                bulks.add(ids.iter().enumerate().map(|(row, id)| (*id, rows.bulk(row))), one_bulk)?;
                let more = bulks.bytes() - before;
                self.charge(more, out.control())
            }
            (Some(ids), None) if self.count == 0 => {
                self.recent.extend(ids.iter().enumerate().map(|(row, id)| (*id, rows.bulk(row))));
                self.charge(ids.len() as u64 * RECENT_BYTES, out.control())
            }
            _ => self.merge_charged(rows, out),
        }
    }

    /// Merges rows in the table.
    fn merge_charged(&mut self, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        let more = self.merge(rows, &out.context().requirements, out.control())?;
        self.charge(more, out.control())?;
        if self.any_order && self.count >= self.next_look.max(LOOK_FIRST) { self.look(out.control()) } else { Ok(()) }
    }

    /// Merges the latest vertices, and moves them into blocks if many are in the same ones, or into the table if many are
    /// equal. Otherwise, returns false.
    fn settle(&mut self, tries_blocks: bool, out: &Output<'_, Rows>) -> Result<bool> {
        if tries_blocks {
            let mut bulks = Box::<VertexBulks>::default();
            bulks.add(self.recent.iter().copied(), out.context().requirements.one_bulk)?;
            if bulks.are_near() {
                self.charge(bulks.bytes(), out.control())?;
                self.release(self.recent.len() as u64 * RECENT_BYTES, out.control());
                self.recent.clear();
                self.bulks = Some(bulks);
                return Ok(true);
            }
        }
        self.sort_recent(out)?;
        if self.recent.len() > RECENT_ROWS / 2 {
            return Ok(false);
        }
        self.move_to_table(out)?;
        Ok(true)
    }

    fn move_to_table(&mut self, out: &Output<'_, Rows>) -> Result<()> {
        let recent = std::mem::take(&mut self.recent);
        for part in recent.chunks(BATCH_ROWS) {
            self.merge_charged(rows_of(part), out)?;
        }
        self.release(recent.len() as u64 * RECENT_BYTES, out.control());
        Ok(())
    }

    /// Sorts the latest vertices, and adds up the bulks of equal ones.
    fn sort_recent(&mut self, out: &Output<'_, Rows>) -> Result<()> {
        let one_bulk = out.context().requirements.one_bulk;
        let (before, mut overflows) = (self.recent.len(), false);
        sort_by_id(&mut self.recent);
        self.recent.dedup_by(|(id, bulk), (kept, sum)| {
            let is_equal = id == kept;
            if is_equal && !one_bulk {
                let (added, is_too_much) = sum.overflowing_add(*bulk);
                (*sum, overflows) = (added, overflows | is_too_much);
            }
            is_equal
        });
        self.release((before - self.recent.len()) as u64 * RECENT_BYTES, out.control());
        if overflows { Err(vertex_bulks::too_many()) } else { Ok(()) }
    }

    /// The rows of the table become [`VertexBulks`] if these take less memory.
    #[cold]
    fn look(&mut self, control: &QueryControl) -> Result<()> {
        let looked = self.next_look.max(LOOK_FIRST);
        self.next_look = if looked < LOOK_LAST { looked * 4 } else { usize::MAX };
        if self.vertices.len() != self.count || !self.batches.iter().all(|rows| only_vertices(rows).is_some()) {
            return Ok(());
        }
        let row_bytes = RECENT_BYTES + ENTRY_BYTES;
        if !vertex_bulks::are_smaller(self.vertices.keys().copied(), self.count, row_bytes) {
            return Ok(());
        }
        let mut bulks = Box::<VertexBulks>::default();
        for rows in std::mem::take(&mut self.batches) {
            if let Some(ids) = only_vertices(&rows) {
                bulks.add(ids.iter().enumerate().map(|(row, id)| (*id, rows.bulk(row))), false)?;
            }
        }
        (self.vertices, self.count) = (PartitionedTable::default(), 0);
        let (before, after) = (self.charged, bulks.bytes());
        self.bulks = Some(bulks);
        match before < after {
            true => self.charge(after - before, control),
            false => {
                self.release(before - after, control);
                Ok(())
            }
        }
    }

    fn charge(&mut self, bytes: u64, control: &QueryControl) -> Result<()> {
        self.charged += bytes;
        control.charge(bytes)
    }

    fn release(&mut self, bytes: u64, control: &QueryControl) {
        let part = bytes.min(self.charged);
        self.charged -= part;
        control.release(part);
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
                *held = held.checked_add(bulk).ok_or_else(vertex_bulks::too_many)?;
            }
        }
        Ok(bytes)
    }

    /// Takes the next merged rows, at most as many as a message holds, and releases their part of the charge. No row may
    /// be added between the first batch and the last one. Fails if a bulk overflows.
    pub fn take_next(&mut self, out: &Output<'_, Rows>) -> Result<Option<Rows>> {
        if self.taken_recent.is_none() {
            self.sort_recent(out)?;
            self.taken_recent = Some(0);
            self.indexes.clear();
            self.vertices.clear();
        }
        let held = self.len();
        let rows = self.next_rows();
        let left = self.len();
        let part = match left {
            0 => self.charged,
            _ => (u128::from(self.charged) * (held - left) as u128 / held as u128) as u64,
        };
        self.release(part, out.control());
        if left == 0 {
            self.recent.clear();
            (self.taken_recent, self.bulks, self.next_look) = (None, None, 0);
        }
        Ok(rows)
    }

    fn next_rows(&mut self) -> Option<Rows> {
        let from = self.taken_recent.unwrap_or_default();
        if from < self.recent.len() {
            let to = (from + BATCH_ROWS).min(self.recent.len());
            self.taken_recent = Some(to);
            return Some(rows_of(&self.recent[from..to]));
        }
        if let Some(rows) = self.bulks.as_mut().and_then(|bulks| bulks.take_next()) {
            return Some(rows);
        }
        let rows = self.batches.pop_front();
        self.count -= rows.as_ref().map_or(0, Rows::len);
        rows
    }

    /// Returns true if [`Merger::take_runs`] may be called: if rows hold nothing but vertices and bulks, no batch was
    /// taken out of the table, and to sort the table is no long pause.
    pub fn has_runs(&self) -> bool {
        let is_plain = |rows: &Rows| only_vertices(rows).is_some();
        let may_sort = self.any_order && self.count <= LOOK_LAST && self.vertices.len() == self.count;
        may_sort && self.batches.iter().all(is_plain)
    }

    /// Returns the number of entries that [`Merger::take_runs`] sorts.
    pub fn entries(&self) -> usize {
        self.recent.len() + self.bulks.as_ref().map_or(0, |bulks| bulks.block_count()) + self.count
    }

    /// Takes all rows as sorted runs, with their charge.
    pub(super) fn take_runs(&mut self, out: &Output<'_, Rows>) -> Result<VertexRuns> {
        let taken = self.taken_recent.unwrap_or_default();
        if self.taken_recent.is_none() {
            self.sort_recent(out)?;
        }
        let mut all = std::mem::replace(self, Merger::new(self.any_order));
        let mut runs = VertexRuns::default();
        runs.add_charge(all.charged);
        runs.add_list(all.recent.split_off(taken));
        if let Some(bulks) = all.bulks {
            runs.add_blocks(*bulks);
        }
        let mut list = Vec::with_capacity(all.count);
        drop(all.vertices);
        for rows in all.batches {
            let ids = only_vertices(&rows).unwrap_or_default();
            list.extend(ids.iter().enumerate().map(|(row, id)| (*id, rows.bulk(row))));
        }
        runs.add_list(list);
        Ok(runs)
    }

    /// Drops all rows.
    pub fn clear(&mut self, out: &Output<'_, Rows>) {
        out.control().release(self.charged);
        *self = Merger::new(self.any_order);
    }

    /// Returns the rows that have sacks, batch by batch.
    pub fn with_sacks(&self) -> impl Iterator<Item = &Rows> {
        self.batches.iter().filter(|rows| rows.sacks.is_some())
    }
}
