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
        (vec!["load", &people, "--data", "ftp://bucket/graph"], "s3://BUCKET"),
        (vec!["load", &people, "--format", "graphml"], "people.csv"),
    ] {
        let error = fail(1, &args);
        assert!(error.starts_with("error: ") && error.contains(part), "{args:?}: {error}");
    }
    fail(2, &["load"]);
}

/// The cells of a line of the table that a load prints, without its name.
fn cells(out: &str, name: &str) -> Vec<u64> {
    let line = out.lines().find(|line| line.contains(name)).unwrap();
    let cells = line.trim_matches('│').split('┆').map(str::trim).skip(1);
    cells.map(|cell| cell.parse::<u64>().unwrap()).collect()
}

#[test]
fn an_upsert_counts_results_and_not_rows() {
    let folder = Folder::new("upsert-counts");
    let accounts = folder.file("account.csv", "id,name\n1,a\n2,b\n");
    let pay = folder.file("pay.csv", "from,to,amount\n1,2,10\n1,2,20\n1,2,30\n");
    let data = folder.path().join("data");
    let load = |arguments: &[&str]| {
        let all = [&["load", "--upsert", "--data", data.to_str().unwrap()], arguments].concat();
        succeed(&all)
    };
    let out = load(&[&accounts, &pay, "--query", "g.E().values('amount').sum()"]);
    // Vertices, edges, created, updated, unchanged, rejects.
    assert_eq!(cells(&out, "pay.csv"), [0, 3, 3, 0, 0, 0]);
    assert!(out.contains("60"), "{out}");
    std::fs::write(&accounts, "id,name\n1,c\n2,b\n").unwrap();
    let out = load(&[&accounts, &pay]);
    assert_eq!(cells(&out, "account.csv"), [2, 0, 0, 1, 1, 0]);
    assert_eq!(cells(&out, "total"), [2, 3, 0, 1, 4, 0]);
    let error = fail(1, &["load", "--upsert", "--data", data.to_str().unwrap(), &pay, "--edge-key", "pya.amount"]);
    assert!(error.contains("did you mean pay.amount?"), "{error}");
}

/// The mapping that a generator writes names keys, so a second load of its folder finds every element again.
#[test]
fn a_generated_folder_is_loaded_twice_into_the_same_graph() {
    let folder = Folder::new("upsert-social");
    let (net, data) = (folder.path().join("net"), folder.path().join("data"));
    let (net, data) = (net.to_str().unwrap(), data.to_str().unwrap());
    succeed(&["generate", "social", "--persons", "20", "--out", net]);
    let mapping = format!("{net}/mapping.toml");
    let load = || cells(&succeed(&["load", net, "--map", &mapping, "--data", data, "--upsert"]), "total");
    let counts = || {
        let query = |script| succeed(&["query", "--data", data, "--format", "csv", script]);
        [query("g.V().count()"), query("g.E().count()")]
    };
    // Vertices, edges, created, updated, unchanged, rejects.
    let first = load();
    let [vertices, edges] = [first[0], first[1]];
    assert!(vertices > 20 && edges > 20, "{first:?}");
    assert_eq!((first[2], first[5]), (vertices + edges, 0), "{first:?}");
    let before = counts();
    assert_eq!(load(), [vertices, edges, 0, 0, vertices + edges, 0]);
    assert_eq!(counts(), before);
    assert!(before[0].contains(&vertices.to_string()) && before[1].contains(&edges.to_string()), "{before:?}");
}

#[test]
fn a_plain_load_into_a_used_graph_names_the_way_out() {
    let folder = Folder::new("used");
    let [people, _] = folder.people();
    let data = folder.path().join("data");
    let load = ["load", &people, "--data", data.to_str().unwrap()];
    succeed(&load);
    let error = fail(1, &load);
    assert!(error.contains("--upsert"), "{error}");
}

/// A failed load leaves no directory where there was none, and touches nothing where there was one.
#[test]
fn a_failed_load_leaves_no_directory() {
    let folder = Folder::new("leaves-nothing");
    let bad = folder.file("bad.csv", "id,n:int\n1,x\n");
    let data = folder.path().join("data");
    fail(1, &["load", &bad, "--data", data.to_str().unwrap(), "--max-rejects", "0"]);
    assert!(!data.exists());
    let [people, _] = folder.people();
    succeed(&["load", &people, "--data", data.to_str().unwrap()]);
    fail(1, &["load", &bad, "--data", data.to_str().unwrap(), "--upsert", "--max-rejects", "0"]);
    let out = succeed(&["query", "--data", data.to_str().unwrap(), "--format", "jsonl", "g.V().count()"]);
    assert_eq!(out.trim(), "3");
}

/// The hint about rejected rows is a command that works.
#[test]
fn mended_rows_load_with_the_command_that_the_hint_names() {
    let folder = Folder::new("hint");
    let rows = folder.file("airports.csv", "id:ID(airport),name,runways:int\n1,A,1\n2,B,x\n");
    let (rejects, data) = (folder.path().join("bad rows.csv"), folder.path().join("data"));
    let (rejects, data) = (rejects.to_str().unwrap(), data.to_str().unwrap());
    let map = folder.file("map.toml", "[[file]]\nmatch = \"airports.csv\"\nlabel = \"airport\"\nkey = \"id\"\n");
    let ran = run(&["load", &rows, "--map", &map, "--rejects", rejects, "--data", data]);
    let command = ran.err.lines().find_map(|line| line.split_once("and run: ")).unwrap().1;
    assert_eq!(command, format!("mangrove load '{rejects}.rows' --upsert --map {map} --data {data}"));
    let mended = format!("{rejects}.rows/airports.csv");
    std::fs::write(&mended, std::fs::read_to_string(&mended).unwrap().replace('x', "2")).unwrap();
    let out = succeed(&["load", &format!("{rejects}.rows"), "--upsert", "--map", &map, "--data", data]);
    assert_eq!(cells(&out, "total"), [1, 0, 1, 0, 0, 0]);
}

#[test]
fn a_folder_does_not_hide_a_mapping_that_comes_with_the_program() {
    let folder = Folder::new("shadow");
    let data = folder.path().join("openflights");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("countries.dat"), "\"Peru\",\"PE\",\"PE\"\n").unwrap();
    let ran = crate::common::run_in(folder.path(), &["load", "openflights", "--map", "openflights"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(cells(&ran.out, "countries.dat"), [1, 0, 0]);
    let other = folder.path().join("own");
    std::fs::create_dir_all(&other).unwrap();
    let error = fail(1, &["load", data.to_str().unwrap(), "--map", other.to_str().unwrap()]);
    assert!(error.contains("is a folder"), "{error}");
}

#[test]
fn loads_without_a_fitting_mapping_say_so() {
    let folder = Folder::new("unfit");
    let data = folder.path().join("of");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("routes.dat"), "1,2\n").unwrap();
    let error = fail(1, &["load", data.to_str().unwrap()]);
    assert!(error.contains("routes.dat") && error.contains("--map") && error.contains("openflights"), "{error}");
    let plain = folder.file("nodes.csv", "a,b\n1,2\n");
    let map = folder.file("bad.toml", "[[file]]\nmatch = \"x.csv\"\n");
    let error = fail(1, &["load", &plain, "--map", &map]);
    assert!(error.contains("no rule of the mapping matches this file") && error.contains("nodes.csv"), "{error}");
    let error = fail(1, &["load", data.to_str().unwrap(), "--map", &map]);
    assert!(error.contains("has no rule for") && error.contains("routes.dat"), "{error}");
}

#[test]
fn a_dry_run_says_how_columns_are_read_and_writes_nothing() {
    let folder = Folder::new("dry-run");
    let people = folder.file(
        "person.csv",
        "id,age,joined,name,size:int\n1,30,2020-01-02,Ann,1\n2,abc,2020-13-45,Bob,2\n3,31,2020-01-04,Cyd,x\n",
    );
    let knows = folder.file("knows.csv", "from,to,since\n1,2,7\n1,9,8\n");
    let data = folder.path().join("data");
    let ran = run(&["load", &people, &knows, "--dry-run", "--data", data.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(!data.exists());
    let column = |name: &str| ran.out.lines().find(|line| line.contains(&format!("│ {name} "))).unwrap().to_owned();
    assert!(ran.out.contains("vertices 'person'") && ran.out.contains("edges 'knows'"), "{}", ran.out);
    for (name, parts) in [
        ("id", ["id of the vertex", ""]),
        ("age", ["property 'age'", "string (inferred)"]),
        ("joined", ["property 'joined'", "string (inferred)"]),
        ("size:int", ["property 'size'", "int"]),
        ("from", ["source", ""]),
        ("since", ["property 'since'", "long (inferred)"]),
    ] {
        assert!(parts.iter().all(|part| column(name).contains(part)), "{name}: {}", column(name));
    }
    assert_eq!(cells(&ran.out, "person.csv ┆"), [2, 0, 1]);
    assert_eq!(cells(&ran.out, "total"), [2, 1, 2]);
    for part in [
        "1 of 3 fields are not of the type long, the first 'abc' on line 3",
        "type date, the first '2020-13-45' on line 3",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    // A load says the same of its columns.
    let ran = run(&["load", &people, "--data", data.to_str().unwrap()]);
    assert!(ran.err.contains("'age' is text, because 1 of 3 fields"), "{}", ran.err);
    // An upsert without a necessary key is refused before anything is written. Ends of edges that are in no file may be
    // in the graph.
    let spaced = folder.file("spaced.csv", "id:ID(p),name\n1,a\n");
    assert!(fail(1, &["load", &spaced, "--dry-run", "--upsert"]).contains("--key spaced.id"));
    let ran = run(&["load", &knows, "--dry-run", "--upsert"]);
    assert!(ran.err.contains("4 ends of edges are in no file"), "{}", ran.err);
}
