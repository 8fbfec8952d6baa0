//! `/gremlin/status`: lists the running queries and cancels one, as graph-notebook's `%gremlin_status` does.
//!
//! The interface is Neptune's: `GET` with parameters, or `POST` with a form. Without parameters it lists the queries
//! that the caller may know of. With `queryId` it shows one of them, and a `POST` with `cancelQuery=true` kills it. The
//! services `mangrove.queries` and `mangrove.kill` do the same in more detail. `includeWaiting` has no effect: a
//! request that waits for a worker is no query yet.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use mangrove_graph::{Error, ErrorKind, Purpose};
use serde_json::{Value as Json, json};

use crate::access::audit;
use crate::access::caller::Caller;
use crate::engine::running::{self, RunningQuery};
use crate::http::query::{self, HttpResult, bad, problem};
use crate::shared::Shared;
use crate::status::Failure;

/// The parameters of a request.
#[derive(Debug, Default)]
struct StatusQuery {
    id: Option<u64>,
    cancels: bool,
}

/// Answers a request.
pub async fn serve(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let answer = answer(&shared, &caller, request).await;
    answer.map_or_else(|(status, failure)| problem(status, &failure), |body| axum::Json(body).into_response())
}

async fn answer(shared: &Shared, caller: &Caller, request: Request) -> HttpResult<Json> {
    let is_post = request.method() == Method::POST;
    let caller = &if is_post { caller.clone() } else { caller.reading() };
    let asked = match is_post {
        true => {
            let mut held = shared.budget.account(Purpose::Messages);
            let form = query::body(request, &shared.limits.get(), &mut held).await?;
            asked(std::str::from_utf8(&form).map_err(|_| bad(Failure::malformed("the form is no UTF-8")))?)?
        }
        false => asked(request.uri().query().unwrap_or_default())?,
    };
    let running = shared.engine.running(caller);
    let Some(id) = asked.id else {
        return match asked.cancels {
            true => Err(bad(Failure::invalid("cancelQuery needs queryId: which query to end"))),
            false => Ok(json!({
                "acceptedQueryCount": running.len(),
                "runningQueryCount": running.len(),
                "queries": running.iter().map(shown).collect::<Vec<_>>(),
            })),
        };
    };
    if asked.cancels {
        shared.engine.kill(id, caller).map_err(not_ended)?;
        return Ok(json!({ "status": "200 OK", "payload": true }));
    }
    let found = running.iter().find(|query| query.id == id).map(shown);
    found.ok_or_else(|| unknown(running::unknown(id)))
}

fn not_ended(error: Error) -> (StatusCode, Failure) {
    match error.kind() {
        ErrorKind::Forbidden => (StatusCode::FORBIDDEN, error.into()),
        _ => unknown(error),
    }
}

fn unknown(error: Error) -> (StatusCode, Failure) {
    (StatusCode::NOT_FOUND, error.into())
}

fn asked(form: &str) -> HttpResult<StatusQuery> {
    let mut asked = StatusQuery::default();
    for (name, value) in query::pairs(form).map_err(bad)? {
        match name.as_str() {
            "queryId" => {
                let id = value.parse().map_err(|_| {
                    bad(Failure::invalid(format!("queryId is the number of a query, which `{value}` is not")))
                })?;
                asked.id = Some(id);
            }
            "cancelQuery" => asked.cancels = value.eq_ignore_ascii_case("true"),
            "includeWaiting" => {}
            _ => {
                let message =
                    format!("there is no parameter `{name}` here: queryId, cancelQuery and includeWaiting are");
                return Err(bad(Failure::invalid(message)));
            }
        }
    }
    Ok(asked)
}

fn shown(query: &RunningQuery) -> Json {
    json!({
        "queryId": query.id.to_string(),
        "queryString": audit::shortened(&query.bytecode.to_string()),
        "queryEvalStats": {
            "waited": 0,
            "elapsed": u64::try_from(query.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            "cancelled": query.is_cancelled(),
        },
    })
}
