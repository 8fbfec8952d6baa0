//! Prints generated cases as text with the oracle's answers, for running them against another engine:
//! `cargo run -p mangrove-oracle --example cases -- FIRST LAST SCRIPT ANSWERS`.
//!
//! The script has a line `GRAPH` where a new empty graph begins, then a line for each traversal that fills the graph,
//! and then the traversal of the case after `Q `. The answers have one line a case: `OK` or `ERR`, how the answer may
//! be compared, the number of results, and the results in short form.

use std::fmt::Write as _;

use mangrove_oracle::generate::{Options, case};
use mangrove_oracle::interpreter::Interpreter;
use mangrove_oracle::show::show;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, first, last, script_path, answers_path] = arguments.as_slice() else {
        return Err("usage: cases FIRST LAST SCRIPT ANSWERS".into());
    };
    let (mut script, mut answers) = (String::new(), String::new());
    for seed in first.parse::<u64>()?..last.parse()? {
        let case = case(seed, &Options::default());
        let mut graph = case.graph.clone();
        writeln!(script, "GRAPH")?;
        for traversal in graph.script() {
            writeln!(script, "{traversal}")?;
        }
        writeln!(script, "Q {}", case.traversal)?;
        let rows = case.expectation.rows;
        match Interpreter::run(&mut graph, &case.traversal) {
            Ok(answer) => {
                let shown: Vec<String> = answer.iter().map(show).collect();
                writeln!(answers, "OK\t{rows:?}\t{}\t{}", answer.len(), shown.join("\u{1}"))?;
            }
            Err(failure) => writeln!(answers, "ERR\t{rows:?}\t0\t{failure:?}")?,
        }
    }
    std::fs::write(script_path, script)?;
    std::fs::write(answers_path, answers)?;
    Ok(())
}
