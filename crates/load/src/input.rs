//! Files as bytes, whatever they are compressed with.
//!
//! Compression is told by the first bytes of a file (gzip, zstd, bzip2), not by its name, so it works for standard input and for
//! files with odd names. What is compressed is unpacked on a thread of its own, a few blocks ahead of who reads: never more than
//! [`BLOCKS_AHEAD`] blocks are in memory, however much a file unpacks to. Several packed streams one behind the other are one file,
//! as the tools have it.
//!
//! Loads read files more than once, which standard input does not allow: it is written to a temporary file first.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use mangrove_graph::{Error, ErrorKind, Result};

const BLOCK_BYTES: usize = 256 * 1024;
/// Unpacked blocks that wait for their reader.
const BLOCKS_AHEAD: usize = 4;

/// What a file is compressed with.
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
    /// What the extension of a path says.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "gz" | "gzip" => Compression::Gzip,
            "zst" | "zstd" => Compression::Zstd,
            "bz2" => Compression::Bzip2,
            _ => return None,
        })
    }

    /// The extension of such files.
    pub fn extension(self) -> &'static str {
        match self {
            Compression::Gzip => "gz",
            Compression::Zstd => "zst",
            Compression::Bzip2 => "bz2",
        }
    }

    /// What the first bytes of a file say.
    pub(crate) fn sniff(front: &[u8]) -> Option<Self> {
        match front {
            [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Some(Compression::Bzip2),
            _ => None,
        }
    }
}

/// A path without the extension that says how it is compressed.
pub(crate) fn unpacked_name(path: &Path) -> PathBuf {
    match Compression::of(path) {
        Some(_) => path.with_extension(""),
        None => path.to_owned(),
    }
}

/// A file being read, unpacked.
pub(crate) struct Input {
    from: From,
    taken: Taken,
}

/// How many bytes of a file itself were taken so far: of one that is compressed, fewer than were read.
#[derive(Clone, Default)]
pub(crate) struct Taken(Arc<AtomicU64>);

impl Taken {
    pub(crate) fn get(&self) -> u64 {
        // A count for progress; nothing else is published by it.
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
        let taken = Taken::default();
        let file = Counted { file, taken: taken.clone() };
        let from = match Compression::sniff(&front[..read]) {
            None => From::Plain(file),
            Some(compression) => From::Unpacked(Unpacked::start(compression, file)?),
        };
        Ok(Input { from, taken })
    }

    /// See [`Taken`].
    pub(crate) fn bytes_taken(&self) -> u64 {
        self.taken.get()
    }

    /// The count, for those who have given the input away.
    pub(crate) fn counter(&self) -> Taken {
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

/// How many bytes of a file are read at a time where it is read element by element.
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;

/// A file of which no element is longer than a limit. A packed file of some megabytes may hold one of gigabytes, and
/// the parser keeps an element in memory whole.
pub(crate) struct Bounded {
    input: Input,
    element: Element,
    bytes_max: u64,
}

/// How many bytes were read since the last element ended.
#[derive(Clone, Default)]
pub(crate) struct Element(Arc<AtomicU64>);

impl Element {
    /// An element ends; the next one begins.
    pub(crate) fn end(&self) {
        // Relaxed: one thread reads and parses.
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Bounded {
    /// Buffered, around a file.
    pub(crate) fn buffered(input: Input, bytes_max: u64) -> BufReader<Bounded> {
        BufReader::with_capacity(BUFFER_BYTES, Bounded { input, element: Element::default(), bytes_max })
    }

    /// See [`Element`].
    pub(crate) fn element(&self) -> Element {
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
        // What was read may belong to several elements: at most a buffer of it to others than the last.
        if since > self.bytes_max.saturating_add(BUFFER_BYTES as u64) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, too_long("element", self.bytes_max)));
        }
        Ok(read)
    }
}

/// Why an element, or a line, is not read.
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

/// A file that counts what is read of it.
struct Counted {
    file: File,
    taken: Taken,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.taken.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

type Block = io::Result<Vec<u8>>;

/// Blocks from the thread that unpacks them. The thread ends with the file, at an error, or when nobody takes
/// its blocks anymore; dropping this waits for it.
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
            // An end in the middle of a packed stream has this kind already; the message says what it means.
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
        // First, so that the thread does not wait for room forever.
        drop(self.blocks.take());
        if let Some(thread) = self.thread.take() {
            // A panic of a decoder is the end of its blocks; who read them has met it.
            let _ = thread.join();
        }
    }
}

/// Standard input in a file that can be read again; removed when this is dropped.
pub(crate) struct Spool {
    /// A folder of its own, so that the file can be called `stdin`: labels are made of names.
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
        // Made anew, so that nothing of somebody else's is written to.
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

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // Best effort: what stays behind is in the folder for such files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
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
