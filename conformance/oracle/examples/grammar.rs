//! Holds the parser against TinkerPop's: reads what `conformance/grammar` says of scripts, a verdict (`+`, or line, column
//! and what is wrong there), a tab and the script on each line, and parses the scripts too. What both accept or both refuse
//! is as it should be, if a refusal says where. What they accept and this parser does not must have one of the reasons of
//! [`REFUSED`]. What only this parser accepts is counted: it leaves to the compiler which step takes arguments of what
//! types, and takes any name for a source.
//!
//! Usage: `grammar <ANSWERS` (`--all` shows all that the two do not agree on)

use std::collections::BTreeMap;
use std::io::{BufRead, Error};
use std::process::ExitCode;

use mangrove_gremlin::{ParseOptions, parse};

/// What the grammar accepts and this parser refuses: a part of the error, and why it is refused.
const REFUSED: &[(&str, &str)] = &[
    ("nothing that can be made here", "`new` makes strategies that there are, not what has any name"),
    ("a traversal that runs to make an argument", "a script runs its traversals one after another"),
    ("expected a traversal source", "an empty string is no traversal"),
    ("is no date", "a date's text is read with the script"),
    ("needs its text here", "no date without a text"),
    ("is no UUID", "a UUID's text is read with the script"),
    ("the strings of a range", "a range that has no members is said so with the script"),
    ("a range lies within", "a range that has no members is said so with the script"),
    ("a set holds literals only", "sets are values, which traversals in them are not"),
    ("nothing may follow the method", "toString() is no part of the answer"),
    ("expected an argument, found", "a comma stands between two arguments only"),
    ("or the end of the script", "two traversals have a semicolon or a line end between them"),
    ("unknown step", "a variable is an argument and has no methods"),
    ("has no `", "tokens have the spelling of the feature files alone"),
];

fn main() -> Result<ExitCode, Error> {
    let all = std::env::args().any(|argument| argument == "--all");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut agreed, mut wrong) = (0_usize, 0_usize);
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Some((theirs, script)) = line.split_once('\t') else { continue };
        let script = unescaped(script);
        let ours = parse(&script, &ParseOptions::default()).map_err(|e| e.message().to_owned());
        let what = match (theirs, &ours) {
            ("?", _) => "their parser did not come to an end".to_owned(),
            ("+", Ok(_)) => "both accept".to_owned(),
            (_, Ok(_)) => "only this parser accepts".to_owned(),
            (_, Err(e)) if !e.contains("line ") || !e.contains("column ") => {
                wrong += 1;
                println!("refused without a position: {e}: {script:?}");
                continue;
            }
            ("+", Err(e)) => match REFUSED.iter().find(|(part, _)| e.contains(part)) {
                Some((_, reason)) => format!("only their parser accepts: {reason}"),
                None => {
                    wrong += 1;
                    println!("only their parser accepts: {script:?}: {e}");
                    continue;
                }
            },
            (_, Err(_)) => "both refuse".to_owned(),
        };
        if all && !what.starts_with("both") {
            println!("{what}: {script:?}: {theirs}: {ours:?}");
        }
        agreed += usize::from(what.starts_with("both"));
        *counts.entry(what).or_default() += 1;
    }
    for (what, count) in counts {
        println!("{count:8} {what}");
    }
    println!("{agreed} passed, {wrong} failed");
    Ok(if wrong == 0 && agreed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A script from its line: `\n` is a line end, another character behind a backslash itself.
fn unescaped(line: &str) -> String {
    let mut script = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => script.push('\n'),
                Some(other) => script.push(other),
                None => script.push('\\'),
            },
            other => script.push(other),
        }
    }
    script
}
