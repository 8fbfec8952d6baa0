//! Projections with names: a choice of vertices and edges that is kept in memory for many runs of algorithms.
//!
//! A named projection always shows the moment of the query that uses it: it is refreshed first, by reading the pages that have
//! changed. Unlike the other kept projections, it stays until it is dropped: if the memory budget of the process has no room for it, it is
//! refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use mangrove_graph::{Error, ErrorKind, GraphView, LabelFilter, Result};
use parking_lot::Mutex;

use crate::choice::{Orientation, ProjectionOptions};
use crate::projection::Projection;
use crate::team::Team;

/// The choice of a named projection, by names. Labels and keys that come later may belong to it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// The label of the vertices; `None`: all.
    pub vertices: Option<String>,
    /// The label of the edges; `None`: all.
    pub edges: Option<String>,
    /// Whether edges lead both ways.
    pub is_undirected: bool,
    /// The property of edges that is their weight.
    pub weight: Option<String>,
}

impl Choice {
    /// What the names mean in a view.
    ///
    /// # Errors
    ///
    /// `NotFound` if the graph has no such label or key.
    pub fn options(&self, view: &dyn GraphView) -> Result<ProjectionOptions> {
        let weight = self.weight.as_ref().map(|key| {
            view.key_of(key).ok_or_else(|| {
                let message = format!(
                    "no element has a property '{key}', which is the option 'weight'; mangrove.names lists the keys"
                );
                Error::new(ErrorKind::NotFound, message)
            })
        });
        Ok(ProjectionOptions {
            vertices: label_filter(view, "vertices", self.vertices.as_deref())?,
            edges: label_filter(view, "edges", self.edges.as_deref())?,
            orientation: if self.is_undirected { Orientation::Undirected } else { Orientation::Directed },
            weight: weight.transpose()?,
            ..ProjectionOptions::default()
        })
    }
}

/// The filter for a label that an option names.
pub(crate) fn label_filter(view: &dyn GraphView, option: &str, label: Option<&str>) -> Result<LabelFilter> {
    let Some(label) = label else { return Ok(LabelFilter::Any) };
    match view.label_filter(&[label.into()]) {
        LabelFilter::Sets(sets) if sets.is_empty() => {
            let message = format!(
                "the graph has no label '{label}', which is the option '{option}'; mangrove.names lists the labels"
            );
            Err(Error::new(ErrorKind::NotFound, message))
        }
        filter => Ok(filter),
    }
}

/// A named projection, for people.
#[derive(Clone, Debug)]
pub struct NamedProjection {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub choice: Choice,
    /// As it was used last.
    pub projection: Arc<Projection>,
}

/// The named projections of a database.
#[derive(Debug, Default)]
pub struct NamedProjections(Mutex<BTreeMap<String, NamedProjection>>);

impl NamedProjections {
    /// Makes a projection and names it.
    ///
    /// # Errors
    ///
    /// If there is one of that name, and as those of [`Projection::of`].
    pub fn create(&self, name: &str, choice: Choice, view: &dyn GraphView, team: &Team) -> Result<NamedProjection> {
        let taken =
            || Error::invalid(format!("there is a projection '{name}' already: drop it first, or name another"));
        if name.is_empty() {
            return Err(Error::invalid("a projection needs a name, which is not empty"));
        }
        if self.0.lock().contains_key(name) {
            return Err(taken());
        }
        let projection = Projection::of(view, &choice.options(view)?, team);
        let projection = Arc::new(projection.map_err(|error| self.without_room(name, error))?);
        let made = NamedProjection { name: name.to_owned(), choice, projection };
        let mut all = self.0.lock();
        // Another caller may have made one in the meantime.
        if all.contains_key(name) {
            return Err(taken());
        }
        all.insert(name.to_owned(), made.clone());
        Ok(made)
    }

    /// The projection of a name, as a view shows it.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none, and as those of [`Projection::of`].
    pub fn get(&self, name: &str, view: &dyn GraphView, team: &Team) -> Result<NamedProjection> {
        let kept = self.0.lock().get(name).cloned();
        let kept = kept.ok_or_else(|| self.unknown(name))?;
        let options = kept.choice.options(view)?;
        let projection = match kept.projection.options() == &options {
            true => kept.projection.refreshed(view, team).map(|(refreshed, _)| refreshed),
            // A label set that has come since belongs to the choice.
            false => Projection::of(view, &options, team).map(Arc::new),
        };
        let projection = projection.map_err(|error| self.without_room(name, error))?;
        let found = NamedProjection { projection, ..kept };
        if found.projection.commit().is_some()
            && let Some(kept) = self.0.lock().get_mut(name)
            && kept.choice == found.choice
        {
            kept.projection = found.projection.clone();
        }
        Ok(found)
    }

    /// The choice of a name.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no projection of that name.
    pub fn choice(&self, name: &str) -> Result<Choice> {
        let choice = self.0.lock().get(name).map(|named| named.choice.clone());
        choice.ok_or_else(|| self.unknown(name))
    }

    /// The bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.0.lock().values().map(|named| named.projection.bytes()).sum()
    }

    /// All of them, by their names.
    pub fn list(&self) -> Vec<NamedProjection> {
        self.0.lock().values().cloned().collect()
    }

    /// Drops one and returns it.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none of that name.
    pub fn drop(&self, name: &str) -> Result<NamedProjection> {
        let dropped = self.0.lock().remove(name);
        dropped.ok_or_else(|| self.unknown(name))
    }

    /// An error of reading a projection, which says what gives memory back.
    fn without_room(&self, name: &str, error: Error) -> Error {
        if error.kind() != ErrorKind::MemoryLimit {
            return error;
        }
        let bytes = self.bytes();
        let message = format!(
            "there is no memory for the projection '{name}': {}. The projections with names take {bytes} bytes; \
             mangrove.projection.drop drops one",
            error.message()
        );
        Error::new(ErrorKind::MemoryLimit, message)
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<String> = self.0.lock().keys().cloned().collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Error::new(ErrorKind::NotFound, format!("there is no projection '{name}'. There are: {known}"))
    }
}
