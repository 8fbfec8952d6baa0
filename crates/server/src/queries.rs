//! The queries that run now: listed, and killed, by those who may.
//!
//! A query is here from its first message to its last, whoever runs it: [`Queries::begin`] gives a guard that takes it
//! out again. Killing fires the query's [`Cancellation`], the same way as its time limit does; the engine and a sink
//! that waits for a slow client both notice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_gremlin::Bytecode;
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::time::Instant;

use crate::access::{Access, Caller};
use crate::cancel::{Cancellation, Reason};
use crate::engine::QueryRequest;

/// The queries that run now, by number.
#[derive(Debug, Default)]
pub struct Queries {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: BTreeMap<u64, Running>,
    last: u64,
}

/// A query that runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its number.
    pub id: u64,
    /// Who asked.
    pub caller: Caller,
    /// The graph.
    pub graph: SmolStr,
    /// The traversal source.
    pub source: SmolStr,
    /// What it is.
    pub bytecode: Arc<Bytecode>,
    /// Since when.
    pub since: Instant,
    cancellation: Cancellation,
}

/// Takes a query out of the list when it ends.
#[derive(Debug)]
pub struct Guard<'a> {
    queries: &'a Queries,
    id: u64,
    since: Instant,
}

impl Guard<'_> {
    /// How long it has run.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.queries.state.lock().running.remove(&self.id);
    }
}

impl Queries {
    /// Notes a query on a graph that begins.
    pub fn begin(&self, request: &QueryRequest, graph: &SmolStr) -> Guard<'_> {
        let since = Instant::now();
        let mut state = self.state.lock();
        state.last += 1;
        let id = state.last;
        let running = Running {
            id,
            caller: request.caller.clone(),
            graph: graph.clone(),
            source: request.source.clone(),
            bytecode: Arc::clone(&request.bytecode),
            since,
            cancellation: request.cancellation.clone(),
        };
        state.running.insert(id, running);
        Guard { queries: self, id, since }
    }

    /// The queries that a caller may know of, oldest first: its own, and all on graphs it administers.
    pub fn seen_by(&self, caller: &Caller) -> Vec<Running> {
        self.state.lock().running.values().filter(|query| query.belongs_to(caller)).cloned().collect()
    }

    /// How many run on a graph.
    pub fn count_on(&self, graph: &str) -> usize {
        self.state.lock().running.values().filter(|query| query.graph == graph).count()
    }

    /// Stops a query.
    pub fn kill(&self, id: u64, caller: &Caller) -> Result<Running> {
        let state = self.state.lock();
        match state.running.get(&id).filter(|query| query.belongs_to(caller)) {
            Some(query) => {
                query.cancellation.fire(Reason::Killed);
                Ok(query.clone())
            }
            None => Err(unknown(id)),
        }
    }
}

/// There is no such query, or the caller may not know of it.
pub(crate) fn unknown(id: u64) -> Error {
    let message = format!("no query with the number {id} runs (anymore); mangrove.queries lists those that do");
    Error::new(ErrorKind::NotFound, message)
}

impl Running {
    /// Whether it has been told to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.reason().is_some()
    }

    fn belongs_to(&self, caller: &Caller) -> bool {
        let is_own = caller.is_authenticated() && caller.name() == self.caller.name();
        is_own || caller.access(&self.graph) == Some(Access::Admin)
    }
}
