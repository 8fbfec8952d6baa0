//! tinysnb: values of many types, and values that are missing.

use mangrove_testdata::dataset;

use super::support::{check_file, load_clean};

#[test]
fn values_of_every_kind() {
    let Some(folder) = dataset("kuzu_tinysnb") else { return };
    let db = load_clean(&[folder], Some("tinysnb"));
    check_file(&db, "tinysnb", include_str!("queries/tinysnb.txt"));
}
