//! From bytecode to a logical traversal: every step's meaning, its arguments checked.
//!
//! Bytecode is a flat list of names with arguments; nothing in it has been understood yet. This module is
//! the one place that knows which steps Gremlin has, what each takes, and what it means in the terms of
//! [`crate::logical`]. What comes out is well-formed: every step has the arguments it needs, every
//! modulator (`as`, `by`, `from`, `to`, `option`, `with`, `until`, `emit`, `times`) belongs to a step, and
//! nothing further on has to look at a name of Gremlin again.
//!
//! A chain is compiled in three passes, each in a module of its own:
//!
//! 1. `connectives` turns infix `and()`/`or()` into the prefix form, and the step labels at the ends of a
//!    `where()` pattern into `select()` and `where(eq())`. Both are rewrites of bytecode, so that
//!    everything behind them sees one form only.
//! 2. `groups` attaches every modulator to the step before it (for a loop also after it).
//! 3. `steps` hands each group to the module of its family (`sources`, `elements`, `filters`, `maps`,
//!    `barriers`, `branches`, `files`), which reads arguments through `arguments` and modulators through
//!    `modulators`, and takes what it understands. A modulator that nobody took is an error.
//!
//! Invariants: nested traversals are at most [`NESTING_MAX`] deep, so recursion over the result is safe;
//! names of labels, keys, step labels and side effects are literal, values may be parameters; every count
//! that is a literal is a 64-bit integer ([`Value::I64`](mangrove_graph::Value::I64)), whatever width it
//! was given in.
//!
//! Not here: whether a label or key exists (it may be made by the same traversal), anything about cost or
//! order of evaluation (`rules`), and transactions (`tx` is for the server).

mod arguments;
mod barriers;
mod branches;
mod carried;
mod connectives;
mod elements;
mod files;
mod filters;
mod functions;
mod groups;
mod known;
mod maps;
mod matching;
mod merges;
mod modulators;
mod predicates;
mod site;
mod source;
mod sources;
mod steps;
#[cfg(test)]
mod tests;

pub use source::strategy_names;

use mangrove_graph::{ElementKind, Error, Result};
use mangrove_gremlin::Bytecode;

use crate::logical::{Configuration, Step, Traversal};
use crate::{limits, strategies};

/// How deep traversals, predicates and lists may nest in one another.
pub const NESTING_MAX: usize = 64;

/// A traversal that has been understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// What the traversal source was configured with.
    pub configuration: Configuration,
    /// The steps.
    pub traversal: Traversal,
}

/// The logical traversal of a bytecode, or an error that names the step at fault and the way out.
pub fn compile(bytecode: &Bytecode) -> Result<Compiled> {
    limits::check_size(bytecode)?;
    let configuration = source::configuration(&bytecode.source)?;
    let mut traversal = if source::joins_infix(&bytecode.source) {
        steps::root(&bytecode.steps)?
    } else {
        steps::root(&connectives::left_alone(&bytecode.steps, 0)?)?
    };
    limits::check_levels(&traversal)?;
    if configuration.read_only {
        check_read_only(&traversal)?;
    }
    if configuration.edge_labels_needed {
        strategies::need_edge_labels(&traversal)?;
    }
    strategies::refuse_keys(&traversal, &configuration.reserved_keys)?;
    for subset in &configuration.subsets {
        limits::check_growth(&traversal, subset.steps_added())?;
        subset.restrict(&mut traversal)?;
    }
    Ok(Compiled { configuration, traversal })
}

fn check_read_only(traversal: &Traversal) -> Result<()> {
    let mut writes = None;
    traversal.visit(&mut |node| {
        if let (None, Some(name)) = (&writes, mutation(&node.step)) {
            writes = Some((name, node.position));
        }
    });
    let Some((name, position)) = writes else {
        return Ok(());
    };
    let place = position.map(|at| format!(" at line {}, column {}", at.line, at.column)).unwrap_or_default();
    Err(Error::unsupported(format!(
        "The provided traversal has a mutating step and thus is not read only: `{name}`{place}; use a source without \
         ReadOnlyStrategy to write"
    )))
}

/// The name of a step that writes.
fn mutation(step: &Step) -> Option<&'static str> {
    match step {
        Step::AddVertex { .. } => Some("addV"),
        Step::AddEdge { .. } => Some("addE"),
        Step::Property(_) => Some("property"),
        Step::Drop => Some("drop"),
        // A file that is written may be another's.
        Step::File(_) => Some("io"),
        Step::Upsert(upsert) => Some(match upsert.kind {
            ElementKind::Vertex => "mergeV",
            ElementKind::Edge => "mergeE",
        }),
        // It may change the database; only the list of services and those of the graph are sure to change nothing.
        Step::Call { service: Some(name), .. } if !crate::logical::GRAPH_SERVICES.contains(&name.as_str()) => {
            Some("call")
        }
        _ => None,
    }
}
