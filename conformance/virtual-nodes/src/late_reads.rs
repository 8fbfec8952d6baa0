//! Reads that are late, by a seed: they are completed in random order, early, twice, with an error, or never after they
//! were forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mangrove_graph::{
    Completions, Direction, EdgeId, ElementKind, Elements, Error, Hold, IndexId, KeyId, LateReads, Need, Result,
    Ticket, UserId, VertexId, Want,
};
use rand::prelude::*;
use rand::rngs::SmallRng;

/// How often a view does what, as chances between 0 and 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// What is asked for is at hand.
    pub at_hand: f64,
    /// It answers that it has no room, though it has some the next moment.
    pub full: f64,
    /// It completes a read before it says that the read is submitted.
    pub early: f64,
    /// It completes a read again that was completed or forgotten before.
    pub again: f64,
    /// A read fails.
    pub fails: f64,
    /// The most elements that are kept at hand or read at a time; 0 for no limit. One need is always read.
    pub room: usize,
}

/// What is at hand while a hold lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    /// The neighbors of a vertex.
    List(VertexId, Direction),
    /// The number of edges of a vertex.
    Degree(VertexId, Direction),
    /// The values of a vertex under a key, or under all keys.
    VertexValues(VertexId, Option<KeyId>),
    EdgeValues(EdgeId, Option<KeyId>),
    /// Whether a vertex is visible, its labels and its user id.
    VertexHead(VertexId),
    EdgeHead(EdgeId),
    /// Source and target.
    Ends(EdgeId),
    LookUp(ElementKind, UserId),
    /// The next elements of a scan.
    Scan(ElementKind),
    Count(ElementKind),
    Index(IndexId),
    AllLists,
}

/// The reads of a test: each must be asked for ([`LateReads`]), and is then at hand while a hold lives.
#[derive(Clone)]
pub struct LateReader {
    habits: Habits,
    state: Arc<Mutex<State>>,
}

struct State {
    random: SmallRng,
    /// Reads under way.
    submitted: Vec<Submitted>,
    /// Tickets that were completed or forgotten.
    ended: Vec<(Ticket, Arc<dyn Completions>)>,
    /// Runs that were told that there is no room.
    refused: Vec<Arc<dyn Completions>>,
    /// By item: the holds that keep it at hand.
    pinned: HashMap<Item, u32>,
    counts: ReadCounts,
}

struct Submitted {
    ticket: Ticket,
    items: Vec<Item>,
    completions: Arc<dyn Completions>,
}

/// What a view has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Tickets under way.
    pub tickets: usize,
    /// The most tickets that were under way at a time.
    pub tickets_max: usize,
    /// Reads under way.
    pub reads: usize,
    /// The most reads that were under way at a time.
    pub reads_max: usize,
    /// All reads that were submitted.
    pub submitted: usize,
    /// Tickets completed, doubled completions left out.
    pub completed: usize,
    /// Tickets that runs have forgotten.
    pub forgotten: usize,
    /// Reads at hand, with repetitions.
    pub pinned: usize,
}

/// The ended tickets that a view remembers, to complete them again.
const ENDED_MAX: usize = 64;

/// The bytes that a read counts for.
const READ_BYTES: u64 = 8;

/// Keeps items at hand.
struct Pin {
    reader: LateReader,
    items: Vec<Item>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let refused = {
            let mut state = self.reader.state();
            for item in &self.items {
                if let Some(count) = state.pinned.get_mut(item) {
                    *count -= 1;
                    if *count == 0 {
                        state.pinned.remove(item);
                    }
                }
            }
            state.counts.pinned -= self.items.len();
            std::mem::take(&mut state.refused)
        };
        refused.iter().for_each(|run| run.has_room());
    }
}

impl LateReader {
    /// A reader whose choices the seed fixes.
    pub fn new(habits: Habits, seed: u64) -> Self {
        let state = State {
            random: SmallRng::seed_from_u64(seed),
            submitted: Vec::new(),
            ended: Vec::new(),
            refused: Vec::new(),
            pinned: HashMap::new(),
            counts: ReadCounts::default(),
        };
        LateReader { habits, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a vertex. Fails with a bug unless it is at hand.
    pub fn read(&self, vertex: VertexId) -> Result<()> {
        match self.is_at_hand(&[Item::VertexValues(vertex, None)]) {
            true => Ok(()),
            false => Err(Error::bug(format!("{vertex:?} is read, but was not asked for"))),
        }
    }

    /// Returns true if one of these items is at hand.
    pub(crate) fn is_at_hand(&self, any: &[Item]) -> bool {
        let state = self.state();
        any.iter().any(|item| state.pinned.contains_key(item))
    }

    /// Returns what the view has seen.
    pub fn counts(&self) -> ReadCounts {
        let state = self.state();
        ReadCounts { tickets: state.submitted.len(), reads: state.under_way(), ..state.counts }
    }

    fn pin(&self, items: Vec<Item>) -> Hold {
        let bytes = READ_BYTES * items.len() as u64;
        let mut state = self.state();
        for item in &items {
            *state.pinned.entry(item.clone()).or_default() += 1;
        }
        state.counts.pinned += items.len();
        drop(state);
        Hold::new(Pin { reader: self.clone(), items }, bytes)
    }

    /// Completes one of the reads under way, or completes one again that has ended. Returns false if there is none.
    pub fn complete_one(&self) -> bool {
        let mut state = self.state();
        let State { random, submitted, ended, .. } = &mut *state;
        if (submitted.is_empty() || random.random_bool(self.habits.again))
            && self.habits.again > 0.0
            && let Some((ticket, completions)) = ended.choose(random).cloned()
        {
            let is_only = submitted.is_empty();
            drop(state);
            completions.complete(ticket, Ok(Hold::nothing()));
            return !is_only;
        }
        if submitted.is_empty() {
            return false;
        }
        let at = random.random_range(0..submitted.len());
        let chosen = submitted.swap_remove(at);
        self.complete(state, chosen);
        true
    }

    /// Completes all reads that are under way.
    pub fn complete_all(&self) {
        loop {
            let mut state = self.state();
            let Some(next) = state.submitted.pop() else { return };
            self.complete(state, next);
        }
    }

    fn complete(&self, mut state: MutexGuard<'_, State>, read: Submitted) {
        let Submitted { ticket, items, completions } = read;
        state.counts.completed += 1;
        let fails = state.random.random_bool(self.habits.fails);
        drop(state);
        let outcome = if fails { Err(Error::evaluation("a read has failed")) } else { Ok(self.pin(items)) };
        completions.complete(ticket, outcome);
        let refused = {
            let mut state = self.state();
            // Only now: another thread may complete it again at once.
            state.end(ticket, &completions);
            std::mem::take(&mut state.refused)
        };
        refused.iter().for_each(|run| run.has_room());
    }
}

impl State {
    fn end(&mut self, ticket: Ticket, completions: &Arc<dyn Completions>) {
        if self.ended.len() < ENDED_MAX {
            self.ended.push((ticket, completions.clone()));
        }
    }

    /// The reads under way.
    fn under_way(&self) -> usize {
        self.submitted.iter().map(|read| read.items.len()).sum()
    }
}

/// The items that a need names.
pub(crate) fn items(need: &Need<'_>) -> Vec<Item> {
    match need {
        Need::Nothing => Vec::new(),
        Need::Lists { of, request, from } => {
            of.iter().skip(from.row as usize).map(|vertex| Item::List(*vertex, request.direction)).collect()
        }
        Need::AllLists(_) => vec![Item::AllLists],
        Need::Degrees { of, direction, .. } => of.iter().map(|vertex| Item::Degree(*vertex, *direction)).collect(),
        Need::Values { of, keys } => {
            let keys: Vec<Option<KeyId>> = match keys {
                None => vec![None],
                Some(keys) => keys.iter().copied().map(Some).collect(),
            };
            match of {
                Elements::Vertices(ids) => {
                    ids.iter().flat_map(|id| keys.iter().map(|key| Item::VertexValues(*id, *key))).collect()
                }
                Elements::Edges(ids) => {
                    ids.iter().flat_map(|id| keys.iter().map(|key| Item::EdgeValues(*id, *key))).collect()
                }
            }
        }
        Need::Heads(Elements::Vertices(ids)) => ids.iter().copied().map(Item::VertexHead).collect(),
        Need::Heads(Elements::Edges(ids)) => ids.iter().copied().map(Item::EdgeHead).collect(),
        Need::Ends(ids) | Need::EndHeads(ids) => ids.iter().copied().map(Item::Ends).collect(),
        Need::LookUp { kind, ids } => ids.iter().map(|id| Item::LookUp(*kind, id.clone())).collect(),
        Need::Scan { kind, .. } => vec![Item::Scan(*kind)],
        Need::Count { kind, .. } => vec![Item::Count(*kind)],
        Need::Index { index, .. } => vec![Item::Index(*index)],
        Need::Several(needs) => needs.iter().flat_map(items).collect(),
    }
}

impl LateReader {
    /// As [`LateReads::want`], for these items.
    pub(crate) fn want_items(
        &self,
        items: Vec<Item>,
        ticket: Ticket,
        completions: &Arc<dyn Completions>,
    ) -> Result<Want> {
        let mut state = self.state();
        if state.random.random_bool(self.habits.at_hand) {
            drop(state);
            return Ok(Want::Ready(self.pin(items)));
        }
        if state.random.random_bool(self.habits.full) {
            drop(state);
            completions.has_room();
            return Ok(Want::Full);
        }
        let used = state.counts.pinned + state.under_way();
        if self.habits.room > 0 && used > 0 && used + items.len() > self.habits.room {
            state.refused.push(completions.clone());
            return Ok(Want::Full);
        }
        let answer = Want::Submitted { reads: items.len() as u32, bytes: READ_BYTES * items.len() as u64 };
        state.counts.submitted += items.len();
        let read = Submitted { ticket, items, completions: completions.clone() };
        if state.random.random_bool(self.habits.early) {
            self.complete(state, read);
            return Ok(answer);
        }
        state.submitted.push(read);
        state.counts.tickets_max = state.counts.tickets_max.max(state.submitted.len());
        state.counts.reads_max = state.counts.reads_max.max(state.under_way());
        Ok(answer)
    }
}

impl LateReads for LateReader {
    fn want(&self, need: &Need<'_>, ticket: Ticket, completions: &Arc<dyn Completions>) -> Result<Want> {
        self.want_items(items(need), ticket, completions)
    }

    fn forget(&self, ticket: Ticket) {
        let refused = {
            let mut state = self.state();
            state.counts.forgotten += 1;
            let Some(at) = state.submitted.iter().position(|read| read.ticket == ticket) else { return };
            let read = state.submitted.swap_remove(at);
            state.end(ticket, &read.completions);
            std::mem::take(&mut state.refused)
        };
        refused.iter().for_each(|run| run.has_room());
    }
}
