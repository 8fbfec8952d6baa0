//! Checks the rules on the project.

use mangrove_tidy::imports::{Imports, shown};
use mangrove_tidy::{documents, files, headers, invariants};

/// The known circles within a folder, as `crate::folder: modules`. There is none between the folders of a crate. A new
/// circle fails the test, and so does a listed circle that is gone. `plan::compile` is a recursive descent: a step's
/// compile function compiles the traversals in its arguments.
const KNOWN_CIRCLES: &[&str] = &[
    "plan::compile: arguments barriers branches carried connectives elements files filters functions groups maps matching \
     merges modulators predicates sources steps",
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
