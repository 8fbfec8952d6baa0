//! `pageRank()`, `peerPressure()` and `connectedComponent()`: barriers that run an algorithm when all rows have come, and then let
//! the rows go on.
//!
//! The numbers are those of TinkerPop's vertex programs:
//!
//! | step | value of a vertex |
//! |---|---|
//! | `pageRank()` | its rank after so many rounds, or when all changes of a round have a sum below 10⁻⁵ |
//! | `peerPressure()` | the id of the vertex that its cluster is named after. Of equal votes the least id counts, compared as texts |
//! | `connectedComponent()` | the least id of the vertices that reach it, compared as texts: a text |
//!
//! The graph is read once, into a projection, which the database may keep for later queries. The call that runs the algorithm takes as
//! long as that does. Executors help, and the limits of the query are looked at in each part.

use std::sync::Arc;

use mangrove_analytics::algorithm::pagerank::{self, Dangling, PageRankOptions};
use mangrove_analytics::algorithm::{least_reaching, peer_pressure};
use mangrove_analytics::registry::StateBytes;
use mangrove_analytics::{Orientation, Projection, ProjectionOptions, Team};
use mangrove_flow::{Cursor, GroupId, Operator, Output, Step, TagSet};
use mangrove_graph::{Direction, Error, FastMap, GraphView, Result, Value, VertexId, pieces};
use mangrove_plan::logical::algorithm::{ProgramKind, VertexProgram};

use crate::algorithm::{edges_followed, vertices_seen};
use crate::context::type_name::a_type;
use crate::overlay::{PositionValues, VertexValues};
use crate::rows::held::HeldRows;
use crate::rows::{ObjectColumn, Rows};

/// The largest sum of all changes of a round after which `pageRank()` ends.
const TOLERANCE: f64 = 1e-5;

/// The bytes of the state of an algorithm, about.
const STATE: StateBytes = StateBytes { position: 184, cell: 0 };

/// Vertices whose ids are read at a time.
const IDS_READ: usize = 1 << 14;

/// The bytes of a vertex that traversers are counted at.
const COUNTED_BYTES: u64 = 32;

/// See the header of this file.
pub(crate) struct RunProgram {
    program: VertexProgram,
    held: HeldRows,
    /// Whether rows have come.
    has_rows: bool,
    /// The number of traversers at each vertex, if the algorithm reads it.
    counts: FastMap<VertexId, f64>,
}

impl RunProgram {
    /// Runs a program.
    pub fn new(program: VertexProgram) -> Self {
        RunProgram { program, held: HeldRows::default(), has_rows: false, counts: FastMap::default() }
    }

    fn count(&mut self, rows: &Rows, out: &Output<'_, Rows>) -> Result<()> {
        if let ObjectColumn::Vertices(_) = &rows.objects
            && !self.program.by_traversers
        {
            return Ok(());
        }
        let before = self.counts.len();
        for row in 0..rows.len() {
            match rows.object(row) {
                Value::Vertex(vertex) if self.program.by_traversers => {
                    *self.counts.entry(vertex).or_default() += rows.bulk(row) as f64;
                }
                Value::Vertex(_) => {}
                other => {
                    let (step, other) = (self.program.kind.step(), a_type(&other));
                    return Err(Error::evaluation(format!("{step}() takes vertices, not {other}")));
                }
            }
        }
        // Released with all charges of the query: the counts are needed until its last rows have come.
        out.control().charge((self.counts.len() - before) as u64 * COUNTED_BYTES)
    }

    fn run(&self, out: &Output<'_, Rows>) -> Result<()> {
        let (context, control) = (out.context(), out.control_shared());
        let overlay = context.overlay.as_ref();
        let overlay = overlay.ok_or_else(|| Error::bug("a query with an algorithm has a place for its values"))?;
        let services = context.services.as_ref();
        let services = services.ok_or_else(|| Error::bug("a query with an algorithm has services"))?;
        // Without the values of other algorithms, so that the projection is that of a commit.
        let view = overlay.stored_view();
        let VertexProgram { edges, sees, .. } = &self.program;
        let options = ProjectionOptions {
            vertices: vertices_seen(view, sees),
            edges: edges_followed(view, edges, sees),
            orientation: match edges.direction {
                Direction::Both => Orientation::Undirected,
                Direction::Out | Direction::In => Orientation::Directed,
            },
            ..ProjectionOptions::default()
        };
        let team = services.team(control.clone(), context.workers_max)?;
        let _during = services.estimate(view, &options, STATE).charge(&team)?;
        let projection = services.projection(view, &options, &team)?;
        let projection =
            if edges.direction == Direction::In { Arc::new((*projection).clone().reversed()) } else { projection };
        let found =
            VertexValues { values: self.values(view, &projection, &team)?, numbering: projection.numbering().clone() };
        // Later steps read them until the end of the query.
        control.charge(found.bytes())?;
        overlay.show(&self.program.key, found)
    }

    fn values(&self, view: &dyn GraphView, projection: &Projection, team: &Team) -> Result<PositionValues> {
        let numbering = projection.numbering();
        match self.program.kind {
            ProgramKind::PageRank { damping, rounds } => {
                let options = PageRankOptions {
                    damping,
                    rounds,
                    tolerance: TOLERANCE,
                    dangling: Dangling::Spread,
                    ..PageRankOptions::default()
                };
                let ranks = match self.program.by_traversers {
                    false => pagerank::run(projection, &options, team)?,
                    true => pagerank::run_from(projection, self.numbers_of_traversers(projection), &options, team)?,
                };
                Ok(PositionValues::Numbers(ranks.ranks))
            }
            ProgramKind::PeerPressure { rounds } => {
                let by_text = by_text(view, projection, team)?;
                let mut labels = vec![0; projection.positions()];
                by_text.iter().enumerate().for_each(|(place, (_, _, at))| labels[*at as usize] = place as u64);
                let strengths = match self.program.by_traversers {
                    true => self.numbers_of_traversers(projection),
                    false => {
                        let positions = 0..projection.positions() as u32;
                        positions.map(|at| if numbering.exists(at) { 1.0 } else { 0.0 }).collect()
                    }
                };
                let clusters = peer_pressure::run(projection, &labels, &strengths, rounds, team)?;
                let ids = by_text.into_iter().map(|(_, id, _)| id).collect();
                Ok(PositionValues::Shared(clusters.into_iter().map(|label| label as u32).collect(), ids))
            }
            ProgramKind::ConnectedComponent => {
                let by_text = by_text(view, projection, team)?;
                let order: Vec<u32> = by_text.iter().map(|(_, _, at)| *at).collect();
                let first = least_reaching::run(projection, &order, team)?;
                let mut places = vec![0; projection.positions()];
                order.iter().enumerate().for_each(|(place, at)| places[*at as usize] = place as u32);
                let texts = by_text.into_iter().map(|(text, _, _)| Value::from(text.as_str())).collect();
                Ok(PositionValues::Shared(first.into_iter().map(|at| places[at as usize]).collect(), texts))
            }
        }
    }

    /// The number of traversers at each position.
    fn numbers_of_traversers(&self, projection: &Projection) -> Vec<f64> {
        let numbering = projection.numbering();
        let count = |at: u32| match numbering.exists(at) {
            true => self.counts.get(&numbering.vertex(at)).copied().unwrap_or_default(),
            false => 0.0,
        };
        (0..projection.positions() as u32).map(count).collect()
    }
}

/// The texts of all ids in ascending order, with the ids and the positions of the vertices.
fn by_text(view: &dyn GraphView, projection: &Projection, team: &Team) -> Result<Vec<(String, Value, u32)>> {
    let numbering = projection.numbering();
    let positions: Vec<u32> = numbering.present(0..numbering.positions()).collect();
    let mut ids = Vec::with_capacity(positions.len());
    for some in positions.chunks(IDS_READ) {
        team.check()?;
        let vertices: Vec<VertexId> = some.iter().map(|at| numbering.vertex(*at)).collect();
        view.vertex_user_ids(&vertices, &mut ids)?;
    }
    let text = |id: &Value| match id {
        Value::String(text) => text.to_string(),
        Value::Uuid(uuid) => uuid.to_string(),
        other => mangrove_graph::numeric::integer(other).map_or_else(|| format!("{other:?}"), |id| id.to_string()),
    };
    let mut texts: Vec<Option<(String, Value, u32)>> =
        ids.into_iter().zip(positions).map(|(id, at)| Some((text(&id), id, at))).collect();
    let mut order: Vec<u32> = (0..texts.len() as u32).collect();
    let key = |at: u32| texts[at as usize].as_ref().map(|(text, _, position)| (text, *position));
    pieces::sort(&mut order, pieces::COMPARED, || team.check(), |one, other| key(*one).cmp(&key(*other)))?;
    Ok(order.into_iter().filter_map(|at| texts[at as usize].take()).collect())
}

impl Operator<Rows> for RunProgram {
    fn recycle(&mut self) -> bool {
        self.has_rows = false;
        self.counts = FastMap::default();
        self.held.is_empty()
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.held.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.has_rows |= !batch.is_empty();
        self.count(&batch, out)?;
        self.held.add(group, batch, out)
    }

    /// The first step runs the program. After it, the row of the cursor is 1, and each step sends a batch.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        if at.is_start() {
            at.row = 1;
            if self.has_rows {
                self.run(out)?;
            }
        }
        if self.held.send_next(group, 0, out)? == Step::More {
            return Ok(Step::More);
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}
