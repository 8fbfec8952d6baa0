//! Rows that cannot be loaded.
//!
//! A bad row does not stop a load: it is written, with its place and the reason, to a rejects file, from
//! where it can be mended and loaded again. A limit ends loads whose every row is bad. The rejects file is
//! CSV with the columns file, line, reason, row; it is made when the first row is rejected. Beside it, in the folder that has its
//! name with `.rows` behind, the rows stand as they were, in a file of the same name as the one they came from and below the same
//! header: mended, these files load with the same mapping.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use mangrove_graph::{Error, ErrorKind, Result};

use crate::input::unpacked_name;

/// At most this much of a row is kept: a broken quote can make a row of a whole file.
const ROW_BYTES_MAX: usize = 64 * 1024;

/// Where rejected rows go and how many there may be.
pub(crate) struct Rejects {
    path: Option<PathBuf>,
    writer: Option<csv::Writer<File>>,
    /// The rows as they were, by file.
    originals: HashMap<usize, BufWriter<File>>,
    /// The headers of files that have one, as they stand in them.
    headers: HashMap<usize, Vec<u8>>,
    count_max: u64,
    count: u64,
    /// (file, line) of every row remembered, so that a later pass over the same file skips it in silence.
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
            rows: HashSet::new(),
        }
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
            (0, _) => format!("line {line}: {reason} (no row may be rejected)"),
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

    /// Remembers the header of a file, to stand above its rejected rows.
    pub(crate) fn set_header(&mut self, file: usize, header: &[u8]) {
        if self.path.is_some() && !header.is_empty() {
            self.headers.entry(file).or_insert_with(|| header.to_vec());
        }
    }

    /// Writes a rejected row as it stands in its file, below the header of that file, if it has one, to a file of the same
    /// name in the folder of rows.
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

    /// Where rejected rows stand in their original form.
    fn rows_folder(&self) -> Option<PathBuf> {
        let mut folder = self.path.as_ref()?.as_os_str().to_owned();
        folder.push(".rows");
        Some(PathBuf::from(folder))
    }

    /// Writes out what is buffered.
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

/// Makes the file for rejected rows of a file; where two files of a load have the same name, a number goes in front.
fn create_original(folder: &Path, file: usize, path: &Path) -> std::io::Result<File> {
    let name = unpacked_name(path);
    let name = name.file_name().unwrap_or_else(|| "rows".as_ref());
    std::fs::create_dir_all(folder)?;
    // A file that is there is of an earlier load, or of another file of this one.
    match File::create_new(folder.join(name)) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            let mut numbered = std::ffi::OsString::from(format!("{file}_"));
            numbered.push(name);
            File::create(folder.join(numbered))
        }
        made => made,
    }
}
