//! `io()`: a file read into the graph, or the graph written to a file.

use mangrove_graph::{Error, Result, Value};
use mangrove_plan::files::{FileFormat, FileStep};

use super::{Scene, Statement, WriteBarrier};
use crate::rows::{Remember, Rows};

/// Reads or writes a file. Nothing comes out.
pub type File = WriteBarrier<Transfer>;

/// The statement of [`File`].
pub struct Transfer(FileStep);

impl File {
    /// For this file.
    pub fn new(step: FileStep) -> Self {
        WriteBarrier::of(Transfer(step), Remember::default())
    }
}

impl Statement for Transfer {
    fn write(&mut self, rows: Rows, scene: &Scene<'_>) -> Result<Rows> {
        let environment = scene.environment;
        let path = match environment.resolve(&self.0.path)? {
            Value::String(path) => path,
            other => return Err(Error::invalid(format!("io() takes the path of a file, not a {}", other.type_name()))),
        };
        let format = match self.0.format {
            Some(format) => format,
            None => FileFormat::of_name(&path)?,
        };
        let files = environment.files.as_ref();
        let files =
            files.ok_or_else(|| Error::bug("a query that reads or writes files has them in its surroundings"))?;
        match self.0.writes_file {
            true => files.write(&path, format, &*environment.view, scene.context)?,
            false => files.read(&path, format, scene.writer, scene.context)?,
        }
        Ok(rows.take(&[]))
    }
}
