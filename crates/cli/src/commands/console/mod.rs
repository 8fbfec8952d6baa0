//! `mangrove console`: an interactive session with a server or with a graph that this program opens.
//!
//! - [`session`]: the state of a session, and inputs in Gremlin; [`command`]: the table of `:commands`; [`input`]:
//!   chooses between the two.
//! - [`editor`]: reading lines, with completion and colors; [`complete`]: the completions; [`words`]: the names for
//!   them.
//! - [`interrupt`]: Ctrl-C while a query runs.
//!
//! At a terminal an error is printed and the session continues. Ctrl-C stops the running query, Ctrl-D ends. If input
//! is not a terminal, statements are read and their results printed, and the first error ends the console with exit
//! code 1.

mod command;
mod complete;
mod editor;
mod history;
mod input;
mod interrupt;
mod session;
mod words;

use std::io::{self, BufRead, IsTerminal, Write};

use mangrove::Error;
use rustyline::error::ReadlineError;

use self::editor::LineEditor;
use self::history::History;
use self::input::wants_more;
use self::interrupt::Interrupts;
use self::session::{AfterInput, Session};
use crate::Failure;
use crate::args::ConsoleArgs;
use crate::connection::{Connection, Unnamed};

/// Runs the console to its end.
pub fn run(args: &ConsoleArgs) -> Result<(), Failure> {
    let target = &args.target;
    let connection = Connection::open(target.server(), &target.graph, &target.load, Unnamed::Memory)?;
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let session = Session::new(connection, args, is_terminal)?;
    if is_terminal { converse(session, args) } else { follow(session, &mut io::stdin().lock()) }
}

/// Reads statements to the end of the input, and stops at the first error.
fn follow(mut session: Session, input: &mut dyn BufRead) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let (mut text, mut line_number, mut first_line) = (String::new(), 0, 1);
    loop {
        let mut line = String::new();
        let length = input.read_line(&mut line).map_err(|e| Error::from(e).context("standard input"))?;
        line_number += 1;
        if text.is_empty() {
            first_line = line_number;
        }
        text.push_str(&line);
        if length > 0 && wants_more(&text) {
            continue;
        }
        let placed = |failure| match failure {
            Failure::Error(error) => Failure::Error(error.context(format!("standard input, line {first_line}"))),
            gone => gone,
        };
        match input::run(&mut session, text.trim_end(), &mut out).map_err(placed)? {
            AfterInput::Go => out.flush()?,
            AfterInput::Quit => break,
        }
        text.clear();
        if length == 0 {
            break;
        }
    }
    match session.abandoned() {
        Some(words) => Err(Error::invalid(format!("{words}; end it with :commit or :rollback")).into()),
        None => Ok(()),
    }
}

/// Runs an interactive session.
fn converse(mut session: Session, args: &ConsoleArgs) -> Result<(), Failure> {
    let interrupts = Interrupts::start()?;
    let history = History::open(args);
    let mut editor = LineEditor::new(&history)?;
    println!("Mangrove {}, connected to {}", env!("CARGO_PKG_VERSION"), session.place());
    println!("Gremlin, or :help; Tab completes, Ctrl-C stops a query, Ctrl-D ends.");
    let mut warned = false;
    loop {
        editor.learn(session.words());
        match editor.read(&session.prompt()) {
            Ok(input) if input.trim().is_empty() => {}
            Ok(input) => {
                editor.remember(&history, &input);
                if say(&interrupts, &mut session, &input)? == AfterInput::Quit && may_leave(&session, &mut warned) {
                    break;
                }
                continue;
            }
            // The input is discarded.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => {
                if may_leave(&session, &mut warned) {
                    break;
                }
                continue;
            }
            Err(error) => return Err(Error::invalid(format!("the terminal: {error}")).into()),
        }
        warned = false;
    }
    if let Some(words) = session.abandoned() {
        println!("{words}");
    }
    Ok(())
}

/// Runs an input that Ctrl-C may stop. Prints an error and continues.
fn say(interrupts: &Interrupts, session: &mut Session, input: &str) -> Result<AfterInput, Failure> {
    let stop = session.stopper();
    match interrupts.during(stop, || input::run(session, input, &mut io::stdout())) {
        Ok(then) => return Ok(then),
        Err(Failure::Error(error)) => eprintln!("error: {}", error.message()),
        Err(gone) => return Err(gone),
    }
    for words in session.recover() {
        eprintln!("{words}");
    }
    Ok(AfterInput::Go)
}

/// Returns true if the console may end. With an open transaction it warns first, and ends at the second request.
fn may_leave(session: &Session, warned: &mut bool) -> bool {
    if session.has_transaction() && !*warned {
        println!("a transaction is open: :commit keeps what it did; leaving again takes it back");
        *warned = true;
        return false;
    }
    true
}
