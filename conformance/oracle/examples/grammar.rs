//! Compares this project's parser with TinkerPop's.
//!
//! The input is the answers of `conformance/grammar`, one script a line: a verdict (`+`, or the line, the column and
//! the fault), a tab, and the script. This program parses the same scripts.
//!
//! - If both parsers accept or both refuse, they agree; a refusal must name a position.
//! - If only TinkerPop's accepts, the error must have one of the reasons of [`REFUSED`], and the script must match that
//!   reason at the position of the error.
//! - If only this one accepts, the compiler must refuse the script (it knows the types of arguments, which TinkerPop's
//!   grammar has in its rules), or the fault must have one of the reasons of [`ACCEPTED`].
//!
//! Usage: `grammar <ANSWERS` (`--all` shows every script on which the two disagree)

use std::collections::BTreeMap;
use std::io::{BufRead, Error};
use std::process::ExitCode;

use mangrove_gremlin::{ParseOptions, ScriptStatement, Statement, parse};

/// A reason for which this parser refuses what TinkerPop's grammar accepts.
struct Refused {
    /// A part of the error.
    error: &'static str,
    /// Returns true if the script has this fault, by the text before the position of the error and the text from there
    /// on.
    shape: fn(&str, &str) -> bool,
    why: &'static str,
}

const REFUSED: &[Refused] = &[
    Refused {
        error: "cannot be made here",
        shape: |before, _| before.ends_with("new"),
        why: "`new` makes strategies that there are, not what has any name",
    },
    Refused {
        error: "unknown step or predicate",
        shape: |before, _| before.contains("withStrategies(") && before.ends_with(['(', ',']),
        why: "a strategy's name ends in Strategy",
    },
    Refused {
        error: "a traversal that runs to make an argument",
        shape: |before, at| before.ends_with(['(', ',', '[', ':', '{']) && at.starts_with("g."),
        why: "a script runs its traversals one after another",
    },
    Refused {
        error: "expected a traversal source",
        shape: |_, at| at.starts_with("''") || at.starts_with("\"\""),
        why: "an empty string is no traversal",
    },
    Refused {
        error: "is no date",
        shape: |before, at| before.to_lowercase().ends_with("datetime(") || at.to_lowercase().starts_with("datetime("),
        why: "a date's text is read with the script",
    },
    Refused {
        error: "is no UUID",
        shape: |before, at| before.ends_with("UUID(") || at.starts_with("UUID("),
        why: "a UUID's text is read with the script",
    },
    Refused {
        error: "the strings of a range",
        shape: |_, at| at.starts_with(['"', '\'']) && at.contains(".."),
        why: "a range that has no members is said so with the script",
    },
    Refused {
        error: "a range lies within",
        shape: |_, at| at.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c)) && at.contains(".."),
        why: "a range that has no members is said so with the script",
    },
    Refused {
        error: "`next` takes a whole number that is not negative",
        shape: |_, at| at.starts_with("next("),
        why: "how many results are asked for is a number that there can be",
    },
    Refused {
        error: "a set holds literals only",
        shape: |_, at| at.starts_with('{'),
        why: "sets are values, which traversals and tokens in them are not",
    },
    Refused {
        error: "nothing may follow the method",
        shape: |_, at| at.contains("toString()"),
        why: "toString() is no part of the answer",
    },
    Refused {
        error: "unknown step `toString`",
        shape: |before, at| before.ends_with('.') && at.starts_with("toString()"),
        why: "toString() is no part of the answer",
    },
    Refused {
        error: "expected a traversal source",
        shape: |_, at| at.starts_with(".toString()"),
        why: "toString() is no part of the answer",
    },
    Refused {
        error: "or the end of the script",
        shape: |_, at| at.starts_with(".toString()"),
        why: "toString() is no part of the answer",
    },
    Refused {
        error: "or the end of the script",
        shape: |_, at| at.starts_with('g') || at.starts_with("''") || at.starts_with("\"\""),
        why: "two traversals have a semicolon or a line end between them",
    },
];

/// The end of the grammar's message for each fault that neither this parser nor the compiler finds, and why.
const ACCEPTED: &[(&str, &str)] = &[
    ("expecting {EmptyStringLiteral, 'g'}", "a source has any name, and a script may be empty"),
    (",]'", "a list may end in a comma, as arguments may"),
    (",)'", "a list may end in a comma, as arguments may"),
    ("(__)'", "`__` alone is the traversal without steps"),
    (".none()'", "none() without a test is the discard() of earlier versions"),
    ("withStrategies()'", "a source may be given no strategies"),
];

fn main() -> Result<ExitCode, Error> {
    let all = std::env::args().any(|argument| argument == "--all");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut agreed, mut wrong) = (0_usize, 0_usize);
    let now = mangrove_graph::DateTime { seconds: 0, nanos: 0, offset_seconds: 0 };
    let options = ParseOptions { now: Some(now), fresh_uuid: Some(uuid::Uuid::nil()), ..ParseOptions::default() };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Some((theirs, script)) = line.split_once('\t') else { continue };
        let script = unescaped(script);
        let ours = parse(&script, &options).map_err(|e| e.message().to_owned());
        let judged = match (theirs, &ours) {
            ("?", _) => Ok("their parser did not come to an end".to_owned()),
            ("+", Ok(_)) => Ok("both accept".to_owned()),
            (fault, Ok(statements)) => accepted(fault, statements),
            (_, Err(e)) if place(e).is_none() => Err("refused without a position".to_owned()),
            ("+", Err(e)) => refused(e, &script),
            (_, Err(_)) => Ok("both refuse".to_owned()),
        };
        let what = match judged {
            Ok(what) => what,
            Err(what) => {
                wrong += 1;
                println!("{what}: {script:?}: {theirs}: {ours:?}");
                continue;
            }
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

/// Returns the reason why this parser may accept a script in which the grammar finds a fault.
fn accepted(fault: &str, statements: &[ScriptStatement]) -> Result<String, String> {
    let is_refused = statements.iter().any(|statement| match &statement.statement {
        Statement::Traversal { bytecode, .. } => mangrove_plan::compile(bytecode).is_err(),
        _ => false,
    });
    if is_refused {
        return Ok("only this parser accepts: the compiler refuses it".to_owned());
    }
    if statements.iter().any(|statement| matches!(statement.statement, Statement::Transaction { .. })) {
        return Ok("only this parser accepts: what configures the source of a tx() is passed over".to_owned());
    }
    // A word of the language is a variable here if it stands where only a value can stand.
    let word = fault.trim_end_matches(|c: char| !c.is_alphanumeric());
    let word = &word[word.rfind(|c: char| !c.is_alphanumeric()).map_or(0, |at| at + 1)..];
    if format!("{statements:?}").contains(&format!("Parameter(\"{word}\")")) {
        return Ok("only this parser accepts: a variable may have the name of a step or a class".to_owned());
    }
    match ACCEPTED.iter().find(|(end, _)| fault.ends_with(end)) {
        Some((_, why)) => Ok(format!("only this parser accepts: {why}")),
        None => Err("only this parser accepts, and the compiler".to_owned()),
    }
}

/// Returns the reason why this parser may refuse a script that the grammar accepts.
fn refused(error: &str, script: &str) -> Result<String, String> {
    let (line, column) = place(error).unwrap_or((1, 1));
    let start: usize = script.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let skipped: usize = script[start..].chars().take(column - 1).map(char::len_utf8).sum();
    let (before, at) = script.split_at(start + skipped);
    let (before, at) = (significant(before), significant(at));
    let reason = REFUSED.iter().find(|refused| error.contains(refused.error) && (refused.shape)(&before, &at));
    reason
        .map(|refused| format!("only their parser accepts: {}", refused.why))
        .ok_or_else(|| "only their parser accepts".to_owned())
}

/// The line and column at the beginning of an error.
fn place(error: &str) -> Option<(usize, usize)> {
    let rest = &error[error.find("line ")? + "line ".len()..];
    let (line, rest) = rest.split_once(", column ")?;
    let column = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// A piece of a script without its comments and without white space.
fn significant(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("// so").next().unwrap_or_default());
    lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect()
}

/// Decodes a script from its line: `\n` is a line end; a backslash before any other character is dropped.
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
