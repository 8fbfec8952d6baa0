//! Columns of Parquet files, decoded within bounds.
//!
//! A column is named as in the header of a CSV file (`plan::header`), so `~id`, `~label`, `name` and `age:int` mean the
//! same, and a mapping applies as well. If neither gives a type, values have the type that the file declares
//! (`schema`). A missing value is a null in the file; no text stands for it.
//!
//! A file may come from a stranger, so nothing it declares is believed before it is checked:
//!
//! - the footer is walked before it is decoded (`thrift`);
//! - pages are unpacked within limits (`pages`);
//! - a panic of the decoder is reported as a damaged file ([`guarded`]).
//!
//! The library `parquet` decodes values; `assemble` turns values and levels into lists and maps. `table::parquet` reads
//! row groups with several threads.
//!
//! Not here: encrypted files, columns in other files, and the compressions lz4, lzo and brotli, which are refused by
//! name; page indexes, statistics and Bloom filters, since a load reads everything.

mod assemble;
mod pages;
mod schema;
mod thrift;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use crate::values::ColumnType;
use mangrove_graph::{Error, ErrorKind, Result};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

pub(crate) use assemble::{ParquetCell, ParquetColumn};
pub(crate) use pages::PageBudget;
pub(crate) use schema::ParquetField;

/// The first and the last four bytes of a file.
const MAGIC: &[u8; 4] = b"PAR1";
/// The same, if the footer is encrypted.
const MAGIC_ENCRYPTED: &[u8; 4] = b"PARE";
/// The most bytes of a footer. It has some hundred bytes for each column of each row group.
const FOOTER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where the bytes of a file are.
pub(crate) trait ReadAt: Send + Sync {
    /// Fills the buffer with the bytes from an offset on. Fails if they end before that.
    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()>;
}

impl ReadAt for File {
    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, bytes, at)
    }
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let found = usize::try_from(at).ok().and_then(|at| self.get(at..)?.get(..bytes.len()));
        bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A file whose footer was read and checked.
pub(crate) struct ParquetFile {
    file: Arc<dyn ReadAt>,
    pub(crate) len: u64,
    pub(crate) metadata: ParquetMetaData,
    pub(crate) fields: Vec<ParquetField>,
}

impl fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFile").field("len", &self.len).field("fields", &self.fields).finish_non_exhaustive()
    }
}

impl ParquetFile {
    /// Reads the footer of a file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Self::of(Arc::new(file), len)
    }

    /// Reads the footer of a file whose bytes are in memory.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Result<Self> {
        let len = bytes.len() as u64;
        Self::of(Arc::new(bytes), len)
    }

    fn of(file: Arc<dyn ReadAt>, len: u64) -> Result<Self> {
        let footer = read_footer(&*file, len)?;
        thrift::check_footer(&footer).map_err(|fault| damaged(&format!("its footer is damaged: {fault}")))?;
        let decoded = guarded(|| ParquetMetaDataReader::decode_metadata(&footer).map_err(|e| decoding(&e)))?;
        let fields = guarded(|| schema::fields(decoded.file_metadata().schema()))?;
        Ok(ParquetFile { file, len, metadata: decoded, fields })
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    /// The type of each column, or why it has none.
    pub(crate) fn types(&self) -> Vec<Result<ColumnType>> {
        self.fields
            .iter()
            .map(|field| field.shape.as_ref().map(|shape| shape.kind.clone()).map_err(Clone::clone))
            .collect()
    }
}

/// Reads the footer, which says where everything else is.
fn read_footer(file: &dyn ReadAt, len: u64) -> Result<Vec<u8>> {
    let no_parquet = |what: &str| Error::new(ErrorKind::Syntax, format!("this is no Parquet file: {what}"));
    // Both marks, and the length of the footer.
    if len < 12 {
        return Err(no_parquet("it is too short"));
    }
    let mut front = [0; 4];
    file.read_exact_at(&mut front, 0)?;
    let mut tail = [0; 8];
    file.read_exact_at(&mut tail, len - 8)?;
    let (size, mark) = tail.split_first_chunk::<4>().expect("eight bytes have four");
    if mark == MAGIC_ENCRYPTED {
        return Err(Error::unsupported("the file is encrypted, which is not supported"));
    }
    if &front != MAGIC {
        let packed = crate::input::Compression::sniff(&front).is_some() || front.starts_with(&[0x1f, 0x8b]);
        return Err(no_parquet(if packed {
            "it is compressed as a whole; unpack it (Parquet compresses inside)"
        } else {
            "it does not begin with PAR1"
        }));
    }
    if mark != MAGIC {
        return Err(no_parquet("it does not end with PAR1; was it cut off?"));
    }
    let size = u64::from(u32::from_le_bytes(*size));
    if size > len - 12 {
        return Err(damaged("its footer would be longer than the file"));
    }
    if size > FOOTER_BYTES_MAX {
        let message = format!(
            "the footer has {size} bytes, more than the {FOOTER_BYTES_MAX} that are supported; write larger row groups"
        );
        return Err(Error::unsupported(message));
    }
    let mut footer = vec![0; size as usize];
    file.read_exact_at(&mut footer, len - 8 - size)?;
    Ok(footer)
}

/// The error for a damaged file.
pub(crate) fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("damaged Parquet: {what}"))
}

/// The error for a failure of the library.
fn decoding(error: &ParquetError) -> Error {
    match error {
        ParquetError::General(message) | ParquetError::EOF(message) => damaged(message),
        ParquetError::NYI(message) => Error::unsupported(format!("not supported in Parquet: {message}")),
        other => damaged(&other.to_string()),
    }
}

/// Runs code of the library on bytes of a stranger. If it panics, the bytes are damaged.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // The state of the work is dropped with it, so no half-changed state is seen.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(damaged(message.unwrap_or("it cannot be decoded")))
    })
}
