//! Tables: a script, and the logical steps or the message that it gives.
//!
//! The logical form is that of `Debug`, without positions and with `@[…]` for step labels.

mod branches;
mod filters;
mod limits;
mod maps;
mod mistakes;
mod sources;

use mangrove_graph::{ErrorKind, Value};
use mangrove_gremlin::script::{ParseOptions, Statement, parse_one};
use mangrove_gremlin::{Argument, Bytecode, Instruction, Predicate};

use super::{Compiled, NESTING_MAX, compile};

fn bytecode(script: &str) -> Bytecode {
    match parse_one(script, &ParseOptions::default()) {
        Ok(Statement::Traversal { bytecode, .. }) => bytecode,
        other => panic!("{script}: {other:?}"),
    }
}

fn compiled(script: &str) -> Compiled {
    compile(&bytecode(script)).unwrap_or_else(|error| panic!("{script}: {error}"))
}

fn compact(script: &str) -> String {
    let mut rest = &*format!("{:?}", compiled(script).traversal.steps);
    let mut out = String::new();
    // A step node ends in `, labels: […], position: Some(Position { … }) }`; nothing else has a position.
    while let Some(at) = rest.find(", position: ") {
        let node = &rest[..at];
        let labels = node.rfind(", labels: ").expect("labels stand before the position");
        out.push_str(&node[..labels]);
        let labels = &node[labels + ", labels: ".len()..];
        let labels = &labels[..labels.find(", policy: ").expect("the policy follows the labels")];
        if labels != "[]" {
            out.push('@');
            out.push_str(labels);
        }
        let position = &rest[at..];
        let end = if position.starts_with(", position: None") { 1 } else { 2 };
        let close = position.match_indices('}').nth(end - 1).expect("a node is closed").0;
        rest = &position[close + 1..];
    }
    out.push_str(rest);
    out.replace("StepNode { step: ", "")
}

#[track_caller]
fn check(script: &str, expected: &str) {
    assert_eq!(compact(script), expected, "{script}");
}

/// Two ways to write one traversal.
#[track_caller]
fn same(a: &str, b: &str) {
    assert_eq!(compiled(a), compiled(b), "{a} and {b}");
}

#[track_caller]
fn fails(script: &str, message: &str) {
    let error = compile(&bytecode(script)).expect_err(script);
    assert_eq!(error.message(), message, "{script}");
    assert!(
        matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidArgument),
        "{script}: {:?}",
        error.kind()
    );
}

fn call(name: &str, arguments: Vec<Argument>) -> Instruction {
    Instruction::new(name, arguments)
}

fn wire(steps: Vec<Instruction>) -> Bytecode {
    Bytecode { source: Vec::new(), steps }
}

fn text(text: &str) -> Argument {
    Argument::Value(Value::string(text))
}

#[track_caller]
fn wire_fails(steps: Vec<Instruction>, message: &str) {
    assert_eq!(compile(&wire(steps)).expect_err(message).message(), message);
}
