//! Open batches: rows gathered by label until there are enough to hand over.
//!
//! There is an open batch for every label that was met. A full one goes to the sink. The number of rows that wait in
//! all open batches of a file is bounded, however many labels there are (LOAD-1).
//!
//! An id goes through three states. It is *claimed* in the id map when its row is read, so that a second row with the
//! id is rejected. It *waits* in the batch, as a claim of a row. When the sink has returned the vertex of the row it is
//! *resolved* in the map; if the sink refused the row, the claim is withdrawn.

use super::context::{LoadContext, Pass};
use super::id_map::SpaceId;
use super::owned::OwnedValue;
use crate::plan::{EdgePlan, VertexPlan, key_text};
use crate::sink::{
    EdgeBatch, EdgeIdentity, MultiPropertyRow, PropertyColumn, ValueWithMeta, VertexBatch, VertexIdentity,
};
use crate::values::FileId;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use mangrove_graph::{Error, Result, UserId, Value, VertexId};
use smol_str::SmolStr;

/// The most rows of one batch.
pub(crate) const BATCH_ROWS: usize = 8 * 1024;
/// The most rows that wait in all open batches of a file.
const WAITING_ROWS_MAX: usize = 16 * BATCH_ROWS;

/// Columns that are filled row by row. A row may leave columns out, and may add columns at any time.
#[derive(Default)]
pub(crate) struct OpenColumns {
    columns: Vec<PropertyColumn>,
    by_key: HashMap<SmolStr, usize, RandomState>,
    rows: usize,
}

impl OpenColumns {
    /// Defines the first columns, if there is none yet: each key's position is its position in the list.
    pub(crate) fn define<'k>(&mut self, keys: impl Iterator<Item = &'k SmolStr>) {
        if self.columns.is_empty() {
            for key in keys {
                self.position(key);
            }
        }
    }

    /// The position of the column of a key. A new key gets a new column.
    pub(crate) fn position(&mut self, key: &str) -> usize {
        if let Some(at) = self.by_key.get(key) {
            return *at;
        }
        let key = SmolStr::from(key);
        self.by_key.insert(key.clone(), self.columns.len());
        self.columns.push(PropertyColumn { key, values: Vec::new() });
        self.columns.len() - 1
    }

    /// Sets a value in the current row.
    pub(crate) fn set(&mut self, at: usize, value: Value) {
        let values = &mut self.columns[at].values;
        values.resize(self.rows, Value::Null);
        values.push(value);
    }

    /// Sets the value of a key in the current row. A later value replaces an earlier one.
    pub(crate) fn set_key(&mut self, key: &str, value: Value) {
        let at = self.position(key);
        self.columns[at].values.truncate(self.rows);
        self.set(at, value);
    }

    /// Removes the value of a key from the current row and returns it.
    fn take_value(&mut self, key: &str) -> Option<Value> {
        let values = &mut self.columns[*self.by_key.get(key)?].values;
        let value = if values.len() > self.rows { values.pop() } else { None };
        value.filter(|value| *value != Value::Null)
    }

    fn end_row(&mut self) {
        self.rows += 1;
    }

    /// Takes the filled columns. Columns in which no row has a value are left out.
    fn take(&mut self) -> Vec<PropertyColumn> {
        let rows = std::mem::take(&mut self.rows);
        let mut taken = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            let mut values = std::mem::take(&mut column.values);
            if values.iter().any(|value| *value != Value::Null) {
                values.resize(rows, Value::Null);
                taken.push(PropertyColumn { key: column.key.clone(), values });
            }
        }
        taken
    }
}

/// Where a row comes from, in case the sink refuses it.
#[derive(Clone, Copy)]
pub(crate) struct RowOrigin<'p> {
    /// Its line number; in files without lines, the number of the row.
    pub(crate) line: u64,
    /// The row as a reject shows it.
    pub(crate) text: &'p [u8],
}

/// Where the rows of a batch come from, in their order.
#[derive(Default)]
pub(crate) struct RowOrigins(Vec<(u64, Box<[u8]>)>);

impl RowOrigins {
    fn add(&mut self, place: RowOrigin<'_>) {
        self.0.push((place.line, place.text.into()));
    }
}

/// The open batch of one label, of vertices or of edges.
pub(crate) trait OpenBatch {
    /// The columns of the rows so far, and where the rows come from.
    fn rows(&mut self) -> (&mut OpenColumns, &mut RowOrigins);

    /// Hands the rows to the sink. Returns their number.
    fn flush(&mut self, ctx: &mut LoadContext<'_>, file: &BatchFile<'_>) -> Result<usize>;
}

/// The open batch of one label of vertices.
pub(crate) struct VertexTable {
    label: SmolStr,
    /// How an upsert finds the vertices. `None`: it cannot.
    pub(crate) identity: Option<VertexIdentity>,
    /// Claimed ids, with the row whose vertex each names. Rows ascend; a row has at most two.
    claims: Vec<(u32, SpaceId, FileId)>,
    ids: Vec<UserId>,
    pub(crate) columns: OpenColumns,
    pub(crate) multi: Vec<MultiPropertyRow>,
    origins: RowOrigins,
}

impl VertexTable {
    /// The number of the current row.
    pub(crate) fn row(&self) -> u32 {
        u32::try_from(self.columns.rows).expect("a batch has few rows")
    }

    /// Notes that an id, claimed in the map, names the vertex of the current row.
    pub(crate) fn claim(&mut self, space: SpaceId, id: FileId) {
        self.claims.push((self.row(), space, id));
    }

    /// Claims the id by which users see the vertex of the current row. `Err` has the reason if it is taken.
    pub(crate) fn claim_user_id(&mut self, ctx: &mut LoadContext<'_>, id: UserId) -> Result<(), String> {
        let key = FileId::from(&id);
        if !ctx.claim(ctx.global, &key) {
            return Err(format!("a vertex with the id {key} exists already"));
        }
        self.claim(ctx.global, key);
        self.user_id(id);
        Ok(())
    }

    /// LOAD-7: claims the key of the current row. `Err` has the reason if another row of the load has the same values.
    pub(crate) fn claim_key<'v>(
        &self,
        ctx: &mut LoadContext<'_>,
        value_of: impl Fn(&str) -> Option<&'v Value>,
    ) -> Result<(), String> {
        let Some(VertexIdentity::Key(key)) = &self.identity else { return Ok(()) };
        let values = key_text(&key.properties, value_of)?;
        match ctx.meets_again(key, &values) {
            false => Ok(()),
            true => {
                let (label, names) = (&key.label, key.properties.join(", "));
                Err(format!("another row of this load is the vertex of '{label}' with the same {names}"))
            }
        }
    }

    /// Sets the id by which users see the vertex of the current row.
    pub(crate) fn user_id(&mut self, id: UserId) {
        self.ids.push(id);
    }

    /// Adds the values of a file of values to those that the current row has under the key.
    pub(crate) fn add_values(&mut self, owned: OwnedValue) {
        let row = self.row();
        let added = owned.values.into_iter().map(|value| ValueWithMeta { value, meta: Vec::new() });
        let at = self.multi.iter().rposition(|multi| multi.row == row && multi.key == owned.key);
        let at = at.unwrap_or_else(|| {
            let first = self.columns.take_value(&owned.key).map(|value| ValueWithMeta { value, meta: Vec::new() });
            let (key, values) = (owned.key, first.into_iter().collect());
            self.multi.push(MultiPropertyRow { row, key, cardinality: owned.cardinality, values });
            self.multi.len() - 1
        });
        added.for_each(|value| self.multi[at].push(value));
    }

    fn take(&mut self, len: usize) -> VertexBatch {
        let ids = std::mem::take(&mut self.ids);
        debug_assert!(ids.is_empty() || ids.len() == len);
        VertexBatch {
            len,
            ids: (!ids.is_empty()).then_some(ids),
            columns: self.columns.take(),
            multi: std::mem::take(&mut self.multi),
        }
    }
}

impl OpenBatch for VertexTable {
    fn rows(&mut self) -> (&mut OpenColumns, &mut RowOrigins) {
        (&mut self.columns, &mut self.origins)
    }

    fn flush(&mut self, ctx: &mut LoadContext<'_>, file: &BatchFile<'_>) -> Result<usize> {
        let len = self.columns.rows;
        if len == 0 {
            return Ok(0);
        }
        ctx.check_interrupt()?;
        let batch = self.take(len);
        if !ctx.upsert {
            let vertices = ctx.sink.vertices(&self.label, batch)?;
            check_len(vertices.len(), len)?;
            for (row, space, id) in self.claims.drain(..) {
                ctx.ids_mut().resolve(space, id, vertices[row as usize]);
            }
            ctx.files[file.pass.file].vertices += len as u64;
            return Ok(len);
        }
        let identity = self.identity.as_ref().ok_or_else(|| Error::bug("an upsert knows how to find its vertices"))?;
        let outcomes = ctx.sink.upsert_vertices(&self.label, batch, identity)?;
        check_len(outcomes.len(), len)?;
        let mut vertices = Vec::with_capacity(len);
        for ((line, text), outcome) in std::mem::take(&mut self.origins.0).into_iter().zip(outcomes) {
            let counted = ctx.count_vertex(file.pass.file, outcome);
            if let Err(reason) = &counted {
                ctx.rejects.remember(file.pass.file, line);
                file.reject(ctx, line, reason, &text)?;
            }
            vertices.push(counted.ok());
        }
        for (row, space, id) in self.claims.drain(..) {
            match vertices[row as usize] {
                Some(vertex) => ctx.ids_mut().resolve(space, id, vertex),
                None => ctx.ids_mut().withdraw(space, &id),
            }
        }
        Ok(len)
    }
}

/// The open batch of one label of edges.
pub(crate) struct EdgeTable {
    pub(crate) label: SmolStr,
    pub(crate) identity: EdgeIdentity,
    ends: Vec<(VertexId, VertexId)>,
    ids: Vec<UserId>,
    pub(crate) columns: OpenColumns,
    origins: RowOrigins,
}

impl EdgeTable {
    /// Sets the ends of the edge of the current row, and the id by which users see it.
    pub(crate) fn edge(&mut self, source: VertexId, target: VertexId, id: Option<UserId>) {
        self.ends.push((source, target));
        self.ids.extend(id);
    }
}

impl OpenBatch for EdgeTable {
    fn rows(&mut self) -> (&mut OpenColumns, &mut RowOrigins) {
        (&mut self.columns, &mut self.origins)
    }

    fn flush(&mut self, ctx: &mut LoadContext<'_>, file: &BatchFile<'_>) -> Result<usize> {
        let len = self.ends.len();
        if len == 0 {
            return Ok(0);
        }
        ctx.check_interrupt()?;
        let ids = std::mem::take(&mut self.ids);
        debug_assert!(ids.is_empty() || ids.len() == len);
        let batch = EdgeBatch {
            ends: std::mem::take(&mut self.ends),
            ids: (!ids.is_empty()).then_some(ids),
            columns: self.columns.take(),
        };
        if !ctx.upsert {
            ctx.sink.edges(&self.label, batch)?;
            ctx.files[file.pass.file].edges += len as u64;
            return Ok(len);
        }
        let outcomes = ctx.sink.upsert_edges(&self.label, batch, &self.identity)?;
        check_len(outcomes.len(), len)?;
        for ((line, text), outcome) in std::mem::take(&mut self.origins.0).into_iter().zip(outcomes) {
            if let Err(reason) = ctx.count_edge(file.pass.file, outcome) {
                file.reject(ctx, line, &reason, &text)?;
            }
        }
        Ok(len)
    }
}

fn check_len(outcomes: usize, rows: usize) -> Result<()> {
    match outcomes == rows {
        true => Ok(()),
        false => Err(Error::bug(format!("the sink says what became of {outcomes} elements, and was given {rows}"))),
    }
}

/// The file that fills the batches.
pub(crate) struct BatchFile<'p> {
    pub(crate) pass: Pass<'p>,
    /// True if a row that the sink refuses is written to the rejects as it stands in the file.
    pub(crate) keeps_rows: bool,
}

impl BatchFile<'_> {
    fn reject(&self, ctx: &mut LoadContext<'_>, line: u64, reason: &str, text: &[u8]) -> Result<()> {
        ctx.reject(&self.pass, line, reason, text)?;
        match self.keeps_rows {
            true => ctx.rejects.keep(self.pass.file, self.pass.path, text),
            false => Ok(()),
        }
    }
}

/// The open batches of one file, by label.
pub(crate) struct Batches<'p, T> {
    file: BatchFile<'p>,
    tables: Vec<T>,
    by_label: HashMap<SmolStr, usize, RandomState>,
    waiting: usize,
}

/// The open batches of vertices.
pub(crate) type VertexBatches<'p> = Batches<'p, VertexTable>;
/// The open batches of edges.
pub(crate) type EdgeBatches<'p> = Batches<'p, EdgeTable>;

impl<'p, T> Batches<'p, T> {
    /// Batches of a file.
    pub(crate) fn new(file: BatchFile<'p>) -> Self {
        Batches { file, tables: Vec::new(), by_label: HashMap::default(), waiting: 0 }
    }

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

impl<T: OpenBatch> Batches<'_, T> {
    /// Ends the current row of a batch. A full batch goes to the sink.
    pub(crate) fn end_row(&mut self, ctx: &mut LoadContext<'_>, at: usize, place: RowOrigin<'_>) -> Result<()> {
        let table = &mut self.tables[at];
        let (columns, origins) = table.rows();
        columns.end_row();
        if ctx.upsert {
            origins.add(place);
        }
        self.waiting += 1;
        if columns.rows >= BATCH_ROWS {
            self.waiting -= table.flush(ctx, &self.file)?;
        } else if self.waiting >= WAITING_ROWS_MAX {
            self.flush(ctx)?;
        }
        Ok(())
    }

    /// Hands all open batches to the sink.
    pub(crate) fn flush(&mut self, ctx: &mut LoadContext<'_>) -> Result<()> {
        self.waiting = 0;
        self.tables.iter_mut().try_for_each(|table| table.flush(ctx, &self.file).map(drop))
    }
}

impl VertexBatches<'_> {
    /// The position of the open batch of a label. A new label opens one.
    pub(crate) fn open(&mut self, ctx: &LoadContext<'_>, label: &str, plan: Option<&VertexPlan>) -> usize {
        self.position(label, |label| VertexTable {
            identity: ctx.identities.of_vertices(&label, plan),
            label,
            claims: Vec::new(),
            ids: Vec::new(),
            columns: OpenColumns::default(),
            multi: Vec::new(),
            origins: RowOrigins::default(),
        })
    }
}

impl EdgeBatches<'_> {
    /// The position of the open batch of a label. A new label opens one.
    pub(crate) fn open(&mut self, ctx: &LoadContext<'_>, label: &str, has_id: bool, plan: Option<&EdgePlan>) -> usize {
        self.position(label, |label| EdgeTable {
            identity: ctx.identities.of_edges(&label, has_id, plan),
            label,
            ends: Vec::new(),
            ids: Vec::new(),
            columns: OpenColumns::default(),
            origins: RowOrigins::default(),
        })
    }
}
