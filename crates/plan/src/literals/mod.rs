//! Literals that a plan is not made for.
//!
//! Clients send values as literals: `has('id', 7)` and `has('id', 8)` are two traversals with one plan. This module
//! takes such literals out of a traversal and numbers them. The remaining traversal is its *shape*. It is planned once,
//! and each run gets the values beside the plan, like parameters.
//!
//! | module | does |
//! |---|---|
//! | `positions` | says which literals are taken out |
//! | `shape` | writes the shape as bytes, the key under which plans are kept |
//! | `take` | takes the literals out |
//! | `facts` | answers questions about the literals, and remembers the answers |
//! | `shown` | shows a shape to people |
//!
//! - **PLAN-3.** Planning learns about a literal that was taken out only by asking for a [`Fact`]. Each answer becomes a
//!   [`Guard`] of the plan. A plan serves the literals that pass all its guards: for them planning would have had the
//!   same answers, and so would have made the same plan.
//!
//! So a rule cannot rely on a literal by accident: [`Operand::Lifted`] has a number and no value. `count().is(0)` has a
//! plan of its own because a rule asks whether the number is 0; nothing asks about the value of `has('id', 7)`.
//!
//! A literal is not taken out if it is a name (a label, a key, a step label) or no plain value. Its place in the list
//! of `positions` decides only how many plans are made, never whether a plan is right.
//!
//! [`Operand::Lifted`]: crate::logical::Operand::Lifted

mod facts;
mod positions;
mod shape;
mod shown;
mod take;
#[cfg(test)]
mod tests;

pub use facts::{Fact, Guard, Literals};
pub use shape::{write_shape, write_whole};
pub use shown::shown;
pub use take::{Lifted, lift};

/// A traversal with more literals than this keeps them. It is data, and hardly ever comes again with other values.
const LITERALS_MAX: usize = 1024;
