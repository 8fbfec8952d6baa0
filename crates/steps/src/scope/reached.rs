//! The vertices that the instances of a loop have reached, if each goes on from a vertex only once.

use std::sync::Arc;

use mangrove_flow::{GroupId, Output, TagSet};
use mangrove_graph::{Result, Value};
use mangrove_plan::logical::Avoids;

use crate::barrier::element_set::ElementSet;
use crate::barrier::seen::SeenRows;
use crate::barrier::shared_seen::{Scratch, SharedSeen};
use crate::rows::held::are_worth_a_pass;
use crate::rows::{ObjectColumn, Rows, Tags, path};

/// The vertices that the instances of a loop have reached.
pub(super) struct Reached {
    vertices: ReachedVertices,
    /// The instances that were cancelled since what they reached was forgotten.
    cancelled: usize,
}

enum ReachedVertices {
    /// On one thread.
    Own(ElementSet),
    /// On several threads.
    Shared(Arc<SharedSeen>),
}

impl Reached {
    pub fn new(is_shared: bool) -> Self {
        let vertices = match is_shared {
            true => ReachedVertices::Shared(Arc::new(SharedSeen::new(SeenRows::default()))),
            false => ReachedVertices::Own(ElementSet::default()),
        };
        Reached { vertices, cancelled: 0 }
    }

    /// The same vertices on another thread.
    pub fn sharing(vertices: Arc<SharedSeen>) -> Self {
        Reached { vertices: ReachedVertices::Shared(vertices), cancelled: 0 }
    }

    /// Returns the rows that reach a vertex for the first time. The results of the tests stay with their rows.
    pub fn admit(&mut self, rows: Rows, scratch: &mut Scratch, out: &Output<'_, Rows>) -> Result<Rows> {
        let (new, bytes) = match &mut self.vertices {
            ReachedVertices::Shared(reached) => reached.admit_vertices(&rows, scratch),
            ReachedVertices::Own(reached) => {
                let before = reached.bytes();
                let mut is_new = |row: usize| match &rows.objects {
                    ObjectColumn::Vertices(vertices) => reached.insert(rows.tag(row), vertices[row].to_bits()),
                    ObjectColumn::Edges(_) | ObjectColumn::Numbers(_) => true,
                    ObjectColumn::Values(values) => match &values[row] {
                        Value::Vertex(vertex) => reached.insert(rows.tag(row), vertex.to_bits()),
                        _ => true,
                    },
                };
                let new: Vec<u32> = (0..rows.len()).filter(|row| is_new(*row)).map(|row| row as u32).collect();
                (new, reached.bytes() - before)
            }
        };
        out.control().charge(bytes)?;
        Ok(rows.keep(&new))
    }

    /// Counts vertices of rows that enter the loop as reached.
    pub fn avoid(&mut self, avoids: Avoids, rows: &Rows, scratch: &mut Scratch, out: &Output<'_, Rows>) -> Result<()> {
        let (tags, objects) = match avoids {
            Avoids::Nothing => return Ok(()),
            Avoids::Vertex => (rows.tags.clone(), rows.objects.clone()),
            Avoids::Path => {
                let (mut tags, mut vertices) = (Vec::new(), Vec::new());
                for (row, path) in rows.path.iter().flatten().enumerate() {
                    for node in path::newest_first(path) {
                        if let Value::Vertex(vertex) = node.object {
                            tags.push(rows.tag(row));
                            vertices.push(vertex);
                        }
                    }
                }
                let tags = if rows.tags == Tags::One { Tags::One } else { Tags::Many(tags) };
                (tags, ObjectColumn::Vertices(vertices))
            }
        };
        self.admit(Rows { tags, ..Rows::of(objects) }, scratch, out).map(|_| ())
    }

    pub fn bytes(&self) -> u64 {
        match &self.vertices {
            ReachedVertices::Own(reached) => reached.bytes(),
            ReachedVertices::Shared(reached) => reached.bytes(),
        }
    }

    /// Forgets what cancelled instances of a group have reached, or everything, and releases the memory. What several
    /// threads share stays until the end of the loop. The instances `tags` are forgotten when enough of the group have
    /// been cancelled.
    pub fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        let ReachedVertices::Own(reached) = &mut self.vertices else { return };
        let before = reached.bytes();
        match tags {
            None => reached.clear(),
            Some(tags) => {
                self.cancelled += tags.len();
                if !are_worth_a_pass(self.cancelled, reached.len()) {
                    return;
                }
                let Some(all) = out.cancelled_tags(group) else { return };
                self.cancelled = 0;
                reached.remove(&all);
            }
        }
        out.control().release(before - reached.bytes());
    }

    /// Returns the vertices in a form for several threads.
    pub fn shared(&mut self) -> Arc<SharedSeen> {
        let shared = match &mut self.vertices {
            ReachedVertices::Own(reached) => Arc::new(SharedSeen::of_vertices(std::mem::take(reached))),
            ReachedVertices::Shared(reached) => return reached.clone(),
        };
        self.vertices = ReachedVertices::Shared(shared.clone());
        shared
    }
}
