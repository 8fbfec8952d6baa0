//! The beginnings of traversals, and the configuration of sources.

use super::*;

#[test]
fn sources_take_ids_in_every_form() {
    check("g.V()", "[Vertices { ids: None, conditions: [] }]");
    check("g.V([])", "[Vertices { ids: None, conditions: [] }]");
    check("g.V(null)", "[Vertices { ids: Some([]), conditions: [] }]");
    same("g.V([1, 'a'], 2L)", "g.V(1, 'a', 2L)");
    check("g.E(x)", "[Edges { ids: Some([Parameter(\"x\")]), conditions: [] }]");
    check("g.inject(1, null)", "[Inject([Literal(I32(1)), Literal(Null)])]");
    let element = wire(vec![call("V", vec![Argument::Vertex(Value::I64(7))])]);
    assert_eq!(compile(&element).unwrap(), compiled("g.V(7L)"));
    fails("g.V(true)", "`V` at line 1, column 3: an id is an integer, a string or a UUID, not true");
}

#[test]
fn property_folds_into_the_element_being_made() {
    check(
        "g.addV('a').property(T.id, 1).property(list, 'k', 2, 'm', 3)",
        "[AddVertex { label: Operand(Literal(String(\"a\"))), properties: [PropertyArgument { cardinality: Some(List), \
         key: \"k\", key_from: None, value: Operand(Literal(I32(2))), meta: [(\"m\", Operand(Literal(I32(3))))] }], \
         id: Some(Operand(Literal(I32(1)))) }]",
    );
    same("g.addV().property(T.label, 'b')", "g.addV('b')");
    same("g.addV()", "g.addV('vertex')");
    same("g.addV().property(['a': 1, 'b': list(2)])", "g.addV().property('a', 1).property(list, 'b', 2)");
    same("g.addE('x').from('a').property('w', 1).to('b')", "g.addE('x').from('a').to('b').property('w', 1)");
    same("g.V().property(['a': 1, 'b': 2])", "g.V().property('a', 1).property('b', 2)");
    check("g.V().property([:])", "[Vertices { ids: None, conditions: [] }, Identity]");
    check(
        "g.V(1).as('a').addE('x').to(__.V(2))",
        "[Vertices { ids: Some([Literal(I32(1))]), conditions: [] }@[\"a\"], AddEdge { label: \
         Operand(Literal(String(\"x\"))), from: None, to: Some(Traversal(Traversal { steps: [Vertices { ids: \
         Some([Literal(I32(2))]), conditions: [] }] })), properties: [], id: None }]",
    );
    fails(
        "g.addE('x').from('a')",
        "`addE` at line 1, column 3: as the first step it needs both ends: addE(…).from(…).to(…)",
    );
    fails(
        "g.V().property(T.id, 1)",
        "`property` at line 1, column 7: the id and the label of an element cannot change; T.id and T.label belong \
         directly after addV() or addE()",
    );
    fails(
        "g.V().property('a', 1, 'b')",
        "`property` at line 1, column 7: takes a key and a value (with keys and values of meta-properties after them), or \
         a map; a cardinality may stand first, not the string \"a\", the int 1 and the string \"b\"",
    );
    fails("g.addV(null)", "`addV` at line 1, column 3: a label is a string or a traversal that gives one, not null");
    fails(
        "g.addV(1).property('a', 1)",
        "`addV` at line 1, column 3: a label is a string or a traversal that gives one, not the int 1",
    );
    fails(
        "g.addV('a').property('k', [T.id])",
        "`property` at line 1, column 13: a list cannot be stored; a property holds scalars and collections of them",
    );
    fails(
        "g.addV('a').property(T.id, [1])",
        "`property` at line 1, column 13: an id is an integer, a string or a UUID, not a list",
    );
}

#[test]
fn the_source_configures_the_traversal() {
    let made = compiled(
        "g.withPath().with('evaluationTimeout', 500L).withSideEffect('x', [1]).withStrategies(ReadOnlyStrategy, \
         new CountStrategy()).V()",
    );
    let configuration = made.configuration;
    assert!(configuration.path && configuration.read_only);
    assert_eq!(configuration.timeout_millis, Some(500));
    assert_eq!(configuration.side_effects.len(), 1);
    let options = compiled("g.withStrategies(new OptionsStrategy(evaluationTimeout: 7, other: 'x')).V()");
    assert_eq!(options.configuration.timeout_millis, Some(7));
    assert_eq!(compiled("g.with('tenant', 'reports').V()").configuration.tenant.as_deref(), Some("reports"));
    assert!(
        !compiled("g.withStrategies(ReadOnlyStrategy).withoutStrategies(ReadOnlyStrategy).V()").configuration.read_only
    );
    fails(
        "g.withStrategies(ReadOnlyStrategy).V().where(sideEffect(addV()))",
        "The provided traversal has a mutating step and thus is not read only: `addV` at line 1, column 57; use a source \
         without ReadOnlyStrategy to write",
    );
    let carried = compiled("g.withBulk(false).withSack(1, sum).withStrategies(new SeedStrategy(seed: 1)).V()");
    assert!(carried.configuration.one_bulk);
    assert_eq!(carried.configuration.seed, Some(1));
    assert!(carried.configuration.sack.is_some_and(|sack| sack.merge.is_some()));
    fails(
        "g.withStrategies(new EventStrategy()).V()",
        "`withStrategies` at line 1, column 3: EventStrategy changes what a traversal means and is not supported yet",
    );
    fails(
        "g.with('evaluationTimeout', -1).V()",
        "`with` at line 1, column 3: evaluationTimeout is a number of milliseconds from 0, not the int -1",
    );
    fails("g.with('foo', 1).V()", "`with` at line 1, column 3: a traversal source has no option `foo`");
    fails(
        "g.with('batchSize', 1).V()",
        "`with` at line 1, column 3: batchSize is an argument of the request; pass it there",
    );
    for misspelt in
        ["g.with('evaluationTimeOuts', 1).V()", "g.withStrategies(new OptionsStrategy(evaluationTimeouts: 1)).V()"]
    {
        let error = compile(&bytecode(misspelt)).expect_err(misspelt);
        assert!(error.message().ends_with("; did you mean `evaluationTimeout`?"), "{error}");
    }
    for (strategy, why) in [
        (
            "ElementIdStrategy(idPropertyKey: 'x')",
            "ElementIdStrategy has no setting `idPropertyKey`; it takes no settings here",
        ),
        ("ReadOnlyStrategy(foo: 1)", "ReadOnlyStrategy has no setting `foo`; it takes no settings here"),
        ("SeedStrategy(seeds: 1)", "SeedStrategy has no setting `seeds`; it takes `seed`"),
        (
            "EdgeLabelVerificationStrategy(logWarning: true)",
            "EdgeLabelVerificationStrategy logs no warnings here; use throwException",
        ),
    ] {
        fails(
            &format!("g.withStrategies(new {strategy}).V()"),
            &format!("`withStrategies` at line 1, column 3: {why}"),
        );
    }
    let transaction = Bytecode { source: vec![call("tx", vec![text("commit")])], steps: vec![] };
    assert_eq!(
        compile(&transaction).unwrap_err().message(),
        "`tx` (step 1): a transaction command is not a traversal; send it to the server on its own"
    );
}

#[test]
fn merges_check_their_maps() {
    for (script, error) in [
        ("g.mergeV(1)", "`mergeV` at line 1, column 3: a map or a traversal that gives one is needed, not the int 1"),
        (
            "g.mergeV([(T.key): 1])",
            "`mergeV` at line 1, column 3: the keys of this map are T.id, T.label and property keys, not a token",
        ),
        (
            "g.mergeV([(T.label): 'a']).option(onCreate, [(T.label): 'b'])",
            "`mergeV` at line 1, column 3: option(onCreate) cannot override values from merge() argument: T.label differs",
        ),
        (
            "g.mergeV([a: 1]).option(outV, [b: 1])",
            "`option` at line 1, column 18: mergeV() has no option Merge.outV; mergeE() has",
        ),
        (
            "g.mergeE([:]).option(onMatch, [(T.id): 1])",
            "`option` at line 1, column 15: the keys of this map are property keys, not a token",
        ),
    ] {
        fails(script, error);
    }
}

#[test]
fn a_subgraph_stands_behind_every_step_that_comes_to_elements() {
    let with = |strategy: &str, script: &str| compiled(&format!("g.withStrategies({strategy}).{script}")).traversal;
    let vertices = "new SubgraphStrategy(vertices: has('x'))";
    assert_eq!(with(vertices, "V().out()"), compiled("g.V().where(has('x')).out().where(has('x'))").traversal);
    assert_eq!(
        with(vertices, "V().map(inE())"),
        compiled("g.V().where(has('x')).map(inE().and(outV().has('x'), inV().has('x')))").traversal
    );
    let edges = "new SubgraphStrategy(edges: has('y'))";
    assert_eq!(with(edges, "V().out('a')"), compiled("g.V().flatMap(outE('a').where(has('y')).inV())").traversal);
    let partition = "new PartitionStrategy(partitionKey: 'p', writePartition: 'a', readPartitions: ['a', 'b'])";
    assert_eq!(with(partition, "addV('x')"), compiled("g.addV('x').property('p', 'a')").traversal);
    fails(
        "g.withStrategies(new EdgeLabelVerificationStrategy(throwException: true)).V().out()",
        "The provided traversal contains a vertex step without any specified edge label at line 1, column 79; name the \
         labels",
    );
    fails(
        "g.withStrategies(new ReservedKeysVerificationStrategy(throwException: true)).addV().property('id', 1)",
        "The provided traversal is setting a property key to a reserved word: id at line 1, column 78",
    );
    fails(
        "g.withStrategies(new ReservedKeysVerificationStrategy(throwException: true)).V().property('a', 1, 'id', 2)",
        "The provided traversal is setting a property key to a reserved word: id at line 1, column 82",
    );
}

#[test]
fn properties_that_read_a_new_vertex_are_steps_after_it() {
    let steps = compiled("g.addV('x').property(single, 'a', __.label()).property(single, 'b', 1).property('a', 2)");
    let written = |step: &crate::logical::Step| match step {
        crate::logical::Step::AddVertex { properties, .. } => properties.iter().map(|p| p.key.to_string()).collect(),
        crate::logical::Step::Property(property) => vec![format!("then {}", property.key)],
        _ => Vec::new(),
    };
    let written: Vec<String> = steps.traversal.steps.iter().flat_map(|node| written(&node.step)).collect();
    assert_eq!(written, ["a", "then a", "then b"]);
}

#[test]
fn rules_are_switched_off_by_name() {
    let off = |script| compiled(script).configuration.rules_off;
    assert_eq!(off("g.with('without', 'hop over edges').V()"), ["hop over edges"]);
    assert_eq!(
        off("g.with('without', ['hop over edges', 'fuse neighbors']).V()"),
        ["hop over edges", "fuse neighbors"]
    );
    assert!(off("g.with('without', []).V()").is_empty());
    assert!(off("g.with('without', 'fuse neighbors').withoutStrategies(OptionsStrategy).V()").is_empty());
    for given in ["'hop over'", "['fuse neighbors', 'hop over']"] {
        let error = compile(&bytecode(&format!("g.with('without', {given}).V()"))).unwrap_err().to_string();
        let says = ["`hop over` is none of `", "`hop over edges`", "`search from both ends`"];
        assert!(says.iter().all(|part| error.contains(part)), "{error}");
    }
    assert!(compile(&bytecode("g.with('without', 1).V()")).is_err());
}
