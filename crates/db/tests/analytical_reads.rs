//! The reads of the example `analytical_reads` have the same answers in Gremlin and on the typed interface, for any number
//! of threads.

#[path = "../examples/analytical_reads/generated.rs"]
mod generated;
#[path = "../examples/analytical_reads/pages.rs"]
mod pages;
#[path = "../examples/analytical_reads/reads.rs"]
mod reads;

use mangrove::{Database, LoadOptions, Mapping, Team, Tenant};
use mangrove_testdata::dataset;
use pages::Pages;
use reads::{TagEvolution, TagRow};

const FROM: i64 = 1_325_376_000_000;

/// The answers by the typed interface with each number of threads.
fn typed<T>(db: &Database, read: impl Fn(&Pages<'_>, &Team) -> mangrove::Result<T>) -> Vec<T> {
    let ask = |threads| {
        let (transaction, team) = (db.begin_read().unwrap(), db.team_of(&Tenant::default(), threads).unwrap());
        read(&Pages::new(transaction.view()), &team).unwrap()
    };
    [1, 2, 4].map(ask).into()
}

/// Compares the rows of a question, of which at least `least` have a difference. Returns them.
#[track_caller]
fn check_tags(db: &Database, class: &str, from: i64, least: usize) -> Vec<TagRow> {
    let question = TagEvolution::new(class, from);
    let rows = question.rows_in_gremlin(db).unwrap();
    assert!(rows.iter().filter(|row| row.first != row.second).count() >= least, "{class}: {rows:?}");
    for answer in typed(db, |pages, team| question.rows(pages, team)) {
        assert_eq!(answer, rows, "{class}");
    }
    rows
}

#[test]
fn both_reads_of_the_generated_graph() {
    let db = Database::in_memory();
    generated::graph(&db, 5_000, FROM).unwrap();
    let cars = reads::red_cars_in_gremlin(&db).unwrap();
    // A quarter of 10,000 ownerships is of red things, half of which are cars, and 0.56 of the persons are older than 30.
    assert!((600..800).contains(&cars), "{cars}");
    assert_eq!(typed(&db, reads::red_cars), [cars; 3]);
    let rows = check_tags(&db, "class 1", FROM, 10);
    assert!(rows.iter().any(|row| row.first > 30), "{rows:?}");
    assert_eq!(check_tags(&db, "no such class", FROM, 0), []);
}

#[test]
fn after_deletions_and_with_several_values() {
    let db = Database::in_memory();
    generated::graph(&db, 3_000, FROM).unwrap();
    let change = |script: &str| drop(db.query(script).and_then(mangrove::ResultStream::collect).unwrap());
    let before = reads::red_cars_in_gremlin(&db).unwrap();
    change("g.V().hasLabel('Car').has('color', 'red').limit(100).drop()");
    change("g.V().hasLabel('Person').limit(500).property(list, 'age', 31).property(list, 'age', 32).iterate()");
    change("g.V().hasLabel('Boat').limit(300).property(list, 'color', 'red').iterate()");
    change("g.V().hasLabel('Car').limit(200).property(list, 'color', 'red').property(list, 'color', 'red').iterate()");
    change("g.V().hasLabel('Post').limit(700).drop()");
    let cars = reads::red_cars_in_gremlin(&db).unwrap();
    assert_ne!(cars, before);
    assert_eq!(typed(&db, reads::red_cars), [cars; 3]);
    check_tags(&db, "class 1", FROM, 5);
}

#[test]
fn an_empty_graph() {
    let db = Database::in_memory();
    assert_eq!(typed(&db, reads::red_cars), [0; 3]);
    assert_eq!(check_tags(&db, "class 1", FROM, 0), []);
}

#[test]
fn tags_of_ldbc() {
    for (name, folder, from, least) in
        [("ldbc_snb_sf0.003", "vanilla", 1_280_000_000_000, 20), ("ldbc_snb_sf0.1", "data", 1_309_478_400_000, 90)]
    {
        let Some(files) = dataset(name) else { continue };
        let db = Database::in_memory();
        let options = LoadOptions { mapping: Mapping::shipped("ldbc-snb"), ..LoadOptions::default() };
        db.load(&[files.join(folder)], &options, &mut |_| {}).unwrap();
        for class in ["Country", "OfficeHolder"] {
            check_tags(&db, class, from, least);
        }
    }
}
