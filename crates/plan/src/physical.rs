//! The physical plan: a tree of scopes with operators in it.
//!
//! A [`Pipeline`] is a chain of operators inside one scope; operators that are scopes hold pipelines of
//! their own. The plan is data: `steps` makes running operators of it, and numbers and places them.
//!
//! What `by()` takes of a row is worked out before the operator that reads it, by a [`Modulate`] operator,
//! into *computed columns*: columns of optional values that live until the next operator. So an operator that groups
//! or sorts knows nothing of nested traversals.

mod edge_to;
mod modulate;
mod nested;
mod scope;
mod traits;

use mangrove_graph::{Direction, ElementKind, IndexId, Token};
use mangrove_gremlin::{Cardinality, Column, Operator, Order, Pop};

pub use edge_to::EdgeTo;
pub use modulate::{Computation, Modulate, Over};
pub use nested::Purpose;
pub use scope::{LocalKind, LocalScope, LoopTest, Merged, RepeatScope};
pub use traits::Role;

use crate::logical::expression::{Expression, Part};
use crate::logical::files::FileStep;
use crate::logical::function::Function;
use crate::logical::upsert::{MergeMap, Upsert};
use crate::logical::{
    ChooseOption, Condition, EdgeEnd, LabelTest, Lookup, MapTokens, Name, Operand, Quantifier, Reduction, Segment, Test,
};

/// A whole plan.
#[derive(Clone, Debug)]
pub struct PhysicalPlan {
    /// The outermost scope.
    pub root: Pipeline,
    /// The names of the rules that changed its chains, for `explain()`.
    pub rules: Vec<&'static str>,
    /// What every row carries.
    pub requirements: Requirements,
    /// It writes.
    pub mutating: bool,
    /// It must run on one node: it writes, or it shares side effects between operators.
    pub pinned: bool,
    /// Side effects show in which order traversers go through the steps: they do so one after the other.
    pub interleaved: bool,
    /// Side effects with a value to begin with.
    pub side_effects: Vec<(Name, Operand)>,
    /// How values are folded into side effects that were given a reducer.
    pub reducers: Vec<(Name, Operator)>,
    /// What every sack is in the beginning.
    pub sack: Option<Operand>,
    /// The time limit the traversal asks for.
    pub timeout_millis: Option<u64>,
}

/// The columns that rows carry because some step reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Which objects a row remembers.
    pub path: PathRequirement,
    /// Loop counters.
    pub loops: bool,
    /// Sacks.
    pub sacks: bool,
    /// How the sacks of rows that are merged become one; without it, such rows are not merged.
    pub merge_sacks: Option<Operator>,
    /// Merging rows does not add their bulks.
    pub one_bulk: bool,
    /// Where random numbers begin; `None`: anywhere.
    pub seed: Option<i64>,
}

/// Which objects of its way a row remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathRequirement {
    /// None.
    #[default]
    None,
    /// Those at these labels.
    Labels(Vec<Name>),
    /// All.
    Full,
}

/// A chain of operators in one scope.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// In the order of the stream.
    pub stages: Vec<Stage>,
}

/// One operator with what the plan says of it.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What it does.
    pub operator: Op,
    /// The labels under which its objects are remembered.
    pub labels: Vec<Name>,
}

/// How the elements of a `V()` or `E()` are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// Every vertex, or every edge.
    All,
    /// Those with one of these labels.
    Labels(Vec<Name>),
    /// Those with a value that passes, by a scan of one column.
    Where {
        /// The labels; `None`: all.
        labels: Option<Vec<Name>>,
        /// The key.
        key: Name,
        /// The test: an equality or a range.
        test: Test,
    },
    /// By the ids users know; one that is named twice is found twice.
    Ids(Vec<Operand>),
    /// By the ids users know, each once.
    IdSet(Vec<Operand>),
    /// By an index, or by one for each of several labels: what is looked up are some of the operator's conditions, named
    /// by their numbers.
    Index {
        /// The indexes, all of the same keys.
        indexes: Vec<IndexId>,
        /// Labels and keys, for people.
        description: String,
        /// The conditions on its first keys: each equality with one value.
        prefix: Vec<usize>,
        /// The condition on the next key: equality or a range.
        condition: usize,
    },
}

/// An operator.
#[derive(Clone, Debug)]
pub enum Op {
    // ---- sources ----
    /// Vertices, for each row. Conditions are tested right behind the source.
    Vertices {
        /// How they are found.
        access: Access,
        /// What must hold of them.
        conditions: Vec<Condition>,
    },
    /// Edges, for each row.
    Edges {
        /// How they are found; not by an index.
        access: Access,
        /// What must hold of them.
        conditions: Vec<Condition>,
    },
    /// Values into the stream of each instance.
    Inject(Vec<Operand>),
    /// A service of the database, called for each row.
    Call {
        /// The service; `None`: the one that lists them.
        service: Option<Name>,
        /// What it is given; without a name, a map of several.
        arguments: Vec<(Option<Name>, ComputedOperand)>,
    },
    /// The number of all vertices (or edges): `V().count()` without a scan where pages are clean.
    CountAll {
        /// What is counted.
        kind: ElementKind,
        /// Only with one of these labels; `None`: all.
        labels: Option<Vec<Name>>,
    },

    // ---- row by row ----
    /// Along edges.
    Expand {
        /// Which way.
        direction: Direction,
        /// Edge labels; none: all.
        labels: Vec<Name>,
        /// To the edges.
        to_edges: bool,
    },
    /// Along edges to the vertex that a name stands for: a hop with a comparison behind it, as a search.
    FollowTo {
        /// The edges.
        edge: EdgeTo,
        /// There and back again: as many rows as there are edges, which stay where they are.
        stays: bool,
    },
    /// Vertices that have (or lack) such an edge.
    HasEdgeTo {
        /// The edge.
        edge: EdgeTo,
        /// Keep those that lack one.
        negate: bool,
    },
    /// Along edges to those neighbors that have all these edges besides: an intersection of lists.
    Intersect {
        /// Which way.
        direction: Direction,
        /// Edge labels; none: all.
        labels: Vec<Name>,
        /// The edges that the neighbors have.
        closings: Vec<EdgeTo>,
    },
    /// To the end of an edge.
    EdgeVertex(EdgeEnd),
    /// Conditions on elements.
    Filter(Vec<Condition>),
    /// Vertices that have (or lack) an edge: a nested `out()` that is only asked whether it has a result.
    HasEdges {
        /// Which way.
        direction: Direction,
        /// Edge labels; none: all.
        labels: Vec<Name>,
        /// Keep those that lack one.
        negate: bool,
    },
    /// A test of the object.
    Is(Test),
    /// A test of the members of a collection.
    Members(Quantifier, Test),
    /// Computed columns for the operator behind.
    Modulate(Modulate),
    /// The object against what a name stands for: `where(eq("a"))`, `where(neq("a"))`. The commonest test
    /// between labels, and done without computed columns.
    CompareName {
        /// Keep equal ones, not unequal ones.
        equal: bool,
        /// The name.
        name: Name,
        /// Where the name is looked for.
        lookup: Lookup,
    },
    /// A test between computed columns: the first is the left side, the others are the test's names in order.
    CompareComputed(LabelTest),
    /// Paths with or without repetition; computed column 0 holds the objects where a `by()` is given.
    PathShape {
        /// Keep those without repetition.
        simple: bool,
        /// Compare computed column 0 instead of the path.
        computed: bool,
        /// Which part of the path.
        segment: Segment,
    },
    /// Drops everything.
    Discard,
    /// Property values.
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
    /// Puts computed column 0, a list, in place of a map's values.
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
    /// The same row, which exists to bear a label.
    Identity,
    /// Lets rows go on one at a time: each has gone through what follows, up to the next barrier, before the next one does.
    OneByOne,
    /// The elements of a collection.
    Unfold,
    /// The loop counter.
    Loops(Option<usize>),
    /// A reduction over a collection.
    LocalReduce(Reduction),
    /// A collection without repetition; of maps by the values of these keys.
    LocalDedup(Vec<Name>),
    /// A part of a collection.
    LocalRange {
        /// The first taken.
        low: Operand,
        /// The first no longer taken.
        high: Option<Operand>,
    },
    /// The end of a collection.
    LocalTail(Operand),
    /// A collection sorted by computed columns, each a list with one key an element.
    LocalOrder(Vec<Order>),
    /// The path; computed column 0 holds its objects where a `by()` is given.
    Path {
        /// Take the objects from computed column 0.
        computed: bool,
        /// Which part of it.
        segment: Segment,
    },
    /// A map of computed columns by name; `select()` of one name gives the value alone.
    ComputedMap {
        /// The names.
        names: Vec<Name>,
        /// One name: the value itself.
        single: bool,
        /// A computed column without a value drops the row; otherwise only its entry is left out.
        required: bool,
    },
    /// A function of the object and of arguments.
    Function {
        /// Which.
        function: Function,
        /// Its arguments.
        arguments: Vec<ComputedOperand>,
    },
    /// An expression whose variables are the computed columns in their order.
    Math(Expression),
    /// A template; each of its variables is the computed column of its place among them.
    Format(Vec<Part>),
    /// Keys or values of a map.
    SelectColumn(Column),

    // ---- with state ----
    /// A reduction of an instance's rows.
    Reduce(Reduction),
    /// A sum, mean, minimum or maximum of the values of one key: two operators in one where rows and state are at
    /// one node, and the same two as ever on several.
    ReduceValues {
        /// What of.
        key: Name,
        /// Not a count and not a list.
        reduction: Reduction,
    },
    /// How many neighbors all rows have together: `out().count()` without the neighbors.
    CountExpand {
        /// Which way.
        direction: Direction,
        /// Edge labels; none: all.
        labels: Vec<Name>,
    },
    /// Sorts by computed columns; with a limit, only the first are kept.
    Order {
        /// Which way, a computed column each.
        orders: Vec<Order>,
        /// How many are needed.
        limit: Option<Operand>,
    },
    /// The first of equal rows: of the object, or of all computed columns together.
    Dedup {
        /// How many computed columns are compared; 0: the object.
        computed: usize,
    },
    /// Positions of an instance's stream.
    Range {
        /// The first taken.
        low: Operand,
        /// The first no longer taken.
        high: Option<Operand>,
    },
    /// The end of an instance's stream.
    Tail(Operand),
    /// Counts by computed column 0.
    GroupCount {
        /// The side effect it goes to.
        side_effect: Option<Name>,
    },
    /// Groups by computed column 0. The members go through a scope with an instance a key.
    Group {
        /// The side effect it goes to.
        side_effect: Option<Name>,
        /// What becomes of the members. Its first result counts.
        value: Pipeline,
    },
    /// Adds computed column 0 of every row to a side effect, then lets the rows go on.
    Aggregate(Name),
    /// The ways of all rows in one tree.
    Tree {
        /// The side effect it goes to.
        side_effect: Option<Name>,
        /// Take the objects of a way from computed column 0, not from the path.
        computed: bool,
    },
    /// Adds the edge of every row to the graph in a side effect, then lets the rows go on.
    Subgraph(Name),
    /// Side effects, when all rows have come.
    Cap(Vec<Name>),
    /// Waits for all rows and merges equal ones.
    Barrier {
        /// Makes the sacks of an instance add up to 1.
        norm_sack: bool,
    },
    /// All objects folded into a value.
    FoldInto(Operand, Operator),
    /// The sack becomes the object.
    Sack,
    /// Computed column 0 is folded into the sack.
    FoldSack(Operator),
    /// So many by chance, weighed by computed column 0.
    Sample(Operand),
    /// What comes within so many milliseconds of an instance's first row.
    TimeLimit(Operand),
    /// Each with this probability.
    Coin(Operand),
    /// Ends the query with this message.
    Fail(Name),
    /// The value of the map under the key in computed column 0, or what the name in it stands for.
    SelectKey(Option<Pop>),
    /// Some members of a collection.
    LocalSample(Operand),
    /// Merges equal rows on their way, some thousands at a time, and gives up where none are equal.
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
    /// Finds elements, and makes those that are not there. Computed column 0 says behind it whether a row was found.
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
    /// A branch scope with an instance a row.
    Local(LocalScope),
    /// All branches get every row; one scope, since barriers in a branch see the whole stream.
    Union(Vec<Pipeline>),
    /// Each row goes to the first option that matches computed column 0, or on as it is; or to every option that matches.
    Switch {
        /// When, and where to.
        options: Vec<(ChooseOption, Pipeline)>,
        /// To every option that matches, and nowhere else.
        every: bool,
    },
    /// A loop scope with an instance an iteration.
    Repeat(Box<RepeatScope>),
    /// A scope with an instance a row whose only purpose is that its results come out in the order of the
    /// rows that went in. On one node most pipelines keep that order by themselves and need none.
    Ordered {
        /// What runs inside.
        pipeline: Pipeline,
        /// It is needed on one node too.
        always: bool,
    },
}

/// A value that is known when the plan runs, or stands in a computed column.
#[derive(Clone, Debug, PartialEq)]
pub enum ComputedOperand {
    /// The same for all rows.
    Operand(Operand),
    /// The computed column of this number.
    Computed(usize),
}

/// A property to write.
#[derive(Clone, Debug)]
pub struct PropertyWrite {
    /// The cardinality; `None`: single.
    pub cardinality: Option<Cardinality>,
    /// The key; empty where a computed column holds it.
    pub key: Name,
    /// The computed column that holds the key.
    pub computed_key: Option<usize>,
    /// The value.
    pub value: ComputedOperand,
    /// Meta-properties.
    pub meta: Vec<(Name, ComputedOperand)>,
}
