//! Threads that run queries in turns.
//!
//! A query is a [`Task`]. An executor runs it for one turn and puts it back into the queue, which chooses the next one
//! fairly: among [tenants](Tenant) by their weights, and among the queries of a tenant equally. So a short query beside
//! many heavy ones waits for few turns. A task that cannot go on, because the client reads its results slowly, leaves
//! the queue until it is woken. An executor without work looks for some for a moment and then sleeps.
//!
//! | module | holds |
//! |---|---|
//! | `fair_queue` | the order of the waiting tasks; no threads, no locks |
//! | `task` | a task and its states |
//! | `idle` | the executors that are parked, and the one that spins |
//! | `scheduler` | the queue with its lock, and the loop of an executor |
//! | `executors` | the threads; the set of the process |
//! | `tenant` | names and weights |
//! | `thread` | CPU time and priority of a thread |
//! | `sync` | the primitives, which the model checker replaces |
//!
//! Only one executor runs a task at a time.

mod executors;
mod fair_queue;
mod idle;
#[cfg(feature = "model")]
pub mod model;
mod scheduler;
mod task;
mod tenant;
mod thread;

pub use executors::{ExecutorLoad, ExecutorOptions, Executors};
pub use scheduler::Waker;
pub use task::{QUOTA_MESSAGES, TURN_NANOS, Task, TaskStatus};
pub use tenant::{Tenant, TenantShare, Weight};
