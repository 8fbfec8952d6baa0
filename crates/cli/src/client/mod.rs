//! A small Gremlin client: scripts to a server over WebSocket, in GraphBinary.
//!
//! A client has one connection with one request at a time. Results are read as the server sends them. Errors of the
//! server are reported with its messages.
//!
//! A transaction is a session of the protocol, begun and ended by scripts (`g.tx().begin()`). A [`Canceller`] stops a
//! query from another thread. The protocol has no message for that, so the canceller opens a second connection, lists
//! the queries of the first one, and kills them. [`Client::reconnect`] replaces a lost connection; the transaction that
//! was open on it is lost.
//!
//! `wss://` is TLS, with the system's certificates or those of `MANGROVE_TLS_CA`. The user is named in the URL
//! (`wss://ada@host`) or in `MANGROVE_USER`. The password is in `MANGROVE_PASSWORD` or is asked for at a terminal. It
//! is never on the command line, which other processes can read.

pub mod events;
pub mod health;
mod target;
pub mod terminal;
pub mod trust;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use mangrove::{Error, ErrorKind, Materialize, Parameters, Result, Value};
use mangrove_gremlin::Argument;
use mangrove_gremlin::graphbinary::{Request, Response, decode_response, encode_request};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use self::target::{CREDENTIALS, Socket, Target};

/// The maximum time to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const NO_CONTENT: u16 = 204;
const PARTIAL_CONTENT: u16 = 206;
const AUTHENTICATE: u16 = 407;

/// A script with the options of its request.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// A script.
    pub script: &'a str,
    /// Its parameters, by name.
    pub parameters: &'a Parameters,
    /// Its time limit; `None`: the server's.
    pub timeout: Option<Duration>,
    /// The properties that elements in results carry.
    pub materialize: Materialize,
    /// The traversal source that `g` stands for; `None`: the client's.
    pub source: Option<&'a str>,
}

impl<'a> Ask<'a> {
    /// A script with default options.
    pub fn new(script: &'a str, parameters: &'a Parameters) -> Self {
        Ask { script, parameters, timeout: None, materialize: Materialize::Tokens, source: None }
    }
}

/// A connection to a server.
pub struct Client {
    runtime: Runtime,
    target: Target,
    /// The traversal source that `g` stands for if a request names none; `None`: the server's source `g`.
    source: Option<String>,
    /// `None` after the connection was lost.
    socket: Option<Socket>,
    /// The address of this client as the server sees it.
    own_address: SocketAddr,
    /// The open transaction: the name of its session, and its traversal source.
    session: Option<(String, String)>,
    /// Notified when the client gives up waiting for the answer. The newest [`Canceller`] owns it: a notification that
    /// no wait has met ends with its canceller, and does not reach the queries after it.
    abandoned: Weak<Notify>,
}

impl Client {
    /// Connects to `ws://host:port/gremlin` or `wss://…`; the scheme and the path may be left out.
    pub fn connect(url: &str) -> Result<Self> {
        Self::connect_to(Target::parse(url)?)
    }

    /// Makes `g` stand for this traversal source.
    pub fn with_source(mut self, source: Option<&str>) -> Self {
        self.source = source.map(str::to_owned);
        self
    }

    fn connect_to(target: Target) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::new(ErrorKind::Io, format!("the client could not be started: {e}")))?;
        let (socket, own_address) = open(&runtime, &target)?;
        let (socket, abandoned) = (Some(socket), Weak::new());
        Ok(Client { runtime, target, source: None, socket, own_address, session: None, abandoned })
    }

    /// The URL of the server, without the user.
    pub fn url(&self) -> String {
        self.target.url()
    }

    /// Returns true if the connection was lost.
    pub fn is_lost(&self) -> bool {
        self.socket.is_none()
    }

    /// Connects again. An open transaction is lost.
    pub fn reconnect(&mut self) -> Result<()> {
        self.session = None;
        let (socket, own_address) = open(&self.runtime, &self.target)?;
        (self.socket, self.own_address) = (Some(socket), own_address);
        Ok(())
    }

    /// Runs a script, in the open transaction or else in one of its own.
    pub fn ask(&mut self, ask: &Ask<'_>) -> Result<Answer<'_>> {
        let text = |text: &str| Argument::from(Value::from(text));
        let bindings = ask.parameters.iter().map(|(name, value)| (Value::String(name.clone()), value.clone()));
        let materialize = match ask.materialize {
            Materialize::Properties => "all",
            Materialize::Tokens | Materialize::References => "tokens",
        };
        let mut arguments = vec![
            ("gremlin".into(), text(ask.script)),
            ("language".into(), text("gremlin-lang")),
            ("bindings".into(), Argument::from(Value::map(bindings.collect()))),
            ("materializeProperties".into(), text(materialize)),
        ];
        if let Some(source) = ask.source.or(self.source.as_deref()) {
            let alias = Value::map(vec![(Value::from("g"), Value::from(source))]);
            arguments.push(("aliases".into(), Argument::from(alias)));
        }
        if let Some(limit) = ask.timeout {
            let millis = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
            arguments.push(("evaluationTimeout".into(), Argument::from(Value::I64(millis))));
        }
        self.send("eval", arguments)
    }

    /// All results of a script.
    pub fn run(&mut self, script: &str, parameters: &Parameters) -> Result<Vec<Value>> {
        self.ask(&Ask::new(script, parameters))?.collect()
    }

    fn send(&mut self, op: &str, mut arguments: Vec<(smol_str::SmolStr, Argument)>) -> Result<Answer<'_>> {
        let processor = match &self.session {
            Some((session, _)) => {
                arguments.push(("session".into(), Argument::from(Value::from(session.as_str()))));
                "session"
            }
            None => "",
        };
        let id = Uuid::new_v4();
        let request =
            Request { id, op: op.into(), processor: processor.into(), arguments, bytecode_bindings: Parameters::new() };
        let mut frame = Vec::new();
        encode_request(&request, &mut frame)?;
        let Client { runtime, socket, target, .. } = self;
        let Some(open) = socket else { return Err(lost(target, "an earlier request has failed")) };
        if let Err(error) = runtime.block_on(open.send(Message::Binary(frame.into()))) {
            *socket = None;
            return Err(lost(target, error));
        }
        Ok(Answer { client: self, request: id, ready: VecDeque::new(), is_over: false })
    }

    /// The traversal source of the open transaction.
    pub fn transaction(&self) -> Option<&str> {
        self.session.as_ref().map(|(_, source)| source.as_str())
    }

    /// Begins a transaction on a traversal source.
    pub fn begin(&mut self, source: &str) -> Result<()> {
        self.session = Some((Uuid::new_v4().to_string(), source.to_owned()));
        let begun = self.command("begin");
        if begun.is_err() {
            self.session = None;
        }
        begun
    }

    /// Ends the open transaction by `command`: `commit` or `rollback`. The transaction is over even if the command
    /// fails.
    pub fn end(&mut self, command: &str) -> Result<()> {
        let ended = self.command(command);
        if let Ok(answer) = self.send("close", Vec::new()) {
            // If the session cannot be closed now, it ends with its connection.
            let _ = answer.finish();
        }
        self.session = None;
        ended
    }

    fn command(&mut self, command: &str) -> Result<()> {
        let source = self.transaction().unwrap_or("g").to_owned();
        let script = format!("g.tx().{command}()");
        let none = Parameters::new();
        self.ask(&Ask { source: Some(&source), ..Ask::new(&script, &none) })?.finish()
    }

    /// A handle that stops this client's queries from another thread. [`Canceller::abandon`] works on the newest one
    /// only.
    pub fn canceller(&mut self) -> Canceller {
        let abandoned = Arc::new(Notify::new());
        self.abandoned = Arc::downgrade(&abandoned);
        Canceller { target: self.target.clone(), own_address: self.own_address, abandoned }
    }
}

fn open(runtime: &Runtime, target: &Target) -> Result<(Socket, SocketAddr)> {
    runtime.block_on(async {
        let error = match tokio::time::timeout(CONNECT_TIMEOUT, target.open()).await {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(error)) => error,
            Err(_) => Error::new(ErrorKind::Io, format!("no answer in {} s", CONNECT_TIMEOUT.as_secs())),
        };
        Err(error.context(format!("cannot connect to {}", target.url())))
    })
}

fn lost(target: &Target, reason: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("the connection to {} was lost: {reason}", target.url()))
}

/// The results of a request, as the server sends them. If an answer is dropped early, the client skips the rest of its
/// results when it reads the next answer.
pub struct Answer<'a> {
    client: &'a mut Client,
    request: Uuid,
    /// Received results, each with the number of times that it is still to be returned.
    ready: VecDeque<(u64, Value)>,
    is_over: bool,
}

impl Answer<'_> {
    /// Reads the answer to its end and drops the results.
    fn finish(mut self) -> Result<()> {
        self.try_for_each(|result| result.map(drop))
    }

    /// The next message that belongs to the request.
    fn message(&mut self) -> Result<Response> {
        let Client { runtime, socket, target, abandoned, .. } = &mut *self.client;
        let abandoned = abandoned.upgrade();
        loop {
            let Some(open) = socket else { return Err(lost(target, "an earlier request has failed")) };
            let given_up = async {
                match &abandoned {
                    Some(abandoned) => abandoned.notified().await,
                    None => std::future::pending().await,
                }
            };
            let received = runtime.block_on(async {
                tokio::select! {
                    message = open.next() => Some(message),
                    () = given_up => None,
                }
            });
            let reason = match received {
                Some(Some(Ok(Message::Binary(bytes)))) => {
                    let response = decode_response(&bytes)?;
                    if response.request_id.is_none_or(|id| id == self.request) {
                        return Ok(response);
                    }
                    continue;
                }
                Some(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
                Some(Some(Ok(Message::Close(Some(frame))))) if !frame.reason.is_empty() => {
                    format!("the server closed it: {}", frame.reason)
                }
                Some(Some(Ok(Message::Close(_))) | None) => "the server closed it".to_owned(),
                Some(Some(Ok(other))) => format!("the server sent {other}"),
                Some(Some(Err(error))) => error.to_string(),
                None => "this program closed it to stop the query".to_owned(),
            };
            *socket = None;
            return Err(lost(target, reason));
        }
    }

    fn fill(&mut self) -> Result<()> {
        while self.ready.is_empty() && !self.is_over {
            let response = self.message().inspect_err(|_| self.is_over = true)?;
            self.is_over = response.code != PARTIAL_CONTENT;
            if response.code == AUTHENTICATE {
                let message = format!("the server asks for a name and a password; {CREDENTIALS}");
                return Err(Error::new(ErrorKind::Forbidden, message));
            }
            if !(200..300).contains(&response.code) {
                return Err(Error::new(kind_of(response.code), response.message.to_string()));
            }
            if response.code != NO_CONTENT {
                self.ready.extend(response.data);
            }
        }
        Ok(())
    }
}

impl Iterator for Answer<'_> {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        loop {
            match self.ready.front_mut() {
                None if self.is_over => return None,
                None => {
                    if let Err(error) = self.fill() {
                        return Some(Err(error));
                    }
                }
                Some((bulk, value)) if *bulk > 1 => {
                    *bulk -= 1;
                    return Some(Ok(value.clone()));
                }
                Some(_) => {
                    let (bulk, value) = self.ready.pop_front().expect("there is a front");
                    if bulk > 0 {
                        return Some(Ok(value));
                    }
                }
            }
        }
    }
}

/// Stops the queries of one client from any thread.
#[derive(Clone)]
pub struct Canceller {
    target: Target,
    own_address: SocketAddr,
    abandoned: Arc<Notify>,
}

impl Canceller {
    /// Has the server stop the client's running queries. Returns the number of them.
    pub fn cancel(&self, source: &str) -> Result<usize> {
        let mut other = Client::connect_to(self.target.clone())?;
        let own = Value::from(self.own_address.to_string());
        let ask = |client: &mut Client, script: &str, parameters: &Parameters| {
            let ask = Ask { source: Some(source), ..Ask::new(script, parameters) };
            client.ask(&ask)?.collect::<Result<Vec<Value>>>()
        };
        let running = ask(&mut other, "g.call('mangrove.queries')", &Parameters::new())?;
        let field = |row: &Value, name: &str| match row {
            Value::Map(entries) => entries.iter().find(|(key, _)| *key == Value::from(name)).map(|(_, v)| v.clone()),
            _ => None,
        };
        let ids =
            running.iter().filter(|row| field(row, "from").as_ref() == Some(&own)).filter_map(|row| field(row, "id"));
        let mut count = 0;
        for id in ids {
            let parameters = Parameters::from([("number".into(), id)]);
            ask(&mut other, "g.call('mangrove.kill').with('id', number)", &parameters)?;
            count += 1;
        }
        Ok(count)
    }

    /// Makes the client give up its connection: at once if it waits for an answer, else when it waits for the next one.
    /// The server stops the query.
    pub fn abandon(&self) {
        // The client may be between two waits. `notify_one` is kept for the next one.
        self.abandoned.notify_one();
    }
}

/// The kind of error for a status of the protocol.
fn kind_of(code: u16) -> ErrorKind {
    match code {
        498 => ErrorKind::Syntax,
        401 | 403 => ErrorKind::Forbidden,
        499 => ErrorKind::InvalidArgument,
        596 => ErrorKind::Conflict,
        598 => ErrorKind::Timeout,
        500 => ErrorKind::Bug,
        _ => ErrorKind::Evaluation,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tokio_tungstenite::tungstenite::accept;

    use super::*;

    /// A server that reads one request on each connection, and closes the connection after a while without an answer.
    fn serve_silently(listener: &TcpListener, connections: [Duration; 2]) {
        for silence in connections {
            let (stream, _) = listener.accept().unwrap();
            let mut socket = accept(stream).unwrap();
            socket.read().unwrap();
            socket.get_ref().set_read_timeout(Some(silence)).unwrap();
            // Returns early if the client closes the connection.
            let _ = socket.read();
        }
    }

    #[test]
    fn a_client_that_is_told_between_two_waits_gives_up_at_the_next_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("ws://{}/gremlin", listener.local_addr().unwrap());
        let errors = std::thread::scope(|scope| {
            scope.spawn(|| serve_silently(&listener, [Duration::from_secs(5), Duration::from_millis(200)]));
            let mut client = Client::connect(&url).unwrap();
            let canceller = client.canceller();
            canceller.abandon();
            let told = client.run("g.inject(1)", &Parameters::new()).unwrap_err();
            // The wait is over, so this comes too late. It ends with its canceller.
            canceller.abandon();
            drop(canceller);
            client.reconnect().unwrap();
            let not_told = client.run("g.inject(1)", &Parameters::new()).unwrap_err();
            [told, not_told]
        });
        let was_told = errors.map(|error| error.message().contains("this program closed it to stop the query"));
        assert_eq!(was_told, [true, false]);
    }
}
