//! The protocol of the Rust sides of `bench/peers`: one request a line on standard input, one answer a line on standard output, both in JSON.
//! `bench/peers/sides/lines.py` lists the requests.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use mangrove::{Error, ErrorKind, Result};
use serde::Deserialize;
use serde_json::{Value as Json, json};

/// A request.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Request {
    Load {
        folder: PathBuf,
    },
    Answer {
        operations: Vec<(String, Json)>,
    },
    Time {
        case: String,
        passes: usize,
    },
    /// This side has no second wording of any query.
    Rephrase,
    Memory,
    End,
}

/// A side: it answers requests.
pub trait Side {
    /// The answer to a request.
    fn handle(&mut self, request: Request) -> Result<Json>;
}

/// Answers requests until a request ends the program or the input ends.
pub fn serve(mut side: impl Side) -> Result<()> {
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?).map_err(|e| invalid("a request", e))?;
        let ends = matches!(request, Request::End);
        let answer = side.handle(request).unwrap_or_else(|error| describe_error(&error));
        writeln!(answers, "{answer}")?;
        answers.flush()?;
        if ends {
            break;
        }
    }
    Ok(())
}

fn describe_error(error: &Error) -> Json {
    json!({"error": error.message(), "timeout": error.kind() == ErrorKind::Timeout})
}

/// The error for text that cannot be read.
pub fn invalid(what: &str, error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("{what} cannot be read: {error}"))
}

/// The resident memory of this process.
pub fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.map(|n| n * 1024).ok_or_else(|| Error::unsupported("/proc/self/status says nothing about VmRSS"))
}
