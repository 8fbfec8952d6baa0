//! Results as a table: which columns they have, and which of their parts goes where.
//!
//! The first result that is not null decides the shape ([`Shape`]). Columns come in the order in which their keys are first met.
//! A table is read in *pieces* of at most as many rows as a record batch has; a later piece has all columns of the earlier ones.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use hashbrown::HashMap;
use mangrove_graph::{
    Detached, DetachedVertexProperty, EdgeId, Error, GraphView, KeyId, LabelSetId, Numbers, Result, Value,
    ValueColumns, ValueRows, VertexId,
};
use smol_str::SmolStr;

use crate::build::{arrow, nulls};
use crate::column::Column;
use crate::kind::{free_name, key_name};
use crate::options::{ArrowOptions, Layout};

/// Bytes of text in a column after which a piece ends early: the offsets of an array have 32 bits.
const TEXT_BYTES: usize = 1 << 30;
/// Rows between two looks at the bytes of text.
const TEXT_ROWS: usize = 256;

/// What results are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// Maps with names as keys: a column for each key.
    Maps,
    /// Entries of maps: `key` and `value`.
    Entries,
    /// Vertices: `id`, `label` and a column for each property.
    Vertices,
    /// Edges: `id`, `label`, `src`, `dst` and a column for each property.
    Edges,
    /// Properties: `key` and `value`.
    Properties,
    /// Anything else: `value`.
    Single,
}

impl Shape {
    fn of(value: &Value, layout: Layout) -> Shape {
        match value {
            _ if layout == Layout::OneColumn => Shape::Single,
            Value::Map(entries) if entries.iter().all(|(key, _)| key_name(key).is_some()) => Shape::Maps,
            Value::Entry(_) => Shape::Entries,
            Value::Vertex(_) => Shape::Vertices,
            Value::Edge(_) => Shape::Edges,
            Value::Detached(element) => match &**element {
                Detached::Vertex { .. } => Shape::Vertices,
                Detached::Edge { .. } => Shape::Edges,
                Detached::VertexProperty(_) | Detached::Property { .. } => Shape::Properties,
            },
            _ => Shape::Single,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Shape::Maps => "maps",
            Shape::Entries => "map entries",
            Shape::Vertices => "vertices",
            Shape::Edges => "edges",
            Shape::Properties => "properties",
            Shape::Single => "single values",
        }
    }

    /// The columns that every result of the shape has: names, and whether they hold ids of elements.
    fn heads(self) -> &'static [(&'static str, bool)] {
        match self {
            Shape::Maps => &[],
            Shape::Entries | Shape::Properties => &[("key", false), ("value", false)],
            Shape::Vertices => &[("id", true), ("label", false)],
            Shape::Edges => &[("id", true), ("label", false), ("src", true), ("dst", true)],
            Shape::Single => &[("value", false)],
        }
    }
}

/// Results while they are read.
pub(crate) struct Table {
    options: ArrowOptions,
    shape: Option<Shape>,
    names: Vec<SmolStr>,
    /// By column, the key, and whether it is a head or a token.
    keys: Vec<(SmolStr, bool)>,
    /// By key, its column: those of heads and tokens, and those of properties and text.
    by_head: HashMap<SmolStr, usize, foldhash::fast::RandomState>,
    by_key: HashMap<SmolStr, usize, foldhash::fast::RandomState>,
    columns: Vec<Column>,
    /// Rows of the open piece.
    len: usize,
    /// Rows of the pieces before.
    first: u64,
    /// The last label that was looked up.
    label: Option<(LabelSetId, SmolStr)>,
    /// Memory that reading elements uses again.
    read: ValueColumns,
}

/// Some rows of a table, with the columns that were met so far.
pub(crate) struct Piece {
    columns: Vec<Column>,
    len: usize,
    first: u64,
}

impl Table {
    pub(crate) fn new(options: ArrowOptions) -> Self {
        Table {
            options,
            shape: None,
            names: Vec::new(),
            keys: Vec::new(),
            by_head: HashMap::default(),
            by_key: HashMap::default(),
            columns: Vec::new(),
            len: 0,
            first: 0,
            label: None,
            read: ValueColumns::default(),
        }
    }

    /// A table of vertices, whether or not there are any.
    pub(crate) fn of_vertices(options: ArrowOptions) -> Result<Self> {
        let mut table = Table::new(options);
        table.shape(Shape::Vertices)?;
        Ok(table)
    }

    /// A table of edges, whether or not there are any.
    pub(crate) fn of_edges(options: ArrowOptions) -> Result<Self> {
        let mut table = Table::new(options);
        table.shape(Shape::Edges)?;
        Ok(table)
    }

    /// A table with these heads, and a column for each of the keys.
    pub(crate) fn with_keys(options: ArrowOptions, heads: &[(&'static str, bool)], keys: &[(KeyId, SmolStr)]) -> Self {
        let mut table = Table::new(options);
        // The columns are given, so no result decides them.
        table.shape = Some(Shape::Maps);
        table.add_heads(heads);
        keys.iter().for_each(|(_, name)| {
            table.find_column(name, false);
        });
        table
    }

    /// Returns true if the open piece should be taken before more rows are pushed.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.options.batch_rows.max(1)
            || self.len.is_multiple_of(TEXT_ROWS) && self.columns.iter().any(|column| column.text_bytes() >= TEXT_BYTES)
    }

    /// Returns true if the open piece has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of the open piece.
    pub(crate) fn bytes(&self) -> u64 {
        self.columns.iter().map(Column::bytes).sum::<usize>() as u64
    }

    /// Rows that the open piece has room for.
    pub(crate) fn room(&self) -> usize {
        self.options.batch_rows.max(1).saturating_sub(self.len)
    }

    /// Rows that may have text and are pushed together, before the next look at the bytes of text.
    pub(crate) fn room_for_text(&self) -> usize {
        self.room().min(TEXT_ROWS - self.len % TEXT_ROWS)
    }

    /// The number of the next row, over all pieces.
    fn row(&self) -> u64 {
        self.first + self.len as u64
    }

    fn shape(&mut self, of: Shape) -> Result<()> {
        match self.shape {
            None => {
                self.shape = Some(of);
                self.add_heads(of.heads());
                Ok(())
            }
            Some(shape) if shape == of => Ok(()),
            Some(shape) => Err(Error::invalid(format!(
                "the results are {} up to row {}, counted from 0, and {} there, which have other columns; let the query return \
                 one kind of results, or take all of them in one column (layout = one column)",
                shape.name(),
                self.row(),
                of.name(),
            ))),
        }
    }

    fn add_heads(&mut self, heads: &[(&'static str, bool)]) {
        for (name, ids) in heads {
            self.by_head.insert(SmolStr::new_static(name), self.columns.len());
            self.names.push(SmolStr::new_static(name));
            self.keys.push((SmolStr::new_static(name), true));
            self.columns.push(Column::new(*ids, self.options.mixed));
        }
    }

    /// The column of a key, which is made if it is new. The hint is where it may be.
    #[inline]
    fn column_of(&mut self, key: &str, is_head: bool, hint: usize) -> usize {
        let is_hinted = self.keys.get(hint).is_some_and(|(of, of_head)| *of_head == is_head && of == key);
        if is_hinted { hint } else { self.find_column(key, is_head) }
    }

    fn find_column(&mut self, key: &str, is_head: bool) -> usize {
        let by = if is_head { &self.by_head } else { &self.by_key };
        if let Some(at) = by.get(key) {
            return *at;
        }
        let name = free_name(key, |name| self.names.iter().any(|other| other == name));
        let at = self.columns.len();
        let by = if is_head { &mut self.by_head } else { &mut self.by_key };
        by.insert(key.into(), at);
        self.names.push(name);
        self.keys.push((key.into(), is_head));
        self.columns.push(Column::new(false, self.options.mixed));
        at
    }

    /// Appends a value to a column, in the open row.
    #[inline]
    fn put(&mut self, at: usize, value: Value) -> Result<()> {
        let row = self.row();
        let column = &mut self.columns[at];
        column.pad(self.len);
        column.push(value, &self.names[at], row)
    }

    /// Appends a result as a row.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the result has another shape than those before, or a value that does not go with its column.
    pub(crate) fn push(&mut self, value: Value) -> Result<()> {
        if value == Value::Null {
            self.len += 1;
            return Ok(());
        }
        if self.shape != Some(Shape::Single) {
            self.shape(Shape::of(&value, self.options.layout))?;
        }
        match value {
            value if self.shape == Some(Shape::Single) => self.put(0, value)?,
            Value::Map(entries) => match Arc::try_unwrap(entries) {
                Ok(entries) => self.put_entries(entries.into_iter())?,
                Err(entries) => self.put_entries(entries.iter().cloned())?,
            },
            Value::Entry(entry) => {
                let (key, value) = Arc::unwrap_or_clone(entry);
                self.put(0, key)?;
                self.put(1, value)?;
            }
            Value::Detached(element) => self.put_element(Arc::unwrap_or_clone(element))?,
            other => {
                return Err(Error::bug(format!("a {} is read from the graph, or has one column", other.type_name())));
            }
        }
        self.len += 1;
        Ok(())
    }

    /// Appends some maps, given by column: a value for each map, or `None` if it does not have the key. Takes the values. The
    /// open piece has room for them.
    pub(crate) fn push_maps(
        &mut self,
        keys: &[SmolStr],
        columns: &mut [Vec<Option<Value>>],
        rows: Range<usize>,
    ) -> Result<()> {
        self.shape(Shape::Maps)?;
        // Columns come in the order in which their keys are first met.
        let first_row = |column: &[Option<Value>]| column[rows.clone()].iter().position(Option::is_some);
        let mut met: Vec<(usize, usize)> =
            columns.iter().enumerate().filter_map(|(at, column)| Some((first_row(column)?, at))).collect();
        met.sort_unstable();
        for (hint, (_, number)) in met.into_iter().enumerate() {
            let at = self.column_of(&keys[number], false, hint);
            let (base, row) = (self.len, self.row());
            let (column, name) = (&mut self.columns[at], &self.names[at]);
            column.pad(base);
            for (offset, value) in columns[number][rows.clone()].iter_mut().enumerate() {
                match value.take() {
                    Some(value) => column.push(value, name, row + offset as u64)?,
                    None => column.pad(base + offset + 1),
                }
            }
        }
        self.len += rows.len();
        Ok(())
    }

    /// Appends some numbers as results. The open piece has room for them.
    pub(crate) fn push_numbers(&mut self, numbers: &Numbers, rows: Range<usize>) -> Result<()> {
        if self.shape != Some(Shape::Single) {
            self.shape(Shape::Single)?;
        }
        // One of the arrays is empty.
        let some = Numbers {
            kind: numbers.kind,
            row: (0..rows.len() as u32).collect(),
            integers: numbers.integers.get(rows.clone()).unwrap_or_default().to_vec(),
            floats: numbers.floats.get(rows.clone()).unwrap_or_default().to_vec(),
        };
        self.put_numbers(0, &some)?;
        self.len += rows.len();
        Ok(())
    }

    fn put_entries(&mut self, entries: impl Iterator<Item = (Value, Value)>) -> Result<()> {
        for (hint, (key, value)) in entries.enumerate() {
            let is_text = matches!(key, Value::String(_));
            let name = key_name(&key).ok_or_else(|| Error::bug("the map has names as keys"))?;
            let at = self.column_of(name, !is_text, hint);
            self.put(at, value)?;
        }
        Ok(())
    }

    fn put_element(&mut self, element: Detached) -> Result<()> {
        match element {
            Detached::Vertex { id, label, properties } => {
                self.put(0, id)?;
                self.put(1, label.into())?;
                let properties = properties.into_iter().map(|DetachedVertexProperty { key, value, .. }| (key, value));
                self.put_properties(properties, 2)
            }
            Detached::Edge { id, label, source, target, properties } => {
                self.put(0, id)?;
                self.put(1, label.into())?;
                self.put(2, source.0)?;
                self.put(3, target.0)?;
                self.put_properties(properties.into_iter(), 4)
            }
            Detached::VertexProperty(DetachedVertexProperty { key, value, .. }) | Detached::Property { key, value } => {
                self.put(0, key.into())?;
                self.put(1, value)
            }
        }
    }

    /// Puts properties, of which those with several values under a key come together.
    fn put_properties(&mut self, properties: impl Iterator<Item = (SmolStr, Value)>, heads: usize) -> Result<()> {
        let mut properties = properties.peekable();
        let mut hint = heads;
        while let Some((key, value)) = properties.next() {
            let at = self.column_of(&key, false, hint);
            hint = at + 1;
            if properties.peek().is_none_or(|(next, _)| *next != key) {
                self.put(at, value)?;
                continue;
            }
            let mut values = vec![value];
            while let Some((_, value)) = properties.next_if(|(next, _)| *next == key) {
                values.push(value);
            }
            let row = self.row();
            self.columns[at].pad(self.len);
            self.columns[at].push_several(values, &self.names[at], row)?;
        }
        Ok(())
    }

    /// Appends vertices that a view shows. The open piece has room for them.
    pub(crate) fn push_vertices(&mut self, view: &dyn GraphView, some: &[VertexId]) -> Result<()> {
        self.shape(Shape::Vertices)?;
        let (mut ids, mut labels) = (Vec::with_capacity(some.len()), Vec::with_capacity(some.len()));
        view.vertex_user_ids(some, &mut ids)?;
        view.vertex_labels(some, &mut labels)?;
        let mut read = std::mem::take(&mut self.read);
        view.vertex_columns(some, None, &mut read)?;
        self.put_all(0, ids)?;
        self.put_labels(view, &labels)?;
        self.put_read(view, &mut read)?;
        self.read = read;
        self.len += some.len();
        Ok(())
    }

    /// Appends edges that a view shows. The open piece has room for them.
    pub(crate) fn push_edges(&mut self, view: &dyn GraphView, some: &[EdgeId]) -> Result<()> {
        self.shape(Shape::Edges)?;
        let (mut ids, mut labels) = (Vec::with_capacity(some.len()), Vec::with_capacity(some.len()));
        view.edge_user_ids(some, &mut ids)?;
        view.edge_labels(some, &mut labels)?;
        let (source_ids, target_ids) = end_ids(view, some)?;
        let mut read = std::mem::take(&mut self.read);
        view.edge_columns(some, None, &mut read)?;
        self.put_all(0, ids)?;
        self.put_labels(view, &labels)?;
        self.put_all(2, source_ids)?;
        self.put_all(3, target_ids)?;
        self.put_read(view, &mut read)?;
        self.read = read;
        self.len += some.len();
        Ok(())
    }

    /// Appends vertices of a table that was made with [`Table::with_keys`].
    pub(crate) fn push_vertex_keys(
        &mut self,
        view: &dyn GraphView,
        some: &[VertexId],
        keys: &[(KeyId, SmolStr)],
    ) -> Result<()> {
        let mut ids = Vec::with_capacity(some.len());
        view.vertex_user_ids(some, &mut ids)?;
        self.put_all(0, ids)?;
        for (at, (key, _)) in (1..).zip(keys) {
            let mut numbers = Numbers::default();
            if view.vertex_numbers(some, *key, &mut numbers)? {
                self.put_numbers(at, &numbers)?;
            } else {
                let mut rows = ValueRows::default();
                view.vertex_values(some, *key, &mut rows)?;
                self.put_rows(at, &mut rows)?;
            }
        }
        self.len += some.len();
        Ok(())
    }

    /// Appends edges of a table that was made with [`Table::with_keys`].
    pub(crate) fn push_edge_keys(
        &mut self,
        view: &dyn GraphView,
        some: &[EdgeId],
        keys: &[(KeyId, SmolStr)],
    ) -> Result<()> {
        let mut ids = Vec::with_capacity(some.len());
        view.edge_user_ids(some, &mut ids)?;
        self.put_all(0, ids)?;
        let (source_ids, target_ids) = end_ids(view, some)?;
        self.put_all(1, source_ids)?;
        self.put_all(2, target_ids)?;
        for (at, (key, _)) in (3..).zip(keys) {
            let mut numbers = Numbers::default();
            if view.edge_numbers(some, *key, &mut numbers)? {
                self.put_numbers(at, &numbers)?;
            } else {
                let mut rows = ValueRows::default();
                view.edge_values(some, *key, &mut rows)?;
                self.put_rows(at, &mut rows)?;
            }
        }
        self.len += some.len();
        Ok(())
    }

    /// Appends numbers of one key, for the open row and those after it.
    fn put_numbers(&mut self, at: usize, numbers: &Numbers) -> Result<()> {
        let are_single = numbers.row.windows(2).all(|rows| rows[0] < rows[1]);
        if are_single && self.columns[at].extend_numbers(self.len, numbers) {
            return Ok(());
        }
        let mut rows = ValueRows { row: numbers.row.clone(), value: Vec::with_capacity(numbers.len()) };
        rows.value.extend((0..numbers.len()).filter_map(|at| numbers.value(at)));
        self.put_rows(at, &mut rows)
    }

    /// Appends the values of one key, for the open row and those after it.
    fn put_rows(&mut self, at: usize, rows: &mut ValueRows) -> Result<()> {
        let (len, first) = (self.len, self.first);
        let (column, name) = (&mut self.columns[at], &self.names[at]);
        let mut values = rows.row.iter().zip(&mut rows.value).peekable();
        while let Some((row, value)) = values.next() {
            let place = len + *row as usize;
            column.pad(place);
            let place = first + place as u64;
            if values.peek().is_none_or(|(next, _)| *next != row) {
                column.push(std::mem::take(value), name, place)?;
                continue;
            }
            let mut several = vec![std::mem::take(value)];
            while let Some((_, value)) = values.next_if(|(next, _)| *next == row) {
                several.push(std::mem::take(value));
            }
            column.push_several(several, name, place)?;
        }
        Ok(())
    }

    /// Appends values to a column, in the open row and those after it.
    fn put_all(&mut self, at: usize, values: Vec<Value>) -> Result<()> {
        let (first, column, name) = (self.row(), &mut self.columns[at], &self.names[at]);
        column.pad(self.len);
        values.into_iter().zip(first..).try_for_each(|(value, row)| column.push(value, name, row))
    }

    fn put_labels(&mut self, view: &dyn GraphView, labels: &[LabelSetId]) -> Result<()> {
        for (row, label) in (self.row()..).zip(labels) {
            let name = match &self.label {
                Some((last, name)) if last == label => name.clone(),
                _ => {
                    let name = SmolStr::from(view.catalog().label_set_name(*label).to_string());
                    self.label.insert((*label, name)).1.clone()
                }
            };
            self.columns[1].pad(self.len);
            self.columns[1].push(name.into(), "label", row)?;
        }
        Ok(())
    }

    /// Appends the properties of the open row and those after it, and forgets them.
    fn put_read(&mut self, view: &dyn GraphView, read: &mut ValueColumns) -> Result<()> {
        let keys: Vec<KeyId> = read.keys().to_vec();
        let heads = self.shape.map_or(0, |shape| shape.heads().len());
        for (hint, key) in (heads..).zip(keys) {
            if read.column(key).row.is_empty() {
                continue;
            }
            let at = self.column_of(&view.key_name(key), false, hint);
            self.put_rows(at, read.column(key))?;
        }
        read.clear();
        Ok(())
    }

    /// Ends a table of nothing but nulls: it has one column.
    pub(crate) fn decide(&mut self) -> Result<()> {
        match self.shape {
            None if self.row() > 0 => self.shape(Shape::Single),
            _ => Ok(()),
        }
    }

    /// Takes the open piece, and opens the next one.
    pub(crate) fn take_piece(&mut self) -> Piece {
        self.columns.iter_mut().for_each(|column| column.pad(self.len));
        let next = self.columns.iter().map(Column::next_piece).collect();
        let piece = Piece { columns: std::mem::replace(&mut self.columns, next), len: self.len, first: self.first };
        self.first += self.len as u64;
        self.len = 0;
        piece
    }

    /// The columns that were met so far, with the types that hold them.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |(name, column): (&SmolStr, &Column)| Field::new(name.as_str(), column.data_type(), true);
        Arc::new(Schema::new(self.names.iter().zip(&self.columns).map(field).collect::<Vec<_>>()))
    }

    /// A piece as a record batch.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the piece has a column that the schema does not have, or a value that does not fit its type.
    pub(crate) fn batch(&self, piece: Piece, schema: &SchemaRef) -> Result<RecordBatch> {
        let Piece { columns, len, first } = piece;
        let mut arrays: Vec<Option<ArrayRef>> = schema.fields().iter().map(|_| None).collect();
        for (at, (mut column, name)) in columns.into_iter().zip(&self.names).enumerate() {
            let place = match schema.fields().get(at) {
                Some(field) if field.name() == name => Some(at),
                _ => schema.fields().iter().position(|field| field.name() == name),
            };
            let Some(place) = place else {
                if column.is_all_null() {
                    continue;
                }
                return Err(unknown_column(name, first, len));
            };
            let field = &schema.fields()[place];
            if self.columns[at].has_lists() && is_list(field.data_type()) {
                column.become_lists();
            }
            arrays[place] = Some(column.finish(field.data_type(), name, first)?);
        }
        let fields = schema.fields().iter();
        let arrays = arrays.into_iter().zip(fields).map(|(array, field)| match array {
            Some(array) if field.is_nullable() || array.null_count() == 0 => Ok(array),
            None if field.is_nullable() || len == 0 => Ok(nulls(field.data_type(), len)),
            _ => Err(Error::invalid(format!(
                "the schema says that the column '{}' has no nulls, but a row from {first} to {}, counted from 0, has one",
                field.name(),
                first + len as u64 - 1
            ))),
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(arrow)
    }
}

/// The ids of the sources and of the targets of edges.
fn end_ids(view: &dyn GraphView, edges: &[EdgeId]) -> Result<(Vec<Value>, Vec<Value>)> {
    let (mut sources, mut targets) = (Vec::with_capacity(edges.len()), Vec::with_capacity(edges.len()));
    view.edge_ends(edges, &mut sources, &mut targets)?;
    let (mut source_ids, mut target_ids) = (Vec::with_capacity(edges.len()), Vec::with_capacity(edges.len()));
    view.vertex_user_ids(&sources, &mut source_ids)?;
    view.vertex_user_ids(&targets, &mut target_ids)?;
    Ok((source_ids, target_ids))
}

fn is_list(of: &DataType) -> bool {
    matches!(of, DataType::List(_) | DataType::LargeList(_))
}

fn unknown_column(name: &str, first: u64, len: usize) -> Error {
    Error::invalid(format!(
        "rows from {first} to {}, counted from 0, have the column '{name}', which the schema does not have; a stream takes its \
         columns from its first batch: take the results as a whole, give a schema that has the column, or name the keys in the \
         query",
        first + len as u64 - 1
    ))
}
