//! The loader's sink that adds elements in a transaction of the caller: `Transaction::load` and `g.io(…).read()`.
//!
//! An id that exists already is an error. Not here: replacing values of existing elements (`upsert`), and the bulk load
//! of an empty graph (`bulk`).

use mangrove_graph::{Error, ErrorKind, GraphView, Result, Value, VertexId};
use mangrove_load::{Cardinality, EdgeBatch, LoadSink, MultiPropertyRow, PropertyColumn, VertexBatch};
use mangrove_store::{MemoryReport, WriteCardinality};
use mangrove_txn::Transaction;

/// Adds loaded elements to a graph inside a transaction; an id that exists already is an error.
pub struct TransactionSink<'t> {
    transaction: &'t Transaction,
}

impl<'t> TransactionSink<'t> {
    /// A sink that adds elements in this transaction.
    pub(crate) fn new(transaction: &'t Transaction) -> Self {
        TransactionSink { transaction }
    }
}

impl LoadSink for TransactionSink<'_> {
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        let (transaction, catalog) = (self.transaction, self.transaction.catalog());
        let labels = catalog.intern_label_text(label);
        let id = |row: usize| batch.ids.as_ref().map(|ids| ids[row].clone());
        let vertices =
            (0..batch.len).map(|row| transaction.insert_vertex(labels, id(row))).collect::<Result<Vec<VertexId>>>()?;
        for PropertyColumn { key, values } in &batch.columns {
            let key = catalog.intern_key(key);
            for (vertex, value) in vertices.iter().zip(values).filter(|(_, value)| **value != Value::Null) {
                let single = WriteCardinality::Single;
                transaction.set_vertex_property(*vertex, key, value.clone(), single, Vec::new())?;
            }
        }
        batch.multi.iter().try_for_each(|multi| set_multi(transaction, vertices[multi.row as usize], multi))?;
        transaction.finish_statement()?;
        Ok(vertices)
    }

    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()> {
        let (transaction, catalog) = (self.transaction, self.transaction.catalog());
        let label = catalog.intern_label_text(label);
        let id = |row: usize| batch.ids.as_ref().map(|ids| ids[row].clone());
        let insert = |(row, &(source, target))| transaction.insert_edge(source, target, label, id(row));
        let edges = batch.ends.iter().enumerate().map(insert).collect::<Result<Vec<_>>>()?;
        for PropertyColumn { key, values } in &batch.columns {
            let key = catalog.intern_key(key);
            for (edge, value) in edges.iter().zip(values).filter(|(_, value)| **value != Value::Null) {
                transaction.set_edge_property(*edge, key, value.clone())?;
            }
        }
        transaction.finish_statement()
    }
}

/// Sets several values under one key of a vertex. They replace its values under the key.
pub(crate) fn set_multi(transaction: &Transaction, vertex: VertexId, property: &MultiPropertyRow) -> Result<()> {
    let catalog = transaction.catalog();
    let key = catalog.intern_key(&property.key);
    let rest = match property.cardinality {
        Cardinality::List => WriteCardinality::List,
        Cardinality::Set => WriteCardinality::Set,
    };
    for (at, value) in property.values.iter().enumerate() {
        let meta = value.meta.iter().map(|(key, value)| (catalog.intern_key(key), value.clone())).collect();
        // The first value replaces the existing ones.
        let cardinality = if at == 0 { WriteCardinality::Single } else { rest };
        transaction.set_vertex_property(vertex, key, value.value.clone(), cardinality, meta)?;
    }
    Ok(())
}

/// Fails if the graph together with the loader's own memory (`held_bytes`) exceeds the memory limit.
pub(crate) fn check_memory(report: &MemoryReport, held_bytes: u64) -> Result<()> {
    let (graph, limit) = (report.total_bytes(), report.limit_bytes);
    if limit == u64::MAX || graph.saturating_add(held_bytes) < limit {
        return Ok(());
    }
    let message = format!(
        "the graph uses {graph} bytes and the ids of the load {held_bytes}, which is more than the {limit} it may use; \
         load in \
         parts, or raise memory_limit_bytes"
    );
    Err(Error::new(ErrorKind::MemoryLimit, message))
}
