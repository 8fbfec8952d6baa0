//! The cursor of a message that is worked off in part.
//!
//! - **FLOW-19.** The rows before [`Cursor::row`] are done. A cancellation drops them together with the rows of
//!   cancelled instances. If the first row that is left is another one than before, it begins from its start.

use std::any::Any;

/// How far a message, or the end of a group, is worked off.
#[derive(Debug, Default)]
pub struct Cursor {
    /// The first row that is not done.
    pub row: u32,
    /// The position inside that row.
    pub detail: Detail,
}

/// A position inside a row. Its meaning is up to the operator.
#[derive(Debug, Default)]
pub enum Detail {
    /// The beginning.
    #[default]
    Start,
    /// Two numbers.
    Words([u64; 2]),
    /// What the operator has found and not sent yet.
    Held(Box<dyn HeldDetail>),
}

/// A detail of a cursor that holds more than two numbers; also a part of an end ([`crate::Output::hand_out`]).
pub trait HeldDetail: Any + Send + std::fmt::Debug {
    /// Returns about how many bytes it holds.
    fn bytes(&self) -> u64;

    /// Rows of cancelled instances have been dropped; `kept` are the former numbers of those that are left. The first
    /// of them is still the one at hand.
    fn keep(&mut self, kept: &[u32]) {
        let _ = kept;
    }
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a message that is not worked off must come again"]
pub enum Step {
    /// The message is worked off.
    Done,
    /// Work is left from the cursor on. The operators downstream first process what was sent.
    More,
}

impl Cursor {
    /// Returns true if no work has been done.
    pub fn is_start(&self) -> bool {
        self.row == 0 && matches!(self.detail, Detail::Start)
    }

    /// Takes the held detail out, if it is of this type. The cursor is then at the beginning of its row.
    pub fn take_held<T: HeldDetail>(&mut self) -> Option<Box<T>> {
        match std::mem::take(&mut self.detail) {
            Detail::Held(held) => (held as Box<dyn Any>).downcast().ok(),
            other => {
                self.detail = other;
                None
            }
        }
    }

    /// Goes to the beginning of a row.
    pub fn go_to(&mut self, row: usize) {
        *self = Cursor { row: row as u32, detail: Detail::Start };
    }

    /// For [`crate::Batch::discard`]: only these rows are left, in ascending order, none of them before the cursor (FLOW-19).
    pub fn keep(&mut self, kept: &[u32]) {
        if kept.first() != Some(&self.row) {
            self.detail = Detail::Start;
        } else if let Detail::Held(held) = &mut self.detail {
            held.keep(kept);
        }
        self.row = 0;
    }

    /// Returns about how many bytes the cursor holds.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.detail {
            Detail::Start | Detail::Words(_) => 0,
            Detail::Held(held) => held.bytes(),
        }
    }
}
