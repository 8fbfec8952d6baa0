//! Functions of one object: text, collections, conversions and dates.
//!
//! [`Call`] resolves what is the same for all rows once, and hands each row's object with its arguments to the function.
//! An argument that is a traversal stands in a computed column; one without a result is `None` there, and each function says what
//! that means to it. Messages keep the words of TinkerPop where a client may look for them.

mod collection;
mod convert;
mod date;
pub mod text;

pub(crate) use collection::{Entries, distinct};

use mangrove_graph::{Error, PropertyOwner, Result, Value};
use mangrove_plan::function::{Function, TextFunction};
use mangrove_plan::physical::ComputedOperand;

use super::map::MapOperator;
use crate::environment::Environment;
use crate::meter::Meter;
use crate::rows::Rows;

/// A function with its arguments.
pub struct Call {
    function: Function,
    operands: Vec<ComputedOperand>,
    /// What they are in this run.
    arguments: Vec<Argument>,
    /// The texts of a batch's objects, where the function shows them.
    texts: text::Texts,
}

enum Argument {
    Constant(Value),
    Computed(usize),
}

/// An argument as it is for one row.
#[derive(Clone, Copy)]
enum Given<'a> {
    /// Written in the traversal.
    Constant(&'a Value),
    /// What a traversal gave; `None`: nothing.
    Result(Option<&'a Value>),
}

impl<'a> Given<'a> {
    /// The value, if there is one.
    fn value(self) -> Option<&'a Value> {
        match self {
            Given::Constant(value) => Some(value),
            Given::Result(value) => value,
        }
    }
}

impl Call {
    /// With these arguments.
    pub fn new(function: Function, operands: Vec<ComputedOperand>) -> Self {
        Call { function, operands, arguments: Vec::new(), texts: text::Texts::default() }
    }

    fn given<'a>(&'a self, rows: &'a Rows, row: usize) -> Vec<Given<'a>> {
        let of = |argument: &'a Argument| match argument {
            Argument::Constant(value) => Given::Constant(value),
            Argument::Computed(column) => Given::Result(rows.computed_value(*column, row)),
        };
        self.arguments.iter().map(of).collect()
    }
}

impl MapOperator for Call {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let resolve = |operand: &ComputedOperand| {
            Ok(match operand {
                ComputedOperand::Operand(operand) => Argument::Constant(environment.resolve(operand)?),
                ComputedOperand::Computed(column) => Argument::Computed(*column),
            })
        };
        self.arguments = self.operands.iter().map(resolve).collect::<Result<_>>()?;
        Ok(())
    }

    fn prepare(&mut self, rows: &Rows, environment: &Environment, meter: &mut Meter<'_>) -> Result<()> {
        if self.shows_values() {
            self.texts = text::Texts::of_column(&rows.objects, environment, meter)?;
        }
        Ok(())
    }

    fn rest(&mut self) {
        self.texts = text::Texts::default();
    }

    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        environment: &Environment,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let object = rows.object(row);
        let given = self.given(rows, row);
        // A collection may hold so many elements that they are read for it alone.
        let of_collection;
        let texts = match self.shows_values() && text::is_collection(&object) {
            true => {
                of_collection = text::Texts::of([&object].into_iter(), environment, meter)?;
                &of_collection
            }
            false => &self.texts,
        };
        Ok(Some(match self.function {
            Function::Text { function, local } => text::apply(function, local, &object, &given, texts, meter)?,
            Function::Concat => text::concat(&object, &given, meter)?,
            Function::Reverse => text::reverse(&object, meter)?,
            Function::Collection(function) => collection::apply(function, &object, &given, texts, meter)?,
            Function::Index { map } => collection::index(&object, map, meter)?,
            Function::AsBool => convert::to_bool(&object)?,
            Function::AsNumber(to) => convert::to_number(&object, to)?,
            Function::AsDate => date::to_date(&object)?,
            Function::DateAdd(unit) => date::add(&object, unit, &given)?,
            Function::DateDiff => date::difference(&object, &given)?,
            Function::Element => element(&object, environment)?,
        }))
    }
}

impl Call {
    /// Whether it makes texts of values, for which ids may have to be read.
    fn shows_values(&self) -> bool {
        use mangrove_plan::function::CollectionFunction;
        matches!(
            self.function,
            Function::Text { function: TextFunction::AsString, .. } | Function::Collection(CollectionFunction::Conjoin)
        )
    }
}

/// What a property belongs to.
fn element(object: &Value, environment: &Environment) -> Result<Value> {
    match object {
        Value::VertexProperty(property) => Ok(Value::Vertex(property.vertex)),
        Value::Property(property) => match property.owner {
            PropertyOwner::Edge(edge) => Ok(Value::Edge(edge)),
            PropertyOwner::VertexProperty(vertex, key, ordinal) => {
                let mut rows = Vec::new();
                environment.view.vertex_properties(&[vertex], Some(&[key]), &mut rows)?;
                let found = rows.into_iter().find(|row| row.ordinal == ordinal);
                let row = found.ok_or_else(|| {
                    Error::evaluation("element() finds no vertex property: it was dropped since its property was read")
                })?;
                Ok(Value::VertexProperty(std::sync::Arc::new(mangrove_graph::VertexPropertyValue {
                    vertex,
                    key,
                    ordinal,
                    value: row.value,
                    meta: row.meta,
                })))
            }
        },
        other => Err(Error::evaluation(format!("element() needs a property; here is a {}", other.type_name()))),
    }
}

/// The longest text, and the most members of a collection, that a function makes.
const TEXT_BYTES_MAX: usize = 1 << 26;
const MEMBERS_MAX: usize = 1 << 22;

/// About what a member of a list costs, and one of a set or a map with its entry in the table of those known.
const MEMBER_BYTES: usize = size_of::<Value>();
const KEYED_BYTES: usize = 3 * MEMBER_BYTES;

/// Fails for a text that would be too long.
fn check_text(step: &str, bytes: usize) -> Result<()> {
    check_size(step, bytes, TEXT_BYTES_MAX, "bytes of text")
}

/// Fails for a collection that would be too large.
fn check_members(step: &str, members: usize) -> Result<()> {
    check_size(step, members, MEMBERS_MAX, "members")
}

fn check_size(step: &str, size: usize, most: usize, of: &str) -> Result<()> {
    if size <= most {
        return Ok(());
    }
    Err(Error::new(
        mangrove_graph::ErrorKind::MemoryLimit,
        format!("{step}() would make {size} {of}, more than {most}; work on smaller parts"),
    ))
}

/// The name of a value's class, as TinkerPop's messages have it.
fn class(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "Boolean",
        Value::I8(_) => "Byte",
        Value::I16(_) => "Short",
        Value::I32(_) => "Integer",
        Value::I64(_) => "Long",
        Value::BigInt(_) => "BigInteger",
        Value::F32(_) => "Float",
        Value::F64(_) => "Double",
        Value::Decimal(_) => "BigDecimal",
        Value::Char(_) => "Character",
        Value::String(_) => "String",
        Value::DateTime(_) => "OffsetDateTime",
        Value::List(_) => "ArrayList",
        Value::Set(_) => "LinkedHashSet",
        Value::Map(_) => "LinkedHashMap",
        other => other.type_name(),
    }
}

#[cfg(test)]
mod tests;
