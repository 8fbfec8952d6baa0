//! A form of a query graph that does not depend on how it was written: equal for two spellings of one question. Tests
//! compare spellings by it; plans do not use it.
//!
//! Variables get colors: at first their conditions, then, again and again, their color with the colors of their
//! neighbors. The form is the sorted list of atoms and tests between colors. Names of variables are no part of it,
//! except in tests that are steps.

use std::collections::BTreeSet;

use mangrove_graph::Direction;

use super::{Atom, QueryGraph, TestKind};
use crate::logical::Condition;

/// The canonical form, as text.
pub(super) fn canonical(graph: &QueryGraph) -> String {
    let first = |(at, variable): (usize, &super::Variable)| {
        format!("{:?} {:?} {}", sorted(&variable.conditions), variable.ids, graph.sink == Some(at))
    };
    let mut colors: Vec<usize> = ranks(graph.variables.iter().enumerate().map(first).collect());
    for _ in 0..graph.variables.len() {
        let seen = |at: usize| {
            let mut around: Vec<String> = Vec::new();
            for atom in &graph.atoms {
                for (end, other) in [(atom.from, atom.to), (atom.to, atom.from)] {
                    if end == at {
                        let direction = atom.direction_from(end);
                        around.push(format!("{direction:?} {} {}", edges_of(atom), colors[other]));
                    }
                }
            }
            for test in &graph.tests {
                match &test.kind {
                    TestKind::Differ(a, b) if *a == at => around.push(format!("differs {}", colors[*b])),
                    TestKind::Differ(a, b) if *b == at => around.push(format!("differs {}", colors[*a])),
                    TestKind::Step(step, of) if test.reads & 1 << at != 0 => {
                        around.push(format!("{step:?} {}", *of == Some(at)));
                    }
                    _ => {}
                }
            }
            around.sort();
            format!("{} {around:?}", colors[at])
        };
        colors = ranks((0..graph.variables.len()).map(seen).collect());
    }
    let mut parts: Vec<String> =
        graph.variables.iter().enumerate().map(|v| format!("{} {}", colors[v.0], first(v))).collect();
    for atom in &graph.atoms {
        let (from, to) = (colors[atom.from], colors[atom.to]);
        let (from, direction, to) = match atom.direction {
            Direction::In => (to, Direction::Out, from),
            Direction::Both => (from.min(to), Direction::Both, from.max(to)),
            Direction::Out => (from, Direction::Out, to),
        };
        parts.push(format!("{from} {direction:?} {} {to}", edges_of(atom)));
    }
    for test in &graph.tests {
        parts.push(match &test.kind {
            TestKind::Differ(a, b) => {
                format!("{} differs from {}", colors[*a].min(colors[*b]), colors[*a].max(colors[*b]))
            }
            TestKind::Step(step, of) => format!("{step:?} of {:?}", of.map(|of| colors[of])),
        });
    }
    parts.sort();
    parts.join("\n")
}

/// The labels and conditions of an atom's edges.
fn edges_of(atom: &Atom) -> String {
    format!("{:?} {:?}", atom.labels, sorted(&atom.conditions))
}

fn sorted(conditions: &[Condition]) -> Vec<String> {
    let mut sorted: Vec<String> = conditions.iter().map(|c| format!("{c:?}")).collect();
    sorted.sort();
    sorted
}

/// The position of each text among all different ones.
fn ranks(texts: Vec<String>) -> Vec<usize> {
    let sorted: Vec<String> = texts.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    let rank = |text: &String| sorted.binary_search(text).expect("the text is among them");
    texts.iter().map(rank).collect()
}
