//! `mangrove query`: a script, or a file of them, and its results.
//!
//! A script of several statements is one transaction, and the results are its last statement's. With `--each` the
//! statements are transactions of their own, run one after the other, each with its results: for files of any length,
//! which are parsed as they are run and of which what was done before an error stays. Variables go on from one to the
//! next ([`Variables`]).
//!
//! With `-o` results go to a file that is there only when all of it is: they are written beside it and put in its place at
//! the end.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use mangrove::{Database, DateTime, Error, Materialize, Parameters, QueryOptions};
use mangrove_gremlin::{ParseOptions, Statements};
use uuid::Uuid;

use crate::args::{Format, QueryArgs};
use crate::clock::Stopwatch;
use crate::connection::{Ask, Connection, Unnamed};
use crate::variables::Variables;
use crate::{Failure, output};

/// Runs a script and prints its results.
pub fn run(args: &QueryArgs) -> Result<(), Failure> {
    let parameters = args.run.parameters()?;
    let timeout = args.run.timeout();
    let script = Script::read(args)?;
    let mut connection = Connection::open(args.server(), &args.graph, &args.load, script.unnamed())?;
    let mut sink = Sink::open(args.output.as_deref())?;
    let question = Question { timeout, format: args.run.format };
    let asked = match args.each {
        true => script.run_each(&mut connection, parameters, question, &mut sink),
        false => script.run(&mut connection, &parameters, question, &mut sink),
    };
    asked?;
    sink.finish()
}

/// Runs a script on a database and prints its results; a table is followed by how long it took.
pub fn answer(database: &Database, script: &str, format: Format, out: &mut dyn Write) -> Result<(), Failure> {
    let stopwatch = Stopwatch::start();
    let prepared = database.prepare_script(script.trim())?;
    let options = QueryOptions { materialize: materialize(format), ..QueryOptions::default() };
    let mut results = database.run_script(&prepared, &Parameters::new(), &options)?;
    let count = output::print(&mut results, format, out)?;
    out.flush()?;
    note_time(format, count, stopwatch);
    Ok(())
}

/// What elements in results carry: CSV names them by their ids, for it would need a column for each property there is.
fn materialize(format: Format) -> Materialize {
    match format {
        Format::Csv => Materialize::Tokens,
        Format::Table | Format::Json | Format::Jsonl => Materialize::Properties,
    }
}

/// Says below a table how long it took.
fn note_time(format: Format, count: u64, stopwatch: Stopwatch) {
    if format == Format::Table {
        eprintln!("{}", output::summary(count, stopwatch.elapsed()));
    }
}

/// How a script is run.
#[derive(Clone, Copy)]
struct Question {
    timeout: Option<Duration>,
    format: Format,
}

impl Question {
    fn ask<'a>(&self, script: &'a str, parameters: &'a Parameters) -> Ask<'a> {
        Ask { timeout: self.timeout, materialize: materialize(self.format), ..Ask::new(script, parameters) }
    }
}

/// A script and where it comes from.
struct Script {
    text: String,
    /// The file, for errors.
    file: Option<String>,
}

impl Script {
    fn read(args: &QueryArgs) -> Result<Self, Error> {
        let file = match (&args.script, &args.file) {
            (Some(script), _) if script != "-" => return Ok(Script { text: script.clone(), file: None }),
            (_, Some(file)) if file != Path::new("-") => file,
            _ => {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text).map_err(|e| Error::from(e).context("standard input"))?;
                return Ok(Script { text, file: args.file.as_ref().map(|_| "standard input".to_owned()) });
            }
        };
        let text = fs::read_to_string(file).map_err(|e| Error::from(e).context(file.display()))?;
        Ok(Script { text, file: Some(file.display().to_string()) })
    }

    /// How a graph is opened for it: to be read, where the script is seen to do no more. One that cannot be understood is
    /// left to the graph to explain, and one of a size that only files of writes have is not looked at.
    fn unnamed(&self) -> Unnamed {
        const LOOKED_AT_MAX: usize = 1 << 20;
        let only_reads = self.text.len() <= LOOKED_AT_MAX
            && Database::in_memory().prepare_script(self.text.trim()).is_ok_and(|script| script.only_reads());
        if only_reads { Unnamed::MemoryToRead } else { Unnamed::Memory }
    }

    /// The error with the file it is about.
    fn placed(&self, error: Error) -> Error {
        match &self.file {
            Some(file) => error.context(file),
            None => error,
        }
    }

    /// As one transaction.
    fn run(
        &self,
        connection: &mut Connection,
        parameters: &Parameters,
        question: Question,
        sink: &mut Sink,
    ) -> Result<(), Failure> {
        let stopwatch = Stopwatch::start();
        let waiting = self.file.as_ref().map(|file| Bar::waiting(file));
        let text = if self.file.is_none() { self.text.trim() } else { &self.text };
        let mut results = connection.ask(&question.ask(text, parameters)).map_err(|error| self.placed(error))?;
        let first = results.next();
        drop(waiting);
        let mut results = first.into_iter().chain(results).map(|result| result.map_err(|error| self.placed(error)));
        let count = output::print(&mut results, question.format, sink)?;
        sink.flush()?;
        note_time(question.format, count, stopwatch);
        Ok(())
    }

    /// Each statement as a transaction of its own.
    fn run_each(
        &self,
        connection: &mut Connection,
        parameters: Parameters,
        question: Question,
        sink: &mut Sink,
    ) -> Result<(), Failure> {
        let bar = Bar::over(self.text.len());
        // They only find the ends of statements: what a text means now is asked when it is run.
        let now = Some(DateTime { seconds: 0, nanos: 0, offset_seconds: 0 });
        let options = ParseOptions { size_bytes_max: usize::MAX, now, fresh_uuid: Some(Uuid::nil()) };
        let statements = Statements::new(&self.text, &options).map_err(|error| self.placed(error))?;
        let none = Parameters::new();
        let like = question.ask(&self.text, &none);
        let mut variables = Variables::new(parameters);
        for (at, statement) in statements.enumerate() {
            let statement = statement.map_err(|error| self.placed(error))?;
            bar.show(statement.range.start, at);
            let placed = |error: Error| self.placed(error.context(statement.place(at + 1)));
            let results = variables.run(connection, &statement, &self.text, &like);
            let mut results = results.map_err(placed)?.map(|result| result.map_err(placed));
            bar.0.suspend(|| output::print(&mut results, question.format, sink))?;
        }
        sink.flush()?;
        Ok(())
    }
}

/// How far a file is, where standard error is a terminal.
struct Bar(ProgressBar);

impl Bar {
    /// Something whose end is not known.
    fn waiting(file: &str) -> Self {
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}").expect("a test renders the template");
        let bar = ProgressBar::new_spinner().with_style(style).with_message(format!("running {file}"));
        if io::stderr().is_terminal() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Bar(bar)
    }

    /// A text of so many bytes.
    fn over(bytes: usize) -> Self {
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {elapsed} (ends in {eta})")
            .expect("a test renders the template");
        Bar(ProgressBar::new(bytes as u64).with_style(style))
    }

    fn show(&self, bytes: usize, statements: usize) {
        if !self.0.is_hidden() && statements.is_multiple_of(16) {
            self.0.set_position(bytes as u64);
            self.0.set_message(format!("{statements} statements"));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Where results go.
enum Sink {
    Standard(io::StdoutLock<'static>),
    /// A file that is not in its place yet.
    File {
        out: BufWriter<File>,
        beside: PathBuf,
        path: PathBuf,
    },
}

impl Sink {
    fn open(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path else { return Ok(Sink::Standard(io::stdout().lock())) };
        let name = path.file_name().ok_or_else(|| Error::invalid(format!("{}: this names no file", path.display())))?;
        let beside = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        let file = File::create(&beside).map_err(|e| Error::from(e).context(path.display()))?;
        Ok(Sink::File { out: BufWriter::new(file), beside, path: path.to_owned() })
    }

    /// All is written: puts the file in its place.
    fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        if let Sink::File { out, beside, path } = &mut self {
            let placed = out.get_ref().sync_all().and_then(|()| fs::rename(&beside, &path));
            placed.map_err(|e| Error::from(e).context(path.display()))?;
        }
        Ok(())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Sink::File { beside, .. } = self {
            // It is gone if it was put in its place.
            let _ = fs::remove_file(beside);
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Standard(out) => out.write(bytes),
            Sink::File { out, .. } => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Standard(out) => out.flush(),
            Sink::File { out, .. } => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_have_valid_templates() {
        drop(Bar::waiting("a.groovy"));
        Bar::over(10).show(5, 16);
    }
}
