//! Air routes, the graph of the book *Practical Gremlin*: its README's statistics.

use mangrove_testdata::dataset;

use super::support::{ask, check_file, load_clean, number};

#[test]
fn the_tables() {
    let Some(folder) = dataset("air_routes") else { return };
    let files = ["air-routes-latest-nodes.csv", "air-routes-latest-edges.csv"].map(|name| folder.join(name));
    let db = load_clean(&files, Some("air-routes"));
    check_file(&db, "air routes", include_str!("queries/air_routes.txt"));

    let [mean] = &ask(&db, "g.V().hasLabel('airport').values('runways').mean()")[..] else { panic!("one mean") };
    assert!((mean.parse::<f64>().unwrap() - 1.421_23).abs() < 5e-6, "{mean}");
    let [mean] = &ask(&db, "g.E().hasLabel('route').values('dist').mean()")[..] else { panic!("one mean") };
    assert!((mean.parse::<f64>().unwrap() - 1_212.918).abs() < 5e-4, "{mean}");
}

/// The small edition is a document with types in it: 45 airports in the United States and one in Puerto Rico.
#[test]
fn the_small_document() {
    let Some(folder) = dataset("air_routes") else { return };
    let db = load_clean(&[folder.join("air-routes-small-latest.graphml")], None);
    assert_eq!(number(&db, "g.V().hasLabel('airport').count()"), 46);
    assert_eq!(number(&db, "g.E().hasLabel('route').count()"), 1_390);
    assert_eq!(
        ask(&db, "g.V().hasLabel('airport').groupCount().by('country').unfold().select(values).order()"),
        ["1", "45"]
    );
    assert_eq!(ask(&db, "g.V().has('airport', 'code', 'AUS').values('runways', 'city')"), ["2", "\"Austin\""]);
}
