//! Upsert: loads elements into a graph that need not be empty, and replaces the values of existing elements.
//!
//! Each batch is a transaction of its own, which is run again after a conflict. The loader says how the elements of a
//! batch are recognized ([`VertexIdentity`], [`EdgeIdentity`]):
//!
//! - A vertex is found by its user id, or among the vertices of a label by its values under the properties of a key. An
//!   index makes the latter fast; without one, every batch scans the label. If several vertices have these values, the
//!   row is refused.
//! - An edge is found by its id; or by its ends, its label and its values under the properties of a key; or by its ends
//!   and its label alone. In the last case, the properties of parallel edges distinguish them ([`edges::ParallelEdges`]).
//!
//! Values of a row replace the element's values under the same keys. Other keys, and the labels, stay. Only values that
//! differ are written. So if a load is run again, after it was stopped or completed, the elements that it has already
//! written stay unchanged.

mod edges;
pub(crate) mod remote;

use std::collections::{HashMap, HashSet};

use mangrove_graph::{
    Draw, EdgeId, ElementKind, Error, GraphView, IndexInfo, IndexRange, KeyId, PropertyRow, Purpose, Result,
    ScanCursor, Share, UserId, Value, VertexId,
};
use mangrove_load::{
    Cardinality, EdgeBatch, EdgeIdentity, ElementKey, LoadSink, MultiPropertyRow, PropertyColumn, Upserted,
    VertexBatch, VertexIdentity,
};
use mangrove_store::WriteCardinality;
use mangrove_txn::{Transaction, TransactionOptions};
use smol_str::SmolStr;

use crate::load_sink::{check_memory, set_multi};
use crate::state::Database;
use crate::upsert::edges::upsert_edges;

/// Writes each batch as a transaction, and replaces values of existing elements.
pub(crate) struct UpsertSink<'d> {
    database: &'d Database,
    /// Edges that this load has created or found by ends alone. No second row may mean one of them.
    met: HashSet<EdgeId>,
    /// The loader's memory, without the graph, drawn on the memory budget.
    held: Draw,
}

impl<'d> UpsertSink<'d> {
    pub(crate) fn new(database: &'d Database) -> Self {
        UpsertSink { database, met: HashSet::new(), held: database.memory_budget().account(Purpose::Loads) }
    }

    /// Runs a batch as a transaction, again after conflicts, and commits it.
    fn commit<T>(&self, batch: impl Fn(&Transaction) -> Result<T>) -> Result<T> {
        self.database.retrying(self.database.options(), || {
            let transaction = self.database.inner.manager.begin(TransactionOptions::default())?;
            let outcome = batch(&transaction)?;
            transaction.finish_statement()?;
            transaction.commit()?;
            Ok(outcome)
        })
    }
}

impl LoadSink for UpsertSink<'_> {
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        let _ = (label, batch);
        Err(Error::bug("an upsert says how its vertices are recognized"))
    }

    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()> {
        let _ = (label, batch);
        Err(Error::bug("an upsert says how its edges are recognized"))
    }

    fn upsert_vertices(
        &mut self,
        label: &str,
        batch: VertexBatch,
        identity: &VertexIdentity,
    ) -> Result<Vec<Upserted<VertexId>>> {
        self.commit(|transaction| upsert_vertices(transaction, label, &batch, identity))
    }

    fn upsert_edges(&mut self, label: &str, batch: EdgeBatch, identity: &EdgeIdentity) -> Result<Vec<Upserted<()>>> {
        let outcomes = self.commit(|transaction| upsert_edges(transaction, label, &batch, identity, &self.met))?;
        let mut counted = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            let (edge, outcome) = match outcome {
                Upserted::Created(edge) => (Some(edge), Upserted::Created(())),
                Upserted::Updated(edge) => (Some(edge), Upserted::Updated(())),
                Upserted::Unchanged(edge) => (Some(edge), Upserted::Unchanged(())),
                Upserted::Refused(reason) => (None, Upserted::Refused(reason)),
            };
            if *identity == EdgeIdentity::Ends {
                self.met.extend(edge);
            }
            counted.push(outcome);
        }
        Ok(counted)
    }

    fn find(&mut self, identity: &VertexIdentity, id: &UserId) -> Result<Option<VertexId>> {
        let transaction = self.database.inner.manager.begin_read()?;
        match identity {
            VertexIdentity::Id => {
                let mut found = Vec::new();
                transaction.find_vertices(std::slice::from_ref(id), &mut found)?;
                Ok(found.first().copied().flatten())
            }
            VertexIdentity::Key(key) => {
                let found = find_by_key(&transaction, key, &[Some(vec![Some(id.clone())])])?;
                Ok(found.into_values().next().and_then(|vertices| vertices.first().copied()))
            }
        }
    }

    fn holds(&mut self, bytes: u64) -> Result<()> {
        let met = self.met.capacity() * std::mem::size_of::<EdgeId>();
        let bytes = bytes + met as u64;
        check_memory(&self.database.memory(), bytes)?;
        self.held.resize(bytes)
    }
}

/// The most combinations of the values that one vertex has under the properties of a key. Each takes about a hundred
/// bytes.
const KEY_COMBINATIONS_MAX: usize = 1 << 16;

/// The values of a row or a vertex under the properties of a key; `None` for a property without a value.
type KeyValues = Vec<Option<UserId>>;

fn upsert_vertices(
    transaction: &Transaction,
    label: &str,
    batch: &VertexBatch,
    identity: &VertexIdentity,
) -> Result<Vec<Upserted<VertexId>>> {
    transaction.check_writable()?;
    let catalog = transaction.catalog();
    let labels = catalog.intern_label_text(label);
    let found = find_vertices(transaction, batch, identity)?;
    let keys: Vec<KeyId> = batch.columns.iter().map(|column| catalog.intern_key(&column.key)).collect();
    let present = CurrentProperties::of_vertices(transaction, &found)?;
    let mut outcomes = Vec::with_capacity(batch.len);
    for (row, found) in found.iter().enumerate() {
        outcomes.push(match found.as_slice() {
            [] => {
                let id = batch.ids.as_ref().map(|ids| ids[row].clone());
                Upserted::Created(transaction.insert_vertex(labels, id)?)
            }
            [vertex] => Upserted::Unchanged(*vertex),
            several => Upserted::Refused(ambiguous_vertices(identity, several.len())),
        });
    }
    for (column, key) in batch.columns.iter().zip(&keys) {
        for (row, value) in column.values.iter().enumerate().filter(|(_, value)| **value != Value::Null) {
            let Some(vertex) = changed(&mut outcomes[row], || present.is_value(row, *key, value)) else { continue };
            transaction.set_vertex_property(vertex, *key, value.clone(), WriteCardinality::Single, Vec::new())?;
        }
    }
    for multi in &batch.multi {
        let (row, key) = (multi.row as usize, catalog.intern_key(&multi.key));
        let is_there = || present.is_multi(transaction, row, key, multi);
        if let Some(vertex) = changed(&mut outcomes[row], is_there) {
            set_multi(transaction, vertex, multi)?;
        }
    }
    Ok(outcomes)
}

/// Returns the element of a row if a value must be written to it, and marks a found element as updated. Returns `None`
/// if the row was refused or the element has the value (`is_there`).
fn changed<T: Copy>(outcome: &mut Upserted<T>, is_there: impl FnOnce() -> bool) -> Option<T> {
    let element = match *outcome {
        Upserted::Created(element) | Upserted::Updated(element) | Upserted::Unchanged(element) => element,
        Upserted::Refused(_) => return None,
    };
    if is_there() {
        return None;
    }
    if matches!(outcome, Upserted::Unchanged(_)) {
        *outcome = Upserted::Updated(element);
    }
    Some(element)
}

fn ambiguous_vertices(identity: &VertexIdentity, count: usize) -> String {
    match identity {
        VertexIdentity::Id => format!("{count} vertices of the graph have the id of the row"),
        VertexIdentity::Key(ElementKey { label, properties }) => {
            let properties = properties.join(", ");
            format!(
                "{count} vertices of '{label}' in the graph have the {properties} of the row, so none is meant for sure"
            )
        }
    }
}

/// By row: the vertices that the row may mean.
fn find_vertices(
    transaction: &Transaction,
    batch: &VertexBatch,
    identity: &VertexIdentity,
) -> Result<Vec<Vec<VertexId>>> {
    match (identity, &batch.ids) {
        (VertexIdentity::Id, None) => Ok(vec![Vec::new(); batch.len]),
        (VertexIdentity::Id, Some(ids)) => {
            let mut found = Vec::with_capacity(ids.len());
            transaction.find_vertices(ids, &mut found)?;
            Ok(found.into_iter().map(|vertex| vertex.into_iter().collect()).collect())
        }
        (VertexIdentity::Key(key), _) => {
            let values = key_values(batch, &key.properties);
            let mut found = find_by_key(transaction, key, &values)?;
            let mut of_row = |values: &Option<KeyValues>| values.as_ref().and_then(|values| found.remove(values));
            Ok(values.iter().map(|values| of_row(values).unwrap_or_default()).collect())
        }
    }
}

/// By row: the values under the properties of a key; `None` if the row has no value of the first one.
fn key_values(batch: &VertexBatch, properties: &[SmolStr]) -> Vec<Option<KeyValues>> {
    let columns: Vec<Option<&PropertyColumn>> =
        properties.iter().map(|property| batch.columns.iter().find(|column| column.key == *property)).collect();
    let value = |column: &Option<&PropertyColumn>, row: usize| {
        column.and_then(|column| UserId::from_value(&column.values[row]))
    };
    (0..batch.len)
        .map(|row| Some(columns.iter().map(|column| value(column, row)).collect::<KeyValues>()))
        .map(|values| values.filter(|values| values.first().is_some_and(Option::is_some)))
        .collect()
}

/// The vertices with a label that have one of these lists of values under the properties of a key, by that list.
fn find_by_key(
    view: &dyn GraphView,
    key: &ElementKey,
    wanted: &[Option<KeyValues>],
) -> Result<HashMap<KeyValues, Vec<VertexId>>> {
    let mut found: HashMap<KeyValues, Vec<VertexId>> = HashMap::new();
    let Some(first) = key.properties.first().and_then(|first| view.key_of(first)) else { return Ok(found) };
    let candidates = candidates(view, &key.label, first, wanted)?;
    let labels = view.label_filter(std::slice::from_ref(&key.label));
    let mut sets = Vec::new();
    view.vertex_labels(&candidates, &mut sets)?;
    let wanted: HashSet<&KeyValues> = wanted.iter().flatten().collect();
    let keys: Vec<Option<KeyId>> = key.properties.iter().map(|property| view.key_of(property)).collect();
    let named: Vec<KeyId> = keys.iter().copied().flatten().collect();
    let mut properties = Vec::new();
    view.vertex_properties(&candidates, Some(&named), &mut properties)?;
    let mut of_rows = vec![Vec::new(); candidates.len()];
    properties.into_iter().for_each(|property: PropertyRow| of_rows[property.row as usize].push(property));
    let labeled = candidates.iter().zip(sets).zip(of_rows).filter(|((_, set), _)| labels.takes(*set));
    for ((vertex, _), properties) in labeled {
        let Some(combinations) = combinations(&keys, &properties) else {
            return Err(too_many_combinations(view, key, *vertex));
        };
        for values in combinations {
            if wanted.contains(&values) {
                let vertices = found.entry(values).or_default();
                if !vertices.contains(vertex) {
                    vertices.push(*vertex);
                }
            }
        }
    }
    Ok(found)
}

/// The combinations of values that a vertex has under the properties of a key. There are several if a property has
/// several values. `None` if they are more than [`KEY_COMBINATIONS_MAX`].
fn combinations(keys: &[Option<KeyId>], properties: &[PropertyRow]) -> Option<Vec<KeyValues>> {
    let mut all = vec![KeyValues::new()];
    for key in keys {
        let values: Vec<Option<UserId>> = properties
            .iter()
            .filter(|property| Some(property.key) == *key)
            .map(|property| UserId::from_value(&property.value))
            .collect();
        let values = if values.is_empty() { vec![None] } else { values };
        // The values of one property alone need no more memory than the vertex itself.
        if all.len() > 1 && all.len().saturating_mul(values.len()) > KEY_COMBINATIONS_MAX {
            return None;
        }
        let with = |front: &KeyValues, value: &Option<UserId>| front.iter().cloned().chain([value.clone()]).collect();
        all = all.iter().flat_map(|front| values.iter().map(move |value| with(front, value))).collect();
    }
    Some(all)
}

/// The error for a vertex with more than [`KEY_COMBINATIONS_MAX`] combinations of values.
fn too_many_combinations(view: &dyn GraphView, key: &ElementKey, vertex: VertexId) -> Error {
    let mut ids = Vec::new();
    if let Err(error) = view.vertex_user_ids(&[vertex], &mut ids) {
        return error;
    }
    let id = ids.first().and_then(UserId::from_value).map_or_else(String::new, |id| format!(" {id}"));
    Error::invalid(format!(
        "the vertex{id} of '{}' has more than {KEY_COMBINATIONS_MAX} combinations of values under the key ({}), because \
         several of these properties have several values; use a key with one value per property, or remove values",
        key.label,
        key.properties.join(", ")
    ))
}

/// Vertices that may have the wanted values under a key, from an index or by a scan of the label. The caller checks
/// them.
fn candidates(view: &dyn GraphView, label: &str, key: KeyId, wanted: &[Option<KeyValues>]) -> Result<Vec<VertexId>> {
    let first: HashSet<&UserId> = wanted.iter().flatten().filter_map(|values| values.first()?.as_ref()).collect();
    let range = IndexRange::Equal(first.into_iter().map(UserId::to_value).collect());
    let mut candidates = Vec::new();
    match index_of(view, label, key) {
        Some(index) => view.index_vertices(index, &[], &range, Share::ALL, &mut candidates)?,
        None => {
            let (labels, mut cursor) = (view.label_filter(&[label.into()]), ScanCursor::default());
            while !view.scan_vertices_where(&labels, key, &range, Share::ALL, &mut cursor, 1024, &mut candidates)? {}
        }
    }
    candidates.sort_unstable();
    candidates.dedup();
    Ok(candidates)
}

/// An index on the key for the vertices of the label or for all vertices; `None` if there is none.
fn index_of(view: &dyn GraphView, label: &str, key: KeyId) -> Option<mangrove_graph::IndexId> {
    let catalog = view.catalog();
    let fits = |of: Option<mangrove_graph::LabelId>| match of {
        None => true,
        Some(of) => label.split("::").any(|one| catalog.label(one) == Some(of)),
    };
    let serves = |index: &IndexInfo| index.element == ElementKind::Vertex && *index.keys == [key] && fits(index.label);
    view.indexes().into_iter().find(serves).map(|index| index.id)
}

/// The current properties of the elements that rows mean, by row and key.
#[derive(Default)]
struct CurrentProperties(HashMap<(usize, KeyId), Vec<PropertyRow>>);

impl CurrentProperties {
    /// Reads the properties of vertices, for the rows that mean exactly one.
    fn of_vertices(transaction: &Transaction, found: &[Vec<VertexId>]) -> Result<Self> {
        let one = |(row, found): (usize, &Vec<VertexId>)| (found.len() == 1).then(|| (row, found[0]));
        let (rows, vertices): (Vec<usize>, Vec<VertexId>) = found.iter().enumerate().filter_map(one).unzip();
        let mut properties = Vec::new();
        transaction.vertex_properties(&vertices, None, &mut properties)?;
        Ok(Self::of(&rows, properties))
    }

    /// Reads the properties of edges, for the rows that mean one.
    fn of_edges(transaction: &Transaction, found: &[Option<EdgeId>]) -> Result<Self> {
        let (rows, edges): (Vec<usize>, Vec<EdgeId>) =
            found.iter().enumerate().filter_map(|(row, edge)| Some((row, (*edge)?))).unzip();
        let mut properties = Vec::new();
        transaction.edge_properties(&edges, None, &mut properties)?;
        Ok(Self::of(&rows, properties))
    }

    fn of(rows: &[usize], properties: Vec<PropertyRow>) -> Self {
        let mut present = CurrentProperties::default();
        for property in properties {
            let row = rows[property.row as usize];
            present.0.entry((row, property.key)).or_default().push(property);
        }
        present
    }

    /// Returns true if the element of a row has this value under a key, and no other.
    fn is_value(&self, row: usize, key: KeyId, value: &Value) -> bool {
        matches!(self.0.get(&(row, key)).map(Vec::as_slice), Some([only]) if is_same(&only.value, value))
    }

    /// Returns true if the vertex of a row has these values under a key, and no others. Meta-properties are compared if
    /// the row has some.
    fn is_multi(&self, transaction: &Transaction, row: usize, key: KeyId, multi: &MultiPropertyRow) -> bool {
        let present = self.0.get(&(row, key)).map_or(&[][..], Vec::as_slice);
        let catalog = transaction.catalog();
        let same = |there: &PropertyRow, wanted: &mangrove_load::ValueWithMeta| {
            let has = |(key, value): &(SmolStr, Value)| {
                let key = catalog.key(key);
                there.meta.iter().any(|(other, there)| Some(*other) == key && is_same(there, value))
            };
            is_same(&there.value, &wanted.value) && wanted.meta.iter().all(has)
        };
        if present.len() != multi.values.len() {
            return false;
        }
        match multi.cardinality {
            Cardinality::List => present.iter().zip(&multi.values).all(|(there, wanted)| same(there, wanted)),
            Cardinality::Set => multi.values.iter().all(|wanted| present.iter().any(|there| same(there, wanted))),
        }
    }
}

/// Returns true if two values are the same, type included.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::F32(a), Value::F32(b)) => a.to_bits() == b.to_bits(),
        (Value::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}
