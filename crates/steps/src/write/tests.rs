//! Statements against a real store: one transaction, its own writes read back.

use super::*;
use crate::rows::ObjectColumn;
use mangrove_flow::QueryLimits;
use mangrove_flow::clock::ManualClock;
use mangrove_graph::{Direction, EdgeId, ErrorKind, GraphView, KeyId, PropertyRow, Share, VertexId};
use mangrove_gremlin::Cardinality;
use mangrove_plan::logical::Operand;
use mangrove_plan::physical::PropertyWrite;
use mangrove_store::{Store, StoreOptions};
use mangrove_txn::{TransactionManager, TransactionOptions};
use std::sync::Arc;

struct Fixture {
    transaction: Arc<Transaction>,
    context: ExecutionContext,
    control: QueryControl,
}

fn fixture() -> Fixture {
    let store = Store::new(&StoreOptions { tablet_count: 2, ..StoreOptions::default() });
    let manager = TransactionManager::new(Arc::new(store));
    let transaction = Arc::new(manager.begin(TransactionOptions::default()).unwrap());
    let context = ExecutionContext {
        view: transaction.clone(),
        writer: Some(transaction.clone()),
        parameters: Vec::new(),
        lifted: Arc::default(),
        share: Share::ALL,
        ids: mangrove_graph::IdRule::Any,
        requirements: Arc::default(),
        side_effects: crate::context::execution::SideEffects::default(),
        overlay: None,
        workers_max: 0,
        services: None,
        files: None,
        results: None,
        columns: Default::default(),
    };
    let control = QueryControl::new(QueryLimits::default(), Arc::new(ManualClock::default()), Arc::default());
    Fixture { transaction, context, control }
}

impl Fixture {
    /// Carries a statement out and ends it.
    fn run<S: Statement>(&self, mut barrier: WriteBarrier<S>, rows: Rows) -> Result<Rows> {
        let ctx = WriteContext { context: &self.context, writer: &self.transaction, control: &self.control };
        let results = barrier.statement.write(rows, &ctx)?;
        self.transaction.finish_statement()?;
        Ok(results)
    }

    fn add_vertex(
        &self,
        label: ComputedOperand,
        id: Option<ComputedOperand>,
        properties: Vec<PropertyWrite>,
    ) -> AddVertex {
        AddVertex::new(label, id, properties, Remember::default())
    }

    fn vertex(&self, id: i64) -> VertexId {
        let add = self.add_vertex(constant("person"), Some(constant(id)), vec![]);
        let ObjectColumn::Vertices(made) = self.run(add, Rows::unit(false, false)).unwrap().objects else { panic!() };
        made[0]
    }

    fn add_edge(
        &self,
        from: Option<ComputedOperand>,
        to: Option<ComputedOperand>,
        properties: Vec<PropertyWrite>,
    ) -> AddEdge {
        AddEdge::new(constant("knows"), [from, to], None, properties, Remember::default())
    }

    fn edge(&self, from: VertexId, to: i64) -> EdgeId {
        let add = self.add_edge(None, Some(constant(to)), vec![write("weight", 0.5)]);
        let ObjectColumn::Edges(made) = self.run(add, at(from)).unwrap().objects else { panic!() };
        made[0]
    }

    fn set(&self, property: PropertyWrite, rows: Rows) -> Result<Rows> {
        self.run(SetProperty::new(property), rows)
    }

    fn drop(&self, objects: Vec<Value>) -> Result<Rows> {
        self.run(Drop::default(), Rows::of(ObjectColumn::from_values(objects)))
    }

    fn key(&self, name: &str) -> KeyId {
        self.transaction.catalog().key(name).unwrap()
    }

    fn properties(&self, vertex: VertexId) -> Vec<PropertyRow> {
        let mut rows = Vec::new();
        self.transaction.vertex_properties(&[vertex], None, &mut rows).unwrap();
        rows
    }

    fn values(&self, vertex: VertexId) -> Vec<Value> {
        self.properties(vertex).into_iter().map(|p| p.value).collect()
    }

    fn edge_values(&self, edge: EdgeId) -> Vec<Value> {
        let mut rows = Vec::new();
        self.transaction.edge_properties(&[edge], None, &mut rows).unwrap();
        rows.into_iter().map(|p| p.value).collect()
    }

    fn degree(&self, vertex: VertexId) -> u64 {
        let mut degrees = Vec::new();
        self.transaction.degrees(&[vertex], Direction::Both, &mangrove_graph::LabelFilter::Any, &mut degrees).unwrap();
        degrees[0]
    }

    fn vertex_property(&self, vertex: VertexId, at: usize) -> Value {
        let PropertyRow { key, ordinal, value, meta, .. } = self.properties(vertex).swap_remove(at);
        Value::VertexProperty(Arc::new(mangrove_graph::VertexPropertyValue { vertex, key, ordinal, value, meta }))
    }
}

fn constant(value: impl Into<Value>) -> ComputedOperand {
    ComputedOperand::Operand(Operand::Literal(value.into()))
}

fn write(key: &str, value: impl Into<Value>) -> PropertyWrite {
    PropertyWrite { cardinality: None, key: key.into(), computed_key: None, value: constant(value), meta: vec![] }
}

fn with_cardinality(cardinality: Cardinality, key: &str, value: impl Into<Value>) -> PropertyWrite {
    PropertyWrite { cardinality: Some(cardinality), ..write(key, value) }
}

fn at(object: impl Into<Value>) -> Rows {
    Rows::of(ObjectColumn::from_values(vec![object.into()]))
}

#[track_caller]
fn check_error<T>(result: Result<T>, kind: ErrorKind, words: &str) {
    let Err(error) = result else { panic!("this is to fail") };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(words), "{error}");
}

#[test]
fn a_vertex_is_made_for_every_traverser() {
    let f = fixture();
    let mut rows = Rows::of(ObjectColumn::Values(vec![1.into(), 2.into()]));
    rows.bulk = Some(vec![3, 1]);
    rows.computed = vec![vec![Some("a".into()), Some("b::c".into())]];
    let properties = vec![write("age", 29), write("gone", Value::Null)];
    let made = f.run(f.add_vertex(ComputedOperand::Computed(0), None, properties), rows).unwrap();
    assert_eq!(made.bulk, Some(vec![1; 4]));
    let ObjectColumn::Vertices(vertices) = &made.objects else { panic!("vertices come out") };
    let mut labels = Vec::new();
    f.transaction.vertex_labels(vertices, &mut labels).unwrap();
    let names: Vec<_> = labels.into_iter().map(|l| f.transaction.catalog().label_set_name(l)).collect();
    assert_eq!(names, ["a", "a", "a", "b::c"]);
    assert!(vertices.iter().all(|v| f.values(*v) == vec![29.into()]));
}

#[test]
fn labels_and_ids_are_checked() {
    let f = fixture();
    let unit = || Rows::unit(false, false);
    check_error(f.run(f.add_vertex(constant(""), None, vec![]), unit()), ErrorKind::InvalidArgument, "empty");
    check_error(f.run(f.add_vertex(constant("a::"), None, vec![]), unit()), ErrorKind::InvalidArgument, "empty");
    check_error(f.run(f.add_vertex(constant(1), None, vec![]), unit()), ErrorKind::InvalidArgument, "not an int");
    let odd = Some(constant(true));
    check_error(f.run(f.add_vertex(constant("a"), odd, vec![]), unit()), ErrorKind::InvalidArgument, "boolean");
    f.vertex(7);
    let taken = Some(constant(7));
    check_error(f.run(f.add_vertex(constant("a"), taken, vec![]), unit()), ErrorKind::DuplicateId, "7");
    let mut rows = unit();
    rows.computed = vec![vec![None]];
    check_error(
        f.run(f.add_vertex(ComputedOperand::Computed(0), None, vec![]), rows),
        ErrorKind::Evaluation,
        "label of addV()",
    );
}

#[test]
fn edges_find_their_ends() {
    let f = fixture();
    let (a, b) = (f.vertex(1), f.vertex(2));
    let edge = f.edge(a, 2);
    assert_eq!(f.edge_values(edge), vec![0.5.into()]);
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    f.transaction.edge_ends(&[edge], &mut sources, &mut targets).unwrap();
    assert_eq!((sources, targets), (vec![a], vec![b]));

    let mut rows = at(1);
    rows.computed = vec![vec![Some(b.into())], vec![Some("text".into())], vec![None]];
    let ends = |from, to| f.run(f.add_edge(from, to, vec![]), rows.clone());
    let computed = |n| Some(ComputedOperand::Computed(n));
    assert_eq!(ends(computed(0), Some(constant(1))).unwrap().len(), 1);
    check_error(ends(computed(1), computed(0)), ErrorKind::NotFound, "id text");
    check_error(
        ends(computed(0), computed(2)),
        ErrorKind::Evaluation,
        "to() of addE() must resolve to a Vertex or the ID of a Vertex",
    );
    check_error(ends(None, computed(0)), ErrorKind::Evaluation, "at an int: from() must resolve to a Vertex");
    check_error(ends(computed(0), Some(constant(99))), ErrorKind::NotFound, "id 99");
}

#[test]
fn cardinalities_replace_add_or_keep() {
    let f = fixture();
    let v = f.vertex(1);
    f.set(write("x", 1), at(v)).unwrap();
    f.set(write("x", 2), at(v)).unwrap();
    assert_eq!(f.values(v), vec![2.into()]);
    let mut twice = at(v);
    twice.bulk = Some(vec![2]);
    f.set(with_cardinality(Cardinality::List, "x", 2), twice).unwrap();
    assert_eq!(f.values(v), vec![2.into(), 2.into(), 2.into()]);
    f.set(with_cardinality(Cardinality::Set, "y", 5), at(v)).unwrap();
    f.set(with_cardinality(Cardinality::Set, "y", 5), at(v)).unwrap();
    f.set(with_cardinality(Cardinality::List, "x", Value::Null), at(v)).unwrap();
    assert_eq!(f.values(v).len(), 4);
    f.set(write("x", Value::Null), at(v)).unwrap();
    assert_eq!(f.values(v), vec![5.into()]);
}

#[test]
fn properties_are_written_where_they_may_be() {
    let f = fixture();
    let v = f.vertex(1);
    let edge = f.edge(v, 1);
    f.set(write("weight", 1.0), at(edge)).unwrap();
    assert_eq!(f.edge_values(edge), vec![1.0.into()]);
    f.set(write("weight", Value::Null), at(edge)).unwrap();
    assert_eq!(f.edge_values(edge), vec![]);
    let listed = with_cardinality(Cardinality::List, "weight", 1.0);
    check_error(f.set(listed, at(edge)), ErrorKind::Evaluation, "leave out single, list or set");
    let with_meta = PropertyWrite { meta: vec![("m".into(), constant(1))], ..write("weight", 1.0) };
    check_error(f.set(with_meta.clone(), at(edge)), ErrorKind::Evaluation, "meta-properties");
    check_error(f.set(write("x", 1), at(1)), ErrorKind::Evaluation, "here is an int");
    check_error(f.set(write("x", edge), at(v)), ErrorKind::InvalidArgument, "`x` cannot hold an edge");
    check_error(f.set(write("", 1), at(v)), ErrorKind::InvalidArgument, "key must not be empty");

    f.set(with_meta, at(v)).unwrap();
    let rows = f.set(write("n", 2), at(f.vertex_property(v, 0))).unwrap();
    let meta = vec![(f.key("m"), 1.into()), (f.key("n"), 2.into())];
    assert_eq!(*f.properties(v)[0].meta, meta);
    assert_eq!(rows.object(0), f.vertex_property(v, 0));
    let rows = f.set(write("m", Value::Null), rows).unwrap();
    assert_eq!(*f.properties(v)[0].meta, meta[1..]);
    assert_eq!(rows.object(0), f.vertex_property(v, 0));
}

#[test]
fn dropping_takes_everything_once() {
    let f = fixture();
    let (a, b) = (f.vertex(1), f.vertex(2));
    let edge = f.edge(a, 2);
    let other = f.edge(a, 2);
    for n in 0..3 {
        f.set(with_cardinality(Cardinality::List, "x", n), at(b)).unwrap();
    }
    let second = f.vertex_property(b, 1);
    assert!(f.drop(vec![second.clone(), edge.into(), second, edge.into()]).unwrap().is_empty());
    assert_eq!(f.values(b), vec![0.into(), 2.into()]);
    assert_eq!((f.degree(a), f.degree(b)), (1, 1));

    let property = f.vertex_property(b, 0);
    let weight = mangrove_graph::PropertyValue {
        owner: mangrove_graph::PropertyOwner::Edge(other),
        key: f.key("weight"),
        value: 0.5.into(),
    };
    let weight = Value::Property(Arc::new(weight));
    f.drop(vec![b.into(), other.into(), b.into(), property.clone(), weight.clone()]).unwrap();
    let mut left = vec![a, b];
    f.transaction.retain_vertices(&mut left).unwrap();
    assert_eq!((left, f.degree(a)), (vec![a], 0));
    // A property that was deleted with its owner is no error.
    f.drop(vec![property, weight, b.into(), other.into()]).unwrap();
    check_error(f.drop(vec![1.into()]), ErrorKind::Evaluation, "here is an int");
}

#[test]
fn more_traversers_than_memory_are_refused() {
    let f = fixture();
    let mut rows = at(1);
    rows.bulk = Some(vec![u64::MAX]);
    check_error(f.run(f.add_vertex(constant("a"), None, vec![]), rows), ErrorKind::MemoryLimit, "memory limit");
}
