//! A view whose reads are late, by a seed: it completes them in random order, early, twice, with an error, or never
//! after they were forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mangrove_graph::{Completions, Elements, Error, Hold, LateReads, Need, Result, Ticket, VertexId, Want};
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

/// The reads of vertices of a test: each must be asked for ([`LateReads`]), and is then at hand while a hold lives.
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
    /// By vertex: the holds that keep it at hand.
    pinned: HashMap<VertexId, u32>,
    counts: ReadCounts,
}

struct Submitted {
    ticket: Ticket,
    vertices: Vec<VertexId>,
    completions: Arc<dyn Completions>,
}

/// What a view has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Tickets under way.
    pub tickets: usize,
    /// The most tickets that were under way at a time.
    pub tickets_max: usize,
    /// Tickets completed, doubled completions left out.
    pub completed: usize,
    /// Tickets that runs have forgotten.
    pub forgotten: usize,
    /// Elements at hand, with repetitions.
    pub pinned: usize,
}

/// The ended tickets that a view remembers, to complete them again.
const ENDED_MAX: usize = 64;

/// Keeps vertices at hand.
struct Pin {
    reader: LateReader,
    vertices: Vec<VertexId>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let refused = {
            let mut state = self.reader.state();
            for vertex in &self.vertices {
                if let Some(count) = state.pinned.get_mut(vertex) {
                    *count -= 1;
                    if *count == 0 {
                        state.pinned.remove(vertex);
                    }
                }
            }
            state.counts.pinned -= self.vertices.len();
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
        match self.state().pinned.contains_key(&vertex) {
            true => Ok(()),
            false => Err(Error::bug(format!("{vertex:?} is read, but was not asked for"))),
        }
    }

    /// Returns what the view has seen.
    pub fn counts(&self) -> ReadCounts {
        let state = self.state();
        ReadCounts { tickets: state.submitted.len(), ..state.counts }
    }

    fn pin(&self, vertices: Vec<VertexId>) -> Hold {
        let bytes = 8 * vertices.len() as u64;
        let mut state = self.state();
        for vertex in &vertices {
            *state.pinned.entry(*vertex).or_default() += 1;
        }
        state.counts.pinned += vertices.len();
        drop(state);
        Hold::new(Pin { reader: self.clone(), vertices }, bytes)
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
        let Submitted { ticket, vertices, completions } = read;
        state.counts.completed += 1;
        let fails = state.random.random_bool(self.habits.fails);
        drop(state);
        let outcome = if fails { Err(Error::evaluation("a read has failed")) } else { Ok(self.pin(vertices)) };
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
}

/// The vertices that a need names.
fn vertices(need: &Need<'_>) -> Result<Vec<VertexId>> {
    match need {
        Need::Values { of: Elements::Vertices(vertices), .. } => Ok(vertices.to_vec()),
        other => Err(Error::bug(format!("a test reads values of vertices, not {other:?}"))),
    }
}

impl LateReads for LateReader {
    fn want(&self, need: &Need<'_>, ticket: Ticket, completions: &Arc<dyn Completions>) -> Result<Want> {
        let vertices = vertices(need)?;
        let mut state = self.state();
        if state.random.random_bool(self.habits.at_hand) {
            drop(state);
            return Ok(Want::Ready(self.pin(vertices)));
        }
        if state.random.random_bool(self.habits.full) {
            drop(state);
            completions.has_room();
            return Ok(Want::Full);
        }
        let under_way: usize = state.submitted.iter().map(|read| read.vertices.len()).sum();
        let used = state.counts.pinned + under_way;
        if self.habits.room > 0 && used > 0 && used + vertices.len() > self.habits.room {
            state.refused.push(completions.clone());
            return Ok(Want::Full);
        }
        let answer = Want::Submitted { reads: vertices.len() as u32, bytes: 8 * vertices.len() as u64 };
        let read = Submitted { ticket, vertices, completions: completions.clone() };
        if state.random.random_bool(self.habits.early) {
            self.complete(state, read);
            return Ok(answer);
        }
        state.submitted.push(read);
        state.counts.tickets_max = state.counts.tickets_max.max(state.submitted.len());
        Ok(answer)
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
