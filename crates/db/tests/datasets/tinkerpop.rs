//! TinkerPop's own graphs. The answers are those of the reference implementation. For the small graphs they were worked
//! out by hand; for the Grateful Dead graph, another program counted them in the file.

use mangrove_testdata::dataset;

use super::support::{check_file, load_clean, number};

#[test]
fn modern_from_both_formats() {
    let Some(folder) = dataset("tinkerpop") else { return };
    for file in ["tinkerpop-modern.json", "tinkerpop-modern.xml"] {
        let db = load_clean(&[folder.join(file)], None);
        check_file(&db, file, include_str!("queries/modern.txt"));
    }
}

/// The classic graph has neither vertex labels nor numbers of one kind.
#[test]
fn classic_from_both_formats() {
    let Some(folder) = dataset("tinkerpop") else { return };
    for file in ["tinkerpop-classic.json", "tinkerpop-classic.xml"] {
        let db = load_clean(&[folder.join(file)], None);
        check_file(&db, file, include_str!("queries/classic.txt"));
    }
}

#[test]
fn crew_has_multi_and_meta_properties() {
    let Some(folder) = dataset("tinkerpop") else { return };
    let db = load_clean(&[folder.join("tinkerpop-crew.json")], None);
    check_file(&db, "crew", include_str!("queries/crew.txt"));
}

#[test]
fn sink_has_loops() {
    let Some(folder) = dataset("tinkerpop") else { return };
    let db = load_clean(&[folder.join("tinkerpop-sink.json")], None);
    check_file(&db, "sink", include_str!("queries/sink.txt"));
}

#[test]
fn grateful_dead_from_both_formats() {
    let Some(folder) = dataset("tinkerpop") else { return };
    for file in ["grateful-dead.json", "grateful-dead.xml"] {
        let db = load_clean(&[folder.join(file)], None);
        check_file(&db, file, include_str!("queries/grateful_dead.txt"));
    }
}

/// So many walks that only merged traversers can be counted; a few more steps, and no integer holds the count.
#[test]
fn walks_through_the_grateful_dead_are_counted_until_they_overflow() {
    let Some(folder) = dataset("tinkerpop") else { return };
    let db = load_clean(&[folder.join("grateful-dead.json")], None);
    assert_eq!(number(&db, "g.V().repeat(both()).times(5).count()"), 1_078_335_583_170);
    let error = db.query("g.V().repeat(both()).times(30).count()").and_then(|stream| stream.collect()).unwrap_err();
    assert!(error.to_string().contains("long overflow"), "{error}");
}
