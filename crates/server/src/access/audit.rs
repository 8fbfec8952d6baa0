//! The audit log: logins, lockouts, refused queries, and the acts of administrators.
//!
//! Entries are log events with the target [`TARGET`], so that one filter selects them:
//! `MANGROVE_LOG=info,mangrove_audit=off` silences them, and a collector filters by the target. Each has the user, the
//! address, the act, its object and the outcome. No entry holds a password, a hash or a result of a query.

use mangrove_graph::Error;

use crate::access::caller::Caller;
use crate::access::lockout::LockoutSubject;

/// The target of the log events.
pub const TARGET: &str = "mangrove_audit";

/// The most bytes of a query's text in a log or a list.
const QUERY_BYTES_MAX: usize = 2_000;

/// An act, done or refused.
#[derive(Clone, Copy, Debug)]
pub enum AuditedAct<'a> {
    /// A call of an administrative service.
    Service {
        /// The name of the service.
        service: &'a str,
        /// The graph, or the number of the query, that it concerned.
        object: &'a str,
    },
    /// A login, successful or not.
    LogIn,
    /// Too many wrong logins, so that further ones are refused without a check for a while.
    LockOut {
        /// Whether the address or the user name is locked out.
        by: LockoutSubject,
    },
    /// A query that the caller has no right to run.
    Query {
        /// The graph.
        graph: &'a str,
    },
}

/// Logs an act, and the error if it was refused or failed.
pub fn note(caller: &Caller, act: AuditedAct<'_>, error: Option<&Error>) {
    let (act, object) = match act {
        AuditedAct::Service { service, object } => (service, object),
        AuditedAct::LogIn => ("login", ""),
        AuditedAct::LockOut { by: LockoutSubject::Address } => ("lockout", "address"),
        AuditedAct::LockOut { by: LockoutSubject::User } => ("lockout", "user"),
        AuditedAct::Query { graph } => ("query", graph),
    };
    let (user, from) = (caller.name(), caller.peer());
    match error {
        None => tracing::info!(target: TARGET, user, from, act, object, outcome = "done"),
        Some(error) => {
            tracing::warn!(target: TARGET, user, from, act, object, outcome = "refused", reason = error.message());
        }
    }
}

/// A text cut to the length that a log line may have.
pub fn shortened(text: &str) -> String {
    if text.len() <= QUERY_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=QUERY_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).expect("0 is a boundary");
    format!("{}… ({} bytes)", &text[..end], text.len())
}
