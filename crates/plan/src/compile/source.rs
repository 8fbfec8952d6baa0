//! The traversal source: `withSideEffect`, `withPath`, `with`, `withStrategies` and so on.
//!
//! | strategies | treatment |
//! |---|---|
//! | TinkerPop's optimizations | accepted and ignored: the plan has its own rules, and an optimization is no part of a query's meaning |
//! | those in `CONFIGURING` | configure the traversal |
//! | all others | refused, since they change what a query means |
//!
//! Settings that a strategy does not have, and unknown options of `with()`, are refused, too.

use mangrove_graph::{Error, Result, Value};
use mangrove_gremlin::{Argument, Instruction};
use smol_str::SmolStr;

use super::algorithms::{edges, labels_tested};
use super::arguments::{child, describe, integer, misfit, name, operand};
use super::policies;
use super::site::Site;
use crate::literals::Literals;
use crate::logical::Subset;
use crate::logical::algorithm::{COMPUTER, ComputerFilter};
use crate::logical::{Condition, Configuration, Name, Operand, Sack, ScopePolicy, Step, StepNode, Test, Traversal};
use crate::options::Planner;

/// TinkerPop's strategies that do not change what a traversal means.
#[rustfmt::skip] // A name a line would be pages of names.
const NEUTRAL: &[&str] = &[
    "AdjacentToIncidentStrategy", "ByModulatorOptimizationStrategy", "ComputerFinalizationStrategy",
    "ComputerVerificationStrategy", "ConnectiveStrategy", "CountStrategy", "DiscardStrategy", "EarlyLimitStrategy",
    // Elements have the ids that the client chose already.
    "ElementIdStrategy",
    "FilterRankingStrategy", "GValueReductionStrategy", "GraphFilterStrategy", "HaltedTraverserStrategy",
    "IdentityRemovalStrategy", "IncidentToAdjacentStrategy", "InlineFilterStrategy", "LambdaRestrictionStrategy",
    "LazyBarrierStrategy", "MatchAlgorithmStrategy", "MatchPredicateStrategy", "MessagePassingReductionStrategy",
    "NoneStrategy", "OrderLimitStrategy", "PathProcessorStrategy", "PathRetractionStrategy", "ProfileStrategy",
    "ReferenceElementStrategy", "RepeatUnrollStrategy", "RequirementsStrategy", "SackStrategy", "SideEffectStrategy",
    "SingleIterationStrategy", "StandardVerificationStrategy", "TinkerGraphCountStrategy", "TinkerGraphStepStrategy",
];

/// Strategies that change what a traversal means.
const UNSUPPORTED: &[&str] = &["EventStrategy", "MessagePassingStrategy"];

const READ_ONLY: &str = "ReadOnlyStrategy";
const SUBGRAPH: &str = "SubgraphStrategy";
const PARTITION: &str = "PartitionStrategy";
const PRODUCTIVE_BY: &str = "ProductiveByStrategy";
const RESERVED_KEYS: &str = "ReservedKeysVerificationStrategy";
const EDGE_LABELS: &str = "EdgeLabelVerificationStrategy";
const SEED: &str = "SeedStrategy";

const NO_COMPUTER: &str = "VertexProgramRestrictionStrategy";

/// Strategies that configure the traversal.
const CONFIGURING: &[&str] =
    &[READ_ONLY, OPTIONS, SUBGRAPH, PARTITION, PRODUCTIVE_BY, RESERVED_KEYS, EDGE_LABELS, SEED, COMPUTER, NO_COMPUTER];
const OPTIONS: &str = "OptionsStrategy";

/// The settings of each strategy that has any. Java clients add the name of the class to them.
const SETTINGS: &[(&str, &[&str])] = &[
    (SUBGRAPH, &["vertices", "edges", "vertexProperties", "checkAdjacentVertices"]),
    (PARTITION, &["partitionKey", "writePartition", "readPartitions", "includeMetaProperties"]),
    (PRODUCTIVE_BY, &["productiveKeys"]),
    (RESERVED_KEYS, &["keys", "throwException", "logWarning"]),
    (EDGE_LABELS, &["throwException", "logWarning"]),
    (SEED, &["seed"]),
    (COMPUTER, &["graphComputer", "workers", "persist", "result", "vertices", "edges"]),
    // The choice of an algorithm or of the form of returned elements changes no answer here.
    ("MatchAlgorithmStrategy", &["matchAlgorithm"]),
    ("HaltedTraverserStrategy", &["haltedTraverserFactory"]),
];
const CLASS: &str = "strategy";

/// The options that have an effect here.
const TIMEOUT: &[&str] = &["evaluationTimeout", "scriptEvaluationTimeout"];
const PARALLEL: &str = "parallel";

/// The option with the tenant that the traversal counts for.
const TENANT: &str = "tenant";

/// The most bytes of the name of a tenant.
const TENANT_BYTES_MAX: usize = 128;

/// The option that says how the order of walks is chosen.
const PLANNER: &str = "planner";

/// The option that says in which form `profile()` answers.
const METRICS: &str = "metrics";

/// The option with the names of rules that are not applied.
const WITHOUT: &str = "without";

/// Options that have an effect here, besides those of time limits and policies.
const OPTIONS_HERE: [&str; 5] = [PARALLEL, TENANT, PLANNER, METRICS, WITHOUT];

/// Options that clients send as arguments of the request, and also leave in the bytecode.
const OF_REQUESTS: &[&str] = &["batchSize", "bulkResults", "materializeProperties", "requestId", "userAgent"];

/// The names of the strategies that make a difference to a traversal.
pub fn strategy_names() -> &'static [&'static str] {
    CONFIGURING
}

/// Reads the source instructions in order. A later one overrides an earlier one.
pub(super) fn configuration(instructions: &[Instruction], literals: &Literals<'_>) -> Result<Configuration> {
    let mut configuration = Configuration::default();
    for (index, instruction) in instructions.iter().enumerate() {
        configure(&mut configuration, &Site::new(instruction, index, None, literals), &instruction.arguments)?;
    }
    if configuration.computer.is_some() && configuration.no_computer {
        return Err(Error::unsupported(format!(
            "The TraversalSource does not allow the use of a GraphComputer; remove {NO_COMPUTER} from it"
        )));
    }
    Ok(configuration)
}

/// Returns true if `and()` and `or()` without arguments join the chains before and after them. In TinkerPop a strategy
/// does that, which a source may remove.
pub(super) fn joins_infix(instructions: &[Instruction]) -> bool {
    let names = |instruction: &Instruction| {
        instruction.arguments.iter().any(|given| {
            matches!(given, Argument::Strategy(name, _) | Argument::Value(Value::String(name))
                if simple_name(name) == "ConnectiveStrategy")
        })
    };
    let last = instructions.iter().rfind(|i| matches!(&*i.name, "withStrategies" | "withoutStrategies") && names(i));
    last.is_none_or(|instruction| instruction.name == "withStrategies")
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
        ("withSideEffect", [key, value, Argument::Operator(operator)]) => {
            configure(configuration, site, &[key.clone(), value.clone()])?;
            let key = name(site, key, "the name of a side effect")?;
            configuration.reducers.retain(|(known, _)| *known != key);
            configuration.reducers.push((key, *operator));
            Ok(())
        }
        ("withSideEffect", given) => Err(misfit(site, "a name and a value", given)),
        ("withPath", []) => {
            configuration.path = true;
            Ok(())
        }
        ("withPath", given) => Err(misfit(site, "no arguments", given)),
        ("withBulk", [Argument::Value(Value::Bool(bulk))]) => {
            configuration.one_bulk = !bulk;
            Ok(())
        }
        ("withSack", [initial, operators @ ..]) if operators.len() <= 2 => {
            let merge = match operators {
                [] => None,
                // Of two, the first splits; values are never shared between traversers, so that is done.
                [Argument::Operator(operator)] | [_, Argument::Operator(operator)] => Some(*operator),
                given => return Err(misfit(site, "a value and perhaps an operator, such as Operator.sum", given)),
            };
            configuration.sack = Some(Sack { initial: operand(site, initial)?, merge });
            Ok(())
        }
        ("withBulk", given) => Err(misfit(site, "true or false", given)),
        ("with", [key]) => with(configuration, site, key, &Argument::Value(true.into())),
        ("with", [key, value]) => with(configuration, site, key, value),
        ("with", given) => Err(misfit(site, "an option and its value", given)),
        ("withStrategies", strategies) => {
            // Of several strategies of one kind, the first counts. It replaces one that the source has already.
            let mut kinds: Vec<&str> = Vec::new();
            for given in strategies {
                match kind(given) {
                    Some(kind) if kinds.contains(&kind) => continue,
                    kind => kinds.extend(kind),
                }
                strategy(configuration, site, given)?;
            }
            Ok(())
        }
        ("withoutStrategies", names) => names.iter().try_for_each(|given| without(configuration, site, given)),
        ("withComputer", []) => computer(configuration, site, &[]),
        ("withComputer", [Argument::Strategy(..)]) => strategy(configuration, site, &arguments[0]),
        ("withComputer", given) => Err(misfit(
            site,
            &format!("nothing; settings go into withStrategies(new {COMPUTER}(workers: 2, vertices: …, edges: …))"),
            given,
        )),
        ("tx", _) => {
            Err(site.unsupported("a transaction command is not a traversal; send it to the server on its own"))
        }
        (unknown, _) => Err(site.unsupported(format_args!(
            "the traversal source has no such method{}",
            mangrove_gremlin::suggest(unknown, mangrove_gremlin::vocabulary::source_methods().iter().copied())
        ))),
    }
}

/// Checks that `with()` of a source names a known option. Scripts contain `with()`; clients send an `OptionsStrategy`
/// instead.
fn with(configuration: &mut Configuration, site: &Site<'_>, key: &Argument, value: &Argument) -> Result<()> {
    let key = name(site, key, "an option")?;
    if OF_REQUESTS.contains(&&*key) {
        return Err(site.unsupported(format_args!("{key} is an argument of the request; pass it there")));
    }
    if !TIMEOUT.contains(&&*key) && !OPTIONS_HERE.contains(&&*key) && !policies::OPTIONS.contains(&&*key) {
        return Err(no_option(site, &key));
    }
    option(configuration, site, &key, value)
}

/// An option of a source. TinkerPop lets `OptionsStrategy` carry any name, for other graph systems to read, so an
/// unknown name changes nothing. A name that is nearly one of an option is refused as a mistake.
fn option(configuration: &mut Configuration, site: &Site<'_>, key: &str, value: &Argument) -> Result<()> {
    if TIMEOUT.contains(&key) {
        let millis = integer(value).and_then(|millis| u64::try_from(millis).ok());
        configuration.timeout_millis = Some(millis.ok_or_else(|| {
            site.invalid(format_args!("{key} is a number of milliseconds from 0, not {}", describe(value)))
        })?);
    } else if key == PARALLEL {
        let workers = integer(value).and_then(|workers| usize::try_from(workers).ok()).filter(|workers| *workers > 0);
        configuration.workers_max = Some(workers.ok_or_else(|| {
            site.invalid(format_args!(
                "{key} is the most threads that may work on the traversal, a number from 1, not {}",
                describe(value)
            ))
        })?);
    } else if key == TENANT {
        let name = match value {
            Argument::Value(Value::String(name)) if (1..=TENANT_BYTES_MAX).contains(&name.len()) => Some(name.clone()),
            _ => None,
        };
        configuration.tenant = Some(name.ok_or_else(|| {
            site.invalid(format_args!(
                "{TENANT} is the name of the tenant that the traversal counts for, of 1 to {TENANT_BYTES_MAX} bytes, \
                 not {}",
                describe(value)
            ))
        })?);
    } else if key == PLANNER {
        configuration.planner = Some(match value {
            Argument::Value(Value::String(name)) if name == "written" => Planner::Written,
            Argument::Value(Value::String(name)) if name == "greedy" => Planner::Greedy,
            other => {
                return Err(site.invalid(format_args!(
                    "{PLANNER} is \"greedy\", or \"written\" for the order in which steps are written, not {}",
                    describe(other)
                )));
            }
        });
    } else if key == METRICS {
        configuration.metrics_as_map = match value {
            Argument::Value(Value::String(form)) if form == "map" => true,
            Argument::Value(Value::String(form)) if form == "typed" => false,
            other => {
                return Err(site.invalid(format_args!(
                    "{METRICS} is \"typed\" for TinkerPop's type of the answer to profile(), or \"map\", not {}",
                    describe(other)
                )));
            }
        };
    } else if key == WITHOUT {
        configuration.rules_off = rules_off(site, value)?;
    } else if policies::OPTIONS.contains(&key) {
        policies::read(&mut configuration.policy, site, key, value)?;
    } else if !OF_REQUESTS.contains(&key) && !mangrove_gremlin::suggest(key, options()).is_empty() {
        return Err(no_option(site, key));
    }
    Ok(())
}

/// The rules that `with("without", …)` names: one name, or a list of them.
fn rules_off(site: &Site<'_>, given: &Argument) -> Result<Vec<&'static str>> {
    let names = match given {
        Argument::List(names) => names.clone(),
        Argument::Value(Value::List(names) | Value::Set(names)) => names.iter().cloned().map(Argument::Value).collect(),
        name => vec![name.clone()],
    };
    names.iter().map(|given| rule_off(site, &name(site, given, "the name of a rule")?)).collect()
}

/// The name of a rule that is not applied, if there is such a rule.
fn rule_off(site: &Site<'_>, name: &str) -> Result<&'static str> {
    let mut rules = crate::rules::RULES.iter().map(|rule| rule.name).chain(crate::physical_rules::names());
    rules.clone().find(|rule| *rule == name).ok_or_else(|| {
        let all = rules.by_ref().collect::<Vec<_>>().join("`, `");
        site.invalid(format_args!("{WITHOUT} names rules as explain() shows them; `{name}` is none of `{all}`"))
    })
}

fn options() -> impl Iterator<Item = &'static str> {
    TIMEOUT.iter().chain(&OPTIONS_HERE).chain(&policies::OPTIONS).chain(OF_REQUESTS).copied()
}

fn no_option(site: &Site<'_>, key: &str) -> Error {
    let near = mangrove_gremlin::suggest(key, options());
    site.unsupported(format_args!("a traversal source has no option `{key}`{near}"))
}

/// Fails if a strategy is given a setting that it does not have.
fn check_settings(site: &Site<'_>, strategy: &str, settings: &Settings) -> Result<()> {
    let known = SETTINGS.iter().find(|(name, _)| *name == strategy).map_or(&[] as &[_], |(_, known)| known);
    let Some((unknown, _)) = settings.iter().find(|(key, _)| key != CLASS && !known.contains(&&**key)) else {
        return Ok(());
    };
    let takes = match known {
        [] => "it takes no settings here".to_owned(),
        known => format!("it takes `{}`", known.join("`, `")),
    };
    Err(site.unsupported(format_args!("{strategy} has no setting `{unknown}`; {takes}")))
}

/// Returns true if a verifying strategy is set to fail. A warning has no effect here.
fn throws(site: &Site<'_>, strategy: &str, settings: &Settings) -> Result<bool> {
    let throws = flag(settings, "throwException");
    match flag(settings, "logWarning") && !throws {
        true => Err(site.unsupported(format_args!("{strategy} logs no warnings here; use throwException"))),
        false => Ok(throws),
    }
}

fn strategy(configuration: &mut Configuration, site: &Site<'_>, given: &Argument) -> Result<()> {
    let Argument::Strategy(name, settings) = given else {
        return Err(site.invalid(format_args!("a strategy is needed, not {}", describe(given))));
    };
    let kind = simple_name(name);
    if kind != OPTIONS {
        check_settings(site, kind, settings)?;
    }
    match kind {
        READ_ONLY => configuration.read_only = true,
        SUBGRAPH => see_only(configuration, subgraph(site, settings)?),
        PARTITION => see_only(configuration, partition(site, settings)?),
        PRODUCTIVE_BY => configuration.productive_by = Some(names_under(site, settings, "productiveKeys")?),
        RESERVED_KEYS => {
            if throws(site, RESERVED_KEYS, settings)? {
                let keys = names_under(site, settings, "keys")?;
                let default = || vec!["id".into(), "label".into()];
                configuration.reserved_keys = if keys.is_empty() { default() } else { keys };
            }
        }
        EDGE_LABELS => configuration.edge_labels_needed = throws(site, EDGE_LABELS, settings)?,
        COMPUTER => computer(configuration, site, settings)?,
        NO_COMPUTER => configuration.no_computer = true,
        SEED => {
            let seed = settings.iter().find(|(key, _)| key == "seed").and_then(|(_, value)| integer(value));
            configuration.seed = Some(seed.ok_or_else(|| site.invalid("SeedStrategy takes a whole number as `seed`"))?);
        }
        OPTIONS => settings
            .iter()
            .filter(|(key, _)| key != CLASS)
            .try_for_each(|(key, value)| option(configuration, site, key, value))?,
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
        PRODUCTIVE_BY => configuration.productive_by = None,
        strategy @ (SUBGRAPH | PARTITION) => configuration.subsets.retain(|subset| subset.strategy != strategy),
        RESERVED_KEYS => configuration.reserved_keys.clear(),
        EDGE_LABELS => configuration.edge_labels_needed = false,
        SEED => configuration.seed = None,
        COMPUTER => {
            configuration.computer = None;
            configuration.subsets.retain(|subset| subset.strategy != COMPUTER);
        }
        NO_COMPUTER => configuration.no_computer = false,
        OPTIONS => {
            (configuration.timeout_millis, configuration.workers_max) = (None, None);
            (configuration.tenant, configuration.planner) = (None, None);
            configuration.metrics_as_map = false;
            configuration.rules_off.clear();
            configuration.policy = ScopePolicy::default();
        }
        // Removing a strategy that the source does not have changes nothing.
        name if UNSUPPORTED.contains(&name) => {}
        name => accept(site, name)?,
    }
    Ok(())
}

/// Adds a part of the graph that the traversal sees, in place of one that the same strategy named before.
/// `PartitionStrategy` comes last, because it also restricts the steps that `SubgraphStrategy` adds.
fn see_only(configuration: &mut Configuration, subset: Subset) {
    let subsets = &mut configuration.subsets;
    subsets.retain(|known| known.strategy != subset.strategy);
    subsets.push(subset);
    subsets.sort_by_key(|subset| subset.strategy == PARTITION);
}

/// The name of the strategy that an argument gives.
fn kind(given: &Argument) -> Option<&str> {
    match given {
        Argument::Strategy(name, _) => Some(simple_name(name)),
        _ => None,
    }
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
    let names = NEUTRAL.iter().chain(UNSUPPORTED).chain(CONFIGURING).copied();
    Err(site.unsupported(format_args!("Gremlin has no strategy {name}{}", mangrove_gremlin::suggest(name, names))))
}

type Settings = [(SmolStr, Argument)];

fn setting<'a>(settings: &'a Settings, key: &str) -> Option<&'a Argument> {
    settings.iter().find(|(known, _)| known == key).map(|(_, value)| value)
}

fn flag(settings: &Settings, key: &str) -> bool {
    matches!(setting(settings, key), Some(Argument::Value(Value::Bool(true))))
}

/// The strings in a list or set under a key; none if the key is missing.
fn names_under(site: &Site<'_>, settings: &Settings, key: &str) -> Result<Vec<Name>> {
    let values = match setting(settings, key) {
        None => return Ok(Vec::new()),
        Some(Argument::Value(Value::List(values) | Value::Set(values))) => values.to_vec(),
        Some(Argument::Value(value)) => vec![value.clone()],
        Some(other) => return Err(site.invalid(format_args!("`{key}` is a list of strings, not {}", describe(other)))),
    };
    values.into_iter().map(|value| name(site, &Argument::Value(value), key)).collect()
}

/// `VertexProgramStrategy(workers: …, persist: …, result: …, vertices: …, edges: …)`. Which computer runs a program, and
/// whether its results are a graph of their own, make no difference here: results are seen by the traversal alone.
fn computer(configuration: &mut Configuration, site: &Site<'_>, settings: &Settings) -> Result<()> {
    if let Some(workers) = setting(settings, "workers") {
        option(configuration, site, PARALLEL, workers)?;
    }
    match setting(settings, "persist") {
        None => {}
        Some(Argument::Value(Value::String(persist))) if persist.eq_ignore_ascii_case("NOTHING") => {}
        Some(other) => {
            return Err(site.unsupported(format_args!(
                "persist is NOTHING here, not {}; write values with property(), or with the `write` of \
                 call('mangrove.algo.…')",
                describe(other)
            )));
        }
    }
    let misfit = |key: &str, takes: &str, given: &Argument| {
        site.invalid(format_args!("the {key} of a computer are {takes} of some labels, not {}", describe(given)))
    };
    let vertices = match setting(settings, "vertices") {
        None => None,
        Some(given) => Some(labels_tested(site, given)?.ok_or_else(|| misfit("vertices", "hasLabel()", given))?),
    };
    let edges = match setting(settings, "edges") {
        None => None,
        Some(given) => {
            let takes = "outE(), inE() or bothE()";
            let chosen = edges(site, Some(given))?.ok_or_else(|| misfit("edges", takes, given))?;
            Some(chosen.labels).filter(|labels| !labels.is_empty())
        }
    };
    let labeled = |labels: &Vec<Name>| {
        let step = Step::Has(vec![Condition::LabelIn(labels.clone())]);
        Traversal { steps: vec![StepNode::new(step, site.position)] }
    };
    configuration.subsets.retain(|subset| subset.strategy != COMPUTER);
    if vertices.is_some() || edges.is_some() {
        see_only(
            configuration,
            Subset {
                strategy: COMPUTER,
                vertices: vertices.as_ref().map(labeled),
                edges: edges.as_ref().map(labeled),
                properties: None,
                checks_ends: true,
                tests_hops: true,
                tests_new: true,
                mark: None,
            },
        );
    }
    configuration.computer = Some(ComputerFilter { vertices, edges });
    Ok(())
}

/// `SubgraphStrategy(vertices: …, edges: …, vertexProperties: …, checkAdjacentVertices: true)`.
fn subgraph(site: &Site<'_>, settings: &Settings) -> Result<Subset> {
    let criterion = |key| setting(settings, key).map(|given| child(site, given)).transpose();
    let unchecked = matches!(setting(settings, "checkAdjacentVertices"), Some(Argument::Value(Value::Bool(false))));
    Ok(Subset {
        strategy: SUBGRAPH,
        vertices: criterion("vertices")?,
        edges: criterion("edges")?,
        properties: criterion("vertexProperties")?,
        checks_ends: !unchecked,
        tests_hops: true,
        tests_new: true,
        mark: None,
    })
}

/// `PartitionStrategy(partitionKey: …, writePartition: …, readPartitions: […], includeMetaProperties: false)`.
fn partition(site: &Site<'_>, settings: &Settings) -> Result<Subset> {
    let key = setting(settings, "partitionKey");
    let key = key.ok_or_else(|| site.invalid("PartitionStrategy needs a `partitionKey`"))?;
    let key = name(site, key, "the key of partitions")?;
    let read = names_under(site, settings, "readPartitions")?;
    let within = Test::Within(read.into_iter().map(|name| Operand::Literal(Value::String(name))).collect());
    let step = Step::Has(vec![Condition::Property(key.clone(), within)]);
    let criterion = Traversal { steps: vec![StepNode::new(step, site.position)] };
    let meta = flag(settings, "includeMetaProperties");
    let mark = match setting(settings, "writePartition") {
        None => None,
        Some(write) => Some((key, operand(site, write)?, meta)),
    };
    Ok(Subset {
        strategy: PARTITION,
        vertices: Some(criterion.clone()),
        edges: Some(criterion.clone()),
        properties: meta.then_some(criterion),
        checks_ends: false,
        tests_hops: false,
        tests_new: false,
        mark,
    })
}
