//! The plain interpreter: every step takes a list of traversers and returns a list of traversers.
//!
//! A traverser is an object with its path, its loop counters and its sack; its bulk is always 1. Each step runs over
//! the whole stream before the next one begins. So every step is a barrier, and a step that writes has written
//! everything before the next one reads. Nested traversals run in one of two ways (TinkerPop's words):
//!
//! - a *local* child (`by`, `where`, `not`, `and`, `or`, `map`, `flatMap`, `local`, `coalesce`, `optional`,
//!   `sideEffect`, the tests of `choose`, `until`, `emit`) runs once for each traverser;
//! - a *global* child (`union`, the branches of `choose`, the body of `repeat`) runs once for the whole stream. A
//!   barrier in it receives the whole stream, or in `repeat` the whole iteration.
//!
//! Comparison and arithmetic come from `mangrove_graph`. Everything else is written from the documentation of TinkerPop
//! 3.8, without optimization. A budget of traversers and iterations bounds every run; a run that exceeds it ends with
//! [`Failure::TooBig`] and has no answer.

mod branch;
mod by;
mod convert;
mod element;
mod filter;
mod formula;
mod function;
mod group;
mod history;
mod local;
mod matching;
mod navigate;
mod predicate;
mod property;
mod reduce;
mod result;
mod sack;
mod service;
mod source;
mod step;
mod structure;
mod traverser;
mod upsert;
mod write;

use std::collections::BTreeMap;

use mangrove_graph::{Error, ErrorKind, GraphValue, Tree, Value};
use mangrove_gremlin::{Argument, Bytecode};
use smol_str::SmolStr;

use crate::graph::Graph;
use source::Source;
use step::Step;
pub(crate) use traverser::Traverser;

/// The number of traversers that a run may make, all steps together.
const TRAVERSER_COUNT_MAX: usize = 150_000;
/// The number of iterations of one `repeat`.
const LOOP_COUNT_MAX: u32 = 40;
/// The nesting depth of children.
const DEPTH_MAX: usize = 50;

/// The cause for which a run has no answer.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The traversal fails, so the engine must fail, too.
    Error(Error),
    /// The run exceeded the budget, so the case says nothing about the engine.
    TooBig,
    /// This interpreter does not support the traversal, so the case says nothing about the engine.
    Unsupported(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if error.kind() == ErrorKind::Unsupported {
            Failure::Unsupported(error.message().into())
        } else {
            Failure::Error(error)
        }
    }
}

pub(crate) type Outcome<T> = std::result::Result<T, Failure>;

/// The traversers between two steps.
pub(crate) type Stream = Vec<Traverser>;

/// Traversers by key, keys in order of appearance.
pub(crate) type Groups = Vec<(Value, Stream)>;

pub(crate) fn unsupported<T>(what: impl Into<String>) -> Outcome<T> {
    Err(Failure::Unsupported(what.into()))
}

pub(crate) fn wrong<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Failure::Error(Error::evaluation(message)))
}

/// Runs one traversal over one graph.
pub struct Interpreter<'g> {
    graph: &'g mut Graph,
    source: Source,
    side_effects: BTreeMap<SmolStr, Value>,
    /// The traversers of each key that a `group` into a side effect has met so far.
    groups: BTreeMap<SmolStr, Groups>,
    /// Objects that the `dedup()`s of the innermost loop have met, by step.
    met: BTreeMap<usize, Vec<Vec<Value>>>,
    traversers_left: usize,
    depth: usize,
    merging: Merging,
}

/// The position at which equal traversers continue after a `barrier()`. The language specifies neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// Each traverser keeps its position.
    Apart,
    /// All continue at the position of the first, as if the barrier merged them.
    Clustered,
}

impl<'g> Interpreter<'g> {
    /// Runs a traversal to its end; elements in the result are detached.
    pub fn run(graph: &'g mut Graph, traversal: &Bytecode) -> Result<Vec<Value>, Failure> {
        Self::run_with(graph, traversal, Merging::Apart)
    }

    /// Like [`run`](Self::run), with this behavior of barriers.
    pub fn run_with(graph: &'g mut Graph, traversal: &Bytecode, merging: Merging) -> Result<Vec<Value>, Failure> {
        let source = Source::of(&traversal.source)?;
        if source.read_only && writes(traversal) {
            return Err(Failure::Error(Error::invalid("a traversal that only reads has a step that writes")));
        }
        source.verify(traversal)?;
        let mut this = Interpreter {
            graph,
            source,
            side_effects: BTreeMap::new(),
            groups: BTreeMap::new(),
            met: BTreeMap::new(),
            traversers_left: TRAVERSER_COUNT_MAX,
            depth: 0,
            merging,
        };
        let traversal = step::prefixed(traversal);
        this.declare_side_effects(&traversal);
        for (name, value) in std::mem::take(&mut this.source.side_effects) {
            this.side_effects.insert(name, value);
        }
        let sack = this.source.sack.clone();
        let out = this.child(&traversal, vec![Traverser { sack, ..Traverser::unborn() }])?;
        out.into_iter().map(|t| this.detach(&t.value)).collect()
    }

    /// A side effect exists, empty, as soon as the traversal has the step that fills it.
    fn declare_side_effects(&mut self, traversal: &Bytecode) {
        for instruction in &traversal.steps {
            if let Some(Argument::Value(Value::String(key))) = instruction.arguments.first() {
                match instruction.name.as_str() {
                    "aggregate" | "store" => {
                        drop(self.side_effects.insert(key.clone(), Value::BulkSet(Vec::new().into())))
                    }
                    "group" | "groupCount" => drop(self.side_effects.insert(key.clone(), Value::map(Vec::new()))),
                    "tree" => drop(self.side_effects.insert(key.clone(), Value::Tree(Tree::default().into()))),
                    "subgraph" => {
                        drop(self.side_effects.insert(key.clone(), Value::Graph(GraphValue::default().into())));
                    }
                    _ => {}
                }
            }
            for argument in &instruction.arguments {
                if let Argument::Traversal(nested) = argument {
                    self.declare_side_effects(nested);
                }
            }
        }
    }

    /// Runs a traversal over a stream.
    fn child(&mut self, traversal: &Bytecode, input: Stream) -> Outcome<Stream> {
        if self.depth >= DEPTH_MAX {
            return Err(Failure::TooBig);
        }
        self.depth += 1;
        let steps = step::assemble(traversal)?;
        let out = steps.iter().try_fold(input, |stream, step| self.step(step, stream));
        self.depth -= 1;
        out
    }

    /// Runs a local child for one traverser.
    fn local_child(&mut self, traversal: &Bytecode, traverser: &Traverser) -> Outcome<Stream> {
        let outer = std::mem::take(&mut self.met);
        let out = self.child(traversal, vec![traverser.clone()]);
        self.met = outer;
        out
    }

    /// Returns true if a local child has a result.
    fn test(&mut self, traversal: &Bytecode, traverser: &Traverser) -> Outcome<bool> {
        Ok(!self.local_child(traversal, traverser)?.is_empty())
    }

    fn step(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let mut out = self.dispatch(step, input)?;
        self.traversers_left = self.traversers_left.checked_sub(out.len()).ok_or(Failure::TooBig)?;
        // The labels of a step go to the current object of each traverser.
        for traverser in &mut out {
            traverser.label(&step.labels);
            if traverser.sack.is_none() {
                traverser.sack.clone_from(&self.source.sack);
            }
        }
        Ok(out)
    }

    fn dispatch(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        match step.name {
            "V" | "E" => self.start_elements(step, input),
            "inject" => self.inject(step, input),
            "out" | "in" | "both" | "outE" | "inE" | "bothE" => self.flat_map(input, |this, t| this.expand(step, t)),
            "outV" | "inV" | "bothV" | "otherV" => self.flat_map(input, |this, t| this.edge_ends(step, t)),

            // The name in TinkerPop 3.7.
            "store" => self.each(input, |this, t| this.aggregate(step, vec![t])),
            "sack" => self.each(input, |this, t| this.sack(step, t)),

            "values" | "properties" => self.flat_map(input, |this, t| this.property_objects(step, t)),
            "id" | "label" | "key" | "value" => self.map(input, |this, t| this.token_step(step, t)),
            "valueMap" => self.map(input, |this, t| this.value_map(step, t)),
            "elementMap" => self.map(input, |this, t| this.element_map(step, t)),
            "propertyMap" => self.map(input, |this, t| this.property_map(step, t)),
            "element" => self.map(input, |this, t| this.owner(&t.value)),
            "constant" => self.map(input, |_, _| Ok(Some(step.value(0)?.clone()))),
            "loops" => self.map(input, |_, t| t.loop_count(step.name_argument(0)?).map(|n| Some(Value::I32(n)))),
            "unfold" => self.unfold(input),

            "has" | "hasLabel" | "hasId" | "hasKey" | "hasValue" | "hasNot" => {
                self.filter(input, |this, t| this.has(step, t))
            }
            "is" => self.filter(input, |this, t| this.argument_matches(step.argument(0)?, &t.value)),
            "where" | "filter" => self.filter(input, |this, t| this.where_step(step, t)),
            "not" => self.filter(input, |this, t| Ok(!this.test(step.traversal(0)?, t)?)),
            "and" | "or" => self.filter(input, |this, t| this.connective(step, t)),
            "simplePath" | "cyclicPath" => self.filter(input, |this, t| this.path_repeats(step, t)),
            "none" if !step.arguments.is_empty() => self.filter(input, |this, t| this.none_of(step, t)),
            "none" | "discard" => Ok(Vec::new()),
            "sample" if step.is_local() => self.map(input, |_, t| local::sample(step, &t.value)),
            "dedup" if step.is_local() => self.map(input, |_, t| local::dedup(&t.value)),
            "dedup" => self.dedup(step, input),
            "limit" | "range" | "skip" | "tail" if step.is_local() => {
                self.map(input, |_, t| local::range(step, &t.value))
            }
            "limit" | "range" | "skip" | "tail" => filter::range(step, input),
            "order" if step.is_local() => self.map(input, |this, t| this.order_local(step, t)),
            "order" => self.order(step, input),
            // No test runs long enough to reach a time limit.
            "identity" | "start" | "timeLimit" => Ok(input),
            "barrier" => self.barrier(step, input),
            "sample" => filter::sample(step, input),
            "coin" => filter::coin(step, input),
            "fail" if input.is_empty() => Ok(input),
            "fail" => wrong("fail() was reached"),

            "count" | "sum" | "min" | "max" | "mean" if step.is_local() => {
                self.map(input, |_, t| local::reduce(step.name, &t.value))
            }
            "fold" if !step.arguments.is_empty() => reduce::fold_from(step, input),
            "count" | "sum" | "min" | "max" | "mean" | "fold" => reduce::reduce(step, input),
            "group" | "groupCount" => self.group_step(step, input),
            "aggregate" => self.aggregate(step, input),
            "cap" => self.cap(step),
            "tree" => self.tree(step, input),
            "subgraph" => self.subgraph(step, input),

            "path" => self.map(input, |this, t| this.path(step, t)),
            "select" => self.map(input, |this, t| this.select(step, t)),
            "project" => self.map(input, |this, t| this.project(step, t)),
            "match" => self.each(input, |this, t| this.match_step(step, &t)),

            "map" => self.map(input, |this, t| Ok(first(this.local_child(step.traversal(0)?, t)?))),
            "flatMap" => self.flat_map(input, |this, t| Ok(values(this.local_child(step.traversal(0)?, t)?))),
            "local" => self.each(input, |this, t| this.local_child(step.traversal(0)?, &t)),
            "sideEffect" => self.each(input, |this, t| {
                this.local_child(step.traversal(0)?, &t)?;
                Ok(vec![t])
            }),
            "coalesce" => self.flat_map(input, |this, t| this.coalesce(step, t)),
            "optional" => self.each(input, |this, t| {
                let out = this.local_child(step.traversal(0)?, &t)?;
                Ok(if out.is_empty() { vec![t] } else { out })
            }),
            "union" => self.union(step, input),
            "choose" => self.choose(step, input),
            "branch" => self.branch(step, input),
            "repeat" => self.repeat(step, input),

            "asString" | "length" | "toUpper" | "toLower" | "trim" | "lTrim" | "rTrim" | "replace" | "split"
            | "substring" => self.map(input, |_, t| function::of_text(step, &t.value)),
            "concat" => self.map(input, |this, t| this.concat(step, t)),
            "reverse" => self.map(input, |_, t| function::reverse(&t.value)),
            "combine" | "conjoin" | "merge" | "difference" | "intersect" | "disjunct" | "product" => {
                self.map(input, |this, t| this.of_collection(step, t))
            }
            "index" => self.map(input, |_, t| function::index(&t.value)),
            "all" | "any" => self.filter(input, |_, t| function::of_members(step, &t.value)),
            "math" => self.map(input, |this, t| this.math(step, t)),
            "format" => self.map(input, |this, t| this.format(step, t)),
            "asNumber" => self.map(input, |_, t| convert::as_number(step, &t.value)),
            "asBool" => self.map(input, |_, t| convert::as_bool(&t.value)),
            "asDate" => self.map(input, |_, t| convert::as_date(&t.value)),
            "dateAdd" => self.map(input, |_, t| convert::date_add(step, &t.value)),
            "dateDiff" => self.map(input, |this, t| match this.given(step.argument(0)?, t)? {
                Some(other) => convert::date_difference(&t.value, &other),
                None => unsupported("dateDiff() with a child without result"),
            }),
            "call" => self.flat_map(input, |this, t| this.call(step, t)),

            "mergeV" => self.each(input, |this, t| this.merge_vertex(step, &t)),
            "mergeE" => self.each(input, |this, t| this.merge_edge(step, &t)),
            "addV" => self.each(input, |this, t| this.add_vertex(step, t)),
            "addE" => self.each(input, |this, t| this.add_edge(step, t)),
            "property" => self.each(input, |this, t| this.property(step, t)),
            "drop" => self.drop_elements(input),
            other => unsupported(format!("step {other}()")),
        }
    }

    /// A step that returns any number of traversers for each, and sets their paths itself.
    fn each(&mut self, input: Stream, mut f: impl FnMut(&mut Self, Traverser) -> Outcome<Stream>) -> Outcome<Stream> {
        let mut out = Vec::new();
        for traverser in input {
            out.extend(f(self, traverser)?);
        }
        Ok(out)
    }

    /// A step that returns any number of objects for each traverser; each object extends the path.
    fn flat_map(
        &mut self,
        input: Stream,
        mut f: impl FnMut(&mut Self, &Traverser) -> Outcome<Vec<Value>>,
    ) -> Outcome<Stream> {
        self.each(input, |this, t| Ok(f(this, &t)?.into_iter().map(|value| t.moved_to(value)).collect()))
    }

    /// A step that returns at most one object for each traverser.
    fn map(
        &mut self,
        input: Stream,
        mut f: impl FnMut(&mut Self, &Traverser) -> Outcome<Option<Value>>,
    ) -> Outcome<Stream> {
        self.flat_map(input, |this, t| Ok(f(this, t)?.into_iter().collect()))
    }

    /// A step that keeps or drops each traverser.
    fn filter(&mut self, input: Stream, mut f: impl FnMut(&mut Self, &Traverser) -> Outcome<bool>) -> Outcome<Stream> {
        self.each(input, |this, t| Ok(if f(this, &t)? { vec![t] } else { Vec::new() }))
    }
}

/// Returns true if a step at any depth writes.
fn writes(traversal: &Bytecode) -> bool {
    traversal.steps.iter().any(|instruction| {
        matches!(instruction.name.as_str(), "addV" | "addE" | "property" | "drop" | "mergeV" | "mergeE")
            || instruction.arguments.iter().any(|a| matches!(a, Argument::Traversal(child) if writes(child)))
    })
}

fn first(stream: Stream) -> Option<Value> {
    stream.into_iter().next().map(|t| t.value)
}

fn values(stream: Stream) -> Vec<Value> {
    stream.into_iter().map(|t| t.value).collect()
}
