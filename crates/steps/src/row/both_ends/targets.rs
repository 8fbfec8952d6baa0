//! The vertices from which a search begins at its far end.

use mangrove_graph::{ElementKind, Elements, ErrorKind, GraphView, Need, Result, UserId, Value, VertexId, numeric};
use mangrove_plan::logical::Operand;
use mangrove_plan::physical::{IndexAccess, TARGETS_MAX, TargetAccess};

use crate::context::execution::ExecutionContext;
use crate::row::source::by_index::IndexSearches;

/// How the targets of a run are found. What is found is tested by the search.
pub(super) enum Targets {
    Ids(KnownIds),
    Index(ByIndex),
}

/// Vertices and user ids.
#[derive(Default)]
pub(super) struct KnownIds {
    ids: Vec<Operand>,
    vertices: Vec<VertexId>,
    user_ids: Vec<UserId>,
}

/// What indexes find: for each run once, when its first row comes.
pub(super) struct ByIndex {
    access: IndexAccess,
    searches: Option<IndexSearches>,
    found: Option<Found>,
}

/// What the look-up of a run has found.
enum Found {
    Few(Vec<VertexId>),
    /// So many that the search goes on from one end.
    Many,
}

impl Targets {
    pub fn new(access: &TargetAccess) -> Self {
        match access {
            TargetAccess::Ids(ids) => Targets::Ids(KnownIds { ids: ids.clone(), ..KnownIds::default() }),
            TargetAccess::Index(access) => {
                Targets::Index(ByIndex { access: access.clone(), searches: None, found: None })
            }
        }
    }

    /// Looks up the values of a run.
    pub fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.recycle();
        match self {
            Targets::Ids(known) => {
                for at in 0..known.ids.len() {
                    let ids = context.resolve(&known.ids[at])?;
                    known.take(&ids, context);
                }
            }
            Targets::Index(by_index) => by_index.searches = Some(IndexSearches::new(&by_index.access, context)?),
        }
        Ok(())
    }

    /// Drops the values of a run.
    pub fn recycle(&mut self) {
        match self {
            Targets::Ids(known) => (known.vertices, known.user_ids) = Default::default(),
            Targets::Index(by_index) => (by_index.searches, by_index.found) = (None, None),
        }
    }

    /// What [`Targets::find`] reads.
    pub fn needs(&self, context: &ExecutionContext) -> Need<'_> {
        match self {
            Targets::Ids(KnownIds { vertices, user_ids, .. }) => {
                let here = Need::Heads(Elements::Vertices(vertices.as_slice().into()));
                let ids = user_ids.as_slice().into();
                Need::all([here, Need::LookUp { kind: ElementKind::Vertex, ids }])
            }
            // Another replica, which has not looked up yet, may take the step.
            Targets::Index(by_index) => match &by_index.searches {
                Some(searches) => searches.needs(context),
                None => Need::Nothing,
            },
        }
    }

    /// Returns what is found, in any order, or `None` if it is too much to search from both ends.
    pub fn find(&mut self, context: &ExecutionContext) -> Result<Option<Vec<VertexId>>> {
        match self {
            Targets::Ids(known) => known.find(&*context.view).map(Some),
            Targets::Index(by_index) => by_index.find(context),
        }
    }
}

impl KnownIds {
    /// Takes the ids in a value, which may be a list.
    fn take(&mut self, value: &Value, context: &ExecutionContext) {
        match value {
            Value::Vertex(vertex) => self.vertices.push(*vertex),
            Value::List(values) | Value::Set(values) => values.iter().for_each(|value| self.take(value, context)),
            // A number equals the id in a test of the id, whatever its type. The targets are tested again.
            value => self.user_ids.extend(context.ids.read(value).or_else(|| numeric::whole(value).map(UserId::int))),
        }
    }

    fn find(&self, view: &dyn GraphView) -> Result<Vec<VertexId>> {
        let mut vertices = self.vertices.clone();
        view.retain_vertices(&mut vertices)?;
        let mut found = Vec::with_capacity(self.user_ids.len());
        view.find_vertices(&self.user_ids, &mut found)?;
        vertices.extend(found.into_iter().flatten());
        Ok(vertices)
    }
}

impl ByIndex {
    fn find(&mut self, context: &ExecutionContext) -> Result<Option<Vec<VertexId>>> {
        if let (None, Some(searches)) = (&self.found, &self.searches) {
            let found = match searches.find_few(TARGETS_MAX, context) {
                // The index was dropped after the plan was made.
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                found => found?,
            };
            self.found = Some(found.map_or(Found::Many, Found::Few));
        }
        Ok(match &self.found {
            Some(Found::Few(vertices)) => Some(vertices.clone()),
            Some(Found::Many) | None => None,
        })
    }
}
