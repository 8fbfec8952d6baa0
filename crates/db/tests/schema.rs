//! The optional schema: which changes rules refuse, at a commit, in a bulk load, beside writers while a rule is made,
//! and after a restart.

use std::sync::{Arc, Barrier};

use mangrove::{
    Database, DatabaseOptions, ElementKind, ErrorKind, LoadOptions, Mapping, Result, RuleDefinition, SimDisk, Value,
};

fn ask(db: &Database, script: &str) -> Vec<Value> {
    db.query(script).and_then(|results| results.collect()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

fn count(db: &Database, script: &str) -> i64 {
    match ask(db, script).as_slice() {
        [Value::I64(n)] => *n,
        other => panic!("{script}: {other:?}"),
    }
}

/// Checks that a script is refused with these words in the message, and that the graph is unchanged.
#[track_caller]
fn refused(db: &Database, script: &str, words: &[&str]) {
    let before = ask(db, "g.V().order().by(id).valueMap(true)");
    let error = db.query(script).and_then(|results| results.collect()).expect_err(script);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{script}: {error}");
    words.iter().for_each(|word| assert!(error.message().contains(word), "{script}: {error} does not say {word}"));
    assert_eq!(ask(db, "g.V().order().by(id).valueMap(true)"), before, "{script}");
}

fn required(label: &str, key: &str) -> RuleDefinition {
    RuleDefinition::Required { kind: ElementKind::Vertex, label: label.into(), key: key.into() }
}

fn typed(label: &str, key: &str, value_type: &str) -> RuleDefinition {
    RuleDefinition::Typed {
        kind: ElementKind::Vertex,
        label: label.into(),
        key: key.into(),
        value_type: value_type.into(),
    }
}

fn ends(label: &str, pairs: &[(&str, &str)]) -> RuleDefinition {
    let pairs = pairs.iter().map(|(from, to)| ((*from).into(), (*to).into())).collect();
    RuleDefinition::Ends { label: label.into(), pairs }
}

#[test]
fn a_required_property_is_there_when_a_transaction_commits() {
    let db = Database::in_memory();
    db.define_rule(&required("person", "name")).unwrap();
    refused(&db, "g.addV('person').property(T.id, 7)", &["vertex 7 (person)", "no 'name'", "rule 0"]);
    ask(&db, "g.addV('person').property(T.id, 1).property('name', 'ada')");
    ask(&db, "g.addV('thing')");
    // Not before the commit: in between it may be missing.
    let transaction = db.begin().unwrap();
    transaction.query("g.addV('person').property(T.id, 2)").unwrap().collect().unwrap();
    transaction.query("g.V(2).property('name', 'bob')").unwrap().collect().unwrap();
    transaction.commit().unwrap();
    refused(&db, "g.V(2).properties('name').drop()", &["vertex 2 (person)", "no 'name'"]);
    // Changes of other keys, new values and deletions are free.
    ask(&db, "g.V(2).property('age', 3).property('name', 'rob')");
    ask(&db, "g.V(2).drop()");
    // Of several labels one is enough.
    refused(&db, "g.addV('employee::person')", &["no 'name'"]);
    let error = db.query("g.mergeV([(T.label): 'person', (T.id): 9])").and_then(|r| r.collect()).unwrap_err();
    assert!(error.message().contains("every vertex 'person' has 'name'"), "{error}");
}

#[test]
fn values_are_of_the_type_all_of_them() {
    let db = Database::in_memory();
    db.define_rule(&typed("person", "name", "string")).unwrap();
    db.define_rule(&typed("person", "age", "integer")).unwrap();
    refused(&db, "g.addV('person').property('name', 7)", &["'name' is a int", "is of type string"]);
    refused(&db, "g.addV('person').property(list, 'name', 'a').property(list, 'name', 1.5)", &["'name' is a double"]);
    ask(&db, "g.addV('person').property(T.id, 1).property('name', 'a').property('age', 7L).property('other', 1.5)");
    ask(&db, "g.V(1).property('age', 8)");
    refused(&db, "g.V(1).property('age', '8')", &["vertex 1 (person)", "'age' is a string", "of type integer"]);
    ask(&db, "g.V(1).properties('age').drop()");
    let error = db.define_rule(&typed("person", "x", "text")).unwrap_err();
    assert!(error.message().contains("no type 'text'"), "{error}");
}

#[test]
fn edges_lead_where_they_may() {
    let db = Database::in_memory();
    ask(
        &db,
        "g.addV('person').property(T.id, 1).addV('company').property(T.id, 2).addV('city::place').property(T.id, 3)",
    );
    db.define_rule(&ends("at", &[("person", "company"), ("company", "place")])).unwrap();
    ask(&db, "g.V(1).addE('at').to(V(2))");
    ask(&db, "g.V(2).addE('at').to(V(3))");
    ask(&db, "g.V(2).addE('other').to(V(1))");
    refused(
        &db,
        "g.V(2).addE('at').to(V(1))",
        &["(at)", "leads from 'company' to 'person'", "or 'company' to 'place'"],
    );
    refused(&db, "g.addV('person').as('p').V(3).addE('at').to('p')", &["from 'city::place' to 'person'"]);
    assert_eq!(count(&db, "g.E().count()"), 3);
    db.define_rule(&RuleDefinition::Required { kind: ElementKind::Edge, label: "since".into(), key: "year".into() })
        .unwrap();
    refused(&db, "g.V(1).addE('since').to(V(2))", &["edge", "(since)", "no 'year'"]);
    ask(&db, "g.V(1).addE('since').to(V(2)).property('year', 2000)");
}

#[test]
fn a_rule_that_something_breaks_is_not_made() {
    let db = Database::in_memory();
    ask(
        &db,
        "g.addV('person').property(T.id, 'x').addV('company').property(T.id, 2).addE('at').to(V('x')).property('n', 1)",
    );
    for (rule, words) in [
        (required("person", "name"), ["vertex 'x' (person)", "no 'name'"]),
        (ends("at", &[("person", "company")]), ["(at)", "leads from 'company' to 'person'"]),
        (
            RuleDefinition::Typed {
                kind: ElementKind::Edge,
                label: "at".into(),
                key: "n".into(),
                value_type: "string".into(),
            },
            ["(at)", "'n' is a int"],
        ),
    ] {
        let error = db.define_rule(&rule).unwrap_err();
        words.iter().for_each(|word| assert!(error.message().contains(word), "{error} does not say {word}"));
    }
    assert_eq!(db.rules(), []);
    ask(&db, "g.addV('person')");
}

#[test]
fn rules_are_made_listed_and_dropped_by_call() {
    let db = Database::in_memory();
    ask(&db, "g.call('mangrove.schema.require').with('label', 'person').with('key', 'name')");
    ask(&db, "g.call('mangrove.schema.type').with('label', 'person').with('key', 'name').with('type', 'string')");
    ask(&db, "g.call('mangrove.schema.ends').with('label', 'knows').with('ends', [['person', 'person']])");
    let texts = ask(&db, "g.call('mangrove.schema.list').select('text')");
    let expected = [
        "every vertex 'person' has 'name'",
        "'name' of every vertex 'person' is of type string",
        "every edge 'knows' leads from 'person' to 'person'",
    ];
    assert_eq!(texts, expected.map(Value::from));
    let again = db.define_rule(&typed("person", "name", "long")).unwrap_err();
    assert!(again.kind() == ErrorKind::DuplicateId && again.message().contains("rule 1"), "{again}");
    ask(&db, "g.call('mangrove.schema.drop').with('id', 0)");
    ask(&db, "g.addV('person')");
    assert_eq!(count(&db, "g.call('mangrove.schema.list').count()"), 2);
    let unknown = db.query("g.call('mangrove.schema.drop').with('id', 0)").and_then(|r| r.collect()).unwrap_err();
    assert!(unknown.kind() == ErrorKind::NotFound && unknown.message().contains("mangrove.schema.list"), "{unknown}");
    let bad =
        db.query("g.call('mangrove.schema.ends').with('label', 'x').with('ends', ['a'])").and_then(|r| r.collect());
    assert!(bad.unwrap_err().message().contains("pairs of labels"));
}

#[test]
fn a_bulk_load_keeps_to_the_rules() {
    let folder = std::env::temp_dir().join(format!("mangrove-schema-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("person.csv");
    let load = |rows: &str| -> Result<()> {
        std::fs::write(&file, format!("~id,~label,name:String\n{rows}")).unwrap();
        let db = Database::in_memory();
        db.define_rule(&required("person", "name")).unwrap();
        let options = LoadOptions { mapping: None::<Mapping>, ..LoadOptions::default() };
        let loaded = db.load(std::slice::from_ref(&file), &options, &mut |_| {}).map(drop);
        assert_eq!(count(&db, "g.V().count()"), if loaded.is_ok() { 2 } else { 0 });
        // The graph takes transactions afterwards, by its rules.
        refused(&db, "g.addV('person')", &["no 'name'"]);
        loaded
    };
    load("1,person,ada\n2,person,bob\n").unwrap();
    let error = load("1,person,ada\n2,person,\n").unwrap_err();
    assert!(error.message().contains("no 'name'"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A commit races with the creation of a rule. Either the rule is created and the commit refused, or the commit
/// succeeds and the rule is refused, or they do not concern each other.
#[test]
fn a_rule_made_beside_writers_holds_of_everything() {
    const WRITERS: usize = 3;
    let (mut made_count, mut refused_count) = (0, 0);
    for round in 0..150 {
        let db = Database::in_memory();
        let start = Barrier::new(WRITERS + 1);
        let made = std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (db, start) = (&db, &start);
                scope.spawn(move || {
                    start.wait();
                    for n in 0..4 {
                        let name = if (round + writer + n) % 3 == 0 { "" } else { ".property('name', 'x')" };
                        let outcome =
                            db.query(&format!("g.addV('person'){name}")).and_then(|results| results.collect());
                        if let Err(error) = outcome {
                            assert!(error.message().contains("no 'name'"), "{error}");
                        }
                    }
                });
            }
            start.wait();
            db.define_rule(&required("person", "name"))
        });
        let without = count(&db, "g.V().hasLabel('person').hasNot('name').count()");
        match made {
            Ok(_) => {
                made_count += 1;
                assert_eq!(without, 0, "round {round}: a commit slipped past the rule");
            }
            Err(error) => {
                refused_count += 1;
                assert!(error.message().contains("no 'name'") && without > 0, "round {round}: {error}");
                assert_eq!(db.rules(), []);
            }
        }
    }
    println!("{made_count} rules made, {refused_count} refused");
}

#[test]
fn rules_outlive_a_restart_from_the_log_and_from_a_checkpoint() {
    let folder = std::env::temp_dir().join(format!("mangrove-schema-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let open = || Database::open(folder.to_str().unwrap(), &DatabaseOptions::default()).unwrap();
    let db = open();
    ask(&db, "g.addV('person').property(T.id, 1).property('name', 'ada')");
    db.define_rule(&required("person", "name")).unwrap();
    let second = db.define_rule(&typed("person", "name", "string")).unwrap();
    db.define_rule(&ends("knows", &[("person", "person")])).unwrap();
    let rules = db.rules();
    // As it is left by a process that was killed: nothing is written at the end.
    drop(db);
    let db = open();
    assert_eq!(db.rules(), rules);
    refused(&db, "g.addV('person')", &["no 'name'"]);
    db.drop_rule(second).unwrap();
    db.checkpoint().unwrap();
    drop(db);
    let db = open();
    assert_eq!(db.rules().iter().map(|rule| rule.id).collect::<Vec<_>>(), [rules[0].id, rules[2].id]);
    ask(&db, "g.addV('person').property('name', 7)");
    // A number is not given twice.
    assert!(db.define_rule(&typed("person", "age", "integer")).unwrap() > rules[2].id);
    drop(db);
    let db = open();
    assert_eq!(db.rules().len(), 3);
    refused(&db, "g.addV('person').property('name', 'x').property('age', 'old')", &["'age' is a string"]);
    drop(db);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// After a power cut, created rules exist and dropped ones do not.
#[test]
fn rules_outlive_a_power_cut() {
    for seed in 0..20 {
        let disk = SimDisk::new();
        let open = |disk: &SimDisk| Database::open_on(Arc::new(disk.clone()), &DatabaseOptions::default()).unwrap();
        let db = open(&disk);
        ask(&db, "g.addV('person').property('name', 'ada')");
        db.define_rule(&required("person", "name")).unwrap();
        let made = db.rules();
        let after = disk.power_cut(seed);
        let db = open(&after);
        assert_eq!(db.rules(), made, "seed {seed}");
        refused(&db, "g.addV('person')", &["no 'name'"]);
        db.drop_rule(made[0].id).unwrap();
        let db = open(&after.power_cut(seed));
        assert_eq!(db.rules(), [], "seed {seed}");
    }
}
