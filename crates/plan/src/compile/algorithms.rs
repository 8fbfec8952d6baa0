//! Graph algorithms: `pageRank()`, `peerPressure()`, `connectedComponent()`, `shortestPath()`.
//!
//! They need a source with a graph computer, `withComputer()`, as in TinkerPop. What of the graph the computer sees is known when
//! the whole traversal is compiled: [`configure`] tells it to them.

use mangrove_graph::{Direction, Error, Result, Value, numeric};
use mangrove_gremlin::{Argument, Column, Position};

use super::arguments::{child, describe, integer, misfit, name};
use super::groups::{Call, Modulator};
use super::site::Site;
use crate::logical::algorithm::{ComputerFilter, EdgeChoice, ProgramKind, SearchResults, ShortestPath, VertexProgram};
use crate::logical::{Condition, Configuration, FilterKind, Name, Step, StepNode, Traversal};

/// The most rounds that can be asked for.
const ROUNDS_MAX: i64 = 1_000_000;

/// An option of a step: the name that follows `~tinkerpop.STEP.`, with the value of `with()`; `None` for a flag.
struct StepOption<'c> {
    name: Name,
    value: Option<&'c Argument>,
    site: Site<'c>,
}

/// Reads the `with()`s of a step.
fn options<'c>(call: &mut Call<'c>, known: &[&str]) -> Result<Vec<StepOption<'c>>> {
    let (step, modulators) = (call.site.name, call.take("with"));
    let prefix = format!("~tinkerpop.{step}.");
    let read = |modulator: Modulator<'c>| {
        let (key, value) = match modulator.arguments {
            [key] => (key, None),
            [key, value] => (key, Some(value)),
            other => return Err(misfit(&modulator.site, "an option and perhaps its value", other)),
        };
        let key = name(&modulator.site, key, "an option")?;
        let found = key.strip_prefix(prefix.as_str()).filter(|option| known.contains(option));
        let option = found.ok_or_else(|| {
            let all: Vec<String> = known.iter().map(|option| format!("`{prefix}{option}`")).collect();
            modulator.site.unsupported(format_args!("{step} has no option `{key}`. There are: {}", all.join(", ")))
        })?;
        Ok(StepOption { name: option.into(), value, site: modulator.site })
    };
    modulators.into_iter().map(read).collect()
}

impl StepOption<'_> {
    fn misfit(&self, takes: &str) -> Error {
        let given = self.value.map_or_else(|| "nothing".to_owned(), describe);
        self.site.invalid(format_args!("{} is {takes}, not {given}", self.name))
    }

    fn rounds(&self) -> Result<u32> {
        let rounds = self.value.and_then(integer).filter(|rounds| (0..=ROUNDS_MAX).contains(rounds));
        rounds.map(|rounds| rounds as u32).ok_or_else(|| self.misfit("a number of rounds, from 0 to 1,000,000"))
    }

    fn key(&self) -> Result<Name> {
        match self.value {
            Some(value) => name(&self.site, value, "a property key"),
            None => Err(self.misfit("a property key")),
        }
    }

    fn edges(&self) -> Result<EdgeChoice> {
        edges(&self.site, self.value)?.ok_or_else(|| {
            self.misfit("a direction, or outE(), inE() or bothE() of some labels without a step after it")
        })
    }
}

/// The edges that a traversal from a vertex, or a direction, names; `None` if it is neither.
pub(super) fn edges(site: &Site<'_>, given: Option<&Argument>) -> Result<Option<EdgeChoice>> {
    Ok(match given {
        Some(Argument::Value(Value::Direction(direction))) => {
            Some(EdgeChoice { direction: *direction, labels: Vec::new() })
        }
        Some(given @ Argument::Traversal(_)) => match &child(site, given)?.steps[..] {
            [StepNode { step: Step::Expand { direction, labels, to_edges: true }, .. }] => {
                Some(EdgeChoice { direction: *direction, labels: labels.clone() })
            }
            _ => None,
        },
        _ => None,
    })
}

/// The labels that a traversal tests a vertex for; `None` if it does anything else.
pub(super) fn labels_tested(site: &Site<'_>, given: &Argument) -> Result<Option<Vec<Name>>> {
    Ok(match &child(site, given)?.steps[..] {
        [StepNode { step: Step::Has(conditions), .. }] => match &conditions[..] {
            [Condition::LabelIn(labels)] => Some(labels.clone()),
            _ => None,
        },
        _ => None,
    })
}

fn refuse_nested(site: &Site<'_>) -> Result<()> {
    match site.parent() {
        None => Ok(()),
        Some(_) => Err(site.unsupported(
            "an algorithm sees the whole graph, and so belongs to the traversal itself, not into a nested one",
        )),
    }
}

/// `pageRank()`, `peerPressure()` and `connectedComponent()`.
pub(super) fn vertex_program(call: &mut Call<'_>) -> Result<Step> {
    refuse_nested(&call.site)?;
    let both = |direction| EdgeChoice { direction, labels: Vec::new() };
    let (mut kind, mut key, mut edges, known): (_, Name, _, &[&str]) = match call.site.name {
        "pageRank" => (
            ProgramKind::PageRank { damping: damping(call)?, rounds: 20 },
            "gremlin.pageRankVertexProgram.pageRank".into(),
            both(Direction::Out),
            &["edges", "propertyName", "times"],
        ),
        "peerPressure" => (
            ProgramKind::PeerPressure { rounds: 30 },
            "gremlin.peerPressureVertexProgram.cluster".into(),
            both(Direction::Out),
            &["edges", "propertyName", "times"],
        ),
        _ => (
            ProgramKind::ConnectedComponent,
            "gremlin.connectedComponentVertexProgram.component".into(),
            both(Direction::Both),
            &["edges", "propertyName"],
        ),
    };
    if call.site.name != "pageRank" && !call.arguments.is_empty() {
        return Err(misfit(&call.site, "no arguments", call.arguments));
    }
    for option in options(call, known)? {
        match &*option.name {
            "edges" => edges = option.edges()?,
            "propertyName" => key = option.key()?,
            _ => match &mut kind {
                ProgramKind::PageRank { rounds, .. } | ProgramKind::PeerPressure { rounds } => {
                    *rounds = option.rounds()?;
                }
                ProgramKind::ConnectedComponent => {}
            },
        }
    }
    let program = VertexProgram { kind, key, edges, sees: ComputerFilter::default(), by_traversers: false };
    Ok(Step::VertexProgram(Box::new(program)))
}

fn damping(call: &Call<'_>) -> Result<f64> {
    match call.arguments {
        [] => Ok(0.85),
        [Argument::Value(value)] if numeric::to_f64(value).is_some_and(|damping| (0.0..=1.0).contains(&damping)) => {
            Ok(numeric::to_f64(value).unwrap_or_default())
        }
        given => Err(misfit(&call.site, "nothing or a probability, from 0 to 1", given)),
    }
}

/// `shortestPath()`: one step, or with a condition on targets three.
pub(super) fn shortest_path(call: &mut Call<'_>) -> Result<Vec<Step>> {
    refuse_nested(&call.site)?;
    if !call.arguments.is_empty() {
        return Err(misfit(&call.site, "no arguments", call.arguments));
    }
    let mut search = ShortestPath {
        results: SearchResults::Paths,
        edges: EdgeChoice { direction: Direction::Both, labels: Vec::new() },
        distance: None,
        longest: None,
        with_edges: false,
        sees: ComputerFilter::default(),
    };
    let mut target = None;
    for option in options(call, &["distance", "edges", "includeEdges", "maxDistance", "target"])? {
        match &*option.name {
            "distance" => search.distance = Some(distance(&option)?),
            "edges" => search.edges = option.edges()?,
            "includeEdges" => {
                search.with_edges = match option.value {
                    None => true,
                    Some(Argument::Value(Value::Bool(with_edges))) => *with_edges,
                    Some(_) => return Err(option.misfit("true or false")),
                }
            }
            "maxDistance" => {
                let longest = match option.value {
                    Some(Argument::Value(value)) => numeric::to_f64(value).filter(|longest| !longest.is_nan()),
                    _ => None,
                };
                search.longest = Some(longest.ok_or_else(|| option.misfit("a number"))?);
            }
            _ => match option.value {
                Some(given @ Argument::Traversal(_)) => target = Some(child(&option.site, given)?),
                _ => return Err(option.misfit("a traversal from a vertex")),
            },
        }
    }
    let Some(mut target) = target else { return Ok(vec![Step::ShortestPath(Box::new(search))]) };
    let pairs = ShortestPath { results: SearchResults::Pairs, ..search.clone() };
    // The condition is about the second of the pair.
    let second = Step::SelectColumn(Column::Values);
    target.steps.insert(0, StepNode::new(second, call.site.position));
    let paths = ShortestPath { results: SearchResults::PathsOfPairs, ..search };
    Ok(vec![
        Step::ShortestPath(Box::new(pairs)),
        Step::FilterTraversal(FilterKind::All, vec![target]),
        Step::ShortestPath(Box::new(paths)),
    ])
}

/// The key of the property that a key, or `values(key)`, names.
fn distance(option: &StepOption<'_>) -> Result<Name> {
    if let Some(given @ Argument::Traversal(_)) = option.value {
        return match &child(&option.site, given)?.steps[..] {
            [StepNode { step: Step::Values(keys), .. }] if keys.len() == 1 => Ok(keys[0].clone()),
            _ => Err(option.site.unsupported("distance is the key of a property of the edges, or values() of one key")),
        };
    }
    option.key()
}

/// Tells the algorithms of a traversal what their graph computer sees. Fails if there is none.
pub(super) fn configure(traversal: &mut Traversal, configuration: &Configuration) -> Result<()> {
    // Ranks and votes begin alike if traversers are at all vertices, or at those that `V()` names, as in TinkerPop.
    let mut is_beginning = true;
    for node in &mut traversal.steps {
        let (step, sees) = match &mut node.step {
            Step::VertexProgram(program) => {
                program.by_traversers = !is_beginning;
                (program.kind.step(), &mut program.sees)
            }
            Step::ShortestPath(search) => {
                is_beginning = false;
                ("shortestPath", &mut search.sees)
            }
            Step::Vertices { .. } => continue,
            _ => {
                is_beginning = false;
                continue;
            }
        };
        let computer = configuration.computer.as_ref().ok_or_else(|| {
            let what = "VertexComputing steps must be executed with a GraphComputer; begin with g.withComputer()";
            refused(step, node.position, what)
        })?;
        if let Some(other) = configuration.subsets.iter().find(|subset| subset.strategy != super::source::COMPUTER) {
            let what = format!(
                "an algorithm does not see the graph through {}; name labels in the vertices and edges of the computer",
                other.strategy
            );
            return Err(refused(step, node.position, &what));
        }
        *sees = computer.clone();
    }
    Ok(())
}

fn refused(step: &str, position: Option<Position>, what: &str) -> Error {
    let place = position.map(|at| format!(" at line {}, column {}", at.line, at.column)).unwrap_or_default();
    Error::unsupported(format!("`{step}`{place}: {what}"))
}
