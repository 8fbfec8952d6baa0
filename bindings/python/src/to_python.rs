//! Values of the database as Python objects.
//!
//! | value | object |
//! |---|---|
//! | null, booleans, numbers, strings, bytes | `None`, `bool`, `int` or `float` or `Decimal`, `str`, `bytes` |
//! | datetime | `datetime`, aware, in its offset; below microseconds it is cut |
//! | duration, UUID | `timedelta`, cut in the same way; `UUID` |
//! | list, bulk set, float array | `list` |
//! | set | `set`, or a `list` if a member cannot be hashed |
//! | map, tree | `dict`; keys that cannot be hashed become tuples |
//! | `T.id`, `Direction.OUT` | `"id"`, `"OUT"`; `"~id"` where a map has a key `"id"`, too |
//! | elements, properties, paths, subgraphs | the classes of `elements` |

use std::collections::HashMap;

use mangrove_graph::{
    DateTime, Detached, DetachedVertexProperty, Direction, Duration, Error, GraphValue, PathValue, Token, Tree, Value,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyList, PySet, PyString, PyTuple, PyType};
use smol_str::SmolStr;

use crate::elements::{PyEdge, PyPath, PyProperty, PySubgraph, PyVertex, PyVertexProperty};
use crate::errors::raised;

/// The most names that a converter keeps.
const NAMES_MAX: usize = 4_096;

/// Converts values. It keeps the names of labels and keys, so that all results share one object for each.
#[derive(Default)]
pub(crate) struct ToPython {
    names: HashMap<SmolStr, Py<PyString>>,
}

/// A class of Python's library, imported once.
fn class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyType>>,
    module: &str,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    cell.import(py, module, name)
}

impl ToPython {
    /// The object for a value.
    pub(crate) fn object<'py>(&mut self, py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        Ok(match value {
            Value::Null => py.None().into_bound(py),
            Value::Bool(b) => b.into_pyobject(py)?.to_owned().into_any(),
            Value::I8(n) => n.into_pyobject(py)?.into_any(),
            Value::I16(n) => n.into_pyobject(py)?.into_any(),
            Value::I32(n) => n.into_pyobject(py)?.into_any(),
            Value::I64(n) => n.into_pyobject(py)?.into_any(),
            Value::BigInt(n) => {
                static INT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
                // In base 16, because the interpreter limits the digits of a decimal text.
                class(py, &INT, "builtins", "int")?.call1((n.to_str_radix(16), 16))?
            }
            Value::F32(x) => PyFloat::new(py, f64::from(*x)).into_any(),
            Value::F64(x) => PyFloat::new(py, *x).into_any(),
            Value::Decimal(d) => {
                static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
                class(py, &DECIMAL, "decimal", "Decimal")?.call1((d.to_scientific_notation(),))?
            }
            Value::Char(c) => PyString::new(py, c.encode_utf8(&mut [0; 4])).into_any(),
            Value::String(text) => PyString::new(py, text).into_any(),
            Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
            Value::Uuid(uuid) => {
                static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
                class(py, &UUID, "uuid", "UUID")?.call1((uuid.to_string(),))?
            }
            Value::DateTime(moment) => date_time(py, *moment)?,
            Value::Duration(length) => duration(py, *length)?,
            Value::List(items) => self.list(py, items)?.into_any(),
            Value::Set(items) => self.set(py, items)?,
            Value::Map(entries) => self.map(py, entries)?.into_any(),
            Value::Entry(entry) => self.map(py, std::slice::from_ref(&**entry))?.into_any(),
            Value::BulkSet(members) => {
                let list = PyList::empty(py);
                for (member, times) in members.iter() {
                    let member = self.object(py, member)?;
                    (0..*times).try_for_each(|_| list.append(&member))?;
                }
                list.into_any()
            }
            Value::F32Array(numbers) => PyList::new(py, numbers.iter())?.into_any(),
            Value::Detached(element) => self.element(py, element)?,
            Value::Path(path) => self.path(py, path)?,
            Value::Tree(tree) => self.tree(py, tree)?.into_any(),
            Value::Graph(graph) => self.graph(py, graph)?,
            Value::Token(token) => self.name(py, token_name(*token)),
            Value::Direction(direction) => self.name(py, direction_name(*direction)),
            Value::TraversalMetrics(metrics) => self.object(py, &metrics.to_map())?,
            other => {
                let error = Error::unsupported(format!("a {} has no form in Python", other.type_name()));
                return Err(raised(py, &error));
            }
        })
    }

    /// The one object for a name.
    fn name<'py>(&mut self, py: Python<'py>, name: &str) -> Bound<'py, PyAny> {
        if let Some(known) = self.names.get(name) {
            return known.bind(py).clone().into_any();
        }
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        let made = PyString::intern(py, name);
        self.names.insert(name.into(), made.clone().unbind());
        made.into_any()
    }

    fn list<'py>(&mut self, py: Python<'py>, items: &[Value]) -> PyResult<Bound<'py, PyList>> {
        let objects = items.iter().map(|item| self.object(py, item)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, objects)
    }

    fn set<'py>(&mut self, py: Python<'py>, items: &[Value]) -> PyResult<Bound<'py, PyAny>> {
        let list = self.list(py, items)?;
        // Members that are equal in Python, such as 1 and 1.0, must not become one.
        Ok(match PySet::new(py, list.iter()) {
            Ok(set) if set.len() == list.len() => set.into_any(),
            _ => list.into_any(),
        })
    }

    fn map<'py>(&mut self, py: Python<'py>, entries: &[(Value, Value)]) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, value) in entries {
            let value = self.object(py, value)?;
            let key = match key {
                Value::String(key) => self.name(py, key),
                Value::Token(_) | Value::Direction(_) => {
                    let name = match key {
                        Value::Token(token) => token_name(*token),
                        Value::Direction(direction) => direction_name(*direction),
                        _ => unreachable!("the arm has these two"),
                    };
                    let is_taken =
                        entries.iter().any(|(other, _)| matches!(other, Value::String(other) if other == name));
                    if is_taken { self.name(py, &format!("~{name}")) } else { self.name(py, name) }
                }
                other => self.key(py, other)?,
            };
            dict.set_item(key, value)?;
        }
        Ok(dict)
    }

    /// The object for a value that is the key of a dictionary.
    fn key<'py>(&mut self, py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        Ok(match value {
            Value::List(items) | Value::Set(items) => self.tuple(py, items)?.into_any(),
            Value::BulkSet(_) | Value::F32Array(_) => {
                self.object(py, value)?.cast_into::<PyList>().map_err(PyErr::from)?.to_tuple().into_any()
            }
            Value::Map(entries) => {
                let pairs = entries
                    .iter()
                    .map(|(key, value)| PyTuple::new(py, [self.key(py, key)?, self.key(py, value)?]))
                    .collect::<PyResult<Vec<_>>>()?;
                PyTuple::new(py, pairs)?.into_any()
            }
            plain => self.object(py, plain)?,
        })
    }

    fn tuple<'py>(&mut self, py: Python<'py>, items: &[Value]) -> PyResult<Bound<'py, PyTuple>> {
        let keys = items.iter().map(|item| self.key(py, item)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, keys)
    }

    fn element<'py>(&mut self, py: Python<'py>, element: &Detached) -> PyResult<Bound<'py, PyAny>> {
        match element {
            Detached::Vertex { id, label, properties } => self.vertex(py, id, label, properties),
            Detached::Edge { id, label, source, target, properties } => {
                let dict = self.properties(py, properties)?;
                let edge = PyEdge {
                    id: self.object(py, id)?.unbind(),
                    label: self.name(py, label).unbind(),
                    source: self.vertex(py, &source.0, &source.1, &[])?.unbind(),
                    target: self.vertex(py, &target.0, &target.1, &[])?.unbind(),
                    properties: dict.unbind(),
                };
                Ok(Bound::new(py, edge)?.into_any())
            }
            Detached::VertexProperty(property) => {
                let property = PyVertexProperty {
                    id: self.object(py, &property.id)?.unbind(),
                    key: self.name(py, &property.key).unbind(),
                    value: self.object(py, &property.value)?.unbind(),
                    meta: self.properties(py, &property.meta)?.unbind(),
                };
                Ok(Bound::new(py, property)?.into_any())
            }
            Detached::Property { key, value } => {
                let property = PyProperty { key: self.name(py, key).unbind(), value: self.object(py, value)?.unbind() };
                Ok(Bound::new(py, property)?.into_any())
            }
        }
    }

    fn vertex<'py>(
        &mut self,
        py: Python<'py>,
        id: &Value,
        label: &str,
        properties: &[DetachedVertexProperty],
    ) -> PyResult<Bound<'py, PyAny>> {
        let (dict, meta) = (PyDict::new(py), PyDict::new(py));
        for (at, property) in properties.iter().enumerate() {
            if properties[..at].iter().any(|before| before.key == property.key) {
                continue;
            }
            let same = || properties[at..].iter().filter(|other| other.key == property.key);
            let name = self.name(py, &property.key);
            let values = same().map(|one| self.object(py, &one.value)).collect::<PyResult<Vec<_>>>()?;
            match &values[..] {
                [value] => dict.set_item(&name, value)?,
                _ => dict.set_item(&name, PyList::new(py, values)?)?,
            }
            if same().any(|one| !one.meta.is_empty()) {
                let metas = same().map(|one| self.properties(py, &one.meta)).collect::<PyResult<Vec<_>>>()?;
                meta.set_item(&name, PyList::new(py, metas)?)?;
            }
        }
        let vertex = PyVertex {
            id: self.object(py, id)?.unbind(),
            label: self.name(py, label).unbind(),
            properties: dict.unbind(),
            meta: meta.unbind(),
        };
        Ok(Bound::new(py, vertex)?.into_any())
    }

    fn properties<'py>(&mut self, py: Python<'py>, properties: &[(SmolStr, Value)]) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, value) in properties {
            dict.set_item(self.name(py, key), self.object(py, value)?)?;
        }
        Ok(dict)
    }

    fn path<'py>(&mut self, py: Python<'py>, path: &PathValue) -> PyResult<Bound<'py, PyAny>> {
        let labels = path.labels.iter().map(|names| {
            let names = names.iter().map(|name| self.name(py, name)).collect::<Vec<_>>();
            PyList::new(py, names)
        });
        let labels = labels.collect::<PyResult<Vec<_>>>()?;
        let path =
            PyPath { objects: self.list(py, &path.objects)?.unbind(), labels: PyList::new(py, labels)?.unbind() };
        Ok(Bound::new(py, path)?.into_any())
    }

    fn tree<'py>(&mut self, py: Python<'py>, tree: &Tree) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, below) in &tree.branches {
            dict.set_item(self.key(py, key)?, self.tree(py, below)?)?;
        }
        Ok(dict)
    }

    fn graph<'py>(&mut self, py: Python<'py>, graph: &GraphValue) -> PyResult<Bound<'py, PyAny>> {
        let graph = PySubgraph {
            vertices: self.list(py, &graph.vertices)?.unbind(),
            edges: self.list(py, &graph.edges)?.unbind(),
        };
        Ok(Bound::new(py, graph)?.into_any())
    }
}

fn token_name(token: Token) -> &'static str {
    match token {
        Token::Id => "id",
        Token::Label => "label",
        Token::Key => "key",
        Token::Value => "value",
    }
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Out => "OUT",
        Direction::In => "IN",
        Direction::Both => "BOTH",
    }
}

fn date_time(py: Python<'_>, moment: DateTime) -> PyResult<Bound<'_, PyAny>> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let module = || py.import("datetime");
    let epoch = EPOCH.get_or_try_init(py, || -> PyResult<_> {
        let utc = module()?.getattr("timezone")?.getattr("utc")?;
        Ok(module()?.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?.unbind())
    })?;
    let since = duration(py, Duration { seconds: moment.seconds, nanos: moment.nanos });
    let utc = since.and_then(|since| epoch.bind(py).add(since)).map_err(|_| {
        raised(
            py,
            &Error::evaluation(format!("{moment} is outside of the years 1 to 9999, which Python's datetime has")),
        )
    })?;
    if moment.offset_seconds == 0 {
        return Ok(utc);
    }
    let offset = duration(py, Duration { seconds: i64::from(moment.offset_seconds), nanos: 0 })?;
    utc.call_method1("astimezone", (module()?.getattr("timezone")?.call1((offset,))?,))
}

fn duration(py: Python<'_>, length: Duration) -> PyResult<Bound<'_, PyAny>> {
    static TIMEDELTA: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = class(py, &TIMEDELTA, "datetime", "timedelta")?;
    class
        .call1((0, length.seconds, length.nanos / 1_000))
        .map_err(|_| raised(py, &Error::evaluation(format!("{length} is longer than Python's timedelta can be"))))
}
