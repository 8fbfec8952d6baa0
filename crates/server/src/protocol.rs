//! What a message asks for.
//!
//! | op | processor | asks for |
//! |---|---|---|
//! | `eval` | empty, `session` | a script |
//! | `bytecode` | `traversal`, `session` | a traversal, or `tx commit` and `tx rollback` in a session |
//! | `close` | `session` | the end of a session |
//!
//! Other combinations, and messages that do not decode, are malformed (498). Arguments of the wrong type,
//! or without which the operation makes no sense, are invalid (499).

use std::time::Duration;

use mangrove_graph::Error;
use mangrove_gremlin::graphbinary::{self, MaterializeProperties, Request, decode_request};
use smol_str::SmolStr;
use uuid::Uuid;

use crate::config::Limits;
use crate::engine::Materialize;
use crate::job::{Call, Work};
use crate::program::{Evaluation, Gremlin};
use crate::status::{Failure, Status};
use crate::wire::{self, Form};

/// Languages whose scripts are read by the gremlin-lang grammar. Drivers name Groovy by default; what of it
/// is no gremlin-lang is refused where it is met.
const LANGUAGES: [&str; 2] = ["gremlin-lang", "gremlin-groovy"];

/// The request in a message, or what is wrong with it and its id as far as that can be read.
pub fn decode(message: &[u8], limits: &Limits) -> Result<Call, (Option<Uuid>, Failure)> {
    let request = decode_request(message)
        .map_err(|error| (wire::request_id(message), Failure { status: Status::MALFORMED_REQUEST, error }))?;
    call(&request, limits).map_err(|failure| (Some(request.id), failure))
}

fn call(request: &Request, limits: &Limits) -> Result<Call, Failure> {
    let (form, closes) = match (request.op.as_str(), request.processor.as_str()) {
        ("eval", "" | "session") => (Form::Values, false),
        ("bytecode", "traversal" | "session") => (Form::Traversers, false),
        ("close", "session") => (Form::Values, true),
        ("authentication", _) => {
            return Err(Failure::malformed("this server asks for no authentication; send requests without it"));
        }
        (op, processor) => {
            return Err(Failure::malformed(format!(
                "there is no operation `{op}` of the processor `{processor}`; this server has eval (processor empty \
                 or session), bytecode (traversal or session) and close (session)"
            )));
        }
    };
    let work = if closes { Work::Close } else { Work::Evaluate(evaluation(request, limits)?) };
    let batch_size = batch_size(request, limits)?;
    Ok(Call { request: request.id, session: session(request)?, form, batch_size, work })
}

/// The session, which the processor of this name must have and no other may.
fn session(request: &Request) -> Result<Option<SmolStr>, Failure> {
    if request.processor != "session" {
        return Ok(None);
    }
    match request.session().map_err(invalid)? {
        Some(name) if !name.is_empty() => Ok(Some(name)),
        _ => Err(Failure::invalid("the processor `session` needs the argument `session`: the session's name")),
    }
}

fn evaluation(request: &Request, limits: &Limits) -> Result<Evaluation, Failure> {
    if let Some(language) = request.language().map_err(invalid)?
        && !LANGUAGES.contains(&language)
    {
        return Err(Failure::invalid(format!(
            "there is no language `{language}` on this server; it reads gremlin-lang"
        )));
    }
    let gremlin = match (request.gremlin().map_err(invalid)?, request.op.as_str()) {
        (graphbinary::Gremlin::Text(text), "eval") => Gremlin::Script(text.to_owned()),
        (graphbinary::Gremlin::Bytecode(bytecode), "bytecode") => Gremlin::Bytecode(bytecode.clone()),
        (graphbinary::Gremlin::Text(_), _) => {
            return Err(Failure::invalid("the argument `gremlin` is a script; the operation for scripts is eval"));
        }
        (graphbinary::Gremlin::Bytecode(_), _) => {
            return Err(Failure::invalid("the argument `gremlin` is bytecode; the operation for it is bytecode"));
        }
    };
    let timeout = match request.evaluation_timeout_ms().map_err(invalid)? {
        None => limits.evaluation_timeout,
        Some(0) => None,
        Some(millis) => Some(Duration::from_millis(millis)),
    };
    let materialize = match request.materialize_properties().map_err(invalid)? {
        MaterializeProperties::All => Materialize::All,
        MaterializeProperties::Tokens => Materialize::Tokens,
    };
    let aliases = request.aliases().map_err(invalid)?;
    let parameters = request.bindings().map_err(invalid)?;
    Ok(Evaluation { gremlin, aliases, parameters, timeout, materialize })
}

fn batch_size(request: &Request, limits: &Limits) -> Result<usize, Failure> {
    match request.batch_size().map_err(invalid)? {
        None => Ok(limits.batch_size),
        Some(0) => Err(Failure::invalid("the request's `batchSize` is 0: no result would ever be sent; use 1 or more")),
        Some(size) => Ok(usize::try_from(size).unwrap_or(usize::MAX).min(limits.batch_size_max)),
    }
}

/// What the accessors of a request refuse is an invalid argument, whatever it would be in a query.
fn invalid(error: Error) -> Failure {
    Failure { status: Status::INVALID_ARGUMENTS, error }
}
