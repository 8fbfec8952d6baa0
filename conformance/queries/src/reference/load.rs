//! Reads LDBC's CSV files, with typed headers (`Person_knows_Person.csv`) or as the generator writes them
//! (`person_knows_person_0_0.csv`). It shares no code with the engine's loader.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Graph;

/// The kinds of vertices: their names in file names, converted to lower case, and their labels.
const KINDS: [(&str, &str); 8] = [
    ("person", "Person"),
    ("post", "Post"),
    ("comment", "Comment"),
    ("forum", "Forum"),
    ("tag", "Tag"),
    ("tagclass", "TagClass"),
    ("place", "Place"),
    ("organisation", "Organisation"),
];

/// The meaning of a file's rows.
enum Rows {
    Vertices(&'static str),
    Edges(&'static str, String, &'static str),
}

/// The graph of all CSV files below a folder.
///
/// # Panics
///
/// If a file cannot be read or is not one of LDBC's.
pub fn load(folder: &Path) -> Graph {
    let mut graph = Graph::default();
    let mut files = Vec::new();
    find(folder, &mut files);
    let described = files.iter().filter_map(|path| Some((path, rows_of(path)?)));
    let (vertices, edges): (Vec<_>, Vec<_>) = described.partition(|(_, rows)| matches!(rows, Rows::Vertices(_)));
    for (path, rows) in vertices.into_iter().chain(edges) {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().expect("a header").split('|').collect();
        for line in lines {
            let fields: Vec<&str> = line.split('|').collect();
            match &rows {
                Rows::Vertices(kind) => vertex(&mut graph, kind, &header, &fields),
                Rows::Edges(from, label, to) => edge(&mut graph, (from, label, to), &header, &fields),
            }
        }
    }
    graph
}

/// Collects the paths of all CSV files below a folder.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "csv") {
            files.push(path);
        }
    }
    files.sort();
}

/// The label of the vertices that this part of a file name means.
fn kind(name: &str) -> Option<&'static str> {
    KINDS.iter().find(|(lower, _)| *lower == name.to_lowercase()).map(|(_, kind)| *kind)
}

/// The meaning of a file by its name; `None` for a file that repeats data of another one.
fn rows_of(path: &Path) -> Option<Rows> {
    let stem = path.file_stem()?.to_str()?.trim_end_matches("_0_0");
    let parts: Vec<&str> = stem.split('_').collect();
    match parts.as_slice() {
        [one] => Some(Rows::Vertices(kind(one)?)),
        [from, label, to] => Some(Rows::Edges(kind(from)?, (*label).to_owned(), kind(to)?)),
        _ => None,
    }
}

/// Adds the vertex of a row. The first field is its id.
fn vertex(graph: &mut Graph, kind: &str, header: &[&str], fields: &[&str]) {
    let mut properties = BTreeMap::new();
    for (column, field) in header.iter().zip(fields) {
        let (name, class) = column.split_once(':').unwrap_or((column, ""));
        if !matches!(name, "id" | "" | "type") && !field.is_empty() {
            let date = class == "LONG" && matches!(name, "creationDate" | "birthday");
            let value = if date { millis(field).to_string() } else { (*field).to_owned() };
            properties.insert(name.to_owned(), value);
        }
    }
    graph.add_vertex(kind, fields[0].parse().expect("an id is a number"), properties);
}

/// Adds the edge of a row. The first two fields are the ids of its ends, a third one is its property.
fn edge(graph: &mut Graph, (from, label, to): (&str, &str, &str), header: &[&str], fields: &[&str]) {
    let id = |at: usize| fields[at].parse().expect("an id is a number");
    let (from, to) = (graph.find(from, id(0)), graph.find(to, id(1)));
    let property = header.get(2).map(|column| {
        let (name, class) = column.split_once(':').unwrap_or((column, ""));
        let number = if class == "LONG" { millis(fields[2]) } else { fields[2].parse().expect("a number") };
        (name.to_owned(), number)
    });
    graph.add_edge(label, from, to, property);
}

/// Converts `yyyyMMdd`, with or without `HHmmssSSS`, to milliseconds since 1970.
fn millis(text: &str) -> i64 {
    let part = |from: usize, to: usize| text.get(from..to).map_or(0, |digits| digits.parse::<i64>().expect("digits"));
    let (year, month, day) = (part(0, 4), part(4, 6), part(6, 8));
    // Days from 1970-01-01 in the Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    (((days * 24 + part(8, 10)) * 60 + part(10, 12)) * 60 + part(12, 14)) * 1000 + part(14, 17)
}

#[cfg(test)]
mod tests {
    use super::millis;

    #[test]
    fn dates_are_milliseconds() {
        assert_eq!(millis("19700101"), 0);
        assert_eq!(millis("20120907233820109"), 1_347_061_100_109);
        assert_eq!(millis("20000229000000000"), 951_782_400_000);
        assert_eq!(millis("19891203"), 628_646_400_000);
    }
}
