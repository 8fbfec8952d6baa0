//! Reading GraphBinary: bytes into arguments and values.
//!
//! One decoder serves both, since an argument may be any value and a list may hold either. It compares every read with
//! the bytes that are left, and every length with the bytes that so many of the smallest elements need (WIRE-3). It
//! checks the nesting limit at every level (WIRE-2).

mod metrics;
mod structure;

use std::sync::Arc;

use bigdecimal::BigDecimal;
use mangrove_graph::{
    DateTime, Detached, DetachedVertexProperty, Duration, Error, ErrorKind, PathValue, Result, Value,
};
use num_bigint::BigInt;
use smol_str::SmolStr;
use uuid::Uuid;

use super::code;
use crate::bytecode::{Argument, Bytecode, Instruction, Predicate};
use crate::calendar::Civil;
use crate::collections;
use crate::limits::{BIG_INTEGER_BYTES_MAX, DECIMAL_SCALE_MAX, NESTING_MAX, NUMBER_LENGTH_MAX};
use crate::parameters::Parameters;
use crate::script::names::enum_token;
use crate::terms::{self, Bindings, ElementReading};

/// The bytes of the smallest fully-qualified value: a type code, and the byte that says it is null.
pub(super) const VALUE_SIZE_MIN: usize = 2;
/// The elements that a collection at the outermost level allocates memory for before it has read them.
const CAPACITY_MAX: usize = 1024;

/// Reads a slice from its beginning to its end.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    elements: ElementReading,
    /// True if the bytes are a request or a part of one.
    is_request: bool,
    bindings: Bindings,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], elements: ElementReading) -> Self {
        Reader {
            bytes,
            at: 0,
            depth: 0,
            elements,
            is_request: elements == ElementReading::References,
            bindings: Bindings::in_place(),
        }
    }

    /// Keeps bindings as parameters, and collects their values for [`Reader::take_bindings`].
    pub(super) fn collecting_bindings(mut self) -> Self {
        self.bindings = Bindings::collected();
        self
    }

    pub(super) fn take_bindings(&mut self) -> Parameters {
        self.bindings.take()
    }

    /// Fails if bytes are left.
    pub(super) fn finish(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            rest => Err(self.malformed(&format!("{rest} bytes follow the end of the message"))),
        }
    }

    /// A fully-qualified value; an argument that is no value is an error.
    pub(super) fn value(&mut self) -> Result<Value> {
        let at = self.at;
        match self.argument()? {
            Argument::Value(value) => Ok(value),
            _ => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("byte {at} of the message: a plain value is expected here, not a part of a traversal"),
            )),
        }
    }

    /// The elements that a collection allocates memory for before it has read them. Each level halves the number:
    /// nested collections that all claim to be long take no more memory together than two of them (WIRE-3).
    pub(super) fn room_for(&self, length: usize) -> usize {
        length.min(CAPACITY_MAX.checked_shr(self.depth as u32).unwrap_or(0))
    }

    /// Reads one level deeper (WIRE-2).
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == NESTING_MAX {
            return Err(self.malformed(&format!("values nest deeper than {NESTING_MAX} levels, the limit")));
        }
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    /// A fully-qualified value of any type.
    pub(super) fn argument(&mut self) -> Result<Argument> {
        let type_code = self.byte()?;
        if type_code == code::CUSTOM {
            // The name of a type follows that only its client knows, or nothing at all.
            return Err(Error::unsupported(
                "a value of a type that GraphBinary does not have (type 0x00) cannot be read: a driver sends that where it has no type \
                 for a value, as Python's for a Decimal (write gremlin_python.statics.bigdecimal) or a date (write a datetime)",
            ));
        }
        let absent = self.byte()?;
        match (type_code, absent) {
            (_, code::ABSENT) => return Ok(Value::Null.into()),
            (code::NULL, _) => return Err(self.malformed("a null with a value")),
            (_, code::PRESENT) => {}
            _ => {
                return Err(self.malformed(&format!("{absent:#04x} where 0 (a value follows) or 1 (null) is expected")));
            }
        }
        self.nested(|reader| reader.present(type_code))
    }

    /// The value after its type code and null byte.
    fn present(&mut self, type_code: u8) -> Result<Argument> {
        if let Some(value) = self.scalar(type_code)? {
            return Ok(value.into());
        }
        if let Some(name) = code::enum_name(type_code) {
            return self.enum_value(name);
        }
        match type_code {
            code::LIST => Ok(collections::list_argument(self.list()?)),
            code::SET => match collections::literals(self.list()?) {
                Ok(values) => Ok(collections::set(values).into()),
                Err(items) => Ok(Argument::List(items)),
            },
            code::MAP => Ok(collections::map_argument(self.map()?)),
            code::BULK_SET => self.bulk_set().map(Argument::Value),
            code::VERTEX => self.vertex(),
            code::EDGE => self.edge(),
            code::VERTEX_PROPERTY => {
                let property = self.vertex_property()?;
                Ok(terms::detached(Detached::VertexProperty(property)))
            }
            code::PROPERTY => {
                let (key, value) = self.property()?;
                Ok(terms::detached(Detached::Property { key, value }))
            }
            code::PATH => self.path().map(Argument::Value),
            code::TREE => Ok(Value::Tree(Arc::new(self.tree()?)).into()),
            code::GRAPH => Ok(Value::Graph(Arc::new(self.graph()?)).into()),
            code::TRAVERSER => self.traverser(),
            // An answer is no argument: it would be a value that no step knows.
            code::TRAVERSAL_METRICS if !self.is_request => {
                Ok(Value::TraversalMetrics(Arc::new(self.traversal_metrics()?)).into())
            }
            code::BYTECODE => self.bytecode_argument(),
            code::P | code::TEXT_P => self.predicate().map(Argument::Predicate),
            code::BINDING => self.binding(),
            code::CLASS => Ok(terms::class_argument(&self.string()?)),
            code::TRAVERSAL_STRATEGY => self.strategy(),
            code::LAMBDA => Err(terms::no_lambda()),
            other => Err(self.unread(other)),
        }
    }

    /// The value of a type without parts; `None` if the type is another.
    fn scalar(&mut self, type_code: u8) -> Result<Option<Value>> {
        Ok(Some(match type_code {
            code::INT => Value::I32(self.int()?),
            code::LONG => Value::I64(self.long()?),
            code::SHORT => Value::I16(i16::from_be_bytes(self.array()?)),
            code::BYTE => Value::I8(i8::from_be_bytes(self.array()?)),
            code::BOOLEAN => match self.byte()? {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                other => return Err(self.malformed(&format!("{other:#04x} is no boolean"))),
            },
            code::FLOAT => Value::F32(f32::from_be_bytes(self.array()?)),
            code::DOUBLE => Value::F64(f64::from_be_bytes(self.array()?)),
            code::STRING => Value::String(self.string()?),
            code::CHAR => Value::Char(self.character()?),
            code::UUID => Value::Uuid(Uuid::from_bytes(self.array()?)),
            code::BIG_INTEGER => Value::BigInt(Arc::new(self.big_integer()?)),
            code::BIG_DECIMAL => self.big_decimal()?,
            code::BYTE_BUFFER => {
                let length = self.length(1)?;
                Value::Bytes(self.take(length)?.into())
            }
            code::DATE | code::TIMESTAMP => Value::DateTime(DateTime::from_epoch_millis(self.long()?)),
            code::DURATION => {
                let (seconds, nanos) = self.seconds_and_nanos()?;
                Value::Duration(Duration { seconds, nanos })
            }
            code::INSTANT => {
                let (seconds, nanos) = self.seconds_and_nanos()?;
                Value::DateTime(DateTime { seconds, nanos, offset_seconds: 0 })
            }
            code::OFFSET_DATE_TIME | code::ZONED_DATE_TIME => self.date_time()?,
            _ => return Ok(None),
        }))
    }

    fn seconds_and_nanos(&mut self) -> Result<(i64, u32)> {
        let seconds = self.long()?;
        let nanos = self.int()?;
        match u32::try_from(nanos) {
            Ok(nanos) if nanos < 1_000_000_000 => Ok((seconds, nanos)),
            _ => Err(self.malformed(&format!("{nanos} nanoseconds do not lie within a second"))),
        }
    }

    fn date_time(&mut self) -> Result<Value> {
        let civil = Civil {
            year: self.int()?,
            month: i8::from_be_bytes(self.array()?),
            day: i8::from_be_bytes(self.array()?),
            nanos_of_day: self.long()?,
            offset_seconds: self.int()?,
        };
        civil.to_moment().map(Value::DateTime).ok_or_else(|| self.malformed("a date and time that does not exist"))
    }

    fn character(&mut self) -> Result<char> {
        let first = self.byte()?;
        let length = match first {
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 1,
        };
        self.at -= 1;
        let bytes = self.take(length)?;
        let character = std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next());
        character.ok_or_else(|| self.malformed("a character that is no UTF-8"))
    }

    fn big_integer(&mut self) -> Result<BigInt> {
        let length = self.length(1)?;
        if length > BIG_INTEGER_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a big integer has {length} bytes; at most {BIG_INTEGER_BYTES_MAX} are read, about \
                 {NUMBER_LENGTH_MAX} digits"
            )));
        }
        Ok(BigInt::from_signed_bytes_be(self.take(length)?))
    }

    fn big_decimal(&mut self) -> Result<Value> {
        let scale = i64::from(self.int()?);
        let digits = self.big_integer()?;
        if scale.abs() > DECIMAL_SCALE_MAX {
            return Err(Error::invalid(format!(
                "a decimal has the scale {scale}; it must lie within ±{DECIMAL_SCALE_MAX}"
            )));
        }
        Ok(Value::Decimal(Arc::new(BigDecimal::new(digits, scale))))
    }

    fn enum_value(&mut self, enum_name: &str) -> Result<Argument> {
        // The name is itself a fully-qualified string.
        match self.value()? {
            Value::String(name) => {
                enum_token(enum_name, &name).ok_or_else(|| Error::unsupported(format!("`{enum_name}` has no `{name}`")))
            }
            other => Err(self.malformed(&format!("a {} in place of the name of `{enum_name}`", other.type_name()))),
        }
    }

    fn list(&mut self) -> Result<Vec<Argument>> {
        let length = self.length(VALUE_SIZE_MIN)?;
        let mut items = Vec::with_capacity(self.room_for(length));
        for _ in 0..length {
            items.push(self.argument()?);
        }
        Ok(items)
    }

    pub(super) fn map(&mut self) -> Result<Vec<(Argument, Argument)>> {
        let length = self.length(2 * VALUE_SIZE_MIN)?;
        let mut entries = Vec::with_capacity(self.room_for(length));
        for _ in 0..length {
            entries.push((self.argument()?, self.argument()?));
        }
        Ok(entries)
    }

    fn bulk_set(&mut self) -> Result<Value> {
        let length = self.length(VALUE_SIZE_MIN + 8)?;
        let mut entries = Vec::with_capacity(self.room_for(length));
        for _ in 0..length {
            entries.push((self.detached_value()?, self.bulk()?));
        }
        Ok(Value::BulkSet(Arc::new(entries)))
    }

    /// The results of a response, each with its bulk: a list of values or traversers, or null for none.
    pub(super) fn results(&mut self) -> Result<Vec<(u64, Value)>> {
        let traverser = [code::TRAVERSER, code::PRESENT];
        match [self.byte()?, self.byte()?] {
            [_, code::ABSENT] => return Ok(Vec::new()),
            [code::LIST, code::PRESENT] => {}
            [other, _] => return Err(self.malformed(&format!("type {other:#04x} in place of a list of results"))),
        }
        let length = self.length(VALUE_SIZE_MIN)?;
        let mut results = Vec::with_capacity(self.room_for(length));
        for _ in 0..length {
            let bulk = match self.bytes[self.at..].starts_with(&traverser) {
                true => {
                    self.at += traverser.len();
                    self.bulk()?
                }
                false => 1,
            };
            results.push((bulk, self.value()?));
        }
        Ok(results)
    }

    fn bulk(&mut self) -> Result<u64> {
        self.count("a bulk")
    }

    /// A long that is not negative.
    fn count(&mut self, what: &str) -> Result<u64> {
        let count = self.long()?;
        u64::try_from(count).map_err(|_| self.malformed(&format!("{what} of {count}")))
    }

    /// A value inside a path, a multiset or a property, which hold values and no arguments in both ways of reading.
    pub(super) fn detached_value(&mut self) -> Result<Value> {
        let elements = std::mem::replace(&mut self.elements, ElementReading::Detached);
        let value = self.value();
        self.elements = elements;
        value
    }

    fn vertex(&mut self) -> Result<Argument> {
        let (id, label) = (self.detached_value()?, self.string()?);
        let properties = self.properties(|property| match property {
            Detached::VertexProperty(property) => Some(property),
            _ => None,
        })?;
        Ok(match self.elements {
            ElementReading::References => Argument::Vertex(id),
            ElementReading::Detached => terms::detached(Detached::Vertex { id, label, properties }),
        })
    }

    fn edge(&mut self) -> Result<Argument> {
        let (id, label) = (self.detached_value()?, self.string()?);
        let target = (self.detached_value()?, self.string()?);
        let source = (self.detached_value()?, self.string()?);
        self.parent()?;
        let properties = self.properties(terms::plain_property)?;
        Ok(match self.elements {
            ElementReading::References => Argument::Edge(id),
            ElementReading::Detached => terms::detached(Detached::Edge { id, label, source, target, properties }),
        })
    }

    fn vertex_property(&mut self) -> Result<DetachedVertexProperty> {
        let (id, key, value) = (self.detached_value()?, self.string()?, self.detached_value()?);
        self.parent()?;
        Ok(DetachedVertexProperty { id, key, value, meta: self.properties(terms::plain_property)? })
    }

    fn property(&mut self) -> Result<(SmolStr, Value)> {
        let (key, value) = (self.string()?, self.detached_value()?);
        self.parent()?;
        Ok((key, value))
    }

    /// The owner of a property or edge. Clients leave it out, and nothing here needs it.
    pub(super) fn parent(&mut self) -> Result<()> {
        self.detached_value().map(drop)
    }

    /// A null or a list of properties of one kind.
    pub(super) fn properties<T>(&mut self, kind: impl Fn(Detached) -> Option<T>) -> Result<Vec<T>> {
        let items = match self.detached_value()? {
            Value::Null => return Ok(Vec::new()),
            Value::List(items) => items,
            other => return Err(self.malformed(&format!("a {} in place of properties", other.type_name()))),
        };
        self.properties_of(&items, kind)
    }

    /// The items as properties of a kind, if all of them are.
    pub(super) fn properties_of<T>(&self, items: &[Value], kind: impl Fn(Detached) -> Option<T>) -> Result<Vec<T>> {
        let property = |item: &Value| match item {
            Value::Detached(property) => kind(property.as_ref().clone()),
            _ => None,
        };
        let properties: Option<Vec<T>> = items.iter().map(property).collect();
        properties.ok_or_else(|| self.malformed("something else among the properties of an element"))
    }

    fn path(&mut self) -> Result<Value> {
        let (labels, objects) = (self.detached_value()?, self.detached_value()?);
        let labels = match &labels {
            Value::List(labels) => labels.iter().map(terms::label_set).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        match (labels, objects) {
            (Some(labels), Value::List(objects)) if labels.len() == objects.len() => {
                Ok(Value::Path(Arc::new(PathValue { objects: objects.as_ref().clone(), labels })))
            }
            _ => Err(self.malformed("a path whose labels do not match its objects")),
        }
    }

    /// A traverser among the values of a request stands for its object or, with a bulk, for a multiset.
    fn traverser(&mut self) -> Result<Argument> {
        match self.bulk()? {
            1 => self.argument(),
            bulk => {
                let object = self.detached_value()?;
                Ok(Value::BulkSet(Arc::new(vec![(object, bulk)])).into())
            }
        }
    }

    fn bytecode_argument(&mut self) -> Result<Argument> {
        let mut bytecode = self.bytecode()?;
        if !terms::is_cardinality_value(&bytecode) {
            return Ok(Argument::Traversal(bytecode));
        }
        let arguments = bytecode.source.pop().map(|instruction| instruction.arguments).unwrap_or_default();
        terms::cardinality_value(arguments).map_err(|message| self.malformed(message))
    }

    /// A bytecode: its steps come before its source instructions.
    fn bytecode(&mut self) -> Result<Bytecode> {
        let steps = self.instructions()?;
        let source = self.instructions()?;
        Ok(Bytecode { source, steps })
    }

    fn instructions(&mut self) -> Result<Vec<Instruction>> {
        // The smallest instruction: an empty name and no arguments.
        let length = self.length(8)?;
        let mut instructions = Vec::with_capacity(self.room_for(length));
        for _ in 0..length {
            let name = self.string()?;
            instructions.push(Instruction::new(name, self.list()?));
        }
        Ok(instructions)
    }

    fn predicate(&mut self) -> Result<Predicate> {
        let name = self.string()?;
        let arguments = self.list()?;
        Predicate::from_name(&name, arguments)
    }

    fn binding(&mut self) -> Result<Argument> {
        let name = self.string()?;
        let elements = std::mem::replace(&mut self.elements, ElementReading::Detached);
        let bound = self.argument();
        self.elements = elements;
        Ok(self.bindings.resolve(name, bound?, elements == ElementReading::References))
    }

    fn strategy(&mut self) -> Result<Argument> {
        let class = self.string()?;
        let mut configuration = Vec::new();
        for (key, value) in self.map()? {
            match key {
                Argument::Value(Value::String(key)) => configuration.push((key, value)),
                _ => return Err(self.malformed("an option of a strategy whose name is no string")),
            }
        }
        Ok(Argument::Strategy(terms::simple_name(&class).into(), configuration))
    }

    /// A string without type code and null byte.
    pub(super) fn string(&mut self) -> Result<SmolStr> {
        let length = self.length(1)?;
        let bytes = self.take(length)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(SmolStr::new(text)),
            Err(_) => Err(self.malformed("a string that is no UTF-8")),
        }
    }

    /// A length whose elements, of at least `element_size` bytes each, fit into the bytes that are left (WIRE-3).
    pub(super) fn length(&mut self, element_size: usize) -> Result<usize> {
        let length = self.int()?;
        match usize::try_from(length) {
            Ok(length) if length <= self.remaining() / element_size => Ok(length),
            _ => Err(self.malformed(&format!("a length of {length} with {} bytes left", self.remaining()))),
        }
    }

    pub(super) fn int(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn long(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        match self.bytes[self.at..].get(..length) {
            Some(taken) => {
                self.at += length;
                Ok(taken)
            }
            None => Err(self.malformed(&format!("{length} bytes are needed and {} are left", self.remaining()))),
        }
    }

    fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn unread(&self, type_code: u8) -> Error {
        match code::unread_name(type_code) {
            Some(name) => Error::unsupported(format!(
                "{name} (GraphBinary type {type_code:#04x}) is no value this database reads"
            )),
            None => self.malformed(&format!("{type_code:#04x} is no type of GraphBinary 1")),
        }
    }

    pub(super) fn malformed(&self, message: &str) -> Error {
        Error::new(ErrorKind::Syntax, format!("byte {} of the message: {message}", self.at))
    }
}
