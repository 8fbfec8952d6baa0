//! `mangrove load`, as a user runs it.

use std::fs;

use crate::common::{Folder, fail, run, succeed};

#[test]
fn a_load_says_what_became_of_every_row() {
    let folder = Folder::new("load");
    let [people, knows] = folder.people();
    let bad =
        folder.file("more.csv", ":START_ID,:END_ID,:TYPE,since:int\n2,3,knows,2020\n2,9,knows,2020\n2,1,knows,x\n");
    let rejects = folder.path().join("rejects.csv");
    let query = "g.E().values('since').order()";
    let ran = run(&["load", &people, &knows, &bad, "--rejects", rejects.to_str().unwrap(), "--query", query]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let counts = |file: &str| {
        let line = ran.out.lines().find(|line| line.contains(file)).unwrap();
        let cells: Vec<&str> = line.trim_matches('│').split('┆').map(str::trim).collect();
        [cells[1], cells[2], cells[3]].map(|cell| cell.parse::<u64>().unwrap())
    };
    assert_eq!(counts("people.csv"), [3, 0, 0]);
    assert_eq!(counts("more.csv"), [0, 1, 2]);
    assert_eq!(counts("total"), [3, 3, 2]);
    for year in ["1999", "2005", "2020"] {
        assert!(ran.out.contains(year), "{}", ran.out);
    }
    let rejected = fs::read_to_string(&rejects).unwrap();
    assert_eq!(rejected.lines().count(), 3, "a header and two rows: {rejected}");
    assert!(ran.err.contains("rejects.csv"), "{}", ran.err);
}

#[test]
fn a_load_without_a_query_says_that_the_graph_is_gone() {
    let folder = Folder::new("forgets");
    let [people, _] = folder.people();
    let ran = run(&["load", &people]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains("forgotten") && ran.err.contains("--query"), "{}", ran.err);
}

#[test]
fn a_mapping_reads_foreign_headers() {
    let folder = Folder::new("mapping");
    let people = folder.file("folk.txt", "nr|called\n7|ada\n");
    let map = folder.file(
        "map.toml",
        "[defaults]\ndelimiter = \"|\"\n[[file]]\nmatch = \"folk.txt\"\nlabel = \"person\"\nid = \"nr\"\n",
    );
    let out = succeed(&["load", &people, "--map", &map, "--query", "g.V().hasLabel('person').values('called')"]);
    assert!(out.contains("│ ada "), "{out}");
}

#[test]
fn errors_name_the_file_and_the_way_out() {
    let folder = Folder::new("errors");
    let [people, _] = folder.people();
    let twice = folder.file("twice.csv", "id:ID,name:string,:LABEL\n1,ada,person\n1,bob,person\n");
    let odd = folder.file("graph.odd", "?");
    let mapping = folder.file("map.toml", "");
    for (args, part) in [
        (vec!["load", &twice, "--max-rejects", "0"], "twice.csv"),
        (vec!["load", &odd], "graph.odd"),
        (vec!["load", &people, &mapping], "--map"),
        (vec!["load", "no-such-folder/"], "no-such-folder"),
        (vec!["load", &people, "--data", "s3://bucket/graph"], "memory:"),
        (vec!["load", &people, "--format", "graphml"], "people.csv"),
    ] {
        let error = fail(1, &args);
        assert!(error.starts_with("error: ") && error.contains(part), "{args:?}: {error}");
    }
    fail(2, &["load"]);
}
