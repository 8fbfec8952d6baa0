//! Short forms for bytecode in Rust code: `bytecode([step("V", []), step("out", ["knows".into()])])`.

use mangrove_graph::{Token, Value};
use mangrove_gremlin::{Argument, Bytecode, Comparison, Instruction, Predicate};

/// An instruction.
pub fn step<const N: usize>(name: &str, arguments: [Argument; N]) -> Instruction {
    Instruction::new(name, arguments.into())
}

/// A traversal without source instructions.
pub fn bytecode(steps: impl Into<Vec<Instruction>>) -> Bytecode {
    Bytecode { source: Vec::new(), steps: steps.into() }
}

/// A nested traversal.
pub fn nested(steps: impl Into<Vec<Instruction>>) -> Argument {
    Argument::Traversal(bytecode(steps))
}

/// A string argument.
pub fn text(s: &str) -> Argument {
    Argument::Value(Value::string(s))
}

/// A 32-bit integer argument, the type of a plain number in a script.
pub fn int(n: i32) -> Argument {
    Argument::Value(Value::I32(n))
}

/// A token argument.
pub fn token(t: Token) -> Argument {
    Argument::Value(Value::Token(t))
}

/// A comparison predicate.
pub fn compare(comparison: Comparison, operand: impl Into<Value>) -> Argument {
    Argument::Predicate(Predicate::Compare(comparison, Box::new(Argument::Value(operand.into()))))
}
