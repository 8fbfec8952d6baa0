//! Scripts: several Gremlin statements that run as one transaction and share variables.
//!
//! This is the only script engine: the embedded API, the command line and the server run their scripts here. A script
//! is compiled once ([`Script`]) and then runs on a [`ScriptHost`], which brings transactions, rights and the way to
//! the client.
//!
//! ```text
//! text or bytecode ──▶ Script::compile ──▶ Script<Query> ──▶ run, run_as_transaction ──▶ the client
//!                          │ ScriptPlanner                        │ ScriptHost
//!                          ▼                                      ▼
//!                 a traversal becomes a query,           runs a query in the open transaction,
//!                 its source is resolved                 checks rights, begins, commits, sends
//! ```
//!
//! - **DB-1.** The statements of a script run in order in one transaction, and each sees what the earlier ones wrote.
//!   Only the script itself splits it into several transactions, by `g.tx().commit()` or `g.tx().rollback()`.
//! - **DB-2.** If the transaction may have written, no result reaches the client before everything that can fail has
//!   been done with all results. So a failed script can be undone, and a conflict can be retried unnoticed.
//! - **DB-3.** A script is run again after a conflict only if it is one transaction and the client has seen no result.
//!
//! Results of the last statement are the results of the script. If nothing was written before that statement, they are
//! sent as they are found. Elements in a variable are references by id, which later statements of the same script can
//! use.

mod compile;
mod embedded;
mod failure;
mod run;

pub use compile::{Script, ScriptPlanner, ScriptTraversal};
pub use failure::ScriptFailure;
pub use run::{ResultSink, ScriptHost, ScriptOutput};
