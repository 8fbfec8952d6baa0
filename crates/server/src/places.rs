//! What a client is told of where the server keeps a graph: its administrators the directory, others a word in its place.
//!
//! An error of the disk names a file, since an operator needs to know which, and services that report name the directory.
//! All that a query on a graph answers with passes here, so that a new message or a new report tells no more.
//! What was left out of an error is in the log.
//!
//! Not here: the paths of `io()`, which are relative to its directory for every client.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use mangrove_graph::{Error, Value};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::access::Caller;
use crate::registry::Graph;

/// Stands where the directory was.
const CONCEALED: &str = "(directory)";

/// How long an error that occurs again and again is not logged again.
const QUIET: Duration = Duration::from_secs(60);

/// The error that was logged last, and when.
#[derive(Debug, Default)]
pub struct Logged(Mutex<Option<(Instant, String)>>);

impl Logged {
    /// Returns true if an error is another one than the last, or long after it.
    fn is_news(&self, message: &str) -> bool {
        let mut last = self.0.lock();
        if last.as_ref().is_some_and(|(since, known)| known == message && since.elapsed() < QUIET) {
            return false;
        }
        *last = Some((Instant::now(), message.to_owned()));
        true
    }
}

/// What one caller is told of the directory of one graph.
pub struct Places<'g> {
    graph: &'g Graph,
    /// What is left out; `None`: nothing.
    directory: Option<String>,
}

impl<'g> Places<'g> {
    /// Those of a graph, as a caller may know them.
    pub fn told(caller: &Caller, graph: &'g Graph) -> Self {
        let durability = if caller.administers(&graph.name) { None } else { graph.database().durability() };
        Places { graph, directory: durability.and_then(|durability| shown(&durability.directory)) }
    }

    /// The same text without the directory.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.directory {
            Some(directory) if text.contains(directory.as_str()) => conceal(text, directory).into(),
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

    /// The same error without the directory. As it was, it is in the log.
    pub fn error(&self, error: Error) -> Error {
        let Cow::Owned(message) = self.text(error.message()) else { return error };
        if self.graph.logged.is_news(error.message()) {
            tracing::error!(graph = %self.graph.name, "{error}");
        }
        let told = Error::new(error.kind(), message);
        error.reason().map_or(told.clone(), |reason| told.because(reason))
    }
}

/// A directory as messages have it; `None` where that says nothing: the root, or a disk that is no directory.
fn shown(directory: &Path) -> Option<String> {
    let text = directory.display().to_string();
    let text = text.trim_end_matches('/');
    (!text.is_empty()).then(|| text.to_owned())
}

/// A text without a directory: where a file in it is named, and where it stands alone.
fn conceal(text: &str, directory: &str) -> String {
    let (mut told, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(directory) {
        let (before, after) = (&rest[..at], &rest[at + directory.len()..]);
        told.push_str(before);
        let begins = !before.chars().next_back().is_some_and(is_part_of_name);
        let ends = after.starts_with('/') || after.is_empty() || is_absolute_end(directory, after);
        told.push_str(if begins && ends { CONCEALED } else { directory });
        rest = after;
    }
    told + rest
}

/// Returns true if an absolute directory ends here. A relative one may be a word of the text.
fn is_absolute_end(directory: &str, after: &str) -> bool {
    Path::new(directory).is_absolute() && !after.chars().next().is_some_and(is_part_of_name)
}

fn is_part_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_and_words_like_it_stay() {
        for (directory, text, told) in [
            ("/srv/g", "cannot write to /srv/g/wal/1: full", "cannot write to (directory)/wal/1: full"),
            ("/srv/g", "cannot sync /srv/g: no", "cannot sync (directory): no"),
            ("/srv/g", "/srv/g", "(directory)"),
            ("/srv/g", "/srv/graph and /srv/g-2", "/srv/graph and /srv/g-2"),
            ("graph", "the graph takes no writes: graph/wal/1", "the graph takes no writes: (directory)/wal/1"),
            ("graph", "subgraph/x", "subgraph/x"),
            ("./graph", "cannot open ./graph/LOCK, or ./graph/wal", "cannot open (directory)/LOCK, or (directory)/wal"),
        ] {
            assert_eq!(conceal(text, directory), told);
        }
        assert_eq!(shown(Path::new("graph/")).as_deref(), Some("graph"));
        assert_eq!((shown(Path::new("/")), shown(Path::new(""))), (None, None));
    }

    #[test]
    fn an_error_is_logged_once_until_another_comes() {
        let logged = Logged::default();
        let news = ["a", "a", "b", "a"].map(|message| logged.is_news(message));
        assert_eq!(news, [true, false, true, true]);
    }
}
