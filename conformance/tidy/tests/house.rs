//! The rules of the house, on the project as it stands.

use mangrove_tidy::imports::{Imports, shown};
use mangrove_tidy::{documents, files, headers, invariants};

/// Circles within a folder, as `crate::folder: modules`. None is between the folders of a crate. Nothing may join them; one
/// that is gone is taken out. `plan::compile` is a recursive descent: a step's compile function compiles the traversals in
/// its arguments. The others have a type that could move down into a module of its own.
const KNOWN_CIRCLES: &[&str] = &[
    "cli::commands::console: command complete session",
    "db::query: instance prepared settings",
    "db::script: compile run",
    "load::export: csv parquet tables",
    "plan::compile: arguments barriers branches carried connectives elements files filters functions groups maps matching \
     merges modulators predicates sources steps",
    "store::load: bulk pack",
    "store::read: columns expand look_up numbers properties runs scan view",
];

#[track_caller]
fn none(what: &str, faults: Vec<String>) {
    assert!(faults.is_empty(), "{what}:\n{}", faults.join("\n"));
}

#[test]
fn modules_import_one_another_in_one_direction() {
    let mut found = Vec::new();
    for name in files::crates() {
        for (folder, circle) in Imports::of_crate(&name).circles() {
            found.push(format!("{}: {}", shown(&name, &folder), circle.join(" ")));
        }
    }
    let is_known = |circle: &String| KNOWN_CIRCLES.contains(&circle.as_str());
    none("new circles of imports", found.iter().filter(|circle| !is_known(circle)).cloned().collect());
    let is_gone = |circle: &&&str| !found.iter().any(|there| there == **circle);
    none("circles that are gone", KNOWN_CIRCLES.iter().filter(is_gone).map(ToString::to_string).collect());
}

#[test]
fn invariants_have_one_home_and_are_cited() {
    none("invariants", invariants::faults());
}

#[test]
fn links_between_documents_lead_somewhere() {
    none("broken links", documents::broken_links());
}

#[test]
fn every_source_file_says_what_it_is_for() {
    none("files without a module header", headers::missing());
}
