//! Forms of traversals that the engine once answered wrongly, each as a predicate on traversals. If the generator
//! stopped making one of them, such mistakes would go unnoticed.

use std::collections::BTreeSet;

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Bytecode, Instruction, Merge, Pick};

use super::{CASE_COUNT, TRAVERSALS};

/// The least number of occurrences of a form in this many cases.
const TIMES_MIN: usize = 20;

/// A form: its description, and a predicate that returns true if a traversal has it.
type Form = (&'static str, fn(&Bytecode) -> bool);

const FORMS: &[Form] = &[
    ("inject() after other steps", |t| t.steps.iter().skip(1).any(|step| is(step, &["inject"]))),
    ("inject() after a union() in order", |t| {
        let names: Vec<&str> = names(&t.steps).collect();
        let after = |name: &str, from: usize| names[from..].iter().position(|n| *n == name).map(|at| at + from);
        after("order", 0).and_then(|at| after("union", at)).and_then(|at| after("inject", at)).is_some()
    }),
    ("inject() of equal values", |t| t.steps.iter().any(|step| is(step, &["inject"]) && has_equal(&step.arguments))),
    ("timeLimit()", |t| anywhere(t, &|steps| steps.iter().any(|step| is(step, &["timeLimit"])))),
    ("a side effect in a child, after a walk by which many traversers come to one vertex", |t| {
        let walk = t.steps.iter().position(|step| is(step, &["repeat"]));
        walk.is_some_and(|at| fills_in_child(&t.steps[at + 1..]))
    }),
    ("a side effect in a child, after a barrier", |t| {
        let barrier = t.steps.iter().position(|step| is(step, &["barrier"]));
        barrier.is_some_and(|at| fills_in_child(&t.steps[at + 1..]))
    }),
    ("a side effect in an operand of or() that is not the first", |t| {
        anywhere(t, &|steps| {
            let fills = |step: &Instruction| step.arguments.iter().skip(1).any(|operand| is_child(operand, gathers));
            steps.iter().any(|step| is(step, &["or"]) && fills(step))
        })
    }),
    ("a merge that looks for what a traversal does not give", |t| {
        t.steps.iter().any(|step| is(step, &["mergeV", "mergeE"]) && step.arguments.first().is_some_and(gives_nothing))
    }),
    ("a merge that makes what a traversal does not give", |t| option_without_map(t, Merge::OnCreate)),
    ("a merge that writes what a traversal does not give", |t| option_without_map(t, Merge::OnMatch)),
    ("properties that are held while they get properties", |t| {
        let held = t.steps.iter().position(|step| is(step, &["properties"]));
        held.is_some_and(|at| {
            let after = &t.steps[at..];
            let writes = |steps: &[Instruction]| steps.iter().any(|step| is(step, &["property"]));
            let written = writes(after) || after.iter().flat_map(children).any(|child| writes(&child.steps));
            written && after.iter().any(|step| is(step, &["sideEffect", "select", "cap"]))
        })
    }),
    ("or() in match() that binds a variable", |t| {
        anywhere(t, &|steps| {
            let binds =
                |pattern: &Bytecode| pattern.steps.len() > 1 && pattern.steps.last().is_some_and(|s| s.name == "as");
            let patterns = steps.iter().filter(|step| is(step, &["match"])).flat_map(children);
            let either = patterns.flat_map(|pattern| &pattern.steps).filter(|step| is(step, &["or"]));
            either.flat_map(children).any(binds)
        })
    }),
    ("not() of several patterns in match()", |t| {
        anywhere(t, &|steps| {
            let patterns = steps.iter().filter(|step| is(step, &["match"])).flat_map(children);
            let not = patterns.flat_map(|pattern| &pattern.steps).filter(|step| is(step, &["not"]));
            not.flat_map(children).any(|child| names(&child.steps).eq(["and"]))
        })
    }),
    ("branch() on a traversal with several results", |t| on_several(t, "branch")),
    ("choose() on a traversal with several results", |t| on_several(t, "choose")),
    ("branch() with an option for what gives nothing", |t| {
        anywhere(t, &|steps| {
            let after = steps.iter().position(|step| is(step, &["branch"])).map_or(&[][..], |at| &steps[at + 1..]);
            let options = after.iter().take_while(|step| is(step, &["option"]));
            options.into_iter().any(|step| matches!(step.arguments.first(), Some(Argument::Pick(Pick::Unproductive))))
        })
    }),
    ("has() or hasNot() of a key among properties of which some are hidden", |t| {
        hides_properties(t) && t.steps.iter().any(|step| is(step, &["has", "hasNot"]) && step.arguments.len() == 1)
    }),
    ("by(key) among properties of which some are hidden", |t| {
        let by_key = |step: &Instruction| matches!(step.arguments.first(), Some(Argument::Value(Value::String(_))));
        hides_properties(t) && t.steps.iter().any(|step| is(step, &["by"]) && by_key(step))
    }),
    ("maps of properties of which some are hidden", |t| {
        hides_properties(t) && t.steps.iter().any(|step| is(step, &["valueMap", "propertyMap"]))
    }),
    ("productive keys", |t| has_setting(t, "ProductiveByStrategy", "productiveKeys")),
    ("productive by() of a formula", |t| {
        has_setting(t, "ProductiveByStrategy", "") && anywhere(t, &|steps| steps.iter().any(|step| is(step, &["math"])))
    }),
    ("reserved keys", |t| has_setting(t, "ReservedKeysVerificationStrategy", "throwException")),
    ("an explicit cardinality before a property without one, on a new vertex", |t| {
        let made = t.steps.iter().position(|step| is(step, &["addV"]));
        made.is_some_and(|at| {
            let says = |step: &Instruction| matches!(step.arguments.first(), Some(Argument::Cardinality(_)));
            let properties: Vec<_> = t.steps[at + 1..].iter().take_while(|step| is(step, &["property"])).collect();
            let key = |step: &Instruction| step.arguments.get(usize::from(says(step))).cloned();
            let pair = |pair: &[&Instruction]| says(pair[0]) && !says(pair[1]) && key(pair[0]) == key(pair[1]);
            properties.windows(2).any(pair)
        })
    }),
    ("a loop whose condition stands right after another loop", |t| {
        t.steps.windows(4).any(|w| {
            let loops = |step: &Instruction| is(step, &["times", "until", "emit"]);
            is(&w[0], &["repeat"]) && loops(&w[1]) && loops(&w[2]) && (loops(&w[3]) || is(&w[3], &["repeat"]))
        })
    }),
    ("propertyMap() with a modulator", |t| {
        anywhere(t, &|steps| steps.windows(2).any(|w| is(&w[0], &["propertyMap"]) && is(&w[1], &["by"])))
    }),
    ("two strategies of one name in one call", |t| {
        let strategies = t.source.iter().filter(|step| is(step, &["withStrategies"]));
        strategies.into_iter().any(|step| {
            let names: Vec<_> = step.arguments.iter().filter_map(strategy_name).collect();
            names.iter().collect::<BTreeSet<_>>().len() < names.len()
        })
    }),
    ("a strategy that replaces one of an earlier call", |t| {
        let calls = t.source.iter().filter(|step| is(step, &["withStrategies"]));
        let names: Vec<_> = calls.filter_map(|step| step.arguments.first().and_then(strategy_name)).collect();
        names.iter().collect::<BTreeSet<_>>().len() < names.len()
    }),
];

fn is(step: &Instruction, names: &[&str]) -> bool {
    names.contains(&step.name.as_str())
}

fn names(steps: &[Instruction]) -> impl Iterator<Item = &str> {
    steps.iter().map(|step| step.name.as_str())
}

fn children(step: &Instruction) -> impl Iterator<Item = &Bytecode> {
    step.arguments.iter().filter_map(|argument| match argument {
        Argument::Traversal(child) => Some(child),
        _ => None,
    })
}

fn is_child(argument: &Argument, has: fn(&Bytecode) -> bool) -> bool {
    matches!(argument, Argument::Traversal(child) if has(child))
}

/// Returns true if the predicate holds for the steps of the traversal, or of a nested one at any depth.
fn anywhere(traversal: &Bytecode, has: &dyn Fn(&[Instruction]) -> bool) -> bool {
    has(&traversal.steps) || traversal.steps.iter().flat_map(children).any(|child| anywhere(child, has))
}

/// Returns true if a step at any depth fills a side effect.
fn gathers(traversal: &Bytecode) -> bool {
    anywhere(traversal, &|steps| {
        let named = |step: &Instruction| matches!(step.arguments.first(), Some(Argument::Value(Value::String(_))));
        let all = ["aggregate", "store", "group", "groupCount", "tree", "subgraph"];
        steps.iter().any(|step| is(step, &all) && named(step))
    })
}

fn fills_in_child(steps: &[Instruction]) -> bool {
    steps.iter().flat_map(children).any(gathers)
}

fn has_equal(arguments: &[Argument]) -> bool {
    (1..arguments.len()).any(|at| arguments[..at].contains(&arguments[at]))
}

/// Returns true for a traversal without a result.
fn gives_nothing(argument: &Argument) -> bool {
    let Argument::Traversal(child) = argument else { return false };
    match child.steps.as_slice() {
        [only] => match only.name.as_str() {
            "select" => only.arguments == [Argument::Value("nothing".into())],
            "not" => true,
            "is" => true,
            _ => false,
        },
        _ => false,
    }
}

fn option_without_map(traversal: &Bytecode, which: Merge) -> bool {
    traversal.steps.iter().any(|step| match step.arguments.as_slice() {
        [Argument::Merge(merge), given] => *merge == which && gives_nothing(given),
        _ => false,
    })
}

/// Returns true if the step branches on a traversal with several results.
fn on_several(traversal: &Bytecode, name: &str) -> bool {
    anywhere(traversal, &|steps| {
        let several = |child: &Bytecode| match child.steps.as_slice() {
            [only] if is(only, &["values"]) => {
                matches!(only.arguments.as_slice(), [Argument::Value(Value::String(key))] if key == "nick" || key == "rank")
            }
            [only] => is(only, &["unfold", "union"]),
            _ => false,
        };
        steps.iter().any(|step| is(step, &[name]) && step.arguments.len() == 1 && children(step).any(several))
    })
}

fn strategy_name(argument: &Argument) -> Option<&str> {
    match argument {
        Argument::Strategy(name, _) => Some(name),
        _ => None,
    }
}

/// Returns true if the source has the strategy with this setting (with any setting if `None`).
fn has_setting(traversal: &Bytecode, strategy: &str, setting: &str) -> bool {
    let has = |settings: &[(smol_str::SmolStr, Argument)]| {
        setting.is_empty() || settings.iter().any(|(known, _)| known == setting)
    };
    let arguments = traversal.source.iter().flat_map(|step| &step.arguments);
    arguments.into_iter().any(|a| matches!(a, Argument::Strategy(name, settings) if name == strategy && has(settings)))
}

fn hides_properties(traversal: &Bytecode) -> bool {
    has_setting(traversal, "SubgraphStrategy", "vertexProperties")
        || has_setting(traversal, "PartitionStrategy", "includeMetaProperties")
}

#[test]
fn forms_that_once_went_wrong_are_generated() {
    let mut missing = Vec::new();
    for (form, has) in FORMS {
        let times = TRAVERSALS.iter().filter(|traversal| has(traversal)).count();
        println!("{times:8} {form}");
        if times < TIMES_MIN {
            missing.push(format!("{form}: {times} of {CASE_COUNT}"));
        }
    }
    assert!(missing.is_empty(), "too seldom generated: {missing:?}");
}

/// The scopes in which a step may occur.
const SCOPES: &[&str] = &[
    "local",
    "flatMap",
    "sideEffect",
    "map",
    "where",
    "filter",
    "not",
    "and",
    "or",
    "union",
    "optional",
    "coalesce",
    "choose",
    "branch",
    "repeat",
    "option",
    "by",
];

/// Returns true if the traversal has a child of such a step that contains one of these steps.
fn stands_in(traversal: &Bytecode, scope: &str, wanted: fn(&Instruction) -> bool) -> bool {
    anywhere(traversal, &|steps| {
        let scopes = steps.iter().filter(|step| is(step, &[scope]));
        scopes.flat_map(children).any(|child| child.steps.iter().any(wanted))
    })
}

#[test]
fn side_effects_and_barriers_are_generated_in_every_scope() {
    let fills = |step: &Instruction| gathers(&Bytecode { source: Vec::new(), steps: vec![step.clone()] });
    let mut missing = Vec::new();
    for scope in SCOPES {
        let filled = TRAVERSALS.iter().filter(|t| stands_in(t, scope, fills)).count();
        let barred = TRAVERSALS.iter().filter(|t| stands_in(t, scope, |step| is(step, &["barrier"]))).count();
        println!("{filled:8} side effects and {barred:8} barriers in {scope}()");
        if filled == 0 || barred == 0 {
            missing.push(*scope);
        }
    }
    assert!(missing.is_empty(), "without a side effect or without a barrier: {missing:?}");
}
