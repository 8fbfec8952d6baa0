//! Loads that are run twice: the same files make the same graph, whichever way and however often they are loaded.
//!
//! For every mapping that ships and every format: a plain load, an upsert into an empty graph, and upserts on top of
//! both leave graphs that are equal element by element, and the last ones report that nothing changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mangrove::{Database, ExportFormat, ExportOptions, LoadOptions, LoadReport, Mapping, UpsertKeys};
use mangrove_graph::{GraphView, LabelFilter, ScanCursor, Share, VertexId};
use mangrove_testdata::dataset;

/// A folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("twice-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: a remaining file is in the build folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Every element as a text that does not depend on ids the store chose, with how many there are.
type Content = BTreeMap<String, usize>;

fn content(db: &Database) -> Content {
    let transaction = db.begin_read().unwrap();
    let view = transaction.view();
    let (mut vertices, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 4096, &mut vertices).unwrap() {}
    let texts: BTreeMap<VertexId, String> = vertices.iter().copied().zip(vertex_texts(view, &vertices)).collect();
    let mut content = Content::new();
    texts.values().for_each(|text| *content.entry(text.clone()).or_default() += 1);
    let (mut edges, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 4096, &mut edges).unwrap() {}
    let (mut labels, mut sources, mut targets, mut properties) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    view.edge_labels(&edges, &mut labels).unwrap();
    view.edge_ends(&edges, &mut sources, &mut targets).unwrap();
    view.edge_properties(&edges, None, &mut properties).unwrap();
    let mut held = vec![Vec::new(); edges.len()];
    for row in properties {
        held[row.row as usize].push(format!("{}={:?}", view.catalog().key_name(row.key), row.value));
    }
    for (at, mut held) in held.into_iter().enumerate() {
        held.sort();
        let label = view.catalog().label_set_name(labels[at]);
        let text = format!("{} -{label}{held:?}-> {}", texts[&sources[at]], texts[&targets[at]]);
        *content.entry(text).or_default() += 1;
    }
    content
}

fn vertex_texts(view: &dyn GraphView, vertices: &[VertexId]) -> Vec<String> {
    let (mut labels, mut properties) = (Vec::new(), Vec::new());
    view.vertex_labels(vertices, &mut labels).unwrap();
    view.vertex_properties(vertices, None, &mut properties).unwrap();
    let mut held = vec![Vec::new(); vertices.len()];
    for row in properties {
        held[row.row as usize].push(format!("{}[{}]={:?}", view.catalog().key_name(row.key), row.ordinal, row.value));
    }
    let label = |at: usize| view.catalog().label_set_name(labels[at]);
    held.iter_mut()
        .enumerate()
        .map(|(at, held)| {
            held.sort();
            format!("{}{held:?}", label(at))
        })
        .collect()
}

fn options(mapping: Option<&str>) -> LoadOptions {
    let mapping = mapping.map(|name| Mapping::shipped(name).unwrap_or_else(|| Mapping::read(Path::new(name)).unwrap()));
    LoadOptions { mapping, max_rejects: u64::MAX, ..LoadOptions::default() }
}

fn upsert(db: &Database, files: &[PathBuf], options: &LoadOptions) -> LoadReport {
    db.upsert(files, options, UpsertKeys::default(), &mut |_| {}).unwrap()
}

/// Loads files in both ways, twice, and compares.
#[track_caller]
fn check(files: &[PathBuf], mapping: Option<&str>) {
    let options = options(mapping);
    let plain = Database::in_memory();
    let loaded = plain.load(files, &options, &mut |_| {}).unwrap();
    let expected = content(&plain);
    let upserted = Database::in_memory();
    let first = upsert(&upserted, files, &options);
    assert_eq!((first.vertices, first.edges, first.rejects), (loaded.vertices, loaded.edges, loaded.rejects));
    assert_eq!(first.upserts.created, first.vertices + first.edges);
    assert!(content(&upserted) == expected, "{mapping:?}: a plain load and an upsert differ");
    for db in [plain, upserted] {
        let again = upsert(&db, files, &options);
        assert_eq!(again.upserts.unchanged, loaded.vertices + loaded.edges, "{mapping:?}: {:?}", again.upserts);
        assert_eq!(again.rejects, loaded.rejects);
        assert!(content(&db) == expected, "{mapping:?}: the second load changed the graph");
    }
}

/// A data set with the mapping that ships for it; one that is absent is skipped with a printed word.
fn check_dataset(name: &str, inner: &str, mapping: &str) {
    let Some(folder) = dataset(name) else { return };
    check(&[folder.join(inner)], Some(mapping));
}

#[test]
fn openflights() {
    check_dataset("openflights", "", "openflights");
}

#[test]
fn ldbc_snb() {
    check_dataset("ldbc_snb_sf0.003", "vanilla", "ldbc-snb");
}

#[test]
fn lsqb() {
    check_dataset("lsqb_sfexample", "", "lsqb");
}

#[test]
fn tinysnb() {
    check_dataset("kuzu_tinysnb", "", "tinysnb");
}

#[test]
fn graphs_known_by_the_ids_in_their_files() {
    check_dataset("snap", "wiki-Vote", "snap");
    check_dataset("p2p-31", "", "p2p-31");
    if let Some(folder) = dataset("air_routes") {
        check(&["nodes", "edges"].map(|what| folder.join(format!("air-routes-latest-{what}.csv"))), Some("air-routes"));
    }
}

#[test]
fn us_flights() {
    let folder = Folder::new("us-flights");
    for (name, text) in [
        ("states.csv", "code,name\nGA,Georgia\nNY,New York\n"),
        (
            "airports.csv",
            "iata,name,city,state,country,latitude,longitude\nATL,Hartsfield,Atlanta,GA,USA,33.6,-84.4\n\
             JFK,Kennedy,New York,NY,USA,40.6,-73.8\n",
        ),
        (
            "routes.csv",
            "Airline,AirlineID,Source,SourceID,Destination,DestinationID,Codeshare,Stops,Equipment\n\
             DL,1,ATL,1,JFK,2,,0,757\nUA,2,ATL,1,JFK,2,,0,757\nDL,1,JFK,2,ATL,1,,0,757\nDL,1,JFK,2,XXX,1,,0,757\n",
        ),
    ] {
        std::fs::write(folder.0.join(name), text).unwrap();
    }
    check(std::slice::from_ref(&folder.0), Some("us-flights"));
}

/// A test of this file covers every mapping that ships.
#[test]
fn no_mapping_is_left_out() {
    let tested = ["air-routes", "ldbc-snb", "lsqb", "openflights", "p2p-31", "snap", "tinysnb", "us-flights"];
    assert!(Mapping::shipped_names().eq(tested));
}

/// Parallel edges, equal ones among them, several values and vertices without properties, in every format.
#[test]
fn every_format() {
    let db = Database::in_memory();
    let script = "g.addV('a').property(id, 1L).property('n', 1).property(list, 'm', 'x').property(list, 'm', 'y').as('x')\
        .addV('b').property(id, 'two').as('y').addE('k').from('x').to('y').property('w', 0.5d).addE('k').from('x').to('y')\
        .property('w', 0.5d).addE('k').from('x').to('y').addE('k').from('x').to('x').property('t', 'é').addE('l').from('y').to('x')";
    db.query(script).unwrap().collect().unwrap();
    let folder = Folder::new("formats");
    for (format, name) in [
        (ExportFormat::Csv, "csv"),
        (ExportFormat::CsvNeo4j, "neo4j"),
        (ExportFormat::Parquet, "parquet"),
        (ExportFormat::GraphMl, "g.graphml"),
        (ExportFormat::GraphSon, "wrapped.json"),
        (ExportFormat::GraphSonAdjacency, "g.json"),
        (ExportFormat::JsonLines, "g.jsonl"),
    ] {
        let path = folder.0.join(name);
        db.export(&path, &ExportOptions::new(format), &mut |_| Ok(())).unwrap();
        check(std::slice::from_ref(&path), None);
    }
}
