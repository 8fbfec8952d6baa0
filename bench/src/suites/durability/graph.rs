//! A graph in a directory: people with three properties and a Kronecker graph among them.

use std::collections::BTreeMap;
use std::path::Path;

use mangrove::{Database, EdgeId, Result, Value, VertexId};

use crate::options::Scale;
use crate::people::{self, PeopleContent, PeopleNames};
use crate::run_directory::{open, without_checkpoints};
use crate::social::{self, EDGE_BATCH, KNOWS};

/// The property that changes.
const TOUCHED: &str = "touched";

/// The graph of a case, in its directory.
pub(super) struct Graph {
    pub(super) database: Database,
    pub(super) vertices: Vec<VertexId>,
    pub(super) edges: Vec<EdgeId>,
}

impl Graph {
    /// Loads the graph into a new database. When this returns, the load is durable.
    pub(super) fn load(scale: Scale, directory: &Path) -> Result<Self> {
        Self::load_into(open(directory, &without_checkpoints())?, scale)
    }

    /// Loads the graph into an empty database.
    pub(super) fn load_into(database: Database, scale: Scale) -> Result<Self> {
        let knows = database.catalog().intern_label_text(KNOWS);
        let mut loader = database.bulk_load()?;
        let people = people::batches(&database, 1 << scale.log_vertices(), PeopleContent::AllProperties);
        let vertices = people::load(&mut loader, PeopleNames::of(&database).person, &people)?;
        let mut edges = Vec::new();
        for ends in social::ends(&vertices, &social::edges(scale)).chunks(EDGE_BATCH) {
            let loaded: Vec<EdgeId> = loader.edges(knows, ends, None, &[])?;
            edges.extend(loaded);
        }
        loader.finish()?;
        Ok(Graph { database, vertices, edges })
    }

    /// One vertex of each page of vertices.
    pub(super) fn vertex_of_each_page(&self) -> Vec<VertexId> {
        one_of_each(&self.vertices, |vertex| (vertex.tablet().0, vertex.page()))
    }

    /// One edge of each page of edges.
    pub(super) fn edge_of_each_page(&self) -> Vec<EdgeId> {
        one_of_each(&self.edges, |edge| (edge.tablet().0, edge.page()))
    }

    /// Changes a property of these elements, in one transaction.
    pub(super) fn touch(&self, vertices: &[VertexId], edges: &[EdgeId], number: i64) -> Result<()> {
        let transaction = self.database.begin()?;
        let value = Value::I64(number);
        let vertices: Vec<_> = vertices.iter().map(|&vertex| (vertex, value.clone())).collect();
        let edges: Vec<_> = edges.iter().map(|&edge| (edge, value.clone())).collect();
        transaction.set_vertex_property(TOUCHED, &vertices)?;
        transaction.set_edge_property(TOUCHED, &edges)?;
        transaction.commit().map(drop)
    }
}

/// The first element of each page.
fn one_of_each<T: Copy>(elements: &[T], page: impl Fn(T) -> (u16, usize)) -> Vec<T> {
    let mut pages = BTreeMap::new();
    for &element in elements {
        pages.entry(page(element)).or_insert(element);
    }
    pages.into_values().collect()
}
