//! The plain load: passes the loader's batches to the store's bulk loader. The graph must be empty, and stays empty if
//! the load fails.

use std::path::PathBuf;
use std::sync::Arc;

use mangrove_graph::{Catalog, Draw, Error, KeyId, LabelSetId, Purpose, Result, Value, VertexId};
use mangrove_load::{EdgeBatch, LoadSink, VertexBatch};
pub use mangrove_load::{LoadOptions, LoadProgress, LoadReport, RejectedRow};
use mangrove_store::{BulkColumn, ColumnData, MultiProperty, MultiValue};
use mangrove_txn::BulkLoad;
use smol_str::SmolStr;

use crate::state::DatabaseState;

/// Loads files into the empty graph.
pub(crate) fn load(
    inner: &DatabaseState,
    files: &[PathBuf],
    options: &LoadOptions,
    progress: &mut dyn FnMut(LoadProgress<'_>),
) -> Result<LoadReport> {
    load_with(inner, options, |sink| mangrove_load::load(files, options, sink, progress))
}

/// Loads into the empty graph what `load` hands to the sink. The interrupt of the options ends it until the load is published.
pub(crate) fn load_with(
    inner: &DatabaseState,
    options: &LoadOptions,
    load: impl FnOnce(&mut dyn LoadSink) -> Result<LoadReport>,
) -> Result<LoadReport> {
    if !inner.manager.store().is_empty() {
        return Err(Error::invalid(
            "the graph is not empty, or was not once, and a plain load needs one that was never written to: add to it, \
             and replace what it \
             has, with --upsert (Database::upsert), or load into a new one",
        ));
    }
    let held = inner.budget.account(Purpose::Loads);
    let mut sink = BulkSink { load: inner.manager.bulk_load()?, held };
    let report = load(&mut sink)?;
    sink.load.finish_unless(&mut || options.check_interrupt())?;
    Ok(report)
}

struct BulkSink {
    load: BulkLoad,
    /// The loader's memory, without the graph, drawn on the memory budget.
    held: Draw,
}

impl BulkSink {
    fn label(&self, text: &str) -> LabelSetId {
        self.load.store().catalog().intern_label_text(text)
    }

    fn columns(&self, columns: Vec<mangrove_load::PropertyColumn>) -> Vec<BulkColumn> {
        let catalog = self.load.store().catalog();
        let column = |c: mangrove_load::PropertyColumn| BulkColumn {
            key: catalog.intern_key(&c.key),
            values: column_data(c.values),
        };
        columns.into_iter().map(column).collect()
    }
}

/// The values of a column in the most compact form that the store takes.
fn column_data(values: Vec<Value>) -> ColumnData {
    fn all<T>(values: &[Value], one: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
        values.iter().map(one).collect()
    }
    let typed = match values.first() {
        Some(Value::I32(_)) => {
            all(&values, |v| if let Value::I32(n) = v { Some(*n) } else { None }).map(ColumnData::I32)
        }
        Some(Value::I64(_)) => {
            all(&values, |v| if let Value::I64(n) = v { Some(*n) } else { None }).map(ColumnData::I64)
        }
        Some(Value::F64(_)) => {
            all(&values, |v| if let Value::F64(n) = v { Some(*n) } else { None }).map(ColumnData::F64)
        }
        _ => None,
    };
    typed.unwrap_or_else(|| ColumnData::Any(values.into_iter().map(|v| (v != Value::Null).then_some(v)).collect()))
}

impl LoadSink for BulkSink {
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        let label = self.label(label);
        let multi: Vec<&str> = batch.multi.iter().map(|m| m.key.as_str()).collect();
        // A key that has several values in one row is a multi-property in all of them: the store takes one
        // column a key.
        let (mixed, plain): (Vec<_>, Vec<_>) = batch.columns.into_iter().partition(|c| multi.contains(&c.key.as_str()));
        let mut columns = self.columns(plain);
        columns.extend(multi_columns(self.load.store().catalog(), batch.multi, mixed, batch.len));
        self.load.vertices(label, batch.len, batch.ids.as_deref(), &columns)
    }

    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()> {
        let label = self.label(label);
        let columns = self.columns(batch.columns);
        self.load.edges(label, &batch.ends, batch.ids.as_deref(), &columns).map(drop)
    }

    fn holds(&mut self, bytes: u64) -> Result<()> {
        crate::load_sink::check_memory(&self.load.store().memory(), bytes)?;
        self.held.resize(bytes)
    }
}

/// Multi-properties as columns, one a key, with the rows that have a single value under it.
fn multi_columns(
    catalog: &Catalog,
    properties: Vec<mangrove_load::MultiPropertyRow>,
    mixed: Vec<mangrove_load::PropertyColumn>,
    len: usize,
) -> Vec<BulkColumn> {
    let mut columns: Vec<(KeyId, Vec<MultiProperty>)> = Vec::new();
    for column in mixed {
        let single = |value: Value| MultiProperty {
            values: if value == Value::Null { Vec::new() } else { vec![multi_value(catalog, 0, value, Vec::new())] },
        };
        columns.push((catalog.intern_key(&column.key), column.values.into_iter().map(single).collect()));
    }
    for property in properties {
        let key = catalog.intern_key(&property.key);
        let at = columns.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
            columns.push((key, (0..len).map(|_| MultiProperty { values: Vec::new() }).collect()));
            columns.len() - 1
        });
        let values = property.values.into_iter().enumerate();
        let values = values.map(|(ordinal, v)| multi_value(catalog, ordinal as u32, v.value, v.meta));
        columns[at].1[property.row as usize].values = values.collect();
    }
    columns.into_iter().map(|(key, values)| BulkColumn { key, values: ColumnData::Multi(values) }).collect()
}

fn multi_value(catalog: &Catalog, ordinal: u32, value: Value, meta: Vec<(SmolStr, Value)>) -> MultiValue {
    let meta = meta.into_iter().map(|(key, value)| (catalog.intern_key(&key), value)).collect();
    MultiValue { ordinal, value, meta: Arc::new(meta) }
}
