//! `mangrove.algo.NAME`: the algorithms of the registry as services.
//!
//! There is one for each algorithm of [`registry::ALGORITHMS`], with its options and columns. It reads the graph as the caller's transaction
//! sees it, and gives a map for each row of its results, some at a time. With `write` it gives one row, and writes
//! the values as a property of the vertices instead: in transactions of its own, which a rollback of the caller's does not take back
//! (DB-4).

use std::sync::{Arc, LazyLock};

use mangrove_analytics::registry::{self, ALGORITHMS, AlgorithmInfo, ColumnKind, ColumnValues, Output, VERTEX};
use mangrove_flow::schedule::Tenant;
use mangrove_flow::{BATCH_ROWS, Charge, QueryControl};
use mangrove_graph::{EdgeId, Error, Result, Value, VertexId};
use mangrove_plan::logical::{ALGORITHM_SERVICES, ALGORITHM_WRITES as WRITE};
use mangrove_steps::{ResultBatches, ServiceCall, ServiceResults};
use mangrove_txn::{Isolation, TransactionOptions};

use super::registry::{Arguments, ParameterType, Service, ServiceFunction, ServiceParameter, ServiceRight, row};
use crate::algorithms::column_values;
use crate::management::count;
use crate::state::Database;

/// Vertices that are written in a transaction.
const WRITTEN: usize = 1 << 14;

/// The services, one for each algorithm.
pub(super) fn services() -> &'static [Service] {
    static SERVICES: LazyLock<Vec<Service>> =
        LazyLock::new(|| ALGORITHMS.iter().map(|algorithm| service_of(algorithm)).collect());
    &SERVICES
}

/// The service of an algorithm. Its texts live as long as the process.
fn service_of(algorithm: &'static AlgorithmInfo) -> Service {
    let parameter = |option: &registry::OptionInfo| ServiceParameter {
        name: option.name,
        value_type: ParameterType::Any,
        summary: match option.default {
            None => format!("{}: {}", option.meaning, option.allowed),
            Some(default) => format!("{}: {}; default {default}", option.meaning, option.allowed),
        }
        .leak(),
    };
    let mut parameters: Vec<ServiceParameter> = algorithm.all_options().map(parameter).collect();
    if written_column(algorithm).is_ok() {
        parameters.push(ServiceParameter {
            name: WRITE,
            value_type: ParameterType::Text,
            summary: "write the values as a property of the vertices under this key, in batches of transactions",
        });
    }
    Service {
        name: format!("{ALGORITHM_SERVICES}{}", algorithm.name).leak(),
        summary: algorithm.summary,
        right: ServiceRight::WriteWith(WRITE),
        parameters: parameters.leak(),
        function: ServiceFunction::Algorithm(algorithm, call),
    }
}

/// The column whose values can be written as a property of the vertices.
fn written_column(algorithm: &AlgorithmInfo) -> Result<&'static str> {
    match algorithm.columns {
        [vertex, value] if vertex.name == VERTEX => match value.kind {
            ColumnKind::Vertices | ColumnKind::Counts | ColumnKind::Numbers => Ok(value.name),
            _ => Err(not_written(algorithm)),
        },
        _ => Err(not_written(algorithm)),
    }
}

fn not_written(algorithm: &AlgorithmInfo) -> Error {
    let columns: Vec<&str> = algorithm.columns.iter().map(|column| column.name).collect();
    Error::invalid(format!(
        "'{WRITE}' needs an algorithm with one number or one vertex for each vertex; {} yields {}",
        algorithm.name,
        columns.join(", ")
    ))
}

/// Says how much memory a run of an algorithm needs. One row.
pub(super) fn estimate(database: &Database, call: &ServiceCall<'_>, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let name =
        arguments.text("algorithm")?.ok_or_else(|| arguments.missing("algorithm", "the name of an algorithm"))?;
    let algorithm = registry::find(name)?;
    let wrong = || Error::invalid(format!("{}: 'options' is a map of names to values", arguments.service()));
    let mut options = match arguments.get("options") {
        None => Vec::new(),
        Some(Value::Map(entries)) => {
            let option = |(name, value): &(Value, Value)| match name {
                Value::String(name) => Ok((name.to_string(), value.clone())),
                _ => Err(wrong()),
            };
            entries.iter().map(option).collect::<Result<_>>()?
        }
        Some(_) => return Err(wrong()),
    };
    if written_column(algorithm).is_ok() {
        // It takes no more memory to write.
        options.retain(|(name, _)| name != WRITE);
    }
    let estimate = algorithm.estimate(call.view, database.projections(), &options)?;
    Ok(vec![row([
        ("algorithm", algorithm.name.into()),
        ("projection", count(estimate.projection)),
        ("kept", Value::Bool(estimate.is_kept)),
        ("state", count(estimate.state)),
        ("needed", count(estimate.needed())),
    ])])
}

/// Answers a call.
pub(super) fn call(
    algorithm: &'static AlgorithmInfo,
    database: &Database,
    tenant: &Tenant,
    call: &ServiceCall<'_>,
) -> Result<ServiceResults> {
    let mut options = Vec::with_capacity(call.arguments.len());
    let mut key = None;
    for (name, value) in call.arguments {
        match (name.as_str(), value) {
            (WRITE, Value::String(given)) if !given.is_empty() => key = Some(given.clone()),
            (WRITE, _) => return Err(Error::invalid(format!("'{WRITE}' is the key of a property, a string"))),
            _ => options.push((name.to_string(), value.clone())),
        }
    }
    if key.is_some() {
        written_column(algorithm)?;
    }
    let output = {
        let team = database.team_of(tenant, call.workers_max)?.controlled_by(call.control.clone());
        algorithm.run(call.view, database.projections(), &options, &team)?
    };
    let charge = call.control.charge_while(bytes_of(&output))?;
    match key {
        Some(key) => Ok(ServiceResults::All(vec![write(database, &output, &key, call)?])),
        None => Ok(ServiceResults::Batches(Box::new(RowMaps {
            output,
            next: 0,
            control: call.control.clone(),
            _charge: charge,
        }))),
    }
}

fn bytes_of(output: &Output) -> u64 {
    let of_column = |values: &ColumnValues| match values {
        ColumnValues::Vertices(vertices) => size_of_val(&vertices[..]),
        ColumnValues::Edges(edges) => size_of_val(&edges[..]),
        ColumnValues::Counts(counts) => size_of_val(&counts[..]),
        ColumnValues::Numbers(numbers) => size_of_val(&numbers[..]),
        ColumnValues::VertexLists { ends, vertices } => size_of_val(&ends[..]) + size_of_val(&vertices[..]),
        ColumnValues::Vectors { numbers, .. } => size_of_val(&numbers[..]),
    };
    output.columns.iter().map(|column| of_column(&column.values) as u64).sum()
}

/// The results of an algorithm as maps, whose vertices and edges are elements.
struct RowMaps {
    output: Output,
    next: usize,
    control: Arc<QueryControl>,
    _charge: Charge,
}

impl std::fmt::Debug for RowMaps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowMaps").field("next", &self.next).field("len", &self.output.len()).finish()
    }
}

impl ResultBatches for RowMaps {
    fn next(&mut self) -> Result<Vec<Value>> {
        self.control.check()?;
        let rows = self.next..self.output.len().min(self.next + BATCH_ROWS);
        self.next = rows.end;
        let vertices = |vertices: &[VertexId]| Ok(vertices.iter().copied().map(Value::Vertex).collect());
        let edges = |edges: &[EdgeId]| Ok(edges.iter().copied().map(Value::Edge).collect());
        let mut columns = Vec::with_capacity(self.output.columns.len());
        for column in &self.output.columns {
            columns.push((column.name, column_values(&column.values, rows.clone(), &vertices, &edges)?.into_iter()));
        }
        let entries = |_| {
            let next = columns.iter_mut().filter_map(|(name, values)| Some((*name, values.next()?)));
            row(next.collect::<Vec<_>>())
        };
        Ok(rows.map(entries).collect())
    }

    fn bytes(&self) -> u64 {
        bytes_of(&self.output)
    }
}

/// Writes the values of an algorithm as a property of the vertices.
fn write(database: &Database, output: &Output, key: &str, call: &ServiceCall<'_>) -> Result<Value> {
    let vertices = output.vertices().ok_or_else(|| Error::bug("an algorithm without a column of vertices"))?;
    let values = output.columns.get(1).ok_or_else(|| Error::bug("an algorithm without a column of values"))?;
    let (mut written, mut at, mut timestamp) = (0_usize, 0, None);
    let progress = call.control.progress();
    if let Some(progress) = progress {
        progress.begin("write", "vertices", vertices.len() as u64);
    }
    while at < vertices.len() {
        call.control.check()?;
        let rows = at..vertices.len().min(at + WRITTEN);
        let ids = |vertices: &[VertexId]| {
            let mut ids = Vec::with_capacity(vertices.len());
            call.view.vertex_user_ids(vertices, &mut ids)?;
            Ok(ids)
        };
        let of_edges = |_: &[EdgeId]| Err(Error::bug("an edge is no value of a property"));
        let values = column_values(&values.values, rows.clone(), &ids, &of_edges)?;
        let (count, commit) = write_batch(database, &vertices[rows.clone()], &values, key)?;
        if let Some(progress) = progress {
            progress.add(rows.len() as u64);
        }
        (written, at, timestamp) = (written + count, rows.end, Some(commit));
    }
    if let Some(progress) = progress {
        progress.end();
    }
    let number = |number: usize| Value::I64(i64::try_from(number).unwrap_or(i64::MAX));
    Ok(row([
        ("written", number(written)),
        ("skipped", number(vertices.len() - written)),
        (
            "timestamp",
            timestamp.map_or(Value::Null, |timestamp| Value::I64(i64::try_from(timestamp).unwrap_or(i64::MAX))),
        ),
    ]))
}

/// Writes some values in a transaction. Returns how many vertices were still there, and the timestamp of the commit.
fn write_batch(database: &Database, vertices: &[VertexId], values: &[Value], key: &str) -> Result<(usize, u64)> {
    database.retrying(database.options(), || {
        let options = TransactionOptions { isolation: Isolation::Snapshot, ..TransactionOptions::default() };
        let transaction = database.begin_with(options)?;
        let mut there = vertices.to_vec();
        transaction.view().retain_vertices(&mut there)?;
        let mut next = there.iter().peekable();
        let all = vertices.iter().zip(values);
        let kept = all.filter(|(vertex, _)| next.next_if(|there| there == vertex).is_some());
        let pairs: Vec<(VertexId, Value)> = kept.map(|(vertex, value)| (*vertex, value.clone())).collect();
        transaction.set_vertex_property(key, &pairs)?;
        Ok((pairs.len(), transaction.commit()?.timestamp))
    })
}
