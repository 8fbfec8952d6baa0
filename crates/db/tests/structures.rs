//! `tree()` and `subgraph()`: results that are structures, over one node and several.

use mangrove::{Database, Parameters, QueryOptions, Value};
use mangrove_gremlin::text::Plain;

/// Five of the six vertices of TinkerPop's modern graph, with ids of their own.
fn modern() -> Database {
    let database = Database::in_memory();
    let script = "g.addV('person').property(T.id, 1).property('name', 'marko').property('age', 29).as('m').\
                  addV('person').property(T.id, 2).property('name', 'vadas').property('age', 27).as('v').\
                  addV('software').property(T.id, 3).property('name', 'lop').as('l').\
                  addV('person').property(T.id, 4).property('name', 'josh').property('age', 32).as('j').\
                  addV('software').property(T.id, 5).property('name', 'ripple').as('r').\
                  addE('knows').from('m').to('v').property(T.id, 7).addE('knows').from('m').to('j').property(T.id, 8).\
                  addE('created').from('m').to('l').property(T.id, 9).\
                  addE('created').from('j').to('r').property(T.id, 10).\
                  addE('created').from('j').to('l').property(T.id, 11)";
    database.query(script).unwrap().collect().unwrap();
    database
}

#[track_caller]
fn check(database: &Database, script: &str, expected: &str) {
    let found = database.query(script).unwrap().collect().unwrap_or_else(|error| panic!("{script}: {error}"));
    let text: Vec<String> = found.iter().map(|value| Plain(value).to_string()).collect();
    assert_eq!(text.join(" "), expected, "{script}");
}

#[test]
fn trees_hold_the_ways_of_all_traversers() {
    let database = modern();
    let named = "g.V(1).out().order().by('name').out().order().by('name')";
    check(&database, &format!("{named}.tree().by('name')"), "{marko={josh={lop={}, ripple={}}}}");
    check(&database, "g.V(1).out('knows').out().tree().by('name').by(T.label)", "{marko={person={ripple={}, lop={}}}}");
    check(&database, "g.V(1).out('created').tree()", "{v[1]={v[3]={}}}");
    check(&database, "g.V(99).tree()", "{}");
    // Elements without the property are left out.
    check(&database, "g.V(1).out('created').tree().by('age')", "{29={}}");
    check(&database, "g.V(1).out('created').tree('x').values('name').cap('x')", "{v[1]={v[3]={}}}");
    check(&database, "g.V(1).out('created').tree('x').tree('x').values('name').cap('x')", "{v[1]={v[3]={}}}");
    check(&database, "g.V(1, 4).tree('t').select('t').count(local)", "2 2");
    check(&database, "g.V(1).out('created').tree().unfold()", "{v[1]={v[3]={}}}");
    check(&database, "g.V(1).out('created').tree().select(keys)", "[v[1]]");
    check(&database, "g.V(4).local(out().tree().count(local))", "1");
    check(&database, "g.V().map(out().tree()).is(typeOf(GType.TREE)).count()", "5");
}

#[test]
fn a_tree_is_the_same_over_several_nodes() {
    let database = modern();
    let script = "g.V(1).out('knows').out('created').tree().by('name').unfold().select(values).count(local)";
    let prepared = database.prepare(script).unwrap();
    for nodes in [2, 3] {
        let transaction = database.begin_read().unwrap();
        let options = QueryOptions::default();
        let found = transaction.run_on_nodes(&prepared, &Parameters::new(), &options, nodes, Some(7)).unwrap();
        assert_eq!(found, [(Value::I64(1), 1)], "{nodes} nodes");
    }
}

#[test]
fn subgraphs_hold_edges_and_their_ends() {
    let database = modern();
    let graph = "g.V(1).outE('knows').subgraph('s').inV().outE().subgraph('s').cap('s')";
    let found = database.query(graph).unwrap().collect().unwrap();
    let [Value::Graph(graph)] = &found[..] else { panic!("{found:?}") };
    let mut vertices: Vec<String> = graph.vertices.iter().map(|v| Plain(v).to_string()).collect();
    let mut edges: Vec<String> = graph.edges.iter().map(|v| Plain(v).to_string()).collect();
    vertices.sort();
    edges.sort();
    assert_eq!(vertices, ["v[1]", "v[2]", "v[3]", "v[4]", "v[5]"]);
    assert_eq!(edges, ["e[10][4-created->5]", "e[11][4-created->3]", "e[7][1-knows->2]", "e[8][1-knows->4]"]);
    // Its elements bring their properties along.
    let Value::Detached(first) = &graph.vertices[0] else { panic!("{graph:?}") };
    assert!(matches!(&**first, mangrove::Detached::Vertex { properties, .. } if !properties.is_empty()));
    check(&database, "g.V().outE('none').subgraph('s').cap('s')", "graph[vertices:0 edges:0]");
    check(&database, "g.E(7).subgraph('s').select('s')", "graph[vertices:2 edges:1]");
    let error = database.query("g.V(1).subgraph('s')").unwrap().collect().unwrap_err();
    assert!(error.message().contains("subgraph() gathers edges, and met a vertex"), "{error}");
}
