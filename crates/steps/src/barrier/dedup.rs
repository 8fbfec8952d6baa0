//! `dedup()`: the first of equal rows of an instance; in the body of a loop, of all its iterations.

use std::sync::Arc;

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Result, Value, VertexId};

use crate::barrier::held::FastMap;
use crate::rows::{Column, Rows};
use crate::scope::visited::Visited;
use crate::size::Sizes;
use crate::table::Table;

/// What is compared where it is no vertex.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Edge(u64),
    Value(Equivalent),
    Values(Vec<Equivalent>),
}

/// What was let through, by instance. Vertices are most of what is compared, and have small keys of their own.
#[derive(Default)]
pub struct Seen {
    vertices: Table<(u32, VertexId)>,
    others: Table<(u32, Key)>,
    /// What the values among them hold.
    held: u64,
}

/// About what an entry of a set costs: tag and key, control byte and load factor.
const VERTEX_BYTES: u64 = 24;
const ENTRY_BYTES: u64 = 64;

/// A table of this many entries is kept for the next group.
const KEPT_MAX: usize = 1 << 12;

impl Seen {
    /// The rows that are the first of their kind, and how many bytes more it takes to remember them.
    fn admit(&mut self, batch: Rows, computed: usize) -> (Rows, u64) {
        let before = self.bytes();
        let mut sizes = Sizes::default();
        let mut first = match &batch.objects {
            Column::Vertices(_) if computed == 0 => batch.filter(|rows, row| match &rows.objects {
                Column::Vertices(ids) => self.vertices.insert((rows.tag(row), ids[row])),
                _ => false,
            }),
            _ => batch.filter(|rows, row| self.admit_any(rows, row, computed, &mut sizes)),
        };
        first.bulk = None;
        (first, self.bytes() - before)
    }

    fn admit_any(&mut self, rows: &Rows, row: usize, computed: usize, sizes: &mut Sizes) -> bool {
        // Measured before it has one holder more.
        let held = match computed {
            0 => rows.objects.values().get(row).map_or(0, |value| sizes.behind(value)),
            _ => sizes.all((0..computed).filter_map(|column| rows.computed_value(column, row))),
        };
        let is_new = self.is_new(rows, row, computed);
        self.held += if is_new { held as u64 } else { 0 };
        is_new
    }

    fn is_new(&mut self, rows: &Rows, row: usize, computed: usize) -> bool {
        let tag = rows.tag(row);
        if computed > 0 {
            return computed_key(rows, row, computed).is_some_and(|key| self.others.insert((tag, key)));
        }
        // One stream may bring the same vertex in a column of vertices and in one of values: same key.
        match rows.object(row) {
            Value::Vertex(id) => self.vertices.insert((tag, id)),
            Value::Edge(id) => self.others.insert((tag, Key::Edge(id.to_bits()))),
            other => self.others.insert((tag, Key::Value(Equivalent(other)))),
        }
    }

    /// Empties it; false where its tables are too large to be kept.
    fn clear(&mut self) -> bool {
        self.vertices.clear();
        self.others.clear();
        self.held = 0;
        self.vertices.capacity() + self.others.capacity() <= KEPT_MAX
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> u64 {
        self.vertices.len() as u64 * VERTEX_BYTES + self.others.len() as u64 * ENTRY_BYTES + self.held
    }
}

/// Lets the first of equal rows through, as one traverser.
pub struct Dedup {
    computed: usize,
    /// Outside of loops: what was seen of each group until it ends.
    seen: FastMap<GroupId, Seen>,
    /// Empty tables of a group that has ended.
    spare: Option<Seen>,
    /// Directly in the body of a loop: what was seen in all iterations.
    visited: Option<Arc<Visited>>,
}

impl Dedup {
    /// Compares this many computed columns together; 0: the object.
    pub fn new(computed: usize, visited: Option<Arc<Visited>>) -> Self {
        Dedup { computed, seen: FastMap::default(), spare: None, visited }
    }
}

impl Operator<Rows> for Dedup {
    fn rest(&mut self) -> bool {
        self.seen.is_empty() && self.visited.as_ref().is_none_or(|visited| visited.is_empty())
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let computed = self.computed;
        let (first, bytes) = match &self.visited {
            Some(visited) => visited.with(group, out.operator(), |seen| seen.admit(batch, computed)),
            None => {
                let spare = &mut self.spare;
                self.seen.entry(group).or_insert_with(|| spare.take().unwrap_or_default()).admit(batch, computed)
            }
        };
        out.context().charge(bytes)?;
        out.emit(0, group, first)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(mut seen) = self.seen.remove(&group) {
            out.context().release(seen.bytes());
            if seen.clear() {
                self.spare = Some(seen);
            }
        }
        out.finish_all(group, instances)
    }
}

/// What is compared of a row; `None` where a `by()` was unproductive.
fn computed_key(rows: &Rows, row: usize, computed: usize) -> Option<Key> {
    let values = (0..computed).map(|column| rows.computed_value(column, row).cloned().map(Equivalent));
    Some(Key::Values(values.collect::<Option<_>>()?))
}
