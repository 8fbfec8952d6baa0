//! The list of the running queries, and the rights to see and to kill them.
//!
//! A query is in the list from its begin to its end, whichever thread runs it: [`RunningQueries::begin`] returns a
//! guard that removes it. A caller sees and kills its own queries, and all queries on graphs that it administers.
//! Killing fires the query's [`Cancellation`], in the same way as its time limit does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mangrove::{QueryFigures, QueryGauges, Tenant};
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_gremlin::Bytecode;
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::time::Instant;

use crate::access::caller::{Access, Caller};
use crate::engine::cancel::{CancelReason, Cancellation};
use crate::engine::request::QueryRequest;

/// The queries that run now, by their numbers, which are never reused.
#[derive(Debug, Default)]
pub struct RunningQueries {
    state: Mutex<RunningState>,
}

#[derive(Debug, Default)]
struct RunningState {
    running: BTreeMap<u64, RunningQuery>,
    last: u64,
}

/// A running query.
#[derive(Clone, Debug)]
pub struct RunningQuery {
    /// The number of the query, by which it is killed.
    pub id: u64,
    /// The caller that runs it.
    pub caller: Caller,
    /// The name of the graph.
    pub graph: SmolStr,
    /// The traversal source.
    pub source: SmolStr,
    /// The traversal.
    pub bytecode: Arc<Bytecode>,
    /// The begin of the query.
    pub since: Instant,
    /// The tenant that it counts for on the executors.
    pub tenant: Tenant,
    gauges: Arc<QueryGauges>,
    cancellation: Cancellation,
}

/// Removes a query from the list when it is dropped.
#[derive(Debug)]
pub struct RunningQueryGuard<'a> {
    queries: &'a RunningQueries,
    id: u64,
    since: Instant,
    gauges: Arc<QueryGauges>,
}

impl RunningQueryGuard<'_> {
    /// The time since the begin of the query.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// The places in which the engine shows the figures of the query.
    pub fn gauges(&self) -> &Arc<QueryGauges> {
        &self.gauges
    }
}

impl Drop for RunningQueryGuard<'_> {
    fn drop(&mut self) {
        self.queries.state.lock().running.remove(&self.id);
    }
}

impl RunningQueries {
    /// Adds a query of a tenant that begins on a graph.
    pub fn begin(&self, request: &QueryRequest, graph: &SmolStr, tenant: Tenant) -> RunningQueryGuard<'_> {
        let since = Instant::now();
        let gauges = Arc::default();
        let mut state = self.state.lock();
        state.last += 1;
        let id = state.last;
        let running = RunningQuery {
            id,
            caller: request.caller.clone(),
            graph: graph.clone(),
            source: request.source.clone(),
            bytecode: Arc::clone(&request.bytecode),
            since,
            tenant,
            gauges: Arc::clone(&gauges),
            cancellation: request.cancellation.clone(),
        };
        state.running.insert(id, running);
        RunningQueryGuard { queries: self, id, since, gauges }
    }

    /// The queries that a caller may know of, oldest first: its own, and all on graphs that it administers.
    pub fn seen_by(&self, caller: &Caller) -> Vec<RunningQuery> {
        self.state.lock().running.values().filter(|query| query.is_open_to(caller)).cloned().collect()
    }

    /// The number of queries that run on a graph.
    pub fn count_on(&self, graph: &str) -> usize {
        self.state.lock().running.values().filter(|query| query.graph == graph).count()
    }

    /// Kills a query, and returns it. Fails if the query has ended, or if the caller may not know of it.
    pub fn kill(&self, id: u64, caller: &Caller) -> Result<RunningQuery> {
        let state = self.state.lock();
        match state.running.get(&id).filter(|query| query.is_open_to(caller)) {
            Some(query) => {
                query.cancellation.fire(CancelReason::Killed);
                Ok(query.clone())
            }
            None => Err(unknown(id)),
        }
    }
}

/// The error for a query that is not there or that the caller may not know of: both read the same (SERVER-3).
pub(crate) fn unknown(id: u64) -> Error {
    let message = format!("no query with the number {id} runs (anymore); mangrove.queries lists those that do");
    Error::new(ErrorKind::NotFound, message)
}

impl RunningQuery {
    /// The figures of the query.
    pub fn figures(&self) -> QueryFigures {
        self.gauges.read()
    }

    /// Returns true if the query was told to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.reason().is_some()
    }

    /// Returns true if the caller may see and kill the query.
    fn is_open_to(&self, caller: &Caller) -> bool {
        let is_own = caller.is_authenticated() && caller.name() == self.caller.name();
        is_own || caller.access(&self.graph) == Some(Access::Admin)
    }
}
