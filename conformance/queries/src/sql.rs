//! Answers by SQL: `duckdb/answers.py` loads the CSV files into DuckDB, chooses parameters from the data, and prints the
//! rows that are right. It shares no code with the engine.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::published::Operation;
use crate::set::JsonParameters;

/// The sets whose parameters and expected answers come from SQL.
pub const SETS: [&str; 1] = ["ldbc-bi"];

/// A line that the program prints.
#[derive(Deserialize)]
struct Line {
    query: String,
    parameters: JsonParameters,
    answer: Vec<Json>,
}

/// The questions for the CSV files of this folder, with their answers. `python` is a Python that has DuckDB.
///
/// # Errors
///
/// If the program cannot run or fails, with what it printed.
pub fn answers(python: &Path, files: &Path) -> Result<Vec<Operation>, String> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("duckdb/answers.py");
    let output = Command::new(python).arg(&program).arg(files).output();
    let output = output.map_err(|error| format!("{}: {error}", python.display()))?;
    if !output.status.success() {
        return Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr)));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().map(|line| operation(line).map_err(|error| format!("{}: {error}", program.display()))).collect()
}

fn operation(line: &str) -> Result<Operation, serde_json::Error> {
    let Line { query, parameters, answer } = serde_json::from_str(line)?;
    Ok(Operation { query, parameters, answer: Some(answer) })
}
