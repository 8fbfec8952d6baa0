//! The native module of the Python package `mangrove`: the embedded database, its results and its values.
//!
//! | module | content |
//! |---|---|
//! | `errors` | an error of the database as an exception; one class for each remedy |
//! | `elements` | vertices, edges, properties, paths and parts of graphs as Python objects |
//! | `to_python`, `from_python` | values in both directions |
//! | `process` | what a process that was forked must not touch; Ctrl-C |
//! | `options` | limits of queries, as Python gives them |
//! | `table`, `capsule` | columns of Arrow, and how other libraries give and take them |
//! | `results` | results of a query, read as they are found |
//! | `database`, `transaction` | the handles |
//! | `algorithms`, `loading` | graph algorithms; tables and files that are loaded |
//! | `sampling` | epochs, samples of neighbors and features, for PyTorch Geometric |
//! | `wire` | bytecode in, results out, as the bytes that gremlinpython reads and writes |
//! | `server` | a server in the process, so that other programs can look in |
//!
//! The interpreter's lock is released whenever the database works. So threads of Python run queries side by side.

use pyo3::prelude::*;

mod algorithms;
mod capsule;
mod database;
mod elements;
mod errors;
mod from_python;
mod loading;
mod options;
mod process;
mod results;
mod sampling;
mod server;
mod table;
mod to_python;
mod transaction;
mod wire;

#[global_allocator]
static ALLOCATOR: mangrove_allocator::Allocator = mangrove_allocator::Allocator;

#[pymodule]
fn _mangrove(module: &Bound<'_, PyModule>) -> PyResult<()> {
    process::watch_forks(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<database::PyDatabase>()?;
    module.add_class::<database::PyPrepared>()?;
    module.add_class::<transaction::PyTransaction>()?;
    module.add_class::<results::PyResults>()?;
    module.add_class::<server::PyServer>()?;
    module.add_class::<table::PyTable>()?;
    module.add_class::<options::PyCanceller>()?;
    module.add_class::<sampling::PySampler>()?;
    module.add_class::<elements::PyVertex>()?;
    module.add_class::<elements::PyEdge>()?;
    module.add_class::<elements::PyVertexProperty>()?;
    module.add_class::<elements::PyProperty>()?;
    module.add_class::<elements::PyPath>()?;
    module.add_class::<elements::PySubgraph>()?;
    module.add_function(wrap_pyfunction!(algorithms::algorithms, module)?)?;
    module.add_function(wrap_pyfunction!(process::after_fork_in_child, module)?)?;
    Ok(())
}
