//! The steps after a loop that may become a search: up to those that take one result.

use super::body::Body;
use super::{
    By, Condition, Facts, FilterKind, LocalFunction, Reason, Reduction, Step, StepNode, Traversal, is_repeatable,
    is_row_by_row, names_read,
};
use crate::literals::Literals;
use crate::logical::{OrderBy, Segment, Test};
use mangrove_graph::Token;
use mangrove_gremlin::Order;

/// The steps after a loop.
pub(super) struct Following<'a> {
    /// Those whose results depend on the vertex alone, and on what was before the loop.
    pub of_vertex: &'a [StepNode],
    /// The `by()`s of a `path()` after them.
    path: &'a [By],
    /// True if it only matters whether there is a result. Otherwise one is taken: the first, or that with the shortest path.
    pub asked_whether: bool,
}

impl<'a> Following<'a> {
    pub fn of(steps: &'a [StepNode], asked_whether: bool, literals: &Literals<'_>) -> Result<Self, Reason> {
        let count = steps.iter().take_while(|node| is_of_vertex(node)).count();
        let (of_vertex, mut rest) = steps.split_at(count);
        let mut path: &[By] = &[];
        let mut shows_path = false;
        if let [StepNode { step: Step::Path { by, segment }, .. }, after @ ..] = rest {
            if *segment != Segment::default() {
                return Err("a part of the path is read after it");
            }
            (path, rest, shows_path) = (by, after, true);
        }
        let asked_whether = match rest {
            [] if asked_whether => true,
            [first, ..] if is_limit_one(first, literals) => false,
            [length, limit, ..] if shows_path && is_length(&length.step) && is_limit_one(limit, literals) => false,
            [sorted, limit, ..] if is_limit_one(limit, literals) && is_by_length(&sorted.step, shows_path) => false,
            [] => return Err("no limit(1) follows"),
            _ => {
                return Err(
                    "the steps between it and a limit(1) depend on more than the vertex, or there is no limit(1)",
                );
            }
        };
        Ok(Following { of_vertex, path, asked_whether })
    }

    /// The tests of the edges and of the vertices in a body that make sure that `path().by(…)` keeps the row.
    pub fn tests(&self, body: &Body, is_one_vertex: bool, facts: &Facts<'_>) -> Result<[Vec<StepNode>; 2], Reason> {
        let mut tests = [Vec::new(), Vec::new()];
        let count = self.path.len();
        if count > 1 && !(is_one_vertex && body.objects().is_multiple_of(count)) {
            return Err("the by()s of path() are for other objects in each iteration");
        }
        if self.path.iter().all(|by| *by == By::Identity) {
            return Ok(tests);
        }
        // The path before the loop is one vertex if there are several by()s.
        for made in 0..body.objects() {
            let by = &self.path[(1 + made) % count];
            let is_edge = body.over_edges && made == 0;
            tests[usize::from(!is_edge)].extend(test(by, facts)?);
        }
        Ok(tests)
    }
}

/// The test of an element under which a `by()` has a value for it.
fn test(by: &By, facts: &Facts<'_>) -> Result<Option<StepNode>, Reason> {
    const OTHER: Reason = "a by() of path() depends on more than the object";
    let step = match by {
        By::Identity | By::Token(Token::Id | Token::Label) => return Ok(None),
        _ if facts.productive_by => return Err("ProductiveByStrategy changes the by() of path()"),
        By::Key(key) => Step::Has(vec![Condition::HasKey(key.clone())]),
        By::Traversal(by) if is_repeatable(by) && names_read(by).is_empty() => {
            Step::FilterTraversal(FilterKind::All, vec![(**by).clone()])
        }
        By::Traversal(_) | By::Token(_) | By::Column(_) => return Err(OTHER),
    };
    Ok(Some(StepNode::new(step, None)))
}

/// Returns true if the results of a step for a row depend on the row's object alone, and on names.
fn is_of_vertex(node: &StepNode) -> bool {
    let selects = |by: &[By]| {
        by.iter().all(|by| match by {
            By::Traversal(by) => is_repeatable(by),
            By::Identity | By::Key(_) | By::Token(_) | By::Column(_) => true,
        })
    };
    match &node.step {
        Step::Select { by, .. } => selects(by),
        step => is_row_by_row(step),
    }
}

fn is_limit_one(node: &StepNode, literals: &Literals<'_>) -> bool {
    let Step::Range { low, high: Some(high) } = &node.step else { return false };
    literals.is(low, 0) && literals.is(high, 1)
}

/// Returns true for `count(local)`, of a path.
fn is_length(step: &Step) -> bool {
    matches!(step, Step::Local(LocalFunction::Reduce(Reduction::Count)))
}

/// Returns true for `order().by(count(local))` of paths, and for `order().by(path().count(local))` of other objects.
fn is_by_length(step: &Step, of_paths: bool) -> bool {
    let Step::Order(criteria) = step else { return false };
    let [OrderBy { by: By::Traversal(by), order: Order::Asc }] = &criteria[..] else { return false };
    match &by.steps[..] {
        [length] => of_paths && is_length(&length.step),
        [StepNode { step: Step::Path { .. }, .. }, length] => !of_paths && is_length(&length.step),
        _ => false,
    }
}

/// Returns true if every row that passes the steps passes these tests, which are a chain of conditions.
pub(super) fn implies(steps: &[StepNode], tests: &Traversal, literals: &Literals<'_>) -> bool {
    let passed: Vec<&Condition> = steps
        .iter()
        .map_while(|node| match &node.step {
            Step::Has(conditions) => Some(conditions),
            _ => None,
        })
        .flatten()
        .collect();
    let holds = |node: &StepNode| match &node.step {
        Step::Has(conditions) => {
            conditions.iter().all(|condition| passed.iter().any(|known| is_same(known, condition, literals)))
        }
        _ => false,
    };
    !tests.steps.is_empty() && tests.steps.iter().all(holds)
}

/// Returns true if two conditions are known to be equal. Literals that were taken out are compared, so the plan relies
/// on whether they are.
fn is_same(one: &Condition, other: &Condition, literals: &Literals<'_>) -> bool {
    match (one, other) {
        (Condition::Id(Test::Compare(this, left)), Condition::Id(Test::Compare(that, right))) => {
            this == that && literals.are_equal(left, right)
        }
        (
            Condition::Property(one, Test::Compare(this, left)),
            Condition::Property(other, Test::Compare(that, right)),
        ) => one == other && this == that && literals.are_equal(left, right),
        _ => one == other,
    }
}
