//! The physical plan: a tree of scopes with operators in them.
//!
//! A [`Pipeline`] is a chain of operators inside one scope. An operator that is a scope holds pipelines of its own. The
//! plan is data: crate `steps` builds running operators from it, numbers them and places them on nodes.
//!
//! A [`Modulate`] operator works out the values of a `by()` before the operator that reads them, as *computed columns*:
//! columns of optional values that live until the next operator. So operators that group or sort need no nested
//! traversals.
//!
//! - **PLAN-4.** Computed columns live from the operator that fills them to the next one, which reads them by their
//!   numbers, from 0, and removes them.
//! - **PLAN-5.** Rules and `explain()` learn the properties of an operator from two matches without a default arm:
//!   `traits.rs` and `nested.rs`. So the code does not compile until a new operator has its arms there.

mod both_ends;
mod degree;
mod edge_to;
mod index_access;
mod modulate;
mod nested;
mod order_reader;
mod pattern_count;
mod reduced;
mod scope;
mod traits;

use mangrove_graph::{Direction, ElementKind, Token};
use mangrove_gremlin::{Cardinality, Column, Operator, Order, Pop};

pub use both_ends::{BothEnds, PathBound, TARGETS_MAX, TargetAccess};
pub use degree::{Degree, DegreeTest};
pub use edge_to::EdgeTo;
pub use index_access::{IndexAccess, IndexPart, IndexSearch};
pub use modulate::{Computation, Modulate, Over};
pub use nested::Purpose;
pub use order_reader::OrderReader;
pub use pattern_count::{CountOf, EdgesOf, Factor, FactorForm, Leg, Pairing, PatternCount, WalkPairing, Weighing};
pub use reduced::Reduced;
pub use scope::{LocalKind, LocalScope, LoopTest, Merged, RepeatScope, Scheduling};
pub use traits::{Flow, Role};

use crate::logical::algorithm::{ShortestPath, VertexProgram};
use crate::logical::expression::{Expression, Part};
use crate::logical::files::FileStep;
use crate::logical::function::Function;
use crate::logical::upsert::{MergeMap, Upsert};
use crate::logical::{
    ChooseOption, Condition, EdgeEnd, FilterKind, LabelTest, Lookup, MapTokens, Name, Operand, Quantifier, Reduction,
    ScopePolicy, Segment, Test,
};

/// A whole plan.
#[derive(Clone, Debug)]
pub struct PhysicalPlan {
    /// The outermost scope.
    pub root: Pipeline,
    /// The names of the physical rules that changed it, for `explain()`.
    pub rules: Vec<&'static str>,
    /// What was chosen for the first steps, and why, for `explain()`: their order, and whether they are counted without
    /// rows.
    pub choices: Vec<String>,
    /// True if the order of the first steps was chosen, or rows were estimated. Other statistics may lead to another
    /// plan.
    pub uses_statistics: bool,
    /// True if it relies on the facts about edges (PLAN-13).
    pub uses_connections: bool,
    /// The columns that every row carries.
    pub requirements: Requirements,
    /// True if it writes to the graph or to a file.
    pub mutating: bool,
    /// True if it must run on one node: it writes, or its operators share side effects.
    pub pinned: bool,
    /// True if side effects show the order in which traversers go through the steps. Rows then go through one at a
    /// time.
    pub interleaved: bool,
    /// Side effects that have a first value.
    pub side_effects: Vec<(Name, Operand)>,
    /// The operators of side effects that were given one: values are folded into the side effect with it.
    pub reducers: Vec<(Name, Operator)>,
    /// The first value of every sack; `None`: there are no sacks.
    pub sack: Option<Operand>,
    /// The keys under which algorithms of the traversal give vertices values, each once.
    pub computed_keys: Vec<Name>,
    /// The time limit that the traversal asks for, in milliseconds.
    pub timeout_millis: Option<u64>,
    /// The policy that the traversal asks for, of scopes whose steps name none.
    pub policy: ScopePolicy,
    /// For tests: every instance counts as heavy.
    pub sets_all_apart: bool,
}

impl PhysicalPlan {
    /// Returns the reason why the rows of a run must go through the steps one after the other, on one thread; `None` if
    /// several threads may work on them.
    pub fn reason_for_one_thread(&self) -> Option<&'static str> {
        match self {
            _ if self.mutating => Some("it writes"),
            _ if self.interleaved => Some("a side effect shows the order of the rows"),
            _ if self.pinned => Some("its steps share side effects"),
            _ if self.requirements.seed.is_some() => Some("a seed fixes the order of random numbers"),
            _ => None,
        }
    }
}

/// The columns that rows carry because some step reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The objects of its path that a row keeps.
    pub path: PathRequirement,
    /// The step labels whose newest object a row keeps in a column of its own: a *binding column*, numbered by the
    /// position of the label here. No label is here and in `path`.
    pub bindings: Vec<Name>,
    /// Rows carry loop counters.
    pub loops: bool,
    /// Rows carry sacks.
    pub sacks: bool,
    /// Makes one sack of the sacks of merged rows. Without it, rows with sacks are not merged.
    pub merge_sacks: Option<Operator>,
    /// `withBulk(false)`: merging rows does not add their bulks.
    pub one_bulk: bool,
    /// The seed of random numbers; `None`: any.
    pub seed: Option<i64>,
}

impl Requirements {
    /// Returns the number of a label's binding column, if it has one.
    pub fn binding(&self, label: &Name) -> Option<usize> {
        self.bindings.iter().position(|bound| bound == label)
    }

    /// Returns true if two rows with the same object may still differ in the objects that they come from.
    pub fn keep_earlier_objects(&self) -> bool {
        self.path != PathRequirement::None || !self.bindings.is_empty()
    }
}

/// The objects of its path that a row keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathRequirement {
    /// None.
    #[default]
    None,
    /// All objects under these step labels.
    Labels(Vec<Name>),
    /// All.
    Full,
}

/// A chain of operators in one scope.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// The operators, in the order of the stream.
    pub stages: Vec<Stage>,
}

/// An operator with the step labels of its objects.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The operator.
    pub operator: Op,
    /// The labels under which rows keep its objects.
    pub labels: Vec<Name>,
    /// The rows that are expected to leave it, with equal ones merged, as far as that was estimated.
    pub expected: Option<f64>,
}

impl Stage {
    /// An operator without labels.
    pub fn new(operator: Op) -> Self {
        Stage::labeled(operator, Vec::new())
    }

    /// An operator whose objects rows keep under these labels.
    pub fn labeled(operator: Op, labels: Vec<Name>) -> Self {
        Stage { operator, labels, expected: None }
    }
}

/// How a `V()` or `E()` finds its elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// Every vertex, or every edge.
    All,
    /// Elements with one of these labels, by a scan.
    Labels(Vec<Name>),
    /// Elements with a value that passes a test, by a scan of one column.
    Where {
        /// The labels; `None`: all.
        labels: Option<Vec<Name>>,
        /// The key.
        key: Name,
        /// The test: an equality, a range, or the beginning of a text.
        test: Test,
    },
    /// By user ids. An id that is named twice is found twice.
    Ids(Vec<Operand>),
    /// By user ids, each once.
    IdSet(Vec<Operand>),
    /// By indexes.
    Index(IndexAccess),
}

/// An operator.
#[derive(Clone, Debug)]
pub enum Op {
    // ---- sources ----
    /// Vertices, for each row.
    Vertices {
        /// How they are found.
        access: Access,
        /// Conditions, which the source tests itself.
        conditions: Vec<Condition>,
    },
    /// Edges, for each row.
    Edges {
        /// How they are found.
        access: Access,
        /// Conditions, which the source tests itself.
        conditions: Vec<Condition>,
    },
    /// Adds values to the stream of each instance.
    Inject(Vec<Operand>),
    /// Calls a service of the database for each row.
    Call {
        /// The service; `None`: the service that lists all services.
        service: Option<Name>,
        /// The arguments. One without a name is a map of arguments.
        arguments: Vec<(Option<Name>, ComputedOperand)>,
    },
    /// Computes a value for each vertex, after all rows have come.
    VertexProgram(Box<VertexProgram>),
    /// Searches for shortest paths from the vertex of each row.
    ShortestPath(Box<ShortestPath>),
    /// The number of all vertices or edges: `V().count()`. Pages without version information are counted without a
    /// scan.
    CountAll {
        /// Whether vertices or edges are counted.
        kind: ElementKind,
        /// Only with one of these labels; `None`: all.
        labels: Option<Vec<Name>>,
    },
    /// The number of matches of a pattern, without a row for each: `V().out().in().count()`,
    /// `V().out().in().groupCount()`.
    CountPattern(Box<PatternCount>),

    // ---- row by row ----
    /// Follows edges to neighbors, or to the edges themselves.
    Expand {
        /// The direction of the edges.
        direction: Direction,
        /// Edge labels; empty: all.
        labels: Vec<Name>,
        /// Leads to the edges.
        to_edges: bool,
    },
    /// As `Expand`, but a row without such an edge goes on as it is: `optional(out())`, without a scope.
    OptionalExpand {
        /// The direction of the edges.
        direction: Direction,
        /// Edge labels; empty: all.
        labels: Vec<Name>,
        /// Leads to the edges.
        to_edges: bool,
    },
    /// Follows edges to the vertex that a name stands for: a hop and a comparison after it, done by a search.
    FollowTo {
        /// The edges.
        edge: EdgeTo,
        /// There and back again: a row is repeated for each edge, and keeps its object.
        stays: bool,
    },
    /// Keeps vertices that have, or lack, an edge to the vertex that a name stands for.
    HasEdgeTo {
        /// The edge.
        edge: EdgeTo,
        /// Keeps the vertices that lack one.
        negate: bool,
    },
    /// Follows edges to the neighbors that have all of some other edges, too: an intersection of adjacency lists.
    Intersect {
        /// The direction of the edges.
        direction: Direction,
        /// Edge labels; empty: all.
        labels: Vec<Name>,
        /// The edges that the neighbors must have.
        closings: Vec<EdgeTo>,
    },
    /// Searches for a shortest path to known vertices, from both ends.
    BothEnds(Box<BothEnds>),
    /// The vertex at an end of an edge.
    EdgeVertex(EdgeEnd),
    /// Keeps elements for which all conditions hold.
    Filter(Vec<Condition>),
    /// Keeps vertices that have, or lack, an edge: `where(out())`, answered from degrees without a scope.
    HasEdges {
        /// The direction of the edges.
        direction: Direction,
        /// Edge labels; empty: all.
        labels: Vec<Name>,
        /// Keeps the vertices that lack one.
        negate: bool,
    },
    /// Keeps vertices by tests of their degrees: `where(out().count().is(gt(3)))`, without a scope.
    TestDegrees {
        /// How the tests decide.
        kind: FilterKind,
        /// The tests.
        tests: Vec<DegreeTest>,
    },
    /// A test of the object.
    Is(Test),
    /// A test of the members of a collection.
    Members(Quantifier, Test),
    /// Computes columns for the next operator.
    Modulate(Modulate),
    /// Compares the object with the value of a name: `where(eq("a"))`, `where(neq("a"))`. This is the commonest test
    /// between labels, and it needs no computed columns.
    CompareName {
        /// True keeps equal objects, false unequal ones.
        equal: bool,
        /// The name.
        name: Name,
        /// Where the name is looked for.
        lookup: Lookup,
    },
    /// Looks for the object in the value of a name: `where(within("a"))`, `where(without("a"))`. A value that is no
    /// collection is compared with it. It needs no computed columns.
    MemberOfName {
        /// True keeps objects that are found, false the others.
        found: bool,
        /// The name.
        name: Name,
        /// Where the name is looked for.
        lookup: Lookup,
    },
    /// A test between computed columns. The first is the left side; the others are the values of the test's names in
    /// order.
    CompareComputed(LabelTest),
    /// Keeps paths with or without repetition.
    PathShape {
        /// True keeps the paths without repetition.
        simple: bool,
        /// There is a `by()`: the objects compared are the list in computed column 0, not those of the path.
        computed: bool,
        /// The part of the path that is compared.
        segment: Segment,
    },
    /// Drops every row.
    Discard,
    /// The values of properties.
    Values(Vec<Name>),
    /// Properties.
    Properties(Vec<Name>),
    /// `valueMap()`
    ValueMap {
        /// Keys; none: all.
        keys: Vec<Name>,
        /// Which tokens come first.
        tokens: MapTokens,
        /// Computed column 0 is the list of the vertex properties to show.
        shown: bool,
    },
    /// Replaces the values of a map by those in the list in computed column 0.
    ReplaceMapValues,
    /// `propertyMap()`
    PropertyMap {
        /// Keys; none: all.
        keys: Vec<Name>,
        /// Computed column 0 is the list of the vertex properties to show.
        shown: bool,
    },
    /// `elementMap()`
    ElementMap {
        /// Keys; none: all.
        keys: Vec<Name>,
        /// Computed column 0 is the list of the vertex properties to show.
        shown: bool,
    },
    /// A token of an element or property (`id()`, `label()`, `key()`, `value()`).
    Token(Token),
    /// A constant.
    Constant(Operand),
    /// Passes rows on. It exists to give their objects a label.
    Identity,
    /// Lets rows go on one at a time: a row goes through all operators up to the next barrier before the next row
    /// starts.
    OneByOne,
    /// The members of a collection.
    Unfold,
    /// The loop counter.
    Loops(Option<usize>),
    /// A reduction over a collection.
    LocalReduce(Reduction),
    /// A collection without repetition. Members that are maps are compared by the values of these keys; empty: as a
    /// whole.
    LocalDedup(Vec<Name>),
    /// A part of a collection.
    LocalRange {
        /// The first position taken.
        low: Operand,
        /// The position after the last taken; `None`: to the end.
        high: Option<Operand>,
    },
    /// The end of a collection.
    LocalTail(Operand),
    /// A collection sorted by computed columns, each of which is a list with a key for each member.
    LocalOrder(Vec<Order>),
    /// The path.
    Path {
        /// There is a `by()`: the objects are the list in computed column 0.
        computed: bool,
        /// The part of the path that is shown.
        segment: Segment,
    },
    /// The newest value of a name becomes the object: `select("a")`. This is the commonest selection, and it needs no
    /// computed columns.
    SelectName {
        /// The name.
        name: Name,
        /// Where the name is looked for.
        lookup: Lookup,
    },
    /// A map of computed columns by name, or the value of a single one.
    ComputedMap {
        /// The names.
        names: Vec<Name>,
        /// There is one name, and the result is its value instead of a map.
        single: bool,
        /// True: a computed column without a value drops the row. False: only its entry is left out.
        required: bool,
    },
    /// A function of the object and of arguments.
    Function {
        /// The function.
        function: Function,
        /// Its arguments.
        arguments: Vec<ComputedOperand>,
    },
    /// An expression. Its variables are the computed columns, in order.
    Math(Expression),
    /// A template. Its variables are the computed columns, in order.
    Format(Vec<Part>),
    /// Keys or values of a map.
    SelectColumn(Column),

    // ---- with state ----
    /// A reduction of the rows of an instance.
    Reduce(Reduction),
    /// A sum, mean, minimum or maximum of the values of one key. On one node it is one operator; on several it is the
    /// two that it was made of.
    ReduceValues {
        /// The key of the values.
        key: Name,
        /// The reduction: neither a count nor a list.
        reduction: Reduction,
    },
    /// Several reductions of the same rows, with a row for each: `union(mean(), max())`. They are counts, sums, means,
    /// minima and maxima.
    ReduceMany {
        /// The values that they reduce.
        of: Reduced,
        /// The reductions, in the order of their rows.
        reductions: Vec<Reduction>,
    },
    /// The number of neighbors of all rows together: `out().count()`, answered from degrees.
    CountExpand(Degree),
    /// Sorts by computed columns. With a limit, it keeps only the first rows.
    Order {
        /// The order of each computed column.
        orders: Vec<Order>,
        /// The number of rows that are needed; `None`: all.
        limit: Option<Operand>,
    },
    /// Keeps the first of equal rows, compared by their objects, or by all computed columns together.
    Dedup {
        /// The number of computed columns that are compared; 0: the object is.
        computed: usize,
    },
    /// Keeps a range of positions of an instance's stream.
    Range {
        /// The first position taken.
        low: Operand,
        /// The position after the last taken; `None`: to the end.
        high: Option<Operand>,
    },
    /// Keeps the last rows of an instance's stream.
    Tail(Operand),
    /// Counts rows by the value in computed column 0.
    GroupCount {
        /// The side effect that gets the result; `None`: it is a row.
        side_effect: Option<Name>,
    },
    /// Groups rows by the value in computed column 0. The members go through a scope with an instance for each key.
    Group {
        /// The side effect that gets the result; `None`: it is a row.
        side_effect: Option<Name>,
        /// Makes the value of a group from its members: its first result.
        value: Pipeline,
        /// True if the client limits the instances of scopes. A group has an instance for each key, whatever the limit.
        exceeds_limit: bool,
    },
    /// Adds the value in computed column 0 of every row to a side effect, then passes the rows on.
    Aggregate(Name),
    /// Makes one tree of the paths of all rows.
    Tree {
        /// The side effect that gets the result; `None`: it is a row.
        side_effect: Option<Name>,
        /// There is a `by()`: the objects of a path are the list in computed column 0.
        computed: bool,
    },
    /// Adds the edge of every row to the graph in a side effect, then passes the rows on.
    Subgraph(Name),
    /// The values of side effects, after all rows have come.
    Cap(Vec<Name>),
    /// Waits for all rows and merges equal ones.
    Barrier {
        /// Scales the sacks of an instance so that they add up to 1.
        norm_sack: bool,
    },
    /// Folds all objects into a value.
    FoldInto(Operand, Operator),
    /// The sack becomes the object.
    Sack,
    /// Folds the value in computed column 0 into the sack.
    FoldSack(Operator),
    /// Keeps a number of rows at random, weighted by computed column 0.
    Sample(Operand),
    /// Keeps the rows that come within so many milliseconds of an instance's first row.
    TimeLimit(Operand),
    /// Keeps each row with this probability.
    Coin(Operand),
    /// Ends the query with this message.
    Fail(Name),
    /// The value of a map under the key in computed column 0, or else the value of the name in it.
    SelectKey(Option<Pop>),
    /// Some members of a collection, at random.
    LocalSample(Operand),
    /// Merges equal rows, some thousands at a time. It stops merging if it finds few equal rows.
    Merge,

    // ---- writes ----
    /// New vertices.
    AddVertex {
        /// The label.
        label: ComputedOperand,
        /// The id.
        id: Option<ComputedOperand>,
        /// Properties.
        properties: Vec<PropertyWrite>,
    },
    /// New edges.
    AddEdge {
        /// The label.
        label: ComputedOperand,
        /// The source; `None`: the row's vertex.
        from: Option<ComputedOperand>,
        /// The target; `None`: the row's vertex.
        to: Option<ComputedOperand>,
        /// The id.
        id: Option<ComputedOperand>,
        /// Properties.
        properties: Vec<PropertyWrite>,
    },
    /// Finds elements, and creates one if there is none. Its output has a computed column 0, which is true if the
    /// element was found.
    Upsert(Box<Upsert<ComputedOperand>>),
    /// Writes the properties of a map to the row's element.
    SetProperties(MergeMap<ComputedOperand>),
    /// Writes a property of the row's element.
    SetProperty(PropertyWrite),
    /// Deletes the row's element or property.
    Drop,
    /// Reads a file into the graph, or writes one.
    File(FileStep),

    // ---- scopes ----
    /// A branch scope with an instance for each row.
    Local(LocalScope),
    /// Sends every row into all branches. It is one scope, since a barrier in a branch sees the whole stream.
    Union(Vec<Pipeline>),
    /// Makes a row of each two rows of two walks that have the same object, and the same object under some names: a hash
    /// join. It stands only at the beginning of the outermost chain, and each walk begins with a source.
    Join {
        /// The walks. Both end at the same variable.
        walks: Box<[Pipeline; 2]>,
        /// The names of the other variables that both walks have.
        names: Vec<Name>,
    },
    /// Sends each row to the first option that matches computed column 0, or to every one that matches.
    Switch {
        /// The options, each with its pipeline.
        options: Vec<(ChooseOption, Pipeline)>,
        /// True sends a row to every option that matches, and drops a row that matches none. False sends it to the
        /// first, and passes a row on that matches none.
        every: bool,
    },
    /// A loop scope with an instance for each iteration.
    Repeat(Box<RepeatScope>),
    /// A scope with an instance for each row, whose results come out in the order of the rows that went in. On one node
    /// most pipelines keep that order without a scope.
    Ordered {
        /// The pipeline inside.
        pipeline: Pipeline,
        /// True if the scope is needed on one node, too.
        always: bool,
    },
}

/// A value that is known when the plan runs, or is in a computed column.
#[derive(Clone, Debug, PartialEq)]
pub enum ComputedOperand {
    /// The same value for all rows.
    Operand(Operand),
    /// The value in the computed column of this number.
    Computed(usize),
}

/// A property to write.
#[derive(Clone, Debug)]
pub struct PropertyWrite {
    /// The cardinality; `None`: single.
    pub cardinality: Option<Cardinality>,
    /// The key; empty if it is in a computed column.
    pub key: Name,
    /// The number of the computed column with the key, if it is in one.
    pub computed_key: Option<usize>,
    /// The value.
    pub value: ComputedOperand,
    /// Meta-properties.
    pub meta: Vec<(Name, ComputedOperand)>,
}
