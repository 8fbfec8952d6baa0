//! Bytecode in, results out, in the bytes that gremlinpython reads and writes: GraphBinary, without a socket.

use std::sync::Arc;

use mangrove_graph::{Error, Result};
use mangrove_gremlin::{Argument, Bytecode, graphbinary};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raised;
use crate::process::detached;
use crate::results::{Reading, ReadingCell};

/// The most results in one answer.
const RESULTS_MAX: usize = 4_096;

/// The bytecode in some bytes.
pub(crate) fn bytecode(bytes: &[u8]) -> Result<Bytecode> {
    match graphbinary::decode_argument(bytes)? {
        Argument::Traversal(bytecode) => Ok(bytecode),
        _ => Err(Error::invalid("the bytes are a value, and no bytecode")),
    }
}

/// Results as bytes.
#[pyclass(name = "_WireResults", module = "mangrove._mangrove", frozen)]
pub(crate) struct PyWireResults {
    reading: Arc<ReadingCell>,
}

impl PyWireResults {
    pub(crate) fn new(reading: Arc<ReadingCell>) -> Self {
        PyWireResults { reading }
    }
}

/// Encodes results that were found already, or those that are found next.
fn encode_some(reading: &mut Reading) -> Result<(usize, Vec<u8>)> {
    let (mut count, mut bytes) = (0, Vec::new());
    while count == 0 || count < RESULTS_MAX && reading.is_ready() {
        let Some(value) = reading.next()? else { break };
        graphbinary::encode_value(&value, &mut bytes)?;
        count += 1;
    }
    Ok((count, bytes))
}

#[pymethods]
impl PyWireResults {
    /// The next results: how many there are, and their bytes one after the other. No results at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<(usize, Bound<'py, PyBytes>)> {
        let shared = self.reading.get().map_err(|error| raised(py, &error))?;
        let (count, bytes) = detached(py, || shared.with(encode_some))?;
        Ok((count, PyBytes::new(py, &bytes)))
    }
}
