//! The audit log: who came in or was refused, and what administrators did.
//!
//! Entries are events of the log with the target [`TARGET`], so that one setting sends them to a file of their own or to
//! whatever collects logs: `MANGROVE_LOG=info,mangrove_audit=off` silences them, a collector filters by the target.
//! Each has the user, where from, the act, its object and the outcome. No entry holds a password, a hash or what a
//! query returned.

use mangrove_graph::Error;

use crate::access::Caller;
use crate::lockout::By;

/// The target of the events.
pub const TARGET: &str = "mangrove_audit";

/// The most of a query that a log or a list shows.
const QUERY_BYTES_MAX: usize = 2_000;

/// What was done, or tried.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    /// A service that administers was called.
    Service {
        /// Which.
        service: &'a str,
        /// The graph, or the query, it was about.
        object: &'a str,
    },
    /// A user proved to be one, or did not.
    LogIn,
    /// Wrong logins are too many: further ones are refused unseen for a while.
    LockOut {
        /// Those of an address, or those for a name.
        by: By,
    },
    /// A query that the caller has no right to.
    Query {
        /// The graph.
        graph: &'a str,
    },
}

/// Notes an act, and why it was refused or failed, if it was.
pub fn note(caller: &Caller, act: Act<'_>, error: Option<&Error>) {
    let (act, object) = match act {
        Act::Service { service, object } => (service, object),
        Act::LogIn => ("login", ""),
        Act::LockOut { by: By::Address } => ("lockout", "address"),
        Act::LockOut { by: By::User } => ("lockout", "user"),
        Act::Query { graph } => ("query", graph),
    };
    let (user, from) = (caller.name(), caller.peer());
    match error {
        None => tracing::info!(target: TARGET, user, from, act, object, outcome = "done"),
        Some(error) => {
            tracing::warn!(target: TARGET, user, from, act, object, outcome = "refused", reason = error.message());
        }
    }
}

/// As much of a text as a line of a log takes.
pub fn shortened(text: &str) -> String {
    if text.len() <= QUERY_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=QUERY_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).expect("0 is a boundary");
    format!("{}… ({} bytes)", &text[..end], text.len())
}
