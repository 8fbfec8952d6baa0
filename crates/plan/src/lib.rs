//! From a traversal to a physical plan, in three forms:
//!
//! | form | module | made by |
//! |---|---|---|
//! | [`Bytecode`](mangrove_gremlin::Bytecode): named instructions | crate `mangrove-gremlin` | a parser or a driver |
//! | logical traversal: steps with their meaning, arguments checked | [`logical`] | [`compile`], then rewritten by `strategies` and [`rules`], and put in a cheap order by `graph` |
//! | physical plan: scopes with operators in them | [`physical`] | [`lower`], then rewritten by `physical_rules` |
//!
//! The logical form is language-neutral: a second language would compile to it and change nothing after it.
//!
//! Property values, ids and counts may be named parameters. They stay [`Operand`](logical::Operand)s until a plan runs,
//! so one plan serves all values. [`literals`] takes literals out of a traversal, which is then planned as if it had
//! parameters in their positions. Estimates may look at their values, and note for which values they hold ([`RunValues`]).
//!
//! This crate reads no graph. Of the database it knows [`GraphFacts`]: the indexes that may be used, facts about edges,
//! statistics, and rows that are drawn from the graph ([`SampleGraph`]).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod compile;
mod connections;
pub mod explain;
mod facts;
mod graph;
mod interleaving;
mod label_sets;
pub mod limits;
pub mod literals;
pub mod logical;
pub mod lower;
mod options;
pub mod physical;
mod physical_rules;
mod purity;
mod requirements;
pub mod rules;
mod sampling;
mod strategies;
mod values;

pub use compile::{compile, compile_with};
pub use connections::{KnownConnections, may_rely_on_connections};
pub use facts::{Figures, GraphFacts, UsableIndex};
pub use graph::{may_order_filters, may_reorder};
pub use logical::{GRAPH_SERVICES, expression, files, function, upsert};
pub use lower::{lower, lower_with, may_choose_indexes};
pub use options::{PlanOptions, Planner};
pub use physical::PhysicalPlan;
pub use purity::TraversalEffects;
pub use sampling::{Begin, Drawn, DrawnEdges, GraphSample, SampleGraph};
pub use values::{CountGuard, CountValues, RunValues};
