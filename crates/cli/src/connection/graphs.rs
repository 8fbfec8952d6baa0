//! Opens graphs and fills them from files, with progress bars if standard error is a terminal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use mangrove::{
    Database, DatabaseOptions, DryRun, Error, ErrorKind, LoadOptions, LoadProgress, LoadReport, Mapping, Recovery,
    RecoveryPhase, RecoveryProgress, Result, UpsertKeys, is_home_address,
};
use mangrove_load::LoadSink;

use crate::clock::Stopwatch;
use crate::quantity::Size;

/// The default location of a graph.
pub const DATA_DEFAULT: &str = "memory:";

/// The behavior if a directory has no database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A database is created: for commands that fill it.
    Create,
    /// An error: for commands that query.
    Refuse,
    /// An error; and an existing database is opened for reading only.
    ReadOnly,
}

/// A graph that was opened.
pub struct Opened {
    /// The database.
    pub database: Database,
    /// The time that opening took, in seconds.
    pub seconds: f64,
}

/// Opens the graph at a location. For one in a directory, shows the progress of recovery and prints what was found.
pub fn open(data: Option<&str>, memory_limit: Option<Size>, missing: Missing) -> Result<Database> {
    let options = DatabaseOptions::default();
    let Opened { database, seconds } = open_with(data, memory_limit, missing, options)?;
    if let (Some(found), Some(location)) = (database.recovery(), data) {
        eprintln!("{location}: {}", recovered(&found, seconds));
    }
    Ok(database)
}

/// As [`open`], with these options, and without printing.
pub fn open_with(
    data: Option<&str>,
    memory_limit: Option<Size>,
    missing: Missing,
    mut options: DatabaseOptions,
) -> Result<Opened> {
    options.durability.create = missing == Missing::Create;
    let location = data.unwrap_or(DATA_DEFAULT);
    showing(memory_limit, options, |options, show| match missing {
        Missing::ReadOnly if location != DATA_DEFAULT => Database::open_to_read(location, options, show),
        // A question does not take the graph over from the server that has it open.
        Missing::Refuse if is_home_address(location) => Database::open_to_read(location, options, show),
        _ => Database::open_with_progress(location, options, show),
    })
}

/// Follows the owner of the graph at an address.
pub fn follow_with(address: &str, memory_limit: Option<Size>, options: DatabaseOptions) -> Result<Opened> {
    showing(memory_limit, options, |options, show| Database::follow(address, options, show))
}

/// Opens a graph with a bar of its progress.
fn showing(
    memory_limit: Option<Size>,
    mut options: DatabaseOptions,
    open: impl FnOnce(&DatabaseOptions, &(dyn Fn(RecoveryProgress) + Sync)) -> Result<Database>,
) -> Result<Opened> {
    if let Some(limit) = memory_limit {
        options.memory_limit_bytes = limit.bytes;
    }
    let stopwatch = Stopwatch::start();
    let bar = RecoveryBar::new();
    let opened = open(&options, &|progress| bar.show(progress));
    bar.0.finish_and_clear();
    Ok(Opened { database: opened?, seconds: stopwatch.elapsed().as_secs_f64() })
}

/// One line about a recovery.
pub fn recovered(found: &Recovery, seconds: f64) -> String {
    let Recovery { graph, commits_replayed, checkpoint_bytes, log, .. } = found;
    let (vertices, edges) = (graph.vertices, graph.edges);
    let (checkpoint, log) = (HumanBytes(*checkpoint_bytes), HumanBytes(log.bytes));
    let mut line = format!(
        "{vertices} vertices and {edges} edges, from a checkpoint of {checkpoint} and {commits_replayed} later \
         commits; \
         {log} of log read; {seconds:.3} s"
    );
    if let Some(torn) = torn(found) {
        line.push_str("; ");
        line.push_str(&torn);
    }
    line
}

/// The message about a log whose end is torn.
pub fn torn(found: &Recovery) -> Option<String> {
    let torn = found.log.torn.as_ref()?;
    let (bytes, path, offset) = (torn.bytes, &torn.path, torn.offset);
    Some(format!(
        "the last write of the log is not whole, as a crash before its acknowledgement leaves it: {bytes} bytes of \
         {path} \
         at byte {offset} do not count"
    ))
}

/// Shows the progress of a recovery, which several threads report.
pub struct RecoveryBar(pub ProgressBar);

impl RecoveryBar {
    /// A bar of a recovery that has not begun.
    pub fn new() -> Self {
        let style = ProgressStyle::with_template("{bar:30} {msg}  {elapsed}")
            .expect("the template is a constant that a test renders");
        RecoveryBar(ProgressBar::new(0).with_style(style))
    }

    /// Shows the progress.
    pub fn show(&self, progress: RecoveryProgress) {
        if self.0.is_hidden() {
            return;
        }
        let RecoveryProgress { phase, done, total } = progress;
        self.0.set_length(total);
        self.0.set_position(done);
        self.0.set_message(match phase {
            RecoveryPhase::Checkpoint => format!("reading the checkpoint: page {done} of {total}"),
            RecoveryPhase::Log => format!("reading the log: {done} commits"),
            RecoveryPhase::Packing => "packing adjacency".to_owned(),
            RecoveryPhase::Ids => "filling the index of ids".to_owned(),
            RecoveryPhase::Indexes => "filling property indexes".to_owned(),
            _ => "checking".to_owned(),
        });
    }
}

/// Load options with a mapping, which is read here, and a clock.
pub fn load_options(map: Option<&Path>) -> Result<LoadOptions> {
    let stopwatch = Stopwatch::start();
    Ok(LoadOptions {
        mapping: map.map(mapping).transpose()?,
        clock: Arc::new(move || stopwatch.elapsed()),
        ..LoadOptions::default()
    })
}

/// Reads the mapping in a file, or one that comes with the program. A file wins. A folder is not a mapping: where a
/// data set was unpacked, a folder may have the name of its mapping.
fn mapping(map: &Path) -> Result<Mapping> {
    let shipped = map.to_str().and_then(Mapping::shipped);
    match shipped {
        Some(mapping) if !map.exists() || map.is_dir() => Ok(mapping),
        None if map.is_dir() => Err(Error::invalid(format!(
            "the mapping {} is a folder; name a file, as {}",
            map.display(),
            map.join("mapping.toml").display()
        ))),
        None if !map.exists() && map.components().count() == 1 && map.extension().is_none() => {
            let names: Vec<&str> = Mapping::shipped_names().collect();
            let message = format!(
                "there is no mapping file '{}', and no mapping of this name comes with the program, which has {}",
                map.display(),
                names.join(", ")
            );
            Err(Error::new(ErrorKind::NotFound, message))
        }
        _ => Mapping::read(map),
    }
}

/// Upserts files into a graph that need not be empty.
pub fn upsert(database: &Database, files: &[PathBuf], options: &LoadOptions, keys: UpsertKeys) -> Result<LoadReport> {
    let mut bar = LoadBar::new();
    let outcome = database.upsert(files, options, keys, &mut |progress| bar.show(progress));
    bar.0.finish_and_clear();
    outcome
}

/// Loads files into a sink of the caller.
pub fn load_into(sink: &mut dyn LoadSink, files: &[PathBuf], options: &LoadOptions) -> Result<LoadReport> {
    let mut bar = LoadBar::new();
    let outcome = mangrove_load::load(files, options, sink, &mut |progress| bar.show(progress));
    bar.0.finish_and_clear();
    outcome
}

/// Runs a load without writing.
pub fn dry_run(files: &[PathBuf], options: &LoadOptions) -> Result<DryRun> {
    let mut bar = LoadBar::new();
    let outcome = mangrove::dry_run(files, options, &mut |progress| bar.show(progress));
    bar.0.finish_and_clear();
    outcome
}

/// Loads files into an empty graph.
pub fn load(database: &Database, files: &[PathBuf], options: &LoadOptions) -> Result<LoadReport> {
    let mut bar = LoadBar::new();
    let outcome = database.load(files, options, &mut |progress| bar.show(progress));
    bar.0.finish_and_clear();
    outcome
}

/// A line for people: the elements loaded, the time and the rate. A load of less than 50 ms shows no rate.
pub fn load_summary(report: &LoadReport) -> String {
    let elements = report.vertices + report.edges;
    let what = if elements == 1 { "vertex or edge" } else { "vertices and edges" };
    let rate = match report.seconds >= 0.05 {
        true => format!(": {:.0} a second", elements as f64 / report.seconds),
        false => String::new(),
    };
    format!("{elements} {what} in {:.3} s{rate}", report.seconds)
}

struct LoadBar(ProgressBar);

impl LoadBar {
    fn new() -> Self {
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {elapsed} (ends in {eta})")
            .expect("the template is a constant that a test renders");
        LoadBar(ProgressBar::new(0).with_style(style))
    }

    fn show(&mut self, progress: LoadProgress<'_>) {
        if self.0.is_hidden() {
            return;
        }
        self.0.set_length(progress.bytes_total);
        self.0.set_position(progress.bytes_read);
        let name = progress.file.file_name().unwrap_or(progress.file.as_os_str()).to_string_lossy();
        let rate = progress.rows as f64 / self.0.elapsed().as_secs_f64().max(0.001);
        self.0.set_message(format!("{name}: {} rows, {rate:.0} a second", progress.rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_valid_template() {
        LoadBar::new().show(LoadProgress { bytes_read: 1, bytes_total: 2, rows: 3, file: Path::new("a.csv") });
    }

    #[test]
    fn the_bar_of_a_recovery_has_one_too() {
        RecoveryBar::new().show(RecoveryProgress { phase: RecoveryPhase::Log, done: 1, total: 0 });
    }

    #[test]
    fn what_cannot_be_opened_is_named_with_the_way_out() {
        for (location, way_out) in
            [("http://host/graph", "s3://"), ("file:", "file:DIRECTORY"), ("s3://", "s3://BUCKET")]
        {
            let message = open(Some(location), None, Missing::Create).err().expect("nothing is there").to_string();
            assert!(message.contains(location) && message.contains(way_out), "{message}");
        }
    }
}
