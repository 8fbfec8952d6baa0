//! From bytecode to a logical traversal: the meaning of every step, with its arguments checked.
//!
//! Bytecode is a flat list of names with arguments. This module alone knows which steps Gremlin has, which arguments
//! each takes, and its meaning in terms of [`crate::logical`]. Its result is well-formed: every step has the
//! arguments it needs, and every modulator (`as`, `by`, `from`, `to`, `option`, `with`, `until`, `emit`, `times`)
//! belongs to a step. No later module looks at a name of a step again.
//!
//! A chain is compiled in three passes, each in a module of its own:
//!
//! 1. `connectives` turns infix `and()`/`or()` into the prefix form, and the step labels at the ends of a `where()`
//!    pattern into `select()` and `where(eq())`. Both are rewrites of bytecode, so later passes see one form only.
//! 2. `groups` attaches every modulator to the step before it (for a loop also after it).
//! 3. `steps` gives each group to the module of its family (`sources`, `elements`, `filters`, `maps`, `barriers`,
//!    `branches`, `files`). That reads arguments through `arguments` and modulators through `modulators`. A modulator
//!    that it leaves is an error.
//!
//! - **PLAN-9.** Nested traversals are at most [`NESTING_MAX`] levels deep, so recursion over the result is safe. Names
//!   of labels, keys, step labels and side effects are literal (PLAN-1); values may be parameters. Every count that is
//!   a literal is a 64-bit integer ([`Value::I64`](mangrove_graph::Value::I64)), whatever its width in the bytecode.
//!
//! Not here: whether a label or key exists, the cost or order of evaluation (`rules`), and transactions (`tx` is the
//! server's).

mod algorithms;
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
mod policies;
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

use crate::literals::Literals;
use crate::logical::{ALGORITHM_SERVICES, ALGORITHM_WRITES, Configuration, Step, Traversal};
use crate::{limits, strategies};

/// The most levels of traversals, predicates and lists nested in one another (PLAN-9).
pub const NESTING_MAX: usize = 64;

/// A compiled traversal: its steps and the configuration of its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The configuration of the traversal source.
    pub configuration: Configuration,
    /// The steps.
    pub traversal: Traversal,
}

/// Compiles bytecode into a logical traversal. An error names the step at fault and the way out.
pub fn compile(bytecode: &Bytecode) -> Result<Compiled> {
    compile_with(bytecode, &Literals::default())
}

/// As [`compile`], for bytecode from which these literals were taken out. They remember what was asked about them.
pub fn compile_with(bytecode: &Bytecode, literals: &Literals<'_>) -> Result<Compiled> {
    limits::check_size(bytecode)?;
    let configuration = source::configuration(&bytecode.source, literals)?;
    let mut traversal = if source::joins_infix(&bytecode.source) {
        steps::root(&bytecode.steps, literals)?
    } else {
        steps::root(&connectives::left_alone(&bytecode.steps, 0)?, literals)?
    };
    limits::check_levels(&traversal)?;
    algorithms::configure(&mut traversal, &configuration)?;
    if configuration.read_only {
        check_read_only(&traversal)?;
    }
    if configuration.edge_labels_needed {
        strategies::need_edge_labels(&traversal)?;
    }
    policies::check(&traversal, &configuration)?;
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

/// The name of a step, if it may change something outside the query.
fn mutation(step: &Step) -> Option<&'static str> {
    match step {
        Step::AddVertex { .. } => Some("addV"),
        Step::AddEdge { .. } => Some("addE"),
        Step::Property(_) => Some("property"),
        Step::Drop => Some("drop"),
        // The file that it writes may be in use by others.
        Step::File(_) => Some("io"),
        Step::Upsert(upsert) => Some(match upsert.kind {
            ElementKind::Vertex => "mergeV",
            ElementKind::Edge => "mergeE",
        }),
        Step::Call { service: Some(name), arguments }
            if name.starts_with(ALGORITHM_SERVICES)
                && arguments.iter().all(|(name, _)| name.as_ref().is_some_and(|name| name != ALGORITHM_WRITES)) =>
        {
            None
        }
        // A service may change the database. Only the list of services and the services of the graph never do.
        Step::Call { service: Some(name), .. } if !crate::logical::GRAPH_SERVICES.contains(&name.as_str()) => {
            Some("call")
        }
        _ => None,
    }
}
