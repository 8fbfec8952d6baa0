//! A sink that keeps everything, with queries for tests.

pub mod csv_basic;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use mangrove_graph::{Result, TabletId, UserId, Value, VertexId};
use mangrove_load::{EdgeBatch, LoadOptions, LoadReport, LoadSink, Mapping, MultiPropertyRow, VertexBatch, load};

/// A vertex as it was loaded.
#[derive(Debug, Default)]
pub struct Vertex {
    pub label: String,
    pub id: Option<UserId>,
    pub properties: BTreeMap<String, Value>,
    pub multi: Vec<MultiPropertyRow>,
}

/// An edge as it was loaded; ends are positions in [`Graph::vertices`].
#[derive(Debug)]
pub struct Edge {
    pub label: String,
    pub id: Option<UserId>,
    pub source: usize,
    pub target: usize,
    pub properties: BTreeMap<String, Value>,
}

/// A sink in memory. It checks what the loader promises every sink.
#[derive(Debug, Default)]
pub struct Graph {
    pub vertices: Vec<Vertex>,
    pub edges: Vec<Edge>,
    vertex_ids: HashSet<UserId>,
    edge_ids: HashSet<UserId>,
}

const TABLET: TabletId = TabletId(3);

impl LoadSink for Graph {
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>> {
        assert!(self.edges.is_empty(), "all vertices come before the first edge");
        assert!(batch.len > 0 && batch.columns.iter().all(|column| column.values.len() == batch.len));
        let first = self.vertices.len();
        for row in 0..batch.len {
            let id = batch.ids.as_ref().map(|ids| ids[row].clone());
            if let Some(id) = &id {
                assert!(self.vertex_ids.insert(id.clone()), "{id} twice");
            }
            let properties = row_of(&batch.columns, row);
            self.vertices.push(Vertex { label: label.to_owned(), id, properties, multi: Vec::new() });
        }
        assert!(batch.multi.is_sorted_by_key(|property| property.row));
        for property in batch.multi {
            let vertex = &mut self.vertices[first + property.row as usize];
            assert!(!vertex.properties.contains_key(property.key.as_str()) && !property.values.is_empty());
            vertex.multi.push(property);
        }
        Ok((first..self.vertices.len()).map(|at| VertexId::new(TABLET, at as u64)).collect())
    }

    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()> {
        let len = batch.ends.len();
        assert!(len > 0 && batch.columns.iter().all(|column| column.values.len() == len));
        for (row, (source, target)) in batch.ends.iter().enumerate() {
            let id = batch.ids.as_ref().map(|ids| ids[row].clone());
            if let Some(id) = &id {
                assert!(self.edge_ids.insert(id.clone()), "{id} twice");
            }
            let end = |vertex: &VertexId| {
                assert!(vertex.tablet() == TABLET && (vertex.slot() as usize) < self.vertices.len(), "{vertex:?}");
                vertex.slot() as usize
            };
            let (source, target) = (end(source), end(target));
            let properties = row_of(&batch.columns, row);
            self.edges.push(Edge { label: label.to_owned(), id, source, target, properties });
        }
        Ok(())
    }
}

fn row_of(columns: &[mangrove_load::PropertyColumn], row: usize) -> BTreeMap<String, Value> {
    let present = columns.iter().filter(|column| column.values[row] != Value::Null);
    present.map(|column| (column.key.to_string(), column.values[row].clone())).collect()
}

impl Graph {
    /// Vertices by label.
    pub fn vertex_counts(&self) -> BTreeMap<&str, usize> {
        count(self.vertices.iter().map(|vertex| vertex.label.as_str()))
    }

    /// Edges by label.
    pub fn edge_counts(&self) -> BTreeMap<&str, usize> {
        count(self.edges.iter().map(|edge| edge.label.as_str()))
    }

    /// Edges by source label, label and target label; of a label set, the first label.
    pub fn triple_counts(&self) -> BTreeMap<(&str, &str, &str), usize> {
        let mut counts = BTreeMap::new();
        let label = |at: usize| self.vertices[at].label.split("::").next().unwrap_or_default();
        for edge in &self.edges {
            *counts.entry((label(edge.source), edge.label.as_str(), label(edge.target))).or_default() += 1;
        }
        counts
    }

    /// The vertex with a label (one of a set) and a property.
    #[track_caller]
    pub fn vertex(&self, label: &str, key: &str, value: impl Into<Value>) -> usize {
        let value = value.into();
        let found = self.vertices.iter().position(|vertex| {
            vertex.label.split("::").any(|l| l == label) && vertex.properties.get(key) == Some(&value)
        });
        found.unwrap_or_else(|| panic!("no {label} with {key} = {value:?}"))
    }

    /// The vertex with a user id.
    #[track_caller]
    pub fn by_id(&self, id: impl Into<UserId>) -> usize {
        let id = id.into();
        self.vertices.iter().position(|v| v.id.as_ref() == Some(&id)).unwrap_or_else(|| panic!("no vertex {id}"))
    }

    /// A property of a vertex.
    #[track_caller]
    pub fn value(&self, vertex: usize, key: &str) -> &Value {
        let properties = &self.vertices[vertex].properties;
        properties.get(key).unwrap_or_else(|| panic!("no {key} among {properties:?}"))
    }

    /// The numbers of edges of a label that leave and enter a vertex.
    pub fn degrees(&self, vertex: usize, label: &str) -> (usize, usize) {
        let edges = || self.edges.iter().filter(|edge| edge.label == label);
        (edges().filter(|e| e.source == vertex).count(), edges().filter(|e| e.target == vertex).count())
    }

    /// The vertices at the far end of a vertex's outgoing edges of a label.
    pub fn out(&self, vertex: usize, label: &str) -> Vec<usize> {
        let edges = self.edges.iter().filter(|edge| edge.label == label && edge.source == vertex);
        edges.map(|edge| edge.target).collect()
    }

    /// The size of the largest weakly connected component.
    pub fn largest_component(&self) -> usize {
        let mut parents: Vec<usize> = (0..self.vertices.len()).collect();
        fn root(parents: &mut [usize], mut at: usize) -> usize {
            while parents[at] != at {
                parents[at] = parents[parents[at]];
                at = parents[at];
            }
            at
        }
        for edge in &self.edges {
            let (a, b) = (root(&mut parents, edge.source), root(&mut parents, edge.target));
            parents[a] = b;
        }
        let mut sizes: HashMap<usize, usize> = HashMap::new();
        for at in 0..self.vertices.len() {
            *sizes.entry(root(&mut parents, at)).or_default() += 1;
        }
        sizes.into_values().max().unwrap_or(0)
    }
}

fn count<'a>(labels: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    labels.for_each(|label| *counts.entry(label).or_default() += 1);
    counts
}

/// A folder of files for one test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    /// A folder of its own that holds these files; the name says whose it is.
    pub fn new(name: &str, files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for (name, content) in files {
            std::fs::write(path.join(name), content).unwrap();
        }
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: a remaining file is in the build folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Loads with options; the progress must ascend to its total.
pub fn load_with(paths: &[PathBuf], options: &LoadOptions) -> Result<(Graph, LoadReport)> {
    let mut graph = Graph::default();
    let (mut bytes, mut total) = (0, 0);
    let report = load(paths, options, &mut graph, &mut |progress| {
        assert!(progress.bytes_read >= bytes && progress.bytes_read <= progress.bytes_total, "{progress:?}");
        (bytes, total) = (progress.bytes_read, progress.bytes_total);
    })?;
    assert_eq!(bytes, total, "all bytes were read");
    assert_eq!((report.vertices, report.edges), (graph.vertices.len() as u64, graph.edges.len() as u64));
    assert_eq!(report.rejects, report.files.iter().map(|file| file.rejects).sum::<u64>());
    Ok((graph, report))
}

/// Loads and expects no rejects.
#[track_caller]
pub fn load_clean(paths: &[PathBuf], options: &LoadOptions) -> Graph {
    let options = LoadOptions { max_rejects: 0, ..options.clone() };
    load_with(paths, &options).unwrap().0
}

/// The mapping of this name that ships with the project.
pub fn shipped_mapping(name: &str) -> LoadOptions {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings").join(format!("{name}.toml"));
    LoadOptions { mapping: Some(Mapping::read(&path).unwrap()), ..LoadOptions::default() }
}
