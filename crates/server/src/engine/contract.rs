//! The traits between the server and a graph engine.
//!
//! The engine is synchronous: the server calls it on blocking threads, many at once. The server tells it when to stop
//! (`QueryRequest::cancel`, `timeout`). The engine pushes results into a [`ResultSink`], which may block to hold the
//! engine back while the client is slow. If a request fails after it has begun to write, its transaction fails with it
//! ([`EngineTransaction::fail_since`]).

use mangrove::FollowStatus;
pub use mangrove::script::ResultSink;
use mangrove::{ChangeLine, FeedPosition};
use mangrove_graph::{Error, MemoryBudget, Result};
use smol_str::SmolStr;

use super::request::QueryRequest;
use super::running::{self, RunningQuery};
use crate::access::caller::Caller;

/// What a change feed is asked for.
#[derive(Clone, Debug)]
pub struct ChangesRequest {
    /// The traversal source of the graph.
    pub source: SmolStr,
    /// The position after which the feed begins; `None`: the oldest one of the log.
    pub from: Option<FeedPosition>,
    /// True if values are written without their types.
    pub plain: bool,
}

/// An open change feed. Each call returns the next lines, some of them at a time; none if nothing more is durable at
/// the moment. After an error it is not called again. It does not hold its graph open.
pub type ChangeReader = Box<dyn FnMut() -> Result<Vec<ChangeLine>> + Send>;

/// A graph engine that the server offers to clients.
pub trait Engine: Send + Sync + 'static {
    /// The traversal sources (`g`, `gsi`, …) that the caller may use. Called for every request, so it must be cheap.
    fn sources(&self, caller: &Caller) -> Vec<SmolStr>;

    /// The memory budget of the process. The engine draws on it, and the server does for messages.
    fn memory_budget(&self) -> MemoryBudget {
        MemoryBudget::unlimited()
    }

    /// Opens the change feed of the graph of one of [`sources`](Self::sources).
    fn changes(&self, _request: ChangesRequest, _caller: &Caller) -> Result<ChangeReader> {
        Err(Error::unsupported("this server has no change feed"))
    }

    /// Begins a transaction on one of [`sources`](Self::sources).
    fn begin(&self, source: &str, caller: &Caller) -> Result<Box<dyn EngineTransaction>>;

    /// Runs one request as one transaction, which is committed when this returns `Ok`. For a request that writes the
    /// engine has the sink [hold](ResultSink::hold) the results and [seal](ResultSink::seal) them before it commits. So
    /// an [`ErrorKind::Conflict`](mangrove_graph::ErrorKind::Conflict) is met before any result is out, and the server
    /// may run the request again; and nothing that could still go wrong with the results is left for after the commit.
    fn run(&self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()>;

    /// Notes that the server runs a request on this source again after a conflict. An engine may count it.
    fn note_retry(&self, _source: &str) {}

    /// The graphs that the caller may read and that take no writes now, each as the name of its first source and the
    /// cause. For `/health`.
    fn read_only(&self, _caller: &Caller) -> Vec<(SmolStr, String)> {
        Vec::new()
    }

    /// The graphs that the caller may read and whose owner, another process, this server follows. For `/health`.
    fn following(&self, _caller: &Caller) -> Vec<(SmolStr, FollowStatus)> {
        Vec::new()
    }

    /// The running queries that the caller may know of, oldest first.
    fn running(&self, _caller: &Caller) -> Vec<RunningQuery> {
        Vec::new()
    }

    /// Kills a running query that the caller may know of.
    fn kill(&self, id: u64, _caller: &Caller) -> Result<RunningQuery> {
        Err(running::unknown(id))
    }

    /// The metrics of the graphs that the caller may read, in Prometheus' text format.
    fn metrics(&self, _caller: &Caller) -> String {
        String::new()
    }
}

/// An open transaction. Dropping it rolls it back.
pub trait EngineTransaction: Send {
    /// Runs a query inside the transaction. If the query may write, the engine has the sink [hold](ResultSink::hold)
    /// its results first.
    fn run(&mut self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()>;

    /// A mark that grows with every write of the transaction; 0 before the first.
    fn write_mark(&self) -> usize {
        0
    }

    /// Notes that a request failed which began at this mark. If the transaction has written since, the engine rolls it
    /// back and refuses every later call in it. Returns true if it has done so.
    fn fail_since(&mut self, _mark: usize, _error: &Error) -> bool {
        false
    }

    /// Commits for a caller, who must still have the right to write. After an error the transaction has not happened,
    /// unless the error's kind is [`OutcomeUnknown`](mangrove_graph::ErrorKind::OutcomeUnknown).
    fn commit(self: Box<Self>, caller: &Caller) -> Result<()>;

    /// Rolls the transaction back.
    fn rollback(self: Box<Self>);
}
