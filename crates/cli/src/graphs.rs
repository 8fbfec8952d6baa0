//! A graph, opened and filled from files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use mangrove::{Database, DatabaseOptions, LoadOptions, LoadReport, Mapping, Progress, Result};

use crate::clock::Stopwatch;
use crate::quantity::Size;

/// Where a graph lives when nobody says.
pub const DATA_DEFAULT: &str = "memory:";

/// Opens the graph at a location.
pub fn open(data: Option<&str>, memory_limit: Option<Size>) -> Result<Database> {
    let mut options = DatabaseOptions::default();
    if let Some(limit) = memory_limit {
        options.memory_limit_bytes = limit.bytes;
    }
    Database::open(data.unwrap_or(DATA_DEFAULT), &options)
}

/// How to load, with the mapping read and a clock.
pub fn load_options(map: Option<&Path>) -> Result<LoadOptions> {
    let stopwatch = Stopwatch::start();
    Ok(LoadOptions {
        mapping: map.map(Mapping::read).transpose()?,
        clock: Arc::new(move || stopwatch.elapsed()),
        ..LoadOptions::default()
    })
}

/// Loads files, with a progress bar where standard error is a terminal.
pub fn load(database: &Database, files: &[PathBuf], options: &LoadOptions) -> Result<LoadReport> {
    let mut bar = Bar::new();
    let outcome = database.load(files, options, &mut |progress| bar.show(progress));
    bar.0.finish_and_clear();
    outcome
}

struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {elapsed} (ends in {eta})")
            .expect("the template is a constant that a test renders");
        Bar(ProgressBar::new(0).with_style(style))
    }

    fn show(&mut self, progress: Progress<'_>) {
        if self.0.is_hidden() {
            return;
        }
        self.0.set_length(progress.bytes_total);
        self.0.set_position(progress.bytes_read);
        let name = progress.file.file_name().unwrap_or(progress.file.as_os_str()).to_string_lossy();
        self.0.set_message(format!("{name}: {} rows", progress.rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_valid_template() {
        Bar::new().show(Progress { bytes_read: 1, bytes_total: 2, rows: 3, file: Path::new("a.csv") });
    }

    #[test]
    fn what_cannot_be_opened_is_named_with_the_way_out() {
        let message = open(Some("s3://bucket/graph"), None).err().expect("no such store yet").to_string();
        assert!(message.contains("s3://bucket/graph") && message.contains("memory:"), "{message}");
    }
}
