//! Epochs: moments of the graph from which neighbors are sampled and features are read, for graph neural networks.

use mangrove_analytics::Refreshed;
use mangrove_analytics::sampling::features::{self, FeatureOptions, Features};
use mangrove_analytics::sampling::{Sample, Sampler, Seeds, TypedGraph, TypedGraphOptions};
use mangrove_flow::schedule::Tenant;
use mangrove_graph::{Error, ErrorKind, GraphView, KeyId, Result, UserId, Value};

use crate::state::Database;
use crate::transaction::Transaction;

/// A moment of the graph, with its vertices and edges by type.
///
/// Samples and features of an epoch are of the same moment, whatever writers commit. The epoch holds that snapshot until it is dropped.
/// [`Epoch::next`] gives the newest moment, for which it reads only what has changed.
///
/// The `threads` of its methods are the caller and idle executors of the database; 0 means one for each executor. What a method
/// returns does not depend on them. Many threads may use an epoch at the same time.
pub struct Epoch {
    database: Database,
    transaction: Transaction,
    graph: TypedGraph,
    refreshed: Refreshed,
}

impl Database {
    /// The first epoch of these types of vertices and edges: the graph as it is now.
    ///
    /// ```
    /// use mangrove::Database;
    /// use mangrove::analytics::sampling::features::FeatureOptions;
    /// use mangrove::analytics::sampling::{Sampler, SamplerOptions, Seeds, TypedGraphOptions};
    ///
    /// # fn main() -> mangrove::Result<()> {
    /// let db = Database::in_memory();
    /// db.query("g.addV('paper').property('year', 2001).as('x').addV('paper').property('year', 2002).addE('cites').to('x')")?
    ///     .count();
    /// let mut types = TypedGraphOptions::default();
    /// let paper = types.vertex_type("paper");
    /// types.edge_type(paper, "cites", paper);
    /// let epoch = db.begin_epoch(&types, 0)?;
    ///
    /// // Up to ten papers that cite each seed, and up to five that cite those.
    /// let sampler = Sampler::new(SamplerOptions::of_fanouts(1, &[10, 5]))?;
    /// let seeds = [Seeds { vertex_type: paper, numbers: &[0, 1], times: None }];
    /// let sample = epoch.sample(&sampler, 0, &seeds, 1)?;
    /// assert_eq!(sample.edge_count(), 1);
    /// let years = epoch.vertex_features(paper, &sample.vertices[paper], "year", FeatureOptions::default(), 1)?;
    /// assert_eq!((years.rows, years.width), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As those of [`TypedGraph::of`].
    pub fn begin_epoch(&self, types: &TypedGraphOptions, threads: usize) -> Result<Epoch> {
        let transaction = self.begin_read()?;
        let graph = TypedGraph::of(transaction.view(), types, &self.team_of(&Tenant::default(), threads)?)?;
        Ok(Epoch { database: self.clone(), transaction, graph, refreshed: Refreshed::default() })
    }
}

impl Epoch {
    /// The epoch of the newest moment.
    ///
    /// # Errors
    ///
    /// As those of [`TypedGraph::refreshed`].
    pub fn next(&self, threads: usize) -> Result<Epoch> {
        let transaction = self.database.begin_read()?;
        let team = self.database.team_of(&Tenant::default(), threads)?;
        let (graph, refreshed) = self.graph.refreshed(transaction.view(), &team)?;
        Ok(Epoch { database: self.database.clone(), transaction, graph, refreshed })
    }

    /// The vertices and edges by type.
    pub fn graph(&self) -> &TypedGraph {
        &self.graph
    }

    /// The graph of this moment.
    pub fn view(&self) -> &dyn GraphView {
        self.transaction.view()
    }

    /// What [`Epoch::next`] has read of the graph, and what it has kept, to make this epoch. Both are 0 for a first epoch.
    pub fn refreshed(&self) -> Refreshed {
        self.refreshed
    }

    /// Draws a batch.
    ///
    /// # Errors
    ///
    /// As those of [`Sampler::sample`].
    pub fn sample(&self, sampler: &Sampler, batch: u64, seeds: &[Seeds<'_>], threads: usize) -> Result<Sample> {
        sampler.sample(&self.graph, batch, seeds, &self.database.team_of(&Tenant::default(), threads)?)
    }

    /// Draws batches side by side, with the numbers from `first` on.
    ///
    /// # Errors
    ///
    /// As those of [`Sampler::sample_many`].
    pub fn sample_many(
        &self,
        sampler: &Sampler,
        first: u64,
        batches: &[Vec<Seeds<'_>>],
        threads: usize,
    ) -> Result<Vec<Sample>> {
        sampler.sample_many(&self.graph, first, batches, &self.database.team_of(&Tenant::default(), threads)?)
    }

    /// The values of vertices of a type under a key, as one array.
    ///
    /// # Errors
    ///
    /// If no element has such a property, and as those of [`features::of_vertices`].
    pub fn vertex_features(
        &self,
        vertex_type: usize,
        numbers: &[i64],
        key: &str,
        options: FeatureOptions,
        threads: usize,
    ) -> Result<Features> {
        let vertices = self.graph.vertices(vertex_type, numbers)?;
        let team = self.database.team_of(&Tenant::default(), threads)?;
        features::of_vertices(self.view(), &vertices, self.key(key)?, options, &team)
    }

    /// The values of edges of a type under a key, as one array. The type must name its edges.
    ///
    /// # Errors
    ///
    /// If no element has such a property, and as those of [`TypedGraph::edges`] and [`features::of_edges`].
    pub fn edge_features(
        &self,
        edge_type: usize,
        numbers: &[i64],
        key: &str,
        options: FeatureOptions,
        threads: usize,
    ) -> Result<Features> {
        let edges = self.graph.edges(edge_type, numbers)?;
        let team = self.database.team_of(&Tenant::default(), threads)?;
        features::of_edges(self.view(), &edges, self.key(key)?, options, &team)
    }

    /// The ids by which users know vertices of a type.
    ///
    /// # Errors
    ///
    /// If there is no vertex of a number.
    pub fn vertex_ids(&self, vertex_type: usize, numbers: &[i64]) -> Result<Vec<Value>> {
        let mut ids = Vec::with_capacity(numbers.len());
        self.view().vertex_user_ids(&self.graph.vertices(vertex_type, numbers)?, &mut ids)?;
        Ok(ids)
    }

    /// The numbers of the vertices of a type that users know by these ids.
    ///
    /// # Errors
    ///
    /// `NotFound` if a vertex does not exist, or is of another type.
    pub fn vertex_numbers(&self, vertex_type: usize, ids: &[UserId]) -> Result<Vec<i64>> {
        let mut found = Vec::with_capacity(ids.len());
        self.view().find_vertices(ids, &mut found)?;
        self.graph.vertices(vertex_type, &[])?;
        let number = |(vertex, id): (Option<_>, &UserId)| {
            vertex.and_then(|vertex| self.graph.number(vertex_type, vertex)).ok_or_else(|| {
                let name = &self.graph.options().vertex_types[vertex_type].name;
                Error::new(ErrorKind::NotFound, format!("no vertex of type '{name}' has the id {id:?}"))
            })
        };
        found.into_iter().zip(ids).map(number).collect()
    }

    fn key(&self, name: &str) -> Result<KeyId> {
        let missing = || Error::new(ErrorKind::NotFound, format!("no element has a property '{name}'"));
        self.view().key_of(name).ok_or_else(missing)
    }
}
