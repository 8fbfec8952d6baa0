//! `mangrove bench`, as a user runs it.

use crate::common::{fail, succeed};

#[test]
fn a_mix_is_measured_and_written_as_json() {
    let path = std::env::temp_dir().join(format!("mangrove-bench-{}.json", std::process::id()));
    let json = path.to_str().unwrap();
    let args = ["bench", "linkbench", "--scale", "8", "--seconds", "0", "--api", "typed", "--json", json];
    assert!(succeed(&args).contains("linkbench: get edges"));
    let figures = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(figures.contains("share_in_paper"), "{figures}");
}

#[test]
fn a_mix_that_there_is_not_is_refused() {
    assert!(fail(1, &["bench", "linkbench", "--ops", "lbv"]).contains("no form with --ops lbv"));
}
