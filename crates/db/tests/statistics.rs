//! The service `mangrove.statistics`: its rows say what queries count, also in a graph that was opened again.

use std::path::PathBuf;

use mangrove::{Database, DatabaseOptions, ErrorKind, Value};

/// A directory for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mangrove-statistics-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn open(&self) -> Database {
        let options = DatabaseOptions { tablet_count: 4, ..DatabaseOptions::default() };
        Database::open(self.0.to_str().unwrap(), &options).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
fn ask(db: &Database, script: &str) -> Vec<Value> {
    db.query(script).and_then(|results| results.collect()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

#[track_caller]
fn number(db: &Database, script: &str) -> i64 {
    match ask(db, script)[..] {
        [Value::I64(number)] => number,
        ref other => panic!("{script}: {other:?}"),
    }
}

fn field(row: &Value, name: &str) -> Value {
    let Value::Map(entries) = row else { panic!("{row:?} is no map") };
    let found = entries.iter().find(|(key, _)| *key == Value::from(name));
    found.unwrap_or_else(|| panic!("{row:?} has no {name}")).1.clone()
}

fn text(row: &Value, name: &str) -> String {
    match field(row, name) {
        Value::String(text) => text.to_string(),
        other => panic!("{name} is {other:?}"),
    }
}

/// People who know and like one another, and things that they own.
fn fill(db: &Database) {
    let add = |label: &str, id: usize| ask(db, &format!("g.addV('{label}').property(id, {id}).property('n', {id})"));
    (0..12).for_each(|id| drop(add(if id % 4 == 3 { "person::robot" } else { "person" }, id)));
    (20..23).for_each(|id| drop(add("thing", id)));
    let join = |label: &str, from: usize, to: usize| {
        ask(db, &format!("g.addE('{label}').from(__.V({from})).to(__.V({to}))"));
    };
    for n in 0..40 {
        join("knows", n * n % 12, (n * 7 + n / 12) % 12);
        join(if n % 3 == 0 { "likes" } else { "owns" }, n % 5, 20 + n / 3 % 3);
    }
    ask(db, "g.V(3).drop()");
    ask(db, "g.E().hasLabel('knows').limit(3).drop()");
}

/// Each row equals what a query counts.
fn check(db: &Database) {
    let rows = ask(db, "g.call('mangrove.statistics').with('refresh', true)");
    assert_eq!(field(&rows[0], "vertices"), number(db, "g.V().count()").into());
    assert_eq!(field(&rows[0], "edges"), number(db, "g.E().count()").into());
    assert_eq!((field(&rows[0], "commits_since"), field(&rows[0], "stale")), (0_i64.into(), false.into()));
    let mut facts = Vec::new();
    for row in &rows[1..] {
        facts.push(text(row, "fact"));
        let label = text(row, "label");
        // Exactly these labels.
        let vertices = match label.as_str() {
            "person::robot" => "g.V().hasLabel('person').hasLabel('robot')".to_owned(),
            "person" => "g.V().hasLabel('person').not(hasLabel('robot'))".to_owned(),
            label => format!("g.V().hasLabel('{label}')"),
        };
        if text(row, "fact") == "vertices" {
            assert_eq!(field(row, "vertices"), number(db, &format!("{vertices}.count()")).into(), "{row:?}");
            continue;
        }
        let hop = format!("{}E('{}')", text(row, "direction").to_lowercase(), text(row, "edge"));
        let edges = number(db, &format!("{vertices}.{hop}.count()"));
        let sources = number(db, &format!("{vertices}.where({hop}).count()"));
        let max = number(db, &format!("{vertices}.map({hop}.count()).max()"));
        assert_eq!(field(row, "edges"), edges.into(), "{row:?}");
        assert_eq!((field(row, "vertices"), field(row, "max")), (sources.into(), max.into()), "{row:?}");
        let all = number(db, &format!("{vertices}.count()"));
        assert_eq!(field(row, "mean"), (edges as f64 / all as f64).into());
        // The buckets of this table, by the degree that each begins at.
        let bucket_rows = ask(
            db,
            &format!(
                "g.call('mangrove.statistics').with('label', '{label}').with('edge', '{}').with('histogram', true)",
                text(row, "edge")
            ),
        );
        let is_here = |other: &&Value| {
            text(other, "fact") == "bucket" && ["label", "direction"].iter().all(|n| field(other, n) == field(row, n))
        };
        let mut vertices_in_buckets = 0;
        for bucket in bucket_rows.iter().filter(is_here) {
            let Value::I64(from) = field(bucket, "degree_from") else { panic!("{bucket:?}") };
            let until = (from * 2).max(1);
            let inside =
                number(db, &format!("{vertices}.where({hop}.count().is(gte({from}).and(lt({until})))).count()"));
            assert_eq!(field(bucket, "vertices"), inside.into(), "{bucket:?}");
            vertices_in_buckets += inside;
        }
        assert_eq!(vertices_in_buckets, all, "each vertex has a degree: {row:?}");
    }
    assert_eq!(facts.iter().filter(|fact| *fact == "vertices").count(), 3);
    assert!(facts.iter().filter(|fact| *fact == "degrees").count() >= 7, "{facts:?}");
}

#[test]
fn rows_say_what_queries_count_also_after_the_graph_was_opened_again() {
    let folder = Folder::new("opened");
    let db = folder.open();
    fill(&db);
    check(&db);
    drop(db);
    // From the log alone.
    let db = folder.open();
    assert!(db.statistics().is_none(), "statistics are not kept with the graph");
    check(&db);
    ask(&db, "g.call('mangrove.checkpoint')");
    ask(&db, "g.V(5).drop()");
    drop(db);
    check(&folder.open());
}

#[test]
fn walks_are_pairs_of_edges_of_one_vertex() {
    let db = Database::in_memory();
    fill(&db);
    let rows = ask(&db, "g.call('mangrove.statistics').with('label', 'thing').with('walks', true)");
    let walks = |row: &&Value| text(row, "fact") == "walks";
    let [first, second, third] = &rows.iter().filter(walks).collect::<Vec<_>>()[..] else { panic!("{rows:?}") };
    for (row, from, to) in [(first, "likes", "likes"), (second, "likes", "owns"), (third, "owns", "owns")] {
        assert_eq!((text(row, "edge"), text(row, "other_edge")), (from.to_owned(), to.to_owned()));
        let counted = number(&db, &format!("g.V().hasLabel('person').out('{from}').in('{to}').count()"));
        assert_eq!(field(row, "walks"), counted.into(), "{row:?}");
    }
    let error = db.query("g.call('mangrove.statistics').with('walks', true)").and_then(|rows| rows.collect());
    let error = error.unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("'label'"), "{error}");
}

/// The facts say what the edges of a graph say that has lost none.
#[test]
fn connections_say_where_edges_lead() {
    let db = Database::in_memory();
    ask(&db, "g.addV('person').property(T.id, 1).addV('person').property(T.id, 2).addV('thing').property(T.id, 3)");
    ask(&db, "g.addV('shop').property(T.id, 4)");
    let connections = |options: &str| {
        let rows = ask(&db, &format!("g.call('mangrove.statistics').with('connections', true){options}"));
        let mut shown: Vec<String> = (rows.iter().filter(|row| text(row, "fact") == "connection"))
            .map(|row| {
                let [label, direction, edge] = ["label", "direction", "edge"].map(|entry| text(row, entry));
                let Value::List(ends) = field(row, "ends") else { panic!("{row:?}") };
                let name = |end: &Value| match end {
                    Value::String(name) => name.to_string(),
                    other => panic!("{other:?} is no label"),
                };
                let mut ends: Vec<String> = ends.iter().map(name).collect();
                ends.sort_unstable();
                let several = if field(row, "functional") == true.into() { "one" } else { "several" };
                format!("{label} {direction} {edge} {}: {several}", ends.join(" "))
            })
            .collect();
        shown.sort_unstable();
        shown
    };
    assert_eq!(connections(""), Vec::<String>::new());
    ask(&db, "g.V(1).addE('owns').to(__.V(3))");
    assert_eq!(connections(""), ["person OUT owns thing: one", "thing IN owns person: one"]);
    ask(&db, "g.V(2).addE('owns').to(__.V(3))");
    ask(&db, "g.V(2).addE('likes').to(__.V(4))");
    ask(&db, "g.V(2).addE('likes').to(__.V(1))");
    let likes = ["person IN likes person: one", "person OUT likes person shop: several", "shop IN likes person: one"];
    assert_eq!(connections(".with('edge', 'likes')"), likes);
    assert_eq!(connections(".with('label', 'thing')"), ["thing IN owns person: several"]);
    assert!(ask(&db, "g.call('mangrove.statistics')").iter().all(|row| text(row, "fact") != "connection"));
}

#[test]
fn what_is_asked_for_is_shown_and_no_more() {
    let db = Database::in_memory();
    fill(&db);
    db.create_index(Some("thing"), "n", true, false).unwrap();
    let labels = |script: &str| {
        let mut labels: Vec<String> = ask(&db, script)[1..].iter().map(|row| text(row, "label")).collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    };
    assert_eq!(labels("g.call('mangrove.statistics')"), ["person", "person::robot", "thing"]);
    assert_eq!(labels("g.call('mangrove.statistics').with('label', 'robot')"), ["person::robot"]);
    assert_eq!(labels("g.call('mangrove.statistics').with('label', 'person')"), ["person", "person::robot"]);
    assert_eq!(labels("g.call('mangrove.statistics').with('label', 'unused')"), Vec::<String>::new());
    let index = "g.call('mangrove.statistics').with('label', 'thing').select('distinct')";
    assert_eq!(ask(&db, index), [3_i64.into()]);
    // Without a refresh the figures stay, with their age.
    ask(&db, "g.addV('thing')");
    let first = || ask(&db, "g.call('mangrove.statistics')").swap_remove(0);
    assert_eq!((field(&first(), "vertices"), field(&first(), "commits_since")), (14_i64.into(), 1_i64.into()));
    let refreshed = ask(&db, "g.call('mangrove.statistics').with('refresh', true)").swap_remove(0);
    assert_eq!(field(&refreshed, "vertices"), 15_i64.into());
    assert_eq!(field(&first(), "vertices"), 15_i64.into());
}
