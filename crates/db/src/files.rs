//! The files of `io()`: they lie below one directory, which the operator of the database names.
//!
//! A path that a traversal gives is split into names. `..`, a root or a drive in it is refused before the disk is read.
//! Then every part must be a directory, and the last one, if it exists, a plain file. A link is refused wherever it
//! points. So is a pipe or a device, which a reader could wait for without end. Clients create only plain files in the
//! directory, so a checked path is still safe when it is opened.
//!
//! Elements that are read are added in the traversal's transaction, through the loader's sink. A file that is written
//! has the elements that the traversal sees. It has a temporary name until it is complete.
//!
//! Not here: formats (`mangrove_load`), and rights: reading and writing a file are both writes to a server.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_flow::QueryControl;
use mangrove_graph::{Error, ErrorKind, GraphView, Result, VertexId};
use mangrove_load::export::{ExportFormat, write_from};
use mangrove_load::{EdgeBatch, LoadFormat, LoadOptions, LoadSink, VertexBatch};
use mangrove_plan::files::FileFormat;
use mangrove_steps::Files;
use mangrove_txn::Transaction;

use crate::load_sink::TransactionSink;

/// The size of a write, in bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// The longest name, in bytes. File systems take 255, and the name of a partial file has a suffix.
const NAME_BYTES_MAX: usize = 200;

/// The directory of `io()`, if one is set.
#[derive(Debug, Default)]
pub(crate) struct FileAccess {
    directory: Option<PathBuf>,
    /// The number of the next partial file.
    partial: AtomicU64,
}

impl FileAccess {
    /// Below a directory.
    pub fn below(directory: &Path) -> Result<Self> {
        let refused =
            |reason: String| Error::new(ErrorKind::Io, format!("io_directory {}: {reason}", directory.display()));
        let real = directory.canonicalize().map_err(|e| refused(e.to_string()))?;
        if !real.is_dir() {
            return Err(refused("it is no directory".to_owned()));
        }
        Ok(FileAccess { directory: Some(real), partial: AtomicU64::new(0) })
    }

    /// The path of a file that a traversal names. All directories on the way exist and are no links.
    fn locate(&self, given: &str) -> Result<PathBuf> {
        let Some(directory) = &self.directory else {
            return Err(Error::unsupported(
                "io() reads and writes files below one directory, and none is set: start the server with \
                 --io-directory DIR, or call Database::set_io_directory()",
            ));
        };
        let refused = |reason: &str| Error::invalid(format!("io('{}'): {reason}", given.escape_debug()));
        let mut names = Vec::new();
        for component in Path::new(given).components() {
            match component {
                Component::Normal(name) => {
                    check_name(name.as_encoded_bytes()).map_err(|reason| refused(&reason))?;
                    names.push(name);
                }
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(refused("a path here goes down from the directory of io(), without `..` or a root"));
                }
            }
        }
        let Some((name, folders)) = names.split_last() else { return Err(refused("it names no file")) };
        let mut path = directory.clone();
        for folder in folders {
            path.push(folder);
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(refused(&format!("'{}' is no directory", folder.display()))),
                Err(e) => return Err(refused(&format!("'{}': {e}", folder.display()))),
            }
        }
        path.push(name);
        Ok(path)
    }

    /// A new partial file beside the given path, under a unique name.
    fn partial(&self, path: &Path) -> Result<PartialFile> {
        let number = self.partial.fetch_add(1, Ordering::Relaxed);
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}-{number}.partial", std::process::id()));
        let name = PathBuf::from(name);
        // An existing file or link is not touched.
        let file = OpenOptions::new().write(true).create_new(true).open(&name)?;
        Ok(PartialFile { name, file: Some(file) })
    }
}

/// A partial file. Dropping it removes it.
struct PartialFile {
    name: PathBuf,
    file: Option<File>,
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // Best effort: the name of a file that stays says that it is partial.
            let _ = std::fs::remove_file(&self.name);
        }
    }
}

impl PartialFile {
    /// Makes the file durable under its final name.
    fn finish(mut self, path: &Path) -> Result<()> {
        if let Some(file) = &self.file {
            file.sync_all()?;
        }
        std::fs::rename(&self.name, path)?;
        self.file = None;
        Ok(())
    }
}

impl Files for FileAccess {
    fn read(&self, given: &str, format: FileFormat, writer: &Transaction, control: &QueryControl) -> Result<()> {
        let path = self.locate(given)?;
        let named = |error: Error| unplaced(error, &path, given);
        check_file(&path, given, true)?;
        let options = LoadOptions {
            format: Some(match format {
                FileFormat::GraphMl => LoadFormat::GraphMl,
                FileFormat::GraphSon => LoadFormat::GraphSon,
            }),
            // A traversal does all of its work or fails.
            max_rejects: 0,
            ..LoadOptions::default()
        };
        let mut sink = ChargedSink { sink: TransactionSink::new(writer), control, charged: 0 };
        mangrove_load::load(std::slice::from_ref(&path), &options, &mut sink, &mut |_| {}).map_err(named)?;
        Ok(())
    }

    fn write(&self, given: &str, format: FileFormat, view: &dyn GraphView, control: &QueryControl) -> Result<()> {
        let path = self.locate(given)?;
        check_file(&path, given, false)?;
        let format = match format {
            FileFormat::GraphMl => ExportFormat::GraphMl,
            FileFormat::GraphSon => ExportFormat::GraphSonAdjacency,
        };
        let written = self.partial(&path).and_then(|partial| {
            let Some(file) = &partial.file else { return Err(Error::bug("a new file is open")) };
            let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
            write_from(view, &[], format, &mut out, &mut |_| control.check())?;
            out.flush()?;
            drop(out);
            partial.finish(&path)
        });
        written.map_err(|error| match error.kind() {
            ErrorKind::Io => error.context(format_args!("io('{given}')")),
            _ => error,
        })
    }
}

/// Refuses names that file systems do not take.
fn check_name(name: &[u8]) -> Result<(), String> {
    if name.contains(&0) {
        return Err("a name of a file has no character NUL".to_owned());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("a name in the path has {} bytes, more than {NAME_BYTES_MAX}", name.len()));
    }
    Ok(())
}

/// Refuses an existing path that is no plain file.
fn check_file(path: &Path, given: &str, must_exist: bool) -> Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(Error::invalid(format!("io('{given}'): it is no plain file"))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !must_exist => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(Error::new(
            ErrorKind::NotFound,
            format!("io('{given}'): there is no such file below the directory of io()"),
        )),
        Err(e) => Err(Error::new(ErrorKind::Io, format!("io('{given}'): {e}"))),
    }
}

/// The error for a client: with the path as the client gave it, without the directory.
fn unplaced(error: Error, path: &Path, given: &str) -> Error {
    let (real, shown) = (path.display().to_string(), format!("io('{given}')"));
    match error.message().contains(&real) {
        true => Error::new(error.kind(), error.message().replace(&real, &shown)),
        false => error.context(shown),
    }
}

/// A sink that writes in the transaction, within the limits of the query.
struct ChargedSink<'t> {
    sink: TransactionSink<'t>,
    control: &'t QueryControl,
    /// The bytes that are charged to the query for the reader.
    charged: u64,
}

impl LoadSink for ChargedSink<'_> {
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        self.control.check()?;
        self.sink.vertices(label, batch)
    }

    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()> {
        self.control.check()?;
        self.sink.edges(label, batch)
    }

    fn holds(&mut self, bytes: u64) -> Result<()> {
        self.control.check()?;
        if bytes > self.charged {
            self.control.charge(bytes - self.charged)?;
            self.charged = bytes;
        }
        Ok(())
    }
}

impl Drop for ChargedSink<'_> {
    fn drop(&mut self) {
        self.control.release(self.charged);
    }
}
