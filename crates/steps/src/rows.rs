//! A batch of traversers, by columns.
//!
//! The object column is there always; the others only where the plan requires them. `bulk` counts how many
//! equal traversers a row stands for; without the column, every row stands for one. `computed` hold what a
//! `by()` took of each row; they live from the operator that works them out to the next one, and no
//! operator passes them on.

use std::sync::Arc;

use mangrove_flow::{BATCH_ROWS, Batch, NodeId, QueryContext, TagSet};
use mangrove_graph::{EdgeId, Result, Value, VertexId};
use mangrove_plan::logical::Name;
use smallvec::SmallVec;

use crate::environment::Environment;
use crate::path::{Path, PathNode, charge_newest, relabel};
use crate::size::Sizes;

/// The instance each row belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    /// All rows belong to instance 0.
    One,
    /// An instance a row.
    Many(Vec<u32>),
}

/// Current objects.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Vertices only.
    Vertices(Vec<VertexId>),
    /// Edges only.
    Edges(Vec<EdgeId>),
    /// Anything.
    Values(Vec<Value>),
}

/// Loop counters, the innermost last.
pub type Loops = SmallVec<[u32; 2]>;

/// A value for each row, worked out for a `by()`; `None` where the `by()` was unproductive. It lives until the next operator.
pub type ComputedColumn = Vec<Option<Value>>;

/// A batch of traversers.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Scope instances.
    pub tags: Tags,
    /// Current objects.
    pub objects: Column,
    /// How many traversers each row stands for.
    pub bulk: Option<Vec<u64>>,
    /// Ways.
    pub path: Option<Vec<Path>>,
    /// Loop counters.
    pub loops: Option<Vec<Loops>>,
    /// Sacks.
    pub sacks: Option<Vec<Value>>,
    /// What `by()`s took.
    pub computed: Vec<ComputedColumn>,
}

impl Column {
    /// How many objects.
    pub fn len(&self) -> usize {
        match self {
            Column::Vertices(v) => v.len(),
            Column::Edges(v) => v.len(),
            Column::Values(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One object.
    pub fn get(&self, row: usize) -> Value {
        match self {
            Column::Vertices(v) => Value::Vertex(v[row]),
            Column::Edges(v) => Value::Edge(v[row]),
            Column::Values(v) => v[row].clone(),
        }
    }

    /// The objects that are no vertices or edges of a column of their own.
    pub fn values(&self) -> &[Value] {
        match self {
            Column::Vertices(_) | Column::Edges(_) => &[],
            Column::Values(values) => values,
        }
    }

    /// The objects of these rows.
    pub fn gather(&self, rows: &[u32]) -> Column {
        match self {
            Column::Vertices(v) => Column::Vertices(rows.iter().map(|&r| v[r as usize]).collect()),
            Column::Edges(v) => Column::Edges(rows.iter().map(|&r| v[r as usize]).collect()),
            Column::Values(v) => Column::Values(rows.iter().map(|&r| v[r as usize].clone()).collect()),
        }
    }

    /// All objects as values.
    pub fn into_values(self) -> Vec<Value> {
        match self {
            Column::Vertices(v) => v.into_iter().map(Value::Vertex).collect(),
            Column::Edges(v) => v.into_iter().map(Value::Edge).collect(),
            Column::Values(v) => v,
        }
    }

    /// The tightest column for these values.
    pub fn from_values(values: Vec<Value>) -> Column {
        let vertices = |v: &Value| match v {
            Value::Vertex(id) => Some(*id),
            _ => None,
        };
        let edges = |v: &Value| match v {
            Value::Edge(id) => Some(*id),
            _ => None,
        };
        match values.first() {
            Some(Value::Vertex(_)) => match values.iter().map(vertices).collect() {
                Some(ids) => Column::Vertices(ids),
                None => Column::Values(values),
            },
            Some(Value::Edge(_)) => match values.iter().map(edges).collect() {
                Some(ids) => Column::Edges(ids),
                None => Column::Values(values),
            },
            _ => Column::Values(values),
        }
    }

    /// Appends another column.
    pub fn append(&mut self, other: Column) {
        if self.is_empty() {
            *self = other;
            return;
        }
        match (&mut *self, other) {
            (Column::Vertices(a), Column::Vertices(b)) => a.extend(b),
            (Column::Edges(a), Column::Edges(b)) => a.extend(b),
            (Column::Values(a), b) => a.extend(b.into_values()),
            (_, b) => {
                let mut values = std::mem::replace(self, Column::Values(Vec::new())).into_values();
                values.extend(b.into_values());
                *self = Column::Values(values);
            }
        }
    }
}

fn gather<T: Clone>(column: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|&r| column[r as usize].clone()).collect()
}

impl Rows {
    /// Rows of instance 0 with nothing but objects.
    pub fn of(objects: Column) -> Self {
        Rows { tags: Tags::One, objects, bulk: None, path: None, loops: None, sacks: None, computed: Vec::new() }
    }

    /// The single row a query starts with. It has the columns the plan requires.
    pub fn unit(path: bool, loops: bool) -> Self {
        let mut rows = Rows::of(Column::Values(vec![Value::Null]));
        rows.path = path.then(|| vec![None]);
        rows.loops = loops.then(|| vec![Loops::new()]);
        rows
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The instance of a row.
    pub fn tag(&self, row: usize) -> u32 {
        match &self.tags {
            Tags::One => 0,
            Tags::Many(tags) => tags[row],
        }
    }

    /// How many traversers a row stands for.
    pub fn bulk(&self, row: usize) -> u64 {
        self.bulk.as_ref().map_or(1, |b| b[row])
    }

    /// The object of a row.
    pub fn object(&self, row: usize) -> Value {
        self.objects.get(row)
    }

    /// The value of computed column `column` at a row; `None` if the `by()` was unproductive there.
    pub fn computed_value(&self, column: usize, row: usize) -> Option<&Value> {
        debug_assert!(column < self.computed.len(), "the plan put no computed column {column} here");
        self.computed.get(column)?.get(row)?.as_ref()
    }

    /// The path of a row; empty where paths are not kept.
    pub fn path(&self, row: usize) -> Path {
        self.path.as_ref().and_then(|p| p[row].clone())
    }

    /// These rows with all their columns, computed ones too.
    pub fn take(&self, rows: &[u32]) -> Rows {
        Rows {
            computed: self.computed.iter().map(|s| gather(s, rows)).collect(),
            ..self.derive(rows, self.objects.gather(rows))
        }
    }

    /// The rows for which `keep` holds, without computed columns. All rows are handed back as they are if all are kept.
    pub fn filter(mut self, mut keep: impl FnMut(&Rows, usize) -> bool) -> Rows {
        let kept: Vec<u32> = (0..self.len()).filter(|&r| keep(&self, r)).map(|r| r as u32).collect();
        self.computed.clear();
        if kept.len() == self.len() { self } else { self.take(&kept) }
    }

    /// New objects, each made from a row (`rows` names it): the row's other columns without computed ones, its path
    /// as it is.
    pub fn derive(&self, rows: &[u32], objects: Column) -> Rows {
        debug_assert_eq!(rows.len(), objects.len());
        Rows {
            tags: match &self.tags {
                Tags::One => Tags::One,
                Tags::Many(tags) => Tags::Many(gather(tags, rows)),
            },
            bulk: self.bulk.as_ref().map(|b| gather(b, rows)),
            path: self.path.as_ref().map(|p| gather(p, rows)),
            loops: self.loops.as_ref().map(|l| gather(l, rows)),
            sacks: self.sacks.as_ref().map(|s| gather(s, rows)),
            objects,
            computed: Vec::new(),
        }
    }

    /// As [`Rows::derive`], with all objects made from one row.
    pub fn derive_from_one(&self, row: u32, objects: Column) -> Rows {
        let (row, count) = (row as usize, objects.len());
        Rows {
            tags: match &self.tags {
                Tags::One => Tags::One,
                Tags::Many(tags) => Tags::Many(vec![tags[row]; count]),
            },
            bulk: self.bulk.as_ref().map(|b| vec![b[row]; count]),
            path: self.path.as_ref().map(|p| vec![p[row].clone(); count]),
            loops: self.loops.as_ref().map(|l| vec![l[row].clone(); count]),
            sacks: self.sacks.as_ref().map(|s| vec![s[row].clone(); count]),
            objects,
            computed: Vec::new(),
        }
    }

    /// The same rows with other objects, without computed columns; paths as they are.
    pub fn with_objects(mut self, objects: Column) -> Rows {
        debug_assert_eq!(self.len(), objects.len());
        self.objects = objects;
        self.computed.clear();
        self
    }

    /// Remembers the current objects as the next of their paths.
    pub fn remember(&mut self, remember: &Remember) {
        let (Some(paths), true) = (&mut self.path, remember.objects) else { return };
        for (row, path) in paths.iter_mut().enumerate() {
            *path = PathNode::extend(path.take(), self.objects.get(row), &remember.labels);
        }
    }

    /// Gives the last object of each path these labels too; where only labeled objects are remembered, the
    /// current object is remembered under them.
    pub fn label(&mut self, labels: &[Name], whole_paths: bool) {
        let Some(paths) = &mut self.path else { return };
        for (row, path) in paths.iter_mut().enumerate() {
            *path = match path {
                Some(_) if whole_paths => relabel(path, labels),
                _ => PathNode::extend(path.take(), self.objects.get(row), labels),
            };
        }
    }

    /// Cuts into batches that a message may hold.
    pub fn chunks(self) -> impl Iterator<Item = Rows> {
        let count = self.len();
        let whole = count <= BATCH_ROWS;
        let mut rest = Some(self);
        let mut at = 0;
        std::iter::from_fn(move || {
            if whole {
                return rest.take().filter(|r| !r.is_empty());
            }
            if at >= count {
                return None;
            }
            let rows: Vec<u32> = (at..(at + BATCH_ROWS).min(count)).map(|r| r as u32).collect();
            at += rows.len();
            rest.as_ref().map(|r| r.take(&rows))
        })
    }

    /// Appends rows with the same columns.
    pub fn append(&mut self, other: Rows) {
        if self.is_empty() {
            *self = other;
            return;
        }
        let (here, there) = (self.len(), other.len());
        match (&mut self.tags, other.tags) {
            (Tags::One, Tags::One) => {}
            (Tags::Many(a), Tags::Many(b)) => a.extend(b),
            (Tags::Many(a), Tags::One) => a.extend(std::iter::repeat_n(0, there)),
            (Tags::One, Tags::Many(b)) => {
                self.tags = Tags::Many(std::iter::repeat_n(0, here).chain(b).collect());
            }
        }
        match (&mut self.bulk, other.bulk) {
            (None, None) => {}
            (Some(a), Some(b)) => a.extend(b),
            (Some(a), None) => a.extend(std::iter::repeat_n(1, there)),
            (None, Some(b)) => self.bulk = Some(std::iter::repeat_n(1, here).chain(b).collect()),
        }
        if let (Some(a), Some(b)) = (&mut self.path, other.path) {
            a.extend(b);
        }
        if let (Some(a), Some(b)) = (&mut self.loops, other.loops) {
            a.extend(b);
        }
        if let (Some(a), Some(b)) = (&mut self.sacks, other.sacks) {
            a.extend(b);
        }
        debug_assert_eq!(self.computed.len(), other.computed.len());
        for (a, b) in self.computed.iter_mut().zip(other.computed) {
            a.extend(b);
        }
        self.objects.append(other.objects);
    }
}

/// What an operator remembers of the objects it makes.
#[derive(Clone, Debug, Default)]
pub struct Remember {
    /// Whether they are remembered at all.
    pub objects: bool,
    /// Under which labels.
    pub labels: Vec<Name>,
}

impl Batch for Rows {
    type Surroundings = Environment;

    fn rows(&self) -> usize {
        self.len()
    }

    fn bytes(&self) -> usize {
        let mut sizes = Sizes::default();
        let objects = match &self.objects {
            Column::Vertices(_) | Column::Edges(_) => self.len() * size_of::<VertexId>(),
            Column::Values(values) => sizes.all(values),
        };
        let computed: usize = self.computed.iter().flatten().flatten().map(|value| sizes.behind(value)).sum();
        let path = if self.path.is_some() { size_of::<Path>() } else { 0 };
        let tags = if matches!(self.tags, Tags::Many(_)) { 4 } else { 0 };
        let bulk = if self.bulk.is_some() { 8 } else { 0 };
        let loops = if self.loops.is_some() { size_of::<Loops>() } else { 0 };
        let sacks = self.sacks.as_ref().map_or(0, |sacks| sizes.all(sacks));
        let row = path + tags + bulk + loops + self.computed.len() * size_of::<Option<Value>>();
        self.len() * row + objects + computed + sacks
    }

    fn charge_shared(&self, context: &Arc<QueryContext>) -> Result<()> {
        self.path.as_ref().map_or(Ok(()), |paths| charge_newest(paths, context))
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }

    fn partition(self, nodes: u16) -> Vec<(NodeId, Self)> {
        let mut shares: Vec<Vec<u32>> = vec![Vec::new(); usize::from(nodes)];
        for row in 0..self.len() {
            let tablet = match &self.objects {
                Column::Vertices(v) => Some(v[row].tablet()),
                Column::Edges(v) => Some(v[row].tablet()),
                Column::Values(v) => owner(&v[row]),
            };
            shares[tablet.map_or(0, |t| usize::from(t.0 % nodes))].push(row as u32);
        }
        let of = |(node, rows): (usize, Vec<u32>)| (!rows.is_empty()).then(|| (node as NodeId, self.take(&rows)));
        shares.into_iter().enumerate().filter_map(of).collect()
    }

    fn discard(&mut self, tags: &TagSet) {
        let kept: Vec<u32> = (0..self.len() as u32).filter(|&r| !tags.contains(self.tag(r as usize))).collect();
        if kept.len() < self.len() {
            *self = self.take(&kept);
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        crate::codec::encode_rows(self, out);
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        crate::codec::decode_rows(bytes)
    }
}

/// The tablet of the element that a value is (or whose property it is); values of no element stay where
/// they are sent: at node 0.
fn owner(value: &Value) -> Option<mangrove_graph::TabletId> {
    match value {
        Value::Vertex(v) => Some(v.tablet()),
        Value::Edge(e) => Some(e.tablet()),
        Value::VertexProperty(p) => Some(p.vertex.tablet()),
        Value::Property(p) => match p.owner {
            mangrove_graph::PropertyOwner::Edge(e) => Some(e.tablet()),
            mangrove_graph::PropertyOwner::VertexProperty(v, ..) => Some(v.tablet()),
        },
        _ => None,
    }
}
