//! Features for operators: health checks, certificates, the log, files that other users cannot read.
#![allow(
    clippy::disallowed_methods,
    reason = "some of these tests are about time, and about servers that run beside them"
)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Folder, Ran, fail, fed, mangrove, ran, run, succeed};
use crate::server::Serving;

/// The outcomes of queries in the log.
fn outcomes(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap();
    let slow =
        objects(&text).into_iter().filter(|event| event.get("message").is_some_and(|message| message == "slow query"));
    slow.map(|event| event["outcome"].as_str().unwrap().to_owned()).collect()
}

/// The engine and the server give the same error when a time limit has passed. The log has the reason that the client
/// received.
#[test]
fn what_ended_a_query_is_told_alike_to_clients_and_to_the_log() {
    let folder = Folder::new("outcomes");
    let log = folder.path().join("log");
    let served = Serving::logged(&log, &["--log-format", "json", "--slow-query", "1ms"]);
    let limit = "the query did not end within its time limit of 60 ms";
    // Some scripts only count, so that the engine notices the limit; some wait for their client, so that the server
    // does.
    for script in
        [ENDLESS, "g.inject(1).repeat(__.identity()).until(__.is(2))", "g.inject(1).emit().repeat(__.identity())"]
    {
        let slow = run(&["query", "--url", &served.url, "--evaluation-timeout", "60ms", "--format", "csv", script]);
        assert!(slow.code == Some(1) && slow.err.contains(limit), "{script}: {}", slow.err);
    }
    eventually("the log tells of three", || outcomes(&log).len() >= 3);
    assert!(outcomes(&log).iter().all(|outcome| outcome.starts_with(limit)), "{:?}", outcomes(&log));
    let url = served.url.clone();
    let victim = std::thread::spawn(move || run(&["query", "--url", &url, ENDLESS]));
    let row = || succeed(&["queries", "--url", &served.url, "--format", "jsonl"]);
    eventually("the query runs", || row().contains("repeat"));
    let id: String = row().split("\"id\":").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    succeed(&["kill", "--url", &served.url, &id]);
    assert!(victim.join().unwrap().err.contains("was killed"));
    eventually("the log tells of the kill", || outcomes(&log).iter().any(|outcome| outcome.contains("was killed")));
    // A client that goes away, in the middle of a request.
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let body = format!("{{\"gremlin\": \"{ENDLESS}\"}}");
    write!(stream, "POST /gremlin HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    eventually("the query runs", || row().contains("repeat"));
    drop(stream);
    eventually("the log tells of the client", || {
        outcomes(&log).iter().any(|outcome| outcome.contains("connection ended"))
    });
    let metrics = served.get("/metrics");
    assert!(metrics.contains("mangrove_query_errors_total{graph=\"g\",error=\"Timeout\"} 3"), "{metrics}");
    served.stop();
}

/// A query that ends only when it is stopped.
const ENDLESS: &str = "g.inject(1).repeat(__.map(__.sum())).until(__.is(2))";

/// A file among the server's test certificates.
fn pem(name: &str) -> String {
    format!("{}/../server/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs the program with some variables in its environment.
fn run_with(variables: &[(&str, &str)], args: &[&str]) -> Ran {
    ran(mangrove().envs(variables.iter().copied()).args(args).output().unwrap())
}

/// A server with the certificate that `openssl req -x509` makes.
fn with_usual_certificate(more: &[&str]) -> Serving {
    let (certificate, key) = (pem("usual.pem"), pem("usual.key"));
    Serving::start(&[&["--tls-certificate", &certificate, "--tls-key", &key], more].concat())
}

#[test]
fn health_asks_a_server_as_its_settings_have_it() {
    let folder = Folder::new("health-tls");
    let served = with_usual_certificate(&[]);
    let (certificate, key) = (pem("usual.pem"), pem("usual.key"));
    let variables = [
        ("MANGROVE_LISTEN", served.address.as_str()),
        ("MANGROVE_TLS_CERTIFICATE", &certificate),
        ("MANGROVE_TLS_KEY", &key),
    ];
    let healthy = run_with(&variables, &["health"]);
    assert!(healthy.code == Some(0) && healthy.out.contains("\"ok\""), "{}{}", healthy.out, healthy.err);
    // The same from a file, which may have other settings and graphs, too.
    fs::copy(&certificate, folder.path().join("server.pem")).unwrap();
    let listen = format!(
        "listen = \"{}\"\ntls_certificate = \"server.pem\"\ntls_key = \"server.key\"\nbatch_size = 3\n[graphs.a]\n",
        served.address
    );
    let file = folder.file("mangrove.toml", &listen);
    for healthy in [run(&["health", "--config", &file]), run_with(&[("MANGROVE_CONFIG", &file)], &["health"])] {
        assert!(healthy.code == Some(0) && healthy.out.contains("\"ok\""), "{}{}", healthy.out, healthy.err);
    }
    // With --url the server's certificate is checked, unless --insecure is given.
    let stranger = run(&["health", "--url", &served.url]);
    assert!(stranger.code == Some(1) && stranger.err.contains("MANGROVE_TLS_CA"), "{}{}", stranger.out, stranger.err);
    assert!(succeed(&["health", "--url", &served.url, "--insecure"]).contains("\"ok\""));
    let usual = pem("usual.pem");
    assert_eq!(run_with(&[("MANGROVE_TLS_CA", &usual)], &["health", "--url", &served.url]).code, Some(0));
    served.stop();
}

#[test]
fn a_self_signed_certificate_is_trusted_where_it_is_named() {
    let served = with_usual_certificate(&[]);
    let usual = pem("usual.pem");
    let ask = |url: &str, variables: &[(&str, &str)]| run_with(variables, &["query", "--url", url, "g.inject(7)"]);
    let trusted = [("MANGROVE_TLS_CA", usual.as_str())];
    for url in [served.url.clone(), served.url.replace("127.0.0.1", "localhost")] {
        let answer = ask(&url, &trusted);
        assert!(answer.code == Some(0) && answer.out.contains('7'), "{url}: {}", answer.err);
    }
    // Errors name the cause and the way out.
    let other = pem("server.pem");
    let elsewhere = with_usual_certificate(&["--listen", "127.0.0.2:0"]);
    for (url, variables, part) in [
        (&served.url, &[][..], "MANGROVE_TLS_CA"),
        (&served.url, &[("MANGROVE_TLS_CA", other.as_str())], "MANGROVE_TLS_CA"),
        (&elsewhere.url, &trusted, "is for"),
    ] {
        let refused = ask(url, variables);
        assert_eq!(refused.code, Some(1), "{url}: {}", refused.out);
        assert!(refused.err.contains("certificate") && refused.err.contains(part), "{url}: {}", refused.err);
        assert!(!refused.err.contains("is a server running"), "{url}: {}", refused.err);
    }
    elsewhere.stop();
    served.stop();
}

#[test]
fn who_speaks_the_wrong_protocol_to_a_port_is_told_which_it_is() {
    let served = with_usual_certificate(&[]);
    let mut stream = TcpStream::connect(&served.address).unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("this port speaks TLS"), "{answer}");
    let plain = fail(1, &["query", "--url", &served.url.replace("wss", "ws"), "g.inject(1)"]);
    assert!(plain.contains("this port speaks TLS") && plain.contains("wss://"), "{plain}");
    served.stop();
    let served = Serving::start(&[]);
    let encrypted = fail(1, &["query", "--url", &served.url.replace("ws:", "wss:"), "g.inject(1)"]);
    assert!(encrypted.contains("speaks no TLS") && encrypted.contains("ws://"), "{encrypted}");
    served.stop();
}

#[test]
fn a_wrong_login_is_no_question_whether_a_server_runs() {
    let folder = Folder::new("wrong-login");
    let file = folder.path().join("users.toml").to_str().unwrap().to_owned();
    assert_eq!(fed("user", &["add", "--file", &file, "ada", "--role", "*=admin"], "right\n").code, Some(0));
    let served = Serving::with_users(&folder, &[]);
    let variables = [("MANGROVE_USER", "ada"), ("MANGROVE_PASSWORD", "wrong")];
    let refused = run_with(&variables, &["query", "--url", &served.url, "g.inject(1)"]);
    assert!(refused.err.contains("incorrect") && refused.err.contains("MANGROVE_PASSWORD"), "{}", refused.err);
    // The port may have the digits of a status.
    let said = refused.err.replace(&served.url, "");
    assert!(!said.contains("is a server running") && !said.contains("401"), "{}", refused.err);
    let without_login = fail(1, &["query", "--url", &served.url, "g.inject(1)"]);
    assert!(without_login.contains("MANGROVE_USER"), "{without_login}");
    served.stop();
    let gone = fail(1, &["query", "--url", "ws://127.0.0.1:9", "g.inject(1)"]);
    assert!(gone.contains("is a server running"), "{gone}");
}

/// The lines of a log, each of which must be an object of JSON.
fn objects(log: &str) -> Vec<serde_json::Map<String, serde_json::Value>> {
    let object = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("no JSON object: {line}: {e}"));
    log.lines().map(object).collect()
}

#[test]
fn a_log_of_json_is_json_from_the_first_line_to_the_last() {
    let folder = Folder::new("json-log");
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let log = folder.path().join("log");
    let [people, _] = folder.people();
    let args = ["--data", &data, "--log-format", "json", "--load", &people, "--slow-query", "1ms"];
    for start in 0..2 {
        let served = Serving::logged(&log, &args);
        let url = format!("ws://{}", served.address);
        succeed(&["query", "--url", &url, "g.addV('n')"]);
        succeed(&["query", "--url", &url, "g.inject(1).repeat(__.map(__.sum())).times(20000)"]);
        let address = served.address.clone();
        served.stop();
        let text = fs::read_to_string(&log).unwrap();
        let events = objects(&text);
        let event = |message: &str| {
            let found = events
                .iter()
                .find(|event| event.get("message").is_some_and(|said| said.as_str().unwrap().starts_with(message)));
            found.unwrap_or_else(|| panic!("start {start}: no event {message}:\n{text}"))
        };
        assert!(event("listens")["url"].as_str().unwrap().contains(&address), "{text}");
        let recovered = event("recovered");
        assert_eq!(recovered["vertices"], if start == 0 { 0 } else { 4 }, "{text}");
        assert!(recovered["seconds"].is_number() && recovered["commits"].is_number(), "{text}");
        event("slow query");
        event("stopped");
    }
    // An error at the start is an event, too.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = run(&["serve", "--log-format", "json", "--listen", &address]);
    assert_eq!(refused.code, Some(1));
    let events = objects(&refused.err);
    let last = events.last().unwrap();
    assert!(last["level"] == "ERROR" && last["message"].as_str().unwrap().contains(&address), "{}", refused.err);
    let unread = run(&["serve", "--log-format", "json", "--listen", "127.0.0.1:0", "--load", "no-such-file.csv"]);
    assert!(objects(&unread.err).last().unwrap()["message"].as_str().unwrap().contains("no-such-file"));
}

#[test]
fn a_graph_at_its_limit_of_memory_is_told_of() {
    let folder = Folder::new("memory-log");
    let log = folder.path().join("log");
    let served = Serving::logged(&log, &[]);
    let url = format!("ws://{}", served.address);
    let said = |words: &str| fs::read_to_string(&log).unwrap().contains(words);
    succeed(&["query", "--url", &url, "g.addV('n')"]);
    succeed(&["config", "set", "--url", &url, "memory_limit_bytes=1"]);
    eventually("/health says it", || {
        let health = served.get("/health");
        health.contains("\"read-only\"") && health.contains("memory_limit") && health.contains("200 OK")
    });
    eventually("the log says it", || said("takes no writes"));
    assert!(said("memory_limit"));
    succeed(&["config", "set", "--url", &url, "memory_limit_bytes=0"]);
    eventually("/health is well", || served.get("/health").contains("\"ok\""));
    eventually("the log says that, too", || said("takes writes again"));
    served.stop();
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(15), "never came true: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_others_could_read_is_told_and_what_is_made_is_private() {
    let folder = Folder::new("modes");
    let log = folder.path().join("log");
    let users = folder.path().join("users.toml");
    let added = fed("user", &["add", "--file", users.to_str().unwrap(), "ada", "--role", "*=admin"], "secret\n");
    assert_eq!(added.code, Some(0), "{}", added.err);
    let key = folder.path().join("server.key");
    fs::copy(pem("usual.key"), &key).unwrap();
    let data = folder.path().join("data");
    let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let (certificate, key_path, data_path) = (pem("usual.pem"), key.to_str().unwrap(), data.to_str().unwrap());
    let tls = ["--tls-certificate", &certificate, "--tls-key", key_path, "--data", data_path];
    for (mode, is_told) in [(0o644, true), (0o600, false)] {
        set(&users, mode);
        set(&key, mode);
        let served = Serving::logged_with_users(&log, &folder, &tls);
        served.stop();
        let said = fs::read_to_string(&log).unwrap();
        for name in ["users.toml", "server.key"] {
            let line = said.lines().find(|line| line.contains("WARN") && line.contains(name));
            assert_eq!(line.is_some_and(|line| line.contains("chmod 600")), is_told, "{mode:o} {name}\n{said}");
        }
    }
    let mut folders = vec![data];
    while let Some(path) = folders.pop() {
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", path.display());
        if metadata.is_dir() {
            folders.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
}

#[test]
fn a_misspelt_variable_is_refused_and_a_foreign_one_told_of() {
    let args = ["serve", "--print-config"];
    let misspelt = run_with(&[("MANGROVE_WORKER_COUNT_MAXX", "3")], &args);
    let is_named = misspelt.err.contains("MANGROVE_WORKER_COUNT_MAXX") && misspelt.err.contains("worker_count_max`");
    assert!(misspelt.code == Some(1) && is_named, "{}{}", misspelt.out, misspelt.err);
    // Those of other commands, and what Kubernetes sets for a service of this name.
    let foreign = [
        ("MANGROVE_URL", "ws://x"),
        ("MANGROVE_PASSWORD", "x"),
        ("MANGROVE_TLS_CA", "x"),
        ("MANGROVE_SERVICE_HOST", "10.0.0.1"),
        ("MANGROVE_PORT", "tcp://10.0.0.1:8182"),
        ("MANGROVE_PORT_8182_TCP_ADDR", "10.0.0.1"),
    ];
    let passed = run_with(&foreign, &args);
    assert!(passed.code == Some(0) && passed.err.is_empty(), "{}", passed.err);
    let unknown = run_with(&[("MANGROVE_QUUX", "1")], &args);
    assert!(unknown.code == Some(0) && unknown.err.contains("MANGROVE_QUUX"), "{}", unknown.err);
    let tiny = run(&["serve", "--print-config", "--memory-limit", "2"]);
    assert!(tiny.code == Some(2) && tiny.err.contains("2 bytes"), "{}{}", tiny.out, tiny.err);
}

#[test]
fn a_stop_ends_a_query_over_http_within_the_drain() {
    let served = Serving::start(&["--drain-seconds", "1"]);
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let body = format!("{{\"gremlin\": \"{ENDLESS}\"}}");
    write!(stream, "POST /gremlin HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    eventually("the query runs", || served.get("/metrics").contains("mangrove_queries_running{graph=\"g\"} 1"));
    let address = served.address.clone();
    let began = Instant::now();
    let stopping = std::thread::spawn(move || served.signal("TERM"));
    std::thread::sleep(Duration::from_millis(400));
    let health = std::process::Command::new(env!("CARGO_BIN_EXE_mangrove"))
        .args(["health", "--url", &format!("ws://{address}")])
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&health.stdout).contains("closing"), "{health:?}");
    assert_eq!(stopping.join().unwrap(), Some(0));
    // The query has no end.
    assert!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("the server shuts down"), "{answer}");
}

#[test]
fn a_server_that_loads_says_that_it_is_starting() {
    let folder = Folder::new("starting");
    let rows: String = (0..300_000).map(|n| format!("{n},name {n},{}\n", n % 90)).collect();
    let file = folder.file("people.csv", &format!("id:ID,name:string,age:int\n{rows}"));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let started = std::thread::spawn({
        let (file, free) = (file.clone(), free.clone());
        move || Serving::start(&["--load", &file, "--listen", &free])
    });
    let health = || {
        let mut stream = TcpStream::connect(&free).ok()?;
        write!(stream, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    let said = |words: &str| health().is_some_and(|answer| answer.contains(words));
    eventually("it is starting", || {
        assert!(!said("\"ok\""), "it was never starting");
        said("\"starting\"")
    });
    let served = started.join().unwrap();
    assert!(said("\"ok\""));
    served.stop();
}

#[test]
fn settings_are_read_again_at_sighup() {
    let folder = Folder::new("hangup");
    let log = folder.path().join("log");
    let write = |text: &str| folder.file("mangrove.toml", text);
    let config = write("listen = \"127.0.0.1:0\"\n");
    let served = Serving::logged(&log, &["--config", &config, "--batch-size", "7"]);
    let said = |words: &str| fs::read_to_string(&log).unwrap().contains(words);
    let hang_up = |text: &str, words: &str| {
        write(text);
        served.send("HUP");
        eventually(words, || said(words));
    };
    let counted = |what: &str| run(&["query", "--url", &served.url, "--format", "csv", what]);
    assert_eq!(counted("g.addV('n')").code, Some(0));
    // Flags win over the file, as at the start.
    let text = "listen = \"127.0.0.1:0\"\nevaluation_timeout = \"90ms\"\nbatch_size = 9\nmemory_limit = \"1MiB\"\n\
                worker_count_max = 3\n";
    hang_up(text, "changed=\"memory_limit, evaluation_timeout\"");
    assert!(said("changed=\"worker_count_max\"") && said("after a restart"), "{}", fs::read_to_string(&log).unwrap());
    assert!(counted(ENDLESS).err.contains("time limit of 90 ms"));
    assert!(served.get("/metrics").contains("mangrove_memory_limit_bytes{graph=\"g\"} 1048576"));
    // A mistake changes nothing.
    hang_up("evaluation_timeout = \"soon\"\n", "the settings stay as they were");
    assert!(counted(ENDLESS).err.contains("time limit of 90 ms"));
    served.stop();
}

/// The memory budget of a process: shown at its start, in its metrics and its help, refused by name, and raised at
/// SIGHUP.
#[test]
fn a_server_has_a_memory_budget() {
    let help = succeed(&["serve", "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("--memory-budget <SIZE>") && help.contains("3/4 of the machine's"), "{help}");
    let folder = Folder::new("budget");
    let log = folder.path().join("log");
    let said = |words: &str| fs::read_to_string(&log).unwrap().contains(words);
    let figure = |served: &Serving, name: &str| -> u64 {
        let metrics = served.get("/metrics");
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {metrics}")).trim().parse().unwrap()
    };
    // Without a setting, the budget is a share of the system's memory.
    let served = Serving::logged(&log, &[]);
    assert!(said("memory budget") && said("three quarters of"), "{}", fs::read_to_string(&log).unwrap());
    assert!(figure(&served, "mangrove_memory_budget_bytes") > 64 << 20);
    served.stop();
    // With a setting; a budget above the machine's memory gives a warning.
    let config = folder.file("mangrove.toml", "listen = \"127.0.0.1:0\"\nmemory_budget = \"900TiB\"\n");
    let served = Serving::logged(&log, &["--config", &config]);
    assert!(said("memory_budget is more than the process may use"), "{}", fs::read_to_string(&log).unwrap());
    served.stop();
    let write = |budget: &str| {
        folder.file("mangrove.toml", &format!("listen = \"127.0.0.1:0\"\nmemory_budget = \"{budget}\"\n"));
    };
    write("24MiB");
    let data = folder.path().join("data");
    let served = Serving::logged(&log, &["--config", &config, "--data", data.to_str().unwrap()]);
    assert_eq!(figure(&served, "mangrove_memory_budget_bytes"), 24 << 20);
    let ask = |script: &str| run(&["query", "--url", &served.url, "--format", "csv", script]);
    // A load through the server is refused by name, and what it had committed is there.
    let rows: String = (0..100_000).map(|n| format!("{n},{},person\n", "text".repeat(60))).collect();
    let file = folder.file("person.csv", &format!("id:ID,note:string,:LABEL\n{rows}"));
    let load = run(&["load", "--upsert", "--url", &served.url, &file]);
    assert!(load.code == Some(1) && load.err.contains("memory_budget"), "{load:?}");
    // A thousand vertices with a text of their own each, until no more fit.
    let copies = "g.inject(1).repeat(union(identity(), identity())).times(10)";
    let fill = format!("{copies}.addV('more').property('text', '{}').iterate()", "x".repeat(1_000));
    let refused = (0..100).map(|_| ask(&fill)).find(|filled| filled.code != Some(0)).expect("it is never full");
    assert!(
        refused.err.contains("the graphs use") && refused.err.contains("raise the setting memory_budget"),
        "{refused:?}"
    );
    // The writes of the refused request are collected, which may make room again. Requests of one write then fill it
    // up.
    let one = format!("g.addV('more').property('text', '{}').iterate()", "x".repeat(100_000));
    let is_full = (0..100).any(|_| ask(&one).code != Some(0) && served.get("/health").contains("read-only"));
    assert!(is_full, "{}", served.get("/health"));
    let counted = ask("g.V().hasLabel('person').count()");
    assert!(
        counted.code == Some(0) && counted.out.lines().any(|line| line.parse::<u64>().is_ok_and(|n| n > 1_000)),
        "{counted:?}"
    );
    // A higher one counts at SIGHUP.
    write("512MiB");
    served.send("HUP");
    eventually("changed=\"memory_budget\"", || said("changed=\"memory_budget\""));
    assert_eq!(figure(&served, "mangrove_memory_budget_bytes"), 512 << 20);
    let added = ask("g.addV('more')");
    assert_eq!(added.code, Some(0), "{added:?}");
    let graphs = figure(&served, "mangrove_memory_budget_used_bytes{purpose=\"graphs\"}");
    served.stop();
    // A graph counts when it is opened, and is opened whatever the budget is.
    write("2MiB");
    let served = Serving::logged(&log, &["--config", &config, "--data", data.to_str().unwrap()]);
    let opened = figure(&served, "mangrove_memory_budget_used_bytes{purpose=\"graphs\"}");
    assert!(opened > graphs / 2 && opened > 10 << 20, "{opened} after {graphs}");
    let refused = run(&["query", "--url", &served.url, "g.addV('more')"]);
    assert!(refused.code == Some(1) && refused.err.contains("memory budget of 2097152 bytes"), "{refused:?}");
    assert_eq!(run(&["query", "--url", &served.url, "g.V().limit(1).count()"]).code, Some(0));
    served.stop();
}
