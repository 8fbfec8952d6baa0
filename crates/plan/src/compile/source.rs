//! The traversal source: `withSideEffect`, `withPath`, `with`, `withStrategies`, ….
//!
//! Strategies fall into three kinds. Those of TinkerPop's optimizer are accepted and change nothing: the
//! plan has its own rules, and an optimization is no part of a query's meaning. `ReadOnlyStrategy` and
//! `OptionsStrategy` configure the traversal. The others change what a query means, so they are refused
//! rather than ignored.

use mangrove_graph::{Result, Value};
use mangrove_gremlin::{Argument, Instruction};
use smol_str::SmolStr;

use super::arguments::{describe, integer, misfit, name, operand};
use super::site::Site;
use crate::logical::Configuration;

/// TinkerPop's strategies that do not change what a traversal means.
#[rustfmt::skip] // A name a line would be pages of names.
const NEUTRAL: &[&str] = &[
    "AdjacentToIncidentStrategy", "ByModulatorOptimizationStrategy", "ComputerFinalizationStrategy",
    "ComputerVerificationStrategy", "ConnectiveStrategy", "CountStrategy", "DiscardStrategy", "EarlyLimitStrategy",
    "FilterRankingStrategy", "GValueReductionStrategy", "GraphFilterStrategy", "HaltedTraverserStrategy",
    "IdentityRemovalStrategy", "IncidentToAdjacentStrategy", "InlineFilterStrategy", "LambdaRestrictionStrategy",
    "LazyBarrierStrategy", "MatchAlgorithmStrategy", "MatchPredicateStrategy", "MessagePassingReductionStrategy",
    "NoneStrategy", "OrderLimitStrategy", "PathProcessorStrategy", "PathRetractionStrategy", "ProfileStrategy",
    "ReferenceElementStrategy", "RepeatUnrollStrategy", "RequirementsStrategy", "SackStrategy", "SideEffectStrategy",
    "SingleIterationStrategy", "StandardVerificationStrategy", "TinkerGraphCountStrategy", "TinkerGraphStepStrategy",
    "VertexProgramRestrictionStrategy",
];

/// Strategies that change what a traversal means.
#[rustfmt::skip] // As above.
const UNSUPPORTED: &[&str] = &[
    "EdgeLabelVerificationStrategy", "ElementIdStrategy", "EventStrategy", "MessagePassingStrategy",
    "PartitionStrategy", "ProductiveByStrategy", "ReservedKeysVerificationStrategy", "SeedStrategy",
    "SubgraphStrategy", "VertexProgramStrategy",
];

const READ_ONLY: &str = "ReadOnlyStrategy";
const OPTIONS: &str = "OptionsStrategy";

/// What the source instructions configure, in order: a later one overrides an earlier one.
pub(super) fn configuration(instructions: &[Instruction]) -> Result<Configuration> {
    let mut configuration = Configuration::default();
    for (index, instruction) in instructions.iter().enumerate() {
        configure(&mut configuration, &Site::new(instruction, index, None), &instruction.arguments)?;
    }
    Ok(configuration)
}

fn configure(configuration: &mut Configuration, site: &Site<'_>, arguments: &[Argument]) -> Result<()> {
    match (site.name, arguments) {
        ("withSideEffect", [key, value]) => {
            let key = name(site, key, "the name of a side effect")?;
            let value = operand(site, value)?;
            configuration.side_effects.retain(|(known, _)| *known != key);
            configuration.side_effects.push((key, value));
            Ok(())
        }
        ("withSideEffect", [_, _, _]) => {
            Err(site.unsupported("a reducer is not supported yet; give a name and a value"))
        }
        ("withSideEffect", given) => Err(misfit(site, "a name and a value", given)),
        ("withPath", []) => {
            configuration.path = true;
            Ok(())
        }
        ("withPath", given) => Err(misfit(site, "no arguments", given)),
        ("withBulk", [Argument::Value(Value::Bool(true))]) => Ok(()),
        ("withBulk", [Argument::Value(Value::Bool(false))]) => {
            Err(site.unsupported("withBulk(false) is not supported yet; use dedup() where each object counts once"))
        }
        ("withBulk", given) => Err(misfit(site, "true or false", given)),
        ("with", [key]) => option(configuration, site, &name(site, key, "an option")?, &Argument::Value(true.into())),
        ("with", [key, value]) => option(configuration, site, &name(site, key, "an option")?, value),
        ("with", given) => Err(misfit(site, "an option and its value", given)),
        ("withStrategies", strategies) => strategies.iter().try_for_each(|given| strategy(configuration, site, given)),
        ("withoutStrategies", names) => names.iter().try_for_each(|given| without(configuration, site, given)),
        ("withSack" | "withComputer", _) => Err(site.unsupported("is not supported yet")),
        ("tx", _) => {
            Err(site.unsupported("a transaction command is not a traversal; send it to the server on its own"))
        }
        (unknown, _) => Err(site.unsupported(format_args!(
            "the traversal source has no such method{}",
            mangrove_gremlin::suggest(
                unknown,
                ["with", "withBulk", "withPath", "withSideEffect", "withStrategies", "withoutStrategies"].into_iter()
            )
        ))),
    }
}

/// An option of the source. Options are hints to a provider: those that mean nothing here change nothing.
fn option(configuration: &mut Configuration, site: &Site<'_>, key: &str, value: &Argument) -> Result<()> {
    if matches!(key, "evaluationTimeout" | "scriptEvaluationTimeout") {
        let millis = integer(value).and_then(|millis| u64::try_from(millis).ok());
        configuration.timeout_millis = Some(millis.ok_or_else(|| {
            site.invalid(format_args!("{key} is a number of milliseconds from 0, not {}", describe(value)))
        })?);
    }
    Ok(())
}

fn strategy(configuration: &mut Configuration, site: &Site<'_>, given: &Argument) -> Result<()> {
    let Argument::Strategy(name, settings) = given else {
        return Err(site.invalid(format_args!("a strategy is needed, not {}", describe(given))));
    };
    match simple_name(name) {
        READ_ONLY => configuration.read_only = true,
        OPTIONS => settings.iter().try_for_each(|(key, value)| option(configuration, site, key, value))?,
        name => accept(site, name)?,
    }
    Ok(())
}

fn without(configuration: &mut Configuration, site: &Site<'_>, given: &Argument) -> Result<()> {
    let name: &SmolStr = match given {
        Argument::Strategy(name, _) | Argument::Value(Value::String(name)) => name,
        other => return Err(site.invalid(format_args!("a strategy is needed, not {}", describe(other)))),
    };
    match simple_name(name) {
        READ_ONLY => configuration.read_only = false,
        OPTIONS => configuration.timeout_millis = None,
        // To do without what is not there is no change.
        name if UNSUPPORTED.contains(&name) => {}
        name => accept(site, name)?,
    }
    Ok(())
}

/// The name of a strategy's class without its package.
fn simple_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn accept(site: &Site<'_>, name: &str) -> Result<()> {
    if NEUTRAL.contains(&name) {
        return Ok(());
    }
    if UNSUPPORTED.contains(&name) {
        return Err(site.unsupported(format_args!("{name} changes what a traversal means and is not supported yet")));
    }
    let names = NEUTRAL.iter().chain(UNSUPPORTED).copied().chain([READ_ONLY, OPTIONS]);
    Err(site.unsupported(format_args!("Gremlin has no strategy {name}{}", mangrove_gremlin::suggest(name, names))))
}
