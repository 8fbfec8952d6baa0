//! The vertices that the instances of a loop have reached, if each goes on from a vertex only once.

use std::sync::Arc;

use mangrove_flow::{Output, TagSet};
use mangrove_graph::{Result, Value};

use crate::barrier::element_set::ElementSet;
use crate::barrier::seen::SeenRows;
use crate::barrier::shared_seen::{Scratch, SharedSeen};
use crate::rows::{ObjectColumn, Rows};

/// The vertices that the instances of a loop have reached.
pub(super) enum Reached {
    /// On one thread.
    Own(ElementSet),
    /// On several threads.
    Shared(Arc<SharedSeen>),
}

impl Reached {
    pub fn new(is_shared: bool) -> Self {
        match is_shared {
            true => Reached::Shared(Arc::new(SharedSeen::new(SeenRows::default()))),
            false => Reached::Own(ElementSet::default()),
        }
    }

    /// Returns the rows that reach a vertex for the first time. The results of the tests stay with their rows.
    pub fn admit(&mut self, rows: Rows, scratch: &mut Scratch, out: &Output<'_, Rows>) -> Result<Rows> {
        let (new, bytes) = match self {
            Reached::Shared(reached) => reached.admit_vertices(&rows, scratch),
            Reached::Own(reached) => {
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

    pub fn bytes(&self) -> u64 {
        match self {
            Reached::Own(reached) => reached.bytes(),
            Reached::Shared(reached) => reached.bytes(),
        }
    }

    /// Forgets what these instances have reached, or all. Returns the bytes of what it forgot. What several threads share
    /// stays until the end of the loop.
    pub fn forget(&mut self, tags: Option<&TagSet>) -> u64 {
        let Reached::Own(reached) = self else { return 0 };
        let before = reached.bytes();
        match tags {
            None => reached.clear(),
            Some(tags) => reached.remove(tags),
        }
        before - reached.bytes()
    }

    /// Returns the number of vertices that can be forgotten.
    pub fn len(&self) -> usize {
        match self {
            Reached::Own(reached) => reached.len(),
            Reached::Shared(_) => 0,
        }
    }

    /// Returns the vertices in a form for several threads.
    pub fn shared(&mut self) -> Arc<SharedSeen> {
        let shared = match self {
            Reached::Own(reached) => Arc::new(SharedSeen::of_vertices(std::mem::take(reached))),
            Reached::Shared(reached) => return reached.clone(),
        };
        *self = Reached::Shared(shared.clone());
        shared
    }
}
