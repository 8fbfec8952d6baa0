//! What a run of an algorithm reads, holds and does, after its options have been checked and before the graph is read.

use std::sync::Arc;

use mangrove_flow::Charge;
use mangrove_graph::{GraphView, Result};

use super::output::Output;
use crate::cache::ProjectionCache;
use crate::choice::{ProjectionOptions, StateBytes};
use crate::projection::Projection;
use crate::team::Team;

/// The projection that an algorithm reads.
pub(super) enum Reads<'g> {
    /// The one of this name.
    Named(&'g str),
    /// One with these options.
    Chosen(ProjectionOptions),
}

/// The work of an algorithm on a projection.
type Work<'g> = Box<dyn FnOnce(&Projection) -> Result<Output> + 'g>;

/// A run of an algorithm whose options are allowed.
pub(super) struct Plan<'g> {
    /// The name of the algorithm.
    pub(super) name: &'static str,
    pub(super) reads: Reads<'g>,
    pub(super) state: StateBytes,
    /// The bytes of results that the state does not have, by the number of vertices.
    pub(super) results: Box<dyn Fn(u64) -> u64 + 'g>,
    pub(super) work: Work<'g>,
}

/// The memory that a run of an algorithm needs, in bytes, about: by the newest counts of vertices and edges, and at most what its options
/// allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryEstimate {
    /// The projection.
    pub projection: u64,
    /// True if a projection with the same options is kept: then only the pages that have changed since are read.
    pub is_kept: bool,
    /// The arrays of the algorithm, and its results.
    pub state: u64,
}

impl MemoryEstimate {
    /// What must be there before the run begins.
    pub fn needed(&self) -> u64 {
        self.state.saturating_add(if self.is_kept { 0 } else { self.projection })
    }

    /// Charges the query of a team for the state, until the result is dropped. The projection is drawn from the memory budget while it
    /// is read; here it is only compared with the limits, so that a run that cannot succeed does not begin.
    ///
    /// # Errors
    ///
    /// If the query may not hold as much as is [needed](MemoryEstimate::needed), or the memory budget has no room for it.
    pub fn charge(&self, team: &Team) -> Result<Option<Charge>> {
        drop(team.charge(self.needed())?);
        team.charge(self.state)
    }
}

impl ProjectionOptions {
    /// The memory of a run with a state on a projection with these options.
    pub fn estimate(&self, view: &dyn GraphView, state: StateBytes, projections: &ProjectionCache) -> MemoryEstimate {
        MemoryEstimate {
            projection: self.expected_bytes(view),
            // A transaction that may write reads a projection of its own.
            is_kept: view.shown_commit().is_some() && projections.keeps(self),
            state: self.expected_state(view, state),
        }
    }
}

impl<'g> Plan<'g> {
    /// The same run, with a state that its options decide.
    pub(super) fn with_state(self, state: StateBytes) -> Self {
        Plan { state, ..self }
    }

    /// The same run, with results of so many bytes, by the number of vertices.
    pub(super) fn with_results(self, results: impl Fn(u64) -> u64 + 'g) -> Self {
        Plan { results: Box::new(results), ..self }
    }

    pub(super) fn estimate(&self, view: &dyn GraphView, projections: &ProjectionCache) -> Result<MemoryEstimate> {
        let named;
        let (options, is_named) = match &self.reads {
            Reads::Chosen(options) => (options, false),
            Reads::Named(name) => {
                named = projections.named().choice(name)?.options(view)?;
                (&named, true)
            }
        };
        let mut estimate = options.estimate(view, self.state, projections);
        estimate.is_kept |= is_named;
        estimate.state = estimate.state.saturating_add((self.results)(options.expected_vertices(view)));
        Ok(estimate)
    }

    pub(super) fn run(self, view: &dyn GraphView, projections: &ProjectionCache, team: &Team) -> Result<Output> {
        let _during = self.estimate(view, projections)?.charge(team)?;
        let projection: Arc<Projection> = match &self.reads {
            Reads::Named(name) => projections.named().get(name, view, team)?.projection,
            Reads::Chosen(options) => projections.projection(view, options, team)?,
        };
        team.begin_parts(self.name, "parts");
        (self.work)(&projection)
    }
}
