//! Notes that commands print beside their results, so that users notice mistakes at once.

use crate::common::{Folder, fail, fed, run, succeed};
use crate::server::Serving;

#[test]
fn an_index_on_a_name_that_nothing_has_is_noted() {
    let folder = Folder::new("index-note");
    let [people, _] = folder.people();
    let ran = run(&["index", "create", "--load", &people, "--label", "persn", "--key", "name"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("`persn`") && ran.err.contains("did you mean `person`"), "{}", ran.err);
    assert!(!ran.err.contains("`name`"), "{}", ran.err);
    for kind in [&["--ordered"][..], &["--kind", "ordered"]] {
        let out =
            succeed(&[&["index", "create", "--load", &people, "--key", "age", "--format", "jsonl"], kind].concat());
        assert!(out.contains("ordered"), "{out}");
    }
    assert!(fail(2, &["index", "create", "--load", &people, "--key", "age", "--kind", "orderd"]).contains("ordered"));
}

#[test]
fn a_user_without_a_role_is_noted_and_so_is_a_short_password() {
    let folder = Folder::new("user-note");
    let file = folder.path().join("users.toml").to_str().unwrap().to_owned();
    let ran = fed("user", &["add", "--file", &file, "bob"], "x\n");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("no role") && ran.err.contains("mangrove user grant"), "{}", ran.err);
    assert!(ran.err.contains("1 characters"), "{}", ran.err);
    let ran = fed("user", &["add", "--file", &file, "eve", "--role", "*=read"], "a long password\n");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let served = Serving::with_users(&folder, &[]);
    let mut command = crate::common::mangrove();
    command.env("MANGROVE_USER", "bob").env("MANGROVE_PASSWORD", "x");
    let ran = crate::common::ran(command.args(["query", "--url", &served.url, "g.V()"]).output().unwrap());
    assert!(ran.err.contains("no role on any graph"), "{}", ran.err);
    served.stop();
}

#[test]
fn tables_are_a_folder() {
    let folder = Folder::new("export-note");
    let [people, _] = folder.people();
    let error = fail(1, &["export", "--load", &people, "-o", "of.csv"]);
    assert!(error.contains("name a folder, and --format csv"), "{error}");
}

#[test]
fn rules_are_made_listed_and_dropped() {
    let folder = Folder::new("schema");
    let [people, knows] = folder.people();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    succeed(&["load", &people, &knows, "--data", data]);
    let schema = |args: &[&str]| run(&[&["schema"], args, &["--data", data, "--format", "jsonl"]].concat());
    assert!(schema(&["require", "--label", "person", "--key", "name"]).out.contains("name"));
    assert!(schema(&["type", "--label", "knows", "--key", "since", "--edges", "integer"]).out.contains("integer"));
    assert!(schema(&["ends", "--label", "knows", "person:person"]).out.contains("person"));
    let refused = schema(&["require", "--label", "person", "--key", "age"]);
    assert_eq!(refused.code, Some(1), "bob has no age: {}", refused.out);
    assert!(schema(&["ends", "--label", "knows", "person"]).err.contains("FROM:TO"));
    let listed = schema(&["list"]).out;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let error = fail(1, &["query", "--data", data, "g.addV('person')"]);
    assert!(error.contains("name"), "{error}");
    let number = |line: &str| line.split("\"id\":").nth(1).unwrap().split([',', '}']).next().unwrap().to_owned();
    for line in listed.lines() {
        assert_eq!(schema(&["drop", &number(line)]).code, Some(0), "{line}");
    }
    assert_eq!(schema(&["list"]).out, "");
    succeed(&["query", "--data", data, "g.addV('person')"]);
}
