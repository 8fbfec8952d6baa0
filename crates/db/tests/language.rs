//! Steps whose meaning shows only in a whole database: merges under concurrency, patterns, sacks, strategies, limits.

use mangrove::{Database, ErrorKind, Value};

/// Four persons in a chain of `knows`, and one person without edges.
fn people() -> Database {
    let database = Database::in_memory();
    let script = "g.addV('person').property('name', 'a').property('age', 1).as('a').\
                  addV('person').property('name', 'b').property('age', 2).as('b').\
                  addV('person').property('name', 'c').property('age', 3).as('c').\
                  addV('robot').property('name', 'd').property('age', 4).as('d').\
                  addE('knows').from('a').to('b').property('weight', 1).\
                  addE('knows').from('b').to('c').property('weight', 2).\
                  addE('knows').from('c').to('d').property('weight', 4)";
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

#[track_caller]
fn fails(database: &Database, script: &str, kind: ErrorKind, message: &str) {
    let error = ask(database, script).expect_err(script);
    assert_eq!(error.kind(), kind, "{script}: {error}");
    assert!(error.message().contains(message), "{script}: {error}");
}

#[test]
fn of_those_who_merge_the_same_at_once_one_makes_it() {
    const THREADS: usize = 8;
    const ROUNDS: i64 = 25;
    let database = Database::in_memory();
    check(&database, "g.addV('hub').property(T.id, 0).count()", &[1_i64.into()]);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let script = format!(
                        "g.mergeV([(T.label): 'person', name: 'n{round}']).option(onCreate, [made: 1]).\
                         option(onMatch, [met: 1])"
                    );
                    // A conflict may outlast the retries; then the caller runs the script again.
                    let insist = |script: &str| {
                        while let Err(error) = ask(&database, script) {
                            assert_eq!(error.remedy(), mangrove::Remedy::RetryTransaction, "{error}");
                        }
                    };
                    insist(&script);
                    insist(&format!(
                        "g.V().has('person', 'name', 'n{round}').as('p').mergeE([(T.label): 'at', (Direction.from): Merge.outV, (Direction.to): 0]).\
                         option(Merge.outV, select('p'))"
                    ));
                }
            });
        }
    });
    check(&database, "g.V().hasLabel('person').count()", &[Value::I64(ROUNDS)]);
    check(&database, "g.V().hasLabel('person').where(outE('at').count().is(1)).count()", &[Value::I64(ROUNDS)]);
    check(&database, "g.E().count()", &[Value::I64(ROUNDS)]);
    check(&database, "g.V().has('made').has('met').count()", &[Value::I64(ROUNDS)]);
}

#[test]
fn equal_traversers_merge_one_after_the_other() {
    let database = people();
    // A barrier makes one row of the three; the first makes, the others find.
    check(
        &database,
        "g.inject(1, 1, 1).barrier().mergeV([name: 'x']).option(onMatch, [met: 1]).count()",
        &[3_i64.into()],
    );
    check(&database, "g.V().has('name', 'x').values('met')", &[1.into()]);
    let along = "g.V().has('name', 'a').as('a').out('knows').as('b').\
                 mergeE([(T.label): 'likes', (OUT): Merge.outV, (IN): Merge.inV]).\
                 option(outV, select('a')).option(inV, select('b')).id()";
    assert_eq!(ask(&database, along).unwrap(), ask(&database, along).unwrap());
    check(&database, "g.E().hasLabel('likes').count()", &[1_i64.into()]);
    fails(&database, "g.mergeE([(T.label): 'hates'])", ErrorKind::InvalidArgument, "Out Vertex not specified");
}

#[test]
fn patterns_are_solved() {
    let database = people();
    let names = ".select('a', 'c').by('name').select(values).unfold()";
    let hops = format!("g.V().match(as('b').out().as('c'), as('a').out().as('b')){names}");
    check(&database, &hops, &["a".into(), "c".into(), "b".into(), "d".into()]);
    let counted =
        "g.V().match(as('a').both().count().as('n'), as('a').values('age').as('n')).select('a').values('name')";
    check(&database, counted, &["a".into(), "b".into()]);
}

#[test]
fn sacks_go_along_and_merge_by_their_operator() {
    let database = people();
    check(&database, "g.withSack(0).V().repeat(outE().sack(sum).by('weight').inV()).times(3).sack()", &[7.into()]);
    check(&database, "g.withSack(1, sum).V().out('knows').out('knows').barrier().sack().sum()", &[2.into()]);
    check(&database, "g.withSideEffect('s', 10, Operator.minus).V().aggregate('s').by('age').cap('s')", &[0.into()]);
}

#[test]
fn strategies_show_a_part_of_the_graph() {
    let database = people();
    let persons = "g.withStrategies(new SubgraphStrategy(vertices: hasLabel('person')))";
    check(&database, &format!("{persons}.V().count()"), &[3_i64.into()]);
    check(&database, &format!("{persons}.E().count()"), &[2_i64.into()]);
    check(&database, &format!("{persons}.V().has('name', 'c').out().count()"), &[0_i64.into()]);
    let light = "g.withStrategies(new SubgraphStrategy(edges: has('weight', lt(3))))";
    check(&database, &format!("{light}.V().out().path().count(local).dedup()"), &[2_i64.into()]);
    // A strategy that is removed has no effect; the others stay.
    let both = "g.withStrategies(new SubgraphStrategy(vertices: hasLabel('person')), \
                new SubgraphStrategy(edges: has('weight', lt(2))), \
                new PartitionStrategy(partitionKey: 'name', readPartitions: ['a', 'd']))";
    check(&database, &format!("{both}.V().count()"), &[1_i64.into()]);
    check(&database, &format!("{both}.withoutStrategies(SubgraphStrategy).V().count()"), &[2_i64.into()]);
    check(&database, &format!("{both}.withoutStrategies(PartitionStrategy).V().count()"), &[3_i64.into()]);
    let partition = |read: &str| {
        format!(
            "g.withStrategies(new PartitionStrategy(partitionKey: 'p', writePartition: 'x', readPartitions: ['{read}']))"
        )
    };
    check(&database, &format!("{}.addV('n').mergeV([name: 'q']).count()", partition("x")), &[1_i64.into()]);
    check(&database, &format!("{}.V().count()", partition("x")), &[2_i64.into()]);
    check(&database, &format!("{}.V().count()", partition("y")), &[0_i64.into()]);
    check(
        &database,
        "g.withStrategies(ProductiveByStrategy).V().limit(1).project('x').by('none')",
        &[Value::map(vec![("x".into(), Value::Null)])],
    );
}

#[test]
fn chance_is_fixed_by_a_seed() {
    let database = people();
    let draw = "g.withStrategies(new SeedStrategy(seed: 7)).V().order().by('name').sample(2).values('name')";
    assert_eq!(ask(&database, draw).unwrap(), ask(&database, draw).unwrap());
    check(&database, "g.inject(1, 2, 3, 4).sample(2).count()", &[2_i64.into()]);
    check(&database, "g.V().coin(1.0).count()", &[4_i64.into()]);
    check(&database, "g.V().coin(0.0).count()", &[0_i64.into()]);
}

#[test]
fn values_that_would_grow_without_bound_are_refused() {
    let database = people();
    let doubled = "g.inject('aa').repeat(replace('a', 'aaaa')).times(40)";
    fails(&database, doubled, ErrorKind::MemoryLimit, "bytes of text");
    let grown = "g.inject([1]).repeat(combine(identity())).times(60)";
    fails(&database, grown, ErrorKind::MemoryLimit, "members");
    fails(&database, "g.inject('1e999999999').asNumber(GType.BIGINT)", ErrorKind::Evaluation, "overflow");
    check(&database, "g.inject('1e999999999').asNumber().asString()", &["1E+999999999".into()]);
}

#[test]
fn a_group_in_a_loop_adds_to_what_it_has() {
    let database = people();
    let counts = "g.V().repeat(out().group('x').by('name').by(count())).times(2).cap('x').unfold().order().by(keys).select(values)";
    check(&database, counts, &[1_i64.into(), 2_i64.into(), 2_i64.into()]);
}

#[test]
fn a_service_is_given_what_traversals_find_for_each_row() {
    let database = people();
    let degrees = "g.V().order().by('name').call('tinker.degree.centrality')";
    check(&database, degrees, &[0_i64.into(), 1_i64.into(), 1_i64.into(), 1_i64.into()]);
    let out = "g.V().order().by('name').\
               call('tinker.degree.centrality', __.project('direction').by(constant(OUT)))";
    check(&database, out, &[1_i64.into(), 1_i64.into(), 1_i64.into(), 0_i64.into()]);
    let own = "g.V().has('name', 'b').as('x').call('tinker.search').with('search', select('x').values('name'))\
               .element().values('age')";
    check(&database, own, &[2.into()]);
    check(&database, "g.call('tinker.search', [search: 'c', 'type': 'Edge']).count()", &[0_i64.into()]);
    check(
        &database,
        "g.call('--list', __.project('service').by(constant('tinker.search')))",
        &["tinker.search".into()],
    );
    check(
        &database,
        "g.withStrategies(ReadOnlyStrategy).V().where(call('tinker.degree.centrality').is(0)).values('name')",
        &["a".into()],
    );
    fails(&database, "g.call('tinker.search')", ErrorKind::InvalidArgument, "needs to be given 'search'");
    fails(&database, "g.E().call('tinker.degree.centrality')", ErrorKind::Evaluation, "met a edge");
    fails(&database, "g.call('tinker.serch')", ErrorKind::InvalidArgument, "there is no service 'tinker.serch'");
}

#[test]
fn small_things_are_as_in_the_reference() {
    let database = people();
    check(
        &database,
        "g.V().has('name', 'a').valueMap('age').with(WithOptions.tokens, WithOptions.labels)\
                      .select(keys).unfold().count()",
        &[2_i64.into()],
    );
    check(
        &database,
        "g.V().values('age').fold().order(local).by(is(gt(2)), desc)",
        &[Value::list(vec![4.into(), 3.into()])],
    );
    check(&database, "g.inject([29, 0.5d]).max(local)", &[29.0.into()]);
    check(&database, "g.inject([[a: 1, b: 2], [a: 1, b: 3]]).dedup(local, 'a').count(local)", &[1_i64.into()]);
    check(&database, "g.union(constant(1), constant(2), constant(3))", &[1.into(), 2.into(), 3.into()]);
    check(&database, "g.V().as('p').out().as('q').select('p', 'q').count()", &[3_i64.into()]);
    let made = "g.addV('x').property('n', 1).property('n', 2).property(__.constant('k'), 3).with('option', 'value')";
    check(&database, &format!("{made}.properties().count()"), &[3_i64.into()]);
    fails(&database, "g.addV('x').property(__.constant(1), 3)", ErrorKind::Evaluation, "a key is a string");
    // A side effect is seen incomplete within local(), and complete after a step of the stream.
    check(
        &database,
        "g.V().hasLabel('person').local(groupCount('x').by(label).select('x').select('person'))",
        &[1_i64.into(), 2_i64.into(), 3_i64.into()],
    );
    check(&database, "g.E().properties().order().value()", &[1.into(), 2.into(), 4.into()]);
}

#[test]
fn ids_are_read_as_the_database_is_told() {
    let database = Database::in_memory();
    ask(&database, "g.addV('a').property(T.id, 1).as('x').addV('a').property(T.id, '2').addE('e').to('x')").unwrap();
    check(&database, "g.V('1').count()", &[0_i64.into()]);
    check(&database, "g.V().hasId('2').count()", &[1_i64.into()]);
    database.set_id_rule(mangrove::IdRule::Numbers);
    check(&database, "g.V('1').id()", &[1.into()]);
    check(&database, "g.V().out().hasId('1', '7').count()", &[1_i64.into()]);
    check(&database, "g.V().out().hasId(P.neq('1')).count()", &[0_i64.into()]);
    check(&database, "g.mergeV([(T.id): '1']).in().count()", &[1_i64.into()]);
    fails(&database, "g.addV('a').property(T.id, '1')", ErrorKind::DuplicateId, "1");
    check(&database, "g.addV('a').property(T.id, 'one').id()", &["one".into()]);
}

#[test]
fn property_maps_hold_the_properties_themselves() {
    let database = people();
    let ask = |script: &str| format!("{:?}", ask(&database, script).unwrap());
    let of_vertex = ask("g.V().has('name', 'a').propertyMap('age', 'nothing')");
    assert!(of_vertex.contains("VertexProperty") && of_vertex.contains("\"age\"") && !of_vertex.contains("nothing"));
    check(&database, "g.V().has('name', 'b').propertyMap('age').select('age').unfold().value()", &[2.into()]);
    check(&database, "g.E().has('weight', 4).propertyMap().select('weight').value()", &[4.into()]);
    check(&database, "g.V().has('name', 'd').propertyMap().count(Scope.local)", &[2_i64.into()]);
    fails(&database, "g.inject(1).propertyMap()", ErrorKind::Evaluation, "propertyMap()");
}

/// The result of a reduction may be on another node than the input of its branch.
#[test]
fn branches_that_reduce_meet_what_they_were_given_on_every_node() {
    let database = people();
    let transaction = database.begin().unwrap();
    for script in ["g.V().union(__.count().asBool())", "g.V().union(__.union(__.count().asBool()))"] {
        let prepared = database.prepare(script).unwrap();
        for nodes in [1, 2, 4] {
            let options = mangrove::QueryOptions::default();
            let found =
                transaction.run_on_nodes(&prepared, &mangrove::Parameters::new(), &options, nodes, Some(7)).unwrap();
            assert_eq!(found, [(Value::Bool(true), 1)], "{script} on {nodes} nodes");
        }
    }
}

/// On several nodes each `by()` of a key is a look-up that comes back to a port of its own. There are 255 of them.
#[test]
fn a_step_has_at_most_as_many_look_ups_as_ports() {
    let database = people();
    let transaction = database.begin().unwrap();
    let run = |keys: usize, nodes| {
        let names: Vec<String> = (0..keys).map(|n| format!("'n{n}'")).collect();
        let script = format!("g.V().project({}){}", names.join(", "), ".by('age')".repeat(keys));
        let (prepared, options) = (database.prepare(&script).unwrap(), mangrove::QueryOptions::default());
        let found = transaction.run_on_nodes(&prepared, &mangrove::Parameters::new(), &options, nodes, Some(7))?;
        let mut found: Vec<String> = found.iter().map(|(map, bulk)| format!("{map:?} {bulk}")).collect();
        found.sort_unstable();
        Ok::<_, mangrove::Error>(found)
    };
    assert_eq!(run(255, 2).unwrap(), run(255, 1).unwrap());
    assert_eq!(run(256, 1).unwrap().len(), 4);
    let error = run(256, 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("more than 255 nested traversals and by() modulators"), "{error}");
}

#[test]
fn a_time_limit_ends_walks_that_have_no_end() {
    let database = people();
    check(&database, "g.V().timeLimit(3600000).count()", &[4_i64.into()]);
    for none in [0, -1] {
        check(&database, &format!("g.V().timeLimit({none}).count()"), &[0_i64.into()]);
    }
    // Without it these would meet the limit of the query.
    for endless in [
        "g.V().repeat(identity()).emit().timeLimit(20).count().is(gt(0)).count()",
        "g.V().limit(1).local(repeat(identity()).emit().timeLimit(5).count()).is(gt(0)).count()",
        "g.V().limit(1).where(repeat(identity()).emit().timeLimit(5).has('name', 'nobody').count().is(0)).count()",
    ] {
        check(&database, endless, &[1_i64.into()]);
    }
    fails(&database, "g.V().timeLimit('soon')", ErrorKind::InvalidArgument, "timeLimit");
    fails(&database, "g.V().timeLimit()", ErrorKind::InvalidArgument, "timeLimit");
}

#[test]
fn an_error_of_evaluation_names_the_step() {
    let database = Database::in_memory();
    fails(
        &database,
        "g.inject('a').sum()",
        ErrorKind::Evaluation,
        "a number is needed here, not a string (in the step `sum`)",
    );
    fails(&database, "g.inject('a').union(identity(), sum())", ErrorKind::Evaluation, "(in the step `sum`)");
    let told = ask(&database, "g.inject(1).fail('my own words')").unwrap_err();
    assert!(told.message().ends_with("my own words"), "{told}");
}
