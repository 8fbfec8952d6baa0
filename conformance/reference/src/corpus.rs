//! Scripts with recorded answers of the reference: `corpus/*.txt`.
//!
//! The lines of a file:
//!
//! ```text
//! # a comment; a blank line is kept, too
//! graph modern                the graph of the cases after this line, graphs/modern.gremlin
//! > g.V(1).drop()             a script
//! + g.V().count()             a further script; the answer is the last script's, or the first error
//! = 5L                        a result (src/notation.rs), in any order
//! >> g.V().id().order()       a script whose results have an order
//! ! SomeException: …          an error, instead of results
//! ~ some-name                 the engine answers differently, for this reason in src/known.rs
//! ~= 5                        the engine's result; `~!` is an error
//! ```
//!
//! A case that writes begins with the graph as it is in its file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mangrove::Database;

use crate::notation::written;
use crate::reference::Reference;
use crate::{Answer, engine};

/// Appends a line to a text.
macro_rules! put {
    ($text:expr, $($written:tt)*) => { writeln!($text, $($written)*).expect("a string takes every write") };
}

/// The mark of an answer without results.
const NOTHING: &str = "(nothing)";
/// The name that [`record`] gives to a new difference. No reason has this name, so [`check`] fails until a person
/// replaces it.
pub const UNEXPLAINED: &str = "unexplained";
/// The graph of cases before the first line that names one.
const FIRST_GRAPH: &str = "modern";

/// Scripts with their answers.
#[derive(Clone, Debug)]
pub struct Case {
    /// The scripts, to be run in order.
    pub scripts: Vec<String>,
    /// True if the order of results and of entries in maps counts.
    pub ordered: bool,
    /// The reference's answer to the last script, or the first error.
    pub reference: Option<Answer>,
    /// The engine's answer if it differs, and the name of the reason.
    pub ours: Option<(String, Answer)>,
}

/// An item of a file.
#[derive(Clone, Debug)]
pub enum Item {
    /// A comment or a blank line.
    Text(String),
    /// A graph for the cases that follow.
    Graph(String),
    /// A case.
    Case(Case),
}

/// The folder of this crate, with the corpus and its graphs.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of the corpus, by name.
pub fn files() -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder().join("corpus"))? {
        files.push(entry?.path());
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    Ok(files)
}

/// Parses a file. Any other line is an error.
pub fn parse(text: &str) -> Result<Vec<Item>, String> {
    let mut items: Vec<Item> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.to_owned();
        match (word, items.last_mut()) {
            ("" | "#", _) => items.push(Item::Text(line.to_owned())),
            ("graph", _) => items.push(Item::Graph(rest)),
            ("+", Some(Item::Case(case))) if case.reference.is_none() => case.scripts.push(rest),
            (">" | ">>", _) => {
                let ordered = word == ">>";
                items.push(Item::Case(Case { scripts: vec![rest], ordered, reference: None, ours: None }));
            }
            ("=", Some(Item::Case(case))) => add(case.reference.get_or_insert(Ok(Vec::new())), rest),
            ("!", Some(Item::Case(case))) => case.reference = Some(Err(rest)),
            ("~", Some(Item::Case(case))) => case.ours = Some((rest, Ok(Vec::new()))),
            ("~=", Some(Item::Case(Case { ours: Some((_, ours)), .. }))) => add(ours, rest),
            ("~!", Some(Item::Case(Case { ours: Some((_, ours)), .. }))) => *ours = Err(rest),
            _ => return Err(format!("line {}: {line:?} is out of place", number + 1)),
        }
    }
    Ok(items)
}

/// Adds a result to an answer. The mark for no results adds nothing.
fn add(answer: &mut Answer, line: String) {
    match answer {
        Ok(lines) if line != NOTHING => lines.push(line),
        _ => {}
    }
}

/// The text of a file with these items.
pub fn render(items: &[Item]) -> String {
    let mut text = String::new();
    for item in items {
        match item {
            Item::Text(line) => put!(text, "{line}"),
            Item::Graph(name) => put!(text, "graph {name}"),
            Item::Case(case) => render_case(case, &mut text),
        }
    }
    text
}

fn render_case(case: &Case, text: &mut String) {
    for (n, script) in case.scripts.iter().enumerate() {
        let mark = match (n, case.ordered) {
            (0, false) => ">",
            (0, true) => ">>",
            _ => "+",
        };
        put!(text, "{mark} {script}");
    }
    if let Some(answer) = &case.reference {
        render_answer(answer, "", text);
    }
    if let Some((name, answer)) = &case.ours {
        put!(text, "~ {name}");
        render_answer(answer, "~", text);
    }
}

fn render_answer(answer: &Answer, mark: &str, text: &mut String) {
    match answer {
        Err(error) => put!(text, "{mark}! {error}"),
        Ok(lines) if lines.is_empty() => put!(text, "{mark}= {NOTHING}"),
        Ok(lines) => lines.iter().for_each(|result| put!(text, "{mark}= {result}")),
    }
}

/// Returns true if two answers are equal. All errors are equal.
pub fn agree(a: &Answer, b: &Answer) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => a == b,
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

/// The engine's side of the corpus. It loads the graph again only after a case that may have written.
#[derive(Default)]
pub struct Ours {
    graph: Option<(String, Database)>,
}

impl Ours {
    /// The engine's answer to a case. Only the kind of an error is kept; other tests check messages.
    pub fn ask(&mut self, graph: &str, case: &Case) -> mangrove::Result<Answer> {
        let database = match self.graph.take() {
            Some((name, database)) if name == graph => database,
            _ => engine::graph(folder(), graph)?,
        };
        let mut answer = Ok(Vec::new());
        let mut reads = true;
        for script in &case.scripts {
            reads &= only_reads(&database, script);
            answer = engine::ask(&database, script)
                .map(|results| written(&results, case.ordered))
                .map_err(|error| format!("{:?}", error.kind()));
            if answer.is_err() {
                break;
            }
        }
        if reads {
            self.graph = Some((graph.to_owned(), database));
        }
        Ok(answer)
    }
}

/// Returns true if a script leaves the graph unchanged. A script that the engine cannot run may write in the reference.
fn only_reads(database: &Database, script: &str) -> bool {
    database.prepare(script).is_ok_and(|prepared| !prepared.is_mutating())
}

/// The reference's side of the corpus.
pub struct Theirs {
    reference: Reference,
    loaded: Option<(String, Database)>,
}

impl Theirs {
    /// Uses this process.
    pub fn new(reference: Reference) -> Self {
        Theirs { reference, loaded: None }
    }

    /// The reference's answer to a case.
    pub fn ask(&mut self, graph: &str, case: &Case) -> std::io::Result<Answer> {
        let database = match self.loaded.take() {
            Some((name, database)) if name == graph => database,
            _ => {
                let database = engine::graph(folder(), graph).map_err(std::io::Error::other)?;
                self.reference.load(engine::elements(&database).map_err(std::io::Error::other)?)?;
                database
            }
        };
        let mut answer = Ok(Vec::new());
        let mut reads = true;
        for script in &case.scripts {
            reads &= only_reads(&database, script);
            answer = self.reference.ask(script)?.map(|results| written(&results, case.ordered));
            if answer.is_err() {
                break;
            }
        }
        if reads {
            self.loaded = Some((graph.to_owned(), database));
        }
        Ok(answer)
    }
}

/// The cases among a file's items, each with its graph.
pub fn cases(items: &mut [Item]) -> impl Iterator<Item = (String, &mut Case)> {
    let mut graph = FIRST_GRAPH.to_owned();
    items.iter_mut().filter_map(move |item| match item {
        Item::Text(_) => None,
        Item::Graph(name) => {
            graph.clone_from(name);
            None
        }
        Item::Case(case) => Some((graph.clone(), case)),
    })
}

/// Compares the engine's answer with the record. The error is the difference.
pub fn check(sides: &mut Ours, graph: &str, case: &Case) -> Result<(), String> {
    let script = case.scripts.join(" ; ");
    let Some(reference) = &case.reference else { return Err(format!("{script}: no answer is on record")) };
    let ours = sides.ask(graph, case).map_err(|error| format!("{script}: {error}"))?;
    match &case.ours {
        None if agree(&ours, reference) => Ok(()),
        Some((name, recorded)) if *recorded == ours && !agree(&ours, reference) => match crate::known::find(name) {
            Some(_) => Ok(()),
            None => Err(format!("{script}: no reason has the name {name:?}\n{}", beside(reference, &ours))),
        },
        Some((name, _)) if agree(&ours, reference) => Err(format!("{script}: does not differ any more ({name})")),
        _ => Err(format!("{script}\n{}", beside(reference, &ours))),
    }
}

/// Both answers, as text.
pub fn beside(reference: &Answer, ours: &Answer) -> String {
    let shown = |answer: &Answer| match answer {
        Ok(lines) if lines.is_empty() => NOTHING.to_owned(),
        Ok(lines) => lines.join(" | "),
        Err(error) => format!("error: {error}"),
    };
    format!("  reference: {}\n  ours:      {}", shown(reference), shown(ours))
}

/// Records the current answers of both sides. If they differ, the recorded name of the reason is kept, or is
/// [`UNEXPLAINED`].
pub fn record(theirs: &mut Theirs, ours: &mut Ours, graph: &str, case: &mut Case) -> std::io::Result<()> {
    let theirs = theirs.ask(graph, case)?;
    let ours = ours.ask(graph, case).map_err(std::io::Error::other)?;
    let name = case.ours.take().map_or_else(|| UNEXPLAINED.to_owned(), |(name, _)| name);
    case.ours = (!agree(&ours, &theirs)).then_some((name, ours));
    case.reference = Some(theirs);
    Ok(())
}
