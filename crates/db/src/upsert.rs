//! Loaded elements into a graph that need not be empty: what is there is replaced.
//!
//! Each batch is a transaction of its own and runs again after a conflict. The loader says how the elements of a batch are
//! recognized ([`VertexIdentity`], [`EdgeIdentity`]):
//!
//! - A vertex is found by the id users know it by, or by its values under a key among the vertices of a label (an index
//!   makes that fast; without one the label is scanned, once a batch). Where several vertices have these values the row is refused.
//! - An edge is found by its id, or by its ends, its label and its values under a key, or by its ends and its label alone. In the last
//!   case parallel edges are told apart by what they hold ([`Parallel`]).
//!
//! Values in the file replace those under the same keys; other keys, and labels, stay. Only what differs is written, so a load
//! that was stopped, or is run twice, finds what it did before and changes nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use mangrove_graph::{
    Direction, EdgeId, ExpandCursor, ExpandRequest, Expansion, GraphView, IndexRange, KeyId, LabelFilter, LabelSetId,
    PropertyRow, Result, ScanCursor, Share, UserId, Value, VertexId,
};
use mangrove_load::{
    Cardinality, Column, EdgeBatch, EdgeIdentity, ElementKey, MultiProperty, Sink, Upserted, VertexBatch,
    VertexIdentity,
};
use mangrove_store::WriteCardinality;
use mangrove_txn::{Transaction, TransactionOptions};
use smol_str::SmolStr;

use crate::database::Database;
use crate::load_sink::{check_memory, set_multi};

/// Writes batches as transactions, replacing what exists.
pub(crate) struct UpsertSink<'d> {
    database: &'d Database,
    /// Edges that this load made or found without an id or a key: a second row cannot mean them.
    met: HashSet<EdgeId>,
}

impl<'d> UpsertSink<'d> {
    pub(crate) fn new(database: &'d Database) -> Self {
        UpsertSink { database, met: HashSet::new() }
    }

    /// Runs a batch as a transaction until it is committed.
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

impl Sink for UpsertSink<'_> {
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        let _ = (label, batch);
        Err(mangrove_graph::Error::bug("an upsert says how its vertices are recognized"))
    }

    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()> {
        let _ = (label, batch);
        Err(mangrove_graph::Error::bug("an upsert says how its edges are recognized"))
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
        check_memory(&self.database.memory(), bytes + met as u64)
    }
}

/// The values of a row under the properties of a key.
type KeyValues = Vec<Option<UserId>>;

fn upsert_vertices(
    transaction: &Transaction,
    label: &str,
    batch: &VertexBatch,
    identity: &VertexIdentity,
) -> Result<Vec<Upserted<VertexId>>> {
    let catalog = transaction.catalog();
    let labels = catalog.intern_label_text(label);
    let found = find_vertices(transaction, batch, identity)?;
    let keys: Vec<KeyId> = batch.columns.iter().map(|column| catalog.intern_key(&column.key)).collect();
    let present = Present::of_vertices(transaction, &found)?;
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

/// The element to be written to, unless it was refused or has the value already; notes that it changes.
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

/// The vertices that each row may mean.
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

/// What each row of a batch has under the properties of a key.
fn key_values(batch: &VertexBatch, properties: &[SmolStr]) -> Vec<Option<KeyValues>> {
    let columns: Vec<Option<&Column>> =
        properties.iter().map(|property| batch.columns.iter().find(|column| column.key == *property)).collect();
    let value =
        |column: &Option<&Column>, row: usize| column.and_then(|column| UserId::from_value(&column.values[row]));
    (0..batch.len)
        .map(|row| Some(columns.iter().map(|column| value(column, row)).collect::<KeyValues>()))
        .map(|values| values.filter(|values| values.first().is_some_and(Option::is_some)))
        .collect()
}

/// The vertices of a label (one of a set) that have one of these lists of values under the properties of a key.
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
        for values in combinations(&keys, &properties) {
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

/// The values that a vertex has under the properties of a key; several where a property has several values.
fn combinations(keys: &[Option<KeyId>], properties: &[PropertyRow]) -> Vec<KeyValues> {
    let mut all = vec![KeyValues::new()];
    for key in keys {
        let values: Vec<Option<UserId>> = properties
            .iter()
            .filter(|property| Some(property.key) == *key)
            .map(|property| UserId::from_value(&property.value))
            .collect();
        let values = if values.is_empty() { vec![None] } else { values };
        let with = |front: &KeyValues, value: &Option<UserId>| front.iter().cloned().chain([value.clone()]).collect();
        all = all.iter().flat_map(|front| values.iter().map(move |value| with(front, value))).collect();
    }
    all
}

/// Vertices that may have the first of the values of a key: from an index, or by a scan of the label.
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

/// An index that leads from values of the key to vertices of the label.
fn index_of(view: &dyn GraphView, label: &str, key: KeyId) -> Option<mangrove_graph::IndexId> {
    let catalog = view.catalog();
    let fits = |of: Option<mangrove_graph::LabelId>| match of {
        None => true,
        Some(of) => label.split("::").any(|one| catalog.label(one) == Some(of)),
    };
    view.vertex_indexes().into_iter().find(|index| *index.keys == [key] && fits(index.label)).map(|index| index.id)
}

/// The properties that the elements of rows have.
#[derive(Default)]
struct Present(HashMap<(usize, KeyId), Vec<PropertyRow>>);

impl Present {
    /// Of rows that mean one vertex each.
    fn of_vertices(transaction: &Transaction, found: &[Vec<VertexId>]) -> Result<Self> {
        let one = |(row, found): (usize, &Vec<VertexId>)| (found.len() == 1).then(|| (row, found[0]));
        let (rows, vertices): (Vec<usize>, Vec<VertexId>) = found.iter().enumerate().filter_map(one).unzip();
        let mut properties = Vec::new();
        transaction.vertex_properties(&vertices, None, &mut properties)?;
        Ok(Self::of(&rows, properties))
    }

    /// Of rows that mean one edge each.
    fn of_edges(transaction: &Transaction, found: &[Option<EdgeId>]) -> Result<Self> {
        let (rows, edges): (Vec<usize>, Vec<EdgeId>) =
            found.iter().enumerate().filter_map(|(row, edge)| Some((row, (*edge)?))).unzip();
        let mut properties = Vec::new();
        transaction.edge_properties(&edges, None, &mut properties)?;
        Ok(Self::of(&rows, properties))
    }

    fn of(rows: &[usize], properties: Vec<PropertyRow>) -> Self {
        let mut present = Present::default();
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

    /// Returns true if the vertex of a row has these values under a key, and no others. Meta-properties count where the row has some.
    fn is_multi(&self, transaction: &Transaction, row: usize, key: KeyId, multi: &MultiProperty) -> bool {
        let present = self.0.get(&(row, key)).map_or(&[][..], Vec::as_slice);
        let catalog = transaction.catalog();
        let same = |there: &PropertyRow, wanted: &mangrove_load::MultiValue| {
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

/// What is meant by the row of an edge.
#[derive(Clone)]
enum Meant {
    New,
    Edge(EdgeId),
    Refused(String),
}

fn upsert_edges(
    transaction: &Transaction,
    label: &str,
    batch: &EdgeBatch,
    identity: &EdgeIdentity,
    met: &HashSet<EdgeId>,
) -> Result<Vec<Upserted<EdgeId>>> {
    let catalog = transaction.catalog();
    let labels = catalog.intern_label_text(label);
    let keys: Vec<KeyId> = batch.columns.iter().map(|column| catalog.intern_key(&column.key)).collect();
    let meant = match identity {
        EdgeIdentity::Id => edges_by_id(transaction, labels, batch)?,
        EdgeIdentity::Key(properties) => {
            Parallel::find(transaction, label, labels, batch, met)?.by_key(batch, properties)
        }
        EdgeIdentity::Ends => Parallel::find(transaction, label, labels, batch, met)?.by_content(batch, &keys),
    };
    let found: Vec<Option<EdgeId>> =
        meant.iter().map(|meant| if let Meant::Edge(edge) = meant { Some(*edge) } else { None }).collect();
    let present = Present::of_edges(transaction, &found)?;
    let mut outcomes = Vec::with_capacity(meant.len());
    for (row, meant) in meant.into_iter().enumerate() {
        outcomes.push(match meant {
            Meant::New => {
                let (source, target) = batch.ends[row];
                let id = batch.ids.as_ref().map(|ids| ids[row].clone());
                Upserted::Created(transaction.insert_edge(source, target, labels, id)?)
            }
            Meant::Edge(edge) => Upserted::Unchanged(edge),
            Meant::Refused(reason) => Upserted::Refused(reason),
        });
    }
    for (column, key) in batch.columns.iter().zip(&keys) {
        for (row, value) in column.values.iter().enumerate().filter(|(_, value)| **value != Value::Null) {
            let Some(edge) = changed(&mut outcomes[row], || present.is_value(row, *key, value)) else { continue };
            transaction.set_edge_property(edge, *key, value.clone())?;
        }
    }
    Ok(outcomes)
}

/// The edges with the ids of a batch. One that is there with other ends or another label is another edge.
fn edges_by_id(transaction: &Transaction, label: LabelSetId, batch: &EdgeBatch) -> Result<Vec<Meant>> {
    let Some(ids) = &batch.ids else { return Ok(vec![Meant::New; batch.ends.len()]) };
    let mut existing = Vec::with_capacity(ids.len());
    transaction.find_edges(ids, &mut existing)?;
    let (rows, found): (Vec<usize>, Vec<EdgeId>) =
        existing.iter().enumerate().filter_map(|(row, edge)| Some((row, (*edge)?))).unzip();
    let (mut sources, mut targets, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    transaction.edge_ends(&found, &mut sources, &mut targets)?;
    transaction.edge_labels(&found, &mut labels)?;
    let mut meant = vec![Meant::New; ids.len()];
    for (at, row) in rows.into_iter().enumerate() {
        let same = (sources[at], targets[at]) == batch.ends[row] && labels[at] == label;
        meant[row] = match same {
            true => Meant::Edge(found[at]),
            false => Meant::Refused(format!(
                "the edge {} exists with other ends or another label, which cannot be changed; delete it first",
                ids[row]
            )),
        };
    }
    Ok(meant)
}

/// The edges of a label between the ends of rows, told apart by what they hold.
///
/// Of rows without an id or a key, those with the same ends may mean the same edge or parallel ones. A row that says
/// what an edge holds means that edge, and no second row means it too. A row that is alone with its ends, and finds one edge there,
/// means that one. A row that finds none left is a new edge. Any other row is refused: it could mean several.
/// So every row of a load is an edge, as in a plain load, and a load that is run again finds its own edges.
struct Parallel<'l> {
    label: &'l str,
    /// By ends: the edges that are there, and how many of them earlier rows of the load meant.
    edges: BTreeMap<(VertexId, VertexId), (Vec<ParallelEdge>, usize)>,
}

/// An edge with what it holds.
struct ParallelEdge {
    edge: EdgeId,
    properties: Vec<(KeyId, SmolStr, Value)>,
}

impl ParallelEdge {
    fn value(&self, key: KeyId) -> Option<&Value> {
        self.properties.iter().find(|(other, ..)| *other == key).map(|(_, _, value)| value)
    }
}

impl<'l> Parallel<'l> {
    /// Finds them, from the end of each that has fewer edges.
    fn find(
        transaction: &Transaction,
        label: &'l str,
        set: LabelSetId,
        batch: &EdgeBatch,
        met: &HashSet<EdgeId>,
    ) -> Result<Self> {
        let mut parallel = Parallel { label, edges: batch.ends.iter().map(|ends| (*ends, (Vec::new(), 0))).collect() };
        let ends: Vec<(VertexId, VertexId)> = parallel.edges.keys().copied().collect();
        let (sources, targets): (Vec<VertexId>, Vec<VertexId>) = ends.iter().copied().unzip();
        let labels = LabelFilter::Sets([set].into());
        let (mut out, mut into) = (Vec::with_capacity(ends.len()), Vec::with_capacity(ends.len()));
        transaction.degrees(&sources, Direction::Out, &labels, &mut out)?;
        transaction.degrees(&targets, Direction::In, &labels, &mut into)?;
        let from_source = |at: usize| out[at] <= into[at];
        // Both directions may meet an edge.
        let mut seen = HashSet::new();
        for direction in [Direction::Out, Direction::In] {
            let outward = direction == Direction::Out;
            let own = |at: usize| if outward { sources[at] } else { targets[at] };
            let mut from: Vec<VertexId> = (0..ends.len()).filter(|at| from_source(*at) == outward).map(own).collect();
            from.sort_unstable();
            from.dedup();
            let request = ExpandRequest { direction, labels: labels.clone(), edges: true, limit: 1024 };
            parallel.expand(transaction, &from, &request, met, &mut seen)?;
        }
        parallel.read_properties(transaction)?;
        Ok(parallel)
    }

    fn expand(
        &mut self,
        transaction: &Transaction,
        from: &[VertexId],
        request: &ExpandRequest,
        met: &HashSet<EdgeId>,
        seen: &mut HashSet<EdgeId>,
    ) -> Result<()> {
        let (mut cursor, mut found) = (ExpandCursor::default(), Expansion::default());
        let mut end = from.is_empty();
        while !end {
            found.clear();
            end = transaction.expand(from, request, &mut cursor, &mut found)?;
            for at in 0..found.row.len() {
                let (own, other, edge) = (from[found.row[at] as usize], found.neighbor[at], found.edge[at]);
                let ends = if request.direction == Direction::Out { (own, other) } else { (other, own) };
                let Some((edges, taken)) = self.edges.get_mut(&ends) else { continue };
                match met.contains(&edge) {
                    _ if !seen.insert(edge) => {}
                    true => *taken += 1,
                    false => edges.push(ParallelEdge { edge, properties: Vec::new() }),
                }
            }
        }
        Ok(())
    }

    fn read_properties(&mut self, transaction: &Transaction) -> Result<()> {
        let catalog = transaction.catalog();
        let edges: Vec<EdgeId> =
            self.edges.values().flat_map(|(edges, _)| edges.iter().map(|edge| edge.edge)).collect();
        let mut properties = Vec::new();
        transaction.edge_properties(&edges, None, &mut properties)?;
        let mut of_rows = vec![Vec::new(); edges.len()];
        for PropertyRow { row, key, value, .. } in properties {
            of_rows[row as usize].push((key, catalog.key_name(key), value));
        }
        let all = self.edges.values_mut().flat_map(|(edges, _)| edges);
        all.zip(of_rows).for_each(|(edge, properties)| edge.properties = properties);
        Ok(())
    }

    /// What rows mean whose edges have a key.
    fn by_key(self, batch: &EdgeBatch, properties: &[SmolStr]) -> Vec<Meant> {
        let columns: Vec<(&SmolStr, Option<&Column>)> = properties
            .iter()
            .map(|property| (property, batch.columns.iter().find(|column| column.key == *property)))
            .collect();
        let has = |edge: &ParallelEdge, row: usize| {
            columns.iter().all(|(name, column)| {
                let wanted = column.map(|column| &column.values[row]).filter(|value| **value != Value::Null);
                let there = edge.properties.iter().find(|(_, other, _)| other == *name).map(|(_, _, value)| value);
                match (wanted, there) {
                    (Some(wanted), Some(there)) => {
                        is_same(wanted, there)
                            || UserId::from_value(wanted).is_some_and(|id| UserId::from_value(there) == Some(id))
                    }
                    (wanted, there) => wanted.is_none() && there.is_none(),
                }
            })
        };
        let mut meant = Vec::with_capacity(batch.ends.len());
        for (row, ends) in batch.ends.iter().enumerate() {
            let edges = self.edges.get(ends).map_or(&[][..], |(edges, _)| edges.as_slice());
            let fitting: Vec<EdgeId> = edges.iter().filter(|edge| has(edge, row)).map(|edge| edge.edge).collect();
            meant.push(match fitting.as_slice() {
                [] => Meant::New,
                [edge] => Meant::Edge(*edge),
                several => {
                    let (count, label, key) = (several.len(), self.label, properties.join(", "));
                    Meant::Refused(format!("{count} edges '{label}' between these vertices have the {key} of the row"))
                }
            });
        }
        meant
    }

    /// What rows mean whose edges have nothing but their ends and what they hold.
    fn by_content(mut self, batch: &EdgeBatch, keys: &[KeyId]) -> Vec<Meant> {
        let mut rows_of: HashMap<(VertexId, VertexId), Vec<usize>> = HashMap::new();
        batch.ends.iter().enumerate().for_each(|(row, ends)| rows_of.entry(*ends).or_default().push(row));
        let mut meant = vec![Meant::New; batch.ends.len()];
        for (ends, rows) in rows_of {
            let Some((mut left, taken)) = self.edges.remove(&ends) else { continue };
            let alone = rows.len() == 1 && left.len() == 1 && taken == 0;
            let there = left.len() + taken;
            let content = |row: usize| -> Vec<(KeyId, &Value)> {
                let values = batch.columns.iter().zip(keys).map(|(column, key)| (*key, &column.values[row]));
                values.filter(|(_, value)| **value != Value::Null).collect()
            };
            let rest = take_identical(&mut left, &rows, &mut meant, content);
            let rest = take_fitting(&mut left, &rest, &mut meant, |edge, row| holds(edge, &content(row)));
            for row in rest {
                meant[row] = match left.as_slice() {
                    [] => Meant::New,
                    [only] if alone => Meant::Edge(only.edge),
                    _ => Meant::Refused(self.ambiguous(there)),
                };
            }
        }
        meant
    }

    fn ambiguous(&self, there: usize) -> String {
        let (label, are) = (self.label, if there == 1 { "is 1 edge" } else { "are several edges" });
        format!(
            "there {are} '{label}' between these vertices already and the row could be another one or mean one of them: say by              which properties an edge is known, as in --edge-key {label}.PROPERTY"
        )
    }
}

fn holds(edge: &ParallelEdge, content: &[(KeyId, &Value)]) -> bool {
    content.iter().all(|(key, value)| edge.value(*key).is_some_and(|there| is_same(there, value)))
}

/// Gives each row an edge that holds just what it says, which no other row gets; returns the rows for which there is none.
fn take_identical<'v>(
    left: &mut Vec<ParallelEdge>,
    rows: &[usize],
    meant: &mut [Meant],
    content: impl Fn(usize) -> Vec<(KeyId, &'v Value)>,
) -> Vec<usize> {
    let digest = |mut content: Vec<(KeyId, &Value)>| {
        content.sort_by_key(|(key, _)| *key);
        format!("{content:?}")
    };
    let of_edge = |edge: &ParallelEdge| digest(edge.properties.iter().map(|(key, _, value)| (*key, value)).collect());
    let mut by_content: HashMap<String, Vec<usize>> = HashMap::new();
    left.iter().enumerate().rev().for_each(|(at, edge)| by_content.entry(of_edge(edge)).or_default().push(at));
    let (mut rest, mut taken) = (Vec::new(), HashSet::new());
    for &row in rows {
        match by_content.get_mut(&digest(content(row))).and_then(Vec::pop) {
            Some(at) => {
                meant[row] = Meant::Edge(left[at].edge);
                taken.insert(left[at].edge);
            }
            None => rest.push(row),
        }
    }
    left.retain(|edge| !taken.contains(&edge.edge));
    rest
}

/// Gives each row an edge that fits it, which no other row gets; returns the rows that none fits.
fn take_fitting(
    left: &mut Vec<ParallelEdge>,
    rows: &[usize],
    meant: &mut [Meant],
    fits: impl Fn(&ParallelEdge, usize) -> bool,
) -> Vec<usize> {
    let mut rest = Vec::new();
    for &row in rows {
        match left.iter().position(|edge| fits(edge, row)) {
            Some(at) => meant[row] = Meant::Edge(left.swap_remove(at).edge),
            None => rest.push(row),
        }
    }
    rest
}
