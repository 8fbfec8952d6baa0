//! The logical traversal: what every step means, with its arguments checked.
//!
//! Names of labels and keys stay names: a label or key may be made by the same traversal that reads it, so
//! they are looked up in the catalog when the plan runs. Values are [`Operand`]s: literals or parameters.

mod branch;
mod condition;
pub mod expression;
pub mod files;
pub mod function;
mod nested;
mod operand;
mod subset;
mod traits;
pub mod upsert;

use mangrove_graph::{Direction, Token};
use mangrove_gremlin::{Cardinality, Column, Operator, Order, Pop, Position};

use expression::{Expression, Part};
use files::FileStep;
use function::Function;
use upsert::Upsert;

pub use branch::{Choose, ChooseOn, ChooseOption, Emit, Repeat, Until};
pub use condition::{Bound, Condition, FilterKind, LabelTest, Quantifier, Test};
pub use nested::Enters;
pub use operand::{Name, Operand};
pub use subset::Subset;
pub use traits::{Effect, PathUse, SackUse, StepTraits};

/// The services of `call()` that only read the graph. A source that may not write accepts these, too.
pub const GRAPH_SERVICES: [&str; 2] = ["tinker.degree.centrality", "tinker.search"];

/// A chain of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traversal {
    /// The steps in order.
    pub steps: Vec<StepNode>,
}

/// A step with the labels `as()` gave it.
#[derive(Clone, Debug)]
pub struct StepNode {
    /// The step.
    pub step: Step,
    /// Its labels.
    pub labels: Vec<Name>,
    /// Where it stands in the script.
    pub position: Option<Position>,
}

impl PartialEq for StepNode {
    fn eq(&self, other: &Self) -> bool {
        self.step == other.step && self.labels == other.labels
    }
}

/// What configures a whole traversal (`with…` of the source).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// `withSideEffect(name, value)`.
    pub side_effects: Vec<(Name, Operand)>,
    /// `withPath()`: keep full paths whether or not a step reads them.
    pub path: bool,
    /// `with("evaluationTimeout", ms)`.
    pub timeout_millis: Option<u64>,
    /// `ReadOnlyStrategy`: refuse mutating steps.
    pub read_only: bool,
    /// How values are folded into side effects that were given a reducer.
    pub reducers: Vec<(Name, Operator)>,
    /// `withSack(value, …)`
    pub sack: Option<Sack>,
    /// `withBulk(false)`: merging rows does not add their bulks.
    pub one_bulk: bool,
    /// `ProductiveByStrategy`: a `by()` without a result gives null, but for these keys, which are known to have one.
    pub productive_by: Option<Vec<Name>>,
    /// `SubgraphStrategy` and `PartitionStrategy`, in order.
    pub subsets: Vec<Subset>,
    /// `ReservedKeysVerificationStrategy`: keys that are not written.
    pub reserved_keys: Vec<Name>,
    /// `EdgeLabelVerificationStrategy`
    pub edge_labels_needed: bool,
    /// `SeedStrategy`: where random numbers begin.
    pub seed: Option<i64>,
}

/// A value that every traverser carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Sack {
    /// What it is in the beginning.
    pub initial: Operand,
    /// How the sacks of rows that are merged become one; without it, rows are not merged.
    pub merge: Option<Operator>,
}

/// Where the value of a name is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// In the object, if it is a map; then among the side effects; then among the labels of the path, of whose values the
    /// `Pop` chooses (the newest without one).
    Scope(Option<Pop>),
    /// Among the labels of the path only, the newest: the variables of a `match()`.
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
    // ---- where traversers come from ----
    /// `V(ids…)`: `None` means all. Mid-traversal it starts again for every traverser.
    Vertices {
        /// Ids (integers, strings, UUIDs, or lists of them) or all.
        ids: Option<Vec<Operand>>,
        /// Conditions that rules folded in from the steps behind.
        conditions: Vec<Condition>,
    },
    /// `E(ids…)`.
    Edges {
        /// Ids or all.
        ids: Option<Vec<Operand>>,
        /// Conditions that rules folded in.
        conditions: Vec<Condition>,
    },
    /// `inject(values…)`.
    Inject(Vec<Operand>),
    /// `call(service)` with its `with()`s: a service of the database, for each traverser.
    Call {
        /// The service; `None`: the one that lists them.
        service: Option<Name>,
        /// What it is given, in order, of two with one name the later; without a name, a map of several.
        arguments: Vec<(Option<Name>, Argument)>,
    },

    /// `io(path)`: a file read into the graph, or the graph written to a file; nothing comes of it.
    File(FileStep),

    // ---- writes ----
    /// `addV(label)` with the `property()` steps behind it.
    AddVertex {
        /// The label; a traversal is evaluated for each traverser. Default `vertex`.
        label: Argument,
        /// Properties in order; `T.id` is in `id`.
        properties: Vec<PropertyArgument>,
        /// The id the user chose.
        id: Option<Argument>,
    },
    /// `addE(label).from(…).to(…)` with the `property()` steps behind it.
    AddEdge {
        /// The label.
        label: Argument,
        /// The source; `None`: the current vertex.
        from: Option<Endpoint>,
        /// The target; `None`: the current vertex.
        to: Option<Endpoint>,
        /// Properties in order.
        properties: Vec<PropertyArgument>,
        /// The id the user chose.
        id: Option<Argument>,
    },
    /// `property(…)` on an existing element (or vertex property: a meta-property).
    Property(PropertyArgument),
    /// `mergeV()` and `mergeE()`: find, or make what is not there.
    Upsert(Box<Upsert>),
    /// `drop()`.
    Drop,

    // ---- along edges ----
    /// `out`, `in`, `both`, `outE`, `inE`, `bothE`.
    Expand {
        /// Which way.
        direction: Direction,
        /// Edge labels; none given: all.
        labels: Vec<Name>,
        /// To the edges themselves instead of the neighbors.
        to_edges: bool,
    },
    /// `outV`, `inV`, `bothV`, `otherV`.
    EdgeVertex(EdgeEnd),

    // ---- filters ----
    /// `has…`: all conditions hold.
    Has(Vec<Condition>),
    /// `is(P)`.
    Is(Test),
    /// `where(P)`, `where("a", P)` with its `by()`s.
    WherePredicate {
        /// The label whose value is tested; `None`: the current object.
        start: Option<Name>,
        /// The test, with step labels or side-effect names as operands.
        test: LabelTest,
        /// `by()` in rotation over the start and then the names in the test's order.
        by: Vec<By>,
        /// Where the names are looked for.
        lookup: Lookup,
    },
    /// `where(traversal)`, `filter(traversal)`, `and(…)`, `or(…)`, `not(…)`.
    FilterTraversal(FilterKind, Vec<Traversal>),
    /// `all(P)`, `any(P)`, `none(P)`: of a collection, by its members.
    Members {
        /// How many must pass.
        quantifier: Quantifier,
        /// The test.
        test: Test,
    },
    /// `dedup(labels…)`.
    Dedup {
        /// Step labels whose values together are compared; none: the object.
        labels: Vec<Name>,
        /// What of the value is compared.
        by: Vec<By>,
    },
    /// `limit`, `skip`, `range`: positions `low..high`, counted by bulk.
    Range {
        /// The first taken.
        low: Operand,
        /// The first no longer taken; `None`: to the end. A negative one means the same.
        high: Option<Operand>,
    },
    /// `tail(n)`.
    Tail(Operand),
    /// `simplePath()` (true), `cyclicPath()` (false).
    PathShape {
        /// Keep the paths without repetition.
        simple: bool,
        /// What of each object is compared.
        by: Vec<By>,
        /// Which part of the path.
        segment: Segment,
    },
    /// `none()` of 3.7 and `discard()` of 3.8: nothing comes through.
    Discard,

    // ---- maps ----
    /// `values(keys…)`; none given: all.
    Values(Vec<Name>),
    /// `properties(keys…)`.
    Properties(Vec<Name>),
    /// `valueMap(keys…)`.
    ValueMap {
        /// Keys; none: all.
        keys: Vec<Name>,
        /// Which tokens come first.
        tokens: MapTokens,
        /// One `by()` that is applied to each value list.
        by: Option<By>,
        /// A traversal that gives the list of the vertex properties that are shown; `None`: all are.
        shown: Option<Box<Traversal>>,
    },
    /// `propertyMap(keys…)`: the properties themselves by key.
    PropertyMap {
        /// Keys; none: all.
        keys: Vec<Name>,
        /// One `by()` that is applied to what stands under each key.
        by: Option<By>,
        /// A traversal that gives the list of the vertex properties that are shown; `None`: all are.
        shown: Option<Box<Traversal>>,
    },
    /// `elementMap(keys…)`.
    ElementMap {
        /// Keys; none: all.
        keys: Vec<Name>,
        /// A traversal that gives the list of the vertex properties that are shown; `None`: all are.
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
    /// `loops()`.
    Loops(Option<Name>),
    /// A function of the object alone: the `Scope.local` forms.
    Local(LocalFunction),
    /// `path()`.
    Path {
        /// What of each object is shown, in rotation.
        by: Vec<By>,
        /// Which part of it.
        segment: Segment,
    },
    /// `select("a", …)`.
    Select {
        /// Where the labels are looked for, and which of several values of one is meant.
        lookup: Lookup,
        /// The labels.
        labels: Vec<Name>,
        /// `by()` in rotation.
        by: Vec<By>,
        /// What stands for nothing drops the row; otherwise only its entry is left out, and the result is always a map.
        required: bool,
    },
    /// A function of the object and of arguments.
    Function {
        /// Which.
        function: Function,
        /// Its arguments.
        arguments: Vec<Argument>,
    },
    /// `math(expression)`.
    Math {
        /// The expression over its variables.
        expression: Expression,
        /// What its variables are called; `_` is the object.
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
    /// `map(t)`: the first result. `flatMap(t)`: all results. Neither adds inner steps to the path.
    Map {
        /// The nested traversal.
        traversal: Traversal,
        /// Only its first result.
        first: bool,
    },
    /// `local(t)`.
    LocalTraversal(Traversal),
    /// `sideEffect(t)`.
    SideEffect(Traversal),

    // ---- barriers ----
    /// `count()`, `sum()`, `min()`, `max()`, `mean()`, `fold()`.
    Reduce(Reduction),
    /// `order()`.
    Order(Vec<OrderBy>),
    /// `group()`.
    Group {
        /// The side effect it goes to; `None`: the map is the result.
        side_effect: Option<Name>,
        /// The key.
        key: By,
        /// What becomes of the members of a group; `None`: the list of them.
        value: Option<By>,
    },
    /// `groupCount()`.
    GroupCount {
        /// The side effect it goes to; `None`: the map is the result.
        side_effect: Option<Name>,
        /// The key.
        key: By,
    },
    /// `tree()`.
    Tree {
        /// The side effect it goes to; `None`: the tree is the result.
        side_effect: Option<Name>,
        /// What of each object of a path is a key, in rotation.
        by: Vec<By>,
    },
    /// `subgraph("x")`: the edges that come through, with their ends.
    Subgraph(Name),
    /// `aggregate("x")`.
    Aggregate {
        /// The side effect.
        name: Name,
        /// What of the object is kept.
        by: By,
    },
    /// `cap("x", …)`.
    Cap(Vec<Name>),
    /// `barrier()`; with `normSack`, sacks are made to add up to 1.
    Barrier {
        /// Sacks are made to add up to 1.
        norm_sack: bool,
    },
    /// `fold(seed, operator)`
    FoldInto(Operand, Operator),
    /// `sack()`: the sack becomes the object.
    Sack,
    /// `sack(operator)`: what `by()` takes is folded into the sack.
    FoldSack(Operator, By),
    /// `sample(n)`: some at random, by weight.
    Sample(Operand, By),
    /// `timeLimit(ms)`: what comes within so many milliseconds of the first.
    TimeLimit(Operand),
    /// `coin(p)`: each with this probability.
    Coin(Operand),
    /// `fail(message)`
    Fail(Name),
    /// `select(traversal)`: the value of a map under the key that the traversal gives, or what the name stands for.
    SelectKey {
        /// Which of several values of a label.
        pop: Option<Pop>,
        /// What gives the key.
        key: Box<Traversal>,
        /// `by()` of the value.
        by: Vec<By>,
    },

    // ---- branches ----
    /// `union(…)`: one merged stream enters all of them.
    Union(Vec<Traversal>),
    /// `coalesce(…)`: for each traverser, the first that has a result.
    Coalesce(Vec<Traversal>),
    /// `optional(t)`: its results, or the traverser itself.
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

/// Which end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeEnd {
    /// `outV()`
    Source,
    /// `inV()`
    Target,
    /// `bothV()`
    Both,
    /// `otherV()`: the one the traverser did not come from.
    Other,
}

/// A part of a path: from the last object with one label up to the last with another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// `from(label)`; `None`: from the beginning.
    pub from: Option<Name>,
    /// `to(label)`; `None`: to the end.
    pub to: Option<Name>,
}

/// What a `by()` takes of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum By {
    /// The object itself.
    Identity,
    /// The value of a key: of an element's property (the first of several) or of a map.
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
    /// What is compared.
    pub by: By,
    /// Which way.
    pub order: Order,
}

/// An argument that is a value or is worked out for each traverser.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// The same for all.
    Operand(Operand),
    /// The first result of a traversal.
    Traversal(Box<Traversal>),
}

/// One `property(…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyArgument {
    /// The cardinality it is written with; `None`: single.
    pub cardinality: Option<Cardinality>,
    /// The key; empty where a traversal gives it.
    pub key: Name,
    /// The traversal that gives the key.
    pub key_from: Option<Box<Traversal>>,
    /// The value; null removes.
    pub value: Argument,
    /// Meta-properties.
    pub meta: Vec<(Name, Argument)>,
}

/// An end given to `addE()`.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// The vertex at a step label.
    Label(Name),
    /// The vertex of this id.
    Id(Operand),
    /// The first result of a traversal, which must be a vertex.
    Traversal(Box<Traversal>),
}

impl Endpoint {
    /// The step label that the end is looked up at.
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
    /// `dedup(local)`; of maps by the values of these keys, or by all of them.
    Dedup(Vec<Name>),
    /// `order(local)`: of a list, or of a map's entries.
    Order(Vec<OrderBy>),
    /// `limit(local, …)`, `range(local, …)`, `skip(local, …)`.
    Range {
        /// The first taken.
        low: Operand,
        /// The first no longer taken.
        high: Option<Operand>,
    },
    /// `tail(local, n)`
    Tail(Operand),
    /// `sample(local, n)`
    Sample(Operand),
}
