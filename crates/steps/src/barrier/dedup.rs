//! `dedup()`: the first of equal rows of an instance; in the body of a loop, of all its iterations.

use std::sync::Arc;

use hashbrown::HashSet;
use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Result, Value};

use crate::barrier::held::FastMap;
use crate::rows::{Column, Rows};
use crate::scope::visited::Visited;

/// What is compared.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Vertex(u64),
    Edge(u64),
    Value(Equivalent),
    Values(Vec<Equivalent>),
}

/// What was let through, by instance.
#[derive(Default)]
pub struct Seen(HashSet<(u32, Key), foldhash::fast::RandomState>);

/// About what an entry of the set costs: tag and key, control byte and load factor.
const ENTRY_BYTES: u64 = 64;

impl Seen {
    /// The rows that are the first of their kind, and how many bytes more it takes to remember them.
    fn admit(&mut self, batch: Rows, slots: usize) -> (Rows, u64) {
        let before = self.bytes();
        let mut first = batch.filter(|rows, row| match key(rows, row, slots) {
            Some(key) => self.0.insert((rows.tag(row), key)),
            None => false,
        });
        first.bulk = None;
        (first, self.bytes() - before)
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> u64 {
        self.0.len() as u64 * ENTRY_BYTES
    }
}

/// Lets the first of equal rows through, as one traverser.
pub struct Dedup {
    slots: usize,
    /// Outside of loops: what was seen of each group until it ends.
    seen: FastMap<GroupId, Seen>,
    /// Directly in the body of a loop: what was seen in all iterations.
    visited: Option<Arc<Visited>>,
}

impl Dedup {
    /// Compares this many slots together; 0: the object.
    pub fn new(slots: usize, visited: Option<Arc<Visited>>) -> Self {
        Dedup { slots, seen: FastMap::default(), visited }
    }
}

impl Operator<Rows> for Dedup {
    fn rest(&mut self) -> bool {
        self.seen.is_empty() && self.visited.as_ref().is_none_or(|visited| visited.is_empty())
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let slots = self.slots;
        let (first, bytes) = match &self.visited {
            Some(visited) => visited.with(group, out.operator(), |seen| seen.admit(batch, slots)),
            None => self.seen.entry(group).or_default().admit(batch, slots),
        };
        out.context().charge(bytes)?;
        out.emit(0, group, first)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(seen) = self.seen.remove(&group) {
            out.context().release(seen.bytes());
        }
        out.finish_all(group, instances)
    }
}

/// What is compared of a row; `None` where a `by()` was unproductive.
fn key(rows: &Rows, row: usize, slots: usize) -> Option<Key> {
    if slots == 0 {
        return Some(match &rows.objects {
            Column::Vertices(v) => Key::Vertex(v[row].to_bits()),
            Column::Edges(e) => Key::Edge(e[row].to_bits()),
            // One stream may bring the same vertex in a column of vertices and in one of values: same key.
            Column::Values(v) => match &v[row] {
                Value::Vertex(id) => Key::Vertex(id.to_bits()),
                Value::Edge(id) => Key::Edge(id.to_bits()),
                other => Key::Value(Equivalent(other.clone())),
            },
        });
    }
    let values = (0..slots).map(|slot| rows.slot(slot, row).cloned().map(Equivalent));
    Some(Key::Values(values.collect::<Option<_>>()?))
}
