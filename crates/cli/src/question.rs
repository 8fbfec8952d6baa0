//! Questions about a traversal instead of its results: its plan, and what its operators did.

use mangrove::{DateTime, Error, Result};
use mangrove_gremlin::{ParseOptions, Statement, Terminal, parse_one};

/// A question about a traversal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// How it would run.
    Explain,
    /// What each operator did when it ran.
    Profile,
}

impl Question {
    /// The step that asks it.
    pub fn step(self) -> &'static str {
        match self {
            Question::Explain => "explain",
            Question::Profile => "profile",
        }
    }

    /// The script that asks it about a traversal. Fails if the text is no traversal. `asker` is what the user wrote.
    pub fn about(self, traversal: &str, asker: &str) -> Result<String> {
        let text = traversal.trim_end_matches(|c: char| c == ';' || c.is_whitespace()).trim_start();
        // Any time will do: the traversal is parsed again where it runs.
        let now = Some(DateTime { seconds: 0, nanos: 0, offset_seconds: 0 });
        let options = ParseOptions { now, fresh_uuid: Some(uuid::Uuid::nil()), ..ParseOptions::default() };
        match parse_one(text, &options)? {
            Statement::Traversal { terminal: Terminal::None, .. } => Ok(format!("{text}.{}()", self.step())),
            _ => Err(Error::invalid(format!(
                "{asker} takes a traversal without a method that ends it, as in {asker} g.V().out()"
            ))),
        }
    }
}
