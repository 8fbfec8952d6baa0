//! Helpers of a heavy query: tasks of the executors that work off its messages at kernels ([`mangrove_flow::Helper`]).
//!
//! A query begins on one thread. If it is heavy, it is opened: a helper for each further executor joins it. A helper
//! without work looks around for a moment and then waits; the query wakes it when there is work to share.

use std::sync::Arc;

use mangrove_flow::schedule::{Executors, Task, TaskStatus, Tenant, Waker};
use mangrove_flow::{Helper, HelperStatus, OpenRun, Sharers};
use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_steps::{Rows, build};

use super::caller_time::callers_leave_a_core;
use super::instance::{PlanInstance, PlannedQuery};
use crate::gauges::{QueryGauges, TaskGauges};

/// The units of work that a query does before the clock is read for the first time
/// ([`mangrove_flow::NodeRuntime::units`]). Most light queries are over then.
pub(crate) const FIRST_UNITS: u64 = 8;

/// The units of work between two readings of the clock after that.
pub(crate) const UNITS_PER_READING: u64 = 4;

/// The executors of the process.
pub(crate) fn shared_executors() -> Result<Arc<Executors>> {
    Executors::shared().map_err(not_started)
}

/// The error of executor threads that the system did not start.
pub(crate) fn not_started(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the executor threads could not be started: {error}"))
}

/// A database with executors of its own, which start when they are first needed.
pub(crate) trait ExecutorSource: Send + Sync {
    /// Returns the executors.
    fn executors(&self) -> Result<Arc<Executors>>;
}

/// How executors may help a query.
pub(crate) struct Helping {
    /// The database whose executors help; `None`: those of the process. A query then counts no reference to its database,
    /// a counter that all threads would change.
    pub source: Option<Arc<dyn ExecutorSource>>,
    /// The most threads that work on the query; 0 means one for each executor.
    pub workers_max: usize,
    /// The tenant that helpers count for.
    pub tenant: Tenant,
    /// Where helpers show their figures.
    pub gauges: Option<Arc<QueryGauges>>,
}

impl Helping {
    /// Opens the run of an instance for helpers, and starts them. Returns false if no executor or no core is free to help.
    pub fn open(&self, planned: &Arc<PlannedQuery>, instance: &mut PlanInstance) -> Result<bool> {
        let executors = self.source.as_ref().map_or_else(shared_executors, |source| source.executors())?;
        let workers = match self.workers_max {
            0 => executors.count(),
            max => executors.count().min(max),
        };
        // The thread of the query is one of them.
        if workers < 2 || !instance.stealable.contains(&true) {
            return Ok(true);
        }
        if executors.idle() == 0 || !callers_leave_a_core() {
            return Ok(false);
        }
        let run = instance.runtime.open(Sharers { stealable: instance.stealable.clone(), shares_all: false });
        run.expect(workers as u32 - 1);
        for _ in 1..workers {
            executors.spawn_helper(&self.tenant, |waker| {
                let gauges = self.gauges.clone().map(TaskGauges::of_helper);
                let state = HelperState::Joining { planned: planned.clone(), run: run.clone() };
                Box::new(HelperTask { state, waker, gauges })
            });
        }
        Ok(true)
    }
}

/// See the header of this file.
struct HelperTask {
    state: HelperState,
    waker: Waker,
    gauges: Option<TaskGauges>,
}

enum HelperState {
    /// It makes its operators in its first turn.
    Joining { planned: Arc<PlannedQuery>, run: OpenRun<Rows> },
    /// It works.
    Joined(Box<Helper<Rows>>),
}

impl Task for HelperTask {
    fn run(&mut self, quota: usize) -> TaskStatus {
        if let HelperState::Joining { planned, run } = &self.state {
            // The query itself was built from the same plan, so this does not fail.
            let Ok(built) = build(&planned.plan, 1, false) else { return TaskStatus::Done };
            self.state = HelperState::Joined(Box::new(Helper::new(run, built.operators)));
        }
        let HelperState::Joined(helper) = &mut self.state else { return TaskStatus::Done };
        if let Some(gauges) = &mut self.gauges {
            gauges.add_cpu_nanos(self.waker.cpu_nanos());
        }
        let status = {
            let _turn = self.gauges.as_ref().map(TaskGauges::turn);
            helper.turn(quota)
        };
        match status {
            HelperStatus::Busy => return TaskStatus::Again,
            HelperStatus::Over => return TaskStatus::Done,
            HelperStatus::Idle if helper.look() => return TaskStatus::Again,
            HelperStatus::Idle | HelperStatus::Full => {}
        }
        let waker = self.waker.clone();
        if helper.sleep(Box::new(move || waker.wake())) { TaskStatus::Waiting } else { TaskStatus::Again }
    }

    fn is_needed(&self) -> bool {
        matches!(&self.state, HelperState::Joined(helper) if helper.is_needed())
    }
}
