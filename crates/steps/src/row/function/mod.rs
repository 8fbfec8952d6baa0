//! Functions of one object: text, collections, conversions and dates.
//!
//! [`FunctionCall`] resolves the operands that are the same for all rows once, and hands each row's object with its
//! arguments to the function. An argument that is a traversal stands in a computed column. If the traversal has no
//! result, the column holds `None`, and each function defines the meaning of that. Messages keep the words of TinkerPop
//! where a client may look for them.

mod collection;
mod convert;
mod date;
pub(crate) mod text;

use mangrove_graph::{Error, PropertyOwner, Result, Value};
use mangrove_plan::function::{Function, TextFunction};
use mangrove_plan::physical::ComputedOperand;

use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::row::map::MapOperator;
use crate::rows::Rows;

/// A function with its arguments.
pub(crate) struct FunctionCall {
    function: Function,
    operands: Vec<ComputedOperand>,
    /// The arguments with their values of this run.
    arguments: Vec<FunctionArgument>,
    /// The texts of the objects of a batch, if the function makes texts.
    texts: text::Texts,
}

enum FunctionArgument {
    Constant(Value),
    Computed(usize),
}

/// The argument for one row.
#[derive(Clone, Copy)]
enum ArgumentValue<'a> {
    /// Written in the traversal.
    Constant(&'a Value),
    /// The result of a traversal; `None` if it has none.
    Result(Option<&'a Value>),
}

impl<'a> ArgumentValue<'a> {
    /// Returns the value, if there is one.
    fn value(self) -> Option<&'a Value> {
        match self {
            ArgumentValue::Constant(value) => Some(value),
            ArgumentValue::Result(value) => value,
        }
    }
}

impl FunctionCall {
    pub fn new(function: Function, operands: Vec<ComputedOperand>) -> Self {
        FunctionCall { function, operands, arguments: Vec::new(), texts: text::Texts::default() }
    }

    fn given<'a>(&'a self, rows: &'a Rows, row: usize) -> Vec<ArgumentValue<'a>> {
        let of = |argument: &'a FunctionArgument| match argument {
            FunctionArgument::Constant(value) => ArgumentValue::Constant(value),
            FunctionArgument::Computed(column) => ArgumentValue::Result(rows.computed_value(*column, row)),
        };
        self.arguments.iter().map(of).collect()
    }
}

impl MapOperator for FunctionCall {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let resolve = |operand: &ComputedOperand| {
            Ok(match operand {
                ComputedOperand::Operand(operand) => FunctionArgument::Constant(context.resolve(operand)?),
                ComputedOperand::Computed(column) => FunctionArgument::Computed(*column),
            })
        };
        self.arguments = self.operands.iter().map(resolve).collect::<Result<_>>()?;
        Ok(())
    }

    fn prepare(&mut self, rows: &Rows, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<()> {
        if self.shows_values() {
            self.texts = text::Texts::of_column(&rows.objects, context, meter)?;
        }
        Ok(())
    }

    fn recycle(&mut self) {
        self.texts = text::Texts::default();
    }

    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>> {
        let object = rows.object(row);
        let given = self.given(rows, row);
        // A collection may hold many elements, so their ids are read for this row alone.
        let of_collection;
        let texts = match self.shows_values() && text::is_collection(&object) {
            true => {
                of_collection = text::Texts::of([&object].into_iter(), context, meter)?;
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
            Function::Element => element(&object, context)?,
        }))
    }
}

impl FunctionCall {
    /// Returns true if the function makes texts of values, which may need the ids of elements.
    fn shows_values(&self) -> bool {
        use mangrove_plan::function::CollectionFunction;
        matches!(
            self.function,
            Function::Text { function: TextFunction::AsString, .. } | Function::Collection(CollectionFunction::Conjoin)
        )
    }
}

/// Returns the element that a property belongs to.
fn element(object: &Value, context: &ExecutionContext) -> Result<Value> {
    match object {
        Value::VertexProperty(property) => Ok(Value::Vertex(property.vertex)),
        Value::Property(property) => match property.owner {
            PropertyOwner::Edge(edge) => Ok(Value::Edge(edge)),
            PropertyOwner::VertexProperty(vertex, key, ordinal) => {
                let mut rows = Vec::new();
                context.view.vertex_properties(&[vertex], Some(&[key]), &mut rows)?;
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
        other => Err(Error::evaluation(format!("element() needs a property; here is {}", a_type(other)))),
    }
}

/// The maximum size that a function makes: bytes of a text, or members of a collection.
const TEXT_BYTES_MAX: usize = 1 << 26;
const MEMBERS_MAX: usize = 1 << 22;

/// Fails if a text would be too long.
fn check_text(step: &str, bytes: usize) -> Result<()> {
    check_size(step, bytes, TEXT_BYTES_MAX, "bytes of text")
}

/// Fails if a collection would be too large.
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

/// Returns the name of a value's class as TinkerPop's messages have it.
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
