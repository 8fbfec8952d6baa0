//! The scoped-dataflow runtime. It moves batches between operators and knows nothing of graphs.
//!
//! A query is a fixed graph of operators ([`Topology`]) and the *scope instances* that come and go inside it. In
//! Banyan (§3) every instance has operators and mailboxes of its own. Here instances come in **groups**: the rows of
//! one message that enter a scope together become the instances `0..n` of one [`GroupId`], and a row inside names its
//! instance by its *tag*, a column of the batch. So light instances share messages, operators and their end-of-stream.
//! A group is accounted for and ended as one; an instance is cancelled alone, by its tag, with everything nested in it.
//!
//! | module | holds |
//! |---|---|
//! | [`topology`] | operators, edges, and the numbers that scheduling and cancellation rest on |
//! | `batch` | the interface of a batch of rows |
//! | `operator` | the interface of an operator with state, and what an operator does during a call |
//! | `kernel`, `cursor` | the interface of an operator without state; the cursor of a message |
//! | `any_operator` | an operator of either kind |
//! | `group` | ids of groups, tags, and how they map to the tags of the group outside |
//! | `cancel` | the open groups of a node, and cancellations |
//! | `policy` | the order in which instances and operators of a scope are worked on |
//! | `heavy` | instances that the others of their group would wait for |
//! | `message` | a message on its way |
//! | `queues`, `lanes` | inboxes that groups share, and those of single groups |
//! | `lane_order` | the order of the lanes of a scope, and the time that they share |
//! | `router` | the way of a message, frames for other nodes, the counts that close a stream |
//! | `mutation` | rules of the runtime that a test may break |
//! | `board`, `sharing`, `helper` | work that the home of a run shares with other threads |
//! | `local` | the messages that a helper works off itself |
//! | `late`, `asking` | reads that a view has not at hand, and the messages that wait for them |
//! | `work` | the loop that gives messages to operators, on the home and on helpers |
//! | `runtime` | one node of a query, from one run to the next |
//! | `stats` | counts for `profile()` |
//! | `sync` | locks and atomics, or those of the model checker |
//! | `control` | limits, memory account, cancellation |
//! | `progress` | how far a query has come that works on one thing for long |
//! | [`clock`] | the clock that time limits go by |
//! | [`schedule`] | threads that run queries in turns |
//!
//! The invariants FLOW-1 to FLOW-50 are defined in the headers of these modules; `docs/design/dataflow.md` explains how
//! they work together.
//!
//! The same topology runs on one node (the thread of a caller or an [executor](schedule)) or on several, where [`Exchange`]
//! decides which rows go where, and every message in between is serialized.

// One system call is unsafe (`schedule::thread`).
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod any_operator;
mod asking;
mod batch;
mod board;
mod cancel;
pub mod clock;
mod control;
mod cursor;
mod group;
mod heavy;
mod helper;
mod kernel;
mod lane_order;
mod lanes;
mod late;
mod local;
mod message;
#[doc(hidden)]
pub mod mutation;
mod operator;
mod policy;
mod progress;
mod queues;
mod runtime;
pub mod schedule;
mod sharing;
mod stats;
mod sync;
pub mod topology;

mod router;
mod work;

pub use any_operator::AnyOperator;
pub use batch::{BATCH_ROWS, Batch};
pub use board::Wake;
pub use control::{Charge, Leftovers, QueryControl, QueryLimits};
pub use cursor::{Cursor, Detail, HeldDetail, Step};
pub use group::{GroupId, NodeId, OuterTags, TagSet};
pub use heavy::Apart;
pub use helper::{Helper, HelperStatus, OpenRun};
pub use kernel::{Kernel, Part};
pub use late::ReadCredit;
pub use mangrove_graph::Interrupt;
pub use operator::{Operator, Output, Shared, SharedState};
pub use policy::{Between, Inside, Policy};
pub use progress::{QueryProgress, QueryProgressFigures};
pub use runtime::NodeRuntime;
pub use sharing::Sharers;
pub use stats::{HelperStats, OperatorStats};
pub use topology::{Edge, Exchange, OpId, Placement, Topology, TopologyBuilder};
pub use work::Progress;
