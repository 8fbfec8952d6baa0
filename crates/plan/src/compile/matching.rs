//! `match()`: its patterns, put in an order in which each begins at a known variable, become steps of the chain.
//!
//! A pattern begins at a variable (`as("a")`) and may end at one. After this rewriting, the planner sees steps, labels
//! and filters only:
//!
//! | pattern | becomes |
//! |---|---|
//! | one whose end is not bound yet | `select(last, "a")`, its steps, `as("b")` |
//! | one whose end is bound | `select(last, "a")`, its steps, `where(eq("b"))` |
//! | `and(…)` | its patterns |
//! | `or(…)` | a `union()` with a branch for the patterns of each operand: a row comes out for each way in which it holds |
//! | `not(…)`, `where(…)` | a test, as soon as its variables are bound |
//!
//! Variables are looked up by an instruction of their own, [`VARIABLES`], among the labels of the path alone; `select`
//! and `where` would also look into maps and side effects. At the end, `select` of all variables makes the map. If the
//! operands of an `or(…)` bind different variables, a map has the variables that are bound in its row.
//!
//! The first variable is the object that enters, unless an earlier step has its label: a variable that is the end of no
//! pattern, or else the start of the first pattern. The next pattern is one that binds nothing new, if there is one; an
//! `or(…)` that binds variables comes last; among equals, the order of the traversal decides. How many rows a pattern
//! finds plays no part here: [`graph`](crate::graph) reads the steps again, and may choose another order.

use std::borrow::Cow;

use mangrove_graph::{Result, Value};
use mangrove_gremlin::{Argument, Bytecode, Comparison, Instruction, Pop, Position, Predicate};

use super::NESTING_MAX;
use super::arguments::{describe, misfit, too_deep};
use super::connectives::{infix, take_end_label};
use super::site::Site;
use crate::limits::{INSTRUCTIONS_MAX, MATCH_PATTERNS_MAX};
use crate::literals::Literals;
use crate::logical::Name;

/// The name of the instruction that looks up variables (`maps::matched`). No script can write it.
pub(super) const VARIABLES: &str = "variables of match()";

/// The chain with every `match()` in it rewritten.
pub(super) fn rewrite<'a>(
    instructions: Cow<'a, [Instruction]>,
    parent: Option<&Site<'_>>,
    literals: &Literals<'_>,
) -> Result<Cow<'a, [Instruction]>> {
    if !instructions.iter().any(|instruction| instruction.name == "match") {
        return Ok(instructions);
    }
    let mut rewritten: Vec<Instruction> = Vec::with_capacity(instructions.len());
    let mut known: Vec<Name> = Vec::new();
    for (index, instruction) in instructions.iter().enumerate() {
        if instruction.name == "match" {
            let site = Site::new(instruction, index, parent, literals);
            rewritten.extend(steps(&site, instruction, &mut known)?);
        } else {
            known.extend(labels_of(instruction));
            rewritten.push(instruction.clone());
        }
    }
    Ok(Cow::Owned(rewritten))
}

/// A pattern with its variables.
#[derive(Clone)]
struct Pattern {
    /// The steps, without the labels at the ends.
    steps: Vec<Instruction>,
    start: Option<Name>,
    end: Option<Name>,
    /// The variables in it, except its end.
    needs: Vec<Name>,
    /// Of an `or()`, the patterns of each operand. It has no steps of its own.
    branches: Vec<Vec<Pattern>>,
}

impl Pattern {
    fn is_or(&self) -> bool {
        !self.branches.is_empty()
    }

    /// Calls `f` for the pattern and the patterns nested in it.
    fn each<'a>(&'a self, f: &mut dyn FnMut(&'a Pattern)) {
        f(self);
        self.branches.iter().flatten().for_each(|inner| inner.each(f));
    }

    /// Removes needed variables that no pattern binds.
    fn keep_needs(&mut self, variables: &[Name]) {
        self.needs.retain(|name| variables.contains(name) && self.end.as_ref() != Some(name));
        self.needs.extend(self.start.clone());
        self.branches.iter_mut().flatten().for_each(|inner| inner.keep_needs(variables));
    }

    /// The variables that it binds in every row in which `bound` are bound (of an `or()`: the variables that all its
    /// operands bind). `None` if it cannot be solved yet.
    fn solved(&self, bound: &[Name]) -> Option<Vec<Name>> {
        if !self.needs.iter().all(|name| bound.contains(name)) {
            return None;
        }
        let mut ends: Option<Vec<Name>> = None;
        for branch in &self.branches {
            let after = ends_of(branch, bound)?;
            match &mut ends {
                None => ends = Some(after),
                Some(ends) => ends.retain(|name| after.contains(name)),
            }
        }
        let ends = ends.into_iter().flatten().chain(self.end.clone());
        Some(ends.filter(|name| !bound.contains(name)).collect())
    }

    /// Returns true if it binds a variable that is not bound.
    fn binds(&self, bound: &[Name]) -> bool {
        let mut binds = false;
        self.each(&mut |pattern| binds |= pattern.end.as_ref().is_some_and(|end| !bound.contains(end)));
        binds
    }

    /// Returns true if one of these variables is in it.
    fn mentions(&self, names: &[Name]) -> bool {
        let mut mentions = false;
        self.each(&mut |pattern| mentions |= pattern.needs.iter().chain(&pattern.end).any(|name| names.contains(name)));
        mentions
    }
}

/// The variables that are bound when all patterns are solved; `None` if there is no order in which they can be.
fn ends_of(patterns: &[Pattern], bound: &[Name]) -> Option<Vec<Name>> {
    let mut bound = bound.to_vec();
    let mut left: Vec<&Pattern> = patterns.iter().collect();
    while !left.is_empty() {
        let (at, ends) = left.iter().enumerate().find_map(|(at, pattern)| Some((at, pattern.solved(&bound)?)))?;
        left.remove(at);
        bound.extend(ends);
    }
    Some(bound)
}

fn steps(site: &Site<'_>, instruction: &Instruction, known: &mut Vec<Name>) -> Result<Vec<Instruction>> {
    let mut patterns = Vec::new();
    for argument in &instruction.arguments {
        let Argument::Traversal(pattern) = argument else {
            return Err(misfit(site, "patterns such as as(\"a\").out().as(\"b\")", &instruction.arguments));
        };
        gather(site, pattern, site.depth, &mut patterns)?;
    }
    let mut count = 0;
    patterns.iter().for_each(|pattern| pattern.each(&mut |_| count += 1));
    if count > MATCH_PATTERNS_MAX {
        return Err(site.unsupported(format_args!("has {count} patterns; at most {MATCH_PATTERNS_MAX} are solved")));
    }
    let (mut variables, mut starts, mut ends): (Vec<Name>, Vec<Name>, Vec<Name>) = Default::default();
    for pattern in &patterns {
        pattern.each(&mut |pattern| {
            for name in pattern.start.iter().chain(&pattern.end) {
                if !variables.contains(name) {
                    variables.push(name.clone());
                }
            }
            starts.extend(pattern.start.clone());
            ends.extend(pattern.end.clone());
        });
    }
    patterns.iter_mut().for_each(|pattern| pattern.keep_needs(&variables));
    let Some(first) = starts.iter().find(|name| !ends.contains(name)).or_else(|| starts.first()).cloned() else {
        return Err(site.invalid("no pattern begins with as(…), so there is nothing to begin at"));
    };

    let mut solution = Solution { site, position: instruction.position, unbound: false, size: 0 };
    let mut made = Vec::new();
    let mut bound: Vec<Name> = variables.iter().filter(|name| known.contains(name)).cloned().collect();
    if !bound.contains(&first) {
        made.push(solution.call("as", vec![text(&first)]));
        bound.push(first);
    }
    made.extend(solution.solve(patterns, bound)?);
    made.push(solution.shown(&variables));
    known.extend(variables);
    Ok(made)
}

fn text(name: &Name) -> Argument {
    Argument::Value(Value::String(name.clone()))
}

/// The state of the translation of patterns into steps.
struct Solution<'a> {
    site: &'a Site<'a>,
    position: Option<Position>,
    /// True if some rows lack a variable, since the operands of an `or()` bind different ones.
    unbound: bool,
    /// The number of steps that patterns have become; each pattern counts as one more.
    size: usize,
}

/// The most steps that patterns may become. Patterns after an `or()` may have to be solved in each of its operands.
const SOLVED_STEPS_MAX: usize = 2 * INSTRUCTIONS_MAX;

impl Solution<'_> {
    fn call(&self, name: &str, arguments: Vec<Argument>) -> Instruction {
        Instruction { name: name.into(), arguments, position: self.position }
    }

    /// The steps that solve patterns where these variables are bound.
    fn solve(&mut self, mut patterns: Vec<Pattern>, mut bound: Vec<Name>) -> Result<Vec<Instruction>> {
        let mut made = Vec::new();
        while !patterns.is_empty() {
            let pattern = patterns.remove(self.next(&patterns, &bound)?);
            self.size += 1 + pattern.steps.len();
            if self.size > SOLVED_STEPS_MAX {
                return Err(self.site.unsupported("its or()s have too many operands that bind different variables"));
            }
            if pattern.is_or() {
                let always = pattern.solved(&bound).unwrap_or_default();
                let is_sometimes = |name: &Name| !bound.contains(name) && !always.contains(name);
                let mut sometimes: Vec<Name> = Vec::new();
                pattern
                    .each(&mut |inner| sometimes.extend(inner.end.iter().filter(|name| is_sometimes(name)).cloned()));
                self.unbound |= !sometimes.is_empty();
                // If later patterns depend on the operand that a row comes from, they are solved in each branch.
                let apart = patterns.iter().any(|left| left.mentions(&sometimes));
                let rest = if apart { std::mem::take(&mut patterns) } else { Vec::new() };
                let mut operands = Vec::with_capacity(pattern.branches.len());
                for branch in pattern.branches {
                    let steps = self.solve([branch, rest.clone()].concat(), bound.clone())?;
                    operands.push(Argument::Traversal(Bytecode { source: Vec::new(), steps }));
                }
                made.push(self.call("union", operands));
                bound.extend(always);
                continue;
            }
            if let Some(start) = &pattern.start {
                made.push(self.call(VARIABLES, vec![Argument::Pop(Pop::Last), text(start)]));
            }
            made.extend(alone(pattern.steps));
            match pattern.end {
                Some(end) if bound.contains(&end) => {
                    let equal = Predicate::Compare(Comparison::Eq, Box::new(text(&end)));
                    made.push(self.call(VARIABLES, vec![Argument::Predicate(equal)]));
                }
                Some(end) => {
                    made.push(self.call("as", vec![text(&end)]));
                    bound.push(end);
                }
                None => {}
            }
        }
        Ok(made)
    }

    /// The position of the pattern that comes next.
    fn next(&self, patterns: &[Pattern], bound: &[Name]) -> Result<usize> {
        let find = |fits: &dyn Fn(&Pattern) -> bool| patterns.iter().position(|p| fits(p) && p.solved(bound).is_some());
        // Variables of an or() may not be bound in every row, so other patterns come first.
        find(&|p| !p.binds(bound)).or_else(|| find(&|p| !p.is_or())).or_else(|| find(&|_| true)).ok_or_else(|| {
            let unbound = patterns.iter().flat_map(|p| &p.needs).find(|name| !bound.contains(name));
            let unbound = unbound.map_or("what its or() begins at", |name| name);
            self.site.unsupported(format_args!(
                "no order of the patterns binds every variable before it is read; `{unbound}` is never bound"
            ))
        })
    }

    /// The step that gives the map of the variables.
    fn shown(&self, variables: &[Name]) -> Instruction {
        let mut names: Vec<Argument> = variables.iter().map(text).collect();
        if !self.unbound {
            if let [only] = &names[..] {
                // A single name would give the value instead of a map.
                names.push(only.clone());
            }
            names.insert(0, Argument::Pop(Pop::Last));
        }
        self.call(VARIABLES, names)
    }
}

/// The steps of a pattern. If one of them reads the whole stream, they run for every traverser by itself.
fn alone(steps: Vec<Instruction>) -> Vec<Instruction> {
    let apart = |step: &Instruction| STREAM_READERS.contains(&step.name.as_str());
    let position = steps.first().and_then(|step| step.position);
    if !steps.iter().any(apart) {
        return steps;
    }
    let inner = Argument::Traversal(Bytecode { source: Vec::new(), steps });
    vec![Instruction { name: "flatMap".into(), arguments: vec![inner], position }]
}

/// The steps of a pattern in a test, which run for every traverser by itself for the same reason.
fn alone_inside(site: &Site<'_>, bytecode: &Bytecode, depth: usize) -> Result<Bytecode> {
    if depth > NESTING_MAX {
        return Err(too_deep(site));
    }
    let mut steps = infix(&bytecode.steps, false).into_owned();
    match steps.first_mut() {
        Some(first) if matches!(first.name.as_str(), "and" | "or" | "not" | "where") => {
            for argument in &mut first.arguments {
                if let Argument::Traversal(inner) = argument {
                    *inner = alone_inside(site, inner, depth + 1)?;
                }
            }
        }
        Some(first) if first.name == "as" => {
            let mut body = steps.split_off(1);
            let end = take_end_label(site, &mut body, 0)?;
            steps.extend(alone(body));
            steps.extend(end);
        }
        _ => {}
    }
    Ok(Bytecode { source: bytecode.source.clone(), steps })
}

/// The start of a pattern in a test is a variable. Labels nested deeper, and ends, are looked up everywhere, as in a
/// `where()` after a `match()`.
fn look_up_start(pattern: &mut Bytecode) {
    if let Some(first) = pattern.steps.first_mut()
        && first.name == "as"
        && first.arguments.len() == 1
    {
        first.name = VARIABLES.into();
        first.arguments.insert(0, Argument::Pop(Pop::Last));
    }
}

/// Steps whose results depend on which rows come together; and `match`, which has variables of its own.
#[rustfmt::skip] // A name a line would be pages of names.
const STREAM_READERS: &[&str] = &[
    "aggregate", "barrier", "cap", "count", "dedup", "fold", "group", "groupCount", "inject", "limit", "match", "max",
    "mean", "min", "order", "range", "sample", "skip", "sum", "tail",
];

/// The patterns of an argument: a single one, or those of an `and()`.
fn gather(site: &Site<'_>, bytecode: &Bytecode, depth: usize, patterns: &mut Vec<Pattern>) -> Result<()> {
    if depth > NESTING_MAX {
        return Err(too_deep(site));
    }
    let mut steps = infix(&bytecode.steps, false).into_owned();
    let mut needs = Vec::new();
    match &steps[..] {
        [] => return Err(site.invalid("a pattern has no steps; write such as as(\"a\").out().as(\"b\")")),
        [only] if only.name == "and" => {
            for argument in &only.arguments {
                match argument {
                    Argument::Traversal(inner) => gather(site, inner, depth + 1, patterns)?,
                    other => {
                        return Err(site.invalid(format_args!("a pattern is a traversal, not {}", describe(other))));
                    }
                }
            }
            return Ok(());
        }
        [only] if only.name == "or" && !only.arguments.is_empty() => {
            let mut branches = Vec::with_capacity(only.arguments.len());
            for argument in &only.arguments {
                let Argument::Traversal(inner) = argument else {
                    return Err(site.invalid(format_args!("a pattern is a traversal, not {}", describe(argument))));
                };
                let mut branch = Vec::new();
                gather(site, inner, depth + 1, &mut branch)?;
                branches.push(branch);
            }
            patterns.push(Pattern { steps: Vec::new(), start: None, end: None, needs, branches });
            return Ok(());
        }
        [first, ..] if matches!(first.name.as_str(), "or" | "not" | "where") => {
            mentions(&steps, depth, &mut needs);
            let begins_at_variable = steps[0].name != "or";
            for argument in &mut steps[0].arguments {
                if let Argument::Traversal(inner) = argument {
                    *inner = alone_inside(site, inner, depth + 1)?;
                    if begins_at_variable {
                        look_up_start(inner);
                    }
                }
            }
            let mut filter = steps;
            if filter.len() == 1 && filter[0].name != "where" {
                // As an argument of where(), its patterns are read as patterns.
                let inner = Bytecode { source: Vec::new(), steps: filter };
                let position = inner.steps[0].position;
                filter =
                    vec![Instruction { name: "where".into(), arguments: vec![Argument::Traversal(inner)], position }];
            }
            patterns.push(Pattern { steps: filter, start: None, end: None, needs, branches: Vec::new() });
            return Ok(());
        }
        _ => {}
    }
    let start = match labels_of(&steps[0]).next() {
        Some(start) if steps[0].arguments.len() == 1 => start,
        _ => return Err(site.invalid("a pattern begins with as(…) of one label, or is and(), or(), not() or where()")),
    };
    steps.remove(0);
    let end = take_end_label(site, &mut steps, 0)?.and_then(|label| labels_of(&label).next());
    mentions(&steps, depth, &mut needs);
    patterns.push(Pattern { steps, start: Some(start), end, needs, branches: Vec::new() });
    Ok(())
}

/// The labels of an `as()`.
fn labels_of(instruction: &Instruction) -> impl Iterator<Item = Name> {
    let names = if instruction.name == "as" { &instruction.arguments[..] } else { &[] };
    names.iter().filter_map(|name| match name {
        Argument::Value(Value::String(name)) => Some(name.clone()),
        _ => None,
    })
}

/// All strings that may name a variable: in `as`, `select`, `where`, `dedup` and similar steps, in predicates and in
/// nested traversals.
fn mentions(steps: &[Instruction], depth: usize, names: &mut Vec<Name>) {
    if depth > NESTING_MAX {
        return;
    }
    for step in steps {
        let reads = matches!(step.name.as_str(), "as" | "select" | "where" | "dedup" | "from" | "to" | "math");
        for argument in &step.arguments {
            match argument {
                Argument::Value(Value::String(name)) if reads => names.push(name.clone()),
                Argument::Predicate(predicate) if reads => operands(predicate, depth, names),
                Argument::Traversal(inner) => mentions(&inner.steps, depth + 1, names),
                _ => {}
            }
        }
    }
}

fn operands(predicate: &Predicate, depth: usize, names: &mut Vec<Name>) {
    if depth > NESTING_MAX {
        return;
    }
    let mut name = |argument: &Argument| {
        if let Argument::Value(Value::String(name)) = argument {
            names.push(name.clone());
        }
    };
    match predicate {
        Predicate::Compare(_, argument) | Predicate::Text(_, argument) => name(argument),
        Predicate::Within(arguments) | Predicate::Without(arguments) => arguments.iter().for_each(name),
        Predicate::TypeOf(_) => {}
        Predicate::And(all) | Predicate::Or(all) => all.iter().for_each(|p| operands(p, depth + 1, names)),
        Predicate::Not(inner) => operands(inner, depth + 1, names),
    }
}
