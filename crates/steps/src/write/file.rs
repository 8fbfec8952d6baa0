//! `io()`: reads a file into the graph, or writes the graph to a file. The formats and the directory of files belong to
//! the database ([`Files`](crate::context::execution::Files)).

use mangrove_graph::{Error, Result, Value};
use mangrove_plan::files::{FileFormat, FileStep};

use super::{Statement, WriteBarrier, WriteContext};
use crate::context::type_name::a_type;
use crate::rows::{Remember, Rows};

/// Reads or writes a file. The step has no results.
pub(crate) type File = WriteBarrier<FileTransfer>;

/// The statement of [`File`].
pub(crate) struct FileTransfer(FileStep);

impl File {
    pub fn new(step: FileStep) -> Self {
        WriteBarrier::of(FileTransfer(step), Remember::default())
    }
}

impl Statement for FileTransfer {
    fn write(&mut self, rows: Rows, ctx: &WriteContext<'_>) -> Result<Rows> {
        let context = ctx.context;
        let path = match context.resolve(&self.0.path)? {
            Value::String(path) => path,
            other => return Err(Error::invalid(format!("io() takes the path of a file, not {}", a_type(&other)))),
        };
        let format = match self.0.format {
            Some(format) => format,
            None => FileFormat::of_name(&path)?,
        };
        let files = context.files.as_ref();
        let files = files.ok_or_else(|| Error::bug("a query that reads or writes files has them in its context"))?;
        match self.0.writes_file {
            true => files.write(&path, format, &*context.view, ctx.control)?,
            false => files.read(&path, format, ctx.writer, ctx.control)?,
        }
        Ok(rows.take(&[]))
    }
}
