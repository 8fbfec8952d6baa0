//! Steps that create and remove elements: `addV`, `addE`, `drop`.

use mangrove_graph::{Token, UserId, Value, VertexId};
use mangrove_gremlin::Argument;
use smol_str::SmolStr;

use super::step::Step;
use super::{Interpreter, Outcome, Stream, Traverser, first, unsupported, wrong};

impl Interpreter<'_> {
    pub(crate) fn add_vertex(&mut self, step: &Step<'_>, t: Traverser) -> Outcome<Stream> {
        let label = match (self.token_property(Token::Label, step), step.arguments) {
            (Some(label), _) | (None, [label]) => self.label_argument(label, &t)?,
            (None, []) => "vertex".into(),
            _ => return unsupported("addV() with several arguments"),
        };
        let id = self.id_property(step, &t)?;
        let vertex = Value::Vertex(self.graph.add_vertex(id, &label)?);
        self.finish_adding(step, &t, vertex)
    }

    pub(crate) fn add_edge(&mut self, step: &Step<'_>, t: Traverser) -> Outcome<Stream> {
        let label = self.label_argument(step.argument(0)?, &t)?;
        let (source, target) = (self.edge_end("from", step.from, &t)?, self.edge_end("to", step.to, &t)?);
        let id = self.id_property(step, &t)?;
        let edge = Value::Edge(self.graph.add_edge(id, &label, source, target)?);
        self.finish_adding(step, &t, edge)
    }

    fn label_argument(&mut self, argument: &Argument, t: &Traverser) -> Outcome<SmolStr> {
        match self.evaluated(argument, t)? {
            Some(Value::String(label)) => Ok(label),
            _ => wrong("a label must be a string"),
        }
    }

    /// A literal, or the first result of a child; `None` if the child has no result.
    pub(crate) fn evaluated(&mut self, argument: &Argument, t: &Traverser) -> Outcome<Option<Value>> {
        match argument {
            Argument::Traversal(child) => Ok(first(self.local_child(child, t)?)),
            argument => Ok(Some(super::step::value(argument)?.clone())),
        }
    }

    /// The vertex that `from()` or `to()` names: by label, child or id. Without an argument it is the current object.
    fn edge_end(&mut self, which: &str, argument: Option<&Argument>, t: &Traverser) -> Outcome<VertexId> {
        let found = match argument {
            None if t.is_unborn => None,
            None => Some(t.value.clone()),
            Some(Argument::Value(Value::String(label))) => self.scope(label, t),
            Some(Argument::Traversal(child)) => first(self.local_child(child, t)?),
            Some(Argument::Vertex(id) | Argument::Value(id)) => {
                UserId::from_value(id).and_then(|id| self.graph.find_vertex(&id)).map(Value::Vertex)
            }
            Some(other) => return unsupported(format!("{which}({other:?})")),
        };
        match found {
            Some(Value::Vertex(v)) => Ok(v),
            Some(other) => wrong(format!("{which}() of addE() must give a vertex, not a {}", other.type_name())),
            None => wrong(format!("{which}() of addE() gives no vertex")),
        }
    }

    /// The value of `property(token, …)` right after the step.
    fn token_property<'a>(&self, token: Token, step: &Step<'a>) -> Option<&'a Argument> {
        step.properties.iter().find_map(|arguments| match arguments {
            [Argument::Value(Value::Token(known)), given] if *known == token => Some(given),
            _ => None,
        })
    }

    /// The id of `property(T.id, …)` right after the step.
    fn id_property(&mut self, step: &Step<'_>, t: &Traverser) -> Outcome<Option<UserId>> {
        let Some(id) = self.token_property(Token::Id, step) else { return Ok(None) };
        match self.evaluated(id, t)?.and_then(|id| UserId::from_value(&id)) {
            Some(id) => Ok(Some(id)),
            None => wrong("an id must be an integer, a string or a UUID"),
        }
    }

    /// Writes the properties of a new element. The traverser goes on with it if the strategies of the source show it.
    fn finish_adding(&mut self, step: &Step<'_>, t: &Traverser, element: Value) -> Outcome<Stream> {
        let made = t.moved_to(element);
        self.write_new(&step.properties, t, &made)?;
        Ok(if self.sees_new(&made.value)? { vec![made] } else { Vec::new() })
    }

    pub(crate) fn drop_elements(&mut self, input: Stream) -> Outcome<Stream> {
        for t in &input {
            self.graph.remove(&t.value)?;
        }
        Ok(Vec::new())
    }
}
