//! OpenFlights: thousands of parallel edges, nulls, and rows that name missing elements.

use mangrove_testdata::dataset;

use super::support::{check_file, load};

#[test]
fn counts_and_degrees() {
    let Some(folder) = dataset("openflights") else { return };
    let (db, report) = load(&[folder], Some("openflights"));
    // Two names occur twice in the list of countries; 892 routes name an unknown airport.
    assert_eq!(report.rejects, 2 + 892);
    check_file(&db, "OpenFlights", include_str!("queries/openflights.txt"));
}
