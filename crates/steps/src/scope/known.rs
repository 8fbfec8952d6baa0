//! What a test has found out of vertices, so that it is asked of each once.
//!
//! A `where()` whose answer depends on the row's object alone gives equal rows equal answers. Of the rows of one message
//! only the first with a vertex goes through the scope; the others follow it. Across messages answers are kept, as far
//! as room goes, until the run ends or a side effect changes: the test may look at it.
//!
//! This is what makes nested tests of a walk affordable: a vertex that is reached over many ways, by many instances, is
//! searched from once a level. Where few rows are equal it is given up, and costs nothing more.
//!
//! Answers are of vertices only. Whether a test depends on nothing but the object is the planner's word.

use mangrove_flow::{Output, TagSet};
use mangrove_graph::{Result, VertexId};

use crate::barrier::held::FastMap;
use crate::environment::Environment;
use crate::rows::{Column, Rows};

/// The most answers that are kept.
const ANSWERS_MAX: usize = 1 << 18;

/// About what an answer costs: the vertex, the answer, control byte and load factor.
const ANSWER_BYTES: u64 = 20;

/// After this many rows it is judged whether it is worth it: it is where it spares one in sixteen.
const JUDGED_ROWS: u64 = 1 << 14;

/// A table of this many entries is kept for the next run.
const KEPT_MAX: usize = 1 << 12;

/// Answers of a test by vertex.
#[derive(Default)]
pub struct Known {
    answers: FastMap<VertexId, bool>,
    /// The version of the side effects that the answers are of.
    version: u64,
    /// The first row of each vertex of the message that is looked at.
    leaders: FastMap<VertexId, u32>,
    asked: u64,
    spared: u64,
}

/// The rows of a message that are asked for, and those that will have the answer of another row.
#[derive(Default)]
pub struct Asked {
    /// Rows to be tested.
    pub leaders: Vec<u32>,
    /// Rows with the vertex of a row to be tested, and that row.
    pub followers: Vec<(u32, u32)>,
    version: u64,
}

impl Known {
    fn has_given_up(&self) -> bool {
        self.asked >= JUDGED_ROWS && self.spared < self.asked / 16
    }

    /// Sorts the rows of a message: those with a known answer are put into `hit` if it is yes.
    pub fn ask(&mut self, rows: &Rows, hit: &mut TagSet, environment: &Environment) -> Asked {
        let version = environment.side_effects.version();
        let vertices = match &rows.objects {
            Column::Vertices(vertices) if !self.has_given_up() => vertices,
            _ => return Asked { leaders: (0..rows.len() as u32).collect(), followers: Vec::new(), version },
        };
        if self.version != version {
            self.answers.clear();
            self.version = version;
        }
        let mut asked = Asked { version, ..Asked::default() };
        self.leaders.clear();
        for (row, vertex) in (0..).zip(vertices) {
            match self.answers.get(vertex) {
                Some(true) => {
                    hit.insert(row);
                }
                Some(false) => {}
                None => match self.leaders.entry(*vertex) {
                    hashbrown::hash_map::Entry::Occupied(leader) => asked.followers.push((row, *leader.get())),
                    hashbrown::hash_map::Entry::Vacant(place) => {
                        place.insert(row);
                        asked.leaders.push(row);
                    }
                },
            }
        }
        self.asked += vertices.len() as u64;
        self.spared += (vertices.len() - asked.leaders.len()) as u64;
        asked
    }

    /// Takes in the answers of the rows that were tested. They are charged to the query until it ends.
    pub fn learn(&mut self, rows: &Rows, asked: &Asked, hit: &TagSet, out: &Output<'_, Rows>) -> Result<()> {
        let Column::Vertices(vertices) = &rows.objects else { return Ok(()) };
        if self.version != asked.version || self.has_given_up() {
            return Ok(());
        }
        let before = self.answers.len();
        for row in asked.leaders.iter().take(ANSWERS_MAX.saturating_sub(before)) {
            self.answers.insert(vertices[*row as usize], hit.contains(*row));
        }
        out.context().charge((self.answers.len() - before) as u64 * ANSWER_BYTES)
    }

    /// Forgets a run.
    pub fn clear(&mut self) {
        if self.answers.capacity() > KEPT_MAX {
            self.answers = FastMap::default();
        }
        self.answers.clear();
        (self.version, self.asked, self.spared) = (0, 0, 0);
    }
}
