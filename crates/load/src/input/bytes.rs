//! Files as bytes, decompressed.
//!
//! The first bytes of a file say how it is compressed (gzip, zstd, bzip2). Its name does not count, so standard input
//! and files with odd names work, too. A file of several compressed streams, one after the other, is read as one, as
//! `gzip -d` does.
//!
//! A compressed file is unpacked by a thread of its own, which runs at most [`BLOCKS_AHEAD`] blocks ahead of the
//! reader. A load therefore holds a few blocks of a file, whatever the file unpacks to (LOAD-1).
//!
//! A load reads files more than once. Standard input cannot be read twice, so [`Spool`] copies it to a temporary file
//! first.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use mangrove_graph::{Error, ErrorKind, Result};

/// Default of `LoadOptions::element_bytes_max`: the maximum number of bytes of an element of a file.
pub const ELEMENT_BYTES_MAX_DEFAULT: u64 = 64 << 20;

const BLOCK_BYTES: usize = 256 * 1024;
/// The most unpacked blocks that wait for the reader.
const BLOCKS_AHEAD: usize = 4;

/// The compression of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Compression {
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
    /// `.bz2`
    Bzip2,
}

impl Compression {
    /// The compression that the extension of a path names.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "gz" | "gzip" => Compression::Gzip,
            "zst" | "zstd" => Compression::Zstd,
            "bz2" => Compression::Bzip2,
            _ => return None,
        })
    }

    /// The extension of such files, without a point.
    pub fn extension(self) -> &'static str {
        match self {
            Compression::Gzip => "gz",
            Compression::Zstd => "zst",
            Compression::Bzip2 => "bz2",
        }
    }

    /// The compression that the first bytes of a file show.
    pub(crate) fn sniff(front: &[u8]) -> Option<Self> {
        match front {
            [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Some(Compression::Bzip2),
            _ => None,
        }
    }
}

/// A path without its extension if that names a compression (`people.csv.gz` → `people.csv`).
pub(crate) fn unpacked_name(path: &Path) -> PathBuf {
    match Compression::of(path) {
        Some(_) => path.with_extension(""),
        None => path.to_owned(),
    }
}

/// A file that is being read. Its bytes are unpacked.
pub(crate) struct Input {
    from: From,
    taken: BytesTaken,
}

/// The number of bytes of the file on disk that were read so far. For a compressed file it is smaller than the number
/// of bytes that its reader got. Clones share the count.
#[derive(Clone, Default)]
pub(crate) struct BytesTaken(Arc<AtomicU64>);

impl BytesTaken {
    pub(crate) fn get(&self) -> u64 {
        // Relaxed: the count is for progress only, and no other memory depends on it.
        self.0.load(Ordering::Relaxed)
    }
}

enum From {
    Plain(Counted),
    Unpacked(Unpacked),
}

impl Input {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut front = [0; 10];
        let read = read_up_to(&mut file, &mut front)?;
        file.seek(SeekFrom::Start(0))?;
        let taken = BytesTaken::default();
        let file = Counted { file, taken: taken.clone() };
        let from = match Compression::sniff(&front[..read]) {
            None => From::Plain(file),
            Some(compression) => From::Unpacked(Unpacked::start(compression, file)?),
        };
        Ok(Input { from, taken })
    }

    /// Bytes of the file on disk that were read so far: see [`BytesTaken`].
    pub(crate) fn bytes_taken(&self) -> u64 {
        self.taken.get()
    }

    /// The shared count, for a caller that hands the input to a parser.
    pub(crate) fn counter(&self) -> BytesTaken {
        self.taken.clone()
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.from {
            From::Plain(file) => file.read(buffer),
            From::Unpacked(unpacked) => unpacked.read(buffer),
        }
    }
}

/// Size of the read buffer for files that are parsed element by element, in bytes.
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;

/// A reader that fails once an element is longer than a limit. A compressed file of some megabytes may hold an element
/// of gigabytes, and the parser keeps one element in memory whole.
pub(crate) struct Bounded {
    input: Input,
    element: ElementLength,
    bytes_max: u64,
}

/// Bytes read since the last element ended. Clones share the count: the reader adds, the parser resets.
#[derive(Clone, Default)]
pub(crate) struct ElementLength(Arc<AtomicU64>);

impl ElementLength {
    /// Marks the end of an element: the count starts at 0 again.
    pub(crate) fn end(&self) {
        // Relaxed: the thread that reads is the thread that parses.
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Bounded {
    /// A buffered reader of a file that limits the length of its elements.
    pub(crate) fn buffered(input: Input, bytes_max: u64) -> BufReader<Bounded> {
        BufReader::with_capacity(BUFFER_BYTES, Bounded { input, element: ElementLength::default(), bytes_max })
    }

    /// The count that the parser resets at the end of each element.
    pub(crate) fn element(&self) -> ElementLength {
        self.element.clone()
    }

    /// The file.
    pub(crate) fn input(&self) -> &Input {
        &self.input
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let since = self.element.0.fetch_add(read as u64, Ordering::Relaxed) + read as u64;
        // The buffer is read ahead, so up to a buffer of the bytes may belong to earlier elements.
        if since > self.bytes_max.saturating_add(BUFFER_BYTES as u64) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, too_long("element", self.bytes_max)));
        }
        Ok(read)
    }
}

/// The message for an element or a line that is longer than the limit.
pub(crate) fn too_long(what: &str, bytes_max: u64) -> String {
    format!("the {what} is longer than {bytes_max} bytes; if it is meant to be, raise the limit (--max-element-size)")
}

fn read_up_to(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// A file that counts the bytes that are read of it.
struct Counted {
    file: File,
    taken: BytesTaken,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.taken.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

type Block = io::Result<Vec<u8>>;

/// Blocks from the thread that unpacks them. The thread ends at the end of the file, at an error, or when the reader is
/// dropped. Dropping this waits for the thread.
struct Unpacked {
    blocks: Option<Receiver<Block>>,
    current: Vec<u8>,
    position: usize,
    thread: Option<JoinHandle<()>>,
}

impl Unpacked {
    fn start(compression: Compression, file: Counted) -> io::Result<Self> {
        let (sender, blocks) = sync_channel(BLOCKS_AHEAD);
        let unpack = move || {
            let decoder: io::Result<Box<dyn Read>> = match compression {
                Compression::Gzip => Ok(Box::new(flate2::read::MultiGzDecoder::new(file))),
                Compression::Zstd => zstd::Decoder::new(file).map(|decoder| Box::new(decoder) as Box<dyn Read>),
                Compression::Bzip2 => Ok(Box::new(bzip2::read::MultiBzDecoder::new(file))),
            };
            let mut decoder = match decoder {
                Ok(decoder) => decoder,
                Err(e) => return drop(sender.send(Err(e))),
            };
            loop {
                let mut block = vec![0; BLOCK_BYTES];
                let read = read_up_to(&mut decoder, &mut block).map(|read| {
                    block.truncate(read);
                    block
                });
                let last = !matches!(&read, Ok(block) if block.len() == BLOCK_BYTES);
                if sender.send(read).is_err() || last {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("mangrove-unpack".to_owned()).spawn(unpack)?;
        Ok(Unpacked { blocks: Some(blocks), current: Vec::new(), position: 0, thread: Some(thread) })
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position == self.current.len() {
            let next = self.blocks.as_ref().and_then(|blocks| blocks.recv().ok());
            let Some(block) = next else { return Ok(0) };
            // If the file ends in the middle of a compressed stream, the decoder reports `UnexpectedEof`. The message
            // adds what that means.
            self.current =
                block.map_err(|e| io::Error::new(e.kind(), format!("the compressed data is damaged: {e}")))?;
            self.position = 0;
        }
        let len = buffer.len().min(self.current.len() - self.position);
        buffer[..len].copy_from_slice(&self.current[self.position..self.position + len]);
        self.position += len;
        Ok(len)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // Dropped first: a thread that waits for room in the channel then ends.
        drop(self.blocks.take());
        if let Some(thread) = self.thread.take() {
            // If the decoder panicked, its blocks ended and the reader has reported that.
            let _ = thread.join();
        }
    }
}

/// Standard input, copied to a temporary file that can be read several times. Dropping this removes the file.
pub(crate) struct Spool {
    /// A folder of its own, because labels are made of file names and the file shall be called `stdin`.
    folder: PathBuf,
    path: PathBuf,
}

impl Spool {
    /// Reads a stream to its end.
    pub(crate) fn new(mut from: impl Read) -> Result<Self> {
        let parent = std::env::temp_dir();
        let failed = |e: io::Error| {
            let message =
                format!("cannot keep standard input in {}: {e}; set TMPDIR to a folder with room", parent.display());
            Error::new(ErrorKind::Io, message)
        };
        // Only a new folder is used, so that no file of another user or program is overwritten.
        let made = (0..1000).find_map(|attempt| {
            let folder = parent.join(format!("mangrove-{}-{attempt}", std::process::id()));
            match std::fs::create_dir(&folder) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => None,
                made => Some(made.map(|()| folder)),
            }
        });
        let folder = made.unwrap_or_else(|| Err(io::Error::from(io::ErrorKind::AlreadyExists))).map_err(failed)?;
        let spool = Spool { path: folder.join("stdin"), folder };
        let mut file = File::create_new(&spool.path).map_err(failed)?;
        io::copy(&mut from, &mut file).and_then(|_| file.flush()).map_err(failed)?;
        Ok(spool)
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // Best effort: if it fails, the file stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Adds the name of a file to an error that was met while reading it.
pub(crate) fn in_file(path: &Path) -> impl FnOnce(Error) -> Error + '_ {
    move |error| error.context(path.display())
}

/// The error for a file that cannot be read.
pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_says_how_they_are_packed() {
        for (path, expected) in [("a/b.csv.gz", "a/b.csv"), ("b.csv", "b.csv"), ("b.ZST", "b"), ("b.bz2", "b")] {
            assert_eq!(unpacked_name(Path::new(path)), Path::new(expected));
        }
    }

    #[test]
    fn streams_are_kept_until_they_are_dropped() {
        let spool = Spool::new(&b"abc"[..]).unwrap();
        let path = spool.path().to_owned();
        assert_eq!(std::fs::read(&path).unwrap(), b"abc");
        drop(spool);
        assert!(!path.exists());
    }
}
