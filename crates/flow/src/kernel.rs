//! The interface of kernels, the operators without state.
//!
//! - **FLOW-18.** A message is worked off in steps, and its cursor travels with it. What a step sends depends on the
//!   message, the cursor and the execution context alone, but for random numbers. So another replica of the kernel may
//!   take the next step, and a kernel may work on other messages in between.

use mangrove_graph::{Need, Result};

use crate::batch::Batch;
use crate::cursor::{Cursor, Detail, Step};
use crate::group::GroupId;
use crate::operator::Output;

/// An operator without state (FLOW-18). Its fields are its structure, the values that a run gives it, and scratch.
pub trait Kernel<B: Batch>: Send {
    /// Begins a run: looks up the values that depend on it, such as parameters.
    fn begin(&mut self, context: &B::Context) -> Result<()> {
        let _ = context;
        Ok(())
    }

    /// Ends a run: drops everything that was read for it.
    fn recycle(&mut self) {}

    /// Returns what the next step of a message will read. Called only if the view may be late; the step is taken while
    /// all of this is at hand (FLOW-31). It names all rows that are left, not those of one step: rows may be cancelled
    /// before the step, and another replica may take it. A kernel that reads in phases takes a step for each.
    fn needs<'a>(&'a mut self, input: &'a B, at: &'a Cursor, context: &'a B::Context) -> Result<Need<'a>> {
        let _ = (input, at, context);
        Ok(Need::Nothing)
    }

    /// Works on a message from the cursor on, and sends results in `group`, the group of the message. A step sends
    /// about one message. After [`Step::Done`] the runtime drops `input` without a look at it.
    fn step(&mut self, input: &mut B, at: &mut Cursor, group: GroupId, out: &mut Output<'_, B>) -> Result<Step>;

    /// Cuts off about half of what is left of a message, for another thread, which begins with the part's first row.
    /// Returns `None` if the rest cannot be cut or is too small: for an operator that cuts between rows, if fewer than
    /// `rows_min` follow the row at hand. This default cuts between rows.
    fn split(
        &mut self,
        input: &mut B,
        at: &mut Cursor,
        rows_min: usize,
        context: &B::Context,
    ) -> Result<Option<Part<B>>> {
        let _ = context;
        if matches!(at.detail, Detail::Held(_)) {
            return Ok(None);
        }
        Ok(Part::cut_off(input, at, rows_min))
    }
}

/// A part of a message that was cut off ([`Kernel::split`]).
pub struct Part<B> {
    /// Its rows.
    pub batch: B,
    /// The position at which it begins.
    pub cursor: Cursor,
}

impl<B: Batch> Part<B> {
    /// Cuts off half of the rows after the row at hand, if there are as many as `rows_min`.
    pub fn cut_off(input: &mut B, at: &Cursor, rows_min: usize) -> Option<Self> {
        let left = input.rows().saturating_sub(at.row as usize + 1);
        if left == 0 || left < rows_min {
            return None;
        }
        let batch = input.split_off(input.rows() - left.div_ceil(2));
        Some(Part { batch, cursor: Cursor::default() })
    }
}
