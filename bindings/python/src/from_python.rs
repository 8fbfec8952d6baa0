//! Python objects as values of the database: parameters of queries, options of algorithms.
//!
//! The inverse of `to_python`. Whole numbers are 64 bits wide, or of any size if they need it. A `datetime` without a zone is in
//! UTC, and a `date` is its midnight there. Arrays and numbers of NumPy are taken by what they offer, without NumPy.

use std::str::FromStr;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove::Parameters;
use mangrove_graph::{DateTime, Detached, Duration, Value, compare};
use num_bigint::BigInt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple, PyType,
};
use uuid::Uuid;

use crate::elements::{PyEdge, PyVertex};
use crate::errors::wrong;

/// Values by name: those of a dictionary, and those that were given as keyword arguments.
pub(crate) fn parameters(given: Option<&Bound<'_, PyDict>>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Parameters> {
    let mut parameters = Parameters::new();
    for dict in [given, named].into_iter().flatten() {
        for (name, object) in dict.iter() {
            let py = dict.py();
            let name = name
                .cast::<PyString>()
                .map_err(|_| wrong(py, "the name of a parameter is a str"))?
                .to_cow()?
                .into_owned();
            let value = value(&object).map_err(|error| in_parameter(py, &name, error))?;
            if parameters.insert(name.as_str().into(), value).is_some() {
                return Err(wrong(py, format!("the parameter `{name}` is given twice")));
            }
        }
    }
    Ok(parameters)
}

fn in_parameter(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    wrong(py, format!("the parameter `{name}`: {}", error.value(py)))
}

/// The value of an object.
pub(crate) fn value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    value_within(object, Value::NESTING_MAX)
}

fn value_within(object: &Bound<'_, PyAny>, levels: u32) -> PyResult<Value> {
    let py = object.py();
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::from(&*text.to_cow()?));
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return whole(object);
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(Value::F64(number.value()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().into()));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Value::Bytes(bytes.to_vec().into()));
    }
    if let Ok(vertex) = object.cast::<PyVertex>() {
        let id = value(vertex.get().id.bind(py))?;
        let label: String = vertex.get().label.extract(py)?;
        return Ok(Value::Detached(Arc::new(Detached::Vertex { id, label: label.into(), properties: Vec::new() })));
    }
    if let Ok(edge) = object.cast::<PyEdge>() {
        let edge = edge.get();
        let end = |vertex: &Py<PyAny>| match vertex.bind(py).cast::<PyVertex>() {
            Ok(vertex) => {
                Ok::<_, PyErr>((value(vertex.get().id.bind(py))?, vertex.get().label.extract::<String>(py)?.into()))
            }
            Err(_) => Ok((Value::Null, "vertex".into())),
        };
        return Ok(Value::Detached(Arc::new(Detached::Edge {
            id: value(edge.id.bind(py))?,
            label: edge.label.extract::<String>(py)?.into(),
            source: end(&edge.source)?,
            target: end(&edge.target)?,
            properties: Vec::new(),
        })));
    }
    if let Some(levels) = levels.checked_sub(1) {
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let items = object.try_iter()?.map(|item| value_within(&item?, levels)).collect::<PyResult<_>>()?;
            return Ok(Value::list(items));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            let entry = |(key, item): (Bound<'_, _>, Bound<'_, _>)| {
                Ok::<_, PyErr>((value_within(&key, levels)?, value_within(&item, levels)?))
            };
            return Ok(Value::map(dict.iter().map(entry).collect::<PyResult<_>>()?));
        }
        if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
            let items = object.try_iter()?.map(|item| value_within(&item?, levels)).collect::<PyResult<Vec<_>>>()?;
            return Ok(Value::Set(Arc::new(distinct(items))));
        }
    } else {
        return Err(wrong(py, format!("a value has at most {} levels of collections", Value::NESTING_MAX)));
    }
    library_value(object, levels)
}

/// Members of a set, each once: Python's 1 and True are one member already, as are 1 and 1.0.
fn distinct(items: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::with_capacity(items.len());
    for item in items {
        if !kept.iter().any(|other| compare::equivalent(other, &item)) {
            kept.push(item);
        }
    }
    kept
}

fn whole(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(number) = object.extract::<i64>() {
        return Ok(Value::I64(number));
    }
    // In base 16, because the interpreter limits the digits of a decimal text.
    let text: String = object.call_method1("__format__", ("x",))?.extract()?;
    let number = BigInt::parse_bytes(text.as_bytes(), 16);
    number
        .map(|number| Value::BigInt(Arc::new(number)))
        .ok_or_else(|| wrong(object.py(), format!("{text} is no number")))
}

/// The value of an object of Python's library, of NumPy or of pandas.
fn library_value(object: &Bound<'_, PyAny>, levels: u32) -> PyResult<Value> {
    static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static DATE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static TIMEDELTA: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    if object.is_instance(DATETIME.import(py, "datetime", "datetime")?)? {
        return date_time(object);
    }
    if object.is_instance(DATE.import(py, "datetime", "date")?)? {
        let days: i64 = object.call_method0("toordinal")?.extract()?;
        // The ordinal of 1970-01-01 is 719,163.
        return Ok(Value::DateTime(DateTime { seconds: (days - 719_163) * 86_400, nanos: 0, offset_seconds: 0 }));
    }
    if object.is_instance(TIMEDELTA.import(py, "datetime", "timedelta")?)? {
        let (seconds, nanos) = length_of(object)?;
        return Ok(Value::Duration(Duration { seconds, nanos }));
    }
    if object.is_instance(DECIMAL.import(py, "decimal", "Decimal")?)? {
        let text: String = object.str()?.extract()?;
        let number = BigDecimal::from_str(&text)
            .map_err(|_| wrong(py, format!("the decimal {text} is no number that the database has")))?;
        return Ok(Value::Decimal(Arc::new(number)));
    }
    if object.is_instance(UUID.import(py, "uuid", "UUID")?)? {
        let bytes: [u8; 16] = object.getattr("bytes")?.extract()?;
        return Ok(Value::Uuid(Uuid::from_bytes(bytes)));
    }
    if object.hasattr("dtype")? {
        return array_value(object, levels);
    }
    Err(wrong(
        py,
        format!(
            "a {} is no value of the database; it takes None, bool, int, float, Decimal, str, bytes, datetime, date, timedelta, \
             UUID, list, tuple, set, dict, Vertex, Edge, and arrays and numbers of NumPy",
            object.get_type().fully_qualified_name()?
        ),
    ))
}

/// The value of a number or an array of NumPy: a one-dimensional array of 32-bit floats is a float array, any other one a list.
fn array_value(object: &Bound<'_, PyAny>, levels: u32) -> PyResult<Value> {
    let dimensions: usize = object.getattr("ndim").and_then(|n| n.extract()).unwrap_or(0);
    let is_f32 = object.getattr("dtype")?.str()?.to_cow()? == "float32";
    if dimensions == 1 && is_f32 {
        let bytes: Vec<u8> = object.call_method0("tobytes")?.extract()?;
        let numbers = bytes.chunks_exact(4).map(|four| f32::from_ne_bytes([four[0], four[1], four[2], four[3]]));
        return Ok(Value::F32Array(numbers.collect()));
    }
    let plain = match dimensions {
        // An array has `tolist`, and so have numbers of NumPy.
        0 if object.hasattr("item")? => object.call_method0("item")?,
        _ => object.call_method0("tolist")?,
    };
    if plain.hasattr("dtype")? {
        return Err(wrong(
            object.py(),
            format!("the type {} has no value of the database", object.getattr("dtype")?.str()?),
        ));
    }
    value_within(&plain, levels)
}

fn date_time(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let py = object.py();
    let offset = object.call_method0("utcoffset")?;
    let offset_seconds = if offset.is_none() { 0 } else { length_of(&offset)?.0 };
    let part = |name: &str| -> PyResult<i64> { object.getattr(name)?.extract() };
    let days: i64 = object.call_method0("toordinal")?.extract()?;
    let clock = part("hour")? * 3_600 + part("minute")? * 60 + part("second")?;
    // pandas' moments have nanoseconds below the microseconds.
    let below = object.getattr("nanosecond").and_then(|n| n.extract::<i64>()).unwrap_or(0);
    let nanos = part("microsecond")? * 1_000 + below;
    let seconds = (days - 719_163) * 86_400 + clock - offset_seconds;
    let out_of_range = |_| wrong(py, "the moment has no form in the database");
    Ok(Value::DateTime(DateTime {
        seconds,
        nanos: u32::try_from(nanos).map_err(out_of_range)?,
        offset_seconds: i32::try_from(offset_seconds).map_err(out_of_range)?,
    }))
}

/// Seconds, rounded down, and the nanoseconds after them.
fn length_of(object: &Bound<'_, PyAny>) -> PyResult<(i64, u32)> {
    let part = |name: &str| -> PyResult<i64> { object.getattr(name)?.extract() };
    let below = object.getattr("nanoseconds").and_then(|n| n.extract::<i64>()).unwrap_or(0);
    let nanos = part("microseconds")? * 1_000 + below;
    let nanos =
        u32::try_from(nanos).map_err(|_| wrong(object.py(), "the length of time has no form in the database"))?;
    Ok((part("days")? * 86_400 + part("seconds")?, nanos))
}
