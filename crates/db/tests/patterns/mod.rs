//! Patterns: first steps of a traversal that the planner may work off in another order, or count without rows.

mod counts;
mod orders;
mod support;
