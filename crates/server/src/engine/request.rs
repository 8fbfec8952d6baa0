//! One query for the engine: the traversal, who asks, and the limits.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mangrove_gremlin::Bytecode;
use mangrove_gremlin::parameters::Parameters;
use smol_str::SmolStr;

use super::cancel::Cancellation;
use crate::access::caller::Caller;

/// One query for the engine.
#[derive(Clone, Debug)]
pub struct QueryRequest {
    /// The caller. The engine refuses what exceeds the caller's rights with
    /// [`ErrorKind::Forbidden`](mangrove_graph::ErrorKind::Forbidden).
    pub caller: Caller,
    /// The traversal source, one of [`Engine::sources`](super::contract::Engine::sources).
    pub source: SmolStr,
    /// The traversal.
    pub bytecode: Arc<Bytecode>,
    /// Values of the parameters the traversal names.
    pub parameters: Parameters,
    /// True if the client asks for the plan instead of the results.
    pub explain: bool,
    /// The time limit; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Set to stop the query. The engine looks at it every few milliseconds and ends with
    /// [`ErrorKind::Cancelled`](mangrove_graph::ErrorKind::Cancelled).
    pub cancel: Arc<AtomicBool>,
    /// Sets `cancel`, with the reason.
    pub cancellation: Cancellation,
    /// How much of the elements in the results is sent.
    pub materialize: Materialize,
}

/// How much of the elements in the results is sent (`materializeProperties`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Materialize {
    /// Id, label and properties.
    #[default]
    All,
    /// Id and label.
    Tokens,
}
