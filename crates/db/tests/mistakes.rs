//! The errors for typical mistakes: each names the mistake, its position, and the correction.
//!
//! `mistakes.txt` has scripts, each after `>`, and under each script its error. `MANGROVE_UPDATE=1` writes the current
//! errors; read the difference in review, as a user would.

use std::fmt::Write as _;

use mangrove::Database;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mistakes.txt");

fn told(database: &Database, script: &str) -> String {
    match database.query(script).and_then(|results| results.collect()) {
        Ok(found) => format!("(no error: {} results)", found.len()),
        Err(error) => format!("{:?}: {}", error.kind(), error.message()),
    }
}

#[test]
fn mistakes_are_explained() {
    let database = Database::in_memory();
    let graph = "g.addV('person').property('name', 'ada').property('age', 36).as('a').addV('person').\
                 property('name', 'bob').addE('knows').from('a').property('weight', 0.5)";
    database.query(graph).unwrap().collect().unwrap();
    let recorded = std::fs::read_to_string(FILE).unwrap();
    let mut now = String::new();
    let mut count = 0;
    for script in recorded.lines().filter_map(|line| line.strip_prefix("> ")) {
        count += 1;
        let error = told(&database, script);
        assert!(!error.starts_with("(no error"), "{script}: {error}");
        assert!(!error.starts_with("Bug"), "{script}: {error}");
        writeln!(now, "> {script}\n{error}\n").unwrap();
    }
    assert!(count >= 30, "{count} mistakes");
    if std::env::var_os("MANGROVE_UPDATE").is_some() {
        std::fs::write(FILE, &now).unwrap();
    } else {
        assert_eq!(recorded, now, "MANGROVE_UPDATE=1 records what is now");
    }
}
