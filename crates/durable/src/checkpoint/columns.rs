//! Writing open columns with a checkpoint.

use std::io::{self, Write};

use mangrove_graph::{Error, Result};
use mangrove_store::{Snapshot, Store};

use super::place::{NewPack, Place};
use crate::open::columns::{ColumnsFormat, ColumnsOrigin, ManifestColumns, ManifestColumnsFile, columns_path};

/// Writes the open columns of a snapshot. The counters of the files follow `counter` (LOG-33). `pause` is called between files.
pub(super) fn write_columns<P: Place + ?Sized>(
    place: &P,
    store: &Store,
    format: &dyn ColumnsFormat,
    of: ColumnsOrigin,
    (incarnation, counter): (u64, &mut u64),
    pause: &mut dyn FnMut() -> Result<()>,
) -> Result<ManifestColumns> {
    place.begin_columns()?;
    let mut files = Vec::new();
    format.each_table(&store.view(Snapshot::committed(of.at_ts)), of, &mut |table, write_rows| {
        pause()?;
        *counter += 1;
        let path = columns_path(incarnation, *counter);
        let mut file = ColumnsFile { file: place.begin_pack(&path)?, bytes: 0, crc: 0, failure: None };
        let written = write_rows(&mut file);
        // The error of the place says more than that of the format.
        let rows = file.failure.take().map_or(written, Err)?;
        let ColumnsFile { file, bytes, crc, .. } = file;
        file.finish()?;
        files.push(ManifestColumnsFile {
            path,
            elements: table.kind.plural().to_owned(),
            label: store.catalog().label_set_name(table.labels).to_string(),
            label_set: table.labels.0,
            rows,
            bytes,
            crc32c: crc,
        });
        Ok(())
    })?;
    place.keep_columns()?;
    Ok(ManifestColumns { at_ts: of.at_ts, files })
}

/// A file that is being written.
struct ColumnsFile<'a> {
    file: Box<dyn NewPack + 'a>,
    bytes: u64,
    crc: u32,
    /// Why the place did not take bytes.
    failure: Option<Error>,
}

impl Write for ColumnsFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            Ok(()) => {
                self.crc = crc32c::crc32c_append(self.crc, bytes);
                self.bytes += bytes.len() as u64;
                Ok(bytes.len())
            }
            Err(error) => {
                let text = error.message().to_owned();
                self.failure = Some(error);
                Err(io::Error::other(text))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
