//! Vertices, edges, properties, paths and parts of graphs, as Python objects that do not change.

use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// The number that an element is hashed by: its kind with its id.
fn hash_of(py: Python<'_>, kind: &str, id: &Py<PyAny>) -> PyResult<isize> {
    PyTuple::new(py, [kind.into_pyobject(py)?.into_any(), id.bind(py).clone()])?.hash()
}

/// Elements of one kind are equal if their ids are.
fn compared(py: Python<'_>, op: CompareOp, one: &Py<PyAny>, other: Option<&Py<PyAny>>) -> PyResult<Py<PyAny>> {
    let equal = match other {
        None => return Ok(py.NotImplemented()),
        Some(other) => one.bind(py).eq(other)?,
    };
    Ok(match op {
        CompareOp::Eq => equal.into_pyobject(py)?.to_owned().into_any().unbind(),
        CompareOp::Ne => (!equal).into_pyobject(py)?.to_owned().into_any().unbind(),
        _ => py.NotImplemented(),
    })
}

/// A vertex: its id, its label and its properties.
///
/// A property with one value is that value, one with several is a list. ``meta`` has the meta-properties of those values that
/// have some: by key, a list of dictionaries in the order of the values.
#[pyclass(name = "Vertex", module = "mangrove", frozen)]
pub(crate) struct PyVertex {
    #[pyo3(get)]
    pub id: Py<PyAny>,
    #[pyo3(get)]
    pub label: Py<PyAny>,
    #[pyo3(get)]
    pub properties: Py<PyDict>,
    #[pyo3(get)]
    pub meta: Py<PyDict>,
}

#[pymethods]
impl PyVertex {
    #[new]
    #[pyo3(signature = (id, label = None, properties = None))]
    fn new(py: Python<'_>, id: Py<PyAny>, label: Option<&str>, properties: Option<Py<PyDict>>) -> PyResult<Self> {
        let label = label.unwrap_or("vertex").into_pyobject(py)?.into_any().unbind();
        let properties = properties.unwrap_or_else(|| PyDict::new(py).unbind());
        Ok(PyVertex { id, label, properties, meta: PyDict::new(py).unbind() })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.properties.bind(py).as_any().get_item(key)
    }

    /// The value of a property, or ``default`` if there is none.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.properties.bind(py).get_item(key)?.or(default))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let properties = shown(self.properties.bind(py))?;
        Ok(format!("Vertex({}, {}{properties})", self.id.bind(py).repr()?, self.label.bind(py).repr()?))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash_of(py, "vertex", &self.id)
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let other = other.cast::<PyVertex>().ok();
        compared(py, op, &self.id, other.as_ref().map(|other| &other.get().id))
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let arguments = (self.id.clone_ref(py), self.label.clone_ref(py), self.properties.clone_ref(py));
        Ok((py.get_type::<PyVertex>().into_any().unbind(), arguments.into_pyobject(py)?.into_any().unbind()))
    }
}

/// An edge: its id, its label, the vertices at its ends without their properties, and its properties.
#[pyclass(name = "Edge", module = "mangrove", frozen)]
pub(crate) struct PyEdge {
    #[pyo3(get)]
    pub id: Py<PyAny>,
    #[pyo3(get)]
    pub label: Py<PyAny>,
    #[pyo3(get)]
    pub source: Py<PyAny>,
    #[pyo3(get)]
    pub target: Py<PyAny>,
    #[pyo3(get)]
    pub properties: Py<PyDict>,
}

#[pymethods]
impl PyEdge {
    #[new]
    #[pyo3(signature = (id, label = None, source = None, target = None, properties = None))]
    fn new(
        py: Python<'_>,
        id: Py<PyAny>,
        label: Option<&str>,
        source: Option<Py<PyAny>>,
        target: Option<Py<PyAny>>,
        properties: Option<Py<PyDict>>,
    ) -> PyResult<Self> {
        Ok(PyEdge {
            id,
            label: label.unwrap_or("edge").into_pyobject(py)?.into_any().unbind(),
            source: source.unwrap_or_else(|| py.None()),
            target: target.unwrap_or_else(|| py.None()),
            properties: properties.unwrap_or_else(|| PyDict::new(py).unbind()),
        })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.properties.bind(py).as_any().get_item(key)
    }

    /// The value of a property, or ``default`` if there is none.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.properties.bind(py).get_item(key)?.or(default))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let end = |vertex: &Py<PyAny>| match vertex.bind(py).cast::<PyVertex>() {
            Ok(vertex) => Ok(vertex.get().id.bind(py).repr()?.to_string()),
            Err(_) => Ok::<_, PyErr>(vertex.bind(py).repr()?.to_string()),
        };
        let (source, target, properties) = (end(&self.source)?, end(&self.target)?, shown(self.properties.bind(py))?);
        let (id, label) = (self.id.bind(py).repr()?, self.label.bind(py).repr()?);
        Ok(format!("Edge({id}, {label}, {source} -> {target}{properties})"))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash_of(py, "edge", &self.id)
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let other = other.cast::<PyEdge>().ok();
        compared(py, op, &self.id, other.as_ref().map(|other| &other.get().id))
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let arguments = (
            self.id.clone_ref(py),
            self.label.clone_ref(py),
            self.source.clone_ref(py),
            self.target.clone_ref(py),
            self.properties.clone_ref(py),
        );
        Ok((py.get_type::<PyEdge>().into_any().unbind(), arguments.into_pyobject(py)?.into_any().unbind()))
    }
}

/// Properties as keyword arguments, for `repr`.
fn shown(properties: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut text = String::new();
    for (key, value) in properties.iter() {
        text.push_str(&format!(", {}={}", key.str()?, value.repr()?));
    }
    Ok(text)
}

/// A property of a vertex: its id, its key, its value and its meta-properties.
#[pyclass(name = "VertexProperty", module = "mangrove", frozen)]
pub(crate) struct PyVertexProperty {
    #[pyo3(get)]
    pub id: Py<PyAny>,
    #[pyo3(get)]
    pub key: Py<PyAny>,
    #[pyo3(get)]
    pub value: Py<PyAny>,
    #[pyo3(get)]
    pub meta: Py<PyDict>,
}

#[pymethods]
impl PyVertexProperty {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let meta = shown(self.meta.bind(py))?;
        Ok(format!("VertexProperty({}, {}{meta})", self.key.bind(py).repr()?, self.value.bind(py).repr()?))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        hash_of(py, "vertex property", &self.id)
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let other = other.cast::<PyVertexProperty>().ok();
        compared(py, op, &self.id, other.as_ref().map(|other| &other.get().id))
    }
}

/// A property of an edge, or a meta-property: its key and its value.
#[pyclass(name = "Property", module = "mangrove", frozen)]
pub(crate) struct PyProperty {
    #[pyo3(get)]
    pub key: Py<PyAny>,
    #[pyo3(get)]
    pub value: Py<PyAny>,
}

impl PyProperty {
    fn pair<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, [self.key.bind(py), self.value.bind(py)])
    }
}

#[pymethods]
impl PyProperty {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Property({}, {})", self.key.bind(py).repr()?, self.value.bind(py).repr()?))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.pair(py)?.hash()
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let pair = self.pair(py)?.into_any().unbind();
        let other = match other.cast::<PyProperty>() {
            Ok(other) => Some(other.get().pair(py)?.into_any().unbind()),
            Err(_) => None,
        };
        compared(py, op, &pair, other.as_ref())
    }
}

/// A path: its objects in order, and for each the labels of its step. It is a sequence of its objects.
#[pyclass(name = "Path", module = "mangrove", frozen, sequence)]
pub(crate) struct PyPath {
    #[pyo3(get)]
    pub objects: Py<PyList>,
    #[pyo3(get)]
    pub labels: Py<PyList>,
}

#[pymethods]
impl PyPath {
    fn __len__(&self, py: Python<'_>) -> usize {
        self.objects.bind(py).len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, at: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.objects.bind(py).as_any().get_item(at)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.objects.bind(py).as_any().try_iter()?.into_any())
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("mangrove._display")?.call_method1("graph", (this,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Path({})", self.objects.bind(py).repr()?))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.objects.bind(py).to_tuple().hash()
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let own = PyTuple::new(py, [self.objects.bind(py), self.labels.bind(py)])?.into_any().unbind();
        let other = match other.cast::<PyPath>() {
            Ok(other) => {
                let other = other.get();
                Some(PyTuple::new(py, [other.objects.bind(py), other.labels.bind(py)])?.into_any().unbind())
            }
            Err(_) => None,
        };
        compared(py, op, &own, other.as_ref())
    }
}

/// A part of a graph, as ``subgraph()`` gathers it.
#[pyclass(name = "Subgraph", module = "mangrove", frozen)]
pub(crate) struct PySubgraph {
    #[pyo3(get)]
    pub vertices: Py<PyList>,
    #[pyo3(get)]
    pub edges: Py<PyList>,
}

#[pymethods]
impl PySubgraph {
    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("mangrove._display")?.call_method1("graph", (this,))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("Subgraph({} vertices, {} edges)", self.vertices.bind(py).len(), self.edges.bind(py).len())
    }
}
