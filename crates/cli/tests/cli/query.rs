//! `mangrove query`, as a user runs it.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Folder, fail, mangrove, ran, run, succeed};

/// The arguments of a query over the people, with more arguments before the script.
fn over_people<'a>(files: &'a [String; 2], more: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut args = vec!["query", "--load", &files[0], "--load", &files[1]];
    args.extend(more);
    args.push(script);
    args
}

#[test]
fn a_script_needs_no_graph() {
    assert_eq!(succeed(&["query", "--format", "csv", "g.inject(1, 2, 3).sum()"]), "result\n6\n");
}

#[test]
fn maps_are_tables_with_columns() {
    let folder = Folder::new("tables");
    let files = folder.people();
    let script = "g.V().hasLabel('person').project('name', 'knows').by('name').by(out('knows').count()).order().by(select('name'))";
    let expected = "\
┌──────┬───────┐
│ name ┆ knows │
╞══════╪═══════╡
│ ada  ┆     2 │
│ bob  ┆     0 │
│ eve  ┆     0 │
└──────┴───────┘
";
    assert_eq!(succeed(&over_people(&files, &[], script)), expected);
    let csv = succeed(&over_people(&files, &["--format", "csv"], script));
    assert_eq!(csv, "name,knows\nada,2\nbob,0\neve,0\n");
}

#[test]
fn elements_are_shown_with_their_properties_and_in_csv_by_their_ids() {
    let folder = Folder::new("elements");
    let files = folder.people();
    let table = succeed(&over_people(&files, &[], "g.V(1)"));
    assert!(
        table.contains("│ id ┆ label  ┆ name ┆ age │") && table.contains("│  1 ┆ person ┆ ada  ┆  36 │"),
        "{table}"
    );
    let csv = succeed(&over_people(&files, &["--format", "csv"], "g.V(1)"));
    assert!(csv.contains("v[1]"), "{csv}");
    let csv = succeed(&over_people(&files, &["--format", "csv"], "g.V(1).outE('knows').has('since', 2005)"));
    assert!(csv.contains("[1-knows->3]"), "{csv}");
    let json = succeed(&over_people(&files, &["--format", "jsonl"], "g.V(1)"));
    assert!(json.starts_with(r#"{"id":1,"label":"person","properties":{"#) && json.contains(r#""age":[36]"#), "{json}");
}

#[test]
fn json_is_one_document() {
    let out = succeed(&["query", "--format", "json", "g.inject(1, 'a', [1.5, true])"]);
    assert_eq!(out, "[\n  1,\n  \"a\",\n  [1.5,true]\n]\n");
    assert_eq!(succeed(&["query", "--format", "json", "g.V()"]), "[]\n");
}

#[test]
fn parameters_are_values_and_never_script() {
    let folder = Folder::new("parameters");
    let files = folder.people();
    let who = |value: &str| {
        let parameter = format!("who={value}");
        let script = "g.V().has('name', who).count()";
        succeed(&over_people(&files, &["--param", &parameter, "--format", "csv"], script))
    };
    assert_eq!(who("ada"), "result\n1\n");
    assert_eq!(who("x').drop().has('a"), "result\n0\n");
    let error = fail(1, &["query", "g.V().has('name', who)"]);
    assert!(error.contains("`who` has no value"), "{error}");
}

#[test]
fn a_plan_is_printed_as_text() {
    let plan = succeed(&["query", "g.V().out('knows').count().explain()"]);
    assert!(plan.lines().count() > 1 && !plan.contains('│'), "{plan}");
}

#[test]
fn a_plan_is_a_tree_for_people_and_for_programs() {
    let folder = Folder::new("plans");
    let files = folder.people();
    let asked = |question: &str| succeed(&over_people(&files, &[question], "g.V().where(out('knows').out('knows'))"));
    // Numbers of rows are shown if the graph was counted before, which happens in the background.
    let shape = |question: &str| -> String {
        let plan = asked(question);
        let lines = plan.lines().map(|line| line.split(" (~").next().unwrap_or_default().to_owned() + "\n");
        lines.collect()
    };
    let plan = shape("--explain");
    assert!(plan.contains("\n  scope\n    expand out knows\n"), "{plan}");
    assert_eq!(shape("--explain=tree"), plan);
    let json: serde_json::Value = serde_json::from_str(&asked("--explain=json")).unwrap();
    assert_eq!(json["operators"][1]["operators"][0]["part"], "scope", "{json}");
    let graph = asked("--explain=dot");
    assert!(graph.starts_with("digraph plan {") && graph.contains("[style=dashed]"), "{graph}");
    let profile = asked("--profile");
    assert!(profile.contains("rows out") && profile.contains("expand out knows"), "{profile}");
    let json: serde_json::Value = serde_json::from_str(&asked("--profile=json")).unwrap();
    assert!(json["operators"][1]["rows"].is_u64() && json["run"]["coresUsed"].is_number(), "{json}");
    assert!(asked("--profile=dot").contains("rowsIn"));
}

#[test]
fn a_question_is_about_one_traversal() {
    let error = fail(1, &["query", "--explain", "g.V().next()"]);
    assert!(error.contains("--explain takes a traversal"), "{error}");
    fail(2, &["query", "--explain", "--profile", "g.V()"]);
    fail(2, &["query", "--profile", "--format", "json", "g.V()"]);
}

#[test]
fn a_script_may_come_from_standard_input() {
    let mut child = mangrove()
        .args(["query", "-", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"g.inject('x')\n").unwrap();
    assert_eq!(ran(child.wait_with_output().unwrap()).out, "result\nx\n");
}

#[test]
fn a_reader_may_stop_reading() {
    let script = "g.inject(1).repeat(union(identity(), identity())).times(16)";
    let mut child = mangrove()
        .args(["query", "--format", "jsonl", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn errors_are_one_sentence_with_the_way_out() {
    for (args, part) in [
        (vec!["query", "g.V().oot()"], "oot"),
        (vec!["query", "g.V("], "line 1"),
        (vec!["query", "--data", "no-such-directory", "g.V()"], "no database in no-such-directory"),
        (vec!["query", "--load", "no-such-file.csv", "g.V()"], "no-such-file.csv"),
        (vec!["query", "--map", "no-such-map.toml", "--load", "x.csv", "g.V()"], "no-such-map.toml"),
        (vec!["query", "--param", "who", "g.V()"], "NAME=VALUE"),
        (vec!["query", "--evaluation-timeout", "50ms", "g.inject(1).repeat(identity()).until(is(2))"], "50"),
    ] {
        let error = fail(1, &args);
        assert!(error.starts_with("error: ") && error.contains(part), "{args:?}: {error}");
    }
    let wrong = fail(2, &["query", "--evaluation-timeout", "soon", "g.V()"]);
    assert!(wrong.contains("is not a time limit"), "{wrong}");
}

#[test]
fn help_has_examples() {
    for command in ["serve", "query", "console", "stats", "load"] {
        let help = succeed(&[command, "--help"]);
        assert!(help.contains("Examples:") && help.contains(&format!("mangrove {command} ")), "{help}");
    }
    assert!(run(&["--version"]).out.starts_with("mangrove "));
}

const SCRIPT: &str = "// two who know each other
a = g.addV('person').property('name', 'ada').next()
b = g.addV('person').
  property('name', 'bob').next(); g.addE('knows').from(a).to(b).iterate()

g.V(a).out('knows').values('name')
";

#[test]
fn a_file_is_one_transaction_with_variables() {
    let folder = Folder::new("file");
    let file = folder.file("two.gremlin", SCRIPT);
    assert_eq!(succeed(&["query", "-f", &file, "--format", "csv"]), "result\nbob\n");
    let graph = folder.path().join("graph").to_str().unwrap().to_owned();
    let [people, knows] = folder.people();
    succeed(&["load", &people, &knows, "--data", &graph]);
    let failing = folder.file("failing.gremlin", "g.addV('x').iterate();\n\n  g.V().values('name').sum()");
    let error = fail(1, &["query", "--data", &graph, "-f", &failing]);
    assert!(error.contains("failing.gremlin: statement 2 (line 3, column 3): "), "{error}");
    let wrong = folder.file("wrong.gremlin", "g.addV('x').iterate()\ng.V().oot()");
    let error = fail(1, &["query", "--data", &graph, "-f", &wrong]);
    assert!(error.contains("wrong.gremlin: line 2, column 7: unknown step `oot`"), "{error}");
    let count = || succeed(&["query", "--data", &graph, "--format", "csv", "g.V().hasLabel('x').count()"]);
    assert_eq!(count(), "result\n0\n");
    // Each statement is a transaction of its own, so those before the error stay committed.
    let error = fail(1, &["query", "--data", &graph, "-f", &failing, "--each"]);
    assert!(error.contains("failing.gremlin: statement 2 (line 3, column 3): "), "{error}");
    assert_eq!(count(), "result\n1\n");
}

#[test]
fn each_statement_may_be_its_own_with_variables_and_results() {
    let folder = Folder::new("each");
    let file =
        folder.file("two.gremlin", &format!("{SCRIPT}n = 7\nname = g.V(b).values('name').next(); g.inject(n, name)"));
    let out = succeed(&["query", "-f", &file, "--each", "--format", "jsonl"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[2..], ["\"bob\"", "7", "\"bob\"", "7", "\"bob\""], "{out}");
    assert!(lines[0].contains("\"label\":\"person\""), "{out}");
}

#[test]
fn results_go_to_a_file_that_is_whole_or_not_there() {
    let folder = Folder::new("output");
    let output = folder.path().join("out.csv");
    let path = output.to_str().unwrap();
    assert_eq!(succeed(&["query", "-o", path, "--format", "csv", "g.inject(1, 2)"]), "");
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "result\n1\n2\n");
    fail(1, &["query", "-o", path, "--format", "jsonl", "g.inject(1, 'x').sum()"]);
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "result\n1\n2\n", "what was there before is");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    assert!(fail(1, &["query", "-o", "no-such-folder/x", "g.V()"]).contains("no-such-folder/x"));
    fail(2, &["query"]);
    fail(2, &["query", "-f", path, "g.V()"]);
}
