//! A server in the process of the interpreter, so that other programs can look into its database.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread::JoinHandle;

use mangrove::Database;
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_server::{Config, DatabaseEngine, EngineLimits, Server, blocking_thread_count, default_sources};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::errors::raised;
use crate::process::{OfProcess, detached};

/// A running server. It stops when it is stopped or dropped.
#[pyclass(name = "Server", module = "mangrove", frozen)]
pub(crate) struct PyServer {
    running: OfProcess<Mutex<Option<Running>>>,
    address: SocketAddr,
}

struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<()>>,
}

impl Running {
    fn stop(self) -> Result<()> {
        // A server that has ended by itself does not listen.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_else(|_| Err(Error::bug("the thread of the server panicked")))
    }
}

impl PyServer {
    pub(crate) fn start(database: Database, host: &str, port: u16, allow_remote: bool, name: &str) -> Result<PyServer> {
        let unknown = |error: std::io::Error| Error::new(ErrorKind::Io, format!("the host {host}: {error}"));
        let listen = (host, port).to_socket_addrs().map_err(unknown)?.next();
        let listen = listen.ok_or_else(|| Error::invalid(format!("the host {host} has no address")))?;
        let config = Config { allow_remote, ..Config::new(listen) };
        let engine = DatabaseEngine::drawing_on(database.memory_budget().clone(), EngineLimits::default());
        mangrove_server::check_graph_name(name)?;
        engine.graph(name, database, default_sources(name))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(blocking_thread_count(&config.limits))
            .enable_all()
            .build()?;
        let server = runtime.block_on(Server::bind(config, Arc::new(engine)))?;
        let address = server.local_address()?;
        let thread = std::thread::Builder::new().name("mangrove-serve".into()).spawn(move || {
            runtime.block_on(server.serve(async {
                // Also when the sender is dropped.
                let _ = stopped.await;
            }))
        })?;
        Ok(PyServer { running: OfProcess::new(Mutex::new(Some(Running { stop, thread }))), address })
    }
}

#[pymethods]
impl PyServer {
    /// Stops the server: running requests get some seconds to end. The database stays open.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let running = self.running.get().map_err(|error| raised(py, &error))?;
        detached(py, || {
            let running = running.lock().take();
            running.map_or(Ok(()), Running::stop)
        })
    }

    /// The address that clients of Gremlin connect to.
    #[getter]
    fn url(&self) -> String {
        format!("ws://{}/gremlin", self.address)
    }

    /// The port.
    #[getter]
    fn port(&self) -> u16 {
        self.address.port()
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.stop(py)
    }

    fn __repr__(&self) -> String {
        format!("Server({})", self.url())
    }
}
