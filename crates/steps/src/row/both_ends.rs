//! A search for a shortest path to few vertices, from both ends: `repeat(both().simplePath()).until(hasId(x))` with
//! `path().limit(1)`, or with `until(has('name', x))` and an index.
//!
//! Each side goes on breadth first, the far one against the direction of the edges. One level of one side is worked off
//! at a time, of the side whose frontier has fewer edges to follow. The sides meet at an edge:
//!
//! ```text
//!  row's vertex ●──○──○ ─ ─ edge ─ ─ ○──○──● target
//!               near: a levels       far: b levels
//! ```
//!
//! While no edge between the sides is known, no path has `a + b` edges or fewer. So the first edge that is met gives a
//! path of `a + b + 1` edges, which is a shortest one. If either side has met everything in its reach, there is no path.
//! All conditions of edges and vertices hold in both directions, and the targets meet those of the vertices, too.
//!
//! Several targets are the roots of the far side together. A target that was found is no root any more, and the search
//! begins anew if the operators downstream still want rows. So rows come out by the length of their paths.
//!
//! If indexes find more vertices than [`mangrove_plan::physical::TARGETS_MAX`], rows leave along another edge, unchanged,
//! to the search from one end (`build::scopes`).
//!
//! The state of a search is held by the cursor of its message. For one node only.

use mangrove_flow::{BATCH_ROWS, Cursor, Detail, GroupId, HeldDetail, Kernel, Output, Step};
use mangrove_graph::{
    Direction, EdgeId, Error, ExpandRequest, Expansion, FastSet, GraphView, Need, Result, Value, VertexId,
};
use mangrove_plan::logical::{Avoids, Operand};
use mangrove_plan::physical::{BothEnds as Plan, PathBound, TargetAccess};

use crate::context::execution::ExecutionContext;
use crate::row::expand::make_vertices;
use crate::row::filter::Filter;
use crate::rows::elements::step_name;
use crate::rows::path::{PathNode, newest_first};
use crate::rows::{ObjectColumn, Remember, Rows};
use crate::values::names::LabelSets;
use crate::values::predicate::CompiledTest;

mod sides;
mod targets;

use sides::{Reached, Side};
use targets::Targets;

/// The edges that one step follows at most, in messages: about 200 µs.
const CHUNKS_MAX: usize = 16;

/// The vertices of a frontier whose degrees are read to choose a side. Those of a longer one are a sample.
const DEGREES_MAX: usize = 64;

/// The edge to the search from one end, if there is one.
const TO_ONE_SIDED: usize = 0;

/// Searches from the vertices of rows and from targets.
pub(crate) struct BothEnds {
    /// The directions of the near and of the far side.
    directions: [Direction; 2],
    labels: LabelSets,
    over_edges: bool,
    edges: Filter,
    vertices: Filter,
    /// True if there are conditions of edges or vertices.
    tests: bool,
    targets: Targets,
    target: Filter,
    through_targets: bool,
    avoids: Avoids,
    bound: Option<Bound>,
    remember: Remember,
    /// The edge along which paths leave. If it is not the first, rows that are searched for from one end take that.
    paths_to: usize,
    /// True if the view of this run may be late.
    is_late: bool,
    expansion: Expansion,
}

/// What bounds the number of edges, with the values of a run.
enum Bound {
    Times(Operand, i64),
    Loops(CompiledTest),
}

impl Bound {
    /// Returns true if no path has more edges than this.
    fn is_reached(&self, edges: usize) -> bool {
        match self {
            Bound::Times(_, times) => edges as i64 >= (*times).max(1),
            Bound::Loops(test) => edges > 0 && test.holds(&Value::I64(edges as i64)),
        }
    }
}

/// The search of one row.
#[derive(Debug)]
struct Search {
    from: VertexId,
    /// The vertices that the search leaves out of its paths. The targets that it has found are among them, unless paths
    /// may lead through targets.
    avoided: FastSet<VertexId>,
    /// The targets that were not found yet.
    targets: ObjectColumn,
    /// True once the targets are tested and the sides have begun.
    has_begun: bool,
    sides: [Side; 2],
    /// The side whose level is worked off, while it is.
    active: Option<usize>,
    /// The number of levels of both sides together.
    levels: usize,
    met: Met,
}

/// Edges that were followed and not tested yet.
#[derive(Debug, Default)]
struct Met {
    from: Vec<VertexId>,
    edges: ObjectColumn,
    to: ObjectColumn,
}

impl HeldDetail for Search {
    fn bytes(&self) -> u64 {
        let sides: u64 = self.sides.iter().map(Side::bytes).sum();
        let ids = self.avoided.capacity() + self.targets.len() + 3 * self.met.from.len();
        sides + (ids * size_of::<VertexId>()) as u64
    }
}

/// The edge at which the sides meet, from the near one to the far one.
struct Meeting {
    near: VertexId,
    edge: Option<EdgeId>,
    far: VertexId,
}

/// How a search goes on.
enum Next {
    /// With another call.
    Goes,
    Met(Meeting),
    /// There is no path.
    Ends,
}

impl BothEnds {
    /// The search of a plan.
    pub fn new(plan: &Plan, remember: Remember) -> Self {
        BothEnds {
            directions: [plan.direction, plan.direction.reverse()],
            labels: LabelSets::along(plan.labels.clone()),
            over_edges: plan.over_edges,
            edges: Filter::new(&plan.edges),
            vertices: Filter::new(&plan.vertices),
            tests: !plan.edges.is_empty() || !plan.vertices.is_empty(),
            targets: Targets::new(&plan.found_by),
            target: Filter::new(&plan.target),
            through_targets: plan.through_targets,
            avoids: plan.avoids,
            bound: plan.bound.as_ref().map(|bound| match bound {
                PathBound::Times(times) => Bound::Times(times.clone(), 0),
                PathBound::Loops(test) => Bound::Loops(CompiledTest::new(test)),
            }),
            remember,
            paths_to: match plan.found_by {
                TargetAccess::Ids(_) => 0,
                TargetAccess::Index(_) => 1,
            },
            is_late: false,
            expansion: Expansion::default(),
        }
    }

    fn request(&mut self, side: usize, view: &dyn GraphView) -> ExpandRequest {
        ExpandRequest {
            direction: self.directions[side],
            labels: self.labels.filter(view).clone(),
            edges: self.over_edges,
            limit: BATCH_ROWS,
        }
    }

    /// The search of a row, with targets that are not tested yet; `None` if they are too many.
    fn search(&mut self, rows: &Rows, row: usize, context: &ExecutionContext) -> Result<Option<Search>> {
        let Some(mut targets) = self.targets.find(context)? else { return Ok(None) };
        let ObjectColumn::Vertices(ids) = &rows.objects else {
            return Err(Error::bug("a search begins at vertices only"));
        };
        let from = ids[row];
        let mut avoided = FastSet::default();
        if self.avoids == Avoids::Path {
            let path = rows.path(row);
            avoided.extend(newest_first(&path).filter_map(|node| match node.object {
                Value::Vertex(vertex) => Some(vertex),
                _ => None,
            }));
        }
        targets.sort_unstable();
        targets.dedup();
        targets.retain(|target| *target != from && !avoided.contains(target));
        Ok(Some(Search {
            from,
            avoided,
            targets: ObjectColumn::Vertices(targets),
            has_begun: false,
            sides: Default::default(),
            active: None,
            levels: 0,
            met: Met::default(),
        }))
    }

    /// Tests the targets, and begins at both ends.
    fn begin_sides(&mut self, search: &mut Search, context: &ExecutionContext) -> Result<()> {
        for filter in [&mut self.target, &mut self.vertices] {
            if !search.targets.is_empty()
                && let Some(kept) = filter.select(&search.targets, context)?
            {
                search.targets = search.targets.gather(&kept);
            }
        }
        search.begin();
        Ok(())
    }

    /// Goes on with a search: follows a message of edges and tests where they lead. If the view may be late, a call does
    /// one of the two.
    fn go_on(&mut self, search: &mut Search, context: &ExecutionContext) -> Result<Next> {
        if !search.has_begun {
            self.begin_sides(search, context)?;
            return Ok(Next::Goes);
        }
        let side = match search.active {
            Some(side) => side,
            None => {
                let is_over = search.sides.iter().any(|side| side.frontier.is_empty())
                    || self.bound.as_ref().is_some_and(|bound| bound.is_reached(search.levels));
                if is_over {
                    return Ok(Next::Ends);
                }
                let side = self.cheaper(search, context)?;
                search.active = Some(side);
                if self.is_late {
                    return Ok(Next::Goes);
                }
                side
            }
        };
        if search.met.from.is_empty() {
            self.follow(search, side, context)?;
            if self.is_late && self.tests && !search.met.from.is_empty() {
                return Ok(Next::Goes);
            }
        }
        if let Some(meeting) = self.arrive(search, side, context)? {
            return Ok(Next::Met(meeting));
        }
        if search.sides[side].is_worked_off {
            search.sides[side].next_level();
            search.levels += 1;
            search.active = None;
        }
        Ok(Next::Goes)
    }

    /// The side with fewer edges to follow.
    fn cheaper(&mut self, search: &Search, context: &ExecutionContext) -> Result<usize> {
        let mut costs = [0, 0];
        for (at, side) in search.sides.iter().enumerate() {
            costs[at] = side.frontier.len() as u64;
            // What a late view must fetch for that may cost more than it saves.
            if !self.is_late {
                let apart = side.frontier.len().div_ceil(DEGREES_MAX);
                let sample: Vec<VertexId> = side.frontier.iter().step_by(apart).copied().collect();
                let mut degrees = Vec::with_capacity(sample.len());
                let view = &*context.view;
                view.degrees(&sample, self.directions[at], self.labels.filter(view), &mut degrees)?;
                costs[at] = degrees.iter().sum::<u64>() * apart as u64;
            }
        }
        Ok(usize::from(costs[1] < costs[0]))
    }

    /// Follows about a message of edges of the frontier of a side, to vertices that it has not reached.
    fn follow(&mut self, search: &mut Search, side: usize, context: &ExecutionContext) -> Result<()> {
        let view = &*context.view;
        let request = self.request(side, view);
        let Search { from, avoided, sides, met, .. } = search;
        let side = &mut sides[side];
        self.expansion.clear();
        side.is_worked_off = view.expand(&side.frontier, &request, &mut side.cursor, &mut self.expansion)?;
        let Expansion { row, neighbor, edge } = &self.expansion;
        // The far side may reach the row's vertex, where both sides meet, although the row's path is avoided.
        let is_new = |to: &VertexId| !side.reached.contains_key(to) && (to == from || !avoided.contains(to));
        let new: Vec<usize> = (0..neighbor.len()).filter(|at| is_new(&neighbor[*at])).collect();
        met.from = new.iter().map(|at| side.frontier[row[*at] as usize]).collect();
        met.to = ObjectColumn::Vertices(new.iter().map(|at| neighbor[*at]).collect());
        if self.over_edges {
            met.edges = ObjectColumn::Edges(new.iter().map(|at| edge[*at]).collect());
        }
        Ok(())
    }

    /// Comes to the vertices to which edges have led. Returns an edge that leads to the other side, if there is one.
    fn arrive(&mut self, search: &mut Search, side: usize, context: &ExecutionContext) -> Result<Option<Meeting>> {
        let mut met = std::mem::take(&mut search.met);
        if self.over_edges
            && !met.edges.is_empty()
            && let Some(kept) = self.edges.select(&met.edges, context)?
        {
            met = met.gather(&kept);
        }
        let other = &search.sides[1 - side].reached;
        let (ObjectColumn::Vertices(to), edges) = (&met.to, &met.edges) else { return Ok(None) };
        let edge = |at: usize| match edges {
            ObjectColumn::Edges(edges) => edges.get(at).copied(),
            _ => None,
        };
        // What the other side has reached has passed its tests, or needs none.
        if let Some(at) = to.iter().position(|to| other.contains_key(to)) {
            let (here, there) = (met.from[at], to[at]);
            let (near, far) = if side == 0 { (here, there) } else { (there, here) };
            return Ok(Some(Meeting { near, edge: edge(at), far }));
        }
        let kept = if to.is_empty() { None } else { self.vertices.select(&met.to, context)? };
        let Search { sides, .. } = search;
        let mut reach = |at: usize| sides[side].reach(to[at], Reached::From(met.from[at], edge(at)));
        match kept {
            Some(kept) => kept.into_iter().for_each(|at| reach(at as usize)),
            None => (0..to.len()).for_each(reach),
        }
        Ok(None)
    }

    /// Makes the row of a path.
    fn row(&self, search: &Search, meeting: &Meeting, rows: &Rows, row: usize) -> (VertexId, Rows) {
        let (mut objects, target) = search.objects(meeting);
        if !self.over_edges {
            objects.retain(|object| matches!(object, Value::Vertex(_)));
        }
        let mut found = rows.derive_from_one(row as u32, ObjectColumn::Vertices(vec![target]));
        if self.remember.objects
            && let Some(path) = found.path.as_mut().and_then(|paths| paths.first_mut())
        {
            for object in objects {
                *path = PathNode::extend(path.take(), object, &[]);
            }
        }
        (target, found)
    }
}

impl Met {
    fn gather(&self, kept: &[u32]) -> Self {
        Met {
            from: kept.iter().map(|at| self.from[*at as usize]).collect(),
            edges: self.edges.gather(kept),
            to: self.to.gather(kept),
        }
    }
}

impl Search {
    /// Begins at both ends, with the targets that are left.
    fn begin(&mut self) {
        let targets = match &self.targets {
            ObjectColumn::Vertices(targets) => &targets[..],
            _ => &[],
        };
        self.sides = [Side::new(&[self.from]), Side::new(targets)];
        (self.has_begun, self.active, self.levels, self.met) = (true, None, 0, Met::default());
    }

    /// Begins anew without a target.
    fn begin_without(&mut self, target: VertexId, through_targets: bool) {
        if let ObjectColumn::Vertices(targets) = &mut self.targets {
            targets.retain(|other| *other != target);
        }
        if !through_targets {
            self.avoided.insert(target);
        }
        self.begin();
    }

    /// The objects of a path after its first vertex, and the target.
    fn objects(&self, meeting: &Meeting) -> (Vec<Value>, VertexId) {
        let mut objects = Vec::new();
        for (vertex, edge) in self.sides[0].back(meeting.near) {
            objects.push(Value::Vertex(vertex));
            objects.extend(edge.map(Value::Edge));
        }
        objects.reverse();
        objects.extend(meeting.edge.map(Value::Edge));
        objects.push(Value::Vertex(meeting.far));
        let mut at = meeting.far;
        while let Some(Reached::From(next, edge)) = self.sides[1].reached.get(&at) {
            objects.extend(edge.map(Value::Edge));
            objects.push(Value::Vertex(*next));
            at = *next;
        }
        (objects, at)
    }
}

impl Kernel<Rows> for BothEnds {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.is_late = context.view.late().is_some();
        self.targets.begin(context)?;
        match &mut self.bound {
            Some(Bound::Times(operand, times)) => {
                *times = context.resolve_integer(operand, "the argument of times()")?;
            }
            Some(Bound::Loops(test)) => test.begin(context)?,
            None => {}
        }
        [&mut self.edges, &mut self.vertices, &mut self.target].into_iter().try_for_each(|filter| filter.begin(context))
    }

    fn recycle(&mut self) {
        self.targets.recycle();
    }

    fn needs<'a>(&'a mut self, _: &'a Rows, at: &'a Cursor, context: &'a ExecutionContext) -> Result<Need<'a>> {
        let view = &*context.view;
        let held = match &at.detail {
            Detail::Held(held) => (&**held as &dyn std::any::Any).downcast_ref::<Search>(),
            Detail::Start | Detail::Words(_) => None,
        };
        let Some(search) = held else { return Ok(self.targets.needs(context)) };
        if !search.has_begun {
            let of = |filter: &Filter| filter.needs(&search.targets, 0, view);
            return Ok(Need::all([of(&self.target), of(&self.vertices)]));
        }
        if !search.met.from.is_empty() {
            let Met { edges, to, .. } = &search.met;
            return Ok(Need::all([self.edges.needs(edges, 0, view), self.vertices.needs(to, 0, view)]));
        }
        let Some(side) = search.active else { return Ok(Need::Nothing) };
        let request = self.request(side, view);
        let side = &search.sides[side];
        Ok(Need::Lists { of: side.frontier.as_slice().into(), request, from: side.cursor })
    }

    fn step(&mut self, rows: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        make_vertices(rows, step_name(self.directions[0], self.over_edges))?;
        out.control().check()?;
        let row = at.row as usize;
        let context = out.context();
        let (mut search, is_new) = match at.take_held::<Search>() {
            Some(search) => (search, false),
            None => match self.search(rows, row, context)? {
                Some(search) => (Box::new(search), true),
                None => {
                    at.go_to(row + 1);
                    out.emit(TO_ONE_SIDED, group, rows.take(&[row as u32]))?;
                    return Ok(if row + 1 < rows.len() { Step::More } else { Step::Done });
                }
            },
        };
        if search.targets.is_empty() {
            at.go_to(row + 1);
            return Ok(if row + 1 < rows.len() { Step::More } else { Step::Done });
        }
        if self.is_late && is_new {
            at.detail = Detail::Held(search);
            return Ok(Step::More);
        }
        for _ in 0..if self.is_late { 1 } else { CHUNKS_MAX } {
            match self.go_on(&mut search, context)? {
                Next::Goes => {}
                Next::Ends => {
                    at.go_to(row + 1);
                    return Ok(if row + 1 < rows.len() { Step::More } else { Step::Done });
                }
                Next::Met(meeting) => {
                    let (target, found) = self.row(&search, &meeting, rows, row);
                    search.begin_without(target, self.through_targets);
                    out.emit(self.paths_to, group, found)?;
                    break;
                }
            }
        }
        at.detail = Detail::Held(search);
        Ok(Step::More)
    }
}
