//! Requests: the messages of drivers, one for each WebSocket message or HTTP body.
//!
//! A request has an id, an operation, the processor that performs it, and arguments by name. The arguments are kept as
//! the reader found them. Accessors give the known ones their types, and say precisely what is wrong with an argument
//! of another type.

use std::sync::Arc;

use mangrove_graph::{Detached, Error, ErrorKind, Result, Value, numeric};
use smol_str::SmolStr;
use uuid::Uuid;

use crate::bytecode::{Argument, Bytecode};
use crate::parameters::Parameters;

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The id, which the response repeats.
    pub id: Uuid,
    /// The operation: `eval`, `bytecode`, `close`, `authentication`.
    pub op: SmolStr,
    /// The processor that performs the operation: empty, `traversal` or `session`.
    pub processor: SmolStr,
    /// The arguments by name, in the order of the message.
    pub arguments: Vec<(SmolStr, Argument)>,
    /// Values of bindings inside the bytecode; [`Request::bindings`] has them too.
    pub bytecode_bindings: Parameters,
}

/// The traversal that a request asks to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gremlin<'a> {
    /// A script.
    Text(&'a str),
    /// A traversal.
    Bytecode(&'a Bytecode),
}

/// How much of an element a response contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MaterializeProperties {
    /// Elements with their properties.
    #[default]
    All,
    /// Ids and labels only.
    Tokens,
}

impl Request {
    /// The argument of a name. An argument that is null counts as missing.
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        let found = self.arguments.iter().find(|(key, _)| key == name).map(|(_, argument)| argument);
        found.filter(|argument| !matches!(argument, Argument::Value(Value::Null)))
    }

    /// `gremlin`: the traversal to run.
    pub fn gremlin(&self) -> Result<Gremlin<'_>> {
        match self.argument("gremlin") {
            Some(Argument::Value(Value::String(text))) => Ok(Gremlin::Text(text)),
            Some(Argument::Traversal(bytecode)) => Ok(Gremlin::Bytecode(bytecode)),
            Some(_) => Err(wrong("gremlin", "a script or bytecode")),
            None => Err(Error::invalid("the request has no `gremlin` argument: there is nothing to run")),
        }
    }

    /// `aliases`: the traversal source of the server that each name in the traversal stands for.
    pub fn aliases(&self) -> Result<Vec<(SmolStr, SmolStr)>> {
        let entries = match self.argument("aliases") {
            None => return Ok(Vec::new()),
            Some(Argument::Value(Value::Map(entries))) => entries,
            Some(_) => return Err(wrong("aliases", "a map of strings")),
        };
        let alias = |(name, target): &(Value, Value)| match (name, target) {
            (Value::String(name), Value::String(target)) => Ok((name.clone(), target.clone())),
            _ => Err(wrong("aliases", "a map of strings")),
        };
        entries.iter().map(alias).collect()
    }

    /// `bindings`: the values of parameters, together with the values bound inside the bytecode.
    pub fn bindings(&self) -> Result<Parameters> {
        let mut bindings = self.bytecode_bindings.clone();
        let mut insert = |name: &Value, value: Value| match name {
            Value::String(name) => {
                bindings.insert(name.clone(), value);
                Ok(())
            }
            _ => Err(wrong("bindings", "a map whose keys are strings")),
        };
        match self.argument("bindings") {
            None => {}
            Some(Argument::Value(Value::Map(entries))) => {
                entries.iter().try_for_each(|(name, value)| insert(name, value.clone()))?;
            }
            Some(Argument::Map(entries)) => {
                for (name, value) in entries {
                    insert(&plain_value(name)?, plain_value(value)?)?;
                }
            }
            Some(_) => return Err(wrong("bindings", "a map")),
        }
        Ok(bindings)
    }

    /// `session`: the session the request belongs to, as text (drivers send a string or a UUID).
    pub fn session(&self) -> Result<Option<SmolStr>> {
        match self.argument("session") {
            None => Ok(None),
            Some(Argument::Value(Value::String(session))) => Ok(Some(session.clone())),
            Some(Argument::Value(Value::Uuid(session))) => Ok(Some(session.to_string().into())),
            Some(_) => Err(wrong("session", "a string or a UUID")),
        }
    }

    /// `manageTransaction`: true if each request of a session is a transaction of its own.
    pub fn manages_transaction(&self) -> Result<bool> {
        match self.argument("manageTransaction") {
            None => Ok(false),
            Some(Argument::Value(Value::Bool(manages))) => Ok(*manages),
            Some(_) => Err(wrong("manageTransaction", "true or false")),
        }
    }

    /// `language`: the language of the script.
    pub fn language(&self) -> Result<Option<&str>> {
        self.text("language")
    }

    /// `accepts`: the media type of the response; `None`: that of the request.
    pub fn accepts(&self) -> Result<Option<&str>> {
        self.text("accepts")
    }

    /// `userAgent`: the name of the driver.
    pub fn user_agent(&self) -> Result<Option<&str>> {
        self.text("userAgent")
    }

    /// `evaluationTimeout` (in older drivers `scriptEvaluationTimeout`), in milliseconds. Zero asks for the longest
    /// time that the server allows.
    pub fn evaluation_timeout_ms(&self) -> Result<Option<u64>> {
        match self.count("evaluationTimeout")? {
            None => self.count("scriptEvaluationTimeout"),
            timeout => Ok(timeout),
        }
    }

    /// `batchSize`: the number of results in a partial response.
    pub fn batch_size(&self) -> Result<Option<u64>> {
        self.count("batchSize")
    }

    /// `materializeProperties`. Without it, elements come with their properties.
    pub fn materialize_properties(&self) -> Result<MaterializeProperties> {
        match self.text("materializeProperties")? {
            None | Some("all") => Ok(MaterializeProperties::All),
            Some("tokens") => Ok(MaterializeProperties::Tokens),
            Some(_) => Err(wrong("materializeProperties", "`all` or `tokens`")),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.argument(name) {
            None => Ok(None),
            Some(Argument::Value(Value::String(text))) => Ok(Some(text)),
            Some(_) => Err(wrong(name, "a string")),
        }
    }

    fn count(&self, name: &str) -> Result<Option<u64>> {
        let expected = "a whole number that is not negative";
        match self.argument(name) {
            None => Ok(None),
            Some(Argument::Value(value)) => {
                let number = numeric::integer(value).and_then(|n| u64::try_from(n).ok());
                number.map(Some).ok_or_else(|| wrong(name, expected))
            }
            Some(_) => Err(wrong(name, expected)),
        }
    }
}

/// The value of a binding. Elements become detached references.
fn plain_value(argument: &Argument) -> Result<Value> {
    let element = |element| Ok(Value::Detached(Arc::new(element)));
    let label = SmolStr::default();
    match argument {
        Argument::Value(value) => Ok(value.clone()),
        Argument::Vertex(id) => element(Detached::Vertex { id: id.clone(), label, properties: Vec::new() }),
        Argument::Edge(id) => {
            let unknown = (Value::Null, SmolStr::default());
            let (source, target) = (unknown.clone(), unknown);
            element(Detached::Edge { id: id.clone(), label, source, target, properties: Vec::new() })
        }
        Argument::List(items) => Ok(Value::list(items.iter().map(plain_value).collect::<Result<_>>()?)),
        Argument::Map(entries) => {
            Ok(Value::map(entries.iter().map(|(k, v)| Ok((plain_value(k)?, plain_value(v)?))).collect::<Result<_>>()?))
        }
        _ => Err(wrong("bindings", "a map of values; traversals, predicates and enums belong in the script")),
    }
}

fn wrong(name: &str, expected: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("the request's `{name}` must be {expected}"))
}
