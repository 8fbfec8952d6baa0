//! How an upsert recognizes the elements of a batch in the graph: by id, by a key of properties, or by the ends of an
//! edge.

use mangrove_graph::{Error, Result};
use smol_str::SmolStr;

/// A key: properties whose values together identify an element of a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementKey {
    /// The label; for a label set, one of its labels.
    pub label: SmolStr,
    /// The properties; at least one.
    pub properties: Vec<SmolStr>,
}

/// How an upsert recognizes the vertices of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VertexIdentity {
    /// By their user ids.
    Id,
    /// By their values under a key, among the vertices with its label.
    Key(ElementKey),
}

/// How an upsert recognizes the edges of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeIdentity {
    /// By their user ids.
    Id,
    /// By their ends, their label and their values under these properties.
    Key(Vec<SmolStr>),
    /// By their ends and their label, and among parallel edges by their values.
    Ends,
}

/// The keys that the caller of an upsert names, as `--key` and `--edge-key` of `mangrove load` do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpsertKeys {
    pub(crate) vertices: Vec<ElementKey>,
    pub(crate) edges: Vec<ElementKey>,
}

impl UpsertKeys {
    /// Keys of vertices, from texts such as `person.email` or `plane.name,icao`. Fails with `InvalidArgument` if a text
    /// has another form.
    pub fn parse(texts: &[String]) -> Result<Self> {
        Ok(UpsertKeys { vertices: texts.iter().map(|text| parse_key(text)).collect::<Result<_>>()?, edges: Vec::new() })
    }

    /// The same with keys of edges, from texts such as `paid.date` or `route.airline,codeshare`. Fails as
    /// [`UpsertKeys::parse`].
    pub fn with_edge_keys(mut self, texts: &[String]) -> Result<Self> {
        self.edges = texts.iter().map(|text| parse_key(text)).collect::<Result<_>>()?;
        Ok(self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.vertices.is_empty() && self.edges.is_empty()
    }
}

fn parse_key(text: &str) -> Result<ElementKey> {
    let key = text.split_once('.').and_then(|(label, properties)| {
        let properties: Vec<SmolStr> = properties.split(',').map(|name| name.trim().into()).collect();
        let whole = !label.is_empty() && properties.iter().all(|name| !name.is_empty());
        whole.then(|| ElementKey { label: label.into(), properties })
    });
    key.ok_or_else(|| {
        Error::invalid(format!(
            "'{text}' is not a label and a property key: write LABEL.KEY, as in person.email, or LABEL.KEY,KEY"
        ))
    })
}

/// The first key that is for one of the labels of a label set.
pub(crate) fn key_of<'k>(keys: &'k [ElementKey], label: &str) -> Option<&'k ElementKey> {
    keys.iter().find(|key| label.split("::").any(|one| one == key.label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed_and_found_by_any_label_of_a_set() {
        let keys = UpsertKeys::parse(&["Place.id".to_owned(), "plane.name, icao".to_owned()]).unwrap();
        assert_eq!(key_of(&keys.vertices, "Place::City").unwrap().properties, ["id"]);
        assert_eq!(key_of(&keys.vertices, "plane").unwrap().properties, ["name", "icao"]);
        assert_eq!(key_of(&keys.vertices, "Plac"), None);
        for wrong in ["person", ".x", "a.", "a.b,,c"] {
            assert!(UpsertKeys::parse(&[wrong.to_owned()]).unwrap_err().message().contains("LABEL.KEY"), "{wrong}");
        }
    }
}
