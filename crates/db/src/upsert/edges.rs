//! The edges of an upsert: decides which edge of the graph each row means, and writes it.

use std::collections::{BTreeMap, HashMap, HashSet};

use mangrove_graph::{
    Direction, EdgeId, ExpandCursor, ExpandRequest, Expansion, GraphView, KeyId, LabelFilter, LabelSetId, PropertyRow,
    Result, UserId, Value, VertexId,
};
use mangrove_load::{EdgeBatch, EdgeIdentity, PropertyColumn, Upserted};
use mangrove_txn::Transaction;
use smol_str::SmolStr;

use super::{CurrentProperties, changed, is_same};

/// The edge that a row means: a new one, an existing one, or none, with the reason.
#[derive(Clone)]
enum EdgeMatch {
    New,
    Edge(EdgeId),
    Refused(String),
}

/// Writes a batch of edges. Returns the outcome of every row with its edge. `met` has the edges that earlier batches of
/// the load created or found by ends alone.
pub(super) fn upsert_edges(
    transaction: &Transaction,
    label: &str,
    batch: &EdgeBatch,
    identity: &EdgeIdentity,
    met: &HashSet<EdgeId>,
) -> Result<Vec<Upserted<EdgeId>>> {
    transaction.check_writable()?;
    let catalog = transaction.catalog();
    let labels = catalog.intern_label_text(label);
    let keys: Vec<KeyId> = batch.columns.iter().map(|column| catalog.intern_key(&column.key)).collect();
    let meant = match identity {
        EdgeIdentity::Id => edges_by_id(transaction, labels, batch)?,
        EdgeIdentity::Key(properties) => {
            ParallelEdges::find(transaction, label, labels, batch, met)?.by_key(batch, properties)
        }
        EdgeIdentity::Ends => ParallelEdges::find(transaction, label, labels, batch, met)?.by_content(batch, &keys),
    };
    let found: Vec<Option<EdgeId>> =
        meant.iter().map(|meant| if let EdgeMatch::Edge(edge) = meant { Some(*edge) } else { None }).collect();
    let present = CurrentProperties::of_edges(transaction, &found)?;
    let mut outcomes = Vec::with_capacity(meant.len());
    for (row, meant) in meant.into_iter().enumerate() {
        outcomes.push(match meant {
            EdgeMatch::New => {
                let (source, target) = batch.ends[row];
                let id = batch.ids.as_ref().map(|ids| ids[row].clone());
                Upserted::Created(transaction.insert_edge(source, target, labels, id)?)
            }
            EdgeMatch::Edge(edge) => Upserted::Unchanged(edge),
            EdgeMatch::Refused(reason) => Upserted::Refused(reason),
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

/// Finds the edges with the ids of a batch. A row is refused if the edge has other ends or another label.
fn edges_by_id(transaction: &Transaction, label: LabelSetId, batch: &EdgeBatch) -> Result<Vec<EdgeMatch>> {
    let Some(ids) = &batch.ids else { return Ok(vec![EdgeMatch::New; batch.ends.len()]) };
    let mut existing = Vec::with_capacity(ids.len());
    transaction.find_edges(ids, &mut existing)?;
    let (rows, found): (Vec<usize>, Vec<EdgeId>) =
        existing.iter().enumerate().filter_map(|(row, edge)| Some((row, (*edge)?))).unzip();
    let (mut sources, mut targets, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    transaction.edge_ends(&found, &mut sources, &mut targets)?;
    transaction.edge_labels(&found, &mut labels)?;
    let mut meant = vec![EdgeMatch::New; ids.len()];
    for (at, row) in rows.into_iter().enumerate() {
        let same = (sources[at], targets[at]) == batch.ends[row] && labels[at] == label;
        meant[row] = match same {
            true => EdgeMatch::Edge(found[at]),
            false => EdgeMatch::Refused(format!(
                "the edge {} exists with other ends or another label, which cannot be changed; delete it first",
                ids[row]
            )),
        };
    }
    Ok(meant)
}

/// The existing edges of one label between the ends of a batch's rows, with their properties.
///
/// Rows without an id and without a key that have the same ends may mean the same edge or parallel edges. These rules
/// decide, in this order:
///
/// 1. A row whose values are exactly the properties of an edge means that edge. So does a row whose values are a part
///    of them. No second row means the same edge.
/// 2. If no edge is left between the ends, the row is a new edge.
/// 3. If the batch has one row with these ends and the graph has one such edge, which no earlier batch met, the row
///    means it.
/// 4. Any other row is refused, because it could mean several edges.
///
/// So every row of a load is an edge of its own, as in a plain load, and a load that is run again finds its own edges.
pub(super) struct ParallelEdges<'l> {
    label: &'l str,
    /// By ends: the edges that no earlier batch of the load met, and the number of the edges that one did.
    edges: BTreeMap<(VertexId, VertexId), (Vec<ParallelEdge>, usize)>,
}

/// An existing edge with its properties.
struct ParallelEdge {
    edge: EdgeId,
    properties: Vec<(KeyId, SmolStr, Value)>,
}

impl ParallelEdge {
    fn value(&self, key: KeyId) -> Option<&Value> {
        self.properties.iter().find(|(other, ..)| *other == key).map(|(_, _, value)| value)
    }
}

impl<'l> ParallelEdges<'l> {
    /// Reads the edges between the ends of a batch. For each pair, the end with fewer edges is expanded.
    fn find(
        transaction: &Transaction,
        label: &'l str,
        set: LabelSetId,
        batch: &EdgeBatch,
        met: &HashSet<EdgeId>,
    ) -> Result<Self> {
        let mut parallel =
            ParallelEdges { label, edges: batch.ends.iter().map(|ends| (*ends, (Vec::new(), 0))).collect() };
        let ends: Vec<(VertexId, VertexId)> = parallel.edges.keys().copied().collect();
        let (sources, targets): (Vec<VertexId>, Vec<VertexId>) = ends.iter().copied().unzip();
        let labels = LabelFilter::Sets([set].into());
        let (mut out, mut into) = (Vec::with_capacity(ends.len()), Vec::with_capacity(ends.len()));
        transaction.degrees(&sources, Direction::Out, &labels, &mut out)?;
        transaction.degrees(&targets, Direction::In, &labels, &mut into)?;
        let from_source = |at: usize| out[at] <= into[at];
        // An edge may be found from both ends.
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

    /// By row: the edge between its ends that has the row's values under the properties of a key.
    fn by_key(self, batch: &EdgeBatch, properties: &[SmolStr]) -> Vec<EdgeMatch> {
        let columns: Vec<(&SmolStr, Option<&PropertyColumn>)> = properties
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
                [] => EdgeMatch::New,
                [edge] => EdgeMatch::Edge(*edge),
                several => {
                    let (count, label, key) = (several.len(), self.label, properties.join(", "));
                    EdgeMatch::Refused(format!(
                        "{count} edges '{label}' between these vertices have the {key} of the row"
                    ))
                }
            });
        }
        meant
    }

    /// By row: the edge that it means by the rules of [`ParallelEdges`].
    fn by_content(mut self, batch: &EdgeBatch, keys: &[KeyId]) -> Vec<EdgeMatch> {
        let mut rows_of: HashMap<(VertexId, VertexId), Vec<usize>> = HashMap::new();
        batch.ends.iter().enumerate().for_each(|(row, ends)| rows_of.entry(*ends).or_default().push(row));
        let mut meant = vec![EdgeMatch::New; batch.ends.len()];
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
                    [] => EdgeMatch::New,
                    [only] if alone => EdgeMatch::Edge(only.edge),
                    _ => EdgeMatch::Refused(self.ambiguous(there)),
                };
            }
        }
        meant
    }

    fn ambiguous(&self, there: usize) -> String {
        let (label, are) = (self.label, if there == 1 { "is 1 edge" } else { "are several edges" });
        format!(
            "there {are} '{label}' between these vertices already, and the row could mean one of them or another edge: \
             name the properties that distinguish them, as in --edge-key {label}.PROPERTY"
        )
    }
}

fn holds(edge: &ParallelEdge, content: &[(KeyId, &Value)]) -> bool {
    content.iter().all(|(key, value)| edge.value(*key).is_some_and(|there| is_same(there, value)))
}

/// Gives each row an edge with exactly the row's values, and no edge to two rows. Returns the rows without such an
/// edge. `left` keeps the edges that no row got.
fn take_identical<'v>(
    left: &mut Vec<ParallelEdge>,
    rows: &[usize],
    meant: &mut [EdgeMatch],
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
                meant[row] = EdgeMatch::Edge(left[at].edge);
                taken.insert(left[at].edge);
            }
            None => rest.push(row),
        }
    }
    left.retain(|edge| !taken.contains(&edge.edge));
    rest
}

/// Gives each row an edge that fits it, and no edge to two rows. Returns the rows that no edge fits. `left` keeps the
/// edges that no row got.
fn take_fitting(
    left: &mut Vec<ParallelEdge>,
    rows: &[usize],
    meant: &mut [EdgeMatch],
    fits: impl Fn(&ParallelEdge, usize) -> bool,
) -> Vec<usize> {
    let mut rest = Vec::new();
    for &row in rows {
        match left.iter().position(|edge| fits(edge, row)) {
            Some(at) => meant[row] = EdgeMatch::Edge(left.swap_remove(at).edge),
            None => rest.push(row),
        }
    }
    rest
}
