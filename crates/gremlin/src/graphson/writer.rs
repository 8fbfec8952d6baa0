//! Writing GraphSON: values and arguments into JSON.
//!
//! Writing fails only for a value that the format cannot hold. The bytes of a failed write stay in the buffer; the
//! caller truncates it (WIRE-5).

mod metrics;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mangrove_graph::{Detached, DetachedVertexProperty, Error, GraphValue, PathValue, Result, Tree, Value};
use smol_str::SmolStr;

use super::json::write_string;
use super::{Dialect, Version, moment};
use crate::bytecode::{Argument, Bytecode, Instruction, Predicate};
use crate::print::direction_name;
use crate::terms::{CARDINALITY_VALUE, token_name};
use crate::text::{Plain, decimal};

/// A dialect without multisets writes a value as often as it occurs. These are the most bytes that the repetitions of
/// all values of one result may take.
const COPIED_BYTES_MAX: u64 = 16 << 20;

/// Appends JSON to a buffer.
pub(super) struct Writer<'a> {
    dialect: Dialect,
    out: &'a mut Vec<u8>,
    /// The bytes that repetitions of values of multisets may still take.
    copied_bytes_left: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(dialect: Dialect, out: &'a mut Vec<u8>) -> Self {
        Writer { dialect, out, copied_bytes_left: COPIED_BYTES_MAX }
    }

    /// Bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A string of JSON.
    pub(super) fn string(&mut self, text: &str) {
        write_string(self.out, text);
    }

    /// A value.
    pub(super) fn value(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Null => self.raw(b"null"),
            Value::Bool(value) => self.raw(if *value { b"true" } else { b"false" }),
            Value::I8(n) => self.number("gx:Byte", &n.to_string()),
            Value::I16(n) => self.number("gx:Int16", &n.to_string()),
            Value::I32(n) => self.number("g:Int32", &n.to_string()),
            Value::I64(n) => self.number("g:Int64", &n.to_string()),
            Value::BigInt(n) => self.number("gx:BigInteger", &n.to_string()),
            Value::F32(n) if n.is_finite() => self.number("g:Float", &format!("{n:?}")),
            Value::F32(_) => self.text("g:Float", &Plain(value).to_string()),
            Value::F64(n) if n.is_finite() => self.number("g:Double", &format!("{n:?}")),
            Value::F64(_) => self.text("g:Double", &Plain(value).to_string()),
            Value::Decimal(n) => self.number("gx:BigDecimal", &decimal(n)),
            Value::Char(c) => self.text("gx:Char", c.encode_utf8(&mut [0; 4])),
            Value::String(text) => self.string(text),
            Value::Bytes(bytes) => self.text("gx:ByteBuffer", &STANDARD.encode(bytes)),
            Value::Uuid(uuid) => self.text("g:UUID", &uuid.to_string()),
            Value::DateTime(at) => {
                let text = moment::write(*at).ok_or_else(|| {
                    Error::evaluation("the year of a date needs more than 32 bits, which GraphSON does not hold")
                })?;
                self.text("gx:OffsetDateTime", &text);
            }
            Value::Duration(duration) => self.text("gx:Duration", &moment::write_duration(*duration)),
            Value::List(items) => self.collection("g:List", |writer| writer.items(items, Self::value))?,
            Value::Set(items) => self.collection("g:Set", |writer| writer.items(items, Self::value))?,
            Value::Map(entries) => self.map(entries)?,
            Value::Entry(entry) => self.map(std::slice::from_ref(entry.as_ref()))?,
            Value::BulkSet(entries) => self.bulk_set(entries)?,
            // The format has no packed arrays: a client sees a list of floats.
            Value::F32Array(items) => {
                self.collection("g:List", |writer| writer.items(items, |writer, n| writer.value(&Value::F32(*n))))?
            }
            Value::Path(path) => self.typed("g:Path", |writer| writer.path(path))?,
            Value::Tree(tree) => self.tree(tree)?,
            Value::Graph(graph) => self.typed("tinker:graph", |writer| writer.graph(graph))?,
            Value::Token(token) => self.text("g:T", token_name(*token)),
            Value::Direction(direction) => self.text("g:Direction", direction_name(*direction)),
            Value::Detached(element) => self.detached(element)?,
            Value::TraversalMetrics(metrics) => self.traversal_metrics(metrics)?,
            inside => {
                return Err(Error::bug(format!("a {} reached the wire without being detached", inside.type_name())));
            }
        }
        Ok(())
    }

    /// A result, with the number of times it occurs.
    pub(super) fn traverser(&mut self, bulk: u64, object: &Value) -> Result<()> {
        self.typed("g:Traverser", |writer| {
            writer.raw(br#"{"bulk":"#);
            writer.bulk(bulk)?;
            writer.raw(br#","value":"#);
            writer.value(object)?;
            writer.raw(b"}");
            Ok(())
        })
    }

    /// The output of `write`, with a type if the dialect has types.
    fn typed(&mut self, type_name: &str, write: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if !self.dialect.typed {
            return write(self);
        }
        self.raw(br#"{"@type":""#);
        self.raw(type_name.as_bytes());
        self.raw(br#"","@value":"#);
        write(self)?;
        self.raw(b"}");
        Ok(())
    }

    /// The same for a collection, which has no type in GraphSON 2.
    fn collection(&mut self, type_name: &str, write: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        match self.dialect.version {
            Version::V2 => write(self),
            Version::V3 => self.typed(type_name, write),
        }
    }

    /// Returns true if the dialect writes maps as JSON objects, whose keys are strings.
    fn has_text_keys(&self) -> bool {
        !self.dialect.typed || self.dialect.version == Version::V2
    }

    fn number(&mut self, type_name: &str, digits: &str) {
        let written = self.typed(type_name, |writer| {
            writer.raw(digits.as_bytes());
            Ok(())
        });
        debug_assert!(written.is_ok(), "digits are never refused");
    }

    fn text(&mut self, type_name: &str, text: &str) {
        let written = self.typed(type_name, |writer| {
            writer.string(text);
            Ok(())
        });
        debug_assert!(written.is_ok(), "text is never refused");
    }

    /// An array.
    fn items<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T) -> Result<()>) -> Result<()> {
        self.raw(b"[");
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.raw(b",");
            }
            write(self, item)?;
        }
        self.raw(b"]");
        Ok(())
    }

    /// An object. `write` writes the keys, too.
    fn members<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T) -> Result<()>) -> Result<()> {
        self.raw(b"{");
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.raw(b",");
            }
            write(self, item)?;
        }
        self.raw(b"}");
        Ok(())
    }

    fn key(&mut self, key: &str) {
        self.string(key);
        self.raw(b":");
    }

    fn map(&mut self, entries: &[(Value, Value)]) -> Result<()> {
        if self.has_text_keys() {
            return self.members(entries, |writer, (key, value)| {
                match key {
                    // TinkerPop names elements by their ids.
                    Value::Detached(element) => match element.as_ref() {
                        Detached::Vertex { id, .. } | Detached::Edge { id, .. } => writer.key(&Plain(id).to_string()),
                        _ => writer.key(&Plain(key).to_string()),
                    },
                    key => writer.key(&Plain(key).to_string()),
                }
                writer.value(value)
            });
        }
        self.typed("g:Map", |writer| {
            writer.items(entries, |writer, (key, value)| {
                writer.value(key)?;
                writer.raw(b",");
                writer.value(value)
            })
        })
    }

    /// Values and bulks in turn; in dialects without multisets, every occurrence of a value.
    fn bulk_set(&mut self, entries: &[(Value, u64)]) -> Result<()> {
        if !self.has_text_keys() {
            return self.typed("g:BulkSet", |writer| {
                writer.items(entries, |writer, (value, bulk)| {
                    writer.value(value)?;
                    writer.raw(b",");
                    writer.bulk(*bulk)
                })
            });
        }
        self.raw(b"[");
        let mut is_first = true;
        for (value, bulk) in entries.iter().filter(|(_, bulk)| *bulk > 0) {
            if !std::mem::replace(&mut is_first, false) {
                self.raw(b",");
            }
            self.repeated(value, *bulk)?;
        }
        self.raw(b"]");
        Ok(())
    }

    /// A value, repeated. It is written once and then copied. A few bytes of request may ask for any number of copies,
    /// of multisets in multisets, so all copies of one result have one limit.
    fn repeated(&mut self, value: &Value, times: u64) -> Result<()> {
        let begin = self.out.len();
        self.value(value)?;
        let end = self.out.len();
        let copies = (end - begin + 1) as u64;
        let left = copies.checked_mul(times - 1).and_then(|bytes| self.copied_bytes_left.checked_sub(bytes));
        self.copied_bytes_left = left.ok_or_else(|| {
            Error::evaluation(format!(
                "a multiset that has a value {times} times, each written out, is too long to send; ask for GraphSON 3 with \
                 types or GraphBinary, which count them"
            ))
        })?;
        for _ in 1..times {
            self.raw(b",");
            self.out.extend_from_within(begin..end);
        }
        Ok(())
    }

    fn bulk(&mut self, bulk: u64) -> Result<()> {
        let bulk = i64::try_from(bulk).map_err(|_| Error::evaluation("a bulk is more than 63 bits hold"))?;
        self.value(&Value::I64(bulk))
    }

    fn path(&mut self, path: &PathValue) -> Result<()> {
        let label = |writer: &mut Self, label: &SmolStr| {
            writer.string(label);
            Ok(())
        };
        self.raw(br#"{"labels":"#);
        self.collection("g:List", |writer| {
            writer
                .items(&path.labels, |writer, labels| writer.collection("g:Set", |writer| writer.items(labels, label)))
        })?;
        self.raw(br#","objects":"#);
        self.collection("g:List", |writer| writer.items(&path.objects, Self::value))?;
        self.raw(b"}");
        Ok(())
    }

    /// Objects of a key and the tree below it.
    fn tree(&mut self, tree: &Tree) -> Result<()> {
        self.typed("g:Tree", |writer| {
            writer.items(&tree.branches, |writer, (key, below)| {
                writer.raw(br#"{"key":"#);
                writer.value(key)?;
                writer.raw(br#","value":"#);
                writer.tree(below)?;
                writer.raw(b"}");
                Ok(())
            })
        })
    }

    fn graph(&mut self, graph: &GraphValue) -> Result<()> {
        self.raw(br#"{"vertices":"#);
        self.items(&graph.vertices, Self::value)?;
        self.raw(br#","edges":"#);
        self.items(&graph.edges, Self::value)?;
        self.raw(b"}");
        Ok(())
    }

    fn detached(&mut self, element: &Detached) -> Result<()> {
        match element {
            Detached::Vertex { id, label, properties } => {
                self.typed("g:Vertex", |writer| writer.vertex(id, label, properties))
            }
            Detached::Edge { id, label, source, target, properties } => {
                self.typed("g:Edge", |writer| writer.edge(id, label, source, target, properties))
            }
            Detached::VertexProperty(property) => self.vertex_property(property),
            Detached::Property { key, value } => self.property(key, value),
        }
    }

    fn vertex(&mut self, id: &Value, label: &str, properties: &[DetachedVertexProperty]) -> Result<()> {
        self.raw(br#"{"id":"#);
        self.value(id)?;
        self.raw(br#","label":"#);
        self.string(label);
        if !properties.is_empty() {
            self.raw(br#","properties":"#);
            // The values of one key are together, at the position of the first.
            let mut by_key: Vec<(&str, Vec<&DetachedVertexProperty>)> = Vec::new();
            for property in properties {
                match by_key.iter_mut().find(|(key, _)| *key == property.key) {
                    Some((_, values)) => values.push(property),
                    None => by_key.push((&property.key, vec![property])),
                }
            }
            self.members(&by_key, |writer, (key, values)| {
                writer.key(key);
                writer.items(values, |writer, property| writer.vertex_property(property))
            })?;
        }
        self.raw(b"}");
        Ok(())
    }

    fn edge(
        &mut self,
        id: &Value,
        label: &str,
        source: &(Value, SmolStr),
        target: &(Value, SmolStr),
        properties: &[(SmolStr, Value)],
    ) -> Result<()> {
        self.raw(br#"{"id":"#);
        self.value(id)?;
        self.raw(br#","label":"#);
        self.string(label);
        self.raw(br#","inVLabel":"#);
        self.string(&target.1);
        self.raw(br#","outVLabel":"#);
        self.string(&source.1);
        self.raw(br#","inV":"#);
        self.value(&target.0)?;
        self.raw(br#","outV":"#);
        self.value(&source.0)?;
        if !properties.is_empty() {
            self.raw(br#","properties":"#);
            self.members(properties, |writer, (key, value)| {
                writer.key(key);
                writer.property(key, value)
            })?;
        }
        self.raw(b"}");
        Ok(())
    }

    fn vertex_property(&mut self, property: &DetachedVertexProperty) -> Result<()> {
        self.typed("g:VertexProperty", |writer| {
            writer.raw(br#"{"id":"#);
            writer.value(&property.id)?;
            writer.raw(br#","value":"#);
            writer.value(&property.value)?;
            writer.raw(br#","label":"#);
            writer.string(&property.key);
            if !property.meta.is_empty() {
                writer.raw(br#","properties":"#);
                writer.members(&property.meta, |writer, (key, value)| {
                    writer.key(key);
                    writer.value(value)
                })?;
            }
            writer.raw(b"}");
            Ok(())
        })
    }

    fn property(&mut self, key: &str, value: &Value) -> Result<()> {
        self.typed("g:Property", |writer| {
            writer.raw(br#"{"key":"#);
            writer.string(key);
            writer.raw(br#","value":"#);
            writer.value(value)?;
            writer.raw(b"}");
            Ok(())
        })
    }
}

/// Arguments of traversals. Only clients write them.
impl Writer<'_> {
    /// An argument. The wire has no form for parameters: they must be bound.
    pub(super) fn argument(&mut self, argument: &Argument) -> Result<()> {
        match argument {
            Argument::Value(plain) => self.value(plain)?,
            Argument::Parameter(name) => {
                return Err(Error::invalid(format!(
                    "the parameter `{name}` must be bound before the traversal is sent"
                )));
            }
            Argument::Lifted(_) => return Err(Error::bug("a traversal without its literals reached the wire")),
            Argument::List(items) => self.collection("g:List", |writer| writer.items(items, Self::argument))?,
            Argument::Map(entries) => self.argument_map(entries)?,
            Argument::Traversal(nested) => self.bytecode(nested)?,
            Argument::Predicate(predicate) => self.predicate(predicate)?,
            Argument::Vertex(id) => self.typed("g:Vertex", |writer| writer.vertex(id, "vertex", &[]))?,
            Argument::Edge(id) => {
                let unknown = (Value::Null, SmolStr::new_static("vertex"));
                self.typed("g:Edge", |writer| writer.edge(id, "edge", &unknown, &unknown, &[]))?;
            }
            Argument::Order(v) => self.text("g:Order", v.name()),
            Argument::Scope(v) => self.text("g:Scope", v.name()),
            Argument::Pop(v) => self.text("g:Pop", v.name()),
            Argument::Column(v) => self.text("g:Column", v.name()),
            Argument::Cardinality(v) => self.text("g:Cardinality", v.name()),
            Argument::CardinalityValue(cardinality, wrapped) => {
                let parts = vec![Argument::Cardinality(*cardinality), wrapped.as_ref().clone()];
                let source = vec![Instruction::new(CARDINALITY_VALUE, parts)];
                self.bytecode(&Bytecode { source, steps: Vec::new() })?;
            }
            Argument::Merge(v) => self.text("g:Merge", v.name()),
            Argument::Operator(v) => self.text("g:Operator", v.name()),
            Argument::Pick(v) => self.text("g:Pick", v.name()),
            Argument::NormSack => self.text("g:Barrier", "normSack"),
            Argument::DateUnit(name) => self.text("g:DT", name),
            Argument::Type(name) => self.text("g:GType", name),
            Argument::Strategy(name, configuration) => self.strategy(name, configuration)?,
        }
        Ok(())
    }

    fn argument_map(&mut self, entries: &[(Argument, Argument)]) -> Result<()> {
        if self.has_text_keys() {
            return self.members(entries, |writer, (key, value)| {
                match key {
                    Argument::Value(key) => writer.key(&Plain(key).to_string()),
                    key => writer.key(&key.to_string()),
                }
                writer.argument(value)
            });
        }
        self.typed("g:Map", |writer| {
            writer.items(entries, |writer, (key, value)| {
                writer.argument(key)?;
                writer.raw(b",");
                writer.argument(value)
            })
        })
    }

    fn bytecode(&mut self, bytecode: &Bytecode) -> Result<()> {
        self.typed("g:Bytecode", |writer| {
            writer.raw(b"{");
            writer.instructions("source", &bytecode.source)?;
            if !bytecode.source.is_empty() && !bytecode.steps.is_empty() {
                writer.raw(b",");
            }
            writer.instructions("step", &bytecode.steps)?;
            writer.raw(b"}");
            Ok(())
        })
    }

    fn instructions(&mut self, name: &str, instructions: &[Instruction]) -> Result<()> {
        if instructions.is_empty() {
            return Ok(());
        }
        self.key(name);
        self.items(instructions, |writer, instruction| {
            writer.raw(b"[");
            writer.string(&instruction.name);
            for argument in &instruction.arguments {
                writer.raw(b",");
                writer.argument(argument)?;
            }
            writer.raw(b"]");
            Ok(())
        })
    }

    fn predicate(&mut self, predicate: &Predicate) -> Result<()> {
        let members = |members: &[Predicate]| members.iter().cloned().map(Argument::Predicate).collect::<Vec<_>>();
        let (type_name, name, operand) = match predicate {
            Predicate::Compare(comparison, operand) => ("g:P", comparison.name(), operand.as_ref().clone()),
            Predicate::Text(operation, operand) => ("g:TextP", operation.name(), operand.as_ref().clone()),
            Predicate::TypeOf(operand) => ("g:P", "typeOf", operand.as_ref().clone()),
            Predicate::Within(operands) => ("g:P", "within", Argument::List(operands.clone())),
            Predicate::Without(operands) => ("g:P", "without", Argument::List(operands.clone())),
            Predicate::And(all) => ("g:P", "and", Argument::List(members(all))),
            Predicate::Or(any) => ("g:P", "or", Argument::List(members(any))),
            Predicate::Not(inner) => ("g:P", "not", Argument::Predicate(inner.as_ref().clone())),
        };
        self.typed(type_name, |writer| {
            writer.raw(br#"{"predicate":"#);
            writer.string(name);
            writer.raw(br#","value":"#);
            // The members of a conjunction are a plain array even in GraphSON 3.
            match &operand {
                Argument::List(members) if matches!(name, "and" | "or") => writer.items(members, Self::argument)?,
                operand => writer.argument(operand)?,
            }
            writer.raw(b"}");
            Ok(())
        })
    }

    fn strategy(&mut self, name: &str, configuration: &[(SmolStr, Argument)]) -> Result<()> {
        self.typed(&format!("g:{name}"), |writer| {
            writer.raw(br#"{"fqcn":"#);
            writer.string(name);
            writer.raw(br#","conf":"#);
            writer.members(configuration, |writer, (key, option)| {
                writer.key(key);
                writer.argument(option)
            })?;
            writer.raw(b"}");
            Ok(())
        })
    }
}
