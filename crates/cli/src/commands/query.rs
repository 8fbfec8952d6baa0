//! `mangrove query`: runs a script, or a file of scripts, and prints the results.
//!
//! Several statements are one transaction, and the results are those of the last. With `--each`, every statement is a
//! transaction of its own with its own results. That is for files of any length: statements are parsed as they are run,
//! and those before an error stay committed. [`Variables`] carry values from one statement to the next.
//!
//! With `-o`, results are written to a temporary file beside the target, which is renamed at the end. So the target
//! appears only when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use mangrove::{Database, DateTime, Error, Materialize, Parameters, QueryOptions};
use mangrove_gremlin::{ParseOptions, Statements};
use uuid::Uuid;

use super::variables::Variables;
use crate::args::QueryArgs;
use crate::clock::Stopwatch;
use crate::connection::{Ask, Connection, Unnamed};
use crate::output::ResultFormat;
use crate::output::plan::{self, PlanFormat};
use crate::question::Question;
use crate::{Failure, output};

/// Runs a script and prints its results.
pub fn run(args: &QueryArgs) -> Result<(), Failure> {
    let parameters = args.run.parameters()?;
    let timeout = args.run.timeout();
    let script = ScriptText::read(args)?;
    let mut connection = Connection::open(args.server(), &args.graph, &args.load, script.unnamed())?;
    let mut sink = ResultFile::open(args.output.as_deref())?;
    let question = QueryCommand { timeout, format: args.run.format };
    let asked = match (args.question(), args.each) {
        (Some(asked), _) => script.run_question(&mut connection, &parameters, question, asked, &mut sink),
        (None, true) => script.run_each(&mut connection, parameters, question, &mut sink),
        (None, false) => script.run(&mut connection, &parameters, question, &mut sink),
    };
    asked?;
    sink.finish()
}

/// Runs a script on a database and prints its results. A table is followed by the time it took.
pub fn answer(database: &Database, script: &str, format: ResultFormat, out: &mut dyn Write) -> Result<(), Failure> {
    let stopwatch = Stopwatch::start();
    let prepared = database.prepare_script(script.trim())?;
    let options = QueryOptions { materialize: materialize(format), ..QueryOptions::default() };
    let mut results = database.run_script(&prepared, &Parameters::new(), &options)?;
    let count = output::print(&mut results, format, out)?;
    out.flush()?;
    note_time(format, count, stopwatch);
    Ok(())
}

/// The properties that elements in results carry. In CSV they are ids only, because properties would each need a
/// column.
fn materialize(format: ResultFormat) -> Materialize {
    match format {
        ResultFormat::Csv => Materialize::Tokens,
        ResultFormat::Table | ResultFormat::Json | ResultFormat::Jsonl => Materialize::Properties,
    }
}

/// Prints the time after a table.
fn note_time(format: ResultFormat, count: u64, stopwatch: Stopwatch) {
    if format == ResultFormat::Table {
        eprintln!("{}", output::summary(count, stopwatch.elapsed()));
    }
}

/// How a script is run.
#[derive(Clone, Copy)]
struct QueryCommand {
    timeout: Option<Duration>,
    format: ResultFormat,
}

impl QueryCommand {
    fn ask<'a>(&self, script: &'a str, parameters: &'a Parameters) -> Ask<'a> {
        Ask { timeout: self.timeout, materialize: materialize(self.format), ..Ask::new(script, parameters) }
    }
}

/// A script, and the file that it comes from.
struct ScriptText {
    text: String,
    /// The file, for error messages.
    file: Option<String>,
}

impl ScriptText {
    fn read(args: &QueryArgs) -> Result<Self, Error> {
        let file = match (&args.script, &args.file) {
            (Some(script), _) if script != "-" => return Ok(ScriptText { text: script.clone(), file: None }),
            (_, Some(file)) if file != Path::new("-") => file,
            _ => {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text).map_err(|e| Error::from(e).context("standard input"))?;
                return Ok(ScriptText { text, file: args.file.as_ref().map(|_| "standard input".to_owned()) });
            }
        };
        let text = fs::read_to_string(file).map_err(|e| Error::from(e).context(file.display()))?;
        Ok(ScriptText { text, file: Some(file.display().to_string()) })
    }

    /// How a graph is opened for the script: for reading, if the script is seen to only read. A script that does not
    /// parse is left to the graph to explain. A script of a size that only files of writes have is not parsed here.
    fn unnamed(&self) -> Unnamed {
        const LOOKED_AT_MAX: usize = 1 << 20;
        let only_reads = self.text.len() <= LOOKED_AT_MAX
            && Database::in_memory().prepare_script(self.text.trim()).is_ok_and(|script| script.only_reads());
        if only_reads { Unnamed::MemoryToRead } else { Unnamed::Memory }
    }

    /// Adds the file to an error.
    fn placed(&self, error: Error) -> Error {
        match &self.file {
            Some(file) => error.context(file),
            None => error,
        }
    }

    /// Runs it as one transaction.
    fn run(
        &self,
        connection: &mut Connection,
        parameters: &Parameters,
        question: QueryCommand,
        sink: &mut ResultFile,
    ) -> Result<(), Failure> {
        let stopwatch = Stopwatch::start();
        let waiting = self.file.as_ref().map(|file| ScriptBar::waiting(file));
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

    /// Shows its plan, or what its operators did.
    fn run_question(
        &self,
        connection: &mut Connection,
        parameters: &Parameters,
        question: QueryCommand,
        (asked, format): (Question, PlanFormat),
        sink: &mut ResultFile,
    ) -> Result<(), Failure> {
        let asker = format!("--{}", asked.step());
        let script = asked.about(&self.text, &asker).map_err(|error| self.placed(error))?;
        for answer in connection.ask(&question.ask(&script, parameters)).map_err(|error| self.placed(error))? {
            plan::print(&answer.map_err(|error| self.placed(error))?, format, sink)?;
        }
        sink.flush()?;
        Ok(())
    }

    /// Runs each statement as a transaction of its own.
    fn run_each(
        &self,
        connection: &mut Connection,
        parameters: Parameters,
        question: QueryCommand,
        sink: &mut ResultFile,
    ) -> Result<(), Failure> {
        let bar = ScriptBar::over(self.text.len());
        // Any time will do: this parse only finds the ends of statements. `datetime()` gets its meaning when the
        // statement runs.
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

/// Shows the progress in a file, if standard error is a terminal.
struct ScriptBar(ProgressBar);

impl ScriptBar {
    /// A bar without a known end.
    fn waiting(file: &str) -> Self {
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}").expect("a test renders the template");
        let bar = ProgressBar::new_spinner().with_style(style).with_message(format!("running {file}"));
        if io::stderr().is_terminal() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        ScriptBar(bar)
    }

    /// A bar over a text of this many bytes.
    fn over(bytes: usize) -> Self {
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {elapsed} (ends in {eta})")
            .expect("a test renders the template");
        ScriptBar(ProgressBar::new(bytes as u64).with_style(style))
    }

    fn show(&self, bytes: usize, statements: usize) {
        if !self.0.is_hidden() && statements.is_multiple_of(16) {
            self.0.set_position(bytes as u64);
            self.0.set_message(format!("{statements} statements"));
        }
    }
}

impl Drop for ScriptBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The destination of results.
enum ResultFile {
    Standard(io::StdoutLock<'static>),
    /// A temporary file, and the path that it gets at the end.
    File {
        out: BufWriter<File>,
        beside: PathBuf,
        path: PathBuf,
    },
}

impl ResultFile {
    fn open(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path else { return Ok(ResultFile::Standard(io::stdout().lock())) };
        let name = path.file_name().ok_or_else(|| Error::invalid(format!("{}: this names no file", path.display())))?;
        let beside = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        let file = File::create(&beside).map_err(|e| Error::from(e).context(path.display()))?;
        Ok(ResultFile::File { out: BufWriter::new(file), beside, path: path.to_owned() })
    }

    /// Completes the output: renames the temporary file.
    fn finish(mut self) -> Result<(), Failure> {
        self.flush()?;
        if let ResultFile::File { out, beside, path } = &mut self {
            let placed = out.get_ref().sync_all().and_then(|()| fs::rename(&beside, &path));
            placed.map_err(|e| Error::from(e).context(path.display()))?;
        }
        Ok(())
    }
}

impl Drop for ResultFile {
    fn drop(&mut self) {
        if let ResultFile::File { beside, .. } = self {
            // After a rename it does not exist.
            let _ = fs::remove_file(beside);
        }
    }
}

impl Write for ResultFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ResultFile::Standard(out) => out.write(bytes),
            ResultFile::File { out, .. } => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ResultFile::Standard(out) => out.flush(),
            ResultFile::File { out, .. } => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_have_valid_templates() {
        drop(ScriptBar::waiting("a.groovy"));
        ScriptBar::over(10).show(5, 16);
    }
}
