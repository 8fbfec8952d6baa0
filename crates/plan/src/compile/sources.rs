//! Sources: `V`, `E`, `inject`, `call`, and the steps that create elements, `addV` and `addE`.

use std::collections::HashMap;

use mangrove_graph::{Detached, Error, Result, Token, UserId, Value};
use mangrove_gremlin::{Argument as Given, Cardinality};

use super::arguments::{child, describe, ids, misfit, name, operand};
use super::elements::{Assignment, assignments};
use super::groups::{Call, Modulator};
use super::site::Site;
use crate::logical::{Argument, Endpoint, Name, Operand, PropertyArgument, Step};

/// `V`, `E` and `inject`.
pub(super) fn read(call: &Call<'_>) -> Result<Step> {
    let conditions = Vec::new();
    Ok(match call.site.name {
        "V" => Step::Vertices { ids: ids(&call.site, call.arguments)?, conditions },
        "E" => Step::Edges { ids: ids(&call.site, call.arguments)?, conditions },
        _ => {
            refuse_in_loop(&call.site)?;
            Step::Inject(call.arguments.iter().map(|value| operand(&call.site, value)).collect::<Result<_>>()?)
        }
    })
}

/// `call()` with its arguments. They come from a map, from a traversal that returns a map, or from `with(name, value)`.
/// The later value wins.
pub(super) fn service(call: &mut Call<'_>) -> Result<Step> {
    const FORMS: &str = "nothing, or the name of a service and perhaps a map of what it is given, or a traversal that \
                         gives one, or both";
    let (service, given) = match call.arguments {
        [] => (None, &[][..]),
        [service, given @ ..] if given.len() <= 2 => (Some(service), given),
        more => return Err(misfit(&call.site, FORMS, more)),
    };
    let service = service.map(|given| name(&call.site, given, "the name of a service")).transpose()?;
    let mut arguments = Vec::new();
    for map in given {
        match map {
            Given::Value(Value::Map(_) | Value::Null) | Given::Map(_) | Given::Parameter(_) | Given::Traversal(_) => {
                if !matches!(map, Given::Value(Value::Null)) {
                    arguments.push((None, setting(&call.site, map)?));
                }
            }
            other => return Err(call.site.invalid(format_args!("takes {FORMS}, not {}", describe(other)))),
        }
    }
    for modulator in call.take("with") {
        let (key, value) = match modulator.arguments {
            // A `with()` without a value is a flag.
            [key] => (key, Argument::Operand(Operand::Literal(Value::Bool(true)))),
            [key, value] => (key, setting(&modulator.site, value)?),
            other => return Err(misfit(&modulator.site, "the name of a setting and perhaps its value", other)),
        };
        arguments.push((Some(name(&modulator.site, key, "the name of a setting")?), value));
    }
    Ok(Step::Call { service, arguments })
}

/// An argument of a service: a value, or a traversal that returns one.
fn setting(site: &Site<'_>, given: &Given) -> Result<Argument> {
    Ok(match given {
        Given::Traversal(_) => Argument::Traversal(Box::new(child(site, given)?)),
        value => Argument::Operand(operand(site, value)?),
    })
}

/// Fails for an `inject()` in a loop, at any depth, as 3.8 does: it would add the same values in every iteration.
fn refuse_in_loop(site: &Site<'_>) -> Result<()> {
    if site.ancestors().any(|around| around.name == "repeat") {
        return Err(
            site.unsupported("The parent of inject()-step can not be repeat()-step; move it before or after the loop")
        );
    }
    Ok(())
}

/// The label of a vertex without one.
const DEFAULT_LABEL: &str = "vertex";

/// `addV()` with its properties, and the steps for those `property()`s that read the new vertex.
pub(super) fn add_vertex(call: &mut Call<'_>) -> Result<Vec<Step>> {
    let given = match call.arguments {
        [] => Argument::Operand(Operand::Literal(Value::string(DEFAULT_LABEL))),
        [label] => self::label(call, label)?,
        more => return Err(misfit(&call.site, "nothing, a label or a traversal that gives one", more)),
    };
    pass_over_options(call)?;
    let mut made = Made::read(call, call.arguments.first())?;
    let readers = made.order_writes();
    let add = Step::AddVertex { label: made.label.unwrap_or(given), properties: made.properties, id: made.id };
    Ok(std::iter::once(add).chain(readers.into_iter().map(Step::Property)).collect())
}

/// `addE()` with its ends and properties.
pub(super) fn add_edge(call: &mut Call<'_>) -> Result<Step> {
    let given = match call.arguments {
        [label] => self::label(call, label)?,
        other => return Err(misfit(&call.site, "a label or a traversal that gives one", other)),
    };
    let from = call.take_one("from")?.map(|end| endpoint(&end)).transpose()?;
    let to = call.take_one("to")?.map(|end| endpoint(&end)).transpose()?;
    if call.first && (from.is_none() || to.is_none()) {
        return Err(call.site.unsupported("as the first step it needs both ends: addE(…).from(…).to(…)"));
    }
    pass_over_options(call)?;
    let made = Made::read(call, call.arguments.first())?;
    Ok(Step::AddEdge { label: made.label.unwrap_or(given), from, to, properties: made.properties, id: made.id })
}

/// `with()` after `addV()` and `addE()`: options for the graph provider. There are none here, so they are ignored.
fn pass_over_options(call: &mut Call<'_>) -> Result<()> {
    for modulator in call.take("with") {
        match modulator.arguments {
            [key] | [key, _] => {
                let key = name(&modulator.site, key, "the name of an option")?;
                super::policies::refuse(&modulator.site, &key, call.site.name)?;
            }
            given => return Err(misfit(&modulator.site, "the name of an option and perhaps its value", given)),
        }
    }
    Ok(())
}

fn label(call: &Call<'_>, given: &Given) -> Result<Argument> {
    match given {
        Given::Value(Value::String(_)) | Given::Parameter(_) => Ok(Argument::Operand(operand(&call.site, given)?)),
        Given::Traversal(_) => Ok(Argument::Traversal(Box::new(child(&call.site, given)?))),
        other => Err(call
            .site
            .invalid(format_args!("a label is a string or a traversal that gives one, not {}", describe(other)))),
    }
}

/// The content of the `property()`s after `addV()` or `addE()`.
#[derive(Default)]
struct Made {
    label: Option<Argument>,
    id: Option<Argument>,
    properties: Vec<PropertyArgument>,
}

impl Made {
    /// Puts the `property()`s of a new vertex in the order in which TinkerPop writes them:
    ///
    /// 1. Those with only a key and a value are part of the vertex. It keeps every value under a key, and a null
    ///    removes the values before it.
    /// 2. Those with a cardinality or meta-properties are written after them, as to an existing vertex.
    /// 3. From the first of these on whose traversal reads the new vertex, they are returned, to become steps of their
    ///    own.
    fn order_writes(&mut self) -> Vec<PropertyArgument> {
        let is_plain = |p: &PropertyArgument| p.cardinality.is_none() && p.meta.is_empty();
        let is_null = |p: &PropertyArgument| p.value == Argument::Operand(Operand::Literal(Value::Null));
        let (mut first, mut after): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.properties).into_iter().partition(is_plain);
        let readers = after.split_off(after.iter().position(reads).unwrap_or(after.len()));
        // Keys that traversals return come after keys that are known.
        first.sort_by_key(|p| p.key_from.is_some());
        let mut times: HashMap<Name, usize> = HashMap::new();
        first.iter().for_each(|p| *times.entry(p.key.clone()).or_default() += 1);
        // A traversal may return any key.
        let any_key = first.len() > 1 && first.iter().any(|p| p.key_from.is_some());
        let repeated = first.iter_mut().filter(|p| any_key || times[&p.key] > 1);
        repeated.filter(|p| !is_null(p)).for_each(|p| p.cardinality = Some(Cardinality::List));
        first.extend(after);
        self.properties = first;
        readers
    }

    /// Reads the `property()`s. `label` is the label among the step's arguments.
    fn read(call: &mut Call<'_>, label: Option<&Given>) -> Result<Made> {
        let mut made = Made::default();
        for modulator in call.take("property") {
            for assignment in assignments(&modulator.site, modulator.arguments)? {
                match assignment {
                    Assignment::Token(Token::Id, _) if made.id.is_some() => return Err(set_twice(&modulator, "T.id")),
                    Assignment::Token(Token::Id, value) => made.id = Some(checked_id(&modulator, value)?),
                    Assignment::Token(_, _) if label.is_some() || made.label.is_some() => {
                        return Err(set_twice(&modulator, "T.label"));
                    }
                    Assignment::Token(_, value) => made.label = Some(value),
                    Assignment::Property(property) => made.properties.push(property),
                }
            }
        }
        Ok(made)
    }
}

/// Returns true if a traversal returns a part of the property.
fn reads(property: &PropertyArgument) -> bool {
    let is_traversal = |argument: &Argument| matches!(argument, Argument::Traversal(_));
    property.key_from.is_some()
        || is_traversal(&property.value)
        || property.meta.iter().any(|(_, value)| is_traversal(value))
}

fn set_twice(modulator: &Modulator<'_>, token: &str) -> Error {
    modulator
        .site
        .invalid(format_args!("{token} has already been set, and an element has one: leave one of the two out"))
}

fn checked_id(modulator: &Modulator<'_>, id: Argument) -> Result<Argument> {
    match &id {
        Argument::Operand(Operand::Literal(value)) if UserId::from_value(value).is_none() => {
            let given = describe(&Given::Value(value.clone()));
            Err(modulator.site.invalid(format_args!("an id is an integer, a string or a UUID, not {given}")))
        }
        _ => Ok(id),
    }
}

/// `from(…)` and `to(…)`. A string is a step label. A parameter is a vertex or its id, never a label.
fn endpoint(modulator: &Modulator<'_>) -> Result<Endpoint> {
    const FORMS: &str = "a step label, a vertex, the id of one, or a traversal that gives one";
    let [given] = modulator.arguments else {
        return Err(misfit(&modulator.site, FORMS, modulator.arguments));
    };
    Ok(match given {
        Given::Value(Value::String(label)) => Endpoint::Label(label.clone()),
        Given::Traversal(_) => Endpoint::Traversal(Box::new(child(&modulator.site, given)?)),
        Given::Parameter(name) => Endpoint::Id(Operand::Parameter(name.clone())),
        Given::Vertex(id) => Endpoint::Id(Operand::Literal(id.clone())),
        Given::Value(Value::Detached(element)) if let Detached::Vertex { id, .. } = &**element => {
            Endpoint::Id(Operand::Literal(id.clone()))
        }
        Given::Value(id) if matches!(id, Value::Vertex(_)) || UserId::from_value(id).is_some() => {
            Endpoint::Id(Operand::Literal(id.clone()))
        }
        other => return Err(modulator.site.invalid(format_args!("takes {FORMS}, not {}", describe(other)))),
    })
}
