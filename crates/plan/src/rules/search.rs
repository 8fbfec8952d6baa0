//! A loop that walks simple paths until the first arrival becomes a search: it goes on from each vertex only the first
//! time it comes there. `repeat(b.simplePath()).until(t).path().limit(1)` then costs the edges in reach, not the simple
//! paths, whose number is exponential.
//!
//! A loop runs breadth first, so the first way to a vertex is a shortest one. A shortest walk from `s` to the vertices
//! that pass `t` meets no vertex twice: without the part between, it would be shorter. So the search needs no
//! `simplePath()`. That test also looks at the objects from which the traversal came to the loop. The search counts them
//! as reached, and a path that repeats itself already does not enter.
//!
//! | part | may be |
//! |---|---|
//! | the body | one hop, over edges or not, and tests of what it meets |
//! | `until`, `emit` | tests of the vertex; a bound, if the test stands after the loop again |
//! | after the loop | steps whose results depend on the vertex alone, `path()`, then `limit(1)`, or the path with the fewest objects |
//! | before the loop | rows in no order. If several begin and it matters which one, each gets a loop of its own |
//!
//! An object on the path that `path().by(key)` drops the row for is never passed: the key becomes a test in the body.
//!
//! If the rule does not apply to a loop over simple paths, `explain()` says why.

use crate::logical::{
    Avoids, By, Condition, EdgeEnd, Emit, Enters, FilterKind, LocalFunction, LoopSearch, Operand, Reduction, Repeat,
    Step, StepNode, Traversal, Until,
};
use crate::purity::{is_repeatable, is_row_by_row, names_read};
use crate::rules::Facts;

mod body;
mod following;
mod leaving;

use body::Body;
use following::Following;

/// Why a loop stays as it is written.
type Reason = &'static str;

/// The rows with which a chain begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// The traversal begins here.
    Source,
    /// One row: each traverser runs the chain by itself. `asked_whether`: only matters whether it has a result.
    OneRow { asked_whether: bool },
    /// Rows of a stream, in a branch or in the body of a loop.
    Stream,
}

/// How a loop becomes a search.
struct Change {
    avoids: Avoids,
    /// Paths are tested for repetition before the loop.
    tests_entry: bool,
    /// The tests of edges and of vertices that `path().by(…)` makes.
    tests: [Vec<StepNode>; 2],
    /// Each row that begins gets a loop of its own.
    own_loops: bool,
}

pub(super) fn apply(traversal: &mut Traversal, facts: &Facts<'_>) -> bool {
    rewrite(traversal, Entry::Source, facts)
}

/// Rewrites a chain, and those nested in it.
fn rewrite(chain: &mut Traversal, entry: Entry, facts: &Facts<'_>) -> bool {
    let mut changed = rewrite_chain(chain, entry, facts);
    for node in &mut chain.steps {
        node.step.visit_nested_mut(&mut |enters, nested| {
            let entry = match enters {
                Enters::EachAsked => Entry::OneRow { asked_whether: true },
                Enters::EachTraverser => Entry::OneRow { asked_whether: false },
                Enters::Stream => Entry::Stream,
            };
            changed |= rewrite(nested, entry, facts);
        });
    }
    changed
}

/// Rewrites the loops of one chain. Loops that were looked at stay as they are.
fn rewrite_chain(chain: &mut Traversal, entry: Entry, facts: &Facts<'_>) -> bool {
    let mut changes = Vec::new();
    let before = Before::of(&chain.steps, entry);
    for at in 0..chain.steps.len() {
        let Step::Repeat(repeat) = &chain.steps[at].step else { continue };
        if repeat.search != LoopSearch::Unknown {
            continue;
        }
        let outcome = change(&chain.steps, at, repeat, &before, facts);
        let enumerates = Body::of(repeat).is_ok_and(|body| body.simple) || repeat.body.any(is_simple_path);
        if let Step::Repeat(repeat) = &mut chain.steps[at].step {
            match outcome {
                Ok(change) => changes.push((at, change)),
                Err(reason) if enumerates => repeat.search = LoopSearch::Not(reason),
                Err(_) => {}
            }
        }
    }
    let changed = !changes.is_empty();
    if changed {
        write(chain, changes);
    }
    changed
}

fn is_simple_path(step: &Step) -> bool {
    matches!(step, Step::PathShape { simple: true, .. })
}

/// The steps before a loop.
struct Before {
    entry: Entry,
    /// The number of steps at the beginning that make no objects, after the source if the chain begins with one.
    tests: usize,
    /// True if the chain begins with all vertices, or some.
    is_source: bool,
    /// True if it begins with at most one row.
    is_one_row: bool,
    /// The position of the first `order()`.
    ordered: Option<usize>,
}

impl Before {
    fn of(steps: &[StepNode], entry: Entry) -> Self {
        let is_one = |ids: &[Operand]| match ids {
            // A parameter may be a list.
            [Operand::Parameter(_) | Operand::List(_)] => false,
            [Operand::Literal(id)] => mangrove_graph::UserId::from_value(id).is_some(),
            // A literal is taken out of `V()` only if it is one id.
            [_] => true,
            _ => false,
        };
        let (is_source, is_one_row) = match (entry, steps.first().map(|node| &node.step)) {
            (Entry::Source, Some(Step::Vertices { ids, .. })) => (true, ids.as_deref().is_some_and(is_one)),
            (Entry::OneRow { .. }, _) => (false, true),
            _ => (false, false),
        };
        let first = usize::from(is_source);
        let tests = steps.iter().skip(first).take_while(|node| is_test(&node.step)).count();
        let ordered = steps.iter().position(|node| matches!(node.step, Step::Order(_)));
        Before { entry, tests: first + tests, is_source, is_one_row, ordered }
    }

    /// Returns true if the path of a row that comes to the step at a position consists of the row's vertex.
    fn is_one_vertex(&self, at: usize) -> bool {
        self.is_source && at <= self.tests
    }

    /// Returns true if at most one row comes to the step at a position.
    fn is_one_row(&self, at: usize) -> bool {
        self.is_one_row && at <= self.tests
    }
}

/// Returns true if a step passes objects on or drops them.
fn is_test(step: &Step) -> bool {
    match step {
        Step::Has(_) | Step::Is(_) | Step::Identity | Step::Range { .. } | Step::Dedup { .. } => true,
        Step::FilterTraversal(..) | Step::WherePredicate { .. } => is_row_by_row(step),
        _ => false,
    }
}

/// Works out how the loop at a position becomes a search.
fn change(
    steps: &[StepNode],
    at: usize,
    repeat: &Repeat,
    before: &Before,
    facts: &Facts<'_>,
) -> Result<Change, Reason> {
    let body = Body::of(repeat)?;
    if facts.work_shows {
        return Err("writes, side effects, sacks or a policy show how the traversal works");
    }
    if !steps[at].policy.is_default() {
        return Err("it has a policy");
    }
    if before.entry == Entry::Stream {
        return Err("it is in a branch or a loop, which all rows enter together");
    }
    let asked_whether = before.entry == Entry::OneRow { asked_whether: true };
    let following = Following::of(&steps[at + 1..], asked_whether, facts.literals)?;
    if following.asked_whether && !body.simple {
        return Err("a loop of which only matters whether it arrives goes on from each vertex once anyway");
    }
    leaving::check(repeat, following.of_vertex, facts.literals)?;
    if before.ordered.is_some_and(|order| order < at) {
        return Err("the rows before it have an order");
    }
    let is_one_vertex = before.is_one_vertex(at);
    let (avoids, tests_entry) = match (body.simple, is_one_vertex) {
        (false, _) => (Avoids::Nothing, false),
        (true, true) => (Avoids::Vertex, false),
        (true, false) if body.over_edges => return Err("the path before it may contain an edge that it meets"),
        (true, false) if repeat.until_first || repeat.emit_first => {
            return Err("a row that leaves it at once may have a path that repeats itself");
        }
        (true, false) => (Avoids::Path, true),
    };
    let tests = following.tests(&body, is_one_vertex, facts)?;
    let reads_names = |steps: &[StepNode]| !names_read(&Traversal { steps: steps.to_vec() }).is_empty();
    let differ = body.simple || reads_names(&steps[at..at + 1 + following.of_vertex.len()]);
    Ok(Change { avoids, tests_entry, tests, own_loops: differ && !before.is_one_row(at) })
}

/// Writes the chain anew.
fn write(chain: &mut Traversal, changes: Vec<(usize, Change)>) {
    let mut changes = changes.into_iter().peekable();
    for (at, mut node) in std::mem::take(&mut chain.steps).into_iter().enumerate() {
        let Some((_, change)) = changes.next_if(|(of, _)| *of == at) else {
            chain.steps.push(node);
            continue;
        };
        let position = node.position;
        let mut of_row = Vec::new();
        if change.tests_entry {
            of_row.push(StepNode::new(simple_path(), position));
        }
        if let Step::Repeat(repeat) = &mut node.step {
            repeat.search = LoopSearch::Search(change.avoids);
            body::write(&mut repeat.body, change.tests);
        }
        of_row.push(node);
        match change.own_loops {
            true => chain.steps.push(StepNode::new(Step::LocalTraversal(Traversal { steps: of_row }), position)),
            false => chain.steps.extend(of_row),
        }
    }
}

fn simple_path() -> Step {
    Step::PathShape { simple: true, by: Vec::new(), segment: Default::default() }
}
