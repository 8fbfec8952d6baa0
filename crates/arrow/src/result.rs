//! Results of a query as record batches: whole, with types that hold all rows, or as a stream.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use mangrove_graph::{Draw, EdgeId, Error, GraphView, MemoryBudget, Numbers, Purpose, Result, Value, VertexId};
use smol_str::SmolStr;

use crate::options::ArrowOptions;
use crate::table::Table;

/// Some results.
#[derive(Debug)]
pub enum Results {
    /// Values, each with how many times it occurs.
    Values(Vec<(Value, u64)>),
    /// Maps, by column.
    Maps {
        /// The number of maps.
        len: usize,
        /// The keys, each once.
        keys: Arc<[SmolStr]>,
        /// By key, a value for each map; `None` if the map does not have the key.
        columns: Vec<Vec<Option<Value>>>,
    },
    /// Numbers of one type, one for each of their rows.
    Numbers(Numbers),
}

/// Results, batch by batch.
pub trait ResultSource {
    /// The next results; `None` at the end.
    fn next_results(&mut self) -> Result<Option<Results>>;

    /// The graph that shows the elements in the last results, if these are ids ([`Value::Vertex`], [`Value::Edge`]).
    fn view(&self) -> Option<&dyn GraphView>;

    /// The budget that columns draw on while they are made. The reader gets the batches without a draw.
    fn budget(&self) -> MemoryBudget {
        MemoryBudget::unlimited()
    }
}

impl<S: ResultSource + ?Sized> ResultSource for Box<S> {
    fn next_results(&mut self) -> Result<Option<Results>> {
        (**self).next_results()
    }

    fn view(&self) -> Option<&dyn GraphView> {
        (**self).view()
    }

    fn budget(&self) -> MemoryBudget {
        (**self).budget()
    }
}

/// All results as record batches with one schema, whose types hold all rows. No batches if there are no results.
///
/// # Errors
///
/// Those of the source; `InvalidArgument` if no Arrow type holds a column, see [`ArrowOptions::mixed`]; `MemoryLimit` if the budget
/// has no room for the columns.
pub fn collect(source: &mut dyn ResultSource, options: &ArrowOptions) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let mut reader = TableReader::new(*options, source.budget().account(Purpose::Queries));
    let mut pieces = Vec::new();
    while reader.fill(source)? {
        pieces.push(reader.table.take_piece());
        reader.kept_bytes = reader.held.bytes();
    }
    reader.table.decide()?;
    let schema = reader.table.schema();
    let batches = pieces.into_iter().map(|piece| reader.table.batch(piece, &schema)).collect::<Result<Vec<_>>>()?;
    Ok((schema, batches))
}

/// Results as a stream of record batches, read as the stream is.
///
/// The schema is the caller's, or comes from the first batch. A later value that does not fit, and a column that is not in the
/// schema, are errors.
pub struct ArrowStream<S> {
    source: S,
    reader: TableReader,
    schema: SchemaRef,
    /// The batch from which the schema comes.
    ready: Option<RecordBatch>,
    is_over: bool,
}

impl<S: ResultSource> ArrowStream<S> {
    /// Reads the first batch, and takes the schema from it.
    ///
    /// # Errors
    ///
    /// As those of [`collect`].
    pub fn new(mut source: S, options: &ArrowOptions) -> Result<Self> {
        let mut reader = TableReader::new(*options, source.budget().account(Purpose::Queries));
        let has_rows = reader.fill(&mut source)?;
        reader.table.decide()?;
        let piece = reader.table.take_piece();
        let schema = reader.table.schema();
        let ready = if has_rows { Some(reader.table.batch(piece, &schema)?) } else { None };
        Ok(ArrowStream { source, reader, schema, ready, is_over: !has_rows })
    }

    /// A stream with the columns and types of a schema. A column without values has nulls.
    pub fn with_schema(source: S, options: &ArrowOptions, schema: SchemaRef) -> Self {
        let reader = TableReader::new(*options, source.budget().account(Purpose::Queries));
        ArrowStream { source, reader, schema, ready: None, is_over: false }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.ready.take() {
            self.reader.held.resize(0)?;
            return Ok(Some(batch));
        }
        if self.is_over || !self.reader.fill(&mut self.source)? {
            self.is_over = true;
            return Ok(None);
        }
        let piece = self.reader.table.take_piece();
        let batch = self.reader.table.batch(piece, &self.schema)?;
        self.reader.held.resize(0)?;
        Ok(Some(batch))
    }
}

impl<S: ResultSource> Iterator for ArrowStream<S> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_batch() {
            Ok(batch) => batch.map(Ok),
            Err(error) => {
                self.is_over = true;
                Some(Err(ArrowError::ExternalError(Box::new(error))))
            }
        }
    }
}

impl<S: ResultSource> RecordBatchReader for ArrowStream<S> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Pushes results into a table.
struct TableReader {
    table: Table,
    waiting: Waiting,
    is_over: bool,
    /// The memory of the columns that were read and are not handed over.
    held: Draw,
    /// The bytes of the pieces before the open one that are kept.
    kept_bytes: u64,
}

/// Results that were read from the source and are not in the table yet.
enum Waiting {
    /// In their order; the first may have been pushed a few times already.
    Values(std::vec::IntoIter<(Value, u64)>, Option<(Value, u64)>),
    Vertices(Bulked<VertexId>),
    Edges(Bulked<EdgeId>),
    /// Those of [`Results::Maps`], and how many of them were pushed.
    Maps {
        keys: Arc<[SmolStr]>,
        columns: Vec<Vec<Option<Value>>>,
        len: usize,
        next: usize,
    },
    /// With how many of them were pushed.
    Numbers(Numbers, usize),
}

impl TableReader {
    fn new(options: ArrowOptions, held: Draw) -> Self {
        TableReader {
            table: Table::new(options),
            waiting: Waiting::Values(Vec::new().into_iter(), None),
            is_over: false,
            held,
            kept_bytes: 0,
        }
    }

    /// Reads until the open piece of the table is full. Returns false if it has no rows, because the results are over.
    fn fill(&mut self, source: &mut dyn ResultSource) -> Result<bool> {
        loop {
            let is_full = self.push_waiting(source)?;
            self.held.resize(self.kept_bytes + self.table.bytes())?;
            if is_full {
                return Ok(true);
            }
            if self.is_over {
                return Ok(!self.table.is_empty());
            }
            match source.next_results()? {
                None => self.is_over = true,
                Some(Results::Values(results)) => self.waiting = Waiting::of(results)?,
                Some(Results::Maps { len, keys, columns }) => {
                    self.waiting = Waiting::Maps { keys, columns, len, next: 0 };
                }
                Some(Results::Numbers(numbers)) => self.waiting = Waiting::Numbers(numbers, 0),
            }
        }
    }

    /// Pushes what waits. Returns true if the piece is full.
    fn push_waiting(&mut self, source: &dyn ResultSource) -> Result<bool> {
        let table = &mut self.table;
        match &mut self.waiting {
            Waiting::Values(values, open) => loop {
                if table.is_full() && !table.is_empty() {
                    return Ok(true);
                }
                match open.take().or_else(|| values.next()) {
                    None => return Ok(false),
                    Some((_, 0)) => {}
                    Some((value, 1)) => table.push(value)?,
                    Some((value, times)) => {
                        table.push(value.clone())?;
                        *open = Some((value, times - 1));
                    }
                }
            },
            Waiting::Vertices(vertices) => {
                while !table.is_full() || table.is_empty() {
                    match vertices.next(table.room()) {
                        some if some.is_empty() => return Ok(false),
                        some => table.push_vertices(source.view().ok_or_else(no_view)?, &some)?,
                    }
                }
                Ok(true)
            }
            Waiting::Maps { keys, columns, len, next } => {
                while !table.is_full() || table.is_empty() {
                    match *next..(*next + table.room_for_text()).min(*len) {
                        some if some.is_empty() => return Ok(false),
                        some => {
                            *next = some.end;
                            table.push_maps(keys, columns, some)?;
                        }
                    }
                }
                Ok(true)
            }
            Waiting::Numbers(numbers, next) => {
                while !table.is_full() || table.is_empty() {
                    match *next..(*next + table.room()).min(numbers.len()) {
                        some if some.is_empty() => return Ok(false),
                        some => {
                            *next = some.end;
                            table.push_numbers(numbers, some)?;
                        }
                    }
                }
                Ok(true)
            }
            Waiting::Edges(edges) => {
                while !table.is_full() || table.is_empty() {
                    match edges.next(table.room()) {
                        some if some.is_empty() => return Ok(false),
                        some => table.push_edges(source.view().ok_or_else(no_view)?, &some)?,
                    }
                }
                Ok(true)
            }
        }
    }
}

/// Ids, each with how many times it still occurs.
struct Bulked<T> {
    ids: Vec<(T, u64)>,
    next: usize,
}

impl<T: Copy> Bulked<T> {
    /// The ids of results.
    fn of(results: Vec<(Value, u64)>, id: impl Fn(&Value) -> Option<T>) -> Result<Self> {
        let one = |(value, times): (Value, u64)| id(&value).map(|id| (id, times)).ok_or_else(|| unlike(&value));
        Ok(Bulked { ids: results.into_iter().map(one).collect::<Result<_>>()?, next: 0 })
    }

    /// Takes the next ids, up to so many.
    fn next(&mut self, at_most: usize) -> Vec<T> {
        let mut taken = Vec::new();
        while let Some((id, times)) = self.ids.get_mut(self.next)
            && taken.len() < at_most
        {
            let some = (at_most - taken.len()).min(usize::try_from(*times).unwrap_or(usize::MAX));
            taken.extend(std::iter::repeat_n(*id, some));
            *times -= some as u64;
            if *times == 0 {
                self.next += 1;
            }
        }
        taken
    }
}

fn no_view() -> Error {
    Error::bug("results are ids of elements, and no graph shows them")
}

impl Waiting {
    /// Ids of elements are read together.
    fn of(results: Vec<(Value, u64)>) -> Result<Self> {
        Ok(match results.first() {
            Some((Value::Vertex(_), _)) => Waiting::Vertices(Bulked::of(results, |value| match value {
                Value::Vertex(id) => Some(*id),
                _ => None,
            })?),
            Some((Value::Edge(_), _)) => Waiting::Edges(Bulked::of(results, |value| match value {
                Value::Edge(id) => Some(*id),
                _ => None,
            })?),
            _ => Waiting::Values(results.into_iter(), None),
        })
    }
}

fn unlike(value: &Value) -> Error {
    Error::bug(format!("a batch has ids of elements and a {}", value.type_name()))
}

/// A source of results that are in memory.
pub struct Collected {
    results: Option<Vec<(Value, u64)>>,
    view: Option<Arc<dyn GraphView>>,
}

impl Collected {
    /// Results, each with how many times it occurs. The view shows their elements, if these are ids.
    pub fn new(results: Vec<(Value, u64)>, view: Option<Arc<dyn GraphView>>) -> Self {
        Collected { results: Some(results), view }
    }
}

impl ResultSource for Collected {
    fn next_results(&mut self) -> Result<Option<Results>> {
        Ok(self.results.take().map(Results::Values))
    }

    fn view(&self) -> Option<&dyn GraphView> {
        self.view.as_deref()
    }
}
