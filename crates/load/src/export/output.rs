//! A file that is being written: compressed as its name says, and visible only when it is complete.
//!
//! It is written under another name (`.partial`) in the same folder, synced to disk, and then renamed. An export that
//! stops or fails leaves no partial file, and does not touch the file that was there.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::input::Compression;
use mangrove_graph::{Error, ErrorKind, Result};

const BUFFER_BYTES: usize = 256 * 1024;

/// A file that is being written. If it is dropped before [`ExportFile::finish`], or that fails, nothing remains.
pub(crate) struct ExportFile {
    path: PathBuf,
    /// The name under which the file is written.
    partial: PathBuf,
    /// `None` once the file is finished.
    encoder: Option<FileEncoder>,
}

/// A buffered file, with the encoder of its compression.
enum FileEncoder {
    Plain(BufWriter<File>),
    Gzip(BufWriter<flate2::write::GzEncoder<File>>),
    Zstd(BufWriter<zstd::Encoder<'static, File>>),
    Bzip2(BufWriter<bzip2::write::BzEncoder<File>>),
}

impl ExportFile {
    /// Begins a file. Its extension names the compression.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let failed = |e: io::Error| Error::new(ErrorKind::Io, format!("cannot write {}: {e}", path.display()));
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(failed)?;
        let encoder = match Compression::of(path) {
            None => FileEncoder::Plain(BufWriter::with_capacity(BUFFER_BYTES, file)),
            Some(Compression::Gzip) => {
                let encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
                FileEncoder::Gzip(BufWriter::with_capacity(BUFFER_BYTES, encoder))
            }
            Some(Compression::Zstd) => {
                let encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(failed)?;
                FileEncoder::Zstd(BufWriter::with_capacity(BUFFER_BYTES, encoder))
            }
            Some(Compression::Bzip2) => {
                let encoder = bzip2::write::BzEncoder::new(file, bzip2::Compression::default());
                FileEncoder::Bzip2(BufWriter::with_capacity(BUFFER_BYTES, encoder))
            }
        };
        Ok(ExportFile { path: path.to_owned(), partial, encoder: Some(encoder) })
    }

    /// Completes the file and gives it its name. After an error, the partial file is gone.
    pub(crate) fn finish(mut self) -> Result<()> {
        let encoder = self.encoder.take().expect("a file is finished once, by value");
        let finished = encoder.finish().and_then(|()| std::fs::rename(&self.partial, &self.path));
        finished.map_err(|e| {
            self.remove_partial();
            Error::new(ErrorKind::Io, format!("cannot write {}: {e}", self.path.display()))
        })
    }

    fn remove_partial(&self) {
        // Best effort: the name of a file that remains shows that it is partial.
        let _ = std::fs::remove_file(&self.partial);
    }
}

impl FileEncoder {
    fn finish(self) -> io::Result<()> {
        let file = match self {
            FileEncoder::Plain(writer) => writer.into_inner()?,
            FileEncoder::Gzip(writer) => writer.into_inner()?.finish()?,
            FileEncoder::Zstd(writer) => writer.into_inner()?.finish()?,
            FileEncoder::Bzip2(writer) => writer.into_inner()?.finish()?,
        };
        file.sync_all()
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            FileEncoder::Plain(writer) => writer,
            FileEncoder::Gzip(writer) => writer,
            FileEncoder::Zstd(writer) => writer,
            FileEncoder::Bzip2(writer) => writer,
        }
    }
}

impl Write for ExportFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.encoder.as_mut().expect("there until finish, which takes it by value").writer().write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.as_mut().expect("there until finish, which takes it by value").writer().flush()
    }
}

impl Drop for ExportFile {
    fn drop(&mut self) {
        if self.encoder.take().is_some() {
            self.remove_partial();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_finished_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("mangrove-export-{}", std::process::id()));
        for name in ["rows.csv", "rows.csv.gz", "rows.csv.zst", "rows.csv.bz2"] {
            // A folder has the name, so the finished file cannot get it.
            let path = folder.join(name);
            std::fs::create_dir_all(&path).unwrap();
            let mut file = ExportFile::create(&path).unwrap();
            file.write_all(b"id,name\n").unwrap();
            let partial = folder.join(format!("{name}.partial"));
            assert!(partial.exists());
            assert_eq!(file.finish().unwrap_err().kind(), ErrorKind::Io);
            assert!(!partial.exists() && path.is_dir(), "{name}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
