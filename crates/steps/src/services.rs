//! The services of `call()`, as operators reach them.
//!
//! `call()` runs once for each row. What a service does, which services there are and who may call them is up to the
//! implementor of [`Services`]: the database, or the server around it.

use mangrove_flow::QueryControl;
use mangrove_graph::{GraphView, Result, Value};
use mangrove_plan::logical::Name;

/// One call of a service.
pub struct ServiceCall<'a> {
    /// The graph as the caller's transaction sees it.
    pub view: &'a dyn GraphView,
    /// The limits of the query. A service that takes long checks them; a service that holds much memory charges it
    /// here.
    pub control: &'a QueryControl,
    /// The object of the row. Null in a call that starts a traversal.
    pub object: &'a Value,
    /// The arguments in the order in which they were given. Of two with one name, the later one counts.
    pub arguments: &'a [(Name, Value)],
}

/// The services that `call()` can name.
pub trait Services: Send + Sync {
    /// Calls a service and returns its results in order; `None` names the service that lists all services. An unknown
    /// service or argument is an error that says which there are.
    fn call(&self, service: Option<&str>, call: &ServiceCall<'_>) -> Result<Vec<Value>>;
}
