//! The few requests to etcd that an election needs, by its JSON gateway (version 3 of its API; etcd 3.4 and later).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mangrove::{Error, ErrorKind, Result};
use serde_json::{Value, json};

/// The beginning of the address of a cluster.
const SCHEME: &str = "etcd://";

/// The longest wait for an answer of one member.
const PATIENCE: Duration = Duration::from_secs(1);

/// The members of an etcd cluster.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<String>,
    /// The member that has answered last.
    current: AtomicUsize,
    client: reqwest::Client,
}

/// A lease, by its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseId(String);

/// The outcome of a claim of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    /// The key has the value, for as long as the lease lives.
    Won,
    /// The key has this value.
    Held(String),
}

impl Etcd {
    /// The cluster that an address names: `etcd://HOST:PORT`, or several members with commas between them.
    pub fn of_address(address: &str) -> Result<Self> {
        let wrong = || Error::invalid(format!("`{address}` names no etcd; write {SCHEME}HOST:PORT,HOST:PORT"));
        let members: Vec<String> =
            address.strip_prefix(SCHEME).ok_or_else(wrong)?.split(',').map(|host| format!("http://{host}")).collect();
        if members.iter().any(|member| reqwest::Url::parse(member).is_err()) {
            return Err(wrong());
        }
        // Without it, the client would panic. A second call finds the first one's, which is as good.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().timeout(PATIENCE).no_proxy().build();
        let client = client.map_err(|error| Error::new(ErrorKind::Io, format!("no client for {address}: {error}")))?;
        Ok(Etcd { members, current: AtomicUsize::new(0), client })
    }

    /// A new lease that lives for so many seconds after it was last kept.
    pub async fn grant(&self, seconds: u64) -> Result<LeaseId> {
        let answer = self.ask("/v3/lease/grant", &json!({ "TTL": seconds.to_string() })).await?;
        answer["ID"].as_str().map(|id| LeaseId(id.to_owned())).ok_or_else(|| unexpected(&answer))
    }

    /// Keeps a lease. Returns false if it has ended.
    pub async fn keep(&self, lease: &LeaseId) -> Result<bool> {
        let answer = self.ask("/v3/lease/keepalive", &json!({ "ID": lease.0 })).await?;
        Ok(answer["result"]["TTL"].as_str().is_some_and(|left| left != "0"))
    }

    /// Ends a lease, and with it the keys that it holds.
    pub async fn revoke(&self, lease: &LeaseId) -> Result<()> {
        self.ask("/v3/lease/revoke", &json!({ "ID": lease.0 })).await.map(drop)
    }

    /// Gives a key a value, if it has none.
    pub async fn claim(&self, key: &str, value: &str, lease: &LeaseId) -> Result<Claim> {
        let (key, value) = (STANDARD.encode(key), STANDARD.encode(value));
        let transaction = json!({
            "compare": [{ "key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0" }],
            "success": [{ "request_put": { "key": key, "value": value, "lease": lease.0 } }],
            "failure": [{ "request_range": { "key": key } }],
        });
        let answer = self.ask("/v3/kv/txn", &transaction).await?;
        if answer["succeeded"].as_bool() == Some(true) {
            return Ok(Claim::Won);
        }
        let found = &answer["responses"][0]["response_range"]["kvs"][0];
        let text = |name: &str| {
            let bytes = STANDARD.decode(found[name].as_str()?).ok()?;
            String::from_utf8(bytes).ok()
        };
        let holder = text("value").ok_or_else(|| unexpected(&answer))?;
        // The answer to an earlier claim was lost.
        let is_own = found["lease"].as_str() == Some(&lease.0);
        Ok(if is_own { Claim::Won } else { Claim::Held(holder) })
    }

    /// Asks one member after the other, from the one on that has answered last.
    async fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        let first = self.current.load(Ordering::Relaxed);
        let mut failures = Vec::new();
        for member in 0..self.members.len() {
            let at = (first + member) % self.members.len();
            let url = format!("{}{path}", self.members[at]);
            match self.ask_member(&url, body).await {
                Ok(answer) => {
                    self.current.store(at, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(why) => failures.push(format!("{}: {why}", self.members[at])),
            }
        }
        Err(Error::new(ErrorKind::Io, format!("etcd does not answer ({})", failures.join("; "))))
    }

    async fn ask_member(&self, url: &str, body: &Value) -> std::result::Result<Value, String> {
        let answer = self.client.post(url).body(body.to_string()).send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(format!("{status}: {}", text.trim()));
        }
        serde_json::from_str(&text).map_err(|_| format!("no JSON: {text:?}"))
    }
}

fn unexpected(answer: &Value) -> Error {
    Error::new(ErrorKind::Io, format!("etcd gave an answer that this program does not know: {answer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_members() {
        let etcd = Etcd::of_address("etcd://127.0.0.1:2379,other:2379").unwrap();
        assert_eq!(etcd.members, ["http://127.0.0.1:2379", "http://other:2379"]);
        for wrong in ["127.0.0.1:2379", "etcd://", "http://127.0.0.1:2379"] {
            let error = Etcd::of_address(wrong).unwrap_err();
            assert!(error.message().contains("etcd://HOST:PORT"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_member_that_does_not_answer_is_named() {
        let etcd = Etcd::of_address("etcd://127.0.0.1:1").unwrap();
        let error = etcd.grant(2).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains("http://127.0.0.1:1"), "{error}");
    }
}
