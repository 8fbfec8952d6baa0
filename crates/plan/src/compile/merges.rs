//! `mergeV()` and `mergeE()` with their options.

use mangrove_graph::{Direction, ElementKind, Result, Token, Value};
use mangrove_gremlin::{Argument as Given, Cardinality, Merge};

use super::arguments::{describe, misfit, operand};
use super::functions::argument;
use super::groups::{Call, Modulator};
use super::site::Site;
use crate::logical::upsert::{MergeEntry, MergeFrom, MergeMap, Upsert};
use crate::logical::{Argument, Operand, Step};

type Map = MergeMap<Argument>;

/// `mergeV(map)` or `mergeE(map)`.
pub(super) fn upsert(call: &mut Call<'_>, kind: ElementKind) -> Result<Step> {
    let search = match call.arguments {
        [] => None,
        [given] => Some(map(&call.site, given, None, MergePosition::Search(kind))?),
        more => return Err(misfit(&call.site, "nothing, a map or a traversal that gives one", more)),
    };
    let mut upsert =
        Upsert { kind, search, on_create: None, on_match: None, source: None, target: None, always: Vec::new() };
    for modulator in call.take("option") {
        option(&mut upsert, &modulator)?;
    }
    if let (Some(search), Some(on_create)) = (&upsert.search, &upsert.on_create) {
        check_overrides(&call.site, search, on_create)?;
    }
    Ok(Step::Upsert(Box::new(upsert)))
}

/// The keys that a map may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MergePosition {
    Search(ElementKind),
    Match,
    Vertex,
}

fn option(upsert: &mut Upsert, modulator: &Modulator<'_>) -> Result<()> {
    let site = &modulator.site;
    let (which, given, cardinality) = match modulator.arguments {
        [Given::Merge(which), given] => (*which, given, None),
        [Given::Merge(which), given, Given::Cardinality(cardinality)] => (*which, given, Some(*cardinality)),
        other => return Err(misfit(site, "Merge.onCreate, onMatch, outV or inV and a map or a traversal", other)),
    };
    let (position, target) = match which {
        Merge::OnCreate => (MergePosition::Search(upsert.kind), &mut upsert.on_create),
        Merge::OnMatch => (MergePosition::Match, &mut upsert.on_match),
        Merge::OutV if upsert.kind == ElementKind::Edge => (MergePosition::Vertex, &mut upsert.source),
        Merge::InV if upsert.kind == ElementKind::Edge => (MergePosition::Vertex, &mut upsert.target),
        other => {
            return Err(site.unsupported(format_args!("mergeV() has no option Merge.{}; mergeE() has", other.name())));
        }
    };
    *target = Some(map(site, given, cardinality, position)?);
    Ok(())
}

fn map(site: &Site<'_>, given: &Given, cardinality: Option<Cardinality>, position: MergePosition) -> Result<Map> {
    let from = match given {
        Given::Value(Value::Null) => MergeFrom::Entries(Vec::new()),
        Given::Value(Value::Map(entries)) => MergeFrom::Entries(
            entries
                .iter()
                .map(|(key, value)| entry(site, &Given::Value(key.clone()), &Given::Value(value.clone()), position))
                .collect::<Result<_>>()?,
        ),
        Given::Map(entries) => MergeFrom::Entries(
            entries.iter().map(|(key, value)| entry(site, key, value, position)).collect::<Result<_>>()?,
        ),
        Given::Traversal(_) | Given::Parameter(_) => MergeFrom::Whole(argument(site, given)?),
        Given::Vertex(id) if position == MergePosition::Vertex => {
            MergeFrom::Whole(Argument::Operand(Operand::Literal(id.clone())))
        }
        Given::Value(_) if position == MergePosition::Vertex => MergeFrom::Whole(argument(site, given)?),
        other => {
            return Err(
                site.invalid(format_args!("a map or a traversal that gives one is needed, not {}", describe(other)))
            );
        }
    };
    Ok(MergeMap { from, cardinality })
}

fn entry(site: &Site<'_>, key: &Given, value: &Given, position: MergePosition) -> Result<MergeEntry> {
    let key = match (key, position) {
        (Given::Value(Value::String(name)), _) if name.starts_with('~') => {
            return Err(site.invalid(format_args!("Property key can not be a hidden key: {name}")));
        }
        (Given::Value(key @ Value::String(_)), _) => key.clone(),
        (
            Given::Value(key @ Value::Token(Token::Id | Token::Label)),
            MergePosition::Search { .. } | MergePosition::Vertex,
        ) => key.clone(),
        (
            Given::Value(key @ Value::Direction(Direction::Out | Direction::In)),
            MergePosition::Search(ElementKind::Edge),
        ) => key.clone(),
        (other, position) => {
            let keys = match position {
                MergePosition::Search(ElementKind::Edge) => {
                    "T.id, T.label, Direction.OUT, Direction.IN and property keys"
                }
                MergePosition::Search(ElementKind::Vertex) | MergePosition::Vertex => "T.id, T.label and property keys",
                MergePosition::Match => "property keys",
            };
            return Err(site.invalid(format_args!("the keys of this map are {keys}, not {}", describe(other))));
        }
    };
    let (value, cardinality) = match value {
        Given::CardinalityValue(cardinality, value) => (&**value, Some(*cardinality)),
        value => (value, None),
    };
    let value = match (value, &key) {
        (Given::Merge(Merge::OutV), Value::Direction(_)) => Operand::Literal(Value::Direction(Direction::Out)),
        (Given::Merge(Merge::InV), Value::Direction(_)) => Operand::Literal(Value::Direction(Direction::In)),
        (given, Value::Direction(_)) => super::arguments::id_operand(site, given)?,
        (given, _) => operand(site, given)?,
    };
    Ok(MergeEntry { key, value, cardinality })
}

/// Fails if the maps of `mergeV()` and `onCreate` are known and give one property two values.
fn check_overrides(site: &Site<'_>, search: &Map, on_create: &Map) -> Result<()> {
    let (MergeFrom::Entries(search), MergeFrom::Entries(made)) = (&search.from, &on_create.from) else { return Ok(()) };
    let contradicts = |entry: &&MergeEntry| {
        search.iter().any(|known| {
            known.key == entry.key
                && !matches!(known.value, Operand::Literal(Value::Direction(_)))
                && site.literals.differ(&known.value, &entry.value)
        })
    };
    match made.iter().find(contradicts) {
        None => Ok(()),
        Some(entry) => Err(site.invalid(format_args!(
            "option(onCreate) cannot override values from merge() argument: {} differs",
            mangrove_gremlin::Argument::Value(entry.key.clone())
        ))),
    }
}
