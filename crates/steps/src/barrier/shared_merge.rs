//! Merging of equal traversers by several threads.
//!
//! The rows are in shards, each a [`Merger`] under a lock. The object of a row decides its shard, so equal rows meet. A
//! thread holds one lock at a time.

use mangrove_flow::{BATCH_ROWS, Output};
use mangrove_graph::{Result, Value};
use parking_lot::Mutex;

use crate::barrier::merge::Merger;
use crate::rows::{ObjectColumn, Rows};

/// The shards of a set of rows. Each costs a few hundred nanoseconds a message, so there are no more than threads.
const SHARDS: usize = 16;

/// See the header of this file.
pub(crate) struct SharedMerger {
    shards: Box<[Mutex<Merger>]>,
}

impl Default for SharedMerger {
    fn default() -> Self {
        SharedMerger::new(Merger::default())
    }
}

/// Returns the shard of a row. Values that are no elements are seldom so many that one shard is too few.
fn shard_of(objects: &ObjectColumn, row: usize) -> usize {
    /// 2^64 divided by the golden ratio: the highest bits of its multiples are spread evenly.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let bits = match objects {
        ObjectColumn::Vertices(ids) => ids[row].to_bits(),
        ObjectColumn::Edges(ids) => ids[row].to_bits(),
        ObjectColumn::Numbers(_) => 0,
        ObjectColumn::Values(values) => match &values[row] {
            Value::Vertex(id) => id.to_bits(),
            Value::Edge(id) => id.to_bits(),
            _ => 0,
        },
    };
    (bits.wrapping_mul(SPREAD) >> (u64::BITS - SHARDS.ilog2())) as usize
}

impl SharedMerger {
    /// Rows that one thread has merged, for several threads. Later rows that are equal to these are not merged with
    /// them, because merging is for speed only.
    pub fn new(merged: Merger) -> Self {
        let rest = (0..SHARDS).map(|_| Mutex::default());
        SharedMerger { shards: rest.chain([Mutex::new(merged)]).collect() }
    }

    /// Adds rows. Fails if the query would hold too much or a bulk overflows.
    pub fn add(&self, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        if !Merger::merges(&rows, out.context()) {
            // The rows stay together. Their first object spreads messages over the shards.
            return if rows.is_empty() {
                Ok(())
            } else {
                self.shards[shard_of(&rows.objects, 0)].lock().add(rows, out)
            };
        }
        let mut by_shard: [Vec<u32>; SHARDS] = Default::default();
        (0..rows.len()).for_each(|row| by_shard[shard_of(&rows.objects, row)].push(row as u32));
        for (shard, rows_of_shard) in self.shards.iter().zip(&by_shard) {
            match rows_of_shard.len() {
                0 => {}
                count if count == rows.len() => return shard.lock().add(rows, out),
                _ => {
                    let part = rows.take(rows_of_shard);
                    shard.lock().add(part, out)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the next rows, about as many as a message holds. No thread may add rows between the first batch and the
    /// last one.
    pub fn take_next(&self, out: &Output<'_, Rows>) -> Option<Rows> {
        let mut taken: Option<Rows> = None;
        for shard in &self.shards {
            let mut merger = shard.lock();
            while !merger.is_empty() {
                if taken.as_ref().is_some_and(|rows| rows.len() + merger.len().min(BATCH_ROWS) > BATCH_ROWS) {
                    return taken;
                }
                match (&mut taken, merger.take_next(out)) {
                    (Some(rows), Some(more)) => rows.append(more),
                    (taken, more) => *taken = more,
                }
            }
        }
        taken
    }

    /// Returns true if no row is left.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_empty())
    }
}
