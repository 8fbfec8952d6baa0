//! Takes the literals out of a traversal.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Bytecode, Instruction, Predicate};

use super::positions::{
    ArgumentUse, has_predicates, is_free, is_free_list, is_free_text, is_value_key, liftable_arguments, list_literal,
    takes_lists,
};
use super::{LITERALS_MAX, write_shape};

/// A traversal without its literals.
#[derive(Debug)]
pub struct Lifted {
    /// The traversal without the literals.
    pub bytecode: Bytecode,
    /// The literals by number.
    pub values: Vec<Value>,
}

/// Takes out the literals that a plan is not made for; `None` if there are none, or too many.
pub fn lift(bytecode: &Bytecode) -> Option<Lifted> {
    if write_shape(bytecode, &mut Vec::new()).is_empty() {
        return None;
    }
    let mut bytecode = bytecode.clone();
    let mut values = Vec::new();
    take(&mut bytecode.steps, &mut values);
    debug_assert!(values.len() <= LITERALS_MAX);
    Some(Lifted { bytecode, values })
}

fn take(steps: &mut [Instruction], values: &mut Vec<Value>) {
    for step in steps {
        let liftable = liftable_arguments(step);
        for (at, argument) in step.arguments.iter_mut().enumerate() {
            match (argument, &liftable) {
                (Argument::Traversal(nested), _) => take(&mut nested.steps, values),
                (argument, Some((range, used_as))) if range.contains(&at) => {
                    take_in_argument(argument, *used_as, values)
                }
                _ => {}
            }
        }
    }
}

fn take_in_argument(argument: &mut Argument, used_as: ArgumentUse, values: &mut Vec<Value>) {
    match argument {
        Argument::Predicate(predicate) if has_predicates(used_as) => take_in_predicate(predicate, used_as, values),
        Argument::Value(_) | Argument::Map(_) if used_as == ArgumentUse::Map => take_in_map(argument, values),
        Argument::Value(_) => take_value(argument, used_as, values),
        _ => {}
    }
}

fn take_in_predicate(predicate: &mut Predicate, used_as: ArgumentUse, values: &mut Vec<Value>) {
    let takes_lists = takes_lists(predicate, used_as);
    match predicate {
        Predicate::Compare(_, operand) => take_value(operand, used_as, values),
        Predicate::And(members) | Predicate::Or(members) => {
            members.iter_mut().for_each(|member| take_in_predicate(member, used_as, values));
        }
        Predicate::Not(inner) => take_in_predicate(inner, used_as, values),
        Predicate::Within(members) | Predicate::Without(members) if takes_lists && is_free_list(members) => {
            let literal = list_literal(members);
            *members = vec![lifted(literal, values)];
        }
        Predicate::Text(operation, operand) if is_free_text(*operation, operand) => {
            take_value(operand, ArgumentUse::Value, values);
        }
        Predicate::Within(_) | Predicate::Without(_) | Predicate::Text(..) | Predicate::TypeOf(_) => {}
    }
}

fn take_in_map(argument: &mut Argument, values: &mut Vec<Value>) {
    if let Argument::Value(Value::Map(entries)) = argument {
        let entry = |(key, value): &(Value, Value)| (Argument::Value(key.clone()), Argument::Value(value.clone()));
        *argument = Argument::Map(entries.iter().map(entry).collect());
    }
    let Argument::Map(entries) = argument else { return };
    for (key, value) in entries {
        if !matches!(key, Argument::Value(key) if is_value_key(key)) {
            continue;
        }
        match value {
            Argument::CardinalityValue(_, value) => take_value(value, ArgumentUse::Value, values),
            value => take_value(value, ArgumentUse::Value, values),
        }
    }
}

fn take_value(argument: &mut Argument, used_as: ArgumentUse, values: &mut Vec<Value>) {
    if let Argument::Value(value) = argument
        && is_free(value, used_as)
    {
        let value = std::mem::replace(value, Value::Null);
        *argument = lifted(value, values);
    }
}

fn lifted(value: Value, values: &mut Vec<Value>) -> Argument {
    // There are at most `LITERALS_MAX`.
    let number = values.len() as u32;
    values.push(value);
    Argument::Lifted(number)
}
