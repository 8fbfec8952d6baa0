//! The program `mangrove-tidy`: draws which modules of a crate import which.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use mangrove_tidy::files;
use mangrove_tidy::imports::{Imports, draw, shown};

const USAGE: &str = "Draws which modules of a crate import which: a line each, after those that it imports.

Usage: cargo run -p mangrove-tidy -- CRATE...        (for example: store txn)";

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let known = files::crates();
    if names.is_empty() || names.iter().any(|name| !known.contains(name)) {
        eprintln!("{USAGE}\nThe crates are {}.", known.join(", "));
        return ExitCode::FAILURE;
    }
    for name in names {
        let imports = Imports::of_crate(&name);
        for (folder, siblings) in imports.folders().iter().filter(|(_, siblings)| siblings.len() > 1) {
            println!("{}", shown(&name, folder));
            draw(siblings).lines().for_each(|line| println!("    {line}"));
        }
        for (folder, cycle) in imports.cycles() {
            println!("cycle in {}: {}", shown(&name, &folder), cycle.join(", "));
        }
    }
    ExitCode::SUCCESS
}
