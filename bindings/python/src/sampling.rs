//! Epochs, samples of neighbors and features, for `mangrove.pyg`.
//!
//! Arrays come out without a copy: an [`PyArray`] owns the numbers, and NumPy reads them in place by the array interface, which
//! needs no header of NumPy. Numbers of vertices come in as the bytes of 64-bit integers.

use std::sync::{Arc, Weak};

use mangrove::analytics::sampling::features::{FeatureOptions, FeatureType, FeatureValues, Features};
use mangrove::analytics::sampling::{
    EdgeType, Sample, Sampler, SamplerOptions, Seeds, Temporal, TemporalOf, TemporalStrategy, TypedGraphOptions,
    VertexType,
};
use mangrove::{Database, Direction, Epoch, UserId};
use mangrove_graph::{Error, ErrorKind, Result};
use parking_lot::RwLock;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyDict, PyList};

use crate::errors::{raised, wrong};
use crate::from_python;
use crate::process::{OfProcess, detached};
use crate::to_python::ToPython;

/// What an array owns.
#[expect(dead_code, reason = "NumPy reads the numbers, by their address")]
enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
}

/// Numbers that NumPy reads in place: `numpy.asarray(array)`. They live as long as the array does, and NumPy keeps it.
#[pyclass(name = "_Array", module = "mangrove._mangrove", frozen)]
pub(crate) struct PyArray {
    /// Nothing here reads them again: what NumPy writes is NumPy's.
    _numbers: Numbers,
    address: usize,
    type_name: &'static str,
    shape: Vec<usize>,
}

impl PyArray {
    fn of_integers(mut numbers: Vec<i64>) -> Self {
        let (address, shape) = (numbers.as_mut_ptr() as usize, vec![numbers.len()]);
        PyArray { _numbers: Numbers::I64(numbers), address, type_name: "<i8", shape }
    }

    fn of_features(features: Features) -> Self {
        let shape = if features.has_lists { vec![features.rows, features.width] } else { vec![features.rows] };
        match features.values {
            FeatureValues::F32(mut numbers) => {
                let address = numbers.as_mut_ptr() as usize;
                PyArray { _numbers: Numbers::F32(numbers), address, type_name: "<f4", shape }
            }
            FeatureValues::F64(mut numbers) => {
                let address = numbers.as_mut_ptr() as usize;
                PyArray { _numbers: Numbers::F64(numbers), address, type_name: "<f8", shape }
            }
            FeatureValues::I64(numbers) => PyArray { shape, ..PyArray::of_integers(numbers) },
        }
    }
}

#[pymethods]
impl PyArray {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", self.type_name)?;
        interface.set_item("shape", pyo3::types::PyTuple::new(py, &self.shape)?)?;
        interface.set_item("data", (self.address, false))?;
        Ok(interface)
    }
}

/// The 64-bit integers of some bytes.
fn integers(py: Python<'_>, bytes: &Bound<'_, PyBytes>) -> PyResult<Vec<i64>> {
    let (numbers, rest) = bytes.as_bytes().as_chunks::<8>();
    match rest {
        [] => Ok(numbers.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()),
        _ => Err(wrong(py, format!("{} bytes are no 64-bit integers", bytes.as_bytes().len()))),
    }
}

/// An epoch, until it or its database is closed.
pub(crate) type EpochCell = OfProcess<RwLock<Option<Epoch>>>;

/// Ends an epoch: its snapshot is given up.
pub(crate) fn end(epoch: &EpochCell) {
    if let Ok(epoch) = epoch.get() {
        epoch.write().take();
    }
}

/// A moment of the graph, with its vertices and edges by type.
#[pyclass(name = "_Epoch", module = "mangrove._mangrove", frozen)]
pub(crate) struct PyEpoch {
    epoch: Arc<EpochCell>,
}

/// A vertex type as Python gives it: name, label, key of times.
pub(crate) type VertexTypeArguments = (String, Option<String>, Option<String>);
/// An edge type as Python gives it: source, name, target, label, direction, key of weights, key of times, whether edges are named.
pub(crate) type EdgeTypeArguments =
    (usize, String, usize, Option<String>, String, Option<String>, Option<String>, bool);

/// The options of a typed graph.
pub(crate) fn types(
    py: Python<'_>,
    vertex_types: Vec<VertexTypeArguments>,
    edge_types: Vec<EdgeTypeArguments>,
) -> PyResult<TypedGraphOptions> {
    let vertex_types = vertex_types.into_iter().map(|(name, label, time)| VertexType { name, label, time }).collect();
    let edge_type = |(source, name, target, label, direction, weight, time, names_edges): EdgeTypeArguments| {
        let direction = match direction.as_str() {
            "out" => Direction::Out,
            "in" => Direction::In,
            "both" => Direction::Both,
            other => {
                return Err(wrong(py, format!("the direction of edges is 'out', 'in' or 'both', and not '{other}'")));
            }
        };
        Ok(EdgeType { source, name, target, label, direction, weight, time, names_edges })
    };
    let edge_types = edge_types.into_iter().map(edge_type).collect::<PyResult<_>>()?;
    Ok(TypedGraphOptions { vertex_types, edge_types })
}

/// The labels of all vertices, and the source, edge and target labels of all edges.
pub(crate) type AllTypes = (Vec<String>, Vec<(String, String, String)>);

/// The types that the edges of a database have.
pub(crate) fn all_types(database: &Database) -> Result<AllTypes> {
    let all = TypedGraphOptions::of_all(database.begin_read()?.view())?;
    let name = |at: usize| all.vertex_types[at].name.clone();
    let edges = all.edge_types.iter().map(|of| (name(of.source), of.name.clone(), name(of.target))).collect();
    Ok((all.vertex_types.into_iter().map(|of| of.name).collect(), edges))
}

impl PyEpoch {
    /// An epoch, and what the database ends it by.
    pub(crate) fn new(epoch: Epoch) -> (Self, Weak<EpochCell>) {
        let epoch = Arc::new(OfProcess::new(RwLock::new(Some(epoch))));
        let weak = Arc::downgrade(&epoch);
        (PyEpoch { epoch }, weak)
    }

    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Epoch) -> Result<T> + Send) -> PyResult<T> {
        let cell = self.epoch.get().map_err(|error| raised(py, &error))?;
        detached(py, || {
            let epoch = cell.read();
            work(epoch.as_ref().ok_or_else(|| {
                Error::new(ErrorKind::Closed, "the epoch is closed, or its database: begin another one")
            })?)
        })
    }

    /// The epoch of the newest moment. `None` if this one is closed.
    pub(crate) fn next(&self, py: Python<'_>, threads: usize) -> PyResult<(PyEpoch, Weak<EpochCell>)> {
        self.with(py, |epoch| epoch.next(threads)).map(PyEpoch::new)
    }
}

#[pymethods]
impl PyEpoch {
    /// The number of vertices of a type.
    fn vertex_count(&self, py: Python<'_>, vertex_type: usize) -> PyResult<usize> {
        self.with(py, |epoch| {
            epoch.graph().vertices(vertex_type, &[])?;
            Ok(epoch.graph().vertex_count(vertex_type))
        })
    }

    /// The number of edges of a type.
    fn edge_count(&self, py: Python<'_>, edge_type: usize) -> PyResult<u64> {
        self.with(py, |epoch| {
            let types = epoch.graph().options().edge_types.len();
            if edge_type >= types {
                return Err(Error::invalid(format!("there is no edge type {edge_type}: the graph has {types}")));
            }
            Ok(epoch.graph().edge_count(edge_type))
        })
    }

    /// The pages that were read for this epoch, and those that were kept from the last one.
    fn refreshed(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        self.with(py, |epoch| Ok((epoch.refreshed().read, epoch.refreshed().kept)))
    }

    /// The timestamp of the last commit that the epoch shows.
    fn commit(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.with(py, |epoch| Ok(epoch.graph().commit()))
    }

    /// The edges of a type: where the edges of each target begin, and the source of each edge.
    fn columns(&self, py: Python<'_>, edge_type: usize) -> PyResult<(PyArray, PyArray)> {
        let (begins, sources) = self.with(py, |epoch| epoch.graph().columns(edge_type, &mangrove::Team::alone()))?;
        Ok((PyArray::of_integers(begins), PyArray::of_integers(sources)))
    }

    /// The values of vertices under a key.
    #[expect(clippy::too_many_arguments, reason = "one for each option that Python gives")]
    fn vertex_features(
        &self,
        py: Python<'_>,
        vertex_type: usize,
        numbers: &Bound<'_, PyBytes>,
        key: &str,
        kind: Option<&str>,
        width: Option<usize>,
        fill: Option<f64>,
        threads: usize,
    ) -> PyResult<PyArray> {
        let (numbers, options) = (integers(py, numbers)?, feature_options(py, kind, width, fill)?);
        self.with(py, |epoch| epoch.vertex_features(vertex_type, &numbers, key, options, threads))
            .map(PyArray::of_features)
    }

    /// The values of edges under a key.
    #[expect(clippy::too_many_arguments, reason = "one for each option that Python gives")]
    fn edge_features(
        &self,
        py: Python<'_>,
        edge_type: usize,
        numbers: &Bound<'_, PyBytes>,
        key: &str,
        kind: Option<&str>,
        width: Option<usize>,
        fill: Option<f64>,
        threads: usize,
    ) -> PyResult<PyArray> {
        let (numbers, options) = (integers(py, numbers)?, feature_options(py, kind, width, fill)?);
        self.with(py, |epoch| epoch.edge_features(edge_type, &numbers, key, options, threads)).map(PyArray::of_features)
    }

    /// The ids of vertices.
    fn vertex_ids<'py>(
        &self,
        py: Python<'py>,
        vertex_type: usize,
        numbers: &Bound<'_, PyBytes>,
    ) -> PyResult<Bound<'py, PyList>> {
        let numbers = integers(py, numbers)?;
        let ids = self.with(py, |epoch| epoch.vertex_ids(vertex_type, &numbers))?;
        let mut convert = ToPython::default();
        let ids = ids.iter().map(|id| convert.object(py, id)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, ids)
    }

    /// The numbers of vertices by their ids.
    fn vertex_numbers(&self, py: Python<'_>, vertex_type: usize, ids: Vec<Bound<'_, PyAny>>) -> PyResult<PyArray> {
        let id = |object: &Bound<'_, PyAny>| {
            let value = from_python::value(object)?;
            UserId::from_value(&value)
                .ok_or_else(|| wrong(py, format!("{value:?} is no id: ids are integers, strings or UUIDs")))
        };
        let ids = ids.iter().map(id).collect::<PyResult<Vec<_>>>()?;
        self.with(py, |epoch| epoch.vertex_numbers(vertex_type, &ids)).map(PyArray::of_integers)
    }

    /// Gives up the snapshot.
    fn close(&self, py: Python<'_>) {
        py.detach(|| end(&self.epoch));
    }
}

fn feature_options(
    py: Python<'_>,
    kind: Option<&str>,
    width: Option<usize>,
    fill: Option<f64>,
) -> PyResult<FeatureOptions> {
    let kind = match kind {
        None => None,
        Some("float32") => Some(FeatureType::F32),
        Some("float64") => Some(FeatureType::F64),
        Some("int64") => Some(FeatureType::I64),
        Some(other) => {
            return Err(wrong(py, format!("features are 'float32', 'float64' or 'int64', and not '{other}'")));
        }
    };
    Ok(FeatureOptions { kind, width, fill })
}

/// A sampler: how samples are drawn.
#[pyclass(name = "Sampler", module = "mangrove._mangrove", frozen)]
pub(crate) struct PySampler {
    sampler: OfProcess<Sampler>,
    /// By edge type, the type of the edges in the other direction; empty unless samples have both directions.
    reverse: Vec<Option<usize>>,
}

/// A sample as Python gets it: numbers of vertices by type, sources, targets and numbers of edges by type, trees by vertex type, and
/// the counts of hops of vertices and of edges.
type SampleArrays =
    (Vec<PyArray>, Vec<PyArray>, Vec<PyArray>, Vec<PyArray>, Option<Vec<PyArray>>, Vec<Vec<usize>>, Vec<Vec<usize>>);

#[pymethods]
impl PySampler {
    /// `fanouts`: by edge type and hop; a negative number means all.
    #[new]
    #[pyo3(signature = (fanouts, *, replace, disjoint, weighted, times_of, last, seed, reverse))]
    #[expect(clippy::too_many_arguments, reason = "one for each option that Python gives")]
    fn new(
        py: Python<'_>,
        fanouts: Vec<Vec<i64>>,
        replace: bool,
        disjoint: bool,
        weighted: bool,
        times_of: Option<&str>,
        last: bool,
        seed: u64,
        reverse: Vec<Option<usize>>,
    ) -> PyResult<Self> {
        let of = match times_of {
            None => None,
            Some("nodes") => Some(TemporalOf::Vertices),
            Some("edges") => Some(TemporalOf::Edges),
            Some(other) => return Err(wrong(py, format!("times are those of 'nodes' or 'edges', and not '{other}'"))),
        };
        let strategy = if last { TemporalStrategy::Last } else { TemporalStrategy::Uniform };
        let options = SamplerOptions {
            fanouts: fanouts
                .into_iter()
                .map(|of_type| of_type.into_iter().map(|count| usize::try_from(count).ok()).collect())
                .collect(),
            replace,
            disjoint,
            temporal: of.map(|of| Temporal { of, strategy }),
            weighted,
            seed,
            ..SamplerOptions::default()
        };
        let sampler = Sampler::new(options).map_err(|error| raised(py, &error))?;
        Ok(PySampler { sampler: OfProcess::new(sampler), reverse })
    }

    /// Draws a batch. `seeds`: vertex types, the numbers of their vertices, and times.
    fn sample(
        &self,
        py: Python<'_>,
        epoch: &PyEpoch,
        batch: u64,
        seeds: Vec<(usize, Bound<'_, PyBytes>, Option<Bound<'_, PyBytes>>)>,
        threads: usize,
    ) -> PyResult<SampleArrays> {
        let sampler = self.sampler.get().map_err(|error| raised(py, &error))?;
        let seeds = seeds
            .iter()
            .map(|(of, numbers, times)| {
                let times = times.as_ref().map(|times| integers(py, times)).transpose()?;
                Ok((*of, integers(py, numbers)?, times))
            })
            .collect::<PyResult<Vec<_>>>()?;
        let sample = epoch.with(py, |epoch| {
            let seeds: Vec<Seeds<'_>> = seeds
                .iter()
                .map(|(of, numbers, times)| Seeds { vertex_type: *of, numbers, times: times.as_deref() })
                .collect();
            let sample = epoch.sample(sampler, batch, &seeds, threads)?;
            if self.reverse.is_empty() { Ok(sample) } else { sample.both_directions(&self.reverse) }
        })?;
        let Sample { vertices, sources, targets, edges, trees, vertices_of_hops, edges_of_hops } = sample;
        let arrays = |columns: Vec<Vec<i64>>| columns.into_iter().map(PyArray::of_integers).collect::<Vec<_>>();
        Ok((
            arrays(vertices),
            arrays(sources),
            arrays(targets),
            arrays(edges),
            trees.map(arrays),
            vertices_of_hops,
            edges_of_hops,
        ))
    }
}
