//! Filters: the `has…` steps, `is`, `where`, `and`, `or`, `not`, `dedup`, ranges and the tests of paths.

use mangrove_graph::{Result, Token, Value};
use mangrove_gremlin::{Argument, Bytecode, Comparison, Instruction, Scope};

use super::arguments::{child, children, count, describe, integer, long, misfit, name, names, nullable_name, operand};
use super::connectives;
use super::functions;
use super::groups::Call;
use super::modulators::{by, segment, single_by};
use super::predicates::{id_test, label_test, test};
use super::site::Site;
use super::steps;
use crate::literals::Fact;
use crate::logical::{
    By, Condition, FilterKind, LabelTest, LocalFunction, Lookup, Name, Operand, Quantifier, Step, Test,
};

/// The condition that no element meets. It stands for a null label, key or id.
fn never() -> Condition {
    Condition::LabelIn(Vec::new())
}

/// `has(…)`.
pub(super) fn has(call: &Call<'_>) -> Result<Step> {
    let site = &call.site;
    if let [accessor, Argument::Traversal(test)] = call.arguments {
        return has_traversal(site, accessor, test);
    }
    Ok(Step::Has(match call.arguments {
        [Argument::Value(Value::Token(token))] => {
            return Err(
                site.invalid(format_args!("every element has {token:?}; has(T.…) needs a value to compare with"))
            );
        }
        [key] => vec![nullable_name(site, key, "a property key")?.map_or_else(never, Condition::HasKey)],
        [accessor, value] => vec![accessor_condition(site, accessor, value)?],
        [label, key, value] => {
            let label = labels_condition(site, std::slice::from_ref(label))?;
            vec![label, accessor_condition(site, key, value)?]
        }
        given => {
            return Err(misfit(site, "a key, a key and a value or predicate, or a label before these", given));
        }
    }))
}

/// `has(key, traversal)`: a value under the key passes the traversal. 3.8 has dropped it; clients of 3.7 still send it.
fn has_traversal(site: &Site<'_>, accessor: &Argument, test: &Bytecode) -> Result<Step> {
    let first = match accessor {
        Argument::Value(Value::Token(token)) => {
            let name = match token {
                Token::Id => "id",
                Token::Label => "label",
                Token::Key => "key",
                Token::Value => "value",
            };
            Instruction::new(name, Vec::new())
        }
        key => Instruction::new("values", vec![key.clone()]),
    };
    let steps = std::iter::once(first).chain(test.steps.iter().cloned()).collect();
    let child = steps::child(&Bytecode { source: Vec::new(), steps }, site)?;
    Ok(Step::FilterTraversal(FilterKind::All, vec![child]))
}

fn accessor_condition(site: &Site<'_>, accessor: &Argument, value: &Argument) -> Result<Condition> {
    Ok(match accessor {
        Argument::Value(Value::Token(Token::Id)) => ids_condition(site, std::slice::from_ref(value))?,
        Argument::Value(Value::Token(Token::Label)) => labels_condition(site, std::slice::from_ref(value))?,
        Argument::Value(Value::Token(Token::Key)) => Condition::PropertyKey(test(site, value)?),
        Argument::Value(Value::Token(Token::Value)) => Condition::PropertyValue(test(site, value)?),
        key => match nullable_name(site, key, "a property key")? {
            Some(key) => Condition::Property(key, test(site, value)?),
            None => never(),
        },
    })
}

/// `hasLabel(…)`.
pub(super) fn has_label(call: &Call<'_>) -> Result<Step> {
    Ok(Step::Has(vec![labels_condition(&call.site, call.arguments)?]))
}

fn labels_condition(site: &Site<'_>, arguments: &[Argument]) -> Result<Condition> {
    match arguments {
        [] => Err(misfit(site, "one or more labels, or a predicate", arguments)),
        [predicate @ Argument::Predicate(_)] => Ok(label_condition(test(site, predicate)?)),
        labels => {
            let mut taken = Vec::with_capacity(labels.len());
            for label in labels {
                taken.extend(nullable_name(site, label, "a label")?);
            }
            Ok(Condition::LabelIn(taken))
        }
    }
}

/// A test of labels. One that is a choice among labels becomes a set of them: labels are looked up, but a test runs for
/// every element.
fn label_condition(test: Test) -> Condition {
    fn text(operand: &Operand) -> Option<Name> {
        match operand {
            Operand::Literal(Value::String(text)) => Some(text.clone()),
            _ => None,
        }
    }
    let labels = match &test {
        Test::Compare(Comparison::Eq, operand) => text(operand).map(|label| vec![label]),
        Test::Within(operands) => operands.iter().map(text).collect(),
        _ => None,
    };
    labels.map_or_else(|| Condition::Label(test), Condition::LabelIn)
}

/// `hasId(…)`.
pub(super) fn has_id(call: &Call<'_>) -> Result<Step> {
    Ok(Step::Has(vec![ids_condition(&call.site, call.arguments)?]))
}

fn ids_condition(site: &Site<'_>, arguments: &[Argument]) -> Result<Condition> {
    Ok(Condition::Id(match arguments {
        [] => return Err(misfit(site, "one or more ids, or a predicate", arguments)),
        [predicate @ Argument::Predicate(_)] => id_test(site, predicate)?,
        ids => {
            let mut taken = Vec::with_capacity(ids.len());
            for id in ids {
                flatten(super::arguments::id_operand(site, id)?, &mut taken);
            }
            among(taken)
        }
    }))
}

fn flatten(operand: Operand, taken: &mut Vec<Operand>) {
    match operand {
        Operand::Literal(Value::Null) => {}
        Operand::Literal(Value::List(items) | Value::Set(items)) => {
            items.iter().for_each(|item| flatten(Operand::Literal(item.clone()), taken));
        }
        Operand::List(items) => items.into_iter().for_each(|item| flatten(item, taken)),
        single => taken.push(single),
    }
}

fn among(mut operands: Vec<Operand>) -> Test {
    match operands.as_slice() {
        // A parameter may turn out to be a list; `Within` accepts it as well as a single value.
        [Operand::Literal(_) | Operand::Lifted(_)] => Test::Compare(Comparison::Eq, operands.remove(0)),
        _ => Test::Within(operands),
    }
}

/// `hasKey(…)` and `hasValue(…)` of a property.
pub(super) fn has_property(call: &Call<'_>) -> Result<Step> {
    let site = &call.site;
    let keys = site.name == "hasKey";
    let test = match call.arguments {
        [] => return Err(misfit(site, "one or more of what is looked for, or a predicate", call.arguments)),
        [predicate @ Argument::Predicate(_)] => test(site, predicate)?,
        values => {
            if keys {
                values.iter().try_for_each(|key| nullable_name(site, key, "a property key").map(drop))?;
            }
            among(values.iter().map(|value| operand(site, value)).collect::<Result<_>>()?)
        }
    };
    Ok(Step::Has(vec![if keys { Condition::PropertyKey(test) } else { Condition::PropertyValue(test) }]))
}

/// `hasNot(key)`.
pub(super) fn has_not(call: &Call<'_>) -> Result<Step> {
    let [key] = call.arguments else {
        return Err(misfit(&call.site, "a property key", call.arguments));
    };
    Ok(match nullable_name(&call.site, key, "a property key")? {
        Some(key) => Step::Has(vec![Condition::HasNot(key)]),
        // No element has a property under null.
        None => Step::Identity,
    })
}

/// `is(…)`.
pub(super) fn is(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [argument] => Ok(Step::Is(test(&call.site, argument)?)),
        given => Err(misfit(&call.site, "a value or a predicate", given)),
    }
}

/// `where(P)`, `where("a", P)` and `where(traversal)`.
pub(super) fn where_(call: &mut Call<'_>) -> Result<Step> {
    let site = call.site;
    match call.arguments {
        [Argument::Predicate(predicate)] => where_predicate(call, None, label_test(&site, predicate)?),
        [start, Argument::Predicate(predicate)] => {
            let start = name(&site, start, "a step label")?;
            where_predicate(call, Some(start), label_test(&site, predicate)?)
        }
        [Argument::Traversal(bytecode)] => {
            let pattern = connectives::pattern(&site, bytecode)?;
            Ok(Step::FilterTraversal(FilterKind::All, vec![steps::child(&pattern, &site)?]))
        }
        given => Err(misfit(&site, "a predicate, a step label and a predicate, or a traversal", given)),
    }
}

fn where_predicate(call: &mut Call<'_>, start: Option<Name>, test: LabelTest) -> Result<Step> {
    Ok(Step::WherePredicate { start, test, by: by(call)?, lookup: Lookup::Scope(None) })
}

/// `filter(traversal)` and `filter(P)`.
pub(super) fn filter(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [predicate @ Argument::Predicate(_)] => Ok(Step::Is(test(&call.site, predicate)?)),
        [traversal] => Ok(Step::FilterTraversal(FilterKind::All, vec![child(&call.site, traversal)?])),
        given => Err(misfit(&call.site, "a traversal or a predicate", given)),
    }
}

/// `and(…)`, `or(…)` and `not(…)`.
pub(super) fn connective(call: &Call<'_>) -> Result<Step> {
    let kind = match call.site.name {
        "and" => FilterKind::All,
        "or" => FilterKind::Any,
        _ => FilterKind::None,
    };
    if kind == FilterKind::None && call.arguments.len() != 1 {
        return Err(misfit(&call.site, "one traversal", call.arguments));
    }
    Ok(Step::FilterTraversal(kind, children(&call.site, call.arguments)?))
}

/// Removes a leading `Scope`. Returns true if it is `local`.
pub(super) fn take_local(call: &mut Call<'_>) -> bool {
    match call.arguments {
        [Argument::Scope(scope), rest @ ..] => {
            call.arguments = rest;
            *scope == Scope::Local
        }
        _ => false,
    }
}

/// `dedup(labels…)` and `dedup(local)`.
pub(super) fn dedup(call: &mut Call<'_>) -> Result<Step> {
    if take_local(call) {
        // The keys by whose values members that are maps are compared.
        return Ok(Step::Local(LocalFunction::Dedup(names(&call.site, call.arguments, "a key of the members")?)));
    }
    let labels = names(&call.site, call.arguments, "a step label")?;
    Ok(Step::Dedup { labels, by: single_by(call, "Dedup")?.into_iter().collect::<Vec<By>>() })
}

/// `limit`, `skip` and `range`, of the stream or of one object.
pub(super) fn range(call: &mut Call<'_>) -> Result<Step> {
    let local = take_local(call);
    let site = &call.site;
    let (low, high) = match (site.name, call.arguments) {
        ("limit", [high]) => (long(0), Some(count(site, high)?)),
        ("skip", [low]) => (count(site, low)?, None),
        ("range", [low, high]) => (count(site, low)?, Some(count(site, high)?)),
        ("range", given) => return Err(misfit(site, "the first position and the one after the last", given)),
        (_, given) => return Err(misfit(site, "a number", given)),
    };
    let (low, high) = legal_range(site, low, high)?;
    Ok(if local { Step::Local(LocalFunction::Range { low, high }) } else { Step::Range { low, high } })
}

/// A range as in TinkerPop: -1 leaves its side open. Otherwise the low end must not be above the high end.
fn legal_range(site: &Site<'_>, low: Operand, high: Option<Operand>) -> Result<(Operand, Option<Operand>)> {
    const OPEN: i64 = -1;
    let literals = site.literals;
    // Most ranges are in order and have no open side, and a plan for one of them serves all of them.
    let in_order = high.as_ref().is_none_or(|high| !literals.is_above(&low, high));
    if !in_order
        && let Some(high) = &high
        && !literals.is(&low, OPEN)
        && !literals.is(high, OPEN)
    {
        let shown = |end: &Operand| end.literal_integer().map_or_else(|| "?".to_owned(), |end| end.to_string());
        return Err(site.invalid(format_args!("Not a legal range: [{}, {}]", shown(&low), shown(high))));
    }
    let is_negative = literals.is_above(&long(0), &low);
    // An open end is below every low end that is known not to be negative.
    let is_known = matches!(low, Operand::Literal(_) | Operand::Lifted(_));
    let is_open = |high: &Operand| !(is_known && in_order && !is_negative) && literals.is(high, OPEN);
    let high = high.filter(|high| !is_open(high));
    Ok((if is_negative { long(0) } else { low }, high))
}

/// `tail(n)`, of the stream or of one object; without a number, 1.
pub(super) fn tail(call: &mut Call<'_>) -> Result<Step> {
    let local = take_local(call);
    let number = match call.arguments {
        [] => long(1),
        [number] if is_negative(&call.site, number) => {
            return Err(call
                .site
                .invalid(format_args!("the number must not be negative, but is {}", describe(number))));
        }
        [number] => count(&call.site, number)?,
        given => return Err(misfit(&call.site, "a number", given)),
    };
    Ok(if local { Step::Local(LocalFunction::Tail(number)) } else { Step::Tail(number) })
}

fn is_negative(site: &Site<'_>, number: &Argument) -> bool {
    match number {
        Argument::Lifted(number) => !site.literals.ask(*number, Fact::AtLeast(0)),
        number => integer(number).is_some_and(|n| n < 0),
    }
}

/// `timeLimit(milliseconds)`.
pub(super) fn time_limit(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [millis] => Ok(Step::TimeLimit(count(&call.site, millis)?)),
        given => Err(misfit(&call.site, "a number of milliseconds", given)),
    }
}

/// `simplePath()` and `cyclicPath()`.
pub(super) fn path_shape(call: &mut Call<'_>, simple: bool) -> Result<Step> {
    match call.arguments {
        [] => Ok(Step::PathShape { simple, segment: segment(call)?, by: by(call)? }),
        given => Err(misfit(&call.site, "no arguments", given)),
    }
}

/// `discard()`, and `none()` as 3.7 has it.
pub(super) fn discard(call: &Call<'_>) -> Result<Step> {
    match call.arguments {
        [] => Ok(Step::Discard),
        [Argument::Predicate(_)] if call.site.name == "none" => functions::members(call, Quantifier::None),
        given => Err(misfit(&call.site, "no arguments", given)),
    }
}
