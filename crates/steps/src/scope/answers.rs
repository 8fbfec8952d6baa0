//! The answers of a test by vertex, so that the test runs once for each vertex.
//!
//! Some tests (`where()`) depend on the object of a row alone; the planner decides which. Of the rows of one message,
//! only the first one with a vertex, the *leader*, enters the scope. The others, its *followers*, get the answer of the
//! leader. Answers are kept across messages: up to [`ANSWERS_MAX`] of them, until the run ends or a side effect
//! changes, which the test may read. Only vertices have answers.
//!
//! This makes nested tests of a walk affordable: a vertex that many instances reach over many paths is searched from
//! once for each level. If few rows turn out to be equal, the table gives up and costs nothing more.
//!
//! - **STEPS-4.** An answer is kept only if the instance for which it was found was not cancelled, nor its group, and if
//!   no side effect has changed since. A leader is cancelled only together with all its followers.

use mangrove_flow::{OuterTags, Output, TagSet};
use mangrove_graph::{FastMap, Result, VertexId};

use crate::context::execution::ExecutionContext;
use crate::rows::{ObjectColumn, Rows};

/// The maximum number of answers kept.
const ANSWERS_MAX: usize = 1 << 18;

/// The approximate bytes of an answer: vertex, answer, control byte, load factor.
const ANSWER_BYTES: u64 = 20;

/// After this many rows, the table gives up unless it has spared one row in sixteen.
const JUDGED_ROWS: u64 = 1 << 14;

/// A table of at most this many entries is kept for the next run.
const KEPT_MAX: usize = 1 << 12;

/// The answers of one test, by vertex.
#[derive(Default)]
pub(crate) struct TestAnswers {
    answers: FastMap<VertexId, bool>,
    /// The version of the side effects that the answers hold for.
    version: u64,
    /// The leader of each vertex of the current message.
    leaders: FastMap<VertexId, u32>,
    asked: u64,
    spared: u64,
}

/// The rows of a message without a known answer.
#[derive(Default)]
pub(crate) struct AskedRows {
    /// The rows that are tested.
    pub leaders: Vec<u32>,
    /// The rows that get the answer of a leader, and that leader.
    pub followers: Vec<(u32, u32)>,
    version: u64,
}

impl AskedRows {
    /// Those of a batch that has one leader, row 0, and this number of followers.
    pub fn of_leader(&self, followers: u32) -> Self {
        AskedRows { leaders: vec![0], followers: (1..=followers).map(|row| (row, 0)).collect(), version: self.version }
    }

    /// A leader works also for its followers. If one of them belongs to another instance outside, marks that in `outer`,
    /// the instances outside of the rows `entered`: the leader's test goes on when its own instance is cancelled.
    pub fn mark_shared(&self, rows: &Rows, entered: &[u32], outer: &mut [u32]) {
        for (follower, leader) in &self.followers {
            if rows.tag(*follower as usize) != rows.tag(*leader as usize)
                && let Ok(at) = entered.binary_search(leader)
            {
                outer[at] = OuterTags::SEVERAL;
            }
        }
    }
}

impl TestAnswers {
    fn has_given_up(&self) -> bool {
        self.asked >= JUDGED_ROWS && self.spared < self.asked / 16
    }

    /// Looks up the rows of a message. Rows with a known answer enter `hit` if it is yes; the others are returned.
    pub fn ask(&mut self, rows: &Rows, hit: &mut TagSet, context: &ExecutionContext) -> AskedRows {
        let version = context.side_effects.version();
        let vertices = match &rows.objects {
            ObjectColumn::Vertices(vertices) if !self.has_given_up() => vertices,
            _ => return AskedRows { leaders: (0..rows.len() as u32).collect(), followers: Vec::new(), version },
        };
        if self.version != version {
            self.answers.clear();
            self.version = version;
        }
        let mut asked = AskedRows { version, ..AskedRows::default() };
        self.leaders.clear();
        for (row, vertex) in (0..).zip(vertices) {
            match self.answers.get(vertex) {
                Some(true) => {
                    hit.insert(row);
                }
                Some(false) => {}
                None => match self.leaders.entry(*vertex) {
                    hashbrown::hash_map::Entry::Occupied(leader) => asked.followers.push((row, *leader.get())),
                    hashbrown::hash_map::Entry::Vacant(entry) => {
                        entry.insert(row);
                        asked.leaders.push(row);
                    }
                },
            }
        }
        self.asked += vertices.len() as u64;
        self.spared += (vertices.len() - asked.leaders.len()) as u64;
        asked
    }

    /// Keeps the answers of the leaders. They are charged to the query until it ends.
    pub fn learn(&mut self, rows: &Rows, asked: &AskedRows, hit: &TagSet, out: &Output<'_, Rows>) -> Result<()> {
        let ObjectColumn::Vertices(vertices) = &rows.objects else { return Ok(()) };
        // STEPS-4: a side effect may have changed while the test ran.
        if self.version != asked.version || self.has_given_up() {
            return Ok(());
        }
        let before = self.answers.len();
        for row in asked.leaders.iter().take(ANSWERS_MAX.saturating_sub(before)) {
            self.answers.insert(vertices[*row as usize], hit.contains(*row));
        }
        out.control().charge((self.answers.len() - before) as u64 * ANSWER_BYTES)
    }

    /// Ends a run.
    pub fn clear(&mut self) {
        if self.answers.capacity() > KEPT_MAX {
            self.answers = FastMap::default();
        }
        self.answers.clear();
        (self.version, self.asked, self.spared) = (0, 0, 0);
    }
}
