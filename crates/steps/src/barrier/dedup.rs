//! `dedup()`: lets the first of equal rows of each instance through; in the body of a loop, the first of all
//! iterations.
//!
//! It sends at once and holds only a set of the keys it has seen. The set is charged until the group or the loop ends.
//!
//! A set of one thread serves until helpers join the run. Then the operator shares its sets with its replicas
//! (FLOW-29), unless the order of its rows matters: each thread lets the rows through that no thread has seen.

use std::sync::{Arc, Weak};

use mangrove_flow::{GroupId, Operator, Output, QueryControl, Shared, SharedState, TagSet};
use mangrove_graph::{FastMap, Result};
use parking_lot::Mutex;

use crate::barrier::seen::SeenRows;
use crate::barrier::shared_seen::{Scratch, SharedSeen};
use crate::barrier::visited::Visited;
use crate::context::execution::ExecutionContext;
use crate::rows::Rows;

/// What was seen of each open group, by several threads.
type SharedGroups = Mutex<FastMap<GroupId, Arc<SharedSeen>>>;

/// The place of what a `dedup()` has seen.
enum Memory {
    /// One thread works on the query: what was seen of each open group.
    Groups(FastMap<GroupId, SeenRows>),
    /// Several threads do.
    Shared(Arc<SharedGroups>),
    /// As `Shared`, on a helper: the operator at the home holds it.
    Joined(Weak<SharedGroups>),
    /// Directly in the body of a loop: what was seen in all iterations, shared with the loop.
    Loop(Arc<Visited>),
    /// As `Loop`, on a helper.
    JoinedLoop(Weak<Visited>),
}

/// Lets the first of equal rows through, as one traverser.
pub(crate) struct Dedup {
    computed: usize,
    memory: Memory,
    /// True if several threads may work at it.
    may_share: bool,
    /// Empty tables for the next group.
    spare: Option<SeenRows>,
    scratch: Scratch,
}

impl Dedup {
    /// Compares this many computed columns together; 0: the object. `visited` belongs to the loop around it.
    /// `may_share` is for one whose rows may come in any order, and whose groups are few.
    pub fn new(computed: usize, visited: Option<Arc<Visited>>, may_share: bool) -> Self {
        let memory = visited.map_or_else(|| Memory::Groups(FastMap::default()), Memory::Loop);
        Dedup { computed, memory, may_share, spare: None, scratch: Scratch::default() }
    }
}

/// Returns what threads have seen of a group.
fn seen_of(groups: &SharedGroups, group: GroupId) -> Arc<SharedSeen> {
    groups.lock().entry(group).or_insert_with(|| Arc::new(SharedSeen::new(SeenRows::default()))).clone()
}

impl Operator<Rows> for Dedup {
    fn is_by_group(&self) -> bool {
        true
    }

    fn recycle(&mut self) -> bool {
        self.scratch.forget_sets();
        match &self.memory {
            Memory::Groups(groups) => groups.is_empty(),
            Memory::Shared(groups) => {
                let is_empty = groups.lock().is_empty();
                self.memory = Memory::Groups(FastMap::default());
                is_empty
            }
            Memory::Loop(visited) => visited.recycle(),
            Memory::Joined(_) | Memory::JoinedLoop(_) => true,
        }
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
        if tags.is_some() {
            return;
        }
        let bytes = match &mut self.memory {
            Memory::Groups(groups) => groups.remove(&group).map_or(0, |seen| seen.bytes()),
            // A helper may still add rows, and charge for them after that. The end of the group releases all.
            Memory::Shared(_) => 0,
            // The loop releases its set; replicas hold none.
            Memory::Loop(_) | Memory::Joined(_) | Memory::JoinedLoop(_) => 0,
        };
        out.control().release(bytes);
    }

    fn share(&mut self) -> Option<Shared> {
        if !self.may_share {
            return None;
        }
        match &mut self.memory {
            Memory::Groups(groups) => {
                let shared = |(group, seen)| (group, Arc::new(SharedSeen::new(seen)));
                let groups = Arc::new(Mutex::new(std::mem::take(groups).into_iter().map(shared).collect()));
                self.memory = Memory::Shared(groups.clone());
                Some(Shared { state: groups, from_port: 0 })
            }
            Memory::Loop(visited) => {
                visited.share();
                Some(Shared { state: visited.clone(), from_port: 0 })
            }
            Memory::Shared(_) | Memory::Joined(_) | Memory::JoinedLoop(_) => None,
        }
    }

    fn join(&mut self, state: &SharedState) {
        if let Ok(groups) = state.clone().downcast::<SharedGroups>() {
            self.memory = Memory::Joined(Arc::downgrade(&groups));
        } else if let Ok(visited) = state.clone().downcast::<Visited>() {
            self.memory = Memory::JoinedLoop(Arc::downgrade(&visited));
        }
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let (computed, scratch) = (self.computed, &mut self.scratch);
        let (first, bytes) = match &mut self.memory {
            Memory::Groups(groups) => {
                let spare = &mut self.spare;
                groups.entry(group).or_insert_with(|| spare.take().unwrap_or_default()).admit(batch, computed)
            }
            Memory::Shared(groups) => seen_of(groups, group).admit(batch, computed, scratch),
            Memory::Loop(visited) => visited.admit(group, out.operator(), batch, computed, scratch),
            // If the state is gone, the run is over.
            Memory::Joined(groups) => match groups.upgrade() {
                Some(groups) => seen_of(&groups, group).admit(batch, computed, scratch),
                None => return Ok(()),
            },
            Memory::JoinedLoop(visited) => match visited.upgrade() {
                Some(visited) => visited.admit(group, out.operator(), batch, computed, scratch),
                None => return Ok(()),
            },
        };
        out.control().charge(bytes)?;
        out.emit(0, group, first)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        match &mut self.memory {
            Memory::Groups(groups) => {
                if let Some(mut seen) = groups.remove(&group) {
                    out.control().release(seen.bytes());
                    if seen.clear() {
                        self.spare = Some(seen);
                    }
                }
            }
            Memory::Shared(groups) => {
                let seen = groups.lock().remove(&group);
                out.control().release(seen.map_or(0, |seen| seen.bytes()));
            }
            // The loop forgets at its end.
            Memory::Loop(_) => {}
            Memory::Joined(_) | Memory::JoinedLoop(_) => {}
        }
        out.finish_all(group, instances)
    }
}
