//! What an algorithm is given, and how its options are read.

use std::ops::RangeInclusive;

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use mangrove_graph::{
    Error, ErrorKind, GraphView, KeyId, LabelFilter, Result, UserId, Value, VertexId, compare, numeric, pieces,
};

use super::AlgorithmInfo;
use super::output::Output;
use super::plan::{Plan, Reads};
use crate::cache::ProjectionCache;
use crate::named::label_filter;
use crate::numbering::Numbering;
use crate::projection::{Orientation, Projection, ProjectionOptions};
use crate::team::Team;

/// Vertices whose ids are read between two looks whether the query has ended.
const IDS_READ: usize = 1 << 14;

/// An option of an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// What it may be, in words.
    pub allowed: &'static str,
    /// The value that it has if it is not given; `None`: it must be given.
    pub default: Option<&'static str>,
    /// What it means.
    pub meaning: &'static str,
}

/// What an algorithm is given.
pub(super) struct Given<'g> {
    pub(super) algorithm: &'g AlgorithmInfo,
    pub(super) view: &'g dyn GraphView,
    pub(super) projections: &'g ProjectionCache,
    pub(super) options: &'g [(String, Value)],
    pub(super) team: &'g Team,
}

impl<'g> Given<'g> {
    /// The value of an option, if it is given. The last one counts.
    pub(super) fn get(&self, name: &str) -> Option<&'g Value> {
        self.options.iter().rfind(|(given, _)| given == name).map(|(_, value)| value)
    }

    /// The error for a value that is not allowed.
    pub(super) fn misfit(&self, name: &str) -> Error {
        let allowed =
            self.algorithm.all_options().find(|option| option.name == name).map_or("", |option| option.allowed);
        let shown = self.get(name).map(|value| format!("{value:?}")).unwrap_or_default();
        Error::invalid(format!("the option '{name}' of {} is {shown}. Allowed: {allowed}", self.algorithm.name))
    }

    /// The error for a value that must be given.
    pub(super) fn missing(&self, name: &str) -> Error {
        let info = self.algorithm.all_options().find(|option| option.name == name);
        let (allowed, meaning) = info.map_or(("", ""), |option| (option.allowed, option.meaning));
        Error::invalid(format!("{} needs the option '{name}', {meaning}: {allowed}", self.algorithm.name))
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'g str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(self.misfit(name)),
        }
    }

    /// Yes or no.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.misfit(name)),
        }
    }

    /// A number.
    pub(super) fn number(&self, name: &str, default: f64, allowed: RangeInclusive<f64>) -> Result<f64> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let number = match value {
            Value::F32(number) => Some(f64::from(*number)),
            Value::F64(number) => Some(*number),
            other => numeric::integer(other).map(|number| number as f64),
        };
        number.filter(|number| allowed.contains(number)).ok_or_else(|| self.misfit(name))
    }

    /// A list of numbers.
    pub(super) fn numbers(&self, name: &str) -> Result<Option<Vec<f64>>> {
        let number = |value: &Value| match value {
            Value::F32(number) => Some(f64::from(*number)),
            Value::F64(number) => Some(*number),
            other => numeric::integer(other).map(|number| number as f64),
        };
        match self.get(name) {
            None => Ok(None),
            Some(Value::List(values)) => {
                let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
                let finite = numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite()));
                finite.map(Some).ok_or_else(|| self.misfit(name))
            }
            Some(_) => Err(self.misfit(name)),
        }
    }

    /// A whole number.
    pub(super) fn integer(&self, name: &str, default: i64, allowed: RangeInclusive<i64>) -> Result<i64> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let number = numeric::integer(value).filter(|number| allowed.contains(number));
        number.ok_or_else(|| self.misfit(name))
    }

    /// The option `rounds`.
    pub(super) fn rounds(&self, default: u32) -> Result<u32> {
        Ok(self.integer("rounds", i64::from(default), 1..=super::ROUNDS_MAX)? as u32)
    }

    /// The option `seed`.
    pub(super) fn seed(&self) -> Result<u64> {
        Ok(self.integer("seed", 0, 0..=i64::MAX)? as u64)
    }

    fn labels(&self, name: &str) -> Result<LabelFilter> {
        label_filter(self.view, name, self.text(name)?)
    }

    /// The name of a projection, if the option `projection` is given and what it names fits.
    fn named(&self, orientation: Orientation, weight: Option<KeyId>) -> Result<Option<&'g str>> {
        let Some(name) = self.text("projection")? else { return Ok(None) };
        if let Some(other) = ["vertices", "edges", "directed"].iter().find(|other| self.get(other).is_some()) {
            let message =
                format!("{} has a projection and the option '{other}', which it decides", self.algorithm.name);
            return Err(Error::invalid(message));
        }
        let options = self.projections.named().choice(name)?.options(self.view)?;
        let unfit = |what: &str| {
            let message = format!("{} cannot use the projection '{name}': {what}", self.algorithm.name);
            Err(Error::invalid(message))
        };
        if orientation == Orientation::Undirected && options.orientation == Orientation::Directed {
            return unfit("it needs one that was made with 'directed' false");
        }
        if weight.is_some() && options.weight != weight {
            return unfit("it needs one that was made with the same 'weight'");
        }
        Ok(Some(name))
    }

    /// The property key that an option names.
    pub(super) fn key(&self, name: &str) -> Result<Option<KeyId>> {
        let Some(key) = self.text(name)? else { return Ok(None) };
        let found = self.view.key_of(key).ok_or_else(|| {
            let message = format!(
                "no element has a property '{key}', which is the option '{name}'; mangrove.names lists the keys"
            );
            Error::new(ErrorKind::NotFound, message)
        })?;
        Ok(Some(found))
    }

    /// Work on a projection whose rows the option `directed` chooses.
    pub(super) fn on(
        &self,
        weight: Option<KeyId>,
        work: impl FnOnce(&Projection) -> Result<Output> + 'g,
    ) -> Result<Plan<'g>> {
        let orientation = if self.flag("directed", true)? { Orientation::Directed } else { Orientation::Undirected };
        self.on_rows(orientation, weight, work)
    }

    /// Work on a projection with the vertices and edges of the options.
    pub(super) fn on_rows(
        &self,
        orientation: Orientation,
        weight: Option<KeyId>,
        work: impl FnOnce(&Projection) -> Result<Output> + 'g,
    ) -> Result<Plan<'g>> {
        let reads = match self.named(orientation, weight)? {
            Some(name) => Reads::Named(name),
            None => {
                let (vertices, edges) = (self.labels("vertices")?, self.labels("edges")?);
                let options =
                    ProjectionOptions { vertices, edges, orientation, weight, ..ProjectionOptions::default() };
                Reads::Chosen(options)
            }
        };
        Ok(Plan {
            name: self.algorithm.name,
            reads,
            state: self.algorithm.state,
            results: Box::new(|_| 0),
            work: Box::new(work),
        })
    }

    /// Checks that an option has the id of a vertex, or a list of ids where `lists` says so. The vertices themselves are looked up
    /// when the algorithm runs.
    fn check_ids(&self, name: &str, lists: bool) -> Result<Option<usize>> {
        let is_id = |value: &Value| matches!(value, Value::Vertex(_)) || UserId::from_value(value).is_some();
        match self.get(name) {
            None => Ok(None),
            Some(Value::List(ids)) if lists && ids.iter().all(is_id) => Ok(Some(ids.len())),
            Some(id) if is_id(id) => Ok(Some(1)),
            Some(_) => Err(self.misfit(name)),
        }
    }

    /// Checks that an option has the id of a vertex.
    pub(super) fn needs_id(&self, name: &str) -> Result<()> {
        self.check_ids(name, false)?.map(|_| ()).ok_or_else(|| self.missing(name))
    }

    /// Checks the option `sources`. Returns how many ids it has, if it is given.
    pub(super) fn check_sources(&self) -> Result<Option<usize>> {
        self.check_ids("sources", true)
    }

    /// The position of the vertex whose id is the value of an option.
    pub(super) fn vertex(&self, name: &str, projection: &Projection) -> Result<u32> {
        let value = self.get(name).ok_or_else(|| self.missing(name))?;
        self.position(name, value, projection)
    }

    /// The positions of vertices: the value of an option is an id, or a list of ids. `None` if it is not given.
    pub(super) fn vertices(&self, name: &str, projection: &Projection) -> Result<Option<Vec<u32>>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let ids = match value {
            Value::List(ids) => ids.as_slice(),
            one => std::slice::from_ref(one),
        };
        ids.iter().map(|id| self.position(name, id, projection)).collect::<Result<Vec<_>>>().map(Some)
    }

    /// The positions of the option `sources`, each once; of all vertices if it is not given.
    pub(super) fn sources(&self, projection: &Projection) -> Result<Vec<u32>> {
        let numbering = projection.numbering();
        let all = || numbering.present(0..numbering.positions()).collect();
        let mut sources: Vec<u32> = self.vertices("sources", projection)?.unwrap_or_else(all);
        let mut seen = HashSet::new();
        sources.retain(|source| seen.insert(*source));
        Ok(sources)
    }

    fn position(&self, name: &str, value: &Value, projection: &Projection) -> Result<u32> {
        let vertex = match value {
            Value::Vertex(vertex) => Some(*vertex),
            other => {
                let id = UserId::from_value(other).ok_or_else(|| self.misfit(name))?;
                let mut found = Vec::new();
                self.view.find_vertices(&[id], &mut found)?;
                found.into_iter().flatten().next()
            }
        };
        vertex.and_then(|vertex| projection.numbering().find(vertex)).ok_or_else(|| {
            let message = format!("the graph of {} has no vertex with the id {value:?}", self.algorithm.name);
            Error::new(ErrorKind::NotFound, message)
        })
    }
}

/// The positions of all vertices, in the order of the ids that users see.
pub(super) fn positions_by_id(view: &dyn GraphView, numbering: &Numbering, team: &Team) -> Result<Vec<u32>> {
    let positions: Vec<u32> = numbering.present(0..numbering.positions()).collect();
    let mut ids = Vec::with_capacity(positions.len());
    for some in positions.chunks(IDS_READ) {
        team.check()?;
        let vertices: Vec<VertexId> = some.iter().map(|at| numbering.vertex(*at)).collect();
        view.vertex_user_ids(&vertices, &mut ids)?;
    }
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    let by_id = |one: &u32, other: &u32| compare::order(&ids[*one as usize], &ids[*other as usize]);
    pieces::sort(&mut order, pieces::COMPARED, || team.check(), by_id)?;
    Ok(order.into_iter().map(|place| positions[place as usize]).collect())
}

/// For every position, the vertex of its group whose id is the least in the order that users see. `groups` names each group by one
/// position; holes have no vertex.
///
/// So the name of a group does not depend on the order of positions. Ids of vertices that are alone are not read.
pub(super) fn least_ids(
    view: &dyn GraphView,
    projection: &Projection,
    groups: &[u32],
    team: &Team,
) -> Result<Vec<Option<VertexId>>> {
    let (numbering, parts) = (projection.numbering(), projection.parts());
    let mut sizes = vec![0_u32; groups.len()];
    numbering.present(0..numbering.positions()).for_each(|at| sizes[groups[at as usize] as usize] += 1);
    let of_parts = team.map_parts(parts.len(), |part| -> Result<_> {
        let range = parts[part].start as u32..parts[part].end as u32;
        let positions: Vec<u32> =
            numbering.present(range).filter(|at| sizes[groups[*at as usize] as usize] > 1).collect();
        let vertices: Vec<VertexId> = positions.iter().map(|at| numbering.vertex(*at)).collect();
        let mut ids = Vec::with_capacity(vertices.len());
        view.vertex_user_ids(&vertices, &mut ids)?;
        let mut least = HashMap::new();
        for (at, id) in positions.into_iter().zip(ids) {
            keep_least(&mut least, groups[at as usize], (id, at));
        }
        Ok(least)
    })?;
    drop(sizes);
    let mut least = HashMap::new();
    for of_part in of_parts {
        team.check()?;
        of_part?.into_iter().for_each(|(group, one)| keep_least(&mut least, group, one));
    }
    let name = |at: u32| least.get(&groups[at as usize]).map_or(at, |(_, at)| *at);
    let vertex = |at: u32| numbering.exists(at).then(|| numbering.vertex(name(at)));
    Ok((0..numbering.positions()).map(vertex).collect())
}

fn keep_least(least: &mut HashMap<u32, (Value, u32)>, group: u32, (id, at): (Value, u32)) {
    match least.entry(group) {
        Entry::Vacant(place) => {
            place.insert((id, at));
        }
        Entry::Occupied(mut place) => {
            if compare::order(&id, &place.get().0).is_lt() {
                place.insert((id, at));
            }
        }
    }
}
