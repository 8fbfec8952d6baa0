//! The vertices and edges of a moment by their types, in memory.
//!
//! Each vertex type has a numbering of its pages, and each edge type has, by page of targets, the rows of incoming edges. Rows name
//! positions of sources, so they stay as they are when vertices are added elsewhere. The graph of the next epoch is
//! *refreshed* from the last one: it reads the pages that have changed, and shares all others.
//!
//! Memory: 4 bytes an edge, 4 a place of a target in each edge type, 8 an edge more for each of weights, times and ids, and 5
//! bytes a vertex. It is drawn from the budget of the team.

use std::sync::Arc;

use mangrove_graph::{Direction, Draw, EdgeId, Error, GraphView, Numbers, Purpose, Result, VertexId, VertexPage};

use super::in_page::{EdgeKeys, InPage, first_missing};
use super::numbers::DenseNumbers;
use super::rows::{InRow, InRows};
use super::typed_options::{TypedGraphOptions, check_label, filter_of, key_of};
use crate::choice::ProjectionOptions;
use crate::numbering::{Numbering, SLOTS};
use crate::page_rows::PageReader;
use crate::projection::Refreshed;
use crate::team::Team;

/// Vertices whose times are read in one part.
const TIMES_TOGETHER: usize = 1 << 14;

/// The vertices and edges of a moment, by their types.
#[derive(Clone, Debug)]
pub struct TypedGraph {
    options: Arc<TypedGraphOptions>,
    vertices: Vec<VerticesOfType>,
    edges: Vec<EdgesOfType>,
    /// What the view showed, if it showed the commits up to one and nothing else.
    commit: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct VerticesOfType {
    numbering: Numbering,
    numbers: Arc<DenseNumbers>,
    /// By position.
    times: Option<Arc<[i64]>>,
    draw: Option<Arc<Draw>>,
}

#[derive(Clone, Debug, Default)]
struct EdgesOfType {
    /// By ordinal of the page of the targets.
    pages: Vec<InPage>,
    draws: Vec<Option<Arc<Draw>>>,
    /// By ordinal, the number of the first edge; at the end, the number of edges.
    first_edges: Vec<u64>,
}

/// The pages of a vertex type, and those that must be read.
struct PagesOfType {
    all: Vec<VertexPage>,
    changed: Vec<VertexPage>,
}

impl TypedGraph {
    /// Reads the graph that a view shows.
    ///
    /// # Errors
    ///
    /// If types contradict one another or name labels and keys that do not exist, if a weight or a time is missing or is no number that
    /// fits, if the view fails, if the query of the team has ended, or if the budget of the team has no room.
    pub fn of(view: &dyn GraphView, options: &TypedGraphOptions, team: &Team) -> Result<Self> {
        options.check()?;
        options.vertex_types.iter().try_for_each(|of| check_label(view, of.label.as_ref(), "vertex"))?;
        options.edge_types.iter().try_for_each(|of| check_label(view, of.label.as_ref(), "edge"))?;
        let empty = TypedGraph {
            vertices: vec![VerticesOfType::default(); options.vertex_types.len()],
            edges: vec![EdgesOfType::default(); options.edge_types.len()],
            options: Arc::new(options.clone()),
            commit: None,
        };
        empty.refreshed(view, team).map(|(read, _)| read)
    }

    /// The graph of the same types that another view of the same graph shows. Reads the pages that have changed in between. Edge types
    /// with weights or times are read again as a whole if any edge has changed; times of vertices always.
    ///
    /// # Errors
    ///
    /// As those of [`TypedGraph::of`].
    pub fn refreshed(&self, view: &dyn GraphView, team: &Team) -> Result<(Self, Refreshed)> {
        let shown = view.shown_commit();
        let since = self.commit.zip(shown).map(|(one, other)| one.min(other));
        let mut next = TypedGraph { commit: shown, ..self.clone() };
        let mut refreshed = Refreshed::default();
        let mut pages_of_types = Vec::with_capacity(next.vertices.len());
        for (at, of) in self.options.vertex_types.iter().enumerate() {
            let mut all = Vec::new();
            view.vertex_pages(&filter_of(view, of.label.as_ref()), &mut all)?;
            let is_kept = |page: &VertexPage| {
                let is_old = page.changed.zip(since).is_some_and(|(changed, since)| changed <= since);
                is_old && self.vertices[at].numbering.ordinal(page.first).is_some()
            };
            let changed: Vec<VertexPage> = all.iter().filter(|page| !is_kept(page)).copied().collect();
            refreshed.read += changed.len();
            refreshed.kept += all.len() - changed.len();
            next.read_vertices(at, view, &changed, team)?;
            pages_of_types.push(PagesOfType { all, changed });
        }
        let has_same_edges = view.edges_changed().zip(since).is_some_and(|(changed, since)| changed <= since);
        for (at, of) in self.options.edge_types.iter().enumerate() {
            let pages = &pages_of_types[of.target];
            let has_properties = of.weight.is_some() || of.time.is_some();
            let read = if has_properties && !has_same_edges { &pages.all } else { &pages.changed };
            next.read_edges(at, view, read, team)?;
        }
        Ok((next, refreshed))
    }

    fn read_vertices(&mut self, at: usize, view: &dyn GraphView, pages: &[VertexPage], team: &Team) -> Result<()> {
        let of = &self.options.vertex_types[at];
        let vertices = &mut self.vertices[at];
        if !pages.is_empty() || vertices.draw.is_none() {
            let mut numbering = Numbering::of_pages(Some(&vertices.numbering), pages)?;
            let options =
                ProjectionOptions { vertices: filter_of(view, of.label.as_ref()), ..ProjectionOptions::default() };
            let reader = PageReader::new(view, &options, &numbering);
            team.begin_parts("vertices of a typed graph", "pages");
            let read = team.map_parts(pages.len(), |part| reader.read(&pages[part], &[]))?;
            for (page, read) in pages.iter().zip(read) {
                let ordinal = numbering.ordinal(page.first).expect("the page has an ordinal");
                numbering.set_page(ordinal, read?.vertices);
            }
            let bytes = numbering.bytes() + DenseNumbers::bytes_of(&numbering);
            let times = if of.time.is_some() { u64::from(numbering.positions()) * 8 } else { 0 };
            vertices.draw = Some(Arc::new(team.budget().draw(Purpose::Projections, bytes + times)?));
            vertices.numbers = Arc::new(DenseNumbers::of(&numbering));
            vertices.numbering = numbering;
        }
        if let Some(key) = key_of(view, of.time.as_ref())? {
            self.vertices[at].times = Some(self.read_times(at, view, key, team)?);
        }
        Ok(())
    }

    /// By position, the times of the vertices of a type.
    fn read_times(
        &self,
        at: usize,
        view: &dyn GraphView,
        key: mangrove_graph::KeyId,
        team: &Team,
    ) -> Result<Arc<[i64]>> {
        let count = self.vertex_count(at);
        let read = team.map_parts(count.div_ceil(TIMES_TOGETHER), |part| -> Result<_> {
            let numbers: Vec<i64> =
                (part * TIMES_TOGETHER..count.min((part + 1) * TIMES_TOGETHER)).map(|number| number as i64).collect();
            let vertices = self.vertices(at, &numbers)?;
            let mut found = Numbers::default();
            let name = || view.key_name(key);
            if !view.vertex_numbers(&vertices, key, &mut found)? || !found.floats.is_empty() {
                return Err(Error::invalid(format!(
                    "the times of the vertices, their property '{}', are not all integers of one type",
                    name()
                )));
            }
            if let Some(row) = first_missing(&found.row, vertices.len()) {
                let id = super::features::named_vertex(view, vertices[row]);
                return Err(Error::invalid(format!(
                    "vertex {id} does not have exactly one time under '{}': give each vertex of a type with times one",
                    name()
                )));
            }
            Ok(found.integers)
        })?;
        let of = &self.vertices[at];
        let mut times = vec![i64::MAX; of.numbering.positions() as usize];
        let mut number = 0;
        for part in read {
            for time in part? {
                times[of.numbers.position(number, "")? as usize] = time;
                number += 1;
            }
        }
        Ok(times.into())
    }

    fn read_edges(&mut self, at: usize, view: &dyn GraphView, pages: &[VertexPage], team: &Team) -> Result<()> {
        let of = &self.options.edge_types[at];
        let keys = EdgeKeys {
            weight: key_of(view, of.weight.as_ref())?,
            time: key_of(view, of.time.as_ref())?,
            names_edges: of.names_edges,
        };
        let options = ProjectionOptions {
            vertices: filter_of(view, self.options.vertex_types[of.target].label.as_ref()),
            edges: filter_of(view, of.label.as_ref()),
            names_edges: keys.names_edges || keys.weight.is_some() || keys.time.is_some(),
            ..ProjectionOptions::default()
        };
        let directions: &[Direction] = match of.direction {
            Direction::Out => &[Direction::In],
            Direction::In => &[Direction::Out],
            Direction::Both => &[Direction::Both],
        };
        // The rows of the targets' pages name positions of sources.
        let reader = PageReader::new(view, &options, &self.vertices[of.source].numbering);
        let budget = team.budget();
        team.begin_parts("edges of a typed graph", "pages");
        let read = team.map_parts(pages.len(), |part| -> Result<_> {
            let rows = reader.read(&pages[part], directions)?.rows.pop().unwrap_or_default();
            let page = InPage::of(view, rows, keys)?;
            let draw = budget.draw(Purpose::Projections, page.bytes())?;
            Ok((page, Arc::new(draw)))
        })?;
        let targets = &self.vertices[of.target].numbering;
        let count = targets.positions() as usize / SLOTS;
        let edges = &mut self.edges[at];
        edges.pages.resize_with(count, InPage::default);
        edges.draws.resize_with(count, || None);
        for (page, read) in pages.iter().zip(read) {
            let (read, draw) = read?;
            let ordinal = targets.ordinal(page.first).expect("the page has an ordinal");
            edges.pages[ordinal] = read;
            edges.draws[ordinal] = Some(draw);
        }
        let mut first = 0;
        edges.first_edges.clear();
        edges.first_edges.push(0);
        edges.first_edges.extend(edges.pages.iter().map(|page| {
            first += page.edge_count() as u64;
            first
        }));
        Ok(())
    }

    /// The types.
    pub fn options(&self) -> &TypedGraphOptions {
        &self.options
    }

    /// The timestamp of the last commit that the graph shows, if it shows the commits up to one and nothing else.
    pub fn commit(&self) -> Option<u64> {
        self.commit
    }

    fn vertices_of(&self, vertex_type: usize) -> Result<&VerticesOfType> {
        self.vertices.get(vertex_type).ok_or_else(|| {
            Error::invalid(format!("there is no vertex type {vertex_type}: the graph has {}", self.vertices.len()))
        })
    }

    fn edges_of(&self, edge_type: usize) -> Result<&EdgesOfType> {
        self.edges.get(edge_type).ok_or_else(|| {
            Error::invalid(format!("there is no edge type {edge_type}: the graph has {}", self.edges.len()))
        })
    }

    /// The number of vertices of a type: their numbers are below it. Panics if there is no such type.
    pub fn vertex_count(&self, vertex_type: usize) -> usize {
        self.vertices[vertex_type].numbers.len()
    }

    /// The number of edges of a type: their numbers are below it. They are in the order of their targets. Panics if
    /// there is no such type.
    pub fn edge_count(&self, edge_type: usize) -> u64 {
        self.edges[edge_type].first_edges.last().copied().unwrap_or(0)
    }

    /// The vertices of a type that have these numbers.
    ///
    /// # Errors
    ///
    /// If a number is too great.
    pub fn vertices(&self, vertex_type: usize, numbers: &[i64]) -> Result<Vec<VertexId>> {
        let of = self.vertices_of(vertex_type)?;
        let name = &self.options.vertex_types[vertex_type].name;
        numbers.iter().map(|number| Ok(of.numbering.vertex(of.numbers.position(*number, name)?))).collect()
    }

    /// The number of a vertex, if it is of the type. Panics if there is no such type.
    pub fn number(&self, vertex_type: usize, vertex: VertexId) -> Option<i64> {
        let of = &self.vertices[vertex_type];
        of.numbering.find(vertex).map(|position| i64::from(of.numbers.number(position)))
    }

    /// The page of an edge by ordinal, and the edge's number within it.
    fn place(&self, edge_type: usize, number: i64) -> Result<(usize, usize)> {
        let firsts = &self.edges_of(edge_type)?.first_edges;
        match u64::try_from(number) {
            Ok(number) if number < self.edge_count(edge_type) => {
                let page = firsts.partition_point(|first| *first <= number) - 1;
                Ok((page, (number - firsts[page]) as usize))
            }
            _ => Err(Error::invalid(format!(
                "there is no edge {number} of type '{}': at this moment it has {} edges, numbered from 0",
                self.options.edge_types[edge_type].name,
                self.edge_count(edge_type)
            ))),
        }
    }

    /// The edges of a type that have these numbers.
    ///
    /// # Errors
    ///
    /// If a number is too great, or if the edges of the type are not known by their ids.
    pub fn edges(&self, edge_type: usize, numbers: &[i64]) -> Result<Vec<EdgeId>> {
        let of = |number: &i64| {
            let (page, at) = self.place(edge_type, *number)?;
            self.edges[edge_type].pages[page].edge(at).ok_or_else(|| {
                Error::invalid(format!(
                    "edges of type '{}' are not known by their ids: read the graph with names_edges",
                    self.options.edge_types[edge_type].name
                ))
            })
        };
        numbers.iter().map(of).collect()
    }

    /// The numbers of the source and the target of an edge.
    ///
    /// # Errors
    ///
    /// If there is no edge of the number.
    pub fn edge_ends(&self, edge_type: usize, number: i64) -> Result<(i64, i64)> {
        let (page, at) = self.place(edge_type, number)?;
        let of = &self.options.edge_types[edge_type];
        let rows = &self.edges[edge_type].pages[page];
        let slot = rows.slot_of(at);
        let row = rows.row(slot, 0);
        let source = row.sources[at - row.first_edge as usize];
        let target = (page * SLOTS + slot) as u32;
        Ok((
            i64::from(self.vertices[of.source].numbers.number(source)),
            i64::from(self.vertices[of.target].numbers.number(target)),
        ))
    }

    /// All edges of a type in compressed columns, by the number of the target: where each column begins, with the number of edges at
    /// the end, and the number of the source of each edge.
    ///
    /// # Errors
    ///
    /// If there is no such type, or the query of the team has ended.
    pub fn columns(&self, edge_type: usize, team: &Team) -> Result<(Vec<i64>, Vec<i64>)> {
        let EdgesOfType { pages, first_edges, .. } = self.edges_of(edge_type)?;
        let of = &self.options.edge_types[edge_type];
        let (sources, targets) = (&self.vertices[of.source], &self.vertices[of.target]);
        let read = team.map_parts(pages.len(), |page| {
            let (mut begins, mut found) = (Vec::new(), Vec::with_capacity(pages[page].edge_count()));
            let first = (page * SLOTS) as u32;
            for position in targets.numbering.present(first..first + SLOTS as u32) {
                let row = pages[page].row((position - first) as usize, first_edges[page]);
                begins.push(row.first_edge as i64);
                found.extend(row.sources.iter().map(|source| i64::from(sources.numbers.number(*source))));
            }
            (begins, found)
        })?;
        let mut begins = Vec::with_capacity(targets.numbers.len() + 1);
        let mut found = Vec::with_capacity(self.edge_count(edge_type) as usize);
        for (of_begins, of_found) in read {
            begins.extend(of_begins);
            found.extend(of_found);
        }
        begins.push(self.edge_count(edge_type) as i64);
        Ok((begins, found))
    }

    /// The weights of all edges of a type, and their times, in the order of their numbers. Empty if the type has none. Panics if there is
    /// no such type.
    pub fn edge_values(&self, edge_type: usize) -> (Vec<f64>, Vec<i64>) {
        let (mut weights, mut times) = (Vec::new(), Vec::new());
        for page in &self.edges[edge_type].pages {
            for slot in 0..SLOTS {
                let row = page.row(slot, 0);
                weights.extend_from_slice(row.weights);
                times.extend_from_slice(row.times);
            }
        }
        (weights, times)
    }

    /// The bytes that the graph holds.
    pub fn bytes(&self) -> u64 {
        let vertices = self.vertices.iter().map(|of| {
            let times = of.times.as_ref().map_or(0, |times| times.len() as u64 * 8);
            of.numbering.bytes() + DenseNumbers::bytes_of(&of.numbering) + times
        });
        let edges = self.edges.iter().map(|of| of.pages.iter().map(InPage::bytes).sum::<u64>());
        vertices.chain(edges).sum()
    }
}

impl InRows for TypedGraph {
    fn vertex_types(&self) -> usize {
        self.vertices.len()
    }

    fn edge_types(&self) -> usize {
        self.edges.len()
    }

    fn ends(&self, edge_type: usize) -> (usize, usize) {
        let of = &self.options.edge_types[edge_type];
        (of.source, of.target)
    }

    fn positions(&self, vertex_type: usize) -> u32 {
        self.vertices[vertex_type].numbering.positions()
    }

    fn append_rows<'a>(&'a self, edge_type: usize, targets: &[u32], rows: &mut Vec<InRow<'a>>) -> Result<()> {
        let EdgesOfType { pages, first_edges, .. } = &self.edges[edge_type];
        rows.extend(targets.iter().map(|target| {
            let (page, slot) = (*target as usize / SLOTS, *target as usize % SLOTS);
            pages[page].row(slot, first_edges[page])
        }));
        Ok(())
    }

    fn vertex_times(&self, vertex_type: usize) -> Option<&[i64]> {
        self.vertices[vertex_type].times.as_deref()
    }

    fn has_weights(&self, edge_type: usize) -> bool {
        self.options.edge_types[edge_type].weight.is_some()
    }

    fn has_times(&self, edge_type: usize) -> bool {
        self.options.edge_types[edge_type].time.is_some()
    }

    fn append_positions(&self, vertex_type: usize, numbers: &[i64], out: &mut Vec<u32>) -> Result<()> {
        let of = &self.vertices[vertex_type].numbers;
        let name = &self.options.vertex_types[vertex_type].name;
        out.reserve(numbers.len());
        for number in numbers {
            out.push(of.position(*number, name)?);
        }
        Ok(())
    }

    fn append_numbers(&self, vertex_type: usize, positions: &[u32], out: &mut Vec<i64>) {
        let of = &self.vertices[vertex_type].numbers;
        out.extend(positions.iter().map(|position| i64::from(of.number(*position))));
    }
}
