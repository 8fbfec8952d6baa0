//! The redaction of a graph's directory or address: administrators of the graph read it, other clients `(directory)`.
//!
//! An error of the disk names a file, since an operator needs it, and services report the directory. A redacted error
//! is logged in full. The paths of `io()` are not redacted: they are relative to its directory for every client.
//!
//! - **SERVER-10.** Every error and report of a query on a graph passes [`DirectoryRedactor`] before it reaches the
//!   client, so that a new message cannot tell more.

use std::borrow::Cow;

use mangrove_graph::{Error, Value};

use super::redaction::{redact, shown};
use crate::access::caller::Caller;
use crate::graphs::registry::Graph;

/// The view of one caller on the directory of one graph.
pub struct DirectoryRedactor<'g> {
    graph: &'g Graph,
    /// The directory to redact; `None` if the caller may read it, or if there is none.
    directory: Option<String>,
}

impl<'g> DirectoryRedactor<'g> {
    /// The view of a caller.
    pub fn for_caller(caller: &Caller, graph: &'g Graph) -> Self {
        let durability = if caller.administers(&graph.name) { None } else { graph.database().durability() };
        DirectoryRedactor { graph, directory: durability.and_then(|durability| shown(&durability.location)) }
    }

    /// The same text without the directory.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.directory {
            Some(directory) if text.contains(directory.as_str()) => redact(text, directory).into(),
            _ => text.into(),
        }
    }

    /// The same value without the directory.
    pub fn value(&self, value: Value) -> Value {
        match value {
            _ if self.directory.is_none() => value,
            Value::String(text) => self.text(&text).into_owned().into(),
            Value::List(items) => Value::list(items.iter().map(|item| self.value(item.clone())).collect()),
            Value::Map(entries) => Value::map(
                entries.iter().map(|(key, value)| (self.value(key.clone()), self.value(value.clone()))).collect(),
            ),
            other => other,
        }
    }

    /// The same error without the directory. The full error is logged.
    pub fn error(&self, error: Error) -> Error {
        let Cow::Owned(message) = self.text(error.message()) else { return error };
        if self.graph.logged.is_news(error.message()) {
            tracing::error!(graph = %self.graph.name, "{error}");
        }
        let redacted = Error::new(error.kind(), message);
        error.reason().map_or(redacted.clone(), |reason| redacted.because(reason))
    }
}
