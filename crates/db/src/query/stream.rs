//! Results as a stream.

use std::time::Duration;

#[cfg(feature = "arrow")]
use mangrove_arrow::Results;
use mangrove_graph::{Error, ErrorKind, Result, TraversalMetrics, Value};

#[cfg(feature = "arrow")]
use super::execution::no_columns;
use super::execution::{Execution, TurnOutcome};
use super::helpers::shared_executors;
use super::profile::ResultCounts;
use crate::options::Materialize;

/// The most units of work of a turn.
const TURN_UNITS: usize = 64;

/// The longest time for which the thread waits for helpers before it checks the limits of the query.
const WAIT_MAX: Duration = Duration::from_millis(10);

enum StreamState {
    Running(Execution),
    Over,
}

/// The results of a query, which runs as they are read. Dropping the stream ends the query.
pub struct ResultStream {
    state: StreamState,
    materialize: Materialize,
    /// Results that are ready, in reverse order, each with how many times it occurs.
    ready: Vec<(Value, u64)>,
}

impl ResultStream {
    pub(crate) fn new(execution: Execution, materialize: Materialize) -> Self {
        ResultStream { state: StreamState::Running(execution), materialize, ready: Vec::new() }
    }

    pub(crate) fn finished(mut results: Vec<(Value, u64)>) -> Self {
        results.reverse();
        ResultStream { state: StreamState::Over, materialize: Materialize::Properties, ready: results }
    }

    /// The next batch of results, each with how many times it occurs; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<Vec<(Value, u64)>>> {
        if !self.ready.is_empty() {
            self.ready.reverse();
            return Ok(Some(std::mem::take(&mut self.ready)));
        }
        match self.next_outcome()? {
            TurnOutcome::Results(batch) => Ok(Some(batch)),
            #[cfg(feature = "arrow")]
            TurnOutcome::Columns(_) => Err(no_columns()),
            TurnOutcome::Complete | TurnOutcome::Yielded | TurnOutcome::Waiting => Ok(None),
        }
    }

    /// Runs the query until it has results or is complete.
    fn next_outcome(&mut self) -> Result<TurnOutcome> {
        let StreamState::Running(execution) = &mut self.state else { return Ok(TurnOutcome::Complete) };
        loop {
            match execution.turn(TURN_UNITS, self.materialize) {
                Ok(TurnOutcome::Yielded) => {}
                Ok(TurnOutcome::Waiting) => execution.wait(WAIT_MAX),
                Ok(TurnOutcome::Complete) => {
                    self.state = StreamState::Over;
                    return Ok(TurnOutcome::Complete);
                }
                Ok(results) => return Ok(results),
                Err(error) => {
                    self.end(&error);
                    return Err(error);
                }
            }
        }
    }

    /// As [`ResultStream::next_batch`], after [`ResultStream::take_columns`].
    #[cfg(feature = "arrow")]
    pub(crate) fn next_columns(&mut self) -> Result<Option<Results>> {
        if !self.ready.is_empty() {
            return Ok(self.next_batch()?.map(Results::Values));
        }
        Ok(match self.next_outcome()? {
            TurnOutcome::Results(batch) => Some(Results::Values(batch)),
            TurnOutcome::Columns(batch) => Some(batch),
            TurnOutcome::Complete | TurnOutcome::Yielded | TurnOutcome::Waiting => None,
        })
    }

    /// From here on, [`ResultStream::next_columns`] reads the results.
    #[cfg(feature = "arrow")]
    pub(crate) fn take_columns(&mut self) {
        if let StreamState::Running(execution) = &mut self.state {
            execution.take_columns();
        }
    }

    /// Ends a query that has failed. If it was told to end and holds much memory, an executor frees that: millions of values
    /// take tenths of a second, and the reader of such a query does not wait for them.
    fn end(&mut self, error: &Error) {
        let StreamState::Running(execution) = std::mem::replace(&mut self.state, StreamState::Over) else { return };
        let remains = execution.end();
        if matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Timeout)
            && remains.are_large()
            && let Ok(executors) = shared_executors()
        {
            executors.discard(remains);
        }
    }

    /// Leaves elements that are results themselves as ids, to be read through [`ResultStream::view`], unless results have only
    /// their ids and labels. Map entries stay entries.
    #[cfg(feature = "arrow")]
    pub(crate) fn leave_elements(&mut self) {
        if self.materialize == Materialize::Tokens {
            return;
        }
        self.materialize = Materialize::Properties;
        if let StreamState::Running(execution) = &mut self.state {
            execution.leave_elements();
        }
    }

    /// The graph as the query sees it, until the query is complete.
    #[cfg(feature = "arrow")]
    pub(crate) fn view(&self) -> Option<&dyn mangrove_graph::GraphView> {
        match &self.state {
            StreamState::Running(execution) => execution.view(),
            StreamState::Over => None,
        }
    }

    /// The budget that the query draws on. Results that are ready draw on none.
    #[cfg(feature = "arrow")]
    pub(crate) fn budget(&self) -> mangrove_graph::MemoryBudget {
        match &self.state {
            StreamState::Running(execution) => execution.control().map(|control| control.budget().clone()),
            StreamState::Over => None,
        }
        .unwrap_or_default()
    }

    /// All results, each as often as it occurs.
    pub fn collect(self) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        for item in self {
            all.push(item?);
        }
        Ok(all)
    }

    /// All results, each with how many times it occurs.
    pub fn collect_bulked(mut self) -> Result<Vec<(Value, u64)>> {
        let mut all = Vec::new();
        while let Some(batch) = self.next_batch()? {
            all.extend(batch);
        }
        Ok(all)
    }

    /// Runs the query to its end, drops its results, and returns its profile.
    pub(crate) fn into_profile(mut self) -> Result<TraversalMetrics> {
        let mut results = ResultCounts::default();
        loop {
            let StreamState::Running(execution) = &mut self.state else { return Ok(TraversalMetrics::default()) };
            match execution.turn(TURN_UNITS, Materialize::References)? {
                TurnOutcome::Complete => return Ok(execution.profile(&results)),
                TurnOutcome::Waiting => execution.wait(WAIT_MAX),
                TurnOutcome::Results(batch) => results.add(&batch),
                #[cfg(feature = "arrow")]
                TurnOutcome::Columns(_) => return Err(no_columns()),
                TurnOutcome::Yielded => {}
            }
        }
    }
}

impl Iterator for ResultStream {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((value, times)) = self.ready.last_mut() {
                if *times > 1 {
                    *times -= 1;
                    return Some(Ok(value.clone()));
                }
                return self.ready.pop().map(|(value, _)| Ok(value));
            }
            match self.next_batch() {
                Ok(Some(batch)) => {
                    self.ready = batch;
                    self.ready.retain(|(_, times)| *times > 0);
                    self.ready.reverse();
                }
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
