//! Algorithms in Gremlin: TinkerPop's steps with `withComputer()`, and those of the registry as services.

use std::collections::HashMap;

use mangrove::{Database, ErrorKind, QueryLimits, QueryOptions, Value, registry};
use mangrove_gremlin::text::Plain;

fn text(value: &Value) -> String {
    Plain(value).to_string()
}

/// Two groups of persons, of which one points at a hub; and a lone robot.
fn graph() -> Database {
    let database = Database::in_memory();
    let script = "g.addV('person').property(id, 1).property('name', 'a').as('a').\
                  addV('person').property(id, 2).property('name', 'b').as('b').\
                  addV('person').property(id, 3).property('name', 'c').as('c').\
                  addV('person').property(id, 10).property('name', 'd').as('d').\
                  addV('person').property(id, 20).property('name', 'e').as('e').\
                  addV('robot').property(id, 30).property('name', 'r').property('rank', 7).\
                  addE('knows').from('a').to('c').property('km', 1.0).\
                  addE('knows').from('b').to('c').property('km', 5.5).\
                  addE('likes').from('a').to('b').property('km', 2.0).\
                  addE('knows').from('d').to('e').property('km', 1.0).property('rank', 3)";
    database.query(script).unwrap().collect().unwrap();
    database
}

fn ask(database: &Database, script: &str) -> mangrove::Result<Vec<Value>> {
    database.query(script)?.collect()
}

#[track_caller]
fn check(database: &Database, script: &str, expected: &[Value]) {
    let found = ask(database, script).unwrap_or_else(|error| panic!("{script}: {error}"));
    assert_eq!(found, expected, "{script}");
}

/// The results as texts, sorted.
#[track_caller]
fn texts(database: &Database, script: &str) -> Vec<String> {
    let found = ask(database, script).unwrap_or_else(|error| panic!("{script}: {error}"));
    let mut found: Vec<String> = found.iter().map(text).collect();
    found.sort();
    found
}

#[track_caller]
fn fails(database: &Database, script: &str, kind: ErrorKind, message: &str) {
    let error = ask(database, script).expect_err(script);
    assert_eq!(error.kind(), kind, "{script}: {error}");
    assert!(error.message().contains(message), "{script}: {error}");
}

const COMPONENT: &str = "connectedComponent().with(ConnectedComponent.propertyName, 'group')";

#[test]
fn every_step_that_reads_properties_reads_the_values_of_algorithms() {
    let database = graph();
    let with = |steps: &str| format!("g.withComputer().V().hasLabel('person').{COMPONENT}.{steps}");
    // Ids are compared as texts: "1" < "10" < "2".
    check(&database, &with("order().by(id).values('group')"), &["1", "1", "1", "10", "10"].map(Value::from));
    check(&database, &with("has('group', '10').order().by(id).values('name')"), &["d", "e"].map(Value::from));
    check(&database, &with("has('group').count()"), &[5_i64.into()]);
    check(&database, &with("hasNot('group').count()"), &[0_i64.into()]);
    check(&database, &with("order().by('group', desc).by('name').limit(1).values('name')"), &["d".into()]);
    let texts_of = |steps: &str| texts(&database, &with(steps));
    assert_eq!(texts_of("groupCount().by('group').unfold()"), ["{10=2}", "{1=3}"]);
    assert_eq!(texts_of("has('name', 'a').valueMap('name', 'group')"), ["{name=[a], group=[1]}"]);
    assert_eq!(texts_of("has('name', 'a').valueMap('group', 'name')"), ["{group=[1], name=[a]}"]);
    assert_eq!(texts_of("has('name', 'e').valueMap()"), ["{name=[e], group=[10]}"]);
    assert_eq!(texts_of("has('name', 'e').elementMap('group')"), ["{id=20, label=person, group=10}"]);
    assert_eq!(texts_of("has('name', 'e').project('g', 'n').by('group').by('name')"), ["{g=10, n=e}"]);
    assert_eq!(texts_of("has('name', 'e').properties('group').key()"), ["group"]);
    assert_eq!(texts_of("has('name', 'e').properties().value()"), ["10", "e"]);
    assert_eq!(texts_of("has('name', 'e').propertyMap('group').select(keys).unfold()"), ["group"]);
    assert_eq!(texts_of("dedup().by('group').values('group')"), ["1", "10"]);
    assert_eq!(texts_of("where(values('group').is('10')).values('name')"), ["d", "e"]);
    // And in the middle, where a look-up in an index would know nothing of it.
    assert_eq!(texts_of("limit(1).V().has('group', '10').values('name')"), ["d", "e"]);
    // An element in the results has them, too.
    let vertex = ask(&database, &with("has('name', 'e')")).unwrap();
    assert!(format!("{vertex:?}").contains("group"), "{vertex:?}");
    // Nothing is stored.
    check(&database, "g.V().has('group').count()", &[0_i64.into()]);
    check(&database, &format!("g.withComputer().V().{COMPONENT}.none()"), &[]);
    check(&database, "g.V().values('group').count()", &[0_i64.into()]);
}

#[test]
fn a_key_that_is_stored_shows_the_algorithm_s_values_alone() {
    let database = graph();
    let ranked = "g.withComputer().V().pageRank().with(PageRank.propertyName, 'rank')";
    check(&database, &format!("{ranked}.has('rank', 7).count()"), &[0_i64.into()]);
    check(&database, &format!("{ranked}.hasLabel('robot').properties('rank').count()"), &[1_i64.into()]);
    assert_eq!(texts(&database, &format!("{ranked}.hasLabel('robot').properties().key()")), ["name", "rank"]);
    // Properties of edges stay as they are.
    check(&database, &format!("{ranked}.outE().values('rank')"), &[3.into()]);
    assert_eq!(texts(&database, &format!("{ranked}.outE().has('rank').elementMap('rank').select('rank')")), ["3"]);
    // Before the algorithm has run, the key shows what is stored; an index of it is not used.
    ask(&database, "g.call('mangrove.index.create', [label: 'robot', key: 'rank'])").unwrap();
    check(
        &database,
        "g.withComputer().V().has('rank', 7).pageRank().with(PageRank.propertyName, 'rank').values('name')",
        &["r".into()],
    );
    check(&database, &format!("{ranked}.limit(1).V().has('robot', 'rank', 7).count()"), &[0_i64.into()]);
    check(&database, "g.V().has('robot', 'rank', 7).count()", &[1_i64.into()]);
    // A sum of numbers, which is read as a column of numbers.
    let sum = ask(&database, &format!("{ranked}.values('rank').sum()")).unwrap();
    assert!(matches!(sum[..], [Value::F64(sum)] if (sum - 1.0).abs() < 1e-9), "{sum:?}");
}

#[test]
fn ranks_begin_with_the_traversers() {
    let database = graph();
    let rank = |script: &str| -> HashMap<String, f64> {
        let found = ask(
            &database,
            &format!("{script}.project('n', 'r').by('name').by('gremlin.pageRankVertexProgram.pageRank')"),
        );
        let entry = |row: &Value| match row {
            Value::Map(entries) => match (&entries[0].1, &entries[1].1) {
                (Value::String(name), Value::F64(rank)) => (name.to_string(), *rank),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        found.unwrap().iter().map(entry).collect()
    };
    let first = rank("g.withComputer().V().pageRank().with(PageRank.times, 0)");
    assert!(first.values().all(|rank| (rank - 1.0 / 6.0).abs() < 1e-12), "{first:?}");
    // Two traversers at c, one at b, none elsewhere.
    let counted = rank(
        "g.withComputer().V().out('knows', 'likes').hasLabel('person').has('name', within('b', 'c')).pageRank().with(PageRank.times, 0)",
    );
    assert_eq!((counted["b"], counted["c"]), (1.0, 2.0));
    // All rank of a goes along its two edges; b and c pass theirs to all; d and e keep theirs by the way.
    let spread = rank("g.withComputer().V().has('name', 'a').pageRank(1.0).with(PageRank.times, 1).V()");
    assert_eq!((spread["a"], spread["b"], spread["c"]), (0.0, 0.5, 0.5));
    let along = rank(
        "g.withComputer().V().has('name', 'a').pageRank(1.0).with(PageRank.edges, __.outE('likes')).with(PageRank.times, 1).V()",
    );
    assert_eq!((along["b"], along["c"]), (1.0, 0.0));
    let back = rank(
        "g.withComputer().V().has('name', 'c').pageRank(1.0).with(PageRank.edges, __.inE()).with(PageRank.times, 1).V()",
    );
    assert_eq!((back["a"], back["b"], back["c"]), (0.5, 0.5, 0.0));
}

#[test]
fn components_and_clusters_follow_the_chosen_edges() {
    let database = graph();
    let by_name = |steps: &str, key: &str| {
        texts(&database, &format!("g.withComputer().V().{steps}.project('n', 'v').by('name').by('{key}')"))
    };
    let directed = "connectedComponent().with(ConnectedComponent.edges, __.outE('knows')).with(ConnectedComponent.propertyName, 'x')";
    assert_eq!(
        by_name(directed, "x"),
        ["{n=a, v=1}", "{n=b, v=2}", "{n=c, v=1}", "{n=d, v=10}", "{n=e, v=10}", "{n=r, v=30}"]
    );
    let clusters = "peerPressure().with(PeerPressure.propertyName, 'x')";
    assert_eq!(
        by_name(clusters, "x"),
        ["{n=a, v=1}", "{n=b, v=1}", "{n=c, v=1}", "{n=d, v=10}", "{n=e, v=10}", "{n=r, v=30}"]
    );
    // The id itself, and no text.
    check(&database, &format!("g.withComputer().V().{clusters}.has('name', 'e').values('x')"), &[10.into()]);
    assert_eq!(
        by_name("peerPressure().with(PeerPressure.times, 0).with(PeerPressure.propertyName, 'x')", "x")[1],
        "{n=b, v=2}"
    );
}

#[test]
fn a_computer_sees_the_labels_that_it_is_told() {
    let database = graph();
    let source = "g.withStrategies(new VertexProgramStrategy(workers: 2, persist: 'NOTHING', vertices: __.hasLabel('person'), edges: __.bothE('knows')))";
    assert_eq!(
        texts(&database, &format!("{source}.V().{COMPONENT}.project('n', 'v').by('name').by('group')")),
        ["{n=a, v=1}", "{n=b, v=1}", "{n=c, v=1}", "{n=d, v=10}", "{n=e, v=10}"]
    );
    assert_eq!(
        texts(&database, &format!("{source}.V().has('name', 'a').shortestPath()")),
        ["path[v[1], v[3], v[2]]", "path[v[1], v[3]]", "path[v[1]]"]
    );
    check(&database, &format!("{source}.E().count()"), &[3_i64.into()]);
    check(&database, &format!("{source}.withoutStrategies(VertexProgramStrategy).V().count()"), &[6_i64.into()]);
}

#[test]
fn shortest_paths_go_where_options_lead_them() {
    let database = graph();
    let paths =
        |options: &str| texts(&database, &format!("g.withComputer().V().has('name', 'a').shortestPath(){options}"));
    assert_eq!(paths(""), ["path[v[1], v[2]]", "path[v[1], v[3]]", "path[v[1]]"]);
    assert_eq!(paths(".with(ShortestPath.edges, Direction.IN)"), ["path[v[1]]"]);
    assert_eq!(
        paths(".with(ShortestPath.distance, 'km').with(ShortestPath.target, __.has('name', 'b'))"),
        ["path[v[1], v[2]]"]
    );
    assert_eq!(
        texts(
            &database,
            "g.withComputer().V().has('name', 'b').shortestPath().with(ShortestPath.distance, __.values('km')).with(ShortestPath.target, __.has('name', 'c'))"
        ),
        ["path[v[2], v[1], v[3]]"]
    );
    assert_eq!(paths(".with(ShortestPath.maxDistance, 0)"), ["path[v[1]]"]);
    assert_eq!(paths(".with(ShortestPath.maxDistance, -1)"), [""; 0]);
    // Parallel edges: one path, and two that show their edges. An edge of the length 0 leads around no cycle.
    ask(&database, "g.V(1).as('a').V(2).as('b').addE('likes').from('a').to('b').property('km', 0.0).addE('likes').from('b').to('a').property('km', 0.0)").unwrap();
    assert_eq!(paths(".with(ShortestPath.target, __.hasId(2))"), ["path[v[1], v[2]]"]);
    let edges = paths(".with(ShortestPath.target, __.hasId(2)).with(ShortestPath.includeEdges)");
    assert_eq!(edges.len(), 3, "{edges:?}");
    let free = paths(".with(ShortestPath.distance, 'km')");
    assert_eq!(free, ["path[v[1], v[2]]", "path[v[1], v[3]]", "path[v[1]]"], "{free:?}");
    // Each traverser has its paths.
    check(
        &database,
        "g.withComputer().V().has('name', 'a').union(identity(), identity()).shortestPath().count()",
        &[6_i64.into()],
    );
    check(&database, "g.withComputer().V().shortestPath().limit(2).count()", &[2_i64.into()]);
}

/// A grid has more shortest paths between its corners than can be made: a target alone must not make those to all others.
#[test]
fn only_paths_to_targets_are_made() {
    const SIDE: usize = 13;
    let database = Database::in_memory();
    let transaction = database.begin().unwrap();
    let label = transaction.view().catalog().intern_label_text("place");
    let along = transaction.view().catalog().intern_label_text("to");
    let ids: Vec<_> = (0..SIDE * SIDE).map(|id| mangrove::UserId::int(id as i64)).collect();
    let places = transaction.insert_vertices(label, &ids).unwrap();
    let mut ends = Vec::new();
    for row in 0..SIDE {
        for column in 0..SIDE {
            let here = places[row * SIDE + column];
            ends.extend((column + 1 < SIDE).then(|| (here, places[row * SIDE + column + 1])));
            ends.extend((row + 1 < SIDE).then(|| (here, places[(row + 1) * SIDE + column])));
        }
    }
    transaction.insert_edges(along, &ends).unwrap();
    transaction.commit().unwrap();
    // Both to the neighbors of the corner, and to the corner that is two steps away: 1 + 1 + 2.
    let near = format!(
        "g.withComputer().V(0).shortestPath().with(ShortestPath.target, __.hasId(1, {SIDE}, {})).count()",
        SIDE + 1
    );
    check(&database, &near, &[4_i64.into()]);
    // All of them, as binomial coefficients.
    let options = QueryOptions {
        limits: QueryLimits { memory_bytes: 8 << 20, ..QueryLimits::default() },
        ..QueryOptions::default()
    };
    let all = database.prepare("g.withComputer().V(0).shortestPath().fold()").unwrap();
    let outcome = database.run_with(&all, &Default::default(), &options).and_then(|found| found.collect());
    let error = outcome.expect_err("the paths take more memory than the query may use");
    assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{error}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let database = graph();
    fails(
        &database,
        "g.V().pageRank()",
        ErrorKind::Unsupported,
        "VertexComputing steps must be executed with a GraphComputer",
    );
    fails(
        &database,
        "g.withComputer().V().local(pageRank())",
        ErrorKind::Unsupported,
        "belongs to the traversal itself",
    );
    fails(
        &database,
        "g.withComputer().V().values('name').pageRank()",
        ErrorKind::Evaluation,
        "pageRank() takes vertices, not a string",
    );
    fails(
        &database,
        "g.withComputer().V().values('name').shortestPath()",
        ErrorKind::Evaluation,
        "shortestPath() takes vertices",
    );
    fails(&database, "g.withComputer().V().pageRank(2)", ErrorKind::InvalidArgument, "from 0 to 1");
    fails(
        &database,
        "g.withComputer().V().pageRank().with(PageRank.times, -1)",
        ErrorKind::InvalidArgument,
        "a number of rounds",
    );
    fails(
        &database,
        "g.withComputer().V().pageRank().with(PageRank.edges, __.out())",
        ErrorKind::InvalidArgument,
        "outE(), inE() or bothE()",
    );
    fails(
        &database,
        "g.withComputer().V().pageRank().with('rounds', 3)",
        ErrorKind::Unsupported,
        "pageRank has no option `rounds`. There are: `~tinkerpop.pageRank.edges`",
    );
    fails(
        &database,
        "g.withComputer().V().shortestPath().with(ShortestPath.distance, 'name')",
        ErrorKind::Evaluation,
        "which an edge lacks",
    );
    fails(
        &database,
        "g.withStrategies(new VertexProgramStrategy(persist: 'EDGES')).V()",
        ErrorKind::Unsupported,
        "persist is NOTHING here",
    );
    fails(
        &database,
        "g.withStrategies(new VertexProgramStrategy(vertices: __.has('name', 'a'))).V()",
        ErrorKind::InvalidArgument,
        "hasLabel() of some labels",
    );
    fails(
        &database,
        "g.withComputer().withStrategies(new SubgraphStrategy(vertices: __.hasLabel('person'))).V().pageRank()",
        ErrorKind::Unsupported,
        "through SubgraphStrategy",
    );
    fails(
        &database,
        "g.withComputer().withStrategies(VertexProgramRestrictionStrategy).V()",
        ErrorKind::Unsupported,
        "does not allow the use of a GraphComputer",
    );
    ask(&database, "g.E().limit(1).property('km', -2)").unwrap();
    fails(
        &database,
        "g.withComputer().V().shortestPath().with(ShortestPath.distance, 'km')",
        ErrorKind::Evaluation,
        "lengths from 0 on, and the property 'km' of an edge is -2",
    );
    // Without an algorithm, a computer changes nothing.
    check(&database, "g.withComputer().V().count()", &[6_i64.into()]);
}

#[test]
fn an_algorithm_keeps_the_limits_of_its_query() {
    let database = graph();
    let run = |limits: QueryLimits, script: &str| {
        let prepared = database.prepare(script).unwrap();
        let options = QueryOptions { limits, ..QueryOptions::default() };
        database.run_with(&prepared, &Default::default(), &options).and_then(|found| found.collect())
    };
    let little = || QueryLimits { memory_bytes: 300, ..QueryLimits::default() };
    for script in ["g.withComputer().V().pageRank().count()", "g.call('mangrove.algo.pagerank').count()"] {
        let error = run(little(), script).expect_err(script);
        assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{script}: {error}");
        let over = QueryLimits { time_nanos: Some(0), ..QueryLimits::default() };
        let error = run(over, script).expect_err(script);
        assert_eq!(error.kind(), ErrorKind::Timeout, "{script}: {error}");
    }
}

#[test]
fn every_algorithm_of_the_registry_is_a_service() {
    let database = graph();
    let listed = ask(&database, "g.call()").unwrap();
    for algorithm in registry::ALGORITHMS {
        let name = format!("mangrove.algo.{}", algorithm.name);
        assert!(listed.contains(&name.as_str().into()), "{name} is not listed");
        let described = texts(&database, &format!("g.call('--list').with('verbose', true).with('service', '{name}')"));
        let columns = algorithm.columns.iter().map(|column| column.name);
        for word in algorithm.all_options().map(|option| option.name).chain(columns) {
            assert!(described[0].contains(word), "{word} is missing in {described:?}");
        }
        // The options that it needs, as far as they are known here.
        let mut call = format!("g.call('{name}')");
        for option in algorithm.all_options().filter(|option| option.default.is_none()) {
            match option.name {
                "source" => call += ".with('source', 1)",
                "target" => call += ".with('target', 3)",
                "weight" => call += ".with('weight', 'km')",
                "sources" => call += ".with('sources', [1])",
                _ => {}
            }
        }
        let rows = ask(&database, &call).unwrap_or_else(|error| panic!("{call}: {error}"));
        for row in &rows {
            let Value::Map(entries) = row else { panic!("{call} gives {row:?}") };
            let keys: Vec<String> = entries.iter().map(|(key, _)| text(key)).collect();
            let columns: Vec<&str> = algorithm.columns.iter().map(|column| column.name).collect();
            // Some algorithms leave out columns at the end that were not asked for.
            assert!(!keys.is_empty() && columns.iter().take(keys.len()).eq(&keys), "{call}: {keys:?}");
        }
    }
}

#[test]
fn services_stream_elements_and_values() {
    let database = graph();
    assert_eq!(
        texts(
            &database,
            "g.call('mangrove.algo.bfs', [source: 1]).project('n', 'd').by(select('vertex').values('name')).by('depth')"
        ),
        ["{n=a, d=0}", "{n=b, d=1}", "{n=c, d=1}"]
    );
    // Options come from traversals, too, and the service is called for each row.
    assert_eq!(
        texts(
            &database,
            "g.V().has('name', within('a', 'd')).call('mangrove.algo.bfs').with('source', id()).select('depth')"
        ),
        ["0", "0", "1", "1", "1"]
    );
    check(&database, "g.call('mangrove.algo.wcc', [vertices: 'person']).count()", &[5_i64.into()]);
    check(
        &database,
        "g.withStrategies(ReadOnlyStrategy).call('mangrove.algo.wcc').with('edges', 'knows').count()",
        &[6_i64.into()],
    );
    fails(
        &database,
        "g.withStrategies(ReadOnlyStrategy).call('mangrove.algo.wcc').with('write', 'x')",
        ErrorKind::Unsupported,
        "mutating step",
    );
    fails(
        &database,
        "g.call('mangrove.algo.pagerank').with('dumping', 1)",
        ErrorKind::InvalidArgument,
        "pagerank has no option 'dumping'. There are: damping",
    );
    fails(&database, "g.call('mangrove.algo.bfs')", ErrorKind::InvalidArgument, "bfs needs the option 'source'");
    fails(&database, "g.call('mangrove.algo.pagerang')", ErrorKind::InvalidArgument, "mangrove.algo.pagerank");
}

#[test]
fn more_rows_than_a_message_come_in_batches_and_a_limit_ends_them() {
    const COUNT: i64 = 5_000;
    let database = Database::in_memory();
    let transaction = database.begin().unwrap();
    let label = transaction.view().catalog().intern_label_text("place");
    let ids: Vec<_> = (0..COUNT).map(mangrove::UserId::int).collect();
    transaction.insert_vertices(label, &ids).unwrap();
    transaction.commit().unwrap();
    check(&database, "g.call('mangrove.algo.wcc').count()", &[COUNT.into()]);
    check(&database, "g.call('mangrove.algo.wcc').limit(3).count()", &[3_i64.into()]);
    check(&database, "g.inject(1, 2).call('mangrove.algo.wcc').count()", &[(2 * COUNT).into()]);
    check(&database, "g.call('mangrove.algo.wcc').select('vertex').dedup().count()", &[COUNT.into()]);
    check(
        &database,
        "g.inject(1).union(call('mangrove.algo.wcc').limit(1), call('mangrove.algo.wcc')).count()",
        &[(COUNT + 1).into()],
    );
    // Written in more than one transaction would need more vertices than a test has; the row counts them all.
    let written =
        texts(&database, "g.call('mangrove.algo.pagerank').with('write', 'rank').select('written', 'skipped')");
    assert_eq!(written, [format!("{{written={COUNT}, skipped=0}}")]);
    check(&database, "g.V().has('rank', gt(0)).count()", &[COUNT.into()]);
}

#[test]
fn values_are_written_as_properties() {
    let database = graph();
    let row = ask(&database, "g.call('mangrove.algo.wcc', [vertices: 'person', write: 'group'])").unwrap();
    let [Value::Map(entries)] = &row[..] else { panic!("{row:?}") };
    assert!(
        entries.iter().any(|(key, value)| *key == "timestamp".into() && matches!(value, Value::I64(1..))),
        "{row:?}"
    );
    check(&database, "g.V().has('group').count()", &[5_i64.into()]);
    check(&database, "g.V().hasLabel('robot').has('group').count()", &[0_i64.into()]);
    // A component is written as the id of its vertex.
    check(&database, "g.V().values('group').dedup().count()", &[2_i64.into()]);
    check(&database, "g.V().has('name', 'd').values('group').is(within(10, 20)).count()", &[1_i64.into()]);
    fails(
        &database,
        "g.call('mangrove.algo.wcc').with('write', 1)",
        ErrorKind::InvalidArgument,
        "the key of a property",
    );
}

#[test]
fn named_projections_show_the_moment_of_the_query() {
    let database = graph();
    let create =
        "g.call('mangrove.projection.create').with('name', 'all').with('edges', 'knows').with('directed', false)";
    let made = text(&ask(&database, create).unwrap()[0]);
    assert!(
        made.contains("vertex_count=6") && made.contains("cell_count=6") && made.contains("directed=false"),
        "{made}"
    );
    fails(&database, create, ErrorKind::InvalidArgument, "a projection 'all' already");
    let reached = "g.call('mangrove.algo.bfs').with('projection', 'all').with('source', 1).select('vertex').count()";
    check(&database, reached, &[3_i64.into()]);
    check(&database, "g.V(3).as('c').V(30).addE('knows').from('c').count()", &[1_i64.into()]);
    check(&database, reached, &[4_i64.into()]);
    let refresh = "g.call('mangrove.projection.refresh').with('name', 'all').select('cell_count')";
    check(&database, refresh, &[8_i64.into()]);
    check(&database, "g.call('mangrove.projection.list').select('name')", &["all".into()]);
    let both = "g.call('mangrove.algo.bfs').with('projection', 'all').with('source', 1).with('edges', 'knows')";
    fails(&database, both, ErrorKind::InvalidArgument, "a projection and the option 'edges'");
    let weighted = "g.call('mangrove.algo.sssp').with('projection', 'all').with('source', 1).with('weight', 'km')";
    fails(&database, weighted, ErrorKind::InvalidArgument, "made with the same 'weight'");
    check(&database, "g.call('mangrove.projection.drop').with('name', 'all').select('name')", &["all".into()]);
    fails(&database, reached, ErrorKind::NotFound, "no projection 'all'. There are: none");
    let directed = "g.call('mangrove.projection.create').with('name', 'out')";
    ask(&database, directed).unwrap();
    let needs = "g.call('mangrove.algo.louvain').with('projection', 'out')";
    fails(&database, needs, ErrorKind::InvalidArgument, "made with 'directed' false");
    let unknown = "g.call('mangrove.projection.create').with('name', 'x').with('vertices', 'city')";
    fails(&database, unknown, ErrorKind::NotFound, "no label 'city'");
}

/// Keys of a traversal's algorithms have numbers that other traversals use for other keys. No kept projection may be taken for one
/// with the weights of another traversal.
#[test]
fn weights_under_the_key_of_an_algorithm_are_those_that_are_stored() {
    let database = Database::in_memory();
    let script = "g.addV('place').property(id, 1).as('a').addV('place').property(id, 2).as('b').\
                  addE('road').from('a').to('b').property('km', 5.0).property('hours', 2.0)";
    ask(&database, script).unwrap();
    let length = |key: &str| {
        format!(
            "g.withComputer().V(1).pageRank().with(PageRank.propertyName, '{key}').\
             call('mangrove.algo.sssp').with('source', 1).with('weight', '{key}').select('distance').max()"
        )
    };
    check(&database, &length("km"), &[5.0_f64.into()]);
    check(&database, &length("hours"), &[2.0_f64.into()]);
}

#[test]
fn the_memory_of_a_run_is_estimated_without_running() {
    let database = graph();
    let ask_one = |script: &str| text(&ask(&database, script).unwrap_or_else(|error| panic!("{script}: {error}"))[0]);
    let estimate = "g.call('mangrove.algo.estimate').with('algorithm', 'pagerank')";
    let first = ask_one(estimate);
    assert!(first.starts_with("{algorithm=pagerank, projection=") && first.contains("kept=false"), "{first}");
    ask(&database, "g.call('mangrove.algo.pagerank')").unwrap();
    let kept = ask_one(estimate);
    assert!(kept.contains("kept=true"), "{kept}");
    let only_state = format!("{estimate}.select('needed', 'state').select(values).unfold().dedup().count()");
    check(&database, &only_state, &[1_i64.into()]);
    // Of the persons alone it is less.
    let some =
        ask_one("g.call('mangrove.algo.estimate', [algorithm: 'pagerank', options: [vertices: 'person', write: 'x']])");
    assert!(some.contains("kept=false") && some != first, "{some}");
    ask(&database, "g.withStrategies(ReadOnlyStrategy).call('mangrove.algo.estimate').with('algorithm', 'wcc')")
        .unwrap();
    for (options, message) in [
        ("", "the name of an algorithm"),
        (".with('algorithm', 'rank')", "no algorithm 'rank'. There are:"),
        (".with('algorithm', 1)", "a string"),
        (".with('algorithm', 'bfs')", "needs the option 'source'"),
        (".with('algorithm', 'bfs').with('source', 1)", "takes algorithm, options, not 'source'"),
        (".with('algorithm', 'wcc').with('options', 1)", "a map of names to values"),
        (".with('algorithm', 'wcc').with('options', [rounds: 2])", "wcc has no option 'rounds'"),
        (".with('algorithm', 'katz').with('options', [beta: -1])", "a number from 0 on"),
        (".with('algorithm', 'bfs').with('options', [source: 1, write: 'x'])", "bfs has no option 'write'"),
    ] {
        let error = ask(&database, &format!("g.call('mangrove.algo.estimate'){options}")).expect_err(options);
        assert!(error.message().contains(message), "{options}: {error}");
    }
}
