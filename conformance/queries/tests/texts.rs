//! Every text of the sets is a traversal that the engine knows, whether its data set is there or not.

use mangrove::Database;
use mangrove_queries::QuerySet;

#[test]
fn every_text_is_a_traversal() {
    let db = Database::in_memory();
    for set in QuerySet::names().map(QuerySet::named) {
        for query in &set.queries {
            let texts = [Some(&query.text), query.shows.as_ref()].into_iter().flatten();
            let texts = texts.chain(query.statements.iter().map(|statement| &statement.text));
            let texts = texts.chain(query.forms.values().map(|form| &form.text));
            for text in texts.map(|text| text.trim()).filter(|text| !text.is_empty()) {
                db.prepare(text).unwrap_or_else(|error| panic!("{} {}: {error}", set.name, query.name));
            }
        }
    }
}

#[test]
fn the_twenty_analytical_reads_are_there() {
    let names: Vec<String> = QuerySet::named("ldbc-bi").queries.into_iter().map(|query| query.name).collect();
    let expected: Vec<String> = (1..=20).map(|number| format!("BI{number}")).collect();
    assert_eq!(names, expected);
}
