//! `union`, `choose`, `repeat`: steps with global children.

use mangrove_gremlin::{Argument, Bytecode, Pick};
use smol_str::SmolStr;

use super::step::{LoopCondition, LoopTest, Step, traversal};
use super::traverser::Loop;
use super::{Failure, Interpreter, LOOP_COUNT_MAX, Outcome, Stream, Traverser, first, unsupported, wrong};

impl Interpreter<'_> {
    /// Every branch receives the whole stream. If the stream is empty, no branch begins, not even a `count()` in it.
    pub(crate) fn union(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let mut out = Vec::new();
        if input.is_empty() {
            return Ok(out);
        }
        for at in 0..step.arguments.len() {
            out.extend(self.child(step.traversal(at)?, input.clone())?);
        }
        Ok(out)
    }

    pub(crate) fn choose(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        if input.is_empty() {
            return Ok(Vec::new());
        }
        if step.options.is_empty() { self.choose_between(step, input) } else { self.choose_option(step, input) }
    }

    /// `choose(test, yes[, no])`; without `no` the traverser passes through.
    fn choose_between(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for t in input {
            let holds = match step.argument(0)? {
                Argument::Traversal(test) => self.test(test, &t)?,
                test => self.argument_matches(test, &t.value)?,
            };
            if holds { yes.push(t) } else { no.push(t) }
        }
        let mut out = self.taken(step.traversal(1)?, yes)?;
        match step.arguments.get(2) {
            Some(otherwise) => out.extend(self.taken(traversal(otherwise)?, no)?),
            None => out.extend(no),
        }
        Ok(out)
    }

    /// An option, and the traversers that took it. If no traverser took it, it does not begin, not even a `count()` in
    /// it.
    fn taken(&mut self, option: &Bytecode, stream: Stream) -> Outcome<Stream> {
        if stream.is_empty() { Ok(stream) } else { self.child(option, stream) }
    }

    /// `choose(f).option(…)`: the first option that matches, else `Pick.none`, else the traverser passes through.
    fn choose_option(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let mut chosen: Vec<Stream> = step.options.iter().map(|_| Vec::new()).collect();
        let mut out = Vec::new();
        for t in input {
            match self.option_for(step, &t)? {
                Some(at) => chosen[at].push(t),
                None => out.push(t),
            }
        }
        for (arguments, stream) in step.options.iter().zip(chosen) {
            out.extend(self.taken(option_branch(arguments)?, stream)?);
        }
        Ok(out)
    }

    /// `branch(f).option(…)`: every option that matches the first result of `f`, and always `Pick.any`. If no option
    /// matches, `Pick.none`; if `f` has no result, `Pick.unproductive` in place of `Pick.none`.
    pub(crate) fn branch(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let mut chosen: Vec<Stream> = step.options.iter().map(|_| Vec::new()).collect();
        for t in input {
            let made = match step.argument(0)? {
                Argument::Traversal(f) => first(self.local_child(f, &t)?),
                _ => self.by(step.arguments, &t)?,
            };
            let mut matched = false;
            for (at, option) in step.options.iter().enumerate() {
                let takes = match option {
                    [Argument::Pick(Pick::Any), _] | [_] => true,
                    [Argument::Pick(_), _] => false,
                    [test, _] => {
                        let matches = match &made {
                            Some(made) => self.argument_matches(test, made)?,
                            None => false,
                        };
                        matched |= matches;
                        matches
                    }
                    _ => return unsupported("option() like this"),
                };
                if takes {
                    chosen[at].push(t.clone());
                }
            }
            let place = |pick| step.options.iter().position(|o| matches!(o, [Argument::Pick(p), _] if *p == pick));
            let otherwise = match &made {
                Some(_) => place(Pick::None),
                None => place(Pick::Unproductive).or_else(|| place(Pick::None)),
            };
            if let (false, Some(at)) = (matched, otherwise) {
                chosen[at].push(t);
            }
        }
        let mut out = Vec::new();
        for (arguments, stream) in step.options.iter().zip(chosen) {
            out.extend(self.taken(option_branch(arguments)?, stream)?);
        }
        Ok(out)
    }

    fn option_for(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<usize>> {
        let pick = |wanted| step.options.iter().position(|o| matches!(o, [Argument::Pick(p), _] if *p == wanted));
        let made = match step.argument(0)? {
            Argument::Traversal(f) => first(self.local_child(f, t)?),
            _ => self.by(step.arguments, t)?,
        };
        let Some(made) = made else { return Ok(pick(Pick::Unproductive)) };
        for (at, option) in step.options.iter().enumerate() {
            match option {
                [Argument::Pick(Pick::Any), _] => return wrong("choose() takes one option: none for all"),
                [Argument::Pick(_), _] => {}
                [test, _] if self.argument_matches(test, &made)? => return Ok(Some(at)),
                _ => {}
            }
        }
        Ok(pick(Pick::None))
    }

    /// `repeat`: the whole frontier goes through the body, iteration by iteration.
    pub(crate) fn repeat(&mut self, step: &Step<'_>, input: Stream) -> Outcome<Stream> {
        let (name, body) = match step.arguments {
            [Argument::Traversal(body)] => (None, body),
            [_, Argument::Traversal(body)] => (step.name_argument(0)?, body),
            _ => return unsupported("repeat() with these arguments"),
        };
        let met = std::mem::take(&mut self.met);
        let out = self.run_loop(step, name, body, input);
        self.met = met;
        out
    }

    fn run_loop(
        &mut self,
        step: &Step<'_>,
        name: Option<SmolStr>,
        body: &Bytecode,
        mut frontier: Stream,
    ) -> Outcome<Stream> {
        for t in &mut frontier {
            t.loops.push(Loop { name: name.clone(), count: 0 });
        }
        let mut out = Vec::new();
        while !frontier.is_empty() {
            // Tests that are written before the body run when a traverser enters it, the others when it leaves. A
            // traverser that goes round meets both.
            let (left, inside) = self.leave_and_emit(step, frontier, true, &mut out)?;
            out.extend(left.into_iter().map(leaving));
            if inside.first().is_some_and(|t: &Traverser| innermost(t) >= LOOP_COUNT_MAX) {
                return Err(Failure::TooBig);
            }
            let mut round = if inside.is_empty() { inside } else { self.child(body, inside)? };
            for t in &mut round {
                match t.loops.last_mut() {
                    Some(l) => l.count += 1,
                    None => return unsupported("a repeat() whose body loses its traversers"),
                }
            }
            let (left, inside) = self.leave_and_emit(step, round, false, &mut out)?;
            out.extend(left.into_iter().map(leaving));
            frontier = inside;
        }
        Ok(out)
    }

    /// Splits off the traversers for which `until` holds before (or after) the body, and emits those for which `emit`
    /// holds.
    fn leave_and_emit(
        &mut self,
        step: &Step<'_>,
        stream: Stream,
        before: bool,
        out: &mut Stream,
    ) -> Outcome<(Stream, Stream)> {
        let (mut left, mut inside) = (Vec::new(), Vec::new());
        for t in stream {
            if self.loop_test(step.until, before, &t)? {
                left.push(t);
                continue;
            }
            if self.loop_test(step.emit, before, &t)? {
                out.push(leaving(t.clone()));
            }
            inside.push(t);
        }
        Ok((left, inside))
    }

    fn loop_test(&mut self, test: Option<LoopTest<'_>>, before: bool, t: &Traverser) -> Outcome<bool> {
        match test {
            Some(test) if test.before == before => match test.condition {
                LoopCondition::Always => Ok(true),
                LoopCondition::Times(n) => Ok(innermost(t) >= n),
                LoopCondition::Traversal(child) => self.test(child, t),
                LoopCondition::Predicate(predicate) => super::predicate::passes(predicate, &t.value),
            },
            _ => Ok(false),
        }
    }
}

fn innermost(t: &Traverser) -> u32 {
    t.loops.last().map_or(0, |l| l.count)
}

fn leaving(mut t: Traverser) -> Traverser {
    t.loops.pop();
    t
}

fn option_branch(arguments: &[Argument]) -> Outcome<&Bytecode> {
    match arguments {
        [branch] | [_, branch] => traversal(branch),
        _ => unsupported("option() without a key"),
    }
}
