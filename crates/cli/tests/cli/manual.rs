//! The tables of the manual (docs/*.md) that tests make from the program. The program's own unit tests use this file,
//! too.

/// Compares a table with the one on a page of `docs`, between the two lines that mark it: `<!-- NAME: begin (made by …)
/// -->` and `<!-- NAME: end -->`. `MANGROVE_UPDATE=1` writes it anew.
#[track_caller]
pub fn check(page: &str, name: &str, table: &str) {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let manual = std::fs::read_to_string(&path).unwrap();
    let begin = manual.find(&format!("<!-- {name}: begin ")).expect("the page has the mark where the table begins");
    let begin = begin + manual[begin..].find('\n').expect("the mark is a line") + 1;
    let end = begin + manual[begin..].find(&format!("<!-- {name}: end -->")).expect("and where it ends");
    if manual[begin..end] != *table && std::env::var_os("MANGROVE_UPDATE").is_some() {
        std::fs::write(path, format!("{}{table}{}", &manual[..begin], &manual[end..])).unwrap();
    } else {
        assert_eq!(
            &manual[begin..end],
            table,
            "docs/{page}: run this test with MANGROVE_UPDATE=1, and read the change"
        );
    }
}
