//! What the tests of this folder run traversals with.

use std::sync::Arc;

use mangrove_graph::{GraphView, IdRule, Share, UserId, Value};
use mangrove_gremlin::{ParseOptions, Statement};
use mangrove_plan::{GraphFacts, PhysicalPlan};
use mangrove_steps::{ExecutionContext, Rows, SideEffects};
use mangrove_store::{Store, StoreOptions};
use mangrove_txn::{Transaction, TransactionManager, TransactionOptions};

/// The vertices of the graph: twenty messages of rows.
pub const COUNT: usize = 20 << 10;

/// A cycle of vertices: each has its number `n`, one of ten numbers `k`, and an edge to the next one.
pub fn graph() -> Arc<Transaction> {
    let manager = TransactionManager::new(Arc::new(Store::new(&StoreOptions::default())));
    let transaction = Arc::new(manager.begin(TransactionOptions::default()).unwrap());
    let catalog = transaction.catalog();
    let [n, k] = ["n", "k"].map(|key| catalog.intern_key(key));
    let (node, next) = (catalog.intern_label_text("node"), catalog.intern_label_text("next"));
    // The order of ids is not that in which vertices are stored.
    let id = |number: usize| UserId::from((number as i64 * 4_001) % COUNT as i64);
    let insert = |number| transaction.insert_vertex(node, Some(id(number))).unwrap();
    let vertices: Vec<_> = (0..COUNT).map(insert).collect();
    for (number, vertex) in vertices.iter().enumerate() {
        for (key, value) in [(n, (number * 7_919) % COUNT), (k, number % 10)] {
            let cardinality = mangrove_txn::WriteCardinality::Single;
            let value = Value::I64(value as i64);
            transaction.set_vertex_property(*vertex, key, value, cardinality, Vec::new()).unwrap();
        }
        transaction.insert_edge(*vertex, vertices[(number + 1) % COUNT], next, None).unwrap();
    }
    transaction.finish_statement().unwrap();
    transaction
}

/// The physical plan of a script.
pub fn plan(script: &str) -> PhysicalPlan {
    let Statement::Traversal { bytecode, .. } =
        mangrove_gremlin::parse_one(script, &ParseOptions::default()).expect(script)
    else {
        panic!("{script} is no traversal")
    };
    let mut compiled = mangrove_plan::compile(&bytecode).expect(script);
    mangrove_plan::rules::rewrite(&mut compiled.traversal, &compiled.configuration);
    mangrove_plan::lower::lower(&compiled.traversal, &compiled.configuration, &GraphFacts::default()).expect(script)
}

/// The context of a run of a plan.
pub fn context(graph: &Arc<Transaction>, plan: &PhysicalPlan) -> ExecutionContext {
    ExecutionContext {
        view: graph.clone() as Arc<dyn GraphView>,
        writer: Some(graph.clone()),
        parameters: Vec::new(),
        lifted: Arc::default(),
        share: Share::ALL,
        ids: IdRule::Any,
        requirements: Arc::new(plan.requirements.clone()),
        side_effects: SideEffects::default(),
        overlay: None,
        workers_max: 0,
        services: None,
        files: None,
        results: None,
        columns: Default::default(),
    }
}

/// The row that a run begins with.
pub fn unit(plan: &PhysicalPlan) -> Rows {
    let has_paths = plan.requirements.path != mangrove_plan::physical::PathRequirement::None;
    Rows::unit(has_paths, plan.requirements.loops)
}
