//! The sink of `mangrove load --url`: sends batches to a running server.
//!
//! Each batch is one call of a service and one transaction of the server. The service finds the elements that exist,
//! retries after a conflict, and answers what it did with each row. The internal ids that the loader gets from this
//! sink are only numbers of vertices in the order in which they were met; [`ServerSink`] keeps the user id of each.

use std::collections::HashMap;
use std::time::Duration;

use mangrove::rows::{EdgeRows, RowArguments, VertexRows, columns_of, find_to_arguments, names, sizes_of_rows, split};
use mangrove::{Error, Result, UserId, Value, VertexId};
use mangrove_graph::TabletId;
use mangrove_load::{EdgeBatch, EdgeIdentity, LoadSink, Upserted, VertexBatch, VertexIdentity};

use crate::client::{Ask, Client};
use crate::commands::manage::{ServiceCall, field};

/// Bytes of a request, about. Several rows fit, and the smallest limit of servers is larger.
const REQUEST_BYTES: usize = 1 << 20;

/// Sends batches to a server.
pub struct ServerSink<'c> {
    client: &'c mut Client,
    /// The user ids of the vertices that were met, by the number that the loader has.
    vertices: Vec<UserId>,
    /// Edges without id or key that rows were matched with, by their ends. A second row is not matched with them.
    met: HashMap<(VertexId, VertexId), Vec<UserId>>,
}

impl<'c> ServerSink<'c> {
    /// A sink into the graph of the client's traversal source.
    pub fn new(client: &'c mut Client) -> Self {
        ServerSink { client, vertices: Vec::new(), met: HashMap::new() }
    }

    /// Calls a service, which answers with one row.
    fn call(&mut self, service: &str, arguments: RowArguments) -> Result<Value> {
        let call =
            arguments.into_iter().fold(ServiceCall::new(service), |call, (name, value)| call.with(name, Some(value)));
        let (script, parameters) = call.script();
        // 0 stands for the longest time that the server allows.
        let ask = Ask { timeout: Some(Duration::ZERO), ..Ask::new(script, parameters) };
        let row = self.client.ask(&ask)?.next();
        row.unwrap_or_else(|| Err(unexpected(service)))
    }

    /// Calls an upsert service. Returns what it did with each row, and the id of the element.
    fn upsert(&mut self, service: &str, arguments: RowArguments, len: usize) -> Result<Vec<Upserted<UserId>>> {
        let row = self.call(service, arguments)?;
        let (Some(Value::List(ids)), Some(Value::List(words))) = (field(&row, "ids"), field(&row, "outcomes")) else {
            return Err(unexpected(service));
        };
        if ids.len() != len || words.len() != len {
            return Err(unexpected(service));
        }
        let outcome = |(id, word): (&Value, &Value)| outcome(id, word).ok_or_else(|| unexpected(service));
        ids.iter().zip(words.iter()).map(outcome).collect()
    }

    /// Numbers a vertex.
    fn number(&mut self, id: UserId) -> VertexId {
        self.vertices.push(id);
        VertexId::new(TabletId(0), self.vertices.len() as u64 - 1)
    }

    fn id(&self, vertex: VertexId) -> UserId {
        self.vertices[vertex.slot() as usize].clone()
    }
}

fn unexpected(service: &str) -> Error {
    Error::bug(format!("the server's answer to {service} is not what this program expects; are both of one version?"))
}

fn outcome(id: &Value, word: &Value) -> Option<Upserted<UserId>> {
    let Value::String(word) = word else { return None };
    if let Some(reason) = word.strip_prefix("refused: ") {
        return Some(Upserted::Refused(reason.to_owned()));
    }
    let id = UserId::from_value(id)?;
    match word.as_str() {
        "created" => Some(Upserted::Created(id)),
        "updated" => Some(Upserted::Updated(id)),
        "unchanged" => Some(Upserted::Unchanged(id)),
        _ => None,
    }
}

/// The same outcome with another element.
fn with<T, U>(outcome: Upserted<T>, element: impl FnOnce(T) -> U) -> Upserted<U> {
    match outcome {
        Upserted::Created(old) => Upserted::Created(element(old)),
        Upserted::Updated(old) => Upserted::Updated(element(old)),
        Upserted::Unchanged(old) => Upserted::Unchanged(element(old)),
        Upserted::Refused(reason) => Upserted::Refused(reason),
    }
}

fn only_upserts() -> Error {
    Error::bug("a load into a running server is an upsert")
}

impl LoadSink for ServerSink<'_> {
    fn vertices(&mut self, _: &str, _: VertexBatch) -> Result<Vec<VertexId>> {
        Err(only_upserts())
    }

    fn edges(&mut self, _: &str, _: EdgeBatch) -> Result<()> {
        Err(only_upserts())
    }

    fn upsert_vertices(
        &mut self,
        label: &str,
        batch: VertexBatch,
        identity: &VertexIdentity,
    ) -> Result<Vec<Upserted<VertexId>>> {
        let mut outcomes = Vec::with_capacity(batch.len);
        for rows in split(batch.row_sizes(), REQUEST_BYTES) {
            let part = VertexRows { label: label.to_owned(), batch: batch.rows(&rows), identity: identity.clone() };
            for outcome in self.upsert("mangrove.upsert.vertices", part.to_arguments(), rows.len())? {
                outcomes.push(with(outcome, |id| self.number(id)));
            }
        }
        Ok(outcomes)
    }

    fn upsert_edges(&mut self, label: &str, batch: EdgeBatch, identity: &EdgeIdentity) -> Result<Vec<Upserted<()>>> {
        let sizes = sizes_of_rows(batch.ends.len(), batch.ids.as_deref(), &batch.columns);
        let mut outcomes = Vec::with_capacity(batch.ends.len());
        for rows in split(sizes.into_iter().map(|size| size + 32), REQUEST_BYTES) {
            let ends = &batch.ends[rows.clone()];
            let known = *identity == EdgeIdentity::Ends;
            let met = |ends| self.met.get(ends).into_iter().flatten().cloned();
            let part = EdgeRows {
                label: label.to_owned(),
                ends: ends.iter().map(|(source, target)| (self.id(*source), self.id(*target))).collect(),
                ids: batch.ids.as_ref().map(|ids| ids[rows.clone()].to_vec()),
                columns: columns_of(&batch.columns, &rows),
                identity: identity.clone(),
                met: if known { ends.iter().flat_map(met).collect() } else { Vec::new() },
            };
            let written = self.upsert("mangrove.upsert.edges", part.to_arguments(), rows.len())?;
            for (ends, outcome) in ends.iter().zip(written) {
                outcomes.push(with(outcome, |id| {
                    if known {
                        self.met.entry(*ends).or_default().push(id);
                    }
                }));
            }
        }
        Ok(outcomes)
    }

    fn find(&mut self, identity: &VertexIdentity, id: &UserId) -> Result<Option<VertexId>> {
        let service = "mangrove.upsert.find";
        let row = self.call(service, find_to_arguments(identity, id))?;
        match field(&row, names::ID) {
            Some(Value::Null) => Ok(None),
            Some(id) => {
                let id = UserId::from_value(id).ok_or_else(|| unexpected(service))?;
                Ok(Some(self.number(id)))
            }
            None => Err(unexpected(service)),
        }
    }
}
