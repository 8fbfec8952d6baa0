//! Traversals that differ only in their literals share a plan. Each traversal still has its own answers and errors.
//!
//! [`Prepared::new`] plans a traversal with its literals; the database plans bytecode without them. The tests compare
//! the answers of both.

use mangrove::{
    Bytecode, Database, DatabaseOptions, ErrorKind, IndexDefinition, IndexKind, MemoryBudget, Parameters,
    PlanCacheReport, Prepared, Purpose, QueryOptions, Value,
};
use mangrove_gremlin::script::{ParseOptions, Statement, parse_one};
use mangrove_gremlin::{Argument, Instruction, Terminal};

fn parsed(script: &str) -> Bytecode {
    match parse_one(script, &ParseOptions::default()) {
        Ok(Statement::Traversal { bytecode, .. }) => bytecode,
        other => panic!("{script}: {other:?}"),
    }
}

fn run(db: &Database, prepared: &Prepared, parameters: &Parameters) -> mangrove::Result<Vec<Value>> {
    db.run(prepared, parameters)?.collect()
}

/// The answer to bytecode as clients send it.
fn ask(db: &Database, script: &str) -> Vec<Value> {
    let prepared = db.prepare_bytecode(&parsed(script)).unwrap_or_else(|error| panic!("{script}: {error}"));
    run(db, &prepared, &Parameters::new()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// The answer of a database, in any order; an error as its message.
fn shown(answer: mangrove::Result<Vec<Value>>) -> Result<Vec<String>, String> {
    let mut shown: Vec<String> =
        answer.map_err(|error| error.message().to_owned())?.iter().map(|value| format!("{value:?}")).collect();
    shown.sort();
    Ok(shown)
}

fn shared(db: &Database, script: &str) -> Result<Vec<String>, String> {
    shown(db.prepare_bytecode(&parsed(script)).and_then(|prepared| run(db, &prepared, &Parameters::new())))
}

fn alone(db: &Database, script: &str) -> Result<Vec<String>, String> {
    let prepared = Prepared::new(&parsed(script), Terminal::None);
    shown(prepared.and_then(|prepared| run(db, &prepared, &Parameters::new())))
}

/// The hits and misses of the plan cache since a report.
fn since(db: &Database, before: PlanCacheReport) -> (u64, u64) {
    let now = db.plan_cache();
    (now.hits - before.hits, now.misses - before.misses)
}

fn accounts() -> Database {
    let db = Database::in_memory();
    for no in 0..300 {
        db.query(&format!("g.addV('acct').property('no', '{no}').property('n', {no})")).unwrap().collect().unwrap();
    }
    db
}

#[test]
fn a_traversal_with_many_literals_is_planned_once() {
    let db = accounts();
    let before = db.plan_cache();
    for no in 0..300 {
        assert_eq!(ask(&db, &format!("g.V().has('acct', 'no', '{no}').values('n')")), vec![Value::I32(no)]);
    }
    assert_eq!(since(&db, before), (299, 1));
    assert_eq!(db.plan_cache().plans, before.plans + 1);
}

#[test]
fn literals_too_long_for_the_cache_share_a_plan_too() {
    let db = Database::in_memory();
    let before = db.plan_cache();
    for letter in ["a", "b", "c"] {
        let text = letter.repeat(20 << 10);
        assert_eq!(ask(&db, &format!("g.addV().property('t', '{text}').values('t')")), vec![Value::from(&*text)]);
    }
    assert_eq!(since(&db, before), (2, 1));
}

/// Values of every type that is taken out, equal to others of another type or to none, and some that stay.
const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "1b",
    "2s",
    "1L",
    "2L",
    "1.0f",
    "2.0d",
    "1.5d",
    "1.0m",
    "2n",
    "-1",
    "9007199254740993L",
    "NaN",
    "'1'",
    "'2'",
    "'ada'",
    "'bob'",
    "''",
    "true",
    "false",
    "UUID('00000000-0000-0000-0000-000000000001')",
    "UUID('00000000-0000-0000-0000-000000000002')",
    "datetime('2024-01-01T00:00:00Z')",
    "datetime('2025-01-01T00:00:00+02:00')",
    "null",
    "[1, 2]",
    "{1, 2}",
    "[]",
];

/// Traversals with two values in them: in each place, in nested traversals, and in places where literals stay.
const READS: &[&str] = &[
    "g.V().has('k', A).count()",
    "g.V().has('v', 'k', A).values('n')",
    "g.V().hasLabel('v').has('k', A).has('n', lt(9)).values('n')",
    "g.V().has('k', A).has('m', B).values('n')",
    "g.V().has('k', eq(A)).values('n')",
    "g.V().has('k', neq(A)).values('n')",
    "g.V().has('k', lt(A)).values('n')",
    "g.V().has('k', lte(A)).values('n')",
    "g.V().has('k', gt(A)).values('n')",
    "g.V().has('k', gte(A)).values('n')",
    "g.V().has('k', between(A, B)).values('n')",
    "g.V().has('k', inside(A, B)).values('n')",
    "g.V().has('k', outside(A, B)).values('n')",
    "g.V().has('k', gt(A).or(P.not(lte(B)))).values('n')",
    "g.V().has('k', within(A, B)).values('n')",
    "g.V().has('k', without(A).and(neq(B))).values('n')",
    "g.V().has('k', A).has('k', B).values('n')",
    "g.V(A).values('n')",
    "g.V(A, B).values('n')",
    "g.E(A).values('w')",
    "g.V(A).out().hasId(B).values('n')",
    "g.V().hasId(A).values('n')",
    "g.V().hasId(A, B).values('n')",
    "g.V().hasId(gt(A)).values('n')",
    "g.V().has(T.id, A).values('n')",
    "g.V().has(T.id, neq(A)).values('n')",
    "g.V().has(T.label, A).values('n')",
    "g.V().out().hasId(A).values('n')",
    "g.E().has('w', A).inV().values('n')",
    "g.E().has('w', between(A, B)).outV().values('n')",
    "g.V().values('k').is(A)",
    "g.V().values('k').is(neq(A))",
    "g.V().values('n', 'k').is(between(A, B))",
    "g.V().where(out().count().is(A)).values('n')",
    "g.V().where(out().count().is(gt(A))).values('n')",
    "g.V().not(out().count().is(lt(A))).values('n')",
    "g.V().out().count().is(A)",
    "g.V().where(__.out().has('k', A)).values('n')",
    "g.V().or(has('k', A), out().has('n', B)).values('n')",
    "g.V().has('k', A).or().has('k', B).values('n')",
    "g.V().choose(has('k', A), values('n'), values('k'))",
    "g.V().choose(values('k')).option(A, constant('yes')).option(Pick.none, constant('no'))",
    "g.V().union(has('k', A), has('k', B)).values('n')",
    "g.V().coalesce(has('k', A).values('k'), out().has('k', B).values('n'), values('n'))",
    "g.V().repeat(out()).until(has('k', A)).values('n')",
    "g.V().repeat(out().has('k', neq(A))).emit(has('n', B)).times(3).values('n')",
    "g.V().where(repeat(out()).emit().times(3).has('k', A)).values('n')",
    "g.V().repeat(out()).until(loops().is(A)).values('n')",
    "g.V().has('k', __.is(A)).values('n')",
    "g.V().match(__.as('a').has('k', A).out().as('b'), __.as('b').has('n', gt(B))).select('b').values('n')",
    "g.V().match(__.or(__.as('a').has('k', A), __.as('a').has('k', B)), __.as('a').out().as('b')).select('b').values('n')",
    "g.V().where(__.as('a').out().has('k', A).as('b')).values('n')",
    "g.V().group().by('n').by(has('k', A).count())",
    "g.V().properties('k').hasValue(A).value()",
    "g.V().properties('k').has(T.value, A).value()",
    "g.V().as('a').has('k', A).both().has('n', neq(B)).where(neq('a')).path().by('n')",
    "g.withStrategies(new SubgraphStrategy(vertices: __.has('k', A))).V().has('n', gt(B)).values('n')",
    "g.withStrategies(new PartitionStrategy(partitionKey: 'm', readPartitions: ['ada'])).V().has('k', A).values('n')",
    "g.V().has('k', containing(A)).values('n')",
    "g.V().has('k', typeOf(A)).values('n')",
    "g.inject(A, B).is(A)",
    "g.V().has(A, B).values('n')",
    "g.V().values('k').has('k', A)",
    "g.V().has('n', A).V().has('k', B).values('n')",
    "g.V().has('k', A, B, A).values('n')",
    "g.V().hasId(A).as(B)",
    "g.V().has('k', within(A)).values('n')",
    "g.V().has('k', within(A, B, A, 7)).values('n')",
    "g.V().has('k', without(A, B)).values('n')",
    "g.V().has('k', P.not(within(A, B))).values('n')",
    "g.V().hasLabel('v').has('k', within(A, B)).has('n', within(1, 2, 3, 4)).values('n')",
    "g.V().values('k').is(within(A, B))",
    "g.V().hasId(within(A, B)).values('n')",
    "g.V().has(T.id, within(A, B)).values('n')",
    "g.V().has('k', startingWith(A)).values('n')",
    "g.V().has('k', endingWith(A).or(containing(B))).values('n')",
    "g.V().has('k', notStartingWith(A)).values('n')",
    "g.V().has('k', regex(A)).values('n')",
    "g.V().order().by('n').limit(A).values('n')",
    "g.V().order().by('n').skip(A).values('n')",
    "g.V().order().by('n').range(A, B).values('n')",
    "g.V().order().by('n').tail(A).values('n')",
    "g.V().limit(A).count()",
    "g.V().values('n').order().fold().limit(local, A)",
    "g.V().values('n').order().fold().range(local, A, B)",
    "g.V().values('n').order().fold().tail(local, A)",
    "g.V().sample(A).count()",
    "g.V().where(out().limit(A).count().is(B)).values('n')",
    "g.V().repeat(out()).times(A).values('n')",
    "g.V().times(A).repeat(out()).emit().values('n')",
    "g.V().where(repeat(out()).emit().times(A).has('k', B)).values('n')",
    "g.V().where(repeat(out()).times(A).has('n', B)).values('n')",
    "g.V().repeat(out()).times(A).dedup().limit(B).count()",
    "g.V().repeat(out()).times(A).repeat(__.in()).times(B).count()",
    "g.V().not(out().count().is(A)).values('n')",
    "g.V().where(out().count().is(gte(A))).values('n')",
    "g.V().where(out().count().is(neq(A).and(lte(B)))).values('n')",
    "g.V().or(out().count().is(A), __.in().count().is(lt(B))).values('n')",
    "g.V().choose(out().count().is(A), constant(A), constant(B))",
    "g.V().repeat(out()).until(out().count().is(A)).values('n')",
    "g.inject(A, B).fold()",
    "g.inject(A).union(identity(), constant(B)).count()",
    "g.V().values('n').fold().inject(A).count()",
    "g.V().values('m').constant(A).dedup()",
    "g.V().group().by('m').by(constant(A).sum())",
    "g.inject(1).coin(A).count().is(lte(1))",
];

/// A vertex for each value that can be stored, with an id, and a chain of edges.
fn types(index: Option<IndexKind>) -> Database {
    let db = Database::in_memory();
    let stored = VALUES.iter().filter(|value| !value.starts_with(['[', '{']) && **value != "null");
    for (n, value) in stored.enumerate() {
        let id = if n % 2 == 0 { format!("{n}") } else { format!("'{n}'") };
        let add = format!(
            "g.addV('v').property(T.id, {id}).property('n', {n}).property('k', {value}).property('m', 'ada').as('new').
               V().has('n', {}).addE('e').to('new').property('w', {value}).property(T.id, {n})",
            n as i64 - 1
        );
        db.query(&add).unwrap().collect().unwrap();
    }
    if let Some(kind) = index {
        let keys = vec!["k".into()];
        db.define_index(&IndexDefinition { keys, kind, ..IndexDefinition::default() }).unwrap();
    }
    db
}

#[test]
fn answers_are_those_of_a_plan_with_the_literals() {
    for index in [None, Some(IndexKind::Hash), Some(IndexKind::Ordered)] {
        let db = types(index);
        let (mut asked, before) = (0, db.plan_cache());
        for read in READS {
            for (at, a) in VALUES.iter().enumerate() {
                // Another type, and one that is near.
                for b in [VALUES[(at + 7) % VALUES.len()], VALUES[(at + 1) % VALUES.len()]] {
                    let script = read.replace('A', a).replace('B', b);
                    assert_eq!(shared(&db, &script), alone(&db, &script), "{script} with {index:?}");
                    asked += 1;
                }
            }
        }
        let (hits, misses) = since(&db, before);
        // Errors are found anew each time.
        assert!(hits > misses, "{asked} asked, {hits} hits, {misses} misses");
    }
}

#[test]
fn written_values_keep_their_types() {
    const WRITES: &[&str] = &[
        "g.addV('v').property('k', A).property('j', B).valueMap('k', 'j')",
        "g.addV('v').property('k', A).property('k', B).valueMap('k')",
        "g.addV('v').property(Cardinality.set, 'k', A).property(Cardinality.set, 'k', B).valueMap('k')",
        "g.addV('v').property(null, 'k', A).valueMap('k')",
        "g.addV('v').property('k', A, 'since', B).properties('k').valueMap()",
        "g.addV('v').as('a').addE('e').from('a').to('a').property('w', A).valueMap()",
        "g.addV('v').property('k', A).property(Cardinality.single, 'k', B).sideEffect(has('k', A)).valueMap('k')",
        "g.addV('v').property(T.label, A).label()",
        "g.addV('v').property(A, B).valueMap()",
        "g.V().has('n', 1).property('k', A).property(Cardinality.list, 'k', B).valueMap('k')",
        "g.V().has('n', 1).property('k', A, 'odd').valueMap('k')",
        "g.V().values('n').property('k', A)",
        "g.V().has('n', A).property('n', A).values('n')",
        "g.mergeV([(T.label): 'v', n: 1]).property('j', A).values('j')",
        "g.mergeV([(T.label): 'w', k: A]).valueMap('k')",
        "g.mergeV([(T.label): 'w', k: A, j: B]).valueMap('k', 'j')",
        "g.mergeV([(T.label): 'w', k: A]).option(Merge.onCreate, [j: B]).valueMap('k', 'j')",
        "g.mergeV([(T.label): 'w', k: A]).option(Merge.onCreate, [k: B]).valueMap('k')",
        "g.mergeV([(T.label): 'w', k: A]).option(Merge.onMatch, [j: B]).valueMap('k', 'j')",
        "g.mergeV([(T.label): 'w', k: 1]).option(Merge.onMatch, [j: set(A)]).valueMap('j')",
        "g.mergeV([(T.id): A, (T.label): 'w']).valueMap()",
        "g.mergeE([(T.label): 'e', (Direction.OUT): 0, (Direction.IN): '1', w: A]).values('w')",
        "g.inject(1).mergeV([(T.label): A]).label()",
    ];
    let (left, right) = (types(None), types(None));
    let before = left.plan_cache();
    for write in WRITES {
        for (at, a) in VALUES.iter().enumerate() {
            let script = write.replace('A', a).replace('B', VALUES[(at + 7) % VALUES.len()]);
            assert_eq!(shared(&left, &script), alone(&right, &script), "{script}");
        }
    }
    let all = "g.V().has('n', 1).union(valueMap(), V().count(), E().count())";
    assert_eq!(alone(&left, all), alone(&right, all));
    let (hits, misses) = since(&left, before);
    assert!(hits > misses, "{hits} hits, {misses} misses");
}

#[test]
fn runs_with_different_literals_do_not_mix() {
    let db = accounts();
    let of = |low: i32, high: i32| {
        let script = format!("g.V().has('n', between({low}, {high})).order().by('n').values('n').is(neq({low}))");
        db.prepare_bytecode(&parsed(&script)).unwrap()
    };
    let expected = |low: i32, high: i32| (low + 1..high).map(Value::I32).collect::<Vec<_>>();
    let (few, many) = (of(10, 20), of(100, 250));
    // One is read between two results of the other.
    let reading = db.run(&many, &Parameters::new()).unwrap();
    let mut read = Vec::new();
    for value in reading {
        read.push(value.unwrap());
        assert_eq!(run(&db, &few, &Parameters::new()).unwrap(), expected(10, 20));
    }
    assert_eq!(read, expected(100, 250));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (db, of, expected) = (&db, &of, &expected);
            scope.spawn(move || {
                for turn in 0..100 {
                    let (low, high) = (thread * 50 + turn % 7, thread * 60 + 20 + turn % 11);
                    let prepared = of(low, high);
                    let mut found = Vec::new();
                    let options = QueryOptions { inline_messages: turn as usize % 2, ..QueryOptions::default() };
                    db.run_shared(&prepared, &Parameters::new(), &options, &mut |batch| {
                        found.extend(batch.into_iter().map(|(value, _)| value));
                        Ok(())
                    })
                    .unwrap();
                    assert_eq!(found, expected(low, high), "{low} to {high}");
                }
            });
        }
    });
}

#[test]
fn no_parameter_has_the_name_of_a_literal() {
    let db = accounts();
    // Names that literals have in the texts that keys of the cache and plans are.
    let has = |value: Argument| Bytecode {
        source: Vec::new(),
        steps: vec![
            Instruction::new("V", Vec::new()),
            Instruction::new("has", vec![Value::from("n").into(), value]),
            Instruction::new("values", vec![Value::from("n").into()]),
        ],
    };
    for name in ["?", "0", "\u{fdd0}0\u{fdd0}", ""] {
        let (literal, bound) = (has(Value::I32(3).into()), has(Argument::Parameter(name.into())));
        let parameters: Parameters = [(name.into(), Value::I32(5))].into_iter().collect();
        for _ in 0..2 {
            let literal = db.prepare_bytecode(&literal).unwrap();
            let bound = db.prepare_bytecode(&bound).unwrap();
            assert_eq!(run(&db, &literal, &parameters).unwrap(), vec![Value::I32(3)], "{name}");
            assert_eq!(run(&db, &bound, &parameters).unwrap(), vec![Value::I32(5)], "{name}");
            assert!(run(&db, &bound, &Parameters::new()).is_err(), "{name}");
        }
    }
}

#[test]
fn a_literal_and_a_parameter_stand_side_by_side() {
    let db = accounts();
    let before = db.plan_cache();
    for high in 5..20 {
        let script =
            format!("g.V().has('n', gte(low)).has('n', lt({high})).values('n').is(neq(out)).is(neq({}))", high - 1);
        let prepared = db.prepare_bytecode(&parsed(&script)).unwrap();
        let parameters: Parameters =
            [("low".into(), Value::I32(high - 4)), ("out".into(), Value::I32(high - 2))].into_iter().collect();
        let expected: Vec<Value> = vec![Value::I32(high - 4), Value::I32(high - 3)];
        assert_eq!(run(&db, &prepared, &parameters).unwrap(), expected);
        let error = run(&db, &prepared, &Parameters::new()).unwrap_err();
        assert_eq!((error.kind(), error.message().contains("`low` has no value")), (ErrorKind::InvalidArgument, true));
    }
    assert_eq!(since(&db, before), (14, 1));
}

#[test]
fn one_plan_goes_on_over_several_nodes_and_new_indexes() {
    let db = accounts();
    let prepared = |n: i32| db.prepare_bytecode(&parsed(&format!("g.V().has('n', {n}).values('no')"))).unwrap();
    let expected = |n: i32| vec![Value::from(&*n.to_string())];
    let indexed = |made: bool| {
        for n in [7, 8] {
            let results = db.begin_read().unwrap().run_on_nodes(
                &prepared(n),
                &Parameters::new(),
                &QueryOptions::default(),
                3,
                Some(1),
            );
            assert_eq!(results.unwrap(), vec![(expected(n)[0].clone(), 1)], "{made}");
            assert_eq!(run(&db, &prepared(n), &Parameters::new()).unwrap(), expected(n), "{made}");
        }
    };
    indexed(false);
    let index = db.create_index(None, "n", true, false).unwrap();
    indexed(true);
    db.drop_index(index).unwrap();
    indexed(false);
}

#[test]
fn texts_show_the_literals() {
    let db = accounts();
    for n in [41, 42] {
        let profile = ask(&db, &format!("g.V().has('n', {n}).values('no').is('x{n}').profile()"));
        let [Value::TraversalMetrics(profile)] = &profile[..] else { panic!("{profile:?}") };
        let profile = format!("{profile:?}");
        assert!(profile.contains(&format!("n eq {n}")) && profile.contains(&format!("'x{n}'")), "{profile}");
        let question = Prepared::new(&parsed(&format!("g.V().has('n', {n})")), Terminal::Explain).unwrap();
        assert!(format!("{:?}", run(&db, &question, &Parameters::new()).unwrap()).contains(&format!("n eq {n}")));
    }
    for script in [
        // Of the compiler, and of a run: one that names its step, and one that the step is added to.
        "g.V().has('n', 41).has('no', 'x', 'y', 'z')",
        "g.V(41).property('a', 'b', 'c')",
        "g.V().values('n').property('tag', 'seen')",
        "g.V().has('n', 41).values('n').property('tag', 'seen')",
        "g.V().has('n', 41).property('~hidden', 'x')",
        "g.V().has('n', 41).values('no').is(neq('x')).sum()",
        "g.V().has('n', 41).values('n').has('n', 41)",
    ] {
        let error = shared(&db, script).unwrap_err();
        assert_eq!(Err(error.clone()), alone(&db, script), "{script}");
        assert!(!error.contains('\u{fdd0}'), "{error}");
    }
    let (db, script) = (types(None), "g.E().property(Cardinality.list, 'w', 'seen')");
    let error = shared(&db, script).unwrap_err();
    assert_eq!(Err(error.clone()), alone(&db, script));
    assert!(error.contains("'seen'"), "{error}");
}

#[test]
fn more_literals_than_are_worth_taking_out_are_read_as_they_are() {
    let db = accounts();
    let ids: Vec<Value> = ask(&db, "g.V().id()");
    let id = |at: usize| Argument::Value(ids[at % ids.len()].clone());
    for count in [1, 300, 1024, 1025, 3000] {
        let steps = vec![Instruction::new("V", (0..count).map(id).collect()), Instruction::new("count", Vec::new())];
        let prepared = db.prepare_bytecode(&Bytecode { source: Vec::new(), steps }).unwrap();
        assert_eq!(run(&db, &prepared, &Parameters::new()).unwrap(), vec![Value::I64(count as i64)]);
    }
}

/// The answer to a text.
fn text(db: &Database, script: &str) -> Vec<Value> {
    db.query(script).and_then(mangrove::ResultStream::collect).unwrap_or_else(|error| panic!("{script}: {error}"))
}

#[test]
fn texts_share_plans_as_bytecode_does() {
    let db = accounts();
    let before = db.plan_cache();
    for no in 0..50 {
        assert_eq!(text(&db, &format!("g.V().has('acct', 'no', '{no}').values('n')")), vec![Value::I32(no)]);
        assert_eq!(text(&db, &format!("g.V().has('acct', 'no', '{no}').values('n')")), vec![Value::I32(no)]);
        assert_eq!(ask(&db, &format!("g.V().has('acct', 'no', '{no}').values('n')")), vec![Value::I32(no)]);
    }
    let now = db.plan_cache();
    assert_eq!((now.hits - before.hits, now.misses - before.misses), (149, 1));
    assert_eq!((now.plans - before.plans, now.texts - before.texts), (1, 50));
    // A terminal is part of the shape, and so is the source.
    for script in
        ["g.V().has('acct', 'no', '7').values('n').next()", "g.V().has('acct', 'no', '7').values('n').toList()"]
    {
        assert_eq!(text(&db, script), vec![Value::I32(7)]);
    }
    assert_eq!(db.plan_cache().plans - before.plans, 2);
    // What has another meaning each time is read each time.
    assert_ne!(text(&db, "g.inject(UUID())"), text(&db, "g.inject(UUID())"));
    assert_eq!(db.plan_cache().plans - before.plans, 3);
}

#[test]
fn a_plan_that_depends_on_a_literal_is_not_used_for_another() {
    let db = accounts();
    let plans = |scripts: &mut dyn Iterator<Item = String>| {
        let before = db.plan_cache();
        for script in scripts {
            ask(&db, &script);
        }
        db.plan_cache().plans - before.plans
    };
    assert_eq!(plans(&mut (2..40).map(|n| format!("g.V().order().by('n').limit({n}).count()"))), 1);
    assert_eq!(plans(&mut (0..9).map(|n| format!("g.V().where(out().count().is({n})).count()"))), 2);
    assert_eq!(plans(&mut (1..12).map(|n| format!("g.V().where(repeat(out()).times({n}).has('n', 1)).count()"))), 9);
    // More variants than a shape may have would be as many as there are loops; 16 are kept.
    assert_eq!(
        plans(&mut (1..9).flat_map(|n| (1..9).map(move |m| {
            format!(
                "g.V().where(repeat(out()).times({n}).has('n', 1)).where(repeat(out()).times({m}).has('n', 2)).count()"
            )
        }))),
        16
    );
}

#[test]
fn plans_are_bounded_in_bytes() {
    let db = accounts();
    let limit = 4 << 20;
    db.configure("plan_cache_bytes", &Value::I64(limit)).unwrap();
    let known = "g.V().has('acct', 'no', '7').values('n')";
    for n in 0..100_000 {
        db.prepare(&format!("g.V().has('key{n}', {n}).has('n', {n})")).unwrap();
        if n % 100 == 0 {
            assert_eq!(text(&db, known), vec![Value::I32(7)]);
        }
    }
    let report = db.plan_cache();
    assert!(report.bytes <= limit as u64 && report.plans > 100, "{report:?}");
    assert!(report.evictions > 150_000, "{report:?}");
    // What is used often stays.
    assert_eq!(report.misses, 100_000 + 2, "{report:?}");
    db.configure("plan_cache_bytes", &Value::I64(0)).unwrap();
    let report = db.plan_cache();
    assert_eq!((report.plans, report.texts, report.bytes), (0, 0, 0));
    assert_eq!(text(&db, known), vec![Value::I32(7)]);
}

#[test]
fn plans_draw_on_the_budget_of_the_process() {
    let memory_budget = MemoryBudget::of(8 << 20);
    let options = DatabaseOptions { memory_budget: memory_budget.clone(), ..DatabaseOptions::default() };
    let db = Database::with_options(&options);
    let shape = |n: usize| db.prepare(&format!("g.V().has('key{n}', 1)")).map(drop).unwrap();
    (0..100).for_each(shape);
    assert_eq!(memory_budget.used_for(Purpose::Plans), db.plan_cache().bytes);
    assert!(db.plan_cache().plans == 100);
    // Others take what is left.
    let left = memory_budget.left_bytes();
    let others = memory_budget.draw(Purpose::Queries, left).unwrap();
    let before = db.plan_cache();
    (100..300).for_each(shape);
    let now = db.plan_cache();
    assert!(now.bytes <= before.bytes && now.plans > 0 && now.evictions > 0, "{now:?}");
    assert_eq!(memory_budget.used_for(Purpose::Plans), now.bytes);
    assert_eq!(memory_budget.refusal_count(), 0);
    drop(others);
    drop(db);
    assert_eq!(memory_budget.used_for(Purpose::Plans), 0);
}

#[test]
fn plans_are_shown_without_values() {
    let db = accounts();
    for n in [41, 42, 43] {
        ask(&db, &format!("g.V().has('acct', 'no', '{n}').where(out().count().is({n})).limit({n}).values('n')"));
    }
    text(&db, "g.inject('secret').is(regex('secret')).choose(identity()).option('secret', constant(5)).math('_ + 9')");
    let rows = text(&db, "g.call('mangrove.plans')");
    let shown = format!("{rows:?}");
    assert!(!shown.contains("secret") && !shown.contains("_ +") && !shown.contains("'42'"), "{shown}");
    assert!(shown.contains("g.V().has('acct', 'no', ?).where(__.out().count().is(?)).limit(?).values('n')"), "{shown}");
    assert!(shown.contains("?1 is not 0") && shown.contains("?2 is at least 0"), "{shown}");
    let plan = db.kept_plans().into_iter().find(|plan| plan.shape.contains("'acct', 'no', ?).where")).unwrap();
    assert_eq!(plan.hits, 2);
    assert!(plan.mean_micros.is_some_and(|micros| micros > 0.0) && plan.bytes > 1000, "{plan:?}");
}
