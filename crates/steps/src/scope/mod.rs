//! Operators that open scopes.
//!
//! The operator of a scope keeps the rows that entered it; what runs inside carries a tag instead, by which
//! results find back to their rows. Inside, an operator's first ports and edges are these:
//!
//! - port 0 is where rows enter, port `1 + i` where the results of the scope's pipeline `i` come back;
//! - edge `i` leads into pipeline `i`, the last edge leads out of the scope.

pub mod branch;
pub mod group;
pub mod known;
pub mod local;
pub mod modulate;
pub mod names;
pub mod ordered;
pub mod queue;
pub mod repeat;
pub mod visited;
