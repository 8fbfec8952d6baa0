//! One input of a session: a `:command`, or Gremlin.

use std::io::Write;

use mangrove_gremlin::is_unfinished;

use super::command;
use super::session::{AfterInput, Session};
use crate::Failure;

/// Runs an input. One that begins with a colon is a command; anything else is Gremlin.
pub fn run(session: &mut Session, input: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    session.begin_input()?;
    match input.trim_start().strip_prefix(':') {
        Some(command) => command::run(session, command.trim(), out),
        None => session.gremlin(input, out).map(|()| AfterInput::Go),
    }
}

/// Returns true if an input continues on the next line.
pub fn wants_more(text: &str) -> bool {
    match text.trim_start().strip_prefix(':') {
        Some(command) => command::wants_more(command),
        None => is_unfinished(text),
    }
}
