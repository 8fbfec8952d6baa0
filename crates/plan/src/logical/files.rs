//! `io()`: a file that a traversal reads into its graph, or writes its graph to.
//!
//! This module finds out the format of a file, from `with()` or from its name, and touches no file. The database
//! decides where files are, and whether a traversal may reach them.

use mangrove_graph::{Error, Result};

use super::operand::Operand;

/// `io(path)` with its `with()`s, ended by `read()` or `write()`.
#[derive(Clone, Debug, PartialEq)]
pub struct FileStep {
    /// The path of the file, below the directory that the database gives to `io()`.
    pub path: Operand,
    /// Its format; `None`: the format of its name ([`FileFormat::of_name`]).
    pub format: Option<FileFormat>,
    /// True for `write()`, false for `read()`.
    pub writes_file: bool,
}

/// The format of a file of `io()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// GraphML.
    GraphMl,
    /// GraphSON, one vertex in each line.
    GraphSon,
}

/// Extensions of file names, with their formats.
const EXTENSIONS: &[(&str, FileFormat)] = &[
    ("graphml", FileFormat::GraphMl),
    ("graphson", FileFormat::GraphSon),
    ("json", FileFormat::GraphSon),
    ("xml", FileFormat::GraphMl),
];

/// Extensions of Gryo, TinkerPop's own format, which is not read or written here.
const GRYO_EXTENSIONS: &[&str] = &["gryo", "kryo"];

impl FileFormat {
    /// Its name in Gremlin, as in `IO.graphml`.
    pub fn name(self) -> &'static str {
        match self {
            FileFormat::GraphMl => "graphml",
            FileFormat::GraphSon => "graphson",
        }
    }

    /// The format of this name.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "graphml" => Ok(FileFormat::GraphMl),
            "graphson" => Ok(FileFormat::GraphSon),
            "gryo" => Err(gryo()),
            other => {
                Err(Error::unsupported(format!("there is no format '{other}'; there are IO.graphml and IO.graphson")))
            }
        }
    }

    /// The format of a file by the extension of its name.
    pub fn of_name(path: &str) -> Result<Self> {
        let extension = path.rsplit(['/', '\\']).next().and_then(|name| name.rsplit_once('.')).map(|(_, e)| e);
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        if GRYO_EXTENSIONS.contains(&extension.as_str()) {
            return Err(gryo());
        }
        let found = EXTENSIONS.iter().find(|(known, _)| *known == extension);
        found.map(|(_, format)| *format).ok_or_else(|| {
            Error::invalid(format!(
                "Could not detect the file format of '{path}': say it, as in with(IO.reader, IO.graphson), or name the \
                 file with a standard extension (.json, .graphson; .xml, .graphml)"
            ))
        })
    }
}

fn gryo() -> Error {
    Error::unsupported(
        "gryo is how Java's Kryo serializes TinkerPop's classes and is not read or written here; use IO.graphson or \
         IO.graphml",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_name_formats() {
        assert_eq!(FileFormat::of_name("data/a.b/modern.XML"), Ok(FileFormat::GraphMl));
        assert_eq!(FileFormat::of_name("modern.json"), Ok(FileFormat::GraphSon));
        for (name, part) in [
            ("modern.kryo", "IO.graphson"),
            ("modern", "Could not detect"),
            ("a.json/modern", "Could not detect"),
            ("modern.json.gz", "with(IO.reader"),
            ("", "Could not detect"),
        ] {
            let error = FileFormat::of_name(name).unwrap_err();
            assert!(error.message().contains(part), "{name}: {error}");
        }
    }
}
