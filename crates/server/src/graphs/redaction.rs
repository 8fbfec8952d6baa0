//! Removal of a graph's directory or address from texts, and the memory of which such errors were logged.

use std::path::Path;
use std::time::Duration;

use mangrove::Location;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Replaces the directory.
const REDACTED: &str = "(directory)";

/// How long the same error is not logged again.
const QUIET: Duration = Duration::from_secs(60);

/// The error that was logged last, with its time.
#[derive(Debug, Default)]
pub struct Logged(Mutex<Option<(Instant, String)>>);

impl Logged {
    /// Returns true if an error differs from the last one, or comes [`QUIET`] after it.
    pub fn is_news(&self, message: &str) -> bool {
        let mut last = self.0.lock();
        if last.as_ref().is_some_and(|(since, known)| known == message && since.elapsed() < QUIET) {
            return false;
        }
        *last = Some((Instant::now(), message.to_owned()));
        true
    }
}

/// A directory or an address as messages write it; `None` if there is nothing to redact: the root, or a disk that is no
/// directory.
pub fn shown(location: &Location) -> Option<String> {
    let text = location.to_string();
    let text = text.trim_end_matches('/');
    (!text.is_empty()).then(|| text.to_owned())
}

/// A text without a directory, both alone and as the beginning of a path.
pub fn redact(text: &str, directory: &str) -> String {
    let (mut told, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(directory) {
        let (before, after) = (&rest[..at], &rest[at + directory.len()..]);
        told.push_str(before);
        let begins = !before.chars().next_back().is_some_and(is_part_of_name);
        let ends = after.starts_with('/') || after.is_empty() || is_absolute_end(directory, after);
        told.push_str(if begins && ends { REDACTED } else { directory });
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
            ("s3://b/g", "s3://b/g/log/1 is damaged", "(directory)/log/1 is damaged"),
            ("./graph", "cannot open ./graph/LOCK, or ./graph/wal", "cannot open (directory)/LOCK, or (directory)/wal"),
        ] {
            assert_eq!(redact(text, directory), told);
        }
        let shown = |directory: &str| shown(&Location::Directory(directory.into()));
        assert_eq!(shown("graph/").as_deref(), Some("graph"));
        assert_eq!((shown("/"), shown("")), (None, None));
    }

    #[test]
    fn an_error_is_logged_once_until_another_comes() {
        let logged = Logged::default();
        let news = ["a", "a", "b", "a"].map(|message| logged.is_news(message));
        assert_eq!(news, [true, false, true, true]);
    }
}
