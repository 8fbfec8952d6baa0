//! Random walks on the live graph: what they find corrects the rows that a costly order is expected to make, and they are
//! no reads of the transaction for which the plan is made.

use mangrove::{Database, Isolation, Parameters, TransactionOptions, UserId, Value, VertexId};

const CIRCLE: usize = 30;
const CIRCLES: usize = 50;
const PEOPLE: usize = CIRCLE * CIRCLES;

/// People in circles in which everybody knows everybody. The first of each circle is a `host`, who also knows people of all
/// others.
fn circles() -> Database {
    let db = Database::in_memory();
    let transaction = db.begin().unwrap();
    let catalog = db.catalog();
    let (person, knows) = (catalog.intern_label_text("person"), catalog.intern_label_text("knows"));
    let ids: Vec<UserId> = (0..PEOPLE as i64).map(UserId::from).collect();
    let people: Vec<VertexId> = transaction.insert_vertices(person, &ids).unwrap();
    let is_host = |n: usize| n.is_multiple_of(CIRCLE);
    let mut ends = Vec::new();
    for n in 0..PEOPLE {
        let first = n / CIRCLE * CIRCLE;
        ends.extend((first..first + CIRCLE).filter(|other| *other != n).map(|other| (people[n], people[other])));
        if is_host(n) {
            ends.extend((0..300).map(|k| (people[n], people[(n + k * 97) % PEOPLE])));
        }
    }
    let edges = transaction.insert_edges(knows, &ends).unwrap();
    let from_host = |(source, _): &(VertexId, VertexId)| people.iter().step_by(CIRCLE).any(|host| host == source);
    let weights = edges.iter().zip(&ends).map(|(edge, ends)| (*edge, Value::from(i64::from(from_host(ends)))));
    transaction.set_edge_property("w", &weights.collect::<Vec<_>>()).unwrap();
    let kinds = (0..PEOPLE).map(|n| (people[n], Value::from(if is_host(n) { "host" } else { "guest" })));
    transaction.set_vertex_property("kind", &kinds.collect::<Vec<_>>()).unwrap();
    let numbers = (0..PEOPLE).map(|n| (people[n], Value::from(n as i64)));
    transaction.set_vertex_property("n", &numbers.collect::<Vec<_>>()).unwrap();
    transaction.commit().unwrap();
    db.measure_statistics(&mut || Ok(())).unwrap();
    db
}

#[track_caller]
fn ask(db: &Database, script: &str) -> Vec<Value> {
    db.query(script).and_then(|results| results.collect()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// The line of a plan about its order, and the last number of the rows that are expected.
fn order_of(plan: &str) -> (String, f64) {
    let line = plan.lines().find(|line| line.starts_with("order:")).unwrap_or_else(|| panic!("{plan}"));
    let expected = line.split("expected rows ").nth(1).unwrap_or_else(|| panic!("{plan}"));
    let rows = expected.split(';').next().unwrap().rsplit(' ').next().unwrap();
    (line.to_owned(), rows.parse().unwrap_or_else(|_| panic!("{plan}")))
}

fn results(db: &Database, script: &str) -> f64 {
    let counted = ask(db, &format!("{script}.count()"));
    let [Value::I64(count)] = counted[..] else { panic!("{script}: {counted:?}") };
    count as f64
}

#[test]
fn plans_of_costly_orders_expect_what_walks_have_found() {
    let db = circles();
    for script in [
        // Triangles: in a circle nearly all neighbors of neighbors are neighbors.
        "g.V().hasLabel('person').as('a').out('knows').out('knows').out('knows').where(eq('a')).values('n')",
        // Two hops that no edge closes.
        "g.V().hasLabel('person').as('a').out('knows').out('knows').where(neq('a')).\
         not(out('knows').where(eq('a'))).out('knows').values('n')",
        // Hosts know more people than others.
        "g.V().hasLabel('person').as('a').out('knows').has('kind', 'host').out('knows').out('knows').\
         where(neq('a')).values('n')",
        // Edges of hosts alone.
        "g.V().hasLabel('person').as('a').outE('knows').has('w', gt(0)).inV().out('knows').out('knows').where(neq('a')).\
         values('n')",
        // A comparison of values.
        "g.V().hasLabel('person').as('a').out('knows').as('b').where(gt('a')).by('n').out('knows').as('c').\
         where(gt('b')).by('n').out('knows').where(eq('a')).values('n')",
    ] {
        let (line, expected) = order_of(&db.explain(script).unwrap());
        assert!(line.contains("random walks"), "{script}: {line}");
        let found = results(&db, script);
        let error = (expected / found).max(found / expected);
        assert!(error < 2.0, "{script}: {found} results, {expected} expected: {line}");
    }
}

/// The last number of rows is that of an operator, too.
#[test]
fn operators_show_the_rows_that_walks_have_found() {
    let db = circles();
    let script = "g.V().hasLabel('person').as('a').out('knows').out('knows').as('c').where(neq('a')).out('knows').\
                  where(eq('a')).select('c').values('n')";
    let plan = db.explain(script).unwrap();
    let (line, expected) = order_of(&plan);
    assert!(line.contains("random walks"), "{plan}");
    assert!(plan.lines().skip(3).any(|line| line.contains(&format!("(~{expected:.0} rows)"))), "{plan}");
}

#[test]
fn a_walk_is_no_read_of_the_transaction() {
    let db = circles();
    let isolation = Isolation::Serializable;
    let writer = db.begin_with(TransactionOptions { isolation, ..TransactionOptions::default() }).unwrap();
    let script = "g.V().hasLabel('person').as('a').out('knows').out('knows').out('knows').where(eq('a')).values('n')";
    let explained = writer.query(&format!("{script}.explain()")).unwrap().collect().unwrap();
    let [Value::String(plan)] = &explained[..] else { panic!("{explained:?}") };
    assert!(plan.contains("random walks"), "{plan}");
    // Every vertex gets another edge, so all lists that were looked at change.
    ask(&db, "g.V().hasLabel('person').as('a').addE('knows').to('a').count()");
    writer.query("g.addV('note')").unwrap().collect().unwrap();
    writer.commit().expect("the transaction has read nothing that has changed");
}

/// The value of a parameter is unknown when the plan is made, so walks end before the test of it.
#[test]
fn conditions_on_parameters_end_a_walk() {
    let db = circles();
    let script = "g.V().hasLabel('person').as('a').out('knows').has('kind', kind).out('knows').out('knows').\
                  where(eq('a')).values('n')";
    let prepared = db.prepare(script).unwrap();
    for kind in ["host", "guest", "nobody"] {
        let parameters = Parameters::from_iter([("kind".into(), Value::from(kind))]);
        let found = db.run(&prepared, &parameters).unwrap().collect().unwrap().len();
        let literal = results(&db, &script.replace("kind)", &format!("'{kind}')")));
        assert_eq!(found as f64, literal, "{kind}");
    }
}
