//! What the server needs of a graph engine, and nothing else.
//!
//! The engine is synchronous: the server calls it on blocking threads, many at once. It is told when to
//! stop (`cancel`, `timeout`) and pushes what it finds into a [`ResultSink`], which may block to hold the
//! engine back while the client is slow. A request that fails after it has begun to write takes its transaction along
//! ([`EngineTransaction::fail_since`]).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use mangrove::script::ResultSink;
use mangrove_graph::{Error, MemoryBudget, Result};
use mangrove_gremlin::Bytecode;
use mangrove_gremlin::parameters::Parameters;
use smol_str::SmolStr;

use crate::access::Caller;
use crate::cancel::Cancellation;
use crate::queries::{self, Running};

/// A graph engine behind the server.
pub trait Engine: Send + Sync + 'static {
    /// The traversal sources it offers (`g`, `gsi`, …) to one who asks. Called for every request: cheap.
    fn sources(&self, caller: &Caller) -> Vec<SmolStr>;

    /// The memory budget of the process that the engine draws on, and the server with it for messages.
    fn memory_budget(&self) -> MemoryBudget {
        MemoryBudget::unlimited()
    }

    /// Begins a transaction on one of [`sources`](Self::sources).
    fn begin(&self, source: &str, caller: &Caller) -> Result<Box<dyn EngineTransaction>>;

    /// Runs one request as one transaction, which is committed when this returns `Ok`. For a request that writes the engine has the
    /// sink [hold](ResultSink::hold) the results and [seal](ResultSink::seal) them before it commits. So an
    /// [`ErrorKind::Conflict`](mangrove_graph::ErrorKind::Conflict) is met before any result is out, and the server may run the
    /// request again; and nothing that could still go wrong with the results is left for after the commit.
    fn run(&self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()>;

    /// The server runs a request on this source again after a conflict. An engine may count it.
    fn note_retry(&self, _source: &str) {}

    /// Why a graph that one who asks may read takes no writes now, with the name of its first source; none where all do. For
    /// `/health`.
    fn read_only(&self, _caller: &Caller) -> Vec<(SmolStr, String)> {
        Vec::new()
    }

    /// The queries that run now and that one who asks may know of, oldest first.
    fn running(&self, _caller: &Caller) -> Vec<Running> {
        Vec::new()
    }

    /// Ends one of them.
    fn kill(&self, id: u64, _caller: &Caller) -> Result<Running> {
        Err(queries::unknown(id))
    }

    /// What the engine has to report at `/metrics`, in Prometheus' text format: of the graphs that the caller may read.
    fn metrics(&self, _caller: &Caller) -> String {
        String::new()
    }
}

/// An open transaction. Dropping it rolls it back.
pub trait EngineTransaction: Send {
    /// Runs a query inside the transaction. If the query may write, the engine has the sink [hold](ResultSink::hold) its results
    /// first.
    fn run(&mut self, request: &QueryRequest, sink: &mut dyn ResultSink) -> Result<()>;

    /// How much the transaction has written.
    fn write_mark(&self) -> usize {
        0
    }

    /// A request failed that began when the transaction had written as much as the mark. If it has written more since, the
    /// engine rolls the transaction back, and refuses every later call in it. Returns true if it has done so.
    fn fail_since(&mut self, _mark: usize, _error: &Error) -> bool {
        false
    }

    /// Commits for a caller, who must still have the right to what the transaction has written. After an error nothing of it has happened, unless its kind is
    /// [`OutcomeUnknown`](mangrove_graph::ErrorKind::OutcomeUnknown).
    fn commit(self: Box<Self>, caller: &Caller) -> Result<()>;

    /// Undoes everything.
    fn rollback(self: Box<Self>);
}

/// One query for the engine.
#[derive(Clone, Debug)]
pub struct QueryRequest {
    /// Who asks. What they may not do is refused with [`ErrorKind::Forbidden`](mangrove_graph::ErrorKind::Forbidden).
    pub caller: Caller,
    /// The traversal source, one of [`Engine::sources`].
    pub source: SmolStr,
    /// The traversal.
    pub bytecode: Arc<Bytecode>,
    /// Values of the parameters the traversal names.
    pub parameters: Parameters,
    /// Whether the plan is asked for and not the results.
    pub explain: bool,
    /// How long it may run; `None` for as long as it takes.
    pub timeout: Option<Duration>,
    /// Set when nobody waits for the results anymore. The engine looks at it every few milliseconds and
    /// ends with [`ErrorKind::Cancelled`](mangrove_graph::ErrorKind::Cancelled).
    pub cancel: Arc<AtomicBool>,
    /// The means to set it, with the reason.
    pub cancellation: Cancellation,
    /// What elements in the results carry.
    pub materialize: Materialize,
}

/// What elements in the results carry (`materializeProperties`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Materialize {
    /// Id, label and properties.
    #[default]
    All,
    /// Id and label.
    Tokens,
}
