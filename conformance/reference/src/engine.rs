//! The engine's side: a database in memory for each graph.

use std::path::Path;

use mangrove::{Database, Error, Result, Value};

/// Loads a graph by the name of its file, which has one traversal a line.
pub fn graph(folder: &Path, name: &str) -> Result<Database> {
    let file = folder.join("graphs").join(format!("{name}.gremlin"));
    let text = std::fs::read_to_string(&file).map_err(|e| Error::from(e).context(file.display()))?;
    let database = Database::in_memory();
    for statement in text.lines().filter(|line| line.starts_with("g.")) {
        ask(&database, statement).map_err(|e| e.context(statement))?;
    }
    Ok(database)
}

/// All results of a script.
pub fn ask(database: &Database, script: &str) -> Result<Vec<Value>> {
    database.query(script)?.collect()
}

/// All elements of a graph with their properties, vertices first.
pub fn elements(database: &Database) -> Result<Vec<Value>> {
    let mut all = ask(database, "g.V()")?;
    all.extend(ask(database, "g.E()")?);
    Ok(all)
}
