//! Golden plans: the plan of each traversal in `tests/plans/*.test`, as `explain()` shows it.
//!
//! A file is about one rule or feature. Lines that begin with `#` are comments. The others are:
//!
//! | line | says |
//! |---|---|
//! | `index [edge] [ordered] [unique] [LABEL.]KEY[,KEY…]` | the graph has an index from there on |
//! | `vertices LABEL COUNT` | its statistics have so many vertices with a label |
//! | `edges LABEL out LABEL COUNT SOURCES`, with `in` too | vertices with a label have so many edges, and so many have any |
//! | the same, and `SQUARES` | so many are the squares of the degrees together; otherwise degrees are equal |
//! | `ends LABEL out LABEL LABEL PERCENT …`, with `in` too | so many of these edges lead to vertices with a label |
//! | `leads LABEL out LABEL LABEL …`, with `in` too | all such edges lead to vertices with one of these labels. Edges without a line do not exist |
//! | `leads-once LABEL out LABEL LABEL …` | the same, and each of the first vertices has at most one |
//! | `entries COUNT DISTINCT` | the index that was named last has so many entries, of so many values |
//! | `> TRAVERSAL` | the lines up to the next empty one are its plan |
//!
//! `MANGROVE_UPDATE=1` writes the current plans: read the difference in review.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mangrove_graph::connections::{Connections, Ends, ListFacts};
use mangrove_graph::statistics::{
    DegreeStatistics, EdgeTable, IndexStatistics, LabelStatistics, PairMoments, Statistics, sort_tables,
};
use mangrove_graph::{Direction, ElementKind, IndexId, IndexInfo, KeyId, LabelId, LabelSetId, Result, Value};
use mangrove_gremlin::{Bytecode, ParseOptions, Statement, parse_one};
use mangrove_plan::explain::{PlanNode, PlanTree};
use mangrove_plan::literals::{Guard, Literals};
use mangrove_plan::{
    Figures, GraphFacts, KnownConnections, PlanOptions, UsableIndex, compile_with, explain, literals, lower_with, rules,
};

fn parsed(script: &str) -> Bytecode {
    let statement = parse_one(script, &ParseOptions::default()).unwrap_or_else(|e| panic!("{script}: {e}"));
    let Statement::Traversal { bytecode, .. } = statement else { panic!("{script} is no traversal") };
    bytecode
}

fn plan(bytecode: &Bytecode, facts: &GraphFacts) -> String {
    plan_with(bytecode, &[], facts).unwrap_or_else(|e| panic!("{bytecode}: {e}")).0
}

/// The plan of a traversal from which literals were taken out, and what it relies on of them.
fn plan_with(bytecode: &Bytecode, values: &[Value], facts: &GraphFacts) -> Result<(String, Vec<Guard>)> {
    let literals = Literals::new(values);
    let mut compiled = compile_with(bytecode, &literals)?;
    let mut rules = rules::rewrite_with(&mut compiled.traversal, &compiled.configuration, &literals);
    let options = PlanOptions { estimate: true, ..PlanOptions::default() };
    let plan = lower_with(&compiled.traversal, &compiled.configuration, facts, options)?;
    rules.extend(&plan.rules);
    let rules = if rules.is_empty() { String::new() } else { format!("rules: {}\n", rules.join("; ")) };
    Ok((rules + &explain::explain(&plan), literals.into_guards()))
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

/// The figures of a graph, line by line.
#[derive(Default)]
struct Counted {
    names: Vec<String>,
    vertices: Vec<(LabelSetId, u64)>,
    tables: Vec<(LabelSetId, DegreeStatistics)>,
    leads: Vec<ListFacts>,
}

impl Counted {
    fn label(&mut self, name: &str) -> LabelSetId {
        let at = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        LabelSetId(at as u32)
    }

    /// Reads a line. Returns false if it has no figures.
    fn read(&mut self, line: &str) -> bool {
        let count = |text: &str| text.parse().unwrap_or_else(|_| panic!("{line}: {text} is no number"));
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["vertices", label, vertices] => {
                let label = self.label(label);
                self.vertices.push((label, count(vertices)));
            }
            ["edges", of, direction, label, edges, sources, ref squares @ ..] => {
                let of = self.label(of);
                let direction = if direction == "out" { Direction::Out } else { Direction::In };
                let table = EdgeTable { direction, label: self.label(label) };
                let (edges, sources) = (count(edges), count(sources));
                let equal = (edges * edges) as f64 / sources as f64;
                let squares = squares.first().map_or(equal, |squares| count(squares) as f64);
                let (max_degree, buckets, ends) = (edges / sources, Box::default(), Box::default());
                self.tables.push((of, DegreeStatistics { table, edges, sources, max_degree, squares, buckets, ends }));
            }
            ["ends", of, direction, label, ref ends @ ..] => {
                let direction = if direction == "out" { Direction::Out } else { Direction::In };
                let (of, table) = (self.label(of), EdgeTable { direction, label: self.label(label) });
                let part = |end: &[&str]| (self.label(end[0]), count(end[1]) as f64 / 100.0);
                let mut ends: Vec<_> = ends.chunks(2).map(part).collect();
                ends.sort_by_key(|(label, _)| *label);
                let known = self.tables.iter_mut().find(|(other, degrees)| *other == of && degrees.table == table);
                known.unwrap_or_else(|| panic!("{line}: its edges are not counted")).1.ends = ends.into();
            }
            [kind @ ("leads" | "leads-once"), of, direction, label, ref ends @ ..] => {
                let direction = if direction == "out" { Direction::Out } else { Direction::In };
                let (vertices, table) = (self.label(of), EdgeTable { direction, label: self.label(label) });
                let mut ends: Vec<_> = ends.iter().map(|end| self.label(end)).collect();
                ends.sort_unstable();
                let ends = Ends::Sets(ends.into());
                self.leads.push(ListFacts { vertices, table, ends, is_functional: kind == "leads-once" });
            }
            _ => return false,
        }
        true
    }

    fn connections(&self) -> Option<KnownConnections> {
        let facts = Arc::new(Connections::new(1, self.leads.clone()));
        let names_of = |label: LabelSetId| vec![self.names[label.0 as usize].as_str().into()];
        (!self.leads.is_empty()).then(|| KnownConnections::new(facts, names_of))
    }

    fn figures(&self) -> Figures {
        let labels = self.vertices.iter().map(|(label, vertices)| {
            let of_label = self.tables.iter().filter(|(of, _)| of == label);
            let mut tables: Vec<_> = of_label.map(|(_, degrees)| degrees.clone()).collect();
            sort_tables(&mut tables);
            LabelStatistics::new(*label, *vertices, tables, PairMoments::default())
        });
        let statistics = Statistics::new(1, labels.collect(), Vec::new());
        Figures::new(statistics.into(), |label| vec![self.names[label.0 as usize].as_str().into()])
    }
}

/// The file with every plan replaced by the current one.
fn rewritten(text: &str, mut plan: impl FnMut(&str, &GraphFacts) -> String) -> String {
    let (mut facts, mut counted) = (GraphFacts::default(), Counted::default());
    let mut now = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        now.push_str(line);
        now.push('\n');
        if let Some(text) = line.strip_prefix("index ") {
            let number = facts.indexes.len() as u32;
            facts.indexes.push(index(text, number));
        } else if let Some(numbers) = line.strip_prefix("entries ") {
            let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
            let index = facts.indexes.last().unwrap().info.id;
            facts.sizes.push(IndexStatistics { index, entries: numbers[0], distinct: numbers[1] });
        } else if counted.read(line) {
            facts.figures = (!counted.vertices.is_empty()).then(|| counted.figures());
            facts.connections = counted.connections();
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
            let (without, _) = plan_with(&lifted.bytecode, &lifted.values, facts).unwrap();
            let without = explain::with_literals(&without, &lifted.values);
            assert_eq!(without, plan(&bytecode, facts), "{script}, in {}", file.display());
            without
        });
    }
    assert!(compared > 50, "{compared} recorded traversals have literals that are taken out");
}

#[test]
fn plans_can_be_read_as_trees() {
    // What may be inside an operator without being a part of it: operators in the same order, and weights of a pattern.
    const HOLD_OPERATORS: [&str; 3] = ["keep the order", "count a pattern", "sum over"];
    fn check(node: &PlanNode, parts: &mut Vec<String>) {
        for inside in &node.inside {
            let may_be_operator = node.is_part || HOLD_OPERATORS.iter().any(|begin| node.text.starts_with(begin));
            assert!(may_be_operator || inside.is_part, "{inside:?} in {}", node.text);
            assert!(!(node.is_part && inside.is_part), "{inside:?} in {}", node.text);
            if inside.is_part {
                parts.push(inside.text.clone());
            }
            check(inside, parts);
        }
    }
    let mut parts = Vec::new();
    for file in files() {
        let recorded = fs::read_to_string(&file).unwrap();
        rewritten(&recorded, |script, facts| {
            let tree = PlanTree::read(&plan(&parsed(script), facts));
            assert_eq!(tree.about.last().map(|(topic, _)| topic.as_str()), Some("path"), "{script}");
            assert!(!tree.operators.is_empty() && tree.operators.iter().all(|node| !node.is_part), "{script}");
            tree.operators.iter().for_each(|node| check(node, &mut parts));
            String::new()
        });
    }
    parts.sort_unstable();
    parts.dedup();
    assert!(parts.len() > 12, "{parts:?}");
}

/// Other values for a literal: of its type, and of others.
fn others() -> Vec<Value> {
    let integers = [-2, -1, 0, 1, 2, 3, 8, 9, 10, 1000].map(Value::I32);
    let values = [Value::I64(1), Value::F64(1.0), Value::from("1"), Value::from("ada"), Value::Bool(true)];
    let lists = [Value::list(vec![Value::I32(1)]), Value::list(vec![Value::I32(1), Value::from("b")])];
    integers.into_iter().chain(values).chain(lists).collect()
}

#[test]
fn a_plan_is_that_of_all_literals_that_its_guards_admit() {
    let (mut admitted, mut refused) = (0, 0);
    for file in files() {
        let recorded = fs::read_to_string(&file).unwrap();
        rewritten(&recorded, |script, facts| {
            let Some(lifted) = literals::lift(&parsed(script)) else { return String::new() };
            let known = |values: &[Value]| plan_with(&lifted.bytecode, values, facts);
            let (text, guards) = known(&lifted.values).unwrap();
            for other in others() {
                // One literal is replaced, or all are.
                for at in 0..=lifted.values.len() {
                    let mut values = lifted.values.clone();
                    match values.get_mut(at) {
                        Some(value) => *value = other.clone(),
                        None => values.fill(other.clone()),
                    }
                    if guards.iter().all(|guard| guard.admits(&values)) {
                        let fresh = known(&values).map(|(fresh, _)| fresh);
                        assert_eq!(fresh, Ok(text.clone()), "{script} with {values:?}, admitted by {guards:?}");
                        admitted += 1;
                    } else {
                        refused += 1;
                    }
                }
            }
            String::new()
        });
    }
    assert!(admitted > 1000 && refused > 200, "{admitted} admitted, {refused} refused");
}
