//! The schema of a Kronecker graph: its labels and properties.
//!
//! ```toml
//! [[property]]
//! key = "name"
//! type = "string"            # bool, int, long, double or string
//! size = 16                  # bytes, of strings
//!
//! [[property]]
//! key = "since"
//! type = "long"
//!
//! [[vertex]]
//! label = "Person"           # several labels: "Person::Author"
//! share = 80                 # percent; all shares together are 100
//! properties = ["name"]
//!
//! [[vertex]]
//! label = "Company"
//! share = 20
//! properties = ["name"]
//!
//! [[edge]]                   # the first rule that fits the ends gives an edge its label
//! label = "worksAt"
//! from = "Person"            # left out: any
//! to = "Company"
//! properties = ["since"]
//!
//! [[edge]]
//! label = "knows"
//! ```

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use mangrove::{Error, ErrorKind, Result, Value};
use serde::Deserialize;
use smol_str::SmolStr;

use crate::random::mix;

/// The maximum number of vertex labels. It is small, because the edge label of every pair of them is kept.
pub const VERTEX_LABELS_MAX: usize = 1024;
/// The maximum number of rules for edge labels.
pub const EDGE_LABELS_MAX: usize = 4096;
/// The maximum number of property types.
pub const PROPERTY_TYPES_MAX: usize = 10_000;
/// The maximum length of a text, in bytes.
pub const TEXT_SIZE_MAX: usize = 1 << 20;

/// The allowed difference between the sum of the shares and 100 %, for shares such as thirds.
const SHARE_TOLERANCE: f64 = 0.1;

/// The labels and properties of a graph, and the rules that assign them.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Property types.
    #[serde(default, rename = "property")]
    pub properties: Vec<PropertyType>,
    /// Labels of vertices.
    #[serde(default, rename = "vertex")]
    pub vertices: Vec<VertexType>,
    /// Rules for labels of edges. The first rule that fits the ends of an edge gives it its label.
    #[serde(default, rename = "edge")]
    pub edges: Vec<EdgeType>,
    /// A function of the program that chooses the labels of edges instead of the rules. It takes the positions in
    /// `vertices` of the labels of source and target, and returns a position in `edges`. It is called once a pair.
    #[serde(skip)]
    pub own_edge_label: Option<OwnEdgeLabel>,
}

/// A program's choice of labels for edges: [`Schema::own_edge_label`].
pub type OwnEdgeLabel = Arc<dyn Fn(usize, usize) -> usize + Send + Sync>;

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema")
            .field("properties", &self.properties)
            .field("vertices", &self.vertices)
            .field("edges", &self.edges)
            .finish_non_exhaustive()
    }
}

/// A property key and the type of its values.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropertyType {
    /// The key.
    pub key: String,
    /// The type of its values.
    #[serde(rename = "type")]
    pub value_type: ValueType,
    /// The length of every text, in bytes.
    #[serde(default = "default_size")]
    pub size: usize,
    /// A function of the program that makes the values. It takes the number of the vertex or edge and 64 random bits.
    /// Several threads call it, and its result must depend on its arguments only.
    #[serde(skip)]
    pub own: Option<OwnValue>,
}

/// A program's function for values: [`PropertyType::own`].
pub type OwnValue = Arc<dyn Fn(u64, u64) -> Value + Send + Sync>;

fn default_size() -> usize {
    16
}

impl std::fmt::Debug for PropertyType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:?}({})", self.key, self.value_type, self.size)
    }
}

/// The types of generated values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// True or false.
    Bool,
    /// A 32-bit integer.
    Int,
    /// A 64-bit integer.
    Long,
    /// A double from 0 to 1.
    Double,
    /// A text.
    String,
}

/// A label of vertices, with its share and its properties.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VertexType {
    /// The label set; several labels are written `a::b`.
    pub label: String,
    /// The percentage of the vertices that have it.
    pub share: f64,
    /// The keys of their properties.
    #[serde(default)]
    pub properties: Vec<String>,
}

/// A rule that gives edges a label.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeType {
    /// The label.
    pub label: String,
    /// The label of the sources that it fits; `None`: any.
    pub from: Option<String>,
    /// The label of the targets that it fits; `None`: any.
    pub to: Option<String>,
    /// The keys of their properties.
    #[serde(default)]
    pub properties: Vec<String>,
}

impl Schema {
    /// Reads a schema from TOML text. The schema is not checked here.
    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|e| Error::new(ErrorKind::Syntax, format!("the schema does not parse: {e}")))
    }

    /// Reads a schema from a TOML file. The schema is not checked here.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Error::new(ErrorKind::Io, format!("cannot read the schema {}: {e}", path.display())))?;
        Self::parse(&text).map_err(|e| e.context(path.display()))
    }

    /// The default schema with these numbers of labels and property types.
    ///
    /// Half of the labels, rounded up, are vertex labels with equal shares. The others, at least one, are edge labels,
    /// spread over the pairs of vertex labels. Every fourth property type is for edges; every fourth edge label has one
    /// of these. A vertex label has a third of the other property types. Values are booleans, numbers, and texts of 8
    /// to 64 bytes.
    pub fn with_counts(labels: usize, property_types: usize) -> Self {
        let properties: Vec<PropertyType> = (0..property_types).map(default_property).collect();
        let (for_edges, for_vertices): (Vec<usize>, Vec<usize>) = (0..property_types).partition(|at| at % 4 == 3);
        let key = |at: &usize| properties[*at].key.clone();
        let vertex_labels = labels.div_ceil(2).max(1);
        let vertices: Vec<VertexType> = (0..vertex_labels)
            .map(|label| VertexType {
                label: format!("L{label}"),
                share: 100.0 / vertex_labels as f64,
                properties: for_vertices.iter().skip(label % 3).step_by(3).map(key).collect(),
            })
            .collect();
        let edge_labels = labels.saturating_sub(vertex_labels).max(1);
        let edges: Vec<EdgeType> = (0..edge_labels)
            .map(|label| EdgeType {
                label: format!("E{label}"),
                from: None,
                to: None,
                properties: match for_edges.len() {
                    0 => Vec::new(),
                    count if label % 4 == 0 => vec![key(&for_edges[label / 4 % count])],
                    _ => Vec::new(),
                },
            })
            .collect();
        let spread = move |source, target| match source * vertex_labels + target {
            pair if pair < edge_labels => pair,
            pair => (mix(pair as u64) % edge_labels as u64) as usize,
        };
        Schema { properties, vertices, edges, own_edge_label: Some(Arc::new(spread)) }
    }

    /// Checks the schema and prepares it for this number of vertices.
    pub(super) fn compile(&self, vertex_count: u64) -> Result<CompiledSchema> {
        self.check()?;
        let positions = |keys: &[String], label: &str| -> Result<Vec<usize>> {
            let position = |key: &String| {
                self.properties.iter().position(|property| property.key == *key).ok_or_else(|| {
                    Error::invalid(format!("the label '{label}' has the property '{key}', which is not defined"))
                })
            };
            keys.iter().map(position).collect()
        };
        let typed = |label: &str, keys: &[String]| {
            Ok(CompiledLabel { label: label.into(), properties: positions(keys, label)? })
        };
        let vertices: Vec<CompiledLabel> =
            self.vertices.iter().map(|vertex| typed(&vertex.label, &vertex.properties)).collect::<Result<_>>()?;
        let mut edges: Vec<CompiledLabel> = Vec::new();
        let mut by_rule = Vec::with_capacity(self.edges.len());
        for rule in &self.edges {
            let one = typed(&rule.label, &rule.properties)?;
            let known = edges.iter().position(|other| other.label == one.label);
            if known.is_some_and(|known| edges[known] != one) {
                let message = format!("the edge label '{}' has other properties in another rule", one.label);
                return Err(Error::invalid(message));
            }
            by_rule.push(known.unwrap_or(edges.len()) as u16);
            edges.extend(known.is_none().then_some(one));
        }
        let pairs = self.pairs()?.into_iter().map(|rule| by_rule[rule]).collect();
        let bounds = self.bounds(vertex_count);
        Ok(CompiledSchema { properties: self.properties.clone(), vertices, edges, bounds, pairs })
    }

    fn check(&self) -> Result<()> {
        let fail = |message: String| Err(Error::invalid(message));
        if self.vertices.is_empty() || self.vertices.len() > VERTEX_LABELS_MAX {
            return fail(format!("{} vertex labels; there are 1 to {VERTEX_LABELS_MAX}", self.vertices.len()));
        }
        if self.edges.len() > EDGE_LABELS_MAX {
            return fail(format!("{} rules for edges; there are at most {EDGE_LABELS_MAX}", self.edges.len()));
        }
        if self.properties.len() > PROPERTY_TYPES_MAX {
            return fail(format!("{} property types; there are at most {PROPERTY_TYPES_MAX}", self.properties.len()));
        }
        for (at, property) in self.properties.iter().enumerate() {
            if property.key.is_empty() || self.properties[..at].iter().any(|other| other.key == property.key) {
                return fail(format!("the property key '{}' is empty or defined twice", property.key));
            }
            if !(1..=TEXT_SIZE_MAX).contains(&property.size) {
                let (key, size) = (&property.key, property.size);
                return fail(format!("texts of '{key}' have {size} bytes; they have 1 to {TEXT_SIZE_MAX}"));
            }
        }
        for (at, vertex) in self.vertices.iter().enumerate() {
            let label = &vertex.label;
            if label.is_empty() || self.vertices[..at].iter().any(|other| other.label == *label) {
                return fail(format!("the vertex label '{label}' is empty or occurs twice"));
            }
            if !vertex.share.is_finite() || vertex.share < 0.0 {
                return fail(format!("the share of '{label}' is {}; it is a percentage", vertex.share));
            }
        }
        let total: f64 = self.vertices.iter().map(|vertex| vertex.share).sum();
        if (total - 100.0).abs() > SHARE_TOLERANCE {
            return fail(format!("the shares of the vertex labels are {total} % together; make them 100 %"));
        }
        Ok(())
    }

    /// The position of the rule for each pair of vertex labels.
    fn pairs(&self) -> Result<Vec<usize>> {
        for end in self.edges.iter().flat_map(|edge| edge.from.iter().chain(&edge.to)) {
            if !self.vertices.iter().any(|vertex| vertex.label == *end) {
                let message = format!("an edge rule names the vertex label '{end}', which is not defined");
                return Err(Error::invalid(message));
            }
        }
        let labels = 0..self.vertices.len();
        let pairs = labels.clone().flat_map(|source| labels.clone().map(move |target| (source, target)));
        pairs.map(|(source, target)| self.rule(source, target)).collect()
    }

    fn rule(&self, source: usize, target: usize) -> Result<usize> {
        let fits =
            |end: &Option<String>, label: usize| end.as_ref().is_none_or(|end| *end == self.vertices[label].label);
        let chosen = match &self.own_edge_label {
            Some(own) => Some(own(source, target)).filter(|chosen| *chosen < self.edges.len()),
            None => self.edges.iter().position(|edge| fits(&edge.from, source) && fits(&edge.to, target)),
        };
        chosen.ok_or_else(|| {
            let (from, to) = (&self.vertices[source].label, &self.vertices[target].label);
            let message =
                format!("nothing gives edges from '{from}' to '{to}' a label; add a last rule for all others");
            Error::invalid(message)
        })
    }

    /// The first vertex number of each label, then the number of vertices.
    fn bounds(&self, vertex_count: u64) -> Vec<u64> {
        let total: f64 = self.vertices.iter().map(|vertex| vertex.share).sum();
        let mut bounds = vec![0];
        let mut sum = 0.0;
        for vertex in &self.vertices {
            sum += vertex.share;
            bounds.push((sum / total * vertex_count as f64).round() as u64);
        }
        *bounds.last_mut().expect("there is at least one label") = vertex_count;
        bounds
    }
}

fn default_property(at: usize) -> PropertyType {
    const TYPES: [(ValueType, usize); 7] = [
        (ValueType::Long, 8),
        (ValueType::String, 8),
        (ValueType::Int, 4),
        (ValueType::Double, 8),
        (ValueType::String, 16),
        (ValueType::Bool, 1),
        (ValueType::String, 64),
    ];
    let (value_type, size) = TYPES[at % TYPES.len()];
    PropertyType { key: format!("p{at}"), value_type, size, own: None }
}

/// A label with the positions of its properties in the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CompiledLabel {
    pub(super) label: SmolStr,
    pub(super) properties: Vec<usize>,
}

/// A checked schema, for a certain number of vertices.
#[derive(Clone, Debug)]
pub(super) struct CompiledSchema {
    pub(super) properties: Vec<PropertyType>,
    pub(super) vertices: Vec<CompiledLabel>,
    /// Distinct labels of edges.
    pub(super) edges: Vec<CompiledLabel>,
    /// The first vertex number of each label, then the number of vertices; ascending.
    bounds: Vec<u64>,
    /// The position in `edges` of the label for each pair of source label and target label, by source first.
    pairs: Vec<u16>,
}

impl CompiledSchema {
    /// The numbers of the vertices of a label.
    pub(super) fn range(&self, label: usize) -> Range<u64> {
        self.bounds[label]..self.bounds[label + 1]
    }

    /// The label of an edge.
    #[inline]
    pub(super) fn edge_label(&self, source: u64, target: u64) -> usize {
        usize::from(self.pairs[self.label_of(source) * self.vertices.len() + self.label_of(target)])
    }

    /// The label of a vertex: the last one whose first number is not above that of the vertex.
    #[inline]
    fn label_of(&self, number: u64) -> usize {
        self.bounds[1..self.vertices.len()].partition_point(|&bound| bound <= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(text: &str, part: &str) {
        let error = Schema::parse(text).and_then(|schema| schema.compile(100)).unwrap_err();
        assert!(error.message().contains(part), "{error}");
    }

    #[test]
    fn mistakes_are_named() {
        refuses("", "0 vertex labels");
        refuses("[[vertex]]\nlabel='A'\nshare=99\n[[edge]]\nlabel='e'", "99 % together");
        refuses("[[vertex]]\nlabel='A'\nshare=100\nproperties=['x']\n[[edge]]\nlabel='e'", "'x', which is not defined");
        refuses("[[vertex]]\nlabel='A'\nshare=100", "from 'A' to 'A'");
        refuses("[[vertex]]\nlabel='A'\nshare=100\n[[edge]]\nlabel='e'\nfrom='B'", "'B', which is not defined");
        refuses("[[vertex]]\nlabel='A'\nshare=50\n[[vertex]]\nlabel='A'\nshare=50", "occurs twice");
        refuses("[[property]]\nkey='a'\ntype='text'", "line 3");
    }

    #[test]
    fn the_first_rule_that_fits_gives_the_label() {
        let text = "[[vertex]]\nlabel='A'\nshare=25\n[[vertex]]\nlabel='B'\nshare=75\n\
                    [[edge]]\nlabel='ab'\nfrom='A'\nto='B'\n[[edge]]\nlabel='to_b'\nto='B'\n[[edge]]\nlabel='rest'";
        let schema = Schema::parse(text).unwrap().compile(100).unwrap();
        let label = |source, target| schema.edges[schema.edge_label(source, target)].label.as_str();
        assert_eq!((schema.range(0), schema.range(1)), (0..25, 25..100));
        assert_eq!((label(24, 25), label(25, 99), label(0, 24), label(99, 0)), ("ab", "to_b", "rest", "rest"));
    }

    #[test]
    fn default_schemas_use_all_labels_and_properties() {
        for (labels, types) in [(1, 0), (1, 1), (2, 5), (20, 13), (40, 26), (5, 100)] {
            let schema = Schema::with_counts(labels, types).compile(1000).unwrap();
            assert_eq!(schema.vertices.len() + schema.edges.len(), labels.max(2), "{labels}");
            let used = schema.vertices.iter().flat_map(|vertex| &vertex.properties);
            let used: std::collections::BTreeSet<_> = used.collect();
            let for_vertices = (0..types).filter(|at| at % 4 != 3).count();
            let expected = if labels >= 5 { for_vertices } else { for_vertices.div_ceil(3).min(for_vertices) };
            assert!(used.len() >= expected, "{labels} {types}: {used:?}");
        }
    }
}
