//! Scripts that parse, with their bytecode, and scripts that do not, with the position of the error.

use mangrove_graph::{DateTime, ErrorKind};
use uuid::Uuid;

use super::*;
use crate::limits::NESTING_MAX;

fn parsed(text: &str) -> Bytecode {
    match parse_one(text, &ParseOptions::default()) {
        Ok(Statement::Traversal { bytecode, .. }) => bytecode,
        other => panic!("{text}: {other:?}"),
    }
}

#[track_caller]
fn check(text: &str, printed: &str) {
    let bytecode = parsed(text);
    assert_eq!(bytecode.to_string(), printed, "{text}");
    assert_eq!(parsed(printed), bytecode, "{printed} does not parse back");
}

#[track_caller]
fn check_error(text: &str, kind: ErrorKind, begins: &str) {
    let error = parse(text, &ParseOptions::default()).unwrap_err();
    assert!(error.message().starts_with(begins), "{text}: {error}");
    assert_eq!(error.kind(), kind, "{text}: {error}");
}

#[test]
fn steps_and_nested_traversals() {
    check("g.V()", "g.V()");
    check("g.V(1, 2L).out('knows').values(\"name\")", "g.V(1, 2L).out('knows').values('name')");
    check("g.V().where(__.out())", "g.V().where(__.out())");
    check("g.V().where(out().in())", "g.V().where(__.out().in())");
    check("g.V().repeat(both().simplePath()).times(2)", "g.V().repeat(__.both().simplePath()).times(2)");
    check("g.V().as('a').in().as('b')", "g.V().as('a').in().as('b')");
    check("g.V().map(__)", "g.V().map(__)");
    check("g.V() // all of them\n  .count()", "g.V().count()");
    check("g.V().has('a',1).or().has('b',2)", "g.V().has('a', 1).or().has('b', 2)");
    check("g.V().is(x)", "g.V().is(x)");
}

#[test]
fn the_source_is_configured_before_the_first_step() {
    check("g.with('evaluationTimeout', 500).V().with('x')", "g.with('evaluationTimeout', 500).V().with('x')");
    check("g.withSack(1.0, sum).V()", "g.withSack(1.0, Operator.sum).V()");
    let bytecode = parsed("g.withPath().withBulk(false).V().with('x')");
    assert_eq!((bytecode.source.len(), bytecode.steps.len()), (2, 2));
    check(
        "g.withStrategies(ReadOnlyStrategy, new SubgraphStrategy(vertices: hasLabel('a'), checkAdjacentVertices: false)).V()",
        "g.withStrategies(ReadOnlyStrategy, new SubgraphStrategy(vertices: __.hasLabel('a'), checkAdjacentVertices: false)).V()",
    );
    check("g.withoutStrategies(CountStrategy).V()", "g.withoutStrategies(CountStrategy).V()");
}

#[test]
fn literals() {
    check("g.inject(1b, 1s, 1i, 1, 1l, 1n)", "g.inject(1b, 1s, 1, 1, 1L, 1n)");
    check("g.inject(1f, 1.5, 1d, 1.5m, 1e-7)", "g.inject(1.0f, 1.5, 1.0, 15e-1m, 1e-7)");
    check("g.inject(+1, -1, -1.5, 0x1F, 017)", "g.inject(1, -1, -1.5, 31, 15)");
    check("g.inject(Infinity, -Infinity, +Infinity)", "g.inject(Infinity, -Infinity, Infinity)");
    check("g.inject(null, true, false)", "g.inject(null, true, false)");
    check(r#"g.inject('it\'s', "a\"b", "tab\t", '\u0000')"#, r#"g.inject('it\'s', 'a"b', 'tab\t', '\u0000')"#);
    check("g.inject([], [1, 'a'], {1, 1}, {}, [:])", "g.inject([], [1, 'a'], {1}, {}, [:])");
    check(
        "g.inject([a: 1, 'b c': 2, (T.id): 3, 4: 5, id: 6])",
        "g.inject(['a': 1, 'b c': 2, (T.id): 3, (4): 5, 'id': 6])",
    );
    check("g.inject([T.id: 1, (id): 2, Direction.OUT: 3])", "g.inject([(T.id): 2, (Direction.OUT): 3])");
    check("g.inject([[1, [2]]: {3}])", "g.inject([([1, [2]]): {3}])");
    check("g.inject(1..3, 'c'..'a', 3..1)", "g.inject([1, 2, 3], ['c', 'b', 'a'], [3, 2, 1])");
    check("g.inject(datetime('2020-01-02'))", "g.inject(datetime('2020-01-02T00:00:00Z'))");
    check(
        "g.inject(UUID('6B0CA0E2-8D7D-4A0E-8F6D-0F1E2D3C4B5A'))",
        "g.inject(UUID('6b0ca0e2-8d7d-4a0e-8f6d-0f1e2d3c4b5a'))",
    );
    assert!(parsed("g.inject(NaN)").to_string().contains("NaN"));
    // A list with a nested traversal is a list, but no literal.
    check("g.V().inject([out(), 1])", "g.V().inject([__.out(), 1])");
    check("g.mergeV([name: x])", "g.mergeV(['name': x])");
}

#[test]
fn predicates() {
    check("g.V().has('a', gt(1))", "g.V().has('a', P.gt(1))");
    check("g.V().has('a', P.between(1, 5))", "g.V().has('a', P.gte(1).and(P.lt(5)))");
    check("g.V().has('a', inside(1, 5))", "g.V().has('a', P.gt(1).and(P.lt(5)))");
    check("g.V().has('a', outside(1, 5))", "g.V().has('a', P.lt(1).or(P.gt(5)))");
    check("g.V().has('a', within(1, 2))", "g.V().has('a', P.within([1, 2]))");
    check("g.V().has('a', within([1, 2]))", "g.V().has('a', P.within([1, 2]))");
    check("g.V().has('a', without({1}))", "g.V().has('a', P.without([1]))");
    check("g.V().has('a', within([[1]]))", "g.V().has('a', P.within([[1]]))");
    check("g.V().has('a', within())", "g.V().has('a', P.within([]))");
    check("g.V().has('a', notContaining('x'))", "g.V().has('a', P.not(TextP.containing('x')))");
    check("g.V().has('a', TextP.regex('^x'))", "g.V().has('a', TextP.regex('^x'))");
    check("g.V().has('a', gt(1).and(lt(5)).and(neq(3)))", "g.V().has('a', P.gt(1).and(P.lt(5)).and(P.neq(3)))");
    check("g.V().has('a', gt(1).or(lt(5)).and(neq(3)))", "g.V().has('a', P.gt(1).or(P.lt(5)).and(P.neq(3)))");
    check("g.V().has('a', gt(1).negate().negate())", "g.V().has('a', P.gt(1))");
    check("g.V().has('a', not(gt(1)))", "g.V().has('a', P.not(P.gt(1)))");
    check("g.V().has('a', typeOf(GType.INT))", "g.V().has('a', P.typeOf(GType.INT))");
    check("g.V().where(not(out()))", "g.V().where(__.not(__.out()))");
    check("g.V().not(out())", "g.V().not(__.out())");
    check("g.V().and(out(), or(in(), has('a')))", "g.V().and(__.out(), __.or(__.in(), __.has('a')))");
}

#[test]
fn words_that_mean_two_things() {
    check("g.V(from).has('a', to).has('b', P.eq(from))", "g.V(from).has('a', to).has('b', P.eq(from))");
    check(
        "g.V().toE(from, 'a').mergeE([(from): to])",
        "g.V().toE(Direction.OUT, 'a').mergeE([(Direction.OUT): Direction.IN])",
    );
    check("g.V().hasId(Direction.from)", "g.V().hasId(Direction.OUT)");
    // A comma may follow the last argument, and types have two spellings after their class.
    check("g.V().project('a', 'b',).by(out(),)", "g.V().project('a', 'b').by(__.out())");
    check(
        "g.V().has('a', typeOf(GType.bigInt)).asNumber(GType.short)",
        "g.V().has('a', P.typeOf(GType.BIGINT)).asNumber(GType.SHORT)",
    );
    check("g.V(string)", "g.V(string)");
    check("g.V().by(id).by(id())", "g.V().by(T.id).by(__.id())");
    check("g.V().by(label).by(label())", "g.V().by(T.label).by(__.label())");
    check("g.V().by(values).by(values('a'))", "g.V().by(Column.values).by(__.values('a'))");
    check("g.V().by(keys).by(key)", "g.V().by(Column.keys).by(T.key)");
    check("g.V().sack(min).map(min())", "g.V().sack(Operator.min).map(__.min())");
    check("g.V().range(local, 1, 2).local(range(1, 2))", "g.V().range(Scope.local, 1, 2).local(__.range(1, 2))");
    check("g.addV().property(list, 'a', 1)", "g.addV().property(Cardinality.list, 'a', 1)");
    check("g.mergeV([a: list(1)])", "g.mergeV(['a': Cardinality.list(1)])");
    check("g.V().option(any, out()).option(none, in())", "g.V().option(Pick.any, __.out()).option(Pick.none, __.in())");
    check("g.V().toE(OUT).toV(Direction.IN)", "g.V().toE(Direction.OUT).toV(Direction.IN)");
    check("g.mergeE([(from): 1, (Direction.to): 2])", "g.mergeE([(Direction.OUT): 1, (Direction.IN): 2])");
    check("g.mergeV([:]).option(onCreate, [:])", "g.mergeV([:]).option(Merge.onCreate, [:])");
    check("g.V().option(outV, out()).option(Merge.inV, x)", "g.V().option(Merge.outV, __.out()).option(Merge.inV, x)");
    check("g.V().select(all, 'a').select(Pop.last, 'b')", "g.V().select(Pop.all, 'a').select(Pop.last, 'b')");
    check("g.V().order().by('a', desc).by(incr)", "g.V().order().by('a', Order.desc).by(Order.asc)");
    check("g.V().barrier(normSack).dateAdd(DT.day, 1)", "g.V().barrier(Barrier.normSack).dateAdd(DT.day, 1)");
    check("g.V().valueMap().with(WithOptions.tokens)", "g.V().valueMap().with('~tinkerpop.valueMap.tokens')");
    check("g.V().with(WithOptions.tokens, WithOptions.labels)", "g.V().with('~tinkerpop.valueMap.tokens', 2)");
    check("g.V().addE('a').from(new Vertex(1, 'p'))", "g.V().addE('a').from(new Vertex(1))");
    check("g.V().fold(0, Operator.sum)", "g.V().fold(0, Operator.sum)");
}

#[test]
fn statements_and_terminals() {
    let options = ParseOptions::default();
    let script = parse("g.V().next(2); gsi.E().toList()\ng.tx().commit()\n\ng.addV().iterate();", &options).unwrap();
    let terminals: Vec<_> = script
        .iter()
        .map(|statement| match &statement.statement {
            Statement::Traversal { source, terminal, volatile, .. } => {
                assert!(!volatile);
                (source.as_str(), Some(*terminal))
            }
            Statement::Transaction { source, command } => {
                assert_eq!(*command, TransactionCommand::Commit);
                (source.as_str(), None)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("g", Some(Terminal::Next(Some(2)))),
        ("gsi", Some(Terminal::ToList)),
        ("g", None),
        ("g", Some(Terminal::Iterate)),
    ];
    assert_eq!(terminals, expected);
    assert_eq!(parse(" // nothing\n;", &options).unwrap(), []);
    assert!(parse_one("", &options).unwrap_err().message().contains("empty"));
    assert!(parse_one("g.V();g.V()", &options).unwrap_err().message().contains("2 statements"));
}

#[test]
fn statements_give_names_values() {
    let text = "a = g.addV('x').next() // the first\nids = [1, 2];b=a\n  g.V(a, ids)\n  .out()\n;a";
    let script = parse(text, &ParseOptions::default()).unwrap();
    let places: Vec<(Option<&str>, &str, &str, u32, u32)> = script
        .iter()
        .map(|statement| {
            let ScriptStatement { variable, position, range, expression, .. } = statement;
            (variable.as_deref(), &text[range.clone()], &text[expression.clone()], position.line, position.column)
        })
        .collect();
    let expected = [
        (Some("a"), "a = g.addV('x').next()", "g.addV('x').next()", 1, 1),
        (Some("ids"), "ids = [1, 2]", "[1, 2]", 2, 1),
        (Some("b"), "b=a", "a", 2, 14),
        (None, "g.V(a, ids)\n  .out()", "g.V(a, ids)\n  .out()", 3, 3),
        (None, "a", "a", 5, 2),
    ];
    assert_eq!(places, expected);
    let ids = mangrove_graph::Value::list(vec![1i32.into(), 2i32.into()]);
    assert_eq!(script[1].statement, Statement::Value(ids));
    assert_eq!(script[2].statement, Statement::Variable("a".into()));
    assert_eq!(script[4].statement, Statement::Variable("a".into()));
    // A name without a value is a traversal source. The server knows whether it exists.
    assert!(matches!(parse_one("a", &ParseOptions::default()).unwrap(), Statement::Traversal { .. }));
    assert_eq!(script[3].place(4).to_string(), "statement 4 (line 3, column 3)");
}

#[test]
fn what_cannot_be_a_variable_is_refused_with_its_place() {
    use ErrorKind::{Syntax, Unsupported};
    for (text, kind, begins) in [
        (
            "a = g.V()",
            Unsupported,
            "line 1, column 1: `a` holds a value: end the traversal it is given with one of hasNext, next",
        ),
        ("a = g.V().iterate()", Unsupported, "line 1, column 1: `a` holds a value"),
        ("a = g.tx().commit()", Syntax, "line 1, column 1: a transaction is no value"),
        ("a = __.V()", Syntax, "line 1, column 5: expected a traversal source"),
        ("a = gt(1)", Unsupported, "line 1, column 5: a variable is given a value"),
        ("g.V();label = 1", Syntax, "line 1, column 7: `label` is a word of the language"),
        ("true = 1", Syntax, "line 1, column 1: `true` is a word of the language"),
        ("a = 1; a.out()", Unsupported, "line 1, column 8: `a` is a variable, and steps follow traversal sources"),
        ("a = ", Syntax, "line 1, column 5: expected an argument"),
        ("a = 1 g.V()", Syntax, "line 1, column 7: expected `.`, `;` or the end"),
    ] {
        check_error(text, kind, begins);
    }
}

#[test]
fn text_that_may_go_on_is_known() {
    for text in ["g.V(", "g.V().", "g.V().has('a", "g.V().has('a',", "a =", "g.inject([1, 2", "g.V().where(out()", "g."]
    {
        assert!(is_unfinished(text), "{text}");
    }
    for text in ["", "g.V()", "g.V();", "g.V().hsa(", "g.V())", "a = 1", "g.V('it\\'s')", "g.V() // (", "g.V(#"] {
        assert!(!is_unfinished(text), "{text}");
    }
}

#[test]
fn positions_of_steps_are_kept() {
    let bytecode = parsed("g.V()\n  .has('é', 1).out()");
    let positions: Vec<_> = bytecode.steps.iter().map(|step| step.position.map(|p| (p.line, p.column))).collect();
    assert_eq!(positions, [Some((1, 3)), Some((2, 4)), Some((2, 16))]);
}

#[test]
fn the_clock_and_random_bits_come_with_the_options() {
    check_error(
        "g.inject(datetime())",
        ErrorKind::InvalidArgument,
        "line 1, column 10: `datetime` needs its text here",
    );
    check_error("g.inject(UUID())", ErrorKind::InvalidArgument, "line 1, column 10: `UUID` needs its text here");
    let options = ParseOptions {
        now: Some(DateTime::from_epoch_millis(0)),
        fresh_uuid: Some(Uuid::from_u128(7)),
        ..ParseOptions::default()
    };
    let Statement::Traversal { bytecode, volatile, .. } =
        parse_one("g.inject(datetime(), UUID(), UUID())", &options).unwrap()
    else {
        panic!("no traversal")
    };
    assert!(volatile);
    assert_eq!(bytecode.steps[0].arguments[0], DateTime::from_epoch_millis(0).into_argument());
    assert_ne!(bytecode.steps[0].arguments[1], bytecode.steps[0].arguments[2]);
}

trait IntoArgument {
    fn into_argument(self) -> Argument;
}
impl IntoArgument for DateTime {
    fn into_argument(self) -> Argument {
        Argument::Value(Value::DateTime(self))
    }
}

#[test]
fn syntax_errors_say_where_and_what() {
    use ErrorKind::Syntax;
    check_error(
        "g.V(1",
        Syntax,
        "line 1, column 6: expected `)` or `,`, found the end of the script\n  g.V(1\n       ^",
    );
    check_error("g.V()\n  .out(]", Syntax, "line 2, column 8: expected an argument, found `]`\n    .out(]\n         ^");
    check_error("g.V() x", Syntax, "line 1, column 7: expected `.`, `;` or the end of the script, found `x`");
    check_error("g.V().", Syntax, "line 1, column 7: expected a step, found the end of the script");
    check_error("g.V().out", Syntax, "line 1, column 10: expected `(`, found the end of the script");
    check_error("g.V('a)", Syntax, "line 1, column 5: this string has no closing quote");
    check_error("g.V('a\\q')", Syntax, "line 1, column 5: `\\q` is no escape");
    check_error("g.V(1x)", Syntax, "line 1, column 6: a number is followed by this letter");
    check_error("g.V(300b)", Syntax, "line 1, column 5: `300b` is out of range for a byte");
    check_error("g.V(#)", Syntax, "line 1, column 5: the character `#` has no place here");
    check_error("g.V([1 2])", Syntax, "line 1, column 8: expected `]`, `,` or `:`, found `2`");
    check_error("g.V([(a) 1])", Syntax, "line 1, column 10: expected `:`, found `1`");
    check_error("__.out()", Syntax, "line 1, column 1: expected a traversal source such as `g`, found `__`");
    check_error("g.inject(1..2000000)", Syntax, "line 1, column 10: the ranges of a script");
    check_error("g.inject('aa'..'bb')", Syntax, "line 1, column 10: the strings of a range");
    let small = ParseOptions { size_bytes_max: 4, ..ParseOptions::default() };
    assert!(parse("g.V()", &small).unwrap_err().message().contains("5 bytes, more than the limit of 4"));
}

#[test]
fn unknown_names_are_refused_with_the_nearest_known() {
    use ErrorKind::{InvalidArgument, Unsupported};
    check_error(
        "g.V().hasLable('a')",
        Unsupported,
        "line 1, column 7: unknown step `hasLable`; did you mean `hasLabel`?\n",
    );
    check_error(
        "g.V().has('a', grt(1))",
        Unsupported,
        "line 1, column 16: unknown step or predicate `grt`; did you mean",
    );
    check_error("g.V().has('a', P.gtt(1))", Unsupported, "line 1, column 16: `P` has no `gtt`; did you mean `gt`");
    check_error(
        "g.V().order().by(Order.descc)",
        Unsupported,
        "line 1, column 18: `Order` has no `descc`; did you mean `desc`",
    );
    check_error(
        "g.V().by(Ordr.desc)",
        Unsupported,
        "line 1, column 10: `Ordr` is no enum or class with members; did you mean `Order`?",
    );
    check_error(
        "g.V().has('a', gt())",
        InvalidArgument,
        "line 1, column 16: the predicate `gt` takes one argument, not 0",
    );
    check_error("g.V().has('a', between(1))", InvalidArgument, "line 1, column 16: the predicate `between` takes two");
    check_error("g.out()", Unsupported, "line 1, column 3: `out` cannot begin a traversal");
    check_error("g.V().toList().out()", Unsupported, "line 1, column 15: nothing may follow");
    check_error("g.V().where(out().toList())", Unsupported, "line 1, column 19: `toList` takes the results of a whole");
    check_error("g.V(g.V().next())", Unsupported, "line 1, column 5: a traversal that runs to make an argument");
    check_error("g.tx().close()", Unsupported, "line 1, column 8: unknown transaction method `close`");
    check_error("g.V().inject(new Foo(1))", Unsupported, "line 1, column 18: `Foo` cannot be made here");
    check_error("g.inject({out()})", Unsupported, "line 1, column 10: a set holds literals only");
}

#[test]
fn closures_are_refused_with_the_alternative() {
    for text in [
        "g.V().map { it.get() }",
        "g.V().map({ it.get().value('a') })",
        "g.V().filter({ x -> x })",
        "g.V().filter(it.get())",
        "g.V().map(Lambda.function('it'))",
        "g.V().map(Lambda('it'))",
    ] {
        let error = parse(text, &ParseOptions::default()).unwrap_err();
        assert!(error.message().contains("lambdas and closures are not supported"), "{text}: {error}");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn nesting_is_bounded_and_never_overflows_the_stack() {
    let deep =
        |open: &str, close: &str, levels: usize| format!("g.V().map({}1{})", open.repeat(levels), close.repeat(levels));
    for (open, close) in [
        ("out(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("[a:", "]"),
        ("[([", "]):1]"),
        ("gt(", ")"),
        ("not(", ")"),
        ("list(", ")"),
    ] {
        let error = parse(&deep(open, close, 10_000), &ParseOptions::default()).unwrap_err();
        assert!(error.message().contains("deeper than 200 levels"), "{open}: {error}");
        let fitting = deep(open, close, NESTING_MAX / 2 - 1);
        let statements = parse(&fitting, &ParseOptions::default()).unwrap_or_else(|error| panic!("{open}: {error}"));
        drop(statements);
    }
    let parentheses = deep("(", ")", 10_000);
    assert!(parse(&parentheses, &ParseOptions::default()).is_err());
    let alternating = format!("g.V().is(gt(1){})", ".and(lt(1)).or(lt(2))".repeat(10_000));
    assert!(parse(&alternating, &ParseOptions::default()).unwrap_err().message().contains("deeper than"));
    // Each level wraps the level inside it fifty times: no argument is nested deep, but the result would be.
    let wraps = ".and(lt(1)).or(lt(2))".repeat(25);
    let wrapped = (0..100).fold("gt(1)".to_owned(), |inner, _| format!("lt(1).and({inner}){wraps}"));
    let error = parse(&format!("g.V().is({wrapped})"), &ParseOptions::default()).unwrap_err();
    assert!(error.message().contains("deeper than"));
    let flat = format!("g.V().is(gt(1){})", ".and(lt(1))".repeat(10_000));
    assert!(parse(&flat, &ParseOptions::default()).is_ok());
}

mod properties {
    use proptest::prelude::*;

    use super::*;
    use crate::generate;

    proptest! {
        #[test]
        fn what_is_printed_parses_to_the_same_bytecode(bytecode in generate::bytecode()) {
            let printed = bytecode.to_string();
            match parse_one(&printed, &ParseOptions::default()) {
                Ok(Statement::Traversal { bytecode: read, .. }) => prop_assert_eq!(read, bytecode, "{}", printed),
                other => prop_assert!(false, "{}: {:?}", printed, other),
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>()) {
            let _ = parse(&text, &ParseOptions::default());
        }

        #[test]
        fn no_sequence_of_tokens_makes_the_parser_panic(
            words in prop::collection::vec(prop::sample::select(WORDS), 0..24),
        ) {
            let text = ["g.V(", &words.concat()].concat();
            let _ = parse(&text, &ParseOptions::default());
        }
    }

    const WORDS: &[&str] = &[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        ":",
        ";",
        "..",
        "g",
        "V",
        "out",
        "__",
        "P",
        "gt",
        "not",
        "and",
        "1",
        "-",
        "'a'",
        "'",
        "\\u",
        "é",
        " ",
        "\n",
        "new ",
        "SeedStrategy",
        "it",
        "->",
        "1e5m",
        "0x",
        "T",
        "id",
        "list",
        "datetime",
        "within",
        "negate",
        "//",
        "😀",
    ];
}

#[test]
fn a_word_is_a_token_only_where_a_step_takes_tokens() {
    let printed = |script: &str| match parse_one(script, &ParseOptions::default()).unwrap() {
        Statement::Traversal { bytecode, .. } => bytecode.to_string(),
        other => panic!("{other:?} is no traversal"),
    };
    assert_eq!(printed("g.V(id)"), "g.V(id)");
    assert_eq!(printed("g.V().has(id, id)"), "g.V().has(T.id, id)");
    assert_eq!(printed("g.V().has('a', value)"), "g.V().has('a', value)");
    assert_eq!(printed("g.V().has('a', gt(value))"), "g.V().has('a', P.gt(value))");
    assert_eq!(printed("g.addV().property(id, id)"), "g.addV().property(T.id, id)");
    assert_eq!(printed("g.V().group().by(label)"), "g.V().group().by(T.label)");
    assert_eq!(printed("g.V(T.id)"), "g.V(T.id)");
}
