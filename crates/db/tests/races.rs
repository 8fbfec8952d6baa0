//! Races whose outcome must be right in any order. If several transactions merge the same element, one makes it. A
//! unique index never has two owners of a value. Commits keep the rules of the schema, also those that are made
//! meanwhile.
//!
//! The same over the wire is in the tests of `crates/server`, after kills in those of `crates/cli`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use mangrove::{
    Database, ElementKind, ErrorKind, IndexDefinition, Isolation, Remedy, Result, RuleDefinition, RuleDescription,
    TransactionOptions, Value,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const THREADS: u64 = 4;

fn ask(database: &Database, script: &str) -> Vec<Value> {
    database.query(script).and_then(|r| r.collect()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

fn count(database: &Database, script: &str) -> i64 {
    match ask(database, script).as_slice() {
        [Value::I64(n)] => *n,
        other => panic!("{script}: {other:?}"),
    }
}

/// Runs the same on several threads, each with a generator of its own.
fn on_threads(run: impl Fn(u64, &mut SmallRng) + Sync) {
    std::thread::scope(|scope| {
        let run = &run;
        (0..THREADS).for_each(|n| drop(scope.spawn(move || run(n, &mut SmallRng::seed_from_u64(n)))));
    });
}

/// Runs a script in one transaction; a failure rolls it back.
fn attempt(database: &Database, isolation: Isolation, script: &str) -> Result<Vec<Value>> {
    let transaction = database.begin_with(TransactionOptions { isolation, ..TransactionOptions::default() })?;
    let results = transaction.query(script)?.collect()?;
    transaction.commit()?;
    Ok(results)
}

/// Runs a script until no other transaction comes between.
fn insist(database: &Database, isolation: Isolation, script: &str) -> Vec<Value> {
    loop {
        match attempt(database, isolation, script) {
            Ok(results) => return results,
            Err(error) => assert_eq!(error.remedy(), Remedy::RetryTransaction, "{script}: {error}"),
        }
        std::thread::yield_now();
    }
}

fn index(keys: &[&str], unique: bool) -> IndexDefinition {
    let keys = keys.iter().map(|key| (*key).into()).collect();
    IndexDefinition { label: Some("person".into()), keys, unique, ..IndexDefinition::default() }
}

/// Merges of few things from all threads at once, with this index. Each is there once, and was made once.
fn merge_at_once(definition: Option<IndexDefinition>, isolation: Isolation) {
    const THINGS: i64 = 12;
    let database = Database::in_memory();
    if let Some(definition) = &definition {
        database.define_index(definition).unwrap();
    }
    let (vertices_made, edges_made) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_made = |results: Vec<Value>| usize::from(results == [Value::from("made")]);
    on_threads(|_, _| {
        for n in 0..THINGS {
            let script = format!(
                "g.mergeV([(T.label): 'person', name: 'n{n}', city: 'c']).option(onCreate, [is: 'made']).\
                 option(onMatch, [is: 'met']).values('is')"
            );
            vertices_made.fetch_add(is_made(insist(&database, isolation, &script)), Ordering::SeqCst);
        }
        for n in 1..THINGS {
            let script = format!(
                "g.V().has('person', 'name', 'n{n}').as('a').V().has('person', 'name', 'n0').as('b').\
                 mergeE([(T.label): 'at', (OUT): Merge.outV, (IN): Merge.inV]).option(outV, select('a')).\
                 option(inV, select('b')).option(onCreate, [is: 'made']).option(onMatch, [is: 'met']).values('is')"
            );
            // Two edges with the same ends are no conflict at snapshot isolation.
            let results = insist(&database, Isolation::Serializable, &script);
            edges_made.fetch_add(is_made(results), Ordering::SeqCst);
        }
    });
    let what = format!("{definition:?}, {isolation:?}");
    assert_eq!(vertices_made.into_inner() as i64, THINGS, "{what}");
    assert_eq!(count(&database, "g.V().count()"), THINGS, "{what}");
    assert_eq!(edges_made.into_inner() as i64, THINGS - 1, "{what}");
    assert_eq!(count(&database, "g.E().hasLabel('at').count()"), THINGS - 1, "{what}");
    assert_eq!(count(&database, "g.V().hasLabel('person').where(out('at').count().is(1)).count()"), THINGS - 1);
}

#[test]
fn an_element_that_all_threads_merge_is_made_once_without_and_with_an_index() {
    for keys in [&["name"][..], &["city", "name"]] {
        for unique in [false, true] {
            merge_at_once(Some(index(keys, unique)), Isolation::Serializable);
        }
    }
    merge_at_once(None, Isolation::Serializable);
}

/// Snapshot isolation sees no others; a unique index does.
#[test]
fn an_element_that_all_threads_merge_is_made_once_at_snapshot_isolation_where_an_index_is_unique() {
    merge_at_once(Some(index(&["name"], true)), Isolation::Snapshot);
}

/// Vertices, or edges, are added, change their value and are deleted. No reader ever sees a value twice.
#[test]
fn a_value_has_one_owner_at_any_time() {
    const VALUES: u32 = 8;
    for (element, isolation, keys) in [
        (ElementKind::Vertex, Isolation::Serializable, &["mail"][..]),
        (ElementKind::Vertex, Isolation::Snapshot, &["mail"]),
        (ElementKind::Vertex, Isolation::Snapshot, &["city", "mail"]),
        (ElementKind::Edge, Isolation::Serializable, &["mail"]),
        (ElementKind::Edge, Isolation::Snapshot, &["mail"]),
        (ElementKind::Edge, Isolation::Snapshot, &["city", "mail"]),
    ] {
        let database = Database::in_memory();
        database.define_index(&IndexDefinition { element, ..index(keys, true) }).unwrap();
        // An edge is dropped with its vertex, which has no other.
        let (from, add, dropping) = match element {
            ElementKind::Vertex => ("V", "addV('person')", "drop()"),
            ElementKind::Edge => ("E", "addV('end').as('a').addE('person').to('a')", "outV().drop()"),
        };
        let running = AtomicUsize::new(THREADS as usize);
        let (done, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let write = |random: &mut SmallRng| {
            let (value, other) = (random.random_range(0..VALUES), random.random_range(0..VALUES));
            let script = match random.random_range(0..4) {
                0 => format!("g.{from}().has('person', 'mail', {value}).{dropping}"),
                1 => format!("g.{from}().has('person', 'mail', {value}).property('mail', {other})"),
                2 => format!("g.{from}().has('person', 'mail', {value}).properties('mail').drop()"),
                _ => format!("g.{add}.property('city', 'c').property('mail', {value})"),
            };
            match attempt(&database, isolation, &script) {
                Ok(_) => done.fetch_add(1, Ordering::SeqCst),
                Err(error) => {
                    let expected = [ErrorKind::DuplicateId, ErrorKind::Conflict];
                    assert!(expected.contains(&error.kind()), "{script}: {error}");
                    refused.fetch_add(1, Ordering::SeqCst)
                }
            };
        };
        std::thread::scope(|scope| {
            for seed in 0..THREADS {
                let (write, running) = (&write, &running);
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed);
                    (0..250).for_each(|_| write(&mut random));
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
            while running.load(Ordering::SeqCst) > 0 {
                let mails = ask(&database, &format!("g.{from}().hasLabel('person').has('city').values('mail')"));
                let distinct: BTreeSet<String> = mails.iter().map(|mail| format!("{mail:?}")).collect();
                assert_eq!(distinct.len(), mails.len(), "{isolation:?}: {mails:?}");
            }
        });
        assert_eq!(
            count(
                &database,
                &format!(
                    "g.{from}().has('city').has('mail').groupCount().by('mail').unfold()\
                     .where(select(values).is(gt(1))).count()"
                )
            ),
            0
        );
        let (done, refused) = (done.into_inner(), refused.into_inner());
        assert!(done > 0 && refused > 0, "{isolation:?}: {done} done, {refused} refused: nothing was decided");
    }
}

/// A traversal that finds the elements that break a rule.
fn breaking(rule: &RuleDefinition) -> String {
    match rule {
        RuleDefinition::Required { kind, label, key } => {
            let all = if *kind == ElementKind::Edge { "E" } else { "V" };
            format!("g.{all}().hasLabel('{label}').hasNot('{key}')")
        }
        RuleDefinition::Typed { kind, label, key, .. } => {
            let all = if *kind == ElementKind::Edge { "E" } else { "V" };
            format!("g.{all}().hasLabel('{label}').properties('{key}').not(value().is(typeOf(GType.STRING)))")
        }
        RuleDefinition::Ends { label, pairs } => {
            let (from, to) = &pairs[0];
            format!("g.E().hasLabel('{label}').not(and(outV().hasLabel('{from}'), inV().hasLabel('{to}')))")
        }
    }
}

fn rules() -> [RuleDefinition; 5] {
    let (person, at, key) = ("person", "at", |key: &str| key.into());
    [
        RuleDefinition::Required { kind: ElementKind::Vertex, label: person.into(), key: key("name") },
        RuleDefinition::Typed {
            kind: ElementKind::Vertex,
            label: person.into(),
            key: key("name"),
            value_type: key("string"),
        },
        RuleDefinition::Required { kind: ElementKind::Edge, label: at.into(), key: key("since") },
        RuleDefinition::Typed {
            kind: ElementKind::Edge,
            label: at.into(),
            key: key("since"),
            value_type: key("string"),
        },
        RuleDefinition::Ends { label: at.into(), pairs: vec![(person.into(), "company".into())] },
    ]
}

/// A change that may break some rule.
fn some_change(random: &mut SmallRng) -> String {
    let any = |random: &mut SmallRng| {
        format!("V().hasLabel('{}').sample(1)", ["person", "company"][random.random_range(0..2)])
    };
    let value = ["'x'", "7", "null"][random.random_range(0..3)];
    match random.random_range(0..10) {
        0 | 1 => format!("g.addV('person').property('name', {value})"),
        2 => "g.addV('person').property('name', 'y').addV('company')".into(),
        3 => format!("g.V().hasLabel('person').sample(1).property('name', {value})"),
        4 => "g.V().hasLabel('person').sample(1).properties('name').drop()".into(),
        5 | 6 => {
            let (from, to) = (any(random), any(random));
            format!("g.{from}.as('a').{to}.addE('at').from('a').property('since', {value})")
        }
        7 => format!("g.E().sample(1).property('since', {value})"),
        8 => "g.E().sample(2).drop()".into(),
        _ => "g.V().sample(2).drop()".into(),
    }
}

/// Creates and drops rules while other threads write at random, until `is_enough` returns true. An existing rule holds
/// for all elements.
fn make_and_drop_rules(database: &Database, random: &mut SmallRng, is_enough: impl Fn() -> bool) -> (usize, usize) {
    const ROUNDS_MIN: usize = 60;
    const ROUNDS_MAX: usize = 50_000;
    let (mut made, mut not_made) = (0, 0);
    for round in 0..ROUNDS_MAX {
        if round > ROUNDS_MIN && is_enough() {
            break;
        }
        let definition = &rules()[random.random_range(0..rules().len())];
        let known = database.rules().into_iter().find(|rule| rule.definition == *definition);
        if let Some(RuleDescription { id, .. }) = known {
            assert_eq!(
                count(database, &format!("{}.count()", breaking(definition))),
                0,
                "{definition:?} does not hold"
            );
            database.drop_rule(id).unwrap();
            continue;
        }
        // Without this, existing elements would break most new rules. It does not matter if another rule refuses the
        // deletion.
        if !random.random_ratio(1, 4) {
            let _ = attempt(database, Isolation::Serializable, &format!("{}.drop()", breaking(definition)));
        }
        match database.define_rule(definition) {
            Ok(_) => {
                made += 1;
                let broken = format!("{}.count()", breaking(definition));
                assert_eq!(count(database, &broken), 0, "{definition:?} was made and does not hold");
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
                not_made += 1;
            }
        }
    }
    (made, not_made)
}

#[test]
fn rules_that_are_there_hold_whoever_writes() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let database = Database::in_memory();
        let is_over = AtomicUsize::new(0);
        let (done, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (made, not_made) = std::thread::scope(|scope| {
            for seed in 0..THREADS - 1 {
                let (database, is_over, done, refused) = (&database, &is_over, &done, &refused);
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed);
                    while is_over.load(Ordering::SeqCst) == 0 {
                        let script = some_change(&mut random);
                        match attempt(database, isolation, &script) {
                            Ok(_) => done.fetch_add(1, Ordering::SeqCst),
                            Err(error) if error.kind() == ErrorKind::Conflict => continue,
                            Err(error) => {
                                assert!(error.message().contains("rule "), "{script}: {error}");
                                refused.fetch_add(1, Ordering::SeqCst)
                            }
                        };
                    }
                });
            }
            let is_enough = || done.load(Ordering::SeqCst) >= 1_000 && refused.load(Ordering::SeqCst) >= 300;
            let made = || make_and_drop_rules(&database, &mut SmallRng::seed_from_u64(99), is_enough);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(made));
            // The other threads must end, also after a failure.
            is_over.store(1, Ordering::SeqCst);
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        for rule in database.rules() {
            assert_eq!(count(&database, &format!("{}.count()", breaking(&rule.definition))), 0, "{}", rule.text);
        }
        let (done, refused) = (done.into_inner(), refused.into_inner());
        println!("{isolation:?}: {made} rules made, {not_made} not; {done} changes done, {refused} refused");
        assert!(made > 0 && done > 0 && refused > 0, "nothing was decided");
    }
}
