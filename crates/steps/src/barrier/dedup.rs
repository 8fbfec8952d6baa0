//! `dedup()`: lets the first of equal rows of each instance through; in the body of a loop, the first of all
//! iterations.
//!
//! It sends at once and holds only a set of the keys it has seen. The set is charged until the group or the loop ends.

use std::sync::Arc;

use mangrove_flow::{GroupId, Operator, Output, QueryControl, TagSet};
use mangrove_graph::{FastMap, Result};

use crate::barrier::seen::SeenRows;
use crate::barrier::visited::Visited;
use crate::context::execution::ExecutionContext;
use crate::rows::Rows;

/// Lets the first of equal rows through, as one traverser.
pub(crate) struct Dedup {
    computed: usize,
    /// Outside loops: what was seen of each open group.
    seen: FastMap<GroupId, SeenRows>,
    /// Empty tables for the next group.
    spare: Option<SeenRows>,
    /// Directly in the body of a loop: what was seen in all iterations, shared with the loop.
    visited: Option<Arc<Visited>>,
}

impl Dedup {
    /// Compares this many computed columns together; 0: the object.
    pub fn new(computed: usize, visited: Option<Arc<Visited>>) -> Self {
        Dedup { computed, seen: FastMap::default(), spare: None, visited }
    }
}

impl Operator<Rows> for Dedup {
    fn recycle(&mut self) -> bool {
        self.seen.is_empty() && self.visited.as_ref().is_none_or(|visited| visited.is_empty())
    }

    fn combine(
        &mut self,
        _port: u8,
        batch: Rows,
        _context: &ExecutionContext,
        _control: &Arc<QueryControl>,
    ) -> Result<Rows> {
        Ok(SeenRows::default().admit(batch, self.computed).0)
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        if tags.is_none()
            && let Some(seen) = self.seen.remove(&group)
        {
            out.control().release(seen.bytes());
        }
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
        out.control().charge(bytes)?;
        out.emit(0, group, first)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(mut seen) = self.seen.remove(&group) {
            out.control().release(seen.bytes());
            if seen.clear() {
                self.spare = Some(seen);
            }
        }
        out.finish_all(group, instances)
    }
}
