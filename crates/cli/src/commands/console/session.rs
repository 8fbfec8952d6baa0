//! The state of a session, and how an input in Gremlin runs.
//!
//! A single statement runs in the open transaction, or else in one of its own. If it names its value, the session keeps
//! the value. Several statements in one input are one script with its own variables. `g.tx().begin()` and its kin are
//! the commands `:begin` and so on.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use mangrove::{DateTime, Error, Materialize, Parameters, Result, Value};
use mangrove_gremlin::{ParseOptions, Statement, TransactionCommand};
use uuid::Uuid;

use super::interrupt::Stop;
use super::words::CompletionWords;
use crate::args::ConsoleArgs;
use crate::clock::Stopwatch;
use crate::commands::manage;
use crate::commands::variables::Variables;
use crate::connection::{Ask, Connection, Results};
use crate::output::ResultFormat;
use crate::{Failure, output};

/// How many results are shown by default.
const LIMIT_DEFAULT: usize = 100;

/// The next action after an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterInput {
    /// Read the next input.
    Go,
    /// End the session.
    Quit,
}

/// The state of a session.
pub struct Session {
    /// The server or the graph.
    pub connection: Connection,
    /// Parameters, and the values that statements have named.
    pub variables: Variables,
    /// The traversal source that `g` stands for.
    pub source: String,
    /// How results are printed.
    pub format: ResultFormat,
    /// How many results are shown; `None`: all. All are counted.
    pub limit: Option<usize>,
    /// How long a query may run.
    pub timeout: Option<Duration>,
    /// True if a person reads the output.
    is_terminal: bool,
    /// True if a transaction was open when the last input began.
    had_transaction: bool,
    /// Traversal sources and services, which are read once.
    known: Option<(Vec<String>, Vec<String>)>,
}

impl Session {
    /// A new session.
    pub fn new(connection: Connection, args: &ConsoleArgs, is_terminal: bool) -> Result<Self> {
        Ok(Session {
            connection,
            variables: Variables::new(args.run.parameters()?),
            source: args.target.source.clone().unwrap_or_else(|| "g".to_owned()),
            format: args.run.format,
            limit: is_terminal.then_some(LIMIT_DEFAULT),
            timeout: args.run.timeout(),
            is_terminal,
            had_transaction: false,
            known: None,
        })
    }

    /// Prepares for an input: connects again if the connection was lost.
    pub fn begin_input(&mut self) -> Result<()> {
        self.had_transaction = self.has_transaction();
        if self.connection.is_lost() {
            self.connection.reconnect()?;
            eprintln!("connected to {} again", self.connection.name());
        }
        Ok(())
    }

    /// Runs an input that is Gremlin, and prints its results.
    pub fn gremlin(&mut self, text: &str, out: &mut dyn Write) -> Result<(), Failure> {
        // The place that runs it parses it again, so this `datetime()` is not used.
        let now = Some(DateTime { seconds: 0, nanos: 0, offset_seconds: 0 });
        let options = ParseOptions { now, fresh_uuid: Some(Uuid::nil()), ..ParseOptions::default() };
        let mut statements = mangrove_gremlin::parse(text, &options)?;
        let stopwatch = Stopwatch::start();
        let Session { connection, variables, source, format, limit, timeout, .. } = self;
        let printer = ResultPrinter { format: *format, limit: *limit, is_timed: self.is_terminal, stopwatch };
        let none = Parameters::new();
        let like = Ask {
            timeout: *timeout,
            materialize: Materialize::Properties,
            source: Some(source),
            ..Ask::new(text, &none)
        };
        match (statements.pop(), statements.len()) {
            (None, _) => Ok(()),
            (Some(only), 0) => {
                if let (None, Statement::Transaction { source, command }) = (&only.variable, &only.statement) {
                    let source = source.clone();
                    return self.transaction(*command, &source, out);
                }
                if let (None, Statement::Traversal { source, bytecode, .. }) = (&only.variable, &only.statement)
                    && bytecode.steps.is_empty()
                    && bytecode.source.is_empty()
                    && let Ok(value) = variables.get(source)
                {
                    // The input is only a name: show its value.
                    let results = mangrove_gremlin::script::results_of(value.clone());
                    return printer.print(Box::new(results.into_iter().map(|(value, _)| Ok(value))), out);
                }
                printer.print(variables.run(connection, &only, text, &like)?, out)
            }
            (Some(_), _) => printer.print(connection.ask(&Ask { parameters: &variables.values, ..like })?, out),
        }
    }

    /// Runs `g.tx().begin()` and its kin.
    fn transaction(&mut self, command: TransactionCommand, source: &str, out: &mut dyn Write) -> Result<(), Failure> {
        match command {
            TransactionCommand::Begin => {
                let source = if source == "g" { self.source.clone() } else { source.to_owned() };
                self.begin(&source, out)
            }
            TransactionCommand::Commit => self.commit(out),
            TransactionCommand::Rollback => self.rollback(out),
        }
    }

    /// Begins a transaction.
    pub fn begin(&mut self, source: &str, out: &mut dyn Write) -> Result<(), Failure> {
        self.connection.begin(source)?;
        // From now on `g` stands for the source of the transaction.
        source.clone_into(&mut self.source);
        self.note(out, format_args!("a transaction on {source} is open; :commit or :rollback ends it"))
    }

    /// Commits the transaction.
    pub fn commit(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        self.connection.commit()?;
        self.note(out, format_args!("committed"))
    }

    /// Rolls back the transaction.
    pub fn rollback(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        self.connection.rollback()?;
        self.note(out, format_args!("rolled back"))
    }

    /// Prints a note for a person. A pipe gets results only.
    pub fn note(&self, out: &mut dyn Write, words: std::fmt::Arguments<'_>) -> Result<(), Failure> {
        if self.is_terminal {
            writeln!(out, "{words}")?;
        }
        Ok(())
    }

    /// Runs a script and prints all of its results.
    pub fn show(&mut self, script: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let ask = Ask { source: Some(&self.source), timeout: self.timeout, ..Ask::new(script, &self.variables.values) };
        let printer = ResultPrinter {
            format: self.format,
            limit: None,
            is_timed: self.is_terminal,
            stopwatch: Stopwatch::start(),
        };
        printer.print(self.connection.ask(&ask)?, out)
    }

    /// Runs a script for the console itself.
    pub fn ask(&mut self, script: &str) -> Result<Vec<Value>> {
        let ask = Ask { source: Some(&self.source), ..Ask::new(script, &self.variables.values) };
        self.connection.ask(&ask)?.collect()
    }

    /// Runs a script of the user, and returns its results.
    pub fn ask_within_timeout(&mut self, script: &str) -> Result<Vec<Value>> {
        let ask = Ask { source: Some(&self.source), timeout: self.timeout, ..Ask::new(script, &self.variables.values) };
        self.connection.ask(&ask)?.collect()
    }

    /// Returns true if a transaction is open.
    pub fn has_transaction(&self) -> bool {
        self.connection.transaction().is_some()
    }

    /// The URL or directory, for people.
    pub fn place(&self) -> String {
        self.connection.name()
    }

    /// The prompt: the source if it is not `g`, and whether a transaction is open.
    pub fn prompt(&self) -> String {
        let source = if self.source == "g" { "mangrove" } else { &self.source };
        let transaction = if self.has_transaction() { " (transaction)" } else { "" };
        format!("{source}{transaction}> ")
    }

    /// The note about an open transaction that ends with the session; `None` if none is open.
    pub fn abandoned(&self) -> Option<&'static str> {
        self.has_transaction().then_some("the open transaction was rolled back")
    }

    /// The function that Ctrl-C calls while an input runs.
    pub fn stopper(&mut self) -> Stop {
        let (canceller, source) = (self.connection.canceller(), self.source.clone());
        Box::new(move |presses| {
            if presses > 0 {
                canceller.abandon();
                return;
            }
            match canceller.cancel(&source) {
                Ok(true) => {}
                Ok(false) => eprintln!("nothing to stop was found; Ctrl-C again gives up the connection"),
                Err(error) => eprintln!("the query goes on: {error}; Ctrl-C again gives up the connection"),
            }
        })
    }

    /// After an error, connects again if the connection was lost. Returns what to print.
    pub fn recover(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.connection.is_lost() {
            return words;
        }
        words.push(match self.connection.reconnect() {
            Ok(()) => format!("connected to {} again", self.connection.name()),
            Err(error) => format!("{error}; the next input tries again"),
        });
        if std::mem::take(&mut self.had_transaction) {
            words.push("the transaction that was open is gone, with what it did".to_owned());
        }
        words
    }

    /// Names of the graph for completion; none if they cannot be read now.
    pub fn words(&mut self) -> CompletionWords {
        if self.connection.is_lost() {
            return CompletionWords::default();
        }
        if self.known.is_none() {
            let sources = self.connection.sources(&self.source.clone()).unwrap_or_default();
            let services = self.ask("g.call()").unwrap_or_default();
            self.known = Some((sources, services.iter().filter_map(text).collect()));
        }
        let names = self.ask("g.call('mangrove.names')").unwrap_or_default();
        let list = |name: &str| match names.first().and_then(|row| manage::field(row, name)) {
            Some(Value::List(items)) => items.iter().filter_map(text).collect(),
            _ => Vec::new(),
        };
        let (sources, services) = self.known.clone().unwrap_or_default();
        let variables = self.variables.values.keys().map(ToString::to_string).collect();
        CompletionWords { labels: list("labels"), keys: list("keys"), sources, services, variables }
    }

    /// Changes what `g` stands for.
    pub fn use_source(&mut self, name: &str) -> Result<()> {
        if let Some(open) = self.connection.transaction().filter(|open| *open != name) {
            return Err(Error::invalid(format!("a transaction is open on {open}; commit it or roll it back first")));
        }
        let before = std::mem::replace(&mut self.source, name.to_owned());
        if let Err(error) = self.ask("g.inject(1)") {
            self.source = before;
            return Err(error);
        }
        Ok(())
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string()),
        _ => None,
    }
}

/// The printer of the results of one input.
struct ResultPrinter {
    format: ResultFormat,
    limit: Option<usize>,
    is_timed: bool,
    stopwatch: Stopwatch,
}

impl ResultPrinter {
    fn print(&self, mut results: Results<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let shown = self.limit.unwrap_or(usize::MAX);
        let printed = output::print(&mut results.by_ref().take(shown), self.format, out)?;
        // The rest is counted but not kept.
        let mut more = 0;
        for result in results {
            result?;
            more += 1;
        }
        out.flush()?;
        if !self.is_timed {
            return Ok(());
        }
        let summary = output::summary(printed + more, self.stopwatch.elapsed());
        let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let (dim, plain) = if color { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        match more {
            0 => writeln!(out, "{dim}{summary}{plain}")?,
            _ => writeln!(out, "{dim}{summary}; the first {printed} are shown, :limit shows more{plain}")?,
        }
        Ok(())
    }
}
