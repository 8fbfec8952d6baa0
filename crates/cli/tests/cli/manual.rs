//! The tables of docs/operations.md that tests make. The program's own tests use this, too.

/// Compares a table with the one in the manual, between the two lines that mark it: `<!-- NAME: begin (made by …) -->` and
/// `<!-- NAME: end -->`. `MANGROVE_UPDATE=1` writes it anew.
#[track_caller]
pub fn check(name: &str, table: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let manual = std::fs::read_to_string(path).unwrap();
    let begin = manual.find(&format!("<!-- {name}: begin ")).expect("the manual has the mark where the table begins");
    let begin = begin + manual[begin..].find('\n').expect("the mark is a line") + 1;
    let end = begin + manual[begin..].find(&format!("<!-- {name}: end -->")).expect("and where it ends");
    if manual[begin..end] != *table && std::env::var_os("MANGROVE_UPDATE").is_some() {
        std::fs::write(path, format!("{}{table}{}", &manual[..begin], &manual[end..])).unwrap();
    } else {
        assert_eq!(
            &manual[begin..end],
            table,
            "docs/operations.md: run this test with MANGROVE_UPDATE=1, and read the change"
        );
    }
}
