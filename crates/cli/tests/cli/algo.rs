//! `mangrove algo` and `mangrove demo`, as a user runs them.

use std::fs;

use crate::common::{Folder, fail, succeed};

/// A path of four places with the lengths 2, 3 and 4, and a fifth place.
fn roads(folder: &Folder) -> [String; 2] {
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    [
        write("places.csv", "id,name\n1,a\n2,b\n3,c\n4,d\n5,e\n"),
        write("roads.csv", "~from,~to,km\n1,2,2.0\n2,3,3.0\n3,4,4.0\n"),
    ]
}

#[test]
fn rows_are_printed_in_every_format() {
    let folder = Folder::new("algo");
    let [places, roads] = roads(&folder);
    let run = |args: &[&str]| succeed(&[&["algo"], args, &["--load", &places, &roads]].concat());
    let lengths = run(&["sssp", "-O", "source=1", "-O", "weight=km", "--format", "csv"]);
    let mut lines: Vec<&str> = lengths.lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(lines, ["vertex,distance", "1,0.0", "2,2.0", "3,5.0", "4,9.0"]);
    let top = run(&["bfs", "-O", "source=4", "-O", "directed=false", "--top", "1", "--format", "jsonl"]);
    assert_eq!(top.trim(), r#"{"vertex":1,"depth":3}"#);
    let hops = run(&["k_hop", "-O", "sources=[1,5]", "-O", "k=2", "--format", "csv"]);
    assert!(hops.lines().count() == 3, "{hops}");
    assert!(run(&["wcc"]).contains("component"));
}

#[test]
fn rows_go_to_a_file() {
    let folder = Folder::new("algo-out");
    let [places, roads] = roads(&folder);
    for (name, begin) in [("ranks.parquet", &b"PAR1"[..]), ("ranks.csv", &b"vertex,rank\n"[..])] {
        let path = folder.path().join(name);
        let args = ["algo", "pagerank", "--format", "csv", "--out", path.to_str().unwrap()];
        let printed = succeed(&[&args[..], &["--load", &places, &roads]].concat());
        assert!(printed.is_empty(), "{printed}");
        assert!(fs::read(&path).unwrap().starts_with(begin), "{name}");
    }
    let args = ["algo", "wcc", "--out", "/no/such/folder/f.parquet", "--load", &places];
    assert!(fail(1, &args).contains("/no/such/folder/f.parquet"));
}

#[test]
fn every_algorithm_is_listed_and_mistakes_say_what_is_allowed() {
    let list = succeed(&["algo", "--list"]);
    for name in ["bfs:", "betweenness:", "leiden:", "pagerank:", "random_walks:", "wcc:"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{name} in {list}");
    }
    let folder = Folder::new("algo-mistakes");
    let [places, roads] = roads(&folder);
    let refused = |args: &[&str], words: &[&str]| {
        let said = fail(1, &[&["algo"], args, &["--load", &places, &roads]].concat());
        assert!(words.iter().all(|word| said.contains(word)), "{args:?}: {said}");
    };
    refused(&["rank"], &["no algorithm 'rank'", "pagerank"]);
    refused(&["pagerank", "-O", "damping=2"], &["a number from 0 to 1"]);
    refused(&["pagerank", "-O", "damping"], &["NAME=VALUE"]);
    refused(&["wcc", "--top", "3"], &["no column of numbers"]);
    refused(&["bfs", "-O", "source=77"], &["no vertex with the id"]);
}

#[test]
fn the_demo_needs_no_files() {
    let shown = succeed(&["demo"]);
    assert!(shown.contains("GENERATED") && shown.ends_with("Done.\n"), "{shown}");
}
