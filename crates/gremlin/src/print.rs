//! Bytecode as text: `Display` prints gremlin-lang.
//!
//! - **WIRE-6.** Parsing the printed text gives the same bytecode, unless it has values without a literal in the
//!   language. These are printed as something near: characters and packed float arrays (as strings and lists), 32-bit
//!   NaN and infinity (as doubles), dates beyond the year 9999, and values that only results hold (paths, properties,
//!   multisets).

use std::fmt::{self, Display, Formatter, Write as _};

use mangrove_graph::{Detached, Direction, Token, Value};

use crate::bytecode::{Argument, Bytecode, Instruction, Predicate};

impl Display for Bytecode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("g")?;
        steps(f, &self.source)?;
        steps(f, &self.steps)
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        separated(f, &self.arguments)?;
        f.write_char(')')
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Value(value) => Literal(value).fmt(f),
            Argument::Parameter(name) => f.write_str(name),
            Argument::Lifted(_) => f.write_char('?'),
            Argument::List(items) => {
                f.write_char('[')?;
                separated(f, items)?;
                f.write_char(']')
            }
            Argument::Map(entries) => map(f, entries.iter().map(|(k, v)| (MapKey::Argument(k), v))),
            Argument::Traversal(nested) => {
                f.write_str("__")?;
                steps(f, &nested.source)?;
                steps(f, &nested.steps)
            }
            Argument::Predicate(predicate) => predicate.fmt(f),
            Argument::Vertex(id) => write!(f, "new Vertex({})", Literal(id)),
            Argument::Edge(id) => write!(f, "new Edge({})", Literal(id)),
            Argument::Order(order) => write!(f, "Order.{}", order.name()),
            Argument::Scope(scope) => write!(f, "Scope.{}", scope.name()),
            Argument::Pop(pop) => write!(f, "Pop.{}", pop.name()),
            Argument::Column(column) => write!(f, "Column.{}", column.name()),
            Argument::Cardinality(cardinality) => write!(f, "Cardinality.{}", cardinality.name()),
            Argument::CardinalityValue(cardinality, value) => write!(f, "Cardinality.{}({value})", cardinality.name()),
            Argument::Merge(merge) => write!(f, "Merge.{}", merge.name()),
            Argument::Operator(operator) => write!(f, "Operator.{}", operator.name()),
            Argument::Pick(pick) => write!(f, "Pick.{}", pick.name()),
            Argument::NormSack => f.write_str("Barrier.normSack"),
            Argument::DateUnit(unit) => write!(f, "DT.{unit}"),
            Argument::Type(name) => write!(f, "GType.{name}"),
            Argument::Strategy(name, configuration) => strategy(f, name, configuration),
        }
    }
}

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Predicate::Compare(comparison, operand) => write!(f, "P.{}({operand})", comparison.name()),
            Predicate::Within(operands) => collection_test(f, "within", operands),
            Predicate::Without(operands) => collection_test(f, "without", operands),
            Predicate::Text(operation, operand) => write!(f, "TextP.{}({operand})", operation.name()),
            Predicate::TypeOf(operand) => write!(f, "P.typeOf({operand})"),
            Predicate::And(members) => chain(f, "and", members),
            Predicate::Or(members) => chain(f, "or", members),
            Predicate::Not(inner) => write!(f, "P.not({inner})"),
        }
    }
}

/// A value as a literal of the language.
#[derive(Clone, Copy, Debug)]
pub struct Literal<'a>(
    /// The value.
    pub &'a Value,
);

impl Display for Literal<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::I8(n) => write!(f, "{n}b"),
            Value::I16(n) => write!(f, "{n}s"),
            Value::I32(n) => write!(f, "{n}"),
            Value::I64(n) => write!(f, "{n}L"),
            Value::BigInt(n) => write!(f, "{n}n"),
            Value::F32(n) if n.is_finite() => write!(f, "{n:?}f"),
            Value::F32(n) => double(f, f64::from(*n)),
            Value::F64(n) => double(f, *n),
            Value::Decimal(n) => {
                // Not in plain notation, which would print every zero of a large exponent.
                let (digits, scale) = n.as_bigint_and_exponent();
                write!(f, "{digits}e{}m", -i128::from(scale))
            }
            Value::Char(c) => quoted(f, c.encode_utf8(&mut [0; 4])),
            Value::String(text) => quoted(f, text),
            Value::Bytes(bytes) => {
                f.write_str("Binary('")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("')")
            }
            Value::Uuid(uuid) => write!(f, "UUID('{uuid}')"),
            Value::DateTime(moment) => write!(f, "datetime('{moment}')"),
            Value::Duration(duration) => write!(f, "Duration('{duration}')"),
            Value::List(items) => values(f, '[', items, ']'),
            Value::Set(items) => values(f, '{', items, '}'),
            Value::Map(entries) => map(f, entries.iter().map(|(k, v)| (MapKey::Value(k), Literal(v)))),
            Value::Entry(entry) => map(f, [(MapKey::Value(&entry.0), Literal(&entry.1))].into_iter()),
            // Each value once with its count: a bulk may be any number.
            Value::BulkSet(entries) => map(f, entries.iter().map(|(value, bulk)| (MapKey::Value(value), bulk))),
            Value::F32Array(items) => values(f, '[', &items.iter().map(|n| Value::F32(*n)).collect::<Vec<_>>(), ']'),
            Value::Token(token) => f.write_str(token_text(*token)),
            Value::Direction(direction) => write!(f, "Direction.{}", direction_name(*direction)),
            Value::Vertex(id) => write!(f, "new Vertex({}L)", id.external()),
            Value::Edge(id) => write!(f, "new Edge({}L)", id.external()),
            Value::Detached(element) => detached(f, element),
            Value::VertexProperty(property) => write!(f, "vp[{}]", Literal(&property.value)),
            Value::Property(property) => write!(f, "p[{}]", Literal(&property.value)),
            Value::Path(path) => {
                f.write_str("path")?;
                values(f, '[', &path.objects, ']')
            }
            other => write!(f, "<{}>", other.type_name()),
        }
    }
}

/// Instructions, each after a `.`.
fn steps(f: &mut Formatter<'_>, instructions: &[Instruction]) -> fmt::Result {
    instructions.iter().try_for_each(|step| write!(f, ".{step}"))
}

fn separated<T: Display>(f: &mut Formatter<'_>, items: impl IntoIterator<Item = T>) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

fn values(f: &mut Formatter<'_>, open: char, items: &[Value], close: char) -> fmt::Result {
    f.write_char(open)?;
    separated(f, items.iter().map(Literal))?;
    f.write_char(close)
}

/// The key of a map. A key that is no string is printed in parentheses, since a bare word would be read as a string.
enum MapKey<'a> {
    Argument(&'a Argument),
    Value(&'a Value),
}

impl Display for MapKey<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            MapKey::Value(Value::String(text)) | MapKey::Argument(Argument::Value(Value::String(text))) => {
                quoted(f, text)
            }
            MapKey::Value(value) => write!(f, "({})", Literal(value)),
            MapKey::Argument(argument) => write!(f, "({argument})"),
        }
    }
}

fn map<'a, V: Display>(f: &mut Formatter<'_>, entries: impl ExactSizeIterator<Item = (MapKey<'a>, V)>) -> fmt::Result {
    if entries.len() == 0 {
        return f.write_str("[:]");
    }
    f.write_char('[')?;
    for (i, (key, value)) in entries.enumerate() {
        write!(f, "{}{key}: {value}", if i > 0 { ", " } else { "" })?;
    }
    f.write_char(']')
}

fn strategy(f: &mut Formatter<'_>, name: &str, configuration: &[(smol_str::SmolStr, Argument)]) -> fmt::Result {
    if configuration.is_empty() {
        return f.write_str(name);
    }
    write!(f, "new {name}(")?;
    for (i, (key, value)) in configuration.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        // The grammar has words here. A key that is no word can only be quoted.
        if is_word(key) {
            f.write_str(key)?
        } else {
            quoted(f, key)?
        }
        write!(f, ": {value}")?;
    }
    f.write_char(')')
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Prints the operands as a list, so that a single operand that is a list is not spread.
fn collection_test(f: &mut Formatter<'_>, name: &str, operands: &[Argument]) -> fmt::Result {
    write!(f, "P.{name}([")?;
    separated(f, operands)?;
    f.write_str("])")
}

fn chain(f: &mut Formatter<'_>, name: &str, members: &[Predicate]) -> fmt::Result {
    for (i, member) in members.iter().enumerate() {
        if i == 0 { write!(f, "{member}")? } else { write!(f, ".{name}({member})")? }
    }
    Ok(())
}

fn double(f: &mut Formatter<'_>, n: f64) -> fmt::Result {
    if n.is_nan() {
        f.write_str("NaN")
    } else if n.is_infinite() {
        f.write_str(if n > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        write!(f, "{n:?}")
    }
}

fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('\'')?;
    for c in text.chars() {
        match c {
            '\'' => f.write_str("\\'")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            // Every control character is in the basic plane, so one escape is enough.
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('\'')
}

fn detached(f: &mut Formatter<'_>, element: &Detached) -> fmt::Result {
    match element {
        Detached::Vertex { id, .. } => write!(f, "new Vertex({})", Literal(id)),
        Detached::Edge { id, .. } => write!(f, "new Edge({})", Literal(id)),
        Detached::VertexProperty(property) => write!(f, "vp[{}->{}]", property.key, Literal(&property.value)),
        Detached::Property { key, value } => write!(f, "p[{key}->{}]", Literal(value)),
    }
}

fn token_text(token: Token) -> &'static str {
    match token {
        Token::Id => "T.id",
        Token::Label => "T.label",
        Token::Key => "T.key",
        Token::Value => "T.value",
    }
}

/// The name of a direction as TinkerPop writes it.
pub(crate) fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Out => "OUT",
        Direction::In => "IN",
        Direction::Both => "BOTH",
    }
}
