//! Golden plans: the plan of each traversal in `tests/plans/*.test`, as `explain()` shows it.
//!
//! A file is about one rule or feature. Lines that begin with `#` are comments; `index [edge] [ordered]
//! [unique] [LABEL.]KEY[,KEY…]` gives the graph an index from there on; `> TRAVERSAL` asks for a plan, and the lines up to the
//! next empty one are the plan. `MANGROVE_UPDATE=1` writes the current plans: read the difference in review.

use std::fs;
use std::path::{Path, PathBuf};

use mangrove_graph::{ElementKind, IndexId, IndexInfo, KeyId, LabelId};
use mangrove_gremlin::{Bytecode, ParseOptions, Statement, parse_one};
use mangrove_plan::lower::UsableIndex;
use mangrove_plan::{GraphFacts, compile, explain, literals, lower, rules};

fn parsed(script: &str) -> Bytecode {
    let statement = parse_one(script, &ParseOptions::default()).unwrap_or_else(|e| panic!("{script}: {e}"));
    let Statement::Traversal { bytecode, .. } = statement else { panic!("{script} is no traversal") };
    bytecode
}

fn plan(bytecode: &Bytecode, facts: &GraphFacts) -> String {
    let mut compiled = compile(bytecode).unwrap_or_else(|e| panic!("{bytecode}: {e}"));
    let mut rules = rules::rewrite(&mut compiled.traversal, &compiled.configuration);
    let plan = lower(&compiled.traversal, &compiled.configuration, facts).unwrap_or_else(|e| panic!("{bytecode}: {e}"));
    rules.extend(&plan.rules);
    let rules = if rules.is_empty() { String::new() } else { format!("rules: {}\n", rules.join("; ")) };
    rules + &explain::explain(&plan)
}

/// `[edge] [ordered] [unique] [LABEL.]KEY[,KEY…]`
fn index(text: &str, number: u32) -> UsableIndex {
    let (element, name) =
        text.strip_prefix("edge ").map_or((ElementKind::Vertex, text), |name| (ElementKind::Edge, name));
    let (ordered, name) = name.strip_prefix("ordered ").map_or((false, name), |name| (true, name));
    let (unique, name) = name.strip_prefix("unique ").map_or((false, name), |name| (true, name));
    let (label, keys) = name.split_once('.').map_or((None, name), |(label, keys)| (Some(label), keys));
    let keys: Vec<_> = keys.split(',').map(Into::into).collect();
    let ids = (0..keys.len() as u32).map(KeyId).collect();
    let label_id = label.map(|_| LabelId(0));
    let info = IndexInfo { id: IndexId(number), element, label: label_id, keys: ids, ordered, unique };
    UsableIndex { info, label: label.map(Into::into), keys }
}

/// The file with every plan replaced by the current one.
fn rewritten(text: &str, mut plan: impl FnMut(&str, &GraphFacts) -> String) -> String {
    let mut facts = GraphFacts::default();
    let mut now = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        now.push_str(line);
        now.push('\n');
        if let Some(text) = line.strip_prefix("index ") {
            let number = facts.indexes.len() as u32;
            facts.indexes.push(index(text, number));
        } else if let Some(script) = line.strip_prefix("> ") {
            now.push_str(&plan(script, &facts));
            if lines.by_ref().find(|line| line.is_empty()).is_some() {
                now.push('\n');
            }
        }
    }
    now
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "test")).collect();
    files.sort();
    files
}

#[test]
fn plans_are_as_recorded() {
    let update = std::env::var_os("MANGROVE_UPDATE").is_some();
    let files = files();
    assert!(!files.is_empty(), "the golden plans are missing");
    for file in files {
        let recorded = fs::read_to_string(&file).unwrap();
        let now = rewritten(&recorded, |script, facts| plan(&parsed(script), facts));
        if update {
            fs::write(&file, now).unwrap();
            continue;
        }
        let differs = recorded.lines().zip(now.lines()).position(|(a, b)| a != b);
        if let Some(at) = differs.or((recorded != now).then_some(0)) {
            let around = |text: &str| text.lines().skip(at.saturating_sub(6)).take(14).collect::<Vec<_>>().join("\n");
            panic!(
                "{}, line {}: recorded\n{}\n\nnow\n{}\n\nMANGROVE_UPDATE=1 records what is now",
                file.display(),
                at + 1,
                around(&recorded),
                around(&now)
            );
        }
    }
}

#[test]
fn a_traversal_without_its_literals_has_the_same_plan() {
    let mut compared = 0;
    for file in files() {
        let recorded = fs::read_to_string(&file).unwrap();
        rewritten(&recorded, |script, facts| {
            let bytecode = parsed(script);
            let Some(lifted) = literals::lift(&bytecode) else { return String::new() };
            compared += 1;
            let without = explain::with_literals(&plan(&lifted.bytecode, facts), &lifted.values);
            assert_eq!(without, plan(&bytecode, facts), "{script}, in {}", file.display());
            without
        });
    }
    assert!(compared > 50, "{compared} recorded traversals have literals that are taken out");
}
