//! Random cases: a graph, a traversal over it, and what may be expected of the answer.
//!
//! Everything follows from the seed. Traversals are built step by step by a [`chain::Generator`] that knows
//! the kind of object the stream holds at each place, so that most of them succeed, and that keeps book of
//! what the answer depends on:
//!
//! - *ordered*: the sequence of values is fixed (a total order was just made, and only steps that give one
//!   object for one followed). Anything else is a multiset.
//! - *clustered*: equal values stand next to each other, so that it makes no difference to the sequence where a barrier merges
//!   their traversers.
//! - *history*: which way a value came is fixed. Choosing among equal values (`dedup`, a cut after an order)
//!   ends it; the path and labels are not read afterwards.
//! - A cut of an unordered stream, or `dedup().by(…)` of one, is made only at the end of a top-level traversal,
//!   and then only the number of results is compared. Nothing nested is ever cut without a total order.
//! - Lists folded from an unordered stream are compared as multisets, and never compared, grouped or cut by
//!   the traversal itself.
//! - A child of which only the first result counts (`by`, `map`, `choose(f)`) has at most one result.
//!
//! Not generated, since no document fixes the answer or the values have no order of their own: ordering by
//! elements, shuffling, `until` before together with `emit` after it, reading an element after dropping it, `dedup` in the
//! body of a `repeat` other than one that looks for all that can be reached, and without bulk (`withBulk(false)`) anything
//! but what stands behind a `barrier()`.

mod anywhere;
mod branch;
mod chain;
mod configured;
mod convert;
mod effects;
mod filter;
mod forms;
mod function;
mod graph;
mod loops;
mod map;
mod matching;
mod merge;
mod property;
mod reduce;
mod schema;
mod several;
mod source;
mod strategies;
mod structure;
mod write;

use mangrove_gremlin::Bytecode;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::compare::{Determinism, Expectation, Form};
use crate::graph::Graph;
use chain::Generator;

/// What cases look like.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most vertices of a graph.
    pub vertex_count_max: usize,
    /// The most steps of a traversal, nested ones not counted.
    pub step_count_max: usize,
    /// How deep children nest.
    pub depth_max: usize,
    /// The share of cases that write.
    pub write_share: f64,
    /// What of the values comes through from the engine.
    pub form: Form,
}

impl Default for Options {
    fn default() -> Self {
        Options { vertex_count_max: 30, step_count_max: 8, depth_max: 2, write_share: 0.15, form: Form::Whole }
    }
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The graph both sides begin with.
    pub graph: Graph,
    /// What both sides run.
    pub traversal: Bytecode,
    /// How their answers compare.
    pub expectation: Expectation,
    /// Whether the graphs are compared afterwards too.
    pub writes: bool,
}

/// The case of this seed.
pub fn case(seed: u64, options: &Options) -> Case {
    let mut rng = SmallRng::seed_from_u64(seed);
    let graph = graph::random(&mut rng, options.vertex_count_max);
    let writes = rng.random_bool(options.write_share);
    let mut generator = Generator::new(rng, &graph, options);
    let chain = if writes { generator.write() } else { generator.read() };
    let state = chain.state;
    let rows = match (state.count_only, state.ordered) {
        (true, _) => Determinism::CountOnly,
        (false, true) => Determinism::Ordered,
        (false, false) => Determinism::Multiset,
    };
    let (lists_unordered, maps_ordered) = (state.lists_unordered, state.maps_ordered);
    let expectation = Expectation { rows, lists_unordered, maps_ordered, form: options.form };
    let traversal = Bytecode { source: generator.source, steps: chain.steps };
    Case { graph, traversal, expectation, writes }
}
