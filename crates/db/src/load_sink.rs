//! Loaded elements as transactions, for graphs that are not empty.
//!
//! A plain load fills an empty graph without versions; these two sinks write like anybody else. [`TransactionSink`] adds
//! everything in one transaction of the caller's: `g.io(…).read()` is that. [`UpsertSink`] makes a transaction of each batch, runs it
//! again after a conflict, and replaces what exists:
//!
//! - A vertex is found by the id users know it by, or where a key was named for its label, by its value under that key (an index
//!   makes that fast; without one the label is scanned, once a batch). Values in the file replace those under the same keys; other
//!   keys, and the label, stay.
//! - An edge is found by its id where the file has one, otherwise by source, label and target; of parallel edges the
//!   first met is taken.
//!
//! So a load of this kind that was stopped is simply run again: what it did before, it finds.

use std::collections::HashMap;

use mangrove_graph::{
    Direction, EdgeId, Error, ErrorKind, ExpandCursor, ExpandRequest, Expansion, GraphView, IndexRange, KeyId,
    LabelFilter, LabelSetId, Result, ScanCursor, Share, UserId, Value, ValueRows, VertexId,
};
use mangrove_load::{Cardinality, Column, EdgeBatch, MultiProperty, Sink, VertexBatch};
use mangrove_store::{MemoryReport, WriteCardinality};
use mangrove_txn::{Transaction, TransactionOptions};
use smol_str::SmolStr;

use crate::database::Database;

/// Adds loaded elements to a graph inside a transaction.
pub struct TransactionSink<'t> {
    writer: Writer<'t>,
}

impl<'t> TransactionSink<'t> {
    /// A sink that adds; an id that exists already is an error.
    pub(crate) fn new(transaction: &'t Transaction) -> Self {
        TransactionSink { writer: Writer { transaction, upsert: None } }
    }
}

impl Sink for TransactionSink<'_> {
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        self.writer.vertices(label, &batch)
    }

    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()> {
        self.writer.edges(label, &batch)
    }
}

/// How an upsert finds vertices: of these labels by these keys, of others by id.
#[derive(Clone, Debug, Default)]
pub struct UpsertKeys(Vec<(SmolStr, SmolStr)>);

impl UpsertKeys {
    /// From texts like `person.email`.
    pub fn parse(texts: &[String]) -> Result<Self> {
        let pair = |text: &String| match text.rsplit_once('.') {
            Some((label, key)) if !label.is_empty() && !key.is_empty() => Ok((label.into(), key.into())),
            _ => Err(Error::invalid(format!(
                "'{text}' is not a label and a property key: write LABEL.KEY, as in person.email"
            ))),
        };
        Ok(UpsertKeys(texts.iter().map(pair).collect::<Result<_>>()?))
    }

    /// The key for vertices of a label set.
    fn of_label(&self, label: &str) -> Option<&SmolStr> {
        self.0.iter().find(|(named, _)| label.split("::").any(|one| one == named.as_str())).map(|(_, key)| key)
    }

    /// Label and key for the ids of an id space: the one named so, or the only one there is.
    fn of_space(&self, space: &str) -> Option<&(SmolStr, SmolStr)> {
        match self.0.as_slice() {
            [only] if space.is_empty() => Some(only),
            all => all.iter().find(|(label, _)| label.eq_ignore_ascii_case(space)),
        }
    }
}

/// Writes batches as transactions, replacing what exists.
pub(crate) struct UpsertSink<'d> {
    database: &'d Database,
    keys: UpsertKeys,
}

impl<'d> UpsertSink<'d> {
    pub(crate) fn new(database: &'d Database, keys: UpsertKeys) -> Self {
        UpsertSink { database, keys }
    }

    /// Runs a batch as a transaction until it is committed.
    fn commit<T>(&self, batch: impl Fn(&Writer<'_>) -> Result<T>) -> Result<T> {
        self.database.retrying(self.database.options(), || {
            let transaction = self.database.inner.manager.begin(TransactionOptions::default())?;
            let outcome = batch(&Writer { transaction: &transaction, upsert: Some(&self.keys) })?;
            transaction.commit()?;
            Ok(outcome)
        })
    }
}

impl Sink for UpsertSink<'_> {
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        self.commit(|writer| writer.vertices(label, &batch))
    }

    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()> {
        self.commit(|writer| writer.edges(label, &batch))
    }

    fn find(&mut self, space: &str, id: &UserId) -> Result<Option<VertexId>> {
        let transaction = self.database.inner.manager.begin_read()?;
        let mut found = Vec::new();
        if space.is_empty() {
            transaction.find_vertices(std::slice::from_ref(id), &mut found)?;
        }
        if let (None, Some((label, key))) = (found.first().copied().flatten(), self.keys.of_space(space)) {
            let by_key = find_by_key(&transaction, label, key, vec![id.to_value()])?;
            return Ok(by_key.get(id).copied());
        }
        Ok(found.first().copied().flatten())
    }

    fn holds(&mut self, bytes: u64) -> Result<()> {
        check_memory(&self.database.memory(), bytes)
    }
}

/// Fails where the graph and what a loader holds beside it exceed the memory limit.
pub(crate) fn check_memory(report: &MemoryReport, held_bytes: u64) -> Result<()> {
    let (graph, limit) = (report.total_bytes(), report.limit_bytes);
    if limit == u64::MAX || graph.saturating_add(held_bytes) < limit {
        return Ok(());
    }
    let message = format!(
        "the graph uses {graph} bytes and the ids of the load {held_bytes}, which is more than the {limit} it may use; load in \
         parts, or raise memory_limit_bytes"
    );
    Err(Error::new(ErrorKind::MemoryLimit, message))
}

/// Writes batches in one transaction.
struct Writer<'t> {
    transaction: &'t Transaction,
    /// Set: what exists is replaced.
    upsert: Option<&'t UpsertKeys>,
}

impl Writer<'_> {
    fn vertices(&self, label: &str, batch: &VertexBatch) -> Result<Vec<VertexId>> {
        let catalog = self.transaction.catalog();
        let labels = catalog.intern_label_text(label);
        let mut vertices = Vec::with_capacity(batch.len);
        // What this batch itself inserts is seen by the next statement only.
        let mut inserted: HashMap<UserId, VertexId> = HashMap::new();
        let known = self.known(label, batch)?;
        for row in 0..batch.len {
            let id = batch.ids.as_ref().map(|ids| ids[row].clone());
            let name = known.names.get(row).cloned().flatten();
            let existing = known.vertices.get(row).copied().flatten();
            let vertex = match (existing, name.as_ref().and_then(|name| inserted.get(name))) {
                (Some(vertex), _) | (None, Some(&vertex)) => vertex,
                (None, None) => {
                    let vertex = self.transaction.insert_vertex(labels, id)?;
                    inserted.extend(name.map(|name| (name, vertex)));
                    vertex
                }
            };
            vertices.push(vertex);
        }
        // A value may follow on another of the same vertex in one batch: the later row wins, as rows are taken in order.
        for Column { key, values } in &batch.columns {
            let key = catalog.intern_key(key);
            for (vertex, value) in vertices.iter().zip(values).filter(|(_, value)| **value != Value::Null) {
                let single = WriteCardinality::Single;
                self.transaction.set_vertex_property(*vertex, key, value.clone(), single, Vec::new())?;
            }
        }
        batch.multi.iter().try_for_each(|multi| self.multi(vertices[multi.row as usize], multi))?;
        self.transaction.finish_statement()?;
        Ok(vertices)
    }

    fn multi(&self, vertex: VertexId, property: &MultiProperty) -> Result<()> {
        let catalog = self.transaction.catalog();
        let key = catalog.intern_key(&property.key);
        let rest = match property.cardinality {
            Cardinality::List => WriteCardinality::List,
            Cardinality::Set => WriteCardinality::Set,
        };
        for (at, value) in property.values.iter().enumerate() {
            let meta = value.meta.iter().map(|(key, value)| (catalog.intern_key(key), value.clone())).collect();
            // The first one replaces what was there.
            let cardinality = if at == 0 { WriteCardinality::Single } else { rest };
            self.transaction.set_vertex_property(vertex, key, value.value.clone(), cardinality, meta)?;
        }
        Ok(())
    }

    /// What each row is known by, and the vertex that is there under that name.
    fn known(&self, label: &str, batch: &VertexBatch) -> Result<Known> {
        let Some(keys) = self.upsert else { return Ok(Known::default()) };
        if let Some(key) = keys.of_label(label) {
            let column = batch.columns.iter().find(|column| column.key == *key);
            let values = column.map_or(&[][..], |column| &column.values);
            let name = |row: usize| values.get(row).and_then(UserId::from_value);
            let names: Vec<Option<UserId>> = (0..batch.len).map(name).collect();
            if names.iter().any(Option::is_none) {
                return Err(Error::invalid(format!(
                    "a vertex of '{label}' has no value under '{key}', the key it is to be found by, or one that is no integer, \
                     string or UUID"
                )));
            }
            let mut wanted: Vec<Value> = names.iter().flatten().map(UserId::to_value).collect();
            wanted.dedup();
            let found = find_by_key(self.transaction, label, key, wanted)?;
            let vertices = names.iter().map(|name| name.as_ref().and_then(|name| found.get(name).copied())).collect();
            return Ok(Known { names, vertices });
        }
        let Some(ids) = &batch.ids else { return Ok(Known::default()) };
        let mut vertices = Vec::with_capacity(ids.len());
        self.transaction.find_vertices(ids, &mut vertices)?;
        Ok(Known { names: ids.iter().cloned().map(Some).collect(), vertices })
    }

    fn edges(&self, label: &str, batch: &EdgeBatch) -> Result<()> {
        let catalog = self.transaction.catalog();
        let label = catalog.intern_label_text(label);
        let mut existing = Vec::new();
        if let (Some(ids), Some(_)) = (&batch.ids, self.upsert) {
            self.transaction.find_edges(ids, &mut existing)?;
        }
        let mut by_id: HashMap<UserId, EdgeId> = HashMap::new();
        let mut by_ends: HashMap<(VertexId, VertexId), EdgeId> = HashMap::new();
        let mut edges = Vec::with_capacity(batch.ends.len());
        for (row, &(source, target)) in batch.ends.iter().enumerate() {
            let id = batch.ids.as_ref().map(|ids| &ids[row]);
            let edge = match (self.upsert, id) {
                (None, _) => None,
                (Some(_), Some(id)) => existing[row].or_else(|| by_id.get(id).copied()),
                (Some(_), None) => match by_ends.get(&(source, target)) {
                    None => self.find_edge(source, label, target)?,
                    found => found.copied(),
                },
            };
            let edge = match edge {
                Some(edge) => edge,
                None => self.transaction.insert_edge(source, target, label, id.cloned())?,
            };
            if self.upsert.is_some() {
                match id {
                    Some(id) => by_id.insert(id.clone(), edge),
                    None => by_ends.insert((source, target), edge),
                };
            }
            edges.push(edge);
        }
        self.check_ends(label, batch, &existing)?;
        for Column { key, values } in &batch.columns {
            let key = catalog.intern_key(key);
            for (edge, value) in edges.iter().zip(values).filter(|(_, value)| **value != Value::Null) {
                self.transaction.set_edge_property(*edge, key, value.clone())?;
            }
        }
        self.transaction.finish_statement()
    }

    /// Fails where an edge that is there under an id of the batch is another edge than the row says.
    fn check_ends(&self, label: LabelSetId, batch: &EdgeBatch, existing: &[Option<EdgeId>]) -> Result<()> {
        let (rows, found): (Vec<usize>, Vec<EdgeId>) =
            existing.iter().enumerate().filter_map(|(row, edge)| Some((row, (*edge)?))).unzip();
        let (mut sources, mut targets, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        self.transaction.edge_ends(&found, &mut sources, &mut targets)?;
        self.transaction.edge_labels(&found, &mut labels)?;
        for (at, row) in rows.into_iter().enumerate() {
            if (sources[at], targets[at]) != batch.ends[row] || labels[at] != label {
                let id = batch.ids.as_ref().map(|ids| ids[row].to_string()).unwrap_or_default();
                return Err(Error::invalid(format!(
                    "the edge {id} exists with other ends or another label, which cannot be changed; delete it first"
                )));
            }
        }
        Ok(())
    }

    /// An edge of this label between two vertices, looked for from the end that has fewer.
    fn find_edge(&self, source: VertexId, label: LabelSetId, target: VertexId) -> Result<Option<EdgeId>> {
        let labels = LabelFilter::Sets([label].into());
        let mut degrees = Vec::with_capacity(2);
        self.transaction.degrees(&[source], Direction::Out, &labels, &mut degrees)?;
        self.transaction.degrees(&[target], Direction::In, &labels, &mut degrees)?;
        let (from, to, direction) = match degrees[0] <= degrees[1] {
            true => (source, target, Direction::Out),
            false => (target, source, Direction::In),
        };
        let request = ExpandRequest { direction, labels, edges: true, limit: 1024 };
        let (mut cursor, mut found) = (ExpandCursor::default(), Expansion::default());
        loop {
            found.clear();
            let end = self.transaction.expand(&[from], &request, &mut cursor, &mut found)?;
            if let Some(at) = found.neighbor.iter().position(|neighbor| *neighbor == to) {
                return Ok(Some(found.edge[at]));
            }
            if end {
                return Ok(None);
            }
        }
    }
}

/// What the rows of a batch are known by; empty where nothing is looked for.
#[derive(Default)]
struct Known {
    names: Vec<Option<UserId>>,
    vertices: Vec<Option<VertexId>>,
}

/// The vertices of a label (one of a set) that have one of these values under a key.
fn find_by_key(view: &dyn GraphView, label: &str, key: &str, values: Vec<Value>) -> Result<HashMap<UserId, VertexId>> {
    let mut found = HashMap::new();
    let Some(key) = view.key_of(key) else { return Ok(found) };
    let labels = view.label_filter(&[label.into()]);
    let mut candidates = Vec::new();
    match index_of(view, label, key) {
        Some(index) => {
            view.index_vertices(index, &[], &IndexRange::Equal(values), Share::ALL, &mut candidates)?;
        }
        None => {
            let (range, mut cursor) = (IndexRange::Equal(values), ScanCursor::default());
            while !view.scan_vertices_where(&labels, key, &range, Share::ALL, &mut cursor, 1024, &mut candidates)? {}
        }
    }
    let (mut rows, mut sets) = (ValueRows::default(), Vec::new());
    view.vertex_values(&candidates, key, &mut rows)?;
    view.vertex_labels(&candidates, &mut sets)?;
    for (row, value) in rows.row.iter().zip(&rows.value) {
        if let (Some(id), true) = (UserId::from_value(value), labels.takes(sets[*row as usize])) {
            found.entry(id).or_insert(candidates[*row as usize]);
        }
    }
    Ok(found)
}

/// An index that leads from values of the key to vertices of the label.
fn index_of(view: &dyn GraphView, label: &str, key: KeyId) -> Option<mangrove_graph::IndexId> {
    let catalog = view.catalog();
    let fits = |of: Option<mangrove_graph::LabelId>| match of {
        None => true,
        Some(of) => label.split("::").any(|one| catalog.label(one) == Some(of)),
    };
    view.vertex_indexes().into_iter().find(|index| *index.keys == [key] && fits(index.label)).map(|index| index.id)
}
