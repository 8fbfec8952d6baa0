//! How an upsert recognizes what a row means: the vertex or the edge that is in the graph already.
//!
//! - A vertex is known by its id where users know it by the id in the file. Ids of an id space are not ids of the graph, so such
//!   a vertex is known by properties: those that the caller names for its label ([`UpsertKeys`]), else those that
//!   its rule in the mapping names (`key`). A load that could not recognize its vertices is refused before it
//!   writes anything.
//! - An edge is known by its id where the file has one, else by its ends, its label and the properties of an edge key, else by its
//!   ends and its label alone, as far as these tell it from other edges. The sink decides the last case.
//!
//! What identifies an element is unique within a load: a second row with the same key is rejected, as a second row with the same id
//! is. So an upsert into an empty graph and a plain load of the same files make the same graph.

use std::collections::BTreeSet;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use mangrove_graph::{Error, Result, UserId, Value};
use smol_str::{SmolStr, format_smolstr};

use crate::mapping::{FileRule, Mapping};
use crate::plan::{EdgePlan, GLOBAL_SPACE, Rows, TablePlan, UserIds, VertexPlan};

/// Properties by which the elements of a label are known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementKey {
    /// The label; of a label set, one of its labels.
    pub label: SmolStr,
    /// The properties; at least one.
    pub properties: Vec<SmolStr>,
}

/// How an upsert recognizes the vertices of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VertexIdentity {
    /// By the ids that users know them by.
    Id,
    /// By their values under a key, among the vertices that bear its label.
    Key(ElementKey),
}

/// How an upsert recognizes the edges of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeIdentity {
    /// By the ids that users know them by.
    Id,
    /// By their ends, their label and their values under these properties.
    Key(Vec<SmolStr>),
    /// By their ends and their label, as far as these tell them from other edges.
    Ends,
}

/// The keys that the caller of an upsert names, as `--key` and `--edge-key` of `mangrove load` do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpsertKeys {
    vertices: Vec<ElementKey>,
    edges: Vec<ElementKey>,
}

impl UpsertKeys {
    /// Keys of vertices, from texts such as `person.email` or `plane.name,icao`.
    pub fn parse(texts: &[String]) -> Result<Self> {
        Ok(UpsertKeys { vertices: texts.iter().map(|text| parse_key(text)).collect::<Result<_>>()?, edges: Vec::new() })
    }

    /// The same with keys of edges, from texts such as `paid.date` or `route.airline,codeshare`.
    pub fn with_edge_keys(mut self, texts: &[String]) -> Result<Self> {
        self.edges = texts.iter().map(|text| parse_key(text)).collect::<Result<_>>()?;
        Ok(self)
    }

    fn is_empty(&self) -> bool {
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

/// The key of a label set, if one of the keys is for one of its labels.
fn key_of<'k>(keys: &'k [ElementKey], label: &str) -> Option<&'k ElementKey> {
    keys.iter().find(|key| label.split("::").any(|one| one == key.label))
}

/// How to find the vertex that an id of an id space names, where the load has no such vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpaceIdentity {
    Id,
    /// By the id behind this prefix and a colon.
    Prefixed(SmolStr),
    Key(ElementKey),
}

/// The identities of everything in a load. Those of a plain load, the default, have the keys of its mapping only.
#[derive(Default)]
pub(crate) struct Identities {
    keys: UpsertKeys,
    /// By the names of id spaces in lower case.
    spaces: HashMap<String, SpaceIdentity, RandomState>,
}

impl Identities {
    /// Of an upsert; an error where it could not recognize what it loads, or where a key fits nothing in it.
    pub(crate) fn of_upsert(keys: &UpsertKeys, plans: &[TablePlan], mapping: Option<&Mapping>) -> Result<Self> {
        let mut identities = Identities { keys: keys.clone(), spaces: HashMap::default() };
        for plan in plans {
            match &plan.rows {
                Rows::Vertices(vertices) => identities.add_space(plan, vertices)?,
                Rows::Edges(edges) => check_edge_key(identities.keys.edges.as_slice(), plan, edges)?,
                Rows::Values(_) => {}
            }
        }
        identities.add_spaces_of(plans, mapping);
        Ok(identities)
    }

    /// Checks that an upsert can recognize the vertices of a plan, and learns how it finds those that its id space names.
    fn add_space(&mut self, plan: &TablePlan, vertices: &VertexPlan) -> Result<()> {
        let given = vertices.label.constant.as_deref().and_then(|label| key_of(&self.keys.vertices, label)).cloned();
        if let Some(given) = &given {
            check_properties("--key", given, plan)?;
        }
        let may_be_given = vertices.label.column.is_some() && !self.keys.vertices.is_empty();
        if given.is_none() && vertices.key.is_none() && vertices.user_ids == UserIds::Automatic && !may_be_given {
            return Err(unidentified(plan, vertices));
        }
        let space = match (&given, vertices.user_ids, &vertices.id_property) {
            (Some(key), ..) if key.properties.len() == 1 => SpaceIdentity::Key(key.clone()),
            (_, UserIds::Own, _) => SpaceIdentity::Id,
            (_, UserIds::Prefixed, _) => SpaceIdentity::Prefixed(vertices.prefix()),
            (_, UserIds::Automatic, Some(property)) => {
                let label = vertices.label.constant.clone().unwrap_or_else(|| vertices.space.as_str().into());
                SpaceIdentity::Key(ElementKey { label, properties: vec![property.clone()] })
            }
            (_, UserIds::Automatic, None) => return Ok(()),
        };
        self.spaces.insert(vertices.space.to_ascii_lowercase(), space);
        Ok(())
    }

    /// Learns how to find the vertices of id spaces that no file of the load has vertices of.
    fn add_spaces_of(&mut self, plans: &[TablePlan], mapping: Option<&Mapping>) {
        let named: BTreeSet<&str> = plans.iter().flat_map(TablePlan::referenced_spaces).collect();
        for space in named.into_iter().filter(|space| *space != GLOBAL_SPACE) {
            let lower = space.to_ascii_lowercase();
            let given = self.keys.vertices.iter().find(|key| key.label.eq_ignore_ascii_case(space));
            let given = given.filter(|key| key.properties.len() == 1).cloned().map(SpaceIdentity::Key);
            let found = given
                .or_else(|| self.spaces.get(&lower).cloned())
                .or_else(|| mapping.and_then(|mapping| space_of_rules(mapping, space)));
            self.spaces.extend(found.map(|found| (lower, found)));
        }
    }

    /// How the vertices of a label are recognized; `None`: not at all. A document has no plan: its vertices have ids.
    pub(crate) fn of_vertices(&self, label: &str, plan: Option<&VertexPlan>) -> Option<VertexIdentity> {
        if let Some(key) = key_of(&self.keys.vertices, label) {
            return Some(VertexIdentity::Key(key.clone()));
        }
        let Some(plan) = plan else { return Some(VertexIdentity::Id) };
        if let Some(properties) = &plan.key {
            let first = || label.split("::").next().unwrap_or_default().into();
            let label = plan.label.constant.clone().unwrap_or_else(first);
            return Some(VertexIdentity::Key(ElementKey { label, properties: properties.clone() }));
        }
        (plan.user_ids != UserIds::Automatic).then_some(VertexIdentity::Id)
    }

    /// How the edges of a label are recognized.
    pub(crate) fn of_edges(&self, label: &str, has_id: bool, plan: Option<&EdgePlan>) -> EdgeIdentity {
        if has_id {
            return EdgeIdentity::Id;
        }
        let given = key_of(&self.keys.edges, label).map(|key| &key.properties);
        given
            .or_else(|| plan?.key.as_ref())
            .map_or(EdgeIdentity::Ends, |properties| EdgeIdentity::Key(properties.clone()))
    }

    /// The vertices that an id of a space may name, and as what: the first that is there is meant.
    pub(crate) fn of_space(&self, space: &str, id: &UserId) -> Vec<(VertexIdentity, UserId)> {
        if space == GLOBAL_SPACE {
            let only = match self.keys.vertices.as_slice() {
                [only] if only.properties.len() == 1 => Some((VertexIdentity::Key(only.clone()), id.clone())),
                _ => None,
            };
            return std::iter::once((VertexIdentity::Id, id.clone())).chain(only).collect();
        }
        match self.spaces.get(&space.to_ascii_lowercase()) {
            None => Vec::new(),
            Some(SpaceIdentity::Id) => vec![(VertexIdentity::Id, id.clone())],
            Some(SpaceIdentity::Prefixed(prefix)) => {
                vec![(VertexIdentity::Id, UserId::String(format_smolstr!("{prefix}:{id}")))]
            }
            Some(SpaceIdentity::Key(key)) => vec![(VertexIdentity::Key(key.clone()), id.clone())],
        }
    }

    /// Fails where a key is for a label that nothing in the load has. `labels` are those of vertices and of edges.
    pub(crate) fn check_labels(&self, vertices: &BTreeSet<SmolStr>, edges: &BTreeSet<SmolStr>) -> Result<()> {
        let known = |key: &ElementKey| self.spaces.keys().any(|space| key.label.eq_ignore_ascii_case(space));
        for key in self.keys.vertices.iter().filter(|key| !known(key)) {
            check_label("--key", key, vertices)?;
        }
        self.keys.edges.iter().try_for_each(|key| check_label("--edge-key", key, edges))
    }

    /// Fails where a key is for one of the labels of a table that has no such property.
    pub(crate) fn check_columns(&self, plan: &TablePlan, labels: &BTreeSet<SmolStr>) -> Result<()> {
        let (option, keys) = match &plan.rows {
            Rows::Vertices(_) => ("--key", &self.keys.vertices),
            Rows::Edges(edges) if edges.id.is_none() => ("--edge-key", &self.keys.edges),
            Rows::Edges(_) | Rows::Values(_) => return Ok(()),
        };
        let mut keys = keys.iter().filter(|key| labels.contains(&key.label));
        keys.try_for_each(|key| check_properties(option, key, plan))
    }

    /// Whether the caller named keys, which have to fit something.
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }
}

fn check_label(option: &str, key: &ElementKey, labels: &BTreeSet<SmolStr>) -> Result<()> {
    if labels.contains(&key.label) {
        return Ok(());
    }
    let properties = key.properties.join(",");
    let near = nearest(&key.label, labels.iter().map(SmolStr::as_str));
    let meant = near.map_or_else(String::new, |label| format!("; did you mean {label}.{properties}?"));
    let labels: Vec<&str> = labels.iter().map(SmolStr::as_str).collect();
    Err(Error::invalid(format!(
        "{option} {}.{properties}: nothing in this load has the label '{}'{meant} The labels are {}",
        key.label,
        key.label,
        labels.join(", ")
    )))
}

/// Fails where a table has no column for a property of a key.
fn check_properties(option: &str, key: &ElementKey, plan: &TablePlan) -> Result<()> {
    let names = || plan.properties().iter().map(|property| property.key.as_str());
    let Some(unknown) = key.properties.iter().find(|property| names().all(|name| name != property.as_str())) else {
        return Ok(());
    };
    let near = nearest(unknown, names());
    let meant = near.map_or_else(String::new, |name| format!("; did you mean {}.{name}?", key.label));
    let message = format!(
        "{option} {}.{}: {} has no property '{unknown}'{meant} Its properties are {}",
        key.label,
        key.properties.join(","),
        plan.path.display(),
        names().collect::<Vec<_>>().join(", ")
    );
    Err(Error::invalid(message))
}

fn check_edge_key(keys: &[ElementKey], plan: &TablePlan, edges: &EdgePlan) -> Result<()> {
    let label = edges.label.constant.as_deref().unwrap_or_default();
    match key_of(keys, label) {
        Some(key) if edges.id.is_none() => check_properties("--edge-key", key, plan),
        _ => Ok(()),
    }
}

/// The error for vertices that an upsert would add again and again.
fn unidentified(plan: &TablePlan, vertices: &VertexPlan) -> Error {
    let file = plan.path.display();
    let label = vertices.label.constant.as_deref().unwrap_or("LABEL");
    let why = match &vertices.id {
        None => "its vertices have no id".to_owned(),
        Some(_) if vertices.space == GLOBAL_SPACE => {
            "the ids in it are properties, not ids by which the graph knows vertices".to_owned()
        }
        Some(_) => format!(
            "its ids are unique in the id space '{}' only, so they are no ids by which the graph knows vertices",
            vertices.space
        ),
    };
    let property = vertices.id_property.as_deref().unwrap_or("PROPERTY");
    let columns: Vec<&str> = plan.properties().iter().map(|property| property.key.as_str()).collect();
    Error::invalid(format!(
        "{file} cannot be upserted: {why}. Say by which property its vertices are found: --key {label}.{property}, or key = \
         \"{property}\" in its rule of a mapping. Its properties are {}",
        columns.join(", ")
    ))
}

/// How the rules of a mapping know the vertices of an id space.
fn space_of_rules(mapping: &Mapping, space: &str) -> Option<SpaceIdentity> {
    let is = |name: &Option<String>| name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(space));
    let rules = || mapping.file.iter().filter(|rule| rule.is_of_vertices());
    let rule = rules().find(|rule| is(&rule.id_space)).or_else(|| rules().find(|rule| is(&rule.label)));
    let user_ids = rule.and_then(|rule| rule.user_id).or(mapping.defaults.user_id);
    match user_ids {
        Some(crate::mapping::UserIdRule::Own(true)) => return Some(SpaceIdentity::Id),
        Some(crate::mapping::UserIdRule::Prefixed(_)) => return Some(SpaceIdentity::Prefixed(space.into())),
        _ => {}
    }
    let property = rule.map_or(Some("id"), id_property_of).filter(|property| !property.is_empty())?;
    let label = rule.and_then(|rule| rule.label.as_deref()).unwrap_or(space);
    Some(SpaceIdentity::Key(ElementKey { label: label.into(), properties: vec![property.into()] }))
}

/// The property in which the vertices of a rule keep their ids.
fn id_property_of(rule: &FileRule) -> Option<&str> {
    let named = rule.id.as_deref().map(|name| name.split_once(':').map_or(name, |(name, _)| name));
    rule.id_property.as_deref().or(named).or(Some("id"))
}

/// The values of a key as one text, by which rows are compared; an error says why the row has none.
pub(crate) fn key_text<'v>(
    properties: &[SmolStr],
    value_of: impl Fn(&str) -> Option<&'v Value>,
) -> Result<SmolStr, String> {
    let mut text = String::new();
    for (at, property) in properties.iter().enumerate() {
        match value_of(property) {
            None | Some(Value::Null) if at == 0 => {
                return Err(format!("the row has no value under '{property}', the key it is to be found by"));
            }
            None | Some(Value::Null) => text.push('-'),
            Some(value) => match UserId::from_value(value) {
                // Quotes keep texts apart from numbers, and the parts from one another.
                Some(UserId::String(value)) => text.push_str(&format!("{value:?}")),
                Some(id) => text.push_str(&id.to_string()),
                None => {
                    return Err(format!(
                        "the value under '{property}', the key the row is to be found by, is no integer, string or UUID"
                    ));
                }
            },
        }
        text.push(',');
    }
    Ok(text.into())
}

/// The candidate nearest to a name, if one is near.
fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let distances = candidates.map(|candidate| (distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate));
    distances.filter(|(distance, _)| *distance <= 1 + name.chars().count() / 3).min().map(|(_, candidate)| candidate)
}

/// How many characters must be changed, added or removed to make one text the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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

    #[test]
    fn keys_are_equal_where_all_their_values_are() {
        let text = |values: &[Value]| {
            let names: Vec<SmolStr> = (0..values.len()).map(|at| at.to_string().into()).collect();
            key_text(&names, |name| values.get(name.parse::<usize>().unwrap()))
        };
        assert_eq!(text(&[Value::I32(7)]), text(&[Value::I64(7)]));
        assert_ne!(text(&[Value::I32(7)]), text(&[Value::string("7")]));
        assert_ne!(text(&["a,".into(), "b".into()]), text(&["a".into(), ",b".into()]));
        assert_ne!(text(&["a".into(), Value::Null]), text(&["a".into(), "-".into()]));
        assert!(text(&[Value::Null]).unwrap_err().contains("no value under '0'"));
        assert!(text(&[Value::F64(0.5)]).unwrap_err().contains("no integer, string or UUID"));
    }

    #[test]
    fn near_names_are_found() {
        assert_eq!(nearest("airprt", ["airline", "airport"].into_iter()), Some("airport"));
        assert_eq!(nearest("xyz", ["airline", "airport"].into_iter()), None);
        assert_eq!((distance("kitten", "sitting"), distance("", "ab")), (3, 2));
    }
}
