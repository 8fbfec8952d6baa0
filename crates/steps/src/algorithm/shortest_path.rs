//! `shortestPath()`: all shortest paths from the vertex of each row to every vertex that it reaches, itself among them.
//!
//! The search from a vertex goes level by level if every edge has the length 1; otherwise it is Dijkstra's. For each vertex it keeps all
//! edges by which a shortest path comes to it, and paths are read off from there. If paths do not show their edges,
//! parallel edges make one path. Edges of the length 0 may form cycles, which no path goes around.
//!
//! A row's results are ordered by their length, and then by the id of the target in the store: the same in every step (FLOW-18).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use mangrove_flow::{BATCH_ROWS, Charge, Cursor, Detail, GroupId, Kernel, Output, QueryControl, Step};
use mangrove_graph::{EdgeId, Error, FastMap, GraphView, PathValue, Result, Value, VertexId};
use mangrove_plan::logical::algorithm::{SearchResults, ShortestPath};

use crate::algorithm::neighborhood::Neighborhood;
use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::rows::{ObjectColumn, Remember, Rows};

/// Vertices between two looks at the limits of the query.
const BETWEEN_LOOKS: usize = 256;

/// How a vertex is reached.
struct Reached {
    distance: f64,
    /// The vertices before it on shortest paths, each with the edge from there.
    from: Vec<(u32, EdgeId)>,
}

/// What a search from a vertex has found.
struct Found {
    source: u32,
    reached: FastMap<u32, Reached>,
    /// All of `reached`, in the order of results.
    order: Vec<u32>,
    _charge: Charge,
}

/// See the header of this file.
pub(crate) struct FindPaths {
    search: ShortestPath,
    remember: Remember,
    known: Option<Neighborhood>,
    /// What the last search has found.
    last: Option<Found>,
}

impl FindPaths {
    /// Searches of this kind.
    pub fn new(search: ShortestPath, remember: Remember) -> Self {
        FindPaths { search, remember, known: None, last: None }
    }

    /// The next results of a row, from the target at `next` on. Returns the target to go on at; `None` if that was the last
    /// one.
    fn results(
        &mut self,
        object: &Value,
        next: usize,
        made: &mut Vec<Value>,
        out: &Output<'_, Rows>,
    ) -> Result<Option<usize>> {
        let (source, target) = self.ends(object)?;
        let (view, control) = (&*out.context().view, out.control_shared());
        let known = self.known.get_or_insert_with(|| Neighborhood::new(view, &self.search));
        let source = known.number(source);
        if self.last.as_ref().is_none_or(|last| last.source != source) {
            self.last = Some(search(known, source, &self.search, view, control)?);
        }
        let found = self.last.as_ref().ok_or_else(|| Error::bug("a search has just been made"))?;
        let mut meter = Meter::new(control);
        if let Some(target) = target {
            let target = known.number(target);
            if found.reached.contains_key(&target) {
                paths(known, found, target, self.search.with_edges, made, &mut meter)?;
            }
            return Ok(None);
        }
        let pairs = self.search.results == SearchResults::Pairs;
        let mut next = next;
        while next < found.order.len() && made.len() < BATCH_ROWS {
            let target = found.order[next];
            match pairs {
                true => {
                    meter.charge(2 * size_of::<Value>())?;
                    let [source, target] = [source, target].map(|at| Value::Vertex(known.vertex(at)));
                    made.push(Value::Entry(Arc::new((source, target))));
                }
                false => paths(known, found, target, self.search.with_edges, made, &mut meter)?,
            }
            next += 1;
        }
        Ok((next < found.order.len()).then_some(next))
    }

    /// The ends of the paths of a row.
    fn ends(&self, object: &Value) -> Result<(VertexId, Option<VertexId>)> {
        match (self.search.results, object) {
            (SearchResults::Paths | SearchResults::Pairs, Value::Vertex(source)) => Ok((*source, None)),
            (SearchResults::PathsOfPairs, Value::Entry(ends)) => match **ends {
                (Value::Vertex(source), Value::Vertex(target)) => Ok((source, Some(target))),
                _ => Err(Error::bug("the ends of a path are two vertices")),
            },
            (_, other) => Err(Error::evaluation(format!("shortestPath() takes vertices, not {}", a_type(other)))),
        }
    }
}

/// Searches from a vertex.
fn search(
    known: &mut Neighborhood,
    source: u32,
    options: &ShortestPath,
    view: &dyn GraphView,
    control: &Arc<QueryControl>,
) -> Result<Found> {
    let mut reached = FastMap::default();
    reached.insert(source, Reached { distance: 0.0, from: Vec::new() });
    let is_near = |distance: f64| options.longest.is_none_or(|longest| distance <= longest);
    let mut edges = 0_u64;
    // Notes a way to a vertex. Returns true if it is shorter than all before.
    let mut note = |reached: &mut FastMap<u32, Reached>, to: u32, distance: f64, from: (u32, EdgeId)| {
        let shortest = reached.entry(to).or_insert(Reached { distance: f64::INFINITY, from: Vec::new() });
        let is_shorter = distance < shortest.distance;
        if is_shorter {
            shortest.distance = distance;
            shortest.from.clear();
        }
        if distance == shortest.distance {
            edges += 1;
            shortest.from.push(from);
        }
        is_shorter
    };
    if !is_near(0.0) {
        reached.clear();
    } else if options.distance.is_none() {
        let (mut level, mut distance) = (vec![source], 1.0);
        while !level.is_empty() && is_near(distance) {
            control.check()?;
            known.read(&level, view, control)?;
            let mut next = Vec::new();
            for &at in &level {
                for way in known.ways(at) {
                    if note(&mut reached, way.to, distance, (at, way.edge)) {
                        next.push(way.to);
                    }
                }
            }
            (level, distance) = (next, distance + 1.0);
        }
    } else {
        // For numbers that are not negative, bits are in the order of the numbers.
        let mut open = BinaryHeap::from([Reverse((0.0_f64.to_bits(), source))]);
        let mut settled = 0_usize;
        while let Some(Reverse((bits, at))) = open.pop() {
            let so_far = f64::from_bits(bits);
            if so_far > reached[&at].distance {
                continue;
            }
            settled += 1;
            if settled.is_multiple_of(BETWEEN_LOOKS) {
                control.check()?;
            }
            known.read(&[at], view, control)?;
            for way in known.ways(at) {
                let distance = so_far + way.length;
                if is_near(distance) && note(&mut reached, way.to, distance, (at, way.edge)) {
                    open.push(Reverse((distance.to_bits(), way.to)));
                }
            }
        }
    }
    let bytes = reached.len() * (size_of::<(u32, Reached)>() + size_of::<u32>());
    let bytes = bytes as u64 + edges * size_of::<(u32, EdgeId)>() as u64;
    let _charge = control.charge_while(bytes)?;
    let mut order: Vec<u32> = reached.keys().copied().collect();
    order.sort_unstable_by_key(|at| (reached[at].distance.to_bits(), known.vertex(*at)));
    Ok(Found { source, reached, order, _charge })
}

/// Adds all shortest paths to a vertex that was reached.
fn paths(
    known: &Neighborhood,
    found: &Found,
    target: u32,
    with_edges: bool,
    made: &mut Vec<Value>,
    meter: &mut Meter<'_>,
) -> Result<()> {
    // From the target backwards: vertices, each with the edge after it, and with the number of ways to it that were tried.
    let mut path: Vec<(u32, Option<EdgeId>, usize)> = vec![(target, None, 0)];
    while let Some((at, _, tried)) = path.last_mut() {
        let at = *at;
        if at == found.source {
            let objects = path.len() * if with_edges { 2 } else { 1 };
            meter.charge(objects * (size_of::<Value>() + size_of::<Vec<Value>>()))?;
            made.push(path_value(known, &path, with_edges));
            path.pop();
            continue;
        }
        let ways = &found.reached[&at].from;
        let Some((before, edge)) = ways.get(*tried).copied() else {
            path.pop();
            continue;
        };
        let is_known = !with_edges && ways[..*tried].iter().any(|(other, _)| *other == before);
        *tried += 1;
        // Only edges of the length 0 lead back to a vertex of the path.
        let is_same_distance = found.reached[&before].distance == found.reached[&at].distance;
        let is_cycle = is_same_distance && path.iter().any(|(other, _, _)| *other == before);
        if !is_known && !is_cycle {
            path.push((before, Some(edge), 0));
        }
        meter.look()?;
    }
    Ok(())
}

/// A path that was found from its end.
fn path_value(known: &Neighborhood, path: &[(u32, Option<EdgeId>, usize)], with_edges: bool) -> Value {
    let mut objects = Vec::with_capacity(path.len() * if with_edges { 2 } else { 1 });
    for (at, edge, _) in path.iter().rev() {
        objects.push(Value::Vertex(known.vertex(*at)));
        objects.extend(edge.filter(|_| with_edges).map(Value::Edge));
    }
    let labels = vec![Vec::new(); objects.len()];
    Value::Path(Arc::new(PathValue { objects, labels }))
}

impl Kernel<Rows> for FindPaths {
    fn recycle(&mut self) {
        (self.known, self.last) = (None, None);
    }

    fn step(&mut self, rows: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        let (mut from, mut made) = (Vec::new(), Vec::new());
        let (mut row, mut next) = (at.row as usize, 0);
        if let Detail::Words([first, _]) = at.detail {
            next = first as usize;
        }
        while row < rows.len() && made.len() < BATCH_ROWS {
            match self.results(&rows.object(row), next, &mut made, out)? {
                Some(rest) => next = rest,
                None => next = 0,
            }
            from.resize(made.len(), row as u32);
            if next == 0 {
                row += 1;
            }
        }
        let mut made = rows.derive(&from, ObjectColumn::from_values(made));
        made.remember(&self.remember);
        for chunk in made.chunks() {
            out.emit(0, group, chunk)?;
        }
        *at = Cursor { row: row as u32, detail: Detail::Words([next as u64, 0]) };
        Ok(if row < rows.len() { Step::More } else { Step::Done })
    }
}
