//! Checks the rules of this crate on the sources and documents of the project.

use mangrove_tidy::imports::{Imports, shown};
use mangrove_tidy::{documents, files, headers, invariants, programs};

/// The known cycles within a folder, as `crate::folder: modules`. There is none between the folders of a crate. A new
/// cycle fails the test, and so does a listed cycle that is gone. `plan::compile` is a recursive descent: a step's
/// compile function compiles the traversals in its arguments.
const KNOWN_CYCLES: &[&str] = &[
    "plan::compile: algorithms arguments barriers branches carried connectives elements files filters functions groups maps matching \
     merges modulators policies predicates sources steps",
];

/// Fails if there is a fault.
#[track_caller]
fn none(what: &str, faults: Vec<String>) {
    assert!(faults.is_empty(), "{what}:\n{}", faults.join("\n"));
}

#[test]
fn modules_import_one_another_in_one_direction() {
    let mut found = Vec::new();
    for name in files::crates() {
        for (folder, cycle) in Imports::of_crate(&name).cycles() {
            found.push(format!("{}: {}", shown(&name, &folder), cycle.join(" ")));
        }
    }
    let is_known = |cycle: &String| KNOWN_CYCLES.contains(&cycle.as_str());
    none("new cycles of imports", found.iter().filter(|cycle| !is_known(cycle)).cloned().collect());
    let is_gone = |cycle: &&&str| !found.iter().any(|there| there == **cycle);
    none("cycles that are gone", KNOWN_CYCLES.iter().filter(is_gone).map(ToString::to_string).collect());
}

#[test]
fn invariants_have_one_definition_and_are_cited() {
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

#[test]
fn every_file_of_tests_is_part_of_a_program() {
    none("files that no test program has", programs::forgotten());
}

#[test]
fn no_unit_test_is_switched_off() {
    none("unit tests of targets without tests", programs::switched_off());
}
