//! A server with users and two graphs, and the logins of its clients.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mangrove::{Database, DatabaseOptions, Isolation};
use mangrove_graph::Value;
use mangrove_gremlin::Argument;
use mangrove_server::Users;
use mangrove_server::{Access, Config, DatabaseEngine, Limits, Rights, Server, UsersSource};
use uuid::Uuid;

use super::client::{Client, request_bytes};

/// The password of all users of [`UsersServer`].
pub const PASSWORD: &str = "correct horse";

/// `ada` administers everything, `wim` writes the graph `books`, `rita` reads it, `nemo` has no right.
pub fn users() -> Users {
    let mut users = Users::default();
    for (name, roles) in [
        ("ada", vec![("*", Access::Admin)]),
        ("wim", vec![("books", Access::Write)]),
        ("rita", vec![("books", Access::Read)]),
        ("nemo", vec![]),
    ] {
        let rights = Rights::new(roles.into_iter().map(|(graph, level)| (graph.into(), level)));
        users.add(name, PASSWORD, rights).unwrap();
    }
    users
}

/// The header of HTTP Basic.
pub fn basic(user: &str, password: &str) -> String {
    let pair = format!("{user}:{password}");
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, pair);
    format!("Authorization: Basic {encoded}\r\n")
}

/// A database in a directory, whose log needs a new file every few kilobytes.
fn kept_in(directory: &Path) -> Database {
    let mut options = DatabaseOptions { tablet_count: 2, ..DatabaseOptions::default() };
    (options.durability.log.segment_bytes_min, options.durability.log.segment_bytes_max) = (16 << 10, 16 << 10);
    options.durability.log.prepare_ahead = false;
    Database::open(&directory.to_string_lossy(), &options).unwrap()
}

/// A server with the graphs `books` (source `g`) and `other` (source `o`), and a users file.
pub struct UsersServer {
    pub address: SocketAddr,
    folder: PathBuf,
}

impl UsersServer {
    pub async fn start(name: &str, change: impl FnOnce(&mut Limits)) -> UsersServer {
        UsersServer::configured(name, |config| change(&mut config.limits)).await
    }

    pub async fn configured(name: &str, change: impl FnOnce(&mut Config)) -> UsersServer {
        let folder = std::env::temp_dir().join(format!("mangrove-security-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("users.toml");
        users().write(&file).unwrap();
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        config.users = Some(UsersSource::File(file));
        change(&mut config);
        let engine = DatabaseEngine::new(16 << 20);
        engine.graph("books", kept_in(&folder.join("books")), [("g".into(), Isolation::Serializable)]).unwrap();
        engine.graph("other", Database::in_memory(), [("o".into(), Isolation::Serializable)]).unwrap();
        let server = Server::bind(config, Arc::new(engine)).await.unwrap();
        let address = server.local_address().unwrap();
        tokio::spawn(server.serve(std::future::pending()));
        UsersServer { address, folder }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.join("users.toml")
    }

    /// The directory of all files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The answer to a request over HTTP that has the user's password.
    pub async fn ask(&self, user: &str, line: &str, body: &str) -> String {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\n{}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            basic(user, PASSWORD),
            body.len()
        );
        super::http(self.address, &request).await
    }

    /// Changes the users file, which the server reads again within a second.
    pub fn change_users(&self, change: impl FnOnce(&mut Users)) {
        let mut users = Users::read(&self.file()).unwrap();
        change(&mut users);
        users.write(&self.file()).unwrap();
    }

    /// A connection that has logged in as a user.
    pub async fn connect(&self, user: &str) -> Client {
        let mut client = Client::connect(self.address).await;
        let first = client.send_eval("", "g.inject(1)", &[]).await;
        assert_eq!(client.response().await.unwrap().code, 407);
        client.authenticate(first, user, PASSWORD).await;
        // The held requests run now, as the user.
        let answered = client.response().await.unwrap();
        assert_eq!(answered.request, Some(first));
        client
    }
}

impl Drop for UsersServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Client {
    /// Sends SASL PLAIN under the id of the request that was challenged, as drivers do.
    pub async fn authenticate(&mut self, request: Uuid, user: &str, password: &str) {
        self.authenticate_raw(request, format!("\0{user}\0{password}").as_bytes()).await;
    }

    pub async fn authenticate_raw(&mut self, request: Uuid, message: &[u8]) {
        let sasl = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, message);
        let arguments = [("sasl", Argument::from(Value::from(sasl)))];
        self.send_bytes(request_bytes(request, "authentication", "", &arguments)).await;
    }
}
