//! From traversal to physical plan.
//!
//! Three forms, each in a module of its own: the user's [`Bytecode`](mangrove_gremlin::Bytecode) becomes a
//! [`logical`] traversal, where every step has its meaning and its arguments are checked ([`compile`]);
//! [`rules`] rewrite it into an equivalent, cheaper one; and [`lower`] turns it into a [`physical`] plan, a
//! tree of scopes with operators in it. The logical form is language-neutral: a second language would
//! compile to it and touch nothing further on.
//!
//! Property values, ids and counts may be named parameters: they stay [`Operand`](logical::Operand)s until a plan is run, so that
//! one plan serves every value. [`literals`] takes literals out of a traversal, so that it is planned like one with
//! parameters in their places.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod compile;
pub mod explain;
mod interleaving;
pub mod limits;
pub mod literals;
pub mod logical;
pub mod lower;
mod options;
pub mod physical;
mod physical_rules;
mod purity;
pub mod requirements;
pub mod rules;
pub mod strategies;

pub use compile::compile;
pub use logical::{GRAPH_SERVICES, expression, files, function, upsert};
pub use lower::{GraphFacts, lower, lower_with};
pub use options::PlanOptions;
pub use physical::PhysicalPlan;
