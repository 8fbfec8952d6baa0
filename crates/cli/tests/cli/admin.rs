//! Users, graphs, running queries: a server as its administrator sees it.

use std::process::Stdio;

use crate::common::{Folder, Ran, fed, mangrove, ran, run, succeed};
use crate::server::Serving;

/// `mangrove user` with a line on standard input.
fn user(args: &[&str], input: &str) -> Ran {
    fed("user", args, input)
}

/// A users file with an administrator and a reader.
fn with_users(folder: &Folder) -> String {
    let file = folder.path().join("users.toml").to_str().unwrap().to_owned();
    for (name, role) in [("ada", "*=admin"), ("rita", "*=read")] {
        let added = user(&["add", "--file", &file, name, "--role", role], &format!("{name}'s password\n"));
        assert_eq!(added.code, Some(0), "{}", added.err);
    }
    file
}

#[test]
fn users_are_kept_as_hashes_in_a_file_of_their_owner() {
    let folder = Folder::new("users");
    let file = with_users(&folder);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("$argon2id$") && !text.contains("password\n") && !text.contains("ada's"), "{text}");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(user(&["add", "--file", &file, "ada"], "x\n").err.contains("already"));
    assert!(user(&["passwd", "--file", &file, "eve"], "x\n").err.contains("no user `eve`"));
    assert!(user(&["grant", "--file", &file, "ada", "books=reader"], "").err.contains("did you mean `read`"));
    assert_eq!(user(&["grant", "--file", &file, "rita", "books=write", "*=none"], "").code, Some(0));
    let listed = succeed(&["user", "list", "--file", &file, "--format", "jsonl"]);
    assert!(listed.contains("{\"user\":\"rita\",\"roles\":{\"books\":\"write\"}}"), "{listed}");
    assert_eq!(user(&["remove", "--file", &file, "rita"], "").code, Some(0));
    assert!(!succeed(&["user", "list", "--file", &file]).contains("rita"));
}

#[test]
fn graphs_are_created_listed_and_dropped_while_the_server_runs() {
    let folder = Folder::new("graphs");
    with_users(&folder);
    let served = Serving::with_users(&folder, &[]);
    served.refuse("rita", &["graph", "create", "books"], "role admin on all graphs");
    served.refuse("nobody", &["graph", "list"], "incorrect");
    let created = served.succeed("ada", &["graph", "create", "books"]);
    assert!(created.contains("\"sources\":{\"books\":\"serializable\",\"bookssi\":\"snapshot\"}"), "{created}");
    served.refuse("ada", &["graph", "create", "books"], "already");
    let scratch = ["graph", "create", "scratch", "--memory", "--memory-limit", "1MiB", "--source", "gs=snapshot"];
    let created = served.succeed("ada", &scratch);
    assert!(created.contains("\"sources\":{\"gs\":\"snapshot\"},\"memory_limit\":1048576"), "{created}");
    served.refuse("ada", &["graph", "create", "other", "--source", "go=loose"], "isolation level `loose`");
    served.succeed("ada", &["query", "books.addV('book')"]);
    served.refuse("rita", &["query", "books.addV('book')"], "role write on the graph `books`");
    served.refuse("ada", &["graph", "drop", "main", "--yes"], "configuration");
    served.stop();

    // After a restart, graphs in directories exist again, those in memory do not.
    let served = Serving::with_users(&folder, &[]);
    assert_eq!(served.succeed("rita", &["query", "bookssi.V().count()"]).trim(), "1");
    assert!(!served.succeed("rita", &["graph", "list"]).contains("scratch"));
    served.refuse("ada", &["graph", "drop", "books"], "--yes");
    served.succeed("ada", &["graph", "drop", "books", "--yes"]);
    served.refuse("ada", &["query", "books.V()"], "no traversal source `books`");
    assert!(!folder.path().join("graphs/books").exists());
    served.stop();
}

#[test]
fn running_queries_are_listed_and_killed_by_those_who_may() {
    const ENDLESS: &str = "g.inject(1).repeat(__.map(__.sum())).until(__.is(2))";
    let folder = Folder::new("queries");
    with_users(&folder);
    let served = Serving::with_users(&folder, &[]);
    let victim = mangrove()
        .env("MANGROVE_USER", "ada")
        .env("MANGROVE_PASSWORD", "ada's password")
        .args(["query", "--url", &served.url, ENDLESS, "--evaluation-timeout", "50s"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let row = (0..200)
        .find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            served.succeed("ada", &["queries"]).lines().find(|row| row.contains("repeat")).map(str::to_owned)
        })
        .expect("the query is listed");
    assert!(row.contains("\"user\":\"ada\"") && row.contains("\"graph\":\"main\""), "{row}");
    let id: String = row.split("\"id\":").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    // A user who may only read sees only the user's own queries.
    assert!(!served.succeed("rita", &["queries"]).contains("repeat"));
    served.refuse("rita", &["kill", &id], "no query with the number");
    assert!(served.succeed("ada", &["kill", &id]).contains("repeat"));
    let killed = ran(victim.wait_with_output().unwrap());
    assert!(killed.err.contains("was killed"), "{}", killed.err);
    served.stop();
}

#[test]
fn tls_is_spoken_by_server_and_program() {
    let folder = Folder::new("tls");
    with_users(&folder);
    let pem = |name: &str| format!("{}/../server/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let (certificate, key) = (pem("server.pem"), pem("server.key"));
    let served = Serving::with_users(&folder, &["--tls-certificate", &certificate, "--tls-key", &key]);
    assert!(served.url.starts_with("wss://"), "{}", served.url);
    let url = served.url.replace("127.0.0.1", "localhost");
    let ask = |ca: Option<&str>| {
        let mut command = mangrove();
        command.env("MANGROVE_USER", "rita").env("MANGROVE_PASSWORD", "rita's password");
        if let Some(ca) = ca {
            command.env("MANGROVE_TLS_CA", ca);
        }
        ran(command.args(["query", "--url", &url, "g.V().count()", "--format", "csv"]).output().unwrap())
    };
    assert!(ask(Some(&certificate)).out.contains('0'));
    assert_eq!(ask(None).code, Some(1), "nobody vouches for the certificate");
    let plain = run(&["query", "--url", &url.replace("wss", "ws"), "g.V()"]);
    assert_eq!(plain.code, Some(1));
}

#[test]
fn what_counts_is_printed_as_a_file_that_says_the_same() {
    let folder = Folder::new("print");
    let file = folder.file("mangrove.toml", "batch_size = 7\nlog_format = \"json\"\n[graphs.books]\n");
    let mut command = mangrove();
    command.env("MANGROVE_SESSION_COUNT_MAX", "9");
    let args = ["serve", "--config", &file, "--print-config", "--slow-query", "250ms", "--allow-remote"];
    let printed = ran(command.args(args).output().unwrap());
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    for (setting, origin) in [
        ("batch_size = 7", "file"),
        ("session_count_max = 9", "MANGROVE_SESSION_COUNT_MAX"),
        ("slow_query = \"250ms\"", "--slow-query"),
        ("allow_remote = true", "--allow-remote"),
        ("connection_count_max = 1024", "default"),
    ] {
        let line = printed.out.lines().find(|line| line.starts_with(setting));
        assert!(line.is_some_and(|line| line.ends_with(origin)), "{setting}: {line:?}");
    }
    assert!(printed.out.contains("[graphs.books]\nsources = { books = \"serializable\", bookssi = \"snapshot\" }"));
    let wrong = folder.file("wrong.toml", "\nbatch_sise = 7\n");
    let refused = run(&["serve", "--config", &wrong, "--print-config"]);
    assert!(refused.err.contains("line 2") && refused.err.contains("did you mean `batch_size`"), "{}", refused.err);
}
