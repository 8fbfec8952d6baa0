//! The configuration of a traversal source, and the part of the graph that its strategies let the traversal see.
//!
//! The interpreter tests each element when a step reaches it; it rewrites nothing. While it evaluates the criterion of
//! a strategy, the strategy itself does not apply.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Bytecode, Instruction, Operator, Predicate};
use smol_str::SmolStr;

use super::step::{string, traversal, value};
use super::{Interpreter, Outcome, Traverser, unsupported, wrong};
use crate::script::bytecode;

/// The configuration of a traversal.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The initial sack of a new traverser.
    pub sack: Option<Value>,
    /// How a barrier merges the sacks of equal traversers.
    pub merge_sacks: Option<Operator>,
    /// If set, a `by()` without a result gives null, except for these keys.
    pub productive_by: Option<Vec<SmolStr>>,
    /// Keys that a new element must not have.
    pub reserved_keys: Vec<SmolStr>,
    /// True if a step along edges must name their labels.
    pub needs_edge_labels: bool,
    /// True if no step may write.
    pub read_only: bool,
    /// Side effects that exist before the traversal begins.
    pub side_effects: Vec<(SmolStr, Value)>,
    /// Side effects into which `aggregate()` folds with an operator.
    pub reducers: Vec<(SmolStr, Operator)>,
    /// True if traversers that a barrier merges count once.
    pub one_bulk: bool,
    /// The visible parts of the graph; an element must belong to all of them.
    pub parts: Vec<VisiblePart>,
}

/// A part of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct VisiblePart {
    /// The strategy that defines the part.
    strategy: SmolStr,
    vertices: Option<Bytecode>,
    edges: Option<Bytecode>,
    /// True if an edge belongs to the part only if both ends do.
    checks_ends: bool,
    /// True if a hop from vertex to vertex uses only edges that belong to the part.
    tests_hops: bool,
    /// A criterion for vertex properties: those with a result belong to the part.
    properties: Option<Bytecode>,
    /// The property of new elements.
    pub mark: Option<PartitionMark>,
}

/// The property that new elements get: key and value of their partition.
#[derive(Clone, Debug)]
pub(crate) struct PartitionMark {
    pub key: SmolStr,
    pub value: Value,
    /// True if new vertex properties get it, too.
    pub with_meta: bool,
}

/// Strategies that change how a traversal runs, but not its answer.
const NEUTRAL: [&str; 6] = [
    "CountStrategy",
    "EarlyLimitStrategy",
    "InlineFilterStrategy",
    "LazyBarrierStrategy",
    "PathRetractionStrategy",
    "SeedStrategy",
];

impl Source {
    /// Reads the source instructions.
    pub fn of(instructions: &[Instruction]) -> Outcome<Source> {
        let mut source = Source::default();
        for instruction in instructions {
            match (instruction.name.as_str(), &instruction.arguments[..]) {
                ("withSack", [initial]) => source.sack = Some(value(initial)?.clone()),
                // Traversers never share values, so a split operator has no effect.
                (
                    "withSack",
                    [initial, Argument::Operator(merge)] | [initial, Argument::Operator(_), Argument::Operator(merge)],
                ) => {
                    source.sack = Some(value(initial)?.clone());
                    source.merge_sacks = Some(*merge);
                }
                ("withSideEffect", [key, given, reducer @ ..]) => {
                    source.side_effects.push((string(key)?, value(given)?.clone()));
                    match reducer {
                        [] => {}
                        [Argument::Operator(operator)] => source.reducers.push((string(key)?, *operator)),
                        _ => return unsupported("withSideEffect() with these arguments"),
                    }
                }
                ("withBulk", [bulk]) => source.one_bulk = matches!(bulk, Argument::Value(Value::Bool(false))),
                // Options that change only how a traversal runs.
                ("withPath", []) | ("with", _) => {}
                ("withStrategies", strategies) => source.add_strategies(strategies)?,
                ("withoutStrategies", names) => {
                    for name in names {
                        match name {
                            Argument::Strategy(name, _) => source.remove_strategy(name)?,
                            other => return unsupported(format!("withoutStrategies({other})")),
                        }
                    }
                }
                (name, _) => return unsupported(format!("{name}() with these arguments")),
            }
        }
        Ok(source)
    }

    fn remove_strategy(&mut self, name: &str) -> Outcome<()> {
        match name {
            "ReadOnlyStrategy" => self.read_only = false,
            "ProductiveByStrategy" => self.productive_by = None,
            "ReservedKeysVerificationStrategy" => self.reserved_keys.clear(),
            "EdgeLabelVerificationStrategy" => self.needs_edge_labels = false,
            "SubgraphStrategy" | "PartitionStrategy" => self.parts.retain(|part| part.strategy != name),
            name if NEUTRAL.contains(&name) => {}
            name => return unsupported(name),
        }
        Ok(())
    }

    /// Of two strategies of one name in one call, the first takes effect. A call replaces all strategies of earlier
    /// calls.
    fn add_strategies(&mut self, strategies: &[Argument]) -> Outcome<()> {
        let mut names: Vec<&SmolStr> = Vec::new();
        for strategy in strategies {
            let Argument::Strategy(name, settings) = strategy else {
                return unsupported(format!("{strategy} as a strategy"));
            };
            if !names.contains(&name) {
                names.push(name);
                self.remove_strategy(name)?;
                self.add_strategy(name, settings)?;
            }
        }
        Ok(())
    }

    fn add_strategy(&mut self, name: &SmolStr, settings: &[(SmolStr, Argument)]) -> Outcome<()> {
        let setting = |key: &str| settings.iter().find(|(known, _)| known == key).map(|(_, given)| given);
        let throws = matches!(setting("throwException"), Some(Argument::Value(Value::Bool(true))));
        match name.as_str() {
            "ReadOnlyStrategy" => self.read_only = true,
            "ProductiveByStrategy" => {
                self.productive_by = Some(setting("productiveKeys").map(strings).transpose()?.unwrap_or_default());
            }
            "ReservedKeysVerificationStrategy" => {
                if throws {
                    self.reserved_keys = setting("keys").map(strings).transpose()?.unwrap_or_default();
                }
            }
            "EdgeLabelVerificationStrategy" => self.needs_edge_labels = throws,
            "SubgraphStrategy" => {
                let criterion = |key: &str| setting(key).map(traversal).transpose().map(|found| found.cloned());
                let unchecked = matches!(setting("checkAdjacentVertices"), Some(Argument::Value(Value::Bool(false))));
                let (vertices, edges) = (criterion("vertices")?, criterion("edges")?);
                let properties = criterion("vertexProperties")?;
                let strategy = name.clone();
                self.parts.retain(|part| part.strategy != strategy);
                self.parts.push(VisiblePart {
                    strategy,
                    vertices,
                    edges,
                    properties,
                    checks_ends: !unchecked,
                    tests_hops: true,
                    mark: None,
                });
            }
            "PartitionStrategy" => {
                let (Some(key), Some(Argument::Value(Value::Set(read) | Value::List(read)))) =
                    (setting("partitionKey"), setting("readPartitions"))
                else {
                    return unsupported("PartitionStrategy without key and partitions to read");
                };
                let among = Predicate::Within(read.iter().cloned().map(Argument::Value).collect());
                let has = Instruction::new("has", vec![key.clone(), Argument::Predicate(among)]);
                let criterion = Some(bytecode([has]));
                let with_meta = matches!(setting("includeMetaProperties"), Some(Argument::Value(Value::Bool(true))));
                let mark = match setting("writePartition") {
                    Some(write) => Some(PartitionMark { key: string(key)?, value: value(write)?.clone(), with_meta }),
                    None => None,
                };
                let properties = criterion.clone().filter(|_| with_meta);
                let (strategy, vertices, edges) = (name.clone(), criterion.clone(), criterion);
                self.parts.retain(|part| part.strategy != strategy);
                self.parts.push(VisiblePart {
                    strategy,
                    vertices,
                    edges,
                    properties,
                    checks_ends: false,
                    tests_hops: false,
                    mark,
                });
            }
            name if NEUTRAL.contains(&name) => {}
            name => return unsupported(name),
        }
        Ok(())
    }
}

/// The texts in a collection.
fn strings(given: &Argument) -> Outcome<Vec<SmolStr>> {
    let Argument::Value(Value::List(keys) | Value::Set(keys)) = given else {
        return unsupported(format!("{given} in place of names"));
    };
    keys.iter().map(|key| string(&Argument::Value(key.clone()))).collect()
}

impl Source {
    /// Fails if a strategy refuses the traversal, whatever the graph holds.
    pub fn verify(&self, traversal: &Bytecode) -> Outcome<()> {
        for instruction in &traversal.steps {
            let (name, arguments) = (instruction.name.as_str(), instruction.arguments.as_slice());
            if self.reserves(name, arguments) {
                return wrong("a reserved key is written");
            }
            if self.needs_edge_labels && goes_along_any_edge(name, arguments) {
                return wrong("a step along edges names no label");
            }
            for argument in arguments {
                if let Argument::Traversal(child) = argument {
                    self.verify(child)?;
                }
            }
        }
        Ok(())
    }

    /// Returns true if a step writes a reserved key, or takes a key from a traversal and so may write one.
    fn reserves(&self, name: &str, arguments: &[Argument]) -> bool {
        if self.reserved_keys.is_empty() || !matches!(name, "property" | "mergeV" | "mergeE" | "option") {
            return false;
        }
        let reserved = |key: &Argument| match key {
            Argument::Traversal(_) => true,
            key => string(key).is_ok_and(|key| self.reserved_keys.contains(&key)),
        };
        let given = match arguments {
            [Argument::Cardinality(_) | Argument::Merge(_), given @ ..] => given,
            given => given,
        };
        match given {
            [Argument::Value(Value::Map(entries)), ..] => {
                entries.iter().any(|(key, _)| reserved(&Argument::Value(key.clone())))
            }
            [Argument::Map(entries), ..] => entries.iter().any(|(key, _)| reserved(key)),
            [key, _, meta @ ..] if name == "property" => reserved(key) || meta.iter().step_by(2).any(reserved),
            _ => false,
        }
    }
}

/// Returns true for `out()`, `bothE()`, `to(OUT)` and the like without a label.
fn goes_along_any_edge(name: &str, arguments: &[Argument]) -> bool {
    match name {
        "out" | "in" | "both" | "outE" | "inE" | "bothE" => arguments.is_empty(),
        "to" | "toE" => matches!(arguments, [Argument::Value(Value::Direction(_))]),
        _ => false,
    }
}

impl Interpreter<'_> {
    /// Returns true if the traversal sees the element.
    pub(crate) fn sees(&mut self, element: &Value) -> Outcome<bool> {
        self.sees_by(element, |_| true)
    }

    /// Returns true if the traversal may reach the edge or, if `comes_to` is false, pass along it.
    pub(crate) fn sees_edge(&mut self, edge: &Value, comes_to: bool) -> Outcome<bool> {
        self.sees_by(edge, |part| comes_to || part.tests_hops)
    }

    /// Returns true if the element belongs to all parts that `counts` selects.
    fn sees_by(&mut self, element: &Value, counts: impl Fn(&VisiblePart) -> bool) -> Outcome<bool> {
        let parts = std::mem::take(&mut self.source.parts);
        let mut all = Ok(true);
        for part in parts.iter().filter(|part| counts(part)) {
            if matches!(all, Ok(true)) {
                // A partition also restricts the elements that the criterion of a subgraph reaches.
                let around = parts.iter().filter(|around| part.tests_hops && !around.tests_hops);
                self.source.parts = around.cloned().collect();
                all = self.belongs(part, element);
            }
        }
        self.source.parts = parts;
        all
    }

    /// Returns true if the element fits the criteria of a part.
    fn belongs(&mut self, part: &VisiblePart, element: &Value) -> Outcome<bool> {
        let passes = |this: &mut Self, criterion: &Option<Bytecode>, element: &Value| match criterion {
            Some(criterion) => this.test(criterion, &Traverser::new(element.clone(), Vec::new())),
            None => Ok(true),
        };
        match element {
            Value::Vertex(_) => passes(self, &part.vertices, element),
            Value::Edge(id) => {
                if !passes(self, &part.edges, element)? {
                    return Ok(false);
                }
                if !part.checks_ends {
                    return Ok(true);
                }
                let (source, target) = (self.graph.edge(*id)?.source, self.graph.edge(*id)?.target);
                Ok(passes(self, &part.vertices, &Value::Vertex(source))?
                    && passes(self, &part.vertices, &Value::Vertex(target))?)
            }
            Value::VertexProperty(_) => passes(self, &part.properties, element),
            _ => Ok(true),
        }
    }

    /// Returns true if the traversal continues with an element that it created: only a `SubgraphStrategy` tests it.
    pub(crate) fn sees_new(&mut self, element: &Value) -> Outcome<bool> {
        let parts = std::mem::take(&mut self.source.parts);
        let mut all = Ok(true);
        for part in parts.iter().filter(|part| part.tests_hops) {
            let criterion = if matches!(element, Value::Edge(_)) { &part.edges } else { &part.vertices };
            if let (Ok(true), Some(criterion)) = (&all, criterion) {
                all = self.test(criterion, &Traverser::new(element.clone(), Vec::new()));
            }
        }
        self.source.parts = parts;
        all
    }

    /// The elements that the traversal sees.
    pub(crate) fn seen(&mut self, elements: Vec<Value>) -> Outcome<Vec<Value>> {
        let mut seen = Vec::new();
        for element in elements {
            if self.sees(&element)? {
                seen.push(element);
            }
        }
        Ok(seen)
    }
}
