//! The model: what the graph is after each commit, as maps of whole elements.
//!
//! Every vertex and every edge has a *tag*, a number that is never given twice; the graph keeps it as a property. A
//! transaction is a list of [`Op`]s, each of which names elements by their tags, so that applying the transactions in
//! the order of their commit timestamps gives the graph at each timestamp.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use mangrove::{Direction, Value};

/// The name of an element, unlike its ids never given twice.
pub type Tag = u64;

/// The property that holds the tag.
pub const TAG: &str = "tag";
/// Property keys that transactions write.
pub const KEYS: [&str; 4] = ["number", "text", "any", "count"];
/// The key whose single value counts a writer's commits.
pub const COUNT: usize = 3;
/// Labels of vertices. The last two are those of hubs and of the vertices that count commits.
pub const VERTEX_LABELS: [&str; 4] = ["person", "thing", "hub", "writer"];
pub const HUB: usize = 2;
pub const WRITER: usize = 3;
/// Labels of edges.
pub const EDGE_LABELS: [&str; 2] = ["knows", "likes"];

/// The change of one element by a transaction.
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    AddVertex {
        tag: Tag,
        label: usize,
        id: i64,
    },
    AddEdge {
        tag: Tag,
        label: usize,
        from: Tag,
        to: Tag,
    },
    DeleteVertex {
        tag: Tag,
    },
    DeleteEdge {
        tag: Tag,
    },
    /// One value replaces all values.
    SetVertex {
        tag: Tag,
        key: usize,
        value: u64,
    },
    /// The value is added after the existing ones.
    AddToList {
        tag: Tag,
        key: usize,
        value: u64,
    },
    /// The value is added unless it exists.
    AddToSet {
        tag: Tag,
        key: usize,
        value: u64,
    },
    RemoveVertexProperty {
        tag: Tag,
        key: usize,
    },
    SetEdge {
        tag: Tag,
        key: usize,
        value: u64,
    },
    RemoveEdgeProperty {
        tag: Tag,
        key: usize,
    },
}

impl Op {
    /// The elements that it names.
    pub fn tags(&self) -> Vec<Tag> {
        match self {
            Op::AddEdge { tag, from, to, .. } => vec![*tag, *from, *to],
            Op::AddVertex { tag, .. }
            | Op::DeleteVertex { tag }
            | Op::DeleteEdge { tag }
            | Op::SetVertex { tag, .. }
            | Op::AddToList { tag, .. }
            | Op::AddToSet { tag, .. }
            | Op::RemoveVertexProperty { tag, .. }
            | Op::SetEdge { tag, .. }
            | Op::RemoveEdgeProperty { tag, .. } => vec![*tag],
        }
    }
}

/// The net changes of a transaction: without the edges that it adds and ends itself. Another transaction may delete a
/// vertex of such an edge, because the edge never exists outside.
pub fn net(ops: Vec<Op>) -> Vec<Op> {
    let (mut added, mut gone) = (Vec::new(), BTreeSet::new());
    for op in &ops {
        match op {
            Op::AddEdge { tag, from, to, .. } => added.push((*tag, *from, *to)),
            Op::DeleteEdge { tag } | Op::DeleteVertex { tag } => {
                let ended = added.iter().filter(|(edge, from, to)| [edge, from, to].contains(&tag));
                gone.extend(ended.map(|(edge, _, _)| *edge));
            }
            _ => {}
        }
    }
    ops.into_iter().filter(|op| !gone.contains(&op.tags()[0])).collect()
}

/// A value of the key's types, by number: few values of the first keys, so that many elements share one, and a type in
/// turn of the third.
pub fn value_of(key: usize, n: u64) -> Value {
    match key {
        0 => Value::I64((n % 13) as i64),
        1 => Value::string(format!("text {}", n % 7)),
        COUNT => Value::I64(n as i64),
        _ => match n % 7 {
            0 => Value::I32(n as i32),
            1 => Value::string(format!("a string of its own length: {}", "long ".repeat(n as usize % 300))),
            2 => Value::Bool(n.is_multiple_of(2)),
            3 => Value::F64(n as f64 / 4.0),
            4 => Value::I64(-(n as i64)),
            5 => Value::List(Arc::new(vec![Value::I64(n as i64), Value::string("in a list")])),
            _ => Value::Bytes(n.to_le_bytes().into()),
        },
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Vertex {
    pub label: usize,
    pub id: i64,
    pub properties: BTreeMap<usize, Vec<Value>>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Edge {
    pub label: usize,
    pub from: Tag,
    pub to: Tag,
    pub properties: BTreeMap<usize, Value>,
}

/// The elements at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct State {
    pub vertices: BTreeMap<Tag, Vertex>,
    pub edges: BTreeMap<Tag, Edge>,
}

impl State {
    /// The differences of another state from this one: at most a few lines.
    pub fn difference(&self, found: &State) -> Option<String> {
        let mut text = String::new();
        differ("vertex", &self.vertices, &found.vertices, &mut text);
        differ("edge", &self.edges, &found.edges, &mut text);
        (!text.is_empty()).then(|| text.lines().take(12).collect::<Vec<_>>().join("\n"))
    }
}

fn differ<T: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: &BTreeMap<Tag, T>,
    found: &BTreeMap<Tag, T>,
    text: &mut String,
) {
    for (tag, element) in expected {
        if found.get(tag) != Some(element) {
            let _ = writeln!(text, "{what} {tag:x}: expected {element:?}, found {:?}", found.get(tag));
        }
    }
    for (tag, element) in found.iter().filter(|(tag, _)| !expected.contains_key(tag)) {
        let _ = writeln!(text, "{what} {tag:x}: expected none, found {element:?}");
    }
}

/// The versions of an element, each with the timestamp that it begins at; `None` is the element's end.
type History<T> = Vec<(u64, Option<T>)>;

fn at<T>(history: &History<T>, ts: u64) -> Option<&T> {
    history.iter().rev().find(|(begin, _)| *begin <= ts)?.1.as_ref()
}

/// The graph at every commit timestamp since the model was begun.
#[derive(Clone, Default)]
pub struct Model {
    vertices: BTreeMap<Tag, History<Vertex>>,
    edges: BTreeMap<Tag, History<Edge>>,
    /// By vertex, the edges that ever began or ended there.
    outgoing: BTreeMap<Tag, Vec<Tag>>,
    incoming: BTreeMap<Tag, Vec<Tag>>,
    /// The latest commit that was applied.
    pub last_ts: u64,
}

impl Model {
    /// The model of a graph that has this state from a timestamp on.
    pub fn of(state: State, ts: u64) -> Self {
        let mut model = Model { last_ts: ts, ..Model::default() };
        model.vertices = state.vertices.into_iter().map(|(tag, vertex)| (tag, vec![(ts, Some(vertex))])).collect();
        for (tag, edge) in state.edges {
            model.connect(tag, &edge);
            model.edges.insert(tag, vec![(ts, Some(edge))]);
        }
        model
    }

    fn connect(&mut self, tag: Tag, edge: &Edge) {
        self.outgoing.entry(edge.from).or_default().push(tag);
        self.incoming.entry(edge.to).or_default().push(tag);
    }

    pub fn vertex(&self, tag: Tag, ts: u64) -> Option<&Vertex> {
        at(self.vertices.get(&tag)?, ts)
    }

    pub fn edge(&self, tag: Tag, ts: u64) -> Option<&Edge> {
        at(self.edges.get(&tag)?, ts)
    }

    pub fn vertices(&self, ts: u64) -> impl Iterator<Item = (Tag, &Vertex)> {
        self.vertices.iter().filter_map(move |(tag, history)| Some((*tag, at(history, ts)?)))
    }

    pub fn edges(&self, ts: u64) -> impl Iterator<Item = (Tag, &Edge)> {
        self.edges.iter().filter_map(move |(tag, history)| Some((*tag, at(history, ts)?)))
    }

    /// The edges of a vertex in one direction.
    pub fn edges_of(&self, tag: Tag, direction: Direction, ts: u64) -> Vec<(Tag, &Edge)> {
        let lists = if direction == Direction::Out { &self.outgoing } else { &self.incoming };
        lists.get(&tag).into_iter().flatten().filter_map(|edge| Some((*edge, self.edge(*edge, ts)?))).collect()
    }

    pub fn state(&self, ts: u64) -> State {
        State {
            vertices: self.vertices(ts).map(|(tag, vertex)| (tag, vertex.clone())).collect(),
            edges: self.edges(ts).map(|(tag, edge)| (tag, edge.clone())).collect(),
        }
    }

    /// Applies a transaction after all earlier ones. Fails if it does not fit the state.
    pub fn apply(&mut self, ts: u64, ops: &[Op]) -> Result<(), String> {
        self.last_ts = ts;
        for op in ops {
            if self.apply_op(ts, op).is_none() {
                let what: Vec<String> = op.tags().iter().map(|tag| self.story(*tag)).collect();
                return Err(format!("{op:x?} at {ts} does not fit: {}", what.join(", ")));
            }
        }
        Ok(())
    }

    /// The begins and ends of an element, for messages.
    fn story(&self, tag: Tag) -> String {
        fn versions<T>(history: &History<T>) -> Vec<(u64, bool)> {
            history.iter().map(|(ts, element)| (*ts, element.is_some())).collect()
        }
        let (vertex, edge) = (self.vertices.get(&tag).map(versions), self.edges.get(&tag).map(versions));
        format!("{tag:x} is there or not from {:?} on", vertex.or(edge).unwrap_or_default())
    }

    fn apply_op(&mut self, ts: u64, op: &Op) -> Option<()> {
        match *op {
            Op::AddVertex { tag, label, id } => {
                let vertex = Vertex { label, id, properties: BTreeMap::new() };
                self.vertices.insert(tag, vec![(ts, Some(vertex))]);
            }
            Op::AddEdge { tag, label, from, to } => {
                self.vertex(from, ts).and(self.vertex(to, ts))?;
                let edge = Edge { label, from, to, properties: BTreeMap::new() };
                self.connect(tag, &edge);
                self.edges.insert(tag, vec![(ts, Some(edge))]);
            }
            Op::DeleteVertex { tag } => {
                self.vertex(tag, ts)?;
                for direction in [Direction::Out, Direction::In] {
                    let edges: Vec<Tag> = self.edges_of(tag, direction, ts).into_iter().map(|(edge, _)| edge).collect();
                    edges.into_iter().for_each(|edge| self.edges.get_mut(&edge).unwrap().push((ts, None)));
                }
                self.vertices.get_mut(&tag)?.push((ts, None));
            }
            Op::DeleteEdge { tag } => {
                self.edge(tag, ts)?;
                self.edges.get_mut(&tag)?.push((ts, None));
            }
            Op::SetVertex { tag, key, value } => {
                self.change_vertex(tag, ts)?.insert(key, vec![value_of(key, value)]);
            }
            Op::AddToList { tag, key, value } => {
                self.change_vertex(tag, ts)?.entry(key).or_default().push(value_of(key, value));
            }
            Op::AddToSet { tag, key, value } => {
                let values = self.change_vertex(tag, ts)?.entry(key).or_default();
                if !values.contains(&value_of(key, value)) {
                    values.push(value_of(key, value));
                }
            }
            Op::RemoveVertexProperty { tag, key } => {
                self.change_vertex(tag, ts)?.remove(&key);
            }
            Op::SetEdge { tag, key, value } => {
                self.change_edge(tag, ts)?.insert(key, value_of(key, value));
            }
            Op::RemoveEdgeProperty { tag, key } => {
                self.change_edge(tag, ts)?.remove(&key);
            }
        }
        Some(())
    }

    /// The properties of a vertex in a version that begins at the timestamp.
    fn change_vertex(&mut self, tag: Tag, ts: u64) -> Option<&mut BTreeMap<usize, Vec<Value>>> {
        let mut vertex = self.vertex(tag, ts)?.clone();
        let history = self.vertices.get_mut(&tag)?;
        if history.last()?.0 == ts {
            vertex = history.pop()?.1?;
        }
        history.push((ts, Some(vertex)));
        history.last_mut()?.1.as_mut().map(|vertex| &mut vertex.properties)
    }

    fn change_edge(&mut self, tag: Tag, ts: u64) -> Option<&mut BTreeMap<usize, Value>> {
        let mut edge = self.edge(tag, ts)?.clone();
        let history = self.edges.get_mut(&tag)?;
        if history.last()?.0 == ts {
            edge = history.pop()?.1?;
        }
        history.push((ts, Some(edge)));
        history.last_mut()?.1.as_mut().map(|edge| &mut edge.properties)
    }
}
