//! Commands that only read a directory change nothing in it.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::common::{Folder, succeed};

/// Every file under a directory with its length and the time of its last change.
fn files(directory: &Path) -> Vec<(String, u64, SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let about = fs::metadata(&path).unwrap();
            found.push((path.display().to_string(), about.len(), about.modified().unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn queries_that_read_and_exports_leave_a_directory_as_it_is() {
    let folder = Folder::new("reading");
    let [people, knows] = folder.people();
    let data = folder.path().join("data");
    let named = data.to_str().unwrap();
    succeed(&["load", &people, &knows, "--data", named]);
    let before = files(&data);
    for _ in 0..2 {
        assert!(succeed(&["query", "--data", named, "x = g.V().count().next(); g.inject(x)"]).contains('3'));
    }
    let out = folder.path().join("out.graphml");
    succeed(&["export", "--data", named, "-o", out.to_str().unwrap()]);
    assert_eq!(files(&data), before);
    succeed(&["query", "--data", named, "g.addV('person')"]);
    assert!(succeed(&["query", "--data", named, "g.V().count()"]).contains('4'));
}
