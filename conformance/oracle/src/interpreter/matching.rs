//! `match()`: finds all values of its variables by backtracking over the patterns.

use mangrove_graph::Value;
use mangrove_graph::compare::equal;
use mangrove_gremlin::{Bytecode, Instruction};
use smol_str::SmolStr;

use super::step::{Step, string, traversal};
use super::{Interpreter, Outcome, Stream, Traverser, unsupported, values};

/// A pattern: a path from a bound variable to another variable, or a test of bound variables.
enum Pattern {
    Way {
        start: SmolStr,
        steps: Bytecode,
        end: Option<SmolStr>,
    },
    Test(Bytecode),
    /// The patterns of each operand of an `or()`: one solution for each way in which an operand holds.
    Any(Vec<Vec<Pattern>>),
}

impl Pattern {
    /// The starts and ends of its paths, in order.
    fn ends<'a>(&'a self, found: &mut Vec<(&'a SmolStr, Option<&'a SmolStr>)>) {
        match self {
            Pattern::Way { start, end, .. } => found.push((start, end.as_ref())),
            Pattern::Test(_) => {}
            Pattern::Any(operands) => operands.iter().flatten().for_each(|pattern| pattern.ends(found)),
        }
    }
}

type Bindings = Vec<(SmolStr, Value)>;

impl Interpreter<'_> {
    /// `match(…)` for one traverser: one map for each solution.
    pub(crate) fn match_step(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Stream> {
        let mut patterns = Vec::new();
        for argument in step.arguments {
            gather(traversal(argument)?, &mut patterns)?;
        }
        let mut ways = Vec::new();
        patterns.iter().for_each(|pattern| pattern.ends(&mut ways));
        let variables: Vec<SmolStr> =
            ways.iter().flat_map(|(start, end)| [Some(*start), *end]).flatten().cloned().collect();
        let is_end = |name: &SmolStr| ways.iter().any(|(_, end)| *end == Some(name));
        let all: Vec<SmolStr> = ways.iter().map(|(start, _)| (*start).clone()).collect();
        let Some(first) = all.iter().find(|name| !is_end(name)).or(all.first()) else {
            return unsupported("match() without a pattern that begins somewhere");
        };
        let mut bindings: Bindings = Vec::new();
        for name in &variables {
            if let Some(value) = t.labeled(name).last() {
                bindings.push((name.clone(), (*value).clone()));
            }
        }
        if !bindings.iter().any(|(name, _)| name == first) {
            bindings.push((first.clone(), t.value.clone()));
        }
        let mut solutions = Vec::new();
        let open: Vec<&Pattern> = patterns.iter().collect();
        self.solve(t, &open, bindings, &mut solutions)?;
        Ok(solutions.into_iter().map(|solution| t.moved_to(map_of(&variables, &solution))).collect())
    }

    fn solve(
        &mut self,
        t: &Traverser,
        open: &[&Pattern],
        bindings: Bindings,
        solutions: &mut Vec<Bindings>,
    ) -> Outcome<()> {
        if open.is_empty() {
            solutions.push(bindings);
            return Ok(());
        }
        let is_bound = |name: &SmolStr| bindings.iter().any(|(known, _)| known == name);
        // A test waits until no remaining pattern can bind its variables.
        let way = open.iter().position(|p| matches!(p, Pattern::Way { start, .. } if is_bound(start)));
        let any = open.iter().position(|p| matches!(p, Pattern::Any(_)));
        let next = match way.or(any) {
            Some(next) => next,
            None if open.iter().all(|p| matches!(p, Pattern::Test(_))) => 0,
            None => return unsupported("match() with a pattern that begins at nothing"),
        };
        let mut rest = open.to_vec();
        let pattern = rest.remove(next);
        let here = bound(t, &bindings);
        match pattern {
            Pattern::Any(operands) => {
                for operand in operands {
                    let open: Vec<&Pattern> = operand.iter().chain(rest.iter().copied()).collect();
                    self.solve(t, &open, bindings.clone(), solutions)?;
                }
            }
            Pattern::Test(test) => {
                if self.where_child(test, &here)? {
                    self.solve(t, &rest, bindings, solutions)?;
                }
            }
            Pattern::Way { start, steps, end } => {
                let Some((_, from)) = bindings.iter().find(|(name, _)| name == start).cloned() else { return Ok(()) };
                for reached in values(self.local_child(steps, &here.holding(from))?) {
                    let known = end.as_ref().and_then(|end| bindings.iter().find(|(name, _)| name == end));
                    let mut more = bindings.clone();
                    match (end, known) {
                        (Some(_), Some((_, known))) if !equal(known, &reached) => continue,
                        (Some(end), None) => more.push((end.clone(), reached)),
                        _ => {}
                    }
                    self.solve(t, &rest, more, solutions)?;
                }
            }
        }
        Ok(())
    }
}

/// The traverser, its path extended by the variables' values, each under the name of its variable.
fn bound(t: &Traverser, bindings: &Bindings) -> Traverser {
    let mut t = t.clone();
    for (name, value) in bindings {
        t = t.moved_to(value.clone());
        t.label(std::slice::from_ref(name));
    }
    t
}

fn map_of(variables: &[SmolStr], solution: &Bindings) -> Value {
    let mut entries: Vec<(Value, Value)> = Vec::new();
    for name in variables {
        let key = Value::String(name.clone());
        if let Some((_, value)) = solution.iter().find(|(known, _)| known == name)
            && entries.iter().all(|(known, _)| *known != key)
        {
            entries.push((key, value.clone()));
        }
    }
    Value::map(entries)
}

/// The patterns of one argument; the operands of an `and()` are patterns themselves.
fn gather(pattern: &Bytecode, patterns: &mut Vec<Pattern>) -> Outcome<()> {
    let (Some(first), Some(last)) = (pattern.steps.first(), pattern.steps.last()) else {
        return unsupported("an empty pattern");
    };
    match first.name.as_str() {
        "and" if pattern.steps.len() == 1 => {
            first.arguments.iter().try_for_each(|inner| gather(traversal(inner)?, patterns))
        }
        "or" if pattern.steps.len() == 1 => {
            let mut operands = Vec::new();
            for inner in &first.arguments {
                let mut operand = Vec::new();
                gather(traversal(inner)?, &mut operand)?;
                operands.push(operand);
            }
            patterns.push(Pattern::Any(operands));
            Ok(())
        }
        "or" | "not" | "where" => {
            patterns.push(Pattern::Test(pattern.clone()));
            Ok(())
        }
        "as" => {
            let label = |step: &Instruction| step.arguments.first().map(string).transpose();
            let ends = pattern.steps.len() > 1 && last.name == "as";
            let end = if ends { label(last)? } else { None };
            let until = pattern.steps.len() - usize::from(ends);
            let steps = Bytecode { source: Vec::new(), steps: pattern.steps[1..until].to_vec() };
            let Some(start) = label(first)? else { return unsupported("as() without a label") };
            patterns.push(Pattern::Way { start, steps, end });
            Ok(())
        }
        other => unsupported(format!("a pattern that begins with {other}()")),
    }
}
