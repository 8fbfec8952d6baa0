//! Random cases: a graph, a traversal over it, and how its answer may be compared.
//!
//! The seed determines everything. A [`chain::Generator`] builds traversals step by step. It knows the kind of object
//! in the stream at each position, so most traversals succeed. It also records what the answer depends on:
//!
//! - *ordered*: the order of values is determined: a step established a total order, and only steps that return one
//!   object for one object followed. Any other stream is compared as a multiset.
//! - *clustered*: equal values are adjacent, so merging their traversers at a barrier does not change the order.
//! - *history*: the path of a value is determined. A choice among equal values (`dedup`, or a cut after an order) ends
//!   this, and then no step reads paths or labels.
//! - A cut of an unordered stream, or `dedup().by(…)` of one, occurs only at the end of a top-level traversal, and then
//!   only the number of results is compared. No nested stream is cut without a total order.
//! - Lists that were folded from an unordered stream are compared as multisets, and the traversal itself never
//!   compares, groups or cuts them.
//! - A child of which only the first result counts (`by`, `map`, `choose(f)`) has at most one result.
//!
//! Not generated, because no document determines the answer or the values have no order:
//!
//! - ordering by elements, and shuffling;
//! - `until` before a `repeat` together with `emit` after it;
//! - reading an element after it was dropped;
//! - `dedup` in the body of a `repeat`, except to find all that is reachable;
//! - without bulk (`withBulk(false)`), any step that does not follow a `barrier()`.

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

/// The shape of the cases.
#[derive(Clone, Debug)]
pub struct Options {
    /// The largest number of vertices of a graph.
    pub vertex_count_max: usize,
    /// The largest number of steps of a traversal, without nested ones.
    pub step_count_max: usize,
    /// The largest depth of nested children.
    pub depth_max: usize,
    /// The fraction of cases that write.
    pub write_share: f64,
    /// How much of a value survives the engine's encoding.
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
    /// The graph with which both sides begin.
    pub graph: Graph,
    /// The traversal that both sides run.
    pub traversal: Bytecode,
    /// The form of comparison that the two answers allow.
    pub expectation: Expectation,
    /// True if the graphs are compared afterwards, too.
    pub writes: bool,
}

/// The case of a seed.
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
