//! Helpers of a heavy query: tasks of the executors that work off its messages at kernels.
//!
//! A query begins closed, on one thread. When it has processed so many messages that it is not light, it is opened: a
//! helper for each executor joins it ([`mangrove_flow::Helper`]). A helper that finds nothing to do leaves.

use std::sync::Arc;

use mangrove_flow::executor::{Task, TaskStatus};
use mangrove_flow::{Helper, HelperStatus, OpenRun};
use mangrove_steps::{Rows, build};

use super::instance::PlannedQuery;

/// Messages after which a query is opened for helpers.
pub(crate) const OPEN_AFTER_MESSAGES: u64 = 256;

/// Turns without work after which a helper leaves. Each waits for up to a millisecond.
const IDLE_TURNS_MAX: u32 = 20;

/// See the header of this file.
pub(crate) struct HelperTask {
    planned: Arc<PlannedQuery>,
    run: Option<OpenRun<Rows>>,
    helper: Option<Helper<Rows>>,
    idle_turns: u32,
}

impl HelperTask {
    /// A helper that joins in its first turn.
    pub fn new(planned: Arc<PlannedQuery>, run: OpenRun<Rows>) -> Self {
        HelperTask { planned, run: Some(run), helper: None, idle_turns: 0 }
    }

    fn join(&mut self) {
        // An error would have ended the query at home, too, which reports it.
        if let Some(run) = self.run.take()
            && let Ok(built) = build(&self.planned.plan, 1, false)
        {
            self.helper = Helper::join(&run, built.operators).ok().flatten();
        }
    }
}

impl Task for HelperTask {
    fn run(&mut self, quota: usize) -> TaskStatus {
        self.join();
        let Some(helper) = &mut self.helper else { return TaskStatus::Done };
        match helper.turn(quota) {
            HelperStatus::Busy => self.idle_turns = 0,
            HelperStatus::Idle => self.idle_turns += 1,
            HelperStatus::Over => return TaskStatus::Done,
        }
        if self.idle_turns > IDLE_TURNS_MAX { TaskStatus::Done } else { TaskStatus::Again }
    }
}
