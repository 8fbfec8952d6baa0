//! Reading GraphSON: JSON into arguments and values.
//!
//! One reader serves every dialect: it follows a type if the value has one. Collections inside elements and paths may
//! be plain (GraphSON 2) or typed (GraphSON 3).

use std::sync::Arc;

use mangrove_graph::{Detached, DetachedVertexProperty, Error, GraphValue, PathValue, Result, Tree, Value};
use smol_str::SmolStr;

use super::json::{Json, JsonKind, text};
use super::reader_scalars as scalars;
use crate::bytecode::{Argument, Bytecode, Instruction, Predicate};
use crate::collections;
use crate::limits::NESTING_MAX;
use crate::parameters::Parameters;
use crate::script::names::enum_token;
use crate::terms::{self, Bindings, ElementReading};

/// Reads one message.
pub(super) struct Reader {
    depth: usize,
    elements: ElementReading,
    bindings: Bindings,
}

impl Reader {
    pub(super) fn new(elements: ElementReading) -> Self {
        Reader { depth: 0, elements, bindings: Bindings::in_place() }
    }

    /// Keeps bindings as parameters, and collects their values for [`Reader::take_bindings`].
    pub(super) fn collecting_bindings(mut self) -> Self {
        self.bindings = Bindings::collected();
        self
    }

    pub(super) fn take_bindings(&mut self) -> Parameters {
        self.bindings.take()
    }

    /// A value; an argument that is no value is an error.
    pub(super) fn value(&mut self, json: &Json<'_>) -> Result<Value> {
        match self.argument(json)? {
            Argument::Value(value) => Ok(value),
            _ => Err(Error::invalid(format!(
                "byte {} of the message: a plain value is expected here, not a part of a traversal",
                json.at
            ))),
        }
    }

    /// A value of any type.
    pub(super) fn argument(&mut self, json: &Json<'_>) -> Result<Argument> {
        if self.depth == NESTING_MAX {
            return Err(json.malformed(&format!("values nest deeper than {NESTING_MAX} levels, the limit")));
        }
        self.depth += 1;
        let argument = self.any(json)?;
        self.depth -= 1;
        Ok(argument)
    }

    fn any(&mut self, json: &Json<'_>) -> Result<Argument> {
        match &json.kind {
            JsonKind::Null => Ok(Value::Null.into()),
            JsonKind::Bool(value) => Ok(Value::Bool(*value).into()),
            JsonKind::Number(text) => scalars::untyped_number(json, text).map(Argument::Value),
            JsonKind::String(text) => Ok(Value::string(text.as_ref()).into()),
            JsonKind::Array(items) => Ok(collections::list_argument(self.arguments(items)?)),
            JsonKind::Object(members) => match json.member("@type").map(|name| (name, name.text())) {
                None => {
                    let mut entries = Vec::with_capacity(members.len());
                    for (key, member) in members {
                        entries.push((Value::string(key.as_ref()).into(), self.argument(member)?));
                    }
                    Ok(collections::map_argument(entries))
                }
                Some((_, Some(type_name))) => {
                    // Clients leave out the value of a type without content.
                    let absent = Json { at: json.at, kind: JsonKind::Null };
                    self.typed(json, type_name, json.member("@value").unwrap_or(&absent))
                }
                Some((name, None)) => Err(name.malformed("the `@type` of a value is a string")),
            },
        }
    }

    fn arguments(&mut self, items: &[Json<'_>]) -> Result<Vec<Argument>> {
        items.iter().map(|item| self.argument(item)).collect()
    }

    fn typed(&mut self, json: &Json<'_>, type_name: &str, content: &Json<'_>) -> Result<Argument> {
        if let Some(value) = scalars::scalar(type_name, content)? {
            return Ok(value.into());
        }
        if type_name == "tinker:graph" {
            return Ok(Value::Graph(Arc::new(self.graph(content)?)).into());
        }
        let Some(name) = type_name.strip_prefix("g:") else { return Err(unread(json, type_name)) };
        match name {
            "List" => Ok(collections::list_argument(self.arguments(array(content)?)?)),
            "Set" => match collections::literals(self.arguments(array(content)?)?) {
                Ok(values) => Ok(collections::set(values).into()),
                Err(items) => Ok(Argument::List(items)),
            },
            "Map" => self.map(content),
            "BulkSet" => self.bulk_set(content),
            "Vertex" => self.vertex(content),
            "Edge" => self.edge(content),
            "VertexProperty" => {
                let property = self.vertex_property(content)?;
                Ok(terms::detached(Detached::VertexProperty(property)))
            }
            "Property" => {
                let (key, value) = self.property(content)?;
                Ok(terms::detached(Detached::Property { key, value }))
            }
            "Path" => self.path(content).map(Argument::Value),
            "Tree" => Ok(Value::Tree(Arc::new(self.tree(content)?)).into()),
            "Traverser" => self.traverser(content),
            "Bytecode" => self.bytecode_argument(content),
            "P" | "TextP" => self.predicate(content).map(Argument::Predicate),
            "Binding" => self.binding(content),
            "Class" => Ok(terms::class_argument(text(content)?)),
            "Lambda" => Err(terms::no_lambda()),
            "Barrier" | "Cardinality" | "Column" | "Direction" | "Operator" | "Order" | "Pick" | "Pop" | "Scope"
            | "T" | "Merge" | "DT" | "GType" => {
                let token = text(content)?;
                enum_token(name, token).ok_or_else(|| Error::unsupported(format!("`{name}` has no `{token}`")))
            }
            name if name.ends_with("Strategy") => self.strategy(name, content),
            _ => Err(unread(json, type_name)),
        }
    }

    /// Keys and values in turn.
    fn map(&mut self, content: &Json<'_>) -> Result<Argument> {
        let (pairs, rest) = array(content)?.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(content.malformed("a map whose last key has no value"));
        }
        let mut entries = Vec::with_capacity(pairs.len());
        for [key, value] in pairs {
            entries.push((self.argument(key)?, self.argument(value)?));
        }
        Ok(collections::map_argument(entries))
    }

    /// Values and how many times each occurs, in turn.
    fn bulk_set(&mut self, content: &Json<'_>) -> Result<Argument> {
        let (pairs, rest) = array(content)?.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(content.malformed("a multiset whose last value has no bulk"));
        }
        let mut entries = Vec::with_capacity(pairs.len());
        for [value, bulk] in pairs {
            entries.push((self.detached_value(value)?, self.bulk(bulk)?));
        }
        Ok(Value::BulkSet(Arc::new(entries)).into())
    }

    fn bulk(&mut self, json: &Json<'_>) -> Result<u64> {
        let bulk = mangrove_graph::numeric::integer(&self.detached_value(json)?);
        let bulk = bulk.and_then(|bulk| u64::try_from(bulk).ok());
        bulk.ok_or_else(|| json.malformed("a bulk is a whole number that is not negative"))
    }

    /// A value inside a path, a multiset or a property, which hold values and no arguments in both ways of reading.
    fn detached_value(&mut self, json: &Json<'_>) -> Result<Value> {
        let elements = std::mem::replace(&mut self.elements, ElementReading::Detached);
        let value = self.value(json);
        self.elements = elements;
        value
    }

    fn vertex(&mut self, content: &Json<'_>) -> Result<Argument> {
        let id = self.detached_value(required(content, "id")?)?;
        if self.elements == ElementReading::References {
            return Ok(Argument::Vertex(id));
        }
        let mut properties = Vec::new();
        for (_, values) in members(content, "properties")? {
            for value in array(values)? {
                match self.detached_value(value)? {
                    Value::Detached(property) => match property.as_ref() {
                        Detached::VertexProperty(property) => properties.push(property.clone()),
                        _ => return Err(value.malformed("something else among the properties of a vertex")),
                    },
                    _ => return Err(value.malformed("something else among the properties of a vertex")),
                }
            }
        }
        Ok(terms::detached(Detached::Vertex { id, label: label(content, "label", "vertex")?, properties }))
    }

    fn edge(&mut self, content: &Json<'_>) -> Result<Argument> {
        let id = self.detached_value(required(content, "id")?)?;
        if self.elements == ElementReading::References {
            return Ok(Argument::Edge(id));
        }
        let mut end = |vertex: &str, vertex_label: &str| {
            Ok::<_, Error>((self.detached_value(required(content, vertex)?)?, label(content, vertex_label, "vertex")?))
        };
        let (source, target) = (end("outV", "outVLabel")?, end("inV", "inVLabel")?);
        let mut properties = Vec::new();
        for (_, property) in members(content, "properties")? {
            match self.detached_value(property)? {
                Value::Detached(plain) => properties.extend(terms::plain_property(plain.as_ref().clone())),
                _ => return Err(property.malformed("something else among the properties of an edge")),
            }
        }
        Ok(terms::detached(Detached::Edge { id, label: label(content, "label", "edge")?, source, target, properties }))
    }

    fn vertex_property(&mut self, content: &Json<'_>) -> Result<DetachedVertexProperty> {
        let mut meta = Vec::new();
        for (key, value) in members(content, "properties")? {
            meta.push((SmolStr::new(key), self.detached_value(value)?));
        }
        Ok(DetachedVertexProperty {
            id: self.detached_value(required(content, "id")?)?,
            key: label(content, "label", "vertexProperty")?,
            value: self.detached_value(required(content, "value")?)?,
            meta,
        })
    }

    fn property(&mut self, content: &Json<'_>) -> Result<(SmolStr, Value)> {
        Ok((label(content, "key", "")?, self.detached_value(required(content, "value")?)?))
    }

    fn path(&mut self, content: &Json<'_>) -> Result<Value> {
        let labels = self.detached_value(required(content, "labels")?)?;
        let objects = self.detached_value(required(content, "objects")?)?;
        let labels = match &labels {
            Value::List(labels) => labels.iter().map(terms::label_set).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        match (labels, objects) {
            (Some(labels), Value::List(objects)) if labels.len() == objects.len() => {
                Ok(Value::Path(Arc::new(PathValue { objects: objects.as_ref().clone(), labels })))
            }
            _ => Err(content.malformed("a path whose labels do not match its objects")),
        }
    }

    /// Objects of a key and the tree below it.
    fn tree(&mut self, content: &Json<'_>) -> Result<Tree> {
        let mut branches = Vec::new();
        for branch in array(content)? {
            let key = self.detached_value(required(branch, "key")?)?;
            match self.detached_value(required(branch, "value")?)? {
                Value::Tree(below) => branches.push((key, Arc::unwrap_or_clone(below))),
                other => return Err(branch.malformed(&format!("a {} in place of a tree", other.type_name()))),
            }
        }
        Ok(Tree { branches })
    }

    fn graph(&mut self, content: &Json<'_>) -> Result<GraphValue> {
        let mut elements = |name: &str, fits: fn(&Detached) -> bool| {
            let members = array(required(content, name)?)?.iter();
            members
                .map(|json| match self.detached_value(json)? {
                    Value::Detached(element) if fits(&element) => Ok(Value::Detached(element)),
                    other => Err(json.malformed(&format!("a {} among the elements of a graph", other.type_name()))),
                })
                .collect::<Result<Vec<_>>>()
        };
        Ok(GraphValue {
            vertices: elements("vertices", |element| matches!(element, Detached::Vertex { .. }))?,
            edges: elements("edges", |element| matches!(element, Detached::Edge { .. }))?,
        })
    }

    /// A traverser among the values of a request stands for its object or, with a bulk, for a multiset.
    fn traverser(&mut self, content: &Json<'_>) -> Result<Argument> {
        let (bulk, object) = (self.bulk(required(content, "bulk")?)?, required(content, "value")?);
        match bulk {
            1 => self.argument(object),
            bulk => Ok(Value::BulkSet(Arc::new(vec![(self.detached_value(object)?, bulk)])).into()),
        }
    }

    fn bytecode_argument(&mut self, content: &Json<'_>) -> Result<Argument> {
        let bytecode = Bytecode {
            source: self.instructions(content.member("source"))?,
            steps: self.instructions(content.member("step"))?,
        };
        if !terms::is_cardinality_value(&bytecode) {
            return Ok(Argument::Traversal(bytecode));
        }
        let arguments = bytecode.source.into_iter().flat_map(|instruction| instruction.arguments).collect();
        terms::cardinality_value(arguments).map_err(|message| content.malformed(message))
    }

    /// Instructions: arrays of a name and the arguments.
    fn instructions(&mut self, json: Option<&Json<'_>>) -> Result<Vec<Instruction>> {
        let Some(json) = json else { return Ok(Vec::new()) };
        let mut instructions = Vec::new();
        for instruction in array(json)? {
            let (name, arguments) = array(instruction)?
                .split_first()
                .ok_or_else(|| instruction.malformed("an instruction without a name"))?;
            instructions.push(Instruction::new(text(name)?, self.arguments(arguments)?));
        }
        Ok(instructions)
    }

    /// A predicate's operand may be several in an array: the members of a conjunction, the ends of a range.
    fn predicate(&mut self, content: &Json<'_>) -> Result<Predicate> {
        let name = text(required(content, "predicate")?)?;
        let operand = content.member("value").map(|value| self.argument(value)).transpose()?;
        let operand = operand.unwrap_or(Argument::Value(Value::Null));
        let several = matches!(name, "and" | "or" | "between" | "inside" | "outside");
        let arguments = match operand {
            Argument::List(items) if several => items,
            Argument::Value(Value::List(items)) if several => items.iter().cloned().map(Argument::Value).collect(),
            single => vec![single],
        };
        Predicate::from_name(name, arguments)
    }

    fn binding(&mut self, content: &Json<'_>) -> Result<Argument> {
        let name = SmolStr::new(text(required(content, "key")?)?);
        let elements = std::mem::replace(&mut self.elements, ElementReading::Detached);
        let bound = self.argument(required(content, "value")?);
        self.elements = elements;
        Ok(self.bindings.resolve(name, bound?, elements == ElementReading::References))
    }

    /// The options of a strategy are in `conf` beside its class (3.8), or by themselves (3.7).
    fn strategy(&mut self, name: &str, content: &Json<'_>) -> Result<Argument> {
        let class = content.member("fqcn").and_then(Json::text).map_or(name, terms::simple_name);
        let options = content.member("conf").unwrap_or(content);
        let mut configuration = Vec::new();
        match &options.kind {
            JsonKind::Null => {}
            JsonKind::Object(members) if options.member("@type").is_none() => {
                for (key, value) in members.iter().filter(|(key, _)| key != "fqcn") {
                    configuration.push((SmolStr::new(key), self.argument(value)?));
                }
            }
            // A typed map.
            _ => match self.argument(options)? {
                Argument::Map(entries) => configuration = named(options, entries)?,
                Argument::Value(Value::Map(entries)) => {
                    let entries = entries.iter().map(|(k, v)| (k.clone().into(), v.clone().into()));
                    configuration = named(options, entries.collect())?;
                }
                _ => return Err(options.malformed("the options of a strategy are a map")),
            },
        }
        Ok(Argument::Strategy(class.into(), configuration))
    }
}

/// Options by their names.
fn named(at: &Json<'_>, entries: Vec<(Argument, Argument)>) -> Result<Vec<(SmolStr, Argument)>> {
    let option = |(key, value)| match key {
        Argument::Value(Value::String(key)) => Ok((key, value)),
        _ => Err(at.malformed("an option of a strategy whose name is no string")),
    };
    entries.into_iter().map(option).collect()
}

/// The member that has to be there.
fn required<'j, 'a>(content: &'j Json<'a>, name: &str) -> Result<&'j Json<'a>> {
    content.member(name).ok_or_else(|| match content.kind {
        JsonKind::Object(_) => content.malformed(&format!("the member `{name}` is missing")),
        _ => content.malformed(&format!("{} in place of an object with `{name}`", content.kind_name())),
    })
}

/// A label or key; `default` if a reference leaves it out.
fn label(content: &Json<'_>, name: &str, default: &str) -> Result<SmolStr> {
    match content.member(name) {
        None => Ok(default.into()),
        // Some clients wrap even strings.
        Some(json) => text(json.member("@value").unwrap_or(json)).map(SmolStr::new),
    }
}

/// The members of the object under this name; none if it is not there or null.
fn members<'j, 'a>(content: &'j Json<'a>, name: &str) -> Result<&'j [(std::borrow::Cow<'a, str>, Json<'a>)]> {
    match content.member(name) {
        None => Ok(&[]),
        Some(json) => match &json.kind {
            JsonKind::Object(members) => Ok(members),
            JsonKind::Null => Ok(&[]),
            _ => Err(json.malformed(&format!("{} in place of properties", json.kind_name()))),
        },
    }
}

/// The items of an array, be it plain or a typed list or set.
pub(super) fn array<'j, 'a>(json: &'j Json<'a>) -> Result<&'j [Json<'a>]> {
    match &json.kind {
        JsonKind::Array(items) => Ok(items),
        JsonKind::Object(_) => match (json.member("@type").and_then(Json::text), json.member("@value")) {
            (Some("g:List" | "g:Set"), Some(Json { kind: JsonKind::Array(items), .. })) => Ok(items),
            _ => Err(json.malformed("an object in place of an array")),
        },
        _ => Err(json.malformed(&format!("{} in place of an array", json.kind_name()))),
    }
}

fn unread(json: &Json<'_>, type_name: &str) -> Error {
    const KNOWN: [&str; 15] = [
        "g:Metrics",
        "g:TraversalMetrics",
        "gx:InetAddress",
        "gx:LocalDate",
        "gx:LocalDateTime",
        "gx:LocalTime",
        "gx:MonthDay",
        "gx:OffsetTime",
        "gx:Period",
        "gx:Year",
        "gx:YearMonth",
        "gx:ZoneOffset",
        "g:Graph",
        "g:TraversalExplanation",
        "g:TraversalSideEffects",
    ];
    match KNOWN.contains(&type_name) {
        true => Error::unsupported(format!("the GraphSON type `{type_name}` is no value this database reads")),
        false => json.malformed(&format!("`{}` is no type of GraphSON 2 or 3", type_name.escape_debug())),
    }
}
