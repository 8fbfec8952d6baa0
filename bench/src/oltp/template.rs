//! Query templates and mixes of them, kept as data beside this file.
//!
//! A template has a Gremlin script with parameters, and a [`Verb`]: the same operation through the typed interface. The
//! data is in two files: `gdi.toml` (seven operations with their shares in four mixes) and `lbv.toml` (23 templates,
//! equally likely among reads and among writes). Both are parsed when a run begins. A test checks that the shares are
//! those of the papers.

use mangrove::{Error, Result};
use serde::Deserialize;

/// The operation of a template, through the typed interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    VertexProperties,
    CountEdges,
    EdgesOfVertex,
    AddVertex,
    DeleteVertex,
    SetVertexProperty,
    AddEdge,
    AddEdgeWithProperty,
    AddVertexProperty,
    AddEdgeProperty,
    AddVertexAndEdges,
    VerticesByName,
    EdgesByProperty,
    EdgesByLabel,
    VertexById,
    EdgeById,
    SetEdgeProperty,
    DeleteEdge,
    RemoveVertexProperty,
    RemoveEdgeProperty,
    NeighborsIn,
    NeighborsOut,
    NeighborsByLabel,
    EdgeLabelsIn,
    EdgeLabelsOut,
    EdgeLabelsBoth,
}

impl Verb {
    /// Returns true if the operation writes.
    pub fn is_writing(self) -> bool {
        use Verb::*;
        matches!(
            self,
            AddVertex
                | DeleteVertex
                | SetVertexProperty
                | AddEdge
                | AddEdgeWithProperty
                | AddVertexProperty
                | AddEdgeProperty
                | AddVertexAndEdges
                | SetEdgeProperty
                | DeleteEdge
                | RemoveVertexProperty
                | RemoveEdgeProperty
        )
    }

    /// The number of vertices that the operation adds.
    pub fn adds_vertex(self) -> bool {
        matches!(self, Verb::AddVertex | Verb::AddVertexAndEdges)
    }

    /// Returns true if the operation adds an edge and no vertex.
    pub fn adds_edge(self) -> bool {
        matches!(self, Verb::AddEdge | Verb::AddEdgeWithProperty)
    }
}

/// A parameter of a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum Parameter {
    /// A vertex of the graph.
    #[serde(rename = "v")]
    Vertex,
    /// A second vertex.
    #[serde(rename = "w")]
    Other,
    /// An edge of the graph.
    #[serde(rename = "e")]
    Edge,
    /// An id that is not in use.
    #[serde(rename = "n")]
    New,
    /// An integer.
    #[serde(rename = "x")]
    Number,
    /// A string.
    #[serde(rename = "s")]
    Text,
}

/// An operation that transactions run.
#[derive(Clone, Debug)]
pub struct Template {
    /// The name in reports.
    pub name: String,
    /// The operation through the typed interface.
    pub verb: Verb,
    /// The operation as a script.
    pub gremlin: String,
    /// The script's parameters.
    pub uses: Vec<Parameter>,
    /// True if the operation reads every edge.
    pub is_scan: bool,
}

/// Templates with their shares.
#[derive(Clone, Debug)]
pub struct Mix {
    /// The name in reports.
    pub name: String,
    /// The templates with their shares, which add up to about 100.
    pub entries: Vec<(Template, f64)>,
}

impl Mix {
    /// The same mix without templates that read every edge; the others keep their proportions.
    #[must_use]
    pub fn without_scans(&self) -> Self {
        let entries: Vec<_> = self.entries.iter().filter(|(template, _)| !template.is_scan).cloned().collect();
        Mix { name: format!("{}, no scans", self.name), entries }
    }

    /// The templates that write, in their proportions.
    #[must_use]
    pub fn writes(&self) -> Self {
        let entries = self.entries.iter().filter(|(template, _)| template.verb.is_writing()).cloned().collect();
        Mix { name: format!("{}, writes", self.name), entries }
    }

    /// The sum of the shares.
    pub fn total(&self) -> f64 {
        self.entries.iter().map(|(_, share)| share).sum()
    }
}

/// The paper from which the operations come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, clap::ValueEnum)]
pub enum Operations {
    /// Those of the paper on the Graph Database Interface, Table 3
    Gdi,
    /// G-Tran's query templates, Table 4
    Lbv,
}

impl Operations {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Operations::Gdi => "gdi",
            Operations::Lbv => "lbv",
        }
    }

    /// The names of the paper's mixes.
    pub fn mixes(self) -> Result<Vec<Mix>> {
        let text = match self {
            Operations::Gdi => include_str!("gdi.toml"),
            Operations::Lbv => include_str!("lbv.toml"),
        };
        let file: File = toml::from_str(text)
            .map_err(|e| Error::bug(format!("the templates of --ops {} cannot be read: {e}", self.name())))?;
        Ok(file.mix.iter().map(|mix| file.mixed(mix)).collect())
    }

    /// The mix with this name.
    pub fn mix(self, name: &str) -> Result<Mix> {
        let mixes = self.mixes()?;
        let names: Vec<String> = mixes.iter().map(|mix| format!("`{}`", mix.name)).collect();
        mixes.into_iter().find(|mix| mix.name == name).ok_or_else(|| {
            let message = format!("--ops {} has no mix `{name}`; it has {}", self.name(), names.join(", "));
            Error::invalid(message)
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    mix: Vec<MixEntry>,
    template: Vec<TemplateEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MixEntry {
    name: String,
    /// The percentage of reads, for templates without shares of their own.
    reads: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Read,
    Write,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateEntry {
    name: String,
    kind: Option<Kind>,
    verb: Verb,
    #[serde(default)]
    scan: bool,
    /// The wording of the paper, for readers of the file.
    #[serde(rename = "paper")]
    _paper: Option<String>,
    gremlin: String,
    uses: Vec<Parameter>,
    #[serde(default)]
    shares: std::collections::BTreeMap<String, f64>,
}

impl File {
    fn mixed(&self, mix: &MixEntry) -> Mix {
        let share = |entry: &TemplateEntry| match (mix.reads, entry.kind) {
            (Some(reads), Some(kind)) => {
                let alike = self.template.iter().filter(|other| other.kind == Some(kind)).count();
                (if kind == Kind::Read { reads } else { 100.0 - reads }) / alike as f64
            }
            _ => entry.shares.get(&mix.name).copied().unwrap_or(0.0),
        };
        let entries = self.template.iter().map(|entry| (entry.template(), share(entry)));
        Mix { name: mix.name.clone(), entries: entries.filter(|(_, share)| *share > 0.0).collect() }
    }
}

impl TemplateEntry {
    fn template(&self) -> Template {
        Template {
            name: self.name.clone(),
            verb: self.verb,
            gremlin: self.gremlin.clone(),
            uses: self.uses.clone(),
            is_scan: self.scan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_shares(operations: Operations, mix: &str, count: usize, reads: f64) {
        let mix = operations.mix(mix).unwrap();
        assert_eq!(mix.entries.len(), count, "{}", mix.name);
        assert!((mix.total() - 100.0).abs() < 0.11, "{} adds up to {}", mix.name, mix.total());
        let reading = mix.entries.iter().filter(|(t, _)| !t.verb.is_writing()).map(|(_, share)| share).sum::<f64>();
        assert!((reading - reads).abs() < 0.11, "{}: {reading} % read", mix.name);
    }

    #[test]
    fn shares_are_those_of_the_papers() {
        check_shares(Operations::Gdi, "read-mostly", 4, 99.8);
        check_shares(Operations::Gdi, "read-intensive", 4, 75.0);
        check_shares(Operations::Gdi, "write-intensive", 6, 20.0);
        check_shares(Operations::Gdi, "linkbench", 7, 69.0);
        check_shares(Operations::Lbv, "read-only", 11, 100.0);
        check_shares(Operations::Lbv, "read-intensive", 23, 80.0);
        check_shares(Operations::Lbv, "half-half", 23, 50.0);
        check_shares(Operations::Lbv, "write-intensive", 23, 20.0);
    }

    #[test]
    fn a_mix_that_there_is_not_is_refused_with_those_there_are() {
        let message = Operations::Lbv.mix("linkbench").unwrap_err().message().to_owned();
        assert!(message.contains("`half-half`"), "{message}");
    }

    #[test]
    fn scripts_use_the_parameters_they_are_given() {
        for mix in [Operations::Gdi, Operations::Lbv].into_iter().flat_map(|ops| ops.mixes().unwrap()) {
            for (template, _) in mix.entries {
                let script = mangrove::Database::in_memory().prepare(&template.gremlin).unwrap();
                assert_eq!(script.is_mutating(), template.verb.is_writing(), "{}", template.name);
            }
        }
    }
}
