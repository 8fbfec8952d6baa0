//! The execution context: the state and the services that the operators of one run share.
//!
//! The operators of a plan outlive a run; the context belongs to one. So no operator keeps it (FLOW-4): the dataflow
//! shows it with every call ([`Output::context`](mangrove_flow::Output::context)), and an operator looks up values that
//! hold for a whole run when the run begins. The side effects are behind locks that are held for one update.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mangrove_flow::QueryControl;
use mangrove_graph::{Error, ErrorKind, FastMap, GraphView, IdRule, Result, Share, UserId, Value};
use mangrove_gremlin::Operator;
use mangrove_plan::PhysicalPlan;
use mangrove_plan::files::FileFormat;
use mangrove_plan::logical::{Name, Operand};
use mangrove_plan::physical::{PathRequirement, Requirements};
use mangrove_txn::Transaction;
use parking_lot::Mutex;

use crate::context::type_name::a_type;
use crate::limits::nesting;
use crate::overlay::Overlay;
use crate::services::Services;

/// The part of an element that its copy holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Id and label.
    Reference,
    /// Id, label and properties.
    Properties,
    /// Id, label and properties; a vertex property with its current meta-properties: the transaction may have written
    /// some since the property was read.
    Current,
}

/// The state that the operators of one run share on one node.
pub struct ExecutionContext {
    /// The graph as the transaction of the query sees it.
    pub view: Arc<dyn GraphView>,
    /// The transaction; `None` if it is read-only.
    pub writer: Option<Arc<Transaction>>,
    /// The values of the plan's parameters.
    pub parameters: Vec<(Name, Value)>,
    /// The literals that were lifted out of the traversal before it was planned, by number.
    pub lifted: Arc<[Value]>,
    /// The tablets that this node reads.
    pub share: Share,
    /// The rule by which values are read as user ids.
    pub ids: IdRule,
    /// The columns that every row carries.
    pub requirements: Arc<Requirements>,
    /// Side effects by name.
    pub side_effects: SideEffects,
    /// The values that algorithms find, which `view` shows; `None` if the plan has no algorithm that finds some.
    pub overlay: Option<Arc<Overlay>>,
    /// The most threads that work on an algorithm; 0 means as many as there are executors.
    pub workers_max: usize,
    /// The services that `call()` may name; `None` if the query calls none.
    pub services: Option<Arc<dyn Services>>,
    /// The files that `io()` may name; `None` if the query uses none.
    pub files: Option<Arc<dyn Files>>,
    /// What the elements in results carry, for helpers, which read it before they send results home; `None`: nothing.
    pub results: Option<Detail>,
    /// True if the reader of the results takes columns: [`ExecutionContext::take_columns`].
    pub columns: AtomicBool,
}

/// The files that `io()` reaches: the files that the administrator of the database lets traversals read and write.
pub trait Files: Send + Sync {
    /// Adds the elements of a file to the graph, as writes of the transaction. The caller ends the statement. Memory
    /// besides the graph is charged to the query, whose limits are checked on the way.
    fn read(&self, path: &str, format: FileFormat, writer: &Transaction, control: &QueryControl) -> Result<()>;

    /// Writes the graph that the view shows to a file. The file appears when it is complete, and replaces an earlier
    /// one.
    fn write(&self, path: &str, format: FileFormat, view: &dyn GraphView, control: &QueryControl) -> Result<()>;
}

impl ExecutionContext {
    /// From here on, the last operator may leave its results as columns: maps of [`Rows::computed`](crate::Rows), and
    /// [`ObjectColumn::Numbers`](crate::ObjectColumn). Earlier results may be values.
    pub fn take_columns(&self) {
        // Relaxed: both forms of results mean the same.
        self.columns.store(true, Ordering::Relaxed);
    }

    /// Returns true if results may be columns.
    pub(crate) fn takes_columns(&self) -> bool {
        self.columns.load(Ordering::Relaxed)
    }

    /// Sets the initial side effects, reducers and sack of a plan.
    pub fn seed(&self, plan: &PhysicalPlan) -> Result<()> {
        self.parameters.iter().try_for_each(|(name, value)| nesting::check_parameter(name, value))?;
        self.side_effects.reducers.lock().clone_from(&plan.reducers);
        if let Some(operand) = &plan.sack {
            *self.side_effects.sack.lock() = self.resolve(operand)?;
        }
        plan.side_effects.iter().try_for_each(|(name, operand)| {
            let value = self.resolve(operand)?;
            self.side_effects.update(name, |_| Ok(value))
        })
    }

    /// Returns the value of an operand.
    pub fn resolve(&self, operand: &Operand) -> Result<Value> {
        match operand {
            Operand::Literal(value) => Ok(value.clone()),
            Operand::Lifted(number) => {
                let found = self.lifted.get(*number as usize).cloned();
                found.ok_or_else(|| Error::bug("a plan is run without a literal that was taken out of its traversal"))
            }
            Operand::List(operands) => {
                Ok(Value::list(operands.iter().map(|o| self.resolve(o)).collect::<Result<_>>()?))
            }
            Operand::Map(entries) => {
                let entry = |(key, value): &(Operand, Operand)| Ok((self.resolve(key)?, self.resolve(value)?));
                Ok(Value::map(entries.iter().map(entry).collect::<Result<_>>()?))
            }
            Operand::Vertex(id) => {
                let mut found = Vec::new();
                self.view.find_vertices(&[self.user_id(id)?], &mut found)?;
                Ok(found.pop().flatten().map_or(Value::Null, Value::Vertex))
            }
            Operand::Edge(id) => {
                let mut found = Vec::new();
                self.view.find_edges(&[self.user_id(id)?], &mut found)?;
                Ok(found.pop().flatten().map_or(Value::Null, Value::Edge))
            }
            Operand::Parameter(name) => {
                let found = self.parameters.iter().find(|(n, _)| n == name);
                found.map(|(_, value)| value.clone()).ok_or_else(|| {
                    Error::new(
                        ErrorKind::InvalidArgument,
                        format!("the parameter `{name}` has no value; give it one with the request"),
                    )
                })
            }
        }
    }

    fn user_id(&self, id: &Value) -> Result<UserId> {
        let read = self.ids.read(id);
        read.ok_or_else(|| Error::invalid(format!("{} is no id of an element", a_type(id))))
    }

    /// Returns the value of an operand that must be a whole number. `what` names it in the error.
    pub fn resolve_integer(&self, operand: &Operand, what: &str) -> Result<i64> {
        let value = self.resolve(operand)?;
        mangrove_graph::numeric::integer(&value)
            .ok_or_else(|| Error::invalid(format!("{what} must be a whole number, not {}", a_type(&value))))
    }

    /// Returns the transaction to write with. Fails if it is read-only.
    pub fn writer(&self) -> Result<&Arc<Transaction>> {
        self.writer.as_ref().ok_or_else(|| Error::invalid("this transaction is read-only: begin one that may write"))
    }

    /// Returns the initial sacks of `count` new rows; `None` if rows have no sack.
    pub fn fresh_sacks(&self, count: usize) -> Option<Vec<Value>> {
        self.requirements.sacks.then(|| vec![self.side_effects.sack.lock().clone(); count])
    }

    /// Returns true if paths remember all objects, not only labeled ones.
    pub fn whole_paths(&self) -> bool {
        self.requirements.path == PathRequirement::Full
    }

    /// Returns true if rows have a path column.
    pub fn paths(&self) -> bool {
        self.requirements.path != PathRequirement::None
    }
}

/// The side effects of one run: named values that operators share.
#[derive(Default)]
pub struct SideEffects {
    values: Mutex<FastMap<Name, Value>>,
    reducers: Mutex<Vec<(Name, Operator)>>,
    /// The initial value of a sack.
    sack: Mutex<Value>,
    /// The number of changes so far.
    changes: AtomicU64,
}

impl SideEffects {
    /// Returns the operator by which values are folded into a side effect; `None` if it has no reducer.
    pub fn reducer(&self, name: &str) -> Option<Operator> {
        self.reducers.lock().iter().find(|(known, _)| known == name).map(|(_, operator)| *operator)
    }

    /// Returns a number that changes with every change of a side effect. An answer that was found under another
    /// version may be stale (STEPS-4).
    pub fn version(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns the value under a name.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.values.lock().get(name).cloned()
    }

    /// Calls `look` with the value under a name.
    pub fn with<R>(&self, name: &str, look: impl FnOnce(Option<&Value>) -> R) -> R {
        look(self.values.lock().get(name))
    }

    /// Puts an empty map under the name, if one is given and has no value yet.
    pub fn begin_map(&self, name: Option<&Name>) -> Result<()> {
        match name {
            Some(name) => self.update(name, |old| Ok(old.unwrap_or_else(|| Value::map(Vec::new())))),
            None => Ok(()),
        }
    }

    /// Changes the value under a name. `change` gets `None` if there is none yet.
    pub fn update(&self, name: &Name, change: impl FnOnce(Option<Value>) -> Result<Value>) -> Result<()> {
        let mut values = self.values.lock();
        let old = values.remove(name);
        let new = change(old)?;
        values.insert(name.clone(), new);
        self.changes.fetch_add(1, Ordering::Release);
        Ok(())
    }
}
