//! Logins and rights, tested from outside, over the wire.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mangrove::Database;
use mangrove_server::Users;
use mangrove_server::{Access, Config, DatabaseEngine, Lockout, Server, TlsFiles, UsersSource};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::client::Client;
use crate::common::http;
use crate::common::users_server::{PASSWORD, UsersServer, basic};

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_is_asked_and_what_it_asked_is_run_once_it_is_known() {
    let served = UsersServer::start("ask", |_| {}).await;
    let mut client = Client::connect(served.address).await;
    // Drivers pipeline: requests that come while the server waits for the login wait, too, and one challenge is enough.
    let ids = [client.send_eval("", "g.inject(1)", &[]).await, client.send_eval("", "g.inject(2)", &[]).await];
    let challenge = client.response().await.unwrap();
    assert_eq!((challenge.request, challenge.code), (Some(ids[0]), 407));
    client.authenticate(ids[0], "rita", PASSWORD).await;
    let mut answered: Vec<_> = [client.response().await.unwrap(), client.response().await.unwrap()]
        .map(|response| (response.request, response.code))
        .into();
    answered.sort();
    assert_eq!(answered, [(Some(ids[0]), 200), (Some(ids[1]), 200)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_are_refused_and_soon_the_connection_is() {
    let served = UsersServer::start("wrong", |_| {}).await;
    let mut client = Client::connect(served.address).await;
    for (user, password) in [("ada", "wrong"), ("nobody", PASSWORD), ("ada", "")] {
        let first = client.send_eval("", "g.inject(1)", &[]).await;
        assert_eq!(client.response().await.unwrap().code, 407);
        client.authenticate(first, user, password).await;
        let refused = client.response().await.unwrap();
        assert_eq!((refused.request, refused.code), (Some(first), 401));
        assert!(refused.message.contains("incorrect"), "{refused:?}");
    }
    let farewell = client.farewell().await.unwrap();
    assert!(farewell.contains("incorrect") && farewell.contains("3 failed logins"), "{farewell}");
    // A client that was logged in has one try.
    let mut known = served.connect("rita").await;
    let request = known.send_eval("", "g.inject(1)", &[]).await;
    known.answer(request).await.assert_code(200);
    known.authenticate(request, "rita", "wrong").await;
    let farewell = known.farewell().await.unwrap();
    assert!(farewell.contains("incorrect") && farewell.contains("was logged in"), "{farewell}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_say_who_it_is_has_to_go() {
    let served = UsersServer::start("silent", |limits| limits.authentication_timeout = Duration::from_secs(2)).await;
    let mut silent = Client::connect(served.address).await;
    let mut stubborn = Client::connect(served.address).await;
    stubborn.send_eval("", "g.inject(1)", &[]).await;
    assert_eq!(stubborn.response().await.unwrap().code, 407);
    assert!(silent.response().await.is_none() && stubborn.response().await.is_none());
    // A user who is still in the file stays connected.
    let mut known = served.connect("rita").await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(known.eval("g.inject(1)").await.code(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_are_for_what_a_traversal_does() {
    let served = UsersServer::start("roles", |_| {}).await;
    let mut rita = served.connect("rita").await;
    assert_eq!(rita.eval("g.V().count()").await.values(), [0]);
    for write in ["g.addV('x')", "g.V().drop()", "g.inject(1).sideEffect(__.addV('x'))", "g.mergeV([(T.label): 'x'])"] {
        rita.eval(write).await.assert_fails(403, "needs the role write on the graph `books`");
        rita.session_eval("s", write).await.assert_fails(403, "role write");
    }
    for service in ["mangrove.checkpoint", "mangrove.index.create", "no.such.service"] {
        rita.eval(&format!("g.call('{service}')")).await.assert_fails(403, "role admin on the graph `books`");
    }
    rita.eval("g.call('mangrove.config').with('gc_workers', 1)").await.assert_fails(403, "role admin");
    rita.eval("g.inject(1).call('mangrove.gc', ['collect': true])").await.assert_fails(403, "role admin");
    assert_eq!(rita.eval("g.call('mangrove.config').count()").await.values(), [1]);

    let mut wim = served.connect("wim").await;
    assert_eq!(wim.eval("g.addV('x').iterate()").await.code(), 204);
    wim.eval("g.call('mangrove.checkpoint')").await.assert_fails(403, "role admin");
    wim.eval("g.call('mangrove.graph.create').with('name', 'mine')").await.assert_fails(403, "all graphs");
    assert_eq!(rita.eval("g.V().count()").await.values(), [1]);

    let mut ada = served.connect("ada").await;
    assert_eq!(ada.eval("g.call('mangrove.config').with('gc_workers', 1).count()").await.values(), [1]);
    assert_eq!(ada.eval("o.addV('y').iterate()").await.code(), 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_without_a_right_is_not_there() {
    let served = UsersServer::start("hidden", |_| {}).await;
    let mut rita = served.connect("rita").await;
    rita.eval("o.V()").await.assert_fails(499, "there is no traversal source `o` on this server; it has: g");
    rita.eval("nothing.V()").await.assert_fails(499, "there is no traversal source `nothing`");
    rita.eval("g.call('mangrove.graph.list').select('name').is('other')").await.assert_code(204);
    let mut nemo = served.connect("nemo").await;
    nemo.eval("g.inject(1)").await.assert_fails(499, "no traversal source `g`");
}

/// Whatever a user without the role `admin` sends, no answer names the directories of the server. An administrator sees
/// them.
#[tokio::test(flavor = "multi_thread")]
async fn directories_are_for_administrators() {
    let served = UsersServer::start("directories", |_| {}).await;
    let folder = served.folder().to_string_lossy().into_owned();
    for service in ["mangrove.graph.list", "mangrove.durability", "mangrove.stats"] {
        let body = format!("{{\"gremlin\": \"g.call('{service}')\"}}");
        for user in ["rita", "wim"] {
            let answer = served.ask(user, "POST /gremlin", &body).await;
            assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains(&folder), "{service} as {user}: {answer}");
        }
        let answer = served.ask("ada", "POST /gremlin", &body).await;
        assert!(answer.contains(&folder) || service == "mangrove.stats", "{service}: {answer}");
    }
    // The disk fails under the log: its next file cannot be made.
    std::fs::remove_dir_all(served.folder().join("books").join("wal")).unwrap();
    let text = "x".repeat(6_000);
    let write = format!("g.addV('n').property('text', '{text}').iterate()");
    let body = format!("{{\"gremlin\": \"{write}\"}}");
    let mut wim = served.connect("wim").await;
    let mut refusals = Vec::new();
    for turn in 0..20 {
        let session = format!("s{turn}");
        wim.session_eval(&session, &write).await;
        refusals.push(wim.session_end(&session, "commit").await.message);
        refusals.push(wim.eval(&write).await.message);
        refusals.push(served.ask("wim", "POST /gremlin", &body).await);
    }
    assert!(refusals.iter().all(|refusal| !refusal.contains(&folder)), "{refusals:?}");
    let told = refusals.iter().filter(|refusal| refusal.contains("(directory)/wal")).count();
    assert!(told > 30, "the cause is named: {refusals:?}");
    let state = served.ask("wim", "POST /gremlin", "{\"gremlin\": \"g.call('mangrove.durability')\"}").await;
    assert!(state.contains("(directory)/wal") && !state.contains(&folder), "{state}");
    for user in ["rita", "wim", "nemo"] {
        let health = served.ask(user, "GET /health", "").await;
        assert!(health.contains("\"read-only\"") && !health.contains(&folder), "{health}");
        assert_eq!(
            health.contains("(directory)/wal"),
            user != "nemo",
            "a graph without a right is not there: {health}"
        );
        for line in ["GET /metrics", "GET /gremlin/status", "GET /gremlin?gremlin=g.call('mangrove.durability')"] {
            let answer = served.ask(user, line, "").await;
            assert!(!answer.contains(&folder), "{line}: {answer}");
        }
    }
    let mut ada = served.connect("ada").await;
    ada.eval(&write).await.assert_fails(503, &folder);
    assert!(served.ask("ada", "GET /health", "").await.contains(&folder));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_is_removed_or_demoted_notices_at_once() {
    let served = UsersServer::start("change", |_| {}).await;
    let (mut wim, mut rita) = (served.connect("wim").await, served.connect("rita").await);
    served.change_users(|users| users.grant("wim", "books", Some(Access::Read)).unwrap());
    served.change_users(|users| users.remove("rita").unwrap());
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    wim.eval("g.addV('x')").await.assert_fails(403, "role write");
    assert!(rita.farewell().await.unwrap().contains("log in again"));
    // A malformed file changes nothing. Neither does one that is being written in place: it is empty for a moment.
    for text in ["[users", ""] {
        std::fs::write(served.file(), text).unwrap();
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        assert_eq!(wim.eval("g.inject(1)").await.code(), 200, "{text:?}");
    }
    Users::default().write(&served.file()).unwrap();
    assert!(wim.farewell().await.unwrap().contains("log in again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn http_asks_too() {
    let served = UsersServer::start("http", |_| {}).await;
    let get = async |path: &str, more: &str| {
        http(served.address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}Connection: close\r\n\r\n"))
            .await
    };
    let stranger = get("/metrics", "").await;
    assert!(
        stranger.starts_with("HTTP/1.1 401") && stranger.to_lowercase().contains("www-authenticate: basic"),
        "{stranger}"
    );
    assert!(get("/metrics", &basic("rita", "wrong")).await.starts_with("HTTP/1.1 401"));
    assert!(get("/metrics", &basic("nobody", PASSWORD)).await.starts_with("HTTP/1.1 401"));
    assert!(get("/metrics", "Authorization: Bearer x\r\n").await.starts_with("HTTP/1.1 401"));
    let metrics = get("/metrics", &basic("rita", PASSWORD)).await;
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    for line in ["mangrove_logins_total 1", "mangrove_logins_failed_total 2", "mangrove_queries_running{graph=\"g\"} 0"]
    {
        assert!(metrics.contains(&format!("{line}\n")), "{line}: {metrics}");
    }
    assert!(!metrics.contains("graph=\"o\""), "a graph without a right on it is not named: {metrics}");
    assert!(get("/metrics", &basic("ada", PASSWORD)).await.contains("graph=\"o\""));
    let without_role = get("/metrics", &basic("nemo", PASSWORD)).await;
    assert!(without_role.starts_with("HTTP/1.1 403") && !without_role.contains("graph="), "{without_role}");
    let health = get("/health", "").await;
    assert!(health.starts_with("HTTP/1.1 200") && !health.contains("graphs"), "a stranger learns no names: {health}");
    let known = get("/health", &basic("rita", PASSWORD)).await;
    assert!(known.contains("[\"g\"]"), "{known}");
    let query = get("/gremlin?gremlin=g.V()", "").await;
    assert!(query.starts_with("HTTP/1.1 401"), "{query}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_so_many_wrong_passwords_the_right_one_is_refused_for_a_while() {
    let lasts = Duration::from_secs(2);
    let served = UsersServer::configured("guessing", |config| {
        config.lockout = Lockout { user_max: 2, lasts, ..Lockout::default() };
    })
    .await;
    let basic = |user: &str, password: &str| {
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("{user}:{password}"));
        format!(
            "GET /gremlin?gremlin=g.V() HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {encoded}\r\nConnection: close\r\n\r\n"
        )
    };
    for user in ["rita", "nobody"] {
        for _ in 0..2 {
            assert!(http(served.address, &basic(user, "guess")).await.starts_with("HTTP/1.1 401"), "{user}");
        }
        let refused = http(served.address, &basic(user, PASSWORD)).await.to_lowercase();
        assert!(refused.starts_with("http/1.1 429") && refused.contains("retry-after: "), "{user}: {refused}");
        assert!(refused.contains("too many wrong logins"), "{refused}");
    }
    assert!(http(served.address, &basic("wim", PASSWORD)).await.starts_with("HTTP/1.1 200"));
    tokio::time::sleep(lasts).await;
    assert!(http(served.address, &basic("rita", PASSWORD)).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_user_takes_as_long_as_a_wrong_password() {
    const TRIES: usize = 7;
    // Without delays and lockouts, times show the cost of a password.
    let served = UsersServer::configured("timing", |config| config.lockout.lasts = Duration::ZERO).await;
    let mut medians = Vec::new();
    for user in ["ada", "nobody"] {
        let mut times = Vec::new();
        for _ in 0..TRIES {
            let mut client = Client::connect(served.address).await;
            let first = client.send_eval("", "g.inject(1)", &[]).await;
            client.response().await.unwrap();
            let began = now();
            client.authenticate(first, user, "wrong").await;
            assert_eq!(client.response().await.unwrap().code, 401);
            times.push(began.elapsed());
        }
        times.sort();
        medians.push(times[TRIES / 2].as_secs_f64());
    }
    let ratio = medians[0] / medians[1];
    // Without the hash for an unknown user, one would take some hundred times as long as the other.
    assert!((0.2..5.0).contains(&ratio), "{medians:?}");
}

#[allow(clippy::disallowed_methods, reason = "this test is about time itself")]
fn now() -> Instant {
    Instant::now()
}

fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

fn tls_config() -> Config {
    let mut config = Config::new("127.0.0.1:0".parse().unwrap());
    config.tls = Some(TlsFiles { certificate: pem("server.pem"), key: pem("server.key") });
    config.limits.handshake_timeout = Duration::from_millis(400);
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_and_not_without() {
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    let engine = DatabaseEngine::new(16 << 20).source("g", Database::in_memory());
    let server = Server::bind(tls_config(), Arc::new(engine)).await.unwrap();
    let address = server.local_address().unwrap();
    tokio::spawn(server.serve(std::future::pending()));

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pem("server.pem")).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut encrypted = connector.connect(name, stream).await.unwrap();
    encrypted.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 4_096];
    let length = encrypted.read(&mut answer).await.unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 200"));

    let plain = http(address, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(plain.starts_with("HTTP/1.1 400") && plain.contains("this port speaks TLS"), "{plain}");
    assert!(!plain.contains("status"), "{plain}");
    // A client that sends nothing is dropped before any HTTP.
    let mut silent = TcpStream::connect(address).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(5), silent.read(&mut [0; 16])).await;
    assert_eq!(ended.expect("the server ends it").unwrap_or(0), 0);
}

#[tokio::test]
async fn what_is_wrong_with_certificates_and_addresses_is_said_at_the_start() {
    let engine = || Arc::new(DatabaseEngine::new(1 << 20));
    let start = async |config: Config| Server::bind(config, engine()).await.err().map(|e| e.message().to_owned());
    let with = |certificate: &str, key: &str| {
        let mut config = tls_config();
        config.tls = Some(TlsFiles { certificate: pem(certificate), key: pem(key) });
        config
    };
    assert!(start(with("missing.pem", "server.key")).await.unwrap().contains("missing.pem"));
    assert!(start(with("server.key", "server.key")).await.unwrap().contains("is no certificate"));
    assert!(start(with("server.pem", "server.pem")).await.unwrap().contains("is no private key"));
    assert!(start(with("server.pem", "other.key")).await.unwrap().contains("cannot be used for TLS"));

    let open = Config::new("0.0.0.0:0".parse().unwrap());
    assert!(start(open.clone()).await.unwrap().contains("neither TLS nor authentication"));
    let clear = Config { users: Some(UsersSource::Text(String::new())), ..open.clone() };
    assert!(start(clear).await.unwrap().contains("in clear"));
    let anybody = Config { tls: tls_config().tls, ..open.clone() };
    assert!(start(anybody).await.unwrap().contains("anybody may read"));
    let secure = Config { users: Some(UsersSource::Text(String::new())), tls: tls_config().tls, ..open.clone() };
    assert_eq!(start(secure).await, None);
    assert_eq!(start(Config { allow_remote: true, ..open }).await, None);
}
