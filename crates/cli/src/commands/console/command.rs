//! The `:commands` of the console in one table, which help and completion use, too. To add a command, add a line to
//! [`COMMANDS`].

use std::io::Write;

use clap::ValueEnum;
use mangrove::{Error, Result};
use mangrove_gremlin::{is_unfinished, suggest};

use super::session::{AfterInput, Session};
use crate::commands::stats;
use crate::output::ResultFormat;
use crate::output::plan::{self, PlanFormat};
use crate::quantity::TimeLimit;
use crate::question::Question;
use crate::{Failure, parameters};

/// A command.
pub struct ConsoleCommand {
    /// Its name, without the colon.
    pub name: &'static str,
    /// Its arguments, for help.
    given: &'static str,
    /// Its help text.
    meaning: &'static str,
    run: RunCommand,
}

type RunCommand = fn(&mut Session, &str, &mut dyn Write) -> Result<AfterInput, Failure>;

/// All commands, by name.
pub const COMMANDS: &[ConsoleCommand] = &[
    ConsoleCommand {
        name: "begin",
        given: "[SOURCE]",
        meaning: "begin a transaction; `:begin gsi` with snapshot isolation",
        run: begin,
    },
    ConsoleCommand { name: "commit", given: "", meaning: "commit the transaction", run: |s, _, out| go(s.commit(out)) },
    ConsoleCommand {
        name: "explain",
        given: "[tree|json|dot] TRAVERSAL",
        meaning: "the plan of a traversal; `dot` is a graph for Graphviz",
        run: |s, t, out| ask_about(s, t, Question::Explain, out),
    },
    ConsoleCommand { name: "format", given: "[table|json|jsonl|csv]", meaning: "the format of results", run: format },
    ConsoleCommand { name: "help", given: "", meaning: "show this list", run: help },
    ConsoleCommand {
        name: "indexes",
        given: "",
        meaning: "the indexes, with their sizes",
        run: |s, _, out| go(s.show("g.call('mangrove.index.list')", out)),
    },
    ConsoleCommand {
        name: "kill",
        given: "NUMBER",
        meaning: "stop a query of the server, as :queries shows it",
        run: kill,
    },
    ConsoleCommand {
        name: "labels",
        given: "",
        meaning: "the numbers of vertices and edges of each label",
        run: labels,
    },
    ConsoleCommand {
        name: "limit",
        given: "[COUNT|none]",
        meaning: "the maximum number of results that are shown; all are counted",
        run: limit,
    },
    ConsoleCommand {
        name: "param",
        given: "[NAME=VALUE]",
        meaning: "give a parameter a value, JSON or text; without one: show all",
        run: param,
    },
    ConsoleCommand {
        name: "profile",
        given: "[tree|json|dot] TRAVERSAL",
        meaning: "run a traversal and show what each operator did",
        run: |s, t, out| ask_about(s, t, Question::Profile, out),
    },
    ConsoleCommand {
        name: "queries",
        given: "",
        meaning: "the running queries of the server",
        run: |s, _, out| go(s.show("g.call('mangrove.queries')", out)),
    },
    ConsoleCommand {
        name: "quit",
        given: "",
        meaning: "end the console; Ctrl-D does so, too",
        run: |_, _, _| Ok(AfterInput::Quit),
    },
    ConsoleCommand {
        name: "rollback",
        given: "",
        meaning: "roll back the transaction",
        run: |s, _, out| go(s.rollback(out)),
    },
    ConsoleCommand {
        name: "source",
        given: "[NAME]",
        meaning: "the traversal source that `g` stands for",
        run: source,
    },
    ConsoleCommand {
        name: "stats",
        given: "",
        meaning: "memory, transactions, garbage, log, plans, as `mangrove stats` shows them",
        run: show_stats,
    },
    ConsoleCommand {
        name: "timeout",
        given: "[TIME|none]",
        meaning: "the time limit of a query, as in 30s",
        run: timeout,
    },
];

/// Runs the command that follows the colon.
pub fn run(session: &mut Session, text: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    let (name, given) = split(text);
    let command = COMMANDS.iter().find(|command| command.name == name).ok_or_else(|| {
        let names: Vec<String> = COMMANDS.iter().map(|command| format!(":{}", command.name)).collect();
        let hint = suggest(&format!(":{name}"), names.iter().map(String::as_str));
        Error::invalid(format!("there is no command `:{name}`{hint}; :help lists them"))
    })?;
    if command.given.is_empty() && !given.is_empty() {
        return Err(Error::invalid(format!("`:{name}` is given nothing, and this follows it: {given}")).into());
    }
    (command.run)(session, given, out)
}

/// Returns true if a command continues on the next line, as its traversal does.
pub fn wants_more(text: &str) -> bool {
    let (name, given) = split(text.trim());
    matches!(name, "explain" | "profile") && is_unfinished(split_format(given).1)
}

/// The format of plans that may come before a traversal, and the traversal.
fn split_format(given: &str) -> (PlanFormat, &str) {
    let (first, rest) = split(given);
    PlanFormat::from_str(first, true).map_or((PlanFormat::default(), given), |format| (format, rest))
}

/// The name of a command, and its arguments.
fn split(text: &str) -> (&str, &str) {
    let (name, given) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (name, given.trim())
}

fn go(done: Result<(), Failure>) -> Result<AfterInput, Failure> {
    done.map(|()| AfterInput::Go)
}

fn help(_: &mut Session, _: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    let heads = COMMANDS.iter().map(|command| format!(":{} {}", command.name, command.given)).collect::<Vec<_>>();
    let width = heads.iter().map(String::len).max().unwrap_or(0);
    for (head, command) in heads.iter().zip(COMMANDS) {
        writeln!(out, "  {head:width$}  {}", command.meaning)?;
    }
    writeln!(
        out,
        "\nAnything else is Gremlin, over as many lines as it takes. `a = g.V(1).next()` keeps a result under a name;\n\
         several statements in one input are one transaction. Tab completes steps, labels and property keys."
    )?;
    Ok(AfterInput::Go)
}

fn begin(session: &mut Session, given: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    let source = match given {
        "" => session.source.clone(),
        // `si` stands for the snapshot source of the current graph.
        "si" if !session.source.ends_with("si") => format!("{}si", session.source),
        named => named.to_owned(),
    };
    go(session.begin(&source, out))
}

/// Shows the plan of a traversal, or what its operators did.
fn ask_about(
    session: &mut Session,
    given: &str,
    question: Question,
    out: &mut dyn Write,
) -> Result<AfterInput, Failure> {
    let (format, traversal) = split_format(given);
    let script = question.about(traversal, &format!(":{}", question.step()))?;
    for answer in session.ask_within_timeout(&script)? {
        plan::print(&answer, format, out)?;
    }
    Ok(AfterInput::Go)
}

fn format(session: &mut Session, given: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    if !given.is_empty() {
        session.format = ResultFormat::from_str(given, true)
            .map_err(|_| Error::invalid(format!("there is no format `{given}`; there are {}", formats().join(", "))))?;
    }
    let name = session.format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    go(session.note(out, format_args!("format: {name}")))
}

/// The names of formats.
pub fn formats() -> Vec<String> {
    let values = ResultFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    values.map(|value| value.get_name().to_owned()).collect()
}

fn kill(session: &mut Session, given: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    let number: u64 =
        given.parse().map_err(|_| Error::invalid(":kill takes the number of a query, as :queries shows it"))?;
    go(session.show(&format!("g.call('mangrove.kill').with('id', {number}L)"), out))
}

fn labels(session: &mut Session, _: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    for (what, start) in [("vertices", "V"), ("edges", "E")] {
        let counts = format!(
            "g.{start}().groupCount().by(label).unfold().order().by(values, desc).project('label', \
             '{what}').by(keys).by(values)"
        );
        session.show(&counts, out)?;
    }
    Ok(AfterInput::Go)
}

fn limit(session: &mut Session, given: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    match given {
        "" => {}
        "none" => session.limit = None,
        count => {
            let wrong = |_| Error::invalid(format!(":limit takes a count or `none`, not `{count}`"));
            session.limit = Some(count.parse().map_err(wrong)?);
        }
    }
    match session.limit {
        Some(count) => go(session.note(out, format_args!("{count} results are shown"))),
        None => go(session.note(out, format_args!("all results are shown"))),
    }
}

fn param(session: &mut Session, given: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    if given.is_empty() {
        let rows = session.variables.values.iter().map(|(name, value)| {
            let name = mangrove::Value::String(name.clone());
            Ok(mangrove::Value::map(vec![("name".into(), name), ("value".into(), value.clone())]))
        });
        crate::output::print(&mut rows.collect::<Vec<_>>().into_iter(), session.format, out)?;
        return Ok(AfterInput::Go);
    }
    let (name, value) = parameters::parse_one(given)?;
    session.variables.values.insert(name, value);
    Ok(AfterInput::Go)
}

fn source(session: &mut Session, given: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    if !given.is_empty() {
        session.use_source(given)?;
    }
    let name = session.source.clone();
    go(session.note(out, format_args!("g is {name}")))
}

fn show_stats(session: &mut Session, _: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    let rows = session.ask("g.call('mangrove.stats')")?;
    let Some(row) = rows.first() else { return Ok(AfterInput::Go) };
    stats::print(row, None, out)?;
    Ok(AfterInput::Go)
}

fn timeout(session: &mut Session, given: &str, out: &mut dyn Write) -> Result<AfterInput, Failure> {
    if !given.is_empty() {
        session.timeout = given.parse::<TimeLimit>().map_err(Error::invalid)?.duration();
    }
    match session.timeout {
        Some(limit) => go(session.note(out, format_args!("a query may run for {} s", limit.as_secs_f64()))),
        None => go(session.note(out, format_args!("a query may run as long as it takes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_in_order_and_say_what_they_do() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        assert!(COMMANDS.iter().all(|command| !command.meaning.is_empty()));
    }

    #[test]
    fn only_commands_about_a_traversal_go_on() {
        assert!(wants_more("explain g.V("));
        assert!(wants_more("profile g.V()."));
        assert!(!wants_more("explain g.V()"));
        assert!(!wants_more("param a=("));
        assert!(!wants_more("help"));
    }
}
