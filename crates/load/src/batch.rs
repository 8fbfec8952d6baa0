//! Rows gathered into batches, one label at a time.
//!
//! A writer keeps an open batch for every label it meets and hands a batch to the sink when it is full. How
//! many rows wait in all is bounded, however many labels there are.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use mangrove_graph::{Error, Result, UserId, Value, VertexId};
use smol_str::SmolStr;

use crate::id_map::{FileId, IdMap, SpaceId};
use crate::sink::{Column, EdgeBatch, MultiProperty, Sink, VertexBatch};

/// Rows of one batch.
pub(crate) const BATCH_ROWS: usize = 8 * 1024;
/// Rows that wait in all batches of a writer.
const WAITING_ROWS_MAX: usize = 16 * BATCH_ROWS;

/// Columns that are filled row by row. A row may leave columns out, and name new ones at any time.
#[derive(Default)]
pub(crate) struct Columns {
    columns: Vec<Column>,
    by_key: HashMap<SmolStr, usize, RandomState>,
    rows: usize,
}

impl Columns {
    /// Gives the first columns, once, to these keys: the position of each is its place in the list.
    pub(crate) fn define<'k>(&mut self, keys: impl Iterator<Item = &'k SmolStr>) {
        if self.columns.is_empty() {
            for key in keys {
                self.position(key);
            }
        }
    }

    /// The position of a key's column, made where it is new.
    pub(crate) fn position(&mut self, key: &str) -> usize {
        if let Some(at) = self.by_key.get(key) {
            return *at;
        }
        let key = SmolStr::from(key);
        self.by_key.insert(key.clone(), self.columns.len());
        self.columns.push(Column { key, values: Vec::new() });
        self.columns.len() - 1
    }

    /// Sets a value in the current row; the last one counts.
    pub(crate) fn set(&mut self, at: usize, value: Value) {
        let values = &mut self.columns[at].values;
        values.resize(self.rows, Value::Null);
        values.push(value);
    }

    /// Sets a value in the current row by its key.
    pub(crate) fn set_key(&mut self, key: &str, value: Value) {
        let at = self.position(key);
        self.columns[at].values.truncate(self.rows);
        self.set(at, value);
    }

    fn end_row(&mut self) {
        self.rows += 1;
    }

    /// Takes the filled columns out, without those that no row has a value in.
    fn take(&mut self) -> Vec<Column> {
        let rows = std::mem::take(&mut self.rows);
        let mut taken = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            let mut values = std::mem::take(&mut column.values);
            if values.iter().any(|value| *value != Value::Null) {
                values.resize(rows, Value::Null);
                taken.push(Column { key: column.key.clone(), values });
            }
        }
        taken
    }
}

/// The open batch of one vertex label.
pub(crate) struct VertexTable {
    label: SmolStr,
    /// The (space, id) pairs that are to name the vertices: row by row, up to two of one row.
    claims: Vec<(u32, SpaceId, FileId)>,
    ids: Vec<UserId>,
    pub(crate) columns: Columns,
    pub(crate) multi: Vec<MultiProperty>,
}

impl VertexTable {
    /// The number of the current row.
    pub(crate) fn row(&self) -> u32 {
        u32::try_from(self.columns.rows).expect("a batch has few rows")
    }

    /// Notes that an id claimed in the map is to name the current row's vertex.
    pub(crate) fn claim(&mut self, space: SpaceId, id: FileId) {
        self.claims.push((self.row(), space, id));
    }

    /// Sets the id that users will know the current row's vertex by.
    pub(crate) fn user_id(&mut self, id: UserId) {
        self.ids.push(id);
    }

    fn flush(&mut self, sink: &mut dyn Sink, map: &mut IdMap) -> Result<usize> {
        let len = self.columns.rows;
        if len == 0 {
            return Ok(0);
        }
        let ids = std::mem::take(&mut self.ids);
        debug_assert!(ids.is_empty() || ids.len() == len);
        let batch = VertexBatch {
            len,
            ids: (!ids.is_empty()).then_some(ids),
            columns: self.columns.take(),
            multi: std::mem::take(&mut self.multi),
        };
        let vertices = sink.vertices(&self.label, batch)?;
        if vertices.len() != len {
            return Err(Error::bug(format!("the sink returned {} ids for {len} vertices", vertices.len())));
        }
        for (row, space, id) in self.claims.drain(..) {
            map.settle(space, id, vertices[row as usize]);
        }
        Ok(len)
    }
}

/// The open batch of one edge label.
pub(crate) struct EdgeTable {
    label: SmolStr,
    ends: Vec<(VertexId, VertexId)>,
    ids: Vec<UserId>,
    pub(crate) columns: Columns,
}

impl EdgeTable {
    /// Sets the ends of the current row's edge and the id users will know it by.
    pub(crate) fn edge(&mut self, source: VertexId, target: VertexId, id: Option<UserId>) {
        self.ends.push((source, target));
        self.ids.extend(id);
    }

    fn flush(&mut self, sink: &mut dyn Sink) -> Result<usize> {
        let len = self.ends.len();
        if len == 0 {
            return Ok(0);
        }
        let ids = std::mem::take(&mut self.ids);
        debug_assert!(ids.is_empty() || ids.len() == len);
        let batch = EdgeBatch {
            ends: std::mem::take(&mut self.ends),
            ids: (!ids.is_empty()).then_some(ids),
            columns: self.columns.take(),
        };
        sink.edges(&self.label, batch)?;
        Ok(len)
    }
}

/// Open batches of a kind by label.
pub(crate) struct Batches<T> {
    tables: Vec<T>,
    by_label: HashMap<SmolStr, usize, RandomState>,
    waiting: usize,
}

/// The open batches of vertices.
pub(crate) type VertexBatches = Batches<VertexTable>;
/// The open batches of edges.
pub(crate) type EdgeBatches = Batches<EdgeTable>;

impl<T> Default for Batches<T> {
    fn default() -> Self {
        Batches { tables: Vec::new(), by_label: HashMap::default(), waiting: 0 }
    }
}

impl<T> Batches<T> {
    fn position(&mut self, label: &str, make: impl FnOnce(SmolStr) -> T) -> usize {
        if let Some(at) = self.by_label.get(label) {
            return *at;
        }
        self.tables.push(make(label.into()));
        self.by_label.insert(label.into(), self.tables.len() - 1);
        self.tables.len() - 1
    }

    /// The open batch at a position.
    pub(crate) fn at(&mut self, at: usize) -> &mut T {
        &mut self.tables[at]
    }
}

impl VertexBatches {
    /// The position of a label's batch, opened where it is new.
    pub(crate) fn open(&mut self, label: &str) -> usize {
        self.position(label, |label| VertexTable {
            label,
            claims: Vec::new(),
            ids: Vec::new(),
            columns: Columns::default(),
            multi: Vec::new(),
        })
    }

    /// Ends the current row of a batch; hands over what is full.
    pub(crate) fn end_row(&mut self, at: usize, sink: &mut dyn Sink, map: &mut IdMap) -> Result<()> {
        let table = &mut self.tables[at];
        table.columns.end_row();
        self.waiting += 1;
        if table.columns.rows >= BATCH_ROWS {
            self.waiting -= table.flush(sink, map)?;
        } else if self.waiting >= WAITING_ROWS_MAX {
            self.flush(sink, map)?;
        }
        Ok(())
    }

    /// Hands over everything.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink, map: &mut IdMap) -> Result<()> {
        self.waiting = 0;
        self.tables.iter_mut().try_for_each(|table| table.flush(sink, map).map(drop))
    }
}

impl EdgeBatches {
    /// The position of a label's batch, opened where it is new.
    pub(crate) fn open(&mut self, label: &str) -> usize {
        self.position(label, |label| EdgeTable {
            label,
            ends: Vec::new(),
            ids: Vec::new(),
            columns: Columns::default(),
        })
    }

    /// Ends the current row of a batch; hands over what is full.
    pub(crate) fn end_row(&mut self, at: usize, sink: &mut dyn Sink) -> Result<()> {
        let table = &mut self.tables[at];
        table.columns.end_row();
        self.waiting += 1;
        if table.columns.rows >= BATCH_ROWS {
            self.waiting -= table.flush(sink)?;
        } else if self.waiting >= WAITING_ROWS_MAX {
            self.flush(sink)?;
        }
        Ok(())
    }

    /// Hands over everything.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink) -> Result<()> {
        self.waiting = 0;
        self.tables.iter_mut().try_for_each(|table| table.flush(sink).map(drop))
    }
}
