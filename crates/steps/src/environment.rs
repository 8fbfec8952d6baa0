//! What the operators of one run of a query share.
//!
//! A plan's operators outlive a run; what is here belongs to one. So no operator keeps it: the dataflow shows it with
//! every call ([`Output::surroundings`](mangrove_flow::Output::surroundings)), and what an operator looks up for a whole
//! run it looks up when the run begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use mangrove_flow::QueryContext;
use mangrove_graph::{Error, ErrorKind, GraphView, IdRule, Result, Share, UserId, Value};
use mangrove_gremlin::Operator;
use mangrove_plan::PhysicalPlan;
use mangrove_plan::files::FileFormat;
use mangrove_plan::logical::{Name, Operand};
use mangrove_plan::physical::{PathRequirement, Requirements};
use mangrove_txn::Transaction;
use parking_lot::Mutex;

use crate::nesting;

/// What the operators of one node of a running query share.
pub struct Environment {
    /// The graph as the query's transaction sees it.
    pub view: Arc<dyn GraphView>,
    /// The transaction, where the query may write.
    pub writer: Option<Arc<Transaction>>,
    /// The values of the plan's parameters.
    pub parameters: Vec<(Name, Value)>,
    /// The literals that were taken out of the traversal before it was planned, by number.
    pub lifted: Arc<[Value]>,
    /// Which tablets this node reads.
    pub share: Share,
    /// How ids are read.
    pub ids: IdRule,
    /// What every row carries.
    pub requirements: Arc<Requirements>,
    /// Side effects by name.
    pub side_effects: SideEffects,
    /// The services that `call()` may name, where the query calls any.
    pub services: Option<Arc<dyn Services>>,
    /// The files that `io()` may name, where the query reads or writes any.
    pub files: Option<Arc<dyn Files>>,
}

/// What `call()` reaches: services of the database beyond its graph.
pub trait Services: Send + Sync {
    /// Calls a service (`None`: the one that lists them) with what it is given; its results in order. An unknown
    /// name or setting is an error that says which there are.
    fn call(&self, service: Option<&str>, arguments: &[(Name, Value)]) -> Result<Vec<Value>>;
}

/// What `io()` reaches: files that whoever runs the database lets traversals read and write.
pub trait Files: Send + Sync {
    /// Adds what is in a file to the graph, as writes of the transaction; the caller ends the statement. What the
    /// reading holds besides the graph is charged to the query, and its limits are looked at on the way.
    fn read(&self, path: &str, format: FileFormat, writer: &Transaction, context: &QueryContext) -> Result<()>;

    /// Writes the graph as it is seen to a file, which is there when it is whole and replaces what it was before.
    fn write(&self, path: &str, format: FileFormat, view: &dyn GraphView, context: &QueryContext) -> Result<()>;
}

impl Environment {
    /// Gives the side effects that a plan begins with their values.
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

    /// The value of an operand.
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
        read.ok_or_else(|| Error::invalid(format!("a {} is no id of an element", id.type_name())))
    }

    /// A whole number that an operand must be.
    pub fn resolve_integer(&self, operand: &Operand, what: &str) -> Result<i64> {
        let value = self.resolve(operand)?;
        mangrove_graph::numeric::integer(&value)
            .ok_or_else(|| Error::invalid(format!("{what} must be a whole number, not a {}", value.type_name())))
    }

    /// The transaction to write with.
    pub fn writer(&self) -> Result<&Arc<Transaction>> {
        self.writer.as_ref().ok_or_else(|| Error::invalid("this transaction is read-only: begin one that may write"))
    }

    /// The sacks of so many rows that begin here, where rows have any.
    pub fn fresh_sacks(&self, count: usize) -> Option<Vec<Value>> {
        self.requirements.sacks.then(|| vec![self.side_effects.sack.lock().clone(); count])
    }

    /// Whether rows remember whole paths (and not only labeled objects).
    pub fn whole_paths(&self) -> bool {
        self.requirements.path == PathRequirement::Full
    }

    /// Whether rows have a path column.
    pub fn paths(&self) -> bool {
        self.requirements.path != PathRequirement::None
    }
}

/// The side effects of one query: named values that operators share.
#[derive(Default)]
pub struct SideEffects {
    values: Mutex<HashMap<Name, Value, foldhash::fast::RandomState>>,
    reducers: Mutex<Vec<(Name, Operator)>>,
    /// What a sack is in the beginning.
    sack: Mutex<Value>,
    /// How often a value was changed.
    changes: AtomicU64,
}

impl SideEffects {
    /// How values are folded into a side effect, if it was given a reducer.
    pub fn reducer(&self, name: &str) -> Option<Operator> {
        self.reducers.lock().iter().find(|(known, _)| known == name).map(|(_, operator)| *operator)
    }

    /// A number that is another one after every change: what was worked out under it may depend on the values of then.
    pub fn version(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The value under a name.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.values.lock().get(name).cloned()
    }

    /// Puts an empty map under a name that has no value yet, if there is a name.
    pub fn begin_map(&self, name: Option<&Name>) -> Result<()> {
        match name {
            Some(name) => self.update(name, |old| Ok(old.unwrap_or_else(|| Value::map(Vec::new())))),
            None => Ok(()),
        }
    }

    /// Changes the value under a name; `None` where there is none yet.
    pub fn update(&self, name: &Name, change: impl FnOnce(Option<Value>) -> Result<Value>) -> Result<()> {
        let mut values = self.values.lock();
        let old = values.remove(name);
        let new = change(old)?;
        values.insert(name.clone(), new);
        self.changes.fetch_add(1, Ordering::Release);
        Ok(())
    }
}
