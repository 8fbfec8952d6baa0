//! Compiles the steps at elements: `property()`, steps along edges, and steps that read properties.

use mangrove_graph::{Direction, Result, Token, Value};
use mangrove_gremlin::{Argument as Given, Cardinality};

use super::arguments::{child, describe, integer, misfit, name, nullable_name, operand};
use super::groups::Call;
use super::modulators::single_by;
use super::site::Site;
use crate::logical::{Argument, EdgeEnd, MapTokens, Name, PropertyArgument, Step};

/// One assignment of a `property()`.
pub(super) enum Assignment {
    /// `T.id` or `T.label` of an element being made.
    Token(Token, Argument),
    /// A property.
    Property(PropertyArgument),
}

/// `property()` on an element that exists: a step for each property.
pub(super) fn property(call: &Call<'_>) -> Result<Vec<Step>> {
    let read = assignments(&call.site, call.arguments)?;
    if read.is_empty() {
        return Ok(vec![Step::Identity]);
    }
    let steps = read.into_iter().map(|assignment| match assignment {
        Assignment::Property(property) => Ok(Step::Property(property)),
        Assignment::Token(..) => Err(call.site.unsupported(
            "the id and the label of an element cannot change; T.id and T.label belong directly after addV() or addE()",
        )),
    });
    steps.collect()
}

/// The forms of the arguments of `property()`, for the error.
const PROPERTY_FORMS: &str =
    "a key and a value (with keys and values of meta-properties after them), or a map; a cardinality may stand first";

/// The assignments of a `property()`: `(key, value, meta…)` or `(map)`, either after a cardinality.
pub(super) fn assignments(site: &Site<'_>, arguments: &[Given]) -> Result<Vec<Assignment>> {
    let (cardinality, rest) = match arguments {
        [Given::Cardinality(cardinality), rest @ ..] => (Some(*cardinality), rest),
        // Clients of typed languages send null for "the default".
        [Given::Value(Value::Null), rest @ ..] if rest.len() >= 2 => (None, rest),
        rest => (None, rest),
    };
    match rest {
        [Given::Value(Value::Map(entries))] => entries
            .iter()
            .map(|(key, value)| {
                assignment(site, cardinality, &Given::Value(key.clone()), &Given::Value(value.clone()), &[])
            })
            .collect(),
        [Given::Map(entries)] => {
            entries.iter().map(|(key, value)| assignment(site, cardinality, key, value, &[])).collect()
        }
        // Null in the position of a map stands for an empty map.
        [Given::Value(Value::Null)] => Ok(Vec::new()),
        [key, value, meta @ ..] if meta.len().is_multiple_of(2) => {
            Ok(vec![assignment(site, cardinality, key, value, meta)?])
        }
        _ => Err(misfit(site, PROPERTY_FORMS, arguments)),
    }
}

/// One key with its value. `meta` are keys and values of meta-properties in turn.
fn assignment(
    site: &Site<'_>,
    cardinality: Option<Cardinality>,
    key: &Given,
    value: &Given,
    meta: &[Given],
) -> Result<Assignment> {
    if let Given::Value(Value::Token(token)) = key {
        return token_assignment(site, *token, value);
    }
    let (key, key_from) = match key {
        Given::Traversal(_) => (Name::default(), Some(Box::new(child(site, key)?))),
        key => (property_key(site, key)?, None),
    };
    let (cardinality, value) = match value {
        Given::CardinalityValue(own, value) => (Some(*own), &**value),
        value => (cardinality, value),
    };
    let meta = meta
        .chunks_exact(2)
        .map(|pair| Ok((name(site, &pair[0], "a meta-property key")?, property_value(site, &pair[1])?)));
    Ok(Assignment::Property(PropertyArgument {
        cardinality,
        key,
        key_from,
        value: property_value(site, value)?,
        meta: meta.collect::<Result<_>>()?,
    }))
}

/// The prefix of keys that TinkerPop reserves. Keys of properties do not begin with it.
const HIDDEN: char = '~';

/// The key of a property that is written. Reading accepts any key.
fn property_key(site: &Site<'_>, key: &Given) -> Result<Name> {
    let key = name(site, key, "a property key")?;
    if key.is_empty() {
        return Err(site.invalid("Property key can not be the empty string"));
    }
    if key.starts_with(HIDDEN) {
        return Err(site.invalid(format_args!(
            "Property key can not be a hidden key: {key}; begin it with something else than ~"
        )));
    }
    Ok(key)
}

/// `property(T.id, …)` or `property(T.label, …)`.
fn token_assignment(site: &Site<'_>, token: Token, value: &Given) -> Result<Assignment> {
    match (token, value) {
        (Token::Key | Token::Value, _) => {
            Err(site.invalid("T.key and T.value are no keys of an element; use T.id, T.label or a string"))
        }
        (Token::Label, Given::Value(Value::String(_)) | Given::Parameter(_) | Given::Traversal(_)) | (Token::Id, _) => {
            Ok(Assignment::Token(token, property_value(site, value)?))
        }
        (Token::Label, other) => Err(site.invalid(format_args!("a label is a string, not {}", describe(other)))),
    }
}

/// The value of a property. A literal must be storable, or null, which removes the property.
fn property_value(site: &Site<'_>, value: &Given) -> Result<Argument> {
    Ok(match value {
        Given::Traversal(_) => Argument::Traversal(Box::new(child(site, value)?)),
        Given::Value(literal) if !literal.is_storable() && *literal != Value::Null => {
            return Err(site.invalid(format_args!(
                "{} cannot be stored; a property holds scalars and collections of them",
                describe(value)
            )));
        }
        value => Argument::Operand(operand(site, value)?),
    })
}

/// Steps along edges of some labels.
pub(super) fn expand(call: &Call<'_>, direction: Direction, to_edges: bool) -> Result<Step> {
    Ok(match labels(&call.site, call.arguments, "an edge label")? {
        Some(labels) => Step::Expand { direction, labels, to_edges },
        None => Step::Discard,
    })
}

/// `to(direction, labels…)` and `toE(direction, labels…)`.
pub(super) fn expand_to(call: &mut Call<'_>) -> Result<Step> {
    let direction = direction(call)?;
    call.arguments = &call.arguments[1..];
    expand(call, direction, call.site.name == "toE")
}

/// `toV(direction)`.
pub(super) fn to_vertex(call: &Call<'_>) -> Result<Step> {
    let direction = direction(call)?;
    if call.arguments.len() > 1 {
        return Err(misfit(&call.site, "one direction", call.arguments));
    }
    Ok(Step::EdgeVertex(match direction {
        Direction::Out => EdgeEnd::Source,
        Direction::In => EdgeEnd::Target,
        Direction::Both => EdgeEnd::Both,
    }))
}

/// The direction that is the first argument.
fn direction(call: &Call<'_>) -> Result<Direction> {
    match call.arguments.first() {
        Some(Given::Value(Value::Direction(direction))) => Ok(*direction),
        _ => Err(misfit(&call.site, "Direction.OUT, Direction.IN or Direction.BOTH first", call.arguments)),
    }
}

/// Labels or keys that choose elements or properties; `what` is their kind, for the error. No arguments choose
/// everything: the list is empty. Nulls choose nothing: if all arguments are null, the result is `None`.
fn labels(site: &Site<'_>, arguments: &[Given], what: &str) -> Result<Option<Vec<Name>>> {
    let mut names = Vec::with_capacity(arguments.len());
    for argument in arguments {
        names.extend(nullable_name(site, argument, what)?);
    }
    Ok((arguments.is_empty() || !names.is_empty()).then_some(names))
}

/// The keys of a map of properties. If all arguments are null, the result is the empty key, which no property has.
fn map_keys(site: &Site<'_>, arguments: &[Given]) -> Result<Vec<Name>> {
    Ok(labels(site, arguments, "a property key")?.unwrap_or_else(|| vec![Name::default()]))
}

/// `values`, `properties`, `elementMap` and `propertyMap`, with their keys.
pub(super) fn keyed(call: &mut Call<'_>) -> Result<Step> {
    if call.site.name == "propertyMap" {
        let keys = map_keys(&call.site, call.arguments)?;
        return Ok(Step::PropertyMap { keys, by: single_by(call, "PropertyMap")?, shown: None });
    }
    if call.site.name == "elementMap" {
        return Ok(Step::ElementMap { keys: map_keys(&call.site, call.arguments)?, shown: None });
    }
    Ok(match labels(&call.site, call.arguments, "a property key")? {
        None => Step::Discard,
        Some(keys) if call.site.name == "values" => Step::Values(keys),
        Some(keys) => Step::Properties(keys),
    })
}

/// `valueMap()`. With the flag or `with(WithOptions.tokens)`, it has id and label, too.
pub(super) fn value_map(call: &mut Call<'_>) -> Result<Step> {
    let both = |shown| MapTokens { ids: shown, labels: shown };
    let (mut tokens, keys) = match call.arguments {
        [Given::Value(Value::Bool(tokens)), keys @ ..] => (both(*tokens), keys),
        keys => (both(false), keys),
    };
    let keys = map_keys(&call.site, keys)?;
    for modulator in call.take("with") {
        tokens = token_option(&modulator.site, modulator.arguments)?;
    }
    Ok(Step::ValueMap { keys, tokens, by: single_by(call, "ValueMap")?, shown: None })
}

/// The name of `WithOptions.tokens` in bytecode.
const TOKENS_OPTION: &str = "~tinkerpop.valueMap.tokens";
/// The bit of `WithOptions.ids`. The bits of `keys` and `values` are about properties of properties, and are ignored.
const IDS: i64 = 1;
/// The bit of `WithOptions.labels`.
const LABELS: i64 = 2;

/// The tokens that `with(WithOptions.tokens[, mask])` asks for.
fn token_option(site: &Site<'_>, arguments: &[Given]) -> Result<MapTokens> {
    let [Given::Value(Value::String(option)), value @ ..] = arguments else {
        return Err(misfit(site, "WithOptions.tokens", arguments));
    };
    if option != TOKENS_OPTION {
        return Err(
            site.unsupported(format_args!("valueMap() has no option \"{option}\"; it takes WithOptions.tokens"))
        );
    }
    let mask = match value {
        [] => Some(IDS | LABELS),
        [Given::Value(Value::Bool(tokens))] => Some(if *tokens { IDS | LABELS } else { 0 }),
        [value] => integer(value),
        _ => None,
    };
    let mask = mask.ok_or_else(|| {
        misfit(site, "WithOptions.tokens with one of WithOptions.all, none, ids and labels", arguments)
    })?;
    Ok(MapTokens { ids: mask & IDS != 0, labels: mask & LABELS != 0 })
}
