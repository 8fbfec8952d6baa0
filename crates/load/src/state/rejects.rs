//! Rows that cannot be loaded, and the files they are written to.
//!
//! If the caller names a rejects file, there are two places:
//!
//! - the rejects file, a CSV table with the columns file, line, reason, row, made when the first row is rejected;
//! - the folder with the name of the rejects file plus `.rows`. It has the rows as they stand in their files, under the
//!   same names and the same headers. Once corrected, these files load with the same mapping.
//!
//! A limit stops a load with too many bad rows (LOAD-2).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::input::unpacked_name;
use crate::progress::{REJECTS_REPORTED_MAX, RejectedRow};
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use mangrove_graph::{Error, ErrorKind, Result};

/// The most bytes of a row in the rejects file: a missing quote can make one row of a whole file.
const ROW_BYTES_MAX: usize = 64 * 1024;

/// The rejects of one load.
pub(crate) struct Rejects {
    path: Option<PathBuf>,
    writer: Option<csv::Writer<File>>,
    /// The open files of rows in their original form, by file of the load.
    originals: HashMap<usize, BufWriter<File>>,
    /// The headers of files that have one, as they stand in the files.
    headers: HashMap<usize, Vec<u8>>,
    count_max: u64,
    count: u64,
    /// The first ones, for the report.
    first: Vec<RejectedRow>,
    /// The rows (file, line) that a later pass over the same file skips.
    rows: HashSet<(usize, u64)>,
}

impl Rejects {
    pub(crate) fn new(path: Option<PathBuf>, count_max: u64) -> Self {
        Rejects {
            path,
            writer: None,
            originals: HashMap::new(),
            headers: HashMap::new(),
            count_max,
            count: 0,
            first: Vec::new(),
            rows: HashSet::new(),
        }
    }

    /// How many rows were rejected.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Takes the first rejected rows.
    pub(crate) fn take_first(&mut self) -> Vec<RejectedRow> {
        std::mem::take(&mut self.first)
    }

    /// Returns true if an earlier pass rejected this row as a whole.
    pub(crate) fn contains(&self, file: usize, line: u64) -> bool {
        !self.rows.is_empty() && self.rows.contains(&(file, line))
    }

    /// Returns true if rejected rows are written to files.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.path.is_some()
    }

    /// Remembers that a row was rejected as a whole.
    pub(crate) fn remember(&mut self, file: usize, line: u64) {
        self.rows.insert((file, line));
    }

    /// LOAD-2: rejects a row. Fails if there are too many.
    pub(crate) fn add(&mut self, path: &Path, line: u64, reason: &str, row: &[u8]) -> Result<()> {
        self.count += 1;
        if self.first.len() < REJECTS_REPORTED_MAX {
            self.first.push(RejectedRow { path: path.to_owned(), line, reason: reason.to_owned() });
        }
        self.write(path, line, reason, row)?;
        if self.count <= self.count_max {
            return Ok(());
        }
        self.finish()?;
        // The caller adds the name of the file.
        let message = match (self.count_max, &self.path) {
            (0, _) => format!("line {line}: {reason} (no row may be rejected)"),
            (max, Some(file)) => format!(
                "more than {max} rows were rejected, the last one on line {line}: {reason}; all are in {}; mend the \
                 input or raise \
                 --max-rejects",
                file.display()
            ),
            (max, None) => format!(
                "more than {max} rows were rejected, the last one on line {line}: {reason}; name a rejects file to see \
                 them all, mend \
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

    /// Remembers the header of a file, which its rejected rows need.
    pub(crate) fn set_header(&mut self, file: usize, header: &[u8]) {
        if self.path.is_some() && !header.is_empty() {
            self.headers.entry(file).or_insert_with(|| header.to_vec());
        }
    }

    /// Writes a rejected row in its original form, to the file of the same name in the folder of rows, under the
    /// header.
    pub(crate) fn keep(&mut self, file: usize, path: &Path, row: &[u8]) -> Result<()> {
        let Some(folder) = self.rows_folder() else { return Ok(()) };
        let failed =
            |e: std::io::Error| Error::new(ErrorKind::Io, format!("rejected rows in {}: {e}", folder.display()));
        let original = match self.originals.entry(file) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let original = create_original(&folder, file, path).map_err(failed)?;
                let original = entry.insert(BufWriter::new(original));
                if let Some(header) = self.headers.get(&file) {
                    original.write_all(header).and_then(|()| original.write_all(b"\n")).map_err(failed)?;
                }
                original
            }
        };
        original.write_all(row).and_then(|()| original.write_all(b"\n")).map_err(failed)
    }

    /// The folder of rows in their original form.
    fn rows_folder(&self) -> Option<PathBuf> {
        let mut folder = self.path.as_ref()?.as_os_str().to_owned();
        folder.push(".rows");
        Some(PathBuf::from(folder))
    }

    /// Writes buffered rows to the files.
    pub(crate) fn finish(&mut self) -> Result<()> {
        for original in self.originals.values_mut() {
            original.flush().map_err(|e| Error::from(e).context("rejected rows"))?;
        }
        match &mut self.writer {
            Some(writer) => writer.flush().map_err(|e| Error::from(e).context("rejects file")),
            None => Ok(()),
        }
    }
}

/// Makes the file for the rejected rows of a file. If the name is taken, the number of the file is put before it.
fn create_original(folder: &Path, file: usize, path: &Path) -> std::io::Result<File> {
    let name = unpacked_name(path);
    let name = name.file_name().unwrap_or_else(|| "rows".as_ref());
    std::fs::create_dir_all(folder)?;
    // The name may be taken by an earlier load, or by another file of this one.
    match File::create_new(folder.join(name)) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            let mut numbered = std::ffi::OsString::from(format!("{file}_"));
            numbered.push(name);
            File::create(folder.join(numbered))
        }
        made => made,
    }
}
