//! The logical traversal: steps with their meaning and checked arguments. It is data; `compile` makes it, rules rewrite
//! it, and `lower` reads it.
//!
//! - **PLAN-1.** Names of labels and keys stay names. A traversal may create a label or key that it reads further on,
//!   so they are looked up in the catalog when the plan runs.
//! - **PLAN-2.** Rules and checks learn the properties of a step from two matches without a default arm: `traits.rs`
//!   (reads, effects, order) and `nested.rs` (nested traversals). So the code does not compile until a new step has its
//!   arms there.

pub mod algorithm;
mod branch;
mod condition;
pub mod expression;
pub mod files;
pub mod function;
mod nested;
mod operand;
mod policy;
mod subset;
mod traits;
pub mod upsert;

use mangrove_graph::{Direction, Token};
use mangrove_gremlin::{Cardinality, Column, Operator, Order, Pop, Position};

use algorithm::{ComputerFilter, ShortestPath, VertexProgram};
use expression::{Expression, Part};
use files::FileStep;
use function::Function;
use upsert::Upsert;

use crate::options::Planner;

pub use branch::{Avoids, Choose, ChooseOn, ChooseOption, Emit, LoopSearch, Repeat, Until};
pub use condition::{Bound, Condition, FilterKind, LabelTest, Quantifier, Test};
pub use nested::Enters;
pub use operand::{Name, Operand};
pub use policy::{InstanceOrder, Priority, PriorityOf, ScopePolicy, WorkOrder, WorkOrders};
pub use subset::Subset;
pub use traits::{Effect, Names, PathUse, SackUse, StepTraits};

/// The services of `call()` that only read the graph. A read-only traversal may call them.
pub const GRAPH_SERVICES: [&str; 2] = ["tinker.degree.centrality", "tinker.search"];

/// The beginning of the names of the services that run algorithms. They only read the graph, unless they are given
/// [`ALGORITHM_WRITES`].
pub const ALGORITHM_SERVICES: &str = "mangrove.algo.";

/// The argument with which the service of an algorithm writes to the graph.
pub const ALGORITHM_WRITES: &str = "write";

/// A chain of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traversal {
    /// The steps in order.
    pub steps: Vec<StepNode>,
}

/// A step with the labels that `as()` gives it.
#[derive(Clone, Debug)]
pub struct StepNode {
    /// The step.
    pub step: Step,
    /// The labels.
    pub labels: Vec<Name>,
    /// The policy that its `with()`s ask for. A step that has one keeps its scope.
    pub policy: ScopePolicy,
    /// Its position in the script, for errors; `None` for bytecode from the wire. It is no part of equality, so rules
    /// may compare steps.
    pub position: Option<Position>,
    /// The rows that are expected to leave it, as far as that was estimated. It is no part of equality.
    pub expected: Option<f64>,
}

impl PartialEq for StepNode {
    fn eq(&self, other: &Self) -> bool {
        self.step == other.step && self.labels == other.labels && self.policy == other.policy
    }
}

impl StepNode {
    /// A step without labels, and without a policy of its own.
    pub fn new(step: Step, position: Option<Position>) -> Self {
        StepNode { step, labels: Vec::new(), policy: ScopePolicy::default(), position, expected: None }
    }
}

/// The configuration of a whole traversal: the `with…` steps of its source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// `withSideEffect(name, value)`.
    pub side_effects: Vec<(Name, Operand)>,
    /// `withPath()`: rows keep whole paths, whether or not a step reads them.
    pub path: bool,
    /// `with("evaluationTimeout", ms)`.
    pub timeout_millis: Option<u64>,
    /// `with("parallel", n)`: the most threads that work on the traversal at a time.
    pub workers_max: Option<usize>,
    /// The tenant that the traversal counts for, from `with("tenant", name)`.
    pub tenant: Option<Name>,
    /// `with("policy", …)` and `with("maxInstances", n)`: the policy of scopes whose steps have none.
    pub policy: ScopePolicy,
    /// `ReadOnlyStrategy`: steps that write are refused.
    pub read_only: bool,
    /// `withSideEffect(name, value, operator)`: the operator that folds values into the side effect.
    pub reducers: Vec<(Name, Operator)>,
    /// `withSack(value, …)`
    pub sack: Option<Sack>,
    /// `withBulk(false)`: merging rows does not add their bulks.
    pub one_bulk: bool,
    /// `ProductiveByStrategy`: a `by()` without a result gives null. The keys named here are known to have results.
    pub productive_by: Option<Vec<Name>>,
    /// `SubgraphStrategy` and `PartitionStrategy`, in order.
    pub subsets: Vec<Subset>,
    /// `ReservedKeysVerificationStrategy`: writing under these keys is refused.
    pub reserved_keys: Vec<Name>,
    /// `EdgeLabelVerificationStrategy`: a step along edges without labels is refused.
    pub edge_labels_needed: bool,
    /// `withComputer()`: what the graph computer sees, without which a traversal has no algorithms.
    pub computer: Option<ComputerFilter>,
    /// `VertexProgramRestrictionStrategy`: a graph computer is refused.
    pub no_computer: bool,
    /// `SeedStrategy`: the seed of random numbers.
    pub seed: Option<i64>,
    /// `with("planner", …)`: how the order of walks is chosen.
    pub planner: Option<Planner>,
    /// `with("metrics", "map")`: `profile()` answers with a map, for clients that do not know TinkerPop's type.
    pub metrics_as_map: bool,
    /// `with("without", names)`: the rules, logical and physical, that are not applied.
    pub rules_off: Vec<&'static str>,
}

impl Configuration {
    /// How the order of walks is chosen, if options ask for `planner`.
    pub fn planner_or(&self, planner: Planner) -> Planner {
        match planner {
            Planner::Written => planner,
            Planner::Greedy | Planner::Forced(_) => self.planner.unwrap_or(planner),
        }
    }
}

/// The configuration of sacks: values that the traversers carry.
#[derive(Clone, Debug, PartialEq)]
pub struct Sack {
    /// The sack of every traverser at the source.
    pub initial: Operand,
    /// The operator that makes one sack of the sacks of merged rows. Without it, rows are not merged.
    pub merge: Option<Operator>,
}

/// Where a step looks for the value of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// In the object, if it is a map; then among the side effects; then among the labels of the path. Of several values
    /// of a label, the `Pop` chooses; without one, the newest is taken.
    Scope(Option<Pop>),
    /// Among the labels of the path only, the newest value: the variables of a `match()`.
    Path,
}

impl Lookup {
    /// Returns true if a label of the path stands for its newest value.
    pub fn is_newest(self) -> bool {
        matches!(self, Lookup::Scope(None | Some(Pop::Last)) | Lookup::Path)
    }
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    // ---- sources ----
    /// `V(ids…)`. In the middle of a traversal it runs for every traverser.
    Vertices {
        /// Ids (integers, strings, UUIDs, or lists of them); `None`: all vertices.
        ids: Option<Vec<Operand>>,
        /// Conditions that a rule has taken from the steps after it.
        conditions: Vec<Condition>,
    },
    /// `E(ids…)`.
    Edges {
        /// Ids; `None`: all edges.
        ids: Option<Vec<Operand>>,
        /// Conditions that a rule has taken from the steps after it.
        conditions: Vec<Condition>,
    },
    /// `inject(values…)`.
    Inject(Vec<Operand>),
    /// `call(service)` with its `with()`s: calls a service of the database for each traverser.
    Call {
        /// The service; `None`: the service that lists all services.
        service: Option<Name>,
        /// The arguments in order. Of two arguments with one name, the later counts. An argument without a name is a
        /// map of arguments.
        arguments: Vec<(Option<Name>, Argument)>,
    },

    // ---- algorithms ----
    /// `pageRank()`, `peerPressure()`, `connectedComponent()`: after all traversers have come, gives every vertex a value,
    /// which later steps read as a property. The traversers go on as they are.
    VertexProgram(Box<VertexProgram>),
    /// `shortestPath()`, or a part of it.
    ShortestPath(Box<ShortestPath>),

    /// `io(path)`: reads a file into the graph, or writes the graph to a file. It has no results.
    File(FileStep),

    // ---- writes ----
    /// `addV(label)` with the `property()` steps after it.
    AddVertex {
        /// The label.
        label: Argument,
        /// Properties in order, without `T.id`.
        properties: Vec<PropertyArgument>,
        /// The id that the client chose.
        id: Option<Argument>,
    },
    /// `addE(label).from(…).to(…)` with the `property()` steps after it.
    AddEdge {
        /// The label.
        label: Argument,
        /// The source; `None`: the current vertex.
        from: Option<Endpoint>,
        /// The target; `None`: the current vertex.
        to: Option<Endpoint>,
        /// Properties in order.
        properties: Vec<PropertyArgument>,
        /// The id that the client chose.
        id: Option<Argument>,
    },
    /// `property(…)` of an existing element or, for a meta-property, of a vertex property.
    Property(PropertyArgument),
    /// `mergeV()` and `mergeE()`: finds elements, and creates one if there is none.
    Upsert(Box<Upsert>),
    /// `drop()`.
    Drop,

    // ---- along edges ----
    /// `out`, `in`, `both`, `outE`, `inE`, `bothE`.
    Expand {
        /// The direction of the edges.
        direction: Direction,
        /// Edge labels; empty: all.
        labels: Vec<Name>,
        /// Leads to the edges instead of the neighbors.
        to_edges: bool,
    },
    /// `outV`, `inV`, `bothV`, `otherV`.
    EdgeVertex(EdgeEnd),

    // ---- filters ----
    /// `has…`: keeps elements for which all conditions hold.
    Has(Vec<Condition>),
    /// `is(P)`.
    Is(Test),
    /// `where(P)`, `where("a", P)` with its `by()`s.
    WherePredicate {
        /// The name whose value is tested; `None`: the current object is tested.
        start: Option<Name>,
        /// The test; its operands are names of step labels or side effects.
        test: LabelTest,
        /// The `by()`s, in rotation over the start and then the names of the test in their order.
        by: Vec<By>,
        /// Where the names are looked for.
        lookup: Lookup,
    },
    /// `where(traversal)`, `filter(traversal)`, `and(…)`, `or(…)`, `not(…)`.
    FilterTraversal(FilterKind, Vec<Traversal>),
    /// `all(P)`, `any(P)`, `none(P)`: keeps collections by a test of their members.
    Members {
        /// How many members must pass.
        quantifier: Quantifier,
        /// The test.
        test: Test,
    },
    /// `dedup(labels…)`.
    Dedup {
        /// Step labels whose values are compared together; empty: the object is compared.
        labels: Vec<Name>,
        /// The parts of the values that are compared.
        by: Vec<By>,
    },
    /// `limit`, `skip`, `range`: keeps the positions `low..high` of the stream. A row counts with its bulk.
    Range {
        /// The first position taken.
        low: Operand,
        /// The position after the last taken; `None` or negative: to the end.
        high: Option<Operand>,
    },
    /// `tail(n)`.
    Tail(Operand),
    /// `simplePath()` (true), `cyclicPath()` (false).
    PathShape {
        /// True keeps the paths without repetition, false those with one.
        simple: bool,
        /// The part of each object that is compared.
        by: Vec<By>,
        /// The part of the path that is compared.
        segment: Segment,
    },
    /// `none()` of 3.7 and `discard()` of 3.8: drops every traverser.
    Discard,

    // ---- maps ----
    /// `values(keys…)`; empty: all keys.
    Values(Vec<Name>),
    /// `properties(keys…)`; empty: all keys.
    Properties(Vec<Name>),
    /// `valueMap(keys…)`.
    ValueMap {
        /// Keys; empty: all.
        keys: Vec<Name>,
        /// The tokens that the map begins with.
        tokens: MapTokens,
        /// A `by()` that is applied to each list of values.
        by: Option<By>,
        /// A traversal whose result is the list of vertex properties to show; `None`: all are shown.
        shown: Option<Box<Traversal>>,
    },
    /// `propertyMap(keys…)`: a map from keys to properties.
    PropertyMap {
        /// Keys; empty: all.
        keys: Vec<Name>,
        /// A `by()` that is applied to the properties of each key.
        by: Option<By>,
        /// A traversal whose result is the list of vertex properties to show; `None`: all are shown.
        shown: Option<Box<Traversal>>,
    },
    /// `elementMap(keys…)`.
    ElementMap {
        /// Keys; empty: all.
        keys: Vec<Name>,
        /// A traversal whose result is the list of vertex properties to show; `None`: all are shown.
        shown: Option<Box<Traversal>>,
    },
    /// `id()`.
    Id,
    /// `label()`.
    Label,
    /// `key()` of a property.
    Key,
    /// `value()` of a property.
    PropertyValue,
    /// `constant(v)`.
    Constant(Operand),
    /// `identity()`.
    Identity,
    /// `unfold()`.
    Unfold,
    /// `loops(name)`: the iteration of the innermost loop, or of the loop of a name.
    Loops(Option<Name>),
    /// A function of the object alone: a step with `Scope.local`.
    Local(LocalFunction),
    /// `path()`.
    Path {
        /// The part of each object that is shown, in rotation.
        by: Vec<By>,
        /// The part of the path that is shown.
        segment: Segment,
    },
    /// `select("a", …)`.
    Select {
        /// Where the labels are looked for, and which of several values of a label is taken.
        lookup: Lookup,
        /// The labels.
        labels: Vec<Name>,
        /// `by()` in rotation.
        by: Vec<By>,
        /// True: a label without a value drops the row. False: only its entry is left out, and the result is always a
        /// map.
        required: bool,
    },
    /// A function of the object and of arguments.
    Function {
        /// The function.
        function: Function,
        /// Its arguments.
        arguments: Vec<Argument>,
    },
    /// `math(expression)`.
    Math {
        /// The expression over its variables.
        expression: Expression,
        /// The names of its variables; `_` is the object.
        variables: Vec<Name>,
        /// `by()` in rotation over the variables.
        by: Vec<By>,
    },
    /// `format(template)`.
    Format {
        /// The template.
        parts: Vec<Part>,
        /// `by()` in rotation over its `%{_}`.
        by: Vec<By>,
    },
    /// `select(keys)`, `select(values)`.
    SelectColumn(Column),
    /// `project("a", …)`.
    Project {
        /// The names.
        names: Vec<Name>,
        /// `by()` in rotation.
        by: Vec<By>,
    },
    /// `map(t)`: the first result of a traversal. `flatMap(t)`: all results. The path does not get the inner steps.
    Map {
        /// The nested traversal.
        traversal: Traversal,
        /// Take the first result alone.
        first: bool,
    },
    /// `local(t)`: all results, as `flatMap(t)`, but the path gets the inner steps.
    LocalTraversal(Traversal),
    /// `sideEffect(t)`: the traversal runs, and the traverser itself goes on.
    SideEffect(Traversal),

    // ---- barriers ----
    /// `count()`, `sum()`, `min()`, `max()`, `mean()`, `fold()`.
    Reduce(Reduction),
    /// `order()`.
    Order(Vec<OrderBy>),
    /// `group()`.
    Group {
        /// The side effect that gets the map; `None`: the map is the result.
        side_effect: Option<Name>,
        /// The key.
        key: By,
        /// Makes the value of a group from its members; `None`: the list of the members.
        value: Option<By>,
    },
    /// `groupCount()`.
    GroupCount {
        /// The side effect that gets the map; `None`: the map is the result.
        side_effect: Option<Name>,
        /// The key.
        key: By,
    },
    /// `tree()`.
    Tree {
        /// The side effect that gets the tree; `None`: the tree is the result.
        side_effect: Option<Name>,
        /// The part of each object of a path that is a key of the tree, in rotation.
        by: Vec<By>,
    },
    /// `subgraph("x")`: adds each edge with its ends to the graph in a side effect.
    Subgraph(Name),
    /// `aggregate("x")`: adds each object to a side effect.
    Aggregate {
        /// The side effect.
        name: Name,
        /// The part of the object that is added.
        by: By,
    },
    /// `cap("x", …)`: after all input, the value of the side effect, or a map of several.
    Cap(Vec<Name>),
    /// `barrier()`.
    Barrier {
        /// `normSack`: the sacks are scaled so that they add up to 1.
        norm_sack: bool,
    },
    /// `fold(seed, operator)`: folds all objects into the seed.
    FoldInto(Operand, Operator),
    /// `sack()`: the sack becomes the object.
    Sack,
    /// `sack(operator)`: folds the value of `by()` into the sack.
    FoldSack(Operator, By),
    /// `sample(n)`: keeps `n` traversers at random, weighted by `by()`.
    Sample(Operand, By),
    /// `timeLimit(ms)`: keeps the traversers that come within so many milliseconds of the first.
    TimeLimit(Operand),
    /// `coin(p)`: keeps each traverser with this probability.
    Coin(Operand),
    /// `fail(message)`: ends the query with an error.
    Fail(Name),
    /// `select(traversal)`: the value of a map under the key that the traversal returns, or else the value of that
    /// name.
    SelectKey {
        /// Which of several values of a label is taken.
        pop: Option<Pop>,
        /// The traversal that returns the key.
        key: Box<Traversal>,
        /// `by()` of the value.
        by: Vec<By>,
    },

    // ---- branches ----
    /// `union(…)`: the whole stream enters each of the traversals.
    Union(Vec<Traversal>),
    /// Two walks to one variable of a query graph, each from a source, whose rows are joined: no step of Gremlin. The
    /// planner makes it when it chooses the order of a traversal's first steps.
    Join {
        /// The walks. The rows of both are at the same variable.
        walks: Box<[Traversal; 2]>,
        /// The names of the other variables that both walks have.
        names: Vec<Name>,
    },
    /// `coalesce(…)`: for each traverser, the results of the first traversal that has any.
    Coalesce(Vec<Traversal>),
    /// `optional(t)`: the results of a traversal, or the traverser itself if there are none.
    Optional(Traversal),
    /// `choose(…)`.
    Choose(Box<Choose>),
    /// `repeat(…)` with `until`, `emit`, `times`.
    Repeat(Box<Repeat>),
}

/// The tokens that a `valueMap()` begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapTokens {
    /// `T.id`
    pub ids: bool,
    /// `T.label`; of properties `T.key` and `T.value`.
    pub labels: bool,
}

/// The ends of an edge that a step goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeEnd {
    /// `outV()`
    Source,
    /// `inV()`
    Target,
    /// `bothV()`
    Both,
    /// `otherV()`: the end that the traverser did not come from.
    Other,
}

/// A part of a path: from the last object with one label to the last object with another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// `from(label)`; `None`: from the beginning.
    pub from: Option<Name>,
    /// `to(label)`; `None`: to the end.
    pub to: Option<Name>,
}

/// The part of an object that a `by()` takes.
#[derive(Clone, Debug, PartialEq)]
pub enum By {
    /// The object itself.
    Identity,
    /// The value under a key: of a property of an element (the first of several), or of a map.
    Key(Name),
    /// `T.id`, `T.label`, `T.key`, `T.value`.
    Token(Token),
    /// `Column.keys`, `Column.values`.
    Column(Column),
    /// The first result of a traversal.
    Traversal(Box<Traversal>),
}

/// One criterion of `order()`.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderBy {
    /// The part of the object that is compared.
    pub by: By,
    /// The direction of the order.
    pub order: Order,
}

/// An argument: one value for all traversers, or a value that is computed for each.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// The same value for all traversers.
    Operand(Operand),
    /// The first result of a traversal.
    Traversal(Box<Traversal>),
}

/// One `property(…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyArgument {
    /// The cardinality it is written with; `None`: single.
    pub cardinality: Option<Cardinality>,
    /// The key; empty if `key_from` returns it.
    pub key: Name,
    /// A traversal that returns the key.
    pub key_from: Option<Box<Traversal>>,
    /// The value; null removes the property.
    pub value: Argument,
    /// Meta-properties.
    pub meta: Vec<(Name, Argument)>,
}

/// An end of the edge that `addE()` creates.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// The vertex at a step label of the path.
    Label(Name),
    /// The vertex of this id.
    Id(Operand),
    /// The first result of a traversal, which must be a vertex.
    Traversal(Box<Traversal>),
}

impl Endpoint {
    /// The step label of [`Endpoint::Label`].
    pub fn label(&self) -> Option<&Name> {
        match self {
            Endpoint::Label(name) => Some(name),
            Endpoint::Id(_) | Endpoint::Traversal(_) => None,
        }
    }
}

/// The reducing barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// `count()`
    Count,
    /// `sum()`
    Sum,
    /// `min()`
    Min,
    /// `max()`
    Max,
    /// `mean()`
    Mean,
    /// `fold()`
    Fold,
}

/// Functions of one object: the `Scope.local` forms of steps.
#[derive(Clone, Debug, PartialEq)]
pub enum LocalFunction {
    /// A reduction over a collection (`count(local)` of anything else is 1).
    Reduce(Reduction),
    /// `dedup(local)`. Members that are maps are compared by the values of these keys; empty: as a whole.
    Dedup(Vec<Name>),
    /// `order(local)`: sorts a list, or the entries of a map.
    Order(Vec<OrderBy>),
    /// `limit(local, …)`, `range(local, …)`, `skip(local, …)`.
    Range {
        /// The first position taken.
        low: Operand,
        /// The position after the last taken; `None`: to the end.
        high: Option<Operand>,
    },
    /// `tail(local, n)`
    Tail(Operand),
    /// `sample(local, n)`
    Sample(Operand),
}
