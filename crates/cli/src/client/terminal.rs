//! Asks for passwords at the terminal.

use std::io::{self, BufRead};

use mangrove::{Error, ErrorKind, Result};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// Asks a question at the terminal and reads the answer, which is not shown.
pub fn ask(question: &str) -> Result<String> {
    let failed = |e: rustix::io::Errno| Error::new(ErrorKind::Io, format!("the terminal cannot be made silent: {e}"));
    eprint!("{question}");
    let terminal = io::stdin();
    let loud = tcgetattr(&terminal).map_err(failed)?;
    let mut silent = loud.clone();
    silent.local_modes -= LocalModes::ECHO;
    tcsetattr(&terminal, OptionalActions::Flush, &silent).map_err(failed)?;
    let answer = line();
    tcsetattr(&terminal, OptionalActions::Flush, &loud).map_err(failed)?;
    eprintln!();
    answer
}

/// Reads a line of standard input, without its line end.
pub fn line() -> Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|e| Error::from(e).context("standard input"))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
