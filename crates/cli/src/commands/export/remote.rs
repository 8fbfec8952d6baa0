//! Exports a graph of a running server.
//!
//! All vertices and then all edges are read in one transaction, so they are one snapshot. They arrive with all their
//! properties, and the server sends no more than the client takes. JSON lines are written as elements arrive. Other
//! formats read the graph more than once: for them, the lines go to a temporary file and from there into a graph in
//! memory, which is exported.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mangrove::{
    Error, ErrorKind, ExportFormat, ExportReport, Materialize, Parameters, Result, TakeElement, export_elements,
};

use super::{ExportArgs, ExportBar, write};
use crate::client::{Ask, Client};
use crate::connection::graphs;

/// Exports the graph of a traversal source.
pub fn export(url: &str, args: &ExportArgs, format: ExportFormat, bar: &ExportBar) -> Result<ExportReport> {
    if format == ExportFormat::JsonLines {
        return receive(url, args, &args.output, bar);
    }
    let scratch = TemporaryFolder::new()?;
    let lines = scratch.0.join("graph.jsonl.zst");
    receive(url, args, &lines, bar)?;
    let database = graphs::open(None, args.graph.memory_limit, graphs::Missing::Create)?;
    graphs::load(&database, &[lines], &graphs::load_options(None)?)?;
    // The labels were selected by the query already.
    write(&database, &[], args, format, bar)
}

/// Writes all elements to a file of JSON lines.
fn receive(url: &str, args: &ExportArgs, path: &Path, bar: &ExportBar) -> Result<ExportReport> {
    let mut client = Client::connect(url)?;
    client.begin(&args.source)?;
    let none = Parameters::new();
    let produce = |take: &mut TakeElement<'_>| {
        scripts(&args.labels).iter().try_for_each(|script| {
            let ask = Ask {
                // 0 stands for the longest time that the server allows.
                timeout: Some(Duration::ZERO),
                materialize: Materialize::Properties,
                source: Some(&args.source),
                ..Ask::new(script, &none)
            };
            client.ask(&ask)?.try_for_each(|element| take(&element?))
        })
    };
    let outcome = export_elements(path, produce, &mut |progress| {
        bar.show(progress);
        Ok(())
    });
    // The transaction changed nothing, and a lost connection has been reported.
    let _ = client.end("rollback");
    outcome
}

/// The scripts that read vertices and edges: all, or those with one of these labels, and of edges those between such
/// vertices.
fn scripts(labels: &[String]) -> [String; 2] {
    if labels.is_empty() {
        return ["g.V()".to_owned(), "g.E()".to_owned()];
    }
    // Labels are literals, not parameters, because the planner resolves labels before a traversal runs.
    let labels: Vec<String> = labels.iter().map(|label| literal(label)).collect();
    let has = format!("hasLabel({})", labels.join(", "));
    [format!("g.V().{has}"), format!("g.E().{has}.where(__.outV().{has}).where(__.inV().{has})")]
}

/// A Gremlin string literal.
fn literal(text: &str) -> String {
    let escaped = text.chars().flat_map(|c| matches!(c, '\'' | '\\').then_some('\\').into_iter().chain([c]));
    format!("'{}'", escaped.collect::<String>().replace('\n', "\\n").replace('\r', "\\r"))
}

/// A temporary folder, removed at the end.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("mangrove-export-{}", std::process::id()));
        // Only a new folder is used, so that no file of another user or program is overwritten.
        std::fs::create_dir(&path).map_err(|e| {
            let message = format!("cannot make {}: {e}; set TMPDIR to a folder with room", path.display());
            Error::new(ErrorKind::Io, message)
        })?;
        Ok(TemporaryFolder(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Best effort: if it fails, the files stay in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_texts() {
        assert_eq!(scripts(&[]), ["g.V()", "g.E()"]);
        let [vertices, edges] = scripts(&["a".to_owned(), "it's\n\\".to_owned()]);
        assert_eq!(vertices, r"g.V().hasLabel('a', 'it\'s\n\\')");
        assert!(
            edges.starts_with("g.E().hasLabel('a', ") && edges.contains(".where(__.outV().hasLabel('a', "),
            "{edges}"
        );
    }
}
