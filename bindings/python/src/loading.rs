//! Loading: tables of other libraries, and files.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mangrove::arrow::{ArrowElements, ArrowLabel, ArrowTable};
use mangrove::{Database, Interrupt, LoadOptions, LoadProgress, LoadReport, Mapping, UpsertKeys};
use mangrove_graph::{Error, ErrorKind, Result};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::capsule::import_stream;
use crate::errors::wrong;
use crate::process::{detached, interrupt, keep_raised};

/// How long a load works between two reports of its progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// What Python says about a table that is loaded.
#[derive(FromPyObject)]
pub(crate) struct GivenTable<'py> {
    #[pyo3(item)]
    kind: String,
    #[pyo3(item)]
    name: String,
    #[pyo3(item)]
    data: Bound<'py, PyAny>,
    #[pyo3(item)]
    label: Option<String>,
    #[pyo3(item)]
    label_column: Option<String>,
    #[pyo3(item)]
    id: Option<String>,
    #[pyo3(item)]
    source: Option<String>,
    #[pyo3(item)]
    target: Option<String>,
    #[pyo3(item)]
    properties: Option<Vec<String>>,
    #[pyo3(item)]
    rename: Vec<(String, String)>,
    #[pyo3(item)]
    bytes: u64,
}

/// What Python says about a load.
#[derive(FromPyObject)]
pub(crate) struct GivenLoad<'py> {
    #[pyo3(item)]
    upsert: bool,
    #[pyo3(item)]
    keys: Vec<String>,
    #[pyo3(item)]
    edge_keys: Vec<String>,
    #[pyo3(item)]
    max_rejects: Option<u64>,
    #[pyo3(item)]
    rejects: Option<PathBuf>,
    #[pyo3(item)]
    mapping: Option<String>,
    #[pyo3(item)]
    progress: Option<Bound<'py, PyAny>>,
}

impl GivenTable<'_> {
    fn open(self, py: Python<'_>) -> PyResult<ArrowTable<'static>> {
        let rows = import_stream(&self.data)?;
        let label = match (self.label, self.label_column) {
            (Some(label), None) => ArrowLabel::Constant(label.into()),
            (None, Some(column)) => ArrowLabel::Column(column.into()),
            (Some(constant), Some(column)) => ArrowLabel::Both { constant: constant.into(), column: column.into() },
            (None, None) => {
                return Err(wrong(py, format!("the table {} needs a label, or a column of labels", self.name)));
            }
        };
        let id = self.id.map(Into::into);
        let elements = match (self.kind.as_str(), self.source, self.target) {
            ("vertices", ..) => ArrowElements::Vertices { id },
            (_, Some(source), Some(target)) => {
                ArrowElements::Edges { source: source.into(), target: target.into(), id }
            }
            _ => {
                return Err(wrong(
                    py,
                    format!("the edges {} need the columns of their sources and targets", self.name),
                ));
            }
        };
        Ok(ArrowTable {
            name: self.name,
            elements,
            label,
            properties: self.properties.map(|names| names.into_iter().map(Into::into).collect()),
            renames: self.rename.into_iter().map(|(column, key)| (column.into(), key.into())).collect(),
            rows: Box::new(rows),
            bytes: self.bytes,
        })
    }
}

impl GivenLoad<'_> {
    fn options(&self, py: Python<'_>) -> PyResult<(LoadOptions, UpsertKeys)> {
        let raised = |error: Error| crate::errors::raised(py, &error);
        let defaults = LoadOptions::default();
        let mapping = self.mapping.as_deref().map(Mapping::parse).transpose().map_err(raised)?;
        #[expect(clippy::disallowed_methods, reason = "this is the edge: the report has the time of the outside world")]
        let begun = Instant::now();
        let options = LoadOptions {
            mapping,
            rejects: self.rejects.clone(),
            max_rejects: self.max_rejects.unwrap_or(defaults.max_rejects),
            clock: Arc::new(move || begun.elapsed()),
            ..defaults
        };
        let keys =
            UpsertKeys::parse(&self.keys).and_then(|keys| keys.with_edge_keys(&self.edge_keys)).map_err(raised)?;
        Ok((options, keys))
    }
}

/// Tells Python how far a load has come. If that raises an exception, the load ends.
struct Watch {
    report: Option<Py<PyAny>>,
    is_raised: Arc<AtomicBool>,
    told: Instant,
}

impl Watch {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the edge: progress is shown in the time of the outside world"
    )]
    fn tell(&mut self, progress: LoadProgress<'_>) {
        let Some(report) = &self.report else { return };
        let now = Instant::now();
        let is_last = progress.bytes_read == progress.bytes_total;
        if self.is_raised.load(Ordering::Relaxed) || (!is_last && now - self.told < REPORT_INTERVAL) {
            return;
        }
        self.told = now;
        let file = progress.file.display().to_string();
        let told = |py: Python<'_>| {
            report.call1(py, (progress.bytes_read, progress.bytes_total, progress.rows, file)).map(drop)
        };
        self.is_raised.store(Python::attach(told).is_err_and(keep_raised), Ordering::Relaxed);
    }
}

/// Runs a load. `work` gets the options, the keys of an upsert if it is one, and the function that is told the progress.
fn load(
    py: Python<'_>,
    given: &GivenLoad<'_>,
    work: impl FnOnce(&LoadOptions, Option<UpsertKeys>, &mut dyn FnMut(LoadProgress<'_>)) -> Result<LoadReport> + Send,
) -> PyResult<LoadReport> {
    let (mut options, keys) = given.options(py)?;
    let keys = given.upsert.then_some(keys);
    let is_raised = Arc::new(AtomicBool::new(false));
    let (raised_there, signals) = (is_raised.clone(), interrupt(py));
    options.interrupt = Some(Interrupt::new(move || {
        raised_there.load(Ordering::Relaxed) || signals.as_ref().is_some_and(Interrupt::is_raised)
    }));
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the edge: progress is shown in the time of the outside world"
    )]
    let mut watch = Watch {
        report: given.progress.as_ref().map(|report| report.clone().unbind()),
        is_raised,
        told: Instant::now(),
    };
    detached(py, move || work(&options, keys, &mut |progress| watch.tell(progress)))
}

/// Loads tables.
pub(crate) fn load_tables(
    py: Python<'_>,
    database: impl FnOnce() -> Result<Database> + Send,
    tables: Vec<GivenTable<'_>>,
    given: &GivenLoad<'_>,
) -> PyResult<LoadReport> {
    let tables = tables.into_iter().map(|table| table.open(py)).collect::<PyResult<Vec<_>>>()?;
    load(py, given, |options, keys, progress| match keys {
        None => database()?.load_arrow(tables, options, progress),
        Some(keys) => database()?.upsert_arrow(tables, options, keys, progress),
    })
}

/// Loads files.
pub(crate) fn load_files(
    py: Python<'_>,
    database: impl FnOnce() -> Result<Database> + Send,
    files: &[PathBuf],
    given: &GivenLoad<'_>,
) -> PyResult<LoadReport> {
    if files.is_empty() {
        let error = Error::new(ErrorKind::InvalidArgument, "no file is named; name files or folders");
        return Err(crate::errors::raised(py, &error));
    }
    load(py, given, |options, keys, progress| match keys {
        None => database()?.load(files, options, progress),
        Some(keys) => database()?.upsert(files, options, keys, progress),
    })
}

/// The report of a load as a dictionary.
pub(crate) fn report<'py>(py: Python<'py>, report: &LoadReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("vertices", report.vertices)?;
    dict.set_item("edges", report.edges)?;
    dict.set_item("created", report.upserts.created)?;
    dict.set_item("updated", report.upserts.updated)?;
    dict.set_item("unchanged", report.upserts.unchanged)?;
    dict.set_item("rejects", report.rejects)?;
    dict.set_item("seconds", report.seconds)?;
    let rejected = PyList::empty(py);
    for row in &report.rejected {
        rejected.append((row.path.display().to_string(), row.line, &row.reason))?;
    }
    dict.set_item("rejected", rejected)?;
    Ok(dict)
}
