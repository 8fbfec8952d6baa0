//! Assembles steps with their modulators from bytecode.
//!
//! Bytecode is flat: the instructions `by`, `as`, `from`, `times` … modulate a step before or after them. A case that
//! Gremlin refuses is *wrong*; a form that the interpreter does not know is *unsupported*, and says nothing about the
//! database.

use mangrove_graph::{Direction, Value};
use mangrove_gremlin::{Argument, Bytecode, Instruction, Predicate, Scope};
use smol_str::SmolStr;

use super::{Outcome, unsupported, wrong};

/// The condition of an `until`, `emit` or `times`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopTest<'a> {
    /// True if the modulator was written before its `repeat`.
    pub before: bool,
    pub condition: LoopCondition<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum LoopCondition<'a> {
    Always,
    Times(u32),
    Traversal(&'a Bytecode),
    Predicate(&'a Predicate),
}

/// A step and its modulators.
#[derive(Debug, Default)]
pub(crate) struct Step<'a> {
    /// Identifies the step within the traversal: the address of its instruction. 0 for a step that needs no identity.
    pub at: usize,
    pub name: &'a str,
    pub arguments: &'a [Argument],
    pub labels: Vec<SmolStr>,
    pub by: Vec<&'a [Argument]>,
    pub options: Vec<&'a [Argument]>,
    pub with: Vec<&'a [Argument]>,
    pub from: Option<&'a Argument>,
    pub to: Option<&'a Argument>,
    /// `property(…)` right after `addV` and `addE`.
    pub properties: Vec<&'a [Argument]>,
    pub until: Option<LoopTest<'a>>,
    pub emit: Option<LoopTest<'a>>,
}

impl<'a> Step<'a> {
    /// The argument at this position. Wrong if there is none.
    pub fn argument(&self, at: usize) -> Outcome<&'a Argument> {
        match self.arguments.get(at) {
            Some(argument) => Ok(argument),
            None => wrong(format!("{}() needs more than {at} arguments", self.name)),
        }
    }

    pub fn value(&self, at: usize) -> Outcome<&'a Value> {
        value(self.argument(at)?)
    }

    pub fn traversal(&self, at: usize) -> Outcome<&'a Bytecode> {
        traversal(self.argument(at)?)
    }

    /// An optional name at this position.
    pub fn name_argument(&self, at: usize) -> Outcome<Option<SmolStr>> {
        self.arguments.get(at).map(string).transpose()
    }

    /// All arguments as names.
    pub fn names(&self) -> Outcome<Vec<SmolStr>> {
        self.arguments.iter().map(string).collect()
    }

    pub fn is_local(&self) -> bool {
        matches!(self.arguments.first(), Some(Argument::Scope(Scope::Local)))
    }

    /// The whole numbers among the arguments (after a scope).
    pub fn numbers(&self) -> Outcome<Vec<i64>> {
        self.arguments.iter().filter(|a| !matches!(a, Argument::Scope(_))).map(number).collect()
    }
}

pub(crate) fn value(argument: &Argument) -> Outcome<&Value> {
    match argument {
        Argument::Value(value) => Ok(value),
        other => unsupported(format!("{other:?} where a literal is needed")),
    }
}

pub(crate) fn string(argument: &Argument) -> Outcome<SmolStr> {
    match argument {
        Argument::Value(Value::String(s)) => Ok(s.clone()),
        other => unsupported(format!("{other:?} where a name is needed")),
    }
}

pub(crate) fn number(argument: &Argument) -> Outcome<i64> {
    match argument {
        Argument::Value(v) if mangrove_graph::numeric::integer(v).is_some() => {
            Ok(mangrove_graph::numeric::integer(v).unwrap_or_default())
        }
        other => unsupported(format!("{other:?} where a whole number is needed")),
    }
}

pub(crate) fn traversal(argument: &Argument) -> Outcome<&Bytecode> {
    match argument {
        Argument::Traversal(bytecode) => Ok(bytecode),
        other => unsupported(format!("{other:?} where a traversal is needed")),
    }
}

/// The steps that `by()` modulates.
const TAKES_BY: [&str; 20] = [
    "aggregate",
    "cyclicPath",
    "dedup",
    "format",
    "group",
    "groupCount",
    "math",
    "order",
    "path",
    "project",
    "propertyMap",
    "sack",
    "sample",
    "select",
    "simplePath",
    "store",
    "subgraph",
    "tree",
    "valueMap",
    "where",
];

/// Attaches every modulator to its step.
pub(crate) fn assemble(bytecode: &Bytecode) -> Outcome<Vec<Step<'_>>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    // `until`, `emit` and `times` that were written before their `repeat`.
    let mut pending = Step::default();
    for instruction in &bytecode.steps {
        let (name, arguments) = (instruction.name.as_str(), instruction.arguments.as_slice());
        match name {
            "as" => {
                if steps.is_empty() {
                    steps.push(Step { name: "start", ..Step::default() });
                }
                let last = steps.last_mut().expect("one was pushed if there was none");
                for argument in arguments {
                    last.labels.push(string(argument)?);
                }
            }
            "until" | "emit" | "times" => {
                // A modulator that the `repeat` has already belongs to the next one, and so do those that follow it.
                let next_has_begun = pending.until.is_some() || pending.emit.is_some();
                let is_open = |s: &&mut Step<'_>| {
                    let has = if name == "emit" { s.emit.is_some() } else { s.until.is_some() };
                    s.name == "repeat" && !has && !next_has_begun
                };
                let repeat = steps.last_mut().filter(is_open);
                let before = repeat.is_none();
                let target = repeat.unwrap_or(&mut pending);
                let condition = match (name, arguments.first()) {
                    ("times", Some(n)) => LoopCondition::Times(u32::try_from(number(n)?).unwrap_or(0)),
                    (_, Some(Argument::Predicate(predicate))) => LoopCondition::Predicate(predicate),
                    (_, Some(argument)) => LoopCondition::Traversal(traversal(argument)?),
                    (_, None) => LoopCondition::Always,
                };
                let test = Some(LoopTest { before, condition });
                if name == "emit" { target.emit = test } else { target.until = test }
            }
            "to" | "toE" | "toV" if leads_somewhere(arguments) => steps.push(directed(name, arguments)),
            "by" | "option" | "with" | "from" | "to" => {
                let Some(last) = steps.last_mut() else { return wrong(format!("{name}() modulates no step")) };
                if name == "by" && !TAKES_BY.contains(&last.name) {
                    return wrong(format!("by() modulates no {}()", last.name));
                }
                match name {
                    "by" => last.by.push(arguments),
                    "option" => last.options.push(arguments),
                    "with" => last.with.push(arguments),
                    "from" => last.from = arguments.first(),
                    _ => last.to = arguments.first(),
                }
            }
            "property" if steps.last().is_some_and(|s| s.name == "addV" || s.name == "addE") => {
                steps.last_mut().expect("just seen").properties.push(arguments);
            }
            "repeat" => {
                let waiting = std::mem::take(&mut pending);
                steps.push(Step { name, arguments, until: waiting.until, emit: waiting.emit, ..Step::default() });
            }
            _ => {
                let at = std::ptr::from_ref(instruction).addr();
                steps.push(Step { at, name, arguments, ..Step::default() });
            }
        }
    }
    if pending.until.is_some() || pending.emit.is_some() {
        return wrong("until(), emit() or times() without repeat()");
    }
    const WITH_ENDS: [&str; 5] = ["addE", "path", "simplePath", "cyclicPath", "tree"];
    if let Some(step) = steps.iter().find(|s| (s.from.is_some() || s.to.is_some()) && !WITH_ENDS.contains(&s.name)) {
        return unsupported(format!("{}() with from() or to()", step.name));
    }
    Ok(steps)
}

/// Returns true if a `to…` names a direction, so that it is a step and no modulator.
fn leads_somewhere(arguments: &[Argument]) -> bool {
    matches!(arguments.first(), Some(Argument::Value(Value::Direction(_))))
}

/// `to(OUT, …)`, `toE(OUT, …)` and `toV(OUT)` are `out(…)`, `outE(…)` and `outV()`.
fn directed<'a>(name: &str, arguments: &'a [Argument]) -> Step<'a> {
    let names = match arguments.first() {
        Some(Argument::Value(Value::Direction(Direction::Out))) => ["out", "outE", "outV"],
        Some(Argument::Value(Value::Direction(Direction::In))) => ["in", "inE", "inV"],
        _ => ["both", "bothE", "bothV"],
    };
    let name = match name {
        "to" => names[0],
        "toE" => names[1],
        _ => names[2],
    };
    Step { name, arguments: &arguments[1..], ..Step::default() }
}

/// The traversal with infix `and()` and `or()` of its children in prefix form.
pub(crate) fn prefixed(traversal: &Bytecode) -> Bytecode {
    let child = |argument: &Argument| match argument {
        Argument::Traversal(child) => Argument::Traversal(prefixed(&joined(child))),
        other => other.clone(),
    };
    let steps = traversal.steps.iter().map(|instruction| {
        Instruction::new(instruction.name.clone(), instruction.arguments.iter().map(child).collect())
    });
    Bytecode { source: Vec::new(), steps: steps.collect() }
}

/// `a.or().b.and().c` is `or(a, and(b, c))`: `and` binds tighter.
fn joined(traversal: &Bytecode) -> Bytecode {
    for name in ["or", "and"] {
        let parts: Vec<&[Instruction]> =
            traversal.steps.split(|step| step.name == name && step.arguments.is_empty()).collect();
        if parts.len() > 1 {
            let part = |steps: &&[Instruction]| {
                Argument::Traversal(joined(&Bytecode { source: Vec::new(), steps: steps.to_vec() }))
            };
            let all = Instruction::new(name, parts.iter().map(part).collect());
            return Bytecode { source: Vec::new(), steps: vec![all] };
        }
    }
    traversal.clone()
}
