//! Branches and loops.

use mangrove_graph::{Result, Token, Value};
use mangrove_gremlin::{Argument, Pick};

use super::arguments::{child, children, count, describe, misfit, name, operand};
use super::groups::{Call, Modulator};
use super::predicates::test;
use crate::logical::{
    Choose, ChooseOn, ChooseOption, Emit, FilterKind, LoopSearch, Repeat, Step, StepNode, Traversal, Until,
};

/// `union(…)`.
pub(super) fn union(call: &Call<'_>) -> Result<Step> {
    Ok(Step::Union(children(&call.site, call.arguments)?))
}

/// `coalesce(…)`.
pub(super) fn coalesce(call: &Call<'_>) -> Result<Step> {
    if call.arguments.is_empty() {
        return Ok(Step::Discard);
    }
    Ok(Step::Coalesce(children(&call.site, call.arguments)?))
}

/// `optional(t)`.
pub(super) fn optional(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [traversal] => Ok(Step::Optional(child(&call.site, traversal)?)),
        given => Err(misfit(&call.site, "one traversal", given)),
    }
}

/// `choose(test, then[, else])`, or `choose(what)` with `option()`s.
pub(super) fn choose(call: &mut Call<'_>) -> Result<Step> {
    let site = call.site;
    let chosen = match call.arguments {
        [on] => Choose { on: ChooseOn::Value(choose_value(call, on)?), options: options(call)?, every: false },
        [on, branches @ ..] if branches.len() <= 2 => {
            let on = match on {
                Argument::Predicate(_) => ChooseOn::Test(test(&site, on)?),
                traversal => ChooseOn::Exists(child(&site, traversal)?),
            };
            let outcomes = [ChooseOption::True, ChooseOption::False];
            Choose { on, options: outcomes.into_iter().zip(children(&site, branches)?).collect(), every: false }
        }
        given => {
            return Err(misfit(
                &site,
                "a test or a traversal that decides, then one or two traversals, or option()s after it",
                given,
            ));
        }
    };
    Ok(Step::Choose(Box::new(chosen)))
}

fn choose_value(call: &Call<'_>, on: &Argument) -> Result<Traversal> {
    Ok(match on {
        Argument::Value(Value::Token(token)) => {
            let step = match token {
                Token::Id => Step::Id,
                Token::Label => Step::Label,
                Token::Key => Step::Key,
                Token::Value => Step::PropertyValue,
            };
            Traversal { steps: vec![StepNode::new(step, call.site.position)] }
        }
        traversal => child(&call.site, traversal)?,
    })
}

fn options(call: &mut Call<'_>) -> Result<Vec<(ChooseOption, Traversal)>> {
    call.take("option").iter().map(option).collect()
}

fn option(modulator: &Modulator<'_>) -> Result<(ChooseOption, Traversal)> {
    let site = &modulator.site;
    let (given, traversal) = match modulator.arguments {
        [given, traversal] => (given, traversal),
        [_] => return Err(site.unsupported("choose() has no option without a value to match; use option(value, …)")),
        other => return Err(misfit(site, "a value, predicate or Pick and a traversal", other)),
    };
    let when = match given {
        Argument::Predicate(_) => ChooseOption::Test(test(site, given)?),
        Argument::Pick(Pick::None) => ChooseOption::None,
        Argument::Pick(Pick::Unproductive) => ChooseOption::Unproductive,
        Argument::Pick(Pick::Any) => {
            return Err(site.unsupported("choose() takes one option only, so not Pick.any; use union(…)"));
        }
        Argument::Traversal(_) => {
            return Err(site.unsupported(
                "Traversal is not allowed as a Pick token for choose()-step; an option is a value, a predicate, \
                 Pick.none or Pick.unproductive",
            ));
        }
        Argument::Merge(_) => {
            return Err(site.unsupported(format_args!(
                "an option of choose() is a value, a predicate, Pick.none or Pick.unproductive, not {}",
                describe(given)
            )));
        }
        value => ChooseOption::Value(operand(site, value)?),
    };
    Ok((when, child(site, traversal)?))
}

/// `branch(what)` with `option()`s: every option that matches the first result of `what` is taken. `Pick.any` is always
/// taken, `Pick.none` if no other option matches, and `Pick.unproductive` if there is no result.
pub(super) fn branch(call: &mut Call<'_>) -> Result<Step> {
    let [on] = call.arguments else {
        return Err(misfit(&call.site, "a traversal that decides, with option()s after it", call.arguments));
    };
    let mut branch = BranchStep { decides: choose_value(call, on)?, options: Vec::new(), tests: Vec::new() };
    for modulator in call.take("option") {
        branch.add(&modulator)?;
    }
    Ok(Step::Choose(Box::new(branch.into_choose())))
}

struct BranchStep {
    decides: Traversal,
    options: Vec<(ChooseOption, Traversal)>,
    /// The tests of the options that are chosen by a traversal.
    tests: Vec<Traversal>,
}

impl BranchStep {
    fn add(&mut self, modulator: &Modulator<'_>) -> Result<()> {
        let site = &modulator.site;
        let (when, traversal) = match modulator.arguments {
            [traversal] => (ChooseOption::Any, child(site, traversal)?),
            [Argument::Pick(Pick::Any), traversal] => (ChooseOption::Any, child(site, traversal)?),
            // A test in the branch itself, which every traverser enters.
            [Argument::Traversal(_), traversal] => {
                let test = self.test_of(child(site, &modulator.arguments[0])?);
                let traversal = filtered(FilterKind::All, vec![test.clone()], child(site, traversal)?);
                self.tests.push(test);
                (ChooseOption::Any, traversal)
            }
            _ => option(modulator)?,
        };
        self.options.push((when, traversal));
        Ok(())
    }

    fn test_of(&self, test: Traversal) -> Traversal {
        let decides = Step::Map { traversal: self.decides.clone(), first: true };
        let mut steps = vec![StepNode::new(decides, None)];
        steps.extend(test.steps);
        Traversal { steps }
    }

    fn into_choose(self) -> Choose {
        let mut options = self.options;
        for (when, traversal) in &mut options {
            if *when == ChooseOption::None && !self.tests.is_empty() {
                *traversal = filtered(FilterKind::None, self.tests.clone(), std::mem::take(traversal));
            }
        }
        Choose { on: ChooseOn::Value(self.decides), options, every: true }
    }
}

/// A traversal that keeps the traversers that pass a filter.
fn filtered(kind: FilterKind, tests: Vec<Traversal>, traversal: Traversal) -> Traversal {
    let filter = StepNode::new(Step::FilterTraversal(kind, tests), None);
    Traversal { steps: std::iter::once(filter).chain(traversal.steps).collect() }
}

/// `repeat(…)` with `until`, `times` and `emit` before or after it.
pub(super) fn repeat(call: &mut Call<'_>) -> Result<Step> {
    let site = call.site;
    let (name, body) = match call.arguments {
        [body] => (None, body),
        [given, body] => (Some(name(&site, given, "the name of a loop")?), body),
        given => return Err(misfit(&site, "a traversal, or the name of the loop and a traversal", given)),
    };
    let body = child(&site, body)?;
    let times = call.take_one("times")?;
    let until = match (call.take_one("until")?, times) {
        (Some(_), Some(times)) => {
            return Err(times.site.unsupported(
                "The repeat()-step already has its until()-modulator declared; times(n) is one too: write \
                 until(or(…, loops().is(n))) instead of both",
            ));
        }
        (until, times) => until.or(times),
    };
    let emit = call.take_one("emit")?;
    Ok(Step::Repeat(Box::new(Repeat {
        name,
        body,
        until_first: until.as_ref().is_some_and(|modulator| modulator.before),
        until: until.as_ref().map(leave_when).transpose()?,
        emit_first: emit.as_ref().is_some_and(|modulator| modulator.before),
        emit: emit.as_ref().map(emit_when).transpose()?,
        search: LoopSearch::default(),
    })))
}

fn leave_when(modulator: &Modulator<'_>) -> Result<Until> {
    let site = &modulator.site;
    match (site.name, modulator.arguments) {
        ("times", [times]) => Ok(Until::Times(count(site, times)?)),
        ("times", given) => Err(misfit(site, "a number", given)),
        (_, [predicate @ Argument::Predicate(_)]) => Ok(Until::Test(test(site, predicate)?)),
        (_, [traversal]) => Ok(Until::Traversal(child(site, traversal)?)),
        (_, given) => Err(misfit(site, "a traversal or a predicate", given)),
    }
}

fn emit_when(modulator: &Modulator<'_>) -> Result<Emit> {
    let site = &modulator.site;
    match modulator.arguments {
        [] => Ok(Emit::Always),
        [predicate @ Argument::Predicate(_)] => Ok(Emit::Test(test(site, predicate)?)),
        [traversal] => Ok(Emit::Traversal(child(site, traversal)?)),
        given => Err(misfit(site, "nothing, a traversal or a predicate", given)),
    }
}
