//! How an upsert recognizes the vertex or the edge that a row describes.
//!
//! - A vertex is recognized by its id if users know it by the id in the file. An id of an id space is no id of the
//!   graph. Such a vertex is recognized by properties: those that the caller names for its label ([`UpsertKeys`]), else
//!   those that its rule in the mapping names (`key`). If a load could not recognize its vertices, it is refused before
//!   it writes anything.
//! - An edge is recognized by its id if the file has one; else by its ends, its label and the properties of an edge
//!   key; else by its ends and its label alone, if these tell it from other edges. The sink decides the last case.
//!
//! - **LOAD-7.** What identifies an element is unique within a load. A second row with the same id or the same key is
//!   rejected. So an upsert into an empty graph makes the same graph as a plain load of the same files.

use std::collections::BTreeSet;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use mangrove_graph::{Error, Result, UserId, Value};
use smol_str::{SmolStr, format_smolstr};

use super::table_plan::{EdgePlan, GLOBAL_SPACE, RowsPlan, TablePlan, UserIds, VertexPlan};
use crate::mapping::{FileRule, Mapping};
use crate::sink::{EdgeIdentity, ElementKey, UpsertKeys, VertexIdentity, key_of};

/// How the graph is asked for the vertex that an id of an id space names, if no file of the load has the vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpaceIdentity {
    Id,
    /// By the user id, which is this prefix, a colon and the id of the file.
    Prefixed(SmolStr),
    Key(ElementKey),
}

/// How the elements of a load are recognized. In a plain load, the default, only the keys of its mapping count.
#[derive(Default)]
pub(crate) struct Identities {
    keys: UpsertKeys,
    /// By the name of the id space, in lower case.
    spaces: HashMap<String, SpaceIdentity, RandomState>,
}

impl Identities {
    /// The identities of an upsert. Fails if it could not recognize an element, or if a key is for a property that its
    /// table does not have.
    pub(crate) fn of_upsert(keys: &UpsertKeys, plans: &[TablePlan], mapping: Option<&Mapping>) -> Result<Self> {
        let mut identities = Identities { keys: keys.clone(), spaces: HashMap::default() };
        for plan in plans {
            match &plan.rows {
                RowsPlan::Vertices(vertices) => identities.add_space(plan, vertices)?,
                RowsPlan::Edges(edges) => check_edge_key(identities.keys.edges.as_slice(), plan, edges)?,
                RowsPlan::Values(_) => {}
            }
        }
        identities.add_spaces_of(plans, mapping);
        Ok(identities)
    }

    /// Checks that an upsert can recognize the vertices of a plan, and adds how the vertices of its id space are found.
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

    /// Adds how vertices are found whose id space is in no file of the load.
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

    /// How the vertices of a label are recognized; `None` if they cannot be. A document has no plan: its vertices have
    /// ids.
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

    /// The meanings that an id of an id space may have, in the order of preference.
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

    /// Fails if a key is for a label that nothing in the load has. `vertices` and `edges` are the labels of the load.
    pub(crate) fn check_labels(&self, vertices: &BTreeSet<SmolStr>, edges: &BTreeSet<SmolStr>) -> Result<()> {
        let known = |key: &ElementKey| self.spaces.keys().any(|space| key.label.eq_ignore_ascii_case(space));
        for key in self.keys.vertices.iter().filter(|key| !known(key)) {
            check_label("--key", key, vertices)?;
        }
        self.keys.edges.iter().try_for_each(|key| check_label("--edge-key", key, edges))
    }

    /// Fails if a key is for one of these labels of a table, and the table has no such property.
    pub(crate) fn check_columns(&self, plan: &TablePlan, labels: &BTreeSet<SmolStr>) -> Result<()> {
        let (option, keys) = match &plan.rows {
            RowsPlan::Vertices(_) => ("--key", &self.keys.vertices),
            RowsPlan::Edges(edges) if edges.id.is_none() => ("--edge-key", &self.keys.edges),
            RowsPlan::Edges(_) | RowsPlan::Values(_) => return Ok(()),
        };
        let mut keys = keys.iter().filter(|key| labels.contains(&key.label));
        keys.try_for_each(|key| check_properties(option, key, plan))
    }

    /// Returns true if the caller named keys.
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

/// Fails if a table has no column for a property of a key.
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

/// The error for vertices that an upsert could not recognize, and so would add again and again.
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
        "{file} cannot be upserted: {why}. Say by which property its vertices are found: --key {label}.{property}, or \
         key = \
         \"{property}\" in its rule of a mapping. Its properties are {}",
        columns.join(", ")
    ))
}

/// How the rules of a mapping recognize the vertices of an id space.
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

/// The property that keeps the ids of the vertices of a rule.
fn id_property_of(rule: &FileRule) -> Option<&str> {
    let named = rule.id.as_deref().map(|name| name.split_once(':').map_or(name, |(name, _)| name));
    rule.id_property.as_deref().or(named).or(Some("id"))
}

/// LOAD-7: the values of a key as one text, by which rows are compared. `Err` has the reason if the row has no such
/// values.
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
                // Quotes tell texts from numbers, and the parts from one another.
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

/// The candidate that is most like a name, if one is like it.
fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let distances = candidates.map(|candidate| (distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate));
    distances.filter(|(distance, _)| *distance <= 1 + name.chars().count() / 3).min().map(|(_, candidate)| candidate)
}

/// The number of characters to change, add or remove to make one text of the other.
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
