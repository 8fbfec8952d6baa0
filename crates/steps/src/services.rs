//! The services of `call()`, as operators reach them; and the threads that work on algorithms.
//!
//! `call()` runs once for each row. What a service does, which services there are and who may call them is up to the
//! implementor of [`Services`]: the database, or the server around it.

use std::sync::Arc;

use mangrove_analytics::registry::{MemoryEstimate, StateBytes};
use mangrove_analytics::{Projection, ProjectionOptions, Team};
use mangrove_flow::QueryControl;
use mangrove_graph::{GraphView, Result, Value};
use mangrove_plan::logical::Name;

/// One call of a service.
pub struct ServiceCall<'a> {
    /// The graph as the caller's transaction sees it.
    pub view: &'a dyn GraphView,
    /// The limits of the query. A service that takes long checks them; a service that holds much memory charges it
    /// here.
    pub control: &'a Arc<QueryControl>,
    /// The most threads that work on an algorithm; 0 means as many as there are executors.
    pub workers_max: usize,
    /// The object of the row. Null in a call that starts a traversal.
    pub object: &'a Value,
    /// The arguments in the order in which they were given. Of two with one name, the later one counts.
    pub arguments: &'a [(Name, Value)],
}

/// The results of a call, in order.
pub enum ServiceResults {
    /// All of them.
    All(Vec<Value>),
    /// A batch at a time.
    Batches(Box<dyn ResultBatches>),
}

/// Results that a service hands over a batch at a time. If nothing reads them any more, as after a `limit()`, they are dropped.
pub trait ResultBatches: Send + std::fmt::Debug {
    /// The next results, about as many as a message has rows; none at the end.
    fn next(&mut self) -> Result<Vec<Value>>;

    /// About how many bytes are held.
    fn bytes(&self) -> u64;
}

/// The services that `call()` can name.
pub trait Services: Send + Sync {
    /// Calls a service and returns its results; `None` names the service that lists all services. An unknown
    /// service or argument is an error that says which there are.
    fn call(&self, service: Option<&str>, call: &ServiceCall<'_>) -> Result<ServiceResults>;

    /// The threads that work on an algorithm of a query, at most so many; 0 means as many as there are executors.
    fn team(&self, control: Arc<QueryControl>, workers_max: usize) -> Result<Team>;

    /// The memory of an algorithm of a query.
    fn estimate(&self, view: &dyn GraphView, options: &ProjectionOptions, state: StateBytes) -> MemoryEstimate;

    /// What an algorithm of a query reads.
    fn projection(&self, view: &dyn GraphView, options: &ProjectionOptions, team: &Team) -> Result<Arc<Projection>>;
}
