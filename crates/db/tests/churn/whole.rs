//! The whole graph: read in every way, and compared with a book after a close, a power cut or a kill.

use std::collections::BTreeMap;

use mangrove::{
    Database, Direction, EdgeId, GraphView, IndexRange, Result, ScanCursor, Share, UserId, Value, VertexId,
};

use crate::book::{Attempt, Closed, Made};
use crate::life::Life;
use crate::model::{COUNT, Edge, Model, Op, State, Tag, Vertex, value_of};
use crate::names::{NO_TAG, Names, Outcome};
use crate::observed::Observed;
use crate::reading::Walk;
use crate::writer::WRITER_ID;

/// The number of elements that are read at a time.
const PORTION: usize = 17;

impl State {
    /// The number of commits of a writer, from the vertex that counts them.
    pub fn count_of(&self, writer: usize) -> u64 {
        let counter = self.vertices.values().find(|vertex| vertex.id == WRITER_ID + writer as i64);
        match counter.and_then(|vertex| vertex.properties.get(&COUNT)).map(Vec::as_slice) {
            Some([Value::I64(count)]) => *count as u64,
            _ => 0,
        }
    }
}

/// Reads all elements, with their internal ids.
pub fn read(db: &Database, names: &Names) -> Outcome<(State, Made)> {
    let read = || -> Result<(State, Made, Vec<String>)> {
        let transaction = db.begin_read()?;
        let (view, mut state, mut made, mut wrong) =
            (transaction.view(), State::default(), Made::default(), Vec::new());
        let mut cursor = ScanCursor::default();
        loop {
            let mut portion = Vec::new();
            let is_end =
                view.scan_vertices(&names.vertex_filter(None), Share::ALL, &mut cursor, PORTION, &mut portion)?;
            read_vertices(view, names, &portion, &mut state, &mut made, &mut wrong)?;
            if is_end {
                break;
            }
        }
        let tags: BTreeMap<VertexId, Tag> = made.vertices.iter().map(|(tag, vertex, _)| (*vertex, *tag)).collect();
        let mut cursor = ScanCursor::default();
        loop {
            let mut portion = Vec::new();
            let is_end = view.scan_edges(&names.edge_filter(None), Share::ALL, &mut cursor, PORTION, &mut portion)?;
            read_edges(view, names, &portion, &tags, &mut state, &mut made, &mut wrong)?;
            if is_end {
                return Ok((state, made, wrong));
            }
        }
    };
    let (state, made, wrong) = read().map_err(|error| error.to_string())?;
    if wrong.is_empty() { Ok((state, made)) } else { Err(wrong.join("\n")) }
}

fn read_vertices(
    view: &dyn GraphView,
    names: &Names,
    vertices: &[VertexId],
    state: &mut State,
    made: &mut Made,
    wrong: &mut Vec<String>,
) -> Result<()> {
    let (mut labels, mut ids, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let tags = names.vertex_tags(view, vertices)?;
    view.vertex_labels(vertices, &mut labels)?;
    view.vertex_user_ids(vertices, &mut ids)?;
    view.vertex_properties(vertices, None, &mut rows)?;
    for (row, &tag) in tags.iter().enumerate() {
        let label = names.vertex_labels.iter().position(|label| *label == labels[row]).unwrap_or(usize::MAX);
        let Value::I64(id) = ids[row] else { panic!("an id that is no number: {:?}", ids[row]) };
        let mut properties: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
        for property in rows.iter().filter(|property| property.row as usize == row && property.key != names.tag) {
            let key = names.keys.iter().position(|key| *key == property.key).unwrap_or(usize::MAX);
            properties.entry(key).or_default().push(property.value.clone());
        }
        let rival = state.vertices.insert(tag, Vertex { label, id, properties });
        if rival.is_some() || tag == NO_TAG {
            wrong
                .push(format!("vertex {tag:x} with the id {id} is there twice, or has no tag; the other is {rival:?}"));
        }
        made.vertices.push((tag, vertices[row], label));
    }
    Ok(())
}

fn read_edges(
    view: &dyn GraphView,
    names: &Names,
    edges: &[EdgeId],
    vertices: &BTreeMap<VertexId, Tag>,
    state: &mut State,
    made: &mut Made,
    wrong: &mut Vec<String>,
) -> Result<()> {
    let (mut labels, mut rows, mut sources, mut targets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let tags = names.edge_tags(view, edges)?;
    view.edge_labels(edges, &mut labels)?;
    view.edge_ends(edges, &mut sources, &mut targets)?;
    view.edge_properties(edges, None, &mut rows)?;
    for (row, &tag) in tags.iter().enumerate() {
        let label = names.edge_labels.iter().position(|label| *label == labels[row]).unwrap_or(usize::MAX);
        let of_row = rows.iter().filter(|property| property.row as usize == row && property.key != names.tag);
        let properties = of_row.map(|property| {
            let key = names.keys.iter().position(|key| *key == property.key).unwrap_or(usize::MAX);
            (key, property.value.clone())
        });
        let end = |vertex| vertices.get(vertex).copied().unwrap_or(NO_TAG);
        let edge = Edge { label, from: end(&sources[row]), to: end(&targets[row]), properties: properties.collect() };
        let rival = state.edges.insert(tag, edge);
        if rival.is_some() || tag == NO_TAG {
            wrong.push(format!("edge {tag:x} is there twice, or has no tag; the other is {rival:?}"));
        }
        made.edges.push((tag, edges[row]));
    }
    Ok(())
}

/// Checks a graph that no other thread uses in every way: lists of both directions, ids, indexes, counts.
pub fn look_from_every_side(life: &Life, state: &State) -> Outcome<()> {
    let look = || -> Result<(Vec<Observed>, u64)> {
        let transaction = life.db().begin_read()?;
        let (reading, view) = (life.reading(&transaction), transaction.view());
        let mut seen = Vec::new();
        for (tag, vertex) in state.vertices.iter() {
            let mut found = Vec::new();
            view.find_vertices(&[UserId::from(vertex.id)], &mut found)?;
            let found: Vec<VertexId> = found.into_iter().flatten().collect();
            let tags = life.names().vertex_tags(view, &found)?;
            seen.push(Observed::ById { id: vertex.id, found: tags.first().copied() });
            let Some(&id) = found.first() else { continue };
            for direction in [Direction::Out, Direction::In] {
                let mut walk = Walk::Expand {
                    tag: *tag,
                    vertex: id,
                    direction,
                    label: None,
                    cursor: Default::default(),
                    edges: Vec::new(),
                };
                loop {
                    match reading.walk_on(walk, PORTION)? {
                        Ok(observed) => break seen.push(observed),
                        Err(further) => walk = further,
                    }
                }
            }
        }
        for (index, n) in view.indexes().iter().flat_map(|index| (0..26).map(move |n| (index, n))) {
            let (label, key) = reading.subject(index);
            seen.push(reading.ask(index, label, key, IndexRange::Equal(vec![value_of(key, n)]))?);
        }
        Ok((seen, transaction.begin_ts()))
    };
    let (seen, ts) = look().map_err(|error| error.to_string())?;
    life.book().check(&seen, ts)
}

/// Compares the graph after a close, a power cut or a kill with the book. It must have every acknowledged transaction,
/// and completely those transactions of unknown outcome that the counters include.
pub fn check_recovered(closed: &Closed, found: &State, writer_count: usize) -> Outcome<()> {
    let mut present = Vec::new();
    for writer in 0..writer_count {
        let told =
            closed.commits.values().filter(|attempt| attempt.writer == writer).map(|attempt| attempt.number).max();
        let (told, count) = (told.unwrap_or(closed.base.count_of(writer)), found.count_of(writer));
        if count == told {
            continue;
        }
        match closed.unknown.iter().find(|attempt| (attempt.writer, attempt.number) == (writer, count)) {
            Some(attempt) => present.push(attempt),
            None => {
                return Err(format!("writer {writer} was told of its transaction {told}, and {count} is there: lost"));
            }
        }
    }
    let known: Vec<(u64, &Attempt)> = closed.commits.iter().map(|(ts, attempt)| (*ts, attempt)).collect();
    let mut first = None;
    match place(&known, &present, found, closed, &mut first) {
        true => Ok(()),
        false => {
            let (last, unknown) = (known.last().map(|(ts, _)| *ts), present.len());
            let first = first.unwrap_or_default();
            Err(format!(
                "after the commits up to {last:?} and {unknown} without an answer, what is there differs:\n{first}"
            ))
        }
    }
}

/// Tries every position that transactions of unknown outcome may have in the order of commits. Returns true if one of
/// these orders makes the graph that was found. A transaction comes after those of its snapshot, and its position
/// matters only relative to transactions that change the same elements.
fn place(
    known: &[(u64, &Attempt)],
    unknown: &[&Attempt],
    found: &State,
    closed: &Closed,
    first: &mut Option<String>,
) -> bool {
    let Some((attempt, rest)) = unknown.split_first() else {
        let difference = after(known, closed).and_then(|state| state.difference(found).map_or(Ok(()), Err));
        return difference.map_err(|difference| first.get_or_insert(difference).clone()).is_ok();
    };
    let begin = known.iter().position(|(ts, _)| *ts > attempt.begin_ts).unwrap_or(known.len());
    let tags: Vec<Tag> = attempt.ops.iter().flat_map(Op::tags).collect();
    let deletes = |attempt: &Attempt| attempt.ops.iter().any(|op| matches!(op, Op::DeleteVertex { .. }));
    // The deletion of a vertex deletes edges that it does not name.
    let is_near = |other: &Attempt| {
        deletes(attempt) || deletes(other) || other.ops.iter().flat_map(Op::tags).any(|tag| tags.contains(&tag))
    };
    let later = (begin..known.len()).filter(|&at| is_near(known[at].1)).map(|at| at + 1);
    [begin].into_iter().chain(later).any(|at| {
        let mut order = known.to_vec();
        order.insert(at, (attempt.begin_ts, attempt));
        place(&order, rest, found, closed, first)
    })
}

/// The graph after transactions in this order.
fn after(order: &[(u64, &Attempt)], closed: &Closed) -> Outcome<State> {
    let mut model = Model::of(State::clone(&closed.base), 0);
    (1..).zip(order).try_for_each(|(moment, (_, attempt))| model.apply(moment, &attempt.ops))?;
    Ok(model.state(u64::MAX))
}
