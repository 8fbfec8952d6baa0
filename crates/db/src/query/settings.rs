//! The settings of one run of a query: its transaction, parameters and limits, and the services and files that it can
//! reach.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mangrove_flow::clock::Clock;
use mangrove_flow::{Interrupt, QueryLimits};
use mangrove_graph::{Error, GraphView, IdRule, MemoryBudget, Result, Value};
use mangrove_gremlin::Parameters;
use mangrove_steps::{Files, Services};
use smol_str::SmolStr;

use crate::options::Materialize;

/// Everything that one run of a query needs besides its plan.
pub(crate) struct RunSettings<'a> {
    pub transaction: &'a Arc<mangrove_txn::Transaction>,
    /// A view over the snapshot of the transaction that is read in its place, such as one that may be late.
    pub view: Option<&'a Arc<dyn GraphView>>,
    pub parameters: &'a Parameters,
    /// The literals that are no part of the plan, by number.
    pub lifted: &'a Arc<[Value]>,
    pub ids: IdRule,
    pub limits: QueryLimits,
    pub budget: &'a MemoryBudget,
    pub clock: &'a Arc<dyn Clock>,
    pub cancel: &'a Arc<AtomicBool>,
    pub interrupt: Option<&'a Interrupt>,
    /// The services that `call()` reaches; `None` if the query calls none.
    pub services: Option<Arc<dyn Services>>,
    /// The files that `io()` reaches; `None` if the query uses none.
    pub files: Option<Arc<dyn Files>>,
    /// The most threads that work on the query; 0 means as many as there are executors.
    pub workers_max: usize,
    /// What the elements in results carry.
    pub materialize: Materialize,
}

impl RunSettings<'_> {
    /// The view that operators read.
    pub fn view(&self) -> Arc<dyn GraphView> {
        match self.view {
            None => self.transaction.clone(),
            Some(view) => view.clone(),
        }
    }
}

/// Parameters as operators look them up. Elements among them become references to the elements.
pub(super) fn bind_parameters(
    parameters: &Parameters,
    ids: IdRule,
    view: &dyn GraphView,
    into: &mut Vec<(SmolStr, Value)>,
) -> Result<()> {
    parameters.iter().try_for_each(|(name, value)| {
        into.push((name.clone(), attach(value, ids, view)?));
        Ok(())
    })
}

/// Replaces a detached vertex or edge, also one in a list or a set, by the element with its id. An element that does
/// not exist becomes null and matches nothing. A property stays as it is, because its value can be compared with.
fn attach(value: &Value, ids: IdRule, view: &dyn GraphView) -> Result<Value> {
    use mangrove_graph::Detached;
    let is_detached = |item: &Value| matches!(item, Value::Detached(_));
    let detached = match value {
        Value::Detached(detached) => detached,
        Value::List(items) if items.iter().any(is_detached) => {
            return Ok(Value::list(items.iter().map(|item| attach(item, ids, view)).collect::<Result<_>>()?));
        }
        Value::Set(items) if items.iter().any(is_detached) => {
            let items = items.iter().map(|item| attach(item, ids, view)).collect::<Result<Vec<_>>>()?;
            return Ok(Value::list(items));
        }
        _ => return Ok(value.clone()),
    };
    let user_id =
        |id: &Value| ids.read(id).ok_or_else(|| Error::invalid(format!("a {} is no id of an element", id.type_name())));
    match &**detached {
        Detached::Vertex { id, .. } => {
            let mut found = Vec::new();
            view.find_vertices(&[user_id(id)?], &mut found)?;
            Ok(found.pop().flatten().map_or(Value::Null, Value::Vertex))
        }
        Detached::Edge { id, .. } => {
            let mut found = Vec::new();
            view.find_edges(&[user_id(id)?], &mut found)?;
            Ok(found.pop().flatten().map_or(Value::Null, Value::Edge))
        }
        Detached::VertexProperty(_) | Detached::Property { .. } => Ok(value.clone()),
    }
}
