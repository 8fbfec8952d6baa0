//! Rows that cannot be loaded.
//!
//! A bad row does not stop a load: it is written, with its place and the reason, to a rejects file, from
//! where it can be mended and loaded again. A limit ends loads whose every row is bad. The rejects file is
//! CSV with the columns file, line, reason, row; it is made when the first row is rejected.

use std::fs::File;
use std::path::{Path, PathBuf};

use hashbrown::HashSet;
use mangrove_graph::{Error, ErrorKind, Result};

/// At most this much of a row is kept: a broken quote can make a row of a whole file.
const ROW_BYTES_MAX: usize = 64 * 1024;

/// Where rejected rows go and how many there may be.
pub(crate) struct Rejects {
    path: Option<PathBuf>,
    writer: Option<csv::Writer<File>>,
    count_max: u64,
    count: u64,
    /// (file, line) of every row remembered, so that a later pass over the same file skips it in silence.
    rows: HashSet<(usize, u64)>,
}

impl Rejects {
    pub(crate) fn new(path: Option<PathBuf>, count_max: u64) -> Self {
        Rejects { path, writer: None, count_max, count: 0, rows: HashSet::new() }
    }

    /// How many rows were rejected.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether an earlier pass rejected this row as a whole.
    pub(crate) fn contains(&self, file: usize, line: u64) -> bool {
        !self.rows.is_empty() && self.rows.contains(&(file, line))
    }

    /// Whether rows are written anywhere.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.path.is_some()
    }

    /// Remembers that a row was rejected as a whole.
    pub(crate) fn remember(&mut self, file: usize, line: u64) {
        self.rows.insert((file, line));
    }

    /// Rejects a row; an error when there are now too many.
    pub(crate) fn add(&mut self, path: &Path, line: u64, reason: &str, row: &[u8]) -> Result<()> {
        self.count += 1;
        self.write(path, line, reason, row)?;
        if self.count <= self.count_max {
            return Ok(());
        }
        self.finish()?;
        // Whoever knows the file puts its name in front.
        let message = match (self.count_max, &self.path) {
            (0, _) => format!("line {line}: {reason} (no row may be rejected; raise --max-rejects to load the rest)"),
            (max, Some(file)) => format!(
                "more than {max} rows were rejected, the last one on line {line}: {reason}; all are in {}; mend the input or raise \
                 --max-rejects",
                file.display()
            ),
            (max, None) => format!(
                "more than {max} rows were rejected, the last one on line {line}: {reason}; name a rejects file to see them all, mend \
                 the input or raise --max-rejects"
            ),
        };
        Err(Error::invalid(message))
    }

    fn write(&mut self, path: &Path, line: u64, reason: &str, row: &[u8]) -> Result<()> {
        let Some(target) = &self.path else { return Ok(()) };
        let failed = |e: csv::Error| Error::new(ErrorKind::Io, format!("rejects file {}: {e}", target.display()));
        if self.writer.is_none() {
            let mut writer = csv::Writer::from_path(target).map_err(failed)?;
            writer.write_record(["file", "line", "reason", "row"]).map_err(failed)?;
            self.writer = Some(writer);
        }
        let row = String::from_utf8_lossy(&row[..row.len().min(ROW_BYTES_MAX)]);
        let writer = self.writer.as_mut().expect("made above");
        let fields = [path.to_string_lossy().as_ref(), &line.to_string(), reason, row.as_ref()].map(str::to_owned);
        writer.write_record(fields).map_err(failed)
    }

    /// Writes out what is buffered.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match &mut self.writer {
            Some(writer) => writer.flush().map_err(|e| Error::from(e).context("rejects file")),
            None => Ok(()),
        }
    }
}
