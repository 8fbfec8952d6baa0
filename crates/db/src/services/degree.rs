//! The service `tinker.degree.centrality`: the degree of a vertex, in the caller's transaction.

use mangrove_graph::{Direction, Error, LabelFilter, Result, Value};
use mangrove_steps::ServiceCall;

use super::registry::Arguments;

const NAME: &str = "tinker.degree.centrality";

pub(super) fn run(call: &ServiceCall<'_>, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let Value::Vertex(vertex) = call.object else {
        return Err(Error::evaluation(format!(
            "{NAME} is called for vertices, and met a {}: write it after V(), out() or the like",
            call.object.type_name()
        )));
    };
    let direction = arguments.get("direction").map_or(Ok(Direction::In), |given| direction(arguments, given))?;
    let mut degrees = Vec::with_capacity(1);
    call.view.degrees(std::slice::from_ref(vertex), direction, &LabelFilter::Any, &mut degrees)?;
    degrees.into_iter().map(|degree| i64::try_from(degree).map(Value::I64).map_err(|_| too_many())).collect()
}

fn too_many() -> Error {
    Error::evaluation("long overflow: a degree needs more than 63 bits")
}

fn direction(arguments: &Arguments<'_>, given: &Value) -> Result<Direction> {
    match given {
        Value::Direction(direction) => Ok(*direction),
        Value::String(text) if text == "OUT" => Ok(Direction::Out),
        Value::String(text) if text == "IN" => Ok(Direction::In),
        Value::String(text) if text == "BOTH" => Ok(Direction::Both),
        other => Err(arguments.misfit("direction", "OUT, IN or BOTH", other)),
    }
}
