//! Which types of vertices and edges a typed graph has.

use mangrove_graph::{Direction, Error, ErrorKind, GraphView, KeyId, LabelFilter, Result};

/// A type of vertices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexType {
    /// The name of the type.
    pub name: String,
    /// The label of its vertices; `None`: all vertices of the graph.
    pub label: Option<String>,
    /// The property with the time of a vertex, an integer; `None`: vertices have no times.
    pub time: Option<String>,
}

/// A type of edges: those with a label, from vertices of one type to vertices of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeType {
    /// The vertex type of the sources, by its place in [`TypedGraphOptions::vertex_types`].
    pub source: usize,
    /// The name of the type, between those of its ends.
    pub name: String,
    /// The vertex type of the targets.
    pub target: usize,
    /// The label of the edges; `None`: edges of all labels.
    pub label: Option<String>,
    /// How stored edges lead. [`Direction::Out`]: from the source to the target. [`Direction::In`]: every edge is turned
    /// around. [`Direction::Both`]: every edge counts twice, once in each direction, and has two numbers.
    pub direction: Direction,
    /// The property with the weight of an edge, a number that is not negative. An edge without it has weight 1.
    pub weight: Option<String>,
    /// The property with the time of an edge, an integer. Every edge must have it.
    pub time: Option<String>,
    /// Whether edges stay known by their ids: 8 bytes an edge.
    pub names_edges: bool,
}

/// Which types of vertices and edges a typed graph has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedGraphOptions {
    /// The vertex types.
    pub vertex_types: Vec<VertexType>,
    /// The edge types.
    pub edge_types: Vec<EdgeType>,
}

impl TypedGraphOptions {
    /// Adds a vertex type that is named by its label. Returns its place.
    pub fn vertex_type(&mut self, label: &str) -> usize {
        self.vertex_types.push(VertexType { name: label.into(), label: Some(label.into()), time: None });
        self.vertex_types.len() - 1
    }

    /// Adds an edge type that is named by its label: stored edges as they lead, without weights and times. Returns its place.
    pub fn edge_type(&mut self, source: usize, label: &str, target: usize) -> usize {
        self.edge_types.push(EdgeType {
            source,
            name: label.into(),
            target,
            label: Some(label.into()),
            direction: Direction::Out,
            weight: None,
            time: None,
            names_edges: false,
        });
        self.edge_types.len() - 1
    }

    /// A vertex type for each label, and an edge type for each source label, edge label and target label that edges may have, in
    /// the order of their names.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the view does not know which vertices its edges connect.
    pub fn of_all(view: &dyn GraphView) -> Result<Self> {
        use mangrove_graph::connections::Ends;
        let catalog = view.catalog();
        let connections = view.connections().ok_or_else(|| {
            Error::unsupported("this view does not know which vertices its edges connect: name the edge types")
        })?;
        let names = |set| {
            catalog.labels_of(set).iter().map(|label| catalog.label_name(*label).to_string()).collect::<Vec<String>>()
        };
        let mut labels: Vec<String> = view.live_counts().vertices.iter().flat_map(|(set, _)| names(*set)).collect();
        labels.sort();
        labels.dedup();
        let mut triples = Vec::new();
        for facts in connections.lists().iter().filter(|facts| facts.table.direction == Direction::Out) {
            let ends = match &facts.ends {
                Ends::Sets(sets) => sets.iter().flat_map(|set| names(*set)).collect(),
                Ends::Any => labels.clone(),
            };
            for source in names(facts.vertices) {
                for name in names(facts.table.label) {
                    triples.extend(ends.iter().map(|target| (source.clone(), name.clone(), target.clone())));
                }
            }
        }
        triples.sort();
        triples.dedup();
        let mut options = TypedGraphOptions::default();
        labels.iter().for_each(|label| {
            options.vertex_type(label);
        });
        for (source, name, target) in triples {
            let ends = labels.binary_search(&source).ok().zip(labels.binary_search(&target).ok());
            if let Some((source, target)) = ends {
                options.edge_type(source, &name, target);
            }
        }
        Ok(options)
    }

    /// Fails unless the ends of edge types are vertex types, and names are given once.
    pub(crate) fn check(&self) -> Result<()> {
        let mut names: Vec<&str> = self.vertex_types.iter().map(|of| of.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid(format!("two vertex types have the name '{}'", twice[0])));
        }
        let takes_all = self.vertex_types.iter().filter(|of| of.label.is_none()).count();
        if takes_all > 0 && self.vertex_types.len() > 1 {
            return Err(Error::invalid("a type of all vertices is the only vertex type: give each type a label"));
        }
        for (at, of) in self.edge_types.iter().enumerate() {
            if of.source.max(of.target) >= self.vertex_types.len() {
                return Err(Error::invalid(format!(
                    "edge type '{}' connects vertex types {} and {}, and there are {}",
                    of.name,
                    of.source,
                    of.target,
                    self.vertex_types.len()
                )));
            }
            if of.direction == Direction::Both && of.source != of.target {
                return Err(Error::invalid(format!(
                    "edges of type '{}' have both directions and different ends: give each direction its own type",
                    of.name
                )));
            }
            let is_same =
                |other: &&EdgeType| (other.source, &other.name, other.target) == (of.source, &of.name, of.target);
            if self.edge_types[..at].iter().any(|other| is_same(&other)) {
                return Err(Error::invalid(format!("edge type '{}' is given twice between the same ends", of.name)));
            }
        }
        Ok(())
    }
}

/// The label sets of a label.
pub(crate) fn filter_of(view: &dyn GraphView, label: Option<&String>) -> LabelFilter {
    label.map_or(LabelFilter::Any, |label| view.label_filter(&[label.as_str().into()]))
}

/// Fails if nothing in the graph has ever had a label.
pub(crate) fn check_label(view: &dyn GraphView, label: Option<&String>, what: &str) -> Result<()> {
    match (label, filter_of(view, label)) {
        (Some(label), LabelFilter::Sets(sets)) if sets.is_empty() => {
            Err(Error::new(ErrorKind::NotFound, format!("no {what} has the label '{label}'")))
        }
        _ => Ok(()),
    }
}

/// The key of a name, which must exist.
pub(crate) fn key_of(view: &dyn GraphView, name: Option<&String>) -> Result<Option<KeyId>> {
    name.map(|name| {
        let missing = || Error::new(ErrorKind::NotFound, format!("no element has a property '{name}'"));
        view.key_of(name).ok_or_else(missing)
    })
    .transpose()
}
