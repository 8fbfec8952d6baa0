//! The shape of a traversal as bytes: the traversal without the literals that are taken out.
//!
//! Two traversals have the same bytes only if they are equal without these literals. So the bytes are a key, and no
//! traversal needs to be kept beside them. They are written in one pass and take no other form on the way.

use std::fmt::Write as _;

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Bytecode, Instruction, Predicate};

use super::LITERALS_MAX;
use super::positions::{
    ArgumentUse, has_predicates, is_free, is_free_list, is_free_text, is_value_key, liftable_arguments, list_literal,
    takes_lists,
};

/// Appends the shape of a traversal to `key`. Returns the literals that are no part of it, by number.
pub fn write_shape(bytecode: &Bytecode, key: &mut Vec<u8>) -> Vec<Value> {
    let begin = key.len();
    let mut writer = Writer { key, literals: Vec::new(), lifts: true };
    writer.bytecode(bytecode);
    if writer.literals.len() <= LITERALS_MAX {
        return writer.literals;
    }
    key.truncate(begin);
    write_whole(bytecode, key);
    Vec::new()
}

/// Appends a traversal with all its literals to `key`.
pub fn write_whole(bytecode: &Bytecode, key: &mut Vec<u8>) {
    Writer { key, literals: Vec::new(), lifts: false }.bytecode(bytecode);
}

/// What follows in the bytes. Every number of bytes and members is written before them, so no two traversals have the
/// same bytes.
#[derive(Clone, Copy)]
enum Tag {
    Literal,
    Null,
    False,
    True,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    String,
    Values,
    ValueSet,
    ValueMap,
    /// A value of a type that traversals hardly ever have, as its debug text.
    OtherValue,
    Parameter,
    List,
    Map,
    Traversal,
    Compare,
    Within,
    Without,
    Text,
    TypeOf,
    And,
    Or,
    Not,
    CardinalityValue,
    Strategy,
    /// An argument without values, such as a member of `Order` or `Scope`, as its debug text.
    OtherArgument,
}

struct Writer<'a> {
    key: &'a mut Vec<u8>,
    literals: Vec<Value>,
    /// False if the literals are part of the shape, too.
    lifts: bool,
}

impl Writer<'_> {
    fn bytecode(&mut self, bytecode: &Bytecode) {
        self.count(bytecode.source.len());
        for instruction in &bytecode.source {
            self.name(instruction);
            instruction.arguments.iter().for_each(|argument| self.argument(argument));
        }
        self.count(bytecode.steps.len());
        bytecode.steps.iter().for_each(|step| self.step(step));
    }

    fn name(&mut self, instruction: &Instruction) {
        self.text(&instruction.name);
        self.count(instruction.arguments.len());
    }

    fn step(&mut self, step: &Instruction) {
        self.name(step);
        let liftable = if self.lifts { liftable_arguments(step) } else { None };
        for (at, argument) in step.arguments.iter().enumerate() {
            match (argument, &liftable) {
                (Argument::Traversal(nested), _) => {
                    self.tag(Tag::Traversal);
                    self.bytecode(nested);
                }
                (argument, Some((range, used_as))) if range.contains(&at) => self.liftable(argument, *used_as),
                (argument, _) => self.argument(argument),
            }
        }
    }

    /// Writes an argument whose literals may be taken out.
    fn liftable(&mut self, argument: &Argument, used_as: ArgumentUse) {
        match argument {
            Argument::Predicate(predicate) if has_predicates(used_as) => self.predicate(predicate, Some(used_as)),
            Argument::Value(Value::Map(entries)) if used_as == ArgumentUse::Map => {
                self.tag(Tag::Map);
                self.count(entries.len());
                for (key, value) in entries.iter() {
                    self.value(key);
                    match is_value_key(key) && is_free(value, ArgumentUse::Value) {
                        true => self.literal(value.clone()),
                        false => self.value(value),
                    }
                }
            }
            Argument::Map(entries) if used_as == ArgumentUse::Map => {
                self.tag(Tag::Map);
                self.count(entries.len());
                for (key, value) in entries {
                    self.argument(key);
                    let is_free = matches!(key, Argument::Value(key) if is_value_key(key));
                    match value {
                        Argument::CardinalityValue(cardinality, value) if is_free => {
                            self.tag(Tag::CardinalityValue);
                            self.text(cardinality.name());
                            self.liftable(value, ArgumentUse::Value);
                        }
                        value if is_free => self.liftable(value, ArgumentUse::Value),
                        value => self.argument(value),
                    }
                }
            }
            Argument::Value(value) if is_free(value, used_as) => self.literal(value.clone()),
            other => self.argument(other),
        }
    }

    fn literal(&mut self, value: Value) {
        self.tag(Tag::Literal);
        self.literals.push(value);
    }

    /// Writes an argument that keeps its literals.
    fn argument(&mut self, argument: &Argument) {
        match argument {
            Argument::Value(value) => self.value(value),
            Argument::Lifted(_) => self.tag(Tag::Literal),
            Argument::Parameter(name) => self.tagged_text(Tag::Parameter, name),
            Argument::List(items) => self.arguments(Tag::List, items),
            Argument::Map(entries) => {
                self.tag(Tag::Map);
                self.count(entries.len());
                for (key, value) in entries {
                    self.argument(key);
                    self.argument(value);
                }
            }
            Argument::Traversal(nested) => {
                self.tag(Tag::Traversal);
                let lifts = std::mem::replace(&mut self.lifts, false);
                self.bytecode(nested);
                self.lifts = lifts;
            }
            Argument::Predicate(predicate) => self.predicate(predicate, None),
            Argument::CardinalityValue(cardinality, value) => {
                self.tag(Tag::CardinalityValue);
                self.text(cardinality.name());
                self.argument(value);
            }
            Argument::Strategy(name, settings) => {
                self.tagged_text(Tag::Strategy, name);
                self.count(settings.len());
                for (name, value) in settings {
                    self.text(name);
                    self.argument(value);
                }
            }
            Argument::Vertex(_)
            | Argument::Edge(_)
            | Argument::Order(_)
            | Argument::Scope(_)
            | Argument::Pop(_)
            | Argument::Column(_)
            | Argument::Cardinality(_)
            | Argument::Merge(_)
            | Argument::Operator(_)
            | Argument::Pick(_)
            | Argument::NormSack
            | Argument::DateUnit(_)
            | Argument::Type(_) => self.debug(Tag::OtherArgument, argument),
        }
    }

    fn arguments(&mut self, tag: Tag, arguments: &[Argument]) {
        self.tag(tag);
        self.count(arguments.len());
        arguments.iter().for_each(|argument| self.argument(argument));
    }

    /// Writes a predicate. `used_as`: how its literals are used, if they may be taken out.
    fn predicate(&mut self, predicate: &Predicate, used_as: Option<ArgumentUse>) {
        let takes_lists = used_as.is_some_and(|used_as| takes_lists(predicate, used_as));
        let operand = |writer: &mut Self, operand: &Argument, used_as: Option<ArgumentUse>| match used_as {
            Some(used_as) => writer.liftable(operand, used_as),
            None => writer.argument(operand),
        };
        match predicate {
            Predicate::Compare(comparison, value) => {
                self.tagged_text(Tag::Compare, comparison.name());
                operand(self, value, used_as);
            }
            Predicate::Within(members) | Predicate::Without(members) => {
                let tag = if matches!(predicate, Predicate::Within(_)) { Tag::Within } else { Tag::Without };
                match takes_lists && is_free_list(members) {
                    true => {
                        self.tag(tag);
                        self.count(1);
                        self.literal(list_literal(members));
                    }
                    false => self.arguments(tag, members),
                }
            }
            Predicate::Text(operation, value) => {
                self.debug(Tag::Text, operation);
                let is_free = used_as.is_some() && is_free_text(*operation, value);
                operand(self, value, is_free.then_some(ArgumentUse::Value));
            }
            Predicate::TypeOf(of) => {
                self.tag(Tag::TypeOf);
                self.argument(of);
            }
            Predicate::And(members) | Predicate::Or(members) => {
                self.tag(if matches!(predicate, Predicate::And(_)) { Tag::And } else { Tag::Or });
                self.count(members.len());
                members.iter().for_each(|member| self.predicate(member, used_as));
            }
            Predicate::Not(inner) => {
                self.tag(Tag::Not);
                self.predicate(inner, used_as);
            }
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.tag(Tag::Null),
            Value::Bool(truth) => self.tag(if *truth { Tag::True } else { Tag::False }),
            Value::I8(n) => self.bytes(Tag::I8, &n.to_le_bytes()),
            Value::I16(n) => self.bytes(Tag::I16, &n.to_le_bytes()),
            Value::I32(n) => self.bytes(Tag::I32, &n.to_le_bytes()),
            Value::I64(n) => self.bytes(Tag::I64, &n.to_le_bytes()),
            Value::F32(n) => self.bytes(Tag::F32, &n.to_bits().to_le_bytes()),
            Value::F64(n) => self.bytes(Tag::F64, &n.to_bits().to_le_bytes()),
            Value::String(text) => self.tagged_text(Tag::String, text),
            Value::List(items) => self.values(Tag::Values, items),
            Value::Set(items) => self.values(Tag::ValueSet, items),
            Value::Map(entries) => {
                self.tag(Tag::ValueMap);
                self.count(entries.len());
                for (key, value) in entries.iter() {
                    self.value(key);
                    self.value(value);
                }
            }
            other => self.debug(Tag::OtherValue, other),
        }
    }

    fn values(&mut self, tag: Tag, values: &[Value]) {
        self.tag(tag);
        self.count(values.len());
        values.iter().for_each(|value| self.value(value));
    }

    fn tag(&mut self, tag: Tag) {
        self.key.push(tag as u8);
    }

    /// Writes a number of members or bytes: in one byte, if it is small.
    fn count(&mut self, count: usize) {
        match u8::try_from(count) {
            Ok(small) if small < u8::MAX => self.key.push(small),
            _ => {
                self.key.push(u8::MAX);
                self.key.extend_from_slice(&(count as u64).to_le_bytes());
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.key.extend_from_slice(text.as_bytes());
    }

    fn tagged_text(&mut self, tag: Tag, text: &str) {
        self.tag(tag);
        self.text(text);
    }

    fn bytes(&mut self, tag: Tag, bytes: &[u8]) {
        self.tag(tag);
        self.key.extend_from_slice(bytes);
    }

    fn debug(&mut self, tag: Tag, value: &impl std::fmt::Debug) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(text, "{value:?}");
        self.tagged_text(tag, &text);
    }
}
