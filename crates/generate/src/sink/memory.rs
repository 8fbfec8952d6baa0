//! A sink that fills a database in memory through the bulk loader.
//!
//! Vertices must come in the order of their numbers, and edges after their ends. Anything else is a bug of a generator,
//! and is reported as one.

use std::sync::Arc;

use mangrove::{Database, Error, Result, UserId, Value, VertexId};
use mangrove_store::{BulkColumn, ColumnData, MultiProperty, MultiValue};
use mangrove_txn::BulkLoad;
use smol_str::SmolStr;

use super::{GeneratedColumn, GeneratedEdges, GeneratedIds, GeneratedValues, GeneratedVertices, GraphSink};

/// Fills an empty database. Readers see the graph after [`MemorySink::finish`]; if the sink is dropped instead, the
/// database stays empty. The sink keeps 8 bytes a vertex.
pub struct MemorySink {
    database: Database,
    load: BulkLoad,
    /// The internal ids of vertices, by vertex number.
    vertices: Vec<VertexId>,
}

impl MemorySink {
    /// A sink for a database that was never written to; any other database is an error.
    pub fn new(database: &Database) -> Result<Self> {
        Ok(MemorySink { database: database.clone(), load: database.bulk_load()?, vertices: Vec::new() })
    }

    /// Publishes the graph. Returns the internal ids of its vertices, by vertex number.
    pub fn finish(self) -> Result<Vec<VertexId>> {
        self.load.finish()?;
        Ok(self.vertices)
    }

    fn columns(&self, columns: Vec<GeneratedColumn>, rows: usize) -> Vec<BulkColumn> {
        let catalog = self.database.catalog();
        let column =
            |c: GeneratedColumn| BulkColumn { key: catalog.intern_key(&c.key), values: column_data(c.values, rows) };
        columns.into_iter().map(column).collect()
    }

    fn vertex(&self, number: u64) -> Result<VertexId> {
        let vertex = usize::try_from(number).ok().and_then(|number| self.vertices.get(number));
        vertex.copied().ok_or_else(|| Error::bug(format!("an edge was generated before its end, vertex {number}")))
    }
}

impl std::fmt::Debug for MemorySink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemorySink({} vertices)", self.vertices.len())
    }
}

impl GraphSink for MemorySink {
    fn vertices(&mut self, batch: GeneratedVertices) -> Result<()> {
        let GeneratedVertices { label, first, len, ids, mut columns, .. } = batch;
        if first != self.vertices.len() as u64 {
            return Err(Error::bug(format!("vertex {first} was generated after {}", self.vertices.len())));
        }
        let ids: Option<Vec<UserId>> = match ids {
            GeneratedIds::Numbers => {
                Some((first..first + len as u64).map(|number| UserId::int(number as i64)).collect())
            }
            GeneratedIds::Texts(ids) => Some(ids.into_iter().map(UserId::String).collect()),
            GeneratedIds::Local(ids) => {
                columns.push(GeneratedColumn::new("id", GeneratedValues::I64(ids)));
                None
            }
        };
        let columns = self.columns(columns, len);
        let label = self.database.catalog().intern_label_text(&label);
        self.vertices.extend(self.load.vertices(label, len, ids.as_deref(), &columns)?);
        Ok(())
    }

    fn edges(&mut self, batch: GeneratedEdges) -> Result<()> {
        let GeneratedEdges { label, ends, columns, .. } = batch;
        let columns = self.columns(columns, ends.len());
        let ends: Vec<_> = ends
            .into_iter()
            .map(|(source, target)| Ok((self.vertex(source)?, self.vertex(target)?)))
            .collect::<Result<_>>()?;
        let label = self.database.catalog().intern_label_text(&label);
        self.load.edges(label, &ends, None, &columns).map(drop)
    }
}

fn column_data(values: GeneratedValues, rows: usize) -> ColumnData {
    match values {
        GeneratedValues::Bool(v) => ColumnData::Bool(v),
        GeneratedValues::I32(v) => ColumnData::I32(v),
        GeneratedValues::I64(v) => ColumnData::I64(v),
        GeneratedValues::F64(v) => ColumnData::F64(v),
        GeneratedValues::Text(v) => ColumnData::String(v),
        GeneratedValues::OptionalText(v) => {
            ColumnData::Any(v.into_iter().map(|text: Option<SmolStr>| text.map(Value::String)).collect())
        }
        GeneratedValues::Several(v) if v.iter().all(|(_, values)| values.len() == 1) => {
            let mut column = vec![None; rows];
            v.into_iter().for_each(|(row, mut values)| column[row as usize] = values.pop());
            ColumnData::Any(column)
        }
        GeneratedValues::Several(v) => {
            let mut column: Vec<MultiProperty> = (0..rows).map(|_| MultiProperty { values: Vec::new() }).collect();
            v.into_iter().for_each(|(row, values)| column[row as usize].values = multi_values(values));
            ColumnData::Multi(column)
        }
    }
}

/// The values of one row, with ordinals in their order.
fn multi_values(values: Vec<Value>) -> Vec<MultiValue> {
    let value = |(ordinal, value)| MultiValue { ordinal: ordinal as u32, value, meta: Arc::default() };
    values.into_iter().enumerate().map(value).collect()
}
