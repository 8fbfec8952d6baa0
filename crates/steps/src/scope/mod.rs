//! Operators that contain pipelines: scopes, and the operators that split and merge a stream.
//!
//! | module | steps | opens a group for | tags inside |
//! |---|---|---|---|
//! | [`branch`] | `where(t)`, `map(t)`, `local(t)`, `coalesce`, … | every message that enters | the index of the row in the message |
//! | [`modulate`] | `by(t)` | every message that enters | the index of the object that `by()` is applied to |
//! | [`ordered`] | row-by-row operators that must keep an order | every message that enters | the index of the row |
//! | [`repeat`] | `repeat` | every iteration | those of the group around it |
//! | [`priority_loop`] | `repeat` with an order by a value | rows with one value | those of the group around it |
//! | [`group`] | `group` | every group around it | the index of the key |
//! | [`split`] | `union`, `choose`, `branch` | nothing: a barrier in a branch sees the whole stream | those of the group around it |
//!
//! The operator of a scope keeps the rows that entered. The rows inside carry a tag, which leads a result back to its
//! row. All of these operators number their ports and edges alike:
//!
//! ```text
//!          port 0  ┌───────────────┐  last edge
//! rows enter ────► │ scope operator│ ────► out of the scope
//!                  └─┬───────────▲─┘
//!             edge i ▼           │ port 1 + i
//!                    └ pipeline i┘
//! ```

mod answers;
pub(crate) mod branch;
pub(crate) mod by_taker;
pub(crate) mod group;
pub(crate) mod loop_shape;
pub(crate) mod modulate;
pub(crate) mod ordered;
pub(crate) mod priority_loop;
mod queue;
mod reached;
pub(crate) mod repeat;
pub(crate) mod split;
