//! `mangrove load --url`: files into the graph of a running server.

use std::fs;

use crate::common::{Folder, Ran, fail, fed, run, succeed};
use crate::server::Serving;

/// The numbers of a file, or of the total: vertices, edges, created, updated, unchanged, rejects.
fn cells(out: &str, name: &str) -> Vec<u64> {
    let line = out.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {out}"));
    let cells = line.trim_matches('│').split('┆').map(str::trim).skip(1);
    cells.map(|cell| cell.parse::<u64>().unwrap()).collect()
}

/// The content of a graph, without automatic ids. Keys of maps are sorted, because their order depends on the graph.
fn content(target: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for script in [
        "g.V().order().by(label).map(project('l', 'p').by(label).by(valueMap().order(local).by(keys)))",
        "g.E().project('l', 'p', 'from', 'to').by(label).by(valueMap().order(local).by(keys)).by(outV().valueMap().order(local).by(keys)).by(inV().valueMap().order(local).by(keys))",
        "g.V().properties().hasNot('x').as('p').properties().project('of', 'k', 'v').by(select('p').value()).by(key).by(value)",
    ] {
        let out = succeed(&[&["query", "--format", "jsonl"], target, &[script]].concat());
        let mut rows: Vec<String> = out.lines().map(str::to_owned).collect();
        rows.sort();
        lines.extend(rows);
    }
    lines
}

/// Loads the same files into a server and into a directory, twice each. Reports and contents must be equal.
#[track_caller]
fn both_ways(name: &str, folder: &Folder, arguments: &[&str]) -> [Vec<u64>; 2] {
    let served = Serving::start(&[]);
    let data = folder.path().join(format!("data-{name}"));
    let data = data.to_str().unwrap();
    let load = |target: &[&str]| cells(&succeed(&[&["load", "--upsert"], target, arguments].concat()), "total");
    let told = [0, 1].map(|_| {
        let there = load(&["--url", &served.url]);
        assert_eq!(there, load(&["--data", data]), "{name}");
        there
    });
    assert_eq!(content(&["--url", &served.url]), content(&["--data", data]), "{name}");
    served.stop();
    told
}

#[test]
fn a_server_and_a_directory_take_files_alike() {
    let folder = Folder::new("load-url");
    let [people, knows] = folder.people();
    let [first, second] = both_ways("ids", &folder, &[&people, &knows]);
    assert_eq!((first, second), (vec![3, 2, 5, 0, 0, 0], vec![3, 2, 0, 0, 5, 0]));

    // Parallel edges without ids, among them two that are equal.
    let accounts = folder.file("account.csv", "id,name\n1,a\n2,b\n");
    let pay = folder.file("pay.csv", "from,to,amount\n1,2,10\n1,2,20\n1,2,20\n2,1,5\n");
    let [first, second] = both_ways("parallel", &folder, &[&accounts, &pay]);
    assert_eq!((first, second), (vec![2, 4, 6, 0, 0, 0], vec![2, 4, 0, 0, 6, 0]));

    // Keys of vertices and of edges.
    let by_key = ["--key", "account.name", "--edge-key", "pay.amount"];
    let [first, second] = both_ways("keys", &folder, &[&[accounts.as_str(), &pay], &by_key[..]].concat());
    assert_eq!((first[5], second[2]), (1, 0), "two rows have one key");

    // Several values, values with properties, texts of every kind.
    let lines = [
        r#"{"id":"x","label":"a","properties":{"mail":[{"value":"1"},{"value":"2","properties":{"since":7}}],"n":[{"value":1.5}]}}"#,
        r#"{"id":7,"label":"b","properties":{"text":[{"value":"a\u0000b \" ' \\ \n ü"}]}}"#,
    ];
    let multi = folder.file("multi.jsonl", &lines.join("\n"));
    let ran = run(&["load", "--dry-run", &multi]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    both_ways("multi", &folder, &[&multi]);
}

/// Ids of an id space, edges to vertices of another table, and edges whose label is one of many.
#[test]
fn a_generated_folder_is_loaded_alike_too() {
    let folder = Folder::new("load-url-social");
    let net = folder.path().join("net");
    let net = net.to_str().unwrap();
    succeed(&["generate", "social", "--persons", "20", "--out", net]);
    let mapping = format!("{net}/mapping.toml");
    let [first, second] = both_ways("social", &folder, &[net, "--map", &mapping]);
    assert_eq!((first[2], first[5]), (first[0] + first[1], 0));
    assert_eq!((second[2], second[3], second[4]), (0, 0, first[0] + first[1]));
}

/// A batch is larger than any request may be, and some rows are so long that each is a request.
#[test]
fn batches_are_sent_in_parts() {
    let folder = Folder::new("load-url-large");
    let mut text = "id,text\n".to_owned();
    for n in 0..40 {
        text.push_str(&format!("{n},{}\n", "x".repeat(if n % 7 == 0 { 2 << 20 } else { 100_000 })));
    }
    let notes = folder.file("note.csv", &text);
    let served = Serving::start(&[]);
    let load = || {
        succeed(&["load", &notes, "--upsert", "--url", &served.url, "--query", "g.V().values('text').length().sum()"])
    };
    let out = load();
    assert_eq!(cells(&out, "total"), [40, 0, 40, 0, 0, 0]);
    assert!(out.contains(&(6 * (2 << 20) + 34 * 100_000).to_string()), "{out}");
    assert_eq!(cells(&load(), "total"), [40, 0, 0, 0, 40, 0]);
    served.stop();
}

#[test]
fn rows_that_the_server_refuses_are_rejects_with_a_hint() {
    let folder = Folder::new("load-url-rejects");
    let served = Serving::start(&[]);
    let accounts = folder.file("account.csv", "id,name\n1,a\n2,a\n3,c\n");
    succeed(&["load", &accounts, "--upsert", "--url", &served.url]);
    // Two vertices have the name that the row is found by.
    let changed = folder.file("changed.csv", "id,name,:LABEL,age:int\n1,a,account,5\n3,c,account,6\n");
    let rejects = folder.path().join("bad.csv");
    let rejects = rejects.to_str().unwrap();
    let ran = run(&["load", &changed, "--upsert", "--url", &served.url, "--key", "account.name", "--rejects", rejects]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(cells(&ran.out, "total"), [1, 0, 0, 1, 0, 1]);
    assert!(ran.err.contains(&format!("--url {}", served.url)), "{}", ran.err);
    let told = fs::read_to_string(rejects).unwrap();
    assert!(told.contains("2 vertices of 'account'"), "{told}");
    served.stop();
}

/// A user of each level; `wim` writes.
fn users(folder: &Folder) {
    let file = folder.path().join("users.toml");
    for (name, role) in [("ada", "*=admin"), ("wim", "*=write"), ("rita", "*=read")] {
        let add = ["add", "--file", file.to_str().unwrap(), name, "--role", role];
        let added: Ran = fed("user", &add, &format!("{name}'s password\n"));
        assert_eq!(added.code, Some(0), "{}", added.err);
    }
}

#[test]
fn writing_is_enough_and_reading_is_not() {
    let folder = Folder::new("load-url-users");
    users(&folder);
    let served = Serving::with_users(&folder, &[]);
    served.succeed("ada", &["graph", "create", "books"]);
    let [people, knows] = folder.people();
    let load = |user: &str| {
        let mut command = crate::common::mangrove();
        command.env("MANGROVE_USER", user).env("MANGROVE_PASSWORD", format!("{user}'s password"));
        let arguments = ["load", &people, &knows, "--upsert", "--url", &served.url, "--source", "books"];
        crate::common::ran(command.args(arguments).output().unwrap())
    };
    let refused = load("rita");
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(refused.err.contains("role write on the graph `books`"), "{}", refused.err);
    assert_eq!(served.succeed("ada", &["query", "--source", "books", "g.V().count()"]).trim(), "0");
    let loaded = load("wim");
    assert_eq!(loaded.code, Some(0), "{}", loaded.err);
    assert_eq!(served.succeed("rita", &["query", "--source", "books", "g.V().count()"]).trim(), "3");
    assert_eq!(served.succeed("rita", &["query", "g.V().count()"]).trim(), "0", "the graph of `g` is another");
    // A request that only reads writes nothing, whatever its user may do.
    let answer = served.get("/gremlin?gremlin=g.call('mangrove.upsert.vertices')");
    assert!(answer.starts_with("HTTP/1.1 401") || answer.starts_with("HTTP/1.1 403"), "{answer}");
    served.stop();
}

#[test]
fn what_a_server_cannot_do_is_said_before_a_file_is_read() {
    let folder = Folder::new("load-url-refused");
    let [people, _] = folder.people();
    let error = fail(1, &["load", &people, "--url", "ws://127.0.0.1:9/gremlin"]);
    assert!(error.contains("add --upsert"), "{error}");
    let error = fail(1, &["load", &people, "--upsert", "--url", "ws://127.0.0.1:9/gremlin"]);
    assert!(error.contains("cannot connect"), "{error}");
}
