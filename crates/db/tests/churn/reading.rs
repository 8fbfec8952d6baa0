//! Random reads through a view: at once, or in small batches with other work between them.

use mangrove::{
    Direction, EdgeId, ElementKind, ErrorKind, ExpandCursor, ExpandRequest, Expansion, GraphView, IndexRange, Result,
    ResultStream, ScanCursor, Share, Transaction, UserId, Value, ValueRows, VertexId,
};
use mangrove_graph::IndexInfo;
use rand::Rng;
use rand::rngs::SmallRng;

use crate::book::Book;
use crate::life::labels_of;
use crate::model::{COUNT, EDGE_LABELS, KEYS, Tag, VERTEX_LABELS, value_of};
use crate::names::{Names, tag_of};
use crate::observed::{Having, Observed};

/// A read that goes on through a cursor.
pub enum Walk {
    Expand {
        tag: Tag,
        vertex: VertexId,
        direction: Direction,
        label: Option<usize>,
        cursor: ExpandCursor,
        edges: Vec<Tag>,
    },
    Vertices {
        label: Option<usize>,
        cursor: ScanCursor,
        vertices: Vec<Tag>,
    },
    Edges {
        label: Option<usize>,
        cursor: ScanCursor,
        edges: Vec<Tag>,
    },
    Having {
        label: Option<usize>,
        key: usize,
        range: IndexRange,
        cursor: ScanCursor,
        vertices: Vec<Tag>,
    },
    Stream {
        tag: Tag,
        direction: Direction,
        stream: ResultStream,
        neighbors: Vec<Tag>,
    },
}

/// Reads one transaction makes.
pub struct Reading<'a> {
    pub transaction: &'a Transaction,
    pub names: &'a Names,
    pub book: &'a Book,
}

impl Reading<'_> {
    fn view(&self) -> &dyn GraphView {
        self.transaction.view()
    }

    /// Begins a walk; `None` if no vertex can be picked.
    pub fn begin_walk(&self, random: &mut SmallRng) -> Result<Option<Walk>> {
        let direction = if random.random() { Direction::Out } else { Direction::In };
        Ok(Some(match random.random_range(0..10) {
            0 => Walk::Vertices { label: vertex_label(random), cursor: ScanCursor::default(), vertices: Vec::new() },
            1 => Walk::Edges { label: edge_label(random), cursor: ScanCursor::default(), edges: Vec::new() },
            2 => {
                let (key, range) = random_range(random);
                let label = vertex_label(random);
                Walk::Having { label, key, range, cursor: ScanCursor::default(), vertices: Vec::new() }
            }
            3 => {
                let Some((tag, vertex)) = self.visible_vertex(random)? else { return Ok(None) };
                let mut ids = Vec::new();
                self.view().vertex_user_ids(&[vertex], &mut ids)?;
                let Some(Value::I64(id)) = ids.first() else { return Ok(None) };
                let step = if direction == Direction::Out { "out" } else { "in" };
                let stream = self.transaction.query(&format!("g.V({id}L).{step}().values('tag')"))?;
                Walk::Stream { tag, direction, stream, neighbors: Vec::new() }
            }
            _ => {
                let Some((tag, vertex)) = self.visible_vertex(random)? else { return Ok(None) };
                let label = edge_label(random);
                Walk::Expand { tag, vertex, direction, label, cursor: ExpandCursor::default(), edges: Vec::new() }
            }
        }))
    }

    /// A vertex that was committed lately, hubs more often than others, if the view has it.
    pub fn visible_vertex(&self, random: &mut SmallRng) -> Result<Option<(Tag, VertexId)>> {
        let Some((tag, vertex)) = self.book.pick_vertex(random) else { return Ok(None) };
        let mut visible = vec![vertex];
        self.view().retain_vertices(&mut visible)?;
        Ok((!visible.is_empty()).then_some((tag, vertex)))
    }

    /// Reads the next batch of a walk. Returns the observation at its end, or else the walk.
    pub fn walk_on(&self, walk: Walk, limit: usize) -> Result<std::result::Result<Observed, Walk>> {
        match walk {
            Walk::Expand { tag, vertex, direction, label, mut cursor, mut edges } => {
                let labels = self.names.edge_filter(label);
                let request = ExpandRequest { direction, labels, edges: true, limit };
                let mut found = Expansion::default();
                let is_end = self.view().expand(&[vertex], &request, &mut cursor, &mut found)?;
                edges.extend(self.names.edge_tags(self.view(), &found.edge)?);
                Ok(match is_end {
                    true => Ok(Observed::Edges { tag, direction, label, edges }),
                    false => Err(Walk::Expand { tag, vertex, direction, label, cursor, edges }),
                })
            }
            Walk::Vertices { label, mut cursor, mut vertices } => {
                let mut found = Vec::new();
                let labels = self.names.vertex_filter(label);
                let is_end = self.view().scan_vertices(&labels, Share::ALL, &mut cursor, limit, &mut found)?;
                vertices.extend(self.names.vertex_tags(self.view(), &found)?);
                Ok(match is_end {
                    true => Ok(Observed::Vertices { label, vertices }),
                    false => Err(Walk::Vertices { label, cursor, vertices }),
                })
            }
            Walk::Edges { label, mut cursor, mut edges } => {
                let mut found = Vec::new();
                let labels = self.names.edge_filter(label);
                let is_end = self.view().scan_edges(&labels, Share::ALL, &mut cursor, limit, &mut found)?;
                edges.extend(self.names.edge_tags(self.view(), &found)?);
                Ok(match is_end {
                    true => Ok(Observed::AllEdges { label, edges }),
                    false => Err(Walk::Edges { label, cursor, edges }),
                })
            }
            Walk::Having { label, key, range, mut cursor, mut vertices } => {
                let mut found = Vec::new();
                let (labels, id) = (self.names.vertex_filter(label), self.names.keys[key]);
                let is_end =
                    self.view().scan_vertices_where(&labels, id, &range, Share::ALL, &mut cursor, limit, &mut found)?;
                vertices.extend(self.names.vertex_tags(self.view(), &found)?);
                Ok(match is_end {
                    true => Ok(Observed::Having(Having { label, key, range, found: vertices })),
                    false => Err(Walk::Having { label, key, range, cursor, vertices }),
                })
            }
            Walk::Stream { tag, direction, mut stream, mut neighbors } => {
                for value in stream.by_ref().take(limit) {
                    neighbors.push(tag_of(&value?));
                }
                // A stream reports its end only when more is read.
                match stream.next() {
                    Some(value) => {
                        neighbors.push(tag_of(&value?));
                        Ok(Err(Walk::Stream { tag, direction, stream, neighbors }))
                    }
                    None => Ok(Ok(Observed::Neighbors { tag, direction, neighbors })),
                }
            }
        }
    }

    /// A read in one go.
    pub fn look(&self, random: &mut SmallRng, seen: &mut Vec<Observed>) -> Result<()> {
        match random.random_range(0..8) {
            0 => seen.push(self.look_up_id(random.random_range(1..self.book.id_count()))?),
            1 => seen.extend(self.ask_index(random)?),
            2 => seen.push(self.count()?),
            3 => seen.extend(self.edge_value(random)?),
            4 => {
                let Some((tag, vertex)) = self.visible_vertex(random)? else { return Ok(()) };
                let direction = if random.random() { Direction::Out } else { Direction::In };
                let (mut degrees, labels) = (Vec::new(), self.names.edge_filter(None));
                self.view().degrees(&[vertex], direction, &labels, &mut degrees)?;
                seen.push(Observed::Degree { tag, direction, degree: degrees[0] });
            }
            _ => {
                let picked = (0..random.random_range(1..8)).filter_map(|_| self.book.pick_vertex(random));
                let picked: Vec<(Tag, VertexId)> = picked.collect();
                self.read_values(&picked, random.random_range(0..KEYS.len()), seen)?;
            }
        }
        Ok(())
    }

    fn look_up_id(&self, id: i64) -> Result<Observed> {
        let mut found = Vec::new();
        self.view().find_vertices(&[UserId::from(id)], &mut found)?;
        let vertices: Vec<VertexId> = found.into_iter().flatten().collect();
        let found = self.names.vertex_tags(self.view(), &vertices)?.first().copied();
        Ok(Observed::ById { id, found })
    }

    fn count(&self) -> Result<Observed> {
        let vertices = self.view().count_vertices(&self.names.vertex_filter(None), Share::ALL)?;
        let edges = self.view().count_edges(&self.names.edge_filter(None), Share::ALL)?;
        Ok(Observed::Counts { vertices, edges })
    }

    /// Reads as one batch whether vertices exist, and their values.
    pub fn read_values(&self, picked: &[(Tag, VertexId)], key: usize, seen: &mut Vec<Observed>) -> Result<()> {
        let mut vertices: Vec<VertexId> = picked.iter().map(|(_, vertex)| *vertex).collect();
        self.view().retain_vertices(&mut vertices)?;
        let mut rows = ValueRows::default();
        self.view().vertex_values(&vertices, self.names.keys[key], &mut rows)?;
        let mut values: Vec<Vec<Value>> = vec![Vec::new(); vertices.len()];
        rows.row.iter().zip(rows.value).for_each(|(row, value)| values[*row as usize].push(value));
        for (tag, vertex) in picked {
            let place = vertices.iter().position(|visible| visible == vertex);
            seen.push(Observed::Vertex { tag: *tag, is_there: place.is_some() });
            if let Some(place) = place {
                seen.push(Observed::Values { tag: *tag, key, values: values[place].clone() });
            }
        }
        Ok(())
    }

    fn edge_value(&self, random: &mut SmallRng) -> Result<Option<Observed>> {
        let Some((tag, edge)) = self.book.pick_edge(random) else { return Ok(None) };
        let mut visible: Vec<EdgeId> = vec![edge];
        self.view().retain_edges(&mut visible)?;
        if visible.is_empty() {
            return Ok(None);
        }
        let (key, mut rows) = (random.random_range(0..COUNT), ValueRows::default());
        self.view().edge_values(&visible, self.names.keys[key], &mut rows)?;
        Ok(Some(Observed::EdgeValue { tag, key, value: rows.value.pop() }))
    }

    /// Asks one of the indexes that the view may use.
    fn ask_index(&self, random: &mut SmallRng) -> Result<Option<Observed>> {
        let indexes = self.view().indexes();
        if indexes.is_empty() {
            return Ok(None);
        }
        let index = &indexes[random.random_range(0..indexes.len())];
        let (label, key) = self.subject(index);
        let range = match index.ordered && key < 2 && random.random() {
            true => between(key, random),
            false => IndexRange::Equal(vec![value_of(key, random.random_range(0..200))]),
        };
        match self.ask(index, label, key, range) {
            // It was dropped meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// The label, if it is restricted to one, and the key of an index.
    pub fn subject(&self, index: &IndexInfo) -> (Option<usize>, usize) {
        let key = self.names.keys.iter().position(|key| *key == index.keys[0]).expect("a key of the model");
        let label = index.label.map(|label| {
            let name = self.view().catalog().label_name(label);
            labels_of(index.element).iter().position(|known| name == *known).expect("a label of the model")
        });
        (label, key)
    }

    /// Asks an index for the elements that have a value in a range.
    pub fn ask(&self, index: &IndexInfo, label: Option<usize>, key: usize, range: IndexRange) -> Result<Observed> {
        Ok(match index.element {
            ElementKind::Vertex => {
                let mut vertices = Vec::new();
                self.view().index_vertices(index.id, &[], &range, Share::ALL, &mut vertices)?;
                let found = self.names.vertex_tags(self.view(), &vertices)?;
                Observed::Indexed(Having { label, key, range, found })
            }
            ElementKind::Edge => {
                let mut edges = Vec::new();
                self.view().index_edges(index.id, &[], &range, Share::ALL, &mut edges)?;
                let found = self.names.edge_tags(self.view(), &edges)?;
                Observed::IndexedEdges(Having { label, key, range, found })
            }
        })
    }
}

fn vertex_label(random: &mut SmallRng) -> Option<usize> {
    random.random_bool(0.5).then(|| random.random_range(0..VERTEX_LABELS.len()))
}

fn edge_label(random: &mut SmallRng) -> Option<usize> {
    random.random_bool(0.5).then(|| random.random_range(0..EDGE_LABELS.len()))
}

fn random_range(random: &mut SmallRng) -> (usize, IndexRange) {
    let key = random.random_range(0..2);
    match random.random() {
        true => (key, IndexRange::Equal(vec![value_of(key, random.random_range(0..13))])),
        false => (key, between(key, random)),
    }
}

fn between(key: usize, random: &mut SmallRng) -> IndexRange {
    let mut bound = || Some((value_of(key, random.random_range(0..13)), random.random()));
    IndexRange::Between { low: bound(), high: bound() }
}
