//! Limits on the length of units that are read at once, and on the columns of a table.

use std::io::Write;

use mangrove_graph::ErrorKind;
use mangrove_load::LoadOptions;

use crate::common::{Folder, load_clean, load_with};

const LIMIT: u64 = 1 << 20;

fn limited() -> LoadOptions {
    LoadOptions { element_bytes_max: LIMIT, ..LoadOptions::default() }
}

/// Some small elements, one that is too long, and another small one, in every format.
fn files() -> Vec<(&'static str, String, &'static str)> {
    let long = "x".repeat(4 * LIMIT as usize);
    let graphml = |body: &str| {
        format!(
            "<graphml><key id=\"t\" for=\"node\" attr.name=\"t\"/><graph>\n<node id=\"1\"/>\n{body}\n</graph></graphml>"
        )
    };
    let many_data: String =
        (0..40).map(|_| format!("<data key=\"t\">{}</data>", &long[..LIMIT as usize / 8])).collect();
    let vertex = |id: u32, text: &str| {
        format!("{{\"id\":{id},\"label\":\"p\",\"properties\":{{\"t\":[{{\"id\":0,\"value\":\"{text}\"}}]}}}}")
    };
    let wrapped = format!("{{\"vertices\":[{},{},{}]}}", vertex(1, ""), vertex(2, &long), vertex(3, ""));
    vec![
        ("value.graphml", graphml(&format!("<node id=\"2\"><data key=\"t\">{long}</data></node>")), "line 3"),
        ("attribute.graphml", graphml(&format!("<node id=\"{long}\"/>")), "line 3"),
        ("comment.graphml", graphml(&format!("<!-- {long} -->")), "line 3"),
        ("element.graphml", graphml(&format!("<node id=\"2\">{many_data}</node>")), "line 3"),
        ("lines.json", format!("{}\n{}\n{}\n", vertex(1, ""), vertex(2, &long), vertex(3, "")), "line 2"),
        ("wrapped.json", wrapped, "after vertex 1"),
        ("table.csv", format!("id,t\n1,x\n2,{long}\n3,x\n"), "line 3"),
    ]
}

#[test]
fn what_is_too_long_is_refused_with_its_place_and_the_setting() {
    for (name, text, place) in files() {
        let folder = Folder::new("too-long", &[(name, &text)]);
        let error = load_with(&[folder.file(name)], &limited()).unwrap_err();
        for part in [name, place, "longer than 1048576 bytes", "--max-element-size"] {
            assert!(error.message().contains(part), "{name}: {part}: {error}");
        }
        assert!(error.message().len() < 1_000, "{name}: the message holds what it is about");
        load_clean(&[folder.file(name)], &LoadOptions::default());
    }
}

#[test]
fn a_packed_file_of_few_bytes_is_held_to_what_it_unpacks_to() {
    for (name, text, place) in files() {
        let folder = Folder::new("packed", &[]);
        let name = format!("{name}.gz");
        let path = folder.file(&name);
        let mut packer = flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), Default::default());
        packer.write_all(text.as_bytes()).unwrap();
        packer.finish().unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < LIMIT / 8);
        let error = load_with(&[path], &limited()).unwrap_err();
        assert!(error.message().contains(place) && error.message().contains("--max-element-size"), "{error}");
    }
}

#[test]
fn many_elements_within_the_limit_are_read_however_much_they_are_together() {
    let text = "x".repeat(LIMIT as usize / 4);
    let nodes: String = (0..40).map(|id| format!("<node id=\"{id}\"><data key=\"t\">{text}</data></node>\n")).collect();
    let graphml = format!("<graphml><key id=\"t\" for=\"node\" attr.name=\"t\"/><graph>{nodes}</graph></graphml>");
    let vertex = |id: u32| format!("{{\"id\":{id},\"label\":\"p\",\"t\":\"{text}\"}}");
    let vertices: Vec<String> = (0..40).map(vertex).collect();
    let rows: String = (0..40).map(|id| format!("{id},{text}\n")).collect();
    for (name, text) in [
        ("many.graphml", graphml),
        ("many.json", vertices.join("\n")),
        ("wrapped.json", format!("{{\"vertices\":[{}]}}", vertices.join(","))),
        ("many.csv", format!("id,t\n{rows}")),
    ] {
        let folder = Folder::new("many", &[(name, &text)]);
        assert_eq!(load_clean(&[folder.file(name)], &limited()).vertices.len(), 40, "{name}");
    }
}

/// A search among all columns for each column would take minutes.
#[test]
fn a_table_has_many_columns() {
    let count = 200_000;
    let header: String = (0..count).map(|at| format!(",c{at}")).collect();
    let folder = Folder::new("columns", &[("wide.csv", &format!("id{header}\n7{}\n", ",1".repeat(count)))]);
    let graph = load_clean(&[folder.file("wide.csv")], &LoadOptions::default());
    assert_eq!(graph.vertices[0].properties.len(), count);
}

#[test]
fn a_table_has_no_more_columns_than_can_be_planned() {
    let header = format!("id{}\n", ",".repeat(300_000));
    let folder = Folder::new("too-wide", &[("wide.csv", &header)]);
    let error = load_with(&[folder.file("wide.csv")], &LoadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("300001 columns"), "{error}");
}
