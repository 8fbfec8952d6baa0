//! `mangrove console`, through pipes. `conformance/console` tests it at a terminal.

use crate::common::{Folder, Ran, fed, succeed};
use crate::server::Serving;

/// Runs the console over an input that is no terminal.
fn piped(args: &[&str], input: &str) -> Ran {
    fed("console", args, input)
}

#[track_caller]
fn check(args: &[&str], input: &str, expected: &str) {
    let ran = piped(args, input);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), expected), "{input}: {}", ran.err);
}

/// A session to which both kinds of graph must answer the same.
fn conversation(args: &[&str]) {
    let args = [args, &["--format", "jsonl"]].concat();
    check(&args, "g.V().hasLabel('t').\n  count()\n\n// nothing\ng.inject('a;b'); g.inject(2)\n", "0\n2\n");
    check(
        &args,
        "n = g.addV('t').property('n', 7).values('n').next()\ng.inject(n)\nn\ng.V().hasLabel('t').drop()",
        "7\n7\n7\n",
    );
    check(&args, "v = g.addV('t').next(); g.V(v).label()\ng.V().hasLabel('t').drop()", "\"t\"\n");
    check(
        &args,
        ":begin\ng.addV('t').iterate()\ng.V().hasLabel('t').count()\n:rollback\ng.V().hasLabel('t').count()\n",
        "1\n0\n",
    );
    check(
        &args,
        "g.tx().begin()\ng.addV('t').iterate()\ng.tx().commit()\ng.V().hasLabel('t').count()\ng.V().hasLabel('t').drop()",
        "1\n",
    );
    check(
        &args,
        ":begin si\ng.V().hasLabel('t').count()\n:commit\n:source g\nx = 3\n:param y=[1, \"b\"]\ng.inject(x, y)\n",
        "0\n3\n3\n[1,\"b\"]\n",
    );
    for (input, part) in [
        ("g.V().oot()\ng.inject(1)", "line 1: line 1, column 7: unknown step `oot`"),
        ("g.inject(1)\n\n:halp\n", "line 3: there is no command `:halp`; did you mean `:help`"),
        (":commit", "no transaction to commit"),
        (":begin\ng.addV('t').iterate()\n", "the open transaction was rolled back"),
        (":source nope", "no traversal source `nope`"),
        ("g.V(", "line 1: line 1, column 5: expected"),
        (":timeout 50ms\ng.inject(1).repeat(identity()).until(is(2))", "50"),
    ] {
        let ran = piped(&args, input);
        assert_eq!(ran.code, Some(1), "{input}: {}", ran.out);
        assert!(ran.err.contains(part), "{input}: {}", ran.err);
    }
    check(&args, "g.V().hasLabel('t').count()", "0\n");
}

#[test]
fn a_graph_here_talks() {
    let folder = Folder::new("console-here");
    let graph = folder.path().join("graph").to_str().unwrap().to_owned();
    let [people, knows] = folder.people();
    succeed(&["load", &people, &knows, "--data", &graph]);
    conversation(&["--data", &graph]);
    let told = piped(
        &["--data", &graph],
        ":labels\n:explain g.V().out()\n:explain dot g.V().in()\n:profile g.V().\n  out().count()\n:stats\n:help\n:quit\ng.oops()",
    );
    assert_eq!(told.code, Some(0), "{}", told.err);
    // The graph may be measured by then or not, so expected rows may follow the operator.
    for part in ["person", "vertices", "expand out", "label=\"expand in\\l", "rows", "plans made", ":rollback"] {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
}

#[test]
fn a_server_talks_alike() {
    let serving = Serving::start(&[]);
    conversation(&["--url", &serving.url]);
    serving.stop();
}
